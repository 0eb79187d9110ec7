"""What each source of a tree (paths, nested mappings, graphs, linkages) says about its nodes; tables.py does frames.

Every source becomes an `Outline`: nodes in any order, each with its parent's position and its name. `arranged` turns an
outline into the breadth-first arrays of a `Tree`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from bough import _checks
from bough._arrays import Integers, Nodes
from bough.tree.name_columns import plain
from bough.tree.names import NodeNames, NumberedNames, StoredNames

_MOST_NODES = 2**31 - 1


@dataclass(frozen=True)
class Outline:
    """Nodes in any order: `parents[i]` is the position of node i's parent, -1 for the root."""

    parents: Integers
    names: Sequence[Hashable] | None
    """One name a node, or None where a node's name is its position."""
    sep: str | None = None
    """What the names of inner nodes are joined with, where they are."""
    level_sizes: Mapping[str, int] | None = None
    """Where nodes come from columns: how many values each has, but for the last one, which has 0 here."""


def check_separator(sep: str) -> None:
    if not isinstance(sep, str) or not sep:
        raise ValueError(f"sep is {sep!r}; give the text between two components, such as '/'")


def paths_outline(paths: Iterable[str], sep: str) -> Outline:
    check_separator(sep)
    if isinstance(paths, str):
        raise ValueError(f"paths is the single string {paths!r}; give a list of paths")
    if not _checks.is_list(paths):
        raise ValueError(f"paths is {paths!r}; give a list of paths")
    parents, names = [-1], [""]
    inner: dict[str, int] = {"": 0}
    actions: set[str] = set()
    for path in paths:
        if not isinstance(path, str):
            raise ValueError(f"path {path!r} is of type {type(path).__name__}; paths are strings")
        components = path.split(sep)
        if not all(components):
            raise ValueError(f"path {path!r} has an empty component; remove the extra {sep!r} or give another sep=")
        if path in actions:
            raise ValueError(f"path {path!r} is given twice; every action needs a path of its own")
        prefix, parent = "", 0
        for component in components[:-1]:
            prefix = f"{prefix}{sep}{component}" if parent else component
            node = inner.get(prefix)
            if node is None:
                node = inner[prefix] = len(parents)
                parents.append(parent)
                names.append(prefix)
            parent = node
        actions.add(path)
        parents.append(parent)
        names.append(path)
    for path in inner.keys() & actions:
        raise ValueError(f"path {path!r} is both an action and the start of a longer path; only leaves are actions")
    if not actions:
        raise ValueError("no paths were given; a tree needs at least one action")
    return Outline(np.array(parents), names, sep)


def nested_outline(nested: Any, sep: str) -> Outline:
    check_separator(sep)
    parents, names = [-1], [""]
    names_of_all: list[Hashable] = names  # type: ignore[assignment]

    def add(parent: int, name: Hashable) -> int:
        parents.append(parent)
        names_of_all.append(name)
        return len(parents) - 1

    # A stack of (parent's position, path of the parent, what is below), so that depth is no limit.
    pending: list[tuple[int, str, Any]] = [(0, "", nested)]
    while pending:
        parent, path, below = pending.pop()
        where = f"category {path!r}" if path else "the top level"
        if not _checks.is_list(below):
            raise ValueError(
                f"{where} holds {below!r}; below a category goes a mapping, a list of actions, or None for an action"
            )
        count = 0
        for entry in below.items() if isinstance(below, Mapping) else _entries(below):
            key, inside = entry
            count += 1
            if inside is None:
                add(parent, plain(key))
            else:
                name = f"{path}{sep}{key}" if path else str(key)
                pending.append((add(parent, name), name, inside))
        if not count:
            raise ValueError(f"{where} is empty; give it an action or leave it out")
    return Outline(np.array(parents), names_of_all, sep)


