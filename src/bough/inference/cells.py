"""Cells: what was observed of each action at each combination of levels that decisions had."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.slots import grown
from bough.model.effects import Effects


class Cells:
    """The rewards of an action that have the same effects: their number, their mean, and their spread around it."""

    def __init__(self, n_decided: int) -> None:
        self.count = 0
        self._of: dict[tuple[int, ...], int] = {}  # by slot and the decision's levels
        self._table: Floats = np.zeros((16, 3))
        self._slot: Nodes = np.zeros(16, dtype=np.int32)
        self._levels: Nodes = np.zeros((16, n_decided), dtype=np.int32)
        self._first: Integers = np.zeros(17, dtype=np.int64)
        self._effect: Nodes = np.zeros(32, dtype=np.int32)
        self._place: Nodes = np.zeros(32, dtype=np.int32)

    def copy(self) -> Cells:
        """A copy that goes on by itself."""
        twin = copy.copy(self)
        for name in ("_of", "_table", "_slot", "_levels", "_first", "_effect", "_place"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    @classmethod
    def of(
        cls, keys: Sequence[tuple[int, ...]], slots: Nodes, levels: Nodes, first: Integers, effects: Nodes,
        places: Nodes, table: Floats,
    ) -> Cells:  # fmt: skip
        """Many cells at once, whose effects begin at `first`; these have those places in the lists of their slots."""
        made = cls(levels.shape[1])
        made.count = len(keys)
        made._of = {key: cell for cell, key in enumerate(keys)}
        made._table, made._slot, made._levels = table.copy(), slots.astype(np.int32), levels.astype(np.int32)
        made._first, made._effect, made._place = first.copy(), effects.copy(), places.copy()
        return made

    def find(self, key: tuple[int, ...]) -> int:
        """The cell of a slot and the levels of a decision; -1 where there is none."""
        return self._of.get(key, -1)

    def add(self, key: tuple[int, ...], effects: Nodes, places: Nodes) -> int:
        """A new cell with these effects, which have those places in the list of its slot."""
        cell, end = self.count, int(self._first[self.count])
        if cell == len(self._slot):
            size = max(2 * cell, 16)
            self._slot, self._table = grown(self._slot, size), grown(self._table, size)
            self._levels, self._first = grown(self._levels, size), grown(self._first, size + 1)
        new_end = end + len(effects)
        if new_end > len(self._effect):
            size = max(new_end, 2 * len(self._effect))
            self._effect, self._place = grown(self._effect, size), grown(self._place, size)
        self._slot[cell], self._levels[cell] = key[0], key[1:]
        self._effect[end:new_end], self._place[end:new_end] = effects, places
        self._first[cell + 1] = new_end
        self._table[cell] = 0.0
        self.count = cell + 1
        self._of[key] = cell
        return cell

    @property
    def table(self) -> Floats:
        """(n, 3) the number of rewards of each cell, their mean and spread."""
        return self._table[: self.count]

    @property
    def slot(self) -> Nodes:
        """(n,) the slot of each cell's action."""
        return self._slot[: self.count]

    @property
    def levels(self) -> Nodes:
        """(n, m) the levels of the decisions, by their places in their factors."""
        return self._levels[: self.count]

    @property
    def first(self) -> Integers:
        """(n + 1,) where the effects of each cell begin."""
        return self._first[: self.count + 1]

    @property
    def effect(self) -> Nodes:
        """The effects of all cells."""
        return self._effect

    @property
    def place(self) -> Nodes:
        """Where each of them is in the list of its slot."""
        return self._place

    def effects_of(self, cell: int) -> tuple[Nodes, Nodes]:
        """The effects of a cell, and their places."""
        part = slice(int(self._first[cell]), int(self._first[cell + 1]))
        return self._effect[part], self._place[part]

    def of_slot(self, slot: int) -> Integers:
        """The cells of a slot."""
        return np.flatnonzero(self.slot == slot)

    def per_slot(self, n_slots: int) -> Nodes:
        """(n_slots,) how many cells each slot has."""
        return np.bincount(self.slot, minlength=n_slots).astype(np.int32)


def keys_of(slots: Nodes, levels: Nodes | None) -> Sequence[tuple[int, ...]]:
    """What cells go by: the slot, and the levels of the decision where there are any."""
    if levels is None or not levels.shape[1]:
        return [(slot,) for slot in slots.tolist()]
    return [(slot, *row) for slot, row in zip(slots.tolist(), levels.tolist(), strict=True)]


def effects_of_decisions(effects: Effects) -> Nodes:
    """(m,) the effects of factors of the decision, ascending."""
    found = [first + np.arange(len(factor.levels)) for _, factor, first in effects.decided]
    return np.concatenate([np.empty(0), *found]).astype(np.int32)
