"""Noise per action: mixtures, posteriors, draws and files, against sums over fine grids."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

import bough
from bough.inference.kernels import noise_grid as kernels
from bough.inference.noise_grid import noise_grid, room_for
from bough.inference.oracles.noisy import NoisyGrids, noise_points
from bough.prediction import noise_quantiles

FALSE_ALARM = 1e-4
STAR = bough.Tree.from_nested(["a", "b", "c"])
TWO = bough.Tree.from_nested({"tea": ["green", "black", "white"], "coffee": ["espresso", "filter"]})
NOISE = bough.per_action(median=0.5, spread=1.1, floor=1e-3)


def mixture(noise, count: float, spread: float, fine=None):
    grid = noise_grid(noise) if fine is None else noise_grid(noise, fine)
    variance, weight = np.empty((2, room_for(grid)))
    n, constant, *_ = kernels.components(count, spread, 0.0, 1.0, grid, variance, weight)
    return variance[:n], weight[:n], constant


def nine_nodes(noise, count: float, spread: float):
    """Nine Gauss-Hermite nodes around the mode, found by the oracle's grid."""
    w, weight, _ = noise_points(noise, count, spread)
    u = np.log(w - noise.floor)
    mode = u[weight.argmax()]
    slope = 0.5 * (count - 1.0)
    share = 1.0 - noise.floor / w[weight.argmax()]
    curve = share**2 * 0.5 * spread / w[weight.argmax()] - share * (1.0 - share) * (
        0.5 * spread / w[weight.argmax()] - slope
    )
    deviation = 1.0 / math.sqrt(max(curve + 1.0 / noise.spread**2, 1e-12))
    x, g = np.polynomial.hermite_e.hermegauss(9)
    at = noise.floor + np.exp(mode + deviation * x)
    heights = -slope * np.log(at) - 0.5 * spread / at
    heights += -0.5 * ((mode + deviation * x - math.log(noise.median)) / noise.spread) ** 2 + 0.5 * x**2
    parts = g * np.exp(heights - heights.max())
    return at, parts / parts.sum()


def leaf_at_most(x, off: float, v: float, c, weight):
    """The distribution function of an action given its parent, which is at zero."""
    part = weight * norm.pdf(off, 0.0, np.sqrt(v + c))
    centre, deviation = v * off / (v + c), np.sqrt(v * c / (v + c))
    return (part[:, None] * norm.cdf((x - centre[:, None]) / deviation[:, None])).sum(axis=0) / part.sum()


def worst_leaf(noise, count, spread, parts) -> float:
    """How far the law of an action given its parent is off, at most, for parents up to four deviations away."""
    w, weight, _ = noise_points(noise, count, spread)
    worst = 0.0
    for v in (0.01 * noise.median, noise.median, 30.0 * noise.median):
        deviation = math.sqrt(v + float(w @ weight) / count)
        step = math.sqrt(v * (w @ weight) / count / (v + (w @ weight) / count))
        for far in (0.0, 1.0, 2.0, 4.0):
            x = np.linspace(-4.0 * step, far * deviation + 4.0 * step, 41)
            exact = leaf_at_most(x, far * deviation, v, w / count, weight)
            found = leaf_at_most(x, far * deviation, v, parts[0] / count, parts[1])
            worst = max(worst, float(np.abs(found - exact).max()))
    return worst


CASES = [
    (count, share)
    for count in (1.0, 2.0, 5.0, 1000.0)
    for share in (0.0, 0.1, 1.0, 10.0)
    if count > 1.0 or share == 0.0
]


@pytest.mark.parametrize(("count", "share"), CASES)
@pytest.mark.parametrize(
    "noise",
    [
        bough.per_action(1.0, 1.1, 1e-3),
        bough.per_action(1.0, 2.0, 1e-3),
        bough.per_action(1e-3, 1.1, 1e-2),
        bough.per_action(1.0, 0.3, 0.5),
    ],
)
def test_an_action_given_its_parent_is_exact_to_a_millionth(noise, count, share):
    spread = share * (count - 1.0) * (noise.median + noise.floor)
    variance, weight, constant = mixture(noise, count, spread)
    assert weight.sum() == pytest.approx(1.0)
    assert constant == pytest.approx(noise_points(noise, count, spread)[2], abs=5e-6)
    assert worst_leaf(noise, count, spread, (variance, weight)) < 1e-6


