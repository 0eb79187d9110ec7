"""The likelihoods of one action's rewards as functions of its score; one branch per kind of reward."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

# The kinds, by the `code` of each likelihood in `bough.model`.
GAUSSIAN, BERNOULLI, POISSON = range(3)

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_WIDE = 1.5  # a standard deviation beyond which the sigmoid is closer to a step than to a polynomial
_TAIL, _TAIL_WEIGHTS = np.polynomial.laguerre.laggauss(40)
_TAIL_WEIGHTS = _TAIL_WEIGHTS / (1.0 + np.exp(-_TAIL))  # times sigmoid(-x) e^x


@kernel
def slopes(family: int, total: float, exposure: float, score: float) -> tuple[float, float]:
    """The first and the second derivative of the log likelihood of counts, at a score."""
    if family == BERNOULLI:
        odds = math.exp(-abs(score))  # of the less likely outcome
        less = odds / (1.0 + odds)
        slope = total - exposure * less if score < 0.0 else exposure * less - (exposure - total)
        return slope, -exposure * less / (1.0 + odds)
    rate = exposure * math.exp(min(score, 700.0))
    return total - rate, -rate


@kernel
def log_likelihood(family: int, total: float, exposure: float, score: float) -> float:
    """The log likelihood of counts at a score, without what does not depend on it."""
    if family == BERNOULLI:
        return total * score - exposure * (max(score, 0.0) + math.log1p(math.exp(-abs(score))))
    return total * score - exposure * math.exp(min(score, 700.0))


@kernel
def slopes_of_all(
    family: int,
    totals: Floats,  # (n,)
    exposures: Floats,  # (n,)
    scores: Floats,  # (n,)
    first: Floats,  # (n,)
    second: Floats,  # (n,)
) -> None:
    """Overwrites first and second with the derivatives of the log likelihood of each count."""
    for i in range(len(totals)):
        first[i], second[i] = slopes(family, totals[i], exposures[i], scores[i])


@kernel
def log_likelihood_of_all(family: int, totals: Floats, exposures: Floats, scores: Floats) -> float:
    """The log likelihood of counts (n,) at their scores."""
    total = 0.0
    for i in range(len(totals)):
        total += log_likelihood(family, totals[i], exposures[i], scores[i])
    return total


@kernel
def drawn_reward(family: int, mean: float, noise: float) -> float:
    """The reward that this noise gives around this mean: their sum, or a quantile of a distribution of counts."""
    if family == GAUSSIAN:
        return mean + noise
    if family == BERNOULLI:
        return 1.0 if noise < mean else 0.0
    if mean == 0.0 or noise == 0.0:
        return 0.0
    # What lies at or below the mode, summed downward until it is nothing; from there step by step.
    k = float(math.floor(mean))
    mass = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1.0))
    below, term, j = 0.0, mass, k
    while term > 1e-20:
        below += term
        term *= j / mean
        j -= 1.0
    while k > 0.0 and below - mass >= noise:
        below -= mass
        mass *= k / mean
        k -= 1.0
    while below < noise and mass > 0.0:
        k += 1.0
        mass *= mean / k
        below += mass
    return k


@kernel
def mean_reward(family: int, score: float) -> float:
    """The mean reward where the score is known, as `Likelihood.mean_reward` has it."""
    if family == GAUSSIAN:
        return score
    if family == BERNOULLI:
        return 1.0 / (1.0 + math.exp(-score))
    return math.exp(score)


@kernel
def expected_reward(family: int, mean: float, variance: float) -> float:
    """The mean reward where the score is normal, as `Likelihood.expected_reward` has it."""
    if family == GAUSSIAN:
        return mean
    if family == POISSON:
        return math.exp(mean + 0.5 * variance)
    deviation = math.sqrt(variance)
    total = 0.0
    if deviation <= _WIDE:
        for k in range(len(_NODES)):
            total += _WEIGHTS[k] / (1.0 + math.exp(-mean - deviation * _NODES[k]))
        return total
    for k in range(len(_TAIL)):  # what the sigmoid differs from a step at zero, on either side of it
        right = math.exp(-0.5 * ((_TAIL[k] + mean) / deviation) ** 2)
        left = math.exp(-0.5 * ((_TAIL[k] - mean) / deviation) ** 2)
        total += _TAIL_WEIGHTS[k] * (right - left)
    step = 0.5 * math.erfc(-mean / (deviation * math.sqrt(2.0)))
    return step + total / (deviation * math.sqrt(2.0 * math.pi))
