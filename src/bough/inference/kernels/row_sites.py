"""Sites of the rows of a log, all made again at once: those of one leaf stand one after the other."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.rotations import fold_dense
from bough.inference.kernels.sites import site

LEAST = 1e-12  # the smallest precision of a row: it has to say where it is
_CAVITY = 1e-10  # the least that is left of a precision once its own site is taken out: above zero but for rounding


@kernel
def remake_rows(
    family: int,
    size: float,  # of the step to the new sites: 1 is all of it
    first: Integers,  # (leaves + 1,) where the rows of each leaf begin
    totals: Floats,  # (n,)
    exposures: Floats,  # (n,)
    means: Floats,  # (n,) of the scores, under the prior
    contexts: Floats,  # (n, d)
    leaf_means: Floats,  # (leaves, d) of the posterior with the sites as they are, as deviations from the prior mean
    leaf_covariances: Floats,  # (leaves, d, d)
    precision: Floats,  # (n,)
    information: Floats,  # (n,)
) -> tuple[float, float]:
    """Moves precision and information towards the site of each row in its cavity.

    Returns how much more probable, as a logarithm, the counts are than the sites as they were, in the cavities; and
    the largest distance from an old site to its new one, in standard deviations of the row's score.
    """
    d = contexts.shape[1]
    surplus, furthest = 0.0, 0.0
    for leaf in range(len(first) - 1):
        m, c = leaf_means[leaf], leaf_covariances[leaf]
        for i in range(first[leaf], first[leaf + 1]):
            mean, variance = 0.0, 0.0
            for j in range(d):
                x = contexts[i, j]
                mean += x * m[j]
                total = 0.5 * x * c[j, j]
                for k in range(j):
                    total += contexts[i, k] * c[j, k]
                variance += 2.0 * x * total
            variance = max(variance, 0.0)  # by rounding, where the score is known
            tau, nu = precision[i], information[i]
            left = max(1.0 - variance * tau, _CAVITY)
            offset, width = (mean - variance * nu) / left, variance / left
            fresh_tau, fresh_nu, probability = site(family, totals[i], exposures[i], means[i], offset, width)
            fresh_tau = max(fresh_tau, LEAST)
            widening = 1.0 + width * tau
            of_site = (nu * offset - 0.5 * tau * offset * offset + 0.5 * width * nu * nu) / widening
            surplus += probability - of_site + 0.5 * math.log(widening)
            tau_off, nu_off = fresh_tau - tau, fresh_nu - nu
            moved = max(abs(nu_off - tau_off * mean) * math.sqrt(variance), abs(tau_off) * variance)
            if not moved <= furthest:
                furthest = moved if moved > furthest else math.inf  # also where it is no number
            precision[i] += size * tau_off
            information[i] += size * nu_off
    return surplus, furthest


@kernel
def triangles_of_rows(
    first: Integers,  # (leaves + 1,) where the rows of each leaf begin
    contexts: Floats,  # (n, d)
    means: Floats,  # (n,) of the scores, under the prior
    precision: Floats,  # (n,)
    information: Floats,  # (n,)
    triangles: Floats,  # (leaves, d, d + 1)
) -> None:
    """Overwrites triangles with a [R | z] for each leaf that says of its parameter what all of its sites do."""
    d = contexts.shape[1]
    row = np.empty(d + 1)
    triangles[:] = 0.0
    for leaf in range(len(first) - 1):
        for i in range(first[leaf], first[leaf + 1]):
            root = math.sqrt(precision[i])
            for j in range(d):
                row[j] = root * contexts[i, j]
            row[d] = information[i] / root + root * means[i]
            fold_dense(row, triangles[leaf])
