"""Gibbs sampling of clicks against numeric integration, against itself by calibration, and what it takes and refuses.

Every comparison of draws with the truth says how often it would fail by chance under another seed.
"""

import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit
from scipy.stats import chisquare, norm

import bough
from bough import GibbsDraws, gibbs
from bough.data.rows import Observations
from bough.inference.oracles.grid import GridPosterior
from bough.inference.polya_gamma import gamma_parts, polya_gamma
from bough.model.bernoulli import BernoulliModel
from bough.model.gaussian import GaussianModel
from bough.model.poisson import PoissonModel

ALONE = bough.Tree.from_parents([-1], names=["it"])
FORK = bough.Tree.from_nested(["left", "right"])
DEEP = bough.Tree.balanced(branching=2, height=2)  # 0 above 1 and 2; actions 3 and 4 below 1, 5 and 6 below 2


def log_likelihood(score, successes, trials):
    return successes * log_expit(score) + (trials - successes) * log_expit(-score)


def standard_errors(found, quantity, truth):
    """How many Monte Carlo standard errors the mean of a quantity (chains, draws, ...) is off."""
    size = GibbsDraws(quantity.reshape(*quantity.shape[:2], -1), found.model).effective_sample_size()
    error = quantity.std(axis=(0, 1)).ravel() / np.sqrt(size)
    return np.abs(quantity.mean(axis=(0, 1)).ravel() - np.ravel(truth)) / error


# -- Polya-Gamma variables -----------------------------------------------------------------------


def test_gamma_variables_add_up_to_a_polya_gamma_one():
    # The logarithms of the Laplace transforms, where PG(20, tilt) has most of its mass; larger shapes do better.
    tilt = np.array([0.0, 1e-9, 1e-3, 0.0499, 0.0501, 0.3, 1.0, 3.0, 8.0, 15.0, 30.0])
    multiple, scale = gamma_parts(tilt)
    deviation = np.sqrt(20.0 * (multiple * scale**2).sum(axis=1))
    for s in (0.1 / deviation, 1.0 / deviation, 3.0 / deviation):
        ours = -20.0 * (multiple * np.log1p(scale * s[:, None])).sum(axis=1)
        exact = 20.0 * (np.log(np.cosh(tilt / 2)) - np.log(np.cosh(np.sqrt(tilt**2 / 4 + s / 2))))
        np.testing.assert_allclose(ours, exact, atol=5e-5, rtol=0)
        np.testing.assert_allclose(ours[tilt < 5], exact[tilt < 5], atol=1e-8, rtol=0)


def test_polya_gamma_draws_have_the_right_moments_at_every_shape_and_tilt():
    # 49 pairs, mean and variance, each within 5 standard errors: false-alarm rate below 1e-4.
    rng, n = np.random.default_rng(1), 20_000
    for shape in (1.0, 2.0, 7.0, 20.0, 21.0, 300.0, 10_000.0):
        for tilt in (0.0, -0.3, 2.0, 12.0, 29.9, 30.1, 500.0):
            draws = polya_gamma(rng, np.full(n, shape), np.full(n, tilt))
            z = max(abs(tilt), 1e-2)  # the moments at 0 to four digits
            t = np.tanh(z / 2)
            mean, variance = shape * t / (2 * z), shape * (2 * t - z * (1 - t * t)) / (4 * z**3)
            assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / n), (shape, tilt)
            squares = (draws - mean) ** 2
            assert abs(squares.mean() - variance) < 5 * squares.std() / np.sqrt(n), (shape, tilt)
            assert (draws > 0).all()


def test_polya_gamma_draws_of_few_trials_have_the_right_skewness():
    # Within 5 standard errors, twice: false-alarm rate below 1e-5. polyagamma's own choice of method is 8 of them off.
    n = 600_000
    for tilt in (0.0, 1.0):
        weight = 0.5 / (np.square(np.pi * (np.arange(10_000) + 0.5)) + tilt**2 / 4)
        draws = polya_gamma(np.random.default_rng(2), np.full(n, 5.0), np.full(n, tilt))
        cubes = (draws - draws.mean()) ** 3
        assert abs(cubes.mean() - 10.0 * (weight**3).sum()) < 5 * cubes.std() / np.sqrt(n)


