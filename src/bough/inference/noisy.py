"""The posterior of a K-armed model whose actions have noise variances of their own.

The tree is the Gaussian one of scalar.py, with sites at the actions as in propagation.py. With its noise variance
integrated out, what an action's rewards say is a finite mixture of normals (kernels/noise_grid.py), so that a site is
in closed form: cavity times site has the mean and the variance of cavity times mixture. Where rewards contradict the
cavity so that it gets wider, the site's precision is zero, and its mean is right.
docs/explanation/noise.md has the formulas.

Given its parent, an action with rewards is an exact draw from a mixture of normals, and not normal: such actions are
drawn, wherever others would be searched or integrated. What has no rewards is as in scalar.py.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.evidence import NoiseEvidence
from bough.inference.kernels import noisy as kernels
from bough.inference.kernels import noisy_draws
from bough.inference.kernels import scalar as scalar_kernels
from bough.inference.kernels import scalar_draws as draws
from bough.inference.noise_grid import noise_grid, prior_mixture, room_for
from bough.inference.normals import standard_normals
from bough.inference.settling import SiteEngine
from bough.inference.slots import grown
from bough.model.model import Model

_PER_ACTION, _FEW = 4, 64  # uniforms that a draw begins with
_MOST_WIDENINGS = 10  # of mixtures while all is settled: each makes them good for twice as far


class NoisyActions(NamedTuple):
    """What is known of the noise of the actions with rewards, each by itself."""

    nodes: Nodes
    counts: Floats
    spread: Floats
    """The squares of their rewards around their mean."""
    off: Floats
    """How far that mean is from what all others say of the action, "cavity"."""
    variance: Floats
    """The variance of that."""

    def at(self, part: slice) -> NoisyActions:
        """Some of them."""
        nodes, counts, spread, off, variance = self
        return NoisyActions(nodes[part], counts[part], spread[part], off[part], variance[part])


class NoisyEngine(SiteEngine):
    """The engine of scalar.py, with a mixture of normals at its actions."""

    _learned: ClassVar[tuple[str, ...]] = (*SiteEngine._learned, "_where", "_pool", "_scratch")
    _site = kernels.SITE_M

    def __init__(self, model: Model) -> None:
        super().__init__(model, NoiseEvidence())
        self.is_normal = False
        self._grid = noise_grid(model.likelihood.per_action)
        self._room = room_for(self._grid) + kernels.CHUNK  # of one mixture
        self._scratch = np.empty((2, self._room))
        self._where = np.zeros((0, kernels.REACH + 1))
        self._pool = np.zeros((4 * self._room, 3))

    # -- observations --------------------------------------------------------------------------

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one reward of a leaf, and make its site again."""
        if self._faded != 1.0:
            self.observe(Rows(np.array([leaf], dtype=np.int32), np.array([reward]), None, None))
            return
        slots = self.slots
        if len(self._pool) - self._pool.item(0) < self._room:
            self._pool = grown(self._pool, 2 * len(self._pool))
        while not kernels.observe_one(
            leaf, reward, 1.0 / self._unit, self._mean, slots._node, slots._table, slots._parent, slots._class,
            slots._row, self._variance, self._grid, self._table, self._where, self._pool, self._scratch, self._state,
            self._law,
        ):  # fmt: skip
            self._touch(np.array([leaf], dtype=np.int32))
        self.news.of_one(leaf)

    def observe(self, rows: Rows, settle: bool = True) -> None:
        """Add rewards of leaves: one refreshes its path, and a batch ends settled unless that is left for later."""
        nothing = np.zeros(len(rows.rewards))
        self._add(rows.leaves, rows.counts, rows.rewards, nothing, settle=settle and len(rows.leaves) > 1)

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:
        """Add the rewards that were summed for distinct leaves."""
        self._add(leaves, statistics.count, *statistics.averages_and_spreads(), settle=settle)

    def _add(self, leaves: Nodes, counts: Floats, averages: Floats, spreads: Floats, *, settle: bool) -> None:
        slots = self._touch_batch(leaves)
        now = 1.0 / (self._unit * self._faded)
        kernels.collect(slots, self.slots.row, now * counts, averages, now * spreads, self._table)
        if self._faded != 1.0:  # all messages are made again before they are read
            return
        slots = np.unique(slots)
        slots = slots[self._table[self.slots.row[slots], scalar_kernels.COUNT] > 0.0]
        self._mix(slots)
        self._sweep(slots)  # once each, and relatives one after the other
        if settle:
            self._settle()

    def _mix(self, slots: Nodes) -> None:
        """Make the mixtures of actions anew."""
        kept = self.slots
        while len(slots):
            done = kernels.mix(
                slots, kept.row, kept.class_, self._variance, self._table, self._grid, self._where, self._pool,
                self._scratch,
            )  # fmt: skip
            slots = slots[done:]
            if len(slots):
                self._pool = grown(self._pool, 2 * len(self._pool))

    def _settle(self) -> None:
        super()._settle()
        for _ in range(_MOST_WIDENINGS):
            slots = self._widen_mixtures()
            if not len(slots):
                return
            self._table[self.slots.row[slots], kernels.WIDTH] = -1.0  # so that their sites are made again
            super()._settle()

    def _widen_mixtures(self) -> Nodes:
        """Make mixtures again that are not good for rewards so far from what others say of their action; whose."""
        slots, kept = self._observed_slots, self.slots
        found = np.empty(len(slots), dtype=np.bool_)
        kernels.outgrown(
            slots, kept.row, self._mean, kept.parent, kept.class_, self._variance, self._table, self._where,
            self._state, found,
        )  # fmt: skip
        self._mix(slots[found])
        return slots[found]

    def _make_room(self, before: int) -> None:
        super()._make_room(before)
        if len(self._where) < len(self._table):
            self._where = grown(self._where, len(self._table))

    def _say(self, slots: Nodes) -> None:
        self._mix(slots)
        super()._say(slots)

    def _say_all(self) -> None:
        self._pool[0] = 0.0
        self._where[:] = 0.0
        self._mix(self.slots.of_rows)
        super()._say_all()
        self._widen_mixtures()

    def _sweep(self, slots: Nodes, size: float = 1.0) -> int:
        kept = self.slots
        self.news.of_some(kept._node[slots])
        return kernels.sweep(
            slots, kept.row, self._mean, kept.parent, kept.class_, self._variance, self._table, self._where,
            self._pool, self._state, self._law, size,
        )  # fmt: skip

    def log_evidence(self) -> float:
        """Expectation propagation's log density of the rewards."""
        self._made_good()
        kept, state = self.slots, self._state[: self.slots.count]
        surplus = kernels.surplus(
            self._observed_slots, kept.row, self._mean, kept.parent, kept.class_, self._variance, self._table,
            self._where, self._pool, state,
        )  # fmt: skip
        return float(surplus + draws.log_mass(kept.class_, self._variance, state))

    # -- draws ---------------------------------------------------------------------------------

    def transform(self, normals: Floats, scale: float = 1.0) -> Floats:
        """A posterior sample of every node from (V,) standard normals times the scale, which are overwritten."""
        self._made_good()
        slots = self._observed_slots
        nodes = self.slots.node[slots]
        order = np.argsort(nodes)
        slots, at = slots[order], nodes[order]
        own = normals[at] / scale
        return self._with_leaves(super().transform(normals), at, self._tree.parent[at], own, slots, scale)

    def transform_some(self, nodes: Nodes, parent_position: Nodes, normals: Floats, scale: float = 1.0) -> Floats:
        """A joint posterior sample of nodes (ascending, closed under parents); overwrites normals times the scale."""
        self._made_good()
        found = self.slots_with_rewards(nodes)
        at = np.flatnonzero(found >= 0).astype(np.int32)
        own = normals[at] / scale
        out = super().transform_some(nodes, parent_position, normals)
        return self._with_leaves(out, at, parent_position[at].astype(np.int32), own, found[at], scale)

    def _with_leaves(self, out: Floats, at: Nodes, above: Nodes, normals: Floats, slots: Nodes, scale: float) -> Floats:
        """A sample whose actions with rewards, which are at these places, are drawn from their mixtures."""
        kept = self.slots
        means = np.empty(0) if scale == 1.0 else self.touched_means()
        noisy_draws.draw_leaves(
            out, at, above, normals, slots, kept.row, kept.class_, self._variance, self._mean, self._table,
            self._where, self._pool, scale, means, kept.parent,
        )  # fmt: skip
        return out

    def touched_values(self, rng: np.random.Generator, scale: float = 1.0, only_best: bool = False) -> Floats:
        """(T,) a joint draw of the touched nodes, by slot, its deviations from the mean times the scale."""
        self._made_good()
        kept, n = self.slots, self.slots.count
        all_matter = scale != 1.0 or not only_best
        normals, uniforms = standard_normals(rng, (n,)), rng.random(_PER_ACTION * n if all_matter else _FEW)
        values, scratch = np.empty((2, n))
        while not noisy_draws.draw_best(
            normals, uniforms, kept._parent, kept._choosable, kept._row, kept._class, self._variance, self._mean,
            self._law, self._where, self._pool, all_matter, values, scratch, self._scratch[0],
        ):  # fmt: skip
            uniforms = np.concatenate([uniforms, rng.random(len(uniforms))])
        if scale != 1.0:
            means = self.touched_means()
            values = means + scale * (values - means)
        return values

    def slots_with_rewards(self, nodes: Nodes) -> Nodes:
        """(n,) the slots of actions; -1 for those without rewards."""
        found = self.slots.find(nodes)
        known = np.flatnonzero(found >= 0)
        rows = self.slots.row[found[known]]
        known, rows = known[rows >= 0], rows[rows >= 0]
        known = known[self._table[rows, scalar_kernels.COUNT] > 0.0]
        slots = np.full(len(nodes), -1, dtype=np.int32)
        slots[known] = found[known]
        return slots

    def exceedance(self, slots: Nodes, limit: Floats, above: Floats, scale: float = 1.0) -> Floats:
        """(n, r) how likely actions with rewards are above (n, r) limits, given their parents, in scaled draws."""
        kept, out = self.slots, np.empty(limit.shape)
        if scale != 1.0:
            means = self.touched_means()
            centre, own = means[kept.parent[slots]], means[slots]
            above, limit = centre + (above - centre) / scale, own + (limit - own) / scale
        noisy_draws.exceedance(
            np.ascontiguousarray(limit), np.ascontiguousarray(above), slots, kept.row, kept.class_, self._variance,
            self._table, self._where, self._pool, out,
        )  # fmt: skip
        return out

    # -- moments -------------------------------------------------------------------------------

    def mean(self) -> Floats:
        """(V,) the posterior means."""
        means = super().transform(np.zeros(self._tree.n_nodes))
        nodes, mean, _ = self._widened()
        means[nodes] = mean
        return means

    def covariance(self) -> Floats:
        """(V,) the posterior variances."""
        variances = super().covariance()
        nodes, _, variance = self._widened()
        variances[nodes] = variance
        return variances

    def some_moments(self, nodes: Nodes, parent_position: Nodes, _context: None = None) -> tuple[Floats, Floats]:
        """(n,) the mean and the variance of nodes (ascending, closed under parents)."""
        means, variances = super().some_moments(nodes, parent_position)
        wide, mean, variance = self._widened()
        place = np.searchsorted(nodes, wide)
        there = np.flatnonzero(place < len(nodes))
        there = there[nodes[place[there]] == wide[there]]
        means[place[there]], variances[place[there]] = mean[there], variance[there]
        return means, variances

    def _widened(self) -> tuple[Nodes, Floats, Floats]:
        """The actions whose rewards contradict the rest, so that no site says how wide they are; their moments."""
        self._made_good()
        slots = self._observed_slots
        slots = slots[self._table[self.slots.row[slots], kernels.SITE_M] == 0.0]
        kept, means, variances = self.slots, np.empty(len(slots)), np.empty(len(slots))
        kernels.moments(
            slots, kept.row, self._mean, kept.parent, kept.class_, self._variance, self._table, self._where,
            self._pool, self._state, means, variances,
        )  # fmt: skip
        return kept.node[slots], means, variances

    def noisy_actions(self) -> NoisyActions:
        """The actions with rewards, in node order, and what is known of their noise."""
        self._made_good()
        slots = self._observed_slots
        slots = slots[np.argsort(self.slots.node[slots])]
        kept, offset, variance = self.slots, np.empty(len(slots)), np.empty(len(slots))
        kernels.cavities(slots, kept.parent, kept.class_, self._variance, self._state, offset, variance)
        count, mean, spread = self.table[kept.row[slots]].T[: scalar_kernels.SPREAD + 1]
        return NoisyActions(kept.node[slots], count, spread, mean - self._mean - offset, variance)

    def reward_mixtures(self, nodes: Nodes, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """(n, K) three times: the weights, the means and the variances of what the next reward of actions may be.

        `mean` and `variance` are the posterior moments of the actions, which is all that is known of untouched ones.
        """
        slots, (noise, share) = self.slots_with_rewards(nodes), prior_mixture(self._grid)
        n_most = max(len(noise), noisy_draws.longest(self._where))
        weights, means = np.zeros((2, len(nodes), n_most))
        variances = np.ones((len(nodes), n_most))
        weights[:, : len(noise)] = share
        means[:] = mean[:, None]
        variances[:, : len(noise)] = variance[:, None] + noise
        known = np.flatnonzero(slots >= 0)
        kept, v = self.slots, np.empty((2, len(known)))
        kernels.cavities(slots[known], kept.parent, kept.class_, self._variance, self._state, *v)
        for i, offset, spread in zip(known.tolist(), *v.tolist(), strict=True):
            row = kept.row[slots[i]]
            first, n = self._where[row, : kernels.SIZE + 1].astype(np.int64).tolist()
            c, weight = self._pool[first : first + n, : kernels.WEIGHT + 1].T
            count, off = self._table[row, scalar_kernels.COUNT], self._where[row, kernels.AVERAGE] - self._mean - offset
            p = 1.0 / (spread + c)
            weights[i], part = 0.0, np.log(weight) + 0.5 * np.log(p) - 0.5 * off**2 * p
            weights[i, :n] = np.exp(part - part.max())
            means[i, :n] = self._mean + offset + spread * p * off
            variances[i, :n] = spread * c * p + c * count
        return weights / weights.sum(axis=1, keepdims=True), means, variances
