"""`best`, `should_stop` and exact propensities, as users have them.

What is compared with draws is at most 5 standard errors off: once in 10^6 comparisons by chance, 1e-4 over all.
"""

import pickle

import numpy as np
import pytest
from scipy.stats import norm

import bough
from bough.inference import contest_draws
from bough.policies import propensity as formulas

UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
SPREAD = bough.by_depth([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])
CONTEXT = [1.0, -0.5, 0.3]
NARROW = bough.by_depth([0.3, 0.4, 0.5, 0.2, 0.2, 0.1])
MODELS = {
    "numbers": bough.GaussianModel(UNEVEN, 0.2, SPREAD),
    "clicks": bough.BernoulliModel(UNEVEN, -1.0, SPREAD),
    "counts": bough.PoissonModel(UNEVEN, 0.5, NARROW),
    "drift": bough.GaussianModel(UNEVEN, 0.4, 1.0, drift=3.0),
}
VECTORS = bough.GaussianModel(UNEVEN, [0.1, 0.0, -0.2], SPREAD)
N = 200_000


def taught(model, policy=bough.HierTS, n=8, **options):
    """An agent that has seen some rewards, with most actions untouched."""
    agent, rng = policy(model, seed=0, **options), np.random.default_rng(1)
    for _ in range(n):
        reward = float(rng.normal()) if model.kind.is_conjugate else float(rng.integers(2))
        action = str(rng.choice(["a/b/c", "f", "g/i/j/k", "m/q"]))
        agent.update(action, reward, *([] if model.is_scalar else [rng.normal(size=3)]))
    return agent


def assert_close(found, draws):
    assert abs(found - draws.mean()) < 5.0 * draws.std() / np.sqrt(len(draws))


# -- what it costs, and how good the best is -------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_losses_and_the_best_are_those_of_draws_on_the_scale_of_rewards(name):
    posterior = taught(MODELS[name]).posterior
    best = posterior.best()
    rewards = posterior.model.mean_reward(posterior.sample(5, size=N)[:, UNEVEN.leaves])
    highest = rewards.max(axis=1)
    assert_close(best.maximum.mean, highest)
    for place, loss in enumerate(best.expected_loss):
        assert_close(loss, highest - rewards[:, place])
    for level in (0.05, 0.5, 0.95):
        assert_close(level, (highest <= best.maximum.quantile(level)).astype(float))
    assert best.maximum.standard_error == 0.0


def test_the_expected_loss_is_least_where_the_mean_reward_is_highest():
    best = taught(MODELS["numbers"]).best()
    assert best.expected_loss + best.mean_reward == pytest.approx(np.full(11, best.maximum.mean))
    assert best.action == UNEVEN.actions[int(np.argmax(best.mean_reward))]
    assert repr(best).startswith(f"Best({best.action!r}, probability=")


def test_of_two_actions_everything_can_be_worked_out():
    """The gap is normal with mean 1 and variance 0.5: P = Phi(sqrt 2), loss = sd phi(sqrt 2) - Phi(-sqrt 2)."""
    tree = bough.Tree.from_nested(["left", "right"])
    posterior = bough.Posterior(bough.GaussianModel(tree, covariance=bough.by_depth([0.0, 1e6]), noise_variance=1.0))
    posterior.update(["left"] * 4 + ["right"] * 4, [2.0] * 4 + [1.0] * 4)
    best = posterior.best()
    rare = norm.cdf(-np.sqrt(2.0))
    loss = np.sqrt(0.5) * norm.pdf(np.sqrt(2.0)) - rare
    np.testing.assert_allclose(best.probability, [1.0 - rare, rare], atol=1e-6)
    np.testing.assert_allclose(best.expected_loss, [loss, loss + 1.0], atol=2e-6)  # the prior has 4e-7 of a say


