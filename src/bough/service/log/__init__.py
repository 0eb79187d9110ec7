"""Where the log is kept: SQLite for one process, PostgreSQL for many."""

from __future__ import annotations

from pathlib import Path

from bough.service.log.base import Log


def open_log(data: Path | None = None, database: str | None = None, *, exclusive: bool = True) -> Log:
    """The log in a folder, which is made where it is missing, or in a PostgreSQL database, by its address.

    A command that works beside a service is not `exclusive`; in PostgreSQL nobody is.
    """
    if (data is None) == (database is None):
        raise ValueError("give either a folder, --data DIR, or a database, --database postgresql://...")
    if database is not None:
        from bough.service.log.postgres import PostgresLog

        return PostgresLog(database)
    assert data is not None
    from bough.service.log.sqlite import SqliteLog

    return SqliteLog(data, exclusive)
