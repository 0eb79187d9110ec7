"""Observations: actions, rewards and contexts as a user gives them, one by one or many at once, checked for a model."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Nodes
from bough.data.contexts import NamedRows, arranged, many_by_name, named_rows, one_by_name, without_model
from bough.data.statistics import Statistics
from bough.model.encoders import input_names, is_encoder
from bough.model.feature_names import INTERCEPT, checked_names, distinct_names, order_of, shown
from bough.model.likelihood import LARGEST
from bough.model.model import Model
from bough.tree.catalogue import Catalogue
from bough.tree.tree import Tree

_BY_POSITION = frozenset((np.ndarray, list, tuple))  # what most contexts are


class Rows(NamedTuple):
    """Observations of a model, checked: all of one length."""

    leaves: Nodes
    rewards: Floats
    contexts: Floats | None
    """(n, d), in a contextual model."""
    exposure: Floats | None
    """The trials of each reward, or its exposure; None where rewards are Gaussian."""
    times: Floats | None = None
    """When each was, after the clock was started; None: now."""
    weights: Floats | None = None
    """How much each counts; None: as one."""
    levels: Nodes | None = None
    """(n, m) the levels that their decisions had, by their places in their factors; None where there are none."""

    def some(self, wanted: Flags) -> Rows:
        """Those of the rows."""
        if wanted.all():
            return self
        columns: list[Any] = [None if column is None else column[wanted] for column in self]
        return Rows(*columns)

    @property
    def counts(self) -> Floats:
        """(n,) how much each counts."""
        return np.ones(len(self.rewards)) if self.weights is None else self.weights


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """A log that is kept row by row, for what cannot be learned from sums: rewards that are not Gaussian, in contexts.

    `action` and `reward` are columns of the same length, `context` is (n, d), and `trials` or `exposure`, as in
    `Posterior.update`, a number for each row or one for all. `features` has the names of the context's columns; a frame
    has them already.

    >>> import bough
    >>> bough.Observations(["left", "right"], [1, 0], context=[[1.0, 0.5], [1.0, -0.5]])
    Observations(n_rows=2, dim=2)
    """

    action: Any
    reward: Any
    context: Any = None
    trials: Any = None
    exposure: Any = None
    features: Any = None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        action: str,
        reward: str,
        context: Sequence[str] | None = None,
        trials: str | None = None,
        exposure: str | None = None,
        *,
        intercept: bool = False,
    ) -> Observations:
        """The rows of a pandas, polars or pyarrow frame, by the names of its columns.

        With `intercept`, a feature that is always 1, called "intercept", comes before those of the `context`.

        >>> import bough, polars
        >>> log = polars.DataFrame({"ad": ["a", "b"], "clicks": [3, 0], "views": [40, 25]})
        >>> bough.Observations.from_frame(log, action="ad", reward="clicks", trials="views")
        Observations(n_rows=2)
        """
        try:
            table: Any = nw.from_native(frame)
            table = table.collect() if isinstance(table, nw.LazyFrame) else table
        except TypeError:
            raise ValueError(f"frame is a {type(frame).__name__}; give a pandas, polars or pyarrow frame") from None
        if not (isinstance(action, str) and isinstance(reward, str) and (context is None or _checks.is_list(context))):
            raise ValueError("action and reward are names of columns, and context is a list of them; give such")
        chosen = None if context is None else list(context)
        for name in (action, reward, *(chosen or []), trials, exposure):
            if name is not None and not _checks.is_among(name, table.columns):
                raise ValueError(f"the frame has no column {name!r}; it has {', '.join(map(str, table.columns))}")

        def column(name: str | None) -> Any:
            return None if name is None else table[name].to_numpy()

        contexts, features = None, None
        check_intercept(intercept, chosen)
        if chosen:
            features = with_intercept(chosen, intercept)
            contexts = np.asarray(table.select(*chosen).to_numpy())
            contexts = np.column_stack([np.ones(len(contexts)), contexts]) if intercept else contexts
        return cls(table[action].to_list(), column(reward), contexts, column(trials), column(exposure), features)

    def arranged(self, features: Sequence[str] | None = None) -> Observations:
        """The same rows with contexts that are an array, with the features in this order, or in their own.

        Where the contexts have no names, those of `features` are taken for theirs. An intercept that is missing is 1.

        >>> import bough
        >>> log = bough.Observations(["left", "right"], [1, 0], context={"age": [30, 40], "price": [5.0, 4.0]})
        >>> log.arranged(["price", "age"]).context
        array([[ 5., 30.],
               [ 4., 40.]])
        """
        if self.context is None:
            return self
        contexts, names = without_model(self.context, self.features)
        numbers = _checks.floats(contexts, "context")
        if numbers.ndim != 2 and (names is not None or features is not None):
            raise ValueError(f"the contexts have shape {numbers.shape}; give (n, d), a row for each")
        names = None if names is None else checked_names(names, numbers.shape[1])
        if features is None:
            return replace(self, context=numbers, features=names)
        wanted = checked_names(features, numbers.shape[1]) if names is None else distinct_names(features)
        if names is not None and names != wanted:
            columns = {name: numbers[:, j] for j, name in enumerate(names)}
            numbers = arranged(NamedRows(columns, len(numbers), None), wanted)
        return replace(self, context=numbers, features=wanted)

    def __add__(self, other: Observations) -> Observations:
        """The rows of both logs, one after the other.

        >>> import bough
        >>> bough.Observations(["left"], [1]) + bough.Observations(["right", "left"], [0, 1])
        Observations(n_rows=3)
        """
        if not isinstance(other, Observations):
            return NotImplemented

        def joined(name: str) -> Any:
            mine, theirs = getattr(first, name), getattr(second, name)
            if mine is None and theirs is None:
                return None
            if name == "context" and (mine is None or theirs is None):
                raise ValueError("one log has contexts and the other has none; they cannot be added")
            parts = [_checks.floats(1.0 if part is None else part, name) for part in (mine, theirs)]
            full = [part if part.ndim else np.full(n, part) for part, n in zip(parts, sizes, strict=True)]
            if full[0].shape[1:] != full[1].shape[1:]:
                raise ValueError(f"one log has a {name} of shape {full[0].shape} and the other of {full[1].shape}")
            return np.concatenate(full)

        for one in (self, other):
            if _checks.is_one(one.reward):
                raise ValueError(f"the reward is {one.reward!r}; give the column of rewards of a log")
        first, second = self.arranged(), other.arranged()
        if first.features is not None and second.features is not None:
            order_of(second.features, first.features, "the other log")
            second = second.arranged(first.features)
        sizes = [len(self.reward), len(other.reward)]
        names = [*_checks.as_names(self.action), *_checks.as_names(other.action)]
        columns = {name: joined(name) for name in ("reward", "context", "trials", "exposure")}
        return Observations(names, **columns, features=first.features or second.features)

    def __repr__(self) -> str:
        try:
            dim = "" if self.context is None else f", dim={np.shape(self.context)[1]}"
        except (ValueError, IndexError):  # whoever uses it will say what is wrong
            dim = ", dim=?"
        try:
            n_rows = str(np.size(self.reward))
        except ValueError:
            n_rows = "?"
        return f"Observations(n_rows={n_rows}{dim})"

    def rows(self, model: Model, actions: Catalogue | None = None) -> Rows:
        """The same, checked for a model; `actions` says where actions are, if not in its tree."""
        if not isinstance(model, Model):
            raise ValueError(f"model is a {type(model).__name__}; give a model, such as bough.BernoulliModel")
        by_position = self.context is not None and named_rows(self.context) is None
        log = self.arranged(model.feature_names) if by_position and self.features is not None else self
        return checked_rows(model, log.action, log.reward, log.context, log.trials, log.exposure, actions)


def check_intercept(intercept: Any, context: Sequence[str] | None) -> None:
    """Refuse an intercept that is neither True nor False, and one without contexts."""
    if not isinstance(intercept, (bool, np.bool_)):
        raise ValueError(f"intercept is {intercept!r:.80}; give True or False")
    if intercept and not context:
        raise ValueError(
            "intercept goes with context, which names columns of the log; "
            "without one every reward has its action's mean anyway"
        )


def with_intercept(context: Sequence[str], intercept: bool) -> tuple[str, ...]:
    """The names of the features of columns, after an intercept if there is to be one."""
    if intercept and INTERCEPT in context:
        raise ValueError(
            f"context has a column {INTERCEPT!r}, which is what intercept=True adds; leave out one of them"
        )
    return (INTERCEPT, *context) if intercept else tuple(context)


def rows_of(data: Any, model: Model, actions: Catalogue | None = None) -> Rows:
    """A log as checked rows: `Observations`, or a tuple of actions, rewards and, in a contextual model, contexts."""
    if isinstance(data, tuple) and len(data) in (2, 3):
        data = Observations(*data)
    if not isinstance(data, Observations) or _checks.is_one(data.reward):
        raise ValueError(
            f"the log is {_shown(data)}; give bough.Observations of its columns, or a tuple (actions, rewards) or "
            "(actions, rewards, contexts)"
        )
    return data.rows(model, actions)


def _shown(data: Any) -> str:
    return repr(data) if isinstance(data, (str, int, float, Observations, type(None))) else f"a {type(data).__name__}"


def checked_rows(
    model: Model,
    action: Any,
    reward: Any,
    context: Any,
    trials: Any,
    exposure: Any,
    actions: Tree | Catalogue | None = None,
    factors: Any = None,
) -> Rows:
    """One observation, or many, as arrays; a `ValueError` or `KeyError` that says what is wrong with them.

    `actions` says where actions are; the model's tree if it is None. `factors` has the levels of decisions.
    """
    actions = model.tree if actions is None else actions
    if _checks.is_one(reward):
        leaves = np.array([one_action(actions, action)], dtype=np.int32)
        rewards = np.array([_checks.number(reward)])
        contexts = None if context is None else checked_context(model, context)[None]
    else:
        rewards = _checks.vector(reward, "rewards")
        leaves = actions.action_nodes(_checks.as_names(action))
        if len(leaves) != len(rewards):
            raise ValueError(f"action has length {len(leaves)} and reward {len(rewards)}; give one for each")
        contexts = None if context is None else checked_contexts(model, context, len(rewards))
    check_context_presence(model, context)
    check_size(model, rewards, contexts)
    levels = checked_levels(model, factors, len(rewards))
    return Rows(leaves, rewards, contexts, model.kind.checked_exposure(rewards, trials, exposure), levels=levels)


def checked_levels(model: Model, factors: Any, n: int) -> Nodes | None:
    """(n, m) the levels of decisions, by their places in the factors of the decision; None where there are none."""
    if model.effects is not None:
        return model.effects.decided_codes(factors, n)
    refuse_factors(factors)
    return None


def checked_levels_of_decision(model: Model, factors: Any) -> Floats | None:
    """(m,) the levels of one decision, by their places; -1 for those that are left out, and None where all are."""
    if model.effects is not None:
        return model.effects.some_codes(factors)
    refuse_factors(factors)
    return None


def refuse_factors(factors: Any) -> None:
    """Refuse levels of decisions, for a model without factors."""
    if not _checks.is_nothing(factors):
        raise ValueError(
            f"factors is {_checks.shown(factors)}, and the model has none; leave it out, or give the model such factors"
        )


def checked_context(model: Model, context: Any) -> Floats:
    """One context as a (d,) array, or a `ValueError` that says what is wrong with it."""
    check_context_presence(model, context)
    if type(context) not in _BY_POSITION:
        context = one_by_name(model, context)
    given = _checks.floats(context, "context")
    if given.shape != (model.dim,):
        hint = _features_hint(model, given.shape)
        raise ValueError(f"the context has shape {given.shape}; give a vector of length {model.dim}{hint}")
    if not (np.abs(given) < LARGEST).all():
        what = _first_unsound(model, given) or f"the context is {reprlib.repr(context)}"
        raise ValueError(f"{what}; it must be finite and below {LARGEST:g}")
    return given


def checked_contexts(model: Model, contexts: Any, n: int | None = None) -> Floats:
    """Contexts as an (n, d) array, or a `ValueError` that says what is wrong with them."""
    check_context_presence(model, contexts)
    if type(contexts) is not np.ndarray:
        contexts = many_by_name(model, contexts)
    given = _checks.floats(contexts, "context")
    if given.shape != (len(given) if n is None and given.ndim else n, model.dim):
        wanted = f"({'n' if n is None else n}, {model.dim}), a row for each"
        raise ValueError(
            f"the contexts have shape {given.shape}; give {wanted}{_features_hint(model, given.shape[1:])}"
        )
    sound = (np.abs(given) < LARGEST).all(axis=1)
    if not sound.all():
        row = int(np.flatnonzero(~sound)[0])
        what = _first_unsound(model, given[row], f" in row {row}") or f"the context in row {row} is {given[row]}"
        raise ValueError(f"{what}; contexts must be finite and below {LARGEST:g}")
    return np.ascontiguousarray(given)


def _first_unsound(model: Model, context: Floats, where: str = "") -> str | None:
    """What the first feature is that is not finite, or too large; None where features have no names."""
    if model.feature_names is None:
        return None
    entry = int(np.flatnonzero(~(np.abs(context) < LARGEST))[0])
    return f"the context's {model.feature_names[entry]!r}{where} is {context[entry]:g}"


def _features_hint(model: Model, shape: tuple[int, ...]) -> str:
    """What to say of a context of another length: which features there are, and whether the intercept is missing."""
    names = model.feature_names
    short = shape == (model.dim - 1,)
    if names is None:
        return " (with an intercept, its 1 is one of them)" if short else ""
    if short and INTERCEPT in names:
        return f": {shown(names)} (the intercept is missing, put a 1 there)"
    return f": {shown(names)}"


def check_size(model: Model, rewards: Floats, contexts: Floats | None) -> None:
    """Refuse what is finite but overflows once it is squared in units of the noise."""
    deviation = model.likelihood.noise_deviation
    for what, values in (("reward", rewards), ("context", contexts)):
        largest = float(np.abs(values).max()) if values is not None and values.size else 0.0
        if largest >= LARGEST * min(deviation, 1.0):
            raise ValueError(f"a {what} of size {largest:g} is too large to compute with; is its unit right?")


def check_context_presence(model: Model, context: Any) -> None:
    """Refuse a context where none is taken, and none where one is."""
    if model.is_scalar and context is not None:
        raise ValueError(
            f"a context was given, {reprlib.repr(context)}, to a model without contexts; leave it out, "
            "or give the model a mean vector"
        )
    if not model.is_scalar and context is None:
        names = (input_names(model.features) if is_encoder(model.features) else None) or model.feature_names
        takes = f"contexts of length {model.dim}" if names is None else f"contexts with {shown(names)}"
        raise ValueError(f"no context was given; this model takes {takes}")


def one_row(model: Model, leaf: Nodes, reward: float, context: Floats) -> Rows:
    """One observation of what has been checked, of one trial or exposure 1."""
    return Rows(leaf, np.array([reward]), context[None], np.ones(1) if model.kind.has_exposure else None)


def checked_sums(model: Model, statistics: Any, actions: Tree | Catalogue | None = None) -> Nodes:
    """The leaves of the actions whose rewards were summed; a `ValueError` where a model cannot learn from the sums."""
    if not isinstance(statistics, Statistics):
        raise ValueError(f"statistics is a {type(statistics).__name__}; give bough.Statistics, as summarise makes")
    if statistics.features is not None and model.feature_names is not None:
        order_of(statistics.features, model.feature_names, "the log that was summed")
    wanted = None if model.is_scalar else model.dim
    if statistics.dim != wanted:
        raise ValueError(f"the statistics have contexts of length {statistics.dim}; the model's is {wanted}")
    statistics.check_kind(type(model))
    if model.effects is not None or statistics.factors is not None:
        checked_levels(model, statistics.factors, len(statistics.actions))
    leaves = (model.tree if actions is None else actions).action_nodes(statistics.actions)
    check_size(model, np.sqrt(statistics.sum_yy), None)
    return leaves


def one_action(actions: Tree | Catalogue, action: Any) -> int:
    """The node of an action; a `ValueError` where several are given for one reward."""
    try:
        return actions.action_node(action)
    except KeyError:
        if hasattr(action, "decision_id"):
            raise ValueError("action is a decision; give the name of its action, decision.action") from None
        if hasattr(action, "__len__") and not isinstance(action, (str, bytes)) and getattr(action, "ndim", 1) > 0:
            raise ValueError(
                f"there is one reward for {len(action)} actions, {action!r}; give one reward an action"
            ) from None
        raise
