"""The likelihoods of one action's rewards as functions of its score; one branch per kind of reward."""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

# The kinds, by the `code` of each likelihood in `bough.model`.
GAUSSIAN, BERNOULLI, POISSON = range(3)


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
