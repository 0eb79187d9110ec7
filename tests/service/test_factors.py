"""Levels of decisions in the service: logged with decisions and their outcomes, learned from, refused where odd."""

import pytest

import bough
from bough.service.experiment import Experiment
from bough.service.explain import explained
from bough.service.files import start_of
from bough.service.handlers import HANDLERS, Call
from bough.service.log.sqlite import SqliteLog
from bough.service.prior_view import prior
from bough.service.problems import Problem
from bough.service.records import ChangeRow, State
from bough.service.refits import evidence_of, refitted
from bough.service.schema import ActionChange, Decide, ExperimentConfig, Reward, Rewards
from bough.service.traffic import Traffic
from bough.service.trials import trial
from service_driver import Driver


def model():
    factors = {
        "brand": bough.Factor({"tea/green": "Acme", "coffee": "Acme"}, variance=0.5),
        "store": bough.Factor(levels=["north", "south"], variance=0.3, at_decision=True),
    }
    return bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), factors=factors)


def plain():
    return bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]))


def shop(**config):
    made = Experiment(1, "shop", ExperimentConfig(**config), seed=0)
    made.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), model())
    return made


@pytest.fixture
def driver(tmp_path):
    made = Driver(lambda: SqliteLog(tmp_path / "data"), model())
    yield made
    made.close()


def rewarded(experiment, decide, reward, now=10.0):
    row = experiment.decide(Decide(**decide), now=now)
    verdict = experiment.reward(Reward(decision_id=row.id, value=2.0, **reward), State(row, []), now=now + 1.0)
    return row, verdict.outcomes


def test_a_reward_is_learned_at_the_level_of_its_decision():
    experiment = shop()
    row, outcomes = rewarded(experiment, {"factors": {"store": "north"}}, {})
    assert row.factors == outcomes[0].factors == {"store": "north"}
    assert experiment.learn(outcomes) == []
    twin = bough.Posterior(model())
    twin.update(row.actions[0], 2.0, factors={"store": "north"})
    assert experiment.agent.posterior.mean == pytest.approx(twin.mean, abs=1e-12)


def test_a_level_may_come_with_the_reward_and_not_against_the_decision():
    experiment = shop()
    _, outcomes = rewarded(experiment, {}, {"factors": {"store": "south"}})
    assert outcomes[0].factors == {"store": "south"}
    assert experiment.learn(outcomes) == []
    for decide, reward, message in (
        ({}, {}, "the levels of 'store' are missing"),
        ({}, {"factors": {"store": "west"}}, "unknown level 'west'"),
        ({"factors": {"store": "north"}}, {"factors": {"store": "south"}}, "made with the store 'north', and not"),
        ({"factors": {"store": "west"}}, {}, "unknown level 'west'"),
        ({"factors": {"brand": "Acme"}}, {}, "'brand' is a factor of the actions"),
    ):
        with pytest.raises(Problem, match=message):
            rewarded(experiment, decide, reward)
    assert experiment.agent.posterior.n_observations == 1


def test_a_default_reward_needs_the_level_when_it_is_decided():
    experiment = shop(learning="at_close", window=60.0, default=0.0)
    with pytest.raises(Problem, match="the levels of 'store' are missing"):
        experiment.decide(Decide(), now=1.0)
    row = experiment.decide(Decide(factors={"store": "north"}), now=1.0)
    verdict = experiment.close(State(row, []), now=100.0)
    assert verdict.outcomes[0].factors == {"store": "north"}
    assert experiment.learn(verdict.outcomes) == []
    assert experiment.agent.posterior.n_observations == 1


def test_many_outcomes_at_once_and_a_retraction_go_by_level():
    experiment, one_by_one = shop(), shop()
    outcomes = []
    for i in range(30):
        store = ("north", "south")[i % 2]
        _, made = rewarded(experiment, {"factors": {"store": store}}, {}, now=10.0 * i)
        outcomes += made
    assert experiment._learn_together(outcomes) == []
    assert one_by_one._learn_each(outcomes) == []
    mean = one_by_one.agent.posterior.action_moments()[0]
    assert experiment.agent.posterior.action_moments()[0] == pytest.approx(mean, abs=1e-9)
    row, made = rewarded(experiment, {"factors": {"store": "north"}}, {})
    experiment.learn(made)
    taken = experiment.retract(State(row, made), now=99.0).outcomes
    assert taken[0].factors == {"store": "north"}
    assert experiment.learn(taken) == []
    assert experiment.agent.posterior.action_moments()[0] == pytest.approx(mean, abs=1e-9)


