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
from bough.inference.kernels.slots import add_to_parents
from bough.inference.slots import Slots
from bough.learning.node_classes import NodeClasses
from bough.tree.tree import Tree


class CountRows(NamedTuple):
    """The rows of logs, where sums are not enough."""

    place: Integers
    """(n,) which of the statistics' actions each is of."""
    rewards: Floats
    contexts: Floats
    exposure: Floats


@dataclass(frozen=True)
class Forest:
    """Slots as an engine has them, one tree after another; each root's parent is -1."""

    parent: Nodes  # (T,)
    class_: Nodes  # (T,)
    leaf: Nodes  # (T,) which row of the statistics, -1 inside
    statistics: Statistics  # of all trees, in one list: an action is there once for each tree that has it
    nodes_of_class: Integers  # (n_classes,)
    rows: CountRows | None = None

    @classmethod
    def from_logs(
        cls,
        trees: Sequence[Tree],
        logs: Sequence[Statistics],
        classes: NodeClasses,
        rows: Sequence[Observations] | None = None,
    ) -> Forest:
        """The forest of these trees; a `KeyError` where a log has an action that its tree does not have."""
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
        return cls(
            np.concatenate(parents).astype(np.int32),
            class_,
            np.concatenate(leaves).astype(np.int32),
            _side_by_side(logs),
            np.bincount(class_, minlength=len(classes.labels)),
            None if rows is None else _count_rows(trees, logs, rows),
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
        """(n_classes,) how many nodes of each class an observed action's path has, on average."""
        below = (self.leaf >= 0).astype(np.float64)
        add_to_parents(self.parent, below)
        found = np.bincount(self.class_, below, minlength=len(self.nodes_of_class)) / len(self.statistics.actions)
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
    return Statistics._trusted(numbers, None, None, **sums, exposure=exposure)