def _entries(items: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Members of a list: a mapping among them is a sub-category, anything else an action."""
    for item in items:
        if isinstance(item, Mapping):
            yield from item.items()
        else:
            yield item, None


def graph_outline(graph: Any, root: Hashable | None) -> Outline:
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise ValueError(f"graph is a {type(graph).__name__}; give a networkx graph")
    names = list(graph.nodes)
    if root is not None and root not in graph:
        raise ValueError(f"root {root!r} is not a node of the graph")
    position = {name: i for i, name in enumerate(names)}
    if graph.is_directed():
        edges = [(position[a], position[b]) for a, b in graph.edges()]
    else:
        if root is None:
            raise ValueError("the graph is undirected; say which node is the root with root=")
        if graph.number_of_edges() != len(names) - 1:
            raise ValueError(
                f"the graph has {len(names)} nodes and {graph.number_of_edges()} edges; "
                "a tree has one edge fewer than nodes"
            )
        edges = _directed_away(graph, root, position)
    parents = np.full(len(names), -1)
    for above, below in edges:
        if parents[below] >= 0:
            raise ValueError(
                f"node {names[below]!r} has two parents, {names[parents[below]]!r} and {names[above]!r}; "
                "in a tree it has one"
            )
        parents[below] = above
    if root is not None and parents[position[root]] >= 0:
        raise ValueError(f"root {root!r} has a parent, {names[parents[position[root]]]!r}")
    return Outline(parents, names)


def _directed_away(graph: Any, root: Hashable, position: dict[Hashable, int]) -> list[tuple[int, int]]:
    """The edges of an undirected tree, each from the root's side to the other."""
    edges = []
    seen, pending = {root}, [root]
    while pending:
        above = pending.pop()
        for below in graph.adj[above]:
            if below not in seen:
                seen.add(below)
                pending.append(below)
                edges.append((position[above], position[below]))
    return edges


def named(names: Any) -> list[Hashable]:
    """The names as a list, whatever sequence they come in."""
    if not _checks.is_list(names):
        raise ValueError(f"names is {names!r}; give a list of names")
    _checks.refuse_masked(names, "name")
    return list(names)


def linkage_outline(linkage: Any, names: Sequence[Hashable] | None) -> Outline:
    merges = _checks.floats(linkage, "linkage")
    if merges.ndim != 2 or merges.shape[1] != 4 or not len(merges) or not np.isfinite(merges).all():
        wanted = "finite numbers in (n - 1, 4)"
        raise ValueError(f"the linkage has shape {merges.shape}; scipy.cluster.hierarchy.linkage gives {wanted}")
    n = len(merges) + 1
    joined = merges[:, :2].astype(np.int64)
    new = np.arange(n, 2 * n - 1)
    if (joined != merges[:, :2]).any() or (joined < 0).any() or (joined >= new[:, None]).any():
        raise ValueError("the linkage joins clusters that do not exist yet; is it scipy's format?")
    clusters, times = np.unique(joined, return_counts=True)
    if (times > 1).any():
        raise ValueError(f"the linkage joins cluster {clusters[times > 1][0]} twice")
    parents = np.full(2 * n - 1, -1)
    parents[joined[:, 0]] = new
    parents[joined[:, 1]] = new
    if names is None:
        return Outline(parents, None)
    names = named(names)
    if len(names) == n:
        names += [f"cluster {number}" for number in new]
    elif len(names) != 2 * n - 1:
        raise ValueError(
            f"{len(names)} names for a linkage of {n} items; give {n} (the items) or {2 * n - 1} (the clusters too)"
        )
    return Outline(parents, names)


def arranged(outline: Outline) -> tuple[Nodes, Nodes, NodeNames]:
    """The parents, the starts of the children and the names that a `Tree` has; a `ValueError` where it is none."""
    parents, names = outline.parents, outline.names
    order = _breadth_first(parents, names)
    if order is None:
        parent = parents.astype(np.int32)
    else:
        position = np.empty(len(order), dtype=np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        parent = np.where(parents[order] < 0, -1, position[parents[order]]).astype(np.int32)
    n_children = np.bincount(parent[1:], minlength=len(parent))
    child_start = np.concatenate([[1], 1 + np.cumsum(n_children)]).astype(np.int32)
    if names is None and order is None:
        return parent, child_start, NumberedNames(len(parent))
    leaves = np.flatnonzero(n_children == 0).astype(np.int32)
    inner = np.flatnonzero(n_children).astype(np.int32)
    if names is None:
        assert order is not None
        return parent, child_start, StoredNames(inner, leaves, order[inner], order[leaves])
    stored = StoredNames.of(inner, leaves, names, order)
    twice = stored.duplicate()
    if twice is not None:
        _refuse_twice(outline, *twice)
    return parent, child_start, stored


def _refuse_twice(outline: Outline, name: Hashable, times: int) -> NoReturn:
    """Say why a name is given to more than one node: where the separator is to blame, what it has joined."""
    given = f"the name {name!r} is given to {times} nodes"
    if outline.sep is not None and outline.names is not None:
        places = [i for i, one in enumerate(outline.names) if one == name]
        inner = set(outline.parents.tolist())
        # An action is called by its own name, whatever the separator.
        parts = [tuple(_parts(outline, i)) if i in inner else (str(name),) for i in places]
        if len(set(parts)) > 1:
            first, second = list(dict.fromkeys(parts))[:2]
            raise ValueError(
                f"{given}: with sep={outline.sep!r} the parts {list(first)} and {list(second)} give the same one; give "
                "another sep=, one that is in none of the parts"
            )
    given += ", and names are unique over all nodes of a tree"
    order = _likely_order(outline)
    if order is not None:
        raise ValueError(f"{given}; give the columns coarsest first, which seems to be {', '.join(order)}")
    raise ValueError(f"{given}; name actions by their whole path, or, if rows of a frame are repeated, drop those")


def _likely_order(outline: Outline) -> list[str] | None:
    """The columns by how many values they have, where that is not the order in which they were given."""
    if outline.level_sizes is None or outline.names is None:
        return None
    inner = set(outline.parents.tolist())
    *_, last = outline.level_sizes
    actions = {name for i, name in enumerate(outline.names) if i not in inner}
    sizes = {**outline.level_sizes, last: len(actions)}
    order = sorted(sizes, key=sizes.__getitem__)
    return None if order == list(sizes) else order


def _parts(outline: Outline, place: int) -> list[str]:
    """What the name of an inner node is joined from; the root, which is not joined, comes first in an outline."""
    assert outline.names is not None
    assert outline.sep is not None
    parts = []
    while place > 0:
        name, above = str(outline.names[place]), int(outline.parents[place])
        parts.append(name[len(str(outline.names[above])) + len(outline.sep) :] if above else name)
        place = above
    return parts[::-1] or [""]


def balanced(branching: int, height: int) -> tuple[Nodes, Nodes, NodeNames]:
    """The arrays of the tree in which every inner node has so many children, and every leaf that depth."""
    levels = height + 1 if branching == 1 else min(height + 1, 64)  # so many are too many already
    n = levels if branching == 1 else (branching**levels - 1) // (branching - 1)
    check_size(n)
    number = np.arange(n + 1, dtype=np.int64)
    child_start = np.minimum(number * branching + 1, n).astype(np.int32)
    parent = ((number[:n] - 1) // branching).astype(np.int32)
    return parent, child_start, NumberedNames(n)


def _breadth_first(parents: Integers, names: Sequence[Hashable] | None) -> Integers | None:
    """The order in which breadth-first search meets the nodes; None if it is the given one."""
    n = len(parents)
    if not n:
        raise ValueError("the tree has no nodes; it needs at least one action")
    check_size(n)

    def called(position: int) -> str:
        return f"node {position}" if names is None else repr(names[position])

    outside = np.flatnonzero((parents < -1) | (parents >= n))
    if len(outside):
        raise ValueError(
            f"the parent of {called(outside[0])} is {parents[outside[0]]}; parents are -1 for the root "
            f"or a position from 0 to {n - 1}"
        )
    roots = np.flatnonzero(parents == -1)
    if len(roots) > 1:
        raise ValueError(
            f"the tree has {len(roots)} roots, {called(roots[0])} and {called(roots[1])} among them; "
            "put one node above them"
        )
    if len(roots) and roots[0] == 0 and (np.diff(parents) >= 0).all() and (parents < np.arange(n)).all():
        return None
    below = np.flatnonzero(parents >= 0)
    graph = csr_array((np.ones(len(below), dtype=np.int8), (parents[below], below)), shape=(n, n))
    order: Integers = (
        breadth_first_order(graph, roots[0], return_predecessors=False).astype(np.int64)
        if len(roots)
        else np.empty(0, dtype=np.int64)
    )
    if len(order) < n:
        astray = np.setdiff1d(np.arange(n), order)[0]
        raise ValueError(f"the tree has a cycle: going up from {called(astray)} never ends at a root")
    return order


def check_size(n_nodes: int) -> None:
    """Refuse a tree whose nodes cannot be numbered in 4 bytes."""
    if n_nodes > _MOST_NODES:
        raise ValueError(f"the tree has {n_nodes:,} nodes; at most {_MOST_NODES:,} are supported")
