"""Intervals of a policy's value: normal, Cressie-Read, and one that may be looked at again and again.

Cressie-Read. The law of a row is taken to be that of the log and of one more row, which was not seen and is as bad as
it can be: of weight 0 or without limit, and of the lowest (for the upper end the highest) outcome. Among all ways to
weigh these n + 1 rows that sum to 1, have a mean weight of 1, and are no further from equal weights than the quantile
of an F distribution allows by the Cressie-Read divergence of power -2, the least mean of z = w r is the lower end. The
divergence is a sum of squares, so the least mean is the regression of z on w at w = 1 less a multiple of the residual
deviation: a few sums are enough. (Karampatziakis, Langford and Mineiro, "Empirical likelihood for contextual bandits",
arXiv 1906.03323; the package vw-estimators is the reference.)

Anytime. Bet against a value v of the policy: with z_t >= 0 of mean v given the past, and a share b < 1 of what one has,
the capital grows by 1 + b (z_t - v), which is 1 on average. By Ville's inequality it ever reaches 1 / alpha with
probability alpha at most. So all v against which it never did are an interval that holds at all times at once, however
often one looks and whenever one stops. The capital is shared out among bets of many sizes, so that one is about right;
it does not depend on the order of the rows then, and falls as v grows. z is w y, with y scaled to 0 to 1; the upper end
comes from 1 - y. (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, "Anytime-valid off-policy inference for
contextual bandits", arXiv 2210.10768.)
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from bough._arrays import Floats
from bough.evaluation.totals import Totals

_BETS = 0.9 * 0.5 ** np.arange(16)  # the least are for large weights and many rows
_AT_ONCE = 100_000  # rows whose bets are computed together


class Ends(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float

    def moved(self, by: float, limits: tuple[float, float]) -> Ends:
        """The same further up, within limits."""
        low, high = (min(max(end + by, limits[0]), limits[1]) for end in self)
        return Ends(low, high)


NOTHING = Ends(math.nan, math.nan)


def normal(value: float, error: float, level: float) -> Ends:
    """The usual interval: as many standard errors to either side as a normal distribution has."""
    width = NormalDist().inv_cdf(0.5 + 0.5 * level) * error
    return Ends(value - width, value + width)


# -- Cressie-Read --------------------------------------------------------------------------------


def cressie_read(totals: Totals, level: float) -> Ends:
    """The interval of the mean of z = w r."""
    sums = _Sums(totals.n, totals.w, totals.ww, totals.z, totals.wz, totals.zz)
    limit = _distance(totals, level)
    low = _least(sums, totals.lowest, totals.base_low, limit)
    high = _least(sums.negative(), -totals.highest, -totals.base_high, limit)
    return Ends(-math.inf if low is None else low, math.inf if high is None else -high)


def cressie_read_lift(totals: Totals, level: float, reward_range: tuple[float, float]) -> Ends:
    """The interval of the mean of z - y: what the policy earns beyond the log."""
    lift = _Sums(
        totals.n,
        totals.w,
        totals.ww,
        totals.z - totals.y,
        totals.wz - totals.wy,
        totals.zz - 2.0 * totals.zy + totals.yy,
    )
    limit = _distance(totals, level)
    low = _least(lift, totals.lowest, totals.base_low - reward_range[1], limit)
    high = _least(lift.negative(), -totals.highest, reward_range[0] - totals.base_high, limit)
    return Ends(-math.inf if low is None else low, math.inf if high is None else -high)


class _Sums(NamedTuple):
    n: float
    w: float
    ww: float
    z: float
    wz: float
    zz: float

    def negative(self) -> _Sums:
        return self._replace(z=-self.z, wz=-self.wz)


def _distance(totals: Totals, level: float) -> float:
    """How far weights may be from equal ones: as near as those that the mean weight asks for, and a quantile more."""
    from scipy.special import fdtri  # takes longer to load than all the rest

    n, more = totals.n, totals.n + 1.0
    if totals.w < n:
        least = 1.0 + 1.0 / n
    else:
        mean, square = totals.w / more, totals.ww / more
        least = more * (mean - 1.0) ** 2 / (square - mean**2)
    return float((least + fdtri(1.0, n, level)) / more)


def _least(sums: _Sums, slope: float, at_zero: float, limit: float) -> float | None:
    """The least mean of z, where one row more has z = at_zero + slope w, for w of 0 and beyond any limit."""
    candidates = []
    for residual, centre, cost in (_with_a_row_of_no_weight(sums, at_zero), _with_a_row_of_any_weight(sums, slope)):
        if limit >= cost:
            candidates.append(centre - math.sqrt(max(residual, 0.0) * (limit - cost)))
    return min(candidates) if candidates else None


def _with_a_row_of_no_weight(sums: _Sums, z: float) -> tuple[float, float, float]:
    """The variance that w leaves of z, the value of z at w = 1, and what it costs to have a mean weight of 1."""
    more = sums.n + 1.0
    w, ww, z_mean, wz, zz = sums.w / more, sums.ww / more, (sums.z + z) / more, sums.wz / more, (sums.zz + z * z) / more
    variance, covariance = ww - w * w, wz - w * z_mean
    if variance <= 0.0:
        return 0.0, z_mean, math.inf
    slope = covariance / variance
    return zz - z_mean**2 - slope * covariance, z_mean + (1.0 - w) * slope, (1.0 - w) ** 2 / variance


def _with_a_row_of_any_weight(sums: _Sums, slope: float) -> tuple[float, float, float]:
    """The same in the limit: the regression has to go through the row, and so has its slope."""
    n = sums.n
    rest = sums.z - slope * sums.w
    squares = sums.zz - 2.0 * slope * sums.wz + slope**2 * sums.ww
    return (squares - rest**2 / n) / (n + 1.0), slope + rest / n, 1.0 / n


# -- anytime -------------------------------------------------------------------------------------


def anytime(weight: Floats, reward: Floats, level: float, reward_range: tuple[float, float]) -> Ends:
    """The interval of a policy's value that holds at all times at once."""
    low, high = reward_range
    scaled = (reward - low) / (high - low)
    alpha = 0.5 * (1.0 - level)
    least = _bound(weight * scaled, alpha)
    most = 1.0 - _bound(weight * (1.0 - scaled), alpha)
    return Ends(low + (high - low) * max(least, 0.0), low + (high - low) * min(most, 1.0))


