"""fit_drift: scores against dense algebra, the kind and the pace of simulated logs, units, and what is refused."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas
import polars
import pytest

import bough
from bough.inference.oracles.drifting import DriftingPosterior
from bough.learning.drift import _Prediction
from bough.learning.timed_log import TimedLog

TREE = bough.Tree.balanced(branching=4, height=2)
UNEVEN = bough.Tree.from_paths(["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j"])
COLUMNS = dict(action="product", reward="sales", time="day")


def simulated(half_life, n, seed, tree=TREE, span=100.0, categories_too=False):
    """A log of n rewards at random times; None: nothing changes."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.0, span, n))
    leaves, parent = rng.choice(tree.leaves, n), tree.parent
    own = rng.normal(size=tree.n_nodes)  # what each node adds to its parent
    moves = np.arange(tree.n_nodes) > 0 if categories_too else np.isin(np.arange(tree.n_nodes), tree.leaves)
    rewards, before = np.empty(n), 0.0
    for i, (time, leaf) in enumerate(zip(times.tolist(), leaves.tolist(), strict=True)):
        if half_life is not None:
            left = 2.0 ** (-(time - before) / half_life)
            own[moves] = left * own[moves] + math.sqrt(1.0 - left**2) * rng.normal(size=int(moves.sum()))
            before = time
        path = [leaf]
        while parent[path[-1]] > 0:
            path.append(parent[path[-1]])
        rewards[i] = own[path].sum() + rng.normal()
    return polars.DataFrame({"day": times, "product": leaves, "sales": rewards})


def fitted(log, tree=TREE, **options):
    return bough.fit_drift(tree, log, **COLUMNS, **options)


# -- the scores --------------------------------------------------------------------------------------


def small_log(n=40, seed=0):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(np.arange(6.0), n))
    names = rng.choice(np.asarray(UNEVEN.actions), n)
    return polars.DataFrame({"day": times, "product": names, "sales": rng.normal(size=n)})


def prior():
    table = np.random.default_rng(1).uniform(0.3, 2.0, UNEVEN.n_nodes)
    return bough.GaussianModel(UNEVEN, 0.4, bough.by_node(table), 0.7)


def test_the_score_of_drift_is_what_the_gaussian_process_predicts():
    model = bough.GaussianModel(UNEVEN, 0.4, prior().covariance, 0.7, drift=2.5)
    log = small_log()
    rows = TimedLog.read(log, UNEVEN, **COLUMNS, bad="error")
    expected = 0.0
    for day in range(1, 6):
        before, today = log.filter(polars.col("day") < day), log.filter(polars.col("day") == day)
        for name in today["product"].unique():
            known, more = DriftingPosterior(model), today.filter(polars.col("product") == name)
            known.update(before["product"], before["sales"], before["day"])
            expected -= known.log_evidence()
            known.update(more["product"], more["sales"], more["day"])
            expected += known.log_evidence()
    found = _Prediction(rows, prior()).score("drift", 2.5, np.zeros(2))
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_score_of_fading_is_what_rewards_of_less_precision_predict():
    model, log, half_life = prior(), small_log(), 1.5
    rows = TimedLog.read(log, UNEVEN, **COLUMNS, bad="error")
    path = np.eye(UNEVEN.n_nodes)
    for node in range(1, UNEVEN.n_nodes):
        path[node] += path[UNEVEN.parent[node]]
    variance = model.classes.table[model.classes.of_node]
    joint = (path * variance) @ path.T
    leaves = UNEVEN.action_nodes(log["product"].to_list())
    rewards, days = log["sales"].to_numpy() - 0.4, log["day"].to_numpy()
    expected = 0.0
    for day in range(1, 6):
        past = days < day
        noise = np.diag(0.7 * 2.0 ** ((day - days[past]) / half_life))
        gain = np.linalg.solve(joint[np.ix_(leaves[past], leaves[past])] + noise, joint[leaves[past]]).T
        mean, after = gain @ rewards[past], joint - gain @ joint[leaves[past]]
        for leaf in np.unique(leaves[days == day]):
            own = rewards[(days == day) & (leaves == leaf)] - mean[leaf]
            covariance = after[leaf, leaf] + 0.7 * np.eye(len(own))
            expected -= 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance)[1]
            expected -= 0.5 * own @ np.linalg.solve(covariance, own)
    found = _Prediction(rows, model).score("half_life", half_life, np.zeros(2))
    assert found == pytest.approx(expected, rel=1e-9)


def test_all_kinds_agree_where_nothing_changes():
    prediction = _Prediction(TimedLog.read(small_log(), UNEVEN, **COLUMNS, bad="error"), prior())
    factors = np.array([0.3, -0.2])
    none = prediction.score("none", math.inf, factors)
    assert prediction.score("half_life", 1e12, factors) == pytest.approx(none, rel=1e-9)
    assert prediction.score("drift", 1e12, factors) == pytest.approx(none, rel=1e-9)


# -- what is found -----------------------------------------------------------------------------------