@pytest.mark.parametrize("variance", [0.1, 1.0, 5.0, 25.0, 200.0])
def test_the_best_click_of_one_or_two_actions_is_that_of_integration_however_wide_its_law_is(variance):
    """Of two, the best score has the density 2 phi(z) Phi(z)."""
    for n_actions in (1, 2):
        tree = bough.Tree.from_nested(["left", "right"][:n_actions])
        model = bough.BernoulliModel(tree, mean=-2.0, covariance=bough.by_depth([0.0, variance]))
        best = bough.Posterior(model).best()
        z = np.linspace(-9.0, 9.0, 20_001)
        mass = norm.pdf(z) if n_actions == 1 else 2.0 * norm.pdf(z) * norm.cdf(z)
        reward = model.mean_reward(-2.0 + np.sqrt(variance) * z)
        assert best.maximum.mean == pytest.approx(float(reward @ mass / mass.sum()), abs=2e-8)


def test_actions_that_tie_are_chosen_as_often_as_their_exact_propensity_says():
    """Chi-squared with 5 degrees of freedom is above 40 once in 10^7."""
    tree = bough.Tree.from_paths([f"{kind}/{size}" for kind in "abc" for size in "xy"])
    model = bough.GaussianModel(tree, mean=0.3, covariance=bough.by_depth([0.5, 0.5, 0.0]))
    agent = bough.HierTS(model, seed=0)
    agent.update(["a/x", "c/x"], [0.0, 1.0])
    draws = agent.posterior.sample(0, size=2_000)[:, tree.leaves]
    assert (draws[:, ::2] == draws[:, 1::2]).all()
    n = 20_000
    for among in (None, list(tree.actions)):
        chosen = [agent.decide(among=among) for _ in range(n)]
        expected = n * agent.propensity(list(tree.actions), among=among).probability
        counts = np.array([chosen.count(name) for name in tree.actions])
        assert ((counts - expected) ** 2 / expected).sum() < 40.0


# -- names, tables ---------------------------------------------------------------------------------


def test_a_category_has_the_probability_of_all_actions_below_it():
    best = taught(MODELS["numbers"]).best()
    by_name = dict(zip(UNEVEN.actions, best.probability.tolist(), strict=True))
    assert best.of("") == pytest.approx(1.0)
    assert best.of("g") == pytest.approx(sum(p for name, p in by_name.items() if name.startswith("g/")))
    assert best.of("g/i") == pytest.approx(by_name["g/i/j/k"] + by_name["g/i/j/l"])
    assert best.of("f") == by_name["f"]
    with pytest.raises(KeyError, match="unknown name 'tea'"):
        best.of("tea")


@pytest.mark.parametrize("policy", [bough.FlatTS, bough.TS])
def test_policies_that_reason_with_a_star_know_the_categories_of_the_whole_tree(policy):
    agent = taught(MODELS["clicks"], policy)
    agent.add("a/new", under="a")
    agent.update("a/new", 1.0)
    best = agent.best()
    assert best.of("a") == pytest.approx(sum(best.of(name) for name in ("a/b/c", "a/b/d", "a/e", "a/new")))
    frame = best.to_frame(top=None, backend="polars")
    assert frame.shape == (12, 6)
    assert "a/b/c" in frame["path"].to_list()


def test_the_frame_has_the_likeliest_first_and_nothing_that_is_left_out():
    agent = taught(MODELS["numbers"])
    agent.retire("f")
    best = agent.best(exclude=["a/e"])
    frame = best.to_frame(top=4, backend="polars")
    assert frame.columns == ["name", "path", "probability", "standard_error", "expected_loss", "mean_reward"]
    assert frame["probability"].to_list() == sorted(best.probability, reverse=True)[:4]
    names = best.to_frame(top=None, backend="pandas")["name"].tolist()
    assert sorted(names) == sorted(set(UNEVEN.actions) - {"f", "a/e"})
    lines = str(best).splitlines()
    assert len(lines) == 6
    assert lines[1].startswith(frame["name"][0])


