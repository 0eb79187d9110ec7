"""The posterior of a K-armed model whose rewards are counts: expectation propagation at the leaves.

The tree is the Gaussian one of scalar.py. A leaf's counts, a total y in an exposure e, say L(theta) of its parameter:
sigmoid^y (1 - sigmoid)^(e - y) for clicks, exp(y theta - e exp(theta)) for Poisson counts. In its place stands a site,
a Gaussian factor of precision M and information eta, which is all that the tree sees of a likelihood. It is chosen in
the leaf's *cavity*, the exact marginal of theta given what all other leaves say, so that cavity times site has the mean
and the variance of cavity times L. Other leaves' sites move that cavity later; `settle` goes on until none moves.
docs/clicks.md has the formulas.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bough.arrays import Flags, Floats, Nodes
from bough.covariance import LARGEST
from bough.inference import scalar_kernels as kernels
from bough.inference.scalar import ScalarEngine
from bough.inference.touched import check_counts
from bough.model import Model
from bough.statistics import Statistics

FAMILIES = {"gaussian": kernels.GAUSSIAN, "bernoulli": kernels.BERNOULLI, "poisson": kernels.POISSON}
BOLD = 20  # sweeps of full steps; where sites of extreme counts go back and forth, later ones go half way
_MOST_SWEEPS = 200


class ScalarSites(ScalarEngine):
    """The engine of scalar.py, with sites at its leaves."""

    _n_columns = 9

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._family = FAMILIES[model.rewards]
        self._counted = model.counted

    def _check(self, state: Floats, is_leaf: Flags) -> None:
        """Refuse a state that has at its leaves what no counts leave there."""
        count, total, exposure = (state[:, column] for column in (kernels.COUNT, kernels.TOTAL, kernels.EXPOSURE))
        precision, width = state[:, kernels.M], state[:, kernels.WIDTH]
        check_counts(count, is_leaf)
        sound = (total >= 0.0) & (exposure > 0.0) & (exposure < LARGEST) & (total < LARGEST) & (count > 0.0)
        sound &= (precision >= 0.0) & (precision < LARGEST) & (np.abs(state[:, kernels.ETA]) < LARGEST)
        sound &= (width >= 0.0) | (width == -1.0)
        if self._family == kernels.BERNOULLI:
            sound &= (total <= exposure * (1.0 + 1e-12)) & (np.abs(count - exposure) <= 1e-9 * exposure)
        if not sound[is_leaf].all() or state[~is_leaf, kernels.COUNT :].any():
            raise ValueError("state is not one that counts could have made")

    def observe(self, leaves: Nodes, rewards: Floats, _contexts: None = None, exposure: Any = None) -> None:
        """Add counts of leaves: one refreshes its path, and a batch ends settled."""
        counts = self._counted(np.ones(len(exposure)), exposure)
        self._add(leaves, rewards, exposure, counts, settle=len(leaves) > 1)

    def absorb(self, leaves: Nodes, statistics: Statistics) -> None:
        """Add the counts that were summed for distinct leaves."""
        exposure = statistics.exposure_or_count
        self._add(leaves, statistics.sum_y, exposure, self._counted(statistics.count, exposure), settle=True)

    def _add(self, leaves: Nodes, totals: Floats, exposure: Floats, counts: Floats, *, settle: bool) -> None:
        slots = self._touch(leaves)
        kernels.observe_counts(slots, totals, exposure, counts, self._state)
        self._sweep(slots)
        if settle:
            self.settle()

    def settle(self) -> None:
        """Make sites again until no cavity moves."""
        slots = self._leaf_slots
        for sweep in range(_MOST_SWEEPS):
            if not self._sweep(slots, 1.0 if sweep < BOLD else 0.5):
                return

    @property
    def _leaf_slots(self) -> Nodes:
        return np.flatnonzero(self._used[:, kernels.COUNT] > 0.0).astype(np.int32)

    def _sweep(self, slots: Nodes, size: float = 1.0) -> int:
        touched = self.touched
        return kernels.sweep(
            slots,
            self._family,
            self._mean,
            touched.parent,
            touched.class_,
            self._variance,
            self._state,
            self._law,
            size,
        )

    def log_evidence(self) -> float:
        """Expectation propagation's log probability of the counts, without what does not depend on parameters."""
        tree = (self.touched.parent, self.touched.class_, self._variance, self._used)
        surplus = kernels.site_surplus(self._leaf_slots, self._family, self._mean, *tree)
        return float(surplus + kernels.log_mass(*tree[1:]))
