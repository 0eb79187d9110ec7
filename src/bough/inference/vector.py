"""The exact posterior where parameters are vectors, in square-root form.

Parameters are kept as deviations from the prior mean. Write a node as theta_i = theta_p + L e, with L L' its prior
covariance and e standard normal before any observation. Given everything observed below, e still solves a triangular
system

    C e + E theta_p = f + n,      n standard normal,      C (d, d) upper triangular, E (d, d), f (d,)

and a slot holds those d rows, C = I, E = 0, f = 0 at first, with the root F = L C^-1 of the conditional covariance
beside them: theta_i | theta_p = theta_p + F (f - E theta_p + n).

An observation is one more row, w' theta = r with unit noise. At a node it reads [L'w | w | r]; d Givens rotations with
the rows [C | E | f] bring its first part to zero, and what is left, [0 | u | r'], is the row that the parent sees:
O(d^2) per node, nothing but rotations. What is left of r above the root is the standardised surprise of the
observation. At an action the row is first folded into the action's own evidence, a triangle [R | z]: where u is what is
left of large numbers, it is taken from there instead (kernels/vector.py). Inside the tree that rounding is far smaller;
there its size is kept account of, and everything is made again from the evidence before it matters.
The precision M = sum w w' is never formed: where v M is, say, 1e10 beside directions never seen, M would cost ten
digits and its root costs five. docs/explanation/mathematics.md derives this from the messages (M, eta).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.engine import TableEngine
from bough.inference.evidence import ContextEvidence
from bough.inference.kernels import vector as kernels
from bough.inference.kernels import vector_draws as draws
from bough.inference.normals import scaled_normals
from bough.inference.slots import grown
from bough.model.model import Model

_MOST_LOST = 1e-9  # standard deviations by which rounding may have moved what a message speaks of


class VectorEngine(TableEngine):
    """State and operations of the posterior of a contextual model; everything comes in checked."""

    _learned: ClassVar[tuple[str, ...]] = ("_triangle", "_pull", "_target", "_root", "_stale", "_account")

    def __init__(self, model: Model) -> None:
        super().__init__(model, ContextEvidence(model))
        d = model.dim
        self._tree = model.tree
        self._mean = np.asarray(model.mean)
        self._noise_deviation = model.likelihood.noise_deviation
        self._class_of_node = model.classes.of_node
        self._covariance = model.classes.table  # (n_classes, d, d)
        # Columns of L, E and F are stored as rows, so that drawing walks memory in order.
        self._factor = np.ascontiguousarray(model.class_factors.transpose(0, 2, 1))
        self._factor.setflags(write=False)
        widest = np.einsum("njj->nj", self._covariance).max(axis=0) * (model.tree.height + 1)
        self._reach = np.sqrt(widest)  # no parameter has a larger standard deviation before observations
        # Only a covariance that has no Cholesky factor gets another root.
        diagonal = np.einsum("njj->nj", model.class_factors)
        self._is_singular = bool((diagonal <= 0.0).any() or np.triu(model.class_factors, 1).any())
        self._triangle = np.empty((0, d, d))  # C, by slot
        self._pull = np.empty((0, d, d))  # E', by slot: how the parent's value pulls
        self._target = np.empty((0, d))  # f, by slot
        self._root = np.empty((0, d, d))  # F', by slot, computed again where stale
        self._stale = np.empty(0, dtype=np.bool_)
        self._keeps_messages = False  # as they are, since they say more than the evidence: see `keep_messages`
        self._account = np.zeros(2)  # the sum of the squared surprises, and the square of what rounding may have cost

    # -- observations --------------------------------------------------------------------------

    def observe_one(self, _leaf: int, _reward: float) -> None:
        """A reward of a contextual model comes in a context."""
        raise AssertionError("contextual models take rows")

    def observe(self, rows: Rows, settle: bool = True) -> None:  # noqa: ARG002
        """Add rewards of leaves in contexts (n, d)."""
        assert rows.contexts is not None
        self._take_in_fading()
        slots = self._touch_batch(rows.leaves)
        weights = rows.counts
        stacked = np.sqrt(weights)[:, None] * np.column_stack([rows.contexts, rows.rewards])
        if len(slots) == 1:
            distinct, sums = slots, np.array([[weights[0], weights[0] * rows.rewards[0], 0.0]])
            fewer = slots, stacked
        else:  # at most d rows per leaf, so that a path is walked at most d times per leaf
            triangles, distinct, sums = self._triangles(slots, stacked, weights)
            unpacked = np.empty((len(triangles), len(self._mean), len(self._mean) + 1))
            kernels.unpack(triangles, 0, unpacked)
            fewer = _flat(distinct, unpacked)
        self._take(distinct, sums, *fewer)

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:  # noqa: ARG002
        """Add the rewards that were summed for distinct leaves, as at most d rows per leaf."""
        self._take_in_fading()
        rows, values, residual = statistics.as_rows(self._mean)
        values = values + np.einsum("nij,j->ni", rows, self._mean)
        slots = self._touch_batch(leaves)
        sums = np.column_stack([statistics.count, statistics.sum_y, residual])
        self._take(slots, sums, *_flat(slots, np.concatenate([rows, values[:, :, None]], axis=2)))

    def _take(self, distinct: Nodes, sums: Floats, slots: Nodes, rows: Floats) -> None:
        """Add counts, sums and unexplained squares to the evidence of distinct slots, and then the rows of slots."""
        self._table[self.slots.row[distinct], : kernels.TRIANGLE] += sums
        self._account[0] += sums[:, kernels.RESIDUAL].sum() / self._noise_deviation**2
        self._observe_rows(slots, rows)

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence of distinct leaves and nothing else."""
        self._place(self._touch(leaves), evidence)

    def place_rows(self, leaves: Nodes, rows: Floats, values: Floats) -> None:
        """Forget everything, and have leaves say that row' theta = value with unit noise, one for each of the rows."""
        slots = self._touch(leaves)
        triangles, distinct, sums = self._triangles(slots, np.column_stack([rows, values]), np.ones(len(values)))
        self._place(distinct, np.column_stack([sums, triangles]))

    def place_triangles(self, leaves: Nodes, triangles: Floats) -> None:
        """Forget everything, and have distinct leaves say R theta = z with unit noise: (n, d, d + 1) [R | z]."""
        evidence = np.zeros((len(leaves), self.kind.width))
        kernels.pack(triangles, kernels.TRIANGLE, evidence)
        self._place(self._touch(leaves), evidence)

    def _place(self, slots: Nodes, evidence: Floats) -> None:
        """Have this evidence at distinct slots, and nothing else."""
        collected = self._room_to_collect()
        self._table[:] = 0.0
        self._table[self.slots.row[slots]] = evidence
        self._keeps_messages, self._unit, self._faded = False, 1.0, 1.0
        self._remake(collected)

    def keep_messages(self, slots: Nodes, triangle: Floats, pull: Floats, target: Floats, surprise: float) -> None:
        """Have these messages, which say more than the evidence, at all slots, and go on from them alone."""
        self._triangle[slots], self._pull[slots], self._target[slots] = triangle, pull, target
        self._stale[slots] = True
        self._account[:] = surprise, 0.0
        self._keeps_messages = True

    def extra_arrays(self) -> dict[str, Any]:
        """The messages, where the evidence does not say it all."""
        if not self._keeps_messages:
            return {}
        n = self.slots.count
        arrays: dict[str, Any] = {"touched": self.slots.node, "triangle": self._triangle[:n], "pull": self._pull[:n]}
        arrays |= {"target": self._target[:n], "surprise": self._account[:1]}
        return {name: array.copy() for name, array in arrays.items()}

    def _room_to_collect(self) -> Floats:
        return np.empty((self.slots.count, self.kind.width - kernels.TRIANGLE))

    def _remake(self, collected: Floats) -> None:
        """Make all messages again from the evidence, in one rootward pass; collected is room for it."""
        kept = self.slots
        kernels.remake(
            kept.parent, kept.class_, kept.row, self._mean, self._noise_deviation, self._factor, self._table, collected,
            self._triangle, self._pull, self._target, self._stale, self._account,
        )  # fmt: skip

    def _made_good(self) -> None:
        """Take in what was put off, and make all messages again where rounding may have cost too much."""
        self._take_in_fading()
        if self._account[1] > _MOST_LOST**2 and not self._keeps_messages:
            self._remake(self._room_to_collect())

    def _begin(self, slots: Nodes) -> None:
        """Nothing: what is new begins with the prior's law."""

    def _say(self, _slots: Nodes) -> None:
        self._say_all()  # rows cannot be taken out of the triangles inside the tree

    def _say_all(self) -> None:
        self._account[1] = np.inf  # all is made again when something is read

    def _observe_rows(self, slots: Nodes, rows: Floats) -> None:
        kept = self.slots
        kernels.observe_rows(
            slots, rows, kept.row, self._mean, self._noise_deviation, self._is_singular, kept.parent, kept.class_,
            self._factor,
            self._table, self._triangle, self._pull, self._target, self._stale, self._reach, self._account,
        )  # fmt: skip

    def _triangles(self, slots: Nodes, rows: Floats, weights: Floats) -> tuple[Floats, Nodes, Floats]:
        """For each distinct slot a packed triangle that says the same as all of its rows; the slots; and their sums.

        That is how much its rows count, the sum of their values, and the squares that no parameter explains. Rows come
        multiplied by the roots of their weights.
        """
        order = np.argsort(slots, kind="stable")
        distinct, group, counts = np.unique(slots, return_inverse=True, return_counts=True)
        triangles = np.zeros((len(distinct), self.kind.width - kernels.TRIANGLE))
        sums = np.zeros((len(distinct), kernels.TRIANGLE))
        np.add.at(sums[:, kernels.COUNT], group, weights)
        np.add.at(sums[:, kernels.TOTAL], group, np.sqrt(weights) * rows[:, -1])
        residual = np.empty(len(distinct))
        kernels.triangulate(rows[order], counts, triangles, residual)
        sums[:, kernels.RESIDUAL] = residual
        return triangles, distinct, sums

    def _make_room(self, before: int) -> None:
        n = self.slots.count
        if n > len(self._stale):
            # A slot of d = 32 takes 25 kB, so room grows gently.
            size = max(n, len(self._stale) + len(self._stale) // 8, 16)
            self._triangle, self._pull = grown(self._triangle, size), grown(self._pull, size)
            self._target, self._root = grown(self._target, size), grown(self._root, size)
            self._stale = grown(self._stale, size)  # last: its length says how much room there is
        self._triangle[before:n] = np.eye(len(self._mean))
        self._stale[before:n] = True  # even where no row follows

    def _refreshed_roots(self) -> Floats:
        """F' by slot, with the stale ones computed again."""
        self._made_good()
        draws.refresh_roots(
            self._stale[: self.slots.count], self.slots.class_, self._factor, self._triangle, self._root
        )
        return self._root

    def slot_laws(self) -> tuple[Floats, Floats, Floats]:
        """(T, d, d), (T, d), (T, d, d): A, o and F by slot, theta_i = A theta_p + o + F n as deviations from the mean.

        Where all deviations are multiplied by a factor, around the same means, A and o stay as they are.
        """
        n = self.slots.count
        root = self._refreshed_roots()[:n].transpose(0, 2, 1)
        gain = np.eye(len(self._mean)) - root @ self._pull[:n].transpose(0, 2, 1)
        return gain, np.einsum("nij,nj->ni", root, self._target[:n]), root.copy()

    def is_finite(self) -> bool:
        """Whether the laws of all touched nodes are numbers that can be computed with."""
        self._made_good()
        n, (nodes, _) = self.slots.count, self.slots.leafward
        diagonal = np.einsum("njj->nj", self._triangle[:n])
        if not ((diagonal >= 1.0 - 1e-6) & (diagonal < np.inf)).all() or not np.isfinite(self._account).all():
            return False
        means = self.transform_some(nodes, self.slots.parent_position, np.zeros((n, len(self._mean))))
        return all(
            bool(np.isfinite(array).all()) for array in (self._pull[:n], self._target[:n], self._root[:n], means)
        )

    # -- answers -------------------------------------------------------------------------------

    def transform(self, normals: Floats, scale: float = 1.0) -> Floats:  # noqa: ARG002
        """A posterior sample of every node from (V, d) standard normals, which are overwritten."""
        draws.sample_all(
            normals, self._tree.parent, self._class_of_node, self._factor, self._mean, *self.slots.leafward,
            self._pull, self._target, self._refreshed_roots(),
        )  # fmt: skip
        return normals

    def transform_some(
        self, nodes: Nodes, parent_position: Nodes, normals: Floats, scale: float = 1.0  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        draws.sample_some(
            normals, parent_position, self._class_of_node.take(nodes, mode="clip"), self._factor, self._mean,
            self.slots.find(nodes), self._pull, self._target, self._refreshed_roots(),
        )  # fmt: skip
        return normals

    def touched_values(
        self, rng: np.random.Generator, scale: float = 1.0, only_best: bool = False  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """(T, d) a joint draw of the touched nodes, by slot, its deviations from the mean times the scale."""
        n = self.slots.count
        values = scaled_normals(rng, (n, len(self._mean)), scale)
        slots = np.arange(n, dtype=np.int32)
        draws.sample_some(
            values, self.slots.parent, self.slots.class_, self._factor, self._mean, slots, self._pull, self._target,
            self._refreshed_roots(),
        )  # fmt: skip
        return values

    def draw_arrays(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """L' by class, the prior mean, and E', f and F' by slot: what a compiled draw in contexts takes."""
        root = self._refreshed_roots()
        return self._factor, self._mean, self._pull, self._target, root

    def class_deviations(self, context: Floats) -> Floats:
        """(n_classes,) the standard deviation of a node given its parent, in the direction of the context."""
        # x' L has the square root's length, and is exactly zero in a direction without variance.
        return np.asarray(np.sqrt(np.square(self._factor @ context).sum(axis=1)))

    def mean(self) -> Floats:
        """(V, d) the posterior means: a sample whose normals are all zero."""
        return self.transform(np.zeros((self._tree.n_nodes, len(self._mean))))

    def covariance(self) -> Floats:
        """(V, d, d) the posterior covariances of the nodes, each by itself."""
        at_slot = self._slot_covariances()
        d = len(self._mean)
        out = np.empty((self._tree.n_nodes, d, d))
        draws.covariances(
            out, self._tree.parent, self._class_of_node, self._covariance, *self.slots.leafward,
            at_slot,
        )  # fmt: skip
        return out

    def _slot_covariances(self) -> Floats:
        """(T, d, d): S + A cov(parent) A', leafward, with S = F F' and A = I - F E."""
        n = self.slots.count
        root = self._refreshed_roots()[:n].transpose(0, 2, 1)
        gain = np.eye(len(self._mean)) - root @ self._pull[:n].transpose(0, 2, 1)
        out = root @ root.transpose(0, 2, 1)
        draws.spread_leafward(self.slots.parent, np.ascontiguousarray(gain), out)
        return out

    def node_moments(self, context: Floats) -> tuple[Floats, Floats]:
        """(V,) the mean and the variance of each node's product with the context."""
        return scores_in(context, self.mean()), self._score_variances(context)

    def some_moments(self, nodes: Nodes, parent_position: Nodes, context: Floats) -> tuple[Floats, Floats]:
        """(n,) the mean and the variance of the scores of nodes (ascending, closed under parents) in the context."""
        self._made_good()
        mean, variance, kept = np.empty(len(nodes)), np.empty(len(nodes)), self.slots
        draws.score_moments_of_some(
            mean, variance, context, parent_position, self._class_of_node.take(nodes, mode="clip"),
            self.class_deviations(context) ** 2, kept.find(nodes), kept.parent, kept.class_, self._factor,
            self._triangle, self._pull, self._target,
        )  # fmt: skip
        return mean + float(context @ self._mean), variance

    def action_moments(self, context: Floats) -> tuple[Floats, Floats]:
        """(K,) the mean and the variance of each action's mean reward in that context."""
        means = scores_in(context, self._tree.at_leaves(self.mean()))
        return means, self._tree.at_leaves(self._score_variances(context))

    def _score_variances(self, context: Floats) -> Floats:
        """(V,) the variance of each node's product with the context."""
        touched_variance = np.einsum("i,nij,j->n", context, self._slot_covariances(), context)
        class_variance = np.einsum("i,nij,j->n", context, self._covariance, context)
        variance = np.empty(self._tree.n_nodes)
        draws.projected_variances(
            variance, self._tree.parent, self._class_of_node, class_variance, *self.slots.leafward, touched_variance,
        )  # fmt: skip
        # Where the covariance is singular, rounding may leave a variance just below zero.
        return np.maximum(variance, 0.0)

    def conditional(self, node: int) -> tuple[Floats, Floats, Floats]:
        """(gain, offset, covariance) of a node given its parent."""
        d = len(self._mean)
        slot = int(self.slots.find(np.array([node], dtype=np.int32))[0])
        if slot < 0:
            return np.eye(d), np.zeros(d), self._covariance[self._class_of_node[node]].copy()
        root = self._refreshed_roots()[slot].T
        loss = root @ self._pull[slot].T
        return np.eye(d) - loss, root @ self._target[slot] + loss @ self._mean, root @ root.T

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        self._made_good()
        constant = float(self.table[:, kernels.COUNT].sum()) * math.log(2.0 * math.pi * self._noise_deviation**2)
        return -0.5 * (constant + float(self._account[0])) - self._log_determinant()

    def _log_determinant(self) -> float:
        """Half the logarithm of how much narrower the posterior is than the prior."""
        return float(np.log(np.diagonal(self._triangle[: self.slots.count], axis1=1, axis2=2)).sum())


def scores_in(context: Floats, parameters: Floats) -> Floats:
    """(n,) the product of each row of parameters (n, d) with the context: equal where rows are, so that ties are ties.

    A matrix product of the libraries that numpy uses may round the last rows otherwise than the first.

    >>> bool(np.ptp(scores_in(np.arange(9.0) / 7.0, np.tile(np.arange(9.0) / 3.0, (81, 1)))) == 0.0)
    True
    """
    return np.asarray(np.einsum("nd,d->n", parameters, context))


def _flat(slots: Nodes, rows: Floats) -> tuple[Nodes, Floats]:
    """The rows (n, d, d + 1) of each slot one by one, without those that say nothing."""
    kept = (rows[:, :, :-1] != 0.0).any(axis=2)
    return np.repeat(slots, kept.sum(axis=1)), rows[kept]
