"""Replay: whatever a service has been through, its posterior is that of the library, fed with the export."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import bough
import postgres
from bough.service.log import open_log
from bough.service.log.base import Log, LogError
from bough.service.records import ChangeRow, OutcomeRow, Position
from bough.service.schema import ExperimentConfig, TreeBody
from log_rows import a_decision, an_outcome, append
from service_crashes import small_model
from service_driver import Driver
from service_load import Ledger, load
from service_posterior import difference, library, moments, served_moments, settle
from service_process import ServiceProcess

PATHS = ["home/kettle", "home/spade", "food/tea", "food/cake", "food/jam"]
TREE = bough.Tree.from_paths(PATHS)
CONTEXT = [1.0, -0.5]
EXACT, SETTLED = 1e-9, 1e-6


@pytest.fixture(params=["sqlite", "postgresql"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    """What opens the log of the test."""
    address = postgres.empty_log() if request.param == "postgresql" else None
    return lambda: open_log(None if address else tmp_path / "data", address)


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    """Services that are ended with the test."""
    made: list[Driver] = []
    yield made
    for driver in made:
        driver.close()


def rewards(model: Any, rng: np.random.Generator) -> dict[str, Any]:
    """One reward that the model can have."""
    several = rng.random() < 0.3
    if model.kind.name == "bernoulli":
        return {"value": float(rng.integers(0, 4)), "trials": 3.0} if several else {"value": float(rng.integers(0, 2))}
    if model.kind.name == "poisson":
        return {"value": float(rng.poisson(2.0)), "exposure": 1.5} if several else {"value": float(rng.poisson(1.0))}
    return {"value": float(rng.normal(1.0, 2.0))}


def visit(driver: Driver, n: int, rng: np.random.Generator) -> None:
    """Decisions with rewards, of which some come out of order, and some are taken back."""
    model = driver.experiment.ready_agent().posterior.model
    waiting = []
    for _ in range(n):
        driver.now += float(rng.exponential(10.0))
        context = None if model.is_scalar else rng.normal(size=len(CONTEXT)).tolist()
        waiting.append(driver.decide(context=context).decision_id)
        if rng.random() < 0.7:
            id = waiting.pop(int(rng.integers(len(waiting))))
            driver.reward(id, **rewards(model, rng))
            if rng.random() < 0.1 and (model.is_scalar or model.kind.name == "gaussian"):
                driver.one(driver.touching("retract", id))


def check(driver: Driver, folder: Path, half_life: float | None = None) -> None:
    """The service has the library's posterior."""
    experiment = driver.experiment
    agent, log = experiment.ready_agent(), driver.service.log
    own = library(log, experiment.id, folder, half_life)
    records = list(log.records(experiment.id, Position(), log.end()))
    taught = [row for row in records if isinstance(row, OutcomeRow) and row.learn]
    assert experiment.n_learned == len(taught)
    is_exact = agent.posterior.model.kind.is_conjugate
    if not is_exact:
        settle(agent, taught)
    context = None if agent.posterior.model.is_scalar else CONTEXT
    assert difference(moments(agent, context), moments(own, context)) < (EXACT if is_exact else SETTLED)
    assert agent.posterior.n_observations == own.posterior.n_observations
    assert agent.retired == own.retired


