"""Estimators: what they are row by row, what they keep, and that residuals leave their own row out."""

from statistics import NormalDist

import numpy as np
import polars
import pytest

import bough
from bough.evaluation.outcomes import left_out, outcomes_of_sums, statistics_of
from bough.evaluation.targets import probabilities_of
from worlds import world

from bough.data.decision_logs import LogColumns  # isort: skip
from bough.data.logged_rows import read_logged_rows  # isort: skip

ALL = ("ips", "snips", "dm", "dr", "mips-1", "mips-2")
COLUMNS = LogColumns("action", "reward", "propensity")


def logged(one, n=3_000, seed=5):
    log = one.log(np.random.default_rng(seed), n)
    return log, read_logged_rows(log, one.tree, COLUMNS)


def values(report):
    return {one.estimator: one for one in report.values}


@pytest.mark.parametrize("clicks", [True, False])
def test_every_estimator_and_its_normal_interval_row_by_row(clicks):
    one = world(1, clicks)
    log, rows = logged(one)
    means = np.linspace(0.1, 0.6, one.tree.n_actions)
    found = values(
        bough.evaluate({"t": one.target}, log, one.tree, model=means, estimators=ALL, interval="normal", level=0.9)
    )
    w, y, n = one.target[rows.place] / rows.propensity, rows.reward, len(rows.reward)
    residual, direct = y - means[rows.place], float(one.target @ means)
    influence = {
        "ips": w * y,
        "snips": (w @ y) / w.sum() + w * (y - (w @ y) / w.sum()) / w.mean(),
        "dr": direct + w * residual,
    }
    z = 1.6448536269514722
    for name, each in influence.items():
        got = found[name]
        assert got.value == pytest.approx(each.mean(), rel=1e-9)
        assert got.high - got.low == pytest.approx(2.0 * z * each.std(ddof=1) / n**0.5, rel=1e-9)
        difference = each - y
        assert got.lift == pytest.approx(difference.mean(), rel=1e-9)
        assert got.lift_high - got.lift_low == pytest.approx(2.0 * z * difference.std(ddof=1) / n**0.5, rel=1e-9)
    assert found["dm"].value == pytest.approx(direct, rel=1e-12)
    parent = one.tree.parent[one.tree.leaves]
    shares = np.bincount(parent, one.target)
    of_rows = parent[rows.place]
    stratified = sum(shares[node] * y[of_rows == node].mean() for node in np.unique(of_rows))
    assert found["mips-1"].value == pytest.approx(stratified, rel=1e-12)
    variance = sum(shares[v] ** 2 * y[of_rows == v].var(ddof=1) / (of_rows == v).sum() for v in np.unique(of_rows))
    assert found["mips-1"].high - found["mips-1"].low == pytest.approx(2 * z * variance**0.5, rel=1e-3)


def test_constants_come_back_where_estimators_are_normalised():
    one = world(2, clicks=False)
    log, _ = logged(one)
    shifted = log.with_columns(polars.col("reward") + 7.0)
    plain, moved = (
        values(bough.evaluate({"t": one.target}, each, one.tree, estimators=("snips", "mips-1"), interval="normal"))
        for each in (log, shifted)
    )
    for name in plain:
        assert moved[name].value == pytest.approx(plain[name].value + 7.0, rel=1e-9)
        assert moved[name].lift_high - moved[name].lift_low == pytest.approx(
            plain[name].lift_high - plain[name].lift_low, rel=1e-7
        )


def test_the_logger_itself_has_no_lift():
    one = world(3)
    log, rows = logged(one)
    found = bough.evaluate({"logger": one.logger}, log, one.tree, estimators=("ips", "snips"), interval="normal")
    for each in found.values:
        assert each.value == pytest.approx(rows.reward.mean(), rel=1e-12)
        assert (each.lift, each.lift_low, each.lift_high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)


@pytest.mark.parametrize("interval", ["cressie-read", "normal", "anytime"])
def test_more_rows_narrow_every_interval(interval):
    one = world(4)
    widths = []
    for n in (1_000, 30_000):
        log, _ = logged(one, n)
        report = bough.evaluate(
            {"t": one.target}, log, one.tree, estimators=("ips", "snips"), interval=interval, reward_range=(0, 1)
        )
        widths.append([(each.high - each.low, each.lift_high - each.lift_low) for each in report.values])
    assert (np.array(widths[1]) < 0.5 * np.array(widths[0])).all()


# -- models ----------------------------------------------------------------------------------------


def without(statistics, i, reward):
    """The statistics with one row of an action less."""
    count, y, yy = (np.array(a) for a in (statistics.count, statistics.sum_y, statistics.sum_yy))
    count[i] -= 1.0
    y[i] -= reward
    yy[i] -= reward**2
    keep = count > 0.0
    return bough.Statistics._trusted(statistics.actions[keep], count=count[keep], sum_y=y[keep], sum_yy=yy[keep])


