"""The exact posterior of a tree of numbers with crossed effects, such as those of brands and stores.

The score of an action is its parameter in the tree plus the effects of its levels, and those of the decision. Given the
effects the tree is that of scalar.py, so it is eliminated exactly, and what is left is a triangle over the effects
alone. docs/explanation/crossed.md derives it, and `kernels/crossed.py` says what is kept.
"""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotrf, dtrtri

from bough._arrays import Floats, Integers, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.cells import Cells, effects_of_decisions, keys_of
from bough.inference.evidence import CrossedEvidence, joined
from bough.inference.kernels import crossed as kernels
from bough.inference.kernels import crossed_draws as draws
from bough.inference.kernels import crossed_evidence as sums
from bough.inference.kernels import scalar
from bough.inference.loadings import Loadings
from bough.inference.normals import scaled_normals
from bough.inference.scalar import ScalarEngine
from bough.model.effects import Effects
from bough.model.factors import taken
from bough.model.model import Model

_MILD = 1e5  # how much larger than the prior's a precision may be for sums of squares: they lose as many digits
_MOST_ONE_BY_ONE = 1_000  # rewards, whose rounding may be let add up
_SHORT = 1e8  # rotations of a number, that may interrupt an update: about a tenth of a second
_ROOM = 2**22  # numbers of slopes that are held at once


