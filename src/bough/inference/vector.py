"""The exact posterior where parameters are vectors, in square-root form.

Parameters are kept as deviations from the prior mean. Write a node as theta_i = theta_p + L e, with L L' its prior
covariance and e standard normal before any observation. Given everything observed below, e still solves a triangular
system

    C e + E theta_p = f + n,      n standard normal,      C (d, d) upper triangular, E (d, d), f (d,)

and a slot holds those d rows, C = I, E = 0, f = 0 at first, with the root F = L C^-1 of the conditional covariance
beside them: theta_i | theta_p = theta_p + F (f - E theta_p + n).

An observation is one more row, w' theta = r with unit noise. At a node it reads [L'w | w | r]; d Givens rotations with
the rows [C | E | f] bring its first part to zero, and what is left, [0 | u | r'], is the row that the parent sees:
O(d^2) a node, nothing but rotations. What is left of r above the root is the standardised surprise of the observation.
The precision M = sum w w' is never formed: where v M is, say, 1e10 beside directions never seen, M would cost ten
digits and its root costs five. docs/mathematics.md derives this from the messages (M, eta).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bough.arrays import Floats, Integers, Nodes
from bough.covariance import LARGEST
from bough.inference import vector_kernels as kernels
from bough.inference.normals import standard_normals
from bough.inference.touched import Touched, check_counts, grown
from bough.model import Model
from bough.statistics import Statistics
from bough.storage import Contents

_ROUNDING = 1e-6  # relative; rotations of 10^9 rows are off by less
_FARTHEST = 1e6 * LARGEST  # the root of a sum of squares of 10^12 rewards
_BLOCK = 1 << 18  # numbers that are checked at once


class VectorEngine:
    """State and operations of the posterior of a contextual model; everything comes in checked."""

    def __init__(self, model: Model, noise_variance: float = 1.0) -> None:
        d = model.dim
        self._tree = model.tree
        self._mean = np.asarray(model.mean)
        self._noise = noise_variance
        self._class_of_node = model.classes.of_node
        self._covariance = model.classes.table  # (n_classes, d, d)
        # Columns of L, E and F are stored as rows, so that drawing walks memory in order.
        self._factor = np.ascontiguousarray(model.class_factors.transpose(0, 2, 1))
        self.touched = Touched(model.tree, model.classes.of_node)
        self._triangle = np.empty((0, d, d))  # C, by slot
        self._pull = np.empty((0, d, d))  # E', by slot: how the parent's value pulls
        self._target = np.empty((0, d))  # f, by slot
        self._root = np.empty((0, d, d))  # F', by slot, computed again where stale
        self._stale = np.empty(0, dtype=np.bool_)
        self._count = np.empty(0)  # observations at a leaf, by slot
        self._surprise = np.zeros(1)  # the sum of the squared surprises

    def arrays(self) -> dict[str, Any]:
        """Everything that has been learned, for a file."""
        n = self.touched.count
        return {
            **self.touched.arrays(),
            "triangle": self._triangle[:n],
            "pull": self._pull[:n],
            "target": self._target[:n],
            "count": self._count[:n],
            "surprise": self._surprise,
        }

    def restore(self, contents: Contents) -> None:
        """Take over what `arrays` gave a file, if it is what rows could have made."""
        self.touched.restore(contents)
        n, d = self.touched.count, len(self._mean)
        shapes = {"triangle": (n, d, d), "pull": (n, d, d), "target": (n, d), "surprise": (1,), "count": (n,)}
        arrays = {name: contents.array(name, np.float64, shape) for name, shape in shapes.items()}
        check_counts(arrays["count"], self.touched.is_leaf)
        self._check_triangles(arrays["triangle"], arrays["pull"])
        if not arrays["surprise"][0] >= 0.0:
            raise ValueError(f"surprise is {arrays['surprise'][0]}; expected a sum of squares")
        self._take_over(arrays)
        nodes, _ = self.touched.leafward
        means = self.transform_some(nodes, self.touched.parent_position, np.zeros((n, d)))
        if not (np.isfinite(means).all() and (np.abs(self._target) < _FARTHEST).all()):
            raise ValueError("target has numbers that are too large to compute with")

    def _take_over(self, arrays: Mapping[str, Any]) -> None:
        """Have the state that `arrays` gave, for the slots that are touched."""
        self._triangle, self._pull, self._target = arrays["triangle"], arrays["pull"], arrays["target"]
        self._count, self._surprise = arrays["count"], arrays["surprise"]
        self._root = np.empty_like(self._triangle)
        self._stale = np.ones(len(self._triangle), dtype=np.bool_)

    def _check_triangles(self, triangle: Floats, pull: Floats) -> None:
        """Refuse C and E that no rows make: rotations keep C'C - I = L'ML and C'E = L'M, with the same M."""
        d = len(self._mean)
        identity = np.eye(d)
        diagonal = np.diagonal(triangle, axis1=1, axis2=2)
        sound = bool((diagonal >= 1.0 - _ROUNDING).all()) and not np.tril(triangle, -1).any()
        sound = sound and bool((np.abs(triangle) < LARGEST).all() and (np.abs(pull) < LARGEST).all())
        step = max(1, _BLOCK // (d * d))
        for start in range(0, len(triangle) if sound else 0, step):
            C, E = triangle[start : start + step], pull[start : start + step].transpose(0, 2, 1)
            L = self._factor[self.touched.class_[start : start + step]].transpose(0, 2, 1)
            size = np.abs(C).max(axis=(1, 2), keepdims=True)
            C, E, identity_here = C / size, E / size, identity / size**2
            off = np.abs(C.transpose(0, 2, 1) @ (C - E @ L) - identity_here).max(axis=(1, 2))
            reach = np.abs(E).sum(axis=(1, 2)) * np.abs(L).sum(axis=(1, 2))
            sound = sound and bool((off <= _ROUNDING * (1.0 + reach)).all())
        if not sound:
            raise ValueError("triangle and pull are not such as rows could have made")

    # -- observations --------------------------------------------------------------------------

    def observe(self, leaves: Nodes, rewards: Floats, contexts: Floats, exposure: Any = None) -> None:  # noqa: ARG002
        """Add rewards of leaves in contexts (n, d)."""
        before = self.touched.count
        slots = self.touched.touch(leaves)
        self._make_room(before)
        np.add.at(self._count, slots, 1)
        deviation = math.sqrt(self._noise)
        rows = contexts / deviation
        values = (rewards - contexts @ self._mean) / deviation
        if len(slots) > 1:
            slots, rows, values = self._fewer_rows(slots, rows, values)
        self._observe_rows(slots, rows, values)

    def absorb(self, leaves: Nodes, statistics: Statistics) -> None:
        """Add the rewards that were summed for distinct leaves, as at most d rows a leaf."""
        rows, values, residual = statistics.as_rows(self._mean)
        before = self.touched.count
        slots = self.touched.touch(leaves)
        self._make_room(before)
        self._count[slots] += statistics.count
        self._surprise += residual.sum() / self._noise
        deviation = math.sqrt(self._noise)
        d = len(self._mean)
        self._observe_rows(np.repeat(slots, d), rows.reshape(-1, d) / deviation, values.reshape(-1) / deviation)

    def place(self, leaves: Nodes, rows: Floats, values: Floats) -> None:
        """Forget everything, and have leaves say that row' t = value with unit noise, one for each of their rows.

        t is the parameter's deviation from the prior mean.
        """
        before = self.touched.count
        slots = self.touched.touch(leaves)
        self._make_room(before)
        n = self.touched.count
        self._triangle[:n] = np.eye(len(self._mean))
        self._pull[:n], self._target[:n], self._surprise[:] = 0.0, 0.0, 0.0
        self._stale[:n] = True
        self._observe_rows(*self._fewer_rows(slots, rows, values))

    def _observe_rows(self, slots: Nodes, rows: Floats, values: Floats) -> None:
        kernels.observe_rows(
            slots, rows, values, self.touched.parent, self.touched.class_, self._factor, self._triangle, self._pull,
            self._target, self._stale, self._surprise,
        )  # fmt: skip

    def _fewer_rows(self, slots: Nodes, rows: Floats, values: Floats) -> tuple[Nodes, Floats, Floats]:
        """The same observations in at most d rows a leaf, so that a path is walked at most d times a leaf."""
        order = np.argsort(slots, kind="stable")
        slots, rows, values = slots[order], rows[order], values[order]
        n, d = rows.shape
        counts = np.diff(np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1], [True]])))
        total = int(np.minimum(counts, d).sum())
        if total == n:
            return slots, rows, values
        kept_slots, kept = np.empty(total, dtype=np.int32), np.zeros((total, d + 1))
        kernels.triangulate(slots, np.column_stack([rows, values]), counts, kept_slots, kept, self._surprise)
        return kept_slots, np.ascontiguousarray(kept[:, :d]), kept[:, d].copy()

    def _make_room(self, before: int) -> None:
        n = self.touched.count
        if n > len(self._count):
            # A slot of d = 32 takes 25 kB, so room grows gently.
            size = max(n, len(self._count) + len(self._count) // 8, 16)
            try:
                self._triangle = grown(self._triangle, size)
                self._pull = grown(self._pull, size)
                self._target = grown(self._target, size)
                self._root = grown(self._root, size)
                self._stale = grown(self._stale, size)
                self._count = grown(self._count, size)  # last: its length says how much room there is
            except MemoryError:
                self.touched.forget(before)
                raise
        self._triangle[before:n] = np.eye(len(self._mean))
        self._stale[before:n] = True  # even where no row follows

    def _refreshed_roots(self) -> Floats:
        """F' by slot, with the stale ones computed again."""
        kernels.refresh_roots(
            self._stale[: self.touched.count], self.touched.class_, self._factor, self._triangle, self._root
        )
        return self._root

    # -- answers -------------------------------------------------------------------------------

    def transform(self, normals: Floats) -> Floats:
        """A posterior sample of every node from (V, d) standard normals, which are overwritten."""
        kernels.sample_all(
            normals, self._tree.parent, self._class_of_node, self._factor, self._mean, *self.touched.leafward,
            self._pull, self._target, self._refreshed_roots(),
        )  # fmt: skip
        return normals

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        kernels.sample_some(
            normals, parent_position, self._class_of_node[nodes], self._factor, self._mean, self.touched.slots(nodes),
            self._pull, self._target, self._refreshed_roots(),
        )  # fmt: skip
        return normals

    def touched_values(self, rng: np.random.Generator, context: Floats) -> Floats:
        """(T,) a joint draw of the touched nodes by slot, in the direction of the context."""
        n = self.touched.count
        draws = standard_normals(rng, (n, len(self._mean)))
        slots = np.arange(n, dtype=np.int32)
        kernels.sample_some(
            draws, self.touched.parent, self.touched.class_, self._factor, self._mean, slots, self._pull, self._target,
            self._refreshed_roots(),
        )  # fmt: skip
        return draws @ context

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
        kernels.covariances(
            out, self._tree.parent, self._class_of_node, self._covariance, *self.touched.leafward,
            at_slot,
        )  # fmt: skip
        return out

    def _slot_covariances(self) -> Floats:
        """(T, d, d): S + A cov(parent) A', leafward, with S = F F' and A = I - F E."""
        n = self.touched.count
        root = self._refreshed_roots()[:n].transpose(0, 2, 1)
        gain = np.eye(len(self._mean)) - root @ self._pull[:n].transpose(0, 2, 1)
        out = root @ root.transpose(0, 2, 1)
        kernels.spread_leafward(self.touched.parent, np.ascontiguousarray(gain), out)
        return out

    def action_moments(self, context: Floats) -> tuple[Floats, Floats]:
        """(K,) the mean and the variance of each action's mean reward in that context."""
        touched_variance = np.einsum("i,nij,j->n", context, self._slot_covariances(), context)
        class_variance = np.einsum("i,nij,j->n", context, self._covariance, context)
        variance = np.empty(self._tree.n_nodes)
        kernels.projected_variances(
            variance, self._tree.parent, self._class_of_node, class_variance, *self.touched.leafward, touched_variance,
        )  # fmt: skip
        # Where the covariance is singular, rounding may leave a variance just below zero.
        return self._tree.at_leaves(self.mean()) @ context, np.maximum(self._tree.at_leaves(variance), 0.0)

    def conditional(self, node: int) -> tuple[Floats, Floats, Floats]:
        """(gain, offset, covariance) of a node given its parent."""
        d = len(self._mean)
        slot = int(self.touched.slots(np.array([node], dtype=np.int32))[0])
        if slot < 0:
            return np.eye(d), np.zeros(d), self._covariance[self._class_of_node[node]].copy()
        root = self._refreshed_roots()[slot].T
        loss = root @ self._pull[slot].T
        return np.eye(d) - loss, root @ self._target[slot] + loss @ self._mean, root @ root.T

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        n = self.touched.count
        log_det = 2.0 * np.log(np.diagonal(self._triangle[:n], axis1=1, axis2=2)).sum()
        constant = float(self._count[:n].sum()) * math.log(2.0 * math.pi * self._noise)
        return -0.5 * float(constant + log_det + self._surprise[0])

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        return np.rint(self.touched.add_up(self._count[: self.touched.count].copy())).astype(np.int64)
