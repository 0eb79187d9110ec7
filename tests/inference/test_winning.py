"""Exact probabilities of being best: beside integrals over all orderings, draws, and importance sampling.

Comparisons with draws have fixed seeds. A chi-squared test fails by chance once in 10^6 runs, and an estimate is 5 of
its standard errors off once in 10^6 as well: about 3e-5 over all.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chi2

import bough
from bough.inference import winning
from bough.inference.contest import Contest
from cases import cases
from orthants import best_by_importance, best_by_integration, joint_law

NOTHING = np.empty(0, dtype=np.int32)
UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
SPREAD = bough.by_depth([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])
SOME_ZEROS = bough.by_node({"a": 0.0, "a/e": 0.0, "g/h": 0.0, "m/n": 0.0, "m/q": 0.0, "r": 0.0}, default=1.0)
MODELS = {
    "numbers": bough.GaussianModel(UNEVEN, 0.2, SPREAD),
    "clicks": bough.BernoulliModel(UNEVEN, -1.0, SPREAD),
    "counts": bough.PoissonModel(UNEVEN, 0.5, SPREAD),
    "drift": bough.GaussianModel(UNEVEN, 0.4, 1.0, drift=3.0),
    "ties": bough.GaussianModel(UNEVEN, 0.2, bough.by_depth([0.5, 1.0, 0.0, 0.0, 0.0, 0.0])),
    "a known root": bough.GaussianModel(UNEVEN, 0.2, bough.by_depth([0.0, 1.0, 0.5, 0.5, 0.5, 0.5])),
    "actions at their category": bough.GaussianModel(UNEVEN, 0.2, SOME_ZEROS),
    "known actions": bough.GaussianModel(
        UNEVEN, 0.2, bough.by_node({"": 0.0, "f": 0.0, "a": 0.0, "a/e": 0.0}, default=1.0)
    ),
}


def taught(model, n=8, seed=1):
    """A posterior that has seen some rewards, with most actions untouched."""
    posterior, rng = bough.Posterior(model), np.random.default_rng(seed)
    for _ in range(n):
        reward = float(rng.normal()) if model.kind.is_conjugate else float(rng.integers(2))
        posterior.update(str(rng.choice(["a/b/c", "f", "g/i/j/k", "m/q"])), reward)
    return posterior


def solved(posterior, fineness=1.0, contest=None):
    """The probabilities, and what they added up to before they were divided by it."""
    engine, alike = posterior._engine, posterior._search_state.alike()
    if contest is None:
        contest = Contest.of_all(engine.slots, posterior.model.tree, alike, NOTHING, NOTHING)
    found = contest.winners(engine, alike, fineness=fineness)
    return contest.everywhere(found.place, found.group), found.total


def small_posterior(seed):
    """Up to four actions in a tree of any shape, with rewards of any kind."""
    rng = np.random.default_rng(seed)
    n_actions = 0
    while not 1 <= n_actions <= 4:
        parents = [-1, *(int(rng.integers(i)) for i in range(1, rng.integers(2, 10)))]
        tree = bough.Tree.from_parents(parents)
        n_actions = tree.n_actions
    kind = (bough.GaussianModel, bough.BernoulliModel, bough.PoissonModel)[seed % 3]
    posterior = bough.Posterior(
        kind(tree, float(rng.normal()), bough.by_node(10.0 ** rng.uniform(-1, 1, tree.n_nodes)))
    )
    for _ in range(rng.integers(0, 30)):
        reward = rng.normal() if seed % 3 == 0 else rng.integers(2)
        posterior.update(int(rng.choice(tree.actions)), float(reward))
    return posterior


# -- beside the obvious ways -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_probabilities_are_those_of_integration(seed):
    posterior = small_posterior(seed)
    found, total = solved(posterior)
    expected = best_by_integration(posterior)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=2e-7)
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_a_million_draws(name):
    posterior = taught(MODELS[name])
    mean, root = joint_law(posterior)
    rng, wins = np.random.default_rng(7), np.zeros(len(mean))
    for _ in range(10):
        scores = mean + rng.standard_normal((100_000, root.shape[1])) @ root.T
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-9  # ties, but for rounding
        wins += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    found, total = solved(posterior)
    assert total == pytest.approx(1.0, abs=1e-6)
    expected = 1e6 * found
    seen = expected > 5.0
    # Shares of ties vary less than counts, so that this is at most chi-squared.
    distance = (np.square(wins - expected)[seen] / expected[seen]).sum()
    assert distance < chi2.isf(1e-6, seen.sum() - 1)
    assert wins[~seen].sum() <= 30


@pytest.mark.parametrize("kind", ["numbers", "clicks", "counts"])
def test_rare_winners_have_the_probabilities_of_importance_sampling(kind):
    model = MODELS[kind]
    posterior, rng = bough.Posterior(model), np.random.default_rng(3)
    for place, action in enumerate(UNEVEN.actions):
        if model.kind.is_conjugate:
            posterior.update([action] * 12, rng.normal(loc=2.5 if place == 3 else 0.15 * place - 0.5, size=12))
        elif kind == "clicks":
            posterior.update(action, 75 if place == 3 else 25 + 2 * place, trials=100)
        else:
            posterior.update(action, 120 if place == 3 else 35 + 3 * place, exposure=10)
    found, _ = solved(posterior)
    rare = np.flatnonzero((found < 1e-4) & (found > 1e-12))
    assert len(rare) >= 4
    assert found[rare].min() < 3e-8
    for place in rare.tolist():
        expected, error = best_by_importance(posterior, place, 200_000, seed=place)
        assert error < 0.05 * expected
        assert abs(found[place] - expected) < 5.0 * error


def test_probabilities_beyond_what_counts_are_tiny_and_no_garbage():
    model = bough.GaussianModel(bough.Tree.from_nested(["good", "bad", "worse"]), covariance=bough.by_depth([0.0, 1.0]))
    posterior = bough.Posterior(model)
    posterior.update(["good"] * 99 + ["bad"] * 99 + ["worse"] * 99, [1.0] * 99 + [-0.5] * 99 + [-5.0] * 99)
    found, _ = solved(posterior)
    assert found[0] == pytest.approx(1.0, abs=1e-9)
    assert 1e-28 < found[1] < 1e-24  # P of a gap of 10.5 deviations is 3e-26
    assert 0.0 <= found[2] < 1e-100


# -- grids -----------------------------------------------------------------------------------------

SIZES = {
    "a known root": bough.GaussianModel(bough.Tree.balanced(10**6, 1), covariance=bough.by_depth([0.0, 1.0])),
    "flat": bough.GaussianModel(bough.Tree.balanced(10**4, 1)),
    "wide": bough.problems.constant(100, 3),
    "high": bough.problems.constant(2, 12),
    "increasing": bough.problems.increasing(10, 4),
}


@pytest.mark.parametrize("name", SIZES)
def test_before_any_observation_all_actions_are_alike(name):
    posterior = bough.Posterior(SIZES[name])
    found, total = solved(posterior)
    assert total == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found, 1.0 / len(found), rtol=1e-12)


def played(model, rounds):
    """A posterior after that many rounds of HierTS on a problem drawn from its model."""
    rng = np.random.default_rng(1)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=0)
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, float(truth[model.tree.index(action)] + rng.normal()))
    return agent.posterior


GRIDS = {
    **{name: lambda name=name: taught(MODELS[name]) for name in MODELS},
    "played": lambda: played(bough.problems.constant(10, 3), 300),
    "unlike variances": lambda: taught(
        bough.GaussianModel(UNEVEN, 0.0, bough.by_depth([4.0, 1e-3, 2.0, 0.01, 10.0, 1e-2])), n=40
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_twice_as_fine_grids_change_nothing_that_counts(name):
    posterior = GRIDS[name]()
    found, total = solved(posterior)
    finer, _ = solved(posterior, fineness=2.0)
    counts = finer > 1e-8
    np.testing.assert_allclose(found[counts], finer[counts], rtol=1e-6)
    assert total == pytest.approx(1.0, abs=1e-6)


@given(case=cases(dims=(None,)))
@settings(max_examples=40)
def test_whatever_the_tree_and_its_variances_probabilities_add_up(case):
    posterior = case.posterior()
    engine, alike = posterior._engine, posterior._search_state.alike()
    contest = Contest.of_all(engine.slots, posterior.model.tree, alike, NOTHING, NOTHING)
    found = contest.winners(engine, alike)
    if found is None:  # steps that are too unlike
        return
    probability = contest.everywhere(found.place, found.group)
    assert found.total == pytest.approx(1.0, abs=1e-6)
    assert (probability >= 0.0).all()
    assert probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(found.maximum.at_most) >= 0.0).all()


def test_steps_that_are_too_unlike_are_left_to_draws():
    model = bough.GaussianModel(bough.Tree.balanced(3, 2), covariance=bough.by_depth([1.0, 1.0, 1e-14]))
    assert bough.Posterior(model)._winners(None, NOTHING) is None
    found = bough.Posterior(model).best(samples=2_000, seed=0)
    assert found.method == "sampled"
    assert (np.abs(found.probability - 1 / 9) < 5.0 * found.standard_error).all()


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_groups_have_what_their_actions_have_one_by_one(name):
    posterior = taught(MODELS[name])
    together, _ = solved(posterior)
    one_by_one, _ = solved(posterior, contest=Contest.among(posterior._catalogue, UNEVEN.leaves))
    np.testing.assert_allclose(together, one_by_one, rtol=1e-6)


def test_groups_of_subtrees_have_what_their_actions_have_one_by_one():
    posterior = played(bough.problems.constant(5, 4), 30)
    tree = posterior.model.tree
    together, _ = solved(posterior)
    one_by_one, _ = solved(posterior, contest=Contest.among(posterior._catalogue, tree.leaves))
    assert len(posterior._engine.slots.node) < 100 < tree.n_actions
    np.testing.assert_allclose(together, one_by_one, rtol=1e-6)


@pytest.mark.parametrize("name", ["numbers", "ties", "actions at their category", "known actions"])
def test_what_is_left_out_is_as_if_only_the_others_were_asked_about(name):
    posterior = taught(MODELS[name])
    left_out = UNEVEN.action_nodes(["f", "m/n/o", "a/e"])
    alike = posterior._search_state.alike()
    contest = Contest.of_all(posterior._engine.slots, UNEVEN, alike, np.sort(left_out), NOTHING)
    found, total = solved(posterior, contest=contest)
    others = np.setdiff1d(UNEVEN.leaves, left_out).astype(np.int32)
    expected, _ = solved(posterior, contest=Contest.among(posterior._catalogue, others))
    assert total == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (found == 0.0).sum() == 3


# -- what can be worked out ------------------------------------------------------------------------


def test_one_action_is_the_best():
    for tree in (bough.Tree.from_parents([-1]), bough.Tree.from_parents([-1, 0, 1])):
        for covariance in (0.0, 1.0):
            posterior = bough.Posterior(bough.GaussianModel(tree, 0.3, covariance))
            posterior.update(tree.actions[0], 1.0)
            best = posterior.best()
            assert best.probability.tolist() == [1.0]
            assert best.expected_loss[0] == pytest.approx(0.0, abs=2e-7)
            assert best.maximum.mean == pytest.approx(posterior.mean[-1], abs=2e-7)


def test_actions_that_are_known_to_be_equal_share():
    best = bough.Posterior(bough.GaussianModel(UNEVEN, 0.7, 0.0)).best()
    assert best.probability.tolist() == [1 / 11] * 11
    assert best.expected_loss.tolist() == [0.0] * 11
    assert best.maximum.quantile(0.5) == best.maximum.mean == 0.7


def test_a_known_action_beside_an_uncertain_one():
    """The best of 1 and 1 + z has mean 1 + phi(0), and is 1 half of the time."""
    tree = bough.Tree.from_nested(["known", "uncertain"])
    model = bough.GaussianModel(tree, 1.0, bough.by_node({"": 0.0, "known": 0.0, "uncertain": 1.0}))
    best = bough.Posterior(model).best()
    np.testing.assert_allclose(best.probability, [0.5, 0.5], atol=1e-7)
    assert best.maximum.mean == pytest.approx(1.0 + 1.0 / np.sqrt(2.0 * np.pi), abs=1e-7)
    assert best.maximum.quantile(0.3) == 1.0
    assert best.maximum.quantile(0.975) == pytest.approx(2.959964, abs=1e-6)


def test_the_law_of_the_best_of_many_is_known():
    """Of n independent normals, the best is at most x with probability Phi(x)^n."""
    best = bough.Posterior(SIZES["a known root"]).best()
    assert best.maximum.quantile(0.5) == pytest.approx(4.826965123, abs=1e-7)  # Phi^-1(0.5^(1 / 10^6))
    assert best.maximum.mean == pytest.approx(4.862897486, abs=1e-6)


def test_a_posterior_that_goes_on_is_asked_again():
    posterior = taught(MODELS["numbers"])
    first = posterior.best()
    assert posterior.best().probability.tolist() == first.probability.tolist()
    posterior.update("m/q", 9.0)
    assert posterior.best().of("m/q") > first.of("m/q")
    drifting = taught(MODELS["drift"])
    drifting.now = 1.0
    before = drifting.best().probability
    drifting.now = 50.0
    assert not np.allclose(before, drifting.best().probability)


def test_no_more_numbers_are_held_than_there_may_be(monkeypatch):
    posterior = taught(MODELS["numbers"])
    expected, _ = solved(posterior)
    monkeypatch.setattr(winning, "_MOST_NUMBERS", 1.0)  # one panel after the other
    np.testing.assert_allclose(solved(posterior)[0], expected, rtol=1e-9)
