"""Propensities that are filled in later, from what the model knew when the decisions were made.

A decision says which records of the log its model had learned from. A second agent, the shadow, follows the log behind
the first one: it stops where each decision was made, and says how likely that was.
"""

from __future__ import annotations

from bough.service.experiment import Experiment
from bough.service.files import file_of
from bough.service.log.base import Log
from bough.service.problems import Problem
from bough.service.records import ChangeRow, DecisionRow, Key, Position
from bough.service.restore import restored_before

_UNKNOWN: list[float] = []
"""What is filled in where it cannot be known any more: the catalogue, or what was deleted, does not allow it."""


class Shadow:
    """The agent of an experiment as it was, at one place in the log after another."""

    def __init__(self, log: Log, experiment: Experiment) -> None:
        self._log, self._of = log, experiment
        self._agent: Experiment | None = None

    def fill_in(self, limit: int) -> list[tuple[Key, list[float]]]:
        """Propensities of the next decisions that have none."""
        return [(row.key, self._propensity(row)) for row in self._log.without_propensity(self._of.id, limit)]

    def _propensity(self, row: DecisionRow) -> list[float]:
        if row.mode == "observe":  # the action was the caller's own
            return _UNKNOWN
        position = Position(row.learned_xid, row.learned_seq)
        shadow = self._at(position)
        offered = row.offered or {}
        try:
            agent = shadow.ready_agent()
            found = agent.propensity(
                row.actions,
                row.context,
                k=offered.get("k"),
                among=offered.get("among"),
                exclude=offered.get("exclude"),
                samples=shadow.config.samples,
                factors=row.factors,
            )
        except (ValueError, KeyError, Problem):
            return _UNKNOWN
        return [float(one) for one in found.probability]

    def _at(self, position: Position) -> Experiment:
        """The experiment as it was when the log had been learned up to a position."""
        if self._agent is None or self._agent.position > position:
            self._agent = restored_before(self._log, self._of, position)
        shadow = self._agent
        outcomes = []
        for record in self._log.records(self._of.id, shadow.position, position):
            if not isinstance(record, ChangeRow):
                outcomes.append(record)
                continue
            shadow.learn(outcomes)
            outcomes = []
            self._apply(shadow, record)
        shadow.learn(outcomes)
        return shadow

    def _apply(self, shadow: Experiment, change: ChangeRow) -> None:
        digest = change.body.get("digest")
        try:
            shadow.apply(change, None if digest is None else file_of(change.kind, self._log.file(digest)))
        except (ValueError, KeyError, Problem):  # as it was when the first agent read it
            return
