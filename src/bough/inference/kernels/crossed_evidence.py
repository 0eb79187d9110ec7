"""Crossed effects made again from all that was observed: by sums where these lose little, and else by rows."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.crossed import fold
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import ETA, M_SENT, M


@kernel
def say_cells(
    cell_slot: Nodes,  # (n,)
    cell_first: Integers,  # (n + 1,)
    cell_place: Nodes,  # where in its slot's list each effect of a cell is
    precision: Floats,  # (n,)
    reward: Floats,  # (n,) as a deviation from the prior mean
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    value: Floats,  # (E,)
) -> None:
    """Adds what cells say to the states and the lists of their slots."""
    for i in range(len(cell_slot)):
        slot = cell_slot[i]
        state[slot, M] += precision[i]
        state[slot, ETA] += precision[i] * reward[i]
        for e in range(cell_first[i], cell_first[i + 1]):
            value[first[slot] + cell_place[e]] += precision[i]


@kernel
def gram_of_cells(
    cell_slot: Nodes,  # (n,)
    cell_first: Integers,  # (n + 1,)
    cell_effect: Nodes,
    precision: Floats,  # (n,)
    reward: Floats,  # (n,)
    cells_of_slot: Nodes,  # (T,) how many cells a slot has
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    gram: Floats,  # (q, q)
    right: Floats,  # (q,)
) -> None:
    """Adds z z' and z y of all cells, in units of their noise, where an action has one cell with its own variance.

    Only the upper triangle of gram is there.
    """
    for i in range(len(cell_slot)):
        slot = cell_slot[i]
        weight = precision[i]
        if cells_of_slot[slot] == 1:
            weight /= 1.0 + variance[slot_class[slot]] * state[slot, M]
        for e in range(cell_first[i], cell_first[i + 1]):
            right[cell_effect[e]] += weight * reward[i]
            for g in range(cell_first[i], cell_first[i + 1]):
                if cell_effect[e] <= cell_effect[g]:
                    gram[cell_effect[e], cell_effect[g]] += weight


@kernel
def gram_of_slots(
    cells_of_slot: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    gram: Floats,  # (q, q)
    right: Floats,  # (q,)
) -> None:
    """Takes off gram, an upper triangle, and right what the tree explains: S H H' and S H eta of every slot.

    Those of actions with one cell have been taken off.
    """
    for slot in range(len(slot_class)):
        if cells_of_slot[slot] == 1:
            continue
        v = variance[slot_class[slot]]
        step = v / (1.0 + v * state[slot, M])
        if step == 0.0:
            continue
        start = first[slot]
        end = start + size[slot]
        for e in range(start, end):
            scaled = step * value[e]
            right[effect[e]] -= scaled * state[slot, ETA]
            for g in range(start, e + 1):
                gram[min(effect[e], effect[g]), max(effect[e], effect[g])] -= scaled * value[g]


@kernel
def mirror(matrix: Floats) -> None:
    """Overwrites the part of matrix (q, q) below the diagonal with that above it."""
    for i in range(len(matrix)):
        for j in range(i):
            matrix[i, j] = matrix[j, i]


@kernel
def fold_all(
    parent: Nodes,  # (T,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    cell_slot: Nodes,  # (n,)
    cell_first: Integers,  # (n + 1,)
    cell_effect: Nodes,
    precision: Floats,  # (n,)
    reward: Floats,  # (n,)
    cells_of_slot: Nodes,  # (T,)
    decided: Nodes,  # (m,) the effects of decisions, ascending
    deviation: Floats,  # (q,)
    mean: float,  # of the root, as rewards are; NaN where it goes along with the effects
    triangle: Floats,  # (q, q)
    targets: Floats,  # (q,)
    row: Floats,  # (q,) scratch
) -> None:
    """Rotates into triangle and targets how far each slot is from its parent's mean, and a cell from its action's.

    There may be far more cells than slots. Their rows say nothing of the effects of actions, so they have a triangle of
    their own at first: in that of all effects they would be filled, where those of actions come last.
    """
    own, own_targets = np.zeros((len(decided), len(decided))), np.zeros(len(decided))
    fold_cells(
        state, first, size, effect, value, cell_slot, cell_first, cell_effect, precision, reward, cells_of_slot,
        decided, deviation, own, own_targets,
    )  # fmt: skip
    for i in range(len(decided)):
        row[:] = 0.0
        for j in range(i, len(decided)):
            row[decided[j]] = own[i, j]
        fold(row, own_targets[i], triangle, targets)
    for slot in range(len(parent)):
        m = state[slot, M]
        above = parent[slot]
        if m <= 0.0 or (above < 0 and math.isnan(mean)):
            continue
        row[:] = 0.0
        target = state[slot, ETA] / m
        for e in range(first[slot], first[slot] + size[slot]):
            row[effect[e]] += value[e] / m
        if above >= 0:
            target -= state[above, ETA] / state[above, M]
            for e in range(first[above], first[above] + size[above]):
                row[effect[e]] -= value[e] / state[above, M]
        else:
            target -= mean
        unit = math.sqrt(state[slot, M_SENT])
        for j in range(len(row)):
            row[j] *= unit * deviation[j]
        fold(row, unit * target, triangle, targets)


@kernel
def fold_cells(
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    cell_slot: Nodes,  # (n,)
    cell_first: Integers,  # (n + 1,)
    cell_effect: Nodes,
    precision: Floats,  # (n,)
    reward: Floats,  # (n,)
    cells_of_slot: Nodes,  # (T,)
    decided: Nodes,  # (m,) the effects of decisions
    deviation: Floats,  # (q,)
    triangle: Floats,  # (m, m)
    targets: Floats,  # (m,)
) -> None:
    """Rotates into triangle and targets, which are of the decisions' effects, how far each cell is from its action.

    All cells of an action have its own effects, which are the same in their mean.
    """
    place, row = np.full(len(deviation), -1), np.empty(len(decided))
    for j in range(len(decided)):
        place[decided[j]] = j
    for i in range(len(cell_slot)):
        slot = cell_slot[i]
        if cells_of_slot[slot] == 1 or precision[i] <= 0.0:
            continue
        row[:] = 0.0
        for e in range(cell_first[i], cell_first[i + 1]):
            if place[cell_effect[e]] >= 0:
                row[place[cell_effect[e]]] = 1.0
        for e in range(first[slot], first[slot] + size[slot]):
            if place[effect[e]] >= 0:
                row[place[effect[e]]] -= value[e] / state[slot, M]
        unit = math.sqrt(precision[i])
        for j in range(len(row)):
            row[j] *= unit * deviation[decided[j]]
        fold(row, unit * (reward[i] - state[slot, ETA] / state[slot, M]), triangle, targets)


@kernel
def deviance(
    b: Floats,  # (q,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    cell_slot: Nodes,  # (n,)
    cell_first: Integers,  # (n + 1,)
    cell_effect: Nodes,
    precision: Floats,  # (n,)
    reward: Floats,  # (n,)
    eta: Floats,  # (T,)
) -> float:
    """Minus twice the log density of the cells' rewards given the effects, without constants; overwrites eta.

    As in `scalar_draws.deviance`, no term is negative.
    """
    total = 0.0
    for slot in range(len(parent)):
        eta[slot] = state[slot, ETA]
        for e in range(first[slot], first[slot] + size[slot]):
            eta[slot] -= value[e] * b[effect[e]]
    for slot in range(len(parent)):
        m = state[slot, M]
        if m <= 0.0:
            continue
        above = parent[slot]
        expected = eta[above] / state[above, M] if above >= 0 else 0.0
        total += state[slot, M_SENT] * (eta[slot] / m - expected) ** 2
        total += math.log1p(variance[slot_class[slot]] * m)
    for i in range(len(cell_slot)):
        if precision[i] > 0.0:
            off = reward[i] - eta[cell_slot[i]] / state[cell_slot[i], M]
            for e in range(cell_first[i], cell_first[i + 1]):
                off -= b[cell_effect[e]]
            total += precision[i] * off * off
    return total