def test_nine_nodes_around_the_mode_are_too_few():
    """As long as an action has few rewards, nine are off by up to a percent; with a thousand they would do."""
    noise = bough.per_action(1.0, 1.1, 1e-3)
    assert worst_leaf(noise, 1.0, 0.0, nine_nodes(noise, 1.0, 0.0)) > 1e-4
    assert worst_leaf(noise, 2.0, 1.0, nine_nodes(noise, 2.0, 1.0)) > 1e-4
    assert worst_leaf(noise, 1000.0, 999.0, nine_nodes(noise, 1000.0, 999.0)) < 1e-5


def test_a_prior_that_is_plainly_wrong_about_the_noise_is_integrated_as_well():
    for noise, spread in ((bough.per_action(1.0, 0.01, 0.5), 4500.0), (bough.per_action(1e-3, 0.3, 1e-2), 32.0)):
        variance, weight, constant = mixture(noise, 30.0, spread)
        w, shares, mass = noise_points(noise, 30.0, spread, 20_001)
        assert constant == pytest.approx(mass, abs=1e-3)
        assert variance @ weight == pytest.approx(w @ shares, rel=1e-4)


def test_variances_keep_their_digits_where_the_prior_is_a_billion_times_as_wide_as_the_noise():
    prior = bough.by_depth([1e6, 1e6, 1e6])
    own, one = (
        bough.Posterior(bough.GaussianModel(TWO, 0.0, prior, **noise))
        for noise in ({"noise": bough.per_action(1e-6, 0.0, 1e-9)}, {"noise_variance": 1e-6 + 1e-9})
    )
    names = ["green", "black", "white", "espresso"] * 5
    rewards = np.random.default_rng(0).normal(size=20)
    for posterior in (own, one):
        posterior.update(names, rewards)
    np.testing.assert_allclose(own.covariance, one.covariance, rtol=1e-12)
    np.testing.assert_allclose(own.mean, one.mean, rtol=1e-12)


def scores_by_integration(noise, count, spread, off, v):
    """The mean, the deviation and the evidence of an action, off its prior mean, by one integral over its noise.

    And how likely the noise is that explains best that it is so far off: the log of its density below the top.
    """
    centre = math.log(noise.median)
    high = max(
        centre + 12.0 * noise.spread, math.log(count * off * off + 1e-300) + 5.0, math.log(spread + 1e-300) + 3.0
    )
    u = np.linspace(centre - 14.0 * noise.spread - 5.0, high, 100_001)
    w = noise.floor + np.exp(u)
    plain = -0.5 * (count - 1.0) * np.log(2.0 * math.pi * w) - 0.5 * spread / w
    plain += norm.logpdf(u, centre, noise.spread) - 0.5 * math.log(count)
    heights = plain + norm.logpdf(off, 0.0, np.sqrt(v + w / count))
    share = np.exp(heights - heights.max())
    evidence = float(heights.max() + math.log(share.sum() * (u[1] - u[0])))
    share /= share.sum()
    centres = v / (v + w / count) * off
    mean = float(share @ centres)
    variance = float(share @ ((centres - mean) ** 2 + v * w / count / (v + w / count)))
    return mean, math.sqrt(variance), evidence, plain[heights.argmax()] - plain.max()


def test_rewards_far_from_what_others_say_are_explained_by_their_noise_whatever_its_law():
    """Of 400 laws, some with a floor a thousand times the median, and rewards up to 30 deviations off."""
    rng, worst, n = np.random.default_rng(0), np.zeros(3), 0
    for _ in range(400):
        median = 10.0 ** rng.uniform(-3, 3)
        noise = bough.per_action(median, rng.choice([0.05, 0.2, 0.5, 1.1, 2.0]), median * 10.0 ** rng.uniform(-4, 3))
        count = float(rng.choice([1, 2, 3, 10, 100]))
        v = median * 10.0 ** rng.uniform(-2, 3)
        spread = (count - 1.0) * (noise.floor + median) * 10.0 ** rng.uniform(-4, 4) * rng.integers(2)
        off = math.sqrt(v + noise.floor + median) * 30.0 * rng.random()
        mean, deviation, evidence, height = scores_by_integration(noise, count, spread, off, v)
        if height < -600.0:  # next to impossible
            continue
        grid = noise_grid(noise)
        w, weight = np.empty((2, room_for(grid)))
        k, constant, *_ = kernels.components(count, spread, off * off, v, grid, w, weight)
        c = w[:k] / count
        heights = np.log(weight[:k]) + norm.logpdf(off, 0.0, np.sqrt(v + c))
        share = np.exp(heights - heights.max())
        found = constant + heights.max() + math.log(share.sum())
        share /= share.sum()
        centres = v / (v + c) * off
        own = share @ centres
        own_deviation = math.sqrt(share @ ((centres - own) ** 2 + v * c / (v + c)))
        errors = abs(own - mean) / deviation, abs(own_deviation / deviation - 1.0), abs(found - evidence)
        worst, n = np.maximum(worst, errors), n + 1
    assert n > 350
    assert (worst < 1e-3).all()


