"""Deleting what is old from the log in SQLite, in pieces that hardly disturb a service."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from bough.service.records import Position

_PIECE = 1_000  # decisions per transaction
_PAGES = 256  # of the file, given back per transaction

Connections = Callable[[], AbstractContextManager[sqlite3.Connection]]

# Read beside the writer: it is a scan, since few services prune often enough to be worth an index of their own.
_OLD = """SELECT seq FROM decisions NOT INDEXED
WHERE seq > ? AND experiment = ? AND at < ? AND (open = 0 OR active IS NULL) ORDER BY seq LIMIT ?"""
_CHOSEN = "CREATE TEMP TABLE IF NOT EXISTS chosen (seq INTEGER PRIMARY KEY)"
_LEFT_OUT = """DELETE FROM chosen WHERE
    NOT EXISTS (SELECT 1 FROM decisions AS d WHERE d.seq = chosen.seq AND (d.open = 0 OR d.active IS NULL))
    OR EXISTS (SELECT 1 FROM outcomes AS o WHERE o.decision_seq = chosen.seq AND o.seq > ?)"""
_WITHOUT_CONTEXT = """DELETE FROM chosen WHERE
    NOT EXISTS (SELECT 1 FROM decisions AS d WHERE d.seq = chosen.seq AND d.context IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM outcomes AS o WHERE o.decision_seq = chosen.seq AND o.context IS NOT NULL)"""
_FORGET = (
    "UPDATE outcomes SET context = NULL WHERE decision_seq IN (SELECT seq FROM chosen)",
    "UPDATE decisions SET context = NULL WHERE seq IN (SELECT seq FROM chosen)",
)
_DELETE = (
    "DELETE FROM outcomes WHERE decision_seq IN (SELECT seq FROM chosen)",
    "DELETE FROM decisions WHERE seq IN (SELECT seq FROM chosen)",
)


def prune(
    reader: Connections, writer: Connections, experiment: int, before: float, until: Position, *, contexts_only: bool
) -> int:
    """Delete contexts, or decisions with their outcomes; how many decisions it were."""
    seq, count = 0, 0
    while True:
        with reader() as connection:
            found = connection.execute(_OLD, (seq, experiment, before, _PIECE)).fetchall()
        if not found:
            return count
        with _half_of_the_time(), writer() as connection:
            count += _prune_piece(connection, found, until, contexts_only)
        seq = found[-1][0]


@contextmanager
def _half_of_the_time() -> Iterator[None]:
    """Rest for as long as the work took: a service can write at least half of the time."""
    start = time.monotonic()
    yield
    time.sleep(time.monotonic() - start)


def _prune_piece(connection: sqlite3.Connection, found: list[tuple[int]], until: Position, contexts_only: bool) -> int:
    connection.execute(_CHOSEN)
    connection.execute("DELETE FROM chosen")
    connection.executemany("INSERT INTO chosen (seq) VALUES (?)", found)
    connection.execute(_LEFT_OUT, (until.seq,))
    if contexts_only:
        connection.execute(_WITHOUT_CONTEXT)
    for statement in _FORGET if contexts_only else _DELETE:
        connection.execute(statement)
    count: int = connection.execute("SELECT count(*) FROM chosen").fetchone()[0]
    return count


def shrink(writer: Connections) -> None:
    """Give the room of what was deleted back to the disk."""
    before = None
    while True:
        with _half_of_the_time(), writer() as connection:
            free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            if free in (0, before):  # the same as before: a file that was not made to shrink
                return
            connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
        before = free
