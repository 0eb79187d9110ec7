"""The schema of a log, step by step: each step is a file of SQL, and all that are missing are one transaction.

The files are `sql/{dialect}-{version}.sql`, numbered from 1 without a gap. Statements in them are set apart by empty
lines, so that a statement itself has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Protocol

from bough.service.log.base import LogSchemaError


class Connection(Protocol):
    """A connection of sqlite3 or psycopg that begins and ends transactions only when told to."""

    def execute(self, query: Any, /) -> Any:
        """Run one statement."""
        ...


def steps(dialect: str) -> list[list[str]]:
    """The statements of each step of a dialect, that of version 1 first.

    >>> len(steps("sqlite")) >= 2
    True
    """
    folder = files("bough.service.log") / "sql"
    found: list[list[str]] = []
    while (file := folder / f"{dialect}-{len(found) + 1}.sql").is_file():
        text = file.read_text(encoding="utf-8")
        found.append([part for part in re.split(r"\n\s*\n", text.strip()) if part])
    return found


def migrate(
    connection: Connection,
    dialect: str,
    begin: Sequence[str],
    *,
    allowed: bool = True,
    known: Sequence[Sequence[str]] | None = None,
) -> int:
    """Bring a database to the schema of this bough, whole or not at all, and return the version that it had.

    `begin` are the statements that begin a transaction and keep every other migration out until its end. Repeating it
    does nothing. A database that is newer is refused; so is one that is older where changing it is not `allowed`.
    """
    wanted = steps(dialect) if known is None else known
    for statement in begin:
        connection.execute(statement)
    try:
        connection.execute(_TABLE[dialect])
        version = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0]
        _check(version, len(wanted), allowed)
        for number in range(version + 1, len(wanted) + 1):
            for statement in wanted[number - 1]:
                connection.execute(statement)
            connection.execute(f"INSERT INTO schema_version (version) VALUES ({number})")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise
    return int(version)


_TABLE = {
    "sqlite": "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY) STRICT",
    "postgres": "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY)",
}


def _check(version: int, wanted: int, allowed: bool) -> None:
    if version > wanted:
        raise LogSchemaError(
            f"the log has schema {version}, and this bough knows schemas up to {wanted}; use the newer bough that made "
            "it, or a backup from before it"
        )
    if version < wanted and not allowed:
        raise LogSchemaError(
            f"the log has schema {version}, this bough uses {wanted}, and a service of an older bough is running on "
            "it; stop that service and start it with this bough, which changes the schema"
        )


def _roll_back(connection: Connection) -> None:
    """End the transaction where the database has not done so itself; what went wrong is told by the first error."""
    try:
        connection.execute("ROLLBACK")
    except Exception:
        return