def test_the_catalogue_changes_with_brands():
    experiment = shop()

    def change(**body):
        experiment.apply(ChangeRow(1, 0.0, "action", "me", body))

    with pytest.raises((Problem, KeyError), match="unknown level 'Newco'"):
        change(op="add", names=["mate"], under="tea", factors={"brand": {"mate": "Newco"}})
    change(op="add_level", names=["Newco"], factor="brand")
    change(
        op="add", names=["mate", "chai"], under="tea", factors={"brand": {"mate": "Newco", "chai": ["Acme", "Newco"]}}
    )
    agent = experiment.agent
    names = list(agent.posterior.model.tree.actions)
    found = {name: agent.posterior.model.effects.of_action(i).tolist() for i, name in enumerate(names)}
    assert (found["mate"], found["chai"]) == ([1], [0, 1])
    change(op="add", names=["rooibos"], under="tea", factors={"brand": "Newco"})
    model = experiment.agent.posterior.model
    assert model.effects.of_action(list(model.tree.actions).index("rooibos")).tolist() == [1]
    change(op="add_level", names=["west"], factor="store")
    _, outcomes = rewarded(experiment, {"factors": {"store": "west"}}, {})
    assert experiment.learn(outcomes) == []
    tree = bough.Tree.from_paths(["tea/green", "tea/oolong", "coffee"])
    body = {"gone": "retire", "factors": {"brand": {"tea/oolong": "Zed"}}}
    experiment.apply(ChangeRow(1, 0.0, "tree", "me", body), tree)
    assert "Zed" in experiment.agent.posterior.model.factors["brand"].levels
    with pytest.raises((Problem, ValueError), match="factor is missing"):
        change(op="add_level", names=["x"])
    with pytest.raises((Problem, ValueError), match="goes with the op add"):
        change(op="retire", names=["coffee"], factors={"brand": {"coffee": "Acme"}})
    assert ActionChange(op="add_level", name="x", factor="brand").factor == "brand"
    twin = trial(experiment.agent)
    twin.add_level("brand", "more")
    assert "more" not in experiment.agent.posterior.model.factors["brand"].levels


def test_levels_that_the_log_has_together_are_all_added_or_none():
    experiment = shop()
    body = {"op": "add_level", "names": ["west", "north"], "factor": "store"}
    with pytest.raises(ValueError, match="'store' has a level 'north' already"):
        experiment.apply(ChangeRow(1, 0.0, "action", "me", body))
    assert experiment.agent.posterior.model.factors["store"].levels == ("north", "south")


def test_the_prior_has_a_line_for_each_factor():
    agent = bough.HierTS(model(), seed=0)
    agent.update("coffee", 1.0, factors={"store": "north"})
    found = {one.level: one for one in prior(agent, Traffic()).levels}
    assert (found["brand"].variance, found["brand"].nodes, found["brand"].touched) == (0.5, 1, 1)
    assert (found["store"].share, found["store"].nodes) == (0.0, 2)  # the same for all actions
    assert sum(one.share for one in found.values()) == pytest.approx(1.0)
    assert found["brand"].share == pytest.approx(0.5 * 2 / 3 / (3.0 + 0.5 * 2 / 3))  # two of three have a brand


def test_a_refit_learns_the_variances_of_factors():
    experiment = shop()
    for i in range(40):
        _, outcomes = rewarded(experiment, {"factors": {"store": ("north", "south")[i % 2]}}, {}, now=10.0 * i)
        outcomes[0].value = float(i % 5) + (i % 2)
        experiment.learn(outcomes)
    found = refitted(*evidence_of(experiment.agent, experiment, None))
    assert {"brand", "store"} <= found.estimates.keys()
    assert experiment.agent.posterior.statistics.factors["store"].tolist().count("north") > 0


def test_a_refit_leaves_a_factor_without_levels_as_it_is():
    store = bough.Factor(levels=["north", "south"], variance=0.3, at_decision=True)
    experiment = Experiment(1, "shop", ExperimentConfig(), seed=0)
    factors = {"brand": bough.Factor({}, variance=0.5), "store": store}
    made = bough.GaussianModel(plain().tree, factors=factors)
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), made)
    for i in range(40):
        _, outcomes = rewarded(experiment, {"factors": {"store": ("north", "south")[i % 2]}}, {}, now=10.0 * i)
        outcomes[0].value = float(i % 5) + (i % 2)
        assert experiment.learn(outcomes) == []
    found = refitted(*evidence_of(experiment.agent, experiment, None))
    assert found.estimates["brand"] == [0.5, 0.5, 0.5]
    assert start_of(found.file).factors["brand"].variance == 0.5


