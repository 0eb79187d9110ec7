"""The posterior of a K-armed model whose rewards are counts: expectation propagation at the actions.

The tree is the Gaussian one of scalar.py. An action's counts, a total y in an exposure e, say L(theta) of its
parameter: sigmoid^y (1 - sigmoid)^(e - y) for clicks, exp(y theta - e exp(theta)) for Poisson counts. In its place
stands a *site*, a Gaussian factor of precision M and information eta, which is all that the tree sees of a likelihood.
It is chosen in the action's *cavity*, the exact marginal of theta given what all other actions say, so that cavity
times site has the mean and the variance of cavity times L. Other actions' sites move that cavity later; `settle` goes
on until none moves. docs/clicks.md has the formulas.
"""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.evidence import CountEvidence
from bough.inference.kernels import propagation as kernels
from bough.inference.kernels import scalar_draws as draws
from bough.inference.scalar import ScalarEngine
from bough.model.model import Model

BOLD = 20  # sweeps of full steps; where sites of extreme counts go back and forth, later ones go half way
_MOST_SWEEPS = 200


class CountEngine(ScalarEngine):
    """The engine of scalar.py, with sites at its actions."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, CountEvidence(model))
        self._family = model.kind.code
        self._n_observations_of = model.kind.n_observations

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one count of a leaf, of one trial or exposure 1, and make its site again."""
        slots = self.slots
        while not kernels.observe_one_count(
            leaf, reward, 1.0, 1.0, self._family, self._mean, slots._node, slots._table, slots._parent, slots._class,
            slots._row, self._variance, self._table, self._state, self._law,
        ):  # fmt: skip
            self._touch(np.array([leaf], dtype=np.int32))

    def observe(self, rows: Rows) -> None:
        """Add counts of leaves: one refreshes its path, and a batch ends settled."""
        assert rows.exposure is not None
        counts = self._n_observations_of(np.ones(len(rows.rewards)), rows.exposure)
        self._add(rows.leaves, rows.rewards, rows.rewards**2, rows.exposure, counts, settle=len(rows.leaves) > 1)

    def absorb(self, leaves: Nodes, statistics: Statistics) -> None:
        """Add the counts that were summed for distinct leaves."""
        exposure = statistics.exposure_or_count
        counts = self._n_observations_of(statistics.count, exposure)
        self._add(leaves, statistics.sum_y, statistics.sum_yy, exposure, counts, settle=True)

    def _add(
        self, leaves: Nodes, totals: Floats, squares: Floats, exposure: Floats, counts: Floats, *, settle: bool
    ) -> None:
        slots = self._touch(leaves)
        kernels.collect_counts(slots, self.slots.row, totals, squares, exposure, counts, self._table)
        self._sweep(slots)
        if settle:
            self._settle()

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence of distinct leaves and nothing else; sites begin as they are."""
        slots = self._touch(leaves)
        self._table[:] = 0.0
        self._table[self.slots.row[slots]] = evidence
        self.place_sites(slots, evidence[:, kernels.SITE_M], evidence[:, kernels.SITE_ETA])
        if (evidence[:, kernels.WIDTH] < 0.0).any():
            self._settle()

    def settle(self, log: Rows | None, propagate: bool) -> None:
        """Make sites again until no cavity moves."""
        super().settle(log, propagate)
        self._settle()

    def _settle(self) -> None:
        slots = self._observed_slots
        for sweep in range(_MOST_SWEEPS):
            if not self._sweep(slots, 1.0 if sweep < BOLD else 0.5):
                return

    @property
    def _observed_slots(self) -> Nodes:
        slots = self.slots.of_rows
        return slots[self.table[:, kernels.COUNT] > 0.0]

    def _sweep(self, slots: Nodes, size: float = 1.0) -> int:
        kept = self.slots
        return kernels.sweep(
            slots, kept.row, self._family, self._mean, kept.parent, kept.class_, self._variance, self._table,
            self._state, self._law, size,
        )  # fmt: skip

    def log_evidence(self) -> float:
        """Expectation propagation's log probability of the counts, without what does not depend on parameters."""
        kept, state = self.slots, self._state[: self.slots.count]
        surplus = kernels.site_surplus(
            self._observed_slots, kept.row, self._family, self._mean, kept.parent, kept.class_, self._variance,
            self._table, state,
        )  # fmt: skip
        return float(surplus + draws.log_mass(kept.class_, self._variance, state))
