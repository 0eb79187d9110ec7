"""The evidence of counts, by expectation propagation.

At its fixed point the approximate log evidence does not change, to first order, with the sites. So its gradient by the
variances is that of a Gaussian model which observes the sites themselves, and the two classes here are those of
scalar.py and vector.py with the sites settled before each evaluation. docs/explanation/propagation.md derives it. The
prior mean is settled along with them, as the weighted least-squares fit to what the sites say.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers
from bough.inference.kernels import forest as forest_kernels
from bough.inference.kernels import propagation, scalar, scalar_draws
from bough.inference.row_sites import MOST_SWEEPS, STILL, ContextRows, RowSites
from bough.inference.settling import BOLD
from bough.learning.forest import Forest
from bough.learning.objective import Penalty
from bough.learning.options import Structure
from bough.learning.scalar_evidence import ScalarEvidence
from bough.learning.vector_evidence import VectorEvidence, mean_errors
from bough.model.model import Model

_FIRST_SWEEPS = 10  # over the rows, at most, for a step of expectation maximisation
_STILL = 1e-7  # how far from settled, in standard deviations of a score, is settled for a fit in contexts
_NEAR = 1e-3  # the same during the search, as a share of the slope
_ROUGH = 0.1  # the same, for such a step


def checked_evidence(value: float) -> float:
    """A log evidence, or a `ValueError` where rounding has eaten it up."""
    if not math.isfinite(value):
        raise ValueError(
            "the counts say too little, or too extreme things, for a prior to be learned from them; give more of them, "
            "a penalty, or the mean"
        )
    return value


class ScalarSiteEvidence(ScalarEvidence):
    """The log evidence of counts in d = 1; parameters are log-variances by group."""

    furthest = 5.0  # a factor of 150: beyond that, log-odds or log-rates are as good as infinite

    def __init__(
        self,
        forest: Forest,
        variance: Floats,
        group: Integers,
        mean: float | None,
        penalty: Penalty | None,
        model: type[Model],
    ) -> None:
        super().__init__(forest, variance, group, 1.0, False, mean, penalty)
        self._family = model.kind.code
        sums, leaves = forest.statistics, np.flatnonzero(forest.leaf >= 0)
        exposure = sums.exposure_or_count
        self._leaves = leaves.astype(np.int32)
        self._roots = np.flatnonzero(forest.parent < 0)
        self._state = np.zeros((len(forest.parent), 4))
        self._law = np.zeros((len(forest.parent), 3))
        self._counts = np.zeros((len(sums.actions), 8))  # evidence, with sites
        self._counts[:, propagation.TOTAL] = sums.sum_y
        self._counts[:, propagation.EXPOSURE] = exposure
        self._counts[:, propagation.WIDTH] = -1.0
        rate = float((sums.sum_y.sum() + 0.5) / (exposure.sum() + 1.0))
        if mean is None:
            self.mean = model.kind().score_of(rate)
        self._first_mean = self.mean

    def evidence(self, variance: Floats, noise: float) -> tuple[float, Floats]:  # noqa: ARG002
        """The log evidence, with its gradient by all log-variances and a zero for the noise; settles `mean`."""
        forest, state = self.forest, self._state
        variance = np.ascontiguousarray(variance)
        if not self._settled(variance):
            self._forget()  # where an evaluation has gone astray, the next begins anew
            self._settled(variance)
        m = float(state[self._roots, scalar.M_SENT].sum())
        self.mean_error = 1.0 / math.sqrt(max(m, 1e-300)) if self._given_mean is None else 0.0
        nothing, scratch = np.zeros(len(state)), self._scratch
        gradient = np.empty(len(variance) + 1)
        forest_kernels.spread(
            forest.parent, forest.class_, nothing, nothing, variance, 1.0, 0.0, state[:, scalar.M].copy(),
            state[:, scalar.ETA].copy(), scratch[2], scratch[3], gradient,
        )  # fmt: skip
        surplus = propagation.site_surplus(
            self._leaves, forest.leaf, self._family, self.mean, forest.parent, forest.class_, variance, self._counts,
            state,
        )  # fmt: skip
        return checked_evidence(float(surplus + scalar_draws.log_mass(forest.class_, variance, state))), gradient

    def _forget(self) -> None:
        """Go back to where the first evaluation began."""
        self._state[:] = 0.0
        self._counts[:, propagation.WIDTH] = -1.0
        self.mean = self._first_mean

    def _settled(self, variance: Floats) -> bool:
        """Settle the sites and the mean; whether that came to an end."""
        state, forest = self._state, self.forest
        self._collect(variance)
        for sweep in range(MOST_SWEEPS):
            size = 1.0 if sweep < BOLD else 0.5
            moved = propagation.sweep(
                self._leaves, forest.leaf, self._family, self.mean, forest.parent, forest.class_, variance,
                self._counts, state, self._law, size,
            )  # fmt: skip
            self.advance(1)
            if self._given_mean is not None:
                if not moved:
                    return True
                continue
            sent = state[self._roots]
            m, eta = float(sent[:, scalar.M_SENT].sum()), float(sent[:, scalar.ETA_SENT].sum())
            if not (0.0 < m < math.inf and math.isfinite(eta)):
                return False
            step = eta / m
            if not moved and abs(step) * math.sqrt(m) <= STILL:
                return True
            step = size * min(max(step, -1.0), 1.0)  # further than that, sites would say something else
            self.mean += step
            state[self._leaves, scalar.ETA] -= state[self._leaves, scalar.M] * step
            self._counts[:, propagation.CAVITY] -= step  # a deviation from the mean, as all
            self._collect(variance)
        return False

    def _collect(self, variance: Floats) -> None:
        """Have every node collect anew what its leaves say."""
        forest = self.forest
        scalar.remake(forest.parent, forest.class_, forest.leaf, variance, self._state, self._law)


class VectorSiteEvidence(VectorEvidence):
    """The log evidence of counts in contexts: every row has a site of its own, all made again at once."""

    furthest = 5.0
    flat = 1e-5  # the sites, which a gradient follows, are not settled further than that either

    def __init__(
        self,
        forest: Forest,
        covariance: Floats,
        group: Integers,
        mean: Floats | None,
        penalty: Penalty | None,
        structure: Structure,
        model: type[Model],
    ) -> None:
        assert forest.rows is not None
        place, rewards, contexts, exposure = forest.rows
        rows = ContextRows.of(place.astype(np.int32), contexts / np.sqrt(forest.mean_squares()), rewards, exposure)
        slot = np.empty(len(forest.statistics.actions), dtype=np.int64)
        slot[forest.leaf[forest.leaf >= 0]] = np.flatnonzero(forest.leaf >= 0)
        self._x, self._place, self._slot = rows.contexts, rows.leaves, slot[rows.leaves]
        self._sites = RowSites(model.kind.code, rows, np.zeros(len(rows.totals)))
        self._near, self._mean_off = _STILL, 0.0  # in standard deviations and standard errors
        self._learns_mean, self._first_mean = mean is None, np.zeros(self._x.shape[1])
        given = self._first_mean if mean is None else mean
        super().__init__(forest, covariance, group, 1.0, False, given, penalty, structure)

    def expect(self, slope: float) -> None:
        """Have sites settle no further than matters where the slope is of this size."""
        self._near = min(max(_NEAR * slope, _STILL), _ROUGH)

    def _passes(self, factor: Floats, noise: float) -> tuple[float, Floats, float]:
        """The settled log evidence, and the excess of the second moments by class."""
        found = self._settled(factor, noise)
        if found is None:
            self._sites.forget()  # where an evaluation has gone astray, the next begins anew
            self._given_mean = self._first_mean.copy()
            found = self._settled(factor, noise) or self._mass(factor, noise)
        mass, excess = found
        if self._learns_mean:
            self.mean_error = mean_errors(self._top[:, :-1]) / self._unit
        return checked_evidence(mass + self._sites.surplus), excess, 0.0

    def _rough_excess(self, factor: Floats, noise: float) -> Floats:
        """The excess by class, from sites that go along with the variances and are not waited for."""
        for sweep in range(_FIRST_SWEEPS):
            mass, excess, off = self._swept(factor, noise, sweep)
            if off <= _ROUGH:
                return excess
        return excess if math.isfinite(mass) else self._passes(factor, noise)[1]

    def _settled(self, factor: Floats, noise: float) -> tuple[float, Floats] | None:
        """Settle the sites and the mean; None where that does not come to an end."""
        for sweep in range(MOST_SWEEPS):
            mass, excess, off = self._swept(factor, noise, sweep)
            if not math.isfinite(mass):
                return None
            if off <= self._near:
                return mass, excess
        return None

    def _swept(self, factor: Floats, noise: float, sweep: int) -> tuple[float, Floats, float]:
        """The mass and the excess with the sites as they are, which then are made again; how far they were off."""
        mass, excess = self._mass(factor, noise)
        if not (math.isfinite(mass) and np.isfinite(self._means).all()):
            return math.nan, excess, math.inf
        off = self._sites.remake(self._means[self._slot], self._covariances[self._slot], sweep)
        return mass, excess, max(off, self._mean_off)

    def _mean_from(self, top: Floats) -> Floats:
        """The mean, moved towards the least-squares fit to what the sites say; `_mean_off` is how far it was off."""
        assert self._given_mean is not None
        if not self._learns_mean:
            return np.asarray(self._given_mean)
        triangle, target = top[:, :-1], top[:, -1]
        step, *_ = np.linalg.lstsq(triangle, target - triangle @ self._given_mean, rcond=1e-10)
        self._mean_off = float(np.abs(triangle @ step).max())
        # Further than 1 in the score of any row, and its site would say something else.
        self._given_mean = self._given_mean + step / max(float(np.abs(self._x @ step).max()), 1.0)
        return np.asarray(self._given_mean)

    def _mass(self, factor: Floats, noise: float) -> tuple[float, Floats]:
        """The log of the prior's integral over all sites, and the excess, with one pass up and one down."""
        self._sites.collect()
        self._rows[self._place] = self._sites.triangles
        self._residual = 0.0
        value, excess, _ = super()._passes(factor, noise)
        constant = 0.5 * self.forest.n_rows * math.log(2.0 * math.pi * noise)
        return value + constant + 0.5 * float(np.square(self._sites.triangles[:, :, -1]).sum()), excess
