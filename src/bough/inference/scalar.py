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
from collections.abc import Mapping
from typing import Any

import numpy as np

from bough.arrays import Floats, Integers, Nodes
from bough.inference.jit import kernel
from bough.inference.touched import Touched
from bough.model import GaussianModel

# Columns of the state of a slot, and of its law given the parent, which is all that sampling reads.
_M, _ETA, _M_TOLD, _ETA_TOLD, _COUNT, _SPREAD = range(6)
_GAIN, _OFFSET, _DEVIATION = range(3)


class ScalarEngine:
    """State and operations of the posterior of a K-armed model; nodes and rewards come in checked."""

    def __init__(self, model: GaussianModel) -> None:
        self._tree = model.tree
        self._mean = float(model.mean)
        self._noise = model.noise_variance
        self._class_of_node = model.classes.of_node
        self._variance = model.classes.table  # (n_classes,)
        self._deviation = model.class_factors  # (n_classes,)
        self.touched = Touched(model.tree, model.classes.of_node)
        self._state = np.zeros((16, 6))
        self._law = np.zeros((16, 3))

    @property
    def _used(self) -> Floats:
        return self._state[: self.touched.count]

    def arrays(self) -> dict[str, Any]:
        """Everything that has been learned, for a file."""
        return {**self.touched.arrays(), "state": self._used}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take over what `arrays` gave."""
        self.touched.restore(arrays)
        self._state = np.array(arrays["state"], dtype=np.float64)
        self._law = np.zeros((len(self._state), 3))
        self._refresh(np.arange(len(self._state), dtype=np.int32)[::-1].copy())

    # -- observations --------------------------------------------------------------------------

    def observe(self, leaves: Nodes, rewards: Floats, _contexts: None = None) -> None:
        """Add rewards of leaves; each touched node is refreshed once."""
        slots = self.touched.touch(leaves)
        if self.touched.count > len(self._state):
            size = max(self.touched.count, 2 * len(self._state))
            self._state.resize((size, 6), refcheck=False)
            self._law.resize((size, 3), refcheck=False)
        _collect(slots, rewards, self._mean, 1.0 / self._noise, self._state)
        stale = np.empty(min(self.touched.count, len(slots) * (self._tree.height + 1)), dtype=np.int32)
        n_stale = _mark_paths(slots, self.touched.parent, self._law, stale)
        stale = stale[:n_stale]
        if len(slots) > 1:
            stale = np.sort(stale)[::-1].copy()
        self._refresh(stale)

    def _refresh(self, rootward: Nodes) -> None:
        """Bring the laws of slots, which come in descending order, up to date with their state."""
        _refresh(rootward, self.touched.parent, self.touched.class_, self._variance, self._state, self._law)

    # -- answers -------------------------------------------------------------------------------

    def transform(self, normals: Floats) -> Floats:
        """A posterior sample of every node from (V,) standard normals, which are overwritten."""
        _sample_all(
            normals, self._tree.parent, self._class_of_node, self._deviation, self._mean, *self.touched.leafward,
            self._law,
        )  # fmt: skip
        return normals

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        slots = self.touched.slots(nodes)
        classes = self._class_of_node[nodes]
        _sample_some(normals, parent_position, classes, self._deviation, self._mean, slots, self._law)
        return normals

    def mean(self) -> Floats:
        """(V,) the posterior means: a sample whose normals are all zero."""
        return self.transform(np.zeros(self._tree.n_nodes))

    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        out = np.empty(self._tree.n_nodes)
        _variances(
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
        loss = variance * float(self._state[slot, _M])  # 1 - gain, without the cancellation
        return gain, offset + loss * self._mean, variance

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        count = float(self._used[:, _COUNT].sum())
        deviance = _deviance(self.touched.parent, self.touched.class_, self._variance, self._noise, self._used)
        return -0.5 * (count * math.log(2.0 * math.pi * self._noise) + float(deviance))

    def slot_counts(self) -> Integers:
        """(T,) the observations at or below each slot."""
        return self.touched.add_up(self._used[:, _COUNT].astype(np.int64))


@kernel
def _collect(
    slots: Nodes,  # (n,)
    rewards: Floats,  # (n,)
    mean: float,
    precision: float,  # of one reward
    state: Floats,  # (T, 6)
) -> None:
    """Adds each reward to its leaf's row of state."""
    for i in range(len(slots)):
        slot = slots[i]
        reward = rewards[i] - mean
        if state[slot, _COUNT] > 0.0:
            # Welford's sum of squares around the running mean, which is eta / M.
            off = reward - state[slot, _ETA] / state[slot, _M]
            state[slot, _SPREAD] += off * off * state[slot, _COUNT] / (state[slot, _COUNT] + 1.0)
        state[slot, _COUNT] += 1.0
        state[slot, _M] += precision
        state[slot, _ETA] += precision * reward


