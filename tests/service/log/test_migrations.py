"""An older database becomes a new one, whole or not at all; a newer one is refused."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bough.service.log.base import LogSchemaError
from bough.service.log.migrations import migrate, steps
from bough.service.log.sqlite import SqliteLog
from bough.service.records import Key, Position
from log_rows import a_change, append

SCHEMA_1 = Path(__file__).parents[2] / "fixtures" / "service-schema-1.sql"
STEPS = steps("sqlite")
CURRENT = len(STEPS)


@pytest.fixture
def old(tmp_path):
    """A folder with a database of schema 1."""
    connection = sqlite3.connect(tmp_path / "bough.sqlite")
    connection.executescript(SCHEMA_1.read_text(encoding="utf-8"))
    connection.close()
    return tmp_path


def dump(folder):
    connection = sqlite3.connect(folder / "bough.sqlite")
    found = list(connection.iterdump())
    connection.close()
    return found


def schema(connection):
    """What the tables and indexes are, and the order of the columns."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
    return {name: connection.execute(f"PRAGMA table_xinfo('{name}')").fetchall() for name in names} | {
        f"index {name}": connection.execute(f"PRAGMA index_xinfo('{name}')").fetchall() for name in names
    }


def test_a_database_of_schema_1_has_all_its_rows_in_the_current_schema(old):
    log = SqliteLog(old)
    [first, second, third] = [row for _, row in log.decisions_after(1, Position(), 10)]
    assert [row.id for row in (first, second, third)] == ["d1", "d2", "d3"]
    assert (first.propensity, second.actions, second.context) == ([0.25], ["kettle", 7], [0.5, 1.0])
    assert third.context == {"city": "Zürich"}
    assert log.due(1, 1e10, 10) == [Key(1, "d3")]
    records = log.read_after(Position(), 10)
    assert [row.seq for row in records] == [1, 2, 3, 4, 5]
    assert log.states([Key(1, "d2")])[Key(1, "d2")].outcomes == [records[0], records[4]]
    assert (records[0].action, records[1].action, records[2].body) == (7, "kettle", {"op": "create", "id": "k2"})
    assert (log.file("ab12"), log.models(1)[0].digest) == (b"\x00\xff\x10", "ab12")
    assert [row.name for row in log.experiments()] == ["shop"]
    [key] = log.keys()
    assert key.id == "k1"
    assert log.quarantined() == [(Position(0, 2), "unknown action")]
    append(log, a_change())
    assert log.end() == Position(0, 6)
    log.close()


def test_an_older_database_ends_with_the_schema_of_a_new_one(old, tmp_path_factory):
    new = tmp_path_factory.mktemp("new")
    for folder in (old, new):
        SqliteLog(folder).close()
    connections = [sqlite3.connect(folder / "bough.sqlite") for folder in (old, new)]
    found = [schema(connection) for connection in connections]
    assert found[0] == found[1]
    for connection in connections:
        assert connection.execute("SELECT max(version) FROM schema_version").fetchone() == (CURRENT,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def test_migrating_again_changes_nothing(old):
    SqliteLog(old).close()
    before = dump(old)
    SqliteLog(old, exclusive=False).close()
    assert dump(old) == before


def test_a_newer_schema_is_refused_and_left_as_it_is(old):
    connection = sqlite3.connect(old / "bough.sqlite")
    connection.execute(f"INSERT INTO schema_version VALUES ({CURRENT + 1})")
    connection.commit()
    connection.close()
    before = dump(old)
    for exclusive in (True, False):
        with pytest.raises(LogSchemaError, match=f"has schema {CURRENT + 1}, .* up to {CURRENT}; use the newer bough"):
            SqliteLog(old, exclusive)
    assert dump(old) == before


def test_a_command_does_not_change_the_schema_under_a_running_service(old, monkeypatch):
    monkeypatch.setattr("bough.service.log.migrations.steps", lambda dialect: STEPS[:1])
    service = SqliteLog(old)
    monkeypatch.undo()
    with pytest.raises(LogSchemaError, match="stop that service and start it with this bough"):
        SqliteLog(old, exclusive=False)
    service.close()
    SqliteLog(old, exclusive=False).close()
    connection = sqlite3.connect(old / "bough.sqlite")
    assert connection.execute("SELECT max(version) FROM schema_version").fetchone() == (CURRENT,)
    connection.close()


KILLED = """
import os, signal, sqlite3, sys
from bough.service.log.migrations import migrate

class Mortal:
    def __init__(self, connection, left):
        self.connection, self.left = connection, left

    def execute(self, statement):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return self.connection.execute(statement)

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA cache_size = 1")  # pages go to the disk before the commit
migrate(Mortal(connection, int(sys.argv[2])), "sqlite", ("BEGIN IMMEDIATE",))
"""


@pytest.mark.parametrize("left", [1, 3, 5, 7, 9])
def test_a_migration_that_is_killed_leaves_the_schema_that_was(old, left):
    statements = 4 + sum(map(len, STEPS[1:])) + len(STEPS[1:])  # begin, the table, the version, commit
    assert left < statements
    before = dump(old)
    command = [sys.executable, "-c", KILLED, str(old / "bough.sqlite"), str(left)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert dump(old) == before
    log = SqliteLog(old)
    assert len(log.read_after(Position(), 10)) == 5
    log.close()


def test_a_migration_that_fails_leaves_the_schema_that_was_and_says_why(old):
    before = dump(old)
    connection = sqlite3.connect(old / "bough.sqlite", isolation_level=None)
    broken = [*STEPS, ["CREATE TABLE extra (a TEXT) STRICT", "CREATE TABLE decisions (a TEXT) STRICT"]]
    with pytest.raises(sqlite3.OperationalError, match="decisions already exists"):
        migrate(connection, "sqlite", ("BEGIN IMMEDIATE",), known=broken)
    assert not connection.in_transaction
    assert migrate(connection, "sqlite", ("BEGIN IMMEDIATE",), known=STEPS[:1]) == 1
    connection.close()
    assert dump(old) == before