@pytest.mark.parametrize(("clicks", "tolerance"), [(False, 1e-9), (True, 0.01)])
def test_a_residual_is_that_of_a_model_that_never_saw_the_row(clicks, tolerance):
    one = world(6, clicks)
    _, rows = logged(one, 60)
    kind = bough.BernoulliModel if clicks else bough.GaussianModel
    model = kind(one.tree, -1.0 if clicks else 1.0, 0.3, **({} if clicks else {"noise_variance": 0.25}))
    sums = rows.sums()
    slope, intercept = (part[0] for part in outcomes_of_sums(model, one.tree, sums).residual())
    statistics = statistics_of(one.tree, sums)
    for place, reward in zip(rows.place.tolist()[:20], rows.reward.tolist(), strict=False):
        again = bough.Posterior(model)
        i = int(np.searchsorted(sums.place, place))
        again.absorb(without(statistics, i, reward))
        expected = reward - again.mean_reward().mean[place]
        assert slope[place] * reward + intercept[place] == pytest.approx(expected, abs=tolerance)


def test_counts_leave_their_row_out_to_first_order():
    tree = bough.Tree.balanced(3, 2)
    model = bough.PoissonModel(tree, 1.0, 0.2)
    rng = np.random.default_rng(0)
    names = np.repeat(tree.leaves, 8)
    rewards = rng.poisson(model.mean_reward(model.draw(rng))[names])
    whole = bough.Posterior(model)
    whole.update(names, rewards.astype(float))
    slope, intercept = left_out(model, *whole.action_moments())
    for i in range(0, len(names), 7):
        rest = bough.Posterior(model)
        rest.update(np.delete(names, i), np.delete(rewards, i).astype(float))
        place = int(np.searchsorted(tree.leaves, names[i]))
        expected = rewards[i] - rest.mean_reward().mean[place]
        assert slope[place] * rewards[i] + intercept[place] == pytest.approx(expected, abs=0.1)


def test_the_direct_value_and_its_deviation_are_those_of_the_joint_posterior():
    one = world(7, clicks=False)
    log, rows = logged(one, 200)
    model = bough.GaussianModel(one.tree, 1.0, 0.3, 0.25)
    found = values(bough.evaluate({"t": one.target}, log, one.tree, model=model, estimators=["dm"], level=0.6827))["dm"]
    posterior = bough.Posterior(model)
    posterior.update(one.tree.leaves[rows.place], rows.reward)
    assert found.value == pytest.approx(float(one.target @ posterior.mean[one.tree.leaves]), rel=1e-9)
    unit = np.stack([posterior.from_normals(row) for row in np.eye(one.tree.n_nodes)]) - posterior.mean
    deviation = np.linalg.norm(unit[:, one.tree.leaves] @ one.target)
    assert 0.5 * (found.high - found.low) == pytest.approx(deviation * NormalDist().inv_cdf(0.84135), rel=1e-9)


def test_a_posterior_learned_elsewhere_is_taken_as_it_is():
    one = world(8, clicks=False)
    log, rows = logged(one, 500)
    posterior = bough.Posterior(bough.GaussianModel(one.tree))
    posterior.update(one.tree.leaves[:3], [1.0, 2.0, 0.0])
    found = values(bough.evaluate({"t": one.target}, log, one.tree, model=posterior, estimators=["dm", "dr"]))
    means = posterior.mean[one.tree.leaves]
    w = one.target[rows.place] / rows.propensity
    assert found["dm"].value == pytest.approx(one.target @ means, rel=1e-12)
    assert found["dr"].value == pytest.approx(one.target @ means + (w * (rows.reward - means[rows.place])).mean())
    assert posterior.n_observations == 3


def test_a_fit_and_its_model_are_the_same():
    one = world(9)
    log, rows = logged(one, 2_000)
    fit = bough.fit_prior(one.tree, bough.Statistics.from_rows(one.tree.leaves[rows.place], rows.reward))
    reports = [bough.evaluate({"t": one.target}, log, one.tree, model=model) for model in (fit, fit.model, None)]
    numbers = [np.array([each[2:] for each in report.values]) for report in reports]
    np.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-12)  # polars sums in any order
    np.testing.assert_allclose(numbers[2], numbers[0], rtol=1e-6)  # its rows were summed in another order


def test_dr_is_right_with_a_wrong_model_and_right_propensities():
    """The mean of 200 logs is within four of its standard errors: a false alarm once in 16,000."""
    one = world(10)
    wrong = np.full(one.tree.n_actions, 0.9)
    found = []
    for seed in range(200):
        log = one.log(np.random.default_rng(seed), 500)
        report = bough.evaluate({"t": one.target}, log, one.tree, model=wrong, estimators=["dr", "dm"])
        found.append([each.value for each in report.values])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0)[0] / 200**0.5
    assert abs(mean[0] - one.value) < 4.0 * error
    assert mean[1] == pytest.approx(0.9)


