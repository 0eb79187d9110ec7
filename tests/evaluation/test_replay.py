"""Replay judges learning on a uniformly random log, and refuses others."""

import numpy as np
import polars
import pytest

import bough

TREE = bough.Tree.balanced(2, 2)
MEANS = np.array([0.1, 0.2, 0.3, 0.8])


def log(n=4_000, seed=0, p=None):
    rng = np.random.default_rng(seed)
    place = rng.choice(4, n, p=p)
    return polars.DataFrame(
        {
            "action": TREE.leaves[place],
            "reward": (rng.random(n) < MEANS[place]).astype(float),
            "propensity": np.full(n, 0.25) if p is None else np.array(p)[place],
        }
    )


def agent(seed=0):
    return bough.HierTS(bough.BernoulliModel(TREE), seed=seed)


def test_replay_is_a_sample_of_the_agents_own_life():
    """The mean of 60 replays, and of 60 simulated lives of as many rounds, within four of their standard errors."""
    replayed, lived = [], []
    for seed in range(60):
        found = bough.replay(agent(seed), log(400, seed), TREE)
        assert 60 <= found.kept <= 140  # about a quarter
        replayed.append(found.rewards[:60].mean())
        rng, alive = np.random.default_rng(10_000 + seed), agent(1_000 + seed)
        rewards = []
        for _ in range(60):
            action = alive.decide()
            rewards.append(float(rng.random() < MEANS[np.searchsorted(TREE.leaves, action)]))
            alive.update(action, rewards[-1])
        lived.append(np.mean(rewards))
    error = np.hypot(np.std(replayed), np.std(lived)) / 60**0.5
    assert abs(np.mean(replayed) - np.mean(lived)) < 4.0 * error


def test_the_agent_learns_and_the_original_does_not():
    mine = agent()
    found = bough.replay(mine, log(), TREE)
    assert mine.posterior.n_observations == 0
    assert found.curve[-1] == pytest.approx(found.value)
    assert found.rewards[-200:].mean() > found.rewards[:50].mean()
    assert found.low < found.value < found.high
    assert len(found.curve) == found.kept
    assert found.n_rows == 4_000
    again = bough.replay(mine, log(), TREE)
    np.testing.assert_array_equal(again.rewards, found.rewards)


def test_replay_in_contexts():
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0])
    rng = np.random.default_rng(0)
    given = log(500).with_columns(x0=polars.lit(1.0), x1=polars.Series(rng.normal(size=500)))
    found = bough.replay(bough.HierTS(model, seed=0), given, TREE, context=["x0", "x1"])
    assert 80 <= found.kept <= 180


def test_a_log_that_is_not_uniform_is_refused():
    skewed = log(p=[0.4, 0.3, 0.2, 0.1])
    with pytest.raises(ValueError, match="uniformly random decisions"):
        bough.replay(agent(), skewed, TREE)
    with pytest.raises(ValueError, match=r"goes from 0\.1 to 0\.4"):
        bough.replay(agent(), skewed, TREE, propensity="propensity")
    assert bough.replay(agent(), log(), TREE, propensity="propensity").kept > 0


def test_where_nothing_is_kept_nothing_is_said():
    stubborn = bough.Greedy(bough.GaussianModel(TREE), seed=0)
    stubborn.update(int(TREE.leaves[0]), 50.0)
    found = bough.replay(stubborn, log().filter(polars.col("action") != int(TREE.leaves[0])), TREE)
    assert found.kept == 0
    assert np.isnan(found.value)


def test_an_agent_that_learns_by_levels_of_decisions_is_refused():
    store = bough.Factor(levels=["north", "south"], at_decision=True)
    one = bough.HierTS(bough.GaussianModel(TREE, factors={"store": store}), seed=0)
    with pytest.raises(ValueError, match="the factor 'store' of the decision, whose levels replay does not read"):
        bough.replay(one, log(400), TREE)
    brands = bough.GaussianModel(TREE, factors={"brand": bough.Factor([1, 2, 1, 2])})
    assert bough.replay(bough.HierTS(brands, seed=0), log(400), TREE).kept > 0
