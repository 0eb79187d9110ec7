"""Decisions that can be logged: what they cost beside plain ones, and how well propensities are known."""

import time

import numpy as np
import pytest

import bough
from bough.policies import propensity as module


def played(model, rounds):
    """HierTS after that many rounds on a problem drawn from its model."""
    rng = np.random.default_rng(1)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=0)
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, float(truth[model.tree.index(action)] + rng.normal()))
    return agent


def _take_all_draws(monkeypatch):
    """Have propensities take all of their samples, and none be computed without."""
    monkeypatch.setattr(module, "PRECISE", 0.0)
    monkeypatch.setattr(module, "PLACE", np.inf)


@pytest.mark.parametrize(("branching", "height", "name"), [(10, 2, "100"), (10, 6, "10^6")])
def test_a_logged_decision_beside_a_plain_one(benchmark, table, branching, height, name):
    agent = played(bough.problems.constant(branching, height), 300)
    table.ratio(
        benchmark,
        f"decision(samples=0) / decide(), {name} actions, 300 rounds",
        lambda: agent.decision(samples=0),
        agent.decide,
        at_most=1.2,
        rounds=50,
        burst=20,
    )


@pytest.mark.parametrize(("branching", "height", "name"), [(10, 2, "100"), (10, 6, "10^6")])
def test_a_sample_of_a_propensity_beside_a_decision(benchmark, table, monkeypatch, branching, height, name):
    agent = played(bough.problems.constant(branching, height), 300)
    _take_all_draws(monkeypatch)
    action = agent.decide()
    table.ratio(
        benchmark,
        f"one sample of propensity() / decide(), {name} actions, 300 rounds",
        lambda: agent.propensity([action], samples=1_000),
        lambda: agent.decide_many(1_000),
        at_most=1.2,
        rounds=10,
    )


@pytest.mark.parametrize("wanted", [1e-2, 1e-4, 1e-6])
def test_the_error_of_a_propensity_beside_counting_for_as_long(benchmark, table, monkeypatch, wanted):
    agent = played(bough.problems.constant(10, 3), 300)
    _take_all_draws(monkeypatch)
    actions = list(agent.posterior.model.tree.actions)
    known = agent.propensity(actions, samples=4_000, seed=5).probability
    action = actions[int(np.argmin(np.abs(np.log(known / wanted))))]
    agent.propensity([action], samples=200, seed=0)
    start = time.perf_counter()
    found = [agent.propensity([action], samples=200, seed=seed).probability[0] for seed in range(100)]
    spent = (time.perf_counter() - start) / len(found)
    start = time.perf_counter()
    agent.decide_many(200)
    decisions = spent / ((time.perf_counter() - start) / 200)  # that counting has time for
    benchmark.pedantic(lambda: None, rounds=1)
    p = float(np.mean(found))
    ratio = np.sqrt(p * (1.0 - p) / decisions) / np.std(found)
    table.note(f"the error of p = {p:.0e} by counting decisions, over that of as long a propensity", f"{ratio:.1f} x")
