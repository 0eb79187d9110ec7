"""The law of noise variances per action, learned from logs."""

import numpy as np
import pytest

import bough
from bough.learning import noise_evidence
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses
from bough.learning.noise_evidence import NoiseEvidence
from bough.learning.objective import Penalty


def log_of(tree, noise, per_action, seed=0, variances=(0.0, 1.0, 0.5)):
    model = bough.GaussianModel(tree, 2.0, bough.by_depth(variances), noise=noise)
    rng = np.random.default_rng(seed)
    leaves = rng.choice(tree.leaves, per_action * tree.n_actions)
    deviation = np.sqrt(noise.draw(rng, tree.n_nodes))
    rewards = model.draw(rng)[leaves] + deviation[leaves] * rng.standard_normal(len(leaves))
    return bough.Statistics.from_rows(leaves, rewards)


@pytest.mark.parametrize(
    ("noise", "per_action"), [((1.0, 1.1, 1e-3), 5), ((0.04, 0.6, 1e-3), 20), ((2.0, 2.0, 0.05), 8)]
)
def test_the_median_and_the_spread_are_recovered(noise, per_action):
    """Within four standard errors: false alarm below 1e-3 in all."""
    tree = bough.Tree.balanced(30, 2)
    truth = bough.per_action(*noise)
    fit = bough.fit_prior(tree, log_of(tree, truth, per_action), noise="per action")
    assert fit.converged
    for name, value in (("noise", truth.median), ("noise spread", truth.spread)):
        one = fit.estimates[name]
        error = np.log(one.high / one.low) / (2 * 1.96)
        assert abs(np.log(one.value / value)) < 4.0 * error
        assert error < 0.2
    assert fit.model.noise == (
        fit.estimates["noise"].value,
        fit.estimates["noise spread"].value,
        fit.estimates["noise floor"].value,
    )
    assert fit.noise_variance is None
    assert "noise spread" in fit.summary()
    assert fit.posterior.log_evidence() == pytest.approx(fit.log_evidence, abs=0.01)


def test_a_floor_that_matters_is_found():
    tree, truth = bough.Tree.balanced(40, 2), bough.per_action(0.2, 1.5, 0.3)
    fit = bough.fit_prior(tree, log_of(tree, truth, 40), noise="per action")
    assert fit.model.noise.floor == pytest.approx(0.3, rel=0.1)


def test_noise_that_is_the_same_for_all_has_no_spread_and_the_answer_of_today():
    tree = bough.Tree.balanced(20, 2)
    log = log_of(tree, bough.per_action(0.7, 0.0, 1e-6), 10)
    own, one = bough.fit_prior(tree, log, noise="per action"), bough.fit_prior(tree, log)
    assert own.model.noise.spread < 0.1
    total = own.model.noise.floor + own.model.noise.median * np.exp(0.5 * own.model.noise.spread**2)
    assert total == pytest.approx(one.noise_variance, rel=0.01)
    assert own.log_evidence == pytest.approx(one.log_evidence, abs=2.0)
    for name, variance in one.covariances.items():
        assert own.covariances[name] == pytest.approx(variance, rel=0.02, abs=1e-9)


def test_with_a_spread_of_zero_the_evidence_and_the_best_mean_are_today_s():
    tree = bough.Tree.balanced(8, 2)
    log = log_of(tree, bough.per_action(0.7, 0.8, 1e-6), 10)
    one = bough.fit_prior(tree, log, penalty=None)
    objective = objective_of(tree, log)
    noise = bough.per_action(one.noise_variance - 0.01, 0.0, 0.01)
    value, _ = objective.evidence(np.array(list(one.covariances.values())), noise)
    assert value == pytest.approx(one.log_evidence, abs=1e-6)
    assert objective.mean == pytest.approx(one.mean, abs=1e-6)


def objective_of(tree, log):
    forest = Forest.from_logs([tree], [log], NodeClasses.of("depth", [tree]))
    group = np.array([-1, 0, 1])
    found = NoiseEvidence(forest, np.array([0.0, 0.5, 0.5]), group, None, Penalty(0.0, 0.0, 2.0))
    found.expect(0.0)
    return found


