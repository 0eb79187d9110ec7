"""Engines whose rewards are not normal given the parameter: Gaussian sites stand for them at the actions.

`propagation.py` (counts) and `noisy.py` (noise variances that are integrated out) say how a site is made in its cavity.
What they share is when sites are made again: once where something was observed, and until no cavity moves where the
posterior is to be settled.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.inference.scalar import ScalarEngine

BOLD = 20  # sweeps of full steps; where sites go back and forth, later ones go half way
_MOST_SWEEPS = 200
_COUNT = 0  # the column of evidence that says how much was observed, of every kind


class SiteEngine(ScalarEngine):
    """The engine of scalar.py, with sites at its actions, which are kept in four columns of their evidence."""

    _says_what_it_counts = False
    _site: ClassVar[int]
    """The first of these columns, as `kernels/cavities.py` has them."""

    @abstractmethod
    def _sweep(self, slots: Nodes, size: float = 1.0) -> int:
        """Make the sites of observed actions again whose cavities have moved, by steps of this size; how many."""

    def _said(self, evidence: Floats) -> tuple[Floats, Floats]:
        return evidence[:, self._site], evidence[:, self._site + 1]

    def _say(self, slots: Nodes) -> None:
        super()._say(slots)
        self._sweep(slots[self._table[self.slots.row[slots], _COUNT] > 0.0])

    def _say_all(self) -> None:
        super()._say_all()
        if (self._table[self.slots.row[self._observed_slots], self._site + 3] < 0.0).any():
            self._settle()

    def settle(self, log: Rows | None, propagate: bool) -> None:
        """Make sites again until no cavity moves."""
        super().settle(log, propagate)
        self._made_good()
        self._settle()

    def settle_again(self) -> None:
        """Make sites again until no cavity moves, beginning with those that there are."""
        self._settle()

    def _settle(self) -> None:
        slots = self._observed_slots
        for sweep in range(_MOST_SWEEPS):
            if not self._sweep(slots, 1.0 if sweep < BOLD else 0.5):
                return

    @property
    def _observed_slots(self) -> Nodes:
        slots = self.slots.of_rows
        return slots[self._table[: len(slots), _COUNT] > 0.0]
