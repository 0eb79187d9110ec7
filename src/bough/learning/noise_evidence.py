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
from bough.inference.kernels import forest as forest_kernels
from bough.inference.kernels import noisy, scalar, scalar_draws
from bough.inference.noise_grid import FINE, ROUGH, noise_grid, room_for
from bough.inference.slots import grown
from bough.learning.count_evidence import checked_evidence
from bough.learning.forest import Forest
from bough.learning.objective import Penalty
from bough.learning.scalar_evidence import ScalarEvidence
from bough.model.model import Model
from bough.model.noise import PerAction

_FURTHEST_START = 5.0  # from equal shares, as logarithms
_BOLD, _MOST_SWEEPS = 20, 200
_STILL = 1e-8  # how far a cavity may move, in its standard deviations, and a site stay as it is
_NEAR = 1e-2  # the same during the search, as a share of the slope
_ROUGH = 1e-2  # the same, at most
_LEAST_SPREAD, _MOST_SPREAD = 0.02, 8.0  # a spread that comes out as the least is asked whether it is zero
_SPREAD_WIDTH = 4.0  # of the penalty on the floor, relative to that on variances: little is known of it
_LEAST_FLOOR = 1e-3  # of the typical noise: with less, actions that always earn the same would decide everything
_FLOOR = 3e-3  # the same: where the search for the floor begins, and the penalty's centre
_ENOUGH = 3  # rewards of an action whose own variance tells where to begin


