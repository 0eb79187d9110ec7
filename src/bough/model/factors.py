"""Factor: a crossed effect, such as that of a brand or a store, and which level each action, or decision, has."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Integers, Nodes
from bough._frames import collected, position
from bough.model.likelihood import LARGEST
from bough.tree.name_columns import is_bool, is_missing, plain
from bough.tree.names import UnknownNameError
from bough.tree.tree import Tree

_SHOWN = 5


class Factor:
    """An effect that actions share across the tree: the brand of a product, or the store where a decision is made.

    Each level has an effect of its own, normal around 0 with this `variance`, and the score of an action is its
    parameter in the tree plus the effects of its levels. `labels` says which level each action has: a mapping from
    actions to levels, or a column in the order of `tree.actions`. A list of levels has their effects add up; None, or
    an action that the mapping leaves out, is an action without a level. A level is text, an integer, or a tuple of
    them, such as a pair of a brand and a department.

    `levels` lists the levels, where there may be some that no action has yet. With ``at_decision=True`` the level is
    not an action's but a decision's: `labels` is left out then, and `update` and `decide` take it in their `factors`.

    >>> import bough
    >>> tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade"]})
    >>> brand = bough.Factor({"kettle": "Acme", "spade": "Acme", "toaster": "Bolt"}, variance=0.3)
    >>> store = bough.Factor(levels=["north", "south"], variance=0.1, at_decision=True)
    >>> model = bough.GaussianModel(tree, factors={"brand": brand, "store": store})
    >>> posterior = bough.Posterior(model)
    >>> posterior.update("kettle", 2.0, factors={"store": "north"})
    >>> mean, _ = posterior.action_moments()
    >>> mean.round(2)  # toaster has the kettle's category, and spade its brand
    array([1.5 , 0.91, 0.59])
    """

    def __init__(
        self, labels: Any = None, *, levels: Sequence[Any] | None = None, variance: float = 1.0,
        at_decision: bool = False,
    ) -> None:  # fmt: skip
        self.variance = checked_variance(variance)
        """The variance of each level's effect."""
        self.at_decision = _checks.flag("at_decision", at_decision)
        """Whether the level is a decision's, and not an action's."""
        given = None if levels is None else checked_levels(levels)
        if self.at_decision:
            if labels is not None:
                raise ValueError(
                    "labels were given to a factor of the decision, whose levels come with each decision; leave them "
                    "out and give levels, or leave out at_decision"
                )
            if given is None:
                raise ValueError("a factor of the decision has no labels to take its levels from; give levels")
            self._given: _Given | None = None
            self.levels: tuple[Hashable, ...] = given
            """The names of the levels."""
        else:
            self._given = _Given.of(labels)
            self.levels = _levels_of(self._given, given)

    @property
    def labelled(self) -> list[Any] | None:
        """The actions that a mapping has labels of; None where a column has those of all."""
        return None if self._given is None else self._given.actions

    @classmethod
    def from_frame(
        cls, frame: Any, action: str, level: str, *, levels: Sequence[Any] | None = None, variance: float = 1.0
    ) -> Factor:
        """The factor of a frame's columns: one row per action, or several where an action has several levels.

        >>> import bough, polars
        >>> products = polars.DataFrame({"product": ["kettle", "spade"], "brand": ["Acme", None]})
        >>> bough.Factor.from_frame(products, action="product", level="brand", variance=0.3)
        Factor(1 level, variance=0.3)
        """
        try:
            table = nw.from_native(frame)
        except TypeError:
            raise ValueError(f"frame is a {type(frame).__name__}; give a pandas, polars or pyarrow frame") from None
        kept = collected(table)
        for column in (action, level):
            position(column, kept.columns, "the frame")
        whose = f"the column {action!r}", f"a level in the column {level!r}"
        labels = _gathered(kept[action].to_list(), kept[level].to_list(), *whose)
        return cls(labels, levels=levels, variance=variance)

    def __repr__(self) -> str:
        n = len(self.levels)
        what = f"{n} level{'' if n == 1 else 's'}, variance={self.variance:g}"
        return f"Factor({what}{', at_decision=True' if self.at_decision else ''})"

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        """The place of each level among the levels."""
        return {level: i for i, level in enumerate(self.levels)}

    def code(self, level: Any, name: str) -> int:
        """The place of a level; a `KeyError` where it is not known, and a `ValueError` where it cannot be one."""
        try:
            found = -1 if is_bool(level) else self._codes.get(plain(level), -1)
        except TypeError:
            found = -1
        if found >= 0:
            return found
        if is_missing(level):
            raise ValueError(f"the level of {name!r} is {level!r}, a missing value; {self._hint}")
        level_name(level, f"the level of {name!r}")
        raise UnknownNameError(
            f"unknown level {level!r:.60} of {name!r}; {self._hint}; add a new one with "
            f"add_level({name!r}, {level!r:.60})"
        )

    def code_of_observed(self, level: Hashable, name: str) -> int:
        """The place of a level that rewards were observed at; a `KeyError` where a new model lacks it."""
        if level not in self._codes:
            raise UnknownNameError(
                f"unknown level {level!r:.60} of {name!r}, which rewards were observed at; {self._hint}: put it into "
                "the levels of the factor"
            )
        return self._codes[level]

    @property
    def _hint(self) -> str:
        """What to say of the levels where one is not among them."""
        more = f" and {len(self.levels) - _SHOWN:,} more" if len(self.levels) > _SHOWN else ""
        return f"it has {', '.join(map(repr, self.levels[:_SHOWN])) or 'none yet'}{more}"

    def with_variance(self, variance: float) -> Self:
        """The same levels and labels with another variance of the effects.

        >>> import bough
        >>> bough.Factor({"kettle": "Acme"}).with_variance(0.2)
        Factor(1 level, variance=0.2)
        """
        return self._changed(variance=checked_variance(variance))

    def _changed(self, **parts: Any) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update({key: value for key, value in self.__dict__.items() if key != "_codes"}, **parts)
        return twin

    def on(self, tree: Tree, name: str) -> LabelledFactor:
        """The factor with its labels by place in `tree.actions`; a `KeyError` where one is of no action."""
        if self._given is None:
            start, codes = np.zeros(tree.n_actions + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        else:
            start, codes = self._given.on(tree, self._codes, name)
        labelled = LabelledFactor.__new__(LabelledFactor)
        labelled.__dict__.update({key: value for key, value in self.__dict__.items() if key != "_given"})
        labelled._tree, labelled._start, labelled._labels = tree, start, codes
        return labelled


class LabelledFactor(Factor):
    """A factor as a model has it: on a tree. Given to another tree, it labels the actions that have levels here."""

    _tree: Tree
    _start: Integers
    """(K + 1,) where the labels of each action begin."""
    _labels: Nodes
    """The places of the levels of the actions, those of each action ascending."""

    @classmethod
    def of(
        cls, tree: Tree, levels: Sequence[Hashable], variance: float, at_decision: bool, start: Integers, labels: Nodes
    ) -> LabelledFactor:
        """The factor of these arrays, which are sound."""
        made = cls.__new__(cls)
        made.levels, made.variance, made.at_decision = tuple(levels), variance, at_decision
        made._tree, made._start, made._labels = tree, start, labels
        return made

    @property
    def labelled(self) -> list[Any] | None:
        """The actions that have levels; None where these are the decision's."""
        return None if self.at_decision else self._tree.actions[np.diff(self._start) > 0].tolist()

    def on(self, tree: Tree, name: str) -> LabelledFactor:  # noqa: ARG002
        """The factor on another tree: actions of the same names keep their labels, and others have none."""
        if tree is self._tree:
            return self
        old = self._tree.node_names.find_all(tree.actions)
        leaves = self._tree.leaves
        place = np.searchsorted(leaves, old)
        place[place == len(leaves)] = 0
        return self.moved(tree, np.where((old >= 0) & (leaves[place] == old), place, -1))

    def moved(self, tree: Tree, place: Integers) -> LabelledFactor:
        """The factor on a tree whose actions had these places among the old ones; -1 for those without labels."""
        start, labels = taken(self._start, self._labels, place)
        return self._changed(_tree=tree, _start=start, _labels=labels)

    def with_levels(self, levels: Sequence[Hashable]) -> LabelledFactor:
        """The factor with more levels, which come after those that there are."""
        return self._changed(levels=tuple(levels))

    def beside(self, tree: Tree, place: Integers, other: LabelledFactor, others_place: Integers) -> LabelledFactor:
        """The factor on a tree whose actions had these places here or, where that is -1, among those of another one.

        Levels that only the other one has come last.
        """
        levels = dict.fromkeys((*self.levels, *other.levels))
        code = {level: i for i, level in enumerate(levels)}
        theirs = np.array([code[level] for level in other.levels], dtype=np.int32)[other._labels]
        start = np.concatenate([self._start, self._start[-1] + other._start[1:]])
        n_mine = len(self._start) - 1
        which = np.where(place >= 0, place, np.where(others_place >= 0, n_mine + others_place, -1))
        new_start, labels = taken(start, np.concatenate([self._labels, theirs]), which)
        action = np.repeat(np.arange(len(place)), np.diff(new_start))
        labels = labels[np.lexsort((labels, action))]  # ascending for each action, whatever the other's order was
        parts: Any = {"levels": tuple(levels), "_tree": tree, "_start": new_start, "_labels": labels}
        return self._changed(**parts)

    def is_same(self, other: Factor) -> bool:
        """Whether another one, on the same tree, has the same levels, variance and labels."""
        return (
            isinstance(other, LabelledFactor) and (self.levels, self.variance) == (other.levels, other.variance)
            and self.at_decision == other.at_decision and np.array_equal(self._start, other._start)
            and np.array_equal(self._labels, other._labels)
        )  # fmt: skip


def taken(start: Integers, values: Nodes, place: Integers) -> tuple[Integers, Nodes]:
    """The lists at these places of lists that begin at `start`, one after the other; -1 for an empty one."""
    size = np.where(place < 0, 0, start[place + 1] - start[place])
    new_start = np.concatenate([[0], np.cumsum(size)])
    which = np.repeat(np.where(place < 0, 0, start[place]) - new_start[:-1], size) + np.arange(new_start[-1])
    return new_start, values[which]


def factor_of(name: str, given: Any) -> Factor:
    """What is given as the factor of that name: one, or its labels."""
    if isinstance(given, Factor):
        return given
    try:
        return Factor(given)
    except ValueError as error:
        raise ValueError(f"the factor {name!r}: {error}") from None


def level_name(level: Any, what: str = "a level") -> Hashable:
    """A level's name, checked; `what` is what to call it in an error."""
    one = plain(level)
    if isinstance(one, tuple) and one and all(isinstance(plain(part), (str, int)) for part in one):
        if not any(map(is_bool, one)):
            return tuple(plain(part) for part in one)
    elif isinstance(one, float) and one.is_integer():  # as pandas has whole numbers where others are missing
        return int(one)
    if isinstance(one, bool) or not isinstance(one, (str, int)):
        raise ValueError(
            f"{what} is {_checks.shown(level)}, a {type(level).__name__}; a level is text, an integer, or a tuple "
            "of them"
        )
    return one


def checked_levels(levels: Any) -> tuple[Hashable, ...]:
    """The names of levels, or a `ValueError` that says what is wrong with them."""
    names = [level_name(one) for one in _checks.column(levels, "levels", "a list of their names")]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"levels has {twice!r} twice; name each once")
    return tuple(names)