def test_a_log_that_stands_still_is_said_to():
    # A log without change is judged otherwise in about one of thirty cases; these seeds are fixed.
    for seed in range(5):
        fit = fitted(simulated(None, 1_000, seed))
        assert (fit.kind, fit.half_life, fit.model.drift) == ("none", None, None)
        assert fit.scores["drift"] < fit.scores["none"] + 2.0


@pytest.mark.parametrize("half_life", [5.0, 30.0])
def test_actions_that_drift_are_seen_to_and_at_what_pace(half_life):
    # Of 40 such logs of 2,000 rows with a half-life of 10, all had one within a factor of 2; these seeds are fixed.
    for seed in range(3):
        fit = fitted(simulated(half_life, 4_000, seed))
        assert fit.kind == "drift"
        assert half_life / 2.0 < fit.half_life < half_life * 2.0
        assert fit.model.drift == fit.half_life == fit.half_lives["drift"]
        assert fit.model.noise_variance == pytest.approx(1.0, rel=0.2)
        assert fit.scores["drift"] > fit.scores["none"] + 100.0
        assert max(score for _, score in fit.profile["drift"]) <= fit.scores["drift"]


def test_categories_that_drift_are_a_change_as_well():
    fit = fitted(simulated(20.0, 4_000, 0, categories_too=True))
    assert fit.kind != "none"
    assert fit.scores["half_life"] > fit.scores["none"] + 100.0


def test_leaves_at_unlike_depths_have_variances_of_their_own():
    fit = fitted(
        simulated(10.0, 3_000, 1, UNEVEN).with_columns(
            polars.col("product").map_elements(UNEVEN.name, return_dtype=polars.String)
        ),
        UNEVEN,
    )
    assert fit.kind == "drift"
    classes = fit.model.classes
    inner = np.setdiff1d(np.arange(UNEVEN.n_nodes), UNEVEN.leaves)
    assert not np.isin(classes.of_node[inner], classes.of_node[UNEVEN.leaves]).any()


def test_the_same_log_in_another_order_and_unit_says_the_same():
    log = simulated(10.0, 1_500, 2)
    fit, shuffled = fitted(log), fitted(log.sample(fraction=1.0, shuffle=True, seed=0))
    assert shuffled.half_life == pytest.approx(fit.half_life, rel=1e-6)
    hours = fitted(log.with_columns(day=24.0 * polars.col("day") + 1e6))
    assert hours.kind == fit.kind
    assert hours.half_life == pytest.approx(24.0 * fit.half_life, rel=0.02)
    assert hours.scores["drift"] == pytest.approx(fit.scores["drift"], abs=0.1)


def test_dates_give_spans_of_time():
    log = simulated(10.0, 1_500, 3).with_columns(day=polars.col("day").floor())
    start = datetime(2024, 2, 1, tzinfo=UTC)
    times = [start + timedelta(days=day) for day in log["day"]]
    fit = fitted(log)
    assert fit.n_blocks == 100
    frames = {
        "dates": log.with_columns(day=polars.Series([date(2024, 2, 1) + timedelta(days=day) for day in log["day"]])),
        "polars": log.with_columns(day=polars.Series(times)),
        "lazy": log.with_columns(day=polars.Series(times)).lazy(),
        "arrow": log.with_columns(day=polars.Series(times)).to_arrow(),
        "pandas": pandas.DataFrame({**log.to_dict(as_series=False), "day": times}),
    }
    for frame in frames.values():
        dated = fitted(frame)
        assert isinstance(dated.half_life, timedelta)
        assert dated.half_life / timedelta(days=1) == pytest.approx(fit.half_life, rel=0.02)
        assert dated.model.drift == dated.half_life
        assert dated.kind == "drift"
    assert "days" in dated.summary()


def test_many_times_make_a_hundred_blocks_of_as_many_rewards():
    log = simulated(None, 1_000, 4)
    rows = TimedLog.read(log, TREE, **COLUMNS, bad="error")
    assert rows.n_blocks == 100
    assert set(np.bincount(rows.block, rows.count).astype(int)) == {10}
    assert rows.n_predicted == 990
    latest, earliest = (np.array([f(rows.times[rows.block == b]) for b in range(100)]) for f in (np.max, np.min))
    assert (latest[:-1] < earliest[1:]).all()


def test_rewards_of_one_action_at_one_time_are_one_row():
    log = polars.DataFrame({"day": [1, 1, 1, 2], "product": [5, 5, 6, 5], "sales": [1.0, 3.0, 5.0, 7.0]})
    rows = TimedLog.read(log, TREE, **COLUMNS, bad="error")
    assert rows.count.tolist() == [2.0, 1.0, 1.0]
    assert rows.average.tolist() == [2.0, 5.0, 7.0]
    assert rows.squares.tolist() == [2.0, 0.0, 0.0]
    assert rows.times.tolist() == [0.0, 0.0, 1.0]
    sums, wanted = rows.statistics(TREE), bough.Statistics.from_rows(log["product"], log["sales"])
    np.testing.assert_allclose(sums.sum_yy, wanted.sum_yy)


