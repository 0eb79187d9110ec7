"""Clicks and counts in policies, simulations and fits."""

import csv
import pickle

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chisquare

import bough
from bough.learning.fit import _objective
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses
from bough.learning.options import FitOptions, groups_of
from places import FIXTURES

KINDS = {"bernoulli": bough.BernoulliModel, "poisson": bough.PoissonModel}
TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})


# -- policies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy, bough.BetaTS])
def test_every_policy_finds_the_action_that_is_clicked(policy):
    agent = policy(bough.BernoulliModel(TREE, -1.0), seed=0)
    rng = np.random.default_rng(1)
    for _ in range(300):
        action = agent.decide()
        agent.update(action, int(rng.random() < (0.9 if action == "black" else 0.1)))
    assert [agent.decide() for _ in range(20)].count("black") >= 18
    assert agent.decide(exclude=["black"]) != "black"
    assert set(agent.decide(k=2)) <= set(TREE.actions)
    assert agent.decide(among=["green", "espresso"]) in ("green", "espresso")
    assert len(agent.decide_many(3)) == 3
    assert agent.propensity(["black"], samples=50).probability[0] > 0.5


def test_decide_searches_large_trees_of_clicks_and_is_exact_in_law():
    # Chi-squared at 1e-4 over 111 actions of two ways to choose.
    model = bough.BernoulliModel(bough.Tree.balanced(10, 2), -2.0, bough.by_depth([0.3, 0.5, 0.5]))
    agents = [bough.HierTS(model, seed=seed, search=search) for seed, search in ((0, True), (1, False))]
    rng = np.random.default_rng(2)
    for action in rng.choice(model.tree.leaves, 60).tolist():
        reward = int(rng.random() < 0.3)
        for agent in agents:
            agent.update(action, reward)
    counts = [np.bincount(agent.decide_many(6_000), minlength=111) for agent in agents]
    together = counts[0] + counts[1]
    often = together >= 40
    expected = together[often] / 2
    assert chisquare(counts[0][often], expected * counts[0][often].sum() / expected.sum()).pvalue > 1e-4


def test_decisions_among_many_clicks_look_only_at_what_was_touched():
    model = bough.BernoulliModel(bough.Tree.balanced(10, 5), -3.0, 0.2)
    agent = bough.HierTS(model, seed=0)
    for i in range(50):
        agent.update(agent.decide(), i % 7 == 0)
    agent.decide()
    assert agent.posterior.nodes_visited < 5_000


def test_contexts_of_clicks_decide_and_learn():
    model = bough.BernoulliModel(TREE, [0.0, 0.0])
    agent, rng = bough.HierTS(model, seed=0), np.random.default_rng(3)
    for _ in range(400):
        context = rng.choice([-1.0, 1.0], 2)
        action = agent.decide(context)
        agent.update(action, int(rng.random() < expit(3.0 * context[0] * (1 if action == "green" else -1))), context)
    assert [agent.decide([1.0, 0.0]) for _ in range(20)].count("green") >= 15
    assert [agent.decide([-1.0, 0.0]) for _ in range(20)].count("green") <= 5
    mean, low, high = agent.posterior.mean_reward([1.0, 0.0])
    assert (low < mean).all()
    assert (mean < high).all()


def test_greedy_goes_by_the_expected_reward_and_not_by_the_median():
    tree = bough.Tree.from_nested(["sure", "unsure"])
    model = bough.PoissonModel(tree, 0.0, bough.by_node({"": 0.0, "sure": 0.0, "unsure": 1.0}))
    assert bough.Greedy(model, seed=0).decide() == "unsure"