def test_no_law_and_no_reward_make_anything_but_numbers():
    for noise in (
        bough.per_action(1.0, 0.2, 1000.0),
        bough.per_action(1e-6, 0.5, 1.0),
        bough.per_action(1.0, 0.02, 1.0),
    ):
        for policy in (bough.HierTS, bough.Greedy, bough.BayesUCB):
            agent = policy(bough.GaussianModel(TWO, 0.0, bough.by_depth([1.0, 0.5, 0.5]), noise=noise), seed=0)
            for reward in (2237.0, -2237.0, 1e9):
                agent.update("green", reward)
                assert np.isfinite(agent.posterior.mean).all()
                assert agent.decide() in set(TWO.actions)
            agent.retract("green", 1e9)
            agent.posterior.settle()
            assert np.isfinite([agent.posterior.log_evidence(), *agent.posterior.predictive("green")]).all()


# -- posteriors ------------------------------------------------------------------------------------


def log_of(tree, counts, seed, outlier=0.0, constant=False):
    """Rewards of actions with so many each; one of them may be far off, and all of one action the same."""
    rng = np.random.default_rng(seed)
    found = {}
    for i, (name, n) in enumerate(zip(list(tree.actions), counts, strict=False)):
        values = rng.normal() + math.sqrt(0.5 * math.exp(1.1 * rng.normal())) * rng.standard_normal(n)
        if constant and i == 0:
            values[:] = 0.7
        if outlier and i == 0:
            values[0] += outlier
        found[name] = values.tolist()
    return found


def both(model, log):
    posterior = bough.Posterior(model)
    names = [name for name, values in log.items() for _ in values]
    posterior.update(names, np.concatenate([np.asarray(values) for values in log.values()]))
    return posterior, NoisyGrids(model, log)


def errors(posterior, exact):
    deviation = np.sqrt(exact.covariance)
    sure = deviation > 0.0
    mean = np.abs(posterior.mean - exact.mean)[sure] / deviation[sure]
    spread = np.abs(np.sqrt(posterior.covariance)[sure] / deviation[sure] - 1.0)
    return mean, spread, abs(posterior.log_evidence() - exact.log_evidence())


POSTERIORS = [
    (tree, variances, counts, extra)
    for tree, variances in ((STAR, [1.0, 0.5]), (STAR, [0.0, 1.0]), (TWO, [1.0, 0.5, 0.5]), (TWO, [0.3, 0.1, 1.0]))
    for counts in ((1, 1, 1, 1, 1), (2, 2, 1), (5, 2, 1, 5, 2), (1000, 5, 1, 2, 1))
    for extra in ({}, {"constant": True}, {"outlier": 4.0})
]


def test_moments_and_evidence_are_close_to_the_exact_ones():
    found = []
    for i, (tree, variances, counts, extra) in enumerate(POSTERIORS):
        model = bough.GaussianModel(tree, 0.2, bough.by_depth(variances), noise=NOISE)
        found.append(errors(*both(model, log_of(tree, counts, i, **extra))))
    mean, spread = (np.concatenate([one[i] for one in found]) for i in (0, 1))
    assert np.median(mean) < 0.02
    assert mean.max() < 0.15
    assert np.median(spread) < 0.02
    assert spread.max() < 0.10
    assert max(one[2] for one in found) < 0.05


