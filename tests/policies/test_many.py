"""Many decisions at once have the law of one by one, and do not depend on the number of threads.

Actions by chi-squared against the full sampler, fixed seeds, false-alarm rate 1e-4 a test.
"""

import numpy as np
import pytest

import bough
from laws import BALANCED, FALSE_ALARM, UNEVEN, drawn, observed, p_of_actions

DRAWS = 20_000
SINGULAR = np.diag([1.0, 0.0])
SPD = np.array([[1.0, 0.4], [0.4, 0.5]])
CASES = {
    "numbers, nothing touched": (bough.GaussianModel(BALANCED), 0, None),
    "numbers, some touched": (bough.GaussianModel(BALANCED, 0.4, bough.by_depth([1.0, 0.5, 2.0, 0.3])), 6, None),
    "numbers, uneven": (bough.GaussianModel(UNEVEN, 0.2, bough.by_height([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])), 4, None),
    "numbers that tie": (bough.GaussianModel(UNEVEN, 0.0, bough.by_height([0.0, 1.0, 2.0, 0.0, 1.0, 0.4])), 4, None),
    "vectors, nothing touched": (bough.GaussianModel(BALANCED, [0.1, -0.2]), 0, [1.0, -0.5]),
    "vectors, some touched": (bough.GaussianModel(BALANCED, [0.1, -0.2], bough.by_depth([1, SPD, 1, 0.5])), 8, [1, 2]),
    "vectors, in proportion": (bough.GaussianModel(BALANCED, np.zeros(2)), 8, [1.0, -0.5]),
    "vectors, uneven": (bough.GaussianModel(UNEVEN, np.zeros(2), bough.by_height([0.5, SPD, 1, 1, 1, 1])), 30, [1, 2]),
    "vectors that tie": (bough.GaussianModel(UNEVEN, np.zeros(2), SINGULAR), 4, [0.0, 1.0]),
}


def agent_of(posterior, search, explore=1.0, seed=3):
    return bough.HierTS.resume(posterior, seed=seed, search=search, explore=explore)


def places(agent, contexts, **options):
    """(n, k) the nodes that many decisions chose."""
    chosen = agent.decide_many(contexts, **options)
    return agent.posterior.model.tree.action_nodes(list(np.ravel(np.array(chosen)))).reshape(len(chosen), -1)


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_the_full_sampler(name, search, k):
    model, n, context = CASES[name]
    posterior = observed(model, n)
    draws = DRAWS if name != "vectors that tie" or not search else 3_000  # one by one
    rows = draws if context is None else np.tile(context, (draws, 1))
    ours = places(agent_of(posterior, search), rows, k=k)
    expected, _ = drawn(posterior, None if context is None else np.array(context), DRAWS, k or 1)
    assert p_of_actions(ours, expected) > FALSE_ALARM


@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", ["numbers, uneven", "vectors, uneven"])
def test_explore_and_among_and_retired_actions(name, search):
    model, n, context = CASES[name]
    rows = DRAWS if context is None else np.tile(context, (DRAWS, 1))
    posterior = observed(model, n)
    one_by_one = agent_of(posterior, search, 0.5, seed=4)
    expected = np.array([[model.tree.index(one_by_one.decide(context))] for _ in range(4_000)])
    assert p_of_actions(places(agent_of(posterior, search, 0.5), rows), expected) > FALSE_ALARM
    some = ["a/b/c", "f", "g/i/j/k", "g/i/j/l", "m/q"]
    among, _ = drawn(posterior, None if context is None else np.array(context), DRAWS, 2, some)
    assert p_of_actions(places(agent_of(posterior, search), rows, k=2, among=some), among) > FALSE_ALARM
    agent = agent_of(posterior, search)
    agent.retire("m/q")
    left = [action for action in model.tree.actions if action != "m/q"]
    expected, _ = drawn(posterior, None if context is None else np.array(context), DRAWS, 1, left)
    assert p_of_actions(places(agent, rows), expected) > FALSE_ALARM


@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("name", ["numbers, uneven", "vectors, uneven", "vectors that tie"])
def test_the_number_of_threads_changes_nothing(name, search):
    model, n, context = CASES[name]
    posterior = observed(model, n)
    rows = 700 if context is None else np.random.default_rng(0).normal(size=(300, 2))
    first = agent_of(posterior, search).decide_many(rows, jobs=1)
    assert first == agent_of(posterior, search).decide_many(rows, jobs=3)
    assert first != agent_of(posterior, search, seed=5).decide_many(rows)


def test_added_actions_are_chosen_also_where_others_tie():
    tree = bough.Tree.from_nested({"a": ["b", "c"], "d": ["e"]})
    agent = bough.HierTS(bough.GaussianModel(tree, np.zeros(2), bough.by_depth([1.0, 1.0, SINGULAR])), 0, search=True)
    agent.update(["b"], [1.0], [[1.0, 0.0]])
    agent.add("new", under="d")
    chosen = agent.decide_many(np.tile([[1.0, 0.0], [0.0, 1.0]], (200, 1)))
    assert {*chosen[::2]} == {*chosen[1::2]} == {"b", "c", "e", "new"}


@pytest.mark.parametrize("policy", [bough.Greedy, bough.BayesUCB, bough.HierTS])
def test_every_policy_takes_the_same_arguments(policy):
    agent = policy(bough.GaussianModel(UNEVEN), seed=0)
    chosen = agent.decide_many(3, k=2, among=["f", "a/e", "g/h"], jobs=2)
    assert [len(set(one)) for one in chosen] == [2, 2, 2]
    assert {*np.ravel(chosen)} <= {"f", "a/e", "g/h"}


BAD = {
    "jobs": (dict(jobs=0), "jobs is 0"),
    "many jobs": (dict(jobs="all"), "jobs is 'all'"),
    "device": (dict(device="tpu"), "device is 'tpu'"),
    "k": (dict(k=100), "k is 100; give at most 11"),
    "among": (dict(among=[]), "among is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_change_nothing(name):
    options, says = BAD[name]
    agent = bough.HierTS(bough.GaussianModel(UNEVEN), seed=0)
    with pytest.raises(ValueError, match=says):
        agent.decide_many(3, **options)
    assert agent.decide_many(5) == bough.HierTS(bough.GaussianModel(UNEVEN), seed=0).decide_many(5)


def test_policies_that_do_not_draw_from_the_posterior_have_no_gpu():
    with pytest.raises(ValueError, match="a Greedy decides on the CPU"):
        bough.Greedy(bough.GaussianModel(UNEVEN), seed=0).decide_many(3, device="gpu")