KINDS: dict[str, bough.model.Model] = {
    "gaussian": bough.GaussianModel(TREE),
    "noise per action": bough.GaussianModel(TREE, noise=bough.per_action(2.0, 1.0, 0.01)),
    "clicks": bough.BernoulliModel(TREE),
    "counts": bough.PoissonModel(TREE),
    "gaussian contexts": bough.GaussianModel(TREE, mean=[0.0, 0.0]),
    "clicks in contexts": bough.BernoulliModel(TREE, mean=[0.0, 0.0]),
    "counts in contexts": bough.PoissonModel(TREE, mean=[0.0, 0.0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_was_restarted_has_the_posterior_of_the_library(
    make_log: Callable[[], Log], drivers: list[Driver], tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(16)
    driver = Driver(make_log, KINDS[kind])
    drivers.append(driver)
    visit(driver, 30, rng)
    driver.restart()  # from the log alone
    visit(driver, 20, rng)
    driver.snapshot()
    visit(driver, 20, rng)
    driver.restart()  # from a snapshot, and what came after it
    visit(driver, 10, rng)
    driver.restart(gracefully=True)
    check(driver, tmp_path)


@pytest.mark.parametrize("kind", ["gaussian", "noise per action"])
def test_rewards_that_fade_go_by_the_ticks_of_the_log(
    make_log: Callable[[], Log], drivers: list[Driver], tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(17)
    driver = Driver(make_log)
    drivers.append(driver)
    driver.configure(half_life=300.0)
    driver.put_model(KINDS[kind])
    for snapshot in (False, True, False):
        visit(driver, 20, rng)
        driver.keep()
        driver.now += 200.0
        driver.keep()
        if snapshot:
            driver.snapshot()
        visit(driver, 5, rng)
        driver.restart()
    driver.keep()
    assert driver.experiment.ready_agent().now == driver.now
    check(driver, tmp_path, half_life=300.0)


@pytest.mark.parametrize("kind", ["gaussian", "noise per action", "clicks", "gaussian contexts"])
def test_the_posterior_is_the_librarys_after_changes_of_the_catalogue(
    make_log: Callable[[], Log], drivers: list[Driver], tmp_path: Path, kind: str
) -> None:
    rng = np.random.default_rng(18)
    model = KINDS[kind]
    driver = Driver(make_log, model)
    drivers.append(driver)
    visit(driver, 15, rng)
    driver.one(driver.changing("add", ["food/bun", "food/pie"], "food"))
    visit(driver, 10, rng)
    driver.one(driver.changing("retire", "food/tea"))
    driver.one(driver.changing("move", "home/spade", "food"))
    driver.restart()
    visit(driver, 10, rng)
    driver.snapshot()
    driver.one(driver.changing("restore", "food/tea"))
    driver.one(driver.changing("forget", "home/kettle"))
    driver.restart()
    paths = ["home/kettle", "home/lamp", "food/tea-2", "food/cake", "food/bun"]
    body = TreeBody(paths=paths, renamed={"food/tea": "food/tea-2"})
    driver.one(driver.service.changer.put_tree(driver.experiment, body, "test"))
    visit(driver, 10, rng)
    tree = driver.experiment.ready_agent().posterior.model.tree
    driver.put_model(replace(model, tree=tree, covariance=bough.by_depth([0.0, 0.5, 2.0])))
    visit(driver, 10, rng)
    driver.restart()
    check(driver, tmp_path)


def test_two_services_on_postgresql_end_alike(tmp_path: Path) -> None:
    """Both are under load, one is killed, and both have learned all of it in the end."""
    address = postgres.empty_log()
    first, second = (ServiceProcess(tmp_path, database=address, model=small_model()) for _ in range(2))
    with first, second:
        second.token = first.token
        _load_both(first, second, "before", 300)
        second.kill()
        second.start()
        _load_both(first, second, "after", 300)
        with closing(open_log(None, address, exclusive=False)) as log:
            own = library(log, log.experiments()[0].id, tmp_path)
        n = own.posterior.n_observations
        for process in (first, second):
            process.until(lambda process=process: process.ask("GET", "/v1/shop").body["observations"] == n)
            assert difference(served_moments(process, "shop"), moments(own)) < EXACT


def _load_both(first: ServiceProcess, second: ServiceProcess, seed: str, answers: int) -> None:
    ledger = Ledger()

    def is_enough(n: int) -> None:
        ledger.is_over = n >= answers

    ledger.on_acknowledged = is_enough

    async def at_the_same_time() -> None:
        ports = (first.port, second.port)
        loads = [load(port, first.token, ledger, f"{seed}.{i}", 4, ("shop",)) for i, port in enumerate(ports)]
        await asyncio.gather(*loads)

    asyncio.run(at_the_same_time())
    assert ledger.faults == []


# -- what cannot be learned --------------------------------------------------------------------------

ODD = {
    "gaussian": [{"value": 1e308}, {"action": "food/gone"}, {"action": 7}, {"context": [1.0]}, {"trials": 2.0}],
    "clicks": [{"value": 0.5}, {"value": 3.0, "trials": 2.0}, {"value": -1.0}, {"trials": -1.0}, {"exposure": 1.0}],
    "counts": [{"value": -1.0}, {"value": 0.5}, {"exposure": 0.0}, {"exposure": -2.0}, {"value": 1e300}],
    "gaussian contexts": [{"context": [1.0]}, {"context": None}, {"context": {"a": 1.0}}, {"context": [1e308, 1e308]}],
    "clicks in contexts": [{"context": [1.0, 2.0, 3.0]}, {"context": None, "value": 7.0}, {"context": {"b": "x"}}],
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("n_sound", [3, 200])
def test_a_log_with_rows_that_cannot_be_learned_still_starts(
    make_log: Callable[[], Log], drivers: list[Driver], tmp_path: Path, kind: str, n_sound: int
) -> None:
    """They go to quarantine, the metric counts them, and all others are learned; few at a time, and many."""
    model = KINDS[kind]
    driver = Driver(make_log, model)
    drivers.append(driver)
    id, context = driver.experiment.id, None if model.is_scalar else CONTEXT
    rows: list[Any] = []
    for number in range(n_sound):
        rows += [a_decision(f"s{number}", experiment=id), _outcome(f"s{number}", id, context)]
    for number, odd in enumerate(ODD[kind]):
        rows += [a_decision(f"o{number}", experiment=id), _outcome(f"o{number}", id, context, **odd)]
    rows += [a_decision("last", experiment=id), _outcome("last", id, context)]
    append(driver.service.log, *rows)
    driver.restart()
    experiment = driver.experiment
    assert experiment.n_learned == experiment.ready_agent().posterior.n_observations == n_sound + 1
    driver.keep()
    quarantined = driver.service.log.quarantined()
    odd_rows = [row.position for row in rows if isinstance(row, OutcomeRow) and row.decision.startswith("o")]
    assert sorted(position for position, _ in quarantined) == sorted(odd_rows)
    assert all(why for _, why in quarantined)
    assert f"bough_quarantined_total {len(odd_rows)}.0" in driver.service.metrics.page()[0].decode()
    driver.restart()
    assert driver.experiment.n_learned == n_sound + 1
    driver.keep()
    assert len(driver.service.log.quarantined()) == len(odd_rows)


def _outcome(decision: str, experiment: int, usual: Any, **odd: Any) -> OutcomeRow:
    return an_outcome(decision, **({"experiment": experiment, "action": "food/tea", "context": usual} | odd))


def test_rewards_of_actions_that_are_removed_since_stay_learned_as_far_as_they_can(
    make_log: Callable[[], Log], drivers: list[Driver], tmp_path: Path
) -> None:
    driver = Driver(make_log, KINDS["gaussian"])
    drivers.append(driver)
    visit(driver, 20, np.random.default_rng(19))
    id = driver.decide(among=["home/kettle"]).decision_id
    body = TreeBody(paths=["food/tea", "food/cake"], gone="forget")
    driver.one(driver.service.changer.put_tree(driver.experiment, body, "test"))
    assert driver.attempt(driver.rewarding(id, 1.0)) == "unknown-action"
    n = driver.experiment.ready_agent().posterior.n_observations
    driver.restart()
    assert driver.experiment.ready_agent().posterior.n_observations == n
    check(driver, tmp_path)


# -- snapshots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone"])
def test_a_damaged_snapshot_is_passed_over(drivers: list[Driver], tmp_path: Path, damage: str) -> None:
    driver = Driver(lambda: open_log(tmp_path / "data"), KINDS["gaussian"])
    drivers.append(driver)
    rng = np.random.default_rng(20)
    visit(driver, 10, rng)
    driver.snapshot()
    visit(driver, 10, rng)
    seq = driver.snapshot().seq
    driver.end()
    [path] = (tmp_path / "data" / "snapshots").glob(f"*-{seq}.bough")
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        data[len(data) // 2] ^= 0xFF
        path.write_bytes({"cut": bytes(data[: len(data) // 2]), "flipped": bytes(data), "empty": b""}[damage])
    driver.begin()
    assert f"the snapshot at {seq} of shop is passed over" in driver.said.getvalue().decode()
    check(driver, tmp_path)


def test_a_step_of_the_tail_that_fails_half_way_is_not_learned_twice(drivers: list[Driver], tmp_path: Path) -> None:
    """A reward is learned, then the file of a change cannot be read, a snapshot is made, and the service ends."""
    driver = Driver(lambda: open_log(tmp_path / "data"), KINDS["gaussian"])
    drivers.append(driver)
    log, id = driver.service.log, driver.experiment.id
    digest = log.models(id)[0].digest
    change = ChangeRow(id, 1.0, "model", "test", {"digest": digest, "version": 2})
    append(log, a_decision("d1", experiment=id), _outcome("d1", id, None), change)
    with mock.patch.object(log, "file", side_effect=LogError("away")), pytest.raises(LogError):
        driver.run()
    assert driver.experiment.n_learned == 1
    driver.one(driver.service.keeper.snapshot(driver.experiment), learn=False)
    driver.restart()
    assert driver.experiment.ready_agent().posterior.n_observations == 1


def test_traffic_counts_each_reward_once_whatever_snapshots_there_are(drivers: list[Driver], tmp_path: Path) -> None:
    """Experiments have snapshots of different age, and the log is read from the oldest one on."""
    driver = Driver(lambda: open_log(tmp_path / "data"), KINDS["gaussian"])
    drivers.append(driver)
    driver.one(driver.service.changer.configure("other", ExperimentConfig(), "test"))
    visit(driver, 20, np.random.default_rng(21))
    [n] = {sum(span.sums.rewards for span in driver.service.traffic[driver.experiment.id].spans())}
    driver.snapshot()  # of one of them
    driver.restart()
    assert sum(span.sums.rewards for span in driver.service.traffic[driver.experiment.id].spans()) == n > 0