@pytest.mark.parametrize("spread", [0.3, 1.1])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("outlier", [10.0, 30.0, 100.0])
def test_one_reward_far_off_does_not_drag_the_tree_along(spread, n, outlier):
    """Also where the model with one noise variance would have its category, and all others, follow it."""
    model = bough.GaussianModel(TWO, 0.2, bough.by_depth([1.0, 0.5, 0.5]), noise=bough.per_action(0.5, spread, 1e-3))
    log = {"green": [outlier, 0.3][:n], "black": [0.4, 0.1, 0.5], "espresso": [-0.2]}
    posterior = bough.Posterior(model)
    posterior.update([name for name, values in log.items() for _ in values], np.concatenate(list(log.values())))
    mean, deviation, evidence = errors(posterior, NoisyGrids(model, log, 2401))
    assert mean.max() < 0.15
    assert deviation.max() < 0.10
    assert evidence < 0.05


def test_an_agent_with_a_reward_far_off_is_saved_with_its_mixtures(tmp_path):
    agent = bough.HierTS(bough.GaussianModel(TWO, noise=bough.per_action(0.5, 0.5, 1e-3)), seed=0)
    agent.update(["green", "black", "filter"], [1000.0, 0.2, 0.1])
    agent.save(tmp_path / "agent.bough")
    other = bough.HierTS.load(tmp_path / "agent.bough")
    np.testing.assert_allclose(other.posterior.mean, agent.posterior.mean, rtol=1e-9, atol=1e-12)
    assert other.posterior.predictive("green") == pytest.approx(agent.posterior.predictive("green"), rel=1e-9)
    assert [other.decide() for _ in range(50)] == [agent.decide() for _ in range(50)]


def test_without_spread_it_is_one_noise_variance_for_all():
    rng = np.random.default_rng(0)
    actions, rewards = rng.choice(TWO.actions, 200), rng.normal(size=200)
    own = bough.Posterior(bough.GaussianModel(TWO, 0.5, noise=bough.per_action(0.7, 0.0, 0.05)))
    one = bough.Posterior(bough.GaussianModel(TWO, 0.5, noise_variance=0.75))
    for posterior in (own, one):
        posterior.update(actions, rewards)
    np.testing.assert_allclose(own.mean, one.mean, atol=1e-9)
    np.testing.assert_allclose(own.covariance, one.covariance, rtol=1e-9)
    assert own.log_evidence() == pytest.approx(one.log_evidence(), abs=1e-8)
    normals = rng.standard_normal(TWO.n_nodes)
    np.testing.assert_allclose(own.from_normals(normals), one.from_normals(normals), atol=1e-9)
    assert own.predictive("green") == pytest.approx(one.predictive("green"), abs=1e-8)


def filled(seed=0, n=200, tree=TWO, noise=NOISE):
    rng = np.random.default_rng(seed)
    model = bough.GaussianModel(tree, 0.5, bough.by_depth([1.0, 0.5, 0.5]), noise=noise)
    truth, deviation = model.draw(rng), np.sqrt(noise.draw(rng, tree.n_nodes))
    leaves = rng.choice(tree.leaves, n)
    names = [tree.name(leaf) for leaf in leaves.tolist()]
    return model, names, truth[leaves] + deviation[leaves] * rng.standard_normal(n)


def same(one, other, tolerance=1e-7):
    np.testing.assert_allclose(one.mean, other.mean, atol=tolerance)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=tolerance * 10)
    assert one.log_evidence() == pytest.approx(other.log_evidence(), abs=tolerance * 10)


def test_one_by_one_and_settled_is_what_a_batch_is_and_what_sums_are():
    model, names, rewards = filled()
    batch, single, summed = (bough.Posterior(model) for _ in range(3))
    batch.update(names, rewards)
    for i in np.random.default_rng(1).permutation(len(names)).tolist():
        single.update(names[i], rewards[i])
    single.settle()
    same(single, batch)
    summed.absorb(bough.Statistics.from_rows(names, rewards))
    same(summed, batch)
    assert batch.statistics.sum_y.sum() == pytest.approx(rewards.sum())


def test_a_reward_that_is_taken_back_leaves_no_trace():
    model, names, rewards = filled(n=30)
    posterior, other = bough.Posterior(model), bough.Posterior(model)
    posterior.update(names, rewards)
    posterior.retract(names[10:], rewards[10:])
    posterior.settle()
    other.update(names[:10], rewards[:10])
    same(posterior, other, 1e-6)


