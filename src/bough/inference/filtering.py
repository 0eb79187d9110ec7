"""The posterior of a contextual model whose rewards are counts: one rank-one site per observation.

The tree is the Gaussian one of vector.py. A reward in context x speaks of one number, the score s = x' theta, which
is normal before it is seen: so its site is the one that an action gets in propagation.py, precision M and information
eta about s, and to the tree it is a row of unit noise, sqrt(M) x' theta = eta / sqrt(M). That is assumed-density
filtering: a site is made once, from what was known then. `settle` forgets them all and goes through a log to the mode
of the joint posterior, by Newton steps each of which is one exact pass of the tree (Laplace's approximation). From
there expectation propagation goes on, with a site for each context of an action.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.kernels import likelihoods, sites
from bough.inference.kernels import vector as kernels
from bough.inference.kernels import vector_draws as draws
from bough.inference.kernels.row_sites import LEAST
from bough.inference.row_sites import MOST_SWEEPS, STILL, ContextRows, RowSites
from bough.inference.vector import VectorEngine
from bough.model.likelihood import LARGEST
from bough.model.model import Model

_MOST_STEPS = 200
_STILL = 1e-9  # the largest change of a score at the mode, relative to 1 + its size


class ContextCountEngine(VectorEngine):
    """The engine of vector.py, which sees a site where there was a count."""

    _learned = (*VectorEngine._learned, "_log_probability")

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._family = model.kind.code
        self._n_observations_of = model.kind.n_observations
        self._log_probability = np.zeros(1)  # of the counts so far, each given those before it
        self.may_refuse = True

    def extra_arrays(self) -> dict[str, Any]:
        """The log evidence so far, which depends on the order in which rewards came."""
        return {**super().extra_arrays(), "log_probability": self._log_probability.copy()}

    def take_extra(self, arrays: Mapping[str, Any]) -> None:
        """Take over what `extra_arrays` gave."""
        self._log_probability[:] = arrays["log_probability"]

    def observe(self, rows: Rows, settle: bool = True) -> None:  # noqa: ARG002
        """Add counts of leaves in contexts (n, d), one after the other; all or nothing."""
        contexts, exposure = rows.contexts, rows.exposure
        assert contexts is not None
        assert exposure is not None
        weights = rows.counts
        rewards, exposure = weights * rows.rewards, weights * exposure
        counts = self._n_observations_of(weights, exposure)
        self._made_good()
        before = self._remembered(rows.leaves)
        slots = self._touch(rows.leaves)
        try:
            total = self._filter(slots, rewards, contexts, exposure)
            of_slot = self.slots.row[slots]
            np.add.at(self._table[:, kernels.COUNT], of_slot, counts)
            np.add.at(self._table[:, kernels.TOTAL], of_slot, rewards)
        except BaseException:
            self._take_back(before)
            raise
        self._log_probability += total

    def _filter(self, slots: Nodes, rewards: Floats, contexts: Floats, exposure: Floats) -> float:
        """Take counts in one by one; the logarithm of how probable they were, each given those before it."""
        means = contexts @ self._mean
        scratch = np.empty(len(self._mean))
        total = 0.0
        for i in range(len(slots)):
            offset, v = draws.score_moments(contexts[i].copy(), slots[i], *self._rows_of_slots, scratch)
            m, eta, probability = sites.site(self._family, rewards[i], exposure[i], means[i], offset, v)
            total += probability
            root = math.sqrt(max(m, LEAST))
            if not (math.isfinite(total) and math.isfinite(m) and math.isfinite(eta / root)):
                raise ValueError(
                    f"the reward {rewards[i]:g} of {exposure[i]:g} in a context of size "
                    f"{np.abs(contexts[i]).max():g} cannot be computed with: its score may be {math.sqrt(v):.3g} off "
                    f"{means[i] + offset:.3g}; give contexts of usual size, or a narrower prior"
                )
            row = np.append(root * contexts[i], eta / root + root * means[i])[None]
            self._observe_rows(slots[i : i + 1], row)
        return total

    def check(self, rows: Rows) -> None:
        """A `ValueError` where `observe` could not compute with these, or not go on from there; nothing changes.

        They are observed, and taken back.
        """
        contexts, exposure = rows.contexts, rows.exposure
        assert contexts is not None
        assert exposure is not None
        self._made_good()
        before = self._remembered(rows.leaves)
        try:
            slots = self._touch(rows.leaves)
            total = self._filter(slots, rows.rewards, contexts, exposure)
            if not (abs(total) < LARGEST and self._paths_are_finite(slots)):
                raise ValueError(
                    f"the reward {rows.rewards[0]:g} of {exposure[0]:g} in a context of size "
                    f"{np.abs(contexts[0]).max():g} leaves what cannot be computed with; are its units right?"
                )
        finally:
            self._take_back(before)

    def _paths_are_finite(self, slots: Nodes) -> bool:
        """Whether the laws of slots, and of all above them, are numbers that can be computed with."""
        while len(slots):
            triangle = self._triangle[slots]
            numbers = triangle, self._pull[slots], self._target[slots]
            if not all(bool((np.abs(array) < LARGEST).all()) for array in numbers):  # nor NaN
                return False
            if (np.einsum("njj->nj", triangle) < 0.5).any():  # a diagonal only grows, from 1
                return False
            slots = self.slots.parent[slots]
            slots = slots[slots >= 0]
        return bool((self._account < LARGEST).all())

    @property
    def _rows_of_slots(self) -> tuple[Nodes, Nodes, Floats, Floats, Floats, Floats]:
        self._made_good()
        return self.slots.parent, self.slots.class_, self._factor, self._triangle, self._pull, self._target

    def _remembered(self, leaves: Nodes) -> tuple[int, Nodes, list[Floats], Nodes, Floats, Floats]:
        """What there is on the paths of leaves, so that it can be put back."""
        nodes = np.unique(leaves)
        slots = self.slots.find(nodes)
        while (slots < 0).any():  # up to what is touched
            nodes = np.where(slots < 0, self._tree.parent.take(nodes, mode="clip"), nodes)
            nodes = np.unique(nodes[nodes >= 0])
            slots = self.slots.find(nodes)
        paths = [slots]
        while len(paths[-1]) and paths[-1].max() > 0:  # the root's is the first
            paths.append(np.maximum(self.slots.parent[paths[-1]], 0))
        slots = np.unique(np.concatenate(paths))
        rows = self.slots.row[slots]
        rows = rows[rows >= 0]
        kept = [array[slots].copy() for array in (self._triangle, self._pull, self._target)]
        return self.slots.count, slots, kept, rows, self._table[rows].copy(), self._account.copy()

    def _take_back(self, before: tuple[int, Nodes, list[Floats], Nodes, Floats, Floats]) -> None:
        """Put back what was remembered; what was touched since is forgotten."""
        count, slots, kept, rows, table, account = before
        if self.slots.count > count:
            self.slots.forget(count)
        for array, values in zip((self._triangle, self._pull, self._target), kept, strict=True):
            array[slots] = values
        self._stale[slots] = True
        self._table[self.slots.n_rows :] = 0.0
        self._table[rows] = table
        self._account[:] = account
        self._pull[count:], self._target[count:] = 0.0, 0.0  # new slots begin with these

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:  # noqa: ARG002
        """Sums over contexts do not say what a count in each of them was."""
        raise ValueError(
            "sums cannot tell which rewards came in which contexts, and counts need that; give the rows to update, or "
            "all of them to settle, as bough.Observations"
        )

    def settle(self, rows: Rows | None, propagate: bool) -> None:
        """Forget everything, and have the Gaussian at the mode of the posterior of a log; from there, propagate."""
        if rows is None:
            raise ValueError("a contextual model of counts is refined from its log; give bough.Observations")
        assert rows.contexts is not None
        assert rows.exposure is not None
        before = self.snapshot()
        try:
            self._settle_on(rows.leaves, rows.contexts, rows.rewards, rows.exposure, propagate)
        except BaseException:
            vars(self).update(vars(before))
            raise
        self.is_partial = False

    def _settle_on(self, leaves: Nodes, contexts: Floats, rewards: Floats, exposure: Floats, propagate: bool) -> None:
        log = ContextRows.of(leaves, contexts, rewards, exposure)
        row_sites = RowSites(self._family, log, log.contexts @ self._mean)
        log_probability = self._mode(log, row_sites)
        if propagate:
            log_probability = self._propagate(log, row_sites)
        if not math.isfinite(log_probability):
            raise ValueError(
                "the log's posterior cannot be computed; are contexts of hundreds, or the prior's variances, meant so?"
            )
        self._log_probability[0] = log_probability
        places = self.slots.row[self.slots.find(leaves)]
        counts = self._n_observations_of(np.ones(len(exposure)), exposure)
        np.add.at(self._table[:, kernels.COUNT], places, counts)
        np.add.at(self._table[:, kernels.TOTAL], places, rewards)

    def _place_sites(self, log: ContextRows, row_sites: RowSites) -> None:
        """Have each row say what its site does, and nothing else."""
        row_sites.collect()
        self.place_triangles(log.leaves, row_sites.triangles)

    def _mode(self, log: ContextRows, row_sites: RowSites) -> float:
        """Newton steps: has the sites be those of each row at the mode; Laplace's log evidence."""
        means, n = row_sites.means, len(row_sites.means)
        scores, held = means.copy(), np.zeros(n)  # the prior's gradient is the sum of held times contexts
        slope, curve = np.empty(n), np.empty(n)
        for _ in range(_MOST_STEPS):
            likelihoods.slopes_of_all(self._family, log.totals, log.exposure, scores, slope, curve)
            precision = np.maximum(-curve, LEAST)
            row_sites.precision, row_sites.information = precision, slope + precision * (scores - means)
            self._place_sites(log, row_sites)
            step = means + log.scores(self._leaf_means(log.leaves)) - scores
            if (np.abs(step) <= _STILL * (1.0 + np.abs(scores))).all():
                break
            change = slope - precision * step - held
            size = self._step_size(log, scores, step, held, change)
            scores, held = scores + size * step, held + size * change
        likelihood = likelihoods.log_likelihood_of_all(self._family, log.totals, log.exposure, scores)
        return likelihood - 0.5 * float(held @ (scores - means)) - self._log_determinant()

    def _propagate(self, log: ContextRows, row_sites: RowSites) -> float:
        """Expectation propagation over the rows; the log evidence."""
        slots = self.slots.find(log.leaves)
        for sweep in range(MOST_SWEEPS):
            off = row_sites.remake(self._leaf_means(log.leaves), self._slot_covariances()[slots], sweep)
            if off <= STILL:
                break
            self._place_sites(log, row_sites)
        triangles = row_sites.triangles
        explained = float(np.square(triangles[:, :, -1] - triangles[:, :, :-1] @ self._mean).sum())
        return 0.5 * (explained - float(self._account[0])) - self._log_determinant() + row_sites.surplus

    def _leaf_means(self, leaves: Nodes) -> Floats:
        """(n, d) the posterior means of leaves, as deviations from the prior's."""
        nodes, _ = self.slots.leafward
        values = self.transform_some(nodes, self.slots.parent_position, np.zeros((len(nodes), len(self._mean))))
        return np.asarray(values[np.searchsorted(nodes, leaves)] - self._mean)

    def _step_size(self, log: ContextRows, scores: Floats, step: Floats, held: Floats, change: Floats) -> float:
        """How far to go: all the way, unless the posterior is past its highest point there by then."""
        slope, curve = np.empty(len(scores)), np.empty(len(scores))

        def rise(size: float) -> float:
            moved = scores + size * step
            likelihoods.slopes_of_all(self._family, log.totals, log.exposure, moved, slope, curve)
            with np.errstate(over="ignore"):  # a rate far past the mode
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
