"""What a batch has chosen: codes of actions and groups as nodes, and nodes by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.batch.frozen import Frozen
from bough.batch.layout import Layout
from bough.batch.placed import Placed


class Chosen:
    """The decisions of a batch: a row for each, best first.

    >>> import bough
    >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "middle", "right"])))
    >>> chosen = bough.batch.Scorer(posterior, device="cpu").best(4, k=2)
    >>> chosen.actions.shape, chosen.scores.shape
    ((4, 2), (4, 2))
    """

    def __init__(self, nodes: Nodes, scores: Floats, names: Callable[[Nodes], Any]) -> None:
        self.nodes = nodes
        """(n, k) the node numbers of the actions."""
        self.scores = scores
        """(n, k) their scores in the draw that decided."""
        self._names = names

    @cached_property
    def actions(self) -> Any:
        """(n, k) the names of the actions, in a numpy array."""
        return np.asarray(self._names(self.nodes.ravel())).reshape(self.nodes.shape)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Chosen(n={self.nodes.shape[0]}, k={self.nodes.shape[1]})"


def nodes_of(
    codes: Nodes,  # (k, n) of touched actions from 0 up, of groups from -1 down
    words: tuple[Any, Any],  # (k, n) random words
    frozen: Frozen,
    layout: Layout,
    placed: Placed,
) -> Nodes:
    """(n, k) the nodes: of a group any member that was not taken by a better one, equally likely."""
    nodes = placed.leaf_nodes[np.maximum(codes, 0)]
    if not placed.has_groups:
        return nodes.T
    uniform = words[0] * 2.0**-32 + words[1] * 2.0**-64
    groups, height = layout.groups, len(frozen.level_start) - 2
    sizes = np.diff(groups.first)
    ranks = np.zeros(codes.shape, dtype=np.int64)
    for j in range(len(codes)):
        at = np.flatnonzero(codes[j] < 0)
        which = -1 - codes[j, at]
        below = _leaves_below(frozen, groups.members[groups.first[which]], groups.laws[which])
        before = codes[:j, at] == codes[j, at]
        left = sizes[which] * below - before.sum(axis=0)
        rank = np.minimum((uniform[j, at] * left).astype(np.int64), left - 1)
        for taken in np.sort(np.where(before, ranks[:j, at], np.iinfo(np.int64).max), axis=0):
            rank += rank >= taken
        ranks[j, at] = rank
        found = groups.members[groups.first[which] + rank // below]
        for _ in range(height if below.max(initial=1) > 1 else 0):
            inside = below > 1
            first, last = frozen.child_start[found], frozen.child_start[found + 1]
            found = np.where(inside & (last > first), first, found)
        nodes[j, at] = found + rank % below
    return nodes.T


def _leaves_below(frozen: Frozen, members: Nodes, laws: Nodes) -> Integers:
    """How many actions there are below a member: one, but for the tops of subtrees."""
    low, high = members.astype(np.int64), members.astype(np.int64) + 1
    inside = laws > 0
    while inside.any():
        first, last = frozen.child_start[low], frozen.child_start[high]
        inside = inside & (last > first)
        low, high = np.where(inside, first, low), np.where(inside, last, high)
    return high - low
