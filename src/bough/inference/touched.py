"""Touched: the nodes that have an observation below them, each with a slot of its own.

Everything that the engine keeps is kept by slot. A path is touched root first, so a parent's slot is always
below its children's: ascending slots go leafward, descending slots go rootward. A node's slot is found in an
open-addressing hash table of slots, so memory follows the touched nodes and not the tree.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar, cast

import numpy as np

from bough.arrays import Flags, Floats, Nodes
from bough.inference.jit import kernel
from bough.storage import Contents
from bough.tree import Tree

MOST_OBSERVATIONS = 2.0**63  # they are shown as integers
_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
_SPREAD = 2654435761  # Knuth's multiplier; node * _SPREAD stays below 2**63


class Touched:
    """Slots of the touched nodes: which node each holds, its parent's slot, its covariance class."""

    def __init__(self, tree: Tree, class_of_node: Nodes) -> None:
        self._tree = tree
        self._class_of_node = class_of_node
        self.count = 0
        self._node = np.empty(16, dtype=np.int32)
        self._parent = np.empty(16, dtype=np.int32)
        self._class = np.empty(16, dtype=np.int32)
        self._table = np.zeros(64, dtype=np.int32)  # slot + 1, or 0 where empty
        self._leafward: tuple[Nodes, Nodes] | None = None

    @property
    def node(self) -> Nodes:
        """(T,) the node in each slot."""
        return self._node[: self.count]

    @property
    def parent(self) -> Nodes:
        """(T,) the slot of each slot's parent; -1 for the root's."""
        return self._parent[: self.count]

    @property
    def class_(self) -> Nodes:
        """(T,) the covariance class of each slot's node."""
        return self._class[: self.count]

    @property
    def leafward(self) -> tuple[Nodes, Nodes]:
        """(T,) and (T,): the touched nodes in ascending order, and the slot of each."""
        if self._leafward is None:
            slots = np.argsort(self.node).astype(np.int32)
            self._leafward = self.node[slots], slots
        return self._leafward

    def slots(self, nodes: Nodes) -> Nodes:
        """The slot of each node; -1 where it is untouched."""
        found = np.empty(len(nodes), dtype=np.int32)
        _find_all(nodes, self._node, self._table, found)
        return found

    def touch(self, leaves: Nodes) -> Nodes:
        """The slot of each leaf; those that had none get one, and so do their ancestors."""
        slots = np.empty(len(leaves), dtype=np.int32)
        path = np.empty(self._tree.height + 1, dtype=np.int32)
        before, done = self.count, 0
        while done < len(leaves):
            self._make_room(self.count + len(path))
            self.count, done = _touch(
                leaves, self._tree.parent, self._class_of_node, self._node, self._parent, self._class, self._table,
                self.count, done, path, slots,
            )  # fmt: skip
        if self.count > before:
            self._leafward = None
        return slots

    def copy(self) -> Touched:
        """A copy that can touch more without changing this one."""
        twin = copy.copy(self)
        twin._node, twin._parent, twin._class = self._node.copy(), self._parent.copy(), self._class.copy()
        twin._table = self._table.copy()
        return twin

    def forget(self, count: int) -> None:
        """Give up the slots from `count` on, which nothing has been kept for yet."""
        self.count = count
        self._leafward = None
        self._table[:] = 0
        _fill_table(self._node, count, self._table)

    def add_up(self, counts: Floats) -> Floats:
        """Turn the counts at each slot into the counts at or below it, in place."""
        _add_to_parents(self.parent, counts)
        return counts

    def _make_room(self, most: int) -> None:
        """Room for that many slots, with a table that is at most half full."""
        if most > len(self._node):
            size = max(most, 2 * len(self._node))
            self._node = grown(self._node, size)
            self._parent = grown(self._parent, size)
            self._class = grown(self._class, size)
        if 2 * len(self._node) > len(self._table):
            self._table = np.zeros(1 << (2 * len(self._node) - 1).bit_length(), dtype=np.int32)
            _fill_table(self._node, self.count, self._table)

    def arrays(self) -> dict[str, Any]:
        """The slots, for a file."""
        return {"touched": self.node, "touched_parent": self.parent}

    def restore(self, contents: Contents) -> None:
        """Take over the slots of a file, if they are such as touches make."""
        node = contents.array("touched", np.int32, (None,))
        parent = contents.array("touched_parent", np.int32, (len(node),))
        _check_slots(node, parent, self._tree)
        self.take_over(node, parent)

    def take_over(self, node: Nodes, parent: Nodes) -> None:
        """Have these slots and no others."""
        self._node, self._parent = node, parent
        self._class = self._class_of_node[self._node]
        self.count = len(self._node)
        self._leafward = None
        self._table = np.zeros(max(64, 1 << (2 * self.count).bit_length()), dtype=np.int32)
        _fill_table(self._node, self.count, self._table)

    @property
    def is_leaf(self) -> Flags:
        """(T,) whether the node in each slot is an action."""
        start = self._tree.child_start
        return np.asarray(start[self.node] == start[self.node + 1])

    @property
    def parent_position(self) -> Nodes:
        """(T,) where in `leafward` the parent of each of its nodes is; -1 for the root's."""
        nodes, slots = self.leafward
        above = self.parent[slots]
        return np.where(above < 0, -1, np.searchsorted(nodes, self.node[above])).astype(np.int32)


