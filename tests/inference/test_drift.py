"""Actions that drift: the engine against the dense Gaussian process, and what time and order may change."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

import bough
from bough.data.rows import Rows
from bough.inference.drift import DriftEngine, OutOfOrderError
from bough.inference.oracles.drifting import DriftingPosterior
from cases import SHAPES, learned, parents
from test_updates import assert_same

TREE = bough.Tree.from_nested({"tea": ["green", "black", "white"], "coffee": {"hot": ["espresso"], "cold": ["brew"]}})
OTHER = bough.Tree.from_nested({"drinks": ["black", "brew", "green", {"hot": ["espresso"]}, "white", "water"]})


def drifting(shape, n_nodes, rng, drift=None):
    tree = bough.Tree.from_parents(parents(shape, n_nodes, rng))
    variances = 10.0 ** rng.uniform(-2, 1, tree.n_nodes) * (rng.random(tree.n_nodes) > 0.15)
    drift = float(10.0 ** rng.uniform(-1, 3)) if drift is None else drift
    return bough.GaussianModel(tree, float(rng.normal()), bough.by_node(variances), 10.0 ** rng.uniform(-1, 1), drift)


def rows_of(model, n, rng):
    """Rewards of random actions in the order of time, with bursts of one moment and a long gap."""
    leaves = rng.choice(model.tree.leaves, n).astype(np.int32)
    gaps = rng.exponential(size=n) * (rng.random(n) > 0.3)
    gaps[n // 2] += 50.0 * rng.random()
    return leaves, 2.0 * rng.normal(size=n), np.cumsum(gaps) - 3.0


def observed(model, leaves, rewards, times, now=None):
    """A posterior with these rewards as one batch, at the last of their times or later."""
    posterior = bough.Posterior(model)
    engine = posterior._engine
    engine.advance(float(times.max()) if now is None else now)
    engine.observe(Rows(leaves, rewards, None, None, times))
    return posterior


def one_by_one(model, leaves, rewards, times, now=None):
    posterior = bough.Posterior(model)
    engine = posterior._engine
    for leaf, reward, time in zip(leaves.tolist(), rewards.tolist(), times.tolist(), strict=True):
        engine.advance(time)
        engine.observe_one(leaf, reward)
        if leaf % 2:
            _ = engine.mean()  # laws are brought up to date now and then
    if now is not None:
        engine.advance(now)
    return posterior


def oracle(model, leaves, rewards, times, now=None):
    dense = DriftingPosterior(model)
    dense.update([model.tree.name(leaf) for leaf in leaves.tolist()], rewards, times)
    dense.now = dense.now if now is None else now
    return dense


def root_of(posterior):
    centre = posterior.from_normals(np.zeros_like(posterior.mean))
    return np.array([posterior.from_normals(unit) - centre for unit in np.eye(len(centre))]).T


def assert_agrees(posterior, dense):
    np.testing.assert_allclose(posterior.mean, dense.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance, dense.covariance, rtol=1e-8, atol=1e-8)
    root = root_of(posterior)
    np.testing.assert_allclose(root @ root.T, dense.joint_covariance, rtol=1e-8, atol=1e-8)
    assert posterior.log_evidence() == pytest.approx(dense.log_evidence(), rel=1e-8, abs=1e-8)


@settings(max_examples=200)
@given(st.sampled_from(SHAPES), st.integers(2, 9), st.integers(1, 25), st.integers(0, 2**32 - 1))
def test_the_engine_agrees_with_the_dense_gaussian_process(shape, n_nodes, n, seed):
    rng = np.random.default_rng(seed)
    model = drifting(shape, n_nodes, rng)
    rows = rows_of(model, n, rng)
    now = float(rows[2][-1] + rng.choice([0.0, 1.0, 1e6]) * rng.random())
    dense = oracle(model, *rows, now)
    assert_agrees(observed(model, *rows, now), dense)
    assert_agrees(one_by_one(model, *rows, now), dense)


@settings(max_examples=60)
@given(st.sampled_from(SHAPES), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_the_order_of_a_batch_and_of_actions_changes_nothing(shape, n_nodes, seed):
    rng = np.random.default_rng(seed)
    model = drifting(shape, n_nodes, rng)
    leaves, rewards, times = rows_of(model, 20, rng)
    times += 1e-3 * np.arange(20)  # all different: rewards of one moment commute to rounding alone
    expected = observed(model, leaves, rewards, times)
    order = rng.permutation(20)
    assert_same(observed(model, leaves[order], rewards[order], times[order]), expected)
    by_action = bough.Posterior(model)
    by_action._engine.advance(float(times[-1]))
    for leaf in rng.permutation(np.unique(leaves)):
        own = leaves == leaf
        by_action._engine.observe(Rows(leaves[own], rewards[own], None, None, times[own]))
    assert_same(by_action, expected)


def test_sums_of_one_moment_are_its_rewards():
    rng = np.random.default_rng(0)
    model = bough.GaussianModel(TREE, 0.4, 0.5, 0.7, drift=5.0)
    single, summed = bough.Posterior(model), bough.Posterior(model)
    for day in range(6):
        names, rewards = rng.choice(np.asarray(TREE.actions), 30).tolist(), rng.normal(size=30)
        for posterior in (single, summed):
            posterior._engine.advance(float(day))
        single.update(names, rewards)
        summed.absorb(bough.Statistics.from_rows(names, rewards))
    assert_same(summed, single)


def test_time_ages_laws_and_never_messages():
    rng = np.random.default_rng(1)
    model = bough.GaussianModel(TREE, 0.4, bough.by_node(rng.uniform(0.2, 2.0, TREE.n_nodes)), 0.7, drift=5.0)
    rows = rows_of(model, 40, rng)
    posterior = observed(model, *rows)
    tea, green = TREE.index("tea"), TREE.index("green")
    before = posterior.mean[tea], posterior.covariance[tea], posterior.log_evidence()
    state = posterior._engine._state.copy()
    posterior._engine.advance(1e9)
    posterior._answers.clear()
    np.testing.assert_array_equal(posterior._engine._state, state)
    assert (posterior.mean[tea], posterior.covariance[tea], posterior.log_evidence()) == before
    own = model.classes.table[model.classes.of_node[green]]
    assert posterior.conditional(green) == (1.0, 0.0, pytest.approx(own))  # all that was its own is forgotten
    assert posterior.mean[green] == pytest.approx(posterior.mean[tea])


def test_a_reward_before_its_actions_last_is_refused_and_nothing_changes():
    model = bough.GaussianModel(TREE, drift=5.0)
    leaf, other = (np.int32(TREE.index(name)) for name in ("green", "brew"))
    posterior = observed(model, np.array([leaf]), np.array([1.0]), np.array([3.0]))
    before = learned(posterior)
    late = Rows(np.array([other, leaf, leaf]), np.ones(3), None, None, np.array([1.0, 3.5, 2.0]))
    posterior._engine.advance(4.0)
    with pytest.raises(OutOfOrderError, match="earlier than its last one, at 3") as error:
        posterior._engine.observe(late)
    assert (error.value.leaf, error.value.time, error.value.last) == (leaf, 2.0, 3.0)
    for name, array in learned(posterior).items():
        np.testing.assert_array_equal(array, before[name])
    posterior._engine.observe(Rows(np.array([other, leaf]), np.ones(2), None, None, np.array([1.0, 3.0])))
    assert posterior.n_observations == 3


@settings(max_examples=40)
@given(st.sampled_from(SHAPES), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_another_mean_is_what_that_model_would_have_learned(shape, n_nodes, seed):
    rng = np.random.default_rng(seed)
    model = drifting(shape, n_nodes, rng)
    rows = rows_of(model, 20, rng)
    table = model.classes.table[model.classes.of_node]
    inner = np.setdiff1d(np.arange(model.tree.n_nodes), model.tree.leaves)
    table[inner] *= 3.0
    target = bough.GaussianModel(model.tree, 5.0, bough.by_node(table), model.noise_variance, model.drift)
    moved = observed(model, *rows).on(target)
    assert_agrees(moved, oracle(target, *rows))


def test_evidence_goes_by_names_to_another_tree():
    rng = np.random.default_rng(2)
    model, target = (bough.GaussianModel(tree, drift=4.0) for tree in (TREE, OTHER))
    leaves, rewards, times = rows_of(model, 30, rng)
    moved = observed(model, leaves, rewards, times).on(target)
    leaves = np.array([OTHER.index(TREE.name(leaf)) for leaf in leaves.tolist()], dtype=np.int32)
    assert_agrees(moved, oracle(target, leaves, rewards, times))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"noise_variance": 2.0}, "noise_variance is 2.0 and was 1.0"),
        ({"drift": 6.0}, "drift is 6.0 and was 5.0"),
        ({"drift": None}, "drift is None and was 5.0"),
        ({"covariance": bough.by_node({"green": 2.0}, default=1.0)}, "the variance of 'green' is 2.0 and was 1.0"),
    ],
)
def test_what_needs_the_log_is_refused(change, said):
    model = bough.GaussianModel(TREE, drift=5.0)
    posterior = bough.Posterior(model)
    other = bough.GaussianModel(TREE, **{"drift": 5.0, **change})
    if other.drift == model.drift:
        assert posterior.on(other).n_observations == 0  # nothing is known yet that could be lost
    posterior.update("green", 1.0)
    with pytest.raises(ValueError, match=f"{said}; with drift that needs the log"):
        posterior.on(other)
    if other.drift is None:
        still = bough.Posterior(other)
        still.update("green", 1.0)
        with pytest.raises(ValueError, match=r"drift is 5\.0 and was None"):
            still.on(model)


def test_a_variance_of_an_action_without_evidence_may_change():
    posterior = bough.Posterior(bough.GaussianModel(TREE, drift=5.0))
    posterior.update("green", 1.0)
    wider = bough.GaussianModel(TREE, covariance=bough.by_node({"brew": 2.0}, default=1.0), drift=5.0)
    fresh = bough.Posterior(wider)
    fresh.update("green", 1.0)
    assert_same(posterior.on(wider), fresh)


def test_a_very_slow_drift_is_none():
    rng = np.random.default_rng(3)
    variances = bough.by_node(rng.uniform(0.2, 2.0, TREE.n_nodes))
    still = bough.Posterior(bough.GaussianModel(TREE, 0.4, variances, 0.7))
    slow = bough.GaussianModel(TREE, 0.4, variances, 0.7, drift=1e15)
    leaves, rewards, times = rows_of(slow, 200, rng)
    still.update([TREE.name(leaf) for leaf in leaves.tolist()], rewards)
    assert_same(observed(slow, leaves, rewards, times), still)


def test_a_hundred_thousand_single_rewards_equal_one_batch():
    rng = np.random.default_rng(4)
    tree = bough.Tree.balanced(branching=3, height=3)
    model = bough.GaussianModel(tree, 0.3, bough.by_depth([2.0, 1.0, 0.5, 0.1]), 1.0, drift=500.0)
    leaves = rng.choice(tree.leaves, 100_000).astype(np.int32)
    rewards, times = rng.normal(size=100_000) + leaves / 10, np.arange(100_000.0)
    engine = bough.Posterior(model)._engine
    for leaf, reward, time in zip(leaves.tolist(), rewards.tolist(), times.tolist(), strict=True):
        engine.advance(time)
        engine.observe_one(leaf, reward)
    batch = observed(model, leaves, rewards, times)
    np.testing.assert_allclose(engine.mean(), batch.mean, rtol=1e-9)
    np.testing.assert_allclose(engine.covariance(), batch.covariance, rtol=1e-9)
    assert engine.log_evidence() == pytest.approx(batch.log_evidence(), rel=1e-11)


@pytest.mark.parametrize("n", [0, 4, 60])
@pytest.mark.parametrize("shape", ["regular", "uneven"])
def test_the_search_has_the_law_of_the_full_sampler(shape, n):
    # Chi-squared of 40,000 decisions each way, fixed seeds: false-alarm rate 1e-4 a test.
    rng = np.random.default_rng(5)
    tree = bough.Tree.balanced(3, 2) if shape == "regular" else TREE
    model = bough.GaussianModel(tree, 0.2, bough.by_height([0.8, 0.5, 0.3, 0.2][: tree.height + 1]), 0.5, drift=3.0)
    posterior = observed(model, *rows_of(model, n, rng)) if n else bough.Posterior(model)
    posterior._engine.advance(posterior._engine.now + 2.0)
    draws = 40_000
    found = [posterior.best_actions(rng).nodes[0] for _ in range(draws)]
    scores = posterior.sample(rng, size=draws)[:, tree.leaves]
    drawn = tree.leaves[scores.argmax(axis=1)]
    counts = np.array([np.bincount(nodes, minlength=tree.n_nodes)[tree.leaves] for nodes in (found, drawn)])
    assert chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue > 1e-4


def test_actions_drawn_by_themselves_have_their_law():
    # The mean of 20,000 draws within 5 standard errors: false-alarm rate below 1e-5 for the whole test.
    rng = np.random.default_rng(6)
    model = bough.GaussianModel(TREE, 0.2, drift=3.0)
    posterior = observed(model, *rows_of(model, 20, rng))
    posterior._engine.advance(posterior._engine.now + 1.0)
    draws = np.array([posterior.sample_actions(TREE.leaves, rng) for _ in range(20_000)])
    mean, variance = posterior.action_moments()
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * np.sqrt(variance / 20_000)).all()


def test_snapshots_go_on_by_themselves():
    rng = np.random.default_rng(7)
    model = bough.GaussianModel(TREE, drift=3.0)
    engine = observed(model, *rows_of(model, 20, rng))._engine
    twin, mean = engine.snapshot(), engine.mean()
    twin.advance(twin.now + 5.0)
    twin.observe_one(int(TREE.leaves[0]), 3.0)
    np.testing.assert_array_equal(engine.mean(), mean)
    assert twin.now == engine.now + 5.0


def test_what_a_file_keeps_makes_the_same_posterior(tmp_path):
    rng = np.random.default_rng(8)
    model = bough.GaussianModel(TREE, 0.3, drift=timedelta(days=3))
    posterior = bough.Posterior(model)
    days = [datetime(2026, 1, 1) + timedelta(days=float(day)) for day in rng.uniform(0.0, 9.0, 20)]
    posterior.update(rng.choice(np.asarray(TREE.actions), 20), rng.normal(size=20), at=days)
    posterior.save(tmp_path / "posterior.bough")
    again = bough.Posterior.load(tmp_path / "posterior.bough")
    assert isinstance(again._engine, DriftEngine)
    assert again.model.drift == timedelta(days=3)
    assert again.now == max(days)
    assert_same(again, posterior)


def test_a_file_whose_rewards_are_later_than_its_clock_is_refused(tmp_path):
    posterior = bough.Posterior(bough.GaussianModel(TREE, drift=3.0))
    posterior.update("green", 1.0, at=5.0)
    posterior.update("green", 1.0, at=9.0)
    posterior._clock = bough.Posterior(posterior.model)._clock  # as a crafted file has it
    posterior.save(tmp_path / "posterior.bough")
    with pytest.raises(ValueError, match="later than the clock"):
        bough.Posterior.load(tmp_path / "posterior.bough")


def test_evidence_that_no_rewards_leave_is_not_sound():
    posterior = bough.Posterior(bough.GaussianModel(TREE, drift=3.0))
    posterior.update(["green", "green", "brew"], [1.0, 2.0, 3.0])
    table, kind = posterior._engine.table.copy(), posterior._engine.kind
    assert kind.sound(table).all()
    for column, wrong in ((0, 0.0), (2, 1.5), (2, -0.1), (3, -1.0), (5, 0.0), (8, -1.0)):
        damaged = table.copy()
        damaged[0, column] = wrong
        assert kind.sound(damaged).tolist() == [False, True]


def test_sums_do_not_say_it():
    posterior = bough.Posterior(bough.GaussianModel(TREE, drift=3.0))
    posterior.update("green", 1.0)
    with pytest.raises(ValueError, match="sums cannot tell when rewards came"):
        _ = posterior.statistics


def test_policies_learn_with_drift_and_do_not_refit():
    model = bough.GaussianModel(TREE, drift=3.0)
    for policy in (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB):
        agent = policy(model, 0)
        agent.update(agent.decide(), 1.0)
        assert agent.posterior.model.drift == 3.0
        with pytest.raises(ValueError, match="the model has drift"):
            policy(model, 0, refit=True)
