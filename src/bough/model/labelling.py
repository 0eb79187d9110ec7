"""Labels of actions that are new to a model with crossed factors: added one by one, or with a new table."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bough import _checks
from bough.model.factors import Factor
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
        own = Factor(_by_name(name, names, given))
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

    A mapping has those of some actions, and others keep theirs; a column has them all.
    """
    assert model.effects is not None
    tree, found = model.tree, dict(model.effects.factors)
    for name, given in labels.items():
        factor = model.effects.factor(name)
        if factor.at_decision:
            raise ValueError(f"{name!r} is a factor of the decision, and no action has a level of it; leave it out")
        new = given if isinstance(given, Factor) else Factor(given)
        theirs, every = new.on(tree, name), np.arange(tree.n_actions)
        mine = np.full(tree.n_actions, -1, dtype=np.int64)
        if new.labelled is not None:
            mine[:] = every
            mine[np.searchsorted(tree.leaves, tree.action_nodes(new.labelled))] = -1
        found[name] = factor.beside(tree, mine, theirs, every)
    return found  # type: ignore[return-value]
