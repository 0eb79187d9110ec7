"""Parquet and CSV files through DuckDB, which reads them piece by piece.

How a CSV file is read is settled here and not guessed from its first rows. The first line that is not blank has the
names of the columns (blanks around them do not count), and what separates them is the comma, semicolon, tab, bar or
blank that gives the columns asked for. Every further line is a row, except blank ones; none is a comment. Double quotes
go around a cell with a separator, a line break or, doubled, a quote in it. The text is UTF-8. A row with too few or too
many cells, or a quote that is not closed, is an error that names the line. The files of a glob may have their columns
in different orders.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bough._checks import no_file
from bough._extras import install
from bough._frames import Frame, as_written, by_position, collected, from_relation, labels_of, position
from bough.tree.tree import Tree

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_SEPARATORS = (",", ";", "\t", "|", " ")
_BLANK_LINES = 1_000  # that a file may begin with


def tree_of_table(
    path: str | os.PathLike[str],
    levels: Sequence[str],
    sep: str = "/",
    like: Tree | None = None,
    missing: Literal["error", "parent"] = "error",
) -> Tree:
    """The tree of a Parquet or CSV table with one column a level, coarsest first; repeated rows count once.

    A column of a CSV file is integers where all its cells are written as such, without leading zeros, and else text.
    Actions are text in any case where those of the tree `like` are. `missing` is that of `Tree.from_frame`.
    """
    levels = list(levels)
    with _opened_files(path, levels) as (relation, is_text):
        if is_text:
            text_actions = like is not None and not _has_integers(like)
            relation = relation.project(_kinds_of_names(relation, text_actions))
        labels = list(labels_of(levels).values())
        _refuse_gaps(path, levels, relation, missing)
        table = from_relation(relation)
        rows: Any = table.unique().sort(*labels)
        found = collected(rows).rename(dict(zip(labels, levels, strict=True)))
    return Tree.from_frame(found.to_native(), levels, sep, missing=missing)


def _refuse_gaps(path: Any, levels: Sequence[str], relation: Any, missing: str) -> None:
    """Count the rows of a table that lack a name, column by column; those of an action count in any case."""
    (counts,) = relation.aggregate(", ".join(f"count(*) - count({c})" for c in relation.columns)).fetchall()
    gaps = dict(zip(levels, counts, strict=True))
    if missing == "parent":
        gaps = {levels[-1]: gaps[levels[-1]]}
    found = ", ".join(f"{n:,} without a {column}" for column, n in gaps.items() if n)
    if found:
        higher = ", or hang them one level higher by --missing parent" if any(list(counts)[:-1]) else ""
        raise ValueError(
            f"{path} has rows that lack a name: {found}; put them right, leave them out of the table{higher}"
        )


def _kinds_of_names(relation: Any, text_actions: bool) -> str:
    """Every column as whole numbers or as text, in SQL; the last one as text if `text_actions`."""
    same = "coalesce(CAST(try_cast({0} AS BIGINT) AS VARCHAR) = trim({0}), {0} IS NULL)"
    (found,) = relation.aggregate(", ".join(f"bool_and({same.format(c)})" for c in relation.columns)).fetchall()
    kinds = zip(relation.columns, [*found[:-1], found[-1] and not text_actions], strict=True)
    return ", ".join(f"CAST({c} AS BIGINT) AS {c}" if is_whole else c for c, is_whole in kinds)


def _has_integers(tree: Tree) -> bool:
    return tree.actions._column.dtype.kind in "iu"


def rows_of_table(
    path: str | os.PathLike[str], columns: Sequence[str], optional: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """Some columns of a Parquet or CSV table, row by row; text where it is CSV. The `optional` ones may be null."""
    with _opened_files(path, [*columns, *optional]) as (relation, _):
        rows: list[tuple[Any, ...]] = relation.fetchall()
    for row in rows:
        if None in row[: len(columns)]:
            missing = columns[row.index(None)]
            raise ValueError(f"{path} has rows without a {missing!r}; put them right, or leave them out of the table")
    return rows


@contextmanager
def opened_table(path: str | os.PathLike[str], columns: Sequence[str], size: int) -> Iterator[tuple[int, Any]]:
    """How many rows a CSV file has, and some columns of it as pyarrow's tables of up to `size` rows, in their order.

    A column is numbers where all its cells are, and else text.
    """
    with _opened_files(path, columns) as (relation, is_text):
        labels = list(labels_of(columns).values())
        if is_text:
            casts = _numbers_or_text(relation, labels)
            relation = relation.project(", ".join(f"{cast} AS {label}" for label, cast in casts.items()))
        (n,) = relation.aggregate("count(*)").fetchone()
        reader = relation.to_arrow_reader(size)
        yield int(n), (_renamed(batch, columns) for batch in reader)


def _renamed(batch: Any, columns: Sequence[str]) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch]).rename_columns(list(columns))


@contextmanager
def opened_log(
    path: str | os.PathLike[str], tree: Tree, action: str, numbers: Sequence[str], either: Sequence[str] = ()
) -> Iterator[tuple[Frame, dict[str, str]]]:
    """The columns of a log in files, and what each is called in the frame.

    In files of text, columns that may be `either` are numbers where all their cells are, and else text; and the cells
    of `numbers` are there as they are written as well.
    """
    columns = list(dict.fromkeys((action, *numbers, *either)))
    with _opened_files(path, columns) as (relation, is_text):
        labels = labels_of(columns)
        if is_text:
            # Names that look like numbers are what the tree's are, text or numbers. A cell that is no number becomes
            # null, so that it makes a bad row and not a bad file.
            kind = "BIGINT" if _has_integers(tree) else "VARCHAR"
            casts = _numbers_or_text(relation, [labels[column] for column in either])
            casts |= {labels[column]: _number(labels[column]) for column in numbers}
            casts |= {as_written(labels[column]): labels[column] for column in numbers}
            casts |= {labels[action]: _exactly(labels[action], kind)}
            relation = relation.project(", ".join(f"{cast} AS {label}" for label, cast in casts.items()))
        yield from_relation(relation), labels


def first_rows(path: str | os.PathLike[str], column: str, most: int) -> dict[str, list[Any]]:
    """The first cells of every column of the files that have this one, by its name."""
    with _located(path) as (connection, files, is_text):
        if is_text:
            headers = [layout.header for layout in _layouts(connection, files, [column])]
        else:
            headers = [tuple(connection.read_parquet(files).columns)]
    names = [name for name in headers[0] if all(header.count(name) == 1 for header in headers)]
    with _opened_files(path, names) as (relation, _):
        rows = relation.limit(most).fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _numbers_or_text(relation: Any, columns: Sequence[str]) -> dict[str, str]:
    """What each column becomes, in SQL: numbers where all its cells are, and else text as it is."""
    if not columns:
        return {}
    odd = ", ".join(f"count(*) FILTER ({c} IS NOT NULL AND {_number(c)} IS NULL)" for c in columns)
    (counts,) = relation.aggregate(odd).fetchall()
    return {column: column if n else _number(column) for column, n in zip(columns, counts, strict=True)}


def _number(column: str) -> str:
    """A text as a number, in SQL, or null where it is none; true and false are 1 and 0."""
    # lower() and trim() would be computed for every cell, and take as long as all the rest
    words = "WHEN {0} IN ('true', 'True', 'TRUE') THEN 1.0 WHEN {0} IN ('false', 'False', 'FALSE') THEN 0.0"
    return f"coalesce(try_cast({column} AS DOUBLE), CASE {words.format(column)} END)"


def _exactly(column: str, kind: str) -> str:
    """A text as that kind, in SQL, or null where it is none; DuckDB would round 3.6 to a whole number."""
    cast = f"try_cast({column} AS {kind})"
    return f"CASE WHEN try_cast({column} AS DOUBLE) = {cast} THEN {cast} END" if kind == "BIGINT" else cast


# -- opening -------------------------------------------------------------------------------------


@contextmanager
def _opened_files(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[tuple[Any, bool]]:
    """A DuckDB relation of some columns of one file, a glob, or all files of a folder, and whether they are text.

    The columns are called c0, c1, ... there, and are all text where the files are.
    """
    with _located(path) as (connection, files, is_text):
        if is_text:
            relation = _opened_text(connection, files, columns)
        else:
            relation = connection.read_parquet(files)
            relation = by_position(relation, [position(column, relation.columns, str(path)) for column in columns])
        yield relation, is_text


@contextmanager
def _located(path: str | os.PathLike[str]) -> Iterator[tuple[Any, str, bool]]:
    """A connection to DuckDB, the pattern of the files of a path, and whether they are text."""
    if not find_spec("duckdb"):
        raise ValueError(f"reading files takes DuckDB; {install('logs')}")
    import duckdb

    files = os.fspath(path)
    if Path(files).is_dir():
        ending = "parquet" if any(Path(files).rglob("*.parquet")) else "csv"
        files = os.path.join(files, "**", f"*.{ending}")
    endings = [ending for ending in Path(files).suffixes if ending not in (".gz", ".zst")]
    kind = _ENDINGS.get(endings[-1].lower()) if endings else None
    if kind is None:
        raise ValueError(f"{path} is neither a Parquet nor a CSV file by its name; name it so, or open it yourself")
    try:
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")  # it would go to the standard output
            yield connection, files, kind == "csv"
    except duckdb.Error as error:
        if "No files found" in str(error):
            raise ValueError(no_file(path)) from error
        what = " ".join(str(error).split()).split(" Possible ")[0]  # what follows is advice on DuckDB's own options
        raise ValueError(f"{path} cannot be read: {what[:300]}") from error


class _Layout(NamedTuple):
    """How a text file is written."""

    separator: str
    lines_before: int
    """Up to its first row."""
    header: tuple[str, ...]


def _opened_text(connection: Any, pattern: str, columns: Sequence[str]) -> Any:
    whole = None
    for layout, names in _layouts(connection, pattern, columns).items():
        part = _rows_of(connection, layout, names)
        # DuckDB adds the columns that the names of folders, such as day=1, have
        present = (*layout.header, *part.columns[len(layout.header) :])
        part = by_position(part, [position(column, present, names[0]) for column in columns])
        whole = part if whole is None else whole.union(part)
    return whole


def _layouts(connection: Any, pattern: str, columns: Sequence[str]) -> dict[_Layout, list[str]]:
    """The layouts of the files of a pattern, with the names of the files that have each."""
    import duckdb

    layouts: dict[_Layout, list[str]] = {}
    found = [str(name) for (name,) in connection.execute("FROM glob(?)", [pattern]).fetchall()]
    if not found:
        raise duckdb.IOException(f'No files found that match the pattern "{pattern}"')
    for name in sorted(found):
        layout = _layout(connection, name, columns)
        if layout is not None:
            layouts.setdefault(layout, []).append(name)
    if not layouts:
        raise ValueError(f"{pattern} is empty; its first line should have the names of its columns")
    return layouts


def _layout(connection: Any, name: str, columns: Sequence[str]) -> _Layout | None:
    """The layout of a file; None where there is nothing in it."""
    lines = connection.execute(
        f"SELECT line FROM read_csv({_file(name)}, auto_detect = false, columns = {{'line': 'VARCHAR'}}, "
        f"header = false, delim = '\x01', quote = '', escape = '', comment = '', hive_partitioning = false) "
        f"LIMIT {_BLANK_LINES + 1}"
    ).fetchall()
    first = next((i for i, (line,) in enumerate(lines) if line is not None and line.strip()), None)
    if first is None:
        if len(lines) > _BLANK_LINES:
            raise ValueError(f"{name} begins with more than {_BLANK_LINES} blank lines; take them out")
        return None
    separators = sorted(_SEPARATORS, key=lambda one: one != "\t") if ".tsv" in Path(name).suffixes else _SEPARATORS
    read = {
        one: tuple(cell.strip() for cell in next(csv.reader([lines[first][0]], delimiter=one))) for one in separators
    }
    separator = max(separators, key=lambda one: (len(set(columns) & set(read[one])), one != " ", len(read[one])))
    return _Layout(separator, first + 1, read[separator])


def _rows_of(connection: Any, layout: _Layout, names: Sequence[str]) -> Any:
    kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(layout.header)))
    return connection.sql(
        f"FROM read_csv([{', '.join(map(_file, names))}], auto_detect = false, header = false, columns = {{{kinds}}}, "
        f"skip = {layout.lines_before}, delim = '{layout.separator}', quote = '\"', escape = '\"', comment = '', "
        "hive_types_autocast = false)"
    )


def _file(name: str) -> str:
    """The name of one file in SQL, where *, ? and [ would begin a pattern."""
    return "'" + re.sub(r"[*?\[]", r"[\g<0>]", name).replace("'", "''") + "'"
