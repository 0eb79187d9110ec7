"""One group-by of a log, written in narwhals, so that every kind of frame runs it in its own way.

Null and NaN values show in the sums themselves, so a clean log is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers
from bough._frames import Frame, as_written, collected
from bough.tree.name_columns import is_missing

_SLICE = 1 << 18  # rows of a frame in memory whose products are made at once


class Names(NamedTuple):
    """What the columns of a log are called."""

    action: str
    reward: str
    context: tuple[str, ...]
    weight: str | None
    exposure: str | None
    has_trials: bool
    """Whether rewards are clicks: at most as many as trials, or one where no column has these."""
    are_counts: bool
    """Whether rewards are clicks or counts."""
    intercept: bool
    levels: tuple[str, ...] = ()
    """Those of the levels that decisions had."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers, each once."""
        others = (name for name in (self.weight, self.exposure) if name is not None)
        return tuple(dict.fromkeys((self.reward, *self.context, *others)))

    @property
    def used(self) -> tuple[str, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys((self.action, *self.numbers, *self.levels)))


@dataclass(frozen=True)
class Groups:
    """What a group-by gave: a key, the rows and the sums of each group."""

    keys: list[Any]
    rows: Integers
    sums: dict[str, Floats]
    sound: bool
    """Whether every value of every row was a finite number, and no level was missing."""
    levels: tuple[list[Any], ...] = ()
    """For each factor of the decision, the level of each group."""