# -- what counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_retired_actions_count_for_the_posterior_and_not_for_the_agent(name):
    agent = taught(MODELS[name])
    whole = agent.best()
    agent.retire(["f", "m/n/o"])
    best = agent.best()
    assert best.of("f") == best.of("m/n/o") == 0.0
    assert np.isinf(best.expected_loss).sum() == 2
    assert best.probability.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(agent.posterior.best().probability, whole.probability, rtol=1e-6)
    np.testing.assert_allclose(agent.posterior.best(exclude=["f", "m/n/o"]).probability, best.probability, rtol=1e-6)
    agent.restore("f")
    assert agent.best().of("f") > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_among_and_exclude_are_those_of_draws(name):
    agent = taught(MODELS[name])
    agent.retire("m/n/o")
    scores = agent.posterior.sample(5, size=N)[:, UNEVEN.leaves]
    names = list(UNEVEN.actions)
    for how, left in (
        ({"among": ["f", "a/e", "m/q", "m/n/o"]}, ["f", "a/e", "m/q"]),
        ({"exclude": ["f", "a/e"]}, [one for one in names if one not in ("f", "a/e", "m/n/o")]),
        ({"among": ["f", "a/e", "g/h"], "exclude": ["f"]}, ["a/e", "g/h"]),
    ):
        best = agent.best(**how)
        places = [names.index(one) for one in left]
        winner = scores[:, places].argmax(axis=1)
        for i, place in enumerate(places):
            assert_close(best.probability[place], (winner == i).astype(float))
        assert best.probability.sum() == pytest.approx(1.0)
        assert np.isfinite(best.expected_loss).sum() == len(left)


def test_a_changed_catalogue_is_asked_as_it_is():
    agent = taught(MODELS["numbers"])
    agent.add("new", under="a")
    agent.move("g/h", under="m")
    agent.update("new", 1.0)
    best = agent.best()
    assert best.of("m") == pytest.approx(sum(best.of(one) for one in ("m/n/o", "m/n/p", "m/q", "g/h")))
    scores = agent.posterior.sample(5, size=N)[:, best.tree.leaves]
    places = list(best.tree.actions)
    assert_close(best.of("new"), (scores.argmax(axis=1) == places.index("new")).astype(float))


def test_asking_leaves_the_agent_as_it_was():
    asked, left = taught(MODELS["numbers"]), taught(MODELS["numbers"])
    asked.best()
    asked.should_stop()
    assert [asked.decide() for _ in range(20)] == [left.decide() for _ in range(20)]


# -- contexts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", [0, 2_000])
def test_in_contexts_probabilities_are_estimates_with_their_errors(small, monkeypatch):
    monkeypatch.setattr(contest_draws, "_SMALL", small)  # searched, and drawn
    agent = taught(VECTORS)
    agent.retire("f")
    best = agent.best(CONTEXT, samples=4_000, seed=1, exclude=["a/e"])
    scores = (agent.posterior.sample(5, size=N) @ CONTEXT)[:, UNEVEN.leaves]
    left_out = [UNEVEN.actions[i] in ("f", "a/e") for i in range(11)]
    scores[:, left_out] = -np.inf
    wins = scores.argmax(axis=1)
    assert best.method == "sampled"
    assert best.probability[left_out].tolist() == [0.0, 0.0]
    for place in np.flatnonzero(~np.array(left_out)).tolist():
        share = (wins == place).mean()
        error = np.hypot(best.standard_error[place], np.sqrt(share / N))
        assert abs(best.probability[place] - share) < 5.0 * error
        assert 0.0 < best.standard_error[place] < np.sqrt(0.25 / 4_000)
    highest = scores.max(axis=1)
    error = np.hypot(best.maximum.standard_error, highest.std() / np.sqrt(N))
    assert abs(best.maximum.mean - highest.mean()) < 5.0 * error
    assert best.maximum.quantile(0.5) == pytest.approx(np.median(highest), abs=0.2)
    again = agent.best(CONTEXT, samples=4_000, seed=1, exclude=["a/e"])
    assert again.probability.tolist() == best.probability.tolist()


def test_the_errors_of_estimates_are_how_far_they_are_from_each_other(monkeypatch):
    """100 estimates: their variance over the mean square of their errors is within 5 deviations of a chi-squared."""
    for small in (0, 2_000):
        monkeypatch.setattr(contest_draws, "_SMALL", small)
        agent = taught(VECTORS)
        found = [agent.best(CONTEXT, samples=100, seed=i) for i in range(100)]
        spread = np.var([one.probability for one in found], axis=0, ddof=1)
        claimed = np.mean(np.square([one.standard_error for one in found]), axis=0)
        common = spread > 1e-5
        assert common.sum() > 6
        assert (np.abs(spread / claimed - 1.0)[common] < 5.0 * np.sqrt(2.0 / 99)).all()


