"""The exact posterior where parameters are numbers (d = 1).

Parameters are kept as deviations from the prior mean. A slot holds what its node has collected from below, a
precision M and an information eta, and what it has already told its parent. With v the node's prior variance,

    gain       A = 1 / (1 + v M)                  theta_i | theta_p ~ N(A theta_p + S eta, S)
    variance   S = v A
    message    M~ = M A,  eta~ = eta A

are the formulas of docs/mathematics.md written without a difference of close numbers, so nothing is lost where v M is
huge or zero. A parent's M and eta change by the difference between a child's new message and its old.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough.arrays import Flags, Floats, Integers, Nodes
from bough.covariance import LARGEST
from bough.inference import scalar_kernels as kernels
from bough.inference.normals import standard_normals
from bough.inference.touched import Touched, check_counts, grown
from bough.model import Model
from bough.statistics import Statistics
from bough.storage import Contents

_MESSAGES = 4  # columns of the state that a node has from its children, or tells its parent
_ROUNDING = 1e-6  # relative; sums of 10^9 rewards are off by less
_FARTHEST = 10.0 * LARGEST  # a mean of rewards


class ScalarEngine:
    """State and operations of the posterior of a K-armed model; nodes and rewards come in checked."""

    _n_columns = 6  # of the state

    def __init__(self, model: Model, noise_variance: float = 1.0) -> None:
        self._tree = model.tree
        self._mean = float(model.mean)
        self._noise = noise_variance
        self._class_of_node = model.classes.of_node
        self._variance = model.classes.table  # (n_classes,)
        self._deviation = model.class_factors  # (n_classes,)
        self.touched = Touched(model.tree, model.classes.of_node)
        self._state = np.zeros((16, self._n_columns))
        self._law = np.zeros((16, 3))

    @property
    def _used(self) -> Floats:
        return self._state[: self.touched.count]

    def arrays(self) -> dict[str, Any]:
        """Everything that has been learned, for a file."""
        return {**self.touched.arrays(), "state": self._used}

    def restore(self, contents: Contents) -> None:
        """Take over what `arrays` gave a file; only what it says of leaves is believed."""
        self.touched.restore(contents)
        state = contents.array("state", np.float64, (self.touched.count, self._n_columns))
        self._check(state, self.touched.is_leaf)
        self._law = np.zeros((len(state), 3))
        sizes, messages = self._collected(np.abs(state[:, :_MESSAGES])), self._collected(state[:, :_MESSAGES])
        if not (np.isfinite(messages).all() and np.isfinite(self._law).all()):
            raise ValueError("state has numbers that are too large to compute with")
        # Sums that were taken in another order are kept, so that the posterior goes on bit for bit.
        if any((np.abs(state[:, i] - messages[:, i]) > _ROUNDING * sizes[:, i]).any() for i in range(_MESSAGES)):
            state[:, :_MESSAGES] = messages
        self._state = state
        self._refresh(np.arange(len(state), dtype=np.int32)[::-1].copy())

    def _collected(self, given: Floats) -> Floats:
        """The messages (T, 4) that follow from those of the leaves; overwrites the laws."""
        told = np.zeros(given.shape)
        told[:, : kernels.M_TOLD] = np.where(self.touched.is_leaf[:, None], given[:, : kernels.M_TOLD], 0.0)
        rootward = np.arange(len(told), dtype=np.int32)[::-1].copy()
        kernels.refresh(rootward, self.touched.parent, self.touched.class_, self._variance, told, self._law)
        return told

    def _check(self, state: Floats, is_leaf: Flags) -> None:
        """Refuse a state that has at its leaves what no rewards leave there."""
        count, precision, spread = state[:, kernels.COUNT], state[:, kernels.M], state[:, kernels.SPREAD]
        check_counts(count, is_leaf)
        expected = count / self._noise
        sound = (count > 0.0) & (np.abs(precision - expected) <= _ROUNDING * expected)
        sound &= np.abs(state[:, kernels.ETA]) / _FARTHEST < precision
        if not sound[is_leaf].all() or (spread < 0.0).any() or spread[~is_leaf].any():
            raise ValueError("state is not one that rewards could have made")

    # -- observations --------------------------------------------------------------------------

    def observe(self, leaves: Nodes, rewards: Floats, _contexts: None = None, exposure: Any = None) -> None:  # noqa: ARG002
        """Add rewards of leaves; each touched node is refreshed once."""
        slots = self._touch(leaves)
        if len(slots) == 1:
            kernels.observe_one(
                slots, rewards, self._mean, 1.0 / self._noise, self.touched.parent, self.touched.class_, self._variance,
                self._state, self._law,
            )  # fmt: skip
            return
        kernels.collect(slots, rewards, self._mean, 1.0 / self._noise, self._state)
        self._refresh_paths(slots)

    def absorb(self, leaves: Nodes, statistics: Statistics) -> None:
        """Add the rewards that were summed for distinct leaves."""
        averages, spreads = statistics.averages_and_spreads()
        slots = self._touch(leaves)
        kernels.collect_sums(slots, statistics.count, averages - self._mean, spreads, 1.0 / self._noise, self._state)
        self._refresh_paths(slots)

    def place(self, leaves: Nodes, precision: Floats, information: Floats) -> None:
        """Have each of some distinct leaves say exp(information t - precision t^2 / 2), and nothing else.

        t is the parameter's deviation from the prior mean. What the leaf said before is taken back.
        """
        slots = self._touch(leaves)
        self._state[slots, kernels.M] = precision
        self._state[slots, kernels.ETA] = information
        self._refresh_paths(slots)

    def _touch(self, leaves: Nodes) -> Nodes:
        """The leaves' slots, with room for what is kept of them."""
        before = self.touched.count
        slots = self.touched.touch(leaves)
        if self.touched.count > len(self._state):
            try:
                size = max(self.touched.count, 2 * len(self._state))
                self._law = grown(self._law, size)
                self._state = grown(self._state, size)
            except MemoryError:
                self.touched.forget(before)
                raise
        return slots

    def _refresh_paths(self, slots: Nodes) -> None:
        """Bring the laws on the paths from these slots to the root up to date."""
        stale = np.empty(min(self.touched.count, len(slots) * (self._tree.height + 1)), dtype=np.int32)
        n_stale = kernels.mark_paths(slots, self.touched.parent, self._law, stale)
        self._refresh(np.sort(stale[:n_stale])[::-1].copy())

    def _refresh(self, rootward: Nodes) -> None:
        """Bring the laws of slots, which come in descending order, up to date with their state."""
        kernels.refresh(rootward, self.touched.parent, self.touched.class_, self._variance, self._state, self._law)

    # -- answers -------------------------------------------------------------------------------

    def transform(self, normals: Floats) -> Floats:
        """A posterior sample of every node from (V,) standard normals, which are overwritten."""
        kernels.sample_all(
            normals, self._tree.parent, self._class_of_node, self._deviation, self._mean, *self.touched.leafward,
            self._law,
        )  # fmt: skip
        return normals

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        slots = self.touched.slots(nodes)
        classes = self._class_of_node[nodes]
        kernels.sample_some(normals, parent_position, classes, self._deviation, self._mean, slots, self._law)
        return normals

    def touched_values(self, rng: np.random.Generator, _context: None = None) -> Floats:
        """(T,) a joint draw of the touched nodes, by slot."""
        values = standard_normals(rng, (self.touched.count,))
        kernels.sample_touched(values, self.touched.parent, self._mean, self._law)
        return values

    def class_deviations(self, _context: None = None) -> Floats:
        """(n_classes,) the standard deviation of a node given its parent."""
        return self._deviation

    def mean(self) -> Floats:
        """(V,) the posterior means: a sample whose normals are all zero."""
        return self.transform(np.zeros(self._tree.n_nodes))

    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        out = np.empty(self._tree.n_nodes)
        kernels.variances(
            out, self._tree.parent, self._class_of_node, self._variance, *self.touched.leafward,
            self._law,
        )  # fmt: skip
        return out

    def action_moments(self, _context: None = None) -> tuple[Floats, Floats]:
        """(K,) the mean and the variance of each action's mean reward."""
        return self._tree.at_leaves(self.mean()), self._tree.at_leaves(self.covariance())

    def conditional(self, node: int) -> tuple[float, float, float]:
        """(gain, offset, variance) of a node given its parent."""
        slot = int(self.touched.slots(np.array([node], dtype=np.int32))[0])
        if slot < 0:
            return 1.0, 0.0, float(self._variance[self._class_of_node[node]])
        gain, offset, _ = self._law[slot].tolist()
        variance = float(self._variance[self._class_of_node[node]] * gain)
        loss = variance * float(self._state[slot, kernels.M])  # 1 - gain, without the cancellation
        return gain, offset + loss * self._mean, variance

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        count = float(self._used[:, kernels.COUNT].sum())
        deviance = kernels.deviance(self.touched.parent, self.touched.class_, self._variance, self._noise, self._used)
        return -0.5 * (count * math.log(2.0 * math.pi * self._noise) + float(deviance))

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        return np.rint(self.touched.add_up(self._used[:, kernels.COUNT].copy())).astype(np.int64)
