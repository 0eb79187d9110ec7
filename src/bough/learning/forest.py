"""Forest: the touched nodes of one or several trees with the sums of their logs, ready for the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough._checks import as_names, floats, vector
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.inference.cells import effects_of_decisions
from bough.inference.kernels.slots import add_to_parents
from bough.inference.slots import Slots
from bough.learning.node_classes import NodeClasses
from bough.model.effects import Effects
from bough.model.factors import taken
from bough.tree.tree import Tree


class CountRows(NamedTuple):
    """The rows of logs, where sums are not enough."""

    place: Integers
    """(n,) which of the statistics' actions each is of."""
    rewards: Floats
    contexts: Floats
    exposure: Floats


@dataclass(frozen=True)
class CrossedCells:
    """Which effects the rows of statistics have, where there are crossed factors."""

    slot: Nodes
    """(n,) of the action of each row."""
    first: Integers
    """(n + 1,) where its effects begin."""
    effect: Nodes
    """The effects of all rows."""
    n_levels: Integers
    """(n_factors,) how many levels each factor has."""
    decided: Nodes
    """(m,) the effects of factors of the decision."""

    @classmethod
    def of(cls, effects: Effects, tree: Tree, statistics: Statistics, slot: Nodes) -> CrossedCells:
        """Those of the rows of a log."""
        n = len(slot)
        places = np.searchsorted(tree.leaves, tree.action_nodes(statistics.actions))
        start, labels = taken(effects.start, effects.labels, places)
        codes = effects.decided_codes(statistics.factors, n)
        if codes is None:
            return cls(slot, start, labels, np.diff(effects.first), effects_of_decisions(effects))
        firsts = np.array([first for _, _, first in effects.decided])
        sizes = np.diff(start) + len(firsts)
        first = np.concatenate([[0], np.cumsum(sizes)])
        effect = np.empty(first[-1], dtype=np.int32)
        own = np.repeat(first[:-1] - start[:-1], np.diff(start)) + np.arange(len(labels))
        effect[own] = labels
        for i in range(len(firsts)):
            effect[first[1:] - len(firsts) + i] = firsts[i] + codes[:, i]
        return cls(slot, first, effect, np.diff(effects.first), effects_of_decisions(effects))

    @property
    def n_factors(self) -> int:
        """How many factors there are."""
        return len(self.n_levels)

    @property
    def n_effects(self) -> int:
        """How many levels all factors have."""
        return int(self.n_levels.sum())

    @property
    def factor(self) -> Integers:
        """The factor of each of all rows' effects."""
        return np.repeat(np.arange(self.n_factors), self.n_levels)[self.effect]

    def per_row(self) -> Floats:
        """(n_factors,) how many levels of each factor a row has, on average."""
        return np.bincount(self.factor, minlength=self.n_factors) / len(self.slot)

    def levels_observed(self) -> Integers:
        """(n_factors,) how many levels of each factor have rewards."""
        seen = np.zeros(self.n_effects, dtype=np.bool_)
        seen[self.effect] = True
        return np.bincount(np.repeat(np.arange(self.n_factors), self.n_levels)[seen], minlength=self.n_factors)


