"""The law of what is served: actions come as often as Thompson sampling has them, and propensities say how often.

Random numbers have seeds. What is tested would be found wrong by chance once in a million seeds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bough
import postgres
from bough.service.exports import read_events, write_events
from bough.service.log import open_log
from bough.service.log.base import Log
from bough.service.records import DecisionRow, Position
from service_driver import Driver
from service_http import Connection
from service_posterior import fed, library
from service_process import ServiceProcess

ONCE_IN = 1e-6
TREE = bough.Tree.from_paths([f"{i}/{j}" for i in range(4) for j in range(4)])
ERROR = 0.1  # of a propensity that is estimated, as a part of it
FEW = 5.0  # expected counts below which actions are counted together


def surprise(counts: Counter[Any], probability: dict[Any, float]) -> float:
    """How likely counts at least as far from their law are: the p-value of a chi-squared test."""
    n = counts.total()
    assert counts.keys() <= probability.keys()
    rare = [name for name, chance in probability.items() if n * chance < FEW]
    cells = [(counts[name], n * chance) for name, chance in probability.items() if name not in rare]
    together = sum(counts[name] for name in rare), sum(n * probability[name] for name in rare)
    if together[1] >= FEW:
        cells.append(together)
    found, expected = np.array(cells).T
    return float(stats.chi2.sf(((found - expected) ** 2 / expected).sum(), len(cells) - 1))


def worth(action: str) -> float:
    """The mean reward of an action."""
    return (TREE.actions.index(action) % 3) - 1.0


async def served(process: ServiceProcess, n: int, **asked: Any) -> list[dict[str, Any]]:
    """The answers to so many requests for a decision, by several clients."""

    async def client(share: int) -> list[dict[str, Any]]:
        async with Connection(process.port, process.token) as connection:
            answers = [await connection.call("POST", "/v1/shop/decide", asked) for _ in range(share)]
        assert all(answer.status == 200 for answer in answers)
        return [answer.body for answer in answers]

    parts = await asyncio.gather(*(client(n // 16) for _ in range(16)))
    return [answer for part in parts for answer in part]


def test_actions_served_over_http_have_the_law_of_thompson_sampling(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with ServiceProcess(tmp_path, model=bough.GaussianModel(TREE), seed=2) as process:
        for answer in asyncio.run(served(process, 48)):
            reward = {"decision_id": answer["decision_id"], "value": float(rng.normal(worth(answer["action"]), 1.0))}
            assert process.ask("POST", "/v1/shop/reward", reward).status == 200
        assert process.ask("PUT", "/v1/shop", {"mode": "frozen", "propensity": "always"}).status == 200
        plain = asyncio.run(served(process, 3_200, propensity=False))
        some = list(TREE.actions[::3])
        among = asyncio.run(served(process, 1_600, among=some))
        with closing(open_log(process.data, exclusive=False)) as log:
            own = library(log, 1, tmp_path).posterior
    best = dict(zip(TREE.actions, own.best().probability.tolist(), strict=True))
    restricted = own.best(among=some)
    best_of_some = {name: restricted.of(name) for name in some}

    counts = Counter(answer["action"] for answer in plain)
    assert surprise(counts, best) > ONCE_IN
    assert surprise(counts, dict.fromkeys(TREE.actions, 1 / TREE.n_actions)) < ONCE_IN, "the test has no power"
    assert surprise(Counter(answer["action"] for answer in among), best_of_some) > ONCE_IN

    assert all("propensity" not in answer for answer in plain)
    for answer in among:
        assert answer["propensity"] == pytest.approx(best_of_some[answer["action"]], abs=1e-6)


@pytest.fixture(params=["sqlite", "postgresql"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    """What opens the log of the test."""
    address = postgres.empty_log() if request.param == "postgresql" else None
    return lambda: open_log(None if address else tmp_path / "data", address)


def decisions_of(driver: Driver) -> list[DecisionRow]:
    """All decisions."""
    return [row for _, row in driver.service.log.decisions_after(driver.experiment.id, Position(), 10_000)]


def test_logged_propensities_are_calibrated_while_the_service_learns(tmp_path: Path) -> None:
    """Actions are chosen as often as their propensities add up to, which are those that are logged."""
    rng, size = np.random.default_rng(3), 20
    driver = Driver(lambda: open_log(tmp_path / "data"), bough.GaussianModel(TREE), seed=4)
    driver.configure(propensity="always")
    limit = stats.norm.isf(ONCE_IN / 1_200 / 2)
    counts, expected, variance = Counter[str](), np.zeros(TREE.n_actions), np.zeros(TREE.n_actions)
    for _ in range(60):  # the model changes between these, and not within
        right = driver.experiment.ready_agent().best()
        expected += size * right.probability
        variance += size * right.probability * (1 - right.probability)
        for answer in driver.run(*(driver.deciding() for _ in range(size))):
            counts[answer.action] += 1
            assert abs(answer.propensity - right.of(answer.action)) < limit * ERROR * right.of(answer.action)
            if rng.random() < 0.2:
                driver.reward(answer.decision_id, float(rng.normal(worth(answer.action) / 4, 3.0)))
    driver.close()
    often = expected >= 4 * FEW
    found = np.array([counts[name] for name in TREE.actions])
    assert often.sum() >= 5
    assert (abs(found - expected)[often] < limit * np.sqrt(variance[often])).all()


@pytest.mark.parametrize("contextual", [False, True])
def test_propensities_that_come_later_are_those_of_the_model_as_it_was(
    make_log: Callable[[], Log], tmp_path: Path, contextual: bool
) -> None:
    """As those that come at once are; also after changes of the catalogue, snapshots and restarts."""
    rng, samples = np.random.default_rng(5), 2_000
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0] if contextual else 0.0)
    driver = Driver(make_log, model, seed=6)
    gone = TREE.actions[3]
    for round, when in enumerate(("always", "later", "later", "always")):
        driver.configure(propensity=when, samples=samples)
        for _ in range(10):
            context = rng.normal(size=2).tolist() if contextual else None
            answer = driver.decide(context=context, exclude=[TREE.actions[0]] if rng.random() < 0.3 else None)
            driver.reward(answer.decision_id, float(rng.normal(2.0, 1.0)))
        if round == 1:
            driver.snapshot()
            driver.one(driver.changing("retire", gone))
            driver.restart()
    driver.configure(propensity="later", samples=samples)
    driver.keep()
    rows, id = decisions_of(driver), driver.experiment.id
    write_events(tmp_path / "events.ndjson", driver.service.log, id)
    driver.close()
    files: dict[str, bytes] = {}
    records = list(read_events(tmp_path / "events.ndjson", files))
    limit, n_exact = stats.norm.isf(ONCE_IN / len(rows) / 2), 0
    for row in rows:
        until = Position(row.learned_xid, row.learned_seq)
        agent = fed([record for record in records if record.position <= until], files)
        exclude = (row.offered or {}).get("exclude")
        right = agent.best(row.context, exclude=exclude, samples=samples, seed=7).of(row.actions[0])
        assert row.propensity is not None
        apart = abs(row.propensity[0] - right)
        n_exact += apart < 1e-6
        assert apart < limit * np.hypot(ERROR * right, np.sqrt(right / samples) if contextual else 0.0)
    assert len(rows) == 40
    assert contextual or n_exact >= 20