def test_a_refit_keeps_the_levels_and_brands_that_came_while_it_ran():
    experiment = shop()
    for i in range(20):
        _, outcomes = rewarded(experiment, {"factors": {"store": ("north", "south")[i % 2]}}, {}, now=10.0 * i)
        outcomes[0].value = float(i % 3)
        experiment.learn(outcomes)
    found = refitted(*evidence_of(experiment.agent, experiment, None))
    for body in (
        {"op": "add_level", "names": ["west"], "factor": "store"},
        {"op": "add_level", "names": ["Newco"], "factor": "brand"},
        {"op": "add", "names": ["mate"], "under": "tea", "factors": {"brand": {"mate": "Newco"}}},
    ):
        experiment.apply(ChangeRow(1, 0.0, "action", "me", body))
    _, outcomes = rewarded(experiment, {"factors": {"store": "west"}}, {})
    experiment.learn(outcomes)
    before = experiment.agent.posterior.n_observations
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 2, "refit": True}), start_of(found.file))
    model = experiment.agent.posterior.model
    assert model.factors["store"].levels == ("north", "south", "west")
    assert model.effects.of_action(list(model.tree.actions).index("mate")).tolist() == [1]
    assert model.factors["brand"].variance == start_of(found.file).factors["brand"].variance
    assert experiment.agent.posterior.n_observations == before


def test_what_was_decided_under_a_model_with_a_store_is_learned_under_one_without():
    experiment = shop()
    row = experiment.decide(Decide(factors={"store": "north"}), now=1.0)
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 2}), plain())
    verdict = experiment.reward(Reward(decision_id=row.id, value=1.0), State(row, []), now=2.0)
    assert experiment.learn(verdict.outcomes) == []
    assert experiment.agent.posterior.n_observations == 1
    taken = experiment.retract(State(row, verdict.outcomes), now=3.0).outcomes
    assert experiment.learn(taken) == []
    assert experiment.agent.posterior.n_observations == 0


def test_all_rewards_of_a_decision_are_at_the_same_levels():
    experiment = shop(learning="at_close", window=60.0)
    row = experiment.decide(Decide(), now=1.0)

    def reward(id, outcomes, **factors):
        asked = Reward(decision_id=row.id, value=1.0, reward_id=id, factors=factors or None)
        return experiment.reward(asked, State(row, outcomes), now=2.0)

    first = reward("a", [], store="north").outcomes
    with pytest.raises(Problem, match="give all rewards of a decision the same factors"):
        reward("b", first, store="south")
    assert reward("a", first, store="north").answer.replayed
    with pytest.raises(Problem, match=r'has this reward at .*"store":'):
        reward("a", first, store="south")
    assert reward("b", first, store="north").outcomes[0].factors == {"store": "north"}


def test_levels_of_decisions_that_requests_cannot_name_are_refused():
    pair = bough.Factor(levels=[("a", 1)], at_decision=True)
    tree = bough.Tree.from_paths(["tea", "coffee"])
    made = Experiment(1, "shop", ExperimentConfig(), seed=0)
    with pytest.raises((Problem, ValueError), match="text and whole numbers"):
        made.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), bough.GaussianModel(tree, factors={"pair": pair}))


def test_a_running_experiment_refuses_a_model_with_names_that_requests_cannot_have(driver):
    pair = bough.Factor(levels=["north", "south", ("north", 1)], variance=0.3, at_decision=True)
    levels = bough.GaussianModel(plain().tree, factors={"store": pair})
    actions = bough.GaussianModel(bough.Tree.from_parents([-1, 0, 0], names=["all", "tea", ("tea", 1)]))
    for odd, message in (
        (levels, r"'store' of the decision has the level \('north', 1\); the service takes text and whole numbers"),
        (actions, r"an action is called \('tea', 1\), a tuple; the service takes text and whole numbers"),
        (bough.HierTS(levels, seed=0), "the service takes text and whole numbers"),
    ):
        with pytest.raises(Problem, match=message) as caught:
            driver.experiment.check(ChangeRow(1, 0.0, "model", "me", {"version": 2}), odd)
        assert caught.value.code == "invalid-value"
    with pytest.raises(Problem, match="the service takes text and whole numbers"):
        driver.put_model(levels)
    assert driver.experiment.model_version == 1


