"""What a user brings: policies, worlds and rewards that fit are called as the docs say, and others are told how."""

import re
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import bough

MODEL = bough.GaussianModel(bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]}))
CONTEXTUAL = bough.GaussianModel(MODEL.tree, [0.0, 0.0])
CLICKS = bough.BernoulliModel(MODEL.tree)
SETTINGS = dict(rounds=6, runs=2, seed=0, jobs=1)


class Recorder:
    """Keeps the arguments of every call, as they come."""

    calls: ClassVar = []

    def __init__(self, *given, **named):
        self.calls.append(("made", given, named))

    def decide(self, *given, **named):
        self.calls.append(("decide", given, named))
        return "green"

    def update(self, *given, **named):
        self.calls.append(("update", given, named))


@pytest.mark.parametrize("model", [MODEL, CONTEXTUAL], ids=["K-armed", "contextual"])
def test_simulate_passes_what_it_says_it_passes(model):
    Recorder.calls = []
    contexts = None if model.is_scalar else np.eye(2)
    bough.simulate(model, {"recorder": Recorder}, contexts=contexts, **SETTINGS)
    assert [what for what, _, _ in Recorder.calls] == 2 * (["made"] + 6 * ["decide", "update"])
    _, made, named = Recorder.calls[0]
    assert made == (model,)
    assert list(named) == ["seed"]
    assert isinstance(named["seed"], np.random.Generator)
    for (_, decided, _), (_, updated, _) in zip(Recorder.calls[1:13:2], Recorder.calls[2:13:2], strict=True):
        [context] = decided
        action, reward, again = updated
        assert context is again
        assert action == "green"
        assert type(reward) is float
        if model.is_scalar:
            assert context is None
        else:
            assert context.shape == (2,)
            assert not context.flags.writeable
    assert all(not named for what, _, named in Recorder.calls if what != "made")


class Plain:
    """Names its arguments as it likes, and has nothing optional."""

    def __init__(self, world, seed):
        self.rng = seed

    def decide(self, x):
        return ["green", "black", "espresso"][self.rng.integers(3)]

    def update(self, a, r, x):
        pass


def test_arguments_may_have_any_names_and_what_makes_a_policy_any_form():
    class Static:
        def __init__(self, model, *, seed):
            pass

        @staticmethod
        def decide(context):
            return "green"

        @classmethod
        def update(cls, action, reward, context):
            pass

    class Maker:
        def __call__(self, model, seed):
            return Plain(model, seed)

    forms = {
        "class": Plain,
        "partial": partial(Plain),
        "function": lambda model, seed: Plain(model, seed),
        "callable object": Maker(),
        "static": Static,
        "object": Plain(MODEL, np.random.default_rng(0)),
        "partial of bough's": partial(bough.HierTS, refit=True),
    }
    run = bough.simulate(MODEL, forms, **SETTINGS)
    assert list(run.regret) == list(forms)


def policy(decide=lambda self, context: "green", update=lambda self, action, reward, context: None, make=None):
    def usual(self, model, seed):
        pass

    return type("Mine", (), {"decide": decide, "update": update, "__init__": make or usual})


