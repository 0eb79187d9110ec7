"""The log in SQLite: one folder, one service, one sync per commit."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

from bough.service.log.base import LogBusyError, LogError
from bough.service.log.migrations import migrate
from bough.service.log.snapshot_files import SnapshotFiles, sync_folder
from bough.service.log.sqlite_connections import FolderLock, connect, meaning, patiently, prepare, waiting
from bough.service.log.sqlite_pruning import prune, shrink
from bough.service.log.sqlite_rows import CHANGE, DECISION, KEY, OUTCOME, change, decision, json_object, key, outcome
from bough.service.log.sqlite_transaction import SqliteTransaction, states
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
_DUE = """SELECT experiment, id FROM decisions
WHERE experiment = ? AND open = 1 AND closes <= ? ORDER BY closes, seq LIMIT ?"""
_LAST = "SELECT last FROM counters WHERE name = ?"
_SNAPSHOTS = "SELECT experiment, 0, seq, digest, created FROM snapshots WHERE experiment = ? ORDER BY seq DESC"

_KEPT = 3  # snapshots per experiment
_PIECE = 5_000  # records of a stream that are read at once
_POLL = 0.05  # seconds between looks for what other processes have appended
_LARGE = 4_096  # pages of write-ahead log from which on a checkpoint holds the writer up to finish


class SqliteLog:
    """The log in a folder, for one service; commands may use it at the same time."""

    one_process = True
    synchronous: ClassVar[str] = "FULL"
    """What SQLite calls the setting; tests show that less loses rows when the power fails."""
    vfs: ClassVar[str | None] = None
    """SQLite's way to the disk; None for the usual one."""

    def __init__(self, folder: Path, exclusive: bool = True) -> None:
        """The log in a folder, which is made where it is missing.

        A service is the `exclusive` owner, of which there is one; a command need not be.
        """
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(self._folder.parent)
        self._path = self._folder / "bough.sqlite"
        self._lock = FolderLock(self._folder)
        self._files = SnapshotFiles(self._folder / "snapshots")
        self._readers: list[sqlite3.Connection] = []
        self._transaction: SqliteTransaction | None = None
        self._closed = threading.Event()
        # Who writes beside the writer holds `_aside`, then `_turn`, which the writer holds from begin to the end.
        self._turn, self._aside, self._giving_way = threading.Lock(), threading.Lock(), False
        self._propensity_from: dict[int, int] = {}
        self._open(exclusive)

    def _open(self, exclusive: bool) -> None:
        locked = self._lock.take()
        if exclusive and not locked:
            raise LogError(
                f"{self._lock.owner()} serves from the folder {str(self._folder)!r}; stop it, or give another folder"
            )
        with ExitStack() as failing, self._meaningful():
            failing.callback(self._lock.release)
            self._side = failing.enter_context(closing(self._connect()))
            prepare(self._side)
            self._side.execute("PRAGMA secure_delete = 1")  # what is pruned may be personal
            patiently(self._side, "BEGIN IMMEDIATE")
            migrate(self._side, "sqlite", (), allowed=locked)
            if exclusive:
                self._begin_anew()
            self._writer = failing.enter_context(closing(self._connect()))
            self._watch = failing.enter_context(closing(self._connect()))
            self._seen = self._version()
            failing.pop_all()
        if not exclusive:
            self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, self.synchronous, self.vfs)

    # -- appending -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """A transaction that is committed at the end of the ``with`` statement, and rolled back by an exception."""
        transaction = self.begin()
        try:
            yield transaction
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def begin(self) -> SqliteTransaction:
        """What `transaction` begins with; then call `commit` or `rollback`, which may be in another thread."""
        if self._giving_way or not self._turn.acquire(blocking=False):
            raise LogBusyError("another thread writes to the log; try again soon")
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._turn.release()
            raise meaning(error, self._folder) from error
        self._transaction = SqliteTransaction(self._writer, self._failed)
        return self._transaction

    def commit(self) -> None:
        """Keep what was appended since `begin`: when this returns, it is durable."""
        transaction = self._transaction
        if transaction is None:
            raise LogError("there is no transaction to commit: it failed, or was never begun")
        try:
            transaction.write_counters()
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from error
        self._end()

    def rollback(self) -> None:
        """Keep nothing of what was appended since `begin`; where it has failed already, nothing happens."""
        if self._transaction is not None:
            try:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            finally:
                self._end()

    def _failed(self, error: Exception) -> LogError:
        """Roll back after an error, and say what it means."""
        with suppress(sqlite3.Error):
            self.rollback()
        return meaning(error, self._folder)

    def _end(self) -> None:
        if self._transaction is not None:
            self._transaction.ended = True
            self._transaction = None
            self._turn.release()

    # -- reading ---------------------------------------------------------------------------------

    def read_after(self, position: Position, limit: int) -> list[Record]:
        """The records after a position, of all experiments, in order."""
        with self._reader() as reader:
            reader.execute("BEGIN")  # both queries see one moment, or a record between two could be missed
            outcomes = reader.execute(_OUTCOMES_AFTER, (position.seq, limit)).fetchall()
            changes = reader.execute(_CHANGES_AFTER, (position.seq, limit)).fetchall()
            reader.execute("COMMIT")
        return _merged(outcomes, changes, limit)

    def wait(self, timeout: float) -> bool:
        """Wait until another process has appended something, or for so long; whether something may have been."""
        until = time.monotonic() + timeout
        while not self._closed.is_set():
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            left = until - time.monotonic()
            if left <= 0:
                break
            self._closed.wait(min(left, _POLL))
        return False

    def _version(self) -> int:
        """A number that changes when another connection commits."""
        with self._meaningful():
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

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
        with self._reader() as connection:
            query = "SELECT count(*) FROM decisions WHERE experiment = ? AND open = 1"
            return int(connection.execute(query, (experiment,)).fetchone()[0])

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

    # -- snapshots and pruning -------------------------------------------------------------------

    def put_snapshot(self, row: SnapshotRow, data: bytes) -> None:
        """Keep a snapshot, whole or not at all; the two before it are kept too, older ones go."""
        try:
            self._files.write(row.experiment, row.seq, data)
        except OSError as error:
            raise meaning(error) from error
        values = (row.experiment, row.seq, row.digest, row.created, hashlib.sha256(data).hexdigest())
        with self._beside() as side:
            side.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", values)
            kept = [each[2] for each in side.execute(_SNAPSHOTS, (row.experiment,)).fetchall()[:_KEPT]]
            side.execute("DELETE FROM snapshots WHERE experiment = ? AND seq < ?", (row.experiment, kept[-1]))
        self._files.keep_only(row.experiment, kept)

    def snapshots(self, experiment: int) -> list[SnapshotRow]:
        """The snapshots of an experiment, the newest first."""
        with self._reader() as reader:
            return [SnapshotRow(*row) for row in reader.execute(_SNAPSHOTS, (experiment,))]

    def snapshot(self, row: SnapshotRow) -> bytes:
        """The bytes of a snapshot; a `KeyError` where they are gone, or damaged."""
        query = "SELECT checksum FROM snapshots WHERE experiment = ? AND seq = ?"
        with self._reader() as reader:
            found = reader.execute(query, (row.experiment, row.seq)).fetchone()
        try:
            data = self._files.read(row.experiment, row.seq)
        except OSError:
            data = None
        if found is None or data is None or hashlib.sha256(data).hexdigest() != found[0]:
            raise KeyError(f"the snapshot {row.seq} of experiment {row.experiment} is gone or damaged")
        return data

    def prune(self, experiment: int, before: float, until: Position, *, contexts_only: bool) -> int:
        """Delete contexts, or whole rows, of decisions before a time that are not open, with their outcomes."""
        count = prune(self._reader, self._beside, experiment, before, until, contexts_only=contexts_only)
        if not contexts_only:
            shrink(self._beside)
        self.checkpoint()
        with self._held_up():
            self._checkpoint("TRUNCATE")  # or what was deleted would stay in the write-ahead log for a while
        return count

    @contextmanager
    def _beside(self) -> Iterator[sqlite3.Connection]:
        """A transaction of another connection than the writer's; `begin` gives way to it."""
        with self._held_up(), self._meaningful():
            patiently(self._side, "BEGIN IMMEDIATE")
            try:
                yield self._side
                self._side.execute("COMMIT")
            except BaseException:
                if self._side.in_transaction:
                    self._side.execute("ROLLBACK")
                raise

    @contextmanager
    def _held_up(self) -> Iterator[None]:
        """Have the writer wait; without this it would begin again the moment that it has ended."""
        with self._aside:
            self._giving_way = True
            try:
                with self._turn:
                    yield
            finally:
                self._giving_way = False

    # -- life ------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Move what the write-ahead log holds into the database, beside the writer; call it every few megabytes.

        Where the writer never rests, the log would only grow: a large one is finished while the writer waits, which is
        short, since most has been moved before.
        """
        with self._aside:
            pages = self._checkpoint("PASSIVE")
        if pages > _LARGE:
            with self._held_up():
                self._checkpoint("FULL")
                self._begin_anew()

    def _begin_anew(self) -> None:
        """Use the write-ahead log from its beginning, where all has been moved.

        The first commit into it has two syncs, the header's and its own. This is that commit, so that no request waits
        for both. Where it fails, the disk being full, say, a later one is it.
        """
        try:
            patiently(self._side, "BEGIN IMMEDIATE")
            self._side.execute("UPDATE counters SET last = last + 1 WHERE name = 'begun'")
            self._side.execute("COMMIT")
        except sqlite3.Error:
            if self._side.in_transaction:
                self._side.execute("ROLLBACK")

    def _checkpoint(self, how: str) -> int:
        """How many pages the write-ahead log has, since it was last used from its beginning."""
        with self._meaningful():
            return int(self._side.execute(f"PRAGMA wal_checkpoint({how})").fetchone()[1])

    def sizes(self) -> dict[str, int]:
        """Bytes of the database, of its write-ahead log, and of what in the latter waits for a checkpoint."""
        wal = self._path.with_name(f"{self._path.name}-wal")
        return {
            "database": self._path.stat().st_size,
            "wal": wal.stat().st_size if wal.exists() else 0,
            "waiting": waiting(self._path),
        }

    def try_to_keep(self) -> bool:
        """Whether this is the exclusive owner, which is the keeper too."""
        return self._lock.held

    def close(self) -> None:
        """Close all connections; the service's also leaves nothing in the write-ahead log."""
        if self._closed.is_set():
            return
        self._closed.set()
        self.rollback()
        with self._aside:
            for connection in (self._watch, self._writer, *self._readers):
                connection.close()
            with suppress(LogError):  # what has been committed is durable, in one file or two
                if self._lock.held:
                    self._checkpoint("TRUNCATE")
            self._side.close()
        self._lock.release()

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
