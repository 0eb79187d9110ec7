"""The service as a whole, where several things happen at once, or one of them fails."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import pytest

import bough
import postgres
from bough.service import handlers, service, writer
from bough.service.access import Events
from bough.service.app import App
from bough.service.changes import first_model
from bough.service.exports import Stream
from bough.service.files import model_bytes
from bough.service.handlers import HANDLERS, Call
from bough.service.log import open_log
from bough.service.log.base import Log, LogAwayError, LogError, LogFullError
from bough.service.log.sqlite import SqliteLog
from bough.service.problems import Problem
from bough.service.records import ModelRow
from bough.service.schema import DecisionId, EvaluateBody, ExperimentConfig, Reward, Rewards
from bough.service.service import Service
from bough.service.settings import Settings
from bough.service.startup import READY
from service_driver import Driver

MODEL = bough.GaussianModel(bough.Tree.from_paths(["home/kettle", "home/spade", "food/tea"]))


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    found = Driver(lambda: SqliteLog(tmp_path / "data"), MODEL)
    yield found
    found.close()


def call(driver: Driver, body: Any = None, **parameters: str) -> Call:
    """A request that has been read and allowed."""
    return Call(driver.service, parameters, driver.experiment, body, None, "test")


def said(driver: Driver) -> str:
    """All that the service has printed."""
    driver.service.events.flush()
    return driver.said.getvalue().decode()


def failing(log: Log, error: LogError, times: int) -> Any:
    """Have so many commits of a log fail."""
    commit, left = log.commit, [times]

    def fail() -> None:
        if left[0]:
            left[0] -= 1
            log.rollback()
            raise error
        commit()

    return mock.patch.object(log, "commit", fail)


# -- what is written -------------------------------------------------------------------------------


def test_a_database_that_is_away_is_asked_once_more_for_all_that_waits_and_not_for_each(driver: Driver) -> None:
    log = driver.service.log
    with (
        failing(log, LogAwayError("PostgreSQL does not answer: at db.example"), times=2),
        mock.patch.object(log, "begin", wraps=log.begin) as begin,
    ):
        found = driver.run(*(driver.deciding() for _ in range(50)), learn=False)
    assert begin.call_count == 2
    assert {one.code for one in found} == {"not-written"}
    assert not [one for one in found if "db.example" in one.detail]
    assert "db.example" in said(driver)  # whose service it is can see where
    with failing(log, LogAwayError("away"), times=1):
        assert all(one.action for one in driver.run(*(driver.deciding() for _ in range(50)), learn=False))


def test_that_commits_fail_is_said_once_and_held_against_the_service_only_for_a_while(driver: Driver) -> None:
    desk = driver.service.writer
    with failing(driver.service.log, LogFullError("the disk is full"), times=3):
        for _ in range(3):
            assert driver.attempt(driver.deciding()) == "not-written"
    assert said(driver).count("the log could not be written") == 1
    with pytest.raises(Problem, match="own log says why"):
        driver.one(HANDLERS["ready"](call(driver)))
    assert desk.failure == "the disk is full"
    with mock.patch.object(writer, "_REMEMBERED", 0.0):
        assert desk.failure is None  # or a balancer would never send what shows that it is over
        assert driver.one(HANDLERS["ready"](call(driver))).status == "ready"


def test_other_requests_come_in_between_a_large_batch_of_rewards(driver: Driver) -> None:
    batch = Rewards(rewards=[Reward(decision_id=f"unknown{i}", value=1.0) for i in range(3_000)])
    order: list[str] = []

    async def noted(name: str, work: Any) -> Any:
        found = await work
        order.append(name)
        return found

    async def later() -> Any:
        await asyncio.sleep(0)
        return await driver.deciding()

    results, _ = driver.run(noted("batch", HANDLERS["rewards"](call(driver, batch))), noted("decide", later()))
    assert order == ["decide", "batch"]
    assert results.refused == 3_000
    assert [one.decision_id for one in results.results] == [one.decision_id for one in batch.rewards]


def test_to_revoke_what_is_no_key_leaves_nothing_in_the_log(driver: Driver) -> None:
    end = driver.service.log.end()
    assert driver.attempt(HANDLERS["revoke_key"](call(driver, id="k0"))) == "unknown-key"
    assert driver.service.log.end() == end


def test_a_log_that_cannot_be_read_at_the_start_is_read_again(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "data")
    first_model(log, "shop", model_bytes(MODEL), 0.0)
    found = Service(log, Settings(), Events(io.BytesIO()), seed=0)
    read, left = log.read_after, [2]

    def fail(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise LogError("the database is away")
        return read(*arguments)

    async def run() -> None:
        await found.start()
        while found.is_replaying:
            await asyncio.sleep(0.01)
        assert found.experiment("shop").model_version == 1
        await found.stop()

    with mock.patch.object(log, "read_after", fail), mock.patch.multiple(service, warm_up=mock.DEFAULT, _AGAIN=0.01):
        asyncio.run(asyncio.wait_for(run(), 60.0))
    assert left == [0]


def test_who_asks_before_it_is_ready_is_told_what_it_does(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "data")
    first_model(log, "shop", model_bytes(MODEL), 0.0)
    told: list[str] = []
    found = Service(log, Settings(), Events(io.BytesIO()), seed=0, tell=told.append)
    may_compile, may_end = threading.Event(), threading.Event()

    def warm_up(_: Any) -> None:
        assert may_compile.wait(60.0)
        numba.njit(lambda one: one + 1)(1)
        assert may_end.wait(60.0)

    async def problem(wanted: str) -> Problem:
        while True:
            with pytest.raises(Problem) as caught:
                found.experiment("shop")
            if wanted in caught.value.detail:
                return caught.value
            await asyncio.sleep(0.01)

    async def run() -> None:
        assert (await problem("the log is being replayed")).headers == {"retry-after": "1"}
        await found.start()
        await problem("made ready to decide")
        assert told == []  # all that was needed was on the disk
        may_compile.set()
        compiling = await problem("code is being compiled, which takes about a minute on a new machine")
        assert (compiling.code, compiling.headers) == ("starting", {"retry-after": "5"})
        may_end.set()
        while found.is_replaying:
            await asyncio.sleep(0.01)
        assert found.experiment("shop").model_version == 1
        await found.stop()

    with mock.patch.object(service, "warm_up", warm_up):
        asyncio.run(asyncio.wait_for(run(), 60.0))
    assert told == ["code is being compiled, which takes about a minute on a new machine", READY]


# -- experiments and models ------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    """What opens the log of the test, as often as wanted."""
    address = postgres.empty_log() if request.param == "postgres" else None
    return lambda: open_log(None if address else tmp_path / "data", address, exclusive=False)


def test_two_threads_that_look_for_a_new_experiment_find_the_same_one(make_log: Callable[[], Log]) -> None:
    log, other = make_log(), make_log()
    found = Service(log, Settings(), Events(io.BytesIO()), lambda: 0.0)
    with other.transaction() as transaction:
        row = transaction.add_experiment("new", {}, 0.0)
    restored, made = service.restored, []

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.05)  # so that both threads are in here, if they can be
        made.append(restored(*arguments))
        return made[-1]

    with mock.patch.object(service, "restored", slowly):
        threads = [threading.Thread(target=found.experiment_of, args=(row.id,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [one.experiment for one in made] == [found.experiment_of(row.id)]
    log.close()
    other.close()


def test_the_loop_does_not_wait_for_the_database_to_look_for_an_experiment(driver: Driver) -> None:
    looked, log = [], driver.service.log
    experiments = log.experiments

    def look() -> Any:
        looked.append(threading.current_thread())
        return experiments()

    with mock.patch.object(log, "experiments", look):
        assert driver.attempt(driver.service.find("nowhere")) == "unknown-experiment"
        driver.one(driver.service.changer.configure("new", ExperimentConfig(), "test"))
    assert looked
    assert threading.main_thread() not in looked


def test_a_version_of_a_model_that_could_not_be_made_is_passed_over(driver: Driver) -> None:
    with driver.service.log.transaction() as transaction:
        transaction.add_model(ModelRow(driver.experiment.id, 2, "0" * 64, 0))  # whose change was quarantined
    other = bough.GaussianModel(MODEL.tree, noise_variance=2.0)
    accepted = driver.one(driver.service.changer.put_model(driver.experiment, model_bytes(other), "test"))
    assert accepted.model_version == 3


def test_a_model_is_warmed_up_before_it_decides_and_not_in_the_loop(driver: Driver) -> None:
    warmed = []

    def warm(file: Any, half_life: float | None) -> None:
        warmed.append(
            (threading.current_thread() is threading.main_thread(), driver.experiment.model_version, half_life)
        )

    with mock.patch("bough.service.changes.warm", warm), mock.patch("bough.service.tail.warm", warm):
        other = bough.BernoulliModel(MODEL.tree)
        driver.one(driver.service.changer.put_model(driver.experiment, model_bytes(other), "test", afresh=True))
    assert warmed == [(False, 1, None)] * 2
    assert driver.experiment.model_version == 2


def test_a_model_that_needs_what_is_not_installed_is_refused(driver: Driver) -> None:
    other = model_bytes(bough.GaussianModel(MODEL.tree, noise_variance=3.0))
    with mock.patch("bough.service.changes.warm", side_effect=ValueError("it takes scikit-learn; pip install it")):
        assert driver.attempt(driver.service.changer.put_model(driver.experiment, other, "test")) == "not-installed"
    assert len(driver.service.log.models(driver.experiment.id)) == 1


def test_an_evaluation_without_a_frame_library_says_what_the_operator_installs(driver: Driver) -> None:
    for _ in range(3):
        driver.run(driver.rewarding(driver.one(driver.deciding(propensity=True)).decision_id, 1.0))
    with mock.patch("bough._frames.find_spec", return_value=None), pytest.raises(Problem) as found:
        driver.one(HANDLERS["evaluate"](call(driver, EvaluateBody())))
    assert (found.value.code, found.value.status) == ("not-installed", 501)
    assert str(found.value.remedy).startswith("pip install '.[frames]' in a clone")


def test_the_file_of_the_model_is_that_of_the_version_that_decided_when_it_was_asked_for(driver: Driver) -> None:
    other = model_bytes(bough.GaussianModel(MODEL.tree, noise_variance=2.0))
    models = driver.service.log.models

    def slowly(experiment: int) -> Any:
        rows = models(experiment)
        time.sleep(0.3)  # another version is there before this one is looked for
        return rows

    async def change() -> Any:
        await asyncio.sleep(0.05)
        with mock.patch.object(driver.service.log, "models", models):
            return await driver.service.changer.put_model(driver.experiment, other, "test")

    with mock.patch.object(driver.service.log, "models", slowly):
        reply, accepted = driver.run(HANDLERS["model"](call(driver)), change())
    assert accepted.model_version == 2
    assert reply.body == model_bytes(MODEL)


# -- what takes long -------------------------------------------------------------------------------


def test_one_evaluation_runs_at_a_time(driver: Driver) -> None:
    running, done = threading.Event(), threading.Event()

    def judged(*_: Any) -> str:
        running.set()
        assert done.wait(60.0)
        return "judged"

    async def second() -> Any:
        await asyncio.to_thread(running.wait, 60.0)
        try:
            return await HANDLERS["evaluate"](call(driver))
        finally:
            done.set()

    with mock.patch.object(handlers, "judged", judged):
        first, refused = driver.run(HANDLERS["evaluate"](call(driver)), second())
    assert first == "judged"
    assert (refused.code, refused.remedy) == ("conflict", "wait until it is done")


async def parts(*given: bytes | Exception) -> AsyncIterator[bytes]:
    for part in given:
        if isinstance(part, Exception):
            raise part
        yield part


def answered(driver: Driver, *given: bytes | Exception) -> tuple[list[Any], str]:
    """What an export in parts is answered with, and what is in the log then."""
    token, sent = _token(driver), []
    scope = {"type": "http", "method": "GET", "raw_path": b"/v1/shop/export", "query_string": b""}
    headers = [(b"authorization", f"Bearer {token}".encode())]

    async def send(message: Any) -> None:
        sent.append(message)

    async def export(_: Call) -> Stream:
        return Stream(parts(*given), "text/plain", "shop.txt")

    with mock.patch.dict(HANDLERS, {"export": export}):
        driver.one(App(driver.service)({**scope, "headers": headers}, None, send))  # type: ignore[arg-type]
    return sent, said(driver)


def _token(driver: Driver) -> str:
    made = driver.one(HANDLERS["create_key"](call(driver, mock.Mock(scopes=["read"], experiment=None, rate=None))))
    token: str = made.body.token
    return token


def test_an_export_comes_in_parts(driver: Driver) -> None:
    sent, _ = answered(driver, b"one", b"two")
    assert sent[0]["status"] == 200
    assert b"".join(one["body"] for one in sent[1:]) == b"onetwo"
    assert [one.get("more_body", False) for one in sent[1:]] == [True, True, False]


def test_an_export_that_fails_at_once_is_a_problem(driver: Driver) -> None:
    sent, _ = answered(driver, LogError("the database is away"))
    assert sent[0]["status"] == 503


def test_an_export_that_fails_later_is_not_complete_and_the_log_says_so_without_what_was_in_it(driver: Driver) -> None:
    sent, log = answered(driver, b"one", ValueError("the context is 'marker'"))
    assert sent[0]["status"] == 200
    assert sent[-1]["more_body"]  # and so the server closes the connection
    assert "could not be sent to its end" in log
    assert "marker" not in log


def test_a_reward_can_be_taken_back_only_once(driver: Driver) -> None:
    id = driver.decide().decision_id
    driver.reward(id, 1.0)
    retract = HANDLERS["retract"]
    first = driver.one(retract(call(driver, DecisionId(decision_id=id))))
    again = driver.one(retract(call(driver, DecisionId(decision_id=id))))
    assert (first.replayed, again.replayed) == (False, True)
