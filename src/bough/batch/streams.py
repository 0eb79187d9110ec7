"""Contexts from a file, piece by piece, and decisions into another."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from bough._arrays import Floats
from bough._checks import no_file
from bough._extras import install

_PARQUET, _CSV = (".parquet", ".pq"), (".csv",)


def arrow(what: str = "") -> Any:
    """pyarrow, or a module of it; a `ModuleNotFoundError` that says how to get it where it is not installed."""
    try:
        return import_module(f"pyarrow{what}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyarrow":
            raise
        raise ModuleNotFoundError(f"Parquet files need pyarrow; {install('frames')}", name="pyarrow") from error


def is_parquet(path: str | os.PathLike[str], what: str) -> bool:
    """Whether a file is Parquet, by its name, and not CSV; a `ValueError` where it is neither."""
    ending = Path(path).suffix.lower()
    if ending not in _PARQUET + _CSV:
        raise ValueError(f"{what} is {os.fspath(path)!r}; give a file that ends in .parquet or .csv")
    return ending in _PARQUET


def parquet_tables(path: str | os.PathLike[str], columns: Sequence[str], size: int) -> Iterator[Any]:
    """Some columns of a Parquet file as tables of up to `size` rows, one after the other."""
    file = opened_parquet(path)
    missing = [column for column in columns if column not in file.schema_arrow.names]
    if missing:
        has = ", ".join(map(repr, file.schema_arrow.names[:10]))
        raise ValueError(f"{path} lacks the column {missing[0]!r}; it has {has}")
    for batch in file.iter_batches(batch_size=size, columns=list(columns)):
        yield arrow().Table.from_batches([batch])


def opened_parquet(path: str | os.PathLike[str]) -> Any:
    """A Parquet file of pyarrow; a `ValueError` where it is none."""
    try:
        return arrow(".parquet").ParquetFile(path)
    except FileNotFoundError as error:
        raise ValueError(no_file(path)) from error
    except (OSError, arrow().ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from error


class DecisionFile:
    """A Parquet or CSV file of decisions: one row for each action of each, whole or not there at all.

    Its columns are the decision's `row`, or an id of the caller's, the `position` of the action where there are several
    to a decision, the `action`, the `score` in the draw that decided, and the `propensity` where it is wanted.
    """

    def __init__(self, path: str | os.PathLike[str], k: int | None, id_name: str | None, propensities: bool) -> None:
        self._path = Path(path)
        self._partial = self._path.with_name(f"{self._path.name}.partial")
        self._is_parquet = is_parquet(path, "the file of decisions")
        self._k = 1 if k is None else k
        self.columns = [id_name or "row", *(["position"] if k is not None else []), "action", "score"]
        self.columns += ["propensity"] if propensities else []
        self._writer: Any = None
        self._text: Any = None

    def __enter__(self) -> Self:
        if not self._is_parquet:
            self._text = open(self._partial, "w", encoding="utf-8", newline="")
            self._writer = csv.writer(self._text)
            self._writer.writerow(self.columns)
        return self

    def write(self, ids: Any, actions: Any, scores: Floats, propensities: Floats | None = None) -> None:
        """Add decisions: their n ids, and (n, k) names, scores and propensities."""
        n, k = scores.shape
        values = [_repeated(ids, k), *([np.tile(np.arange(1, k + 1), n)] if "position" in self.columns else [])]
        values += [np.asarray(actions).ravel(), scores.ravel()]
        values += [] if propensities is None else [propensities.ravel()]
        if self._is_parquet:
            self._write_table([_column(each) for each in values])
        else:
            self._writer.writerows(zip(*(_listed(each) for each in values), strict=True))

    def _write_table(self, values: list[Any]) -> None:
        table = arrow().table(dict(zip(self.columns, values, strict=True)))
        if self._writer is None:
            self._writer = arrow(".parquet").ParquetWriter(self._partial, table.schema)
        self._writer.write_table(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_parquet and self._writer is None and kind is None:  # no decision: the columns alone
            self._write_table([arrow().array([], type=arrow().null()) for _ in self.columns])
        if self._is_parquet and self._writer is not None:
            self._writer.close()
        if self._text is not None:
            self._text.close()
        if kind is None:
            self._partial.replace(self._path)
        else:
            self._partial.unlink(missing_ok=True)


def _repeated(ids: Any, k: int) -> Any:
    """Each id k times: an array of numpy or of pyarrow."""
    if k == 1:
        return ids
    places = np.repeat(np.arange(len(ids)), k)
    return ids[places] if isinstance(ids, np.ndarray) else ids.take(arrow().array(places))


def _column(values: Any) -> Any:
    """A column of pyarrow; names that are not all whole numbers are text."""
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind in "iuf":
        return arrow().array(values)
    names = values.tolist()
    return arrow().array(names if values.dtype.kind == "T" else [str(name) for name in names])


def _listed(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()  # type: ignore[no-any-return]
