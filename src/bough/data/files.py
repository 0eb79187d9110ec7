"""Parquet and CSV files through DuckDB, which reads them piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals as nw

from bough.tree.tree import Tree

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def tree_of_table(path: str | os.PathLike[str], levels: Sequence[str]) -> Tree:
    """The tree of a Parquet or CSV table with one column a level, coarsest first; repeated rows count once."""
    with file_errors(path):
        table: Frame = nw.from_native(_opened_files(path, {})[0])
        present = table.collect_schema().names()
        for column in levels:
            if column not in present:
                raise ValueError(f"{path} has no column {column!r}; it has {', '.join(present)}")
        rows: Any = table.select(*levels).unique().sort(*levels)
        found = collected(rows)
        for column in levels:
            if found[column].null_count():
                raise ValueError(f"{path} has rows without a {column}; put them right, or leave them out of the table")
        return Tree.from_frame(found.to_native(), list(levels))


def opened_log(path: str | os.PathLike[str], tree: Tree, action: str, columns: Sequence[str]) -> Any:
    """A DuckDB relation of a log in files."""
    relation, is_text = _opened_files(path, {})
    if not is_text or action not in relation.columns:
        return relation
    # Names that look like numbers are what the tree's are, text or numbers. Numbers are read as text, and what is
    # none becomes null, so that a single bad cell is a bad row and not a bad file.
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    numbers = [column for column in columns if column in kinds and kinds[column] != "BOOLEAN"]
    kind = "BIGINT" if tree.actions._column.dtype.kind in "iu" else "VARCHAR"
    relation, _ = _opened_files(path, {**dict.fromkeys(numbers, "VARCHAR"), action: "VARCHAR"})
    quoted = {column: '"' + column.replace('"', '""') + '"' for column in relation.columns}
    casts = {**dict.fromkeys(numbers, "DOUBLE"), action: kind}
    return relation.project(
        ", ".join(
            f"{_exactly(name, casts[column])} AS {name}" if column in casts else name for column, name in quoted.items()
        )
    )


def _exactly(column: str, kind: str) -> str:
    """A text as that kind, in SQL, or null where it is none; DuckDB would round 3.6 to a whole number."""
    cast = f"try_cast({column} AS {kind})"
    return f"CASE WHEN try_cast({column} AS DOUBLE) = {cast} THEN {cast} END" if kind == "BIGINT" else cast


def _opened_files(path: str | os.PathLike[str], kinds: dict[str, str]) -> tuple[Any, bool]:
    """A DuckDB relation of one file, a glob, or all files of a folder, and whether they are text.

    `kinds` has the types of some columns of text files.
    """
    import duckdb

    files = os.fspath(path)
    if Path(files).is_dir():
        ending = "parquet" if any(Path(files).rglob("*.parquet")) else "csv"
        files = os.path.join(files, "**", f"*.{ending}")
    endings = [ending for ending in Path(files).suffixes if ending not in (".gz", ".zst")]
    kind = _ENDINGS.get(endings[-1].lower()) if endings else None
    if kind is None:
        raise ValueError(f"{path} is neither a Parquet nor a CSV file by its name; name it so, or open it yourself")
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # it would go to the standard output
    if kind == "parquet":
        return connection.read_parquet(files), False
    return connection.read_csv(files, dtype=kinds or None, header=True), True


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """What DuckDB has to say about a file, as an error of ours."""
    if not find_spec("duckdb"):
        raise ValueError("reading files takes DuckDB; pip install 'bough[logs]'")
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:300]}") from error


def collected(frame: Any) -> nw.DataFrame[Any]:
    """A frame in memory, whatever it was."""
    if isinstance(frame, nw.DataFrame):
        return frame
    backend: Any = next((name for name in ("pyarrow", "polars", "pandas") if find_spec(name)), None)
    if backend is None or frame.implementation.is_polars():
        backend = "polars"
    found: nw.DataFrame[Any] = frame.collect(backend=backend)
    return found
