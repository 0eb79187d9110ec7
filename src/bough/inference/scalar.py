"""The exact posterior where parameters are numbers (d = 1).

Parameters are kept as deviations from the prior mean. A slot holds what its node has collected from below, a
precision M and an information eta, and what it has sent to its parent. With v the node's prior variance,

    gain       A = 1 / (1 + v M)                  theta_i | theta_p ~ N(A theta_p + S eta, S)
    variance   S = v A
    message    M~ = M A,  eta~ = eta A

are the formulas of docs/explanation/mathematics.md written without a difference of close numbers, so nothing is lost
where v M is huge or zero. A parent's M and eta change by the difference between a child's new message and its old.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.engine import TableEngine
from bough.inference.evidence import Evidence, RewardEvidence
from bough.inference.kernels import scalar as kernels
from bough.inference.kernels import scalar_draws as draws
from bough.inference.normals import scaled_normals
from bough.inference.slots import grown
from bough.model.model import Model


class ScalarEngine(TableEngine):
    """State and operations of the posterior of a K-armed model; nodes and rewards come in checked."""

    _learned: ClassVar[tuple[str, ...]] = ("_state", "_law")
    _says_what_it_counts: ClassVar[bool] = True
    """Whether actions say half as much where their rewards count half, so that these need not be looked at."""

    def __init__(self, model: Model, kind: Evidence | None = None) -> None:
        super().__init__(model, RewardEvidence() if kind is None else kind)
        self._tree = model.tree
        self._mean = float(model.mean)
        self._precision = 1.0 / model.likelihood.noise_deviation**2  # of one reward
        self._class_of_node = model.classes.of_node
        self._variance = model.classes.table  # (n_classes,)
        self._deviation = model.class_factors  # (n_classes,)
        self._state = np.zeros((16, 4))
        self._law = np.zeros((16, 3))

    # -- observations --------------------------------------------------------------------------

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one reward of a leaf, and refresh its path to the root."""
        if self._faded != 1.0:
            self.observe(Rows(np.array([leaf], dtype=np.int32), np.array([reward]), None, None))
            return
        slots = self.slots
        while not kernels.observe_one(
            leaf, reward, 1.0 / self._unit, self._mean, self._precision * self._unit, slots._node, slots._table,
            slots._parent, slots._class, slots._row, self._variance, self._table, self._state, self._law,
        ):  # fmt: skip
            self._touch(np.array([leaf], dtype=np.int32))
        self.news.of_one(leaf)

    def observe(self, rows: Rows, settle: bool = True) -> None:  # noqa: ARG002
        """Add rewards of leaves; each touched node is refreshed once."""
        self._collect(rows.leaves, rows.counts, rows.rewards, np.zeros(len(rows.rewards)))

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:  # noqa: ARG002
        """Add the rewards that were summed for distinct leaves."""
        self._collect(leaves, statistics.count, *statistics.averages_and_spreads())

    def _collect(self, leaves: Nodes, counts: Floats, averages: Floats, spreads: Floats) -> None:
        slots = self._touch_batch(leaves)
        self.news.of_some(leaves)
        stale = np.empty(min(self.slots.count, len(slots) * (self._tree.height + 1)), dtype=np.int32)
        now = 1.0 / (self._unit * self._faded)
        kernels.collect(
            slots, self.slots.row, now * counts, averages, now * spreads, self._mean, self._precision * self._unit,
            self._table, self._state,
        )  # fmt: skip
        if self._faded == 1.0:  # or all messages are made again anyway, before they are read
            self._refresh_paths(slots, stale)

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence of distinct leaves and nothing else."""
        slots = self._touch(leaves)
        self._table[:] = 0.0
        self._table[self.slots.row[slots]] = self.kind.taken(evidence)
        self._unit = self._faded = 1.0
        self._say_all()

    def _begin(self, slots: Nodes) -> None:
        kept = self.slots
        self.news.of_some(kept._node[slots])
        kernels.refresh_paths(slots, kept._parent, kept._class, self._variance, self._state, self._law)

    def _say(self, slots: Nodes) -> None:
        m, eta = self._said(self._table[self.slots.row[slots]])
        self._state[slots, kernels.M], self._state[slots, kernels.ETA] = m, eta
        self._begin(slots)

    def _say_all(self) -> None:
        slots = self.slots.of_rows
        self.place_sites(slots, *self._said(self._table[: len(slots)]))

    def _fade(self, factor: float) -> None:
        if not self._says_what_it_counts:
            super()._fade(factor)
            return
        self._unit *= factor
        kept = self.slots
        self.news.of_all()
        kernels.fade(factor, kept.parent, kept.class_, kept.row, self._variance, self._state, self._law)

    def _said(self, evidence: Floats) -> tuple[Floats, Floats]:
        """What actions say of their parameters: a precision and an information for each row of evidence."""
        m = self._precision * self._unit * evidence[:, kernels.COUNT]
        return m, m * (evidence[:, kernels.MEAN] - self._mean)

    def place_sites(self, slots: Nodes, precision: Floats, information: Floats) -> None:
        """Have each of some slots of actions say exp(information t - precision t^2 / 2), and all others nothing.

        t is the parameter's deviation from the prior mean.
        """
        self.news.of_all()
        self._state[: self.slots.count, : kernels.M_SENT] = 0.0
        self._state[slots, kernels.M] = precision
        self._state[slots, kernels.ETA] = information
        kernels.remake(self.slots.parent, self.slots.class_, self.slots.row, self._variance, self._state, self._law)

    def _make_room(self, before: int) -> None:  # noqa: ARG002
        if self.slots.count > len(self._state):
            size = max(self.slots.count, 2 * len(self._state))
            self._law, self._state = grown(self._law, size), grown(self._state, size)

    def _refresh_paths(self, slots: Nodes, stale: Nodes) -> None:
        """Bring the laws on the paths from these slots to the root up to date; stale is room for all of them."""
        n_stale = kernels.mark_paths(slots, self.slots.parent, self._law, stale)
        leafward = stale[:n_stale]
        leafward.sort()  # in place: from here on nothing may fail
        kernels.refresh(leafward, self.slots.parent, self.slots.class_, self._variance, self._state, self._law)

    # -- answers -------------------------------------------------------------------------------

    def bring_up_to_date(self) -> None:
        """Take in what was put off, so that laws can be read."""
        self._made_good()

    def is_finite(self) -> bool:
        """Whether the laws of all touched nodes are numbers that can be computed with."""
        self._made_good()
        n, (nodes, _) = self.slots.count, self.slots.leafward
        means = self.transform_some(nodes, self.slots.parent_position, np.zeros(n))
        return all(bool(np.isfinite(array).all()) for array in (self._state[:n], self._law[:n], means))

    def transform(self, normals: Floats, scale: float = 1.0) -> Floats:  # noqa: ARG002
        """A posterior sample of every node from (V,) standard normals, which are overwritten."""
        self._made_good()
        draws.sample_all(
            normals, self._tree.parent, self._class_of_node, self._deviation, self._mean, *self.slots.leafward,
            self._law,
        )  # fmt: skip
        return normals

    def transform_some(
        self, nodes: Nodes, parent_position: Nodes, normals: Floats, scale: float = 1.0  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals."""
        self._made_good()
        slots = self.slots.find(nodes)
        classes = self._class_of_node.take(nodes, mode="clip")  # nodes beyond the tree's have slots
        draws.sample_some(normals, parent_position, classes, self._deviation, self._mean, slots, self._law)
        return normals

    def touched_values(
        self, rng: np.random.Generator, scale: float = 1.0, only_best: bool = False  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """(T,) a joint draw of the touched nodes, by slot, its deviations from the mean times the scale."""
        self._made_good()
        values = scaled_normals(rng, (self.slots.count,), scale)
        draws.sample_touched(values, self.slots.parent, self._mean, self._law)
        return values

    def touched_means(self) -> Floats:
        """(T,) the means of the touched nodes, by slot."""
        self._made_good()
        means = np.zeros(self.slots.count)
        draws.sample_touched(means, self.slots.parent, self._mean, self._law)
        return means

    def draw_arrays(self) -> tuple[Nodes, float, Floats]:
        """The parents of slots, the prior mean, and the laws: what a compiled draw of the touched nodes takes."""
        self._made_good()
        return self.slots.parent, self._mean, self._law[: self.slots.count]

    def class_deviations(self, _context: None = None) -> Floats:
        """(n_classes,) the standard deviation of a node given its parent."""
        return self._deviation

    def mean(self) -> Floats:
        """(V,) the posterior means: a sample whose normals are all zero."""
        return self.transform(np.zeros(self._tree.n_nodes))

    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        self._made_good()
        out = np.empty(self._tree.n_nodes)
        draws.variances(
            out, self._tree.parent, self._class_of_node, self._variance, *self.slots.leafward,
            self._law,
        )  # fmt: skip
        return out

    def node_moments(self, _context: None = None) -> tuple[Floats, Floats]:
        """(V,) the mean and the variance of each node."""
        return self.mean(), self.covariance()

    def some_moments(self, nodes: Nodes, parent_position: Nodes, _context: None = None) -> tuple[Floats, Floats]:
        """(n,) the mean and the variance of nodes (ascending, closed under parents)."""
        self._made_good()
        means, variances = np.empty(len(nodes)), np.empty(len(nodes))
        classes = self._class_of_node.take(nodes, mode="clip")  # nodes beyond the tree's have slots
        draws.moments_of_some(
            means, variances, parent_position, classes, self._variance, self._mean, self.slots.find(nodes), self._law
        )
        return means, variances

    def action_moments(self, _context: None = None) -> tuple[Floats, Floats]:
        """(K,) the mean and the variance of each action's score."""
        return self._tree.at_leaves(self.mean()), self._tree.at_leaves(self.covariance())

    def conditional(self, node: int) -> tuple[float, float, float]:
        """(gain, offset, variance) of a node given its parent."""
        self._made_good()
        slot = int(self.slots.find(np.array([node], dtype=np.int32))[0])
        if slot < 0:
            return 1.0, 0.0, float(self._variance[self._class_of_node[node]])
        gain, offset, _ = self._law[slot].tolist()
        variance = float(self._variance[self.slots.class_[slot]] * gain)
        loss = variance * float(self._state[slot, kernels.M])  # 1 - gain, without the cancellation
        return gain, offset + loss * self._mean, variance

    def laws(self, nodes: Nodes) -> tuple[Floats, Floats, Floats]:
        """(n,) three times: the gain, the offset and the deviation of nodes given their parents.

        Values are deviations from the prior mean. Where all deviations are multiplied by a factor, around the same
        means, gains and offsets stay as they are.
        """
        self._made_good()
        slots = self.slots.find(nodes)
        touched = np.flatnonzero(slots >= 0)
        gain, offset = np.ones(len(nodes)), np.zeros(len(nodes))
        deviation = self._deviation[self._class_of_node.take(nodes, mode="clip")]  # nodes beyond the tree's have slots
        gain[touched], offset[touched], deviation[touched] = self._law[slots[touched]].T
        return gain, offset, deviation

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        count, spread = self.table[:, kernels.COUNT].sum(), self.table[:, kernels.SPREAD].sum()
        slots, state = self.slots, self._state[: self.slots.count]
        deviance = draws.deviance(slots.parent, slots.class_, self._variance, state) + spread * self._precision
        return -0.5 * (float(count) * math.log(2.0 * math.pi / self._precision) + float(deviance))
