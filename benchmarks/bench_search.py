"""Deciding by capped rates: against the plain search, from nothing, while learning, and in a closed loop."""

import time

import numpy as np
import pytest
from search_runs import capped_time, plain, plain_time, shelves, species, stretches, timed, tried

import bough

KERNELS = {}


@pytest.mark.parametrize(("height", "target"), [(4, 20), (5, 150), (6, 1_000)])
def test_everything_tried(benchmark, table, height, target):
    agent, _ = tried(bough.problems.constant(10, height), 20_000)
    touched = agent.posterior._engine.slots.count
    ours, looked = benchmark.pedantic(lambda: capped_time(agent), rounds=1)
    reference = plain_time(agent)
    KERNELS[touched] = ours
    what = f"decide, 10^{height} actions tried, then 20,000 rounds"
    table.compared(f"{what}: plain search / capped, bare kernels", ours, reference, at_least=target)
    table.note(f"the same: looked at, of {touched:,} touched", f"{looked:.0f}")
    if height == 6:
        spent = []
        for _ in range(5_000):
            start = time.perf_counter()
            agent.decide()
            spent.append(time.perf_counter() - start)
        table.amount("the same: agent.decide()", 1e6 * float(np.median(spent)), 15.0, "us")
        sizes = np.log(np.array(sorted(KERNELS)))
        times = np.log(np.array([KERNELS[size] for size in sorted(KERNELS)]))
        slope = float((times[-1] - times[0]) / (sizes[-1] - sizes[0]))
        table.amount("the kernel's time from 10^4 to 10^6 touched: exponent", slope, 0.15, "")


def test_nearly_the_prior(benchmark, table):
    agent, _ = tried(bough.GaussianModel(bough.Tree.balanced(10, 4), noise_variance=1e4), 5_000)
    rng = np.random.default_rng(0)
    reference = plain(agent, rng)
    table.ratio(
        benchmark,
        "decide, 10^4 actions tried, the posterior nearly the prior: agent.decide() / plain search",
        agent.decide,
        reference,
        at_most=1.1,
        rounds=200,
        burst=5,
    )


@pytest.mark.parametrize("name", ["10^6 actions, fan-out 10", "30 x 30 x 1,000", "iNaturalist"])
def test_from_nothing(benchmark, table, name):
    makes = {"10^6 actions, fan-out 10": lambda: bough.Tree.balanced(10, 6), "30 x 30 x 1,000": shelves}
    tree = makes.get(name, species)()
    agent, found = benchmark.pedantic(lambda: stretches(bough.GaussianModel(tree), 100_000), rounds=1)
    worst = int((found[:, 0] / found[:, 1]).argmax())
    what = f"from nothing to 100,000 rounds, {name}: decide / plain search"
    table.compared(f"{what}, the worst 1,000 rounds (after {worst},000)", *found[worst], at_most=1.1)
    table.compared(f"{what}, all of them", float(found[:, 0].sum()), float(found[:, 1].sum()), at_most=1.0)
    if name == "iNaturalist":
        rng = np.random.default_rng(0)
        what = f"decide, {tree.n_actions / 1e6:.1f} million species, 100,000 rounds: plain search"
        reference = min(timed_once(plain(agent, rng)) for _ in range(200))
        table.compared(f"{what} / capped, bare kernel", capped_time(agent)[0], reference, at_least=20)
        table.ratio(
            benchmark_of(benchmark),
            f"{what} / agent.decide()",
            agent.decide,
            plain(agent, rng),
            rounds=30,
            burst=5,
        )


def timed_once(function):
    spent = np.zeros(1)
    timed(function, spent, 0)
    return float(spent[0])


class benchmark_of:  # noqa: N801, stands for the fixture, which may be used once
    def __init__(self, benchmark):
        self.extra_info = benchmark.extra_info

    def pedantic(self, function, rounds, warmup_rounds):
        for _ in range(rounds + warmup_rounds):
            function()


def test_an_update_with_what_is_kept_up(benchmark, table):
    """The rows on the path are made anew at the next decision: what that takes longer is counted as the update's."""
    agent, truth = tried(bough.problems.constant(10, 6), 20_000)
    without, _ = tried(bough.problems.constant(10, 6), 0)
    rng = np.random.default_rng(1)

    def rounds(n=2_000):
        spent = np.zeros(4)  # update, decide after it, decide again, update where nothing is kept up
        for _ in range(n):
            action = agent.decide()
            reward = float(truth[action] + rng.normal())
            timed(lambda: agent.update(action, reward), spent, 0)  # noqa: B023, called at once
            timed(agent.decide, spent, 1)
            timed(agent.decide, spent, 2)
            timed(lambda: without.update(action, reward), spent, 3)  # noqa: B023
        return spent / n

    update, first, again, bare = benchmark.pedantic(lambda: np.median([rounds() for _ in range(5)], axis=0), rounds=1)
    table.compared(
        "update, 10^6 actions tried: with the capped search kept up / without",
        update + first - again,
        bare,
        at_most=2.5,
    )


def test_a_closed_loop(benchmark, table):
    """Two runs, as the least that there are, one after the other: the time of one."""
    model = bough.problems.constant(10, 6)
    bough.warm_up(model)

    def play():
        start = time.perf_counter()
        bough.simulate(model, {"HierTS": bough.HierTS}, rounds=1_000_000, runs=2, seed=0, jobs=1)
        return (time.perf_counter() - start) / 2

    seconds = benchmark.pedantic(play, rounds=1)
    table.amount("simulate, 10^6 rounds from nothing among 10^6 actions", seconds, 60.0, "s")


def test_memory(benchmark, table):
    agent, _ = tried(bough.problems.constant(10, 6), 100)
    sparse = stretches(bough.GaussianModel(bough.Tree.balanced(10, 6)), 20_000)[0]
    benchmark.pedantic(lambda: None, rounds=1)
    for what, one in (("10^6 actions tried", agent), ("20,000 rounds from nothing", sparse)):
        capped, engine = one.posterior._search_state.switch._capped, one.posterior._engine
        table.amount(
            f"what the capped search keeps, {what}, per touched node",
            capped.n_bytes / engine.slots.count,
            100.0,
            "bytes",
        )
