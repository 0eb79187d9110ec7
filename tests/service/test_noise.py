"""Noise per action in the service: what is decided, learned, replayed and refitted, and what pages show of it."""

import json

import msgspec
import numpy as np
import pytest

import bough
from bough.service.experiment import Experiment
from bough.service.explain import explained
from bough.service.exports import read_events, write_events
from bough.service.files import model_bytes, start_of
from bough.service.log.sqlite import SqliteLog
from bough.service.node_numbers import moment_of
from bough.service.prior_view import prior
from bough.service.problems import Problem
from bough.service.rebuilding import rebuilt
from bough.service.records import ChangeRow, State
from bough.service.refits import evidence_of, refitted
from bough.service.schema import Decide, ExperimentConfig, PriorNumber, Reward
from bough.service.traffic import Traffic
from service_driver import Driver
from service_posterior import difference, moments

TREE = bough.Tree.balanced(8, 2)
LAW = bough.per_action(median=0.3, spread=0.8, floor=1e-3)
MODEL = bough.GaussianModel(TREE, 1.0, bough.by_depth([0.1, 1.0, 0.5]), noise=LAW)
PATHS = ["tea/green", "tea/black", "tea/mint", "coffee/espresso", "coffee/filter"]
STEADY, WILD = "tea/green", "tea/black"
SETTLED = 1e-6


def log(n: int = 2_000):
    rng = np.random.default_rng(0)
    actions = rng.choice(TREE.leaves, n)
    deviation = np.sqrt(MODEL.noise.draw(rng, TREE.n_nodes))
    return actions, MODEL.draw(rng)[actions] + deviation[actions] * rng.standard_normal(n)


def model():
    tree = bough.Tree.from_paths(PATHS)
    return bough.GaussianModel(tree, 1.0, bough.by_depth([0.1, 0.5, 0.5]), noise=bough.per_action(0.5, 1.0, 1e-3))


def shop(**config):
    made = Experiment(1, "shop", ExperimentConfig(**config), seed=0)
    made.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), model())
    return made


@pytest.fixture
def driver(tmp_path):
    made = Driver(lambda: SqliteLog(tmp_path / "data"), model())
    yield made
    made.close()


def value_of(action, rng):
    """A reward: all actions earn 1 on average, and one of them is far noisier than the others."""
    return float(1.0 + (3.0 if action == WILD else 0.1) * rng.standard_normal())


def visit(driver, n, rng, **asked):
    """Decisions with their rewards; their ids."""
    ids = []
    for _ in range(n):
        made = driver.decide(**asked)
        driver.reward(made.decision_id, value_of(made.action, rng))
        ids.append(made.decision_id)
    return ids


def settled(agent):
    """What an agent knows once all of it is refined."""
    agent.posterior.settle()
    return moments(agent)


def noise(agent):
    """What is known of the noise of each action with rewards, by its name."""
    columns = agent.posterior.noise(backend="polars").to_dict(as_series=False)
    rows = zip(*(columns[name] for name in ("median", "low", "high", "observations")), strict=True)
    return dict(zip(columns["name"], rows, strict=True))


# -- decisions and rewards -------------------------------------------------------------------------


def test_rewards_of_decisions_are_learned_as_the_library_learns_them():
    experiment, twin, rng = shop(), bough.HierTS(model()), np.random.default_rng(1)
    for now in range(40):
        row = experiment.decide(Decide(propensity=now == 0), now=float(now))
        value = value_of(row.actions[0], rng)
        outcomes = experiment.reward(Reward(row.id, value), State(row, []), now=now + 0.5).outcomes
        assert experiment.learn(outcomes) == []
        twin.update(row.actions[0], value)
    assert difference(moments(experiment.agent), moments(twin)) < 1e-12
    assert noise(experiment.agent) == noise(twin)


def test_a_decision_has_a_propensity_an_order_and_only_what_was_offered():
    experiment = shop()
    experiment.agent.update([STEADY] * 4 + [WILD] * 4, [1.0, 1.1, 0.9, 1.0, 4.0, -2.0, 3.5, -1.5])
    row = experiment.decide(Decide(propensity=True), now=1.0)
    assert 0.0 < row.propensity[0] < 1.0
    slate = experiment.decide(Decide(k=4, exclude=[STEADY]), now=2.0).actions
    assert sorted(slate) == sorted(set(PATHS) - {STEADY})
    assert experiment.decide(Decide(among=[WILD]), now=3.0).actions == [WILD]