WRONG = {
    "decide takes nothing": (policy(decide=lambda self: "green"), r"decide of policy 'mine' .* decide\(context\)"),
    "decide wants k": (policy(decide=lambda self, context, k: "green"), "missing a required argument: 'k'"),
    "decide is no method": (policy(decide="green"), r"a Mine without decide\(context\)"),
    "update has no context": (policy(update=lambda self, action, reward: None), "update of policy 'mine'"),
    "update by name": (policy(update=lambda self, *, action, reward, context: None), "update of policy 'mine'"),
    "made without a seed": (policy(make=lambda self, model: None), r"as policy\(model, seed=generator\)"),
    "made from nothing": (policy(make=lambda self: None), r"as policy\(model, seed=generator\)"),
    "only decides": (type("Half", (), {"decide": lambda self, context: "green"}), "as policy"),
    "an object": (policy(decide=lambda self: "green")(None, None), "decide of policy 'mine'"),
    "a function of a model": (lambda model: bough.TS(model), r"as policy\(model, seed=generator\)"),
    "makes another thing": (lambda model, seed: 3, "what policy 'mine' makes is a int"),
    "makes a half": (lambda model, seed: policy(decide=lambda self: "green")(model, seed), "decide of what policy"),
    "a number": (3, "policy 'mine' is 3"),
    "a name": ("HierTS", "policy 'mine' is 'HierTS'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_signature_is_told_the_protocol_before_anything_is_played(what):
    mine, text = WRONG[what]
    Recorder.calls = []
    with pytest.raises(ValueError, match=text) as caught:
        bough.simulate(MODEL, {"recorder": Recorder, "mine": mine}, **SETTINGS)
    assert "decide(context), which gives the name of an action, and update(action, reward, context)" in str(
        caught.value
    )
    assert "policy(model, seed=generator)" in str(caught.value)
    assert not [what for what, _, _ in Recorder.calls if what != "made"]


@pytest.mark.parametrize("decided", ["cocoa", "tea", ["green"], None, 3])
def test_a_decision_for_what_is_no_action_is_told_by_the_policys_name(decided):
    with pytest.raises(ValueError, match=r"policy 'mine' decided on .*, which is not an action.*; .* such as 'green'"):
        bough.simulate(MODEL, {"mine": policy(decide=lambda self, context: decided)}, **SETTINGS)


@pytest.mark.parametrize(
    ("decided", "text"),
    [
        (
            "tea",
            "decided on 'tea', which is not an action but a category; decide gives the name of one, such as 'green",
        ),
        (np.int64(2), r"a place in tree.actions: tree.actions\[2\] is the name there; .* such as 'espresso'"),
    ],
)
def test_a_decision_for_a_category_or_a_place_is_told_as_such(decided, text):
    with pytest.raises(ValueError, match=text):
        bough.simulate(MODEL, {"mine": policy(decide=lambda self, context: decided)}, **SETTINGS)


class Breaks:
    """Fails in its third round."""

    def __init__(self, model, seed):
        self.n = 0

    def decide(self, context):
        self.n += 1
        return {1: "green", 2: "green"}[self.n]

    def update(self, action, reward, context):
        pass


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_users_policy_says_in_which_policy_run_and_round(jobs):
    with pytest.raises(KeyError) as caught:
        bough.simulate(MODEL, {"TS": bough.TS, "mine": Breaks}, **SETTINGS | dict(jobs=jobs))
    [note] = caught.value.__notes__  # of whichever run was first
    assert re.fullmatch(r"in policy 'mine', run [01], round 2 \(counted from 0\)", note)


def test_an_error_in_a_users_world_or_in_making_a_policy_says_in_which_run():
    class World:
        times = 0

        def world(self, rounds, rng):
            self.times += 1
            if self.times == 2:
                raise ZeroDivisionError
            return bough.World(MODEL, np.zeros(3), rng.normal(size=rounds))

    with pytest.raises(ZeroDivisionError) as caught:
        bough.simulate(World(), {"TS": bough.TS}, **SETTINGS)
    assert caught.value.__notes__ == ["in run 1 (counted from 0)"]


class Fixed:
    """A problem of one truth."""

    def __init__(self, model, **world):
        self.model, self.given = model, world

    def world(self, rounds, rng):
        noise = rng.random(rounds) if not self.model.kind.noise_is_added else rng.normal(size=rounds)
        contexts = None if self.model.is_scalar else rng.normal(size=(rounds, 2))
        return bough.World(self.model, **{"noise": noise, "contexts": contexts, **self.given})


def test_a_problem_with_another_signature_is_told_the_protocol():
    class Odd:
        def world(self, rounds):
            return None

    with pytest.raises(ValueError, match=r"as world\(rounds, rng\): .*; give a problem with world\(rounds, rng\)"):
        bough.simulate(Odd(), {"TS": bough.TS}, **SETTINGS)
    with pytest.raises(ValueError, match="model is a World; give a problem with world"):
        bough.simulate(bough.World(MODEL, np.zeros(3), np.zeros(6)), {"TS": bough.TS}, **SETTINGS)
    with pytest.raises(ValueError, match=r"contexts cannot be called as contexts\(rng, n\)"):
        bough.simulate(CONTEXTUAL, {"TS": bough.TS}, contexts=lambda rng: None, **SETTINGS)


@pytest.mark.parametrize(
    "model", [CONTEXTUAL, bough.BernoulliModel(MODEL.tree, [0.0, 0.0])], ids=["gaussian", "clicks"]
)
def test_a_truth_given_as_a_function_is_the_same_world_as_its_parameters(model):
    parameters = np.array([[0.3, 1.0], [-0.5, 0.2], [0.1, -1.0]])
    policies = {"HierTS": bough.HierTS, "Greedy": bough.Greedy}
    settings = SETTINGS | dict(rounds=60)
    linear = bough.simulate(Fixed(model, truth=parameters), policies, **settings)
    function = Fixed(model, truth=lambda context: model.mean_reward(parameters @ context))
    given = bough.simulate(function, policies, **settings)
    for name in policies:
        np.testing.assert_allclose(given.regret[name], linear.regret[name], rtol=1e-9, atol=1e-12)
    assert given.best == pytest.approx(linear.best, rel=1e-12)


def test_a_world_may_be_one_that_no_model_of_contexts_has():
    def steep(context):
        return np.array([abs(context[0]), 0.2, 0.0])

    run = bough.simulate(Fixed(CONTEXTUAL, truth=steep), {"HierTS": bough.HierTS}, **SETTINGS)
    world = Fixed(CONTEXTUAL, truth=steep).world(5, np.random.default_rng(0))
    means = [np.maximum(abs(context[0]), 0.2) for context in world.contexts]
    np.testing.assert_allclose(world.best_rewards(), means)
    np.testing.assert_allclose(world.mean_rewards(2), steep(world.contexts[2]))
    assert (np.diff(run.regret["HierTS"], axis=1) >= 0.0).all()
    with pytest.raises(ValueError, match="the truth is a function of contexts"):
        _ = world.parameters


def test_the_models_own_rewards_given_as_a_function_change_nothing():
    worlds = {
        "added": (MODEL, dict(truth=[0.3, 0.1, -0.2]), lambda mean, noise: mean + noise),
        "clicks": (CLICKS, dict(truth=[0.3, 0.1, 0.2]), lambda mean, noise: float(noise < mean)),
    }
    policies = {"HierTS": bough.HierTS, "BayesUCB": bough.BayesUCB}
    for model, given, pays in worlds.values():
        usual = bough.simulate(Fixed(model, **given), policies, rounds=80, runs=3, seed=1)
        paid = bough.simulate(Fixed(model, **given, pays=pays), policies, rounds=80, runs=3, seed=1)
        for name in policies:
            np.testing.assert_allclose(paid.regret[name], usual.regret[name], rtol=1e-9, atol=1e-12)


def test_a_policy_can_be_paid_in_another_kind_than_its_model_has():
    Recorder.calls = []
    clicks = Fixed(MODEL, truth=[0.1, 0.3, 0.2], noise=np.linspace(0.0, 1.0, 6), pays=lambda m, noise: float(noise < m))
    run = bough.simulate(clicks, {"recorder": Recorder}, **SETTINGS)
    rewards = [given[1] for what, given, _ in Recorder.calls if what == "update"]
    assert rewards == 2 * [float(noise < 0.1) for noise in np.linspace(0.0, 1.0, 6)]
    np.testing.assert_allclose(run.regret["recorder"][:, -1], 6 * (0.3 - 0.1))


BAD_WORLDS = {
    "no reward of the model": (
        CLICKS,
        dict(truth=[0.3, 0.1, 0.2], pays=lambda mean, noise: 0.5),
        "pays 0.5 in round 0",
    ),
    "not a number": (MODEL, dict(truth=[0.3, 0.1, 0.2], pays=lambda mean, noise: "much"), "the world pays is 'much'"),
    "not finite": (MODEL, dict(truth=[0.3, 0.1, 0.2], pays=lambda mean, noise: np.nan), "the world pays is nan"),
    "pays by one": (MODEL, dict(truth=[0.3, 0.1, 0.2], pays=lambda mean: mean), r"called as pays\(mean, noise\)"),
    "pays a number": (MODEL, dict(truth=[0.3, 0.1, 0.2], pays=3.0), "pays is 3.0"),
    "a function without contexts": (MODEL, dict(truth=lambda context: np.zeros(3)), "the model has none"),
    "too few means": (CONTEXTUAL, dict(truth=lambda context: np.zeros(2)), r"the truth gave \(2,\) mean rewards"),
    "means that are not finite": (CONTEXTUAL, dict(truth=lambda context: [0.0, np.nan, 0.0]), "the truth has nan at 1"),
    "no probabilities": (
        bough.BernoulliModel(MODEL.tree, [0.0, 0.0]),
        dict(truth=lambda context: [0.5, 1.5, 0.1]),
        "from 0 to 1",
    ),
}


@pytest.mark.parametrize("what", BAD_WORLDS)
def test_worlds_that_cannot_be_are_refused_in_words(what):
    model, given, text = BAD_WORLDS[what]
    with pytest.raises(ValueError, match=text):
        bough.simulate(Fixed(model, **given), {"TS": bough.TS}, **SETTINGS)


@pytest.mark.parametrize(
    ("truth", "text"),
    [
        ([0.0, np.nan, 0.0], "the truth has nan at 1; give finite numbers"),
        (np.full((6, 3), np.inf), r"the truth has inf at \(0, 0\); give finite numbers"),
        (np.zeros((2, 2, 2)), r"the truth has shape \(2, 2, 2\); give numbers in 1 or 2 dimension"),
    ],
)
def test_a_truth_of_odd_numbers_and_one_of_an_odd_shape_are_told_apart(truth, text):
    with pytest.raises(ValueError, match=text):
        bough.World(MODEL, truth, np.zeros(6))


def test_residuals_and_pays_are_one_too_many():
    residuals = bough.Residuals(np.zeros(3), [0, 1, 2, 3], np.zeros(6))
    with pytest.raises(ValueError, match="choose one"):
        bough.World(MODEL, np.zeros(3), np.zeros(6), residuals=residuals, pays=lambda mean, noise: mean)


def test_a_world_s_noise_may_differ_from_action_to_action():
    model = bough.GaussianModel(bough.Tree.from_nested(["steady", "wild"]))
    world = bough.World(model, [1.0, 2.0], np.array([1.0, -2.0]), noise_deviations=[0.0, 3.0])
    assert [world.reward(t, 0, 1.0) for t in range(2)] == [1.0, 1.0]
    assert [world.reward(t, 1, 2.0) for t in range(2)] == [5.0, -4.0]
    assert not world.is_plain


@pytest.mark.parametrize("odd", [[1.0], [1.0, -1.0], [1.0, float("nan")]])
def test_odd_deviations_of_the_noise_are_refused(odd):
    model = bough.GaussianModel(bough.Tree.from_nested(["steady", "wild"]))
    with pytest.raises(ValueError, match="noise_deviations"):
        bough.World(model, [1.0, 2.0], np.zeros(2), noise_deviations=odd)


def test_a_model_with_noise_per_action_draws_worlds_whose_noise_differs():
    noise = bough.per_action(1.0, 1.0, 0.01)
    model = bough.GaussianModel(bough.Tree.balanced(5, 2), noise=noise)
    run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=40, runs=3, seed=0, jobs=1)
    again = bough.simulate(model, {"HierTS": bough.HierTS}, rounds=40, runs=3, seed=0, jobs=1)
    np.testing.assert_array_equal(run.regret["HierTS"], again.regret["HierTS"])
    problem = bough.simulation.worlds.FromPrior(model)
    deviations = problem.world(5, np.random.default_rng(0)).noise_deviations
    assert deviations.shape == (25,)
    assert len(set(deviations.tolist())) == 25


STORES = bough.GaussianModel(
    MODEL.tree, factors={"store": bough.Factor(levels=["north", ("south", 1)], variance=2.0, at_decision=True)}
)


class Derived(bough.HierTS):
    def update(self, action, reward, context=None, **more):
        super().update(action, reward, context, **more)


class Wrapped:
    def __init__(self, model, seed):
        self.agent = bough.HierTS(model, seed)

    def decide(self, context, factors=None):
        assert factors is not None
        return self.agent.decide(context, factors=factors)

    def update(self, action, reward, context, *, factors=None):
        self.agent.update(action, reward, context, factors=factors)


@pytest.mark.parametrize("mine", [Derived, Wrapped])
def test_policies_of_ones_own_are_told_the_levels_of_decisions(mine):
    settings = SETTINGS | dict(rounds=60)
    own = bough.simulate(STORES, {"mine": mine}, **settings)
    usual = bough.simulate(STORES, {"mine": bough.HierTS}, **settings)
    np.testing.assert_allclose(own.regret["mine"], usual.regret["mine"])


def test_a_policy_is_told_the_levels_that_its_model_has_and_decides_without_them_if_it_likes():
    class Asked(bough.HierTS):
        def decide(self, context):
            return super().decide(context)

    two = {**STORES.factors, "hour": bough.Factor(levels=[7, 8], at_decision=True)}
    model = bough.GaussianModel(MODEL.tree, factors=two)
    policies = {
        "both": Asked,
        "store": lambda model, seed: Asked(STORES, seed),
        "neither": lambda model, seed: Forgetful(MODEL, seed),
    }
    run = bough.simulate(model, policies, **SETTINGS)
    assert list(run.regret) == list(policies)
    with pytest.raises(ValueError, match="the policy's model has the factor 'store', and the world says nothing"):
        bough.simulate(MODEL, {"store": lambda model, seed: Derived(STORES, seed)}, **SETTINGS)


class Forgetful(bough.HierTS):
    def update(self, action, reward, context=None):
        super().update(action, reward, context)


@pytest.mark.parametrize("mine", [Forgetful, policy(), Plain])
def test_a_policy_that_cannot_be_told_the_levels_is_refused_before_anything_is_played(mine):
    Recorder.calls = []
    message = r"update of policy 'mine' does not take the levels of 'store'.*; have it take factors=None as well"
    with pytest.raises(ValueError, match=message):
        bough.simulate(STORES, {"recorder": Recorder, "mine": mine}, **SETTINGS)
    assert not [what for what, _, _ in Recorder.calls if what != "made"]


def test_a_factor_of_the_decision_without_levels_makes_no_world():
    empty = bough.Factor(levels=[], at_decision=True)
    with pytest.raises(ValueError, match="the factor 'store' of the decision has no level yet"):
        bough.simulate(bough.GaussianModel(MODEL.tree, factors={"store": empty}), {"TS": bough.HierTS}, **SETTINGS)
