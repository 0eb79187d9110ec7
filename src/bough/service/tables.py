"""Tables as files, piece by piece: Parquet, NDJSON and CSV, whichever the name of the file ends in.

Rows are tuples in the order of the columns. However many there are, only some thousands are in memory at once. JSON has
lists and objects as they are; in the others they are text.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from bough._extras import install

Kind = Literal["int", "float", "bool", "text", "json", "bytes"]
Format = Literal["parquet", "ndjson", "csv"]
Row = tuple[Any, ...]

_ROWS = 10_000  # of a piece, which in Parquet is a group of rows
_BYTES = 1 << 25  # of files in a piece
_LARGEST_CELL = 1 << 30  # characters of a file in CSV, where Python's own limit is 131,072
_ARROW = {"int": "int64", "float": "float64", "bool": "bool_", "text": "string", "json": "string", "bytes": "binary"}
_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Kind


def format_of(path: str | os.PathLike[str]) -> Format:
    """What a file is written as, by the end of its name.

    >>> format_of("events.ndjson")
    'ndjson'
    """
    found = _FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise ValueError(f"{path} ends in none of {', '.join(_FORMATS)}; name the file so that it does")
    if found == "parquet":
        check_parquet()
    return found


def check_parquet() -> None:
    """Refuse Parquet where pyarrow is missing."""
    if not find_spec("pyarrow"):
        raise ValueError(f"Parquet takes pyarrow; {install('logs')}; or give a name that ends in .ndjson or .csv")


def write_table(path: str | os.PathLike[str], columns: tuple[Column, ...], rows: Iterable[Row]) -> int:
    """Write a table to a file, whole or not at all; how many rows it has."""
    format = format_of(path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: the folder {target.parent} does not exist; make it first")
    counted = _Counted(rows)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces(format, columns, counted):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o600)  # contexts may be personal
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return counted.count


class _Counted:
    """Rows, and how many there were."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def pieces(format: Format, columns: tuple[Column, ...], rows: Iterable[Row]) -> Iterator[bytes]:
    """A table as bytes that follow one another."""
    write: Callable[[tuple[Column, ...], Iterator[list[Row]]], Iterator[bytes]] = {
        "parquet": _parquet, "ndjson": _ndjson, "csv": _csv
    }[format]  # fmt: skip
    return write(columns, _groups(columns, rows))


def _groups(columns: tuple[Column, ...], rows: Iterable[Row]) -> Iterator[list[Row]]:
    large = [place for place, column in enumerate(columns) if column.kind == "bytes"]
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += sum(len(row[place] or b"") for place in large)
        if len(group) == _ROWS or size > _BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _text_of_json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


# -- writing ---------------------------------------------------------------------------------------


def _ndjson(columns: tuple[Column, ...], groups: Iterator[list[Row]]) -> Iterator[bytes]:
    names = [column.name for column in columns]
    encode = msgspec.json.Encoder().encode
    for group in groups:
        yield b"".join(encode(dict(zip(names, row, strict=True))) + b"\n" for row in group)


def _csv(columns: tuple[Column, ...], groups: Iterator[list[Row]]) -> Iterator[bytes]:
    as_cell = [_CELLS.get(column.kind) for column in columns]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")  # only its characters are quoted, of all line breaks
    writer.writerow([column.name for column in columns])
    for group in groups:
        for row in group:
            writer.writerow(
                [
                    value if make is None or value is None else make(value)
                    for make, value in zip(as_cell, row, strict=True)
                ]
            )
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()


_CELLS: dict[str, Callable[[Any], str | None]] = {
    "json": _text_of_json,
    "bool": lambda value: "true" if value else "false",
    "bytes": lambda value: base64.b64encode(value).decode(),
}


def _parquet(columns: tuple[Column, ...], groups: Iterator[list[Row]]) -> Iterator[bytes]:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(column.name, getattr(pyarrow, _ARROW[column.kind])()) for column in columns])
    sink = _Sink()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in groups:
            arrays = []
            for column, field, values in zip(columns, schema, zip(*group, strict=True), strict=True):
                given = map(_text_of_json, values) if column.kind == "json" else values
                arrays.append(pyarrow.array(list(given), field.type))
            writer.write_table(pyarrow.table(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that is passed on as it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        """What was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


# -- reading ---------------------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str], columns: tuple[Column, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a file that `write_table` wrote; a `ValueError` where it is another.

    In CSV nothing and an empty text are the same, so that texts are empty there.
    """
    format = format_of(path)
    read: Callable[[Any, tuple[Column, ...]], Iterator[dict[str, Any]]] = {
        "parquet": _read_parquet, "ndjson": _read_ndjson, "csv": _read_csv
    }[format]  # fmt: skip
    number = 0
    try:
        for number, row in enumerate(read(path, columns), 1):  # noqa: B007
            yield row
    except (KeyError, TypeError, ValueError, UnicodeError, csv.Error) as error:
        what = f"there is no column {error}" if type(error) is KeyError else str(error)
        raise ValueError(
            f"{path} cannot be read after row {number}: {what:.300}; give a file that bough export wrote"
        ) from None


def _read_ndjson(path: Any, columns: tuple[Column, ...]) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as file:
        for line in file:
            row = msgspec.json.decode(line)
            yield {column.name: _from_json(row[column.name], column.kind) for column in columns}


def _from_json(value: Any, kind: Kind) -> Any:
    if value is None or kind == "json":
        return value
    return base64.b64decode(value, validate=True) if kind == "bytes" else value


def _read_csv(path: Any, columns: tuple[Column, ...]) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(max(_LARGEST_CELL, csv.field_size_limit()))
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, strict=True):
            yield {column.name: _from_cell(row[column.name], column.kind) for column in columns}


_FROM_CELLS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "json": msgspec.json.decode,
    "bytes": lambda text: base64.b64decode(text, validate=True),
}


def _from_cell(cell: str, kind: Kind) -> Any:
    if kind == "text":
        return cell
    if cell == "":
        return None
    if kind == "bool":
        return {"true": True, "false": False}[cell]
    return _FROM_CELLS[kind](cell)


def _read_parquet(path: Any, columns: tuple[Column, ...]) -> Iterator[dict[str, Any]]:
    import pyarrow
    from pyarrow import parquet

    names = [column.name for column in columns]
    json = [column.name for column in columns if column.kind == "json"]
    with open(path, "rb") as opened:
        try:
            file = parquet.ParquetFile(opened)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(str(error)) from None
        for name in names:
            if name not in file.schema_arrow.names:
                raise KeyError(name)
        for batch in file.iter_batches(batch_size=_ROWS, columns=names):
            for row in batch.to_pylist():
                for name in json:
                    row[name] = None if row[name] is None else msgspec.json.decode(row[name])
                yield row
