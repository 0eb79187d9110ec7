"""Deciding without drawing has the law of deciding by drawing everything.

Chosen actions by chi-squared and maxima by Kolmogorov-Smirnov against the full sampler, 10^5 decisions each, fixed
seeds, false-alarm rate 1e-4 a test; and a group that is one node off must fail.
"""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import ks_2samp

import bough
from bough.inference import rate_tables as tables_module
from bough.inference.kernels import quantiles
from bough.inference.rate_tables import rate_tables
from bough.inference.untouched import Untouched
from capped_cases import same_law

DRAWS = 100_000
FALSE_ALARM = 1e-4
ROUNDING = 1e-14  # of a sum of a few probabilities, which have no error where they are exact
UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
BALANCED = bough.Tree.balanced(3, 3)
WIDE = bough.Tree.balanced(30, 1)
rng_of_cases = np.random.default_rng(11)
ROOT = rng_of_cases.normal(size=(3, 3))
MIXED = bough.by_node(rng_of_cases.uniform(0.1, 2.0, UNEVEN.n_nodes))
CASES = {
    "balanced, nothing touched": (bough.GaussianModel(BALANCED), 0),
    "balanced, a few touched": (bough.GaussianModel(BALANCED, 0.4, bough.by_depth([1.0, 0.5, 2.0, 0.3])), 4),
    "balanced, nearly all touched": (bough.GaussianModel(BALANCED), 120),
    "uneven, nothing touched": (bough.GaussianModel(UNEVEN, 0.2, bough.by_height([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])), 0),
    "uneven, a few touched": (bough.GaussianModel(UNEVEN, 0.2, bough.by_height([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])), 3),
    "mixed variances": (bough.GaussianModel(UNEVEN, 0.0, MIXED), 5),
    "mixed variances, nearly all touched": (bough.GaussianModel(UNEVEN, 0.0, MIXED), 60),
    "a wide star": (bough.GaussianModel(WIDE), 6),
    "vectors, balanced": (
        bough.GaussianModel(BALANCED, [0.1, 0.0, -0.2], bough.by_depth([ROOT @ ROOT.T, np.eye(3), 0.5, 0.3])), 8,
    ),
    "vectors, multiples of one covariance": (
        bough.GaussianModel(BALANCED, np.zeros(3), bough.by_depth([1, 2, 0.5, 1])), 8,
    ),
    "vectors, uneven": (
        bough.GaussianModel(UNEVEN, np.zeros(3), bough.by_height([0.5, ROOT @ ROOT.T, 1, 0.7, 1, 0.4])), 4,
    ),
}  # fmt: skip
CONTEXT = np.array([1.0, -0.5, 0.3])


def observed(model, n, seed=0):
    posterior = bough.Posterior(model)
    rng = np.random.default_rng(seed)
    actions = rng.choice(np.asarray(model.tree.actions), n)
    posterior.update(actions, 2 * rng.normal(size=n), None if model.is_scalar else rng.normal(size=(n, model.dim)))
    return posterior


def searched(posterior, seed, k=1, exclude=None, draws=DRAWS):
    rng = np.random.default_rng(seed)
    context = None if posterior.model.is_scalar else CONTEXT
    found = [posterior.best_actions(rng, context, k, exclude) for _ in range(draws)]
    return np.array([best.nodes for best in found]), np.array([best.scores for best in found])


def drawn(posterior, seed, k=1, exclude=None, draws=DRAWS):
    model = posterior.model
    samples = posterior.sample(np.random.default_rng(seed), size=draws)[:, model.tree.leaves]
    scores = samples if model.is_scalar else samples @ CONTEXT
    if exclude is not None:
        scores[:, np.isin(model.tree.leaves, exclude)] = -np.inf
    order = np.argsort(-scores, axis=1)[:, :k]
    return model.tree.leaves[order], np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("case", CASES)
