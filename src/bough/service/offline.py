"""A snapshot of an experiment from its log, written beside a running service, or without one."""

from __future__ import annotations

import time

from bough.service.access import Events
from bough.service.experiment import Experiment
from bough.service.files import digest_of
from bough.service.learner import Refused, prune_body
from bough.service.log.base import Log
from bough.service.records import ChangeRow, ExperimentRow, OutcomeRow, Position, Record, SnapshotRow
from bough.service.restore import Restored, restored, taken
from bough.service.tail import Tail

_COUNTED_AT_ONCE = 10_000  # decisions


class _Hearer:
    """One experiment, as the tail is to have it learn."""

    def __init__(self, found: Restored) -> None:
        self._found = found

    def knows(self, id: int) -> bool:  # noqa: ARG002
        return True

    def experiment_of(self, id: int) -> Experiment | None:
        experiment = self._found.experiment
        return experiment if id == experiment.id else None

    def heard(self, records: list[Record], refused: Refused) -> None:  # noqa: ARG002
        own = self._found.experiment.id
        rows = [row for row in records if isinstance(row, OutcomeRow) and row.experiment == own]
        self._found.traffic.note_outcomes(rows, self._found.experiment.config.learning)

    def keys_changed(self) -> None:
        pass


def snapshot(log: Log, row: ExperimentRow) -> tuple[Position, int]:
    """Have a good snapshot hold all that the log has taught.

    Up to where it does, which is nowhere without a model, and how many records were learned from.
    """
    found = restored(log, row, None, Events())
    held = found.experiment.position
    position = _replay(log, found)
    if found.experiment.agent is None or position == held:
        return held, found.experiment.n_learned
    followed = _count_decisions(log, found)
    data = taken(found.experiment, found.traffic, position, followed).packed()
    log.put_snapshot(SnapshotRow(row.id, position.xid, position.seq, digest_of(data), time.time()), data)
    return position, found.experiment.n_learned


def prune(log: Log, row: ExperimentRow, before: float, contexts_only: bool) -> int:
    """Delete contexts, and then rows, behind a snapshot that holds what they taught; how many decisions it were."""
    until, n_learned = snapshot(log, row)
    with log.transaction() as transaction:
        transaction.lock_changes(row.id)
        transaction.add_change(ChangeRow(row.id, time.time(), "prune", "command", prune_body(until, n_learned)))
    n = log.prune(row.id, before, until, contexts_only=True)
    return n if contexts_only else log.prune(row.id, before, until, contexts_only=False)


def _replay(log: Log, found: Restored) -> Position:
    """Have an experiment learn what the log has beyond its snapshot; up to where that is."""
    tail = Tail(log, _Hearer(found), time.time)
    tail.position = found.experiment.position
    tail.replay()
    return tail.position


def _count_decisions(log: Log, found: Restored) -> Position:
    """Count the decisions since the snapshot; up to where that is."""
    followed = found.followed
    while rows := log.decisions_after(found.experiment.id, followed, _COUNTED_AT_ONCE):
        found.traffic.note_decisions([decision for _, decision in rows])
        followed = rows[-1][0]
    return followed
