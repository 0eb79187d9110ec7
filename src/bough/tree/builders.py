"""What each source of a tree (paths, nested mappings, frames, graphs, linkages) says about its nodes.

Every function here returns an `Outline`: nodes in any order, each with its parent's position and its
name. `tree.py` turns an outline into the breadth-first arrays of a `Tree`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from bough import _checks
from bough._arrays import Integers
from bough.tree.name_columns import is_missing, plain

_MOST_NODES = 2**31 - 1
_KEYS_A_ROW = 4  # a table of more keys than this takes longer than sorting the rows
_NEVER_MISSING = frozenset({str, int, bool})


@dataclass(frozen=True)
class Outline:
    """Nodes in any order: `parents[i]` is the position of node i's parent, -1 for the root."""

    parents: Integers
    names: Sequence[Hashable] | None
    """One name a node, or None where a node's name is its position."""


def _check_separator(sep: str) -> None:
    if not isinstance(sep, str) or not sep:
        raise ValueError(f"sep is {sep!r}; give the text between two components, such as '/'")


def paths_outline(paths: Iterable[str], sep: str) -> Outline:
    _check_separator(sep)
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
            raise ValueError(f"path {path!r} has an empty component; remove the extra {sep!r} or choose another sep")
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
    return Outline(np.array(parents), names)


def nested_outline(nested: Any, sep: str) -> Outline:
    _check_separator(sep)
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
    return Outline(np.array(parents), names_of_all)


def _entries(items: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Members of a list: a mapping among them is a sub-category, anything else an action."""
    for item in items:
        if isinstance(item, Mapping):
            yield from item.items()
        else:
            yield item, None


def frame_outline(frame: Any, columns: Sequence[str], sep: str) -> Outline:
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"frame is a {type(frame).__name__}; give a pandas, polars or pyarrow frame (collect a lazy one)"
        ) from None
    _check_separator(sep)
    if not isinstance(columns, str) and not _checks.is_list(columns):
        raise ValueError(f"columns is {columns!r}; give a list of column names")
    columns = [columns] if isinstance(columns, str) else list(columns)
    if not columns:
        raise ValueError("columns is empty; name the columns from the root's children to the actions")
    missing = [column for column in columns if not _checks.is_among(column, table.columns)]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {table.columns}")
    if not len(table):
        raise ValueError("the frame has no rows; a tree needs at least one action")

    parents: list[Integers] = [np.array([-1])]
    names: list[Hashable] = [""]
    node_of_row = np.zeros(len(table), dtype=np.int64)  # where each row's path has got to
    for column in columns[:-1]:
        values, code_of_row = _factorise(table, column)
        # Two rows go on together when they were together and have the same value here.
        key = node_of_row * len(values) + code_of_row
        n_keys = len(names) * len(values)
        if n_keys > _KEYS_A_ROW * len(key):
            distinct, key = np.unique(key, return_inverse=True)
            n_keys = len(distinct)
        first = np.full(n_keys, -1)
        first[key[::-1]] = np.arange(len(key))[::-1]  # what is written last stays
        rows = np.sort(first[first >= 0])
        rank = np.empty(n_keys, dtype=np.int64)
        rank[key[rows]] = np.arange(len(rows))
        above = node_of_row[rows]
        node_of_row = len(names) + rank[key]
        for parent, code in zip(above.tolist(), code_of_row[rows].tolist(), strict=True):
            prefix = names[parent]
            names.append(f"{prefix}{sep}{values[code]}" if parent else str(values[code]))
        parents.append(above)
    actions = _values(table, columns[-1])
    parents.append(node_of_row)
    names.extend(actions)
    return Outline(np.concatenate(parents), names)


def _values(table: nw.DataFrame[Any], column: str) -> list[Hashable]:
    """A column as Python values, without nulls."""
    values: list[Any] = table.get_column(column).to_list()
    if set(map(type, values)) <= _NEVER_MISSING:
        return values
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(
                f"column {column!r} is null in row {row}; drop such rows or fill in their place in the tree"
            )
    return [plain(value) for value in values]


def _factorise(table: nw.DataFrame[Any], column: str) -> tuple[list[Hashable], Integers]:
    """The distinct values in order of appearance, and each row's position among them."""
    series = table.get_column(column)
    if series.dtype == nw.String:
        with contextlib.suppress(TypeError):  # narwhals says text where the first values are
            distinct: list[Hashable] = series.unique(maintain_order=True).to_list()
            if set(map(type, distinct)) == {str}:
                codes = series.replace_strict(distinct, range(len(distinct)), return_dtype=nw.Int64)
                return distinct, codes.to_numpy()
    values = _values(table, column)
    try:
        code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
    except TypeError:
        raise ValueError(f"column {column!r} holds values that are not hashable; give text or numbers") from None
    return list(code_of), np.fromiter(map(code_of.__getitem__, values), np.int64, len(values))


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


def breadth_first(parents: Integers, names: Sequence[Hashable] | None) -> Integers | None:
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