def test_a_file_keeps_everything_and_the_same_decisions_follow(tmp_path):
    model, names, rewards = filled()
    for policy in (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy):
        agent = policy(model, seed=3)
        for name, reward in zip(names, rewards, strict=True):
            agent.update(name, reward)
        agent.save(tmp_path / "agent.bough")
        other = policy.load(tmp_path / "agent.bough")
        assert other.posterior.model.noise == NOISE
        np.testing.assert_allclose(other.posterior.mean, agent.posterior.mean, rtol=1e-12)
        assert [other.decide() for _ in range(30)] == [agent.decide() for _ in range(30)]


def test_evidence_goes_to_a_model_with_one_noise_variance_and_back():
    model, names, rewards = filled()
    posterior = bough.Posterior(model)
    posterior.update(names, rewards)
    plain = bough.GaussianModel(TWO, 0.1, bough.by_depth([1.0, 0.5, 0.5]), 0.8)
    other, direct = posterior.on(plain), bough.Posterior(plain)
    direct.update(names, rewards)
    same(other, direct)
    same(other.on(model), posterior)


def test_adopted_moved_added_and_forgotten_actions_keep_what_they_know():
    model, names, rewards = filled()
    agent = bough.HierTS(model, seed=0)
    agent.update(names, rewards)
    agent.add("oolong", under="tea")
    agent.move("oolong", under="coffee")
    agent.update("oolong", 0.3)
    agent.retire("green")
    agent.forget("black")
    assert agent.decide() != "green"
    wider = bough.Tree.from_nested(
        {"tea": ["green", "black", "white", "new"], "coffee": ["espresso", "filter", "oolong"]}
    )
    agent.adopt(wider)
    assert agent.posterior.n_observations == sum(name != "black" for name in names) + 1
    expected = bough.Posterior(agent.posterior.model)
    kept = [i for i, name in enumerate(names) if name != "black"]
    expected.update([names[i] for i in kept] + ["oolong"], [*rewards[kept].tolist(), 0.3])
    agent.posterior.settle()
    same(agent.posterior, expected)


def test_rewards_fade_as_if_there_were_fewer():
    model, names, rewards = filled(n=40)
    faded, weighted = bough.Posterior(model, half_life=2.0), bough.Posterior(model)
    faded.update(names, rewards, at=0.0)
    faded.now = 2.0
    weighted.absorb(bough.Statistics.from_rows(names, rewards, weight=np.full(40, 0.5)))
    same(faded, weighted)


def test_refits_and_refitted_files_keep_noise_per_action(tmp_path):
    model, names, rewards = filled(n=400)
    agent = bough.HierTS(model, seed=0, refit=True)
    agent.update(names, rewards)
    assert agent.posterior.model.noise is not None
    assert agent.posterior.model.noise != NOISE
    agent.save(tmp_path / "agent.bough")
    assert bough.HierTS.load(tmp_path / "agent.bough").decide() == agent.decide()


# -- draws -----------------------------------------------------------------------------------------


def test_draws_have_the_posterior_s_moments_and_the_mixture_s_law():
    """False alarms: below 1e-3 in all."""
    model, names, rewards = filled(n=25)
    posterior = bough.Posterior(model)
    posterior.update(names, rewards)
    sample = posterior.sample(0, size=100_000)
    error = np.sqrt(posterior.covariance / len(sample))
    assert (np.abs(sample.mean(axis=0) - posterior.mean) < 5.0 * error + 0.004).all()
    np.testing.assert_allclose(sample.std(axis=0), np.sqrt(posterior.covariance), rtol=0.02)
    engine, rng = posterior._engine, np.random.default_rng(1)
    drawn = np.array([engine.touched_values(rng) for _ in range(20_000)])
    some = sample[:20_000, engine.slots.node]
    for slot in range(engine.slots.count):
        assert kstest(drawn[:, slot], some[:, slot]).pvalue > FALSE_ALARM


def test_a_scaled_draw_deviates_so_much_less_from_the_mean():
    model, names, rewards = filled(n=25)
    posterior = bough.Posterior(model)
    posterior.update(names, rewards)
    engine = posterior._engine
    for scale in (0.5, 2.0):
        normals = np.random.default_rng(2).standard_normal(TWO.n_nodes)
        plain, scaled = engine.transform(normals.copy()), engine.transform(scale * normals, scale)
        mean = engine.touched_means()[engine.slots.find(np.arange(TWO.n_nodes, dtype=np.int32))]
        np.testing.assert_allclose(scaled - mean, scale * (plain - mean), atol=1e-9)