def checked_variance(variance: Any) -> float:
    """The variance of the effects of a factor, or a `ValueError`."""
    try:
        value = _checks.number(variance, "variance")
    except ValueError:
        value = float("nan")
    if not 0.0 <= value < LARGEST:
        raise ValueError(f"the variance of a factor is {variance!r}; give a finite number of 0 or more")
    return value


@dataclass(frozen=True)
class _Given:
    """Labels as a user gives them, checked but not yet on a tree."""

    actions: list[Any] | None
    """The actions that have the labels; None where they are in the order of a tree's."""
    labels: list[tuple[Hashable, ...]]

    @classmethod
    def of(cls, labels: Any) -> _Given:
        if labels is None:
            raise ValueError(
                "a factor of the actions needs labels, a mapping from actions to levels or a column in the order of "
                "tree.actions; where the level is the decision's, say at_decision=True"
            )
        if isinstance(labels, Mapping):
            return cls(list(map(plain, labels)), list(map(_labels_of_one, labels.values())))
        if hasattr(labels, "columns"):
            raise ValueError(
                "labels is a frame; give bough.Factor.from_frame(frame, action=..., level=...), or a mapping"
            )
        if _goes_by_index(labels):
            return cls.of(_gathered(labels.index.tolist(), labels.tolist(), "the index", "a level"))
        column = _checks.column(labels, "labels", "a mapping from actions to levels, or a column")
        return cls(None, list(map(_labels_of_one, column)))

    def on(self, tree: Tree, codes: Mapping[Hashable, int], name: str) -> tuple[Integers, Nodes]:
        """(K + 1,) where the labels of each action begin, and the labels."""
        labels = self.labels
        if self.actions is None and len(labels) != tree.n_actions:
            raise ValueError(
                f"the factor {name!r} has {len(labels)} labels and the tree {tree.n_actions} actions; give one for "
                "each, in the order of tree.actions, or a mapping"
            )
        if self.actions is not None:
            nodes = tree.node_names.find_all(self.actions) if self.actions else np.empty(0, dtype=np.int64)
            for i in np.flatnonzero((nodes < 0) | (tree.child_start[nodes] != tree.child_start[nodes + 1])).tolist():
                what = "a category and no action; label the actions below it"
                if nodes[i] < 0:
                    what = f"no action; {tree.node_names.suggestion(self.actions[i], tree.sep)}"
                raise UnknownNameError(f"the factor {name!r} labels {self.actions[i]!r}, which is {what}")
            by_place: list[tuple[Hashable, ...]] = [()] * tree.n_actions
            for place, own in zip(np.searchsorted(tree.leaves, nodes).tolist(), labels, strict=True):
                by_place[place] = own
            labels = by_place
        start = np.zeros(tree.n_actions + 1, dtype=np.int64)
        np.cumsum([len(own) for own in labels], out=start[1:])
        return start, np.array([c for own in labels for c in sorted(codes[one] for one in own)], dtype=np.int32)