@pytest.mark.parametrize("config", [{}, {"learning": "at_close", "window": 60.0, "default": 0.0}])
def test_a_reward_that_no_noise_could_explain_is_refused_and_changes_nothing(config):
    experiment = shop(**config)
    row = experiment.decide(Decide(), now=1.0)
    for asked in (Reward(row.id, 1e300), Reward(row.id, 1.0, trials=2.0), Reward(row.id, 1.0, exposure=2.0)):
        with pytest.raises(Problem) as caught:
            experiment.reward(asked, State(row, []), now=2.0)
        assert caught.value.code == "invalid-value"
    assert experiment.agent.posterior.n_observations == 0


def test_many_outcomes_at_once_and_a_retraction_end_where_single_ones_do():
    experiment, one_by_one, rng = shop(), shop(), np.random.default_rng(2)
    outcomes = []
    for now in range(80):
        row = experiment.decide(Decide(), now=float(now))
        asked = Reward(row.id, value_of(row.actions[0], rng))
        outcomes += experiment.reward(asked, State(row, []), now=now + 0.5).outcomes
    assert experiment._learn_together(outcomes) == []
    assert one_by_one._learn_each(outcomes) == []
    assert difference(settled(experiment.agent), settled(one_by_one.agent)) < SETTLED
    before, known = moments(experiment.agent), noise(experiment.agent)
    row = experiment.decide(Decide(among=[WILD]), now=100.0)
    made = experiment.reward(Reward(row.id, 9.0), State(row, []), now=101.0).outcomes
    assert experiment.learn(made) == []
    assert noise(experiment.agent)[WILD] > known[WILD]
    assert experiment.learn(experiment.retract(State(row, made), now=102.0).outcomes) == []
    assert difference(settled(experiment.agent), before) < SETTLED
    assert noise(experiment.agent)[WILD] == pytest.approx(known[WILD], rel=SETTLED)


# -- ends and beginnings ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["crash", "stop", "snapshot"])
def test_a_restart_goes_on_with_the_same_posterior_refined(driver, how):
    """A single reward refines what its own action says, and not what others of its category say in its light.

    So what a service knows just before it ends depends a little on the order of the rewards, by a few hundredths here.
    One that starts again refines all of it, and so does `settle`: after that the two are the same.
    """
    rng = np.random.default_rng(3)
    visit(driver, 30, rng)
    if how == "snapshot":
        driver.snapshot()
        visit(driver, 10, rng)
    ended = driver.experiment.ready_agent()
    driver.restart(gracefully=how == "stop")
    agent = driver.experiment.ready_agent()
    assert 0.0 < difference(moments(agent), moments(ended)) < 0.1
    assert difference(moments(agent), settled(ended)) < SETTLED
    assert noise(agent).keys() == noise(ended).keys()
    for name, found in noise(agent).items():
        assert found == pytest.approx(noise(ended)[name], rel=1e-5)
    assert agent.posterior.model.noise == model().noise


def test_a_restart_after_a_refit_has_the_noise_that_was_learned_and_its_intervals(driver):
    visit(driver, 60, np.random.default_rng(4))
    experiment = driver.experiment
    found = refitted(*evidence_of(experiment.ready_agent(), experiment, driver.service.log))
    driver.put_model(start_of(found.file), refit=True, estimates=found.estimates)
    learned = driver.experiment.ready_agent().posterior.model.noise
    assert learned == start_of(found.file).noise != model().noise
    for how in (None, False, True):
        if how is not None:
            driver.restart(gracefully=how)
        experiment = driver.experiment
        view = prior(experiment.ready_agent(), driver.service.traffic[experiment.id])
        assert experiment.ready_agent().posterior.model.noise == learned
        for number, name in ((view.noise.median, "noise"), (view.noise.spread, "noise spread")):
            assert [number.value, number.low, number.high] == pytest.approx(found.estimates[name])
            assert number.low < number.value < number.high


def test_events_that_are_exported_are_rebuilt_into_the_same_agent(driver, tmp_path):
    ids = visit(driver, 40, np.random.default_rng(5))
    driver.one(driver.touching("retract", ids[7]))
    driver.one(driver.changing("retire", "tea/mint"))
    files = {}
    write_events(tmp_path / "events.ndjson", driver.service.log, driver.experiment.id)
    found = rebuilt(list(read_events(tmp_path / "events.ndjson", files)), files, seed=0)
    assert (found.learned, found.refused, found.agent.retired) == (41, [], ["tea/mint"])
    assert found.agent.posterior.model.noise == model().noise
    agent = driver.experiment.ready_agent()
    assert difference(moments(found.agent), settled(agent)) < SETTLED
    assert noise(found.agent).keys() == noise(agent).keys()