# -- targets ---------------------------------------------------------------------------------------


def test_policies_come_as_dicts_arrays_functions_and_agents():
    tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    agent = bough.Greedy(bough.GaussianModel(tree), seed=0)
    agent.update("green", 3.0)
    assert list(tree.actions) == ["green", "black", "espresso"]
    expected = np.array([[1.0, 0.0, 0.0]])
    for policy in ({"green": 1.0}, [1.0, 0.0, 0.0], lambda actions: [name == "green" for name in actions], agent):
        np.testing.assert_array_equal(probabilities_of(policy, tree), expected)


def test_the_probabilities_of_an_agent_are_its_propensities_and_leave_it_alone():
    tree = bough.Tree.balanced(4, 2)
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.update(tree.leaves[:5], [1.0, 2.0, 0.0, -1.0, 0.5])
    agent.retire(int(tree.leaves[1]))
    twin = bough.HierTS.resume(agent.posterior, seed=0)
    [found] = probabilities_of(agent, tree, samples=2_000)
    counted = np.bincount(np.searchsorted(tree.leaves, twin.decide_many(20_000)), minlength=16) / 20_000
    assert found[1] == 0.0
    assert found.sum() == pytest.approx(1.0)
    # both have errors of about 0.0035 at most; five times their sum
    np.testing.assert_allclose(found, counted, atol=0.03)
    again = bough.HierTS.resume(agent.posterior, seed=0)
    assert [agent.decide() for _ in range(5)] == [again.decide() for _ in range(5)]


def test_an_action_that_was_retired_need_not_be_in_the_tree():
    tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.add("water", under="tea")
    with pytest.raises(ValueError, match="the agent may choose 'water'"):
        probabilities_of(agent, tree)
    agent.retire("water")
    found = probabilities_of(agent, tree)
    np.testing.assert_allclose(found[0], agent.best().probability[np.array(agent._catalogue.tree.actions) != "water"])


def test_the_probability_of_a_position_is_that_of_a_rank():
    tree = bough.Tree.from_nested(["a", "b", "c"])
    agent = bough.Greedy(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 1.0])), seed=0)
    agent.update(["a", "b", "c"], [1.0, 3.0, 2.0])
    np.testing.assert_array_equal(probabilities_of(agent, tree, n_positions=2), [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_a_policy_that_only_decides_is_counted():
    class Stubborn:
        def decide(self, context=None, *, k=None, among=None):
            return "b"

        def update(self, action, reward, context=None):
            pass

    tree = bough.Tree.from_nested(["a", "b"])
    np.testing.assert_array_equal(probabilities_of(Stubborn(), tree), [[0.0, 1.0]])


@pytest.mark.parametrize(
    ("policy", "error", "text"),
    [
        ({"a": 0.5}, ValueError, "sum to 0.5"),
        ({"a": 1.5, "b": -0.5}, ValueError, "at least 0"),
        ({"a": 0.5, "z": 0.5}, KeyError, "unknown action 'z'"),
        ([0.5, 0.25, 0.25], ValueError, r"shape \(3,\)"),
        (lambda actions: "x", ValueError, "give numbers"),
        ("uniform", ValueError, "give numbers"),
        (bough.Greedy(bough.GaussianModel(bough.Tree.from_nested(["a", "c"]))), ValueError, "may choose 'c'"),
    ],
)
def test_what_is_no_policy_is_refused_by_name(policy, error, text):
    tree = bough.Tree.from_nested(["a", "b"])
    log = polars.DataFrame({"action": ["a", "b"], "reward": [0.0, 1.0], "propensity": [0.5, 0.5]})
    with pytest.raises(error, match=text) as caught:
        bough.evaluate({"mine": policy}, log, tree, estimators=["ips"])
    assert "policy 'mine'" in str(caught.value)


def test_an_agent_without_contexts_is_asked_for_exact_probabilities():
    """Of 111 touched nodes, where a logged decision would take draws."""
    model = bough.problems.constant(10, 2)
    agent, rng = bough.HierTS(model, seed=0, explore=0.7), np.random.default_rng(0)
    agent.update(list(model.tree.actions) * 3, rng.normal(size=300))
    found = probabilities_of(agent, model.tree, samples=2)
    contest, winners = agent.posterior._winners(None, np.empty(0, dtype=np.int32), scale=0.7)
    np.testing.assert_allclose(found[0], contest.everywhere(winners.place, winners.group), rtol=1e-6)
    assert agent.posterior.best().probability.max() < found.max()  # which explores less
