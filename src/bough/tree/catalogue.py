"""Catalogue: a tree, and the single changes since it was made, which cost microseconds whatever its size.

Nodes that were added have the numbers after the tree's last, in the order in which they came. An action that was moved
is gone from the tree and was added elsewhere, under the same name. `folded` makes a tree of it all.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from bough import _checks
from bough._arrays import Flags, Integers, Names, Nodes
from bough.tree.editing import Edit, edit
from bough.tree.name_columns import as_column, is_bool, plain
from bough.tree.names import UnknownNameError
from bough.tree.tree import Tree


class Catalogue:
    """What there is now: the nodes of a tree, without those that have gone, and those that were added.

    >>> import bough
    >>> catalogue = Catalogue(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]))
    >>> catalogue.add("tea/white", catalogue.index("tea")), catalogue.n_actions
    (5, 4)
    >>> catalogue.folded().tree.path("tea/white")
    ['', 'tea', 'tea/white']
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.n_tree_nodes = tree.n_nodes
        self.n_actions = tree.n_actions
        self._number: dict[Hashable, int] = {}  # of what was added, by name
        self._names: list[Hashable] = []
        self._parents: list[int] = []
        self._depths: list[int] = []
        self._gone: set[int] = set()
        self._categories: set[int] = set()  # what was an action when it was made
        self._more_children: dict[int, int] = {}  # than the tree gives a node

    @cached_property
    def _level_start(self) -> list[int]:
        return cast(list[int], self.tree.level_start.tolist())

    @property
    def n_changes(self) -> int:
        """How many changes there have been since the tree was made."""
        return len(self._names)

    @property
    def n_gone(self) -> int:
        """How many nodes have gone from the places that they had."""
        return len(self._gone)

    def are_gone(self, nodes: Nodes) -> Flags:
        """Whether each of some nodes has gone from the place that it had."""
        return np.isin(nodes, list(self._gone))

    @property
    def is_changed(self) -> bool:
        """Whether it differs from its tree."""
        return bool(self._names)

    def copy(self) -> Catalogue:
        """A catalogue that goes on by itself."""
        twin = copy.copy(self)
        for name in ("_number", "_names", "_parents", "_depths", "_gone", "_categories", "_more_children"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    # -- looking up ----------------------------------------------------------------------------

    def find(self, name: object) -> int:
        """The node of that name, or -1."""
        if self._names:
            try:
                node = self._number.get(name, -1)
            except TypeError:
                return -1
            if node >= 0 and is_bool(self.name(node)) == is_bool(name):
                return node
            node = self.tree.node_names.find(name)
            return -1 if node in self._gone else node
        return self.tree.node_names.find(name)

    def index(self, name: object) -> int:
        """The node of that name; a `KeyError` where there is none."""
        node = self.find(name)
        if node < 0:
            raise UnknownNameError(f"unknown name {name!r}; {self.tree.node_names.suggestion(name, self.tree.sep)}")
        return node

    def action_node(self, name: object) -> int:
        """The node of an action, given its name; a `KeyError` where it is not an action."""
        if not self._names:
            return self.tree.action_node(name)
        node = self.find(name)
        if node < 0:
            raise UnknownNameError(f"unknown action {name!r}; {self.tree.node_names.suggestion(name, self.tree.sep)}")
        if not self.is_action(node):
            raise UnknownNameError(f"{name!r} is not an action but a category; list its actions")
        return node

    def action_nodes(self, names: Sequence[object] | Names) -> Nodes:
        """The nodes of many actions, given their names."""
        if not self._names:
            return self.tree.action_nodes(names)
        if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
            raise ValueError(f"{names!r} is one name; give a list of action names")
        _checks.refuse_masked(names, "action")
        given = names.tolist() if isinstance(names, np.ndarray) else list(names)
        nodes = np.asarray(self.tree.node_names.find_all(given), dtype=np.int32)
        changed = np.isin(nodes, list(self._gone | self._categories)) | (nodes < 0)
        for i in np.flatnonzero(changed | ~self._are_leaves(nodes)).tolist():
            nodes[i] = self.action_node(given[i])
        return nodes

    def _are_leaves(self, nodes: Nodes) -> Any:
        start = self.tree.child_start
        return start[nodes] == start[nodes + 1]

    @property
    def actions(self) -> Nodes:
        """The nodes of all actions that there are now, ascending."""
        n = self.tree.n_nodes
        if not self._names:
            return self.tree.leaves
        nodes = np.append(self.tree.leaves, np.arange(n, n + len(self._names), dtype=np.int32))
        return nodes[~np.isin(nodes, list(self._gone | self._categories))]

    def name(self, node: int) -> Hashable:
        """The name of a node."""
        n = self.n_tree_nodes
        return self.tree.node_names.name(node) if node < n else self._names[node - n]

    def names(self, nodes: Nodes) -> Names:
        """The names of actions, as one column."""
        tree = self.tree
        if not len(nodes) or nodes.max() < tree.n_nodes:
            return tree.actions[np.searchsorted(tree.leaves, nodes)]  # type: ignore[no-any-return]
        return as_column([self.name(node) for node in nodes.tolist()])

    def parent(self, node: int) -> int:
        """The node above; -1 for the root."""
        n = self.tree.n_nodes
        return int(self.tree.parent[node]) if node < n else self._parents[node - n]

    @property
    def parents(self) -> Nodes:
        """The node above each node, of the tree and added; also of those that have gone."""
        above = self.tree.parent
        return np.concatenate([above, np.array(self._parents, dtype=np.int32)]) if self._parents else above

    def children(self, nodes: Nodes) -> tuple[Nodes, Integers]:
        """The nodes directly below some nodes now, those of each in ascending order, and which of the nodes is above.

        >>> import bough
        >>> catalogue = Catalogue(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]))
        >>> _ = catalogue.add("tea/white", 1)
        >>> catalogue.children(np.array([0, 1]))
        (array([1, 2, 3, 4, 5], dtype=int32), array([0, 0, 1, 1, 1]))
        """
        n, start = self.tree.n_nodes, self.tree.child_start
        inner = np.minimum(nodes, n - 1)
        size = np.where(nodes < n, start[inner + 1] - start[inner], 0)
        above = np.repeat(np.arange(len(nodes)), size)
        first = np.repeat(start[inner] - np.concatenate([[0], np.cumsum(size)[:-1]]), size) if len(nodes) else above
        found = (first + np.arange(len(above))).astype(np.int32)
        if not self._names:
            return found, above
        place = {node: i for i, node in enumerate(nodes.tolist())}
        added = [(place[parent], n + i) for i, parent in enumerate(self._parents) if parent in place]
        above = np.append(above, np.array([i for i, _ in added], dtype=np.int64))
        found = np.append(found, np.array([node for _, node in added], dtype=np.int32))
        kept = np.flatnonzero(~self.are_gone(found))
        order = kept[np.argsort(above[kept], kind="stable")]
        return found[order], above[order]

    def depth(self, node: int) -> int:
        """How far below the root a node is."""
        n = self.tree.n_nodes
        if node >= n:
            return self._depths[node - n]
        return bisect_right(self._level_start, node) - 1

    def is_action(self, node: int) -> bool:
        """Whether a node is an action now."""
        if node in self._categories:
            return False
        return node >= self.tree.n_nodes or bool(self.tree.child_start[node] == self.tree.child_start[node + 1])

    def n_children(self, node: int) -> int:
        """How many nodes hang directly below a node now."""
        n = self.tree.n_nodes
        had = int(self.tree.child_start[node + 1] - self.tree.child_start[node]) if node < n else 0
        return had + self._more_children.get(node, 0)

    def with_ancestors(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """Nodes and all above them, ascending, and where each one's parent is among them (-1: nowhere)."""
        n = self.tree.n_nodes
        added = {node for node in nodes.tolist() if node >= n}
        if not added:
            return self.tree.with_ancestors(nodes)
        below = [node for node in nodes.tolist() if node < n]
        for node in list(added):
            while node >= n:
                added.add(node)
                node = self.parent(node)
            below.append(node)
        old, position = self.tree.with_ancestors(np.array(below, dtype=np.int32))
        later = np.array(sorted(added), dtype=np.int32)
        found = np.concatenate([old, later])
        above = np.array([self.parent(node) for node in later.tolist()], dtype=np.int32)
        return found, np.concatenate([position, np.searchsorted(found, above).astype(np.int32)])

    # -- changing ------------------------------------------------------------------------------

    def check_new(self, names: Sequence[Any]) -> None:
        """Refuse names that no node can have, that are there already, or that come twice."""
        plain_one = len(names) == 1 and type(names[0]) in (str, int)
        listed = names if plain_one else cast(list[Hashable], as_column(names).tolist())
        seen: set[Hashable] = set()
        for name in listed:
            if name in seen:
                raise ValueError(f"{name!r} is given twice; names are unique over all nodes of a tree")
            if self.find(name) >= 0 or name in self._number:  # also 1 where True is
                raise ValueError(f"{name!r} is there already; names are unique over all nodes of a tree")
            seen.add(name)

    def to_retire(self, names: Sequence[Any], retired: Mapping[int, None]) -> list[int]:
        """The nodes of actions that are not retired already; an error where no other would be left."""
        nodes = dict.fromkeys(self.action_node(name) for name in names)
        fresh = [node for node in nodes if node not in retired]
        if fresh and len(retired) + len(fresh) == self.n_actions:
            raise ValueError(f"{names[-1]!r} is the last action that is not retired; leave at least one to choose")
        return fresh

    def to_restore(self, names: Sequence[Any], retired: Mapping[int, None]) -> list[int]:
        """The nodes of actions, each once; an error where one is not retired."""
        nodes = {self.action_node(name): name for name in names}
        for node, name in nodes.items():
            if node not in retired:
                raise ValueError(f"{name!r} is not retired; agent.retired has those that are")
        return list(nodes)

    def checked_move(self, name: Any, under: Any) -> tuple[int, int]:
        """The nodes of what is to move and of where to; an error where it cannot go there."""
        node, parent = self.index(name), self.index(under)
        if node == 0:
            raise ValueError(f"{name!r} is the root, which cannot be moved")
        if self.is_action(parent):
            raise ValueError(f"{under!r} is an action; move {name!r} below a category")
        above = parent
        while above >= 0:
            if above == node:
                raise ValueError(f"{under!r} is {name!r} or below it; move it elsewhere")
            above = self.parent(above)
        return node, parent

    def add(self, name: Hashable, parent: int) -> int:
        """The number of a node that is added below another, which is a category from now on."""
        name = plain(name)
        node = self.tree.n_nodes + len(self._names)
        self._number[name] = node
        self._names.append(name)
        self._parents.append(parent)
        self._depths.append(self.depth(parent) + 1)
        if self.is_action(parent):
            self._categories.add(parent)
        else:
            self.n_actions += 1
        self._more_children[parent] = self._more_children.get(parent, 0) + 1
        return node

    def move(self, node: int, parent: int) -> int:
        """The new number of an action that goes below another node, and is not the last of its category."""
        name, above = self.name(node), self.parent(node)
        self._more_children[above] = self._more_children.get(above, 0) - 1
        self._gone.add(node)
        self.n_actions -= 1
        return self.add(name, parent)

    def folded(self) -> Edit:
        """A tree of what there is now, and the new number of each node, of the old tree and added; -1 where it went."""
        tree = self.tree
        add: dict[Hashable, Hashable] = {}
        move: dict[Hashable, Hashable] = {}
        for name, node in sorted(self._number.items(), key=lambda item: item[1]):  # parents first
            (move if tree.node_names.find(name) >= 0 else add)[name] = self.name(self.parent(node))
        new = edit(tree, add, move)
        later = [-1] * len(self._names)
        for name, node in self._number.items():
            later[node - tree.n_nodes] = new.tree.index(name)
        number = new.number.copy()
        number[[node for node in self._gone if node < tree.n_nodes]] = -1  # their names have other numbers since
        return Edit(new.tree, np.concatenate([number, np.array(later, dtype=np.int32)]))
