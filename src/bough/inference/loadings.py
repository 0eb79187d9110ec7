"""Loadings: for each slot, on which crossed effects it depends, and by how much; `kernels/crossed.py` says how."""

from __future__ import annotations

import copy

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels import crossed as kernels
from bough.inference.slots import grown


class Loadings:
    """A list per slot: the effects at or below it, in the order in which they came."""

    def __init__(self) -> None:
        self._used = 0
        self.first: Integers = np.zeros(16, dtype=np.int64)
        self.size: Nodes = np.zeros(16, dtype=np.int32)
        self._room: Nodes = np.zeros(16, dtype=np.int32)
        self.effect: Nodes = np.zeros(64, dtype=np.int32)
        self.up: Nodes = np.zeros(64, dtype=np.int32)
        self.value: Floats = np.zeros(64)
        self.sent: Floats = np.zeros(64)

    def copy(self) -> Loadings:
        """A copy that goes on by itself."""
        twin = copy.copy(self)
        for name in ("first", "size", "_room", "effect", "up", "value", "sent"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def clear(self) -> None:
        """Have no slot depend on anything."""
        self._used = 0
        self.size[:] = 0
        self._room[:] = 0

    def make_room(self, n_slots: int) -> None:
        """Have lists for that many slots."""
        if n_slots > len(self.first):
            size = max(n_slots, 2 * len(self.first))
            lists = [grown(array, size) for array in (self.size, self._room)]
            self.first, (self.size, self._room) = grown(self.first, size), lists

    @classmethod
    def of(cls, slots: Nodes, first: Integers, effects: Nodes, parent: Nodes) -> tuple[Loadings, Nodes]:
        """The lists of these slots, whose effects begin at `first`; and where each effect is in its slot's list."""
        made = cls()
        made.make_room(len(parent))
        room = kernels.room_for_all(slots, first, parent, made.size)
        (made.effect, made.up), (made.value, made.sent) = np.zeros((2, room), dtype=np.int32), np.zeros((2, room))
        places = np.empty(len(effects), dtype=np.int32)
        made._used = kernels.enlist_all(
            slots, first, effects, parent, made.first, made.size, made._room, made.effect, made.up, made.value,
            made.sent, 0, places,
        )  # fmt: skip
        return made, places

    def enlist(self, slot: int, effects: Nodes, parent: Nodes) -> Nodes:
        """Have a slot, and all above it, depend on these effects; where each is in the slot's list.

        `parent` has the slot above each slot.
        """
        places = np.empty(len(effects), dtype=np.int32)
        if not len(effects):
            return places
        needed = self._used + kernels.room_needed(slot, len(effects), parent, self.size)
        if needed > len(self.effect):
            room = max(needed, 2 * len(self.effect))
            numbers = [grown(array, room) for array in (self.effect, self.up)]
            values = [grown(array, room) for array in (self.value, self.sent)]
            (self.effect, self.up), (self.value, self.sent) = numbers, values
        self._used = kernels.enlist(
            slot, effects, parent, self.first, self.size, self._room, self.effect, self.up, self.value,
            self.sent, self._used, places,
        )  # fmt: skip
        return places