@dataclass(frozen=True)
class Forest:
    """Slots as an engine has them, one tree after another; each root's parent is -1."""

    parent: Nodes  # (T,)
    class_: Nodes  # (T,)
    leaf: Nodes  # (T,) which row of the statistics, -1 inside
    statistics: Statistics  # of all trees, in one list: an action is there once for each tree that has it
    nodes_of_class: Integers  # (n_classes,)
    rows: CountRows | None = None
    cells: CrossedCells | None = None

    @classmethod
    def from_logs(
        cls,
        trees: Sequence[Tree],
        logs: Sequence[Statistics],
        classes: NodeClasses,
        rows: Sequence[Observations] | None = None,
        effects: Effects | None = None,
    ) -> Forest:
        """The forest of these trees; a `KeyError` where a log has an action that its tree does not have.

        `effects` are those of crossed factors, on the one tree that there is then; they are classes after the tree's.
        """
        parents, kinds, leaves = [], [], []
        n_slots, n_actions = 0, 0
        for tree, statistics, of_node in zip(trees, logs, classes.of_node, strict=True):
            kept = Slots(tree, of_node)
            slots = kept.touch(tree.action_nodes(statistics.actions))
            parents.append(np.where(kept.parent < 0, -1, kept.parent + n_slots))
            kinds.append(kept.class_.copy())
            leaf = np.full(kept.count, -1, dtype=np.int32)
            leaf[slots] = n_actions + np.arange(len(slots), dtype=np.int32)
            leaves.append(leaf)
            n_slots += kept.count
            n_actions += len(slots)
        class_ = np.concatenate(kinds).astype(np.int32)
        nodes_of_class = np.bincount(class_, minlength=len(classes.labels))
        cells = None if effects is None else CrossedCells.of(effects, trees[0], logs[0], slots)
        if cells is not None:
            nodes_of_class = np.concatenate([nodes_of_class, cells.levels_observed()])
        return cls(
            np.concatenate(parents).astype(np.int32),
            class_,
            np.concatenate(leaves).astype(np.int32),
            _side_by_side(logs),
            nodes_of_class,
            None if rows is None else _count_rows(trees, logs, rows),
            cells,
        )

    @property
    def n_rows(self) -> float:
        """How many rewards there are."""
        return self.statistics.n_rows

    def reward_variance(self) -> float:
        """The variance of all rewards around their mean."""
        averages, within = self.statistics.averages_and_spreads()
        between = self.statistics.count * np.square(averages - self.statistics.sum_y.sum() / self.n_rows)
        return float((within + between).sum() / self.n_rows)

    def mean_squares(self) -> Floats:
        """(d,) of each feature of the contexts; 1 for one that is always zero."""
        assert self.statistics.sum_xx is not None
        found = np.einsum("njj->j", self.statistics.sum_xx) / self.n_rows
        return np.where(found == 0.0, 1.0, found)

    def nodes_a_path(self) -> Floats:
        """(n_classes,) how many nodes of each class an observed action's path has, on average.

        Of a crossed factor, how many levels a row has.
        """
        below = (self.leaf >= 0).astype(np.float64)
        n_actions = below.sum()
        add_to_parents(self.parent, below)
        found = np.bincount(self.class_, below, minlength=len(self.nodes_of_class)) / n_actions
        if self.cells is not None:
            found[-self.cells.n_factors :] = self.cells.per_row()
        return np.asarray(found, dtype=np.float64)


def _count_rows(trees: Sequence[Tree], logs: Sequence[Statistics], rows: Sequence[Observations]) -> CountRows:
    places, before = [], 0
    for tree, statistics, one in zip(trees, logs, rows, strict=True):
        mine = tree.action_nodes(statistics.actions)
        order = np.argsort(mine)
        places.append(before + order[np.searchsorted(mine[order], tree.action_nodes(as_names(one.action)))])
        before += len(mine)
    rewards = np.concatenate([vector(one.reward, "rewards") for one in rows])
    seen = (one.trials if one.exposure is None else one.exposure for one in rows)
    exposure = [np.broadcast_to(1.0 if e is None else e, len(one.reward)) for one, e in zip(rows, seen, strict=True)]
    contexts = np.concatenate([floats(one.context, "context") for one in rows])
    return CountRows(np.concatenate(places), rewards, contexts, np.concatenate(exposure).astype(np.float64))


def _side_by_side(logs: Sequence[Statistics]) -> Statistics:
    if len(logs) == 1:
        return logs[0]

    names = ("count", "sum_y", "sum_yy", "sum_xy", "sum_xx")
    parts = {name: [getattr(one, name) for one in logs] for name in names}
    sums = {name: np.concatenate(arrays) for name, arrays in parts.items() if arrays[0] is not None}
    exposure = np.concatenate([one.exposure_or_count for one in logs])
    numbers = np.arange(len(exposure))  # the same name may come once a tree
    return Statistics._trusted(numbers, None, None, None, **sums, exposure=exposure)
