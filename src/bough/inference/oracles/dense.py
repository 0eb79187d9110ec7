"""The same posterior by plain linear algebra on all nodes at once: short, obvious, O((V d)^3).

Every parameter is a sum of standard normals, one for each node on its path, scaled by that node's prior. So all
rewards are one least-squares problem with a unit ridge, solved by one QR factorisation. For small trees, and as the
oracle that the tests compare the fast engine with.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from bough._arrays import Floats
from bough.model.gaussian import GaussianModel


class DensePosterior:
    """The joint posterior of all nodes of a small tree.

    >>> import bough
    >>> from bough.inference.oracles.dense import DensePosterior
    >>> model = bough.GaussianModel(bough.Tree.balanced(branching=2, height=1))
    >>> dense = DensePosterior(model)
    >>> dense.update([1, 2, 2], [1.0, 0.0, 0.5])
    >>> dense.mean.round(3)
    array([0.308, 0.654, 0.269])
    """

    def __init__(self, model: GaussianModel) -> None:
        tree, d = model.tree, model.dim
        self.model = model
        self._leaves: list[int] = []
        self._rewards: list[float] = []
        self._contexts: list[Floats] = []
        self._effects: list[Floats] = []  # of each reward: (q,) its effects, in units of their normals
        factor = model.class_factors[model.classes.of_node].reshape(tree.n_nodes, d, d)
        # parameter = mean + prior_root @ standard normals: a node repeats its parent's rows and adds its own block.
        # The effects of crossed factors come after the nodes.
        n_effects = 0 if model.effects is None else model.effects.n
        n_all = tree.n_nodes + n_effects
        self.prior_root = np.zeros((n_all, d, n_all, d))
        for effect in range(n_effects):
            place = tree.n_nodes + effect
            self.prior_root[place, 0, place, 0] = math.sqrt(model.effects.variance[effect]) if model.effects else 0.0
        for node in range(tree.n_nodes):
            if node:
                self.prior_root[node] = self.prior_root[tree.parent[node]]
            self.prior_root[node, :, node, :] = factor[node]

    def update(self, actions: Any, rewards: Any, contexts: Any = None, factors: Any = None) -> None:
        """Add observations, given as lists."""
        leaves = self.model.tree.action_nodes(list(actions)).tolist()
        self._leaves += leaves
        self._effects += [self._own_effects(leaf) for leaf in leaves]
        for name, levels in (factors or {}).items():
            for own, level in zip(self._effects[-len(leaves) :], levels, strict=True):
                own[self._effect(name, level)] += 1.0
        self._rewards += [float(reward) for reward in rewards]
        rows = np.ones((len(rewards), 1)) if contexts is None else np.asarray(contexts, dtype=float)
        self._contexts += list(rows)

    def _own_effects(self, leaf: int) -> Floats:
        """(q,) how often each effect is in the score of an action."""
        effects = self.model.effects
        if effects is None:
            return np.zeros(0)
        return np.bincount(
            effects.of_action(int(np.searchsorted(self.model.tree.leaves, leaf))), minlength=effects.n
        ).astype(np.float64)

    def _effect(self, name: str, level: Any) -> int:
        assert self.model.effects is not None
        return self.model.effects.first_of(name) + self.model.effects.factor(name).levels.index(level)

    def score_root(self, effects: bool = True) -> Floats:
        """(K, V + q) the scores of all actions from the parameters, as what they are multiplied by."""
        leaves = self.model.tree.leaves.tolist()
        rows = np.zeros((len(leaves), self.prior_root.shape[0]))
        rows[np.arange(len(leaves)), leaves] = 1.0
        if effects:
            rows[:, self.model.tree.n_nodes :] = [self._own_effects(leaf) for leaf in leaves]
        return rows

    def _system(self) -> tuple[Floats, Floats]:
        """The design on the standard normals and the rewards, both in units of the noise."""
        n, (n_nodes, d) = len(self._leaves), self.prior_root.shape[:2]
        contexts = np.array(self._contexts).reshape(n, d)
        design = np.einsum("nd,ndve->nve", contexts, self.prior_root[self._leaves]).reshape(n, n_nodes * d)
        if self.model.effects is not None:
            design += (
                np.array(self._effects).reshape(n, self.model.effects.n)
                @ self.prior_root[self.model.tree.n_nodes :, 0, :, 0]
            )
        mean = np.broadcast_to(np.atleast_1d(self.model.mean), d)
        deviation = math.sqrt(self.model.noise_variance)
        return design / deviation, (np.array(self._rewards) - contexts @ mean) / deviation

    def _solved(self) -> tuple[Floats, Floats, Floats, Floats]:
        """R with R'R the precision of the normals, R times their mean, what is left over, and a root of the prior.

        Rows of very different sizes are only safe with the large ones first and columns pivoted (Cox and Higham
        1998), so the columns of R and of the root of the prior are in the order of the pivots.
        """
        design, target = self._system()
        size = design.shape[1]
        matrix = np.vstack([design, np.eye(size)])
        rows = np.argsort(-np.abs(matrix).max(axis=1, initial=0.0), kind="stable")
        columns = scipy.linalg.qr(matrix[rows], mode="r", pivoting=True)[1]
        augmented = np.column_stack([matrix[:, columns], np.concatenate([target, np.zeros(size)])])
        triangle: Floats = np.linalg.qr(augmented[rows])[1]
        prior_root = self.prior_root.reshape(size, size)[:, columns]
        return triangle[:size, :size], triangle[:size, size], triangle[size:, size], prior_root

    @property
    def joint_root(self) -> Floats:
        """(V d, V d) a root of the joint covariance: `joint_root @ joint_root.T`."""
        triangle, _, _, prior_root = self._solved()
        return np.asarray(scipy.linalg.solve_triangular(triangle, prior_root.T, trans="T").T)

    @property
    def joint_covariance(self) -> Floats:
        """(V d, V d) the covariance of all parameters together."""
        root = self.joint_root
        return root @ root.T

    @property
    def mean(self) -> Floats:
        """(V,) or (V, d) the posterior means; those of the effects come last."""
        triangle, projected, _, prior_root = self._solved()
        shift = self._shaped(prior_root @ scipy.linalg.solve_triangular(triangle, projected))
        n_nodes = self.model.tree.n_nodes
        return np.concatenate([self.model.mean + shift[:n_nodes], shift[n_nodes:]])

    @property
    def covariance(self) -> Floats:
        """(V,) or (V, d, d) the posterior covariance of each node by itself."""
        n_nodes, d = self.prior_root.shape[:2]
        root = self.joint_root.reshape(n_nodes, d, -1)
        blocks = root @ root.transpose(0, 2, 1)
        return blocks[:, 0, 0] if self.model.is_scalar else blocks

    def conditional(self, node: int) -> tuple[Any, Any, Any]:
        """(gain, offset, covariance) of a node given its parent: only data below the node matter then.

        Given the parent's value p, a reward below is x' p plus what the normals below the node add: least squares
        on those alone, and linear in p.
        """
        d = self.model.dim
        below = self._below(node)
        kept = [i for i, leaf in enumerate(self._leaves) if leaf in below]
        contexts = np.array(self._contexts).reshape(-1, d)[kept]
        rewards = np.array(self._rewards)[kept]
        columns = np.array(sorted(below), dtype=np.int64)
        nodes = [self._leaves[i] for i in kept]
        reach = self.prior_root[nodes][:, :, columns].reshape(len(kept), d, len(columns) * d)
        deviation = math.sqrt(self.model.noise_variance)
        design = np.einsum("nd,nde->ne", contexts, reach) / deviation
        stacked = np.vstack([design, np.eye(design.shape[1])])
        rows = np.argsort(-np.abs(stacked).max(axis=1), kind="stable")
        orthogonal, triangle, pivots = scipy.linalg.qr(stacked[rows], mode="economic", pivoting=True)
        own = self.prior_root[node][:, columns].reshape(d, -1)[:, pivots]
        root = scipy.linalg.solve_triangular(triangle, own.T, trans="T").T  # (d, size)
        to_mean = np.empty((d, len(stacked)))
        to_mean[:, rows] = root @ orthogonal.T
        to_mean = to_mean[:, : len(kept)] / deviation  # (d, n): from rewards to the node's shift
        gain = np.eye(d) - to_mean @ contexts
        offset = to_mean @ rewards
        if self.model.is_scalar:
            return float(gain[0, 0]), float(offset[0]), float((root @ root.T)[0, 0])
        return gain, offset, root @ root.T

    def _below(self, node: int) -> set[int]:
        pending, found = [node], set()
        while pending:
            one = pending.pop()
            found.add(one)
            pending += self.model.tree.children(one).tolist()
        return found

    def log_evidence(self) -> float:
        """The log density of all rewards."""
        triangle, _, left_over, _ = self._solved()
        log_det = 2.0 * np.log(np.abs(np.diag(triangle))).sum()
        constant = len(self._rewards) * math.log(2.0 * math.pi * self.model.noise_variance)
        return float(-0.5 * (constant + log_det + left_over @ left_over))

    def transform(self, normals: Floats) -> Floats:
        """A joint sample of all nodes from (V d,) standard normals."""
        return self.mean + self._shaped(self.joint_root @ normals.ravel())

    def _shaped(self, flat: Floats) -> Floats:
        return flat if self.model.is_scalar else flat.reshape(-1, self.model.dim)