# -- against numeric integration -----------------------------------------------------------------


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (7, 20), (0, 1_000)])
def test_one_action_alone_has_the_posterior_of_numeric_integration(successes, trials):
    # 3 moments within 4.5 standard errors, which are themselves good to a fifth: false-alarm rate below 1e-3 a case.
    model = BernoulliModel(ALONE, mean=-1.0, covariance=4.0)
    found = gibbs(model, Observations(["it"], [successes], trials=trials), draws=3_000, seed=2, warmup=500)

    def density(t):
        return np.exp(log_likelihood(t, successes, trials) - log_likelihood(mode, successes, trials)) * norm.pdf(
            t, -1, 2
        )

    mode = np.clip(np.log((successes + 0.5) / (trials - successes + 0.5)), -12.0, 12.0)

    def integral(f):
        parts = [-30.0, mode - 3, mode - 1, mode, mode + 1, mode + 3, 20.0]
        return sum(quad(lambda t: f(t) * density(t), a, b, epsabs=0)[0] for a, b in pairwise(parts))

    total = integral(lambda t: 1.0)
    mean = integral(lambda t: t) / total
    variance = integral(lambda t: (t - mean) ** 2) / total
    assert standard_errors(found, found.parameters, mean) < 4.5
    assert standard_errors(found, (found.parameters - mean) ** 2, variance) < 4.5
    assert standard_errors(found, expit(found.parameters), integral(expit) / total) < 4.5
    np.testing.assert_allclose(found.mean_reward().mean, expit(found.parameters).mean(axis=(0, 1)))
    # After 1,000 failures the chain moves slowly: 12,000 draws are worth about a hundred, and R-hat tells.
    assert found.r_hat().max() < (1.2 if trials == 1_000 else 1.01)


def test_a_root_and_two_actions_have_the_posterior_of_a_grid():
    # 10 moments within 4.5 standard errors: false-alarm rate below 1e-3.
    model = BernoulliModel(FORK, mean=0.5, covariance=bough.by_depth([1.0, 2.0]))
    found = gibbs(model, Observations(["left", "right"], [3, 0], trials=[4, 6]), draws=5_000, seed=3)
    root = np.linspace(-6.0, 7.0, 131)[:, None]
    leaf = np.linspace(-12.0, 13.0, 401)
    left, right = (np.exp(log_likelihood(leaf, n, m)) * norm.pdf(leaf, root, np.sqrt(2.0)) for n, m in ((3, 4), (0, 6)))
    # Given the root the actions are independent, so a moment is a sum over the root of products of two sums.
    prior = norm.pdf(root[:, 0], 0.5, 1.0)

    def moment(of_root=lambda t: 1.0, of_left=lambda t: 1.0, of_right=lambda t: 1.0):
        weight = prior * (left * of_left(leaf)).sum(axis=1) * (right * of_right(leaf)).sum(axis=1)
        return (weight * of_root(root[:, 0])).sum()

    def itself(t):
        return t

    places, total = ("of_root", "of_left", "of_right"), moment()
    for i, one in enumerate(places):
        for j, other in enumerate(places[i:], i):
            truth = moment(**({one: np.square} if i == j else {one: itself, other: itself})) / total
            assert standard_errors(found, found.parameters[..., i] * found.parameters[..., j], truth) < 4.5, (
                one,
                other,
            )
        assert standard_errors(found, found.parameters[..., i], moment(**{one: itself}) / total) < 4.5, one
    mean, covariance = found.mean, found.covariance
    np.testing.assert_allclose(mean, found.parameters.reshape(-1, 3).mean(axis=0))
    np.testing.assert_allclose(covariance, found.parameters.reshape(-1, 3).var(axis=0, ddof=1))
    rewards = [moment(of_left=expit) / total, moment(of_right=expit) / total]
    np.testing.assert_allclose(found.mean_reward().mean, rewards, atol=0.02)


