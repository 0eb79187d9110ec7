"""How likely each of a few actions is to be the best, the obvious ways: an integral over all orderings, and draws."""

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtr

import bough


def joint_law(posterior: bough.Posterior) -> tuple[np.ndarray, np.ndarray]:
    """The mean of all actions' scores, and a root of their covariance, from draws of unit vectors."""
    tree = posterior.model.tree
    mean = posterior.from_normals(np.zeros(tree.n_nodes))
    root = np.array([posterior.from_normals(unit) - mean for unit in np.eye(tree.n_nodes)]).T
    return mean[tree.leaves], root[tree.leaves]


def best_by_integration(posterior: bough.Posterior, points: int = 150) -> np.ndarray:
    """(K,) the probability that an action is above all others, for at most four without ties.

    The differences from the others are normal; they are integrated over one after the other, each given those before,
    on Gauss-Legendre points.
    """
    mean, root = joint_law(posterior)
    found = []
    for a in range(len(mean)):
        others = [b for b in range(len(mean)) if b != a]
        rows = root[[a]] - root[others]
        found.append(_orthant(mean[a] - mean[others], rows @ rows.T, points))
    return np.array(found)


def _orthant(mean: np.ndarray, covariance: np.ndarray, points: int) -> float:
    """P(all of at most three normals are positive)."""
    lower = np.linalg.cholesky(covariance) if len(mean) else np.empty((0, 0))
    node, weight = np.polynomial.legendre.leggauss(points)
    normals, mass = np.empty((1, 0)), np.ones(1)
    for i in range(len(mean)):
        least = -(mean[i] + normals @ lower[i, :i]) / lower[i, i]
        if i == len(mean) - 1:
            return float(mass @ ndtr(-least))
        start, end = np.clip(least, -9.0, None), np.maximum(least + 5.0, 9.0)
        half = 0.5 * (end - start)[:, None]
        drawn = start[:, None] + half * (node + 1.0)
        mass = (mass[:, None] * half * weight * np.exp(-0.5 * drawn**2) / np.sqrt(2.0 * np.pi)).ravel()
        normals = np.column_stack([np.repeat(normals, points, axis=0), drawn.ravel()])
    return float(mass.sum())


def best_by_importance(posterior: bough.Posterior, action: int, n: int, seed: int) -> tuple[float, float]:
    """The probability that one action, given by its place, is the best, and its standard error.

    Draws are moved to where that is likeliest: the nearest point at which no other action is above it.
    """
    mean, root = joint_law(posterior)
    others = np.delete(np.arange(len(mean)), action)
    rows, gaps = root[action] - root[others], mean[others] - mean[action]
    # The least |z| with rows @ z >= gaps is rows' l, where l >= 0 solves the dual.
    stacked, target = np.vstack([rows.T, gaps[None]]), np.append(np.zeros(rows.shape[1]), 1.0)
    dual, _ = nnls(stacked, target)
    residual = stacked @ dual - target
    shift = -residual[:-1] / residual[-1] if residual[-1] else np.zeros(rows.shape[1])
    rng, total, squares = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(0, n, 50_000):
        z = rng.standard_normal((50_000, rows.shape[1]))
        wins = ((z + shift) @ rows.T >= gaps).all(axis=1)
        weights = np.where(wins, np.exp(-z @ shift - 0.5 * shift @ shift), 0.0)
        total, squares = total + weights.sum(), squares + np.square(weights).sum()
    probability = total / n
    return probability, float(np.sqrt(max(squares / n - probability**2, 0.0) / n))