@dataclass(frozen=True)
class Columns:
    """A frame, and what its columns mean."""

    frame: Frame
    labels: dict[str, str]
    """What a column of the user's is called in the frame."""
    names: Names
    y: nw.Expr
    x: tuple[nw.Expr, ...]
    weight: nw.Expr | None
    exposure: nw.Expr | None
    levels: tuple[nw.Expr, ...]
    """Those of the decisions; null where there is none."""

    @property
    def n_context(self) -> int:
        return len(self.x)

    @classmethod
    def checked(cls, frame: Frame, labels: dict[str, str], names: Names) -> Columns:
        """The columns of those names, which the frame has under their labels."""
        schema = frame.collect_schema()
        for column in names.numbers:
            kind = schema[labels[column]]
            if not (kind.is_numeric() or kind == nw.Boolean):
                hint = ", or give features=bough.Features.learn(...)" if column in names.context else ""
                raise ValueError(f"the column {column!r} is of type {kind}; cast it to numbers{hint}")

        def number(column: str) -> nw.Expr:
            return _number(labels[column], schema)

        reward = number(names.reward)
        one = (reward * 0.0 + 1.0,) if names.intercept else ()
        weight, exposure = (None if name is None else number(name) for name in (names.weight, names.exposure))
        contexts = (*one, *map(number, names.context))
        levels = tuple(_level(frame, labels[name], schema[labels[name]], name) for name in names.levels)
        return cls(frame, labels, names, reward, contexts, weight, exposure, levels)

    def rows(self, which: nw.Expr, most: int | None = None) -> dict[str, nw.Series[Any]]:
        """The values of some rows, by the names of their columns."""
        chosen: Any = self.frame.filter(which).select(*(self.labels[name] for name in self.names.used))
        found = collected(chosen if most is None else chosen.head(most))
        return {name: found[self.labels[name]] for name in self.names.used}

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
        for level in self.levels:
            finite = finite & ~level.is_null()
        return finite

    @property
    def limits(self) -> dict[str, nw.Expr]:
        """What is not negative in a row of counts."""
        if not self.names.are_counts:
            return {}
        limits = {"reward": self.y, "whole": 0.0 - self.y % 1.0}
        if self.exposure is not None:
            limits["exposure"] = self.exposure - 5e-324
        if self.names.has_trials:
            limits["rest"] = (1.0 if self.exposure is None else self.exposure) - self.y
        return limits

    # -- what is wrong with rows, which is asked only where something is ----------------------------

    def shown(self, which: nw.Expr, most: int) -> list[dict[str, Any]]:
        """The first of some rows, with the text of cells that are no numbers."""
        text = self._text
        found = collected(self.frame.filter(which).select(*self._labels_used, *text.values()).head(most))
        values = {name: found[self.labels[name]].to_list() for name in self.names.used}
        for name, label in text.items():
            values[name] = [
                cell if number is None else number
                for number, cell in zip(values[name], found[label].to_list(), strict=True)
            ]
        return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def faults(self) -> list[str]:
        """Why rows cannot be used: those of the reasons that are true of some row."""
        reasons = {why: found.fill_null(False) for why, found in self._reasons.items()}
        if self.names.levels:
            others = ~self.usable
            for found in reasons.values():
                others = others & ~found
            reasons["a missing level"] = others
        return [why for why, n in self._counts(reasons).items() if n]

    def without_numbers(self) -> str | None:
        """A column of numbers in which there is none."""
        found = {name: self._finite(name) for name in self.names.numbers}
        return next((name for name, n in self._counts(found).items() if not n), None)

    @property
    def _reasons(self) -> dict[str, nw.Expr]:
        reasons, missing = {}, {name: ~self._finite(name) for name in self.names.numbers}
        text = {
            name: nw.col(self.labels[name]).is_null() & ~nw.col(label).is_null() for name, label in self._text.items()
        }
        if text:
            reasons["text where a number belongs"] = nw.any_horizontal(*text.values(), ignore_nulls=True)
            missing = {name: odd & ~text[name] if name in text else odd for name, odd in missing.items()}
        reasons["a null, NaN or infinite value"] = nw.any_horizontal(*missing.values(), ignore_nulls=True)
        if self.weight is not None:
            reasons["a negative weight"] = self.weight < 0.0
        no_count = (self.y < 0.0) | (self.y % 1.0 > 0.0)
        if self.names.has_trials and self.exposure is None:
            reasons["a reward that is neither 0 nor 1 (clicks of many views take trials)"] = no_count | (self.y > 1.0)
        elif self.names.are_counts:
            reasons["a reward that is no whole number of 0 or more"] = no_count
        if self.exposure is not None:
            what = "trials that are" if self.names.has_trials else "an exposure that is"
            reasons[f"{what} not positive"] = self.exposure <= 0.0
            if self.names.has_trials:
                reasons["more clicks than trials"] = self.y > self.exposure
        return reasons

    @property
    def _text(self) -> dict[str, str]:
        """What the cells of the columns of numbers are called as text, in files of text."""
        schema = self.frame.collect_schema()
        labels = {name: as_written(self.labels[name]) for name in self.names.numbers}
        return {name: label for name, label in labels.items() if label in schema}

    @property
    def _labels_used(self) -> list[str]:
        return [self.labels[name] for name in self.names.used]

    def _finite(self, column: str) -> nw.Expr:
        return _number(self.labels[column], self.frame.collect_schema()).is_finite().fill_null(False)

    def _counts(self, flags: dict[str, nw.Expr]) -> dict[str, int]:
        """In how many rows each of these is true."""
        ones = [nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)) for flag in flags.values()]
        found = collected(self.frame.select(*(one.sum().alias(f"n{i}") for i, one in enumerate(ones))))
        return {name: int(found[f"n{i}"][0] or 0) for i, name in enumerate(flags)}

    # -- sums --------------------------------------------------------------------------------------

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

    def grouped(self, frame: Frame) -> Groups:
        """The sums of all groups; a frame in memory goes slice by slice, and its groups come once for each."""
        parts = [self._grouped(part) for part in slices(frame)]
        keys = [key for part in parts for key in part["action"].to_list()]
        rows = np.concatenate([part["rows"].to_numpy() for part in parts]).astype(np.int64)
        numbers = np.concatenate([part["complete"].to_numpy() for part in parts]).astype(np.int64)
        sums = {name: np.concatenate([floats(part[name]) for part in parts]) for name in self.products}
        sound = bool((numbers == rows).all()) and all(np.isfinite(values).all() for values in sums.values())
        if self.weight is not None:
            least = np.concatenate([floats(part["least"]) for part in parts])
            sound = sound and bool((least >= 0.0).all())
        for name in self.limits:
            least = np.concatenate([floats(part[f"least {name}"]) for part in parts])
            sound = sound and bool((least >= 0.0).all())
        levels = tuple(
            [level for part in parts for level in part[f"level {i}"].to_list()] for i in range(len(self.names.levels))
        )
        sound = sound and not any(is_missing(level) for column in levels for level in column)
        return Groups(keys, rows, sums, sound, levels)

    def _grouped(self, frame: Frame) -> nw.DataFrame[Any]:
        products = self.products
        levels = {f"level {i}": level for i, level in enumerate(self.levels)}
        selected = frame.select(
            nw.col(self.labels[self.names.action]).alias("action"),
            *(level.alias(name) for name, level in levels.items()),
            self.complete.alias("complete"),
            *(expression.alias(name) for name, expression in products.items()),
            *(limit.alias(f"least {name}") for name, limit in self.limits.items()),
        )
        aggregates = [nw.len().alias("rows"), nw.col("complete").count()]
        aggregates += [nw.col(name).sum() for name in products]
        if self.weight is not None:
            aggregates.append(nw.col("weight").min().alias("least"))
        aggregates += [nw.col(f"least {name}").min() for name in self.limits]
        groups: Any = selected.group_by("action", *levels).agg(*aggregates)
        return collected(groups)


def _number(label: str, schema: Any) -> nw.Expr:
    """A column as numbers; true and false are 1 and 0."""
    if schema[label] == nw.Boolean:
        return nw.when(nw.col(label)).then(nw.lit(1.0)).otherwise(nw.when(~nw.col(label)).then(nw.lit(0.0)))
    return nw.col(label).cast(nw.Float64)


def _level(frame: Frame, label: str, kind: Any, column: str) -> nw.Expr:
    """The levels of a column; a `ValueError` where it has what is no level, and no frame could group by it."""
    given = nw.col(label)
    if kind.is_float():  # whole numbers, of which some are missing
        return nw.when(~given.is_nan()).then(given)
    odd = kind if kind.is_nested() else None
    if kind == nw.Object and isinstance(frame, nw.DataFrame):
        odd = next((type(level).__name__ for level in frame[label] if not _is_hashable(level)), None)
    if odd is not None:
        raise ValueError(f"the column {column!r} has levels of type {odd}; make them text or whole numbers")
    return given


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def slices(frame: Frame) -> Iterator[Frame]:
    if isinstance(frame, nw.LazyFrame):
        yield frame
        return
    for start in range(0, max(len(frame), 1), _SLICE):
        yield frame[start : start + _SLICE]


def floats(column: nw.Series[Any]) -> Floats:
    return np.asarray(column.to_numpy(), dtype=np.float64)
