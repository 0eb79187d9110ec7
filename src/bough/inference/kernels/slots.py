"""Slots: finding a node's in an open-addressing hash table, and giving one to every node of a path."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel

_SPREAD = 2654435761  # Knuth's multiplier; node * _SPREAD stays below 2**63


@kernel
def whole(number: Any) -> Any:
    """The number with 64 bits: a kernel is compiled again for each width of what it is given."""
    return np.int64(number)


@kernel
def place(node: int, slot_node: Nodes, table: Nodes) -> int:
    """Where in the table a node is, or would go."""
    mask = len(table) - 1
    found = ((np.int64(node) * _SPREAD) >> 13) & mask
    while table[found] != 0 and slot_node[table[found] - 1] != node:
        found = (found + 1) & mask
    return int(found)


@kernel
def find_one(node: int, slot_node: Nodes, table: Nodes) -> int:
    """The slot of a node, or -1."""
    return int(table[place(node, slot_node, table)]) - 1


@kernel
def find_all(
    nodes: Nodes,  # (n,)
    slot_node: Nodes,  # (T,)
    table: Nodes,  # (a power of two,)
    found: Nodes,  # (n,)
) -> None:
    """Overwrites found: the slot of each node, or -1."""
    for i in range(len(nodes)):
        found[i] = table[place(nodes[i], slot_node, table)] - 1


@kernel
def fill_table(slot_node: Nodes, count: int, table: Nodes) -> None:
    """Overwrites table, which comes empty."""
    for slot in range(count):
        table[place(slot_node[slot], slot_node, table)] = slot + 1


@kernel
def touch(
    nodes: Nodes,  # (n,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    slot_node: Nodes,  # (room,)
    slot_parent: Nodes,  # (room,)
    slot_class: Nodes,  # (room,)
    slot_row: Nodes,  # (room,)
    choosable: Flags,  # (room,)
    table: Nodes,  # (a power of two,)
    count: int,
    n_rows: int,  # leaves that have a slot
    done: int,  # nodes of this call that have their slots already
    are_leaves: bool,  # or inner nodes, which have no row
    path: Nodes,  # (height + 1,) scratch
    slots: Nodes,  # (n,)
) -> tuple[int, int, int]:
    """Overwrites slots, and writes new nodes into slot_*, choosable, table; returns the new count, n_rows and done."""
    for i in range(done, len(nodes)):
        if count + len(path) > len(slot_node):
            return count, n_rows, i
        node = nodes[i]
        slot = -1
        climbed = 0
        while node >= 0:
            slot = table[place(node, slot_node, table)] - 1
            if slot >= 0:
                break
            path[climbed] = node
            climbed += 1
            node = tree_parent[node]
        for step in range(climbed - 1, -1, -1):
            node = path[step]
            slot_node[count] = node
            slot_parent[count] = slot
            slot_class[count] = class_of_node[node]
            slot_row[count] = -1
            choosable[count] = False
            if step == 0 and are_leaves:
                slot_row[count] = n_rows
                choosable[count] = True
                n_rows += 1
            slot = count
            count += 1
            table[place(node, slot_node, table)] = count
        slots[i] = slot
    return count, n_rows, len(nodes)


@kernel
def add_to_parents(parent: Nodes, values: Floats) -> None:
    """Overwrites values (T,) with sums over each slot and everything below it; a root's parent is -1."""
    for slot in range(len(parent) - 1, -1, -1):
        if parent[slot] >= 0:
            values[parent[slot]] += values[slot]
