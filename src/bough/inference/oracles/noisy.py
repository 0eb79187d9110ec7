"""The posterior of a small K-armed model with noise per action, by sums over grids for each node and each noise.

No normal approximation, no quadrature rule and no message that is not a function on a grid: the oracle for
inference/noisy.py. Every node but the root needs a variance that is not zero, and not small beside the grid's spacing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Floats
from bough.model.gaussian import GaussianModel
from bough.model.noise import PerAction


def noise_points(
    noise: PerAction, count: float, spread: float, points: int = 3001, off: float = 0.0
) -> tuple[Floats, Floats, float]:
    """Noise variances on a fine grid, their weights given the spread of the rewards, and the log of their sum.

    The weights are of exp of what `count` rewards with these squares around their mean say, but for their mean, which
    may be `off` what others say of the action.
    """
    centre, half = math.log(noise.median), 0.5 * (count - 1.0)
    low, high = centre - 30.0 * noise.spread, centre + 12.0 * noise.spread
    high = max(high, math.log(max(spread, count * off * off, 1e-300)) + 1.0)
    fall = 80.0 if off == 0.0 else 680.0

    def height(u: Floats) -> Floats:
        w = noise.floor + np.exp(u)
        found = -half * np.log(w) - 0.5 * spread / w - 0.5 * ((u - centre) / noise.spread) ** 2
        return np.asarray(found, dtype=np.float64)

    for _ in range(2):  # where it is, and then that in detail
        u = np.linspace(low, high, 20 * points)
        heights = height(u)
        inside = np.flatnonzero(heights > heights.max() - fall)
        low, high = float(u[max(inside[0] - 1, 0)]), float(u[min(inside[-1] + 1, len(u) - 1)])
    u = np.linspace(low, high, points)
    heights = height(u)
    weights = np.exp(heights - heights.max())
    step = (high - low) / (points - 1) / (noise.spread * math.sqrt(2.0 * math.pi))
    mass = math.log(float(weights.sum()) * step) + float(heights.max()) - half * math.log(2.0 * math.pi)
    return noise.floor + np.exp(u), np.asarray(weights / weights.sum()), mass - 0.5 * math.log(count)


class NoisyGrids:
    """The marginal posteriors of all nodes of a small tree.

    >>> import bough
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> model = bough.GaussianModel(tree, noise=bough.per_action(1.0, 1.0, 0.01))
    >>> exact = NoisyGrids(model, {"left": [1.0, 2.0], "right": [0.5]})
    >>> exact.mean.round(3)
    array([0.573, 1.183, 0.535])
    """

    def __init__(self, model: GaussianModel, rewards: dict[Any, list[float]], points: int = 1201) -> None:
        assert model.noise is not None
        tree, self._variance = model.tree, model.classes.table[model.classes.of_node]
        everything = np.concatenate([np.asarray(one, dtype=np.float64) for one in rewards.values()])
        width = math.sqrt(float(self._variance.sum()))
        low = min(float(everything.min()), model.mean) - 7.0 * width
        high = max(float(everything.max()), model.mean) + 7.0 * width
        self._x = np.linspace(low, high, points)
        self._step = (high - low) / (points - 1)
        self._up = np.zeros((tree.n_nodes, points))  # the log of what a node says to its parent, at its values
        self._own = np.zeros((tree.n_nodes, points))  # the log of what its children say, at its own values
        self._mixtures: dict[int, tuple[Floats, Floats, Floats, float]] = {}
        constant = 0.0
        for name, values in rewards.items():
            given, node = np.asarray(values, dtype=np.float64), tree.index(name)
            average = float(given.mean())
            spread = float(np.square(given - average).sum()) if len(given) > 1 else 0.0
            w, weight, mass = noise_points(model.noise, float(len(given)), spread, off=average - float(model.mean))
            self._mixtures[node] = (w, weight, w / len(given), average)
            constant += mass
        for node in range(tree.n_nodes - 1, -1, -1):
            if node in self._mixtures:
                self._up[node] = self._said(node, self._x)
            elif node:
                self._up[node] = self._smoothed(self._own[node], self._variance[node])
            if node:
                self._own[tree.parent[node]] += self._up[node]
        self._tree, self._model = tree, model
        prior = self._log_normal(self._x - float(model.mean), self._variance[0])
        top = prior + self._own[0] if self._variance[0] > 0.0 else np.full(points, -np.inf)
        if self._variance[0] > 0.0:
            self._evidence = constant + _log_sum(top) + math.log(self._step)
        else:
            self._evidence = constant + float(np.interp(float(model.mean), self._x, self._own[0]))
        self._above: dict[int, Floats] = {0: prior}  # the log of all that is not said from below, at a node's values

    def _log_normal(self, off: Floats, variance: Any) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-0.5 * off**2 / variance - 0.5 * np.log(2.0 * math.pi * variance))

    def _said(self, leaf: int, parents: Floats) -> Floats:
        """The log of how likely an action's mean reward is, given its parent's values."""
        _, weight, c, average = self._mixtures[leaf]
        out = np.empty(len(parents))
        for i, p in enumerate(parents.tolist()):
            out[i] = _log_sum(
                np.log(np.maximum(weight, 1e-300)) + self._log_normal(np.asarray(average - p), self._variance[leaf] + c)
            )
        return out

    def _smoothed(self, message: Floats, variance: float) -> Floats:
        """The log of the integral of a message over a node, given its parent's values, or the other way round."""
        kernel = self._log_normal(self._x[:, None] - self._x[None, :], variance)
        return np.asarray(np.logaddexp.reduce(kernel + message[None, :], axis=1) + math.log(self._step))

    def _outside(self, node: int) -> Floats:
        """The log of all that is said of a node but from below, at its values."""
        if node not in self._above:
            parent = int(self._tree.parent[node])
            cavity = self._parent_cavity(node)
            if self._variance[0] == 0.0 and parent == 0:
                self._above[node] = self._log_normal(self._x - float(self._model.mean), self._variance[node])
            else:
                self._above[node] = self._smoothed(cavity, self._variance[node])
        return self._above[node]

    def _parent_cavity(self, node: int) -> Floats:
        """The log density of a node's parent given all that the node does not say, not normalised."""
        parent = int(self._tree.parent[node])
        if self._variance[0] == 0.0 and parent == 0:
            return np.where(np.arange(len(self._x)) == np.abs(self._x - float(self._model.mean)).argmin(), 0.0, -np.inf)
        return np.asarray(self._outside(parent) + self._own[parent] - self._up[node])

    def log_evidence(self) -> float:
        """The log density of all rewards."""
        return self._evidence

    def _moments(self, node: int) -> tuple[float, float]:
        if node in self._mixtures:
            return self._leaf_moments(node)
        if self._variance[0] == 0.0 and node == 0:
            return float(self._model.mean), 0.0
        density = np.exp((found := self._outside(node) + self._own[node]) - found.max())
        mean = float(density @ self._x / density.sum())
        return mean, float(density @ (self._x - mean) ** 2 / density.sum())

    def _leaf_moments(self, leaf: int) -> tuple[float, float]:
        """Of an action with rewards: over its parent's values and its noise, it is normal."""
        cavity = self._parent_cavity(leaf)
        kept = np.flatnonzero(cavity > cavity.max() - 60.0)
        parents = self._x[kept]
        if self._variance[0] == 0.0 and self._tree.parent[leaf] == 0:
            parents = np.array([float(self._model.mean)])
        _, weight, c, average = self._mixtures[leaf]
        v = self._variance[leaf]
        off = average - parents[:, None]
        joint = cavity[kept][:, None] + np.log(np.maximum(weight, 1e-300)) + self._log_normal(off, v + c)
        share = np.exp(joint - joint.max())
        share /= share.sum()
        centre = parents[:, None] + v / (v + c) * off
        mean = float((share * centre).sum())
        return mean, float((share * ((centre - mean) ** 2 + v * c / (v + c))).sum())

    @property
    def mean(self) -> Floats:
        """(V,) the posterior means."""
        return np.array([self._moments(node)[0] for node in range(self._tree.n_nodes)])

    @property
    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        return np.array([self._moments(node)[1] for node in range(self._tree.n_nodes)])


def _log_sum(values: Floats) -> float:
    return float(np.logaddexp.reduce(values))
