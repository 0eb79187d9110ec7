"""The log in SQLite: one folder, one service, one sync per commit."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from bough.service.log.base import LogBusyError, LogError
from bough.service.log.migrations import migrate
from bough.service.log.snapshot_files import SnapshotFiles, sync_folder
from bough.service.log.sqlite_connections import FolderLock, meaning, patiently, prepare
from bough.service.log.sqlite_pruning import prune, shrink
from bough.service.log.sqlite_reader import SqliteReader
from bough.service.log.sqlite_transaction import SqliteTransaction
from bough.service.log.sqlite_wal_index import WalIndex
from bough.service.records import Position, SnapshotRow

_KEPT = 3  # snapshots per experiment
_POLL = 0.05  # seconds between looks for what other processes have appended
_LARGE = 4_096  # pages of write-ahead log from which on a checkpoint holds the writer up to finish


class SqliteLog(SqliteReader):
    """The log in a folder, for one service; commands may use it at the same time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = SqliteLog(Path(folder))
    ...     with log.transaction() as transaction:
    ...         shop = transaction.add_experiment("shop", {"mode": "learn"}, at=0.0)
    ...     [found] = log.experiments()
    ...     log.close()
    >>> found == shop
    True
    """

    one_process = True

    def __init__(self, folder: Path, exclusive: bool = True) -> None:
        """The log in a folder, which is made where it is missing.

        A service is the `exclusive` owner, of which there is one; a command need not be.
        """
        super().__init__(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(self._folder.parent)
        self._lock = FolderLock(self._folder)
        self._exclusive = exclusive
        self._files = SnapshotFiles(self._folder / "snapshots")
        self._transaction: SqliteTransaction | None = None
        # Who writes beside the writer holds `_aside`, then `_turn`, which the writer holds from begin to the end.
        self._turn, self._aside, self._giving_way = threading.Lock(), threading.Lock(), False
        self._open(exclusive)

    def _open(self, exclusive: bool) -> None:
        # A command that opens the log has the lock for a moment.
        locked = self._lock.take(patience=1.0 if exclusive else 0.0)
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
            self._index = WalIndex(self._path)
            failing.pop_all()
        if not exclusive:
            self._lock.release()

    # -- appending -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        """A transaction that is committed at the end of the ``with`` statement, and rolled back by an exception."""
        transaction = self.begin()
        try:
            yield transaction
        except BaseException:
            if not transaction.ended:
                self.rollback()
            raise
        self.commit()

    def begin(self) -> SqliteTransaction:
        """What `transaction` begins with; then call `commit` or `rollback`, which may be in another thread.

        A service that is busy is told so at once. A command waits: beside a busy service it would seldom be its turn.
        """
        if self._giving_way or not self._turn.acquire(blocking=False):
            raise LogBusyError("another thread writes to the log; try again soon")
        try:
            if self._exclusive:
                self._writer.execute("BEGIN IMMEDIATE")
            else:
                patiently(self._writer, "BEGIN IMMEDIATE")
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
                    with self._meaningful():
                        self._writer.execute("ROLLBACK")
            finally:
                self._end()

    def _failed(self, error: Exception) -> LogError:
        """Roll back after an error, and say what it means."""
        with suppress(LogError):
            self.rollback()
        return meaning(error, self._folder)

    def _end(self) -> None:
        if self._transaction is not None:
            self._transaction.ended = True
            self._transaction = None
            self._turn.release()

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
            newest = "SELECT seq FROM snapshots WHERE experiment = ? ORDER BY seq DESC LIMIT ?"
            kept = [seq for (seq,) in side.execute(newest, (row.experiment, _KEPT))]
            side.execute("DELETE FROM snapshots WHERE experiment = ? AND seq < ?", (row.experiment, kept[-1]))
        self._files.keep_only(row.experiment, kept)

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
            self._begin_anew()
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
            "waiting": self._index.waiting(),
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
        self._index.close()
        self._lock.release()
