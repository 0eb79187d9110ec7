"""How well a log's rewards are predicted, block of time by block of time, where old ones fade or actions drift.

Rows are those of one action at one time: how many rewards, their mean as a deviation from the prior mean, and their sum
of squares around it. They are in the order of *cells*, the rows of one action in one block, and of time within a cell.
The rewards of a cell are predicted together, from the rewards of all blocks before; the first block has none.
"""

from __future__ import annotations

import math

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels import drift, scalar
from bough.inference.kernels.jit import kernel

_LOG_2, _LOG_2_PI = math.log(2.0), math.log(2.0 * math.pi)


@kernel
def moments(
    parent: Nodes,  # (T,)
    law: Floats,  # (T, 3)
    mean: Floats,  # (T,)
    variance: Floats,  # (T,)
) -> None:
    """Overwrites the mean and the variance of each slot, as deviations from the prior mean."""
    for slot in range(len(parent)):
        above = parent[slot]
        gain = law[slot, scalar.GAIN]
        mean[slot] = law[slot, scalar.OFFSET] + (gain * mean[above] if above >= 0 else 0.0)
        variance[slot] = law[slot, scalar.DEVIATION] ** 2 + (gain * gain * variance[above] if above >= 0 else 0.0)


@kernel
def fading_score(
    block_cell: Integers,  # (B + 1,) where each block's cells begin
    block_time: Floats,  # (B,)
    cell_row: Integers,  # (C + 1,) where each cell's rows begin
    cell_slot: Nodes,  # (C,)
    count: Floats,  # (n,)
    average: Floats,  # (n,)
    squares: Floats,  # (n,)
    time: Floats,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) of actions; -1 inside
    variance: Floats,  # (n_classes,)
    noise: float,
    half_life: float,  # inf where nothing fades
    evidence: Floats,  # (A, 3)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    mean: Floats,  # (T,)
    spread: Floats,  # (T,)
) -> float:
    """The log predictive density where the precision of a reward halves in each half-life; overwrites the last five."""
    evidence[:] = 0.0
    total = 0.0
    for block in range(len(block_time)):
        if block > 0:
            left = math.exp(-_LOG_2 * (block_time[block] - block_time[block - 1]) / half_life)
            for row in range(len(evidence)):
                evidence[row, scalar.COUNT] *= left
                evidence[row, scalar.SPREAD] *= left
            for slot in range(len(parent)):
                if slot_row[slot] >= 0:
                    scalar.say(evidence, slot_row[slot], slot, 0.0, 1.0 / noise, state)
            scalar.remake(parent, slot_class, slot_row, variance, state, law)
            moments(parent, law, mean, spread)
        for cell in range(block_cell[block], block_cell[block + 1]):
            slot = cell_slot[cell]
            n, at, around = 0.0, 0.0, 0.0
            for i in range(cell_row[cell], cell_row[cell + 1]):
                off = average[i] - at
                around += squares[i] + off * off * (n * count[i] / (n + count[i]))
                n += count[i]
                at += off * (count[i] / n)
                weight = math.exp(-_LOG_2 * (block_time[block] - time[i]) / half_life)
                scalar.add(evidence, slot_row[slot], weight * count[i], average[i], weight * squares[i])
            if block > 0:
                width = spread[slot] + noise / n
                total -= 0.5 * (n * _LOG_2_PI + (n - 1.0) * math.log(noise) + math.log(n) + around / noise)
                total -= 0.5 * (math.log(width) + (at - mean[slot]) ** 2 / width)
    return total


@kernel
def drifting_score(
    block_cell: Integers,  # (B + 1,) where each block's cells begin
    cell_row: Integers,  # (C + 1,) where each cell's rows begin
    cell_slot: Nodes,  # (C,)
    count: Floats,  # (n,)
    average: Floats,  # (n,)
    squares: Floats,  # (n,)
    time: Floats,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) of actions; -1 inside
    variance: Floats,  # (n_classes,) of messages: none of actions
    own: Floats,  # (n_classes,) of actions around their parents
    noise: float,
    half_life: float,
    evidence: Floats,  # (A + 1, 9) the last row is scratch
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    mean: Floats,  # (T,)
    spread: Floats,  # (T,)
) -> float:
    """The log predictive density where actions drift with this half-life; overwrites the last five.

    What the rewards of a cell say of the parent is collected in a row of its own, begun where the action's stands, and
    then weighed by what is known of the parent. As far as messages go the action *is* its parent.
    """
    evidence[:] = 0.0
    scratch = len(evidence) - 1
    total = 0.0
    for block in range(len(block_cell) - 1):
        if block > 0:
            for slot in range(len(parent)):
                if slot_row[slot] >= 0:
                    drift.say(evidence, slot_row[slot], slot, state)
            scalar.remake(parent, slot_class, slot_row, variance, state, law)
            moments(parent, law, mean, spread)
        for cell in range(block_cell[block], block_cell[block + 1]):
            slot = cell_slot[cell]
            row = slot_row[slot]
            evidence[scratch] = evidence[row]
            evidence[scratch, drift.PRECISION :] = 0.0
            before = evidence[row, drift.COUNT]
            for i in range(cell_row[cell], cell_row[cell + 1]):
                drift.add(
                    evidence,
                    scratch,
                    count[i],
                    average[i],
                    squares[i],
                    time[i],
                    own[slot_class[slot]],
                    noise,
                    half_life,
                )
            said, information = evidence[scratch, drift.PRECISION], evidence[scratch, drift.INFORMATION]
            if block > 0:
                n = evidence[scratch, drift.COUNT] - before
                total -= 0.5 * (n * _LOG_2_PI + evidence[scratch, drift.LOG_VARIANCES])
                total -= 0.5 * (evidence[scratch, drift.RESIDUAL] + math.log1p(spread[slot] * said))
                if said > 0.0:
                    off = information / said - mean[slot]
                    total -= 0.5 * said * off * off / (1.0 + spread[slot] * said)
            evidence[scratch, drift.PRECISION] += evidence[row, drift.PRECISION]
            evidence[scratch, drift.INFORMATION] += evidence[row, drift.INFORMATION]
            evidence[row] = evidence[scratch]
    return total