# -- what comes of it --------------------------------------------------------------------------------


def test_agents_go_along_with_what_was_found():
    still, moving = fitted(simulated(None, 500, 0)), fitted(simulated(5.0, 3_000, 0))
    assert still.agent(seed=0).posterior.model is still.model
    assert moving.agent(seed=0).posterior.model.drift == pytest.approx(3.0 * moving.half_life)
    agent = moving.agent(1, slower=10.0, search=True)
    assert agent.posterior.model.drift == pytest.approx(10.0 * moving.half_life)
    agent.update(agent.decide(), 1.0)
    faded = replace(moving, kind="half_life", half_life=2.0, model=still.model)
    assert faded.agent(seed=0).posterior.half_life == 6.0
    for wrong in (0.0, -1.0, "slow", float("nan")):
        with pytest.raises(ValueError, match="slower"):
            moving.agent(slower=wrong)


@pytest.mark.parametrize("kind", ["none", "half_life", "drift"])
def test_posteriors_and_agents_of_a_fit_have_observed_the_log_at_its_times(kind):
    log = simulated(5.0, 800, 6).with_columns(day=polars.col("day").floor() + 3.0)  # several rewards at one time
    fit = fitted(log)
    model = replace(fit.model, drift=8.0 if kind == "drift" else None)
    fit = replace(fit, kind=kind, half_life=None if kind == "none" else 8.0, model=model)
    for slower, known in ((1.0, fit.posterior), (3.0, fit.agent(seed=0).posterior)):
        expected = bough.Posterior(
            replace(model, drift=8.0 * slower if kind == "drift" else None),
            half_life=8.0 * slower if kind == "half_life" else None,
        )
        expected.update(log["product"], log["sales"], at=log["day"])
        assert known.now == expected.now == log["day"].max()
        np.testing.assert_allclose(known.mean, expected.mean, atol=1e-9)
        np.testing.assert_allclose(known.covariance, expected.covariance, atol=1e-9)
        if kind != "drift":
            assert known.log_evidence() == pytest.approx(expected.log_evidence(), abs=1e-6)
        known.update(5, 1.0, at=200.0)
        assert fit.posterior.now == log["day"].max()


def test_agents_of_a_log_with_dates_go_on_with_dates():
    log = simulated(10.0, 400, 3).with_columns(day=polars.col("day").floor())
    start = datetime(2024, 2, 1)
    for zone in (None, UTC):
        times = [(start + timedelta(days=day)).replace(tzinfo=zone) for day in log["day"]]
        fit = fitted(log.with_columns(day=polars.Series(times)))
        agent = fit.agent(seed=0)
        assert agent.now == fit.posterior.now == max(times)
        agent.update(agent.decide(), 1.0, at=max(times) + timedelta(days=1))


def test_the_summary_marks_what_is_best():
    fit = fitted(simulated(5.0, 1_000, 0))
    lines = fit.summary().splitlines()
    assert len(lines) == 5
    assert [line.split()[0] for line in lines[1:4]] == ["none", "half_life", "drift"]
    assert [line.split()[1] == "*" for line in lines[1:4]] == [kind == fit.kind for kind in fit.scores]
    assert repr(fit).startswith(f"DriftFit({fit.kind}, half_life=")


def test_logs_that_cannot_tell_are_refused():
    log = simulated(None, 200, 0)
    with pytest.raises(ValueError, match="the log has no column 'when'"):
        bough.fit_drift(TREE, log, action="product", reward="sales", time="when")
    with pytest.raises(ValueError, match="time is None; give the name of a column"):
        bough.fit_drift(TREE, log, action="product", reward="sales", time=None)
    missing = log.with_columns(day=polars.when(polars.col("sales") > 1.0).then(float("nan")).otherwise("day"))
    with pytest.raises(ValueError, match="with a null, NaN or infinite value"):
        fitted(missing)
    assert fitted(missing, bad="skip").n_predicted < 199
    with pytest.raises(ValueError, match="all rewards at one time"):
        fitted(log.with_columns(day=polars.lit(3)))
    with pytest.raises(ValueError, match="no rewards"):
        fitted(log.head(0))
    with pytest.raises(ValueError, match="is of type String; cast it to numbers"):
        fitted(log.with_columns(day=polars.lit("monday")))
    with pytest.raises(ValueError, match="has no action of the tree"):
        fitted(log.with_columns(product=polars.lit(99)))
    with pytest.raises(ValueError, match="do not vary"):
        fitted(log.with_columns(sales=polars.lit(1.0)))
    with pytest.raises(ValueError, match="do not say when rewards came"):
        fitted(bough.Statistics.from_rows(log["product"], log["sales"]))
    with pytest.raises(ValueError, match="tree is a list"):
        fitted(log, [TREE])
    with pytest.raises(ValueError, match="log is a int"):
        fitted(3)