def test_a_decision_whose_action_has_become_a_category_is_still_explained():
    experiment = shop()
    rows = [experiment.decide(Decide(factors={"store": "north"}), now=float(i)) for i in range(50)]
    row = next(row for row in rows if row.actions == ["coffee"])
    assert explained(experiment.agent, row).note.endswith("+0 of the brand 'Acme', +0 of the store 'north'")
    experiment.apply(ChangeRow(1, 0.0, "action", "me", {"op": "add", "names": ["latte"], "under": "coffee"}))
    found = explained(experiment.agent, row)
    assert [node.name for node in found.nodes] == ["", "coffee"]
    assert found.note.endswith("in its score are +0 of the store 'north'")  # a category has no brand


STRANGE = [
    ({"stor": "x", "store": "north"}, "stor", "which is no factor of the decision"),
    ({"brand": "Acme", "store": "north"}, "brand", "'brand' is a factor of the actions, whose levels the model has"),
]


@pytest.mark.parametrize(("factors", "value", "message"), STRANGE)
@pytest.mark.parametrize("made_with", [None, {"store": "north"}])
def test_a_reward_with_factors_that_no_decision_could_have_is_refused(factors, value, message, made_with):
    experiment = shop(window=60.0)
    row = experiment.decide(Decide(factors=made_with), now=1.0)
    for now in (2.0, 1_000.0):  # in time, and late
        with pytest.raises(Problem, match=message) as caught:
            experiment.reward(Reward(decision_id=row.id, value=2.0, factors=factors), State(row, []), now=now)
        assert (caught.value.code, caught.value.value) == ("invalid-value", value)


def test_a_reward_with_factors_is_refused_where_the_model_has_none():
    experiment = Experiment(1, "shop", ExperimentConfig(), seed=0)
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), plain())
    with pytest.raises(Problem, match="and the model has none; leave it out"):
        rewarded(experiment, {}, {"factors": {"store": "north"}})


def test_of_many_rewards_only_those_with_strange_factors_are_refused(driver):
    ids = [driver.decide().decision_id for _ in range(3)]
    given = [{"store": "north"}, *(factors for factors, _, _ in STRANGE)]
    body = Rewards(rewards=[Reward(decision_id=id, value=1.0, factors=one) for id, one in zip(ids, given, strict=True)])
    found = driver.one(HANDLERS["rewards"](Call(driver.service, {}, driver.experiment, body, None, "test")))
    assert [one.status for one in found.results] == ["learned", "refused", "refused"]
    assert [one.problem.value for one in found.results[1:]] == ["stor", "brand"]
    assert [len(state.outcomes) for state in driver.states(*ids)] == [1, 0, 0]


def test_what_the_log_has_of_a_decision_may_be_repeated_after_its_factor_is_gone():
    experiment = shop(learning="at_close", window=60.0)
    without, with_store = (experiment.decide(Decide(factors=one), now=1.0) for one in (None, {"store": "north"}))

    def reward(row, id, outcomes):
        asked = Reward(decision_id=row.id, value=1.0, reward_id=id, factors={"store": "north"})
        return experiment.reward(asked, State(row, outcomes), now=2.0)

    first = reward(without, "a", []).outcomes
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 2}), plain())
    assert reward(without, "a", first).answer.replayed
    for outcomes in (reward(without, "b", first).outcomes, reward(with_store, "a", []).outcomes):
        assert outcomes[0].factors == {"store": "north"}
    with pytest.raises(Problem, match="and the model has none; leave it out"):
        reward(without, "c", [])


def problem_of(call):
    with pytest.raises(Problem) as caught:
        call()
    return caught.value.to_dict()


@pytest.mark.parametrize("config", [{}, {"mode": "observe"}, {"learning": "at_close", "window": 60.0, "default": 0.0}])
def test_the_problem_of_an_unknown_level_names_the_level_and_no_action(config):
    body = '{"op": "add_level", "factor": "store", "name": "west"}'
    remedy = f"it has 'north', 'south'; add a new one by POST .../actions with {body}"
    experiment = shop(**config)
    row = shop().decide(Decide(), now=1.0)
    for call in (
        lambda: experiment.decide(Decide(factors={"store": "west"}, action="coffee"), now=1.0),
        lambda: rewarded(experiment, {"factors": {"store": "west"}, "action": "coffee"}, {}),
        lambda: experiment.reward(
            Reward(decision_id=row.id, value=2.0, factors={"store": "west"}), State(row, []), now=2.0
        ),
    ):
        assert problem_of(call) == {
            "type": "urn:bough:problem:invalid-value",
            "title": "A value cannot be used",
            "status": 422,
            "detail": f"unknown level 'west' of 'store'; {remedy}",
            "value": "west",
            "remedy": remedy,
        }