def test_the_chosen_action_and_its_value_have_the_law_of_the_full_sampler(case):
    posterior = observed(*CASES[case])
    nodes, scores = searched(posterior, seed=1)
    full_nodes, full_scores = drawn(posterior, seed=2)
    assert same_law(nodes[:, 0], full_nodes[:, 0]) > FALSE_ALARM
    assert ks_2samp(scores[:, 0], full_scores[:, 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "case", ["balanced, a few touched", "uneven, a few touched", "vectors, balanced", "a wide star"]
)
def test_the_two_best_have_the_joint_law_of_the_full_sampler(case):
    posterior = observed(*CASES[case])
    nodes, scores = searched(posterior, seed=3, k=2)
    full_nodes, full_scores = drawn(posterior, seed=4, k=2)
    n = posterior.model.tree.n_nodes
    assert (nodes[:, 0] != nodes[:, 1]).all()
    assert (scores[:, 0] >= scores[:, 1]).all()
    assert same_law(nodes @ [n, 1], full_nodes @ [n, 1]) > FALSE_ALARM
    assert ks_2samp(scores[:, 0] - scores[:, 1], full_scores[:, 0] - full_scores[:, 1]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("case", ["balanced, a few touched", "uneven, a few touched"])
def test_excluding_actions_has_the_law_of_the_full_sampler_without_them(case, k):
    posterior = observed(*CASES[case])
    leaves = posterior.model.tree.leaves
    exclude = leaves[[0, 1, 4, 7]]
    before = posterior._engine.slots.count
    nodes, scores = searched(posterior, seed=5, k=k, exclude=exclude)
    full_nodes, full_scores = drawn(posterior, seed=6, k=k, exclude=exclude)
    assert not np.isin(nodes, exclude).any()
    code = posterior.model.tree.n_nodes ** np.arange(k)
    assert same_law(nodes @ code, full_nodes @ code) > FALSE_ALARM
    assert ks_2samp(scores[:, -1], full_scores[:, -1]).pvalue > FALSE_ALARM
    assert posterior._engine.slots.count == before  # nothing was learned, so nothing is kept


@pytest.mark.parametrize("case", ["balanced, a few touched", "uneven, a few touched", "vectors, uneven"])
def test_choosing_among_some_has_the_law_of_the_full_sampler_restricted(case):
    posterior = observed(*CASES[case])
    leaves = posterior.model.tree.leaves[[1, 3, 4, 8]]
    rng = np.random.default_rng(7)
    values = np.array([posterior.sample_actions(leaves, rng) for _ in range(DRAWS)])
    scores = values if posterior.model.is_scalar else values @ CONTEXT
    others = np.setdiff1d(posterior.model.tree.leaves, leaves)
    full_nodes, full_scores = drawn(posterior, seed=8, exclude=others)
    assert same_law(leaves[scores.argmax(axis=1)], full_nodes[:, 0]) > FALSE_ALARM
    assert ks_2samp(scores.max(axis=1), full_scores[:, 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("case", ["balanced, a few touched", "uneven, a few touched"])
def test_a_group_that_is_one_node_off_is_caught(case):
    posterior = observed(*CASES[case])
    posterior.best_actions(0)
    largest = int(posterior._search_state._untouched._free[: posterior._engine.slots.count, 1].argmax())
    posterior._search_state._untouched._free[largest, 1] -= 1
    nodes, scores = searched(posterior, seed=1)
    full_nodes, full_scores = drawn(posterior, seed=2)
    maximum = ks_2samp(scores[:, 0], full_scores[:, 0]).pvalue
    assert min(same_law(nodes[:, 0], full_nodes[:, 0]), maximum) < FALSE_ALARM


def test_all_actions_come_out_in_order_when_all_are_asked_for():
    posterior = observed(*CASES["uneven, a few touched"])
    rng = np.random.default_rng(0)
    for _ in range(50):
        best = posterior.best_actions(rng, k=UNEVEN.n_actions)
        assert sorted(best.nodes.tolist()) == UNEVEN.leaves.tolist()
        assert (np.diff(best.scores) <= 0).all()


def test_quantiles_and_rates_are_accurate_in_both_tails():
    t = 10.0 ** np.linspace(-300, 2.5, 300)
    ours = np.array([quantiles.quantile(x) for x in t])
    np.testing.assert_allclose(ours, ndtri_exp(-t), rtol=1e-13, atol=1e-13)
    q = np.linspace(-8.0, 37.0, 300)
    np.testing.assert_allclose([quantiles.rate(x) for x in q], -log_ndtr(q), rtol=1e-12)


def test_the_tables_of_a_regular_tree_are_the_law_of_the_maximum(monkeypatch):
    deviation, branching = np.array([1.0, 0.7, 1.3, 0.5]), np.array([4, 3, 5], dtype=np.int32)
    tables = rate_tables(deviation, branching)
    grid = tables.start + tables.step * np.arange(tables.rates.shape[1])
    monkeypatch.setattr(tables_module, "_PER_DEVIATION", 4 * tables_module._PER_DEVIATION)
    fine = rate_tables(deviation, branching)
    places = np.arange(200, tables.rates.shape[1] - 200)
    same = np.searchsorted(fine.start + fine.step * np.arange(fine.rates.shape[1]), grid[places] - fine.step / 2)
    np.testing.assert_allclose(tables.rates[1:, places], fine.rates[1:, same], rtol=1e-6, atol=1e-14)
    rng = np.random.default_rng(0)
    steps = (
        0.7 * rng.normal(size=(DRAWS, 1, 1))
        + 1.3 * rng.normal(size=(DRAWS, 3, 1))
        + 0.5 * rng.normal(size=(DRAWS, 3, 5))
    )
    largest = steps.max(axis=(1, 2))
    for x in (-1.0, 0.5, 2.0, 3.0):  # each within 5 standard errors: false-alarm rate below 1e-5
        below = np.exp(-np.interp(x, grid, tables.rates[1]))
        assert abs((largest <= x).mean() - below) < 5 * np.sqrt(below * (1 - below) / DRAWS) + 1e-3
    # The deepest entries are a leaf's normal, to rounding.
    np.testing.assert_allclose(tables.rates[3][400:], -log_ndtr(grid[400:] / 0.5), rtol=1e-9, atol=1e-16)


def test_ties_and_deep_trees_are_left_to_the_full_sampler():
    flat = bough.GaussianModel(BALANCED, covariance=bough.by_depth([1.0, 1.0, 1.0, 0.0]))
    assert bough.Posterior(flat).best_actions(0) is None
    assert bough.HierTS(flat, seed=0, search=True).decide() in BALANCED.actions
    chain = bough.Tree.from_parents(range(-1, 99))
    assert bough.Posterior(bough.GaussianModel(chain)).best_actions(0) is None
    assert bough.HierTS(bough.GaussianModel(chain), seed=0, search=True).decide() == 99
    nearly = bough.GaussianModel(UNEVEN, 10.0, bough.by_height([1e-17, 1e-3, 1.0, 1.0, 1.0, 1.0]))
    assert bough.Posterior(nearly).best_actions(0) is None
    patchy = bough.Tree.from_parents([-1] + [0] * 3_000)
    unlike = bough.GaussianModel(patchy, covariance=bough.by_node(np.linspace(1.0, 2.0, patchy.n_nodes)))
    assert bough.Posterior(unlike).best_actions(0) is None
    single = bough.HierTS(bough.GaussianModel(bough.Tree.from_parents([-1])), seed=0, search=True)
    assert single.decide() == 0
    vectors = bough.HierTS(bough.GaussianModel(BALANCED, np.zeros(2)), seed=0, search=True)
    assert vectors.decide(np.zeros(2)) in BALANCED.actions


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS])
def test_every_sampler_searches_and_can_be_told_not_to(policy):
    model = bough.GaussianModel(BALANCED)
    searching, drawing = policy(model, seed=0, search=True), policy(model, seed=0, search=False)
    for agent in (searching, drawing):
        agent.update([13, 14], [1.0, 2.0])
        assert agent.decide() in BALANCED.actions
        assert len(agent.decide(k=27)) == 27
        assert set(agent.decide(k=25, exclude=[13, 14])) == set(BALANCED.actions) - {13, 14}
    few = np.unique([searching.decide() for _ in range(20_000)], return_counts=True)
    full = np.unique([drawing.decide() for _ in range(20_000)], return_counts=True)
    assert same_law(np.repeat(*few), np.repeat(*full)) > FALSE_ALARM


def test_a_million_actions_are_decided_among_by_looking_at_few():
    model = bough.problems.constant(branching=10, height=6)
    agent = bough.HierTS(model, seed=0)
    truth = model.draw(1)
    for _ in range(100):
        action = agent.decide()
        agent.update(action, truth[action])
    assert agent.posterior.nodes_visited < 2_000
    assert agent.posterior._engine.slots.count < 800


def test_new_nodes_are_taken_in_as_they_are_touched():
    model = bough.GaussianModel(BALANCED)
    grown, fresh = bough.Posterior(model), bough.Posterior(model)
    rng = np.random.default_rng(0)
    for leaf in rng.choice(BALANCED.leaves, 12):
        grown.best_actions(rng)
        grown.update(int(leaf), 1.0)
        fresh.update(int(leaf), 1.0)
    grown.best_actions(rng)
    untouched = Untouched(BALANCED, model.classes.of_node)
    untouched.sync(fresh._engine.slots)
    n = fresh._engine.slots.count
    np.testing.assert_array_equal(grown._search_state._untouched._free[:n], untouched._free[:n])
    below = np.array([np.isin(BALANCED.children(i), fresh._engine.slots.node).sum() for i in fresh._engine.slots.node])
    children = np.diff(BALANCED.child_start)[fresh._engine.slots.node]
    np.testing.assert_array_equal(untouched._free[:n, 1], children - below)


@pytest.mark.parametrize("policy", [bough.HierTS, bough.BayesUCB, bough.Greedy])
def test_many_decisions_at_once_and_their_propensities(policy):
    agent = policy(bough.GaussianModel(UNEVEN, np.zeros(3)), seed=0)
    contexts = np.random.default_rng(0).normal(size=(7, 3))
    chosen = agent.decide_many(contexts)
    assert len(chosen) == 7
    assert set(chosen) <= set(UNEVEN.actions)
    armed = policy(bough.GaussianModel(UNEVEN), seed=0)
    assert len(armed.decide_many(5)) == 5
    assert armed.decide_many(0) == []
    probability, error, is_bound = armed.propensity(list(UNEVEN.actions), samples=400)
    assert probability[~is_bound].sum() == pytest.approx(1.0, abs=5.0 * error.sum() + ROUNDING)
    assert (error[is_bound] == 0).all()


def test_an_action_that_is_never_chosen_has_an_upper_bound_and_not_zero():
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0)
    agent.update(["f"] * 50 + ["a/e"] * 50, [9.0] * 50 + [-9.0] * 50)
    probability, error, is_bound = agent.propensity(["f", "a/e"], k=2, samples=2_000)  # without k it is exact
    assert (probability[0], is_bound[0]) == (pytest.approx(1.0, abs=0.05), False)
    assert (is_bound[1], error[1]) == (True, 0.0)
    assert 0.0 < probability[1] < 0.002


BAD = {
    "exclude all": (lambda a: a.decide(exclude=list(UNEVEN.actions)), "exclude leaves out all 11 actions"),
    "exclude a string": (lambda a: a.decide(exclude="f"), "exclude is 'f'"),
    "exclude the unknown": (lambda a: a.decide(exclude=["x"]), "unknown action 'x'"),
    "exclude among": (lambda a: a.decide(among=["f"], exclude=["f"]), "every action that among has"),
    "k beyond the rest": (lambda a: a.decide(k=11, exclude=["f"]), "give at most 10"),
    "many": (lambda a: a.decide_many(-1), "contexts is -1"),
    "contexts": (lambda a: a.decide_many(np.ones((2, 3))), "give how many decisions"),
    "exclude a number": (lambda a: a.decide(exclude=3), "exclude is 3"),
    "search": (lambda a: bough.HierTS(a.posterior.model, search="no"), "search is 'no'"),
    "another's posterior": (lambda a: bough.TS.resume(a.posterior), "of another model than TS has"),
    "best of none": (lambda a: a.posterior.best_actions(0, k=0), "k is 0"),
    "best of too many": (lambda a: a.posterior.best_actions(0, k=12), "k is 12"),
    "best without a node": (
        lambda a: a.posterior.best_actions(0, exclude=[99999]),
        "99999 is not a node number",
    ),
    "best without a category": (lambda a: a.posterior.best_actions(0, exclude=[0]), "0 is the number of an inner node"),
    "best in a context": (lambda a: a.posterior.best_actions(0, context=[1.0]), "model without contexts"),
    "samples": (lambda a: a.propensity(["f"], samples=0), "samples is 0"),
    "one action": (lambda a: a.propensity("f"), "actions is 'f'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_by_a_text_that_names_it(what):
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0)
    with pytest.raises((ValueError, KeyError)) as caught:
        BAD[what][0](agent)
    assert BAD[what][1] in str(caught.value)


def test_bad_contexts_of_many_decisions_are_refused():
    agent = bough.HierTS(bough.GaussianModel(UNEVEN, np.zeros(3)), seed=0)
    for contexts, text in ((np.ones((2, 2)), "give \\(n, 3\\)"), ([[1.0, np.nan, 0.0]], "row 0"), (3.0, "give \\(")):
        with pytest.raises(ValueError, match=text):
            agent.decide_many(contexts)
