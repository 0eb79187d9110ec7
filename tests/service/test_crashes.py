"""kill -9 under load, and a start: nothing that was acknowledged is lost, and nothing is learned twice.

`make soak` does the same hundreds of times.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

import postgres
from bough.service.log import open_log
from bough.service.log.base import LogError
from bough.service.records import Position
from service_crashes import Plan, crash, model
from service_driver import Driver
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
    without: list[int] = []

    def kill_and_start() -> None:
        server.kill()
        process.until(lambda: not process.is_ready())
        without.extend(process.ask("GET", path).status for path in ("/ready", "/v1/shop/decisions/d1", "/v1/none"))
        server.start()

    with ServiceProcess(tmp_path, database=postgres.empty_log(), model=model()) as process:
        report = crash(process, Plan(seed=3, kills=1, what="PostgreSQL"), kill_and_start)
    assert report.wrong == []
    assert without == [503, 503, 503]


@pytest.mark.parametrize(("mutant", "found"), [("acknowledge-before-commit", "lost"), ("learn-twice", "learned twice")])
def test_a_service_with_a_fault_is_found_out(tmp_path: Path, mutant: str, found: str) -> None:
    with ServiceProcess(tmp_path, model=model(), mutant=mutant) as process:
        report = crash(process, Plan(seed=4, kills=5))
    assert any(one.startswith(found) for one in report.wrong), report


def test_a_commit_whose_answer_is_lost_is_not_made_again(tmp_path: Path) -> None:
    """The database has committed, and the connection breaks before it says so: each request is tried by itself."""
    driver = Driver(lambda: open_log(tmp_path / "data"), model())
    log = driver.service.log
    commit = log.commit

    def commit_and_break() -> None:
        commit()
        raise LogError("the connection broke")

    known = driver.decide(decision_id="known")
    with mock.patch.object(log, "commit", _calls(commit_and_break, commit)):
        one, other, reward = driver.attempts(
            driver.deciding(decision_id="d1"), driver.deciding(), driver.rewarding("known", 1.0)
        )
    assert (one.decision_id, other.replayed) == ("d1", True)
    assert (reward.status, known.replayed) == ("learned", False)
    experiment = driver.experiment
    assert len(log.decisions_after(experiment.id, Position(), 9)) == 3
    assert experiment.n_learned == 1
    driver.close()


def _calls(first: Callable[[], None], then: Callable[[], None]) -> Callable[[], None]:
    waiting = [first]

    def call() -> None:
        (waiting.pop() if waiting else then)()

    return call