def test_an_unknown_action_is_still_called_one():
    experiment = shop()
    asked = Decide(among=["mate"], factors={"store": "north"})
    assert problem_of(lambda: experiment.decide(asked, now=1.0))["type"] == "urn:bough:problem:unknown-action"
    row = experiment.decide(Decide(factors={"store": "north"}), now=1.0)
    row.actions = ["mate"]
    found = problem_of(lambda: experiment.reward(Reward(decision_id=row.id, value=1.0), State(row, []), now=2.0))
    assert (found["type"], found["value"]) == ("urn:bough:problem:unknown-action", "mate")


def test_a_level_that_is_missing_is_not_blamed_on_the_reward():
    found = problem_of(lambda: rewarded(shop(), {}, {}))
    assert found["type"] == "urn:bough:problem:invalid-value"
    assert found["detail"].startswith("the levels of 'store' are missing")
    assert "value" not in found


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        ("action", {"op": "add", "names": ["mate"], "under": "tea", "factors": {"brand": "Newco"}}, "Newco"),
        ("action", {"op": "add", "names": ["mate"], "under": "tea", "factors": {"brand": ["Acme", "Newco"]}}, "Newco"),
        (
            "action",
            {"op": "add", "names": ["mate", "chai"], "under": "tea", "factors": {"brand": {"mate": ["Newco"]}}},
            "Newco",
        ),
        ("action", {"op": "add", "names": ["mate"], "under": "tea", "factors": {"brandy": "Acme"}}, "brandy"),
        ("action", {"op": "add_level", "names": ["Newco"], "factor": "brandy"}, "brandy"),
        ("tree", {"gone": "retire", "factors": {"brandy": {"coffee": "Acme"}}}, "brandy"),
    ],
)
def test_a_change_of_the_catalogue_names_the_factor_or_level_that_is_unknown(kind, body, value):
    found = problem_of(lambda: shop().check(ChangeRow(1, 0.0, kind, "me", body), plain().tree))
    assert (found["type"], found["value"]) == ("urn:bough:problem:invalid-value", value)


def test_what_else_is_wrong_with_a_change_of_the_catalogue_is_said_of_itself():
    experiment = shop()
    in_tea = {"op": "add", "names": ["mate"], "under": "tea"}
    for body, code, detail in (
        ({"op": "add", "names": ["mate"], "under": "water"}, "unknown-action", "unknown name 'water'"),
        ({**in_tea, "factors": {"store": "west"}}, "invalid-value", "'store' is a factor of the decision"),
        ({"op": "add_level", "names": ["mate"]}, "invalid-value", "factor is missing"),
        ({"op": "retire", "names": ["mate"]}, "unknown-action", "unknown action 'mate'"),
        ({"op": "retire", "names": ["coffee"], "factors": {"brandy": "x"}}, "invalid-value", "factors is given, which"),
    ):
        found = problem_of(lambda body=body: experiment.check(ChangeRow(1, 0.0, "action", "me", body)))
        assert found["type"] == f"urn:bough:problem:{code}"
        assert found["detail"].startswith(detail)


def test_a_level_that_a_new_model_lacks_is_no_unknown_action():
    experiment = shop()
    row, outcomes = rewarded(experiment, {"factors": {"store": "north"}}, {})
    experiment.learn(outcomes)
    south = bough.Factor(levels=["south"], variance=0.3, at_decision=True)
    fewer = bough.GaussianModel(plain().tree, factors={"store": south})
    found = problem_of(lambda: experiment.check(ChangeRow(1, 0.0, "model", "me", {"version": 2}), fewer))
    assert found["type"] == "urn:bough:problem:invalid-value"
    assert found["detail"].startswith("unknown level 'north' of 'store'")
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 2, "afresh": True}), fewer)
    found = problem_of(lambda: experiment.retract(State(row, outcomes), now=20.0))
    assert (found["type"], found["value"]) == ("urn:bough:problem:invalid-value", "north")
