"""Reading a log in SQLite: beside the writer, which no reader ever keeps waiting."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

from bough.service.log.base import LogError
from bough.service.log.sqlite_connections import connect, meaning
from bough.service.log.sqlite_rows import CHANGE, DECISION, KEY, OUTCOME, change, decision, json_object, key, outcome
from bough.service.log.sqlite_transaction import states
from bough.service.records import (
    DecisionRow,
    ExperimentRow,
    Key,
    KeyRow,
    ModelRow,
    Position,
    Record,
    SnapshotRow,
    State,
)

_OUTCOMES_AFTER = f"SELECT {OUTCOME} FROM outcomes WHERE seq > ? ORDER BY seq LIMIT ?"
_CHANGES_AFTER = f"SELECT {CHANGE} FROM changes WHERE seq > ? ORDER BY seq LIMIT ?"
# NOT INDEXED leaves only the order of seq, which is what is asked for.
_OUTCOMES_BETWEEN = f"""SELECT {OUTCOME} FROM outcomes NOT INDEXED
WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"""
_CHANGES_BETWEEN = f"""SELECT {CHANGE} FROM changes NOT INDEXED
WHERE experiment = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"""
_DECISIONS_AFTER = f"""SELECT {DECISION} FROM decisions NOT INDEXED
WHERE experiment = ? AND seq > ? ORDER BY seq LIMIT ?"""
_WITHOUT_PROPENSITY = f"""SELECT {DECISION} FROM decisions NOT INDEXED
WHERE experiment = ? AND propensity IS NULL AND seq >= ? ORDER BY seq LIMIT ?"""
_N_OPEN = "SELECT count(*) FROM decisions WHERE experiment = ? AND open = 1"
_DUE = """SELECT experiment, id FROM decisions
WHERE experiment = ? AND open = 1 AND closes <= ? ORDER BY closes, seq LIMIT ?"""
_LAST = "SELECT last FROM counters WHERE name = ?"
_SNAPSHOTS = "SELECT experiment, 0, seq, digest, created FROM snapshots WHERE experiment = ? ORDER BY seq DESC"

_PIECE = 5_000  # records of a stream that are read at once


class SqliteReader:
    """What has been committed to the log of a folder, for any number of threads."""

    synchronous: ClassVar[str] = "FULL"
    """What SQLite calls the setting; tests show that less loses rows when the power fails."""
    vfs: ClassVar[str | None] = None
    """SQLite's way to the disk; None for the usual one."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._path = self._folder / "bough.sqlite"
        self._readers: list[sqlite3.Connection] = []
        self._closed = threading.Event()
        self._propensity_from: dict[int, int] = {}

    def read_after(self, position: Position, limit: int) -> list[Record]:
        """The records after a position, of all experiments, in order."""
        with self._reader() as reader:
            reader.execute("BEGIN")  # both queries see one moment, or a record between two could be missed
            outcomes = reader.execute(_OUTCOMES_AFTER, (position.seq, limit)).fetchall()
            changes = reader.execute(_CHANGES_AFTER, (position.seq, limit)).fetchall()
            reader.execute("COMMIT")
        return _merged(outcomes, changes, limit)

    def end(self) -> Position:
        """The position of the last record that there is, or was before it was pruned."""
        with self._reader() as reader:
            return Position(0, reader.execute(_LAST, ("records",)).fetchone()[0])

    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Decisions with their outcomes, as they are now."""
        with self._reader() as reader:
            reader.execute("BEGIN")
            found = states(reader.cursor(), keys)
            reader.execute("COMMIT")
        return found

    def due(self, experiment: int, now: float, limit: int) -> list[Key]:
        """Open decisions whose windows have closed, the oldest first."""
        with self._reader() as reader:
            return [Key(*row) for row in reader.execute(_DUE, (experiment, now, limit))]

    def n_open(self, experiment: int) -> int:
        """How many decisions wait for their windows to close."""
        with self._reader() as reader:
            return int(reader.execute(_N_OPEN, (experiment,)).fetchone()[0])

    def decisions_after(self, experiment: int, position: Position, limit: int) -> list[tuple[Position, DecisionRow]]:
        """The decisions of an experiment in the order in which they were logged, from a position of their own on."""
        with self._reader() as reader:
            rows = reader.execute(_DECISIONS_AFTER, (experiment, position.seq, limit)).fetchall()
        return [(Position(0, row[0]), decision(row)) for row in rows]

    def records(self, experiment: int, since: Position, until: Position) -> Iterator[Record]:
        """The records of an experiment, after one position and up to another; a stream.

        It is read in pieces: a reader that stays would keep the write-ahead log from being used again.
        """
        seq = since.seq
        while seq < until.seq:
            with self._reader() as reader:
                asked = (experiment, seq, until.seq, _PIECE)
                reader.execute("BEGIN")
                outcomes = reader.execute(_OUTCOMES_BETWEEN, asked).fetchall()
                changes = reader.execute(_CHANGES_BETWEEN, asked).fetchall()
                reader.execute("COMMIT")
            found = _merged(outcomes, changes, _PIECE)
            yield from found
            if len(found) < _PIECE:
                return
            seq = found[-1].seq

    def without_propensity(self, experiment: int, limit: int) -> list[DecisionRow]:
        """Decisions that have no propensity yet, in the order of what the model had learned.

        One process decides, so that this is the order in which they were logged, but for those logged together.
        """
        with self._reader() as reader:
            reader.execute("BEGIN")
            last = reader.execute(_LAST, ("decisions",)).fetchone()[0]
            start = self._propensity_from.get(experiment, 0)
            rows = reader.execute(_WITHOUT_PROPENSITY, (experiment, start, limit)).fetchall()
            reader.execute("COMMIT")
        self._propensity_from[experiment] = rows[0][0] if rows else last + 1
        return sorted((decision(row) for row in rows), key=attrgetter("learned_xid", "learned_seq"))

    def experiments(self) -> list[ExperimentRow]:
        """All experiments."""
        with self._reader() as reader:
            rows = reader.execute("SELECT id, name, config, created FROM experiments ORDER BY id").fetchall()
        return [ExperimentRow(id, name, json_object(config), created) for id, name, config, created in rows]

    def models(self, experiment: int) -> list[ModelRow]:
        """All versions of the model of an experiment, the first one first."""
        query = "SELECT experiment, version, digest, from_seq FROM models WHERE experiment = ? ORDER BY version"
        with self._reader() as reader:
            return [ModelRow(*row) for row in reader.execute(query, (experiment,))]

    def file(self, digest: str) -> bytes:
        """The bytes that `put_file` kept; a `KeyError` where there are none."""
        with self._reader() as reader:
            row = reader.execute("SELECT data FROM files WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise KeyError(f"the log has no file {digest!r}")
        data: bytes = row[0]
        return data

    def keys(self) -> list[KeyRow]:
        """All keys, also those that were revoked."""
        with self._reader() as reader:
            return [key(row) for row in reader.execute(f"SELECT {KEY} FROM keys ORDER BY created, id")]

    def quarantined(self) -> list[tuple[Position, str]]:
        """What could not be learned, and why."""
        with self._reader() as reader:
            return [(Position(0, row[0]), row[1]) for row in reader.execute("SELECT seq, why FROM quarantine")]

    def snapshots(self, experiment: int) -> list[SnapshotRow]:
        """The snapshots of an experiment, the newest first."""
        with self._reader() as reader:
            return [SnapshotRow(*row) for row in reader.execute(_SNAPSHOTS, (experiment,))]

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, self.synchronous, self.vfs)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that no other thread uses meanwhile; it sees only what has been committed."""
        if self._closed.is_set():
            raise LogError("the log is closed")
        with self._meaningful():
            try:
                reader = self._readers.pop()
            except IndexError:
                reader = self._connect()
                reader.execute("PRAGMA query_only = 1")
            try:
                yield reader
            except BaseException:
                reader.close()
                raise
            if self._closed.is_set():
                reader.close()
            else:
                self._readers.append(reader)

    @contextmanager
    def _meaningful(self) -> Iterator[None]:
        """Errors of sqlite3 as those of the log."""
        try:
            yield
        except sqlite3.Error as error:
            raise meaning(error, self._folder) from error


def _merged(outcomes: list[tuple[object, ...]], changes: list[tuple[object, ...]], limit: int) -> list[Record]:
    """Records in order from the rows of both kinds, of each of which there are the first `limit`."""
    if not changes:
        return [outcome(row) for row in outcomes]
    records: list[Record] = [*map(outcome, outcomes), *map(change, changes)]
    return sorted(records, key=attrgetter("seq"))[:limit]