def test_a_context_is_checked():
    agent = taught(VECTORS)
    with pytest.raises(ValueError, match="context"):
        agent.best()
    with pytest.raises(ValueError, match="context"):
        taught(MODELS["numbers"]).best([1.0])


# -- propensities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS])
@pytest.mark.parametrize("search", [True, False])
def test_propensities_of_one_choice_are_exact_where_that_is_quicker(policy, search):
    agent = taught(MODELS["clicks"], policy, search=search)
    agent.retire("m/n/o")
    names = list(UNEVEN.actions)
    for how in ({}, {"exclude": ["f"]}, {"among": ["f", "a/e", "g/h"]}):
        found = agent.propensity(names, **how)
        assert found.method == "exact"
        assert not found.standard_error.any()
        assert not found.is_upper_bound.any()
        np.testing.assert_allclose(found.probability, agent.best(**how).probability, rtol=1e-9)
        assert agent.propensity(names, seed=3, **how).probability.tolist() == found.probability.tolist()


def test_exact_propensities_know_what_was_added_and_moved_since_the_tree_was_made():
    agent = taught(MODELS["numbers"], search=True)
    agent.add(["new", "newer"], under="a")
    agent.move("g/h", under="m")
    agent.update("new", 1.0)
    agent.retire("f")
    names = [*UNEVEN.actions, "new", "newer"]
    found = agent.propensity(names)
    assert agent.posterior._catalogue.is_changed  # it was not made into a tree
    assert found.method == "exact"
    best = agent.best()
    np.testing.assert_allclose(found.probability, [best.of(name) for name in names], rtol=1e-6)


def test_propensities_are_sampled_where_that_is_quicker_or_there_is_no_other_way(monkeypatch):
    agent = taught(MODELS["numbers"])
    assert agent.propensity(["f"], k=2).method == "sampled"
    assert taught(VECTORS).propensity(["f"], CONTEXT).method == "sampled"
    assert agent.propensity(["f"]).method == "exact"
    monkeypatch.setattr(formulas, "PLACE", np.inf)
    assert agent.propensity(["f"]).method == "exact"  # it is known already
    agent.update("f", 0.0)
    assert agent.propensity(["f"]).method == "sampled"
    agent.best()
    assert agent.propensity(["f"]).method == "exact"


def test_propensities_are_exact_where_the_first_draws_say_that_many_more_would_be_needed(monkeypatch):
    """Messages take as long as 500 draws: likely actions are sampled, and unlikely ones are not."""
    agent = taught(MODELS["numbers"])
    agent.update(["f", "m/q"] * 20, [3.0, 0.0] * 20)
    monkeypatch.setattr(formulas, "CHEAP", 0.0)
    monkeypatch.setattr(formulas, "DRAWN", 0.0)
    monkeypatch.setattr(formulas, "ASKED", 0.0)
    n_places = agent.posterior._engine.slots.count + len(agent.posterior._search_state.alike().unlike)
    monkeypatch.setattr(formulas, "PLACE", 500.0 * formulas.DRAW / n_places)
    sampled = agent.propensity(["f"], seed=0)
    assert sampled.method == "sampled"
    assert 0.0 < sampled.standard_error[0] <= formulas.PRECISE * sampled.probability[0]
    assert agent.propensity(["m/q"], samples=400, seed=0).method == "sampled"
    exact = agent.propensity(["m/q"], samples=10_000, seed=0)
    assert exact.method == "exact"
    assert exact.standard_error.tolist() == [0.0]
    assert exact.probability[0] == pytest.approx(agent.best().of("m/q"), rel=1e-9)


@pytest.mark.parametrize("policy", [bough.Greedy, bough.BayesUCB])
def test_policies_that_draw_nothing_keep_their_own_propensities(policy):
    agent = taught(MODELS["clicks"], policy)
    found = agent.propensity(list(UNEVEN.actions))
    assert found.method == "exact"
    assert sorted(set(found.probability)) == [0.0, 1.0]
    assert agent.best().probability.max() < 1.0


