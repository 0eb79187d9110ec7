"""The diagnostics say what is wrong with a log, and nothing where nothing is."""

import numpy as np
import polars
import pytest

import bough
from worlds import world


def only(report):
    [found] = report.diagnostics.policies.values()
    return found


def test_a_sound_log_has_no_problems():
    """Of 40 logs none is complained about, where weights are mild."""
    for seed in range(40):
        one = world(seed, mild=0.5)
        report = bough.evaluate({"t": one.target}, one.log(np.random.default_rng(seed), 3_000), one.tree)
        assert report.diagnostics.problems == []
        assert only(report).is_usable
        assert only(report).mean_weight == pytest.approx(1.0, abs=0.1)


def test_the_numbers_are_those_of_the_rows():
    one = world(1)
    log = one.log(np.random.default_rng(0), 2_000)
    place = np.searchsorted(one.tree.leaves, log["action"].to_numpy())
    w = one.target[place] / one.logger[place]
    found = only(bough.evaluate({"t": one.target}, log, one.tree, estimators=["ips"]))
    assert found.mean_weight == pytest.approx(w.mean())
    assert found.weight_error == pytest.approx(w.std() / 2_000**0.5)
    assert found.effective_rows == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.largest_weight == pytest.approx(w.max())
    assert found.largest_share == pytest.approx(w.max() / w.sum())


def test_a_floored_propensity_makes_a_log_unusable():
    """As in the Open Bandit Dataset: 10,000 rows, of which one has a propensity of 1e-6."""
    tree = bough.Tree.balanced(46, 1)
    rng = np.random.default_rng(0)
    place = rng.integers(46, size=10_000)
    propensity = np.full(10_000, 1 / 46)
    propensity[1_234] = 1e-6
    log = polars.DataFrame(
        {"action": tree.leaves[place], "reward": (rng.random(10_000) < 0.005).astype(float), "propensity": propensity}
    )
    report = bough.evaluate({"uniform": np.full(46, 1 / 46)}, log, tree)
    found = only(report)
    assert not found.is_usable
    assert found.largest_weight == pytest.approx(21_739, rel=1e-4)
    assert found.effective_rows < 3
    text = report.summary()
    assert "UNUSABLE, uniform: the 10,000 rows say as much as 2 rows" in text
    assert "one row has the weight 21,739" in text
    assert "floored" in text


def test_a_policy_outside_the_log_is_told_at_each_depth_of_the_tree():
    tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"], "water": ["still"]})
    log = polars.DataFrame(
        {"action": ["green", "black", "espresso"] * 200, "reward": [1.0, 0.0, 0.5] * 200, "propensity": [1 / 3] * 600}
    )
    report = bough.evaluate({"new": {"filter": 0.5, "still": 0.2, "green": 0.3}}, log, tree)
    assert only(report).never_logged == pytest.approx((0.2, 0.7))
    assert not only(report).is_usable
    assert "70% of what the policy does was never logged (20% at depth 1, 70% at depth 2)" in report.summary()
    nowhere = bough.evaluate({"new": {"still": 1.0}}, log, tree)
    assert "UNUSABLE, new: the log has no action that the policy takes" in nowhere.summary()
    values = {one.estimator: one.value for one in nowhere.values}
    assert np.isnan(values["snips"])
    assert np.isfinite(values["dm"])


def test_propensities_of_one_over_the_number_of_actions_are_found_out():
    """The logger preferred some actions, and logged 1/K: the mean weight of uniform choice is 1, and nothing fits."""
    one = world(2)
    log = one.log(np.random.default_rng(0), 3_000).with_columns(propensity=polars.lit(1 / 16))
    report = bough.evaluate({"uniform": np.full(16, 1 / 16)}, log, one.tree)
    assert only(report).mean_weight == pytest.approx(1.0)
    [problem] = report.diagnostics.log
    assert "the propensities do not fit the counts" in problem
    assert "WARNING, the log:" in report.summary()


def test_propensities_of_one_over_the_number_of_rows_are_found_out():
    one = world(3)
    log = one.log(np.random.default_rng(0), 3_000).with_columns(propensity=polars.lit(1 / 3_000))
    report = bough.evaluate({"t": one.target}, log, one.tree)
    assert "do not fit the counts" in report.diagnostics.log[0]
    assert "should be 1" in report.summary()


def test_propensities_that_are_hardly_known_are_counted():
    one = world(4)
    log = one.log(np.random.default_rng(0), 1_000)
    errors = np.where(np.arange(1_000) < 25, 0.34, 0.1) * log["propensity"].to_numpy()
    log = log.with_columns(polars.Series("propensity_error", errors))
    report = bough.evaluate({"t": one.target}, log, one.tree, estimators=["snips"])
    assert report.diagnostics.log[0].startswith("25 of 1,000 propensities have an error above a third of them")
    renamed = log.rename({"propensity_error": "se"})
    assert not bough.evaluate({"t": one.target}, renamed, one.tree, estimators=["snips"]).diagnostics.log
    named = bough.evaluate({"t": one.target}, renamed, one.tree, estimators=["snips"], propensity_error="se")
    assert named.diagnostics.log == report.diagnostics.log


def test_a_model_that_the_rows_contradict_is_told():
    one = world(5, mild=0.5)
    log = one.log(np.random.default_rng(0), 5_000)
    report = bough.evaluate({"t": one.target}, log, one.tree, model=np.full(16, 0.9))
    assert only(report).dm_less_dr > 4.0
    assert "do not trust the model, and so DM" in report.summary()


def test_diagnostics_as_a_frame_and_by_name():
    one = world(6)
    log = one.log(np.random.default_rng(0), 500)
    diagnostics = bough.evaluate({"a": one.target, "b": one.logger}, log, one.tree).diagnostics
    frame = diagnostics.to_frame("polars")
    assert frame["policy"].to_list() == ["a", "b"]
    assert frame["mean_weight"][1] == pytest.approx(1.0)
    assert {"never_logged_1", "never_logged_2", "problems"} <= set(frame.columns)
    assert diagnostics["b"].effective_rows == pytest.approx(500)
    with pytest.raises(KeyError, match="no policy 'c'"):
        diagnostics["c"]


def test_rewards_without_a_known_range_have_a_note():
    one = world(7, clicks=False)
    log = one.log(np.random.default_rng(0), 500)
    report = bough.evaluate({"t": one.target}, log, one.tree)
    assert report.reward_range == (log["reward"].min(), log["reward"].max())
    assert "give reward_range" in report.notes[0]
    assert not bough.evaluate({"t": one.target}, log, one.tree, reward_range=(-9, 9)).notes
    with pytest.raises(ValueError, match="the log has rewards from"):
        bough.evaluate({"t": one.target}, log, one.tree, reward_range=(0, 1))
    with pytest.raises(ValueError, match="needs reward_range"):
        bough.evaluate({"t": one.target}, log, one.tree, interval="anytime")


def test_the_table_and_the_picture_have_every_estimate(tmp_path):
    one = world(8)
    log = one.log(np.random.default_rng(0), 500)
    report = bough.evaluate({"a": one.target, "b": one.logger}, log, one.tree)
    table = report.to_frame("polars")
    assert table.columns == ["policy", "estimator", "value", "low", "high", "lift", "lift_low", "lift_high"]
    assert table.shape == (6, 8)
    assert table["lift"].to_list() == pytest.approx((table["value"] - log["reward"].mean()).to_list())
    import matplotlib

    matplotlib.use("Agg")
    axes = report.plot()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["snips", "dr", "dm"] * 2
    assert axes.get_xlabel() == "reward per decision"
