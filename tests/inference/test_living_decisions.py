"""Decisions after changes have the law of the full sampler on a tree that is built anew.

Chosen actions by chi-squared and maxima by Kolmogorov-Smirnov, 10^5 decisions each, fixed seeds, false-alarm rate 1e-4
a test. Retired actions never appear.
"""

import copy

import numpy as np
import pytest
from scipy.stats import ks_2samp

import bough
from capped_cases import same_law
from test_decisions import CONTEXT, DRAWS, FALSE_ALARM

BALANCED = bough.Tree.balanced(3, 3)
UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
MODELS = {
    "balanced": bough.GaussianModel(BALANCED, 0.4, bough.by_depth([1.0, 0.5, 2.0, 0.3])),
    "uneven": bough.GaussianModel(UNEVEN, 0.2, bough.by_depth([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])),
    "vectors": bough.GaussianModel(BALANCED, [0.1, 0.0, -0.2], bough.by_depth([1.0, 2.0, 0.5, 1.0])),
    "clicks": bough.BernoulliModel(BALANCED, -1.0, bough.by_depth([1.0, 0.5, 2.0, 0.3])),
    "drift": bough.GaussianModel(BALANCED, 0.4, 1.0, drift=3.0),
}


def changed(name):
    """An agent with rewards and changes of every kind, none of which has been made a tree of."""
    model = MODELS[name]
    agent = bough.HierTS(model, seed=0, search=True)
    rng = np.random.default_rng(5)
    actions = list(model.tree.actions)
    for _ in range(12):
        reward = float(rng.integers(2)) if name == "clicks" else float(rng.normal())
        agent.update(actions[rng.integers(len(actions))], reward, None if model.is_scalar else rng.normal(size=3))
    tree = model.tree
    inner = [tree.name(i) for i in range(tree.n_nodes) if not tree.is_action(i)]
    shelves = [one for one in inner if len(tree.path(one)) == 3]
    agent.add("n1", under=shelves[0])
    agent.add(["n2", "n3"], under=shelves[1])
    agent.add("shelf", under=inner[1])
    agent.add(["n4", "n5"], under="shelf")
    agent.update("n4", 1.0, None if model.is_scalar else np.ones(3))
    siblings = [a for a in actions if tree.path(a)[-2] == shelves[2]]
    agent.move(siblings[0], under=shelves[0])
    agent.retire(["n3", actions[0], actions[-1]])
    assert agent.posterior._catalogue.is_changed
    agent.now = 2.0
    return agent


@pytest.mark.parametrize("name", MODELS)
def test_the_search_on_top_of_a_tree_has_the_law_of_the_full_sampler_on_the_tree_it_makes(name):
    agent = changed(name)
    context = None if agent.posterior._engine.model.is_scalar else CONTEXT
    rng = np.random.default_rng(1)
    catalogue = agent.posterior._catalogue
    none = np.empty(0, dtype=np.int32)
    found = [agent.posterior._search(rng, context, 1, none) for _ in range(DRAWS)]
    assert agent.posterior._catalogue is catalogue  # no tree was made meanwhile
    numbers = {node: i for i, node in enumerate({int(best.nodes[0]) for best in found})}
    called = [catalogue.name(node) for node in numbers]
    chosen = np.array([numbers[int(best.nodes[0])] for best in found])
    assert not set(called) & set(agent.retired)

    whole = copy.deepcopy(agent).posterior
    tree = whole.model.tree
    samples = whole.sample(np.random.default_rng(2), size=DRAWS)[:, tree.leaves]
    scores = samples if context is None else samples @ context
    scores[:, [tree.actions[i] in agent.retired for i in range(tree.n_actions)]] = -np.inf
    place = {name: i for i, name in enumerate(called)}
    drawn = np.array([place.get(tree.actions[i], -1) for i in range(tree.n_actions)])[scores.argmax(axis=1)]
    assert same_law(chosen, drawn) > FALSE_ALARM
    assert ks_2samp([best.scores[0] for best in found], scores.max(axis=1)).pvalue > FALSE_ALARM


def test_the_best_k_on_top_of_a_tree_have_the_law_of_the_full_sampler():
    agent = changed("uneven")
    searched = np.array([" ".join(sorted(map(str, agent.decide(k=3)))) for _ in range(20_000)])
    drawing = bough.HierTS(copy.deepcopy(agent).posterior, seed=9, search=False)
    drawn = np.array([" ".join(sorted(map(str, drawing.decide(k=3)))) for _ in range(20_000)])
    assert same_law(searched, drawn) > FALSE_ALARM


def test_retired_actions_are_never_chosen():
    agent = changed("balanced")
    retired = set(agent.retired)
    for i in range(DRAWS):
        chosen = agent.decide() if i % 10 else agent.decide(k=2)[1]
        assert chosen not in retired


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
def test_every_policy_leaves_retired_actions_alone(policy):
    agent = policy(bough.GaussianModel(UNEVEN), seed=0)
    agent.update(["a/b/c", "f"], [9.0, 8.0])
    agent.retire(["a/b/c", "m/q"])
    chosen = {agent.decide() for _ in range(200)}
    assert not chosen & {"a/b/c", "m/q"}
    assert len(agent.decide(k=UNEVEN.n_actions - 2)) == 9
    with pytest.raises(ValueError, match="give at most 9"):
        agent.decide(k=10)
    with pytest.raises(ValueError, match="give at most 8"):
        agent.decide(k=9, exclude=["f", "m/q"])
    assert {agent.decide(among=["a/b/c", "a/e"]) for _ in range(20)} == {"a/e"}
    with pytest.raises(ValueError, match="every action is retired that among has"):
        agent.decide(among=["a/b/c"])
    agent.restore("a/b/c")
    assert agent.retired == ["m/q"]
    assert len(agent.decide(k=10)) == 10


def test_the_propensity_of_a_retired_action_is_zero_and_of_the_rest_adds_up():
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0)
    agent.retire("f")
    agent.add("new", under="a")
    result = agent.propensity(["f", "new", *[name for name in UNEVEN.actions if name != "f"]], samples=2_000)
    assert result.probability[0] == 0.0
    assert not result.is_upper_bound[0]
    assert result.probability.sum() == pytest.approx(1.0, abs=5.0 * result.standard_error.sum())


def test_choices_may_be_made_among_actions_that_were_just_added():
    agent = bough.HierTS(bough.problems.constant(branching=10, height=4), seed=0)  # large enough to be searched
    agent.add(["x", "y"], under=1)
    agent.add("z", under=1110)
    assert {agent.decide(among=["x", "z"]) for _ in range(50)} == {"x", "z"}
    assert agent.decide(among=["x", "y"], exclude=["y"]) == "x"
    assert agent.posterior._catalogue.is_changed
    for _ in range(3):
        agent.update("x", 100.0)
    assert agent.decide() == "x"
    assert agent.decide(exclude=["x"]) != "x"
    assert agent.posterior._catalogue.is_changed


def test_where_actions_may_tie_the_full_sampler_decides_after_changes_too():
    model = bough.GaussianModel(BALANCED, covariance=bough.by_depth([1.0, 1.0, 1.0, 0.0]))
    agent = bough.HierTS(model, seed=0, search=True)
    agent.add("new", under=BALANCED.name(5))
    assert agent.decide(exclude=["new"]) != "new"
    seen = {agent.decide() for _ in range(1_000)}
    assert "new" in seen