def anytime_lift(weight: Floats, reward: Floats, level: float, reward_range: tuple[float, float]) -> Ends:
    """The same of what the policy earns beyond the log."""
    low, high = reward_range
    scaled = (reward - low) / (high - low)
    alpha = 0.5 * (1.0 - level)
    least = _bound(0.5 * (weight * scaled + 1.0 - scaled), alpha)
    most = _bound(0.5 * (weight * (1.0 - scaled) + scaled), alpha)
    return Ends((high - low) * max(2.0 * least - 1.0, -1.0), (high - low) * min(1.0 - 2.0 * most, 1.0))


def _bound(z: Floats, alpha: float) -> float:
    """The lower bound of the mean of z, which is not negative and has a mean of at most 1."""
    from scipy.optimize import brentq  # takes longer to load than all the rest
    from scipy.special import logsumexp

    values, counts = np.unique(z, return_counts=True)
    parts = [slice(start, start + _AT_ONCE) for start in range(0, len(values), _AT_ONCE)]

    def capital(v: float) -> float:
        """The logarithm of the capital, beyond what is needed to exclude v."""
        shares = sum(np.log1p(np.outer(_BETS, values[part] - v)) @ counts[part] for part in parts)
        return float(logsumexp(shares)) - math.log(len(_BETS) / alpha)

    if capital(0.0) <= 0.0:
        return 0.0
    return 1.0 if capital(1.0) >= 0.0 else float(brentq(capital, 0.0, 1.0, xtol=1e-9))