def grown(array: _Array, size: int) -> _Array:
    """A copy with room for `size` entries; the new ones are zero."""
    larger = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return cast(_Array, larger)


def _check_slots(node: Nodes, parent: Nodes, tree: Tree) -> None:
    """Refuse slots that no sequence of touches could have made."""
    sound = len(np.unique(node)) == len(node)
    if sound and len(node):
        sound = bool((node >= 0).all() and (node < tree.n_nodes).all() and (parent < np.arange(len(node))).all())
        sound = sound and parent[0] == -1 and node[0] == 0 and bool((parent[1:] >= 0).all())
        sound = sound and bool((tree.parent[node[1:]] == node[parent[1:]]).all())
    if sound:
        ends = np.ones(len(node), dtype=np.bool_)  # of paths, which are actions
        ends[parent[1:]] = False
        sound = bool((tree.child_start[node[ends]] == tree.child_start[node[ends] + 1]).all())
    if not sound:
        raise ValueError("the touched nodes do not fit the tree")


def check_counts(counts: Floats, is_leaf: Flags) -> None:
    """Refuse counts by slot that observations of actions cannot have."""
    if (counts < 0.0).any() or counts[~is_leaf].any() or not counts.sum() < MOST_OBSERVATIONS:
        raise ValueError("the counts are negative or too large, or those of inner nodes")


@kernel
def _place(node: int, slot_node: Nodes, table: Nodes) -> int:
    """Where in the table a node is, or would go."""
    mask = len(table) - 1
    place = ((np.int64(node) * _SPREAD) >> 13) & mask
    while table[place] != 0 and slot_node[table[place] - 1] != node:
        place = (place + 1) & mask
    return int(place)


@kernel
def _find_all(
    nodes: Nodes,  # (n,)
    slot_node: Nodes,  # (T,)
    table: Nodes,  # (a power of two,)
    found: Nodes,  # (n,)
) -> None:
    """Overwrites found: the slot of each node, or -1."""
    for i in range(len(nodes)):
        found[i] = table[_place(nodes[i], slot_node, table)] - 1


@kernel
def _fill_table(slot_node: Nodes, count: int, table: Nodes) -> None:
    """Overwrites table, which comes empty."""
    for slot in range(count):
        table[_place(slot_node[slot], slot_node, table)] = slot + 1


@kernel
def _touch(
    leaves: Nodes,  # (n,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    slot_node: Nodes,  # (room,)
    slot_parent: Nodes,  # (room,)
    slot_class: Nodes,  # (room,)
    table: Nodes,  # (a power of two,)
    count: int,
    done: int,  # leaves that have their slots already
    path: Nodes,  # (height + 1,) scratch
    slots: Nodes,  # (n,)
) -> tuple[int, int]:
    """Overwrites slots, and writes new nodes into slot_*, table; returns the new count and done, short of room."""
    for i in range(done, len(leaves)):
        if count + len(path) > len(slot_node):
            return count, i
        node = leaves[i]
        slot = -1
        climbed = 0
        while node >= 0:
            slot = table[_place(node, slot_node, table)] - 1
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
            slot = count
            count += 1
            table[_place(node, slot_node, table)] = count
        slots[i] = slot
    return count, len(leaves)


@kernel
def _add_to_parents(parent: Nodes, counts: Floats) -> None:
    """Overwrites counts with sums over everything below."""
    for slot in range(len(counts) - 1, 0, -1):
        counts[parent[slot]] += counts[slot]
