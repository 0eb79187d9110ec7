"""summarise(...): a log of any size and kind as statistics, by one group-by where the log lives.

The group-by is written once, in narwhals, so that pandas, polars, pyarrow, DuckDB and Spark all run it, each in its own
way; files go through DuckDB, which reads them piece by piece. Null and NaN values show in the sums themselves, so a
clean log is read once; only one that is not is read again to count and show what is wrong with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple, get_args

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers
from bough._frames import Frame, collected, labelled
from bough.data.columns import Columns, Groups, Names, floats
from bough.data.complaints import no_action, unusable
from bough.data.encoding import encoded_log
from bough.data.files import first_rows, opened_log
from bough.data.rows import Observations, check_intercept, with_intercept
from bough.data.statistics import Statistics
from bough.model.factors import level_name
from bough.model.likelihood import Likelihood
from bough.model.model import Model
from bough.tree.name_columns import as_column, is_missing
from bough.tree.names import NumberedNames, twin
from bough.tree.tree import Tree

_LOOKED_AT = 100  # rows in which a column of actions is looked for

Bad = Literal["error", "skip", "skip-most"]


def summarise(
    log: Any,
    tree: Tree,
    action: str,
    reward: str,
    context: Sequence[str] | None = None,
    weight: str | None = None,
    *,
    trials: str | None = None,
    exposure: str | None = None,
    intercept: bool = False,
    features: Any = None,
    factors: Mapping[str, str] | None = None,
    bad: Bad = "error",
    model: type[Model] | None = None,
) -> Statistics:
    """The sums that a model learns from: for each action the count, and those of y, y^2, x y and x x'.

    `log` is a pandas, polars or pyarrow frame; a path or a glob of Parquet or CSV files, read through DuckDB and never
    as a whole; or something lazy that is summarised where it lives, a DuckDB relation, a polars LazyFrame, a PySpark
    DataFrame. The other arguments name its columns; `context` has one for each feature (with `intercept`, a feature
    that is always 1, called "intercept", comes before them), and a row of `weight` w counts as w equal rows. Where
    rewards are clicks, `trials` has how many views they are of, and where they are counts, `exposure` how long or how
    much was counted. `features`, a `Features` or another fitted transformer, makes numbers of the columns of the
    context, in a frame in memory. `factors`, a mapping from factors of the decision to columns such as
    ``{"store": "store_id"}``, has rewards summed for each level as well, which is text or a whole number. With `model`,
    the class of the model that is to learn from the sums, such as ``bough.PoissonModel``, a row whose reward that model
    cannot have is a row that cannot be used.

    Rows with an unknown action, or a null, NaN or infinite value (or a negative weight, or where rewards are
    counts one that is none), are an error that counts them and shows some; with ``bad="skip"`` they are left out,
    and `skipped` says how many. Where they are more than half of the rows, that is an error too, unless `bad` is
    ``"skip-most"``.

    A CSV file has the names of its columns in the first line that is not blank. Commas, semicolons, tabs, bars or
    blanks separate its cells, and double quotes go around a cell that has one of these in it. Every other line that is
    not blank is a row, also one that begins with ``#``, and a row with too few or too many cells is an error. Actions
    are read as the tree has them, text or integers, and other cells as numbers, or ``true`` and ``false``; what is
    neither is a bad value.

    Rewards and contexts are summed as they are: where they are all within a millionth of a large number, take that off
    first. Sums of a parallel engine may differ in their last digit from one time to the next.

    >>> import bough, polars
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> log = polars.DataFrame({"product": ["coffee", "tea/green", "coffee"], "sales": [2.0, 1.0, 4.0]})
    >>> statistics = bough.summarise(log, tree, action="product", reward="sales")
    >>> statistics.actions.tolist(), statistics.count, statistics.sum_y
    (['coffee', 'tea/green'], array([2., 1.]), array([6., 1.]))
    """
    if not isinstance(tree, Tree):
        raise ValueError(f"tree is a {type(tree).__name__}; give a bough.Tree")
    if bad not in get_args(Bad):
        raise ValueError(
            f'bad is {bad!r}; give "error", or "skip" to leave out the rows that cannot be used, or "skip-most" where '
            "they are most of the log"
        )
    named = _named(log, action, reward, context, weight, trials, exposure, intercept, features, model)
    levels = checked_level_columns(factors, {action: "actions", reward: "rewards"})
    with _opened(named.log, tree, named.columns._replace(levels=tuple(levels.values()))) as columns:
        return _summarised(columns, tree, log, bad, levels).arranged(named.features)


def checked_level_columns(factors: Any, taken: Mapping[str, str]) -> dict[str, str]:
    """The columns of the levels of decisions, by the names of the factors; others are `taken`, by what they have."""
    if factors is None:
        return {}
    if not isinstance(factors, Mapping) or not all(isinstance(one, str) for pair in factors.items() for one in pair):
        raise ValueError(
            f"factors is {_checks.shown(factors)}; give a mapping from names of factors to names of columns"
        )
    for name, column in factors.items():
        if column in taken:
            raise ValueError(
                f"the factor {name!r} is the column {column!r}, which has the {taken[column]}; give another column"
            )
    return dict(factors)


def read_rows(
    log: Any,
    tree: Tree,
    action: str,
    reward: str,
    context: Sequence[str] | None,
    *,
    trials: str | None = None,
    exposure: str | None = None,
    intercept: bool = False,
    features: Any = None,
    bad: Bad = "error",
    model: type[Model] | None = None,
) -> tuple[Observations, Statistics]:
    """The rows of a log in memory, where sums are not enough, and its `summarise`, which has checked them."""
    named = _named(log, action, reward, context, None, trials, exposure, intercept, features, model)
    with _opened(named.log, tree, named.columns) as columns:
        sums = _summarised(columns, tree, log, bad).arranged(named.features)
    with _opened(named.log, tree, named.columns) as columns:
        return _rows(columns, tree, named.features), sums


class _NamedLog(NamedTuple):
    """A log, and what its columns and its features are called."""

    log: Any
    columns: Names
    features: tuple[str, ...] | None


def _named(
    log: Any,
    action: str,
    reward: str,
    context: Sequence[str] | None,
    weight: str | None,
    trials: str | None,
    exposure: str | None,
    intercept: bool,
    features: Any,
    model: Any,
) -> _NamedLog:
    kind = _kind_of(model)
    if kind is not None:
        kind.check_words(trials, exposure)
    seen = _checks.trials_or_exposure(trials, exposure)
    for what, column in (("action", action), ("reward", reward), ("weight", weight), ("exposure", seen)):
        if not isinstance(column, str) and not (what in ("weight", "exposure") and column is None):
            raise ValueError(f"{what} is {column!r}; give the name of a column")
    if features is None:
        chosen = _checked_context(context, intercept)
        names = with_intercept(chosen, intercept) or None
    else:
        others = [column for column in (action, reward, weight, seen) if column is not None]
        log, chosen, names = encoded_log(log, others, context, features, intercept)
        intercept = False
    has_trials = trials is not None or (kind is not None and kind.exposure_word == "trials")
    are_counts = seen is not None or (kind is not None and kind.has_exposure)
    return _NamedLog(log, Names(action, reward, chosen, weight, seen, has_trials, are_counts, intercept), names)


def _kind_of(model: Any) -> type[Likelihood] | None:
    """The kind of the rewards of a model that is given as its class."""
    if model is None:
        return None
    if not (isinstance(model, type) and issubclass(model, Model) and hasattr(model, "kind")):
        raise ValueError(f"model is {model!r:.80}; give the class of a model, such as bough.PoissonModel")
    return model.kind


def _rows(columns: Columns, tree: Tree, features: tuple[str, ...] | None) -> Observations:
    names, kept = columns.names, columns.rows(columns.usable)
    keys = kept[names.action].to_list()
    distinct = list(dict.fromkeys(keys))
    node = dict(zip(distinct, action_nodes(tree, distinct).tolist(), strict=True))
    nodes = np.array([node[key] for key in keys], dtype=np.int64)
    known = nodes >= 0
    actions = tree.actions[np.searchsorted(tree.leaves, nodes[known])]
    numbers = {name: floats(kept[name])[known] for name in names.numbers}
    ones = [np.ones(int(known.sum()))] if names.intercept else []
    contexts = np.column_stack([*ones, *(numbers[name] for name in names.context)])
    seen = {} if names.exposure is None else {"trials" if names.has_trials else "exposure": numbers[names.exposure]}
    return Observations(as_column(actions), numbers[names.reward], contexts, **seen, features=features)


def _checked_context(context: Sequence[str] | None, intercept: bool) -> tuple[str, ...]:
    if isinstance(context, str):
        raise ValueError(f"context is {context!r}; give a list of column names")
    names = tuple(context) if context is not None else ()
    if context is not None and not names:
        raise ValueError("context is empty; give its column names, or leave it out")
    check_intercept(intercept, names)
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"context has {twice!r} twice; name each column once")
    return names


def _summarised(
    columns: Columns, tree: Tree, log: Any, bad: str, factors: Mapping[str, str] | None = None
) -> Statistics:
    found = columns.grouped(columns.frame)
    n_rows, odd_values = int(found.rows.sum()), 0
    nodes = action_nodes(tree, found.keys)
    if not found.sound:
        found = columns.grouped(columns.frame.filter(columns.usable))
        nodes = action_nodes(tree, found.keys)
        odd_values = n_rows - int(found.rows.sum())
    unknown = int(found.rows[nodes < 0].sum())
    allowed = {"error": 0, "skip": n_rows // 2, "skip-most": n_rows}[bad]
    if odd_values + unknown > allowed:
        strange = [found.keys[i] for i in np.flatnonzero(nodes < 0)]
        if unknown == n_rows:
            raise ValueError(_no_action(log, tree, columns.names.action, strange, n_rows))
        raise ValueError(unusable(columns, tree, strange, n_rows, odd_values, unknown, bad))
    if not all(np.isfinite(values).all() for values in found.sums.values()):
        raise ValueError("the squares of the rewards or contexts are too large to compute with; are their units right?")
    why = {"bad number": odd_values, "unknown action": unknown}
    skipped = {reason: n for reason, n in why.items() if n}
    return _at_actions(tree, nodes, found, columns.n_context, skipped, factors or {})


# -- opening -------------------------------------------------------------------------------------


@contextmanager
def _opened(log: Any, tree: Tree, names: Names) -> Iterator[Columns]:
    if isinstance(log, (str, os.PathLike)):
        with opened_log(log, tree, names.action, names.numbers, names.levels) as (frame, labels):
            yield Columns.checked(frame, labels, names)
    else:
        yield Columns.checked(*labelled(as_frame(log), names.used), names)


def as_frame(log: Any) -> Frame:
    try:
        frame: Frame = nw.from_native(log)
        frame.collect_schema()
    except nw.exceptions.NarwhalsError as error:
        raise ValueError(f"the log cannot be read: {' '.join(str(error).split())}") from error
    except TypeError:
        raise ValueError(
            f"log is a {type(log).__name__}; give a pandas, polars or pyarrow frame, a DuckDB relation, a polars "
            "LazyFrame, a PySpark DataFrame, or the path of Parquet or CSV files"
        ) from None
    return frame.lazy() if isinstance(frame, nw.DataFrame) and frame.implementation.is_polars() else frame


# -- groups as statistics ------------------------------------------------------------------------


def action_nodes(tree: Tree, keys: list[Any]) -> Integers:
    """The node of each key that names an action; -1 for the others."""
    nodes = np.full(len(keys), -1, dtype=np.int64)
    named: Flags = np.array([not is_missing(key) for key in keys], dtype=np.bool_)
    values = [_whole(key) for key in keys if not is_missing(key)]
    if values:
        column: Any = as_column(values) if isinstance(tree.node_names, NumberedNames) else values
        nodes[named] = tree.node_names.find_all(column)
    inner = nodes >= 0
    inner[inner] = tree.child_start[nodes[inner]] != tree.child_start[nodes[inner] + 1]
    nodes[inner] = -1
    return nodes


def _whole(key: Any) -> Any:
    """A key that pandas made a float because others are missing, as the integer that it was."""
    return int(key) if isinstance(key, float) and key.is_integer() else key


def _at_actions(
    tree: Tree, nodes: Integers, found: Groups, n_context: int, skipped: dict[str, int], factors: Mapping[str, str]
) -> Statistics:
    """The sums of the groups that are actions, in the order of the tree, and then of the levels."""
    known = nodes >= 0
    columns = [
        _sorted_codes([level_name(level, what) for level, one in zip(levels, known, strict=True) if one])
        for levels, what in zip(found.levels, map(_called, factors.items()), strict=True)
    ]
    keys = np.column_stack([nodes[known], *(code for _, code in columns)])
    distinct, place = np.unique(keys, axis=0, return_inverse=True) if columns else np.unique(keys, return_inverse=True)
    leaves, place = (distinct[:, 0] if columns else distinct), place.ravel()

    def total(values: Floats) -> Floats:
        return np.bincount(place, values[known], minlength=len(leaves)).astype(np.float64)

    sums: dict[str, Any] = {
        "count": total(found.sums.get("weight", found.rows.astype(np.float64))),
        "sum_y": total(found.sums["y"]),
        "sum_yy": total(found.sums["y*y"]),
    }
    if "exposure" in found.sums:
        sums["exposure"] = total(found.sums["exposure"])
    if n_context:
        sums["sum_xy"] = np.stack([total(found.sums[f"x{i}*y"]) for i in range(n_context)], axis=1)
        sums["sum_xx"] = np.empty((len(leaves), n_context, n_context))
        for i, j in combinations_with_replacement(range(n_context), 2):
            sums["sum_xx"][:, i, j] = sums["sum_xx"][:, j, i] = total(found.sums[f"x{i}*x{j}"])
    weighed = sums["count"] > 0.0
    names = tree.actions[np.searchsorted(tree.leaves, leaves[weighed])]
    levels = {
        name: as_column([columns[i][0][code] for code in distinct[weighed, 1 + i].tolist()])
        for i, name in enumerate(factors)
    }
    kept = {name: array[weighed] for name, array in sums.items()}
    return Statistics(as_column(names), **kept, skipped=skipped, factors=levels or None)


def _called(factor: tuple[str, str]) -> str:
    """What to call a level of a factor in an error, given the factor's name and its column."""
    name, column = factor
    return f"a level of {name!r}" + (f", in the column {column!r}," if column != name else "")


