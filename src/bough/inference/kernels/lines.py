"""The lines of the capped search: what children take of them, and their sums; see docs/explanation/decisions.md.

A *family* is an inner node with its children. Each child takes a length on the family's line, one for each *column*: a
reference for the best value, and a cap on the parent's own. Children are touched actions, inner nodes, and groups of
untouched subtrees that are alike. Lengths of actions and groups are made when they are needed. Those of inner nodes,
the *rows*, are kept, and so are the sums of families, and in wide ones the sums of 16 children, of 16 such sums, and so
on. What is kept is always summed anew, never corrected by differences, so that it does not depend on what came before.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.lengths import (
    LONGEST,
    N_CAPS,
    N_COLUMNS,
    N_REFERENCES,
    PER_UNIT,
    REACH,
    length_of,
    long_enough,
    rate_at,
    some_point,
    upper_tail,
)
from bough.inference.kernels.scalar import DEVIATION, GAIN, OFFSET
from bough.inference.kernels.slots import whole

# Columns of what is kept of a family, by the inner node above it.
SLOT, NODE, ABOVE, POSITION, START, SIZE, BLOCKS, FIRST_GROUP, N_GROUPS = range(9)
N_FIELDS = 9
# Columns of a group.
KIND, COUNT = range(2)
# Columns of a kind of untouched subtree: its top's step, the kind and number of its children, and where its table is.
OWN_STEP, CHILD_KIND, N_CHILDREN, TABLE_START, TABLE_STEP, TABLE_FIRST, TABLE_SIZE = range(7)
# Columns of numbers of an inner node: the mean and the deviation that its caps were set for, and its prior step.
CENTRE, WIDTH, STEP = range(3)

BLOCK = 16  # children that are summed together
CAPS = np.array([-0.5, 0.5, 1.5, 2.5, 3.5, 4.75])  # in deviations of a node from its mean
_ROUNDED = 1.0 + 1e-6  # what is kept has 24 bits, and may not be too small

_MOVED = 0.7  # deviations
_NARROWED, _WIDENED = 0.7, 1.2


class Lines(NamedTuple):
    """All that a decision reads."""

    unit: Nodes
    """(n, 9) what is kept of each inner node and its family, parents first."""
    number: Floats
    """(n, 3) what else is kept of it."""
    row: Floats
    """(n, 2 columns) the lengths that it takes in the family above it, and behind them the sums of its own family."""
    member: Nodes
    """The children of families: the slot s of an action as s, the inner node u as -1 - 2 u, the group g as -2 - 2 g."""
    block: Floats
    """(m, columns) the sums of 16, in wide families."""
    group: Nodes
    """(n_groups, 2) the kind and the number of its untouched subtrees."""
    kind: Floats
    """(n_kinds, 7) of untouched subtrees; -1 is the kind of the children of an action, of which there are none."""
    rates: Floats
    """The tables of all kinds: the rate at which the best action is above a distance from the node above."""
    law: Floats
    """(T, 3) of touched nodes given their parents, by slot."""
    choosable: Flags
    """(T,) whether each is an action that may be chosen."""
    references: Floats
    """(n_references,) values that the best may have, ascending."""
    scale: float
    """What all deviations are multiplied by."""


@kernel
def unit_code(unit: int) -> int:
    """The inner node among the members of the family above it."""
    return -1 - 2 * unit


@kernel
def group_code(group: int) -> int:
    """The group among the members of its family."""
    return -2 - 2 * group


@kernel
def law_of(lines: Lines, unit: int) -> tuple[float, float, float]:
    """The gain, the offset and the deviation of an inner node given its parent."""
    slot = lines.unit[unit, SLOT]
    if slot < 0:
        return 1.0, 0.0, lines.scale * lines.number[unit, STEP]
    return lines.law[slot, GAIN], lines.law[slot, OFFSET], lines.scale * lines.law[slot, DEVIATION]


@kernel
def cap(lines: Lines, unit: int, k: int) -> Any:
    """The k-th cap of an inner node."""
    return lines.number[unit, CENTRE] + CAPS[k] * lines.number[unit, WIDTH]


@kernel
def action_length(lines: Lines, slot: int, reference: float, above: float) -> Any:
    """What a touched action takes of the line, with a reference and a cap on its parent."""
    if not lines.choosable[slot]:
        return 0.0
    law = lines.law[slot]
    return long_enough((reference - law[OFFSET] - law[GAIN] * above) / max(lines.scale * law[DEVIATION], 1e-300))


@kernel
def untouched_length(lines: Lines, kind: int, distance: float) -> Any:
    """What one untouched subtree takes of the line, where the reference is that far above the cap on its parent."""
    of = lines.kind[kind]
    if of[CHILD_KIND] < 0.0:
        return long_enough(distance / of[OWN_STEP])
    place = (distance - of[TABLE_START]) / of[TABLE_STEP]
    if place <= 0.0:
        return LONGEST
    return lines.rates[int(of[TABLE_FIRST] + min(place, of[TABLE_SIZE] - 1.0))]  # they decrease


@kernel
def group_length(lines: Lines, group: int, distance: float) -> Any:
    """What a group takes of the line."""
    count = lines.group[group, COUNT]
    return min(count * untouched_length(lines, whole(lines.group[group, KIND]), distance), LONGEST)


@kernel
def member_length(lines: Lines, code: int, reference: float, above: float, column: int) -> Any:
    """What a member of a family takes of the line."""
    if code >= 0:
        return action_length(lines, code, reference, above)
    if (-1 - code) & 1:
        return group_length(lines, (-1 - code) >> 1, reference - above)
    return lines.row[(-1 - code) >> 1, column]


@kernel
def _add_members(lines: Lines, unit: int, low: int, high: int, total: Floats) -> None:
    """Overwrites total with the sums of the lengths of some members, in all columns."""
    total[:] = 0.0
    start = whole(lines.unit[unit, START])
    for i in range(start + low, start + high):
        code = whole(lines.member[i])
        if code >= 0:
            _add_action(lines, code, unit, total)
        elif (-1 - code) & 1:
            _add_group(lines, (-1 - code) >> 1, unit, total)
        else:
            row = lines.row[(-1 - code) >> 1]
            for column in range(N_COLUMNS):
                total[column] += row[column]


@kernel
def _add_action(lines: Lines, slot: int, unit: int, total: Floats) -> None:
    """Adds the lengths of a touched action to the total."""
    if not lines.choosable[slot]:
        return
    law = lines.law[slot]
    per = PER_UNIT / max(lines.scale * law[DEVIATION], 1e-300)
    for k in range(N_CAPS):
        below = law[OFFSET] + law[GAIN] * cap(lines, unit, k)
        for b in range(N_REFERENCES):
            total[b * N_CAPS + k] += rate_at((lines.references[b] - below) * per + REACH * PER_UNIT)


@kernel
def _add_group(lines: Lines, group: int, unit: int, total: Floats) -> None:
    """Adds the lengths of a group to the total."""
    if lines.group[group, COUNT] == 0:
        return
    for k in range(N_CAPS):
        above = cap(lines, unit, k)
        for b in range(N_REFERENCES):
            total[b * N_CAPS + k] += group_length(lines, group, lines.references[b] - above)


@kernel
def _add_blocks(lines: Lines, low: int, high: int, total: Floats) -> None:
    """Overwrites total with the sums of some blocks."""
    total[:] = 0.0
    for i in range(low, high):
        for column in range(N_COLUMNS):
            total[column] += lines.block[i, column]


@kernel
def room_for(size: int) -> int:
    """The room of a family of so many members: it follows from their number, and not from when they came."""
    room = 4
    while room < size:
        room *= 2
    return room


@kernel
def n_blocks(room: int) -> int:
    """How many sums of 16 a family has that has room for so many members."""
    total = 0
    while room > BLOCK:
        room = (room + BLOCK - 1) // BLOCK
        total += room
    return total


@kernel
def sum_anew(lines: Lines, unit: int, position: int, scratch: Floats) -> None:
    """Overwrites the sums that the member at a position is in, those of all members where it is negative."""
    size = whole(lines.unit[unit, SIZE])
    if size <= BLOCK:
        _add_members(lines, unit, whole(0), size, scratch)
        _keep(lines.row[unit, N_COLUMNS:], scratch)
        return
    room = room_for(size)
    before = -1  # where the sums of the level below begin
    here = whole(lines.unit[unit, BLOCKS])
    while room > BLOCK:
        filled = (size + BLOCK - 1) // BLOCK
        first, last = (0, filled) if position < 0 else (position // BLOCK, position // BLOCK + 1)
        for block in range(first, last):
            low, high = block * BLOCK, min((block + 1) * BLOCK, size)
            if before < 0:
                _add_members(lines, unit, low, high, scratch)
            else:
                _add_blocks(lines, before + low, before + high, scratch)
            _keep(lines.block[here + block], scratch)
        before, size = here, filled
        room = (room + BLOCK - 1) // BLOCK
        here += room
        if position >= 0:
            position //= BLOCK
    _add_blocks(lines, before, before + size, scratch)
    _keep(lines.row[unit, N_COLUMNS:], scratch)


@kernel
def _keep(kept: Floats, total: Floats) -> None:
    """Overwrites kept, which is shorter by half, with the total."""
    for column in range(N_COLUMNS):
        kept[column] = total[column]


@kernel
def write_row(lines: Lines, unit: int, firing: Floats, tails: Floats) -> None:
    """Overwrites the row of an inner node: at least the rate at which it, or some child of it, beats a reference.

    Both are scratch: (N_COLUMNS,) and (N_CAPS,).
    """
    above = whole(lines.unit[unit, ABOVE])
    gain, offset, deviation = law_of(lines, unit)
    deviation = max(deviation, 1e-300)
    for column in range(N_COLUMNS):
        firing[column] = some_point(lines.row[unit, N_COLUMNS + column])
    for k in range(N_CAPS):
        mean = gain * cap(lines, above, k) + offset
        for j in range(N_CAPS):
            tails[j] = upper_tail((cap(lines, unit, j) - mean) / deviation)
        for b in range(N_REFERENCES):
            first = b * N_CAPS
            fires = firing[first] + tails[N_CAPS - 1] * (1.0 - firing[first + N_CAPS - 1])
            for j in range(N_CAPS - 1):
                fires += tails[j] * (firing[first + j + 1] - firing[first + j])
            lines.row[unit, first + k] = length_of(fires) * _ROUNDED


@kernel
def _moments(lines: Lines, unit: int, mean: float, variance: float) -> tuple[float, float]:
    """The mean and the variance of an inner node, given those of its parent; of the root, zeros."""
    gain, offset, deviation = law_of(lines, unit)
    return gain * mean + offset, gain * gain * variance + deviation * deviation


@kernel
def _set_caps(lines: Lines, unit: int, mean: float, variance: float) -> None:
    """Overwrites what the caps of an inner node are set for."""
    lines.number[unit, CENTRE] = mean
    lines.number[unit, WIDTH] = math.sqrt(variance)


@kernel
def remake(lines: Lines, n_units: int, recentre: bool) -> None:
    """Overwrites all rows and sums, and first, if asked to, all caps."""
    unit = lines.unit
    if recentre:
        means, variances = np.empty(n_units), np.empty(n_units)
        for u in range(n_units):
            mean, variance = 0.0, 0.0
            if unit[u, ABOVE] >= 0:
                mean, variance = means[unit[u, ABOVE]], variances[unit[u, ABOVE]]
            means[u], variances[u] = _moments(lines, u, mean, variance)
            _set_caps(lines, u, means[u], variances[u])
    scratch, tails = np.empty(N_COLUMNS), np.empty(N_CAPS)
    for u in range(n_units - 1, -1, -1):
        sum_anew(lines, u, whole(-1), scratch)
        if unit[u, ABOVE] >= 0:
            write_row(lines, u, scratch, tails)


@kernel
def _rows_below(lines: Lines, unit: int, scratch: Floats, tails: Floats) -> None:
    """Overwrites the rows of the inner nodes of a family."""
    start = whole(lines.unit[unit, START])
    for i in range(start, start + lines.unit[unit, SIZE]):
        code = whole(lines.member[i])
        if code < 0 and not (-1 - code) & 1:
            write_row(lines, (-1 - code) >> 1, scratch, tails)


@kernel
def refresh_path(
    lines: Lines,
    slot: int,  # of an action that has changed
    unit: int,  # whose family it is in
    position: int,  # and where
    first_new: int,  # slots from here on have left their groups since the sums were made
    kind_of_node: Nodes,  # (V,)
    slot_node: Nodes,  # (T,)
    recentre: bool,
    path: Nodes,  # (longest,) scratch
    moved: Flags,  # (longest,) scratch
) -> None:
    """Overwrites the rows and sums from the family of an action up, and, if asked to, caps where nodes have moved."""
    length = 0
    while unit >= 0:
        path[length] = unit
        length += 1
        unit = whole(lines.unit[unit, ABOVE])
    mean, variance = 0.0, 0.0
    for i in range(length - 1, -1, -1):
        u = whole(path[i])
        mean, variance = _moments(lines, u, mean, variance)
        moved[i] = recentre and _has_moved(lines, u, mean, math.sqrt(variance))
        if moved[i]:
            _set_caps(lines, u, mean, variance)
    scratch, tails = np.empty(N_COLUMNS), np.empty(N_CAPS)
    for i in range(length):
        u = whole(path[i])
        if moved[i]:
            _rows_below(lines, u, scratch, tails)
            position = whole(-1)
        elif slot >= first_new and lines.unit[u, SIZE] > BLOCK and slot_node[slot] < len(kind_of_node):
            left = group_position(lines.unit, lines.group, u, whole(kind_of_node[slot_node[slot]]))
            if left >= 0:
                sum_anew(lines, u, left, scratch)
        sum_anew(lines, u, position, scratch)
        if lines.unit[u, ABOVE] >= 0:
            write_row(lines, u, scratch, tails)
            position, slot = whole(lines.unit[u, POSITION]), whole(lines.unit[u, SLOT])


@kernel
def _has_moved(lines: Lines, unit: int, mean: float, deviation: float) -> Any:
    """Whether the caps of an inner node are no good any more."""
    width = lines.number[unit, WIDTH]
    if not abs(mean - lines.number[unit, CENTRE]) <= _MOVED * width:
        return True
    return deviation < _NARROWED * width or deviation > _WIDENED * width


@kernel
def group_position(unit: Nodes, group: Nodes, u: int, kind: int) -> int:
    """Where among the members of a family the subtrees of a kind are; -1 where it has none."""
    first = unit[u, FIRST_GROUP]
    for i in range(unit[u, N_GROUPS]):
        if group[first + i, KIND] == kind:
            return i
    return -1