def test_searching_chooses_as_often_as_drawing_everything_does():
    """False alarm: 1e-4, by a chi-square test of 20,000 decisions each."""
    model, names, rewards = filled(n=12)
    chosen = []
    for search in (True, False):
        agent = bough.HierTS(model, seed=5, search=search)
        agent.update(names, rewards)
        picks = [agent.decide() for _ in range(20_000)]
        chosen.append(np.array([picks.count(name) for name in list(TWO.actions)]))
    table = np.array(chosen, dtype=float)
    expected = table.sum(axis=0) / 2.0
    assert chisquare(table[0], expected, ddof=0).pvalue > FALSE_ALARM


def test_propensities_and_probabilities_of_being_best_are_how_often_it_happens():
    model, names, rewards = filled(n=12)
    agent = bough.HierTS(model, seed=5)
    agent.update(names, rewards)
    picks = [agent.decide() for _ in range(20_000)]
    often = np.array([picks.count(name) / 20_000 for name in list(TWO.actions)])
    for explore in (1.0, 0.5):
        other = bough.HierTS(agent.posterior, seed=6, explore=explore)
        if explore != 1.0:
            picks = [other.decide() for _ in range(20_000)]
            often = np.array([picks.count(name) / 20_000 for name in list(TWO.actions)])
        found = other.propensity(list(TWO.actions), samples=4_000)
        assert found.method == "sampled"
        slack = 5.0 * np.sqrt(found.standard_error**2 + often * (1.0 - often) / 20_000) + 1e-4
        assert (np.abs(found.probability - often) < slack).all()
    best = agent.posterior.best(samples=4_000, seed=7)
    assert best.method == "sampled"
    assert best.probability.sum() == pytest.approx(1.0, abs=0.05)


def test_many_decisions_at_once_are_decisions():
    model, names, rewards = filled()
    agent = bough.HierTS(model, seed=5)
    agent.update(names, rewards)
    assert set(agent.decide_many(50)) <= set(TWO.actions)


# -- noise and predictions -------------------------------------------------------------------------


def test_the_closed_loop_is_calibrated_in_nodes_and_in_noise():
    """Truths' ranks among draws, and the noise's among its quantiles, are uniform; 5 tests of 1e-4 each."""
    runs, rounds, bins = 1_500, 12, 10
    noise = bough.per_action(0.5, 1.0, 1e-3)
    tree = bough.Tree.balanced(2, 2)
    model = bough.GaussianModel(tree, 0.0, bough.by_depth([0.5, 0.5, 1.0]), noise=noise)
    rng = np.random.default_rng(11)
    ranks, places = np.empty((runs, 3), dtype=int), []
    edges = tuple(np.arange(1, bins) / bins)
    for run in range(runs):
        truth, variance = model.draw(rng), noise.draw(rng, tree.n_nodes)
        agent = bough.HierTS(model, seed=rng)
        for _ in range(rounds):
            action = agent.decide()
            agent.update(action, truth[action] + math.sqrt(variance[action]) * rng.standard_normal())
        agent.posterior.settle()
        draws = agent.posterior.sample(rng, size=bins * 4 - 1)
        ranks[run] = (draws[:, [0, 1, 3]] < truth[[0, 1, 3]]).sum(axis=0)
        actions = agent.posterior._engine.noisy_actions()
        quantiles = np.array(noise_quantiles(actions, noise, edges))
        most = int(actions.counts.argmax())
        places.append(int((quantiles[:, most] < variance[actions.nodes[most]]).sum()))
    for column in ranks.T:
        assert chisquare(np.bincount(column // 4, minlength=bins)).pvalue > FALSE_ALARM
    assert chisquare(np.bincount(places, minlength=bins)).pvalue > FALSE_ALARM


def test_intervals_of_the_next_reward_hold_it_as_often_as_they_say():
    """Of 4,000 actions with 3 rewards each: 95% within five standard errors, also of the quiet and the wild third."""
    tree = bough.Tree.balanced(4_000, 1)
    model = bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 0.5]), noise=NOISE)
    rng = np.random.default_rng(4)
    truth, variance = model.draw(rng)[1:], NOISE.draw(rng, 4_000)
    posterior = bough.Posterior(model)
    posterior.update(
        np.repeat(tree.actions, 3), np.repeat(truth, 3) + np.repeat(np.sqrt(variance), 3) * rng.standard_normal(12_000)
    )
    _, low, high = posterior.predictive(list(tree.actions))
    reward = truth + np.sqrt(variance) * rng.standard_normal(4_000)
    inside = (low <= reward) & (reward <= high)
    assert abs(inside.mean() - 0.95) < 5.0 * math.sqrt(0.95 * 0.05 / 4_000)
    frame = posterior.noise(backend="polars")
    held = (frame["low"].to_numpy() <= variance) & (variance <= frame["high"].to_numpy())
    assert abs(held.mean() - 0.95) < 5.0 * math.sqrt(0.95 * 0.05 / 4_000)


