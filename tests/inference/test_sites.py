"""Rewards that are counts: the approximate posterior against the exact one, and what it promises by itself."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import poisson

import bough
from bough.inference.kernels.likelihoods import BERNOULLI, POISSON, drawn_reward
from bough.inference.kernels.sites import site, tilted
from bough.inference.oracles.dense import DensePosterior
from bough.inference.oracles.grid import GridPosterior
from cases import SHAPES, parents
from naive import propagated

KINDS = {"bernoulli": bough.BernoulliModel, "poisson": bough.PoissonModel}
EXTREMES = ((0, 1), (1, 1), (0, 10_000), (10_000, 10_000))
TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})


def word(model) -> str:
    return model.kind.exposure_word


def make_case(kind: str, shape: str, n_nodes: int, seed: int):
    """A model, and the counts of some of its actions: drawn from it, or extreme."""
    rng = np.random.default_rng(seed)
    tree = bough.Tree.from_parents(parents(shape, n_nodes, rng))
    variances = 10.0 ** rng.uniform(-3.0, 1.0, tree.n_nodes) * (rng.random(tree.n_nodes) > 0.15)
    model = KINDS[kind](tree, float(rng.normal(-1.0, 1.5)), bough.by_node(variances))
    scores = model.draw(rng)[tree.leaves]
    totals, exposure = np.empty(len(scores)), np.empty(len(scores))
    for i, score in enumerate(scores.tolist()):
        if kind == "bernoulli":
            exposure[i] = int(10.0 ** rng.uniform(0.0, 4.0))
            totals[i] = rng.binomial(int(exposure[i]), expit(score))
            if rng.random() < 0.4:
                totals[i], exposure[i] = EXTREMES[rng.integers(4)]
        else:
            exposure[i] = 10.0 ** rng.uniform(-1.0, 3.0)
            totals[i] = rng.poisson(exposure[i] * np.exp(score)) * (rng.random() > 0.2)
    seen = np.flatnonzero(rng.random(len(scores)) < 0.8)
    return model, [tree.actions[i] for i in seen.tolist()], totals[seen], exposure[seen]


def both(model, actions, totals, exposure) -> tuple[bough.Posterior, GridPosterior]:
    posterior, grid = bough.Posterior(model), GridPosterior(model)
    for one in (posterior, grid):
        one.update(actions, totals, **{word(model): exposure})
    return posterior, grid


def errors(posterior: bough.Posterior, grid: GridPosterior) -> tuple[np.ndarray, np.ndarray, float]:
    """Of the means in posterior standard deviations, of the standard deviations as shares, and of the log evidence."""
    variance = grid.covariance
    known = variance < 1e-18
    np.testing.assert_allclose(posterior.mean[known], grid.mean[known], rtol=1e-9, atol=1e-9)
    assert (posterior.covariance[known] < 1e-18).all()
    mean = np.abs(posterior.mean - grid.mean)[~known] / np.sqrt(variance[~known])
    spread = np.abs(np.sqrt(posterior.covariance[~known] / variance[~known]) - 1.0)
    return mean, spread, abs(posterior.log_evidence() - grid.log_evidence())


# -- expectation propagation, d = 1 ----------------------------------------------------------------


@settings(max_examples=250)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(SHAPES), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_moments_and_evidence_are_close_to_the_exact_ones(kind, shape, n_nodes, seed):
    mean, spread, evidence = errors(*both(*make_case(kind, shape, n_nodes, seed)))
    assert mean.max(initial=0.0) < 0.15
    assert spread.max(initial=0.0) < 0.10
    assert evidence < 0.05


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_moments_are_much_closer_in_the_median(kind):
    found = [errors(*both(*make_case(kind, SHAPES[seed % len(SHAPES)], 9, seed))) for seed in range(90)]
    assert np.median(np.concatenate([mean for mean, _, _ in found])) < 0.02
    assert np.median(np.concatenate([spread for _, spread, _ in found])) < 0.02


@pytest.mark.parametrize("first", EXTREMES)
@pytest.mark.parametrize("second", EXTREMES)
def test_extreme_counts_of_siblings_are_close_too(first, second):
    model = bough.BernoulliModel(TREE, -1.0, bough.by_depth([0.5, 1.0, 0.5]))
    mean, spread, evidence = errors(*both(model, ["green", "black"], *np.array([first, second], dtype=float).T))
    assert mean.max() < 0.15
    assert spread.max() < 0.10
    assert evidence < 0.05


@pytest.mark.parametrize(
    ("kind", "total", "exposure"),
    [
        *(("bernoulli", *pair) for pair in EXTREMES),
        ("bernoulli", 5_000, 10_000),
        ("poisson", 0, 7),
        ("poisson", 10**5, 1),
    ],
)
@pytest.mark.parametrize("variance", [1e-3, 1.0, 9.0])
def test_one_action_alone_has_the_exact_moments(kind, total, exposure, variance):
    # Nothing is approximated but the integral of one parameter. 32 points leave 3e-4 at worst, with variance 9.
    model = KINDS[kind](bough.Tree.from_parents([-1]), -1.0, variance)
    mean, spread, evidence = errors(*both(model, [0], np.array([total]), np.array([exposure])))
    assert max(mean[0], spread[0], evidence) < (1e-3 if variance > 1.0 else 1e-6)


def test_independent_actions_have_the_exact_evidence():
    model = bough.BernoulliModel(bough.Tree.balanced(3, 2), -1.0, bough.by_depth([1.0, 0.5, 0.5])).independent()
    actions = list(model.tree.actions)
    posterior, grid = both(model, actions, np.arange(9.0), np.full(9, 10.0))
    assert posterior.log_evidence() == pytest.approx(grid.log_evidence(), abs=1e-6)


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(SHAPES), st.integers(2, 9), st.integers(0, 2**32 - 1))
@example("bernoulli", "star", 7, 9)
def test_one_by_one_and_settled_is_what_a_batch_is_in_any_order(kind, shape, n_nodes, seed):
    model, actions, totals, exposure = make_case(kind, shape, n_nodes, seed)
    batch, single = bough.Posterior(model), bough.Posterior(model)
    batch.update(actions, totals, **{word(model): exposure})
    for i in np.random.default_rng(seed).permutation(len(actions)).tolist():
        single.update(actions[i], totals[i], **{word(model): exposure[i]})
    single.settle()
    deviation = np.sqrt(batch.covariance)
    assert (np.abs(single.mean - batch.mean) <= 1e-6 * deviation + 1e-12).all()
    np.testing.assert_allclose(single.covariance, batch.covariance, rtol=1e-6, atol=1e-15)
    assert single.log_evidence() == pytest.approx(batch.log_evidence(), abs=1e-6)
    before = batch.mean.copy()
    batch.settle()
    assert (np.abs(batch.mean - before) <= 1e-8 * deviation + 1e-14).all()


def test_one_reward_refreshes_its_own_path_alone():
    model = bough.BernoulliModel(bough.Tree.balanced(2, 2), -1.0)
    posterior = bough.Posterior(model)
    posterior.update([3, 5], [3, 1], trials=[8, 8])
    engine = posterior._engine
    sites = {node: engine._state[int(engine.slots.find(np.array([node], np.int32))[0]), :2].copy() for node in (3, 5)}
    posterior.update(3, 1)
    after = {node: engine._state[int(engine.slots.find(np.array([node], np.int32))[0]), :2] for node in (3, 5)}
    assert (after[5] == sites[5]).all()
    assert (after[3] != sites[3]).all()
    posterior.settle()
    assert (after[5] != sites[5]).any()


def test_the_same_counts_in_other_pieces_are_the_same_posterior():
    model = bough.BernoulliModel(TREE, -1.0)
    whole, pieces, summed = bough.Posterior(model), bough.Posterior(model), bough.Posterior(model)
    whole.update(["green", "espresso"], [3, 1], trials=[5, 4])
    pieces.update(["green"] * 5 + ["espresso"] * 4, [1, 1, 1, 0, 0, 1, 0, 0, 0])
    summed.absorb(bough.Statistics.from_rows(["green"] * 5 + ["espresso"] * 4, [1, 1, 1, 0, 0, 1, 0, 0, 0]))
    for other in (pieces, summed):
        np.testing.assert_allclose(other.mean, whole.mean, rtol=1e-8)
        np.testing.assert_array_equal(other.count, whole.count)
        assert other.log_evidence() == pytest.approx(whole.log_evidence(), abs=1e-8)
    assert whole.n_observations == 9


def test_poisson_observations_are_rows_however_long_they_took():
    posterior = bough.Posterior(bough.PoissonModel(TREE))
    posterior.update(["green", "black"], [3, 0], exposure=[0.25, 8.0])
    posterior.absorb(bough.Statistics.from_rows(["green", "green"], [1, 2], exposure=[0.1, 0.2]))
    assert posterior.n_observations == 4


def test_the_quadrature_is_right_where_data_and_prior_are_far_apart():
    # Newton's method alone would jump between the two for ever.
    log_z, mean, variance = tilted(BERNOULLI, 1e4, 1e4, -4.2, 0.23)

    def density(t):
        return mpmath.exp(-mpmath.mpf(10_000) * mpmath.log1p(mpmath.exp(-t)) - (t + 4.2) ** 2 / 0.46 + 240)

    with mpmath.workdps(30):
        z, first, second = (mpmath.quad(lambda t, k=k: t**k * density(t), mpmath.linspace(2, 10, 30)) for k in range(3))
        assert float(first / z) == pytest.approx(mean, rel=1e-6)
        assert float(second / z - (first / z) ** 2) == pytest.approx(variance, rel=1e-4)
        assert float(mpmath.log(z) - 240 - mpmath.log(2 * mpmath.pi * 0.23) / 2) == pytest.approx(log_z, abs=1e-4)


@pytest.mark.parametrize("variance", [1e-12, 1e-3, 0.07, 0.08, 0.25, 0.3, 0.5, 0.7, 0.75, 1.1, 1.2, 1.5, 2.0, 2.1])
@pytest.mark.parametrize("click", [0.0, 1.0])
def test_the_site_of_one_trial_has_the_moments_of_fine_integrals(click, variance):
    """On both sides of every number of points, to 2e-9: a sum over a grid is as good as exact for such integrals."""
    z = np.linspace(-14.0, 14.0, 1_401)
    for score in (-29.0, -8.0, -2.0, -0.3, 0.0, 1.0, 4.0, 12.0, 31.0):
        s = score + np.sqrt(variance) * z
        p, q = (expit(s), expit(-s)) if click else (expit(-s), expit(s))
        weight = np.exp(-0.5 * z**2) * p * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
        total = weight.sum()
        slope = weight @ q / total  # of the log integral, by the score's mean; the signs are those of a click
        curve = weight @ (q * p) / total - weight @ (q - slope) ** 2 / total
        left = 1.0 - variance * curve
        m, eta, probability = site(BERNOULLI, click, 1.0, score - 0.5, 0.5, variance)
        sign = 1.0 if click else -1.0
        assert probability == pytest.approx(np.log(total), abs=2e-9)
        assert m * variance == pytest.approx(variance * curve / left, abs=2e-9)
        assert (eta - 0.5 * m) * np.sqrt(variance) == pytest.approx(sign * slope * np.sqrt(variance) / left, abs=2e-9)


@pytest.mark.parametrize("variance", [0.01, 0.1, 0.2, 0.5])
@pytest.mark.parametrize(("total", "exposure"), [(0.0, 0.1), (0.0, 3.0), (1.0, 1.0), (4.0, 2.0), (60.0, 50.0)])
def test_few_points_are_enough_for_counts_that_say_little(total, exposure, variance):
    z = np.linspace(-14.0, 14.0, 4_001)
    s = -0.5 + np.sqrt(variance) * z
    weight = np.exp(total * s - exposure * np.exp(s) - 0.5 * z**2) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    z0, mean = weight.sum(), weight @ s / weight.sum()
    log_z, centre, spread = tilted(POISSON, total, exposure, -0.5, variance)
    limit = 2e-9 if variance < 0.2 else 1e-6  # what 32 points have, too
    assert log_z == pytest.approx(np.log(z0), abs=limit)
    assert (centre - mean) / np.sqrt(variance) == pytest.approx(0.0, abs=limit)
    assert spread / (weight @ (s - mean) ** 2 / z0) == pytest.approx(1.0, abs=limit)


@pytest.mark.parametrize(
    ("mean", "variance", "exposure"), [(70.0, 100.0, 1.0), (700.0, 1.0, 1.0), (128.0, 33.0, 423.0)]
)
def test_no_counts_at_all_pull_a_high_rate_down_to_where_it_belongs(mean, variance, exposure):
    posterior, grid = both(
        bough.PoissonModel(bough.Tree.from_parents([-1]), mean, variance), [0], np.zeros(1), np.array([exposure])
    )
    off, spread, evidence = errors(posterior, grid)
    assert max(off[0], spread[0]) < 0.03
    assert evidence < 0.03


def test_a_likelihood_that_is_faint_in_the_middle_of_a_wide_cavity_counts_at_its_edge():
    model = bough.BernoulliModel(bough.Tree.from_nested(list("abcd")), -15.0, bough.by_depth([500.0, 100.0]))
    posterior, grid = both(model, list("abcd"), np.zeros(4), np.full(4, 10.0))
    off, spread, evidence = errors(posterior, grid)
    assert max(off.max(), spread.max(), evidence) < 0.1


def test_the_order_does_not_matter_where_variances_are_large():
    tree = bough.Tree.balanced(2, 8)
    model = bough.BernoulliModel(tree, 0.0, bough.by_height([2.0**height for height in range(9)]))
    first, second = bough.Posterior(model), bough.Posterior(model)
    first.update(tree.leaves, np.zeros(256), trials=10)
    second.update(tree.leaves[::-1], np.zeros(256), trials=10)
    np.testing.assert_allclose(second.mean, first.mean, atol=1e-6)


def test_a_context_that_says_nothing_leaves_the_prior():
    posterior = bough.Posterior(bough.BernoulliModel(TREE, [-1.0, 0.0], 0.01))
    posterior.update("green", 0, [800.0, 0.0])
    np.testing.assert_allclose(posterior.covariance[TREE.index("green")].diagonal(), 0.03, rtol=1e-6)
    surprised = bough.Posterior(bough.BernoulliModel(bough.Tree.from_parents([-1]), [-40.0], 1.0))
    surprised.update(0, 1, [1.0])
    np.testing.assert_allclose(surprised.mean, [[-39.0]], rtol=1e-6)


def test_a_log_that_cannot_be_settled_leaves_everything_as_it_was(monkeypatch):
    posterior = bough.Posterior(CONTEXTUAL)
    posterior.update("green", 1, [1.0, 0.5])
    before = posterior.mean.copy()
    monkeypatch.setattr("bough.inference.filtering.ContextCountEngine._propagate", lambda *_: float("nan"))
    with pytest.raises(ValueError, match="cannot be computed"):
        posterior.settle((["black"], [1], [[1.0, 2.0]]), method="propagation")
    np.testing.assert_array_equal(posterior.mean, before)
    assert posterior.n_observations == 1
    fresh = bough.Posterior(CONTEXTUAL)
    with pytest.raises(ValueError, match="cannot be computed"):
        fresh.settle((["black"], [1], [[1.0, 2.0]]), method="propagation")
    assert fresh.n_observations == 0
    fresh.update("green", 1, [1.0, 0.5])
    np.testing.assert_allclose(fresh.mean, before)


def test_a_parameter_that_is_known_stays_known():
    posterior = bough.Posterior(bough.BernoulliModel(TREE, -2.0, 0.0))
    posterior.update(["green", "black"], [50, 0], trials=[100, 100])
    assert (posterior.mean == -2.0).all()
    assert (posterior.covariance == 0.0).all()
    p = expit(-2.0)
    assert posterior.log_evidence() == pytest.approx(50 * np.log(p) + 150 * np.log1p(-p), rel=1e-12)


def test_gaussian_rewards_need_no_settling():
    posterior = bough.Posterior(bough.GaussianModel(TREE))
    posterior.update("green", 1.0)
    before = posterior.mean
    posterior.settle()
    assert posterior.mean is before
    with pytest.raises(ValueError, match="call settle\\(\\) without a log"):
        posterior.settle((["green"], [1.0]))


# -- mean rewards ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_mean_rewards_are_close_to_the_exact_ones(kind):
    model = KINDS[kind](bough.Tree.balanced(3, 2), -1.0, bough.by_depth([0.3, 0.5, 0.3]))
    rng = np.random.default_rng(1)
    posterior, grid = bough.Posterior(model), GridPosterior(model, points=2_001)
    totals = rng.integers(0, 8, 6)
    for one in (posterior, grid):
        one.update(list(model.tree.actions[:6]), totals, **{word(model): np.full(6, 20.0)})
    mean, low, high = posterior.mean_reward()
    np.testing.assert_allclose(mean, grid.mean_reward, rtol=0.01)  # a Gaussian has no skewness: 0.006 off
    for place, leaf in enumerate(model.tree.leaves.tolist()):
        values, density = grid.marginal(leaf)
        inside = (model.mean_reward(values) > low[place]) & (model.mean_reward(values) < high[place])
        assert density[inside].sum() / density.sum() == pytest.approx(0.95, abs=0.02)


def test_mean_rewards_of_gaussian_rewards_are_the_means():
    posterior = bough.Posterior(bough.GaussianModel(TREE, mean=[0.0, 0.0]))
    mean, low, high = posterior.mean_reward(context=[3.0, 4.0], level=0.5)
    assert (mean == 0.0).all()
    np.testing.assert_allclose(high, 0.67449 * np.sqrt(75.0), rtol=1e-5)
    np.testing.assert_allclose(low, -high)
    with pytest.raises(ValueError, match="level is 95; give a number between 0 and 1"):
        posterior.mean_reward(context=[3.0, 4.0], level=95)


# -- contexts --------------------------------------------------------------------------------------

PRIOR = bough.by_depth([np.diag([0.5, 0.3]), np.array([[1.0, 0.4], [0.4, 0.8]]), 0.5 * np.eye(2)])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_one_observation_in_a_context_has_the_exact_moments(kind):
    """The reward depends on one direction, in which moments are matched; the rest follows exactly."""
    model = KINDS[kind](bough.Tree.from_parents([-1]), [0.3, -0.5], np.array([[1.0, 0.4], [0.4, 0.8]]))
    posterior, x = bough.Posterior(model), np.array([1.5, -1.0])
    posterior.update(0, 1, context=x)
    axis = np.linspace(-7.0, 7.0, 1201)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    off = grid - model.mean
    log_density = -0.5 * np.einsum("ni,ij,nj->n", off, np.linalg.inv(model.classes.table[0]), off)
    score = grid @ x
    log_density += -np.logaddexp(0.0, -score) if kind == "bernoulli" else score - np.exp(score)
    weight = np.exp(log_density - log_density.max())
    total = weight.sum()
    mean = weight @ grid / total
    np.testing.assert_allclose(posterior.mean[0], mean, atol=1e-6)
    covariance = np.einsum("n,ni,nj->ij", weight, grid - mean, grid - mean) / total
    np.testing.assert_allclose(posterior.covariance[0], covariance, atol=1e-6)
    prior_mass = 2.0 * np.pi * np.sqrt(np.linalg.det(model.classes.table[0]))
    evidence = log_density.max() + np.log(total * (axis[1] - axis[0]) ** 2 / prior_mass)
    assert posterior.log_evidence() == pytest.approx(evidence, abs=1e-6)


def contextual_log(kind: str, n: int, seed: int):
    rng = np.random.default_rng(seed)
    model = KINDS[kind](bough.Tree.balanced(2, 2), [0.5, -0.3], PRIOR)
    actions, contexts = rng.choice(model.tree.leaves, n), rng.normal(size=(n, 2))
    score = np.einsum("nd,nd->n", model.draw(rng)[actions], contexts)
    if kind == "bernoulli":
        exposure = rng.integers(1, 5, n).astype(float)
        rewards = rng.binomial(exposure.astype(int), expit(score)).astype(float)
    else:
        exposure = rng.uniform(0.5, 2.0, n)
        rewards = rng.poisson(exposure * np.exp(score)).astype(float)
    return model, bough.Observations(actions, rewards, contexts, **{word(model): exposure})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_settling_a_log_finds_the_mode_and_the_curvature_there(kind):
    model, log = contextual_log(kind, 60, seed=2)
    rows, root = log.rows(model), DensePosterior(model).prior_root.reshape(14, 14)
    design = np.einsum("nd,ndk->nk", rows.contexts, root.reshape(7, 2, 14)[rows.leaves])
    shift = rows.contexts @ model.mean

    def descent(normals):
        score = shift + design @ normals
        if kind == "bernoulli":
            value = rows.rewards @ score - rows.exposure @ np.logaddexp(0.0, score)
            slope = rows.rewards - rows.exposure * expit(score)
        else:
            value = rows.rewards @ score - rows.exposure @ np.exp(score)
            slope = rows.rewards - rows.exposure * np.exp(score)
        return 0.5 * normals @ normals - value, normals - design.T @ slope

    found = minimize(descent, np.zeros(14), jac=True, method="BFGS", options={"gtol": 1e-9})
    score = shift + design @ found.x
    weight = rows.exposure * (expit(score) * expit(-score) if kind == "bernoulli" else np.exp(score))
    precision = np.eye(14) + design.T @ (weight[:, None] * design)
    covariance = root @ np.linalg.solve(precision, root.T)
    posterior = bough.Posterior(model)
    posterior.settle(log, method="laplace")
    np.testing.assert_allclose(posterior.mean.ravel(), np.tile(model.mean, 7) + root @ found.x, atol=1e-5)
    blocks = covariance.reshape(7, 2, 7, 2)[np.arange(7), :, np.arange(7)]
    np.testing.assert_allclose(posterior.covariance, blocks, atol=1e-6)
    evidence = -found.fun - 0.5 * np.linalg.slogdet(precision)[1]
    assert posterior.log_evidence() == pytest.approx(evidence, abs=1e-6)
    assert posterior.n_observations == (rows.exposure.sum() if kind == "bernoulli" else 60)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_settling_a_log_is_propagation_over_its_rows(kind):
    model, log = contextual_log(kind, 30, seed=5)
    mean, covariance, evidence = propagated(model, log)
    posterior = bough.Posterior(model)
    posterior.settle(log)
    np.testing.assert_allclose(posterior.mean.ravel(), mean, atol=1e-7)
    blocks = covariance.reshape(7, 2, 7, 2)[np.arange(7), :, np.arange(7)]
    np.testing.assert_allclose(posterior.covariance, blocks, atol=1e-7)
    assert posterior.log_evidence() == pytest.approx(evidence, abs=1e-6)


@pytest.mark.parametrize("method", ["laplace", "propagation"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_of_one_action_in_one_context_are_one_row_of_their_totals(kind, method):
    model, log = contextual_log(kind, 12, seed=9)
    rng, of_row = np.random.default_rng(10), np.repeat(np.arange(12), 5)
    totals, sizes = np.bincount(of_row, rng.integers(0, 2, 60)), 5.0 * np.asarray(getattr(log, word(model)))
    parts = np.zeros(60)
    for row in range(12):  # the successes come first, where there are any
        parts[5 * row : 5 * row + int(totals[row])] = 1.0
    order = rng.permutation(60)
    piecewise = bough.Observations(
        np.asarray(log.action)[of_row][order], parts[order], log.context[of_row][order],
        **{word(model): (sizes / 5.0)[of_row][order]},
    )  # fmt: skip
    whole, pieces = bough.Posterior(model), bough.Posterior(model)
    whole.settle(bough.Observations(log.action, totals, log.context, **{word(model): sizes}), method=method)
    pieces.settle(piecewise, method=method)
    np.testing.assert_allclose(pieces.mean, whole.mean, atol=1e-9)
    np.testing.assert_allclose(pieces.covariance, whole.covariance, atol=1e-9)
    assert pieces.log_evidence() == pytest.approx(whole.log_evidence(), abs=1e-9)
    assert pieces.n_observations == (60 if kind == "poisson" else whole.n_observations)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_one_pass_and_settling_come_close_to_each_other(kind):
    model, log = contextual_log(kind, 400, seed=3)
    one_pass, settled = bough.Posterior(model), bough.Posterior(model)
    one_pass.update(log.action, log.reward, log.context, trials=log.trials, exposure=log.exposure)
    settled.settle(log)
    deviation = np.sqrt(np.einsum("vdd->vd", settled.covariance))
    assert np.median(np.abs(one_pass.mean - settled.mean) / deviation) < 0.25
    assert one_pass.log_evidence() == pytest.approx(settled.log_evidence(), abs=1.5)
    again = bough.Posterior(model)
    again.update(log.action, log.reward, log.context, trials=log.trials, exposure=log.exposure)
    again.settle(log)  # replaces all that was learned
    np.testing.assert_allclose(again.mean, settled.mean, atol=1e-8)
    assert again.n_observations == settled.n_observations


def test_propagation_over_a_log_is_closer_to_long_chains_than_the_mode_is():
    # 8,000 draws know a mean to about 0.02 standard deviations: 0.1 is far out, and the mode is 0.3 off here.
    model, log = contextual_log("bernoulli", 60, seed=6)
    chains = bough.gibbs(model, log, draws=4_000, chains=2, seed=7)
    deviation = np.sqrt(np.einsum("vdd->vd", chains.covariance))
    off = {}
    for method in ("laplace", "propagation"):
        posterior = bough.Posterior(model)
        posterior.settle(log, method=method)
        off[method] = np.abs(posterior.mean - chains.mean) / deviation
    assert off["propagation"].max() < 0.1
    assert np.median(off["propagation"]) < 0.5 * np.median(off["laplace"])
    np.testing.assert_allclose(np.sqrt(np.einsum("vdd->vd", posterior.covariance)), deviation, rtol=0.06)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_propagation_over_a_log_has_the_evidence_of_the_fit(kind):
    model, log = contextual_log(kind, 200, seed=8)
    fit = bough.fit_prior(model.tree, log, model=KINDS[kind])
    posterior = bough.Posterior(fit.model)
    posterior.settle(log, method="propagation")
    assert posterior.log_evidence() == pytest.approx(fit.log_evidence, abs=1e-5)


def test_newton_steps_are_halved_where_they_would_overshoot():
    model = bough.PoissonModel(bough.Tree.from_nested(["left", "right"]), [0.0, 0.0], 100.0)
    posterior = bough.Posterior(model)
    log = bough.Observations(["left"] * 3, [0, 10_000, 3], [[1.0, 0.0], [1.0, 3.0], [0.5, -2.0]])
    posterior.settle(log, method="laplace")
    scores = np.array(log.context) @ posterior.mean[model.tree.index("left")]
    slope = np.array(log.context).T @ (np.array(log.reward) - np.exp(scores))
    above = np.linalg.solve(200.0 * np.eye(2), posterior.mean[model.tree.index("left")])
    np.testing.assert_allclose(slope, above, atol=1e-3)


def test_a_context_of_one_number_is_close_to_the_settled_k_armed_posterior():
    tree = bough.Tree.balanced(3, 2)
    plain, contextual = bough.BernoulliModel(tree, -1.0), bough.BernoulliModel(tree, [-1.0])
    rng = np.random.default_rng(4)
    actions, rewards = rng.choice(tree.leaves, 200), rng.integers(0, 2, 200)
    first, second = bough.Posterior(plain), bough.Posterior(contextual)
    first.update(actions, rewards)
    second.update(actions, rewards, np.ones((200, 1)))
    assert np.abs(second.mean[:, 0] - first.mean).max() < 0.1
    assert second.log_evidence() == pytest.approx(first.log_evidence(), abs=1.0)  # sites of one pass: 0.5 off


# -- input and files -------------------------------------------------------------------------------

CLICKS, COUNTS = bough.BernoulliModel(TREE), bough.PoissonModel(TREE)
CONTEXTUAL = bough.BernoulliModel(TREE, [0.0, 0.0])


@pytest.mark.parametrize(
    ("model", "action", "reward", "options", "message"),
    [
        (CLICKS, "green", 0.5, {}, "the reward is 0.5; give 0 or 1, or with trials=m"),
        (CLICKS, "green", 2, {}, "the reward is 2; give 0 or 1"),
        (CLICKS, "green", -1, {}, "the reward is -1; give 0 or 1"),
        (CLICKS, "green", float("nan"), {}, "the reward is nan; give a finite number"),
        (CLICKS, "green", 5, {"trials": 4}, "the reward is 5; give a whole number of successes from 0 to its trials"),
        (CLICKS, "green", 1.5, {"trials": 4}, "the reward is 1.5"),
        (CLICKS, "green", 0, {"trials": 0}, "the number of trials is 0; give a whole number of 1 or more"),
        (CLICKS, "green", 1, {"trials": 2.5}, "the number of trials is 2.5"),
        (CLICKS, "green", 1, {"trials": "many"}, "the trials is 'many'; give numbers"),
        (CLICKS, "green", 1, {"exposure": 2.0}, "exposure was given, which goes with a bough.PoissonModel"),
        (CLICKS, ["green", "black"], [1, 2], {}, "the reward in row 1 is 2"),
        (CLICKS, ["green", "black"], [1, 0], {"trials": [1, 2, 3]}, "trials has shape \\(3,\\) and the rewards"),
        (CLICKS, ["green", "black"], [1, 3], {"trials": 2}, "the reward in row 1 is 3"),
        (COUNTS, "green", -1, {}, "the reward is -1; give a count, a whole number of 0 or more"),
        (COUNTS, "green", 1.5, {}, "the reward is 1.5; give a count"),
        (COUNTS, "green", 1, {"exposure": 0.0}, "the exposure is 0; give a positive, finite number"),
        (COUNTS, "green", 1, {"exposure": -2.0}, "the exposure is -2"),
        (COUNTS, "green", 1, {"exposure": float("nan")}, "the exposure is nan"),
        (
            COUNTS,
            "green",
            1,
            {"trials": 3},
            "trials was given, which goes with a bough.BernoulliModel; give that model",
        ),
        (COUNTS, ["green", "black"], [1, 1], {"exposure": [1.0, 0.0]}, "the exposure in row 1 is 0"),
        (CONTEXTUAL, "green", 1, {}, "no context was given"),
        (CONTEXTUAL, "green", 2, {"context": [1.0, 1.0]}, "the reward is 2"),
        (CONTEXTUAL, ["green", "black"], [1, -1], {"context": np.ones((2, 2))}, "the reward in row 1 is -1"),
    ],
)
def test_what_cannot_be_a_reward_is_refused_and_nothing_changes(model, action, reward, options, message):
    posterior = bough.Posterior(model)
    context = None if model.is_scalar else [1.0, 0.5]
    posterior.update("espresso", 1, context)
    before = posterior.mean.copy(), posterior.log_evidence(), posterior.n_observations
    with pytest.raises(ValueError, match=message):
        posterior.update(action, reward, **options)
    assert (posterior.mean == before[0]).all()
    assert (posterior.log_evidence(), posterior.n_observations) == before[1:]


@pytest.mark.parametrize(
    ("model", "rows", "options", "message"),
    [
        (CLICKS, (["green"], [2.0]), {}, "'green' has rewards that a BernoulliModel cannot have"),
        (CLICKS, (["green"] * 2, [0.5, 0.5]), {}, "a sum of 1, and of their squares 0.5, in 2"),
        (COUNTS, (["green"], [-1.0]), {}, "a sum of -1, .*; give counts of 0 or more"),
    ],
)
def test_sums_that_cannot_be_are_refused(model, rows, options, message):
    posterior = bough.Posterior(model)
    with pytest.raises(ValueError, match=message):
        posterior.absorb(bough.Statistics.from_rows(*rows, **options))
    assert posterior.n_observations == 0


def test_sums_of_contexts_are_not_enough_for_counts():
    posterior = bough.Posterior(CONTEXTUAL)
    with pytest.raises(ValueError, match="sums cannot tell which rewards came in which contexts"):
        posterior.absorb(bough.Statistics.from_rows(["green"], [1.0], [[1.0, 0.5]]))
    with pytest.raises(ValueError, match="is refined from its log"):
        posterior.settle()
    with pytest.raises(ValueError, match="the log is 'clicks'; give"):
        posterior.settle("clicks")
    with pytest.raises(ValueError, match="method is 'newton'"):
        posterior.settle((["green"], [1], [[1.0, 0.5]]), method="newton")
    with pytest.raises(ValueError, match="the log is empty"):
        posterior.settle(([], [], np.empty((0, 2))))
    assert posterior.n_observations == 0


@pytest.mark.parametrize("model", [CLICKS, COUNTS, CONTEXTUAL], ids=["clicks", "counts", "contexts"])
def test_a_posterior_of_counts_comes_back_from_a_file_and_goes_on(model, tmp_path):
    contexts = None if model.is_scalar else np.random.default_rng(0).normal(size=(4, 2))
    first = bough.Posterior(model)
    first.update(["green", "black", "espresso"], [1, 0, 1], None if contexts is None else contexts[:3])
    first.save(tmp_path / "posterior.bough")
    second = bough.Posterior.load(tmp_path / "posterior.bough")
    assert type(second.model) is type(model)
    for posterior in (first, second):
        posterior.update("green", 1, None if contexts is None else contexts[3])
    np.testing.assert_allclose(second.mean, first.mean, rtol=1e-12, atol=1e-14)  # messages are made again
    assert second.log_evidence() == pytest.approx(first.log_evidence(), rel=1e-12)
    assert second.n_observations == 4


def test_a_model_comes_back_from_a_file_as_what_it_was(tmp_path):
    for model in (CLICKS, COUNTS, CONTEXTUAL, bough.GaussianModel(TREE)):
        model.save(tmp_path / "model.bough")
        again = bough.GaussianModel.load(tmp_path / "model.bough")
        assert type(again) is type(model)
        assert repr(again) == repr(model)
        assert type(again.flat()) is type(again.independent()) is type(model)


def test_observations_come_from_frames_by_name():
    import polars

    frame = polars.DataFrame({"ad": ["green", "black"], "clicks": [3, 0], "views": [40, 25], "age": [0.5, 1.0]})
    rows = bough.Observations.from_frame(frame, "ad", "clicks", trials="views").rows(CLICKS)
    assert rows.rewards.tolist() == [3.0, 0.0]
    assert rows.exposure.tolist() == [40.0, 25.0]
    contexts = bough.Observations.from_frame(frame.to_pandas(), "ad", "clicks", ["age", "views"]).context
    assert contexts.tolist() == [[0.5, 40.0], [1.0, 25.0]]
    with pytest.raises(ValueError, match="no column 'view'; it has ad, clicks"):
        bough.Observations.from_frame(frame, "ad", "clicks", trials="view")
    with pytest.raises(ValueError, match="frame is a dict"):
        bough.Observations.from_frame({}, "ad", "clicks")


@pytest.mark.parametrize("mean", [1e-3, 0.3, 2.0, 37.5, 4e3])
def test_a_uniform_number_gives_the_quantile_of_a_count(mean):
    model = bough.PoissonModel(TREE)
    for noise in [0.0, *np.random.default_rng(5).random(200).tolist(), 0.9999999]:
        wanted = max(poisson.ppf(noise, mean), 0.0)
        assert drawn_reward(POISSON, mean, noise) == wanted
        assert model.likelihood.reward(mean, noise) == wanted
