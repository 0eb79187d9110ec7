"""summarise(...): a log of any size and kind as statistics, by one group-by where the log lives.

The group-by is written once, in narwhals, so that pandas, polars, pyarrow, DuckDB and Spark all run it, each in its own
way; files go through DuckDB, which reads them piece by piece. Null and NaN values show in the sums themselves, so a
clean log is read once; only one that is not is read again to count and show what is wrong with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Flags, Floats, Integers
from bough.data.files import Frame, collected, file_errors, opened_log
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.tree.names import NumberedNames, as_column, is_missing
from bough.tree.tree import Tree

_SLICE = 1 << 18  # rows of a frame in memory whose products are made at once
_SHOWN = 3  # rows and names that an error message shows


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
    bad: Literal["error", "skip"] = "error",
) -> Statistics:
    """The sums that a model learns from: for each action the count, and those of y, y^2, x y and x x'.

    `log` is a pandas, polars or pyarrow frame; a path or a glob of Parquet or CSV files, read through DuckDB and never
    as a whole; or something lazy that is summarised where it lives, a DuckDB relation, a polars LazyFrame, a PySpark
    DataFrame. The other arguments name its columns; `context` has one for each feature (with `intercept`, a feature
    that is always 1 comes before them), and a row of `weight` w counts as w equal rows. Where rewards are clicks,
    `trials` has how many views they are of, and where they are counts, `exposure` how long or how much was counted.

    Rows with an unknown action, or a null, NaN or infinite value (or a negative weight, or with trials or exposure a
    reward that is no such count), are an error that counts them and shows some; with ``bad="skip"`` they are left out,
    and `skipped` says how many.

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
    if bad not in ("error", "skip"):
        raise ValueError(f'bad is {bad!r}; give "error", or "skip" to leave out the rows that cannot be used')
    features = _checked_context(context, intercept)
    seen = _checks.either(trials, exposure)
    for what, column in (("action", action), ("reward", reward), ("weight", weight), ("exposure", seen)):
        if not isinstance(column, str) and not (what in ("weight", "exposure") and column is None):
            raise ValueError(f"{what} is {column!r}; give the name of a column")
    names = _Names(action, reward, features, weight, seen, trials is not None, intercept)
    if isinstance(log, (str, os.PathLike)):
        with file_errors(log):
            return _summarised(opened_log(log, tree, names.action, names.numbers), tree, names, bad)
    return _summarised(log, tree, names, bad)


def read_rows(
    log: Any,
    tree: Tree,
    action: str,
    reward: str,
    context: Sequence[str],
    *,
    trials: str | None = None,
    exposure: str | None = None,
    intercept: bool = False,
    bad: Literal["error", "skip"] = "error",
) -> tuple[Observations, Statistics]:
    """The rows of a log in memory, where sums are not enough, and its `summarise`, which has checked them."""
    sums = summarise(log, tree, action, reward, context, trials=trials, exposure=exposure, intercept=intercept, bad=bad)
    seen = _checks.either(trials, exposure)
    names = _Names(action, reward, tuple(context), None, seen, trials is not None, intercept)
    if isinstance(log, (str, os.PathLike)):
        with file_errors(log):
            return _rows(opened_log(log, tree, names.action, names.numbers), tree, names), sums
    return _rows(log, tree, names), sums


def _rows(log: Any, tree: Tree, names: _Names) -> Observations:
    columns = _Columns.checked(_opened(log), names)
    kept = collected(columns.frame.filter(columns.usable).select(*columns.names))
    keys = kept[names.action].to_list()
    distinct = list(dict.fromkeys(keys))
    node = dict(zip(distinct, _action_nodes(tree, distinct).tolist(), strict=True))
    nodes = np.array([node[key] for key in keys], dtype=np.int64)
    known = nodes >= 0
    actions = tree.actions[np.searchsorted(tree.leaves, nodes[known])]
    numbers = {name: _floats(kept[name])[known] for name in names.numbers}
    ones = [np.ones(int(known.sum()))] if names.intercept else []
    contexts = np.column_stack([*ones, *(numbers[name] for name in names.context)])
    seen = {} if names.exposure is None else {"trials" if names.has_trials else "exposure": numbers[names.exposure]}
    return Observations(as_column(actions), numbers[names.reward], contexts, **seen)


