"""Slots: the nodes that have an observation below them (the *touched* ones), each with a place of its own.

Everything that an engine keeps is kept by slot, and what was observed at an action by *row*: the touched actions are
numbered by themselves. A path is touched root first, so a parent's slot is always below its children's: ascending slots
go leafward, descending slots go rootward. Memory follows the touched nodes and not the tree.
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar, cast

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels import slots as kernels
from bough.tree.tree import Tree

_MANY = 10_000  # nodes
_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


class Slots:
    """Which node each slot holds, its parent's slot, its covariance class, and, of an action, its row.

    Nodes beyond the tree's last number, which were added since it was made, have their slots from the start.
    """

    def __init__(self, tree: Tree, class_of_node: Nodes) -> None:
        self._tree = tree
        self._class_of_node = class_of_node
        self.count = 0
        self.n_rows = 0
        self._node = np.empty(16, dtype=np.int32)
        self._parent = np.empty(16, dtype=np.int32)
        self._class = np.empty(16, dtype=np.int32)
        self._row = np.empty(16, dtype=np.int32)
        self._choosable = np.empty(16, dtype=np.bool_)
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
    def row(self) -> Nodes:
        """(T,) the number of each touched action among the touched actions; -1 inside the tree."""
        return self._row[: self.count]

    @property
    def choosable(self) -> Flags:
        """(T,) whether each slot's node is an action that may be chosen."""
        return self._choosable[: self.count]

    @property
    def of_rows(self) -> Nodes:
        """(n_rows,) the slot of each touched action; the root's for the row of what is an action no longer."""
        actions = np.flatnonzero(self.row >= 0).astype(np.int32)
        slots = np.zeros(self.n_rows, dtype=np.int32)
        slots[self.row[actions]] = actions
        return slots

    @property
    def leafward(self) -> tuple[Nodes, Nodes]:
        """(T,) and (T,): the touched nodes in ascending order, and the slot of each."""
        if self._leafward is None:
            slots = np.argsort(self.node).astype(np.int32)
            self._leafward = self.node[slots], slots
        return self._leafward

    @property
    def parent_position(self) -> Nodes:
        """(T,) where in `leafward` the parent of each of its nodes is; -1 for the root's."""
        nodes, slots = self.leafward
        above = self.parent[slots]
        return np.where(above < 0, -1, np.searchsorted(nodes, self.node[above])).astype(np.int32)

    def find_one(self, node: int) -> int:
        """The slot of a node; -1 where it is untouched."""
        return kernels.find_one(node, self._node, self._table)

    def find(self, nodes: Nodes) -> Nodes:
        """The slot of each node; -1 where it is untouched."""
        if len(nodes) > _MANY and 2 * len(nodes) > nodes.max():  # most of all nodes: no need to look each up
            slot_of = np.full(1 + max(int(nodes.max()), int(self.node.max(initial=0))), -1, dtype=np.int32)
            slot_of[self.node] = np.arange(self.count, dtype=np.int32)
            return slot_of[nodes]
        found = np.empty(len(nodes), dtype=np.int32)
        kernels.find_all(nodes, self._node, self._table, found)
        return found

    def touch(self, nodes: Nodes, are_leaves: bool = True) -> Nodes:
        """The slot of each leaf, or inner node; those that had none get one, and so do their ancestors."""
        slots = np.empty(len(nodes), dtype=np.int32)
        path = np.empty(self._tree.height + 1, dtype=np.int32)
        before, done = self.count, 0
        while done < len(nodes):
            try:
                self._make_room(self.count + len(path))
            except MemoryError:
                self.forget(before)
                raise
            self.count, self.n_rows, done = kernels.touch(
                nodes, self._tree.parent, self._class_of_node, self._node, self._parent, self._class, self._row,
                self._choosable, self._table, self.count, self.n_rows, done, are_leaves, path, slots,
            )  # fmt: skip
        if self.count > before:
            self._leafward = None
        return slots

    def add(self, node: int, parent: int, class_: int) -> int:
        """The slot of an action that the tree does not have yet, below the node in the slot `parent`."""
        self._make_room(self.count + 1)
        slot = self.count
        self._node[slot], self._parent[slot], self._class[slot] = node, parent, class_
        self._row[slot], self._choosable[slot] = self.n_rows, True
        self.count, self.n_rows = slot + 1, self.n_rows + 1
        self._table[kernels.place(node, self._node, self._table)] = self.count
        self._leafward = None
        return slot

    def make_inner(self, slot: int, class_: int) -> None:
        """Have an action without evidence be a category of this class from now on."""
        self._row[slot], self._choosable[slot], self._class[slot] = -1, False, class_

    def copy(self) -> Slots:
        """A copy that can touch more without changing this one."""
        twin = copy.copy(self)
        twin._node, twin._parent, twin._class = self._node.copy(), self._parent.copy(), self._class.copy()
        twin._row, twin._choosable, twin._table = self._row.copy(), self._choosable.copy(), self._table.copy()
        return twin

    def forget(self, count: int) -> None:
        """Give up the slots from `count` on, which nothing has been kept for yet."""
        self.count = count
        self.n_rows = int(self.row.max(initial=-1)) + 1
        self._leafward = None
        self._table[:] = 0
        kernels.fill_table(self._node, count, self._table)

    def add_up(self, values: Floats) -> Floats:
        """Turn the values at each slot into the sums at or below it, in place."""
        kernels.add_to_parents(self.parent, values)
        return values

    def _make_room(self, most: int) -> None:
        """Room for that many slots, with a table that is at most half full."""
        size = len(self._node) if most <= len(self._node) else max(most, 2 * len(self._node))
        if size > len(self._node):  # all or nothing: the length of one says how long all are
            flags = grown(self._choosable, size)
            arrays = [grown(array, size) for array in (self._node, self._parent, self._class, self._row)]
            self._node, self._parent, self._class, self._row = arrays
            self._choosable = flags
        if 2 * size > len(self._table):
            self._table = np.zeros(1 << (2 * size - 1).bit_length(), dtype=np.int32)
            kernels.fill_table(self._node, self.count, self._table)


def grown(array: _Array, size: int) -> _Array:
    """The array with room for `size` entries, the new ones zero; a copy unless it has room enough."""
    if len(array) >= size:
        return array
    larger = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return cast(_Array, larger)
