"""Messages of actions that drift around their parents; `inference/drift.py` says what is kept."""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import DEVIATION, ETA, GAIN, OFFSET, M, refresh_path
from bough.inference.kernels.slots import place

# Columns of the evidence of an action: the number of its rewards; its law given its parent just after the last of them,
# and when that was; the precision and the information that it sends its parent; two parts of the log evidence.
COUNT, SHIFT, SHARE, SPREAD, LAST, PRECISION, INFORMATION, LOG_VARIANCES, RESIDUAL = range(9)

_LOG_2 = math.log(2.0)


@kernel
def aged(evidence: Floats, row: int, now: float, own: float, half_life: float) -> tuple[float, float, float]:
    """(share, shift, spread): the law of an action of variance `own` given its parent, at or after its last reward."""
    if evidence[row, COUNT] <= 0.0:
        return 1.0, 0.0, own
    lost = -math.expm1(-_LOG_2 * ((now - evidence[row, LAST]) / half_life))
    left = 1.0 - lost
    spread = left * left * evidence[row, SPREAD] + lost * (1.0 + left) * own
    return left * evidence[row, SHARE] + lost, left * evidence[row, SHIFT], spread


@kernel
def add(
    evidence: Floats,  # (rows, 9)
    row: int,
    count: float,
    average: float,  # its deviation from the prior mean
    squares: float,  # around the average
    time: float,
    own: float,  # the variance of the action around its parent
    noise: float,  # the variance of one reward around its action
    half_life: float,
) -> None:
    """Adds rewards of one moment, of this number, mean and sum of squares around it, to a row of evidence."""
    share, shift, spread = aged(evidence, row, time, own, half_life)
    off = average - shift
    variance = spread + noise / count  # of the average given the parent
    said = evidence[row, PRECISION]
    if said > 0.0:
        missed = off - share * (evidence[row, INFORMATION] / said)
        evidence[row, RESIDUAL] += missed * missed / (variance + share * share / said)
    evidence[row, RESIDUAL] += squares / noise
    evidence[row, LOG_VARIANCES] += math.log(variance) + math.log(count) + (count - 1.0) * math.log(noise)
    evidence[row, PRECISION] = said + share * share / variance
    evidence[row, INFORMATION] += share * off / variance
    kept = noise / count / variance
    evidence[row, SHIFT] = shift + spread / variance * off
    evidence[row, SHARE] = share * kept
    evidence[row, SPREAD] = spread * kept
    evidence[row, LAST] = time
    evidence[row, COUNT] += count


@kernel
def say(evidence: Floats, row: int, slot: int, state: Floats) -> None:
    """Overwrites what the slot of an action has collected with what its rewards say of its parent."""
    state[slot, M] = evidence[row, PRECISION]
    state[slot, ETA] = evidence[row, INFORMATION]


@kernel
def collect(
    slots: Nodes,  # (n,)
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,)
    squares: Floats,  # (n,)
    times: Floats,  # (n,) ascending
    own: Floats,  # (n_classes,)
    mean: float,
    noise: float,
    half_life: float,
    evidence: Floats,  # (rows, 9)
    state: Floats,  # (T, 4)
) -> None:
    """Adds rewards to their actions' rows of evidence, and has these say so."""
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        variance = own[slot_class[slot]]
        add(evidence, row, counts[i], averages[i] - mean, squares[i], times[i], variance, noise, half_life)
        say(evidence, row, slot, state)


@kernel
def observe_one(
    node: int,
    reward: float,
    now: float,
    mean: float,
    noise: float,
    half_life: float,
    slot_node: Nodes,  # (room,)
    table: Nodes,  # (a power of two,) of slots
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    own: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 9)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> bool:
    """Adds one reward to its action, and refreshes the path to the root; False, and nothing, where it has no slot."""
    slot = table[place(node, slot_node, table)] - 1
    if slot < 0:
        return False
    row = slot_row[slot]
    add(evidence, row, 1.0, reward - mean, 0.0, now, own[slot_class[slot]], noise, half_life)
    say(evidence, row, slot, state)
    refresh_path(slot, parent, slot_class, variance, state, law)
    write_law(slot, row, now, own[slot_class[slot]], half_life, evidence, law)
    return True


@kernel
def write_law(slot: int, row: int, now: float, own: float, half_life: float, evidence: Floats, law: Floats) -> None:
    """Overwrites the law of the slot of an action with that of now."""
    share, shift, spread = aged(evidence, row, now, own, half_life)
    law[slot, GAIN] = share
    law[slot, OFFSET] = shift
    law[slot, DEVIATION] = math.sqrt(spread)


@kernel
def age(
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    now: float,
    own: Floats,  # (n_classes,)
    half_life: float,
    evidence: Floats,  # (rows, 9)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws of all touched actions with those of now."""
    for slot in range(len(slot_row)):
        if slot_row[slot] >= 0:
            write_law(slot, slot_row[slot], now, own[slot_class[slot]], half_life, evidence, law)