def _goes_by_index(labels: Any) -> bool:
    """Whether labels are a Series of pandas whose index has the actions; one that numbers all rows has none."""
    if not hasattr(labels, "to_dict"):
        return False
    index = labels.index
    if index.name is not None:  # such as that of set_index, which may be a range too
        return True
    if hasattr(index, "step") and (index.start, index.step) == (0, 1):
        return False
    if index.inferred_type in ("integer", "floating"):
        raise ValueError(
            "labels is a Series whose index has no name and holds numbers, which may be those of the rows of a table; "
            "give bough.Factor.from_frame(frame, action=..., level=...), or dict(zip(actions, levels))"
        )
    return True


def _gathered(actions: list[Any], levels: list[Any], index: str, level: str) -> dict[Hashable, list[Hashable]]:
    """The levels of each action, of a table that may have several rows of it; the words are for errors."""
    labels: dict[Hashable, list[Hashable]] = {}
    for name, given in zip(actions, levels, strict=True):
        if is_missing(name):
            raise ValueError(f"{index} has a null; leave the row out")
        labels.setdefault(plain(name), []).extend(_labels_of_one(given, level))
    return labels


def _labels_of_one(given: Any, what: str = "a level") -> tuple[Hashable, ...]:
    """The distinct levels of one action."""
    return tuple(dict.fromkeys(level_name(one, what) for one in _several(given) if not is_missing(one)))


def _several(given: Any) -> list[Any]:
    """What is given for the levels of one action, as a list, whether it is one, a list or a set of them."""
    if isinstance(given, (set, frozenset)):  # whose order is another one in each process
        return sorted(given, key=lambda one: (str(one), type(one).__name__))
    if isinstance(given, tuple) or not _checks.is_list(given):
        return [given]
    return _checks.column(given, "the level of an action", "its level, or a list of them")


def _levels_of(given: _Given, levels: tuple[Hashable, ...] | None) -> tuple[Hashable, ...]:
    """The levels, in the order in which labels name them where none is given."""
    found = dict.fromkeys(one for own in given.labels for one in own)
    if levels is None:
        return tuple(found)
    known = set(levels)
    strange = next((one for one in found if one not in known), None)
    if strange is not None:
        raise ValueError(f"labels has {strange!r}, which is not among the levels; add it to levels")
    return levels
