"""Logs of decisions with their propensities: the sums that evaluation needs, by one group-by where the log lives.

For each action (and position, where the log has these), with y the reward of a row and p its propensity: the number of
rows, the sums of y, y^2, 1/p, y/p, y^2/p, 1/p^2, y/p^2 and y^2/p^2, the least p, and the range of y. They serve any
number of policies whose probabilities do not depend on the row. Where they do, the rows themselves are read.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers
from bough._frames import Frame, collected, labelled
from bough.data.columns import floats, slices
from bough.data.contexts import named_rows
from bough.data.files import opened_log
from bough.data.logs import Bad, action_nodes, as_frame, other_type
from bough.data.rows import checked_contexts
from bough.model.model import Model
from bough.tree.tree import Tree

SUMS = ("y", "yy", "ip", "y_ip", "yy_ip", "ipp", "y_ipp", "yy_ipp")
DOUBTFUL = 1.0 / 3.0  # of a propensity: an error above this says that it is hardly known
_SHOWN = 3  # rows and names that an error message shows
_ROUNDING = 1e-9  # above 1 that a probability may be


class LogColumns(NamedTuple):
    """What the columns of a log of decisions are called."""

    action: str
    reward: str
    propensity: str | None
    error: str | None = None
    position: str | None = None
    context: tuple[str, ...] = ()
    """One column of numbers for each feature."""
    context_list: str | None = None
    """Or one column of lists."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, each once."""
        given = (self.reward, self.propensity, self.error, *self.context)
        return tuple(dict.fromkeys(name for name in given if name is not None))

    @property
    def used(self) -> tuple[str, ...]:
        """All columns, each once."""
        others = (name for name in (self.action, self.position, self.context_list) if name is not None)
        return tuple(dict.fromkeys((*others, *self.numbers)))


