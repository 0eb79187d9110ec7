"""kill -9 under load, and a start: nothing that was acknowledged is lost, and nothing is learned twice.

`make soak` does the same hundreds of times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import postgres
from bough.service.log import open_log
from bough.service.log.base import LogError
from bough.service.records import OutcomeRow, Position
from service_crashes import Plan, crash, small_model
from service_driver import Driver
from service_http import Answer, Connection
from service_process import ServiceProcess


def test_nothing_is_lost_and_nothing_learned_twice_on_sqlite(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, model=small_model()) as process:
        report = crash(process, Plan(seed=1, kills=5))
    assert report.wrong == []
    assert report.kills == 5
    assert report.acknowledged > 500
    assert report.changes >= 5


def test_nothing_is_lost_and_nothing_learned_twice_on_postgresql(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, database=postgres.empty_log(), model=small_model()) as process:
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

    with ServiceProcess(tmp_path, database=postgres.empty_log(), model=small_model()) as process:
        report = crash(process, Plan(seed=3, kills=1, what="PostgreSQL"), kill_and_start)
    assert report.wrong == []
    assert without == [503, 503, 503]


@pytest.mark.parametrize(("mutant", "found"), [("acknowledge-before-commit", "lost"), ("learn-twice", "learned twice")])
def test_a_service_with_a_fault_is_found_out(tmp_path: Path, mutant: str, found: str) -> None:
    with ServiceProcess(tmp_path, model=small_model(), mutant=mutant) as process:
        report = crash(process, Plan(seed=4, kills=5))
    assert any(one.startswith(found) for one in report.wrong), report


def test_a_commit_whose_answer_is_lost_is_not_made_again(tmp_path: Path) -> None:
    """The database has committed, and the connection breaks before it says so: each request is tried by itself."""
    driver = Driver(lambda: open_log(tmp_path / "data"), small_model())
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


def test_two_services_that_are_asked_the_same_at_the_same_time_answer_as_one(tmp_path: Path) -> None:
    """On PostgreSQL: one decision per id, one reward per decision, and of two different bodies one is refused."""
    address, n = postgres.empty_log(), 30
    first, second = (ServiceProcess(tmp_path, database=address, model=small_model()) for _ in range(2))
    with first, second:
        second.token = first.token
        connections = [Connection(process.port, first.token) for process in (first, second)]

        async def both(path: str, *bodies: Any) -> list[Answer]:
            found = await asyncio.gather(
                *(one.call("POST", path, body) for one, body in zip(connections, bodies, strict=True))
            )
            return list(found)

        async def ask_all() -> None:
            for number in range(n):
                body = {"decision_id": f"d{number}"}
                answers = await both("/v1/shop/decide", body, body)
                assert [answer.status for answer in answers] == [200, 200]
                assert len({answer.body["action"] for answer in answers}) == 1
                assert sorted(answer.body["replayed"] for answer in answers) == [False, True]
                value = {**body, "value": 1.0}
                answers = await both("/v1/shop/reward", value, {**value, "value": 1.0 + number % 2})
                assert sorted(answer.status for answer in answers) == ([200, 409] if number % 2 else [200, 200])
            ids = [(await connections[0].call("POST", "/v1/shop/decide", {})).body["decision_id"] for _ in range(n)]
            rewards = [{"decision_id": id, "value": 1.0} for id in ids]
            answers = await both("/v1/shop/rewards", {"rewards": rewards}, {"rewards": rewards[::-1]})
            found = [answer.body["results"] for answer in answers]
            assert [one.get("replayed", False) ^ other.get("replayed", False) for one, other in
                    zip(found[0], found[1][::-1], strict=True)] == [True] * n  # fmt: skip
            for connection in connections:
                await connection.close()

        asyncio.run(ask_all())
        for process in (first, second):
            process.until(lambda process=process: process.ask("GET", "/v1/shop").body["observations"] == 2 * n)
    with closing(open_log(None, address, exclusive=False)) as log:
        [experiment] = log.experiments()
        assert len(log.decisions_after(experiment.id, Position(), 1_000)) == 2 * n
        assert sum(isinstance(row, OutcomeRow) for row in log.records(experiment.id, Position(), log.end())) == 2 * n
