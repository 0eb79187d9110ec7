"""The log evidence and its gradient, over a forest of touched nodes: one rootward and one leafward pass.

A slot's parent comes before it; the roots of the forest have parent -1, and above them all is the prior mean. Unlike
the engines, which keep a posterior up to date, these start from the leaves' sums each time, for one set of variances
after another. docs/explanation/learned-priors.md derives the gradient.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.rotations import fold_dense

# -- parameters that are numbers -------------------------------------------------------------------


@kernel
def gather(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    count: Floats,  # (T,) rewards of a leaf; 0 inside
    average: Floats,  # (T,) theirs
    variance: Floats,  # (n_classes,)
    noise: float,
    M: Floats,  # (T,)
    eta: Floats,  # (T,)
    top: Floats,  # (2,)
) -> None:
    """Overwrites M and eta with what each slot collects from below, and top with what is sent to the prior mean."""
    top[:] = 0.0
    for slot in range(len(parent)):
        M[slot] = count[slot] / noise
        eta[slot] = count[slot] * average[slot] / noise
    for slot in range(len(parent) - 1, -1, -1):
        gain = 1.0 / (1.0 + variance[slot_class[slot]] * M[slot])
        above = parent[slot]
        if above >= 0:
            M[above] += gain * M[slot]
            eta[above] += gain * eta[slot]
        else:
            top[0] += gain * M[slot]
            top[1] += gain * eta[slot]


@kernel
def spread(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    count: Floats,  # (T,)
    average: Floats,  # (T,)
    variance: Floats,  # (n_classes,)
    noise: float,
    prior_mean: float,
    M: Floats,  # (T,)
    eta: Floats,  # (T,)
    mean: Floats,  # (T,)
    uncertainty: Floats,  # (T,)
    gradient: Floats,  # (n_classes + 1,)
) -> float:
    """Overwrites mean and uncertainty (the posterior's), and gradient: of the log evidence by the logarithms of the
    variances and, last, of the noise's, but for what the rewards' own spread adds. Returns the deviance without
    what depends on the rewards' number and spread alone.
    """
    gradient[:] = 0.0
    deviance = 0.0
    for slot in range(len(parent)):
        above = parent[slot]
        class_ = slot_class[slot]
        m = mean[above] if above >= 0 else prior_mean
        c = uncertainty[above] if above >= 0 else 0.0
        expected = eta[above] / M[above] if above >= 0 else prior_mean
        v = variance[class_]
        gain = 1.0 / (1.0 + v * M[slot])
        sent = gain * M[slot]
        surprise = gain * (eta[slot] - M[slot] * m)
        gradient[class_] += 0.5 * v * (surprise * surprise - sent * (1.0 - sent * c))
        mean[slot] = m + v * surprise
        uncertainty[slot] = v * gain + gain * gain * c
        deviance += sent * (eta[slot] / M[slot] - expected) ** 2 + math.log1p(v * M[slot])
        if count[slot] > 0.0:
            off = average[slot] - mean[slot]
            gradient[-1] += 0.5 * count[slot] * (off * off + uncertainty[slot]) / noise
    return deviance


# -- parameters that are vectors -------------------------------------------------------------------


@kernel
def gather_vectors(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    leaf: Nodes,  # (T,) which of the leaves' rows are this slot's; -1 inside
    rows: Floats,  # (leaves, d, d + 1) triangles of contexts, and rewards in the last column, in units of the noise
    factor: Floats,  # (n_classes, d, d) L, with L L' the covariance
    collected: Floats,  # (T, d, d + 1)
    solved: Floats,  # (T, d, 2 d + 1)
    top: Floats,  # (d, d + 1)
) -> float:
    """Overwrites collected with triangles of what each slot collects from below, solved with [C | E | f], and top
    with what is sent to the prior mean. Returns the deviance so far: log determinants and squared surprises.
    """
    d = factor.shape[1]
    collected[:] = 0.0
    solved[:] = 0.0
    top[:] = 0.0
    deviance = 0.0
    row = np.empty(2 * d + 1)
    left = np.empty(d + 1)
    for slot in range(len(parent) - 1, -1, -1):
        if leaf[slot] >= 0:
            collected[slot] = rows[leaf[slot]]
        L = factor[slot_class[slot]]
        own = solved[slot]
        for k in range(d):
            own[k, k] = 1.0
        for k in range(d):
            for j in range(d):  # [L'w | w | r], w being zero before k
                total = 0.0
                for i in range(k, d):
                    total += L[i, j] * collected[slot, k, i]
                row[j] = total
                row[d + j] = collected[slot, k, j]
            row[2 * d] = collected[slot, k, d]
            fold_dense(row, own)
            for j in range(d + 1):
                left[j] = row[d + j]
            above = parent[slot]
            fold_dense(left, collected[above] if above >= 0 else top)
            deviance += float(left[d] * left[d])
        for k in range(d):
            deviance += 2.0 * math.log(own[k, k])
    return deviance


@kernel
def spread_vectors(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    leaf: Nodes,  # (T,)
    rows: Floats,  # (leaves, d, d + 1)
    factor: Floats,  # (n_classes, d, d)
    prior_mean: Floats,  # (d,)
    solved: Floats,  # (T, d, 2 d + 1)
    mean: Floats,  # (T, d)
    covariance: Floats,  # (T, d, d)
    excess: Floats,  # (n_classes, d, d)
) -> float:
    """Overwrites mean and covariance (the posterior's), and excess: summed over the slots of a class, how far the
    posterior second moments of e are above the identity, theta = theta_parent + L e. Returns the expected sum of
    squares of the leaves' rows, in units of the noise.
    """
    d = len(prior_mean)
    excess[:] = 0.0
    squares = 0.0
    inverse = np.zeros((d, d))  # of C
    pull = np.empty((d, d))  # C^-1 E
    half = np.empty((d, d))
    gain = np.empty((d, d))  # I - L C^-1 E
    root = np.empty((d, d))  # L C^-1
    e = np.empty(d)
    nothing = np.zeros((d, d))
    for slot in range(len(parent)):
        above = parent[slot]
        m = mean[above] if above >= 0 else prior_mean
        c = covariance[above] if above >= 0 else nothing
        L = factor[slot_class[slot]]
        own = solved[slot]
        for j in range(d):  # back substitution, column by column
            for i in range(j, -1, -1):
                total = 1.0 if i == j else 0.0
                for k in range(i + 1, j + 1):
                    total -= own[i, k] * inverse[k, j]
                inverse[i, j] = total / own[i, i]
        for i in range(d):
            e[i] = 0.0
            for j in range(d):
                total = 0.0
                for k in range(i, d):
                    total += inverse[i, k] * own[k, d + j]
                pull[i, j] = total
                e[i] -= total * m[j]
            for k in range(i, d):
                e[i] += inverse[i, k] * own[k, 2 * d]
        for i in range(d):
            total = m[i]
            for k in range(d):
                total += L[i, k] * e[k]
            mean[slot, i] = total
            for j in range(d):
                shifted = 1.0 if i == j else 0.0
                scaled = 0.0
                for k in range(d):
                    shifted -= L[i, k] * pull[k, j]
                    scaled += L[i, k] * inverse[k, j]
                gain[i, j] = shifted
                root[i, j] = scaled
        into = excess[slot_class[slot]]
        _sandwich(pull, c, half)
        for i in range(d):
            for j in range(d):
                total = e[i] * e[j] + half[i, j] - (1.0 if i == j else 0.0)
                for k in range(max(i, j), d):
                    total += inverse[i, k] * inverse[j, k]
                into[i, j] += total
        _sandwich(gain, c, half)
        for i in range(d):
            for j in range(d):
                total = half[i, j]
                for k in range(d):
                    total += root[i, k] * root[j, k]
                covariance[slot, i, j] = total
        if leaf[slot] >= 0:
            R = rows[leaf[slot]]
            for i in range(d):
                off = R[i, d]
                for j in range(i, d):
                    off -= R[i, j] * mean[slot, j]
                    for k in range(i, d):
                        squares += R[i, j] * covariance[slot, j, k] * R[i, k]
                squares += off * off
    return squares


@kernel
def _sandwich(A: Floats, c: Floats, out: Floats) -> None:
    """Overwrites out with A c A'."""
    d = len(A)
    half = np.empty(d)
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += A[i, k] * c[k, j]
            half[j] = total
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += half[k] * A[j, k]
            out[i, j] = total
