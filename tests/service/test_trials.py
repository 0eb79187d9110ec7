"""Dry runs: a change is tried on a copy, and a reward is checked without anything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from bough.service.trials import check_reward, trial

TREE = bough.Tree.from_nested({"tea": {"hot": ["green", "black"]}, "coffee": {"beans": ["espresso", 7]}})
SMALLER = bough.Tree.from_nested({"tea": {"hot": ["green", "white"]}})
DEPTHS = bough.by_depth([1.0, 0.5, 0.5, 2.0])
MODELS = {
    "gaussian": bough.GaussianModel(TREE, 0.2, DEPTHS, 0.3),
    "gaussian in contexts": bough.GaussianModel(TREE, np.zeros(2), DEPTHS),
    "clicks": bough.BernoulliModel(TREE, -1.0, DEPTHS),
    "clicks in contexts": bough.BernoulliModel(TREE, np.zeros(2), DEPTHS),
    "counts": bough.PoissonModel(TREE, 0.5, DEPTHS),
    "counts in contexts": bough.PoissonModel(TREE, np.zeros(2), DEPTHS),
}
FORGETS = [kind for kind in MODELS if not kind.endswith("in contexts") or kind.startswith("gaussian")]
CONTEXT = [1.0, -0.5]
CHANGES = {
    "add": lambda agent, x: agent.add(["oolong", "white"], under="tea/hot"),
    "move": lambda agent, x: agent.move("black", under="coffee/beans"),
    "move a category": lambda agent, x: agent.move("tea/hot", under="coffee"),
    "retire": lambda agent, x: agent.retire(["green", 7]),
    "restore": lambda agent, x: (agent.retire("green"), agent.restore("green")),
    "forget": lambda agent, x: agent.forget("green"),
    "adopt": lambda agent, x: agent.adopt(SMALLER),
    "adopt and forget": lambda agent, x: agent.adopt(SMALLER, gone="forget"),
    "retract": lambda agent, x: agent.retract("green", 1, x),
    "reward": lambda agent, x: agent.update("green", 1, x),
    "rewards": lambda agent, x: agent.update(["green", 7], [1, 0], None if x is None else [x, x]),
    "time": lambda agent, x: setattr(agent, "now", 9.0),
}
REFUSED = {
    "a name that is there": lambda agent, x: agent.add("green", under="coffee"),
    "an unknown category": lambda agent, x: agent.add("oolong", under="cocoa"),
    "below an action with rewards": lambda agent, x: agent.add("oolong", under="green"),
    "a covariance by depth": lambda agent, x: agent.add("oolong", under="tea/hot", covariance=3.0),
    "below itself": lambda agent, x: agent.move("tea", under="tea/hot"),
    "the root": lambda agent, x: agent.move("", under="tea"),
    "all actions": lambda agent, x: agent.retire(["green", "black", "espresso", 7]),
    "one that is not retired": lambda agent, x: agent.restore("green"),
    "an unknown action": lambda agent, x: agent.forget("cocoa"),
    "a table without some": lambda agent, x: agent.adopt(SMALLER, gone="raise"),
    "no table": lambda agent, x: agent.adopt("tonight's"),
    "a reward that never came": lambda agent, x: agent.retract("espresso", 1, x),
    "a reward of an unknown action": lambda agent, x: agent.update("cocoa", 1, x),
    "a batch with a bad row": lambda agent, x: agent.update(["green", 7], [1, np.nan], None if x is None else [x, x]),
}


def started(kind, policy=bough.HierTS):
    model = MODELS[kind]
    context = None if model.is_scalar else CONTEXT
    agent = policy(model, seed=0, half_life=8.0)
    for name, reward in (("green", 1), ("black", 0), ("green", 0), (7, 1)):
        agent.update(name, reward, context)
    return agent, context


def state(agent):
    posterior = agent.posterior
    model = posterior.model
    names = model.tree.node_names.names(np.arange(model.tree.n_nodes, dtype=np.int32))
    arrays = posterior.mean.copy(), posterior.covariance.copy(), posterior.count.copy(), model.tree.parent
    return names, arrays, agent.retired, agent.now, posterior.log_evidence()


def assert_same(mine, other):
    assert (mine[0], *mine[2:]) == (other[0], *other[2:])
    for one, two in zip(mine[1], other[1], strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("kind", MODELS)
def test_a_change_that_is_tried_changes_nothing_and_then_does_the_same(kind, what):
    if what == "retract" and kind not in FORGETS:
        pytest.skip("clicks and counts in contexts are not taken back")
    agent, context = started(kind)
    agent.add("mocha", under="coffee/beans")  # a change on top of the tree, which stays there
    agent.update("mocha", 1, context)
    twin = trial(agent)
    assert agent.posterior._catalogue.is_changed
    CHANGES[what](twin, context)
    twin.decide(context)
    untouched, _ = started(kind)
    untouched.add("mocha", under="coffee/beans")
    untouched.update("mocha", 1, context)
    CHANGES[what](agent, context)
    assert_same(state(twin), state(agent))
    CHANGES[what](untouched, context)
    assert_same(state(agent), state(untouched))


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("kind", MODELS)
def test_what_a_trial_refuses_the_agent_does_in_the_same_words(kind, what):
    agent, context = started(kind)
    before = state(trial(agent))
    with pytest.raises((ValueError, KeyError)) as tried:
        REFUSED[what](trial(agent), context)
    assert_same(state(trial(agent)), before)
    with pytest.raises(type(tried.value)) as done:
        REFUSED[what](agent, context)
    assert str(done.value) == str(tried.value)
    assert_same(state(agent), before)


@pytest.mark.parametrize("policy", [bough.TS, bough.FlatTS, bough.Greedy])
def test_the_whole_tree_of_a_policy_that_reasons_with_less_is_its_own(policy):
    agent, _ = started("gaussian", policy)
    twin = trial(agent)
    twin.add("oolong", under="tea/hot")
    twin.move("black", under="coffee/beans")
    assert agent.posterior.model.tree.n_actions == 4
    agent.add("oolong", under="tea/hot")
    agent.move("black", under="coffee/beans")
    assert_same(state(twin), state(agent))


def test_an_agent_that_refits_is_tried_without_a_refit():
    agent = bough.HierTS(MODELS["gaussian"], seed=0, refit=True)
    twin = trial(agent)
    twin.update(["green", 7] * 50, np.linspace(0.0, 5.0, 100))
    assert twin.posterior.model is MODELS["gaussian"]
    assert agent.posterior.n_observations == 0


@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_trial_decides_as_its_agent_does_with_classes_that_were_added(is_prepared):
    tree = bough.Tree.balanced(8, 3)
    model = bough.GaussianModel(tree, covariance=bough.by_node({}, default=0.01))
    agent = bough.HierTS(model, seed=0, search=True)
    agent.update(int(tree.leaves[0]), 1.0)
    if is_prepared:
        agent.decide()
    agent.add(10_000, under=3, covariance=50.0)
    agent.add(10_001, under=4, covariance=50.0)
    twin = trial(agent)
    agent._rng, twin._rng = np.random.default_rng(1), np.random.default_rng(1)
    chosen = [agent.decide() for _ in range(200)]
    assert [twin.decide() for _ in range(200)] == chosen
    assert {10_000, 10_001} < set(chosen)


# -- one reward ------------------------------------------------------------------------------------

EXTREME = [0, 1, 2, 3, -1, 0.5, -0.0, 1e308, 1e200, 1e150, 9.9e149, -9.9e149, 5e-324, 1e-160, 10**400, 10**149, 2**53]
ODD = [True, False, None, "1", b"1", 1j, np.float32(1.0), np.int8(1), np.array(1.0), [1.0], [1.0, 0.0], np.nan, np.inf]
numbers = st.one_of(st.sampled_from(EXTREME), st.sampled_from(ODD), st.floats(), st.integers(-2, 12), st.integers())
sizes = st.one_of(st.none(), numbers)
actions = st.sampled_from(["green", "black", "espresso", 7, "mocha", "cocoa", "tea", "", None, 7.0, True, ("a",), []])
entries = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1e149, 1e100, -1e75, 1e-200, 300.0]))
contexts = st.one_of(
    st.none(),
    st.lists(entries, min_size=2, max_size=2),
    st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=3),
    st.sampled_from(["x", 3.0, {"a": 1.0}, [[1.0, 2.0]]]),
)


@pytest.mark.parametrize("with_change", [False, True])
@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=400, deadline=None)
@given(action=actions, value=numbers, context=contexts, trials=sizes, exposure=sizes, as_meant=st.booleans())
def test_a_reward_that_is_passed_is_taken_and_one_that_is_not_is_refused(
    kind, with_change, action, value, context, trials, exposure, as_meant
):
    agent, usual = started(kind)
    if with_change:
        agent.add("mocha", under="coffee/beans")
    model = MODELS[kind]
    if as_meant:  # or nearly everything would be refused for what goes with another model
        trials = trials if model.kind.exposure_word == "trials" else None
        exposure = exposure if model.kind.exposure_word == "exposure" else None
        context = None if model.is_scalar else context or usual
    before = agent.posterior._engine.raw_rows()[1], agent.posterior._engine.slots.count
    try:
        check_reward(agent, action, value, context, trials, exposure)
    except (ValueError, KeyError) as refusal:
        after = agent.posterior._engine.raw_rows()[1], agent.posterior._engine.slots.count
        np.testing.assert_array_equal(after[0], before[0])
        assert after[1] == before[1]
        is_stricter = "is its unit right?" in str(refusal) or agent.posterior._engine.may_refuse
        if is_stricter or isinstance(value, list):  # which is many rewards
            return
        with pytest.raises(type(refusal)) as refused:
            agent.update(action, value, context, trials=trials, exposure=exposure)
        words = str(refusal)
        assert str(refused.value) == words
    else:
        agent.update(action, value, context, trials=trials, exposure=exposure)
        assert agent.posterior.n_observations >= 5
        assert agent.posterior._engine.is_finite()
        assert np.isfinite(agent.posterior.log_evidence())


BEYOND = {
    "clicks in contexts": (1e11, [1e8, -1e8], {"trials": 9e11}),
    "counts in contexts": (9.9e11, [9.9e11, -0.01], {"exposure": 1e-12}),
}


@pytest.mark.parametrize("kind", BEYOND)
def test_a_reward_that_cannot_be_computed_with_is_refused_before_it_is_observed(kind):
    agent, _ = started(kind)
    value, context, size = BEYOND[kind]
    before = state(trial(agent))
    for name in ("green", "espresso"):  # with rewards, and without
        with pytest.raises(ValueError, match="cannot be computed with"):
            check_reward(agent, name, value, context, **size)
        check_reward(agent, name, 1, CONTEXT)
    assert_same(state(agent), before)
    fresh = bough.HierTS(MODELS[kind], seed=0)  # where nothing is touched
    check_reward(fresh, "green", 1, CONTEXT)
    assert fresh.posterior.n_observations == fresh.posterior._engine.slots.count == 0


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_checked_and_then_learned_is_what_is_learned(kind):
    checked, context = started(kind)
    plain, _ = started(kind)
    for name, reward in (("espresso", 1), ("green", 0), ("espresso", 0), ("black", 1)):
        check_reward(checked, name, reward, context)
        checked.update(name, reward, context)
        plain.update(name, reward, context)
    assert_same(state(checked), state(plain))


@pytest.mark.parametrize(
    ("kind", "value", "more"),
    [
        ("gaussian", 1.1e12, {}),
        ("gaussian", -(10**13), {}),
        ("gaussian in contexts", 1.0, {"context": [1.0, -2e12]}),
        ("clicks", 1, {"trials": 2e12}),
        ("counts", 2e12, {}),
        ("counts", 1, {"exposure": 2e12}),
        ("counts", 1, {"exposure": 1e-13}),
    ],
)
def test_numbers_of_a_wrong_unit_are_refused_though_they_could_be_learned(kind, value, more):
    agent, _ = started(kind)
    with pytest.raises(ValueError, match=r"is its unit right\?"):
        check_reward(agent, "green", value, **more)
    agent.update("green", value, **more)
    assert agent.posterior._engine.is_finite()


@pytest.mark.parametrize("count", [2**53, 1e19, 1e100])
def test_a_count_beyond_all_whole_numbers_of_a_float_is_refused(count):
    posterior = bough.Posterior(MODELS["counts"])
    for reward in (count, [count]):
        with pytest.raises(ValueError, match="below 9e15"):
            posterior.update("green" if reward is count else ["green"], reward)
    posterior.update("green", 2**53 - 1)
    assert np.isfinite(posterior.mean).all()
