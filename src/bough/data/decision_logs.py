"""Logs of decisions: which columns they have, and what of them cannot be used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import narwhals as nw
import numpy as np

from bough._arrays import Integers
from bough._frames import Frame, collected, labelled
from bough.data.complaints import unknown_actions
from bough.data.files import opened_log
from bough.data.logs import Bad, as_frame
from bough.tree.tree import Tree

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
    """One column for each feature."""
    context_list: str | None = None
    """Or one column of lists, or of dicts."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, each once."""
        given = (self.reward, self.propensity, self.error)
        return tuple(dict.fromkeys(name for name in given if name is not None))

    @property
    def used(self) -> tuple[str, ...]:
        """All columns, each once."""
        others = (name for name in (self.action, self.position, self.context_list) if name is not None)
        return tuple(dict.fromkeys((*others, *self.numbers, *self.context)))


class Logged(NamedTuple):
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
def opened(log: Any, tree: Tree, columns: LogColumns) -> Iterator[Logged]:
    if isinstance(log, (str, os.PathLike)):
        if columns.context_list is not None:
            raise ValueError(
                f"context is {columns.context_list!r}, one column of lists, and the log is in files; name one column "
                "for each feature"
            )
        others = () if columns.position is None else (columns.position,)
        with opened_log(log, tree, columns.action, (*columns.numbers, *others), columns.context) as (frame, labels):
            yield _checked(frame, labels, columns)
    else:
        yield _checked(*labelled(as_frame(log), columns.used), columns)


def _checked(frame: Frame, labels: dict[str, str], columns: LogColumns) -> Logged:
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
    return Logged(frame, labels, columns, y, p, None if columns.error is None else number(columns.error))


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


def numbered(values: Sequence[Any]) -> tuple[tuple[Any, ...], Integers]:
    """The distinct values in order, and which of them each is."""
    try:
        distinct = sorted(set(values))
    except TypeError:
        distinct = sorted(set(values), key=str)
    number = {value: i for i, value in enumerate(distinct)}
    return tuple(distinct), np.array([number[value] for value in values], dtype=np.int64)


# -- what cannot be used ---------------------------------------------------------------------------


def check_bad(bad: Any) -> None:
    if not isinstance(bad, str) or bad not in get_args(Bad):
        raise ValueError(
            f'bad is {bad!r}; give "error", or "skip" to leave out the rows that cannot be used, or "skip-most" where '
            "they are most of the log"
        )


def allowed(bad: Bad, n_rows: int) -> int:
    return {"error": 0, "skip": n_rows // 2, "skip-most": n_rows}[bad]


def complaint(logged: Logged, tree: Tree, strange: list[Any], n_rows: int, odd: int, unknown: int, bad: str) -> str:
    parts = []
    if odd:
        values = logged.rows(~logged.usable, _SHOWN)
        shown = "; ".join(str(row) for row in values.rows(named=True))
        parts.append(f"{odd} with a missing or infinite value, or a propensity outside (0, 1], such as {shown}")
    if unknown:
        parts.append(unknown_actions(tree, logged.columns.action, strange, unknown))
    what = f"{odd + unknown} of {n_rows} rows cannot be used: {', and '.join(parts)}; put them right, or "
    if bad == "error":
        return what + 'leave them out with bad="skip"'
    return what + 'leave out most of the log with bad="skip-most"'
