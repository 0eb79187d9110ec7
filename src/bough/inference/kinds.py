"""Kinds of untouched subtrees: which there are in a tree, and tables of the best action of each.

Subtrees of a kind are alike throughout (alike.py), so that the best action below one has the same law, seen from the
node above it, and is any of its actions with equal chances.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.alike import Alike, TooFineError
from bough.inference.kernels.lines import (
    CHILD_KIND,
    N_CHILDREN,
    OWN_STEP,
    TABLE_FIRST,
    TABLE_SIZE,
    TABLE_START,
    TABLE_STEP,
)
from bough.tree.tree import Tree

_MOST_KINDS = 20_000  # with tables, each of which takes about a millisecond to make
_FAINTEST = 1e-290  # a rate has a logarithm


class KindTables(NamedTuple):
    """The kinds, with what their laws are where nodes have certain steps."""

    of_kind: Floats
    """(n, 7) as kernels/lines.py names them."""
    rates: Floats
    """The entries of all tables."""


class Kinds:
    """The kinds of subtrees of a tree; nodes below which not all is alike have none."""

    def __init__(self, tree: Tree, alike: Alike) -> None:
        self._tree = tree
        self._alike = alike
        self._tables: dict[bytes, KindTables | None] = {}
        self.of_node = alike.of_node
        """(V,) the kind of the subtree below each node, or -1."""
        self.unlike = alike.unlike
        """The nodes that have none, ascending."""

    @cached_property
    def groups(self) -> tuple[Integers, Nodes, Nodes]:
        """Where the groups of each unlike node begin, their kinds, and how many children are of that kind."""
        start = self._tree.child_start[self.unlike].astype(np.int64)
        n_children = self._tree.child_start[self.unlike + 1] - start
        owner = np.repeat(np.arange(len(self.unlike)), n_children)
        before = np.cumsum(n_children) - n_children
        kind = self.of_node[np.repeat(start - before, n_children) + np.arange(len(owner))].astype(np.int64)
        owner, kind = owner[kind >= 0], kind[kind >= 0]
        n_kinds = max(len(self._alike.recipes), 1)
        key, count = np.unique(owner * n_kinds + kind, return_counts=True)
        starts = np.searchsorted(key, np.arange(len(self.unlike) + 1) * n_kinds)
        return starts, (key % n_kinds).astype(np.int32), count.astype(np.int32)

    def tables(self, deviation: Floats) -> KindTables | None:
        """The tables where classes have these deviations; None where actions have none, or tables would be too large.

        Those that were made last are kept.
        """
        key = deviation.tobytes()
        if key not in self._tables:
            self._tables = {key: self._made(deviation)}
        return self._tables[key]

    def _made(self, deviation: Floats) -> KindTables | None:
        recipes = self._alike.recipes
        of_kind, tables, size = np.zeros((len(recipes), 7)), [np.full(1, _FAINTEST)], 1
        of_kind[:, OWN_STEP] = [deviation[recipe.class_] for recipe in recipes]
        of_kind[:, CHILD_KIND] = [recipe.child for recipe in recipes]
        of_kind[:, N_CHILDREN] = [recipe.n_children for recipe in recipes]
        are_actions = of_kind[:, CHILD_KIND] < 0.0
        if not (of_kind[are_actions, OWN_STEP] > 0.0).all() or (~are_actions).sum() > _MOST_KINDS:
            return None
        for i in np.flatnonzero(~are_actions).tolist():
            try:
                table = self._alike.table(i, deviation)
            except TooFineError:
                return None
            assert table is not None  # since actions have steps
            of_kind[i, [TABLE_START, TABLE_STEP]] = table.start, table.step
            of_kind[i, [TABLE_FIRST, TABLE_SIZE]] = size, len(table.log_rate)
            tables.append(np.maximum(np.exp(table.log_rate), _FAINTEST))
            size += len(table.log_rate)
        return KindTables(of_kind, np.concatenate(tables))
