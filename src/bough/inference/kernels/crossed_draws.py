"""Draws and moments where there are crossed effects: given these, the laws of the tree have other offsets."""

from __future__ import annotations

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.crossed import look
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import DEVIATION, ETA, GAIN, OFFSET


@kernel
def laws_given(
    b: Floats,  # (q,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    given: Floats,  # (T, 3)
) -> None:
    """Overwrites given with the laws of all slots where the effects are known to be b."""
    for slot in range(len(slot_class)):
        eta = state[slot, ETA]
        for e in range(first[slot], first[slot] + size[slot]):
            eta -= value[e] * b[effect[e]]
        given[slot, GAIN] = law[slot, GAIN]
        given[slot, OFFSET] = variance[slot_class[slot]] * law[slot, GAIN] * eta
        given[slot, DEVIATION] = law[slot, DEVIATION]


@kernel
def add_effects(b: Floats, start: Integers, labels: Nodes, scores: Floats) -> None:
    """Adds to the scores (n,) of actions the effects of their labels, which begin at start (n + 1,)."""
    for i in range(len(scores)):
        for e in range(start[i], start[i + 1]):
            scores[i] += b[labels[e]]


@kernel
def moments(
    slots: Nodes,  # (n,) of nodes, or of their lowest ancestors that have one; -1 where none has
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    path: Nodes,  # (height + 1,) scratch
    means: Floats,  # (n,)
    spreads: Floats,  # (n,)
    slopes: Floats,  # (n, q)
) -> None:
    """Overwrites means and spreads, the moments of the nodes' parameters where b = 0, and slopes: b adds slopes b."""
    for i in range(len(slots)):
        if slots[i] < 0:
            means[i] = 0.0
            spreads[i] = 0.0
            slopes[i] = 0.0
            continue
        means[i], spreads[i] = look(
            slots[i], parent, slot_class, variance, state, first, size, effect, value, path, slopes[i]
        )
        for j in range(slopes.shape[1]):
            slopes[i, j] = -slopes[i, j]
