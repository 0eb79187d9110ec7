"""The posterior of actions that drift, by conditioning one Gaussian process: short, obvious, O((V + n)^3).

All nodes as they are now, and the action of each reward as it was then, are jointly normal. The covariance of two of
them is that of the inner nodes above both, and, where they are the same action, what is left of its own variance after
the time between them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from bough._arrays import Floats
from bough.model.gaussian import GaussianModel


class DriftingPosterior:
    """The joint posterior of all nodes of a small tree at the time `now`.

    >>> import bough
    >>> from bough.inference.oracles.drifting import DriftingPosterior
    >>> model = bough.GaussianModel(bough.Tree.balanced(branching=2, height=1), drift=10.0)
    >>> dense = DriftingPosterior(model)
    >>> dense.update([1, 2, 2], [1.0, 0.0, 0.5], times=[0.0, 3.0, 20.0])
    >>> dense.mean.round(3)
    array([0.303, 0.39 , 0.375])
    """

    def __init__(self, model: GaussianModel) -> None:
        tree = model.tree
        self.model = model
        self.now = 0.0
        self._leaves: list[int] = []
        self._rewards: list[float] = []
        self._times: list[float] = []
        on_path = np.eye(tree.n_nodes)
        for node in range(1, tree.n_nodes):
            on_path[node] += on_path[tree.parent[node]]
        variance = model.classes.table[model.classes.of_node].copy()
        self._own = np.zeros(tree.n_nodes)
        self._own[tree.leaves] = variance[tree.leaves]
        variance[tree.leaves] = 0.0
        self._shared = (on_path * variance) @ on_path.T

    def update(self, actions: Any, rewards: Any, times: Any) -> None:
        """Add observations, given as lists, in any order; the clock moves to the last of them."""
        self._leaves += self.model.tree.action_nodes(list(actions)).tolist()
        self._rewards += [float(reward) for reward in rewards]
        self._times += [float(time) for time in times]
        self.now = max(self.now, *self._times)

    def _solved(self) -> tuple[Floats, Floats, Floats]:
        """L with L L' the rewards' covariance, and L^-1 times their deviations and their covariance with nodes."""
        assert self.model.drift_half_life is not None
        n_nodes, n = len(self._own), len(self._leaves)
        nodes = np.concatenate([np.arange(n_nodes), np.array(self._leaves, dtype=np.int64)])
        times = np.concatenate([np.full(n_nodes, self.now), self._times])
        left = np.exp2(-np.abs(times - times[:, None]) / self.model.drift_half_life)
        joint = self._shared[np.ix_(nodes, nodes)] + (nodes == nodes[:, None]) * self._own[nodes] * left
        noisy = joint[n_nodes:, n_nodes:] + self.model.noise_variance * np.eye(n)
        root = np.linalg.cholesky(noisy)
        sides = np.column_stack([np.array(self._rewards) - self.model.mean, joint[n_nodes:, :n_nodes]])
        solved = scipy.linalg.solve_triangular(root, sides, lower=True)
        self._prior = joint[:n_nodes, :n_nodes]
        return root, solved[:, 0], solved[:, 1:]

    @property
    def mean(self) -> Floats:
        """(V,) the posterior means."""
        _, rewards, nodes = self._solved()
        return np.asarray(self.model.mean + nodes.T @ rewards)

    @property
    def joint_covariance(self) -> Floats:
        """(V, V) the covariance of all parameters together."""
        _, _, nodes = self._solved()
        return np.asarray(self._prior - nodes.T @ nodes)

    @property
    def covariance(self) -> Floats:
        """(V,) the posterior variance of each node by itself."""
        return np.diag(self.joint_covariance)

    def log_evidence(self) -> float:
        """The log density of all rewards."""
        root, rewards, _ = self._solved()
        constant = len(rewards) * math.log(2.0 * math.pi) + 2.0 * float(np.log(np.diag(root)).sum())
        return -0.5 * (constant + float(rewards @ rewards))
