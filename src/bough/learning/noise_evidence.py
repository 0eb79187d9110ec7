"""The evidence where each action has a noise variance of its own, by expectation propagation.

As in count_evidence.py: at the fixed point the log evidence does not change, to first order, with the sites, so that
its gradient by the variances is that of a Gaussian model which observes the sites, and its gradient by the median, the
spread and the floor of the noise that of each action's own integral in its cavity. docs/explanation/noise.md
derives it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Integers
from bough.inference.kernels import noise_fit as kernels
from bough.inference.noise_grid import FIT, noise_grid, room_for
from bough.inference.settling import BOLD
from bough.learning.count_evidence import checked_evidence
from bough.learning.forest import Forest
from bough.learning.objective import LEAST_NOISE, STEP, Penalty
from bough.learning.scalar_evidence import ScalarEvidence
from bough.model.noise import PerAction

_FURTHEST_START = 5.0  # from equal shares, as logarithms
_MOST_SWEEPS = 200
_STILL = 1e-7  # how far a cavity may move, in its standard deviations, and a site stay as it is
_NEAR = 1e-2  # the same during the search, as a share of the slope
_ROUGH = 1e-2  # the same, at most
_LEAST_SPREAD, _MOST_SPREAD = 0.02, 8.0  # a spread that comes out as the least is asked whether it is zero
_SPREAD_WIDTH = 4.0  # of the penalty on the floor, relative to that on variances: little is known of it
_LEAST_FLOOR = 1e-3  # of the typical noise: with less, actions that always earn the same would decide everything
_FLOOR = 3e-3  # the same: where the search for the floor begins, and the penalty's centre
_ROOM = 24  # for components of an action, on average, before more is made
_NEAR_CURVATURE = 0.1 * STEP  # how far sites settle for differences of the gradient
_MOST_STEPS, _FURTHEST_STEP = 8, 1.0  # of Newton's method
_NEARBY = 0.1  # how far, as a logarithm, the curvature stays about what it is
_NO_LESS = 1e-2  # as a log evidence
_ENOUGH = 3  # rewards of an action whose own variance tells where to begin, and such actions
_NEARLY_NONE = 1e-6  # of the usual variance
_ROUNDING = 1e-12  # of an action's mean square


class NoiseEvidence(ScalarEvidence):
    """The log evidence in d = 1; parameters are log-variances by group, then the logs of median, spread and floor."""

    flat = 5e-3
    is_slow = True

    def __init__(
        self,
        forest: Forest,
        variance: Floats,
        group: Integers,
        mean: float | None,
        penalty: Penalty | None,
        alike: Floats | None = None,  # the best parameters with one noise variance for all, where the search begins
        alike_converged: bool = False,
    ) -> None:
        super().__init__(forest, variance, group, 1.0, True, mean, penalty)
        sums = forest.statistics
        averages, within = sums.averages_and_spreads()
        self._sums = np.stack([sums.count, averages - self._centre, within], axis=1)
        self._slots = np.empty(len(sums.actions), dtype=np.int32)
        slots = np.flatnonzero(forest.leaf >= 0)
        self._slots[forest.leaf[slots]] = slots
        self._state = np.zeros((len(forest.parent), 6))
        self._where = np.zeros((len(sums.actions), kernels.REACH + 1))
        self._pool = np.zeros((kernels.SLOPE + 1, _ROOM * len(sums.actions)))
        # What was asked for last: the noise, whose mixtures are in the pool, and the variances; and what was found.
        self._noise: PerAction | None = None
        self._grid = self._variance = np.empty(0)
        self._found, self._moved = (math.nan, np.empty(0)), math.inf
        self._curved_at = self._curvature = np.empty(0)  # where the curvature was found, and what it was
        self._near = _ROUGH
        free = float((sums.count - 1.0).sum())
        self._pooled = float(within.sum()) / free if free > 0.0 else 0.0
        guess = self._guess(sums.count, within)
        precision = (sums.count + 1.0) * sums.count / (within + guess.median + sums.count * guess.floor)
        self._sites = np.stack([precision, precision * self._sums[:, 1]], axis=1)
        self._start: Floats = np.log(np.append(self._size, guess))
        self._alike, self._alike_converged = alike, alike_converged
        if alike is not None:
            first = self._start[: self.n_groups]
            self._start[: self.n_groups] = np.clip(alike[:-1], first - _FURTHEST_START, first + _FURTHEST_START)
        self._least_log_floor = math.log(_LEAST_FLOOR * guess.median)

    def _guess(self, count: Floats, within: Floats) -> PerAction:
        """Where the search begins: the spread of the actions' own variances, less what few rewards make of it."""
        least = LEAST_NOISE * self.forest.reward_variance()
        own = within / np.maximum(count - 1.0, 1.0)
        squares = self.forest.statistics.sum_yy / np.maximum(count, 1.0)
        several = (count >= _ENOUGH) & (own > _ROUNDING * squares)
        if several.any():  # nor those that nearly always earn the same
            several &= own > _NEARLY_NONE * float(np.median(own[several]))
        if several.sum() >= _ENOUGH:
            free = count[several] - 1.0
            logs = np.log(own[several])
            # The logarithm of a mean of n squares is about 1/n too low, and varies by about 2/n.
            median = float(np.exp(np.median(logs + 1.0 / free)))
            spread = math.sqrt(max(float(logs.var() - (2.0 / free).mean()), 0.04))
        else:
            total = self._pooled
            if not total > least:
                total = math.exp(self.penalty.centre_of_noise) if self.penalty is not None else 1e8 * least
            median, spread = 0.5 * total, 0.5
        return PerAction(median, min(spread, 3.0), _FLOOR * median)

    @property
    def n_noise(self) -> int:
        return 3

    def prepare(self) -> None:
        """Newton's method, with the curvature at the start, for as long as that gains: few evaluations, if it works.

        The floor is a number here, and not a logarithm, since the evidence is about quadratic in that.
        """
        first, unit = self._start, 1.0 / np.sqrt(self.curvature())
        least, most = np.full((2, len(unit)), [[-np.inf], [np.inf]])
        least[-2:] = math.log(_LEAST_SPREAD), self._least_log_floor
        most[-2] = math.log(_MOST_SPREAD)
        self._near = _NEAR_CURVATURE
        value, gradient = self.value_and_gradient(first)
        curvature = super().information(first, np.arange(len(first)))
        curvature[-1, -1] += gradient[-1]
        self._curved_at, self._curvature = first, curvature
        for _ in range(_MOST_STEPS):
            free = np.flatnonzero(
                ((self._start > least) | (gradient > 0.0)) & ((self._start < most) | (gradient < 0.0))
            )
            slope = float(np.abs(gradient * unit)[free].max())
            block = curvature[np.ix_(free, free)]
            if slope <= self.flat or np.linalg.eigvalsh(block)[0] <= 0.0:
                return
            self.expect(slope)
            floor = math.exp(self._start[-1] - first[-1])
            gradient[-1] /= floor
            step = np.zeros(len(first))
            step[free] = np.clip(np.linalg.solve(block, gradient[free]), -_FURTHEST_STEP, _FURTHEST_STEP)
            step[-1] = math.log(max(floor + step[-1], 1e-300)) - math.log(floor)
            ahead = np.clip(self._start + step, least, most)
            value_ahead, gradient = self.value_and_gradient(ahead)
            if value_ahead < value:
                return
            self._start, value = ahead, value_ahead

    def information(self, parameters: Floats, free: Integers) -> Floats:
        moved = parameters - self._curved_at
        if np.abs(moved[free]).max(initial=0.0) <= _NEARBY:
            scale: Floats = np.append(np.ones(len(moved) - 1), math.exp(moved[-1]))  # the floor's is by the number
            return (self._curvature * scale[:, None] * scale)[np.ix_(free, free)]
        self._near = _NEAR_CURVATURE
        return super().information(parameters, free)

    def start(self) -> Floats:
        return np.array(self._start)

    def lowest(self, start: Floats, furthest: float, least_log_noise: float) -> Floats:
        found = np.full(len(start), -furthest)
        found[-3:] = np.array([least_log_noise, math.log(_LEAST_SPREAD), self._least_log_floor]) - start[-3:]
        return np.asarray(np.minimum(found, 0.0), dtype=np.float64)

    def highest(self, start: Floats) -> Floats:
        found = super().highest(start)
        found[-2] = max(math.log(_MOST_SPREAD) - start[-2], 0.0)
        return found

    def are_free(self, parameters: Floats) -> Flags:
        found = super().are_free(parameters)
        found[-2] = math.log(_LEAST_SPREAD) + 1e-6 < parameters[-2] < math.log(_MOST_SPREAD) - 1e-6
        found[-1] = parameters[-1] > self._least_log_floor + 1e-6
        return found

    def curvature(self) -> Floats:
        nodes, n = self.by_group(self.forest.nodes_of_class.astype(np.float64)), len(self._sums)
        return np.append(1.0 + 0.5 * nodes, [1.0 + 0.5 * n, 1.0 + n, 1.0])

    def unpacked(self, parameters: Floats) -> tuple[Floats, Any]:
        """The variances by class, and the law of the noise."""
        variance = self._base.copy()
        variance[self.learned] *= np.exp(parameters[self.group[self.learned]])
        median, spread, floor = np.exp(parameters[-3:]).tolist()
        return variance, PerAction(median, spread, floor)

    def noise_numbers(self, noise: Any) -> list[float]:
        return list(noise)

    def mean_noise(self, noise: Any) -> float:
        # That of the log, where it can be seen: few actions, seldom tried, make up most of the mean of a wide law.
        return self._pooled or float(noise.floor + noise.median * math.exp(0.5 * noise.spread**2))

    def simplest(self, parameters: Floats, converged: bool) -> tuple[Floats, bool]:
        """One noise variance for all, where that has no less evidence than the least spread that was tried."""
        if self._alike is None or parameters[-2] > math.log(1.01 * _LEAST_SPREAD):
            return parameters, converged
        noise = math.exp(self._alike[-1])
        floor = _LEAST_FLOOR * noise
        without = np.append(self._alike[:-1], [math.log(noise - floor), -math.inf, math.log(floor)])
        best, _ = self.evidence(*self.unpacked(parameters))
        if self.evidence(*self.unpacked(without))[0] < best - _NO_LESS:
            return parameters, converged
        return without, self._alike_converged

    def expect(self, slope: float) -> None:
        """Have sites settle no further than matters where the slope is of this size."""
        self._near = min(max(_NEAR * slope, _STILL), _ROUGH)

    def evidence(self, variance: Floats, noise: Any) -> tuple[float, Floats]:
        """The log evidence, with its gradient by all log-variances and by the logs of what says the noise."""
        variance = np.ascontiguousarray(variance)
        if noise != self._noise:
            self._noise, self._grid, self._moved = noise, noise_grid(noise, FIT), math.inf
            self._mix(variance)
        if self._moved > self._near or not np.array_equal(variance, self._variance):
            self._variance = variance.copy()
            self._found = self._settled(variance)
            if not math.isfinite(self._found[0]):
                self._sites[:] = 0.0  # where an evaluation has gone astray, the next begins anew
                self._found = self._settled(variance)
        return checked_evidence(self._found[0]), self._found[1]

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        variance, noise = self.unpacked(parameters)
        value, gradient = self.evidence(variance, noise)
        chosen = np.append(self.by_group(gradient[:-3]), gradient[-3:])
        if self.penalty is None:
            return value, chosen
        width, centre = self.penalty.width, self.penalty.centre_of_noise
        off = (parameters - self.penalty.centre) / width
        off[-3:] = (parameters[-3] - centre) / width, 0.0, 0.0
        pull = off / width
        off[-1] = (parameters[-1] - centre - math.log(_FLOOR)) / (_SPREAD_WIDTH * width)
        pull[-1] = off[-1] / (_SPREAD_WIDTH * width)
        return value - 0.5 * float(off @ off), chosen - pull

    def _mix(self, variance: Floats) -> None:
        """Make all mixtures, in a pool that has room for them."""
        grid, own = self._grid, variance[self.forest.class_[self._slots]]
        scratch, begin, n = np.empty((2, room_for(grid))), 0, len(self._sums)
        while (begin := kernels.mix(begin, self._sums, own, grid, self._where, self._pool, scratch)) < n:
            self._pool = np.concatenate([self._pool, np.zeros((len(self._pool), begin + scratch.shape[1]))], axis=1)

    def _settled(self, variance: Floats) -> tuple[float, Floats]:
        """Settle the sites and the mean; the log evidence and its gradient, NaN where that comes to no end."""
        forest, state, grid = self.forest, self._state, self._grid
        top, part, of_noise = np.empty(2), np.empty((6, room_for(grid))), np.empty(3)
        offset = 0.0 if self._given_mean is None else self._given_mean - self._centre
        for sweep in range(_MOST_SWEEPS):
            size = 1.0 if sweep < BOLD else 0.5
            mass = kernels.collect(forest.parent, forest.class_, forest.leaf, variance, self._sites, state, top)
            if self._given_mean is None:
                offset = top[1] / top[0] if top[0] > 0.0 else 0.0
            kernels.share(forest.parent, forest.class_, variance, offset, state)
            surplus, self._moved, outgrown = kernels.integrate(
                self._slots, self._sums, grid, self._where, self._pool, state, size, self._sites, part, of_noise
            )
            self.advance(1)
            if outgrown:
                self._mix(variance)
            elif self._moved <= self._near:
                break
        else:
            return math.nan, of_noise
        gradient = np.empty(len(variance))
        kernels.slopes(forest.parent, forest.class_, variance, state, gradient)
        self.mean = float(self._centre + offset)
        self.mean_error = 1.0 / math.sqrt(max(top[0], 1e-300)) if self._given_mean is None else 0.0
        value = surplus + mass + offset * top[1] - 0.5 * offset * offset * top[0]
        return float(value), np.append(gradient, of_noise)