def test_a_beta_prior_has_the_moments_of_the_models_marginal():
    model = bough.BernoulliModel(TREE, -2.0, bough.by_depth([0.5, 0.5, 1.0]))
    agent = bough.BetaTS(model)
    p = expit(-2.0 + np.sqrt(2.0) * np.random.default_rng(0).standard_normal(1_000_000))
    size = agent.successes + agent.failures
    mean = agent.successes / size
    np.testing.assert_allclose(mean, p.mean(), rtol=5e-3)
    np.testing.assert_allclose(mean * (1 - mean) / (size + 1), p.var(), rtol=1e-2)
    agent.update(["green", "black"], [3, 0], trials=[4, 2])
    more = dict(zip(TREE.actions, (agent.successes + agent.failures - size).round(9).tolist(), strict=True))
    assert more == {"green": 4.0, "black": 2.0, "espresso": 0.0}
    assert repr(agent) == "BetaTS(n_actions=3, n_observations=6)"


@pytest.mark.parametrize("model", [bough.GaussianModel(TREE), bough.BernoulliModel(TREE, [0.0]), "model"])
def test_beta_priors_are_for_clicks_without_contexts(model):
    with pytest.raises(ValueError, match=r"BetaTS takes a bough\.BernoulliModel without contexts"):
        bough.BetaTS(model)


def test_a_policy_of_clicks_survives_pickling():
    agent = bough.HierTS(bough.BernoulliModel(TREE, -1.0), seed=0)
    agent.update("green", 1)
    again = pickle.loads(pickle.dumps(agent))
    assert [again.decide() for _ in range(5)] == [agent.decide() for _ in range(5)]


def test_refitting_learns_the_level_of_clicks():
    truth = bough.BernoulliModel(bough.Tree.balanced(8, 2), -3.0, bough.by_depth([0.0, 1.0, 0.3]))
    believed = bough.BernoulliModel(truth.tree, 0.0, bough.by_depth([0.0, 0.1, 0.1]))
    agent, rng = bough.HierTS(believed, seed=0, refit=True), np.random.default_rng(4)
    parameters = truth.draw(rng)
    for _ in range(700):
        action = agent.decide()
        agent.update(action, int(rng.random() < expit(parameters[action])))
    assert agent.posterior.model.mean < -1.0
    assert agent.posterior.n_observations == 700
    assert agent.statistics.n_rows == 700
    agent.update([9, 10], [5, 2], trials=[100, 60])
    assert agent.posterior.n_observations == 860
    with pytest.raises(ValueError, match="refit keeps sums"):
        bough.HierTS(bough.BernoulliModel(TREE, [0.0]), refit=True)


# -- simulations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
def test_compiled_runs_of_counts_are_what_the_policies_do(kind, policy):
    model = KINDS[kind](bough.Tree.balanced(3, 2), -1.0, bough.by_depth([0.3, 0.5, 0.3]))
    compiled = bough.simulate(model, {"policy": policy}, rounds=150, runs=3, seed=5)
    by_hand = bough.simulate(model, {"policy": lambda m, seed: policy(m, seed)}, rounds=150, runs=3, seed=5)
    np.testing.assert_allclose(compiled.regret["policy"], by_hand.regret["policy"], rtol=1e-12)
    np.testing.assert_array_equal(compiled.tried["policy"], by_hand.tried["policy"])


def test_regret_is_measured_in_clicks():
    model = bough.BernoulliModel(bough.Tree.balanced(4, 2), -2.0)
    run = bough.simulate(model, {"HierTS": bough.HierTS, "BetaTS": bough.BetaTS}, rounds=50, runs=4, seed=0)
    for regret in run.regret.values():
        steps = np.diff(regret, axis=1)
        assert (steps >= 0.0).all()
        assert (steps < 1.0).all()
    assert 0.0 < run.best < 1.0


