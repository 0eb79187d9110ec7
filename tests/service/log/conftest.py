"""Every kind of log, each with a new database per test."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

import postgres
from bough.service.log.base import Log


class MakeLog(Protocol):
    """Opens a log of the test's database; one that is not exclusive is that of a command beside a service."""

    def __call__(self, exclusive: bool = True) -> Log: ...


@contextmanager
def sqlite_logs(folder: Path) -> Iterator[MakeLog]:
    """Logs in one folder."""
    from bough.service.log.sqlite import SqliteLog

    yield lambda exclusive=True: SqliteLog(folder / "data", exclusive)


@contextmanager
def postgres_logs(folder: Path) -> Iterator[MakeLog]:
    """Logs in one database of the tests' own PostgreSQL."""
    address = postgres.empty_log()
    from bough.service.log.postgres import PostgresLog

    yield lambda exclusive=True: PostgresLog(address)


LOGS: dict[str, Callable[[Path], AbstractContextManager[MakeLog]]] = {"sqlite": sqlite_logs, "postgres": postgres_logs}
"""By name: what makes a new database, given an empty folder, and deletes it in the end."""


@pytest.fixture(params=LOGS)
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeLog]:
    """What opens logs of a new database; all of them are closed at the end of the test."""
    opened: list[Log] = []
    with LOGS[request.param](tmp_path) as make:

        def make_and_note(exclusive: bool = True) -> Log:
            opened.append(make(exclusive))
            return opened[-1]

        yield make_and_note
        for log in opened:
            log.close()


@pytest.fixture
def server() -> postgres.Server:
    """The tests' own PostgreSQL."""
    return postgres.server()


@pytest.fixture
def open_postgres() -> Iterator[Callable[[str], Log]]:
    """What opens the log at an address; all of them are closed at the end of the test."""
    postgres.server()  # or the test is skipped
    from bough.service.log.postgres import PostgresLog

    with ExitStack() as opened:
        yield lambda address: opened.enter_context(closing(PostgresLog(address)))


@pytest.fixture
def log(make_log: MakeLog) -> Log:
    """A new log."""
    return make_log()
