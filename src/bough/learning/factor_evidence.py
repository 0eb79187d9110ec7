"""The evidence of numbers with crossed effects, as a function of the logarithms of all variances.

With the effects b integrated as well, the log evidence is that of the tree for the rewards less the best effects, less
half of |u|^2 + log det (I + D G D), b = D u; G is what the rewards say of b where the tree is integrated.
docs/explanation/crossed.md derives its gradient.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri

from bough._arrays import Floats, Integers
from bough.inference.kernels import crossed, crossed_evidence, crossed_fit
from bough.inference.kernels.scalar import ETA_SENT, M_SENT
from bough.inference.loadings import Loadings
from bough.learning.forest import Forest
from bough.learning.objective import Penalty
from bough.learning.scalar_evidence import ScalarEvidence

_MILD = 1e8  # how much more than the prior rewards may say of an effect for sums of squares: they lose as many digits


class FactorEvidence(ScalarEvidence):
    """The log evidence of a forest whose actions share effects; the classes of factors come after the tree's."""

    def __init__(
        self,
        forest: Forest,
        variance: Floats,  # (n_classes,) what is set, and where the search begins
        group: Integers,  # (n_classes,) of classes that grow and shrink together; -1 for those that are set
        noise: float,
        noise_learned: bool,
        mean: float | None,  # None: by generalised least squares
        penalty: Penalty | None,
    ) -> None:
        super().__init__(forest, variance, group, noise, noise_learned, mean, penalty)
        assert forest.cells is not None
        cells = self._cells = forest.cells
        sums = forest.statistics
        averages, within = sums.averages_and_spreads()
        self._rewards = averages - self._centre
        self._weights, self._spread = sums.count, float(within.sum())
        self._count = np.bincount(cells.slot, sums.count, minlength=len(forest.parent)).astype(np.float64)
        self._cells_of_slot = np.bincount(cells.slot, minlength=len(forest.parent)).astype(np.int32)
        self._row_cell = np.repeat(np.arange(len(cells.slot)), np.diff(cells.first))
        self._loadings, self._place = Loadings.of(cells.slot, cells.first, cells.effect, forest.parent)
        self._state, self._law = np.zeros((len(forest.parent), 4)), np.zeros((len(forest.parent), 3))
        self._slope, self._pull = np.empty(len(self._loadings.value)), np.empty(len(forest.parent))

    def evidence(self, variance: Floats, noise: float) -> tuple[float, Floats]:
        """The log evidence, with its gradient by all log-variances and, last, the log-noise; sets `mean`."""
        n_tree = len(variance) - self._cells.n_factors
        own = variance[:n_tree]
        deviation = np.sqrt(np.repeat(variance[n_tree:], self._cells.n_levels))
        precision = self._weights / noise
        self._say(own, precision)
        by_sums = self._most_said(precision, variance[n_tree:]) < _MILD
        triangle, target = (self._by_sums if by_sums else self._by_rows)(own, precision, deviation)
        known = np.asarray(solve_triangular(triangle, target))
        value, gradient = self._given(own, noise, deviation * known)
        log_det = 2.0 * float(np.log(np.abs(np.diag(triangle))).sum())
        inverse = _inverse(triangle)
        if self._given_mean is None:
            of_mean = deviation * self._at_root() / math.sqrt(self._state[0, M_SENT])
            towards = inverse @ of_mean
            more = float(of_mean @ towards)
            _take_off(towards, 1.0 + more, inverse)
            log_det += math.log1p(more)
            self.mean_error *= math.sqrt(1.0 + more)
        remaining = np.diag(inverse).copy()
        inverse *= deviation[:, None]
        inverse *= deviation
        of_tree = self._trace_gradient(inverse, own, precision)
        of_factors = 0.5 * self._by_factor(np.square(known) + remaining - 1.0)
        gradient = np.concatenate([gradient[:-1] - 0.5 * of_tree[:-1], of_factors, gradient[-1:] - 0.5 * of_tree[-1]])
        self.advance(1)
        return value - 0.5 * (log_det + float(known @ known)), gradient

    def _say(self, variance: Floats, precision: Floats) -> None:
        """Make all messages and lists again."""
        forest, cells, lists, state = self.forest, self._cells, self._loadings, self._state
        state[:] = 0.0
        lists.value[:] = 0.0
        crossed_evidence.say_cells(
            cells.slot, cells.first, self._place, precision, self._rewards, state, lists.first, lists.value
        )
        crossed.remake(
            forest.parent, forest.class_, forest.leaf, variance, state, self._law, lists.first, lists.size, lists.up,
            lists.value, lists.sent,
        )  # fmt: skip

    def _at_root(self) -> Floats:
        """(q,) what the root says of the mean and the effects together."""
        lists = self._loadings
        found = np.zeros(self._cells.n_effects)
        part = slice(int(lists.first[0]), int(lists.first[0]) + int(lists.size[0]))
        found[lists.effect[part]] = lists.sent[part]
        return found

    def _most_said(self, precision: Floats, of_factors: Floats) -> float:
        """How much more than the prior the rewards may say of an effect, at most."""
        cells = self._cells
        total = np.bincount(cells.effect, precision[self._row_cell], minlength=cells.n_effects)
        return float((total * np.repeat(of_factors, cells.n_levels)).max(initial=0.0))

    # Where the mean is given, G is what the rewards say of the effects around it. Where it is the best one, it goes
    # along with the effects, and G is less by w w' for that, w = `_at_root` over the root of the mean's precision. That
    # is what is factored: how much less is known of the mean than without effects is then 1 + a sum of squares, which
    # is right also where the effects explain nearly all of it.

    def _by_sums(self, variance: Floats, precision: Floats, deviation: Floats) -> tuple[Floats, Floats]:
        """The triangle R and the target f of the effects, R'R = I + D G D and R u = f, from sums of squares."""
        forest, cells, lists, state = self.forest, self._cells, self._loadings, self._state
        gram, right = np.zeros((cells.n_effects, cells.n_effects)), np.zeros(cells.n_effects)
        crossed_evidence.gram_of_cells(
            cells.slot, cells.first, cells.effect, precision, self._rewards, self._cells_of_slot, forest.class_,
            variance, state, gram, right,
        )  # fmt: skip
        crossed_evidence.gram_of_slots(
            self._cells_of_slot, forest.class_, variance, state, lists.first, lists.size, lists.effect, lists.value,
            gram, right,
        )  # fmt: skip
        at_root = self._at_root()
        if self._given_mean is None:
            _take_off(at_root, state[0, M_SENT], gram)
            right -= at_root * (state[0, ETA_SENT] / state[0, M_SENT])
        else:
            right -= at_root * (self._given_mean - self._centre)
        gram *= deviation[:, None]
        gram *= deviation
        gram[np.diag_indices(len(gram))] += 1.0
        lower, _ = dpotrf(gram.T, lower=1, clean=1, overwrite_a=1)
        return lower.T, solve_triangular(lower, deviation * right, lower=True)

    def _by_rows(self, variance: Floats, precision: Floats, deviation: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        """The same without squares, which would lose too many digits; it takes longer."""
        forest, cells, lists = self.forest, self._cells, self._loadings
        triangle, target = np.eye(cells.n_effects), np.zeros(cells.n_effects)
        mean = math.nan if self._given_mean is None else self._given_mean - self._centre
        crossed_evidence.fold_all(
            forest.parent, self._state, lists.first, lists.size, lists.effect, lists.value, cells.slot, cells.first,
            cells.effect, precision, self._rewards, self._cells_of_slot, cells.decided, deviation, mean, triangle,
            target, np.empty(cells.n_effects),
        )  # fmt: skip
        return triangle, target

    def _given(self, variance: Floats, noise: float, effects: Floats) -> tuple[float, Floats]:
        """The log evidence of the tree where the effects are known, with its gradient; sets `mean`."""
        cells = self._cells
        left = self._rewards - np.bincount(self._row_cell, effects[cells.effect], minlength=len(self._rewards))
        total = np.bincount(cells.slot, self._weights * left, minlength=len(self._count))
        self._average = np.divide(total, self._count, out=np.zeros(len(total)), where=self._count > 0.0)
        off = left - self._average[cells.slot]
        self._within = self._spread + float(self._weights @ (off * off))
        return self._tree_evidence(variance, noise)

    def _trace_gradient(self, covariance: Floats, variance: Floats, precision: Floats) -> Floats:
        forest, cells, lists = self.forest, self._cells, self._loadings
        gradient = np.empty(len(variance) + 1)
        crossed_fit.trace_gradient(
            covariance, forest.parent, forest.class_, forest.leaf, variance, self._state, lists.first, lists.size,
            lists.effect, lists.up, lists.value, cells.first, cells.effect, precision, self._slope, self._pull,
            gradient,
        )  # fmt: skip
        return gradient

    def _by_factor(self, of_effect: Floats) -> Floats:
        """(n_factors,) sums over the levels of each factor."""
        which = np.repeat(np.arange(self._cells.n_factors), self._cells.n_levels)
        return np.bincount(which, of_effect, minlength=self._cells.n_factors).astype(np.float64)


def _take_off(vector: Floats, size: float, matrix: Floats) -> None:
    """Overwrites a symmetric matrix with what is left without the vector's products with itself, over a size."""
    if len(vector):
        dger(-1.0 / size, vector, vector, a=matrix.T, overwrite_a=1)  # the transpose, which needs no copy


def _inverse(triangle: Floats) -> Floats:
    """(q, q) the inverse of R'R."""
    if not len(triangle):  # of factors without any level yet: LAPACK would print that it has nothing to do
        return triangle
    inverse: Floats = dpotri(triangle.T, lower=1)[0].T  # whose upper triangle is known
    crossed_evidence.mirror(inverse)
    return inverse