def test_the_gradient_is_that_of_differences():
    tree = bough.Tree.balanced(6, 2)
    objective = objective_of(tree, log_of(tree, bough.per_action(0.5, 1.0, 0.02), 6))
    for parameters in (objective.start(), np.log([0.7, 0.3, 0.4, 0.9, 0.1]), np.log([0.7, 0.3, 1.0, 0.4, 0.3])):
        _, gradient = objective.value_and_gradient(parameters)
        for i, step in enumerate(1e-4 * np.eye(len(parameters))):
            ahead, behind = (objective.value_and_gradient(parameters + sign * step)[0] for sign in (1.0, -1.0))
            assert gradient[i] == pytest.approx((ahead - behind) / 2e-4, rel=1e-3, abs=2e-3)


@pytest.mark.parametrize(
    ("noise", "penalty"), [((0.5, 0.9, 0.02), 2.0), ((0.5, 0.9, 0.4), 2.0), ((0.5, 2.0, 0.1), None)]
)
def test_the_search_by_newtons_method_ends_where_one_without_it_does(monkeypatch, noise, penalty):
    tree = bough.Tree.balanced(8, 3)
    log = log_of(tree, bough.per_action(*noise), 12, variances=(0.0, 1.0, 0.5, 0.3))
    sooner = bough.fit_prior(tree, log, noise="per action", penalty=penalty)
    monkeypatch.setattr(noise_evidence, "_MOST_STEPS", 0)
    monkeypatch.setattr(noise_evidence, "_NEARBY", -1.0)  # no curvature is taken from elsewhere
    later = bough.fit_prior(tree, log, noise="per action", penalty=penalty)
    assert sooner.converged
    assert later.converged
    assert sooner.log_evidence == pytest.approx(later.log_evidence, abs=0.01)
    for name, one in sooner.estimates.items():
        other = later.estimates[name]
        if one.low < one.high and name != "mean":
            error = np.log(other.high / other.low) / (2 * 1.96)
            found, expected = (np.log([e.low, e.value, e.high]) for e in (one, other))
            assert found == pytest.approx(expected, abs=0.1 * error)


@pytest.mark.parametrize("seed", range(4))
def test_constant_noise_gives_the_fit_of_one_variance_where_a_spread_says_no_more(seed):
    tree = bough.Tree.balanced(100, 1)
    log = log_of(tree, bough.per_action(0.7, 0.0, 1e-6), 20, seed=seed, variances=(0.0, 1.0))
    own, one = bough.fit_prior(tree, log, noise="per action"), bough.fit_prior(tree, log)
    assert own.converged
    if own.model.noise.spread == 0.0:
        assert own.model.noise.median + own.model.noise.floor == pytest.approx(one.noise_variance, rel=1e-9)
        assert own.covariances == one.covariances
        assert own.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)
    else:
        assert own.log_evidence > one.log_evidence
        assert own.estimates["noise spread"].low < 0.05


@pytest.mark.parametrize(("share", "per_action"), [(0.1, 100), (0.05, 1000), (0.3, 10)])
def test_actions_that_always_earn_the_same_are_quiet_and_do_not_spoil_the_fit(share, per_action):
    """The evidence is at its maximum: other spreads, with the median at its best for each, have less."""
    rng, n = np.random.default_rng(1), 400
    tree = bough.Tree.balanced(20, 2)
    deviations = np.sqrt(0.25 * np.exp(rng.normal(size=n)))
    deviations[rng.random(n) < share] = 0.0
    rewards = np.repeat(10.0 + 3.0 * rng.normal(size=n), per_action)
    rewards += np.repeat(deviations, per_action) * rng.normal(size=n * per_action)
    log = bough.Statistics.from_rows(np.repeat(list(tree.actions), per_action), rewards)
    fit = bough.fit_prior(tree, log, noise="per action")
    assert fit.converged
    assert 2.0 < fit.model.noise.spread < 6.0
    median, spread, floor = fit.model.noise
    for other in (0.8 * spread, 1.25 * spread):
        best = max(
            _evidence(fit, log, bough.per_action(median * factor, other, floor)) for factor in (0.3, 0.6, 1.0, 1.6, 3.0)
        )
        assert best < fit.log_evidence


