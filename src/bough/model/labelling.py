"""Labels of actions that are new to a model with crossed factors: added one by one, or with a new table."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bough import _checks
from bough._arrays import Flags
from bough.model.factors import Factor, LabelledFactor, factor_of
from bough.model.model import Model

_Model = TypeVar("_Model", bound=Model)


def labelled(model: Model, names: Sequence[Hashable], labels: Any) -> dict[str, Factor]:
    """Factors of the new actions alone, checked: a level that the model does not have is refused.

    `labels` has for each factor a level, or a list of them, for one new action; for several of them, a list with one
    entry for each, or a mapping.
    """
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise ValueError(f'factors is {reprlib.repr(labels)}; give a mapping, such as {{"brand": "Acme"}}')
    if model.effects is None:
        raise ValueError(f"factors is {reprlib.repr(labels)}, and the model has none; leave it out")
    found = {}
    for name, given in labels.items():
        factor = model.effects.factor(name)
        if factor.at_decision:
            raise ValueError(f"{name!r} is a factor of the decision, and no action has a level of it; leave it out")
        own = factor_of(name, _by_name(name, names, given))
        for level in own.levels:
            factor.code(level, name)
        found[name] = own
    return found


def _by_name(factor: str, names: Sequence[Hashable], given: Any) -> Mapping[Hashable, Any]:
    if isinstance(given, Mapping):
        strange = next((name for name in given if not _checks.is_among(name, names)), None)
        if strange is not None:
            raise ValueError(f"the factor {factor!r} labels {strange!r}, which is not added; leave it out")
        return given
    if len(names) == 1:
        return {names[0]: given}
    wanted = "one level for each, in a list or a mapping"
    levels = [] if isinstance(given, tuple) else _checks.column(given, f"the level of {factor!r}", wanted)
    if len(levels) != len(names):
        raise ValueError(f"the factor {factor!r} has {reprlib.repr(given)} for {len(names)} actions; give {wanted}")
    return dict(zip(names, levels, strict=True))


def with_labels(model: _Model, factors: Mapping[str, Factor]) -> _Model:
    """The model with the labels of some of its actions, which have none yet."""
    if model.effects is None or not factors:
        return model
    every = np.arange(model.tree.n_actions)
    made = dict(model.effects.factors)
    for name, own in factors.items():
        theirs = own.on(model.tree, name)
        mine = made[name]
        has_own = np.diff(mine._start) > 0
        made[name] = mine.beside(model.tree, np.where(has_own, every, -1), theirs, every)
    return replace(model, factors=made)


def relabelled(model: Model, labels: Mapping[str, Any]) -> dict[str, Factor]:
    """The factors of a model on a new table that comes with labels; levels that are new come last.

    A mapping has those of some actions, and others keep theirs; a column has them all. Variances stay the model's.
    """
    assert model.effects is not None
    found: dict[str, Factor] = dict(model.effects.factors)
    for name, given in labels.items():
        factor, every = model.effects.factor(name), np.arange(model.tree.n_actions)
        new = _of_the_same_kind(factor, name, given)
        theirs = new.on(model.tree, name)
        found[name] = factor.beside(model.tree, np.where(_named_by(new, theirs), -1, every), theirs, every)
    return found


def _of_the_same_kind(factor: Factor, name: str, given: Any) -> Factor:
    """What is given for a factor, as one that is of the actions, or of the decision, as that is."""
    if factor.at_decision and not (isinstance(given, Factor) and given.at_decision):
        raise ValueError(f"{name!r} is a factor of the decision, and no action has a level of it; leave it out")
    if isinstance(given, Factor) and given.at_decision and not factor.at_decision:
        raise ValueError(
            f"{name!r} is a factor of the actions, and one of the decision was given; give the labels of actions, or "
            "leave it out"
        )
    return factor_of(name, given)


def _named_by(given: Factor, on_tree: LabelledFactor) -> Flags:
    """(K,) which actions a factor says the levels of; it says those of all where it was made of a column."""
    tree, names = on_tree._tree, given.labelled
    if isinstance(given, LabelledFactor):  # which may have actions that the tree does not have
        return np.diff(on_tree._start) > 0
    named = np.full(tree.n_actions, names is None)
    named[np.searchsorted(tree.leaves, tree.action_nodes(names or []))] = True
    return named
