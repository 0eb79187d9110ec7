"""The posterior of a contextual model whose rewards are counts: one rank-one site an observation.

The tree is the Gaussian one of vector.py. A reward in context x speaks of one number, the score s = x' theta, which
is normal before it is seen: so its site is the one that a leaf gets in scalar_sites.py, precision M and information eta
about s, and to the tree it is a row of unit noise, sqrt(M) x' theta = eta / sqrt(M). That is assumed-density filtering:
a site is made once, from what was known then. `settle` forgets them all and goes through a log to the mode of the
joint posterior, by Newton steps each of which is one exact pass of the tree (Laplace's approximation). From there
expectation propagation may go on, with a site for each row of the log.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bough.arrays import Floats, Nodes
from bough.inference import scalar_kernels, vector_kernels
from bough.inference.row_sites import LEAST, MOST_SWEEPS, RowSites
from bough.inference.scalar_sites import FAMILIES
from bough.inference.vector import VectorEngine
from bough.model import Model
from bough.observations import Rows
from bough.statistics import Statistics
from bough.storage import Contents

_MOST_STEPS = 200
_STILL = 1e-9  # the largest change of a score at the mode, relative to 1 + its size


class _Log(NamedTuple):
    """The rows that a posterior is made from."""

    leaves: Nodes
    rewards: Floats
    contexts: Floats
    exposure: Floats
    means: Floats
    """Of the scores, under the prior."""


class VectorSites(VectorEngine):
    """The engine of vector.py, which sees a site where there was a count."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._family = FAMILIES[model.rewards]
        self._counted = model.counted
        self._log_probability = np.zeros(1)  # of the counts so far, each given those before it

    def arrays(self) -> dict[str, Any]:
        """Everything that has been learned, for a file."""
        return {**super().arrays(), "log_probability": self._log_probability}

    def restore(self, contents: Contents) -> None:
        """Take over what `arrays` gave a file, if it is what rows could have made."""
        super().restore(contents)
        self._log_probability = contents.array("log_probability", np.float64, (1,))

    def observe(self, leaves: Nodes, rewards: Floats, contexts: Floats, exposure: Any = None) -> None:
        """Add counts of leaves in contexts (n, d), one after the other."""
        before = self.touched.count
        slots = self.touched.touch(leaves)
        self._make_room(before)
        np.add.at(self._count, slots, self._counted(np.ones(len(exposure)), exposure))
        means = contexts @ self._mean
        tree = (self.touched.parent, self.touched.class_, self._factor, self._triangle, self._pull, self._target)
        scratch = np.empty(len(self._mean))
        for i in range(len(slots)):
            offset, v = vector_kernels.score_moments(contexts[i].copy(), slots[i], *tree, scratch)
            m, eta, probability = scalar_kernels.site(self._family, rewards[i], exposure[i], means[i], offset, v)
            self._log_probability += probability
            root = math.sqrt(max(m, LEAST))
            self._observe_rows(slots[i : i + 1], root * contexts[i : i + 1], np.array([eta / root]))

    def absorb(self, _leaves: Nodes, _statistics: Statistics) -> None:
        """Sums over contexts do not say what a count in each of them was."""
        raise ValueError(
            "sums cannot tell which rewards came in which contexts, and counts need that; give the rows to update, or "
            "all of them to settle, as bough.Observations"
        )

    def settle(self, rows: Rows, propagate: bool) -> None:
        """Forget everything, and have the Gaussian at the mode of the posterior of a log; from there, propagate."""
        assert rows.contexts is not None
        assert rows.exposure is not None
        log = _Log(rows.leaves, rows.rewards, rows.contexts, rows.exposure, rows.contexts @ self._mean)
        before = {name: np.array(array) for name, array in self.arrays().items()}
        precision, information, log_probability = self._mode(log)
        if propagate:
            sites = RowSites(self._family, log.rewards, log.exposure, log.means)
            sites.precision, sites.information = precision, information
            log_probability = self._propagate(log, sites)
        if not math.isfinite(log_probability):
            self.touched.take_over(before["touched"], before["touched_parent"])
            self._take_over(before)
            raise ValueError(
                "the log's posterior cannot be computed; are contexts of hundreds, or the prior's variances, meant so?"
            )
        self._log_probability[0] = log_probability
        self._count[:] = 0.0
        np.add.at(self._count, self.touched.slots(log.leaves), self._counted(np.ones(len(log.exposure)), log.exposure))

    def _place_sites(self, log: _Log, precision: Floats, information: Floats) -> None:
        """Have each row say exp(information t - precision t^2 / 2) of its score's deviation t, and nothing else."""
        root = np.sqrt(precision)
        self.place(log.leaves, root[:, None] * log.contexts, information / root)

    def _log_determinant(self) -> float:
        """Half the logarithm of how much narrower the posterior is than the prior."""
        return float(np.log(np.diagonal(self._triangle[: self.touched.count], axis1=1, axis2=2)).sum())

    def _mode(self, log: _Log) -> tuple[Floats, Floats, float]:
        """Newton steps: the precision and information of each row at the mode, and Laplace's log evidence."""
        means, n = log.means, len(log.means)
        scores, held = means.copy(), np.zeros(n)  # the prior's gradient is the sum of held times contexts
        slope, curve = np.empty(n), np.empty(n)
        for _ in range(_MOST_STEPS):
            scalar_kernels.slopes_of_all(self._family, log.rewards, log.exposure, scores, slope, curve)
            precision = np.maximum(-curve, LEAST)
            information = slope + precision * (scores - means)
            self._place_sites(log, precision, information)
            step = self._scores(log) - scores
            if (np.abs(step) <= _STILL * (1.0 + np.abs(scores))).all():
                break
            change = slope - precision * step - held
            size = self._step_size(log, scores, step, held, change)
            scores, held = scores + size * step, held + size * change
        likelihood = scalar_kernels.log_likelihood_of_all(self._family, log.rewards, log.exposure, scores)
        return precision, information, likelihood - 0.5 * float(held @ (scores - means)) - self._log_determinant()

    def _propagate(self, log: _Log, sites: RowSites) -> float:
        """Expectation propagation over the rows; the log evidence."""
        mean, variance = np.empty(len(log.rewards)), np.empty(len(log.rewards))
        slots = self.touched.slots(log.leaves)
        tree = (self.touched.parent, self.touched.class_, self._factor, self._triangle, self._pull, self._target)
        for sweep in range(MOST_SWEEPS):
            vector_kernels.score_moments_of_all(log.contexts.copy(), slots, *tree, mean, variance)
            if not sites.remake(mean, variance, sweep):
                break
            self._place_sites(log, sites.precision, sites.information)
        explained = float((sites.information**2 / sites.precision).sum())
        return 0.5 * (explained - float(self._surprise[0])) - self._log_determinant() + sites.surplus

    def _scores(self, log: _Log) -> Floats:
        """The posterior mean of each row's score."""
        nodes, _ = self.touched.leafward
        values = self.transform_some(nodes, self.touched.parent_position, np.zeros((len(nodes), len(self._mean))))
        return np.asarray(np.einsum("nd,nd->n", values[np.searchsorted(nodes, log.leaves)], log.contexts))

    def _step_size(self, log: _Log, scores: Floats, step: Floats, held: Floats, change: Floats) -> float:
        """How far to go: all the way, unless the posterior is past its highest point there by then."""
        slope, curve = np.empty(len(scores)), np.empty(len(scores))

        def rise(size: float) -> float:
            moved = scores + size * step
            scalar_kernels.slopes_of_all(self._family, log.rewards, log.exposure, moved, slope, curve)
            return float(step @ (slope - held - size * change))

        low, high = 0.0, 1.0
        if rise(1.0) >= -0.5 * rise(0.0):
            return 1.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rise(middle) > 0.0 else (low, middle)
        return low

    def log_evidence(self) -> float:
        """The log probability of the counts, each given those before it; after `settle`, of the log as a whole."""
        return float(self._log_probability[0])
