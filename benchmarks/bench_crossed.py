"""Crossed factors: rewards and decisions beside the tree alone, how they grow with the levels, and a fit by gpboost."""

import time

import numpy as np
import pytest
from crossed import by_gpboost, crossed_log, crossed_model, variances

import bough


def taught(n_actions, n_levels, n_rewards):
    """HierTS that has learned that many rewards, and the same without the factor."""
    model = crossed_model(n_actions, n_levels)
    rng = np.random.default_rng(1)
    actions, rewards = rng.choice(model.tree.leaves, n_rewards), rng.normal(size=n_rewards)
    agent, alone = (
        bough.HierTS(model, seed=0),
        bough.HierTS(bough.GaussianModel(model.tree, 0.0, model.classes, model.noise_variance), seed=0, search=False),
    )
    for one in (agent, alone):
        one.update(actions, rewards)
        one.update(int(actions[0]), 1.0)
        one.decide()
    return agent, alone, actions.tolist()


def fastest_update(agent, actions):
    """The time of one reward, in microseconds: the fastest of many, each of another action."""
    spent = []
    for action in actions:
        start = time.perf_counter()
        agent.update(action, 1.0)
        spent.append(time.perf_counter() - start)
    return 1e6 * min(spent), 1e6 * float(np.median(spent))


@pytest.mark.parametrize(
    ("n_actions", "n_levels", "limit"), [(10_000, 500, 100.0), (100_000, 2_000, 2_000.0)], ids=["500", "2000"]
)
def test_a_reward_and_a_decision(benchmark, table, n_actions, n_levels, limit):
    agent, alone, actions = taught(n_actions, n_levels, n_actions)
    where = f"10^{len(str(n_actions)) - 1} actions, {n_levels:,} levels"
    _, median = fastest_update(agent, actions[:300])
    table.amount(f"a reward with a crossed factor, {where}, the median of 300", median, limit, "us")
    table.ratio(
        benchmark,
        f"a decision with a crossed factor, {where} / a full draw of the tree alone",
        agent.decide,
        alone.decide,
        at_most=3.0 if n_levels == 500 else None,
        rounds=20,
        burst=5,
    )
    start = time.perf_counter()
    agent.posterior._engine._say_all()
    table.note(f"everything again, as after a new table, {where}", f"{time.perf_counter() - start:.2f} s")


def test_growth_in_the_number_of_levels(table):
    """Rewards grow with the square of the levels, once that is more than what every call costs."""
    found = {}
    for n_levels in (125, 250, 500, 1_000, 2_000):
        agent, alone, actions = taught(10_000, n_levels, 2_000)
        update = fastest_update(agent, actions[:200])[0]
        decide = min(_timed(agent.decide) for _ in range(100))
        found[n_levels] = update
        plain = fastest_update(alone, actions[:200])[0]
        text = f"{update:.0f} us per reward ({plain:.1f} without it), {1e6 * decide:.0f} us per decision"
        table.note(f"a crossed factor of {n_levels:,} levels, 10^4 actions", text)
    table.spread("a reward at 2,000 levels / at 1,000", found[2_000] / found[1_000], 6.0)


def test_everything_again_whatever_the_order_of_the_factors(benchmark, table):
    """By rows, where 5 x 10^7 rewards say too much for squares."""
    first, last = (stocked(is_first) for is_first in (True, False))
    for agent in (first, last):
        assert not agent.posterior._engine._is_mild
        agent.posterior._engine._say_all()
    table.ratio(
        benchmark,
        "everything again, 5,000 actions, 500 brands, 20 stores: stores first / brands first",
        first.posterior._engine._say_all,
        last.posterior._engine._say_all,
        at_most=2.0,
        rounds=5,
        burst=1,
    )


def stocked(is_first):
    """HierTS that knows 10^4 rewards of each product, of brands and at stores that come first or last."""
    tree, rng = bough.Tree.balanced(71, 2), np.random.default_rng(3)
    brand = bough.Factor(rng.integers(500, size=tree.n_actions).tolist(), levels=list(range(500)), variance=0.3)
    store = bough.Factor(levels=list(range(20)), variance=0.1, at_decision=True)
    factors = {"store": store, "brand": brand} if is_first else {"brand": brand, "store": store}
    agent = bough.HierTS(bough.GaussianModel(tree, factors=factors), seed=0)
    count, mean = np.full(20 * tree.n_actions, 500.0), rng.normal(size=20 * tree.n_actions)
    levels = {"store": list(range(20)) * tree.n_actions}
    agent.absorb(bough.Statistics(np.repeat(tree.leaves, 20), count, count * mean, count * mean**2, factors=levels))
    return agent


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def test_a_fit_beside_gpboost(table):
    tree, brands, actions, rewards = crossed_log()
    times, fit = [], None
    for _ in range(3):
        start = time.perf_counter()
        log = bough.Statistics.from_rows(actions, rewards)
        fit = bough.fit_prior(tree, log, factors={"brand": bough.Factor(brands.tolist())}, penalty=None)
        times.append(time.perf_counter() - start)
    for method in ("cholesky", "iterative"):
        spent, theirs, likelihood = by_gpboost(tree, brands, actions, rewards, method)
        exact = method == "cholesky"
        if exact:
            np.testing.assert_allclose(theirs, variances(fit), rtol=1e-3)
            assert abs(likelihood - fit.log_evidence) < 1e-2
        label = f"fit, 10^4 actions, 500 crossed levels, 5 x 10^4 rows / gpboost ({method})"
        table.compared(label, min(times), spent, at_least=10 if exact else None)
