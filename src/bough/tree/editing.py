"""A tree with nodes added, moved and removed: its arrays edited, and its names merged instead of indexed anew."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from bough import _checks
from bough._arrays import Flags, Nodes
from bough.tree import builders
from bough.tree.name_columns import as_column, is_bool
from bough.tree.names import NumberedNames, StoredNames

if TYPE_CHECKING:
    from bough.tree.tree import Tree


class Edit(NamedTuple):
    """An edited tree, and what has become of the nodes of the old one."""

    tree: Tree
    number: Nodes
    """(V,) the new number of each old node; -1 where it is gone, also where its name was added anew."""


def edit(tree: Tree, add: Any = None, move: Any = None, remove: Any = None) -> Edit:
    """The tree with names added, moved and removed, as `Tree.edited` says.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> edit(tree, remove=["tea/green"]).number
    array([ 0,  1,  2, -1,  3], dtype=int32)
    """
    added, moves, removed = _mapping("add", add), _mapping("move", move), _listed(remove)
    if not (added or moves or removed):
        return Edit(tree, np.arange(tree.n_nodes, dtype=np.int32))
    moved_nodes, removed_nodes = _known(tree, list(moves)), _known(tree, removed)
    _check_movable(tree, moved_nodes, removed_nodes)
    gone = _with_all_below(tree, removed_nodes, spared=moved_nodes)
    names, new = _numbered(tree, added, gone)
    above_added = _targets(tree, added, new, gone)
    above_moved = _targets(tree, moves, new, gone)
    _refuse_moves_below_actions(tree, moves, above_moved, above_added)
    return _hung(tree, names, above_added, moved_nodes, above_moved, gone)


def _hung(
    tree: Tree, names: Sequence[Hashable], above_added: Nodes, moved: Nodes, above_moved: Nodes, gone: Flags
) -> Edit:
    """The tree with everything in its place. The j-th added name has the number V + j meanwhile."""
    n = tree.n_nodes
    total = n + len(names)
    builders.check_size(total)
    parent = np.concatenate([tree.parent, above_added]).astype(np.int32)
    changed = tree.parent[moved] != above_moved
    moved, above_moved = moved[changed], above_moved[changed]
    parent[moved] = above_moved

    stays = np.concatenate([~gone, np.ones(len(names), dtype=np.bool_)])
    n_children = np.bincount(parent[1:][stays[1:]], minlength=total)
    _drop_emptied(tree, parent, n_children, stays)

    # Old siblings stand side by side already, so that only what comes to them has a place to be looked for.
    still = stays[:n].copy()
    still[moved] = False
    still[0] = False
    resident = np.flatnonzero(still).astype(np.int32)
    coming = np.concatenate([moved, np.arange(n, total, dtype=np.int32)])
    coming = coming[stays[coming]]
    by_parent = coming[np.argsort(parent[coming], kind="stable")]
    place = np.searchsorted(parent[resident], parent[by_parent], side="right")
    children = np.insert(resident, place, by_parent)

    start = np.concatenate([[0], np.cumsum(n_children)]).astype(np.int32)
    below = csr_array((np.ones(len(children)), children, start), shape=(total, total))
    order = breadth_first_order(below, 0, return_predecessors=False).astype(np.int32)
    number = np.full(total, -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    astray = np.flatnonzero(stays & (number < 0))
    if len(astray):
        _refuse_cycle(tree, names, parent, coming.tolist(), int(astray[0]))
    if len(order) == 1:
        raise ValueError("nothing would be left of the tree; keep or add at least one action")

    above = parent[order]
    above[1:] = number[above[1:]]
    child_start = np.concatenate([[1], 1 + np.cumsum(n_children[order])]).astype(np.int32)
    stored = stored_names(tree).edited(order, number, child_start, names)
    _refuse_twice(stored)
    return Edit(tree._rearranged(above, child_start, stored), number[:n])


def stored_names(tree: Tree) -> StoredNames:
    """The names of a tree in columns, also where they are the numbers of its nodes."""
    stored = tree.node_names
    if isinstance(stored, StoredNames):
        return stored
    assert isinstance(stored, NumberedNames)
    leaves = tree.leaves
    inner = np.flatnonzero(np.diff(tree.child_start)).astype(np.int32)
    return StoredNames(inner, leaves, inner.astype(np.int64), leaves.astype(np.int64))


# -- what goes ---------------------------------------------------------------------------------


def _with_all_below(tree: Tree, nodes: Nodes, spared: Nodes) -> Flags:
    """(V,) whether a node is one of these or below one, other than by way of one that is spared."""
    found = np.zeros(tree.n_nodes, dtype=np.bool_)
    keep = np.zeros(tree.n_nodes, dtype=np.bool_)
    keep[spared] = True
    while len(nodes):
        found[nodes] = True
        nodes = _children(tree, nodes)
        nodes = nodes[~(keep[nodes] | found[nodes])]
    return found


def _children(tree: Tree, nodes: Nodes) -> Nodes:
    first = tree.child_start[nodes]
    count = tree.child_start[nodes + 1] - first
    gap = first - np.cumsum(count) + count  # between a child's number and its place in the result
    return (np.repeat(gap, count) + np.arange(count.sum())).astype(np.int32)


def _drop_emptied(tree: Tree, parent: Nodes, n_children: Any, stays: Flags) -> None:
    """Take out the categories that have nothing below them any more; overwrites n_children and stays."""
    was_inner = np.diff(tree.child_start) > 0
    was_inner[0] = False  # there is always a root
    emptied = np.flatnonzero(was_inner & stays[: tree.n_nodes] & (n_children[: tree.n_nodes] == 0))
    while len(emptied):
        stays[emptied] = False
        np.subtract.at(n_children, parent[emptied], 1)
        above = np.unique(parent[emptied])
        above = above[above < tree.n_nodes]  # what is added without children is an action
        emptied = above[was_inner[above] & (n_children[above] == 0)]
    n_children[~stays] = 0


# -- what is given -----------------------------------------------------------------------------


def _mapping(what: str, given: Any) -> Mapping[Hashable, Hashable]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"{what} is {reprlib.repr(given)}; give a mapping from names to the names of their parents")
    return given


def _listed(given: Any) -> list[Hashable]:
    if given is None:
        return []
    if not _checks.is_list(given) or isinstance(given, Mapping):
        raise ValueError(f"remove is {reprlib.repr(given)}; give a list of names")
    return builders.named(given)


def _known(tree: Tree, names: Sequence[Hashable]) -> Nodes:
    """The nodes of names that are all in the tree, once each."""
    nodes = tree.node_names.find_all(names)
    _refuse_unknown(tree, names, nodes)
    ordered = np.sort(nodes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise ValueError(f"the name {tree.name(int(twice[0]))!r} is given twice; name each node once")
    return nodes


def _refuse_unknown(tree: Tree, names: Sequence[Hashable], nodes: Nodes) -> None:
    if (nodes < 0).any():
        tree.index(names[int(np.argmin(nodes))])


def _check_movable(tree: Tree, moved: Nodes, removed: Nodes) -> None:
    for verb, nodes in (("moved", moved), ("removed", removed)):
        if (nodes == 0).any():
            raise ValueError(f"the root {tree.name(0)!r} cannot be {verb}; everything hangs below it")
    both = np.intersect1d(moved, removed)
    if len(both):
        raise ValueError(f"{tree.name(int(both[0]))!r} is both moved and removed; do one of them")


_Key = tuple[bool, Hashable]


def _key(name: Hashable) -> _Key:
    return is_bool(name), name  # True equals 1 but does not name the same


def _numbered(tree: Tree, added: Mapping[Hashable, Hashable], gone: Flags) -> tuple[list[Hashable], dict[_Key, int]]:
    """The added names as they are kept, and the number of each, from V on."""
    names: list[Hashable] = as_column(added).tolist() if added else []
    found = tree.node_names.find_all(names)
    there = (found >= 0) & ~gone[found]
    if there.any():
        name = names[int(np.argmax(there))]
        raise ValueError(f"the tree has {name!r} already; move it, or add another name")
    return names, {_key(name): tree.n_nodes + j for j, name in enumerate(names)}


def _targets(tree: Tree, below: Mapping[Hashable, Hashable], new: Mapping[_Key, int], gone: Flags) -> Nodes:
    """The numbers of the parents that are given: those of added names, and of old ones that stay."""
    parents = list(below.values())
    found = tree.node_names.find_all(parents)
    old = gone[found] & (found >= 0)
    for i, name in enumerate(parents) if new else ():
        try:
            found[i] = new[_key(name)]
        except (KeyError, TypeError):
            continue
        old[i] = False
    _refuse_unknown(tree, parents, found)
    if old.any():
        name, above = list(below.items())[int(np.argmax(old))]
        raise ValueError(f"{name!r} cannot go below {above!r}, which is removed; name a parent that stays")
    return found


def _refuse_moves_below_actions(
    tree: Tree, moves: Mapping[Hashable, Hashable], targets: Nodes, above_added: Nodes
) -> None:
    n = tree.n_nodes
    old = np.minimum(targets, n - 1)
    action = (targets < n) & (tree.child_start[old] == tree.child_start[old + 1]) & ~np.isin(targets, above_added)
    if action.any():
        name, above = list(moves.items())[int(np.argmax(action))]
        raise ValueError(f"{name!r} cannot be moved below {above!r}, which is an action; add a category for it first")


def _refuse_cycle(tree: Tree, names: Sequence[Hashable], parent: Nodes, changed: Iterable[int], lost: int) -> NoReturn:
    """Say which change makes the cycle that is met on the way up from a node that hangs nowhere."""
    on_cycle, node = _way_up(parent, lost), lost
    for node in changed:
        if node in on_cycle:
            break
    name, above = (
        tree.name(one) if one < tree.n_nodes else names[one - tree.n_nodes] for one in (node, int(parent[node]))
    )
    raise ValueError(f"{name!r} cannot go below {above!r}, which hangs below it; choose a parent outside of it")


def _way_up(parent: Nodes, node: int) -> set[int]:
    """The nodes of the cycle that going up from a node leads into."""
    for _ in range(2):  # once to get into the cycle, once around it
        seen: set[int] = set()
        while node not in seen:
            seen.add(node)
            node = int(parent[node])
    return seen


def _refuse_twice(names: StoredNames) -> None:
    twice = names.duplicate()
    if twice is not None:
        raise ValueError(f"the name {twice[0]!r} is given to {twice[1]} nodes, and names are unique; add another name")