def _evidence(fit, log, noise):
    posterior = bough.Posterior(bough.GaussianModel(fit.model.tree, fit.mean, fit.model.covariance, noise=noise))
    posterior.absorb(log)
    return posterior.log_evidence()


def test_one_wild_reward_leaves_the_floor_where_it_was():
    tree, rng = bough.Tree.balanced(5, 2), np.random.default_rng(0)
    rewards = np.repeat(rng.normal(size=25), 40) + np.repeat(np.exp(0.5 * rng.normal(size=25)), 40) * rng.normal(
        size=1000
    )
    fits = []
    for last in (rewards[-1], 1e5, 1e6):
        rewards[-1] = last
        fits.append(bough.fit_prior(tree, bough.Statistics.from_rows(np.repeat(list(tree.actions), 40), rewards),
                                    noise="per action"))  # fmt: skip
    assert all(fit.model.noise.floor < 1.0 for fit in fits)
    assert fits[2].log_evidence > fits[0].log_evidence - 700.0


def test_a_log_in_which_nothing_varies_within_actions_has_the_evidence_of_its_posterior():
    tree = bough.Tree.balanced(5, 2)
    rewards = np.repeat(np.random.default_rng(0).normal(size=25), 40)
    fit = bough.fit_prior(
        tree, bough.Statistics.from_rows(np.repeat(list(tree.actions), 40), rewards), noise="per action"
    )
    assert fit.log_evidence == pytest.approx(fit.posterior.log_evidence(), abs=0.1)
    assert "not known" in fit.summary()


def test_what_goes_with_no_fit_is_refused_before_the_log_is_read():
    tree = bough.Tree.balanced(2, 1)
    with pytest.raises(ValueError, match="there are factors"):
        bough.fit_prior(tree, "no such file", action="a", reward="y", noise="per action", factors={"brand": {1: "x"}})
    with pytest.raises(ValueError, match='give "per action"'):
        bough.fit_prior(tree, "no such file", action="a", reward="y", noise=bough.per_action(1.0, 1.0, 0.1))


def test_rewards_of_any_size_have_a_law_of_their_noise():
    tree = bough.Tree.balanced(5, 2)
    log = log_of(tree, bough.per_action(1.0, 1.0, 1e-3), 10)
    plain = bough.fit_prior(tree, log, noise="per action").model.noise
    sums = bough.Statistics.from_rows
    model = bough.GaussianModel(tree, 2.0, bough.by_depth([0.0, 1.0, 0.5]), noise=bough.per_action(1.0, 1.0, 1e-3))
    rng = np.random.default_rng(0)
    leaves = rng.choice(tree.leaves, 250)
    deviation = np.sqrt(model.noise.draw(rng, tree.n_nodes))
    rewards = model.draw(rng)[leaves] + deviation[leaves] * rng.standard_normal(250)
    large = bough.fit_prior(tree, sums(leaves, 1e60 * rewards), noise="per action").model.noise
    assert large.median / 1e120 == pytest.approx(plain.median, rel=1e-3)
    assert large.spread == pytest.approx(plain.spread, rel=1e-3)


@pytest.mark.parametrize("given", [{"model": bough.BernoulliModel, "trials": "n"}, {"context": ["x"]}])
def test_other_rewards_and_contexts_are_refused(given):
    import pandas

    frame = pandas.DataFrame({"a": [1, 2], "y": [1.0, 0.0], "n": [1, 1], "x": [0.5, 1.0]})
    with pytest.raises(ValueError, match="per action"):
        bough.fit_prior(bough.Tree.balanced(2, 1), frame, action="a", reward="y", noise="per action", **given)


def test_a_log_whose_rewards_say_nothing_of_noise_can_be_learned_from():
    tree = bough.Tree.balanced(10, 2)
    rewards = np.random.default_rng(0).normal(size=100)
    fit = bough.fit_prior(tree, bough.Statistics.from_rows(list(tree.actions), rewards), noise="per action")
    assert np.isfinite(fit.log_evidence)
    assert fit.model.noise.median > 0.0
