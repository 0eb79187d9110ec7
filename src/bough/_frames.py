"""Frames of whichever library the user has."""

from __future__ import annotations

import atexit
import typing
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import narwhals as nw

from bough._extras import install

_BACKENDS = ("pandas", "polars", "pyarrow")

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def make_frame(columns: dict[str, Any], backend: str | None = None) -> Any:
    """A pandas, polars or pyarrow frame of these columns; the first that is installed where backend is None.

    >>> make_frame({"x": [1, 2]}, "polars").shape
    (2, 1)
    """
    if backend is None:
        backend = next((name for name in _BACKENDS if find_spec(name)), None)
        if backend is None:
            raise ValueError(f"no frame library is installed; {install('frames')}")
    elif not isinstance(backend, str) or backend not in _BACKENDS:
        raise ValueError(f"backend is {backend!r}; give one of {', '.join(_BACKENDS)}")
    elif not find_spec(backend):
        raise ValueError(f"{backend} is not installed; {install('frames')}")
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


def collected(frame: Any) -> nw.DataFrame[Any]:
    """A frame in memory, whatever it was."""
    if isinstance(frame, nw.DataFrame):
        return frame
    backend: Any = next((name for name in ("pyarrow", "polars", "pandas") if find_spec(name)), None)
    if backend is None or frame.implementation.is_polars():
        backend = "polars"
    found: nw.DataFrame[Any] = frame.collect(backend=backend)
    return found


def position(column: str, present: Sequence[str], whose: str) -> int:
    """Where a column is among those present; an error that says whose they are where it is not there just once."""
    if column not in present:
        raise ValueError(f"{whose} has no column {column!r}; it has {', '.join(map(str, present))}")
    if list(present).count(column) > 1:
        raise ValueError(f"{whose} has more than one column {column!r}; give each a name of its own")
    return list(present).index(column)


def labelled(frame: Frame, columns: Sequence[str]) -> tuple[Frame, dict[str, str]]:
    """A frame with these columns, and what each is called in it: c0, c1, ... in a lazy one.

    What is a name to the user may be more to an engine: a dot is a field of a struct in DuckDB and Spark, and ^.*$ a
    pattern in polars. So columns of a lazy frame are picked by their position.
    """
    native: Any = frame.to_native()
    if frame.implementation.is_duckdb():
        _leave_nothing_behind()
    # DuckDB may have a name twice, which narwhals does not show
    present = native.columns if frame.implementation.is_duckdb() else frame.collect_schema().names()
    places = [position(column, present, "the log") for column in columns]
    if isinstance(frame, nw.DataFrame):
        return frame, {column: column for column in columns}
    labels = labels_of(columns)
    if frame.implementation.is_duckdb():
        return from_relation(by_position(native, places)), labels
    if frame.implementation.is_spark_like():
        frame = nw.from_native(native.toDF(*(f"p{place}" for place in range(len(present)))))
        return frame.select(*(nw.col(f"p{p}").alias(f"c{i}") for i, p in enumerate(places))), labels
    return frame.select(*(nw.nth(place).alias(f"c{i}") for i, place in enumerate(places))), labels


def labels_of(columns: Sequence[str]) -> dict[str, str]:
    """Names that mean nothing to any engine."""
    return {column: f"c{i}" for i, column in enumerate(columns)}


def as_written(label: str) -> str:
    """What the text of a column of numbers is called, beside the numbers."""
    return f"{label}_as_written"


def by_position(relation: Any, places: Sequence[int]) -> Any:
    """A DuckDB relation of the columns at these places, called c0, c1, ...; SQL's own names for them are #1, #2, ..."""
    return relation.project(", ".join(f"#{place + 1} AS c{i}" for i, place in enumerate(places)))


def from_relation(relation: Any) -> Frame:
    """A DuckDB relation as a frame."""
    _leave_nothing_behind()
    frame: Frame = nw.from_native(relation)
    return frame


@cache
def _leave_nothing_behind() -> None:
    """Let go of DuckDB at exit, where it prints a line for each of its objects that is still there.

    narwhals keeps its engines in a cache, which typing's register of overloads keeps alive for longer than DuckDB.
    """
    atexit.register(typing.clear_overloads)