@pytest.mark.parametrize(
    ("noise", "n"), [((0.5, 0.5, 5e-4), 1000), ((0.5, 0.3, 5e-4), 1000), ((0.5, 1.1, 1e-9), 30), ((1.0, 0.3, 1e-3), 1)]
)
def test_noise_far_from_what_was_expected_is_what_integration_says(noise, n):
    """Actions that always earn the same, and one reward that is far off."""
    law = bough.per_action(*noise)
    posterior = bough.Posterior(bough.GaussianModel(STAR, 0.0, bough.by_depth([0.0, 1.0]), noise=law))
    reward = 100.0 if n == 1 else 0.5
    posterior.update(["a"] * n, [reward] * n)
    u = np.linspace(math.log(law.median) - 25.0, math.log(law.median) + 25.0, 1_000_001)
    w = law.floor + np.exp(u)
    heights = -0.5 * (n - 1) * np.log(w) + norm.logpdf(u, math.log(law.median), law.spread)
    heights += norm.logpdf(reward, 0.0, np.sqrt(1.0 + w / n))
    below = np.cumsum(np.exp(heights - heights.max()))
    expected = w[np.searchsorted(below / below[-1], [0.5, 0.025, 0.975])]
    row = posterior.noise(backend="polars").row(0)
    np.testing.assert_allclose(row[1:4], expected, rtol=2e-3)


def test_intervals_keep_their_digits_where_noise_may_be_anything():
    """With a spread of 8, one noise variance in forty is a million times the median."""
    posterior = bough.Posterior(bough.GaussianModel(STAR, 0.0, noise=bough.per_action(1.0, 8.0, 1e-3)))
    posterior.update(["a"] * 100, [5.0] * 100)
    mean, low, high = posterior.predictive("a")
    assert mean == pytest.approx(5.0, abs=1e-3)
    assert (low, high) == pytest.approx((5.0 - 0.0624, 5.0 + 0.0624), abs=1e-3)
    wide = bough.Posterior(
        bough.GaussianModel(STAR, 0.0, bough.by_depth([0.1, 0.1]), noise=bough.per_action(1, 9, 1e-3))
    )
    rng = np.random.default_rng(0)
    draws = rng.standard_normal(10**6) * np.sqrt(0.2 + wide.model.noise.draw(rng, 10**6))
    np.testing.assert_allclose(wide.predictive("a", 0.9)[1:], np.quantile(draws, [0.05, 0.95]), rtol=0.03)


def test_an_untouched_action_s_interval_has_the_prior_of_the_noise():
    posterior = bough.Posterior(bough.GaussianModel(STAR, 0.0, bough.by_depth([0.0, 1.0]), noise=NOISE))
    rng = np.random.default_rng(0)
    draws = rng.standard_normal(400_000) * np.sqrt(1.0 + NOISE.draw(rng, 400_000))
    mean, low, high = posterior.predictive("a")
    assert mean == 0.0
    np.testing.assert_allclose([low, high], np.quantile(draws, [0.025, 0.975]), atol=0.03)


@pytest.mark.parametrize("kind", [bough.BernoulliModel, bough.PoissonModel])
def test_intervals_of_counts_have_the_quantiles_of_draws(kind):
    posterior = bough.Posterior(kind(STAR, -1.0))
    word = kind.kind.exposure_word
    posterior.update(["a", "b"], [7, 1], **{word: [20, 10]})
    rng = np.random.default_rng(0)
    score, variance = posterior.action_moments()
    mean, low, high = posterior.predictive("a", 0.9, **{word: 40})
    rate = posterior.model.mean_reward(score[0] + math.sqrt(variance[0]) * rng.standard_normal(300_000))
    draws = rng.binomial(40, rate) if word == "trials" else rng.poisson(40 * rate)
    assert mean == pytest.approx(draws.mean(), rel=0.01)
    np.testing.assert_allclose([low, high], np.quantile(draws, [0.05, 0.95]), atol=1.0)


