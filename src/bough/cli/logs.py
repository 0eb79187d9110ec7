"""The log of a service, as the commands open it: errors in one line, and patience with the service beside them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from bough._extras import install

if TYPE_CHECKING:
    from bough.service.log.base import Log, Transaction
    from bough.service.records import ExperimentRow

T = TypeVar("T")
_BUSY_WAIT = 0.005  # seconds between tries to write, while a service does
_PATIENCE = 30.0  # seconds of such tries
_EXTRAS = {
    "dashboard": ("msgspec",),
    "serve": ("msgspec", "uvicorn", "starlette", "httptools", "prometheus_client"),
    "postgres": ("psycopg", "psycopg_pool"),
}


def check_extras(given: argparse.Namespace, extra: str = "serve") -> None:
    """Refuse to go on without the packages that a service needs, and say what installs them."""
    for name in (extra, "postgres") if getattr(given, "database", None) is not None else (extra,):
        missing = next((module for module in _EXTRAS[name] if find_spec(module) is None), None)
        if missing is not None:
            raise ValueError(f"{missing} is not installed; {install(name)}")


def check_folder(given: argparse.Namespace) -> None:
    """Refuse a file in place of the folder of a service."""
    if given.data is not None and given.data.is_file():
        raise ValueError(f"--data is {given.data}, which is a file; give the folder of a service")


@contextmanager
def opened(given: argparse.Namespace, *, make: bool = False) -> Iterator[Log]:
    """The log that --data or --database names, which a service may be using; a folder is made only if `make` is."""
    check_extras(given)
    check_folder(given)
    if given.data is not None and not make and not given.data.is_dir():
        raise ValueError(f"--data is {given.data}, and there is no such folder; give that of a service")
    with in_one_line():
        from bough.service.log import open_log

        log = open_log(given.data, given.database, exclusive=False)
        try:
            yield log
        finally:
            log.close()


@contextmanager
def in_one_line() -> Iterator[None]:
    """Have what a log or an experiment refuses be said in one line."""
    from bough.service.log.base import LogError
    from bough.service.problems import Problem

    try:
        yield
    except (LogError, Problem) as error:
        raise ValueError(str(error)) from error


def written(log: Log, work: Callable[[Transaction], T]) -> T:
    """What work returns, in a transaction; again and again while a service writes."""
    from bough.service.log.base import LogBusyError

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with log.transaction() as transaction:
                return work(transaction)
        except LogBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(_BUSY_WAIT)


def experiments_in(log: Log, name: str | None) -> list[ExperimentRow]:
    """The experiment of a name, or all where there is none."""
    rows = log.experiments()
    found = [row for row in rows if name in (None, row.name)]
    if not found:
        there = ", ".join(row.name for row in rows) or "none"
        asked = "no experiment" if name is None else f"no experiment {name!r}"
        raise ValueError(f"there is {asked}; those that there are: {there}")
    return found


def moment(text: str | None, option: str) -> float | None:
    """A time of the command line, in seconds since 1970.

    >>> moment("1970-01-02", "--since")
    86400.0
    """
    if text is None:
        return None
    try:
        time_of_day = datetime.fromisoformat(text)
        return (time_of_day if time_of_day.tzinfo else time_of_day.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{option} is {text!r}; give a time such as 2026-01-01 or 2026-01-01T12:30") from None


def said(at: float | None) -> str | None:
    """A time as the commands print it.

    >>> said(86400.0)
    '1970-01-02T00:00:00Z'
    """
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def plain_row(**columns: Any) -> dict[str, Any]:
    """A row of a JSON document, whose times are text."""
    return {name: said(value) if name in ("created", "revoked") else value for name, value in columns.items()}