def test_a_deeper_tree_has_the_posterior_of_belief_propagation():
    # 14 moments within 4.5 standard errors: false-alarm rate below 1e-3.
    model = BernoulliModel(DEEP, mean=-1.0, covariance=bough.by_depth([0.5, 1.0, 0.5]))
    grid, counts = GridPosterior(model), Observations([3, 4, 5], [2, 0, 9], trials=[3, 12, 20])
    grid.update(counts.action, counts.reward, trials=counts.trials)
    found = gibbs(model, counts, draws=4_000, seed=10)
    assert (standard_errors(found, found.parameters, grid.mean) < 4.5).all()
    assert (standard_errors(found, (found.parameters - grid.mean) ** 2, grid.covariance) < 4.5).all()
    np.testing.assert_allclose(found.mean_reward().mean, grid.mean_reward, atol=0.01)


def test_one_action_in_contexts_has_the_posterior_of_a_grid():
    # 5 moments within 4.5 standard errors: false-alarm rate below 1e-4.
    prior, mean = np.array([[2.0, 0.8], [0.8, 1.0]]), np.array([0.5, -1.0])
    model = BernoulliModel(ALONE, mean, prior)
    rng = np.random.default_rng(4)
    contexts, trials = rng.normal(size=(12, 2)), rng.integers(1, 40, size=12)
    contexts[0] = 0.0  # says nothing
    rewards = rng.binomial(trials, expit(contexts @ [1.0, -0.5]))
    found = gibbs(model, Observations(["it"] * 12, rewards, contexts, trials), draws=2_000, seed=5)
    axis = np.linspace(-4.0, 4.0, 801)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = -0.5 * np.einsum("ni,ij,nj->n", grid - mean, np.linalg.inv(prior), grid - mean)
    for x, n, m in zip(contexts, rewards, trials, strict=True):
        log_density += log_likelihood(grid @ x, n, m)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    draws = found.parameters[:, :, 0]
    exact = weight @ grid
    products = np.einsum("n,ni,nj->ij", weight, grid - exact, grid - exact)
    assert (standard_errors(found, draws, exact) < 4.5).all()
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert standard_errors(found, (draws[..., i] - exact[i]) * (draws[..., j] - exact[j]), products[i, j]) < 4.5
    np.testing.assert_allclose(found.covariance[0], np.cov(draws.reshape(-1, 2).T))
    context = np.array([1.0, 2.0])
    assert standard_errors(found, expit(draws @ context), weight @ expit(grid @ context)) < 4.5
    np.testing.assert_allclose(found.mean_reward(context).mean, expit(draws @ context).mean())
    np.testing.assert_allclose(
        found.mean_reward(context, 0.5)[1:], np.quantile(expit(draws @ context), [[0.25], [0.75]])
    )


def test_two_actions_in_contexts_have_the_posterior_of_importance_sampling():
    # 6 means and 6 squares within 4.5 standard errors of both together: false-alarm rate below 1e-3.
    covariances, mean = (np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[0.5, -0.2], [-0.2, 0.4]])), np.array([0.0, 1.0])
    model = BernoulliModel(FORK, mean, bough.by_depth(covariances))
    rng = np.random.default_rng(6)
    contexts, actions = rng.normal(size=(10, 2)), np.array(["left"] * 7 + ["right"] * 3)
    rewards = np.array([1, 1, 0, 1, 0, 1, 1, 0, 0, 1])
    found = gibbs(model, (actions, rewards, contexts), draws=3_000, seed=7)
    n = 400_000
    factors = [np.linalg.cholesky(matrix) for matrix in covariances]
    drawn = np.empty((n, 3, 2))
    drawn[:, 0] = mean + rng.normal(size=(n, 2)) @ factors[0].T
    drawn[:, 1:] = drawn[:, :1] + rng.normal(size=(n, 2, 2)) @ factors[1].T
    leaf = np.where(actions == "left", 1, 2)
    weight = np.exp(log_likelihood(np.einsum("nrj,rj->nr", drawn[:, leaf], contexts), rewards, 1).sum(axis=1))
    weight /= weight.sum()
    for power in (1, 2):
        values, quantity = drawn.reshape(n, 6) ** power, found.parameters.reshape(4, -1, 6) ** power
        exact = weight @ values
        theirs = np.sqrt(weight**2 @ (values - exact) ** 2)
        ours = quantity.std(axis=(0, 1)) / np.sqrt(GibbsDraws(quantity, model).effective_sample_size())
        assert (np.abs(quantity.mean(axis=(0, 1)) - exact) < 4.5 * np.hypot(theirs, ours)).all()