def test_contexts_and_counts_are_simulated_on_their_own_scale():
    model = bough.PoissonModel(TREE, [0.0, 0.0], 0.3)
    policies = {"HierTS": bough.HierTS, "Greedy": bough.Greedy, "BayesUCB": bough.BayesUCB}
    run = bough.simulate(model, policies, rounds=40, runs=3, seed=0, contexts=lambda rng, n: rng.normal(size=(n, 2)))
    again = bough.simulate(
        model, policies, rounds=40, runs=3, seed=0, contexts=lambda rng, n: rng.normal(size=(n, 2)), jobs=1
    )
    for name in policies:
        assert (np.diff(run.regret[name], axis=1) >= 0.0).all()
        np.testing.assert_array_equal(run.regret[name], again.regret[name])
    assert run.best > 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": np.array([0.5, 1.2, 0.1])}, "the truth is not all from 0 to 1"),
        ({"noise": np.array([0.5, 1.0])}, r"the noise has numbers outside \[0, 1\)"),
        ({"residuals": bough.Residuals(np.zeros(3), np.arange(4), np.zeros(2))}, "no reward of a BernoulliModel"),
    ],
)
def test_a_world_of_clicks_that_cannot_be_says_why(change, message):
    sound = {"truth": np.array([0.5, 0.2, 0.1]), "noise": np.array([0.5, 0.1])}
    assert bough.World(bough.BernoulliModel(TREE), **sound).reward(0, 0, 0.5) == 0.0
    with pytest.raises(ValueError, match=message):
        bough.World(bough.BernoulliModel(TREE), **{**sound, **change})


def test_the_theory_is_for_gaussian_rewards():
    with pytest.raises(ValueError, match="the theory is that of a"):
        bough.theory.regret_bound(bough.BernoulliModel(TREE), 100)


# -- fits ------------------------------------------------------------------------------------------


def drawn_log(kind, tree, truth, n, seed):
    rng = np.random.default_rng(seed)
    actions = rng.choice(tree.leaves, n)
    score = truth.draw(rng)[actions]
    if kind == "bernoulli":
        return bough.Statistics.from_rows(actions, (rng.random(n) < expit(score)).astype(float))
    exposure = rng.uniform(0.2, 2.0, n)
    return bough.Statistics.from_rows(actions, rng.poisson(exposure * np.exp(score)), exposure=exposure)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("mean", [None, -1.0])
def test_the_gradient_is_that_of_the_approximate_evidence(kind, mean):
    tree = bough.Tree.balanced(4, 3)
    log = drawn_log(kind, tree, KINDS[kind](tree, -1.0, bough.by_depth([0.0, 0.5, 0.4, 0.3])), 800, seed=0)
    classes = NodeClasses.of("depth", [tree])
    options = FitOptions(1.0, mean, None, 2.0, "full", KINDS[kind])
    objective = _objective(Forest.from_logs([tree], [log], classes), groups_of([tree], classes, options), options, 1.0)
    check_gradient(objective, np.log([0.3, 0.6, 0.2]))


def check_gradient(objective, parameters):
    """Differences of a value of hundreds, settled to 1e-9: good to about 1e-5."""
    _, gradient = objective.value_and_gradient(parameters)
    for i, step in enumerate(np.eye(len(parameters)) * 1e-3):
        ahead, behind = (objective.value_and_gradient(parameters + sign * step)[0] for sign in (1, -1))
        assert gradient[i] == pytest.approx((ahead - behind) / 2e-3, rel=1e-4, abs=1e-4)


def contextual_rows(kind, n, seed):
    rng = np.random.default_rng(seed)
    tree = bough.Tree.balanced(4, 2)
    truth = KINDS[kind](tree, [-1.0, 0.5], bough.by_depth([0.0, 0.5, 0.3]))
    actions, contexts = rng.choice(tree.leaves, n), np.column_stack([np.ones(n), 3.0 * rng.normal(size=n)])
    score = np.einsum("nd,nd->n", truth.draw(rng)[actions], contexts).clip(max=6.0)
    rewards = (rng.random(n) < expit(score)) if kind == "bernoulli" else rng.poisson(np.exp(score))
    return tree, bough.Observations(actions, rewards.astype(float), contexts)