def test_a_propensity_is_still_three_arrays():
    found = taught(MODELS["numbers"]).propensity(["f", "a/e"])
    probability, error, is_bound = found
    assert probability is found.probability
    assert error is found.standard_error
    assert is_bound is found.is_upper_bound
    again = pickle.loads(pickle.dumps(found))
    assert again.method == "exact"
    assert again.probability.tolist() == probability.tolist()


def test_a_decision_has_the_exact_propensity():
    agent = taught(MODELS["numbers"])
    expected = agent.best()
    decision = agent.decision()
    assert decision.propensity == pytest.approx(expected.of(decision.action), rel=1e-9)
    assert decision.propensity_error == 0.0


# -- when to stop ----------------------------------------------------------------------------------


def settled_agent(n):
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "middle", "right"])), seed=0)
    agent.update(["left", "middle", "right"] * n, [0.0, 0.5, 1.0] * n)
    return agent


def test_one_may_stop_where_both_limits_are_kept():
    agent = settled_agent(10)
    best = agent.best()
    loss, probability = float(best.expected_loss.min()), float(best.probability[2])
    assert agent.should_stop(loss=1.001 * loss, probability=0.999 * probability).stop
    assert not agent.should_stop(loss=0.999 * loss, probability=0.999 * probability)
    assert not agent.should_stop(loss=1.001 * loss, probability=1.001 * probability)
    assert agent.should_stop(loss=None, probability=0.999 * probability)
    assert agent.should_stop(loss=1.001 * loss, probability=None)
    decision = agent.should_stop()
    assert (decision.action, decision.expected_loss, decision.probability) == ("right", loss, probability)
    assert (decision.loss, decision.least_probability, decision.method) == (0.001, 0.95, "exact")


def test_a_stop_decision_prints_its_numbers():
    assert str(settled_agent(4).should_stop()).startswith("go on: 'right' is the best with probability 0.")
    text = str(settled_agent(400).should_stop(loss=0.01, probability=0.9))
    assert text.startswith("stop: 'right' is the best with probability 1 (0.9 wanted) and expected loss ")
    assert text.endswith("(0.01 allowed)")
    assert "wanted" not in str(settled_agent(4).should_stop(probability=None))
    assert "allowed" not in str(settled_agent(4).should_stop(loss=None))


def test_what_is_retired_or_left_out_cannot_be_stopped_at():
    agent = settled_agent(50)
    agent.retire("right")
    assert agent.should_stop(loss=0.1, probability=0.9).action == "middle"
    assert agent.should_stop(among=["left"]).probability == 1.0
    assert agent.should_stop(exclude=["middle"]).action == "left"


BAD = {
    "unknown": (lambda a: a.best(among=["tea"]), KeyError, "unknown action 'tea'"),
    "a category": (lambda a: a.best(exclude=["a/b"]), KeyError, "not an action but a category; list its actions"),
    "no candidate": (lambda a: a.best(among=[]), ValueError, "among is empty"),
    "one name": (lambda a: a.best(among="f"), ValueError, "give a list of action names"),
    "all left out": (lambda a: a.best(exclude=list(UNEVEN.actions)), ValueError, "exclude leaves out all 11"),
    "none left": (lambda a: a.best(among=["f"], exclude=["f"]), ValueError, "excluded or retired"),
    "samples": (lambda a: a.best(samples=1), ValueError, "samples is 1"),
    "seed": (lambda a: a.best(seed="x"), ValueError, "the seed is 'x'"),
    "loss": (lambda a: a.should_stop(loss=-1.0), ValueError, "loss is -1.0"),
    "probability": (lambda a: a.should_stop(probability=95), ValueError, "probability is 95"),
    "no limit": (lambda a: a.should_stop(None, None), ValueError, "both None"),
    "top": (lambda a: a.best().to_frame(top=0), ValueError, "top is 0"),
    "level": (lambda a: a.best().maximum.quantile(95), ValueError, "level is 95"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_refused(what):
    call, kind, text = BAD[what]
    with pytest.raises(kind, match=text):
        call(taught(MODELS["numbers"]))
