"""Adoption: where everything of an old tree goes when a new one takes its place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from bough import _checks
from bough._arrays import Nodes
from bough.model.covariance import ClassCovariances
from bough.model.labelling import relabelled
from bough.model.model import Model
from bough.tree.changes import Changes, compare, with_ghosts
from bough.tree.names import twin
from bough.tree.tree import Tree

Gone = Literal["retire", "forget", "raise"]
_SHOWN = 5


@dataclass(frozen=True)
class Adoption:
    """The model to go on with, and what becomes of the old one's nodes."""

    model: Model
    """On the new tree, with the actions that are retired."""
    number: Nodes
    """(V,) the new number of each old node; -1 where it is gone."""
    retired: Nodes
    """The new numbers of the actions that are not to be chosen, in the order in which they were retired."""
    changes: Changes


def plan_adoption(
    old: Model,
    given: Tree | Model,
    retired: Nodes,
    renamed: Mapping[Hashable, Hashable] | None,
    gone: Gone,
    weight: Callable[[int], float],
    labels: Any = None,
) -> Adoption:
    """What `adopt` is to do; nothing changes yet.

    `retired` has the old numbers of the actions that are retired already, and `weight` says how much has been observed
    of an old action. `labels` has the levels of crossed factors of the actions of a new tree.
    """
    tree = given if isinstance(given, Tree) else given.tree
    if labels is not None and not isinstance(labels, Mapping):
        raise ValueError(
            f'factors is {_checks.shown(labels)}; give a mapping, such as {{"brand": {{"kettle": "Acme"}}}}'
        )
    if labels:
        given = _relabelled(old, given, labels, renamed)
    if tree is old.tree and not renamed:  # another prior at most: nobody comes or goes
        everyone = np.arange(tree.n_nodes, dtype=np.int32)
        return Adoption(old if isinstance(given, Tree) else given, everyone, retired, Changes())
    found = compare(old.tree, tree, renamed)
    if len(found.gone) == old.tree.n_actions:
        _check_types(old.tree, tree)
    model = old.rehung(tree, found.place) if isinstance(given, Tree) else given
    before, names = old.tree, old.tree.node_names.name
    was_retired = np.zeros(before.n_nodes, dtype=np.bool_)
    was_retired[retired] = True
    fresh = found.gone[~was_retired[found.gone]]
    if gone == "raise" and len(fresh):
        shown = ", ".join(repr(names(node)) for node in fresh[:_SHOWN].tolist())
        more = f" and {len(fresh) - _SHOWN:,} more" if len(fresh) > _SHOWN else ""
        raise ValueError(
            f"the new table lacks {_n_actions(len(fresh))}: {shown}{more}; keep them in it, or choose gone='retire' or "
            "'forget'"
        )
    ghosts = found.gone[was_retired[found.gone]] if gone == "forget" else found.gone
    ghosts = _without_categories(before, tree, ghosts, weight)
    haunted = with_ghosts(tree, before, ghosts)
    number = np.where(found.place < 0, -1, haunted.number[found.place])
    number[ghosts] = haunted.ghosts
    if len(ghosts):
        model = _with_ghosts(model, old, haunted.tree, haunted.number)
        model = _with_ghosts_labels(model, old, ghosts, haunted.ghosts)
    changes = Changes(
        added=_names(tree, found.added),
        retired=_names(before, np.intersect1d(fresh, ghosts)),
        moved=_names(before, found.moved),
        renamed=dict(renamed or {}),
        restored=_names(before, retired[found.place[retired] >= 0]),
        forgotten=_names(before, fresh) if gone == "forget" else [],
    )
    still = retired[found.place[retired] < 0]  # in the order in which they were retired
    kept = number[np.concatenate([still, fresh])]
    return Adoption(model, number.astype(np.int32), kept[kept >= 0].astype(np.int32), changes)


def _relabelled(old: Model, given: Tree | Model, labels: Mapping[str, Any], renamed: Any) -> Model:
    """The old model on a new tree, with its actions' levels of crossed factors."""
    if not isinstance(given, Tree):
        raise ValueError("factors go with a tree; a model has its own, so leave them out")
    if old.effects is None:
        raise ValueError("factors were given, and the agent's model has none; adopt a model that has them")
    moved = old.rehung(given, compare(old.tree, given, renamed).place)
    return replace(moved, factors=relabelled(moved, labels))


def _with_ghosts_labels(model: Model, old: Model, ghosts: Nodes, now: Nodes) -> Model:
    """The model with the levels that actions had which are gone from the table, at their new numbers."""
    if model.effects is None or old.effects is None:
        return model
    tree, factors = model.tree, dict(model.effects.factors)
    theirs = np.full(tree.n_actions, -1, dtype=np.int64)
    theirs[np.searchsorted(tree.leaves, now)] = np.searchsorted(old.tree.leaves, ghosts)
    mine = np.where(theirs >= 0, -1, np.arange(tree.n_actions))
    for name, factor in old.effects.factors.items():
        if name in factors and not factor.at_decision and not factors[name].at_decision:
            factors[name] = factors[name].beside(tree, mine, factor, theirs)
    return replace(model, factors=factors)


def _n_actions(n: int) -> str:
    return "1 action" if n == 1 else f"{n:,} actions"


def _check_types(old: Tree, new: Tree) -> None:
    """Refuse a tree whose names are integers where they were text, or the reverse."""
    name = new.actions[0]
    if twin(old.node_names, name) is not None:
        raise ValueError(
            f"the new table has {name!r}, a {type(name).__name__}, and the agent knows it as another type; cast one"
        )


def _names(tree: Tree, nodes: Nodes) -> list[Hashable]:
    return tree.node_names.names(nodes.astype(np.int32))


def _without_categories(old: Tree, new: Tree, ghosts: Nodes, weight: Callable[[int], float]) -> Nodes:
    """The ghosts that are not categories of the new tree; one of those must have no evidence."""
    names = _names(old, ghosts)
    found = new.node_names.find_all(names) if names else np.empty(0, dtype=np.int32)
    for node, name in zip(ghosts[found >= 0].tolist(), np.flatnonzero(found >= 0).tolist(), strict=True):
        if weight(node) > 0.0:
            raise ValueError(
                f"{names[name]!r} is an action with rewards, and a category of the new table; rename the action with "
                f"renamed=, or forget it first"
            )
    return ghosts[found < 0]


def _with_ghosts(model: Model, old: Model, tree: Tree, number: Nodes) -> Model:
    """The new model on its tree with ghosts, which keep their own covariances where each node has one."""
    mine, theirs = model.classes, old.classes
    if mine.kind != "node":
        if mine.kind == theirs.kind and len(mine.table) <= tree.height < len(theirs.table):
            table = np.concatenate([mine.table, theirs.table[len(mine.table) :]])  # of places that only ghosts have
            model = replace(model, covariance=ClassCovariances(mine.kind, mine.of_node, table))
        return model.rehung(tree, number)
    of_node = np.full(tree.n_nodes, -1, dtype=np.int32)
    of_node[number] = mine.of_node
    kept = np.flatnonzero(of_node < 0).astype(np.int32)
    classes, table = theirs.of_node[old.tree.node_names.find_all(_names(tree, kept))], mine.table
    if mine.table is not theirs.table:  # classes keep their numbers, and others follow
        used, place = np.unique(classes, return_inverse=True)
        classes = (len(mine.table) + place).astype(np.int32)
        table = np.concatenate([mine.table, theirs.table[used]])
    of_node[kept] = classes
    return replace(model, tree=tree, covariance=ClassCovariances("node", of_node, table))