# -- simulation-based calibration ----------------------------------------------------------------

RANKED, THIN, FALSE_ALARM = 15, 5, 1e-4  # a quantity; draws 5 sweeps apart are all but independent here


def rank_p_values(model, runs, data_of, quantities, seed):
    """How even the ranks of the truth among draws are, for each quantity of the parameters."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((len(quantities), RANKED + 1))
    for _ in range(runs):
        truth = model.draw(rng)
        data = data_of(rng, truth)
        found = gibbs(model, data, RANKED * THIN, chains=1, seed=rng, warmup=25)
        draws = found.parameters[0, THIN - 1 :: THIN]
        for count, quantity in zip(counts, quantities, strict=True):
            count[int((quantity(draws) < quantity(truth[None])).sum())] += 1
    return np.array([chisquare(count).pvalue for count in counts])


def test_gibbs_sampling_is_calibrated_at_every_level_of_the_tree():
    # 5 quantities at 1e-4: false-alarm rate below 1e-3. Action 6 has no rewards.
    model = BernoulliModel(DEEP, -0.5, bough.by_depth([1.0, 0.5, 2.0]))
    actions, trials = np.array([3, 3, 4, 5]), np.array([1, 3, 30, 8])

    def data_of(rng, truth):
        return Observations(actions, rng.binomial(trials, expit(truth[actions])), trials=trials)

    quantities = [lambda p, i=i: p[:, i] for i in (0, 1, 3, 6)] + [lambda p: np.abs(p[:, 4] - p[:, 2])]
    assert (rank_p_values(model, 320, data_of, quantities, seed=8) > FALSE_ALARM).all()


def test_gibbs_sampling_in_contexts_is_calibrated():
    # 3 quantities at 1e-4: false-alarm rate below 1e-3.
    model = BernoulliModel(DEEP, [0.5, -0.5], bough.by_depth([[[1.0, 0.6], [0.6, 1.0]], 0.5, 1.0]))

    def data_of(rng, truth):
        actions, contexts = rng.integers(3, 6, size=12), rng.normal(size=(12, 2))
        rewards = rng.random(12) < expit(np.einsum("nj,nj->n", truth[actions], contexts))
        return actions, rewards.astype(int), contexts

    quantities = [lambda p: p[:, 0, 0], lambda p: p[:, 3, 1], lambda p: p[:, 4] @ [1.0, -1.0]]
    assert (rank_p_values(model, 240, data_of, quantities, seed=9) > FALSE_ALARM).all()


# -- what is given and what comes back -----------------------------------------------------------

MODEL = BernoulliModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), mean=-1.0)
SMALL = dict(draws=20, chains=2, seed=0, warmup=5)


def test_one_seed_gives_the_same_draws_and_another_seed_gives_others():
    data = (["coffee", "tea/green"], [1, 0])
    first = gibbs(MODEL, data, **SMALL).parameters
    np.testing.assert_array_equal(gibbs(MODEL, data, **SMALL).parameters, first)
    assert (gibbs(MODEL, data, **{**SMALL, "seed": 1}).parameters != first).all()
    assert (first[0] != first[1]).all()  # chains have seeds of their own
    generator = gibbs(MODEL, data, **{**SMALL, "seed": np.random.default_rng(5)}).parameters
    np.testing.assert_array_equal(
        gibbs(MODEL, data, **{**SMALL, "seed": np.random.default_rng(5)}).parameters, generator
    )


def test_a_chain_does_not_change_with_the_number_of_chains_or_draws():
    data = (["coffee", "tea/green"], [1, 0])
    first = gibbs(MODEL, data, **SMALL).parameters
    more = gibbs(MODEL, data, **{**SMALL, "draws": 30, "chains": 3}).parameters
    np.testing.assert_array_equal(more[:2, :20], first)
    later = gibbs(MODEL, data, **{**SMALL, "warmup": 15, "draws": 10}).parameters
    np.testing.assert_array_equal(later, first[:, 10:])


def test_statistics_observations_tuples_and_trials_give_the_same_draws():
    actions, rewards = ["coffee", "tea/green", "coffee", "coffee"], [1, 0, 1, 0]
    first = gibbs(MODEL, (actions, rewards), **SMALL).parameters
    for data in (
        Observations(actions, rewards),
        bough.Statistics.from_rows(actions, rewards),
        bough.Statistics.from_rows(actions[::-1], rewards[::-1]),
        Observations(["tea/green", "coffee"], [0, 2], trials=[1, 3]),
        (np.array(actions), np.array(rewards, dtype=bool)),
    ):
        np.testing.assert_array_equal(gibbs(MODEL, data, **SMALL).parameters, first)


def test_statistics_with_an_exposure_have_that_many_trials():
    sums = bough.Statistics.from_rows(["coffee", "tea/black"], [7, 2], trials=[9, 5])
    ours = gibbs(MODEL, sums, **SMALL).parameters
    theirs = gibbs(MODEL, Observations(["coffee", "tea/black"], [7, 2], trials=[9, 5]), **SMALL).parameters
    np.testing.assert_array_equal(ours, theirs)


def test_trials_in_one_context_say_what_as_many_rows_say():
    # 2 means within 4.5 standard errors of both: false-alarm rate below 1e-4.
    model = BernoulliModel(ALONE, [0.0, 0.0])
    together = gibbs(model, Observations(["it"], [3], [[1.0, 2.0]], trials=[5]), draws=1_500, seed=1)
    apart = gibbs(model, (["it"] * 5, [1, 0, 1, 1, 0], [[1.0, 2.0]] * 5), draws=1_500, seed=2)
    error = [found.parameters.std(axis=(0, 1)) / np.sqrt(found.effective_sample_size()) for found in (together, apart)]
    assert (np.abs(together.mean - apart.mean) < 4.5 * np.hypot(*error)).all()


def test_a_vector_of_length_one_has_the_posterior_of_a_number():
    # 5 means within 4.5 standard errors of both: false-alarm rate below 1e-4.
    actions, rewards = ["coffee"] * 4 + ["tea/green"], [1, 1, 0, 1, 0]
    number = gibbs(MODEL, (actions, rewards), draws=1_000, seed=1)
    vector = gibbs(BernoulliModel(MODEL.tree, [-1.0]), (actions, rewards, np.ones((5, 1))), draws=1_000, seed=2)
    ours, theirs = (found.parameters.std(axis=(0, 1)).ravel() for found in (number, vector))
    error = np.hypot(
        ours / np.sqrt(number.effective_sample_size()), theirs / np.sqrt(vector.effective_sample_size()[:, 0])
    )
    assert (np.abs(number.mean - vector.mean[:, 0]) < 4.5 * error).all()


def test_an_action_without_rewards_follows_its_parent():
    # The step is a fresh normal in every draw: its mean and variance within 4.5 standard errors, below 1e-4.
    found = gibbs(MODEL, (["tea/green"] * 6, [1] * 6), draws=2_000, seed=3)
    tea, black = MODEL.tree.index("tea"), MODEL.tree.index("tea/black")
    step = (found.parameters[..., black] - found.parameters[..., tea]).ravel()
    assert abs(step.mean()) < 4.5 / np.sqrt(len(step))
    assert abs(step.var() - 1.0) < 4.5 * np.sqrt(2 / len(step))
    assert found.mean[tea] > -0.5  # successes below it


def test_without_data_the_draws_are_the_priors():
    # 5 variances and means of independent draws within 4.5 standard errors: false-alarm rate below 1e-4.
    found = gibbs(MODEL, ([], []), draws=2_000, seed=4)
    variance = MODEL.marginal_covariance
    assert (np.abs(found.mean + 1.0) < 4.5 * np.sqrt(variance / 8_000)).all()
    assert (np.abs(found.covariance / variance - 1.0) < 4.5 * np.sqrt(2 / 8_000)).all()


def test_what_has_no_variance_stays_and_has_no_diagnostics():
    model = BernoulliModel(MODEL.tree, -1.0, bough.by_node({"": 0.0, "coffee": 0.0, "tea/green": 0.0}, default=1.0))
    found = gibbs(model, (["tea/green", "coffee"], [1, 1]), draws=50, seed=0)
    tree = model.tree
    still = [tree.index(""), tree.index("coffee")]
    assert (found.parameters[..., still] == -1.0).all()
    green, tea = (found.parameters[..., tree.index(name)] for name in ("tea/green", "tea"))
    np.testing.assert_allclose(green, tea, rtol=0, atol=1e-14)
    for diagnosis in (found.effective_sample_size(), found.r_hat()):
        assert np.isnan(diagnosis[still]).all()
        assert np.isnan(diagnosis).sum() == 2
    assert "''" not in found.summary()
    nothing = gibbs(BernoulliModel(FORK, [1.0, 2.0], 0.0), (["left"], [1], [[1.0, 1.0]]), **SMALL)
    assert (nothing.parameters == [1.0, 2.0]).all()
    assert np.isnan(nothing.r_hat()).all()
    assert len(nothing.summary().splitlines()) == 2


def test_the_summary_lists_the_nodes_that_mix_worst():
    found = gibbs(MODEL, (["coffee"] * 2, [1, 0]), draws=200, seed=5)
    title, head, *lines = found.summary().splitlines()
    size = found.effective_sample_size()
    assert title == f"chains=4, draws=200, smallest ESS {size.min():.0f}, largest R-hat {found.r_hat().max():.3f}"
    assert head.split()[:5] == ["mean", "sd", "MCSE", "ESS", "R-hat"]
    assert lines[0].endswith(repr(MODEL.tree.name(int(size.argmin()))))
    assert [int(line.split()[3]) for line in lines] == np.rint(np.sort(size)).astype(int).tolist()
    contextual = gibbs(BernoulliModel(FORK, np.zeros(3)), (["left"], [1], [[1.0, 0.0, 0.0]]), **{**SMALL, "chains": 1})
    assert "largest R-hat unknown" in contextual.summary()
    assert ", feature " in contextual.summary()
    assert len(contextual.summary().splitlines()) == 7
    assert repr(contextual) == "GibbsDraws(chains=1, draws=20, n_nodes=3, dim=3)"


@pytest.mark.parametrize("names", [["kitchen", "kettle", "spade"], [7, 8, 9], ["kitchen", 8, ("a", "tuple")]])
def test_arviz_has_the_draws_by_the_names_of_the_nodes(names):
    model = BernoulliModel(bough.Tree.from_parents([-1, 0, 0], names=names))
    found = gibbs(model, ([names[1]], [1]), **SMALL)
    posterior = found.to_arviz().posterior["parameter"]
    assert posterior.dims == ("chain", "draw", "node")
    assert posterior["node"].values.tolist() == names
    np.testing.assert_array_equal(
        posterior.sel(node=names[1]).values, found.parameters[..., model.tree.index(names[1])]
    )


def test_arviz_has_features_beside_the_nodes_of_a_contextual_model():
    found = gibbs(BernoulliModel(FORK, [0.0, 1.0]), (["left"], [1], [[1.0, 0.5]]), **SMALL)
    posterior = found.to_arviz().posterior["parameter"]
    assert posterior.dims == ("chain", "draw", "node", "feature")
    np.testing.assert_array_equal(
        posterior.sel(node="left", feature=1).values, found.parameters[:, :, FORK.index("left"), 1]
    )


def test_draws_stay_finite_where_the_prior_is_very_wide():
    model = BernoulliModel(FORK, [0.0, 0.0], 1e8)
    found = gibbs(model, (["left", "left", "right"], [1, 0, 1], [[1.0, 1e3], [1e3, -1.0], [0.0, 0.0]]), **SMALL)
    assert np.isfinite(found.parameters).all()
    assert np.isfinite(gibbs(BernoulliModel(FORK, 0.0, 1e12), (["left"], [1]), **SMALL).parameters).all()


CONTEXTUAL = BernoulliModel(MODEL.tree, [0.0, 0.0])


@pytest.mark.parametrize(
    ("model", "data", "options", "message"),
    [
        (GaussianModel(MODEL.tree), (["coffee"], [1]), {}, "exact already; use bough.Posterior"),
        (PoissonModel(MODEL.tree), (["coffee"], [1]), {}, "no Polya-Gamma form; use bough.Posterior"),
        ("model", (["coffee"], [1]), {}, "model is a str; give a bough.BernoulliModel"),
        (MODEL, [["coffee"], [1]], {}, "the log is .*; give bough.Observations of its columns, or a tuple"),
        (MODEL, None, {}, "the log is None"),
        (MODEL, (["coffee"],), {}, "the log is .*; give bough.Observations"),
        (MODEL, (["coffee"], [2]), {}, "the reward is 2; give 0 or 1"),
        (MODEL, (["coffee"], [1, 0]), {}, "action has length 1 and reward 2"),
        (MODEL, (["coffee"], [1], [[1.0]]), {}, "without contexts"),
        (MODEL, Observations(["coffee"], [1], exposure=[2.0]), {}, "exposure was given"),
        (MODEL, bough.Statistics.from_rows(["coffee"], [-1.0]), {}, "'coffee' has -1 successes in 1 trials"),
        (MODEL, bough.Statistics.from_rows(["coffee"], [2.0]), {}, "'coffee' has 2 successes in 1 trials"),
        (MODEL, bough.Statistics.from_rows(["coffee"] * 2, [2.0, 0.0]), {}, "sum of squares of 4; give sums of"),
        (MODEL, bough.Statistics.from_rows(["coffee"], [1.0], weight=[1.5]), {}, "1.5 successes in 1.5 trials"),
        (MODEL, bough.Statistics.from_rows(["coffee"], [1.0], context=[[1.0]]), {}, "contexts of length 1"),
        (CONTEXTUAL, bough.Statistics.from_rows(["coffee"], [1.0]), {}, "give bough.Observations"),
        (CONTEXTUAL, (["coffee"], [1]), {}, "no context was given"),
        (MODEL, (["coffee"], [1]), {"draws": 3}, "draws is 3; give a whole number of at least 4"),
        (MODEL, (["coffee"], [1]), {"chains": 0}, "chains is 0"),
        (MODEL, (["coffee"], [1]), {"warmup": -1}, "warmup is -1"),
        (MODEL, (["coffee"], [1]), {"seed": "one"}, "the seed is 'one'"),
    ],
)
def test_what_cannot_be_sampled_is_refused_with_the_remedy(model, data, options, message):
    with pytest.raises(ValueError, match=message):
        gibbs(model, data, **{**SMALL, **options})


def test_an_unknown_action_and_a_wrong_context_are_refused():
    with pytest.raises(KeyError, match="unknown action 'cofee'; did you mean 'coffee'"):
        gibbs(MODEL, (["cofee"], [1]), **SMALL)
    with pytest.raises(ValueError, match="a context was given"):
        gibbs(MODEL, (["coffee"], [1]), **SMALL).mean_reward([1.0])
    found = gibbs(CONTEXTUAL, (["coffee"], [1], [[1.0, 0.0]]), **SMALL)
    with pytest.raises(ValueError, match="give a vector of length 2"):
        found.mean_reward([1.0])
    with pytest.raises(ValueError, match="no context was given"):
        found.mean_reward()


def test_a_missing_package_is_named_with_the_way_to_install_it(monkeypatch):
    found = gibbs(MODEL, (["coffee"], [1]), **SMALL)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ValueError, match=r"take ArviZ; pip install '\.\[mcmc\]'"):
        found.r_hat()
    monkeypatch.setitem(sys.modules, "polyagamma", None)
    with pytest.raises(ValueError, match=r"takes polyagamma; pip install '\.\[mcmc\]'"):
        gibbs(MODEL, (["coffee"], [1]), **SMALL)
