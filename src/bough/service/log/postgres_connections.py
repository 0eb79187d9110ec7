"""Connections to PostgreSQL: how they are made, what their errors mean, and a few of them that readers share."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from bough.service.log.base import LogAwayError, LogBusyError, LogError, LogFullError, LogSchemaError
from bough.service.log.migrations import migrate, steps

CONNECT_SECONDS = 5
LOCK_SECONDS = 5
"""How long to wait for rows that another process has locked."""
STATEMENT_SECONDS = 30
LARGE_SECONDS = 600
"""How long a statement may take that moves a whole file, or changes the schema."""
IDLE_SECONDS = 60
"""How long a transaction may stand still; while it stands, nobody reads past it."""
SILENCE_SECONDS = 10
"""How long a network may be silent before a connection counts as broken."""
READERS = 4
"""Connections for reading; more threads than these wait for each other."""
OLDEST = 14
"""The oldest PostgreSQL that has all that is used here."""

CHANNEL = "bough"
# The numbers of advisory locks are a database's own; the first of the two says what kind of lock it is.
KEEPER, MIGRATION, USE, CHANGES = (0x626F7500 + kind for kind in range(4))

Connection = psycopg.Connection[tuple[Any, ...]]
_T = TypeVar("_T")

# Every statement here goes by an index. Those that do not are turned off, since a server that has not yet counted the
# rows of a new table, or counted them when they were few, would read all of them for each statement.
_SETTINGS = f"""
SET lock_timeout = '{LOCK_SECONDS}s';
SET statement_timeout = '{STATEMENT_SECONDS}s';
SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';
SET idle_session_timeout = 0;
SET tcp_keepalives_idle = {SILENCE_SECONDS};
SET default_transaction_isolation = 'read committed';
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;
SET jit = off;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""

_BUSY = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock not available in time
}
_FULL = "53100"
_AWAY = ("08", "57P", "53300")  # no connection, a server that stops or starts, too many connections
_MOVED = "25006"  # the server takes no writes: it has become a standby, and another is the primary now


def connect(address: str) -> Connection:
    """A connection that begins and ends transactions only when told to, and whose commits are durable."""
    try:
        asked = conninfo_to_dict(address)
    except psycopg.ProgrammingError:  # which shows the address, and so the password
        raise ValueError("the address of the database cannot be read; give postgresql://user@host/name") from None
    usual: dict[str, Any] = {
        "application_name": "bough",
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": SILENCE_SECONDS,
        "tcp_user_timeout": SILENCE_SECONDS * 1_000,
    }
    connection = psycopg.connect(**{**usual, **asked, "client_encoding": "utf8"}, autocommit=True)
    try:
        _check_server(connection)
        connection.execute(_SETTINGS)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_server(connection: Connection) -> None:
    version = connection.info.server_version // 10_000
    if version < OLDEST:
        raise LogSchemaError(f"the server is PostgreSQL {version}; use {OLDEST} or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise LogSchemaError(
            f"the database has the encoding {encoding}; make one with CREATE DATABASE ... ENCODING 'UTF8'"
        )


def connect_writer(address: str) -> Connection:
    """A connection to append by, to a database that has been brought to the schema of this bough.

    It holds a lock for as long as it lasts, so that nobody changes the schema under a service that is running.
    """
    connection = connect(address)
    try:
        wanted = len(steps("postgres"))
        if _schema(connection) != wanted:
            _migrate(connection)
        connection.execute("SELECT pg_advisory_lock_shared(%s, 0)", (USE,))
        if _schema(connection) != wanted:
            raise LogBusyError("another bough has just changed the schema of the log; try again")
        connection.execute(_RESTORED)
        if connection.execute("SELECT current_setting('fsync')").fetchone() != ("on",):
            warnings.warn("the server has fsync off: a loss of power can lose the log; turn it on", stacklevel=2)
    except BaseException:
        connection.close()
        raise
    return connection


def _schema(connection: Connection) -> int:
    """The version of the schema, 0 where there is none."""
    if connection.execute("SELECT to_regclass('schema_version')").fetchone() == (None,):
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    assert row is not None
    return int(row[0])


def _migrate(connection: Connection) -> None:
    connection.execute("BEGIN")
    connection.execute(f"SET LOCAL lock_timeout = '{LARGE_SECONDS}s'")
    connection.execute(f"SET LOCAL statement_timeout = '{LARGE_SECONDS}s'")
    connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION,))
    unused = connection.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", (USE,)).fetchone() == (True,)
    migrate(connection, "postgres", (), allowed=unused)


# Rows are ordered by the number of their transaction. A database that was restored into another server has rows from
# transactions that this server has yet to count to: they would be hidden, and new rows come before them. So the clock
# is set forward by as much as it lacks. In any other database no row is from a transaction that has not begun.
_RESTORED = """
UPDATE clock SET shift = last.xid + 1 - pg_snapshot_xmax(pg_current_snapshot())::text::bigint
FROM (SELECT greatest(
    (SELECT max(xid) FROM outcomes),
    (SELECT max(xid) FROM changes),
    (SELECT max(xid) FROM snapshots),
    (SELECT max(d.xid) FROM experiments AS e CROSS JOIN LATERAL
        (SELECT xid FROM decisions WHERE experiment = e.id ORDER BY xid DESC LIMIT 1) AS d)
) AS xid) AS last
WHERE last.xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + shift
"""


def meaning(error: Exception) -> LogError:
    """What an error of PostgreSQL is to whoever uses the log.

    Raise it `from None`: the details of PostgreSQL's own errors show whole rows, with contexts.

    >>> meaning(psycopg.errors.DiskFull("could not extend file"))
    LogFullError('the disk of PostgreSQL is full: could not extend file; it goes on when there is room again')
    """
    state = getattr(error, "sqlstate", None)
    if state in _BUSY:
        return LogBusyError(f"another process holds what is to be written: {_said(error)}; try again soon")
    if state == _FULL:
        return LogFullError(f"the disk of PostgreSQL is full: {_said(error)}; it goes on when there is room again")
    if isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(_AWAY)):
        return LogAwayError(f"PostgreSQL does not answer: {_said(error)}")
    return LogError(f"PostgreSQL failed: {_said(error)}")


def _said(error: Exception) -> str:
    """The first line of what PostgreSQL says, without the details, which show rows."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    lines = (primary or str(error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def is_lost(connection: Connection, error: Exception) -> bool:
    """Whether the connection cannot be used any more, or no longer leads to where one can write."""
    return connection.closed or connection.broken or getattr(error, "sqlstate", None) == _MOVED


class Readers:
    """A few connections for reading, for any number of threads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._places = threading.BoundedSemaphore(READERS)
        self._idle: list[Connection] = []
        self._closed = False

    def read(self, work: Callable[[Connection], _T]) -> _T:
        """What work returns, given a connection; it is called again where that has broken since its last use."""
        with self._places:
            try:
                return self._attempt(work)
            except psycopg.Error as error:
                raise meaning(error) from None

    def _attempt(self, work: Callable[[Connection], _T]) -> _T:
        while True:
            try:
                connection, used = self._idle.pop(), True
            except IndexError:
                connection, used = connect(self._address), False
            try:
                found = work(connection)
            except psycopg.Error as error:
                again = used and is_lost(connection, error)
                connection.close()
                if again:
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return found

    def _give_back(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close those that nobody uses; the others when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
