"""Logged counts beside logged propensities: false alarms are as rare as they should be, and errors are found."""

import numpy as np
import polars
import pytest

import bough
from worlds import world


def p_values(make, n=200):
    return np.array([make(np.random.default_rng(seed)).p_value for seed in range(n)])


def assert_uniform(values):
    """Kolmogorov-Smirnov at 1e-4."""
    ordered = np.sort(values)
    steps = np.arange(1, len(values) + 1) / len(values)
    assert np.abs(ordered - steps).max() < 2.23 / len(values) ** 0.5


def test_right_propensities_have_uniform_p_values():
    one = world(0)
    assert_uniform(p_values(lambda rng: bough.sample_ratio(one.log(rng, 2_000), one.tree)))


def test_propensities_that_vary_from_row_to_row_raise_no_alarm():
    tree = bough.Tree.balanced(5, 1)

    def made(rng):
        odds = rng.gamma(1.0, size=(2_000, 5)) + 0.05
        p = odds / odds.sum(axis=1, keepdims=True)
        place = (p.cumsum(axis=1) < rng.random((2_000, 1))).sum(axis=1).clip(max=4)
        log = {"action": tree.leaves[place], "reward": 0.0, "propensity": p[np.arange(2_000), place]}
        return bough.sample_ratio(polars.DataFrame(log), tree)

    assert (p_values(made) < 0.01).mean() <= 0.06  # 2 expected of 200; more than 12 once in a million times


def test_a_logger_that_learns_and_gives_actions_up_raises_no_alarm():
    """Actions that are hardly ever chosen any more have far fewer rows than their propensities were, and rightly so.

    What is left to see are too many rows: propensities of half of what they were are found in most such logs, and of a
    third in all of these.
    """
    tree = bough.Tree.balanced(20, 1)
    means = np.linspace(0.0, 2.0, 20)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        estimates, rows = np.zeros((20, 2)), []
        for _ in range(3_000):
            scores = estimates[:, 1] / (estimates[:, 0] + 1.0) * 6.0
            p = np.exp(scores - scores.max())
            p /= p.sum()
            place = int(rng.choice(20, p=p))
            reward = means[place] + rng.normal()
            estimates[place] += 1.0, reward
            rows.append((int(tree.leaves[place]), reward, p[place]))
        log = polars.DataFrame(rows, schema=["action", "reward", "propensity"], orient="row")
        assert bough.sample_ratio(log, tree).fits
        assert not bough.sample_ratio(log.with_columns(polars.col("propensity") / 3.0), tree).fits


def test_very_many_rare_actions_raise_no_alarm_and_show_repetition():
    tree = bough.Tree.balanced(1_000, 1)
    rng = np.random.default_rng(0)

    def made(rng, p=1 / 1_000):
        place = rng.integers(1_000, size=2_000)
        return bough.sample_ratio(
            polars.DataFrame({"action": tree.leaves[place], "reward": 0.0, "propensity": p}), tree
        )

    assert (p_values(made, 100) < 0.01).mean() <= 0.08
    assert made(rng, 1 / 4_000).p_value < 1e-6  # as if there were four times as many


@pytest.mark.parametrize("wrong", [1 / 16, 1 / 2_000, 0.5])
def test_wrong_propensities_are_found(wrong):
    one = world(1)
    log = one.log(np.random.default_rng(0), 2_000).with_columns(propensity=polars.lit(wrong))
    found = bough.sample_ratio(log, one.tree)
    assert not found.fits
    assert "do not fit the counts" in found.summary()
    frame = found.to_frame("polars")
    assert frame["z"].abs().max() == frame["z"].abs()[0]


def test_positions_are_logs_of_their_own():
    one = world(2)
    log = polars.concat([one.log(np.random.default_rng(seed), 1_000).with_columns(slot=seed) for seed in (1, 2)])
    assert bough.sample_ratio(log, one.tree, position="slot").fits
    assert bough.sample_ratio(log, one.tree, position="slot").n_rows == 2_000
