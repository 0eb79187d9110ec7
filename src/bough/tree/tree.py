"""Tree: which node hangs below which, and what they are called."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Floats, Names, Nodes
from bough.tree import builders, editing, printing
from bough.tree.levels import all_levels, given_levels
from bough.tree.name_columns import as_column, plain
from bough.tree.names import ActionNames, NodeNames, StoredNames, UnknownNameError
from bough.tree.tables import Missing, frame_outline


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A rooted tree whose leaves are the actions, as a few integers a node.

    Nodes are numbered breadth first with siblings side by side, so node 0 is the root, a parent's number is
    below its children's, and the children of node i are the numbers from `child_start[i]` up to
    `child_start[i + 1]`. Build one with `from_paths`, `from_parents`, `from_nested`, `from_frame`,
    `from_networkx`, `from_linkage` or `balanced`.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["home/kitchen/kettle", "home/kitchen/toaster", "home/garden/spade"])
    >>> tree
    Tree(n_nodes=7, n_actions=3, height=3)
    >>> tree.show()
    ''
    └── home
        ├── home/kitchen
        │   ├── home/kitchen/kettle
        │   └── home/kitchen/toaster
        └── home/garden
            └── home/garden/spade
    """

    parent: Nodes
    """(V,) the parent of each node; -1 for the root."""
    child_start: Nodes
    """(V + 1,) where each node's children begin."""
    node_names: NodeNames
    level_names: tuple[str, ...] = ()
    """What the levels were called when the tree was built, the root's first; `levels` has those that there are now."""
    sep: str = "/"
    """What stands between the parts of a name: of inner nodes, and of actions that are named by their path."""

    # -- builders ------------------------------------------------------------------------------

    @classmethod
    def from_paths(cls, paths: Iterable[str], sep: str = "/", levels: Sequence[str] | None = None) -> Tree:
        """The tree of paths such as ``"home/kitchen/kettle"``, below one root named ``""``.

        An action is named by its whole path, an inner node by the path to it. `levels` says what to call each level,
        that of the root's children first.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"], levels=["kind", "drink"])
        >>> tree.path("tea/green")
        ['', 'tea', 'tea/green']
        """
        return cls._from_outline(builders.paths_outline(paths, sep))._with_levels(levels)

    @classmethod
    def from_parents(cls, parents: Sequence[int] | Nodes, names: Sequence[Hashable] | None = None) -> Tree:
        """The tree in which node i's parent is `parents[i]`, -1 for the root; nodes in any order.

        Without `names` a node is named by its position in `parents`.

        >>> import bough
        >>> bough.Tree.from_parents([2, 2, -1], names=["kettle", "toaster", "kitchen"]).path("kettle")
        ['kitchen', 'kettle']
        """
        given = _checks.integers(parents, "parents")
        listed = None if names is None else builders.named(names)
        if listed is not None and len(listed) != len(given):
            raise ValueError(f"{len(listed)} names for {len(given)} nodes; give one a node")
        return cls._from_outline(builders.Outline(given, listed))

    @classmethod
    def from_nested(cls, nested: Any, sep: str = "/", levels: Sequence[str] | None = None) -> Tree:
        """The tree of nested mappings; a list holds actions, and so does a key whose value is None.

        An action is named by its own key, an inner node by the keys down to it joined with `sep`. `levels` says what to
        call each level, that of the root's children first.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"home": {"kitchen": ["kettle", "toaster"], "garden": ["spade"]}})
        >>> tree.path("kettle")
        ['', 'home', 'home/kitchen', 'kettle']
        """
        return cls._from_outline(builders.nested_outline(nested, sep))._with_levels(levels)

    @classmethod
    def from_frame(cls, frame: Any, columns: Sequence[str], sep: str = "/", *, missing: Missing = "error") -> Tree:
        """The tree of a frame with one row per action and one column per level, coarsest first.

        The frame is anything eager that narwhals reads: pandas, polars, pyarrow. An action is named by its value in
        the last column, an inner node by the values down to it joined with `sep`. The levels are called by their
        columns.

        A null is an error that counts them all. With ``missing="parent"`` a row goes on from the last level that it
        has: its action, or what its next columns say, hangs one level higher for each null. The last column is never
        null.

        >>> import bough, polars
        >>> frame = polars.DataFrame({"kind": ["tea", "tea", "coffee"], "product": [101, 102, 201]})
        >>> bough.Tree.from_frame(frame, ["kind", "product"]).path(102)
        ['', 'tea', 102]
        >>> gaps = polars.DataFrame({"kind": ["tea", None], "product": ["green", "gift card"]})
        >>> bough.Tree.from_frame(gaps, ["kind", "product"], missing="parent").path("gift card")
        ['', 'gift card']
        """
        outline, below = frame_outline(frame, columns, sep, missing)
        return replace(cls._from_outline(outline), level_names=all_levels(below))

    @classmethod
    def from_networkx(cls, graph: Any, root: Hashable | None = None) -> Tree:
        """The tree of a networkx graph: directed from parent to child, or undirected with `root` named.

        >>> import bough, networkx
        >>> graph = networkx.DiGraph([("tea", "green"), ("tea", "black")])
        >>> bough.Tree.from_networkx(graph).path("black")
        ['tea', 'black']
        """
        return cls._from_outline(builders.graph_outline(graph, root))

    @classmethod
    def from_linkage(cls, linkage: Any, names: Sequence[Hashable] | None = None) -> Tree:
        """The tree of a scipy linkage, for a hierarchy that is a clustering of embeddings.

        `names` are those of the clustered items; without them an item is named by its row. A cluster is then
        called ``"cluster 5"``, or without names 5, by scipy's number for it.

        >>> import bough, numpy, scipy.cluster.hierarchy
        >>> Z = scipy.cluster.hierarchy.linkage(numpy.array([[0.0], [0.1], [5.0]]))
        >>> bough.Tree.from_linkage(Z, ["kettle", "toaster", "spade"]).path("kettle")
        ['cluster 4', 'cluster 3', 'kettle']
        """
        return cls._from_outline(builders.linkage_outline(linkage, names))

    @classmethod
    def balanced(cls, branching: int, height: int) -> Tree:
        """The tree in which every inner node has `branching` children and every leaf has depth `height`.

        >>> import bough
        >>> bough.Tree.balanced(branching=10, height=3)
        Tree(n_nodes=1111, n_actions=1000, height=3)
        """
        branching = _checks.whole_number("branching", branching, least=1)
        height = _checks.whole_number("height", height, least=0)
        return cls._frozen(*builders.balanced(branching, height))

    @classmethod
    def _from_outline(cls, outline: builders.Outline) -> Tree:
        found = cls._frozen(*builders.arranged(outline))
        return found if outline.sep is None else replace(found, sep=outline.sep)

    @classmethod
    def _frozen(cls, parent: Nodes, child_start: Nodes, names: NodeNames) -> Tree:
        for array in (parent, child_start):
            array.setflags(write=False)
        return cls(parent, child_start, names)

    def _with_levels(self, levels: Any) -> Tree:
        return self if levels is None else replace(self, level_names=given_levels(levels, self.height))

    def _rearranged(self, parent: Nodes, child_start: Nodes, names: NodeNames) -> Tree:
        """Another tree, with the separator and the names of the levels of this one."""
        return replace(self._frozen(parent, child_start, names), level_names=self.level_names, sep=self.sep)

    def star(self) -> Tree:
        """The same actions directly below the root; the tree itself if they already are.

        >>> import bough
        >>> bough.Tree.balanced(branching=2, height=3).star()
        Tree(n_nodes=9, n_actions=8, height=1)
        """
        if self.height <= 1:
            return self
        n = self.n_actions + 1
        parent = np.zeros(n, dtype=np.int32)
        parent[0] = -1
        child_start = np.full(n + 1, n, dtype=np.int32)
        child_start[0] = 1
        leaves = np.arange(1, n, dtype=np.int32)
        root = as_column([self.name(0)])
        names = StoredNames(np.zeros(1, dtype=np.int32), leaves, root, self.actions._column)
        star = self._rearranged(parent, child_start, names)
        return star if self.levels is None else replace(star, level_names=(self.levels[0], self.levels[-1]))

    def edited(
        self,
        add: Mapping[Hashable, Hashable] | None = None,
        move: Mapping[Hashable, Hashable] | None = None,
        remove: Iterable[Hashable] | None = None,
    ) -> Tree:
        """A tree with names added, moved and removed; this one stays as it is.

        `add` maps new names to the names of their parents, `move` maps names to those of their new parents, and
        either parent may be one that is added. What is moved or removed takes along all that is below it, but what
        is moved out of a removed category stays. An action becomes a category when a name is added below it. A
        category that has lost all its actions goes as well. What comes to a category comes after what is there.

        >>> import bough
        >>> tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade", "kite"]})
        >>> tree.edited(add={"tools": "garden", "rake": "tools"}, move={"spade": "tools"}, remove=["kettle"]).show()
        ''
        ├── kitchen
        │   └── toaster
        └── garden
            ├── kite
            └── tools
                ├── spade
                └── rake
        """
        return editing.edit(self, add, move, remove).tree

    # -- size and shape ------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, inner ones and actions."""
        return len(self.parent)

    @property
    def n_actions(self) -> int:
        """How many leaves there are."""
        return len(self.leaves)

    @property
    def height(self) -> int:
        """The length of the longest path from the root to a leaf."""
        return len(self.level_start) - 2

    @cached_property
    def levels(self) -> tuple[str, ...] | None:
        """What the level of each depth is called, the root's first; None where the levels have no names.

        `from_frame` has them from its columns, and the root's is called "root". A level is a depth: an action that
        hangs higher than others is on the level that is called so there. One that is deeper than all that were named,
        as it may come with an edit, is called such as "depth 4".

        >>> import bough
        >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"], levels=["kind", "drink"])
        >>> tree.levels
        ('root', 'kind', 'drink')
        >>> tree.edited(add={"sencha": "tea/green"}).levels
        ('root', 'kind', 'drink', 'depth 3')
        """
        if not self.level_names:
            return None
        later = range(len(self.level_names), self.height + 1)
        return (*self.level_names[: self.height + 1], *(f"depth {depth}" for depth in later))

    @cached_property
    def level_start(self) -> Nodes:
        """Where each depth begins among the node numbers, and, last, the number of nodes."""
        start, end = 0, 1
        starts = [start]
        while start < end:
            start, end = end, int(self.child_start[end])
            starts.append(start)
        return _read_only(np.array(starts, dtype=np.int32))

    @cached_property
    def depth(self) -> Nodes:
        """(V,) the distance of each node from the root."""
        sizes = np.diff(self.level_start)
        return _read_only(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))

    @cached_property
    def node_height(self) -> Nodes:
        """(V,) the longest path from each node down to a leaf; 0 for the actions."""
        heights = np.zeros(self.n_nodes, dtype=np.int32)
        for start, end in self._levels_upward():
            first = self.child_start[start : end + 1]
            inner = np.flatnonzero(first[1:] > first[:-1])
            if len(inner):
                below = heights[first[0] : first[-1]]
                heights[start + inner] = 1 + np.maximum.reduceat(below, first[inner] - first[0])
        return _read_only(heights)

    def _levels_upward(self) -> Iterator[tuple[int, int]]:
        starts = self.level_start.tolist()
        return zip(starts[-2::-1], starts[:0:-1], strict=True)

    @cached_property
    def leaves(self) -> Nodes:
        """(K,) the node numbers of the actions, ascending."""
        return _read_only(np.flatnonzero(self.child_start[1:] == self.child_start[:-1]).astype(np.int32))

    def at_leaves(self, values: Floats) -> Floats:
        """The entries of an array in node order that belong to the actions; no copy where all leaves are equally deep.

        >>> import bough, numpy
        >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
        >>> tree.at_leaves(numpy.arange(5.0))
        array([2., 3., 4.])
        """
        if not isinstance(values, np.ndarray) or values.shape[:1] != self.parent.shape:
            raise ValueError(f"the values are {reprlib.repr(values)}; give an array with one entry for each node")
        first, last = self.leaves[0], self.leaves[-1]
        return values[first : last + 1] if last - first + 1 == self.n_actions else values[self.leaves]

    # -- names ---------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> ActionNames:
        """The names of the actions, in the order of `leaves`."""
        stored = self.node_names
        return ActionNames(stored.actions if isinstance(stored, StoredNames) else self.leaves, self)

    def name(self, node: int) -> Hashable:
        """The name of a node, given its number."""
        return self.node_names.name(self._checked(node))

    def index(self, name: object) -> int:
        """The number of the node of that name.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["tea/green", "tea/black"])
        >>> tree.index("tea"), tree.index("tea/black")
        (1, 3)
        """
        node = self.node_names.find(name)
        if node < 0:
            raise UnknownNameError(f"unknown name {name!r}; {self.node_names.suggestion(name, self.sep)}")
        return node

    def find(self, part: str | int) -> list[Hashable]:
        """The names whose last part, after the last `sep`, is this text; also those that are it as a whole.

        It reads every name, which takes a fifth of a second where there are a million.

        >>> import bough
        >>> tree = bough.Tree.from_paths(["home/kitchen/kettle", "office/kitchen/kettle", "home/garden/spade"])
        >>> tree.find("kettle"), tree.find("garden")
        (['home/kitchen/kettle', 'office/kitchen/kettle'], ['home/garden'])
        """
        if not isinstance(part, str) and not _checks.is_whole(part):
            raise ValueError(f"part is {reprlib.repr(part)}; give the last part of a name, such as 'kettle'")
        return self.node_names.names(self.node_names.ending_in(str(part), self.sep))

    def path(self, name: object) -> list[Hashable]:
        """The names from the root down to that node."""
        return [self.node_names.name(node) for node in self.path_nodes(self.index(name))]

    def path_nodes(self, node: int) -> list[int]:
        """The numbers of the nodes from the root down to that node, given by its number."""
        node = self._checked(node)
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = int(self.parent[node])
        return nodes[::-1]

    def children(self, node: int) -> Nodes:
        """The numbers of a node's children."""
        node = self._checked(node)
        return np.arange(self.child_start[node], self.child_start[node + 1], dtype=np.int32)

    def is_action(self, node: int) -> bool:
        """Whether a node, given its number, is a leaf."""
        node = self._checked(node)
        return bool(self.child_start[node] == self.child_start[node + 1])

    def action_node(self, name: object) -> int:
        """The node number of an action, given its name; a `KeyError` where it is not an action.

        >>> import bough
        >>> bough.Tree.from_paths(["tea/green", "tea/black"]).action_node("tea/black")
        3
        """
        node = self.node_names.find(name)
        if node < 0:
            raise UnknownNameError(f"unknown action {name!r}; {self.node_names.suggestion(name, self.sep)}")
        if self.child_start[node] != self.child_start[node + 1]:
            while self.child_start[node] != self.child_start[node + 1]:
                node = int(self.child_start[node])
            action = self.node_names.name(node)
            raise UnknownNameError(f"{name!r} is not an action but a category; list its actions, such as {action!r}")
        return node

    def action_nodes(self, names: Sequence[object] | Names) -> Nodes:
        """The node numbers of many actions, given their names."""
        if isinstance(names, (str, bytes)) or not hasattr(names, "__len__"):
            raise ValueError(f"{names!r} is one name; give a list of action names")
        _checks.refuse_masked(names, "action")
        if not isinstance(names, (np.ndarray, list)):
            names = list(names)
        if isinstance(names, np.ndarray) and names.ndim != 1:
            raise ValueError(f"the action names have shape {names.shape}; give one column of them")
        nodes = self.node_names.find_all(names)
        known = nodes >= 0
        known[known] = self.child_start[nodes[known]] == self.child_start[nodes[known] + 1]
        if not known.all():
            self.action_node(plain(names[int(np.flatnonzero(~known)[0])]))
        return nodes

    def checked_leaves(self, nodes: Any) -> Nodes:
        """Node numbers of actions as an array; a `ValueError` where one is no action's.

        >>> import bough
        >>> bough.Tree.from_paths(["tea/green", "tea/black"]).checked_leaves([2, 3])
        array([2, 3], dtype=int32)
        """
        given = _checks.integers(nodes, "node numbers")
        for extreme in (given.min(), given.max()) if given.size else ():
            self._checked(int(extreme))
        inner = self.child_start[given] != self.child_start[given + 1]
        if inner.any():
            raise ValueError(f"{given[inner][0]} is the number of an inner node; give those of actions, as in leaves")
        return given.astype(np.int32)

    def with_ancestors(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """The nodes and all that is above them, ascending, and where each one's parent is among them (-1: nowhere).

        >>> import bough
        >>> bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]).with_ancestors([3])
        (array([0, 1, 3], dtype=int32), array([-1,  0,  1], dtype=int32))
        """
        levels = [np.unique(nodes)]
        while len(levels[-1]) and (levels[-1][0] > 0 or len(levels[-1]) > 1):
            above = self.parent[levels[-1]]
            levels.append(np.unique(np.where(above < 0, 0, above)))
        found = np.unique(np.concatenate(levels)).astype(np.int32)
        above = self.parent[found]
        return found, np.where(above < 0, -1, np.searchsorted(found, above)).astype(np.int32)

    def _checked(self, node: int) -> int:
        if not _checks.is_whole(node) or not 0 <= node < self.n_nodes:
            raise ValueError(
                f"{reprlib.repr(node)} is not a node number; they go from 0 to {self.n_nodes - 1} "
                "(tree.index gives a name's)"
            )
        return int(node)

    # -- printing ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Tree(n_nodes={self.n_nodes}, n_actions={self.n_actions}, height={self.height})"

    def show(self, max_depth: int = 3, max_children: int = 5) -> None:
        """Print the tree down to `max_depth`, with at most `max_children` of each node's children.

        >>> import bough
        >>> bough.Tree.balanced(branching=100, height=3).show(max_depth=1, max_children=2)
        0
        ├── 1 (10,100 nodes below)
        ├── 2 (10,100 nodes below)
        └── ... 98 more
        """
        max_depth = _checks.whole_number("max_depth", max_depth, least=0)
        max_children = _checks.whole_number("max_children", max_children, least=0)
        print("\n".join(printing.lines(self, max_depth, max_children)))


def _read_only(array: Nodes) -> Nodes:
    array.setflags(write=False)
    return array
