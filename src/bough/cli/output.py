"""What a command says: its results as text or JSON, how far it is, and, where it was stopped, what it has written."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bough._checks import no_file


def show(given: argparse.Namespace, text: str, results: Mapping[str, Any]) -> None:
    """Print the results on the standard output: as text, or, with --json, as one JSON document."""
    print(json.dumps(plain(results), indent=2, ensure_ascii=False, allow_nan=False) if given.json else text)


def plain(value: Any) -> Any:
    """What JSON has for a result: numbers as they are, null for what is no number, and text for other names.

    >>> import numpy
    >>> plain({"mean": numpy.float64(0.5), "interval": (0.0, float("inf")), 3: numpy.arange(2)})
    {'mean': 0.5, 'interval': [0.0, None], '3': [0, 1]}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufU":
        return plain(value.tolist())
    if isinstance(value, (date, time)):  # a datetime is a date
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines with the first column to the left and the others to the right.

    >>> print(table(["action", "mean"], [["tea", "1.5"], ["coffee", "-10.0"]]))
    action   mean
    tea       1.5
    coffee  -10.0
    """
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    texts = ("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines)
    return "\n".join(text.rstrip() for text in texts)


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal that rich can draw on; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda n: bar.advance(task, n)


# -- what was written ------------------------------------------------------------------------------


def target(what: str, path: Path) -> str:
    """The line about a file that is about to be written, which says whether there is one to replace.

    >>> target("model", Path("no-such-folder/model.bough"))
    'model: no-such-folder/model.bough'
    """
    return f"{what}: {path}{' (replaced)' if path.exists() else ''}"


def left_out(skipped: Mapping[str, int]) -> list[str]:
    """A line for each reason for which rows of a log were left out.

    >>> left_out({"bad number": 1})
    ['left out: 1 row (bad number)']
    """
    return [f"left out: {n:,} row{'s' if n != 1 else ''} ({why})" for why, n in skipped.items()]


class Written:
    """Which of some files have been written since this was made: what an interrupted command can truly say.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> written = Written(lambda: [path])
    >>> _ = path.write_text("policy")
    >>> [one.name for one in written.since()]
    ['a.csv']
    """

    def __init__(self, files: Callable[[], Iterable[Path | None]], *, goes_on: bool = False) -> None:
        self._files = files
        self._before = self._stamps()
        self._goes_on = goes_on

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for path in self._files():
            if path is not None and path.is_file():
                about = path.stat()
                found[path] = (about.st_mtime_ns, about.st_size)
        return found

    def since(self) -> list[Path]:
        """The files that are new, or have changed."""
        return [path for path, stamp in self._stamps().items() if self._before.get(path) != stamp]

    def __str__(self) -> str:
        written = self.since()
        if not written:
            return "nothing was written"
        cells = [path for path in written if path.parent.name == "cells"]
        others = [str(path) for path in written if path not in cells]
        parts = [] if not cells else [f"{len(cells)} finished cell{'s' * (len(cells) > 1)} in {cells[0].parent}"]
        text = f"written: {', '.join(parts + others)}"
        return f"{text}; the same command goes on from there" if self._goes_on else text


def watch(given: argparse.Namespace, files: Callable[[], Iterable[Path | None]], *, goes_on: bool = False) -> None:
    """Have an interrupt say which of these files the command has written; `goes_on` where a repeat uses them."""
    given.written = Written(files, goes_on=goes_on)


def one_line(error: Exception) -> str:
    """What an error says, in one line."""
    if isinstance(error, (OverflowError, MemoryError)):
        return f"the numbers given are too large to compute with ({error}); give smaller ones"
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return no_file(error.filename)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(text).split())
