"""The present policy, judged by the decisions in the log that have propensities and rewards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bough._frames import make_frame
from bough.evaluation.evaluate import evaluate
from bough.service.experiment import Experiment
from bough.service.log.base import Log
from bough.service.problems import Problem, refused
from bough.service.records import DecisionRow, OutcomeRow, Position, State
from bough.service.schema import Estimate, EvaluateBody, Evaluation
from bough.service.trials import trial

_PIECE = 10_000  # decisions that are read at once


def judged(log: Log, experiment: Experiment, asked: EvaluateBody) -> Evaluation:
    """What the present policy would have earned per decision; for a thread, since it takes long."""
    agent = trial(experiment.ready_agent())
    rows = list(_usable(log, experiment, asked))
    if not rows:
        raise Problem(
            "conflict",
            "no decision has both a propensity and a reward; set propensity to always or later, and wait for rewards",
            remedy="set propensity to always or later, and wait for rewards",
        )
    columns: dict[str, list[Any]] = {
        "action": [decision.actions[0] for decision, _ in rows],
        "reward": [outcome.value for _, outcome in rows],
        "propensity": [decision.propensity[0] for decision, _ in rows if decision.propensity],
    }
    context = None
    if not agent._model.is_scalar:
        context, columns["context"] = "context", [decision.context for decision, _ in rows]
    try:
        frame = make_frame(columns)
    except ValueError as error:  # there is no library of frames
        raise refused(error, "not-installed") from None
    try:
        found = evaluate(
            {"present": agent},
            frame,
            agent.posterior.model.tree,
            context=context,
            estimators=asked.estimators or ("snips", "dr"),
            bad="skip-most",
        )
    except (ValueError, KeyError) as error:
        raise refused(error, "conflict") from None
    estimates = [
        Estimate(one.estimator, one.value, one.low, one.high, one.lift, one.lift_low, one.lift_high)
        for one in found.values
    ]
    diagnostics = found.diagnostics
    notes = [*found.notes, *diagnostics.problems]
    return Evaluation(found.n_rows, found.logged_value, estimates, diagnostics["present"].is_usable, notes)


def _usable(log: Log, experiment: Experiment, asked: EvaluateBody) -> Iterator[tuple[DecisionRow, OutcomeRow]]:
    """Decisions for one action that have a propensity, with what was learned from each."""
    position = Position()
    while True:
        found = log.decisions_after(experiment.id, position, _PIECE)
        if not found:
            return
        position = found[-1][0]
        wanted = [row for _, row in found if _is_wanted(row, asked)]
        states = log.states([row.key for row in wanted])
        for row in wanted:
            outcome = _learned(states.get(row.key))
            if outcome is not None:
                yield row, outcome


def _is_wanted(row: DecisionRow, asked: EvaluateBody) -> bool:
    if asked.since is not None and row.at < asked.since:
        return False
    if asked.until is not None and row.at >= asked.until:
        return False
    return len(row.actions) == 1 and bool(row.propensity) and row.mode != "observe"


def _learned(state: State | None) -> OutcomeRow | None:
    if state is None or any(row.kind == "retracted" for row in state.outcomes):
        return None
    return next((row for row in state.outcomes if row.learn), None)
