"""The state machine of an experiment: what becomes of decisions and rewards, whatever the database and the clock."""

from __future__ import annotations

from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest

import bough
from bough.service.experiment import Experiment, Verdict
from bough.service.problems import Problem
from bough.service.records import CLOSE, ChangeRow, DecisionRow, State
from bough.service.schema import Decide, ExperimentConfig, Reward

TREE = bough.Tree.from_paths(["home/kettle", "home/spade", "food/tea", "food/cake"])
WINDOWED = ExperimentConfig(learning="at_close", window=60.0, default=0.0)


def begun(model: Any = None, config: ExperimentConfig | None = None) -> Experiment:
    """An experiment with a model."""
    experiment = Experiment(1, "shop", config or ExperimentConfig(), seed=0)
    model = bough.GaussianModel(TREE) if model is None else model
    experiment.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}, seq=1), model)
    return experiment


class Desk:
    """One decision after another, with what came of it, and a log that gives out numbers."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.seq = experiment, 100
        self.states: dict[str, State] = {}

    def decide(self, now: float = 0.0, **asked: Any) -> DecisionRow:
        row = self.experiment.decide(Decide(**asked), now)
        self.states[row.id] = State(row, [])
        return row

    def log(self, id: str, verdict: Verdict) -> Any:
        for row in verdict.outcomes:
            self.seq += 1
            row.seq = self.seq
        self.states[id].outcomes.extend(verdict.outcomes)
        assert self.experiment.learn(verdict.outcomes) == []
        return verdict.answer

    def reward(self, id: str, value: float, now: float = 1.0, **asked: Any) -> Any:
        request = Reward(decision_id=id, value=value, **asked)
        return self.log(id, self.experiment.reward(request, self.states[id], now))

    def touch(self, id: str, what: str, now: float = 1.0) -> Any:
        return self.log(id, getattr(self.experiment, what)(self.states[id], now))

    @property
    def n(self) -> int:
        assert self.experiment.agent is not None
        return self.experiment.agent.posterior.n_observations


@pytest.fixture
def desk() -> Desk:
    return Desk(begun())


def code_of(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(Problem) as found:
        call(*arguments, **named)
    assert found.value.remedy
    return found.value.code


def test_a_reward_is_learned_at_once_and_once(desk: Desk) -> None:
    row = desk.decide()
    assert desk.reward(row.id, 1.0).status == "learned"
    again = desk.reward(row.id, 1.0)
    assert (again.status, again.replayed, desk.n) == ("learned", True, 1)
    assert code_of(desk.reward, row.id, 2.0) == "same-id"
    assert desk.n == 1


def test_several_rewards_are_refused_where_learning_is_at_once(desk: Desk) -> None:
    row = desk.decide()
    desk.reward(row.id, 1.0, reward_id="a")
    assert desk.reward(row.id, 1.0, reward_id="a").replayed
    assert code_of(desk.reward, row.id, 1.0, reward_id="b") == "wrong-state"
    assert code_of(desk.reward, row.id, 1.0) == "wrong-state"


def test_each_slot_of_a_slate_has_a_reward_of_its_own(desk: Desk) -> None:
    row = desk.decide(k=3)
    for slot in (2, 0):
        assert desk.reward(row.id, float(slot), slot=slot).status == "learned"
    assert code_of(lambda: desk.reward(row.id, 1.0, slot=3)) == "invalid-value"
    assert [one.action for one in desk.states[row.id].outcomes] == [row.actions[2], row.actions[0]]


def test_rewards_add_up_to_one_observation_when_the_window_closes() -> None:
    desk = Desk(begun(config=WINDOWED))
    row = desk.decide(now=0.0)
    assert [desk.reward(row.id, v, now=5.0, reward_id=i).status for i, v in (("a", 1.0), ("b", 2.0))] == ["open"] * 2
    assert desk.n == 0
    assert desk.touch(row.id, "close", now=59.0) is None
    assert desk.n == 0
    desk.touch(row.id, "close", now=60.0)
    [closed] = [one for one in desk.states[row.id].outcomes if one.id == CLOSE]
    assert (closed.kind, closed.value, closed.learn, closed.earned, desk.n) == ("closed", 3.0, True, 0.0, 1)
    desk.touch(row.id, "close", now=61.0)
    assert desk.n == 1
    assert desk.reward(row.id, 1.0, now=62.0, reward_id="c").status == "late"
    assert desk.n == 1


def test_a_decision_without_a_reward_gets_the_default_and_with_late_ones_too() -> None:
    desk = Desk(begun(bough.BernoulliModel(TREE), WINDOWED))
    row = desk.decide(now=0.0)
    assert desk.reward(row.id, 1.0, now=60.5).status == "late"
    desk.touch(row.id, "close", now=61.0)
    assert [one.kind for one in desk.states[row.id].outcomes] == ["late", "default"]
    assert desk.n == 1


def test_two_clicks_of_one_decision_are_refused_before_they_are_logged() -> None:
    desk = Desk(begun(bough.BernoulliModel(TREE), WINDOWED))
    row = desk.decide(now=0.0)
    desk.reward(row.id, 1.0, reward_id="a")
    assert code_of(desk.reward, row.id, 1.0, reward_id="b") == "invalid-value"


def test_a_deferred_decision_waits_and_its_window_begins_when_it_is_activated() -> None:
    desk = Desk(begun(config=WINDOWED))
    row = desk.decide(now=0.0, defer=True)
    assert (row.active, row.closes) == (None, None)
    assert code_of(desk.reward, row.id, 1.0) == "wrong-state"
    desk.touch(row.id, "close", now=1e6)
    assert desk.touch(row.id, "activate", now=100.0).replayed is False
    assert desk.touch(row.id, "activate", now=110.0).replayed is True
    assert row.closes == 160.0
    desk.touch(row.id, "close", now=160.0)
    assert desk.n == 1


def test_a_cancelled_decision_teaches_nothing() -> None:
    desk = Desk(begun(config=WINDOWED))
    row = desk.decide()
    desk.reward(row.id, 1.0)
    assert desk.touch(row.id, "cancel").replayed is False
    assert desk.touch(row.id, "cancel").replayed is True
    desk.touch(row.id, "close", now=1e6)
    assert desk.n == 0
    assert code_of(desk.touch, row.id, "activate") == "wrong-state"


def test_what_was_learned_cannot_be_cancelled_but_taken_back(desk: Desk) -> None:
    row = desk.decide()
    assert code_of(desk.touch, row.id, "retract") == "wrong-state"
    desk.reward(row.id, 1.0)
    assert code_of(desk.touch, row.id, "cancel") == "wrong-state"
    assert desk.touch(row.id, "retract").status == "retracted"
    assert desk.n == 0
    assert desk.touch(row.id, "retract").replayed


def test_what_the_model_refuses_never_becomes_an_outcome(desk: Desk) -> None:
    row = desk.decide()
    assert code_of_value(desk, row.id, 1e308) == "invalid-value"
    assert code_of(desk.reward, row.id, 1.0, trials=3.0) == "invalid-value"
    assert desk.states[row.id].outcomes == []


def code_of_value(desk: Desk, id: str, value: float) -> str:
    with pytest.raises(Problem) as found:
        desk.reward(id, value)
    return found.value.code


def test_the_same_request_gets_the_same_answer_and_another_one_a_problem(desk: Desk) -> None:
    asked = Decide(decision_id="d1", among=["home/kettle", "food/tea"])
    row = desk.experiment.decide(asked, 0.0)
    answer = desk.experiment.answer(row, asked, True)
    assert (answer.action, answer.replayed) == (row.actions[0], True)
    assert code_of(desk.experiment.answer, row, Decide(decision_id="d1"), True) == "same-id"


def test_a_reward_that_came_in_time_and_is_judged_after_its_window_was_closed_is_late() -> None:
    desk = Desk(begun(config=ExperimentConfig(learning="at_close", window=60.0)))
    row = desk.decide(now=0.0)
    desk.touch(row.id, "close", now=60.0)  # on a machine whose clock is ahead, or while the reward waited its turn
    assert desk.states[row.id].outcomes == []
    assert desk.reward(row.id, 1.0, now=59.9).status == "late"


def test_a_decision_whose_commit_was_tried_twice_is_answered_also_where_its_id_was_made_here() -> None:
    experiment, asked = begun(), Decide(k=2)
    row = experiment.decide(asked, 0.0)
    assert experiment.answer(row, asked, True).actions == row.actions
    with pytest.raises(Problem, match="another body"):
        experiment.answer(row, Decide(k=2, decision_id=row.id), True)


@pytest.mark.parametrize("n", [3, 100], ids=["one by one", "together"])
def test_a_row_that_nobody_thought_of_is_refused_and_the_others_are_learned(n: int) -> None:
    desk = Desk(begun())
    row = desk.decide()
    good = desk.experiment.reward(Reward(decision_id=row.id, value=1.0), desk.states[row.id], 1.0).outcomes[0]
    rows = [msgspec.structs.replace(good, seq=200 + i, value=13.0 if i == 1 else 1.0) for i in range(n)]
    agent = desk.experiment.ready_agent()
    update = agent.update

    def faulty(action: Any, value: Any, *more: Any, **named: Any) -> None:
        if np.any(np.equal(value, 13.0)):
            raise TypeError("this was never to happen")
        update(action, value, *more, **named)

    with mock.patch.object(agent, "update", faulty):
        assert desk.experiment.learn(rows) == [((0, 201), "this was never to happen")]
    assert desk.n == n - 1


def test_a_frozen_experiment_logs_and_does_not_learn() -> None:
    desk = Desk(begun(config=ExperimentConfig(mode="frozen")))
    row = desk.decide()
    assert desk.reward(row.id, 1.0).status == "logged"
    assert desk.n == 0


def test_an_apprentice_takes_the_callers_action_and_learns_from_it() -> None:
    desk = Desk(begun(config=ExperimentConfig(mode="observe")))
    assert code_of(desk.decide) == "invalid-value"
    row = desk.decide(action="food/cake")
    answer = desk.experiment.answer(row, Decide(action="food/cake"), False)
    assert answer.action == "food/cake"
    assert answer.suggested in TREE.actions
    assert desk.reward(row.id, 1.0).status == "learned"
    assert code_of_unknown(desk) == "unknown-action"


@pytest.mark.parametrize("mode", ["learn", "frozen"])
def test_the_callers_action_is_refused_where_the_service_chooses(mode: Any) -> None:
    desk = Desk(begun(config=ExperimentConfig(mode=mode)))
    with pytest.raises(Problem, match=f"'food/cake', and the service chooses, since the mode is {mode}") as found:
        desk.decide(action="food/cake")
    assert (found.value.code, found.value.remedy) == ("invalid-value", "leave it out, or set the mode to observe")
    assert desk.decide()


def code_of_unknown(desk: Desk) -> str:
    with pytest.raises(Problem) as found:
        desk.decide(action="food/soup")
    return found.value.code


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"learning": "at_close"}, "window"),
        ({"default": 0.0}, "at_close"),
        ({"window": 60.0, "default": 0.0}, "at_close"),
        ({"window": -1.0}, ">"),
        ({"mode": "asleep"}, "mode"),
        ({"half_life": 0.0}, ">"),
    ],
)
def test_configurations_that_make_no_sense_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError), match=words):
        msgspec.convert(given, ExperimentConfig)


def test_changes_are_tried_on_a_copy_and_made_when_they_are_read(desk: Desk) -> None:
    def change(op: str, names: list[str], under: str | None = None) -> ChangeRow:
        return ChangeRow(1, 0.0, "action", "me", {"op": op, "names": names, "under": under}, seq=200)

    add = change("add", ["food/soup"], "food")
    desk.experiment.check(add)
    assert desk.experiment.agent is not None
    assert desk.experiment.agent._catalogue.n_actions == 4
    desk.experiment.apply(add)
    assert desk.experiment.agent._catalogue.n_actions == 5
    assert code_of(desk.experiment.check, add) == "invalid-value"
    for wrong in (change("add", ["x"], "nowhere"), change("retire", ["nothing"])):
        with pytest.raises(Problem):
            desk.experiment.check(wrong)
    desk.experiment.apply(change("retire", ["food/soup"]))
    assert desk.experiment.agent.retired == ["food/soup"]


def test_rewards_fade_by_the_ticks_of_the_log() -> None:
    model = bough.GaussianModel(TREE)
    desk = Desk(begun(model, ExperimentConfig(half_life=100.0)))
    row = desk.decide(now=1_000.0)
    desk.reward(row.id, 2.0, now=1_050.0)
    desk.experiment.apply(ChangeRow(1, 0.0, "tick", "keeper", {"now": 1_100.0}, seq=300))
    mirror = bough.Posterior(model, half_life=100.0)
    mirror.update(row.actions[0], 2.0, at=1_000.0)
    mirror.now = 1_100.0
    assert desk.experiment.agent is not None
    np.testing.assert_allclose(desk.experiment.agent.posterior.mean, mirror.mean, rtol=1e-12)


def test_a_model_that_drifts_is_refused_with_the_reason() -> None:
    experiment = Experiment(1, "shop", ExperimentConfig())
    model = bough.GaussianModel(TREE, drift=30.0)
    with pytest.raises(Problem, match="out of order"):
        experiment.check(ChangeRow(1, 0.0, "model", "me", {"version": 1}), model)


@pytest.mark.parametrize("n", [3, 500])
def test_one_row_that_cannot_be_learned_keeps_no_other_from_being_learned(n: int) -> None:
    desk = Desk(begun())
    rows = []
    for i in range(n):
        row = desk.experiment.decide(Decide(), 0.0)
        [outcome] = desk.experiment.reward(Reward(decision_id=row.id, value=1.0), State(row, []), 1.0).outcomes
        outcome.seq = 10 + i
        rows.append(outcome)
    rows[1].action = "food/soup"
    rows[2].value = 1e308
    refused = desk.experiment.learn(rows)
    assert [position.seq for position, _ in refused] == [11, 12]
    assert desk.n == n - 2
    assert desk.experiment.position.seq == 9 + n


def test_rows_that_were_deleted_and_that_no_snapshot_holds_are_missed(desk: Desk) -> None:
    row = desk.decide()
    desk.reward(row.id, 1.0)
    desk.experiment.apply(ChangeRow(1, 0.0, "prune", "keeper", {"until": [0, 101], "n_learned": 1}, seq=200))
    with pytest.raises(ValueError, match="no good snapshot holds them"):
        begun().apply(ChangeRow(1, 0.0, "prune", "keeper", {"until": [0, 101], "n_learned": 1}, seq=200))