class _Names(NamedTuple):
    """What the columns of a log are called."""

    action: str
    reward: str
    context: tuple[str, ...]
    weight: str | None
    exposure: str | None
    has_trials: bool
    intercept: bool

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, each once."""
        others = (name for name in (self.weight, self.exposure) if name is not None)
        return tuple(dict.fromkeys((self.reward, *self.context, *others)))


def _checked_context(context: Sequence[str] | None, intercept: bool) -> tuple[str, ...]:
    if isinstance(context, str):
        raise ValueError(f"context is {context!r}; give a list of column names")
    names = tuple(context) if context is not None else ()
    if context is not None and not names:
        raise ValueError("context is empty; give its column names, or leave it out")
    if intercept and not names:
        raise ValueError("intercept goes with context; without one every reward has its action's mean anyway")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"context has {twice!r} twice; name each column once")
    return names


def _summarised(log: Any, tree: Tree, names: _Names, bad: str) -> Statistics:
    columns = _Columns.checked(_opened(log), names)
    found = columns.grouped(columns.frame)
    n_rows, odd_values = int(found.rows.sum()), 0
    nodes = _action_nodes(tree, found.keys)
    if not found.sound:
        found = columns.grouped(columns.frame.filter(columns.usable))
        nodes = _action_nodes(tree, found.keys)
        odd_values = n_rows - int(found.rows.sum())
    unknown = int(found.rows[nodes < 0].sum())
    if bad == "error" and (odd_values or unknown):
        raise ValueError(_complaint(columns, tree, found, nodes, n_rows, odd_values, unknown))
    if not all(np.isfinite(values).all() for values in found.sums.values()):
        raise ValueError("the squares of the rewards or contexts are too large to compute with; are their units right?")
    why = {"bad number": odd_values, "unknown action": unknown}
    return _at_actions(tree, nodes, found, columns.n_context, {reason: n for reason, n in why.items() if n})


# -- opening -------------------------------------------------------------------------------------


def _opened(log: Any) -> Frame:
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


# -- one group-by --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """What a group-by gave: a key, the rows and the sums of each group."""

    keys: list[Any]
    rows: Integers
    sums: dict[str, Floats]
    sound: bool
    """Whether every value of every row was a finite number."""


@dataclass(frozen=True)
class _Columns:
    """A frame, and what its columns mean."""

    frame: Frame
    action: str
    y: nw.Expr
    x: tuple[nw.Expr, ...]
    weight: nw.Expr | None
    exposure: nw.Expr | None
    has_trials: bool
    names: tuple[str, ...]

    @property
    def n_context(self) -> int:
        return len(self.x)

    @classmethod
    def checked(cls, frame: Frame, names: _Names) -> _Columns:
        schema = frame.collect_schema()
        for column in (names.action, *names.numbers):
            if column not in schema:
                raise ValueError(f"the log has no column {column!r}; it has {', '.join(map(str, schema.names()))}")
        for column in names.numbers:
            if not (schema[column].is_numeric() or schema[column] == nw.Boolean):
                raise ValueError(f"the column {column!r} is of type {schema[column]}; cast it to numbers")

        def number(column: str) -> nw.Expr:
            if schema[column] == nw.Boolean:  # DuckDB would take a cast into its CSV reader, and fail on "true"
                return nw.when(nw.col(column)).then(nw.lit(1.0)).otherwise(nw.when(~nw.col(column)).then(nw.lit(0.0)))
            return nw.col(column).cast(nw.Float64)

        reward = number(names.reward)
        one = (reward * 0.0 + 1.0,) if names.intercept else ()
        weight, exposure = (None if name is None else number(name) for name in (names.weight, names.exposure))
        used = tuple(dict.fromkeys((names.action, *names.numbers)))
        return cls(
            frame, names.action, reward, (*one, *map(number, names.context)), weight, exposure, names.has_trials, used
        )

    @property
    def complete(self) -> nw.Expr:
        """A number that is finite where all numbers of a row are."""
        total = self.y
        for each in (*self.x, self.weight, self.exposure):
            total = total if each is None else total + each
        return total

    @property
    def usable(self) -> nw.Expr:
        """Whether a row has only values that can be summed."""
        finite = self.complete.is_finite().fill_null(False)
        if self.weight is not None:
            finite = finite & (self.weight >= 0.0).fill_null(False)
        for limit in self.limits.values():
            finite = finite & (limit >= 0.0).fill_null(False)
        return finite

    @property
    def limits(self) -> dict[str, nw.Expr]:
        """What is not negative in a row of counts."""
        if self.exposure is None:
            return {}
        limits = {"reward": self.y, "whole": 0.0 - self.y % 1.0, "exposure": self.exposure - 5e-324}
        return {**limits, "rest": self.exposure - self.y} if self.has_trials else limits

    @property
    def products(self) -> dict[str, nw.Expr]:
        """What is summed, by a name that no column of a user has."""
        pairs = {"y": self.y, "y*y": self.y * self.y}
        pairs |= {f"x{i}*y": x * self.y for i, x in enumerate(self.x)}
        for i, j in combinations_with_replacement(range(self.n_context), 2):
            pairs[f"x{i}*x{j}"] = self.x[i] * self.x[j]
        if self.exposure is not None:
            pairs["exposure"] = self.exposure
        if self.weight is not None:
            pairs = {name: self.weight * product for name, product in pairs.items()} | {"weight": self.weight}
        return pairs

    def grouped(self, frame: Frame) -> _Groups:
        """The sums of all groups; a frame in memory goes slice by slice, and its groups come once for each."""
        parts = [self._grouped(part) for part in _slices(frame)]
        keys = [key for part in parts for key in part["action"].to_list()]
        rows = np.concatenate([part["rows"].to_numpy() for part in parts]).astype(np.int64)
        numbers = np.concatenate([part["complete"].to_numpy() for part in parts]).astype(np.int64)
        sums = {name: np.concatenate([_floats(part[name]) for part in parts]) for name in self.products}
        sound = bool((numbers == rows).all()) and all(np.isfinite(values).all() for values in sums.values())
        if self.weight is not None:
            least = np.concatenate([_floats(part["least"]) for part in parts])
            sound = sound and bool((least >= 0.0).all())
        for name in self.limits:
            least = np.concatenate([_floats(part[f"least {name}"]) for part in parts])
            sound = sound and bool((least >= 0.0).all())
        return _Groups(keys, rows, sums, sound)

    def _grouped(self, frame: Frame) -> nw.DataFrame[Any]:
        products = self.products
        selected = frame.select(
            nw.col(self.action).alias("action"),
            self.complete.alias("complete"),
            *(expression.alias(name) for name, expression in products.items()),
            *(limit.alias(f"least {name}") for name, limit in self.limits.items()),
        )
        aggregates = [nw.len().alias("rows"), nw.col("complete").count()]
        aggregates += [nw.col(name).sum() for name in products]
        if self.weight is not None:
            aggregates.append(nw.col("weight").min().alias("least"))
        aggregates += [nw.col(f"least {name}").min() for name in self.limits]
        groups: Any = selected.group_by("action").agg(*aggregates)
        return collected(groups)


def _slices(frame: Frame) -> Iterator[Frame]:
    if isinstance(frame, nw.LazyFrame):
        yield frame
        return
    for start in range(0, max(len(frame), 1), _SLICE):
        yield frame[start : start + _SLICE]


def _floats(column: nw.Series[Any]) -> Floats:
    return np.asarray(column.to_numpy(), dtype=np.float64)


# -- groups as statistics ------------------------------------------------------------------------


def _action_nodes(tree: Tree, keys: list[Any]) -> Integers:
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


def _at_actions(tree: Tree, nodes: Integers, found: _Groups, n_context: int, skipped: dict[str, int]) -> Statistics:
    """The sums of the groups that are actions, in the order of the tree."""
    known = nodes >= 0
    leaves, place = np.unique(nodes[known], return_inverse=True)

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
    return Statistics(as_column(names), **{name: array[weighed] for name, array in sums.items()}, skipped=skipped)


def _complaint(
    columns: _Columns, tree: Tree, found: _Groups, nodes: Integers, n_rows: int, odd_values: int, unknown: int
) -> str:
    parts = []
    if odd_values:
        rows = columns.frame.filter(~columns.usable).select(*columns.names).head(_SHOWN)
        shown = "; ".join(str(row) for row in collected(rows).rows(named=True))
        parts.append(
            f"{odd_values} with a null, NaN or infinite value (or a negative weight, or a reward that is no count), "
            f"such as {shown}"
        )
    if unknown:
        strange = [found.keys[i] for i in np.flatnonzero(nodes < 0)]
        names = sorted(dict.fromkeys(strange), key=str)
        shown = ", ".join(repr(name) for name in names[:_SHOWN])
        hint = tree.node_names.suggestion(names[0])
        parts.append(f"{unknown} with one of {len(names)} unknown actions, such as {shown} ({hint})")
    return (
        f"{odd_values + unknown} of {n_rows} rows cannot be used: {', and '.join(parts)}; "
        'put them right, or leave them out with bad="skip" (on the command line --skip-bad)'
    )
