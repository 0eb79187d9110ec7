"""Who may be the best: the actions that are looked at one by one, and the groups of alike subtrees below the rest.

Looked at are touched nodes, actions that are left out, and inner nodes below which not all is alike. What hangs below
them untouched and alike throughout is in a group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.alike import Alike
from bough.inference.scalar import ScalarEngine
from bough.inference.slots import Slots
from bough.inference.winning import LOGISTIC_PANEL, Groups, Places, Winners, winners
from bough.tree.catalogue import Catalogue
from bough.tree.tree import Tree

_NOTHING = np.empty(0, dtype=np.int32)


class Contest(NamedTuple):
    """The places of a tree that are looked at, and what hangs below them in groups."""

    tree: Tree
    node: Nodes
    """(n,) the node at each place, parents first."""
    parent: Nodes
    """(n,) the place of its parent; -1 for the root."""
    choosable: Flags
    """(n,) whether it is an action that may be the best."""
    groups: Groups
    free: Nodes
    """(m,) the tops of the subtrees that are in groups, ascending."""
    group_of: Integers
    """(m,) which group each is in."""

    @classmethod
    def of_all(cls, slots: Slots, tree: Tree, alike: Alike, excluded: Nodes, restored: Nodes) -> Contest:
        """All actions but the excluded ones, and with some that are not chosen otherwise."""
        slots = slots.copy()
        slots.touch(np.zeros(1, dtype=np.int32), are_leaves=tree.n_nodes == 1)
        slots.touch(alike.unlike, are_leaves=False)
        left_out = slots.touch(excluded)  # which may make room for more
        slots.choosable[left_out] = False
        slots.choosable[slots.find(restored)] = True
        inside = np.flatnonzero(slots.node < tree.n_nodes)  # what was added to the tree since has none below
        start = tree.child_start[slots.node[inside]].astype(np.int64)
        n_children = tree.child_start[slots.node[inside] + 1] - start
        owner = np.repeat(inside, n_children)
        before = np.cumsum(n_children) - n_children
        children = (np.repeat(start - before, n_children) + np.arange(len(owner))).astype(np.int32)
        is_free = slots.find(children) < 0
        free, owner = children[is_free], owner[is_free]
        n_types = max(len(alike.recipes), 1)
        key, group, count = np.unique(
            owner.astype(np.int64) * n_types + alike.of_node[free], return_inverse=True, return_counts=True
        )
        order = np.argsort(free)
        groups = Groups(key // n_types, key % n_types, count)
        return cls(tree, slots.node, slots.parent, slots.choosable, groups, free[order], group[order])

    @classmethod
    def among(cls, catalogue: Catalogue, candidates: Nodes) -> Contest:
        """Some actions, and no others."""
        node, parent = catalogue.with_ancestors(candidates)
        nothing = np.empty(0, dtype=np.int64)
        groups = Groups(nothing, nothing, nothing)
        return cls(catalogue.tree, node, parent, np.isin(node, candidates), groups, _NOTHING, nothing)

    def winners(
        self, engine: ScalarEngine, alike: Alike, *, fineness: float = 1.0, scale: float = 1.0
    ) -> Winners | None:
        """The probabilities of being best, with deviations times the scale; None where they would take too long."""
        gain, offset, deviation = engine.laws(self.node)
        places = Places(self.node, self.parent, gain, offset, scale * deviation, self.choosable)
        kind = engine.model.kind
        tilt, longest = float(kind.is_exponential), LOGISTIC_PANEL if kind.is_logistic else math.inf
        steps = scale * engine.class_deviations()
        return winners(places, self.groups, alike, steps, tilt=tilt, longest=longest, fineness=fineness)

    def group_at(self, action: int) -> int:
        """The group of an action that is not looked at by itself."""
        node = action
        while True:
            place = int(np.searchsorted(self.free, node))
            if place < len(self.free) and self.free[place] == node:
                return int(self.group_of[place])
            node = int(self.tree.parent[node])

    def at(self, actions: Nodes, of_place: Floats, of_group: Floats) -> Floats:
        """What actions have, where that is known by place, and by group for the rest."""
        order = np.argsort(self.node)
        ascending = self.node[order]
        where = np.minimum(np.searchsorted(ascending, actions), len(ascending) - 1)
        found = np.where(ascending[where] == actions, of_place[order[where]], 0.0)
        if len(self.free):
            for i in np.flatnonzero(ascending[where] != actions).tolist():
                found[i] = of_group[self.group_at(int(actions[i]))]
        return found

    def everywhere(self, of_place: Floats, of_group: Floats) -> Floats:
        """(K,) what all actions of the tree have; zero where it is not known of them."""
        tree = self.tree
        values = np.zeros(tree.n_nodes)
        values[self.node] = of_place
        if len(self.free):
            values[self.free] = of_group[self.group_of]
            below = np.ones(tree.n_nodes, dtype=np.bool_)  # nodes that have what the top of their subtree has
            below[self.node] = below[self.free] = False
            for start, end in zip(tree.level_start[1:-1].tolist(), tree.level_start[2:].tolist(), strict=True):
                deep = start + np.flatnonzero(below[start:end])
                values[deep] = values[tree.parent[deep]]
        return tree.at_leaves(values)