def _sorted_codes(levels: list[Any]) -> tuple[list[Any], Integers]:
    """The distinct levels, integers before text and text before tuples, and which of them each is."""
    distinct = sorted(set(levels), key=_place_of_level)
    place = {level: i for i, level in enumerate(distinct)}
    return distinct, np.array([place[level] for level in levels], dtype=np.int64)


def _place_of_level(name: Any) -> tuple[int, Any]:
    """Where a level comes among others, which may be of other types."""
    if isinstance(name, tuple):
        return 2, tuple(map(_place_of_level, name))
    return int(isinstance(name, str)), name


def _no_action(log: Any, tree: Tree, action: str, strange: list[Any], n_rows: int) -> str:
    """What to say of a log whose column of actions has none of the tree."""
    is_path = isinstance(log, (str, os.PathLike))
    first = first_rows(log, action, _LOOKED_AT) if is_path else _first_rows(log)
    names = sorted((name for name in strange if not is_missing(name)), key=str)
    names = names or [name for name in first[action] if not is_missing(name)] or [None]
    better = next((name for name, values in first.items() if _has_actions(tree, values)), None)
    return no_action(action, tree, names, better, n_rows)


def _has_actions(tree: Tree, values: list[Any]) -> bool:
    """Whether most of the values are names of actions, as they are or as what they read like."""
    twins = [twin(tree.node_names, value) for value in values]
    meant = [value if other is None else other for value, other in zip(values, twins, strict=True)]
    return bool(meant) and bool((action_nodes(tree, meant) >= 0).mean() > 0.5)


def _first_rows(log: Any) -> dict[str, list[Any]]:
    frame: Any = as_frame(log)
    found = collected(frame.head(_LOOKED_AT))
    return {name: found[name].to_list() for name in found.columns}
