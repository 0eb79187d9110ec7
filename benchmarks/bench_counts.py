"""Clicks and counts: the speed of expectation propagation beside the Gaussian posterior's. validation/ has errors."""

import time

import numpy as np
import pytest
from scipy.special import expit

import bough

MILLION = bough.Tree.balanced(10, 6)
VARIANCES = bough.by_depth([0.3, 0.4, 0.2, 0.2, 0.1, 0.1, 0.1])
GAUSSIAN = bough.GaussianModel(MILLION, -3.0, VARIANCES, 0.05)
CLICKS = bough.BernoulliModel(MILLION, -3.0, VARIANCES)


def played(model, rounds: int) -> bough.HierTS:
    """An agent after so many rounds of its own choice, with clicks drawn at random."""
    agent, rng = bough.HierTS(model, seed=0), np.random.default_rng(1)
    for _ in range(rounds):
        agent.update(agent.decide(), float(rng.random() < 0.05))
    return agent


@pytest.fixture(scope="module")
def agents() -> tuple[bough.HierTS, bough.HierTS]:
    """The same log in both models."""
    first = played(CLICKS, 1_000)
    count = first.posterior.count[MILLION.leaves]
    leaves = np.repeat(MILLION.leaves[count > 0], count[count > 0])
    rewards = (np.random.default_rng(2).random(len(leaves)) < 0.05).astype(float)
    agents = bough.HierTS(CLICKS, seed=0), bough.HierTS(GAUSSIAN, seed=0)
    for agent in agents:
        agent.update(leaves, rewards)
    return agents


def test_update(benchmark, table, agents):
    action = int(MILLION.leaves[np.flatnonzero(agents[0].posterior.count[MILLION.leaves])[0]])
    table.ratio(
        benchmark,
        "update of one click, 10^6 actions / of a Gaussian reward",
        lambda: agents[0].update(action, 1.0),
        lambda: agents[1].update(action, 1.0),
        at_most=20,
        rounds=30,
        burst=20,
    )


def test_update_without_python(benchmark, table, agents):
    leaf = int(MILLION.leaves[np.flatnonzero(agents[0].posterior.count[MILLION.leaves])[0]])
    engines = [agent.posterior._engine for agent in agents]
    table.ratio(
        benchmark,
        "  the same in the engine, without checks and names",
        lambda: engines[0].observe_one(leaf, 1.0),
        lambda: engines[1].observe_one(leaf, 1.0),
        at_most=20,
        rounds=30,
        burst=50,
    )


def test_decide(benchmark, table, agents):
    table.ratio(
        benchmark,
        "decide, 10^6 actions, 1,000 clicks / 1,000 Gaussian rewards",
        agents[0].decide,
        agents[1].decide,
        at_most=1.2,
        rounds=100,
        burst=5,
    )


def test_settle(table):
    rng = np.random.default_rng(3)
    leaves = rng.choice(MILLION.leaves, 100_000, replace=False)
    posterior = bough.Posterior(CLICKS)
    start = time.perf_counter()
    posterior.update(leaves, (rng.random(100_000) < 0.05).astype(float))
    table.note("a batch of 10^5 clicks of as many actions, settled", f"{time.perf_counter() - start:.2f} s")


def test_settling_a_large_log(table):
    rng = np.random.default_rng(15)
    model = bough.BernoulliModel(bough.Tree.balanced(20, 2), [-3.0, 0.0, 0.0], bough.by_depth([0.3, 0.5, 0.3]))
    actions, contexts = rng.choice(model.tree.leaves, 40_000), rng.normal(size=(40_000, 3))
    contexts[:, 0] = 1.0
    score = np.einsum("nd,nd->n", model.draw(rng)[actions], contexts)
    log = bough.Observations(actions, (rng.random(40_000) < expit(score)).astype(float), contexts)
    spent = []
    for method in ("laplace", "propagation"):
        bough.Posterior(model).settle((actions[:99], log.reward[:99], contexts[:99]), method=method)  # compiles
        start = time.perf_counter()
        bough.Posterior(model).settle(log, method=method)
        spent.append(time.perf_counter() - start)
    table.note("settle(log), 40,000 rows, d = 3: Laplace, propagation", f"{spent[0]:.2f} s, {spent[1]:.2f} s")


def test_gibbs(table):
    model, rng = bough.problems.clicks(), np.random.default_rng(13)
    log = bough.Observations(model.tree.leaves, rng.binomial(20, 0.05, 1_000), trials=20)
    bough.gibbs(model, log, draws=10, chains=1, seed=0, warmup=0)
    start = time.perf_counter()
    bough.gibbs(model, log, draws=500, chains=1, seed=0, warmup=0)
    table.note("Gibbs sweeps per second, 1,000 actions of 20 trials", f"{500 / (time.perf_counter() - start):.0f}")