class NoiseEvidence(ScalarEvidence):
    """The log evidence in d = 1; parameters are log-variances by group, then the logs of median, spread and floor."""

    flat = 1e-3
    is_slow = True

    def __init__(
        self,
        forest: Forest,
        variance: Floats,
        group: Integers,
        mean: float | None,
        penalty: Penalty | None,
        model: type[Model],  # noqa: ARG002
    ) -> None:
        super().__init__(forest, variance, group, 1.0, True, mean, penalty)
        sums = forest.statistics
        averages, within = sums.averages_and_spreads()
        self._leaves = np.flatnonzero(forest.leaf >= 0).astype(np.int32)
        self._roots = np.flatnonzero(forest.parent < 0)
        self._state = np.zeros((len(forest.parent), 4))
        self._law = np.zeros((len(forest.parent), 3))
        self._rows = np.zeros((len(sums.actions), 7))  # evidence, with sites
        self._rows[:, 0], self._rows[:, 1], self._rows[:, 2] = sums.count, averages, within
        self._rows[:, noisy.WIDTH] = -1.0
        self._where = np.zeros((len(sums.actions), 6))
        self._pool = np.zeros((1, 3))
        self.mean = self._first_mean = self._centre if mean is None else mean
        self._near = _STILL
        self._fineness = ROUGH
        self._size_off = np.zeros(len(self._size))
        self._first_noise = self._guess(sums.count, within)
        self._least_log_floor = math.log(_LEAST_FLOOR * self._first_noise.median)

    def _guess(self, count: Floats, within: Floats) -> PerAction:
        """Where the search begins: the spread of the actions' own variances, less what few rewards make of it."""
        total = max(float(within.sum()) / max(float((count - 1.0).sum()), 1.0), 1e-300)
        if not within.any():
            total = (
                math.exp(self.penalty.centre_of_noise) if self.penalty is not None else self.forest.reward_variance()
            )
        several = (count >= _ENOUGH) & (within > 1e-6 * total * count)
        median, spread = 0.5 * total, 0.5
        if several.sum() >= _ENOUGH:
            free = count[several] - 1.0
            logs = np.log(within[several] / free)
            # The logarithm of a mean of n squares is about 1/n too low, and varies by about 2/n.
            median = float(np.exp(np.median(logs + 1.0 / free)))
            spread = math.sqrt(max(float(logs.var() - (2.0 / free).mean()), 0.04))
        return PerAction(median, min(spread, 3.0), _FLOOR * median)

    @property
    def n_noise(self) -> int:
        return 3

    def begin_at(self, log_sizes: Floats) -> None:
        """Have the search begin at these sizes: where it ends with one noise variance for all, which is found soon."""
        self._size_off = np.clip(log_sizes - np.log(self._size), -_FURTHEST_START, _FURTHEST_START)

    def start(self) -> Floats:
        return np.append(np.log(self._size) + self._size_off, np.log(np.array(self._first_noise)))

    def lowest(self, start: Floats, furthest: float, least_log_noise: float) -> Floats:
        found = np.full(len(start), -furthest)
        found[-3:] = np.array([least_log_noise, math.log(_LEAST_SPREAD), self._least_log_floor]) - start[-3:]
        return np.asarray(np.minimum(found, 0.0), dtype=np.float64)

    def are_free(self, parameters: Floats) -> Flags:
        found = super().are_free(parameters)
        found[-2] = parameters[-2] > math.log(_LEAST_SPREAD) + 1e-6
        found[-1] = parameters[-1] > self._least_log_floor + 1e-6
        return found

    def curvature(self) -> Floats:
        nodes, n = self.by_group(self.forest.nodes_of_class.astype(np.float64)), len(self._rows)
        return np.append(1.0 + 0.5 * nodes, [1.0 + 0.5 * n, 1.0 + n, 1.0])

    def unpacked(self, parameters: Floats) -> tuple[Floats, Any]:
        """The variances by class, and the law of the noise."""
        variance = self._base.copy()
        variance[self.learned] *= np.exp(parameters[self.group[self.learned]])
        median, spread, floor = np.exp(parameters[-3:]).tolist()
        return variance, PerAction(median, min(spread, _MOST_SPREAD), floor)

    def noise_numbers(self, noise: Any) -> list[float]:
        return list(noise)

    def mean_noise(self, noise: Any) -> float:
        return float(noise.floor + noise.median * math.exp(0.5 * noise.spread**2))

    def settled_noise(self, covariance: Floats, noise: Any) -> Any:
        """A spread of zero, where that has no less evidence than the least that was tried."""
        if noise.spread > 1.01 * _LEAST_SPREAD:
            return noise
        without = noise._replace(spread=0.0, median=noise.median * math.exp(0.5 * noise.spread**2))
        best, _ = self.evidence(covariance, noise)
        return without if self.evidence(covariance, without)[0] >= best - 1e-3 else noise

    def size_errors(self, parameters: Floats) -> Floats:
        """As `Objective.size_errors`, by rough sums: the curvature of the evidence needs no more."""
        self._fineness, self._near = ROUGH, _STILL
        try:
            return super().size_errors(parameters)
        finally:
            self._fineness = FINE

    def refine(self) -> None:
        self._fineness = FINE

    def expect(self, slope: float) -> None:
        """Have sites settle no further than matters where the slope is of this size."""
        self._near = min(max(_NEAR * slope, _STILL), _ROUGH)

    def evidence(self, variance: Floats, noise: Any) -> tuple[float, Floats]:
        """The log evidence, with its gradient by all log-variances and by the logs of what says the noise."""
        forest, state = self.forest, self._state
        variance, grid = np.ascontiguousarray(variance), noise_grid(noise, self._fineness)
        self._mix(variance, grid)
        if not self._settled(variance):
            self._forget()  # where an evaluation has gone astray, the next begins anew
            self._settled(variance)
        m = float(state[self._roots, scalar.M_SENT].sum())
        self.mean_error = 1.0 / math.sqrt(max(m, 1e-300)) if self._given_mean is None else 0.0
        nothing, scratch = np.zeros(len(state)), self._scratch
        gradient, of_noise = np.empty(len(variance) + 1), np.empty(3)
        forest_kernels.spread(
            forest.parent, forest.class_, nothing, nothing, variance, 1.0, 0.0, state[:, scalar.M].copy(),
            state[:, scalar.ETA].copy(), scratch[2], scratch[3], gradient,
        )  # fmt: skip
        surplus = noisy.noise_gradient(
            self._leaves, forest.leaf, self.mean, forest.parent, forest.class_, variance, self._rows, grid,
            self._where, self._pool, state, of_noise,
        )  # fmt: skip
        value = surplus + scalar_draws.log_mass(forest.class_, variance, state)
        return checked_evidence(float(value)), np.append(gradient[:-1], of_noise)

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

    def _mix(self, variance: Floats, grid: Floats) -> None:
        """Make all mixtures, in a pool that has room for them."""
        scratch = np.empty((2, room_for(grid) + noisy.CHUNK))
        self._pool[0] = 0.0
        self._where[:] = 0.0
        slots = self._leaves
        while len(slots):
            done = noisy.mix(
                slots, self.forest.leaf, self.forest.class_, variance, self._rows, grid, self._where, self._pool,
                scratch,
            )  # fmt: skip
            slots = slots[done:]
            if len(slots):
                self._pool = grown(self._pool, 2 * len(self._pool) + len(scratch[0]))

    def _forget(self) -> None:
        """Go back to where the first evaluation began."""
        self._state[:] = 0.0
        self._rows[:, noisy.WIDTH] = -1.0
        self.mean = self._first_mean

    def _settled(self, variance: Floats) -> bool:
        """Settle the sites and the mean; whether that came to an end."""
        state, forest = self._state, self.forest
        self._rows[:, noisy.WIDTH] = -1.0  # mixtures are others than they were
        self._collect(variance)
        for sweep in range(_MOST_SWEEPS):
            size = 1.0 if sweep < _BOLD else 0.5
            moved = noisy.sweep(
                self._leaves, forest.leaf, self.mean, forest.parent, forest.class_, variance, self._rows, self._where,
                self._pool, state, self._law, size, self._near,
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
            if not moved and abs(step) * math.sqrt(m) <= self._near:
                return True
            self.mean += step
            state[self._leaves, scalar.ETA] -= state[self._leaves, scalar.M] * step
            self._rows[:, noisy.CAVITY] -= step  # a deviation from the mean, as all
            self._collect(variance)
        return False

    def _collect(self, variance: Floats) -> None:
        """Have every node collect anew what its leaves say."""
        forest = self.forest
        scalar.remake(forest.parent, forest.class_, forest.leaf, variance, self._state, self._law)
