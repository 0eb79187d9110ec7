"""The log in PostgreSQL: any number of services, on any number of machines.

Records are ordered by (xid, seq): the number of the transaction, then that of the record. A sequence alone would not
do, since a number drawn early may be committed late, after a reader has gone past it. A reader stays below the oldest
transaction that is not over, in any database of the server: one that is left open keeps every tail waiting.

Positions stay valid when the database is dumped and restored elsewhere. Give the address of the server itself, and not
of a proxy that shares connections between transactions: locks and notifications belong to a connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TypeVar

try:
    import psycopg
except ModuleNotFoundError as error:
    from bough._extras import install

    raise ModuleNotFoundError(f"PostgreSQL needs psycopg; {install('postgres')}", name=error.name) from error

from bough.service.log.base import LogBusyError, LogError, LogSchemaError
from bough.service.log.postgres_connections import (
    CHANNEL,
    LARGE_SECONDS,
    Connection,
    Readers,
    connect_writer,
    is_lost,
    meaning,
)
from bough.service.log.postgres_pruning import prune
from bough.service.log.postgres_rows import (
    CHANGE,
    DECISION,
    KEY,
    N_DECISION,
    OUTCOME,
    SETTLED,
    STATES,
    decision,
    experiment,
    key,
    key_arrays,
    outcome,
    record,
)
from bough.service.log.postgres_signals import Keeper, Listener
from bough.service.log.postgres_transaction import PostgresTransaction
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

_AFTER = f"(xid, seq) > (%(xid)s, %(seq)s) AND xid < {SETTLED}"
_UNTIL = "(xid, seq) <= (%(to_xid)s, %(to_seq)s) AND experiment = %(experiment)s"
_IN_ORDER = "ORDER BY xid, seq LIMIT %(limit)s"
_READ_AFTER = f"""
(SELECT {OUTCOME} FROM outcomes AS o WHERE {_AFTER} {_IN_ORDER})
UNION ALL
(SELECT {CHANGE} FROM changes AS c WHERE {_AFTER} {_IN_ORDER}) {_IN_ORDER}"""
_RECORDS = f"""
(SELECT {OUTCOME} FROM outcomes AS o WHERE {_AFTER} AND {_UNTIL} {_IN_ORDER})
UNION ALL
(SELECT {CHANGE} FROM changes AS c WHERE {_AFTER} AND {_UNTIL} {_IN_ORDER}) {_IN_ORDER}"""
_END = f"""
(SELECT xid, seq FROM outcomes WHERE xid < {SETTLED} ORDER BY xid DESC, seq DESC LIMIT 1)
UNION ALL
(SELECT xid, seq FROM changes WHERE xid < {SETTLED} ORDER BY xid DESC, seq DESC LIMIT 1)
ORDER BY xid DESC, seq DESC LIMIT 1"""
_DUE = """SELECT experiment, id FROM decisions
WHERE experiment = %s AND open AND closes <= %s ORDER BY closes, seq LIMIT %s"""
_DECISIONS_AFTER = f"""SELECT {DECISION} FROM decisions AS d
WHERE d.experiment = %s AND (d.xid, d.seq) > (%s, %s) AND d.xid < {SETTLED} ORDER BY d.xid, d.seq LIMIT %s"""
_WITHOUT_PROPENSITY = f"""SELECT {DECISION} FROM decisions AS d
WHERE d.experiment = %s AND d.propensity IS NULL ORDER BY d.learned_xid, d.learned_seq, d.seq LIMIT %s"""
_PUT_SNAPSHOT = """INSERT INTO snapshots (experiment, xid, seq, digest, created, data) VALUES (%s, %s, %s, %s, %s, %b)
ON CONFLICT (experiment, xid, seq)
DO UPDATE SET digest = excluded.digest, created = excluded.created, data = excluded.data"""
_DROP_SNAPSHOTS = """DELETE FROM snapshots WHERE experiment = %(experiment)s AND (xid, seq) NOT IN (
    SELECT xid, seq FROM snapshots WHERE experiment = %(experiment)s ORDER BY xid DESC, seq DESC LIMIT %(kept)s)"""
_SNAPSHOTS = """SELECT experiment, xid, seq, digest, created FROM snapshots
WHERE experiment = %s ORDER BY xid DESC, seq DESC"""
_SNAPSHOT = "SELECT data FROM snapshots WHERE experiment = %s AND xid = %s AND seq = %s AND digest = %s"

_KEPT = 3  # snapshots per experiment
_PIECE = 5_000  # records of a stream that are read at once

_T = TypeVar("_T")


class PostgresLog:
    """The log in a database, for any number of services and commands."""

    one_process = False

    def __init__(self, address: str) -> None:
        """The log at an address, postgresql://...; tables are made in an empty database."""
        self._address = address
        self._readers = Readers(address)
        self._transaction: PostgresTransaction | None = None
        self._turn = threading.Lock()
        self._listener, self._keeper = Listener(address), Keeper(address)
        self._closed = False
        try:
            self._writer: Connection | None = connect_writer(address)
        except psycopg.Error as error:
            raise meaning(error) from None

    # -- appending -------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        """A transaction that is committed at the end of the ``with`` statement, and rolled back by an exception."""
        transaction = self.begin()
        try:
            yield transaction
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def begin(self) -> PostgresTransaction:
        """What `transaction` begins with; then call `commit` or `rollback`, which may be in another thread."""
        if not self._turn.acquire(blocking=False):
            raise LogBusyError("another thread writes to the log; try again soon")
        try:
            self._transaction = PostgresTransaction(self._begun(), self._failed)
        except psycopg.Error as error:
            raise meaning(error) from None
        except LogSchemaError as error:
            raise LogError(str(error)) from None
        finally:
            if self._transaction is None:
                self._turn.release()
        return self._transaction

    def _begun(self) -> Connection:
        """The writer's connection in a transaction; a new one where it has broken since its last use."""
        if self._closed:
            raise LogError("the log has been closed; open it again")
        writer = self._writer
        if writer is not None:
            try:
                writer.execute("BEGIN")
                return writer
            except psycopg.Error:
                self._drop_writer()
        self._writer = writer = connect_writer(self._address)
        writer.execute("BEGIN")
        return writer

    def commit(self) -> None:
        """Keep what was appended since `begin`: when this returns, it is durable.

        Where the connection breaks meanwhile, nobody knows whether it was kept: that is a `LogError` too, and asking
        again by the same ids tells.
        """
        transaction, writer = self._transaction, self._writer
        if transaction is None or writer is None:
            raise LogError("there is no transaction to commit: it failed, or was never begun")
        try:
            # The notification comes after: one inside has all processes of a server sync one after the other.
            done = writer.execute(f"COMMIT; NOTIFY {CHANNEL}" if transaction.has_records else "COMMIT")
            if done.statusmessage != "COMMIT":
                raise psycopg.OperationalError("the transaction had failed, and was rolled back")
        except psycopg.errors.ProgramLimitExceeded:
            pass  # the queue of notifications is full, of which those who wait are told by time
        except psycopg.Error as error:
            raise self._failed(error) from None
        self._end()

    def rollback(self) -> None:
        """Keep nothing of what was appended since `begin`; where it has failed already, nothing happens."""
        if self._transaction is None:
            return
        try:
            if self._writer is not None:
                self._writer.execute("ROLLBACK")
        except psycopg.Error:
            self._drop_writer()  # which ends the transaction as well
        finally:
            self._end()

    def _failed(self, error: Exception) -> LogError:
        """Roll back after an error, and say what it means."""
        if self._writer is not None and is_lost(self._writer, error):
            self._drop_writer()
        self.rollback()
        return meaning(error)

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _end(self) -> None:
        if self._transaction is not None:
            self._transaction.ended = True
            self._transaction = None
            self._turn.release()

    # -- reading ---------------------------------------------------------------------------------

    def read_after(self, position: Position, limit: int) -> list[Record]:
        """The records after a position, of all experiments, in order; never one that another could still precede."""
        asked = {"xid": position.xid, "seq": position.seq, "limit": limit}
        return [record(row) for row in self._rows(_READ_AFTER, asked)]

    def wait(self, timeout: float) -> bool:
        """Wait until another process has appended something, or for so long; whether something may have been."""
        writer = self._writer
        return self._listener.wait(timeout, None if writer is None else writer.info.backend_pid)

    def end(self) -> Position:
        """The position of the last record that `read_after` gives now.

        There may be later ones, which are committed already and have to wait for a transaction that began before.
        """
        return next((Position(*row) for row in self._rows(_END)), Position())

    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Decisions with their outcomes, as they are now."""
        found: dict[Key, State] = {}
        for row in self._rows(STATES, key_arrays(keys)) if keys else ():
            key = Key(row[2], row[3])
            if key not in found:
                found[key] = State(decision(row[:N_DECISION]), [])
            if row[N_DECISION] is not None:
                found[key].outcomes.append(outcome(row[N_DECISION:]))
        for state in found.values():
            state.outcomes.sort(key=attrgetter("xid", "seq"))
        return found

    def due(self, experiment: int, now: float, limit: int) -> list[Key]:
        """Open decisions whose windows have closed, the oldest first."""
        return [Key(*row) for row in self._rows(_DUE, (experiment, now, limit))]

    def n_open(self, experiment: int) -> int:
        """How many decisions wait for their windows to close."""
        return int(self._rows("SELECT count(*) FROM decisions WHERE experiment = %s AND open", (experiment,))[0][0])

    def decisions_after(self, experiment: int, position: Position, limit: int) -> list[tuple[Position, DecisionRow]]:
        """The decisions of an experiment in the order in which they were logged, from a position of their own on."""
        rows = self._rows(_DECISIONS_AFTER, (experiment, *position, limit))
        return [(Position(row[0], row[1]), decision(row)) for row in rows]

    def records(self, experiment: int, since: Position, until: Position) -> Iterator[Record]:
        """The records of an experiment, after one position and up to another; a stream.

        It is read in pieces, each a statement of its own, so that one who reads slowly holds nothing up.
        """
        asked = {"experiment": experiment, "to_xid": until.xid, "to_seq": until.seq, "limit": _PIECE}
        while True:
            rows = self._rows(_RECORDS, {**asked, "xid": since.xid, "seq": since.seq})
            yield from map(record, rows)
            if len(rows) < _PIECE:
                return
            since = Position(*rows[-1][:2])

    def without_propensity(self, experiment: int, limit: int) -> list[DecisionRow]:
        """Decisions that have no propensity yet, in the order of what the model had learned."""
        return [decision(row) for row in self._rows(_WITHOUT_PROPENSITY, (experiment, limit))]

    def experiments(self) -> list[ExperimentRow]:
        """All experiments."""
        return [experiment(row) for row in self._rows("SELECT id, name, config, created FROM experiments ORDER BY id")]

    def models(self, experiment: int) -> list[ModelRow]:
        """All versions of the model of an experiment, the first one first."""
        query = "SELECT experiment, version, digest, from_seq FROM models WHERE experiment = %s ORDER BY version"
        return [ModelRow(*row) for row in self._rows(query, (experiment,))]

    def file(self, digest: str) -> bytes:
        """The bytes that `put_file` kept; a `KeyError` where there are none."""
        rows = self._rows("SELECT data FROM files WHERE digest = %s", (digest,), large=True)
        if not rows:
            raise KeyError(f"the log has no file {digest!r}")
        return bytes(rows[0][0])

    def keys(self) -> list[KeyRow]:
        """All keys, also those that were revoked."""
        return [key(row) for row in self._rows(f"SELECT {KEY} FROM keys ORDER BY created, id")]

    def quarantined(self) -> list[tuple[Position, str]]:
        """What could not be learned, and why."""
        rows = self._rows("SELECT xid, seq, why FROM quarantine ORDER BY xid, seq")
        return [(Position(xid, seq), why) for xid, seq, why in rows]

    def _rows(self, query: str, asked: Any = None, *, large: bool = False) -> list[tuple[Any, ...]]:
        """What a query finds."""

        def read(connection: Connection) -> list[tuple[Any, ...]]:
            return connection.cursor(binary=True).execute(query, asked).fetchall()

        return self._apart(read, large=True) if large else self._readers.read(read)

    # -- snapshots and pruning -------------------------------------------------------------------

    def put_snapshot(self, row: SnapshotRow, data: bytes) -> None:
        """Keep a snapshot, whole or not at all; the two before it are kept too, older ones go."""

        def put(connection: Connection) -> None:
            connection.execute(_PUT_SNAPSHOT, (row.experiment, row.xid, row.seq, row.digest, row.created, data))
            connection.execute(_DROP_SNAPSHOTS, {"experiment": row.experiment, "kept": _KEPT})

        self._apart(put, large=True)

    def snapshots(self, experiment: int) -> list[SnapshotRow]:
        """The snapshots of an experiment, the newest first."""
        return [SnapshotRow(*row) for row in self._rows(_SNAPSHOTS, (experiment,))]

    def snapshot(self, row: SnapshotRow) -> bytes:
        """The bytes of a snapshot; a `KeyError` where they are gone."""
        rows = self._rows(_SNAPSHOT, (row.experiment, row.xid, row.seq, row.digest), large=True)
        if not rows:
            raise KeyError(f"the snapshot {tuple(row.position)} of experiment {row.experiment} is gone")
        return bytes(rows[0][0])

    def prune(self, experiment: int, before: float, until: Position, *, contexts_only: bool) -> int:
        """Delete contexts, or whole rows, of decisions before a time that are not open, with their outcomes."""
        return prune(self._apart, experiment, before, until, contexts_only=contexts_only)

    def _apart(self, work: Callable[[Connection], _T], *, large: bool = False) -> _T:
        """What work returns, in a transaction of another connection than the writer's."""

        def whole(connection: Connection) -> _T:
            connection.execute("BEGIN")
            if large:
                connection.execute(f"SET LOCAL statement_timeout = '{LARGE_SECONDS}s'")
            found = work(connection)
            connection.execute("COMMIT")
            return found

        return self._readers.read(whole)

    # -- life ------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """Bytes of the database."""
        return {"database": int(self._rows("SELECT pg_database_size(current_database())", ())[0][0])}

    def checkpoint(self) -> None:
        """Nothing: PostgreSQL does so by itself."""

    def try_to_keep(self) -> bool:
        """Become the keeper, or stay it; False where another process is, or PostgreSQL does not answer."""
        return self._keeper.try_to_keep()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self.rollback()
        self._drop_writer()
        self._listener.close()
        self._keeper.close()
        self._readers.close()