# -- the catalogue ---------------------------------------------------------------------------------


def test_the_catalogue_changes_and_noise_stays_with_its_actions(driver):
    visit(driver, 30, np.random.default_rng(6), among=[STEADY, WILD, "coffee/filter"])
    known = noise(driver.experiment.ready_agent())
    driver.one(driver.changing("add", ["tea/white"], "tea"))
    driver.one(driver.changing("move", WILD, "coffee"))
    driver.one(driver.changing("retire", "coffee/filter"))
    driver.one(driver.changing("forget", STEADY))
    agent = driver.experiment.ready_agent()
    assert noise(agent).keys() == {WILD, "coffee/filter"}
    assert noise(agent)[WILD][-1] == known[WILD][-1]
    assert noise(agent)[WILD][0] == pytest.approx(known[WILD][0], rel=0.2)  # what others say of its mean is another now
    assert (agent.posterior.model.noise, agent.retired) == (model().noise, ["coffee/filter"])
    chosen = {driver.decide().action for _ in range(60)}
    assert "coffee/filter" not in chosen
    driver.one(driver.changing("restore", "coffee/filter"))
    visit(driver, 6, np.random.default_rng(7), among=["tea/white"])
    assert noise(agent)["tea/white"][-1] == 6
    before = settled(agent)
    driver.restart()
    assert difference(moments(driver.experiment.ready_agent()), before) < SETTLED


# -- what pages show -------------------------------------------------------------------------------


def test_a_decision_is_explained_by_means_and_intervals_that_know_the_noise():
    experiment = shop()
    experiment.agent.update([STEADY] * 8 + [WILD] * 8, [1.0, 1.1, 0.9, 1.0] * 2 + [4.0, -2.0, 3.5, -1.5] * 2)
    row = experiment.decide(Decide(among=[STEADY]), now=1.0)
    found = explained(experiment.agent, row)
    node = found.nodes[-1]
    [wild] = [one for one in node.beside if one.name == WILD]
    assert (node.name, node.observations, len(found.nodes)) == (STEADY, 8, 3)
    assert node.high - node.low < 0.5 < wild.high - wild.low
    assert node.observed_mean == pytest.approx(1.0)
    assert found.gain_left >= 0.0
    assert found.drawn is not None
    msgspec.json.encode(found)


def test_a_refit_keeps_noise_per_action_and_learns_its_law():
    found = refitted(model_bytes(MODEL), bough.Statistics.from_rows(*log()), "depth")
    model = start_of(found.file)
    assert abs(np.log(model.noise.median / 0.3)) < 0.5
    assert 0.4 < model.noise.spread < 1.3
    assert list(found.estimates) == ["depth 0", "depth 1", "depth 2", "noise", "noise spread", "noise floor"]
    assert [found.estimates[name][0] for name in ("noise", "noise spread", "noise floor")] == list(model.noise)


def test_the_prior_has_the_law_of_the_noise_with_intervals_after_a_refit():
    agent, traffic = bough.HierTS(MODEL, seed=0), Traffic()
    view = prior(agent, traffic)
    assert view.noise_variance is None
    numbers = [view.noise.median, view.noise.spread, view.noise.floor]
    assert numbers == [PriorNumber(one, None, None) for one in LAW]
    estimates = {"noise": [0.3, 0.25, 0.4], "noise spread": [0.8, 0.7, 0.9], "noise floor": [1e-3, 1e-3, 1e-3]}
    change = ChangeRow(1, 9.0, "model", "me", {"version": 2, "refit": True, "estimates": estimates}, seq=2)
    traffic.history.note_change(change)
    view = prior(agent, traffic)
    numbers = [view.noise.median, view.noise.spread, view.noise.floor]
    assert numbers == [PriorNumber(*estimates[name]) for name in estimates]
    assert prior(bough.HierTS(bough.GaussianModel(TREE), seed=0), traffic).noise is None


def test_pages_have_numbers_that_json_can_say():
    agent = bough.HierTS(MODEL, seed=0)
    agent.update(*log(100))
    view = prior(agent, Traffic())
    json.dumps(msgspec.to_builtins(view), allow_nan=False)
    with moment_of(agent, Traffic()) as moment:
        numbers = moment.numbers(np.arange(5, dtype=np.int32))
    assert (numbers.low < numbers.mean).all()
    assert (numbers.mean < numbers.high).all()
