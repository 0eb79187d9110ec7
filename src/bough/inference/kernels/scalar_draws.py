"""Draws, moments and the deviance where parameters are numbers; they read laws and change nothing else.

A node without a step is where its parent is, to the last digit: actions that tie are not told apart by rounding.
"""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import DEVIATION, ETA, GAIN, M_SENT, OFFSET, M


@kernel
def drawn(mean: float, above: float, gain: float, offset: float, step: float, deviation: float) -> float:
    """A parameter given that of its parent, where its law has this deviation and its own step was drawn."""
    return above if deviation == 0.0 else mean + gain * (above - mean) + offset + step


@kernel
def sample_all(
    out: Floats,  # (V,) standard normals on entry, parameters on return
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out. Untouched stretches follow the prior; between them stand the touched nodes."""
    start = 0
    if len(nodes) == 0:
        out[0] = mean + deviation[class_of_node[0]] * out[0]
        start = 1
    for k in range(len(nodes)):
        slot = slots[k]
        node = nodes[k]
        for i in range(start, node):
            out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]
        above = out[tree_parent[node]] if node > 0 else mean
        width = law[slot, DEVIATION]
        out[node] = drawn(mean, above, law[slot, GAIN], law[slot, OFFSET], width * out[node], width)
        start = node + 1
    for i in range(start, len(out)):
        out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]


@kernel
def sample_some(
    out: Floats,  # (n,) standard normals on entry, parameters on return
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,) -1 where untouched
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out, parents before children."""
    for i in range(len(out)):
        above = out[parent_position[i]] if parent_position[i] >= 0 else mean
        slot = slots[i]
        if slot >= 0:
            width = law[slot, DEVIATION]
            out[i] = drawn(mean, above, law[slot, GAIN], law[slot, OFFSET], width * out[i], width)
        else:
            out[i] = above + deviation[classes[i]] * out[i]


@kernel
def sample_touched(
    out: Floats,  # (T,) standard normals on entry, parameters on return
    parent: Nodes,  # (T,)
    mean: float,
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out with a joint draw of the touched nodes, parents before children."""
    for slot in range(len(out)):
        above = out[parent[slot]] if slot > 0 else mean
        width = law[slot, DEVIATION]
        out[slot] = drawn(mean, above, law[slot, GAIN], law[slot, OFFSET], width * out[slot], width)


@kernel
def variances(
    out: Floats,  # (V,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out: S + A var(parent) A, leafward."""
    touched = 0
    for i in range(len(out)):
        above = out[tree_parent[i]] if i > 0 else 0.0
        if touched < len(nodes) and nodes[touched] == i:
            slot = slots[touched]
            out[i] = law[slot, DEVIATION] ** 2 + law[slot, GAIN] ** 2 * above
            touched += 1
        else:
            out[i] = above + variance[class_of_node[i]]


@kernel
def moments_of_some(
    means: Floats,  # (n,)
    variances: Floats,  # (n,)
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    variance: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,) -1 where untouched
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites means and variances, parents before children."""
    for i in range(len(means)):
        p = parent_position[i]
        above = means[p] if p >= 0 else mean
        spread = variances[p] if p >= 0 else 0.0
        slot = slots[i]
        if slot >= 0:
            width = law[slot, DEVIATION]
            means[i] = drawn(mean, above, law[slot, GAIN], law[slot, OFFSET], 0.0, width)
            variances[i] = width**2 + law[slot, GAIN] ** 2 * spread
        else:
            means[i] = above
            variances[i] = spread + variance[classes[i]]


@kernel
def deviance(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
) -> float:
    """Minus twice the log evidence, without its constant and the rewards' spread: no term of it is negative.

    A node's message says eta~ / M~ with precision M~; how far that is from the mean of what its siblings and it
    said together is what their parent finds surprising.
    """
    total = 0.0
    for slot in range(len(state)):
        m = state[slot, M]
        if m <= 0.0:
            continue
        above = parent[slot]
        expected = state[above, ETA] / state[above, M] if above >= 0 else 0.0
        total += state[slot, M_SENT] * (state[slot, ETA] / m - expected) ** 2
        total += math.log1p(variance[slot_class[slot]] * m)
    return total


@kernel
def log_mass(slot_class: Nodes, variance: Floats, state: Floats) -> float:
    """The log of the prior's integral over all sites, exp(eta t - M t^2 / 2) at each leaf."""
    total = 0.0
    for slot in range(len(state)):
        v = variance[slot_class[slot]]
        m, eta = state[slot, M], state[slot, ETA]
        total += 0.5 * (v * eta * eta / (1.0 + v * m) - math.log1p(v * m))
    return total
