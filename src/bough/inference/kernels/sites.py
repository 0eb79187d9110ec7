"""Sites: the Gaussian factor that stands for an action's counts in a given cavity, by quadrature."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.likelihoods import BERNOULLI, POISSON, log_likelihood, slopes


def _quadrature(n: int) -> tuple[Floats, Floats]:
    """The points of Gauss-Hermite quadrature, and the logarithms of weight over density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights) - 0.5 * math.log(2.0 * math.pi) + 0.5 * nodes**2


def _pairs(sizes: tuple[int, ...]) -> tuple[Floats, Floats, Integers]:
    """The positive points of Gauss-Hermite rules of even sizes, one after the other; weights; where each begins."""
    rules = [np.polynomial.hermite_e.hermegauss(n) for n in sizes]
    nodes, weights = (np.concatenate([rule[i][n // 2 :] for rule, n in zip(rules, sizes, strict=True)]) for i in (0, 1))
    return nodes, weights / math.sqrt(2.0 * math.pi), np.cumsum([0, *(n // 2 for n in sizes)])


_NODES, _LOG_WEIGHTS = _quadrature(32)
_FEW_NODES, _FEW_LOG_WEIGHTS = _quadrature(12)
_NARROW = 0.5  # a cavity's variance times trials up to which few points are enough: they are off by 1e-9 then
_STRAIGHT = 3e-3  # the same for counts: the square of the third derivative, in units of the tilted density's width,
_SHORT = 0.2  # and the variance of that density
# One trial alone needs no mode. With so many points, up to these variances, its moments are off by 4e-10 at most.
_PAIRS, _PAIR_WEIGHTS, _FIRST_PAIR = _pairs((6, 10, 16, 24, 32, 48))
_UP_TO = np.array([0.07, 0.25, 0.5, 0.75, 1.2, 2.0])
_SURE = 30.0  # a score beyond which one of the outcomes is as good as certain
_FAR = 8.0  # standard deviations that a cavity reaches
_FAINT = 1e-7  # what counts add to a cavity, relative to its precision, below which the site is a Taylor expansion


@kernel
def _lambert(x: float) -> float:
    """The w with w + log(w) = x."""
    if x < -30.0:
        return math.exp(x)
    w = x - math.log(x) if x > 1.0 else math.exp(x) / (1.0 + math.exp(x))
    for _ in range(6):
        w *= (1.0 + x - math.log(w)) / (1.0 + w)
    return w


@kernel
def _mode(family: int, total: float, exposure: float, mean: float, v: float) -> float:
    """Where the likelihood times the normal density of this mean and variance is highest: Newton in a bracket.

    Clicks: between the mean and where the likelihood alone is highest, and no further than the slope at the mean can
    pull. Counts: Lambert's function has the answer, but for rounding.
    """
    low, high, score = -math.inf, math.inf, mean
    if family == BERNOULLI:
        pull, _ = slopes(family, total, exposure, mean)
        peak = math.log(total) if total > 0.0 else -math.inf
        peak -= math.log(exposure - total) if exposure > total else -math.inf
        low = max(mean + v * pull, peak) if pull < 0.0 else mean
        high = min(mean + v * pull, peak) if pull > 0.0 else mean
    else:
        score = mean + v * total
        score -= _lambert(math.log(v * exposure) + score)
    before = math.inf
    for _ in range(100):
        slope, curve = slopes(family, total, exposure, score)
        slope -= (score - mean) / v
        curve -= 1.0 / v
        if slope > 0.0:
            low = score
        else:
            high = score
        step = -slope / curve
        sound = low < score + step < high and abs(step) < 0.5 * before  # or Newton would go back and forth
        if not sound and low > -math.inf and high < math.inf:
            step = 0.5 * (low + high) - score
        score += step
        before = abs(step)
        if before * math.sqrt(-curve) < 1e-6:  # so that the quadrature is a smooth function of its arguments
            break
    return score


@kernel
def tilted(family: int, total: float, exposure: float, mean: float, v: float) -> tuple[float, float, float]:
    """The log of the integral, the mean and the variance of the likelihood of counts times a normal density.

    Gauss-Hermite quadrature around the mode, in units of the curvature there.
    """
    centre = _mode(family, total, exposure, mean, v)
    _, curve = slopes(family, total, exposure, centre)
    scale = 1.0 / math.sqrt(1.0 / v - curve)
    top = log_likelihood(family, total, exposure, centre) - 0.5 * (centre - mean) ** 2 / v
    nodes, log_weights = _NODES, _LOG_WEIGHTS
    narrow = family == BERNOULLI and v * exposure <= _NARROW
    if family == POISSON and scale * scale <= _SHORT:
        narrow = (curve * scale**3) ** 2 <= _STRAIGHT  # the third derivative of a rate is the second
    if narrow:
        nodes, log_weights = _FEW_NODES, _FEW_LOG_WEIGHTS
    z, first, second = 0.0, 0.0, 0.0
    for k in range(len(nodes)):
        score = centre + scale * nodes[k]
        height = log_likelihood(family, total, exposure, score) - 0.5 * (score - mean) ** 2 / v
        weight = math.exp(height - top + log_weights[k])
        z += weight
        first += weight * nodes[k]
        second += weight * nodes[k] ** 2
    first /= z
    variance = scale * scale * (second / z - first * first)
    return top + math.log(z * scale) - 0.5 * math.log(v), centre + scale * first, variance


@kernel
def _one_trial(score: float, v: float) -> tuple[float, float, float]:
    """The log of E sigmoid(s), s normal with this mean and this variance of at most 2, and its first two derivatives.

    They are by the mean, and the second comes with its sign changed. With p = sigmoid(s), q = 1 - p and a = E p, they
    are g = E pq / a and g^2 - E pq(q - p) / a, in which everything is positive but for the last difference.
    """
    rule = 0
    while v > _UP_TO[rule]:
        rule += 1
    deviation = math.sqrt(v)
    odds = math.exp(-score)  # against, at the mean
    a, b, c = 0.0, 0.0, 0.0  # E p, E pq, E ppq
    for k in range(_FIRST_PAIR[rule], _FIRST_PAIR[rule + 1]):
        far = math.exp(-deviation * _PAIRS[k])
        above, below = odds * far, odds / far
        both = 1.0 / ((1.0 + above) * (1.0 + below))
        p_above, p_below = both * (1.0 + below), both * (1.0 + above)
        pq_above, pq_below = p_above * p_above * above, p_below * p_below * below
        a += _PAIR_WEIGHTS[k] * (p_above + p_below)
        b += _PAIR_WEIGHTS[k] * (pq_above + pq_below)
        c += _PAIR_WEIGHTS[k] * (p_above * pq_above + p_below * pq_below)
    slope = b / a
    return math.log(a), slope, 2.0 * c / a - slope * (1.0 - slope)


@kernel
def site(
    family: int, total: float, exposure: float, mean: float, offset: float, v: float
) -> tuple[float, float, float]:
    """The precision and the information of the Gaussian that changes a cavity's moments as counts do.

    The cavity's mean is mean + offset; the information is about the deviation from the mean. Also returns how probable
    the counts are in the cavity, as a logarithm.
    """
    score = mean + offset
    if family == BERNOULLI and exposure == 1.0 and v <= _UP_TO[-1] and abs(score) <= _SURE:
        sign = 1.0 if total == 1.0 else -1.0
        probability, slope, curve = _one_trial(sign * score, v)
        curve = max(curve, 0.0)  # by rounding: the likelihood is log-concave
        rest = 1.0 - v * curve
        return curve / rest, (sign * slope + curve * offset) / rest, probability
    slope, curve = slopes(family, total, exposure, score)
    reach = _FAR * math.sqrt(v)  # the likelihood has to be faint wherever the cavity is
    nearest = score + reach if family == POISSON else max(abs(score) - reach, 0.0)
    _, steepest = slopes(family, total, exposure, nearest)
    if -steepest * v < _FAINT and abs(slope) * math.sqrt(v) < 1e-3:
        probability = log_likelihood(family, total, exposure, score) + 0.5 * v * (curve + slope * slope)
        return -curve, slope - curve * offset, probability
    probability, centre, variance = tilted(family, total, exposure, score, v)
    if not variance < v:  # by rounding: the likelihood is log-concave
        variance = v
    return 1.0 / variance - 1.0 / v, (centre - mean) / variance - offset / v, probability
