"""Families of the capped search: which children each inner node has, laid out, and kept as nodes are touched.

The members of a family are its groups, one for each kind of subtree that its node has among its children, then inner
nodes and touched actions in the order in which they came. Nodes below which not all is alike are inner nodes from the
start, touched or not, and come first, so that whatever else is untouched is in a group.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.lines import (
    ABOVE,
    BLOCKS,
    CENTRE,
    COUNT,
    FIRST_GROUP,
    KIND,
    N_GROUPS,
    NODE,
    POSITION,
    SIZE,
    SLOT,
    START,
    WIDTH,
    group_code,
    group_position,
    n_blocks,
    room_for,
    unit_code,
)

# How much is in use of what has room to spare.
USED_UNITS, USED_MEMBERS, USED_BLOCKS, USED_GROUPS = range(4)


@kernel
def find_unlike(node: int, unlike: Nodes) -> int:
    """Where a node is in an ascending list that has it."""
    return int(np.searchsorted(unlike, node))


@kernel
def begin_units(
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    tree_parent: Nodes,  # (V,)
    kind_of_node: Nodes,  # (V,) -1 where not all below is alike
    unlike: Nodes,  # (m,) those, ascending
    place: Nodes,  # (T,)
    unit: Nodes,  # (room, fields)
) -> int:
    """Overwrites place of inner slots, and slot, node, parent and size of units; returns how many units there are."""
    n = len(unlike)
    for u in range(n):
        unit[u, NODE], unit[u, SLOT], unit[u, SIZE] = unlike[u], -1, 0
        unit[u, ABOVE] = find_unlike(tree_parent[unlike[u]], unlike) if unlike[u] > 0 else -1
    for slot in range(len(slot_node)):
        if slot_row[slot] >= 0:
            continue
        node = slot_node[slot]
        if node < len(kind_of_node) and kind_of_node[node] < 0:
            u = find_unlike(node, unlike)
        else:
            u = n
            n += 1
            unit[u, NODE], unit[u, SIZE] = node, 0
            unit[u, ABOVE] = place[slot_parent[slot]] if slot > 0 else -1
        unit[u, SLOT] = slot
        place[slot] = u
    for u in range(n):
        if unit[u, ABOVE] >= 0:
            unit[unit[u, ABOVE], SIZE] += 1
    for slot in range(1, len(slot_node)):
        if slot_row[slot] >= 0:
            unit[place[slot_parent[slot]], SIZE] += 1
    return n


@kernel
def begin_groups(
    n: int,
    child_start: Nodes,  # (V + 1,)
    kind_of_node: Nodes,  # (V,)
    n_unlike: int,
    unlike_start: Integers,  # (m + 1,) where the groups of each unlike node begin
    unlike_kind: Nodes,
    unlike_count: Nodes,
    unit: Nodes,  # (room, fields)
    group: Nodes,  # (room, 2)
) -> tuple[int, int, int]:
    """Overwrites groups, counted as if nothing were touched; returns how many, and the room of members and blocks."""
    n_groups, n_members, n_sums = 0, 0, 0
    for u in range(n):
        unit[u, FIRST_GROUP] = n_groups
        if u < n_unlike:
            for i in range(unlike_start[u], unlike_start[u + 1]):
                group[n_groups, KIND], group[n_groups, COUNT] = unlike_kind[i], unlike_count[i]
                n_groups += 1
        else:
            n_groups += begin_group(unit[u, NODE], child_start, kind_of_node, group, n_groups)
        unit[u, N_GROUPS] = n_groups - unit[u, FIRST_GROUP]
        unit[u, SIZE] += unit[u, N_GROUPS]
        room = room_for(unit[u, SIZE])
        unit[u, START], unit[u, BLOCKS] = n_members, n_sums
        n_members += room
        n_sums += n_blocks(room)
    return n_groups, n_members, n_sums


@kernel
def begin_group(node: int, child_start: Nodes, kind_of_node: Nodes, group: Nodes, at: int) -> int:
    """Overwrites the group of all children of a node, which are alike; returns how many groups that are, 1 or 0."""
    if node >= len(kind_of_node) or child_start[node] == child_start[node + 1]:
        return 0
    group[at, KIND] = kind_of_node[child_start[node]]
    group[at, COUNT] = child_start[node + 1] - child_start[node]
    return 1


@kernel
def fill_families(
    n: int,
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    kind_of_node: Nodes,  # (V,)
    place: Nodes,  # (T,)
    unit: Nodes,  # (room, fields)
    group: Nodes,  # (room, 2)
    member: Nodes,  # (room,)
) -> None:
    """Overwrites the members of all families, and takes what is touched out of the groups."""
    for u in range(n):
        for i in range(unit[u, N_GROUPS]):
            member[unit[u, START] + i] = group_code(unit[u, FIRST_GROUP] + i)
        unit[u, SIZE] = unit[u, N_GROUPS]
    n_unlike = 0
    while n_unlike < n and unit[n_unlike, NODE] < len(kind_of_node) and kind_of_node[unit[n_unlike, NODE]] < 0:
        n_unlike += 1
    for u in range(1, n_unlike):
        _append(unit, member, unit[u, ABOVE], unit_code(u))
        unit[u, POSITION] = unit[unit[u, ABOVE], SIZE] - 1
    for slot in range(1, len(slot_node)):
        above = place[slot_parent[slot]]
        node = slot_node[slot]
        is_unlike = node < len(kind_of_node) and kind_of_node[node] < 0
        if is_unlike:
            continue
        _leave_group(node, above, kind_of_node, unit, group)
        if slot_row[slot] >= 0:
            _append(unit, member, above, slot)
            place[slot] = unit[above, SIZE] - 1
        else:
            _append(unit, member, above, unit_code(place[slot]))
            unit[place[slot], POSITION] = unit[above, SIZE] - 1


@kernel
def _append(unit: Nodes, member: Nodes, u: int, code: int) -> None:
    """Overwrites the next member of a family that has room for it."""
    member[unit[u, START] + unit[u, SIZE]] = code
    unit[u, SIZE] += 1


@kernel
def _leave_group(node: int, above: int, kind_of_node: Nodes, unit: Nodes, group: Nodes) -> None:
    """Takes a node that is touched now out of its group, if it was in one: not so where it was added since."""
    if node < len(kind_of_node):
        position = group_position(unit, group, above, kind_of_node[node])
        if position >= 0:
            group[unit[above, FIRST_GROUP] + position, COUNT] -= 1


@kernel
def take_in(
    first: int,
    count: int,
    slot_node: Nodes,  # (room,)
    slot_parent: Nodes,  # (room,)
    slot_row: Nodes,  # (room,)
    child_start: Nodes,  # (V + 1,)
    kind_of_node: Nodes,  # (V,)
    unlike: Nodes,  # (m,)
    place: Nodes,  # (room,)
    used: Integers,  # (4,)
    unit: Nodes,  # (room, fields)
    number: Any,  # (room, 3) of 32 bits
    group: Nodes,  # (room, 2)
    member: Nodes,  # (room,)
    blocks: int,  # room for them
) -> int:
    """Overwrites families with the slots from the first to the count; returns the first that there was no room for."""
    for slot in range(first, count):
        node = slot_node[slot]
        is_inner = slot_row[slot] < 0
        if is_inner and node < len(kind_of_node) and kind_of_node[node] < 0:
            u = find_unlike(node, unlike)
            unit[u, SLOT] = slot
            place[slot] = u
            continue
        above = place[slot_parent[slot]]
        if unit[above, SIZE] == room_for(unit[above, SIZE]):
            room = room_for(unit[above, SIZE] + 1)
            if used[USED_MEMBERS] + room > len(member) or used[USED_BLOCKS] + n_blocks(room) > blocks:
                return slot
            start = unit[above, START]
            for i in range(unit[above, SIZE]):
                member[used[USED_MEMBERS] + i] = member[start + i]
            unit[above, START], unit[above, BLOCKS] = used[USED_MEMBERS], used[USED_BLOCKS]
            used[USED_MEMBERS] += room
            used[USED_BLOCKS] += n_blocks(room)
            number[above, CENTRE] = np.inf  # so that all is summed anew
        if is_inner:
            u = used[USED_UNITS]
            if u == len(unit) or used[USED_GROUPS] == len(group) or used[USED_MEMBERS] + room_for(0) > len(member):
                return slot
            unit[u, NODE], unit[u, SLOT], unit[u, ABOVE] = node, slot, above
            unit[u, START], unit[u, SIZE], unit[u, BLOCKS] = used[USED_MEMBERS], 0, 0
            unit[u, FIRST_GROUP] = used[USED_GROUPS]
            unit[u, N_GROUPS] = begin_group(node, child_start, kind_of_node, group, used[USED_GROUPS])
            if unit[u, N_GROUPS]:
                _append(unit, member, u, group_code(used[USED_GROUPS]))
            used[USED_GROUPS] += unit[u, N_GROUPS]
            used[USED_MEMBERS] += room_for(0)
            used[USED_UNITS] += 1
            number[u, CENTRE], number[u, WIDTH] = np.inf, 1.0
            _append(unit, member, above, unit_code(u))
            unit[u, POSITION] = unit[above, SIZE] - 1
            place[slot] = u
        else:
            _append(unit, member, above, slot)
            place[slot] = unit[above, SIZE] - 1
        _leave_group(node, above, kind_of_node, unit, group)
    return count