class CrossedEngine(ScalarEngine):
    """The engine of scalar.py, with a triangle over the effects."""

    _learned = (*ScalarEngine._learned, "_cells", "_loadings", "_triangle", "_targets")
    _says_what_it_counts = False

    def __init__(self, model: Model) -> None:
        assert model.effects is not None
        super().__init__(model, CrossedEvidence(model.effects))
        self._effects: Effects = model.effects
        self.is_searchable = False
        self._effect_deviation = np.sqrt(self._effects.variance)
        self._first_decided = np.array([first for _, _, first in self._effects.decided], dtype=np.int32)
        self._decided = effects_of_decisions(self._effects)
        self._cells = Cells(len(self._first_decided))
        self._loadings = Loadings()
        self._triangle = np.eye(self._effects.n)
        self._targets = np.zeros(self._effects.n)
        self._scratch = np.empty(model.tree.height + 1, dtype=np.int32), np.empty(self._effects.n)
        self._since_anew = 0

    # -- observations --------------------------------------------------------------------------

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one reward of a leaf, where no factor is the decision's."""
        self.observe(Rows(np.array([leaf], dtype=np.int32), np.array([reward]), None, None))

    def observe(self, rows: Rows, settle: bool = True) -> None:  # noqa: ARG002
        """Add rewards of leaves, with the levels of their decisions."""
        self._take(rows.leaves, rows.levels, rows.counts, rows.rewards, np.zeros(len(rows.rewards)))

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:  # noqa: ARG002
        """Add the rewards that were summed, for leaves and levels of decisions."""
        levels = self._effects.decided_codes(statistics.factors, len(leaves))
        self._take(leaves, levels, statistics.count, *statistics.averages_and_spreads())

    def _take(self, leaves: Nodes, levels: Nodes | None, counts: Floats, averages: Floats, spreads: Floats) -> None:
        if len(leaves) == 1 and self._faded == 1.0:
            row = np.array([counts[0], averages[0], spreads[0]])
            self._add_to_cell(self._cell(keys_of(self._touch(leaves), levels)[0]), row, only_evidence=False)
            self._round_anew(1)
            return
        slots = self._touch_batch(leaves)
        self.news.of_some(leaves)
        cells = np.array([self._cell(key) for key in keys_of(slots, levels)], dtype=np.int64)
        distinct, group = np.unique(cells, return_inverse=True)
        new = np.column_stack([counts / self._faded, averages, spreads / self._faded])
        new = joined(new, group, len(distinct)) if len(distinct) < len(cells) else new[np.argsort(group)]
        is_pending = self._faded != 1.0  # all is made again before it is read
        anew = is_pending or self._is_quicker_anew(len(distinct))
        for cell, row in zip(distinct.tolist(), new, strict=True):
            if row[0] > 0.0:
                self._add_to_cell(cell, row, anew)
        if anew and not is_pending:
            self._say_all()
        elif not anew:
            self._round_anew(len(distinct))

    def _round_anew(self, n: int) -> None:
        """After many rewards one by one, make all again where their rounding adds up to something, if that is short."""
        self._since_anew += n
        if self._since_anew < _MOST_ONE_BY_ONE:
            return
        self._since_anew = 0  # also where it is not worth it
        if not self._is_mild and (self.slots.count + len(self._cells.slot)) * self._effects.n**2 < _SHORT:
            self._say_all()

    def _cell(self, key: tuple[int, ...]) -> int:
        """The cell of a slot and the levels of a decision, made where there is none."""
        found = self._cells.find(key)
        if found >= 0:
            return found
        slot = key[0]
        place = int(np.searchsorted(self._tree.leaves, self.slots.node[slot]))
        effects = np.append(self._effects.of_action(place), self._first_decided + np.array(key[1:], dtype=np.int32))
        effects = effects.astype(np.int32)
        return self._cells.add(key, effects, self._loadings.enlist(slot, effects, self.slots._parent))

    def _add_to_cell(self, cell: int, row: Floats, only_evidence: bool) -> None:
        """Add rewards, by their number, mean and spread, to a cell, and to messages unless all are made again."""
        count, average, spread = row.tolist()
        kept, slot = self.slots, int(self._cells.slot[cell])
        if not only_evidence:
            effects, places = self._cells.effects_of(cell)
            reward, lists = average - self._mean, self._loadings
            tree = (kept._parent, kept._class, self._variance, self._state)
            kernels.learn(
                slot, effects, reward, 1.0 / (self._precision * count), *tree, lists.first, lists.size, lists.effect,
                lists.value, self._effect_deviation, self._triangle, self._targets, *self._scratch,
            )  # fmt: skip
            kernels.say(
                slot, places, reward, self._precision * count, *tree, self._law, lists.first, lists.size, lists.up,
                lists.value, lists.sent,
            )  # fmt: skip
        scalar.add(self._cells._table, cell, count, average, spread)
        scalar.add(self._table, int(kept._row[slot]), count, average, spread)

    def _is_quicker_anew(self, n: int) -> bool:
        """Whether making all again takes less time than taking in that many cells one by one."""
        if n < 16:
            return False
        q, sizes = self._effects.n, self._loadings.size[: self.slots.count].astype(np.float64)
        by_sums = float(sizes @ sizes) + q**3 / 10.0 + 100.0 * self.slots.count
        return self._is_mild and by_sums < n * (q * q + 200.0)

    # -- everything again ----------------------------------------------------------------------

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence and nothing else; a leaf may have several rows."""
        slots = self._touch(leaves)
        evidence = self.kind.taken(evidence)
        levels = evidence[:, 3:].astype(np.int32)
        first, effects = self._effects_of_rows(leaves, levels)
        self._loadings, places = Loadings.of(slots, first, effects, self.slots.parent)
        keys = keys_of(slots, levels)
        self._cells = Cells.of(keys, slots, levels, first, effects, places, evidence[:, :3])
        self._unit = self._faded = 1.0
        self._sum_cells()
        self._say_all()

    def _effects_of_rows(self, leaves: Nodes, levels: Nodes) -> tuple[Integers, Nodes]:
        """(n + 1,) where the effects of rows of evidence begin, and the effects: those of the action come first."""
        start, labels = self._labels_of(leaves)
        own = np.diff(start)
        first = np.concatenate([[0], np.cumsum(own + levels.shape[1])])
        effects = np.empty(first[-1], dtype=np.int32)
        effects[np.repeat(first[:-1] - start[:-1], own) + np.arange(len(labels))] = labels
        for i, of_factor in enumerate(self._first_decided.tolist()):
            effects[first[1:] - levels.shape[1] + i] = of_factor + levels[:, i]
        return first, effects

    def _sum_cells(self) -> None:
        """Have the table, one row per action, be the sums of the cells."""
        rows = self.slots.row[self._cells.slot]
        self._table[: self.slots.n_rows, :3] = joined(self._cells.table, rows, self.slots.n_rows)

    def _say(self, slots: Nodes) -> None:  # noqa: ARG002
        self._say_all()

    def _fade(self, factor: float) -> None:
        for table in (self._cells.table, self._table):
            self.kind.scale(table, factor)
        self._say_all()

    def _say_all(self) -> None:
        self.news.of_all()
        self._since_anew = 0
        kept, lists, cells = self.slots, self._loadings, self._cells
        state, law = self._state[: kept.count], self._law
        state[:] = 0.0
        lists.value[:] = 0.0
        precision, reward = self._cell_sites()
        sums.say_cells(cells.slot, cells.first, cells.place, precision, reward, state, lists.first, lists.value)
        kernels.remake(
            kept.parent, kept.class_, kept.row, self._variance, state, law, lists.first, lists.size, lists.up,
            lists.value, lists.sent,
        )  # fmt: skip
        if self._is_mild:
            self._take_sums(precision, reward)
        else:
            self._take_rows(precision, reward)

    def _cell_sites(self) -> tuple[Floats, Floats]:
        """(n,) and (n,): the precision of what each cell says, and its rewards' mean as a deviation."""
        table = self._cells.table
        return self._precision * table[:, 0], table[:, 1] - self._mean

    @property
    def _is_mild(self) -> bool:
        """Whether squares of what is observed lose no more digits than can be spared."""
        most = self._precision * float(self._table[: self.slots.n_rows, 0].sum())
        return most * float(self._effects.variance.max(initial=0.0)) < _MILD or self._is_mild_by_effect()

    def _is_mild_by_effect(self) -> bool:
        """`_is_mild`, level by level."""
        precision, cells = self._cell_sites()[0], self._cells
        own = self._variance[self.slots.class_[cells.slot]]
        weight = np.where(
            cells.per_slot(self.slots.count)[cells.slot] == 1, precision / (1.0 + own * precision), precision
        )
        size = np.diff(cells.first)
        total = np.bincount(cells.effect[: cells.first[-1]], np.repeat(weight, size), minlength=self._effects.n)
        return bool((total * self._effects.variance).max(initial=0.0) < _MILD)

    def _take_sums(self, precision: Floats, reward: Floats) -> None:
        """Make the triangle again from sums of squares."""
        kept, lists, cells, q = self.slots, self._loadings, self._cells, self._effects.n
        if not q:
            return
        gram, right = np.zeros((q, q)), np.zeros(q)
        per_slot = cells.per_slot(kept.count)
        sums.gram_of_cells(
            cells.slot, cells.first, cells.effect, precision, reward, per_slot, kept.class_, self._variance,
            self._state, gram, right,
        )  # fmt: skip
        sums.gram_of_slots(
            per_slot, kept.class_, self._variance, self._state, lists.first, lists.size, lists.effect, lists.value,
            gram, right,
        )  # fmt: skip
        D = self._effect_deviation
        gram *= D[:, None]
        gram *= D
        gram[np.diag_indices(q)] += 1.0
        lower, _ = dpotrf(gram.T, lower=1, clean=1, overwrite_a=1)  # the transpose of one is the other, without a copy
        self._triangle = np.ascontiguousarray(lower.T)
        self._targets = solve_triangular(self._triangle, D * right, trans="T")

    def _take_rows(self, precision: Floats, reward: Floats) -> None:
        """Make the triangle again row by row, without squares."""
        kept, lists, cells = self.slots, self._loadings, self._cells
        self._triangle, self._targets = np.eye(self._effects.n), np.zeros(self._effects.n)
        sums.fold_all(
            kept.parent, self._state, lists.first, lists.size, lists.effect, lists.value, cells.slot, cells.first,
            cells.effect, precision, reward, cells.per_slot(kept.count), self._decided, self._effect_deviation, 0.0,
            self._triangle, self._targets, self._scratch[1],
        )  # fmt: skip

    # -- evidence ------------------------------------------------------------------------------

    def evidence_rows(self) -> tuple[Nodes, Floats]:
        """The action of each cell, and the rows of evidence: number, mean, spread and the decision's levels."""
        self._made_good()
        return self._raw_rows()

    def raw_rows(self) -> tuple[Nodes, Floats, float]:
        """Copies of the rows as they stand, with their actions, and how much an observation in them counts."""
        return *self._raw_rows(), self._faded

    def _raw_rows(self) -> tuple[Nodes, Floats]:
        cells = self._cells
        return self.slots.node[cells.slot], np.column_stack([cells.table, cells.levels.astype(np.float64)])

    def forget(self, leaf: int) -> None:
        """Have no evidence of a leaf any more."""
        self.forget_all(np.array([leaf], dtype=np.int32))

    def forget_all(self, leaves: Nodes) -> None:
        """Have no evidence of any of some leaves any more."""
        self._made_good()
        mine = np.isin(self._cells.slot, self.slots.find(leaves))  # without those that have no slot, -1
        if self._cells.table[mine, 0].any():
            self._cells.table[mine] = 0.0
            self._sum_cells()
            self._say_all()

    def retract(self, rows: Rows) -> None:
        """Take back rewards that were observed; a `ValueError`, and nothing, where they cannot have been."""
        self._made_good()
        keys = keys_of(self.slots.find(rows.leaves), rows.levels)
        cells = [self._cells.find(key) for key in keys]
        kept = {cell: self._cells.table[cell].copy() if cell >= 0 else np.zeros(3) for cell in cells}
        for i, cell in enumerate(cells):
            self.kind.retract(kept[cell], rows, i)
        for cell, evidence in kept.items():
            self._cells._table[cell] = evidence
        self._sum_cells()
        self._say_all()

    def _make_room(self, before: int) -> None:
        super()._make_room(before)
        self._loadings.make_room(self.slots.count)

    def snapshot(self) -> Self:
        """An engine that goes on by itself: what was learned is copied, the tree and the prior are shared."""
        twin = super().snapshot()
        twin._scratch = copy.deepcopy(self._scratch)
        return twin

    # -- answers -------------------------------------------------------------------------------

    @property
    def n_effects(self) -> int:
        """How many normals a draw takes beside those of the nodes: one per effect, which come last."""
        return self._effects.n

    def is_finite(self) -> bool:
        """Whether the laws of all touched nodes, and of the effects, are numbers that can be computed with."""
        self._made_good()
        state, law = self._state[: self.slots.count], self._law[: self.slots.count]
        drawn = self.effects_from(np.zeros(self._effects.n))
        return all(bool(np.isfinite(one).all()) for one in (state, law, self._triangle, drawn))

    def effects_from(self, normals: Floats) -> Floats:
        """The effects that (q,) standard normals give, which are overwritten; zeros give their means."""
        if not len(normals):  # factors without any level yet
            return normals
        normals += self._targets
        solved = dtrsv(self._triangle.T, normals, lower=1, trans=1)  # of the transpose, which needs no copy
        return np.multiply(solved, self._effect_deviation, out=normals)

    def given(self, effects: Floats) -> ScalarEngine:
        """The tree where the effects are known, to draw from: it shares all but the laws, and is of one moment."""
        self._made_good()
        lists, twin = self._loadings, ScalarEngine.__new__(ScalarEngine)
        law = np.empty((self.slots.count, 3))
        draws.laws_given(
            effects, self.slots.class_, self._variance, self._state, self._law, lists.first, lists.size, lists.effect,
            lists.value, law,
        )  # fmt: skip
        twin.__dict__.update(self.__dict__, _law=law)
        return twin

    def transform(self, normals: Floats, scale: float = 1.0) -> Floats:  # noqa: ARG002
        """A posterior sample of every node, and then of every effect, from standard normals, which are overwritten."""
        self._made_good()
        n = self._tree.n_nodes
        self.given(self.effects_from(normals[n:])).transform(normals[:n])
        return normals

    def transform_some(
        self, nodes: Nodes, parent_position: Nodes, normals: Floats, scale: float = 1.0  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """A joint posterior sample of nodes (ascending, closed under parents), and then of every effect."""
        self._made_good()
        n = len(nodes)
        self.given(self.effects_from(normals[n:])).transform_some(nodes, parent_position, normals[:n])
        return normals

    def touched_values(
        self, rng: np.random.Generator, scale: float = 1.0, only_best: bool = False  # noqa: ARG002
    ) -> Floats:  # fmt: skip
        """(T,) a joint draw of the touched nodes, by slot, its deviations from the mean times the scale."""
        self._made_good()
        return self.given(self.effects_from(scaled_normals(rng, (self._effects.n,), scale))).touched_values(rng, scale)

    def touched_means(self) -> Floats:
        """(T,) the means of the touched nodes, by slot."""
        return self.given(self.effect_means()).touched_means()

    def scores(self, leaves: Nodes, parameters: Floats, effects: Floats, levels: Floats | None = None) -> Floats:
        """(n,) the scores of leaves with these parameters, in a decision with these levels, if it has any.

        The levels go by their places in the factors of the decision; -1 for one that is not named.
        """
        out = np.array(parameters)
        start, labels = self._labels_of(leaves)
        draws.add_effects(effects, start, labels, out)
        if levels is not None:
            out += effects[(self._first_decided + levels.astype(np.int64))[levels >= 0.0]].sum()
        return out

    def _labels_of(self, leaves: Nodes) -> tuple[Integers, Nodes]:
        """(n + 1,) where the effects of each leaf begin, and the effects."""
        if leaves is self._tree.leaves:
            return self._effects.start, self._effects.labels
        return taken(self._effects.start, self._effects.labels, np.searchsorted(self._tree.leaves, leaves))

    def effect_means(self) -> Floats:
        """(q,) the posterior means of the effects."""
        self._made_good()
        return self.effects_from(np.zeros(self._effects.n))

    def effect_moments(self) -> tuple[Floats, Floats]:
        """(q,) and (q,): the posterior means and variances of the effects."""
        if not self._effects.n:
            return np.empty(0), np.empty(0)
        inverse, _ = dtrtri(self._triangle.T, lower=1)  # of the transpose, whose columns are this one's rows
        return self.effect_means(), self._effects.variance * np.square(inverse).sum(axis=0)

    def effect_counts(self) -> Floats:
        """(q,) how many rewards each effect had a part in."""
        cells = self._cells
        self._made_good()
        weights = np.repeat(cells.table[:, 0], np.diff(cells.first))
        return np.bincount(cells.effect[: cells.first[-1]], weights, minlength=self._effects.n).astype(np.float64)

    def mean(self) -> Floats:
        """(V,) the posterior means of the nodes."""
        return self.given(self.effect_means()).transform(np.zeros(self._tree.n_nodes))

    def covariance(self) -> Floats:
        """(V,) the posterior variances of the nodes."""
        tree = self._tree
        nodes = np.arange(tree.n_nodes, dtype=np.int32)
        return self._moments(nodes, tree.parent, as_scores=False)[1]

    def node_moments(self, _context: None = None) -> tuple[Floats, Floats]:
        """(V,) the mean and the variance of each inner node's parameter, and of each action's score."""
        return self._moments(np.arange(self._tree.n_nodes, dtype=np.int32), self._tree.parent, as_scores=True)

    def some_moments(self, nodes: Nodes, parent_position: Nodes, levels: Floats | None = None) -> tuple[Floats, Floats]:
        """(n,) the same of nodes (ascending, closed under parents), of actions in a decision with these levels."""
        return self._moments(nodes, parent_position, as_scores=True, levels=levels)

    def action_moments(self, _context: None = None) -> tuple[Floats, Floats]:
        """(K,) the mean and the variance of each action's score."""
        mean, variance = self.node_moments()
        return self._tree.at_leaves(mean), self._tree.at_leaves(variance)

    def _moments(
        self, nodes: Nodes, parent_position: Nodes, as_scores: bool, levels: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Means and variances of nodes, without effects or as scores, of actions with the levels of a decision.

        What the effects leave open is the square of R^-T D w, w being how far a score moves with the effects.
        """
        effects = self.effect_means()
        means, variances = self.given(effects).some_moments(nodes, parent_position)
        start, labels = self._labels_at(nodes, levels)
        if as_scores:
            draws.add_effects(effects, start, labels, means)
        above = self._lowest_slots(nodes, parent_position)
        size = max(1, _ROOM // max(self._effects.n, 1))
        for part in (slice(i, min(i + size, len(nodes))) for i in range(0, len(nodes), size)):
            slots, which = np.unique(above[part], return_inverse=True)
            slopes = self._slopes(slots)
            if as_scores:  # otherwise nodes with the same lowest slot have the same slopes
                slopes, which = slopes[which], np.arange(len(which))
                ends = start[part.start : part.stop + 1]
                slopes[np.repeat(which, np.diff(ends)), labels[ends[0] : ends[-1]]] += 1.0
            variances[part] += self._spread_of(slopes)[which]
        return means, variances

    def _labels_at(self, nodes: Nodes, levels: Floats | None) -> tuple[Integers, Nodes]:
        """`_labels_of` of any nodes, with the levels of a decision: those inside the tree have none."""
        leaves = self._tree.leaves
        place = np.searchsorted(leaves, nodes)
        place[place == len(leaves)] = 0
        is_action = leaves[place] == nodes
        start, labels = taken(self._effects.start, self._effects.labels, np.where(is_action, place, -1))
        if levels is None:
            return start, labels
        decided = (self._first_decided + levels.astype(np.int32))[levels >= 0.0]
        ends = np.repeat(start[1:][is_action], len(decided))
        more = np.concatenate([[0], np.cumsum(is_action)]) * len(decided)
        return start + more, np.insert(labels, ends, np.tile(decided, int(is_action.sum()))).astype(np.int32)

    def _lowest_slots(self, nodes: Nodes, parent_position: Nodes) -> Nodes:
        """(n,) the slots of nodes, or of their lowest ancestors that have one; -1 where none has."""
        found = self.slots.find(nodes)
        for i in np.flatnonzero(found < 0).tolist():  # parents come first
            if parent_position[i] >= 0:
                found[i] = found[parent_position[i]]
        return found

    def _slopes(self, slots: Nodes) -> Floats:
        """(n, q) how the parameters of nodes in these slots move with the effects."""
        kept, lists = self.slots, self._loadings
        slopes = np.empty((len(slots), self._effects.n))
        draws.moments(
            slots, kept.parent, kept.class_, self._variance, self._state, lists.first, lists.size, lists.effect,
            lists.value, self._scratch[0], np.empty(len(slots)), np.empty(len(slots)), slopes,
        )  # fmt: skip
        return slopes

    def _spread_of(self, slopes: Floats) -> Floats:
        """(n,) the variance of what the effects add along these slopes, which are overwritten."""
        if not slopes.size:
            return np.zeros(len(slopes))
        slopes *= self._effect_deviation
        return np.asarray(
            np.square(solve_triangular(self._triangle, slopes.T, trans="T", overwrite_b=True)).sum(axis=0)
        )

    def conditional(self, node: int) -> tuple[float, float, float]:
        """(gain, offset, variance) of a node given its parent, whatever the effects are."""
        self._made_good()
        own, step_mean, step_variance = self.given(self.effect_means()).conditional(node)
        slot, above = self.slots.find_one(node), int(self._tree.parent[node]) if node else -1
        if slot < 0 or not self._effects.n:
            return own, step_mean, step_variance
        slopes = self._slopes(np.array([slot, self.slots.find_one(above) if above >= 0 else -1], dtype=np.int32))
        slopes *= self._effect_deviation
        whitened: Floats = solve_triangular(self._triangle, slopes.T, trans="T").T
        mine, parents = whitened[0], whitened[1]
        direct = mine - own * parents  # what the effects do to the node while its parent stays
        parent_variance = float(parents @ parents)
        parent_mean = self._mean
        if above >= 0:
            nodes = np.array(self._path_to(above), dtype=np.int32)
            means, variances = self._moments(nodes, np.arange(-1, len(nodes) - 1, dtype=np.int32), as_scores=False)
            parent_mean, parent_variance = float(means[-1]), float(variances[-1])
        pull = float(direct @ parents) / parent_variance if parent_variance > 0.0 else 0.0
        left = float(direct @ direct) - pull * pull * parent_variance
        return own + pull, step_mean - pull * parent_mean, step_variance + max(left, 0.0)

    def _path_to(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        path = []
        while node >= 0:
            path.append(node)
            node = int(self._tree.parent[node])
        return path[::-1]

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        self._made_good()
        kept, lists, cells = self.slots, self._loadings, self._cells
        precision, reward = self._cell_sites()
        means = self.effect_means()
        known = np.divide(means, self._effect_deviation, out=np.zeros(len(means)), where=self._effect_deviation > 0.0)
        deviance = known @ known + 2.0 * np.log(np.diag(self._triangle)).sum()
        deviance += sums.deviance(
            means, kept.parent, kept.class_, self._variance, self._state, lists.first, lists.size, lists.effect,
            lists.value, cells.slot, cells.first, cells.effect, precision, reward, np.empty(kept.count),
        )  # fmt: skip
        deviance += self._precision * cells.table[:, scalar.SPREAD].sum()
        count = float(cells.table[:, scalar.COUNT].sum())
        return -0.5 * (count * math.log(2.0 * math.pi / self._precision) + float(deviance))