@kernel
def _mark_paths(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    law: Floats,  # (T, 3)
    stale: Nodes,  # (room,)
) -> int:
    """Overwrites stale with the slots on the paths to the root, each once; returns how many.

    A negative gain, which no law has, marks a slot that is listed already.
    """
    n_stale = 0
    for i in range(len(slots)):
        slot = slots[i]
        while slot >= 0 and not law[slot, _GAIN] < 0.0:
            law[slot, _GAIN] = -1.0
            stale[n_stale] = slot
            n_stale += 1
            slot = parent[slot]
    return n_stale


@kernel
def _refresh(
    rootward: Nodes,  # (n,) slots, descending
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws of the given slots, and tells their parents' states what has changed."""
    for i in range(len(rootward)):
        slot = rootward[i]
        v = variance[slot_class[slot]]
        m = state[slot, _M]
        eta = state[slot, _ETA]
        gain = 1.0 / (1.0 + v * m)
        law[slot, _GAIN] = gain
        law[slot, _OFFSET] = v * gain * eta
        law[slot, _DEVIATION] = math.sqrt(v * gain)
        above = parent[slot]
        if above >= 0:
            state[above, _M] += m * gain - state[slot, _M_TOLD]
            state[above, _ETA] += eta * gain - state[slot, _ETA_TOLD]
        state[slot, _M_TOLD] = m * gain
        state[slot, _ETA_TOLD] = eta * gain


@kernel
def _sample_all(
    out: Floats,  # (V,) standard normals on entry, parameters on return
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out. Untouched stretches follow the prior; between them stand the touched nodes."""
    start = 0
    if len(nodes) == 0:
        out[0] = mean + deviation[class_of_node[0]] * out[0]
        start = 1
    for k in range(len(nodes)):
        slot = slots[k]
        node = nodes[k]
        for i in range(start, node):
            out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]
        above = out[tree_parent[node]] - mean if node > 0 else 0.0
        out[node] = mean + law[slot, _GAIN] * above + law[slot, _OFFSET] + law[slot, _DEVIATION] * out[node]
        start = node + 1
    for i in range(start, len(out)):
        out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]


@kernel
def _sample_some(
    out: Floats,  # (n,) standard normals on entry, parameters on return
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,) -1 where untouched
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out, parents before children."""
    for i in range(len(out)):
        above = out[parent_position[i]] - mean if parent_position[i] >= 0 else 0.0
        slot = slots[i]
        if slot >= 0:
            out[i] = mean + law[slot, _GAIN] * above + law[slot, _OFFSET] + law[slot, _DEVIATION] * out[i]
        else:
            out[i] = mean + above + deviation[classes[i]] * out[i]


@kernel
def _variances(
    out: Floats,  # (V,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out: S + A var(parent) A, leafward."""
    touched = 0
    for i in range(len(out)):
        above = out[tree_parent[i]] if i > 0 else 0.0
        if touched < len(nodes) and nodes[touched] == i:
            slot = slots[touched]
            out[i] = law[slot, _DEVIATION] ** 2 + law[slot, _GAIN] ** 2 * above
            touched += 1
        else:
            out[i] = above + variance[class_of_node[i]]


@kernel
def _deviance(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    noise: float,
    state: Floats,  # (T, 6)
) -> float:
    """Minus twice the log evidence, without its constant: a sum of terms that are none of them negative.

    A node's message says eta~ / M~ with precision M~; how far that is from the mean of what its siblings and it
    said together is what their parent finds surprising. The same at the leaves is the spread of the rewards.
    """
    total = 0.0
    for slot in range(len(state)):
        m = state[slot, _M]
        above = parent[slot]
        expected = state[above, _ETA] / state[above, _M] if above >= 0 else 0.0
        total += state[slot, _M_TOLD] * (state[slot, _ETA] / m - expected) ** 2
        total += math.log1p(variance[slot_class[slot]] * m)
        total += state[slot, _SPREAD] / noise
    return total
