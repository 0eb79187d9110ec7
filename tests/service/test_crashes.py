"""kill -9 under load, and a start: nothing that was acknowledged is lost, and nothing is learned twice.

`make soak` does the same hundreds of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import postgres
from service_crashes import Plan, crash, model
from service_process import ServiceProcess


def test_nothing_is_lost_and_nothing_learned_twice_on_sqlite(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, model=model()) as process:
        report = crash(process, Plan(seed=1, kills=5))
    assert report.wrong == []
    assert report.kills == 5


def test_nothing_is_lost_and_nothing_learned_twice_on_postgresql(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, database=postgres.empty_log(), model=model()) as process:
        report = crash(process, Plan(seed=2, kills=3))
    assert report.wrong == []
    assert report.kills == 3


def test_nothing_is_lost_when_postgresql_itself_is_killed(tmp_path: Path) -> None:
    """The service stays: it answers 503 while there is no database, and goes on by itself."""
    server = postgres.server()

    def kill_and_start() -> None:
        server.kill()
        server.start()

    with ServiceProcess(tmp_path, database=postgres.empty_log(), model=model()) as process:
        report = crash(process, Plan(seed=3, kills=1, what="PostgreSQL"), kill_and_start)
    assert report.wrong == []


@pytest.mark.parametrize(("mutant", "found"), [("acknowledge-before-commit", "lost"), ("learn-twice", "learned twice")])
def test_a_service_with_a_fault_is_found_out(tmp_path: Path, mutant: str, found: str) -> None:
    with ServiceProcess(tmp_path, model=model(), mutant=mutant) as process:
        report = crash(process, Plan(seed=4, kills=5))
    assert any(one.startswith(found) for one in report.wrong), report
