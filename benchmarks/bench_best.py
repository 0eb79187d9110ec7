"""How likely each action is to be the best: what that takes for all actions at once, alone and beside decisions."""

import time

import numpy as np
import pytest
from bench_logging import played

import bough


def spent(function, rounds=5):
    """The least time of a few calls, and the least time of the processor, in seconds."""
    times = []
    for _ in range(rounds):
        start, start_cpu = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - start, time.process_time() - start_cpu))
    return tuple(map(min, zip(*times, strict=True)))


def asked_anew(posterior):
    """What asks a posterior as if something had been learned since the last time."""

    def ask():
        posterior._answers.clear()
        return posterior.best()

    return ask


def test_all_probabilities_of_ten_thousand_actions(benchmark, table):
    posterior = played(bough.problems.constant(10, 4), 2_000).posterior
    ask = asked_anew(posterior)
    assert ask().method == "exact"
    wall, processor = spent(ask)
    benchmark.pedantic(ask, rounds=1)
    table.amount("best(), 10^4 actions, 2,000 rounds", wall, 0.3, "s")
    table.note("the same, of the processor", f"{processor:.2f} s")


def test_all_probabilities_of_a_million_actions(benchmark, table):
    model = bough.problems.constant(10, 6)
    posterior, rng = bough.Posterior(model), np.random.default_rng(0)
    tried = rng.choice(model.tree.actions, 10_000, replace=False)
    posterior.update(tried, model.draw(rng)[model.tree.action_nodes(tried)] + rng.normal(size=10_000))
    ask = asked_anew(posterior)
    assert ask().method == "exact"
    wall, processor = spent(ask, rounds=2)
    benchmark.pedantic(ask, rounds=1)
    table.amount("best(), 10^6 actions, 10^4 of them tried", wall, 10.0, "s")
    table.note("the same, of the processor", f"{processor:.2f} s")


@pytest.mark.parametrize(("branching", "height", "name"), [(10, 2, "100"), (10, 3, "1,000"), (10, 4, "10^4")])
def test_exact_probabilities_beside_a_thousand_draws(benchmark, table, branching, height, name):
    agent = played(bough.problems.constant(branching, height), 300)
    table.ratio(
        benchmark,
        f"best() / counting 1,000 decisions, {name} actions, 300 rounds",
        asked_anew(agent.posterior),
        lambda: agent.decide_many(1_000),
        rounds=3,
    )