@pytest.mark.parametrize("structure", ["full", "diagonal", "scaled"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_gradient_with_contexts_is_that_of_the_approximate_evidence(kind, structure):
    tree, log = contextual_rows(kind, 400, seed=1)
    classes = NodeClasses.of("depth", [tree])
    options = FitOptions(1.0, None, None, 2.0, structure, KINDS[kind])
    sums = bough.Statistics.from_rows(log.action, log.reward, log.context)
    forest = Forest.from_logs([tree], [sums], classes, [log])
    objective = _objective(forest, groups_of([tree], classes, options), options, 1.0)
    start = objective.start()
    check_gradient(objective, start + 0.1 * np.random.default_rng(2).normal(size=len(start)))


@pytest.mark.parametrize(("name", "kind"), [("cbpp", "bernoulli"), ("ticks", "poisson")])
def test_random_intercepts_are_those_of_lme4(name, kind):
    """With a known root, leaves are apart and nothing is approximate but quadrature, in lme4 as here."""
    with open(FIXTURES / "counts.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == name]
    with open(FIXTURES / "counts_lme4.csv") as file:
        theirs = {row["what"]: float(row["value"]) for row in csv.DictReader(file) if row["data"] == name}
    groups = [row["group"] for row in rows]
    totals, exposure = ([float(row[key]) for row in rows] for key in ("total", "exposure"))
    log = bough.Statistics.from_rows(groups, totals, exposure=exposure)
    fit = bough.fit_prior(bough.Tree.from_nested(groups), log, model=KINDS[kind], penalty=None)
    assert fit.converged
    assert fit.mean == pytest.approx(theirs["mean"], abs=1e-5)
    assert fit.covariances["depth 1"] == pytest.approx(theirs["variance"], rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "totals", "exposure", "mean", "variance"),
    [  # maxima of exact integrals on a fine grid, with the penalty, by Nelder and Mead's method
        ("bernoulli", [8, 4, 0, 0, 0, 0, 0, 1, 1, 1], [26, 21, 12, 13, 3, 4, 2, 8, 32, 26], -2.75101, 1.12415),
        ("bernoulli", [0, 1, 1, 3, 0, 0, 7, 0], [16, 14, 29, 15, 14, 3, 38, 34], -3.11514, 1.26566),
        ("poisson", [0, 0, 0, 0, 8], [3, 8, 5, 17, 31], -3.59089, 2.16621),
    ],
)
def test_small_stars_have_the_best_mean_and_variance(kind, totals, exposure, mean, variance):
    tree = bough.Tree.from_parents([-1] + [0] * len(totals))
    fit = bough.fit_prior(tree, bough.Statistics.from_rows(tree.leaves, totals, exposure=exposure), model=KINDS[kind])
    assert fit.converged
    assert fit.mean == pytest.approx(mean, abs=1e-3)
    assert fit.covariances["depth 1"] == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("penalty", [2.0, None])
def test_logs_with_hardly_a_click_are_fitted_or_refused(penalty):
    """Of 60 sparse logs none may end in anything but a finite fit or a clear refusal."""
    refusals, fits = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tree = bough.Tree.balanced(int(rng.integers(2, 5)), int(rng.integers(1, 4)))
        actions = rng.choice(tree.leaves, int(10.0 ** rng.uniform(0.5, 2.5)))
        log = bough.Statistics.from_rows(actions, (rng.random(len(actions)) < 0.04).astype(float))
        try:
            fits.append(bough.fit_prior(tree, log, model=bough.BernoulliModel, penalty=penalty))
        except ValueError as error:
            refusals.append(str(error))
    assert all("give" in text or "all are the same" in text for text in refusals)
    assert len(fits) > 20
    assert all(np.isfinite(fit.mean) and -np.inf < fit.log_evidence < 0.0 for fit in fits)


def test_contexts_that_repeat_each_other_share_their_effect():
    tree, rows = contextual_rows("bernoulli", 200, seed=9)
    x = np.asarray(rows.context)
    twice = bough.Observations(rows.action, rows.reward, np.column_stack([x, x[:, 1]]))
    fit = bough.fit_prior(tree, twice, model=bough.BernoulliModel)
    assert fit.converged
    assert fit.mean[1] == pytest.approx(fit.mean[2], abs=1e-6)
    assert np.abs(fit.mean).max() < 10.0


def test_a_kind_of_ones_own_keeps_the_noise_that_was_learned():
    class Mine(bough.GaussianModel):
        pass

    rng = np.random.default_rng(0)
    log = bough.Statistics.from_rows(rng.choice(list(TREE.actions), 300).tolist(), rng.normal(0.0, 0.1, 300))
    fit = bough.fit_prior(TREE, log, model=Mine)
    assert type(fit.model) is Mine
    assert fit.model.noise_variance == pytest.approx(0.01, rel=0.3)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_variances_are_recovered_from_many_trees(kind):
    # 30 trees: the leaf and middle variances have standard errors of some 5% and 10%, the top level of 20%.
    tree = bough.Tree.balanced(6, 3)
    truth = KINDS[kind](tree, -1.5, bough.by_depth([0.4, 0.6, 0.4, 0.3]))
    logs = [drawn_log(kind, tree, truth, 6_000, seed) for seed in range(30)]
    fit = bough.fit_prior([tree] * 30, logs, model=KINDS[kind])
    for depth, (value, error) in enumerate([(0.4, 0.8), (0.6, 0.3), (0.4, 0.2), (0.3, 0.12)]):
        assert fit.covariances[f"depth {depth}"] == pytest.approx(value, rel=error)
    assert fit.mean == pytest.approx(-1.5, abs=0.4)
    assert fit.noise_variance is None
    assert "noise" not in fit.estimates


def test_a_fitted_models_evidence_is_the_posteriors_own():
    tree = bough.Tree.balanced(5, 2)
    log = drawn_log("bernoulli", tree, bough.BernoulliModel(tree, -1.0), 2_000, seed=5)
    fit = bough.fit_prior(tree, log, model=bough.BernoulliModel)
    posterior = bough.Posterior(fit.model)
    posterior.absorb(log)
    assert isinstance(fit.model, bough.BernoulliModel)
    assert posterior.log_evidence() == pytest.approx(fit.log_evidence, abs=1e-6)
    assert "noise" not in fit.summary()


def test_a_frame_is_fitted_by_its_columns():
    import polars

    frame = polars.DataFrame(
        {"ad": ["green", "black", "espresso"] * 4, "clicks": [3, 0, 9, 4, 1, 7, 2, 2, 8, 3, 1, 6], "views": [20] * 12}
    )
    named = bough.fit_prior(TREE, frame, action="ad", reward="clicks", trials="views", model=bough.BernoulliModel)
    sums = bough.summarise(frame, TREE, "ad", "clicks", trials="views")
    assert sums.exposure.tolist() == [80.0] * 3
    assert sums.count.tolist() == [4.0] * 3
    assert bough.fit_prior(TREE, sums, model=bough.BernoulliModel).mean == pytest.approx(named.mean)
    contexts = frame.with_columns(one=polars.lit(1.0))
    rows = bough.fit_prior(
        TREE, contexts, action="ad", reward="clicks", context=["one"], trials="views", model=bough.BernoulliModel
    )
    assert rows.mean[0] == pytest.approx(named.mean, abs=0.05)


def test_exposure_adds_up_and_comes_back_from_a_file(tmp_path):
    first = bough.Statistics.from_rows(["green"], [3.0], trials=[10.0])
    second = bough.Statistics.from_rows(["green", "black"], [1.0, 0.0])
    both = first + second
    assert dict(zip(both.actions.tolist(), both.exposure.tolist(), strict=True)) == {"green": 11.0, "black": 1.0}
    assert dict(zip(both.actions.tolist(), (second + first).exposure_or_count.tolist(), strict=True)) == {
        "green": 11.0,
        "black": 1.0,
    }
    both.save(tmp_path / "both.bough")
    assert bough.Statistics.load(tmp_path / "both.bough").exposure.tolist() == both.exposure.tolist()
    assert second.exposure is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bough.Statistics.from_rows(["green"], [1.0], trials=[0.0]), "or is not positive"),
        (
            lambda: bough.Statistics.from_rows(["green"], [1.0], trials=[1.0], exposure=[1.0]),
            "both trials and exposure",
        ),
        (lambda: bough.fit_prior(TREE, _log([0.0, 0.0]), model=bough.BernoulliModel), "rewards sum to 0 in 2"),
        (lambda: bough.fit_prior(TREE, _log([1.0, 1.0]), model=bough.BernoulliModel), "all are the same"),
        (
            lambda: bough.fit_prior(TREE, _log([1.0, 2.0]), model=bough.BernoulliModel),
            "give 0 or 1, or, where they are",
        ),
        (lambda: bough.fit_prior(TREE, _log([1.0, 0.0], trials=[2, 2])), "go with a bough.BernoulliModel or Poisson"),
        (lambda: bough.Posterior(bough.GaussianModel(TREE)).absorb(_log([1.0, 0.0], trials=[2, 2])), "not with a Gaus"),
        (lambda: bough.fit_prior(TREE, _log([1.0, 0.0]), trials="views"), "trials was given, which goes with"),
        (
            lambda: bough.fit_prior(TREE, _log([1.0, 0.0]), exposure="days", model=bough.BernoulliModel),
            "exposure was given, which goes with a bough.PoissonModel",
        ),
        (lambda: _log([5.0, 0.0], trials=[4, 4]), "the reward in row 0 is 5; give a count of at most 4"),
        (lambda: _log([0.0, 0.5], exposure=[4, 4]), "the reward in row 1 is 0.5; give a count, a whole number"),
        (lambda: bough.fit_prior(TREE, _log([1.0, 0.0]), noise=1.0, model=bough.BernoulliModel), "have none; leave it"),
        (lambda: bough.fit_prior(TREE, _log([1.0, 0.0]), model="bernoulli"), "give the class, such as"),
        (
            lambda: bough.fit_prior(
                TREE, bough.Statistics.from_rows(["green"], [1.0], [[1.0]]), model=bough.BernoulliModel
            ),
            "sums cannot tell",
        ),
    ],
)
def test_logs_of_counts_that_cannot_be_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _log(rewards, **seen):
    return bough.Statistics.from_rows(["green", "black"], rewards, **seen)


