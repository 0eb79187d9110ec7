"""The posterior of a K-armed model whose rewards are counts: expectation propagation at the actions.

The tree is the Gaussian one of scalar.py. An action's counts, a total y in an exposure e, say L(theta) of its
parameter: sigmoid^y (1 - sigmoid)^(e - y) for clicks, exp(y theta - e exp(theta)) for Poisson counts. In its place
stands a *site*, a Gaussian factor of precision M and information eta, which is all that the tree sees of a likelihood.
It is chosen in the action's *cavity*, the exact marginal of theta given what all other actions say, so that cavity
times site has the mean and the variance of cavity times L. Other actions' sites move that cavity later; `settle` goes
on until none moves. docs/explanation/propagation.md has the formulas.
"""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.evidence import CountEvidence
from bough.inference.kernels import propagation as kernels
from bough.inference.kernels import scalar_draws as draws
from bough.inference.settling import SiteEngine
from bough.model.model import Model


class CountEngine(SiteEngine):
    """The engine of scalar.py, with sites for counts at its actions."""

    _site = kernels.SITE_M

    def __init__(self, model: Model) -> None:
        super().__init__(model, CountEvidence(model))
        self._family = model.kind.code
        self._n_observations_of = model.kind.n_observations

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one count of a leaf, of one trial or exposure 1, and make its site again."""
        if self._faded != 1.0:
            self.observe(Rows(np.array([leaf], dtype=np.int32), np.array([reward]), None, np.ones(1)))
            return
        slots = self.slots
        while not kernels.observe_one_count(
            leaf, reward, 1.0, 1.0, self._family, self._mean, slots._node, slots._table, slots._parent, slots._class,
            slots._row, self._variance, self._table, self._state, self._law,
        ):  # fmt: skip
            self._touch(np.array([leaf], dtype=np.int32))
        self.news.of_one(leaf)

    def observe(self, rows: Rows, settle: bool = True) -> None:
        """Add counts of leaves: one refreshes its path, and a batch ends settled unless that is left for later."""
        assert rows.exposure is not None
        weights = rows.counts
        counts = self._n_observations_of(weights, weights * rows.exposure)
        sums = (weights * rows.rewards, weights * rows.rewards**2, weights * rows.exposure, counts)
        self._add(rows.leaves, *sums, settle=settle and len(rows.leaves) > 1)

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:
        """Add the counts that were summed for distinct leaves."""
        exposure = statistics.exposure_or_count
        counts = self._n_observations_of(statistics.count, exposure)
        self._add(leaves, statistics.sum_y, statistics.sum_yy, exposure, counts, settle=settle)

    def _add(
        self, leaves: Nodes, totals: Floats, squares: Floats, exposure: Floats, counts: Floats, *, settle: bool
    ) -> None:
        slots = self._touch_batch(leaves)
        now = 1.0 / (self._unit * self._faded)
        kernels.collect_counts(
            slots, self.slots.row, now * totals, now * squares, now * exposure, now * counts, self._table
        )
        if self._faded != 1.0:  # all messages are made again before they are read
            return
        self._sweep(np.unique(slots))  # once each, and relatives one after the other
        if settle:
            self._settle()

    def _sweep(self, slots: Nodes, size: float = 1.0) -> int:
        kept = self.slots
        self.news.of_some(kept._node[slots])
        return kernels.sweep(
            slots, kept.row, self._family, self._mean, kept.parent, kept.class_, self._variance, self._table,
            self._state, self._law, size,
        )  # fmt: skip

    def log_evidence(self) -> float:
        """Expectation propagation's log probability of the counts, without what does not depend on parameters."""
        self._made_good()
        kept, state = self.slots, self._state[: self.slots.count]
        surplus = kernels.site_surplus(
            self._observed_slots, kept.row, self._family, self._mean, kept.parent, kept.class_, self._variance,
            self._table, state,
        )  # fmt: skip
        return float(surplus + draws.log_mass(kept.class_, self._variance, state))