@dataclass(frozen=True, eq=False)
class PropensitySums:
    """Sums over the rows of each action that the log has, at each position."""

    place: Integers
    """(m,) which action, by its place in `tree.actions`."""
    position: Integers
    """(m,) which of `positions`; zeros where the log has none."""
    positions: tuple[Any, ...]
    """The positions that the log has; (None,) without a column for them."""
    n: Floats
    """(m,) how many rows."""
    y: Floats
    yy: Floats
    ip: Floats
    """(m,) the sum of 1/p."""
    y_ip: Floats
    yy_ip: Floats
    ipp: Floats
    """(m,) the sum of 1/p^2."""
    y_ipp: Floats
    yy_ipp: Floats
    least_p: Floats
    """(m,) the least propensity."""
    least_y: float
    most_y: float
    doubtful: int
    """How many rows have a propensity whose error is above a third of it."""
    skipped: int
    """How many rows were left out."""

    @property
    def n_rows(self) -> float:
        """How many rows were summed."""
        return float(self.n.sum())

    @property
    def rows_at(self) -> Floats:
        """(S,) how many rows each position has."""
        return np.bincount(self.position, self.n, minlength=len(self.positions)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """The rows of a log of decisions, in its order."""

    place: Integers
    """(n,) the action of each, by its place in `tree.actions`."""
    reward: Floats
    propensity: Floats
    """(n,); ones where the log has none."""
    position: Integers
    positions: tuple[Any, ...]
    context: Floats | None
    """(n, d); None where there are none, or some are no numbers."""
    named: Mapping[str, Any] | None
    """The contexts' columns by name; None where they have none."""
    doubtful: int
    skipped: int

    def contexts_for(self, model: Model) -> Floats:
        """(n, d) the contexts as a model takes them: by the names of its features where both have names."""
        if self.named is not None and model.feature_names is not None:
            return checked_contexts(model, self.named)
        return self.numbers()

    def numbers(self) -> Floats:
        """(n, d) the contexts in the order of the log's columns; a `ValueError` where some are no numbers."""
        if self.context is None:
            raise ValueError(
                f"the contexts {reprlib.repr(list(self.named or ()))} are not all numbers, and something here takes "
                "numbers; give a model or an agent whose features encode them, or leave out what takes numbers"
            )
        return self.context

    def sums(self) -> PropensitySums:
        """The sums of the rows."""
        width = len(self.positions)
        cell, group = np.unique(self.place * width + self.position, return_inverse=True)
        y, ip = self.reward, 1.0 / self.propensity
        yy, ipp = y * y, ip * ip
        products = dict(zip(SUMS, (y, yy, ip, y * ip, yy * ip, ipp, y * ipp, yy * ipp), strict=True))
        least = np.full(len(cell), np.inf)
        np.minimum.at(least, group, self.propensity)
        return PropensitySums(
            cell // width,
            cell % width,
            self.positions,
            np.bincount(group, minlength=len(cell)).astype(np.float64),
            **{
                name: np.bincount(group, values, minlength=len(cell)).astype(np.float64)
                for name, values in products.items()
            },
            least_p=least,
            least_y=float(y.min(initial=np.inf)),
            most_y=float(y.max(initial=-np.inf)),
            doubtful=self.doubtful,
            skipped=self.skipped,
        )


class _Logged(NamedTuple):
    """A frame, and what is computed from its columns."""

    frame: Frame
    labels: dict[str, str]
    columns: LogColumns
    y: nw.Expr
    p: nw.Expr
    error: nw.Expr | None

    @property
    def usable(self) -> nw.Expr:
        """Whether a row can be used, but for its action."""
        sound = self.y.is_finite() & (self.p > 0.0) & (self.p <= 1.0 + _ROUNDING)
        schema = self.frame.collect_schema() if self.columns.context else {}
        for name in self.columns.context:
            column = nw.col(self.labels[name])
            is_number = schema[self.labels[name]].is_numeric() or schema[self.labels[name]] == nw.Boolean
            sound = sound & (column.cast(nw.Float64).is_finite() if is_number else ~column.is_null())
        if self.columns.position is not None:
            sound = sound & ~nw.col(self.labels[self.columns.position]).is_null()
        return sound.fill_null(False)

    @property
    def doubtful(self) -> nw.Expr:
        """1 where the error of a propensity is above a third of it."""
        assert self.error is not None
        return nw.when(self.error > DOUBTFUL * self.p).then(nw.lit(1.0)).otherwise(nw.lit(0.0))

    def rows(self, which: nw.Expr, most: int | None = None) -> nw.DataFrame[Any]:
        """Some rows, by the user's names of their columns."""
        chosen: Any = self.frame.filter(which).select(*(self.labels[name] for name in self.columns.used))
        found = collected(chosen if most is None else chosen.head(most))
        return found.rename({self.labels[name]: name for name in self.columns.used})


@contextmanager
def _opened(log: Any, tree: Tree, columns: LogColumns) -> Iterator[_Logged]:
    if isinstance(log, (str, os.PathLike)):
        if columns.context_list is not None:
            raise ValueError(
                f"context is {columns.context_list!r}, one column of lists, and the log is in files; name one column "
                "of numbers for each feature"
            )
        others = () if columns.position is None else (columns.position,)
        with opened_log(log, tree, columns.action, (*columns.numbers, *others)) as (frame, labels):
            yield _checked(frame, labels, columns)
    else:
        yield _checked(*labelled(as_frame(log), columns.used), columns)


def _checked(frame: Frame, labels: dict[str, str], columns: LogColumns) -> _Logged:
    schema = frame.collect_schema()
    for column in columns.numbers:
        kind = schema[labels[column]]
        if not (kind.is_numeric() or kind == nw.Boolean):
            raise ValueError(f"the column {column!r} is of type {kind}; cast it to numbers")

    def number(column: str) -> nw.Expr:
        label = labels[column]
        if schema[label] == nw.Boolean:
            return nw.when(nw.col(label)).then(nw.lit(1.0)).otherwise(nw.when(~nw.col(label)).then(nw.lit(0.0)))
        return nw.col(label).cast(nw.Float64)

    y = number(columns.reward)
    p = y * 0.0 + 1.0 if columns.propensity is None else number(columns.propensity)
    return _Logged(frame, labels, columns, y, p, None if columns.error is None else number(columns.error))


def has_column(log: Any, tree: Tree, action: str, column: str) -> bool:
    """Whether a log has a column of that name, besides its actions."""
    if isinstance(log, (str, os.PathLike)):
        try:
            with opened_log(log, tree, action, (column,)):
                return True
        except ValueError as error:
            if "has no column" in str(error) and repr(column) in str(error):
                return False
            raise
    return column in as_frame(log).collect_schema().names()


# -- one group-by --------------------------------------------------------------------------------


def summed_propensities(log: Any, tree: Tree, columns: LogColumns, bad: Bad = "error") -> PropensitySums:
    """The sums of a log; rows that cannot be used are an error that shows some, or are left out."""
    _check_bad(bad)
    with _opened(log, tree, columns) as logged:
        found = _Groups.of(logged, logged.frame)
        n_rows = int(found.n.sum())
        if not (found.least_p > 0.0).all():
            found = _Groups.of(logged, logged.frame.filter(logged.usable))
        nodes = action_nodes(tree, found.keys)
        odd, unknown = n_rows - int(found.n.sum()), int(found.n[nodes < 0].sum())
        if odd + unknown > _allowed(bad, n_rows):
            strange = [found.keys[i] for i in np.flatnonzero(nodes < 0)]
            raise ValueError(_complaint(logged, tree, strange, n_rows, odd, unknown, bad))
    return _at_actions(tree, nodes, found, odd + unknown)


class _Groups(NamedTuple):
    """What a group-by gave."""

    keys: list[Any]
    positions: list[Any]
    n: Floats
    sums: dict[str, Floats]
    least_p: Floats
    """Negative where a row cannot be used."""
    least_y: Floats
    most_y: Floats

    @classmethod
    def of(cls, logged: _Logged, frame: Frame) -> _Groups:
        """The sums of all groups; a frame in memory goes slice by slice, and its groups come once for each."""
        parts = [_grouped(logged, part) for part in slices(frame)]

        def column(name: str) -> Floats:
            return np.concatenate([floats(part[name]) for part in parts])

        has_position = logged.columns.position is not None
        return cls(
            [key for part in parts for key in part["action"].to_list()],
            [key for part in parts for key in part["position"].to_list()] if has_position else [],
            column("n"),
            {name: column(name) for name in (*SUMS, *(["doubtful"] if logged.error is not None else []))},
            column("least p"),
            column("least y"),
            column("most y"),
        )


def _grouped(logged: _Logged, frame: Frame) -> nw.DataFrame[Any]:
    columns, labels = logged.columns, logged.labels
    keys = [nw.col(labels[columns.action]).alias("action")]
    if columns.position is not None:
        keys.append(nw.col(labels[columns.position]).alias("position"))
    # One column says whether there is anything odd: each that is grouped costs a tenth of the whole.
    given = [logged.y.alias("y"), nw.when(logged.usable).then(logged.p).otherwise(nw.lit(-1.0)).alias("p")]
    more = [logged.doubtful.alias("doubtful")] if logged.error is not None else []
    selected = frame.select(*keys, *given, *more)
    y, ip = nw.col("y"), 1.0 / nw.col("p")
    products = dict(zip(SUMS[1:], (y * y, ip, y * ip, y * y * ip, ip * ip, y * ip * ip, y * y * ip * ip), strict=True))
    selected = selected.with_columns(*(product.alias(name) for name, product in products.items()))
    aggregates = [nw.len().alias("n"), nw.col("p").min().alias("least p")]
    aggregates += [nw.col("y").min().alias("least y"), nw.col("y").max().alias("most y")]
    aggregates += [nw.col(name).sum() for name in SUMS]
    aggregates += [nw.col("doubtful").sum()] if more else []
    by = ["action"] if columns.position is None else ["action", "position"]
    groups: Any = selected.group_by(*by).agg(*aggregates)
    return collected(groups)


def _at_actions(tree: Tree, nodes: Integers, found: _Groups, skipped: int) -> PropensitySums:
    """The groups that are actions, each once, in the order of the tree."""
    known = nodes >= 0
    positions, position = _numbered([one for one, kept in zip(found.positions, known, strict=False) if kept])
    if not found.positions:
        positions, position = (None,), np.zeros(int(known.sum()), dtype=np.int64)
    width = len(positions)
    cell, group = np.unique(np.searchsorted(tree.leaves, nodes[known]) * max(width, 1) + position, return_inverse=True)

    def total(values: Floats) -> Floats:
        return np.bincount(group, values[known], minlength=len(cell)).astype(np.float64)

    least_p = np.full(len(cell), np.inf)
    np.minimum.at(least_p, group, found.least_p[known])
    return PropensitySums(
        cell // max(width, 1),
        cell % max(width, 1),
        positions,
        total(found.n),
        **{name: total(found.sums[name]) for name in SUMS},
        least_p=least_p,
        least_y=float(found.least_y[known].min(initial=np.inf)),
        most_y=float(found.most_y[known].max(initial=-np.inf)),
        doubtful=int(found.sums["doubtful"][known].sum()) if "doubtful" in found.sums else 0,
        skipped=skipped,
    )


def _numbered(values: Sequence[Any]) -> tuple[tuple[Any, ...], Integers]:
    """The distinct values in order, and which of them each is."""
    try:
        distinct = sorted(set(values))
    except TypeError:
        distinct = sorted(set(values), key=str)
    number = {value: i for i, value in enumerate(distinct)}
    return tuple(distinct), np.array([number[value] for value in values], dtype=np.int64)


# -- rows ----------------------------------------------------------------------------------------


def read_logged_rows(log: Any, tree: Tree, columns: LogColumns, bad: Bad = "error") -> LoggedRows:
    """The rows of a log in memory, in its order; those that cannot be used are an error, or are left out."""
    _check_bad(bad)
    with _opened(log, tree, columns) as logged:
        whole = collected(logged.frame.select(nw.len().alias("n"))) if isinstance(logged.frame, nw.LazyFrame) else None
        n_rows = len(logged.frame) if whole is None else int(whole["n"][0])  # type: ignore[arg-type]
        found = logged.rows(logged.usable)
        keys = found[columns.action].to_list()
        distinct = list(dict.fromkeys(keys))
        node = dict(zip(distinct, action_nodes(tree, distinct).tolist(), strict=True))
        nodes = np.array([node[key] for key in keys], dtype=np.int64)
        known = nodes >= 0
        odd, unknown = n_rows - len(keys), int((~known).sum())
        if odd + unknown > _allowed(bad, n_rows):
            strange = [key for key in distinct if node[key] < 0]
            raise ValueError(_complaint(logged, tree, strange, n_rows, odd, unknown, bad))

    def number(name: str) -> Floats:
        return floats(found[name])[known]

    positions: tuple[Any, ...] = (None,)
    position = np.zeros(int(known.sum()), dtype=np.int64)
    if columns.position is not None:
        values = found[columns.position].to_list()
        positions, position = _numbered([one for one, kept in zip(values, known.tolist(), strict=True) if kept])
    reward = number(columns.reward)
    propensity = np.ones(len(reward)) if columns.propensity is None else number(columns.propensity)
    doubtful = 0 if columns.error is None else int((number(columns.error) > DOUBTFUL * propensity).sum())
    return LoggedRows(
        np.searchsorted(tree.leaves, nodes[known]),
        reward,
        propensity,
        position,
        positions,
        *_contexts(found, columns, known),
        doubtful,
        odd + unknown,
    )


def _contexts(
    found: nw.DataFrame[Any], columns: LogColumns, known: Any
) -> tuple[Floats | None, Mapping[str, Any] | None]:
    """The contexts as numbers, where they are, and by name, where they have names."""
    if columns.context:
        kept = {name: found[name].filter(known.tolist()) for name in columns.context}
        are_numbers = all(one.dtype.is_numeric() or one.dtype == nw.Boolean for one in kept.values())
        numbers = np.column_stack([floats(one) for one in kept.values()]) if are_numbers else None
        return numbers, {name: one.to_list() for name, one in kept.items()}
    if columns.context_list is None:
        return None, None
    each = [one for one, keep in zip(found[columns.context_list].to_list(), known.tolist(), strict=True) if keep]
    rows = named_rows(each)
    if rows is not None:
        each = list(zip(*rows.columns.values(), strict=True))
    try:
        contexts = np.array(each, dtype=np.float64)
    except (TypeError, ValueError):
        contexts = np.empty(0)
    if contexts.ndim == 2 and np.isfinite(contexts).all():
        return contexts, None if rows is None else rows.columns
    if rows is not None and not any(value is None for values in rows.columns.values() for value in values):
        return None, rows.columns
    raise ValueError(
        f"the column {columns.context_list!r} has rows that are no list of numbers and no dict, or of several lengths; "
        "put them right, or leave them out of the log"
    )


# -- what cannot be used ---------------------------------------------------------------------------


def _check_bad(bad: Any) -> None:
    if not isinstance(bad, str) or bad not in get_args(Bad):
        raise ValueError(
            f'bad is {bad!r}; give "error", or "skip" to leave out the rows that cannot be used, or "skip-most" where '
            "they are most of the log"
        )


def _allowed(bad: Bad, n_rows: int) -> int:
    return {"error": 0, "skip": n_rows // 2, "skip-most": n_rows}[bad]


def _complaint(logged: _Logged, tree: Tree, strange: list[Any], n_rows: int, odd: int, unknown: int, bad: str) -> str:
    parts = []
    if odd:
        values = logged.rows(~logged.usable, _SHOWN)
        shown = "; ".join(str(row) for row in values.rows(named=True))
        parts.append(f"{odd} with a missing or infinite value, or a propensity outside (0, 1], such as {shown}")
    if unknown:
        names = sorted(dict.fromkeys(strange), key=str)
        shown = ", ".join(repr(name) for name in names[:_SHOWN])
        hint = other_type(tree, logged.columns.action, names) or tree.node_names.suggestion(names[0], tree.sep)
        parts.append(f"{unknown} with one of {len(names)} unknown actions, such as {shown} ({hint})")
    what = f"{odd + unknown} of {n_rows} rows cannot be used: {', and '.join(parts)}; put them right, or "
    if bad == "error":
        return what + 'leave them out with bad="skip"'
    return what + 'leave out most of the log with bad="skip-most"'