@pytest.mark.parametrize("bad", [(41, 40), (-1, 40), (0.5, 40), (1, 0)])
def test_a_row_that_cannot_be_is_found_among_others_of_its_action(bad):
    import polars

    frame = polars.DataFrame(
        {"ad": ["green"] * 4 + ["black"], "clicks": [3.0, 5.0, bad[0], 1.0, 2.0], "views": [90, 80, bad[1], 70, 60]}
    )
    with pytest.raises(ValueError, match="1 of 5 rows cannot be used"):
        bough.summarise(frame, TREE, "ad", "clicks", trials="views")
    left = bough.summarise(frame, TREE, "ad", "clicks", trials="views", bad="skip")
    assert left.skipped == {"bad number": 1}
    assert left.exposure.sum() == 300.0
    if bad[0] == 41:  # as a count in an exposure it may be
        assert bough.summarise(frame, TREE, "ad", "clicks", exposure="views").sum_y.sum() == 52.0


def test_a_reward_that_is_no_count_is_found_without_trials_and_exposure_too():
    import polars

    frame = polars.DataFrame({"ad": ["green", "black", "black"], "clicks": [0.0, 1.0, 2.25], "age": [1.0, 2.0, 3.0]})
    for model in (bough.PoissonModel, bough.BernoulliModel):
        with pytest.raises(ValueError, match=r"1 of 3 rows cannot be used: .*2\.25"):
            bough.summarise(frame, TREE, "ad", "clicks", model=model)
        assert bough.summarise(frame, TREE, "ad", "clicks", model=model, bad="skip").skipped == {"bad number": 1}
        for context in (None, ["age"]):
            with pytest.raises(ValueError, match="1 of 3 rows cannot be used"):
                bough.fit_prior(TREE, frame, action="ad", reward="clicks", context=context, model=model)
    with pytest.raises(ValueError, match=r"exposure was given, which goes with a bough\.PoissonModel"):
        bough.summarise(frame, TREE, "ad", "clicks", exposure="age", model=bough.BernoulliModel)
    with pytest.raises(ValueError, match="model is 'poisson'; give the class of a model"):
        bough.summarise(frame, TREE, "ad", "clicks", model="poisson")


