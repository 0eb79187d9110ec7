"""Effects: those of all crossed factors of a model, side by side, as an engine reads them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers, Names, Nodes
from bough.model.factors import Factor, LabelledFactor, level_name
from bough.tree.name_columns import as_column
from bough.tree.names import UnknownNameError
from bough.tree.tree import Tree

_MOST_LEVELS = 20_000  # the engine keeps a number for each pair of them: 3.2 GB
_TAKEN = ("mean", "noise", "noise spread", "noise floor")  # what fits call other numbers


@dataclass(frozen=True, eq=False)
class Effects:
    """The levels of all factors, numbered one factor after the other.

    >>> import bough
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> brand = bough.Factor(["Acme", ["Acme", "Bolt"]], variance=0.3)
    >>> effects = Effects.checked({"brand": brand}, tree)
    >>> effects.n, effects.start, effects.labels, effects.variance
    (2, array([0, 1, 3]), array([0, 0, 1], dtype=int32), array([0.3, 0.3]))
    """

    factors: dict[str, LabelledFactor]
    tree: Tree

    @classmethod
    def checked(cls, factors: Any, tree: Tree) -> Effects:
        """The effects of what a user gives as factors."""
        if not isinstance(factors, Mapping):
            raise ValueError(
                f'factors is {_checks.shown(factors)}; give a mapping, such as {{"brand": bough.Factor(labels)}}'
            )
        for name, factor in factors.items():
            if not isinstance(name, str) or not name or name in _TAKEN:
                raise ValueError(f"a factor is called {name!r}; give it another name, which is text")
            if not isinstance(factor, Factor):
                raise ValueError(f"the factor {name!r} is a {type(factor).__name__}; give a bough.Factor")
        _check_size(factors)
        return cls({name: factor.on(tree, name) for name, factor in factors.items()}, tree)

    @cached_property
    def first(self) -> Integers:
        """(n_factors + 1,) the number of each factor's first level."""
        return np.concatenate([[0], np.cumsum([len(factor.levels) for factor in self.factors.values()])])

    @property
    def n(self) -> int:
        """How many levels there are."""
        return int(self.first[-1])

    @cached_property
    def variance(self) -> Floats:
        """(n,) the prior variance of each level's effect."""
        return np.repeat([factor.variance for factor in self.factors.values()], np.diff(self.first))

    @cached_property
    def decided(self) -> tuple[tuple[str, Factor, int], ...]:
        """The factors whose levels come with decisions: name, factor, and the number of the first level."""
        return tuple(
            (name, factor, int(first))
            for (name, factor), first in zip(self.factors.items(), self.first, strict=False)
            if factor.at_decision
        )

    @cached_property
    def _rows(self) -> tuple[Integers, Nodes]:
        n = self.tree.n_actions
        sizes = sum((np.diff(one._start) for one in self.factors.values()), np.zeros(n, dtype=np.int64))
        start = np.concatenate([[0], np.cumsum(sizes)])
        labels = np.empty(start[-1], dtype=np.int32)
        free = start[:-1].copy()  # where the next label of each action goes
        for factor, first in zip(self.factors.values(), self.first, strict=False):
            size = np.diff(factor._start)
            into = np.repeat(free - factor._start[:-1], size) + np.arange(len(factor._labels))
            labels[into] = factor._labels + first
            free += size
        return start, labels

    @property
    def start(self) -> Integers:
        """(K + 1,) where in `labels` those of each action begin, in the order of `tree.actions`."""
        return self._rows[0]

    @property
    def labels(self) -> Nodes:
        """The levels of the actions, by number, ascending for each action."""
        return self._rows[1]

    def totals(self, effects: Floats) -> Floats:
        """(K,) what these effects, (n,), add to the score of each action."""
        action = np.repeat(np.arange(self.tree.n_actions), np.diff(self.start))
        return np.bincount(action, effects[self.labels], minlength=self.tree.n_actions).astype(np.float64)

    def of_action(self, place: int) -> Nodes:
        """The levels of an action, given by its place in `tree.actions`."""
        return self.labels[self.start[place] : self.start[place + 1]]

    def decided_names(self, codes: Integers) -> dict[str, Names] | None:
        """Columns of the levels of decisions, of their (n, m) places; None where no factor is the decision's."""
        if not self.decided:
            return None
        return {
            name: as_column([factor.levels[code] for code in codes[:, i].tolist()])
            for i, (name, factor, _) in enumerate(self.decided)
        }

    def decided_codes(self, factors: Any, n: int) -> Nodes | None:
        """(n, m) the places of the levels of n decisions, given by name; None where no factor is the decision's.

        A factor has one level for all, or a list of n. A `ValueError` where one is missing or is no factor of the
        decision, and a `KeyError` where a level is not known.
        """
        self._check_names(factors)
        if not self.decided:
            return None
        missing = [name for name, _, _ in self.decided if name not in (factors or {})]
        if missing:
            raise ValueError(
                f"the levels of {', '.join(map(repr, missing))} are missing, which come with the decision of a reward; "
                f"give factors={{{missing[0]!r}: ...}}"
            )
        codes = np.empty((n, len(self.decided)), dtype=np.int32)
        for i, (name, factor, _) in enumerate(self.decided):
            codes[:, i] = _codes_of(factor, name, factors[name], n)
        return codes

    def some_codes(self, factors: Any) -> Floats | None:
        """(m,) the places of the levels of one decision, -1 for those that are left out; None where all are.

        They are numbers, as a context is: what a decision is made in.
        """
        self._check_names(factors)
        if not factors:
            return None
        return np.array(
            [factor.code(factors[name], name) if name in factors else -1 for name, factor, _ in self.decided],
            dtype=np.float64,
        )

    def _check_names(self, factors: Any) -> None:
        """Refuse what is no mapping from factors of the decision."""
        if factors is None:
            return
        known = [name for name, _, _ in self.decided]
        if not isinstance(factors, Mapping):
            example = known[0] if known else "store"
            raise ValueError(
                f"factors is {_checks.shown(factors)}; give a mapping from factors to levels, {{{example!r}: ...}}"
            )
        for name in factors:
            if _checks.is_among(name, known):
                continue
            if _checks.is_among(name, self.factors):
                raise ValueError(f"{name!r} is a factor of the actions, whose levels the model has; leave it out")
            of = f"the factors of the decision are {', '.join(map(repr, known))}" if known else "the model has none"
            raise ValueError(f"factors has {name!r:.60}, which is no factor of the decision; {of}")

    def factor(self, name: Any) -> LabelledFactor:
        """The factor of that name; a `KeyError` where there is none."""
        if not _checks.is_among(name, self.factors):
            raise UnknownNameError(
                f"there is no factor {name!r:.60}; the model has {', '.join(map(repr, self.factors))}"
            )
        return self.factors[name]

    def name_of(self, effect: int) -> tuple[str, Hashable]:
        """The factor and the level of an effect, given by its number."""
        place = int(np.searchsorted(self.first, effect, side="right")) - 1
        name = list(self.factors)[place]
        return name, self.factors[name].levels[effect - int(self.first[place])]

    def first_of(self, name: str) -> int:
        """The number of the first level of a factor."""
        return int(self.first[list(self.factors).index(name)])

    def moved(self, tree: Tree, place: Integers) -> dict[str, LabelledFactor]:
        """The factors on a tree whose actions had these places among the old ones; -1 for new ones."""
        return {name: factor.moved(tree, place) for name, factor in self.factors.items()}

    def check_decided(self, old: Effects | None) -> None:
        """Refuse factors of the decision that rewards observed under other effects came without."""
        known = [] if old is None else [name for name, _, _ in old.decided]
        new = next((name for name, _, _ in self.decided if name not in known), None)
        if new is not None:
            raise ValueError(
                f"{new!r} is a factor of the decision, and what was observed came without its levels; give the log to "
                "a new posterior"
            )

    def with_level(self, name: str, level: Any) -> dict[str, LabelledFactor]:
        """The factors with one more level; a `ValueError` where it is there already."""
        factor = self.factor(name)
        new = level_name(level, f"the level of {name!r}")
        if new in factor.levels:
            raise ValueError(f"{name!r} has a level {level!r} already")
        return {**self.factors, name: factor.with_levels((*factor.levels, new))}

    def is_same(self, other: Effects | None) -> bool:
        """Whether others, on the same tree, are the same."""
        return (
            other is not None
            and list(self.factors) == list(other.factors)
            and all(factor.is_same(other.factors[name]) for name, factor in self.factors.items())
        )


def _check_size(factors: Mapping[str, Factor]) -> None:
    """Refuse more levels than there is room for."""
    sizes = {name: len(factor.levels) for name, factor in factors.items()}
    if sum(sizes.values()) > _MOST_LEVELS:
        name = max(sizes, key=lambda one: sizes[one])
        raise ValueError(
            f"the factors have {sum(sizes.values()):,} levels, of which {name!r} has {sizes[name]:,}; there is room "
            f"for {_MOST_LEVELS:,} in all, with a number for each pair of them: call rare levels by one name, such as "
            "'other', or leave the factor out"
        )


def _codes_of(factor: Factor, name: str, given: Any, n: int) -> Nodes:
    """(n,) the places of levels: one for all, or a list of them."""
    if isinstance(given, tuple) or not _checks.is_list(given):
        return np.full(n, factor.code(given, name), dtype=np.int32)
    column = _checks.column(given, f"the level of {name!r}", "one for all rewards, or a list with one for each")
    if len(column) != n:
        raise ValueError(f"there are {len(column)} levels of {name!r}; give {n}, one for each reward")
    return np.array([factor.code(level, name) for level in column], dtype=np.int32)