def test_intervals_of_very_many_trials_are_those_of_the_rate():
    posterior = bough.Posterior(bough.BernoulliModel(STAR, -1.0))
    posterior.update(["a", "b"], [3, 4], trials=[10, 20])
    few, many = posterior.predictive("a", trials=10**6), posterior.predictive("a", trials=10**10)
    np.testing.assert_allclose(np.array(many) / 10**10, np.array(few) / 10**6, rtol=2e-3)
    with pytest.raises(ValueError, match=r"1e\+12"):
        posterior.predictive("a", trials=10**13)


def test_intervals_of_huge_counts_hold_their_mean():
    posterior = bough.Posterior(bough.PoissonModel(STAR, 100.0, 1e-6))
    mean, low, high = posterior.predictive("a")
    assert low < mean < high
    assert high / low < 1.01


def test_an_interval_in_contexts_has_the_noise_and_the_uncertainty():
    posterior = bough.Posterior(bough.GaussianModel(STAR, [0.0, 0.0], noise_variance=2.0))
    posterior.update("a", 1.0, [1.0, 0.0])
    mean, variance = posterior.action_moments([1.0, 1.0])
    found = posterior.predictive("a", 0.8, [1.0, 1.0])
    np.testing.assert_allclose(found, norm.ppf([0.5, 0.1, 0.9], mean[0], math.sqrt(variance[0] + 2.0)), atol=1e-9)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mean": [0.0, 0.0]}, "mean is a vector"),
        ({"drift": 3.0}, "drift"),
        ({"noise_variance": 2.0}, "give one of the two"),
        ({"noise": 0.5}, "per_action"),
    ],
)
def test_what_noise_per_action_does_not_go_with_is_refused_with_the_reason(given, said):
    with pytest.raises(ValueError, match=said):
        bough.GaussianModel(STAR, **{"noise": NOISE, **given})


@pytest.mark.parametrize(
    "odd", [{"median": 0.0}, {"spread": -1.0}, {"floor": 0.0}, {"spread": float("nan")}, {"median": "a"}]
)
def test_odd_numbers_are_refused_by_name(odd):
    with pytest.raises(ValueError, match=next(iter(odd))):
        bough.per_action(**{"median": 1.0, "spread": 1.0, "floor": 0.1, **odd})


def test_what_cannot_be_is_refused_elsewhere_too():
    posterior = bough.Posterior(bough.GaussianModel(STAR))
    with pytest.raises(ValueError, match="per_action"):
        posterior.noise()
    model = bough.GaussianModel(STAR, noise=NOISE)
    with pytest.raises(ValueError, match="one noise_variance"):
        bough.theory.regret_bound(model, rounds=10)
    with pytest.raises(ValueError, match="on a device"):
        bough.batch.Scorer(bough.Posterior(model), device="cpu")


def test_evaluation_refuses_it_with_the_reason():
    model = bough.GaussianModel(STAR, noise=NOISE)
    log = {"action": ["a", "b", "c"] * 4, "reward": np.arange(12.0), "propensity": np.full(12, 1 / 3)}
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="noise variance per action"):
        bough.evaluate({"a": {"a": 1.0}}, pandas.DataFrame(log), STAR, model=model)


def test_a_copy_goes_on_by_itself_and_shares_nothing_that_changes():
    model, names, rewards = filled(n=60)
    agent = bough.HierTS(model, seed=0)
    agent.update(names[:30], rewards[:30])
    before = agent.posterior.mean.copy()
    twin = agent.posterior._twin()
    for name in ("_scratch", "_pool", "_where", "_table"):
        assert not np.shares_memory(getattr(twin._engine, name), getattr(agent.posterior._engine, name))
    twin.update(names[30:], rewards[30:])
    np.testing.assert_array_equal(agent.posterior.mean, before)
    direct = bough.Posterior(model)
    direct.update(names, rewards)
    same(twin, direct)


def test_kernels_are_warm_and_decisions_made_after_warming_up():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2), noise=NOISE), seed=0)
    bough.warm_up(agent)
    assert agent.decide() in set(agent.posterior.model.tree.actions)
    assert agent.posterior.n_observations == 0
