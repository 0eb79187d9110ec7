"""What differs between two trees, by name; and a tree with actions of an older one kept as ghosts."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from bough._arrays import Nodes
from bough.tree.editing import edit, stored_names
from bough.tree.names import UnknownNameError
from bough.tree.tree import Tree

_SHOWN = 3  # names of a kind when changes are printed


class Comparison(NamedTuple):
    """What has become of the nodes of an old tree in a new one. Names are the identity."""

    place: Nodes
    """(V,) for each old action the new action of its name, for each old inner node the new one of its name; else -1."""
    added: Nodes
    """The numbers of new actions that no old action has become."""
    gone: Nodes
    """The numbers of old actions that have become none."""
    moved: Nodes
    """The numbers of old actions that hang below a category of another name now."""


class Haunted(NamedTuple):
    """A tree with ghosts: actions of an older tree that are still there."""

    tree: Tree
    number: Nodes
    """(V,) where each node of the tree without ghosts is now."""
    ghosts: Nodes
    """Where each ghost is."""


def compare(old: Tree, new: Tree, renamed: Mapping[Hashable, Hashable] | None = None) -> Comparison:
    """What of an old tree is where in a new one; `renamed` maps names of old actions to those of new ones.

    >>> import bough
    >>> old = bough.Tree.from_nested({"tea": ["green", "black"], "other": ["coffee", "milk"]})
    >>> new = bough.Tree.from_nested({"tea": ["green", "milk"], "other": ["espresso", "juice"]})
    >>> changes = compare(old, new, renamed={"coffee": "espresso"})
    >>> [[old.name(i) for i in nodes] for nodes in (changes.gone, changes.moved)]
    [['black'], ['milk']]
    >>> [new.name(i) for i in changes.added]
    ['juice']
    """
    was_inner, is_inner = (np.diff(tree.child_start) > 0 for tree in (old, new))
    place = stored_names(old).found_in(stored_names(new))
    place[was_inner != is_inner[place]] = -1
    if renamed:
        nodes, places = _renamings(old, new, renamed)
        place[nodes] = places

    leaves = old.leaves
    here = place[leaves]
    is_new = ~is_inner
    is_new[here[here >= 0]] = False
    both = leaves[here >= 0]
    above, above_now = old.parent[both], new.parent[place[both]]
    stays = np.where(above < 0, above_now < 0, (above_now >= 0) & (place[above] == above_now))
    return Comparison(place, np.flatnonzero(is_new).astype(np.int32), leaves[here < 0], both[~stays])


def _renamings(old: Tree, new: Tree, renamed: Mapping[Hashable, Hashable]) -> tuple[Nodes, Nodes]:
    """The old and the new numbers of the renamed actions; an error where they cannot be the same ones."""
    if not isinstance(renamed, Mapping):
        raise ValueError(f"renamed is {reprlib.repr(renamed)}; give a mapping from old names to new ones")
    old_names, new_names = list(renamed), list(renamed.values())
    before = _actions(old, old_names, "renames what is not an action of the old tree")
    after = _actions(new, new_names, "gives a name that is not an action of the new tree")
    twice = np.flatnonzero(np.bincount(after) > 1)
    if len(twice):
        first, second = np.flatnonzero(after == twice[0])[:2]
        raise ValueError(
            f"renamed gives {old_names[first]!r} and {old_names[second]!r} the same name {new_names[first]!r}; "
            "every action needs its own"
        )
    # One name may go from action to action, as long as every action that has it in either tree is named here.
    for i in _known_elsewhere(new, old_names, after):
        raise ValueError(
            f"renamed gives {old_names[i]!r} the name {new_names[i]!r}, but the new tree still has {old_names[i]!r} as "
            "well; leave it out of renamed, or out of the table"
        )
    for i in _known_elsewhere(old, new_names, before):
        raise ValueError(
            f"renamed gives {old_names[i]!r} the name {new_names[i]!r}, which is another action's in the old tree; "
            "rename that one as well, or leave both"
        )
    return before, after


def _actions(tree: Tree, names: list[Hashable], wrong: str) -> Nodes:
    try:
        return tree.action_nodes(names)
    except KeyError as error:
        raise UnknownNameError(f"renamed {wrong}: {error}") from None


def _known_elsewhere(tree: Tree, names: list[Hashable], nodes: Nodes) -> list[int]:
    """The positions of names that are those of actions other than the given ones."""
    found = tree.node_names.find_all(names)
    is_action = (found >= 0) & (tree.child_start[found] == tree.child_start[found + 1])
    return np.flatnonzero(is_action & ~np.isin(found, nodes)).tolist()


def with_ghosts(new: Tree, old: Tree, ghosts: Nodes) -> Haunted:
    """The new tree with actions of the old one, each below the category that it had.

    Categories that the new tree has no longer are added too, below the nearest one above them that it has, or else its
    root. A name that is an action now cannot be a category, and what was below it goes below what was above it.

    >>> import bough
    >>> old = bough.Tree.from_nested({"tea": {"herbal": ["mint"], "other": ["green"]}, "drinks": ["milk"]})
    >>> new = bough.Tree.from_nested({"tea": {"other": ["green"]}, "drinks": ["juice"]})
    >>> with_ghosts(new, old, old.action_nodes(["mint", "milk"])).tree.path("mint")
    ['', 'tea', 'tea/herbal', 'mint']
    """
    names = old.node_names.names(ghosts)
    for name, node in zip(names, new.node_names.find_all(names).tolist(), strict=True):
        if node >= 0:
            kind = "an action" if new.is_action(node) else "a category"
            raise ValueError(f"{name!r} cannot stay as an action that is gone: it is {kind} of the new tree")
    if names and new.height == 0:
        raise ValueError(f"the new tree is the single action {new.name(0)!r}; put a category above it")

    @cache
    def category(node: int) -> tuple[Hashable, bool, bool]:
        """Its name, whether the new tree has it, and whether something can hang below it there."""
        name = old.name(node)
        found = new.node_names.find(name)
        return name, found >= 0, not new.is_action(found) if found >= 0 else node > 0

    add: dict[Hashable, Hashable] = {}
    for below, node in zip(names, old.parent[ghosts].tolist(), strict=True):
        while node >= 0:
            name, is_there, can_hold = category(node)
            if can_hold:
                add[below] = name
                if is_there or name in add:
                    break
                below = name
            node = int(old.parent[node])
        else:
            add[below] = new.name(0)
    tree, number = edit(new, add=add)
    return Haunted(tree, number, tree.node_names.find_all(names))


@dataclass(frozen=True)
class Changes:
    """What `adopt` has changed, by the names of the actions; printed it takes three lines.

    >>> print(Changes(added=["kettle-3"], retired=["kite"], moved=[], renamed={"mug": "cup"}))
    added 1: 'kettle-3'
    retired 1: 'kite'; restored 0; forgotten 0
    moved 0; renamed 1: 'mug' to 'cup'
    """

    added: list[Hashable] = field(default_factory=list)
    """Actions that were not there before."""
    retired: list[Hashable] = field(default_factory=list)
    """Actions that the new table lacks, and that are not chosen any more."""
    moved: list[Hashable] = field(default_factory=list)
    """Actions that hang below a category of another name now."""
    renamed: dict[Hashable, Hashable] = field(default_factory=dict)
    """The new name of each action that was renamed, by the old one."""
    restored: list[Hashable] = field(default_factory=list)
    """Actions that were retired and are listed again."""
    forgotten: list[Hashable] = field(default_factory=list)
    """Actions that the new table lacks, and that were removed with their evidence."""

    def __str__(self) -> str:
        renamed = [f"{old!r} to {new!r}" for old, new in self.renamed.items()]
        gone = (("retired", self.retired), ("restored", self.restored), ("forgotten", self.forgotten))
        lines = [
            _count("added", self.added),
            "; ".join(_count(verb, names) for verb, names in gone),
            f"{_count('moved', self.moved)}; {_listing('renamed', len(renamed), renamed)}",
        ]
        return "\n".join(lines)


def _count(verb: str, names: list[Hashable]) -> str:
    return _listing(verb, len(names), [repr(name) for name in names[:_SHOWN]])


def _listing(verb: str, n: int, shown: list[str]) -> str:
    if not n:
        return f"{verb} 0"
    more = f" and {n - _SHOWN:,} more" if n > _SHOWN else ""
    return f"{verb} {n:,}: {', '.join(shown[:_SHOWN])}{more}"
