"""Totals: what every estimator and interval is computed from, whether the log came as sums or as rows.

Row i has the weight w = target's probability of the logged action / its propensity, the reward y, and an outcome r that
is weighted: the reward itself, or what a model did not foresee of it. z is w r, and in contexts what the model foresees
in addition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough._arrays import Flags, Floats
from bough.data.propensities import PropensitySums


class Totals(NamedTuple):
    """Sums over all rows of a log, for one policy and one outcome."""

    n: float
    w: float
    ww: float
    z: float
    wz: float
    zz: float
    y: float
    yy: float
    wy: float
    zy: float
    largest: float
    """The largest weight."""
    lowest: float
    """The lowest that an outcome r can be."""
    highest: float
    base_low: float = 0.0
    """The lowest that z can be where the weight is zero."""
    base_high: float = 0.0

    @property
    def mean_reward(self) -> float:
        """What the log itself earned per row."""
        return self.y / self.n

    @property
    def reward_variance(self) -> float:
        """The variance of the rewards."""
        return max(self.yy / self.n - self.mean_reward**2, 0.0)

    @property
    def mean_weight(self) -> float:
        """1 in expectation, where the propensities are right and nothing is missing from the log."""
        return self.w / self.n

    @property
    def weight_error(self) -> float:
        """The standard error of the mean weight."""
        return float(np.sqrt(max(self.ww / self.n - self.mean_weight**2, 0.0) / self.n))

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight would say as much."""
        return self.w**2 / self.ww if self.ww else 0.0


class Outcome(NamedTuple):
    """An outcome r = slope y + intercept, at every action or row; of arrays that broadcast."""

    slope: Floats
    intercept: Floats


PLAIN = Outcome(np.ones(()), np.zeros(()))
"""The reward itself."""


def of_sums(sums: PropensitySums, probabilities: Floats, outcome: Outcome, reward_range: tuple[float, float]) -> Totals:
    """The totals of a policy with (S, K) probabilities; the outcome's arrays are (S, K), too, or single numbers."""
    cell = sums.position, sums.place
    c = probabilities[cell]
    a, b = (part[cell] if part.ndim else part for part in outcome)
    low, high = _range(a, b, c > 0.0, reward_range)
    return Totals(
        n=sums.n_rows,
        w=float(c @ sums.ip),
        ww=float(c**2 @ sums.ipp),
        z=float(c @ (a * sums.y_ip + b * sums.ip)),
        wz=float(c**2 @ (a * sums.y_ipp + b * sums.ipp)),
        zz=float(c**2 @ (a**2 * sums.yy_ipp + 2.0 * a * b * sums.y_ipp + b**2 * sums.ipp)),
        y=float(sums.y.sum()),
        yy=float(sums.yy.sum()),
        wy=float(c @ sums.y_ip),
        zy=float(c @ (a * sums.yy_ip + b * sums.y_ip)),
        largest=float((c / sums.least_p).max(initial=0.0)),
        lowest=low,
        highest=high,
    )


def of_rows(
    weight: Floats,
    reward: Floats,
    outcome: Outcome,
    reward_range: tuple[float, float],
    foreseen: Floats | None = None,
) -> Totals:
    """The totals of rows with these weights; the outcome's arrays have one entry per row, or are single numbers."""
    a, b = outcome
    z = weight * (a * reward + b)
    if foreseen is not None:
        z = z + foreseen
    low, high = _range(a, b, weight > 0.0, reward_range)
    return Totals(
        n=float(len(weight)),
        w=float(weight.sum()),
        ww=float(weight @ weight),
        z=float(z.sum()),
        wz=float(weight @ z),
        zz=float(z @ z),
        y=float(reward.sum()),
        yy=float(reward @ reward),
        wy=float(weight @ reward),
        zy=float(z @ reward),
        largest=float(weight.max(initial=0.0)),
        lowest=low,
        highest=high,
        base_low=0.0 if foreseen is None else float(foreseen.min()),
        base_high=0.0 if foreseen is None else float(foreseen.max()),
    )


def _range(slope: Floats, intercept: Floats, matters: Flags, reward_range: tuple[float, float]) -> tuple[float, float]:
    """Between what the outcome of a row that matters can be."""
    if not np.ndim(slope):
        return float(slope * reward_range[0] + intercept), float(slope * reward_range[1] + intercept)
    if not matters.any():
        return reward_range
    a, b = slope[matters], intercept[matters]
    return float((a * reward_range[0] + b).min()), float((a * reward_range[1] + b).max())