@pytest.mark.parametrize("counts", [[0], [3], [0, 0, 1], [7, 8, 8], [2, 9, 40]])
def test_sums_of_counts_of_any_weight_are_those_of_counts(counts):
    weight = np.random.default_rng(1).random(len(counts))
    bough.Statistics.from_rows(["green"] * len(counts), counts, weight=weight).check_kind(bough.PoissonModel)


def test_contexts_of_clicks_are_fitted_from_frames_and_files_alike(tmp_path):
    import polars

    tree, rows = contextual_rows("bernoulli", 300, seed=6)
    frame = polars.DataFrame({"ad": rows.action, "click": rows.reward, "age": np.asarray(rows.context)[:, 1]})
    frame.write_parquet(tmp_path / "log.parquet")
    named = dict(action="ad", reward="click", context=["age"], intercept=True, model=bough.BernoulliModel)
    first = bough.fit_prior(tree, rows, model=bough.BernoulliModel)
    for log in (frame, frame.lazy(), frame.to_pandas(), str(tmp_path / "log.parquet")):
        assert bough.fit_prior(tree, log, **named).log_evidence == pytest.approx(first.log_evidence, abs=1e-8)
    with pytest.raises(ValueError, match="a weight was given"):
        bough.fit_prior(tree, frame, **named, weight="age")
    broken = frame.with_columns(ad=polars.when(polars.int_range(polars.len()) == 7).then(0).otherwise("ad"))
    with pytest.raises(ValueError, match="1 of 300 rows cannot be used"):
        bough.fit_prior(tree, broken, **named)
    assert bough.fit_prior(tree, broken, **named, bad="skip").converged


def test_logs_of_rows_add_up():
    first = bough.Observations(["green"], [3], [[1.0, 0.0]], trials=4)
    both = first + bough.Observations(["black", "green"], [1, 0], [[0.0, 1.0], [1.0, 1.0]])
    rows = both.rows(bough.BernoulliModel(TREE, [0.0, 0.0]))
    assert rows.exposure.tolist() == [4.0, 1.0, 1.0]
    assert rows.rewards.tolist() == [3.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="one log has contexts and the other has none"):
        first + bough.Observations(["green"], [1])


def test_beta_priors_take_what_was_summed():
    model = bough.BernoulliModel(TREE, -2.0)
    one, other = bough.BetaTS(model), bough.BetaTS(model)
    one.update(["green", "black"], [3, 0], trials=[4, 2])
    other.absorb(bough.Statistics.from_rows(["green", "black"], [3, 0], trials=[4, 2]))
    np.testing.assert_array_equal(one.successes, other.successes)
    np.testing.assert_array_equal(one.failures, other.failures)
    assert repr(one) == repr(other)
    with pytest.raises(ValueError, match="statistics is a str"):
        other.absorb("clicks")
