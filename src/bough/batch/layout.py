"""Which parts of a tree are drawn as vectors, as numbers, and as groups of actions alike; once for many decisions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Flags, Integers, Nodes
from bough.batch.frozen import Frozen
from bough.batch.laws import GroupLaws, group_laws
from bough.batch.shapes import NODE_TILE


class Inner(NamedTuple):
    """Nodes inside the tree, parents before children, in the order in which they are drawn."""

    nodes: Nodes
    parents: Integers
    """Positions: those drawn as vectors count from 0, and those drawn as numbers from -1 down."""
    starts: Nodes
    """Where tiles start; none has nodes of two depths to draw."""


class Groups(NamedTuple):
    """Groups of untouched actions that are alike: all below one node, with one law."""

    parents: Integers
    """(G,) positions."""
    classes: Nodes
    """(G,) the covariance class of a step."""
    laws: Nodes
    """(G,) the table of quantiles: 0 is the normal's, others are of whole subtrees."""
    first: Integers
    """(G + 1,) where the members of each group start."""
    members: Nodes
    """Nodes: actions, or the tops of subtrees."""


class Layout(NamedTuple):
    """What is drawn for a decision among some actions."""

    vectors: Inner
    """The touched nodes; the first stands for what is above the root, and is the prior mean."""
    numbers: Inner
    """The untouched ones."""
    groups: Groups
    leaves: Nodes
    """The touched actions, those of one parent side by side."""
    leaf_parents: Integers
    """Their parents' positions."""
    laws: GroupLaws


def make_layout(frozen: Frozen, flags: Integers, k: int, *, alike: bool = True) -> Layout:
    """The layout for the k best of the actions that are flagged; `alike` has whole subtrees in groups."""
    laws = group_laws(frozen, k if alike else 0)
    is_leaf = np.diff(frozen.child_start) == 0
    n_left, n_all = (_counts(frozen, is_leaf, each) for each in (flags, np.ones_like(flags)))
    is_touched = np.zeros(len(frozen.parent), dtype=np.bool_)
    is_touched[frozen.touched] = True
    position = np.zeros(len(frozen.parent), dtype=np.int64)
    covered = np.zeros(len(frozen.parent), dtype=np.bool_)  # a member of a group, or below one
    vectors, numbers = _Drawn(1), _Drawn(0)
    vectors.nodes.append(np.zeros(1, dtype=np.int32))
    vectors.parents.append(np.zeros(1, dtype=np.int64))
    leaves: list[Any] = []
    members: list[Any] = []
    for depth, (start, end) in enumerate(pairwise(frozen.level_start.tolist())):
        nodes = (start + np.flatnonzero(n_left[start:end])).astype(np.int32)
        if depth:
            above = frozen.parent[nodes]
            covered[nodes] = covered[above]
            nodes = nodes[~covered[nodes]]
            position[nodes] = position[frozen.parent[nodes]]  # until it has one of its own
        leaf, touched = is_leaf[nodes], is_touched[nodes]
        moves = ~frozen.is_zero[frozen.class_of_node[nodes]]  # or it is where its parent is
        whole = np.zeros(len(nodes), dtype=np.bool_)
        if laws.of_depth is not None and depth:
            whole = ~touched & ~leaf & (n_left[nodes] == n_all[nodes])
            covered[nodes[whole]] = True
        leaves.append(nodes[leaf & touched & moves])
        members.append(nodes[whole | (leaf & ~(touched & moves))])
        inner = ~leaf & moves & ~whole
        position[nodes[inner & touched]] = vectors.add(nodes[inner & touched], position)
        position[nodes[inner & ~touched]] = -1 - numbers.add(nodes[inner & ~touched], position)
    own = np.concatenate(leaves)
    order = np.argsort(position[own], kind="stable")
    grouped = _groups(frozen, np.concatenate(members), position, is_leaf, laws)
    return Layout(vectors.done(), numbers.done(), grouped, own[order], position[own[order]], laws)


class _Drawn:
    """Nodes as they are found, depth by depth."""

    def __init__(self, count: int) -> None:
        self.nodes: list[Any] = []
        self.parents: list[Any] = []
        self.starts: list[Any] = []
        self._count = count

    def add(self, nodes: Nodes, position: Integers) -> Integers:
        """Draw these as well, whose positions are still those of their parents; returns their numbers."""
        first, self._count = self._count, self._count + len(nodes)
        if len(nodes):
            self.nodes.append(nodes)
            self.parents.append(position[nodes])
            self.starts.append(np.arange(first, self._count, NODE_TILE, dtype=np.int32))
        return np.arange(first, self._count)

    def done(self) -> Inner:
        none = np.zeros(0, dtype=np.int32)
        return Inner(
            np.concatenate([none, *self.nodes]),
            np.concatenate([none.astype(np.int64), *self.parents]),
            np.concatenate([none, *self.starts]),
        )


def _counts(frozen: Frozen, is_leaf: Flags, flags: Integers) -> Integers:
    """(V,) how many of the flagged actions are at or below each node."""
    counts = np.zeros(len(frozen.parent), dtype=np.int64)
    counts[is_leaf] = flags
    for start, end in reversed(list(pairwise(frozen.level_start.tolist()))):
        bounds = frozen.child_start[start : end + 1]
        below = np.concatenate([[0], np.cumsum(counts[bounds[0] : bounds[-1]])])
        counts[start:end] += below[bounds[1:] - bounds[0]] - below[bounds[:-1] - bounds[0]]
    return counts


def _groups(frozen: Frozen, members: Nodes, position: Integers, is_leaf: Flags, laws: GroupLaws) -> Groups:
    """The members, whose positions are those of their parents, by parent, class and law."""
    classes = frozen.class_of_node[members].copy()
    classes[frozen.is_zero[classes]] = np.argmax(frozen.is_zero)  # one of them stands for all
    law = np.zeros(len(members), dtype=np.int32)
    if laws.of_depth is not None:
        depth = np.searchsorted(frozen.level_start, members, side="right") - 1
        inside = ~is_leaf[members]
        law[inside] = laws.of_depth[depth[inside]]
        classes[inside] = laws.leaf_class
    above = position[members]
    order = np.lexsort((members, law, classes, above))
    columns = np.column_stack([above, classes, law])[order]
    starts = np.flatnonzero(np.concatenate([[True], (columns[1:] != columns[:-1]).any(axis=1)])[: len(columns)])
    firsts = columns[starts]
    return Groups(
        firsts[:, 0], firsts[:, 1].astype(np.int32), firsts[:, 2].astype(np.int32),
        np.append(starts, len(members)).astype(np.int64), members[order],
    )  # fmt: skip
