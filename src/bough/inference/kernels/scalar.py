"""Messages where parameters are numbers: what actions have observed, taken rootward; `scalar.py` says what is kept."""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.slots import place

# Columns of the evidence of an action with Gaussian rewards: their number, mean, and sum of squares around it.
COUNT, MEAN, SPREAD = range(3)
# Columns of the state of a slot: what it has collected from below, and what it has sent to its parent.
M, ETA, M_SENT, ETA_SENT = range(4)
# Columns of the law of a slot given its parent, which is all that sampling reads.
GAIN, OFFSET, DEVIATION = range(3)


@kernel
def add(evidence: Floats, row: int, count: float, average: float, spread: float) -> None:
    """Adds rewards of this number, mean and spread to a row of evidence (n, 3)."""
    before = evidence[row, COUNT]
    total = before + count
    off = average - evidence[row, MEAN]
    evidence[row, COUNT] = total
    evidence[row, MEAN] += off * (count / total)
    evidence[row, SPREAD] += spread + off * off * (before * count / total)


@kernel
def say(evidence: Floats, row: int, slot: int, mean: float, precision: float, state: Floats) -> None:
    """Overwrites what the slot of an action has collected with what its rewards say."""
    m = precision * evidence[row, COUNT]
    state[slot, M] = m
    state[slot, ETA] = m * (evidence[row, MEAN] - mean)


@kernel
def collect(
    slots: Nodes,  # (n,)
    slot_row: Nodes,  # (T,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,)
    spreads: Floats,  # (n,)
    mean: float,
    precision: float,  # of one reward
    evidence: Floats,  # (rows, 3)
    state: Floats,  # (T, 4)
) -> None:
    """Adds rewards, which come summed, to their actions' rows of evidence, and has these say so."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        add(evidence, row, counts[i], averages[i], spreads[i])
        say(evidence, row, slots[i], mean, precision, state)


@kernel
def mark_paths(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    law: Floats,  # (T, 3)
    stale: Nodes,  # (room,)
) -> int:
    """Overwrites stale with the slots on the paths to the root, each once; returns how many.

    A negative gain, which no law has, marks a slot that is listed already.
    """
    n_stale = 0
    for i in range(len(slots)):
        slot = slots[i]
        while slot >= 0 and not law[slot, GAIN] < 0.0:
            law[slot, GAIN] = -1.0
            stale[n_stale] = slot
            n_stale += 1
            slot = parent[slot]
    return n_stale


@kernel
def refresh_slot(slot: int, above: int, v: float, state: Floats, law: Floats) -> None:
    """Overwrites the law of a slot of prior variance v, and tells the state above (-1: none) what changed."""
    m = state[slot, M]
    eta = state[slot, ETA]
    gain = 1.0 / (1.0 + v * m)
    law[slot, GAIN] = gain
    law[slot, OFFSET] = v * gain * eta
    law[slot, DEVIATION] = math.sqrt(v * gain)
    if above >= 0:
        state[above, M] += m * gain - state[slot, M_SENT]
        state[above, ETA] += eta * gain - state[slot, ETA_SENT]
    state[slot, M_SENT] = m * gain
    state[slot, ETA_SENT] = eta * gain


@kernel
def refresh(
    leafward: Nodes,  # (n,) slots, ascending
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws of the given slots, and tells their parents' states what has changed."""
    for i in range(len(leafward) - 1, -1, -1):
        slot = leafward[i]
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)


@kernel
def refresh_path(
    slot: int,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws from a slot up to the root, and tells each parent's state what has changed."""
    while slot >= 0:
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)
        slot = parent[slot]


@kernel
def refresh_paths(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws from some slots, one after the other, up to the root; for a few of them."""
    for i in range(len(slots)):
        refresh_path(slots[i], parent, slot_class, variance, state, law)


@kernel
def fade(
    factor: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) the row of an action, -1 inside
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites state, where actions say that much of what they did, and law: one rootward pass.

    Whether a slot is an action's cannot be foreseen, so the loops have no branches that depend on it.
    """
    for slot in range(len(parent)):
        stays = factor if slot_row[slot] >= 0 else 0.0
        state[slot, M] *= stays
        state[slot, ETA] *= stays
    for slot in range(len(parent) - 1, -1, -1):
        v = variance[slot_class[slot]]
        m = state[slot, M]
        eta = state[slot, ETA]
        gain = 1.0 / (1.0 + v * m)
        law[slot, GAIN] = gain
        law[slot, OFFSET] = v * gain * eta
        law[slot, DEVIATION] = math.sqrt(v * gain)
        state[slot, M_SENT] = m * gain
        state[slot, ETA_SENT] = eta * gain
        if slot > 0:  # the root's is the first
            state[parent[slot], M] += m * gain
            state[parent[slot], ETA] += eta * gain


@kernel
def observe_one(
    node: int,
    reward: float,
    weight: float,
    mean: float,
    precision: float,  # of a reward of weight one
    slot_node: Nodes,  # (room,)
    table: Nodes,  # (a power of two,) of slots
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 3)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> bool:
    """Adds one reward to its action, and refreshes the path to the root; False, and nothing, where it has no slot."""
    slot = table[place(node, slot_node, table)] - 1
    if slot < 0:
        return False
    row = slot_row[slot]
    add(evidence, row, weight, reward, 0.0)
    say(evidence, row, slot, mean, precision, state)
    refresh_path(slot, parent, slot_class, variance, state, law)
    return True


@kernel
def remake(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) the row of an action, -1 inside
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4) of actions, M and ETA on entry
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites law, and all of state but what actions say: one rootward pass."""
    for slot in range(len(parent)):
        if slot_row[slot] < 0:
            state[slot, M] = 0.0
            state[slot, ETA] = 0.0
        state[slot, M_SENT] = 0.0
        state[slot, ETA_SENT] = 0.0
    for slot in range(len(parent) - 1, -1, -1):
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)
