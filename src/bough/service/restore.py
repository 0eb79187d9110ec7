"""Snapshots of experiments: taken in a moment, and gone on from. A snapshot is only a faster way to the same state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bough.model.model import Model
from bough.policies.thompson import HierTS
from bough.service.access import Events
from bough.service.experiment import Experiment
from bough.service.files import digest_of, start_of
from bough.service.learner import checked_config
from bough.service.log.base import Log
from bough.service.records import ExperimentRow, Position, SnapshotRow
from bough.service.snapshot import Frozen, encode, frozen, peek, thawed
from bough.service.traffic import Sums, Traffic

_ARRAYS: dict[str, tuple[Any, tuple[int | None, ...]]] = {
    "names": (np.uint8, (None,)),
    "decisions": (np.int64, (None,)),
    "span": (np.int64, (None, 2)),
    "sums": (np.float64, (None, len(Sums._fields))),
}
"""What traffic is made of."""


class Taken(NamedTuple):
    """One moment of an experiment."""

    agent: Frozen
    header: dict[str, Any]
    traffic: dict[str, Any]

    def packed(self) -> bytes:
        """The bytes of the snapshot; nobody has to wait for these."""
        return encode(self.agent, self.header, self.traffic)


def taken(experiment: Experiment, traffic: Traffic, position: Position, followed: Position) -> Taken:
    """One moment of an experiment; quick, since the loop waits for it."""
    assert experiment.agent is not None
    assert experiment.base is not None
    said, arrays = traffic.contents()
    header = {**experiment.header, "position": list(position), "traffic": said, "followed": list(followed)}
    return Taken(frozen(experiment.agent, experiment.base), header, arrays)


class Restored(NamedTuple):
    """An experiment to be gone on with."""

    experiment: Experiment
    traffic: Traffic
    followed: Position
    """Up to where the decisions of the experiment are counted in the traffic."""


def restored(log: Log, row: ExperimentRow, seed: Any, events: Events) -> Restored:
    """An experiment to be gone on with; a damaged snapshot is passed over, since the log has it all."""
    for snapshot in log.snapshots(row.id):
        try:
            return _thawed(log, row, snapshot, seed)
        except (ValueError, KeyError, OSError) as error:
            events.failed(f"the snapshot at {snapshot.seq} of {row.name} is passed over", error)
    return Restored(Experiment(row.id, row.name, checked_config(row.config), seed), Traffic(), Position())


def restored_before(log: Log, experiment: Experiment, position: Position) -> Experiment:
    """A second experiment like one, as it was at a position or before."""
    [row] = [row for row in log.experiments() if row.id == experiment.id]
    for snapshot in log.snapshots(row.id):
        if snapshot.position <= position:
            try:
                return _thawed(log, row, snapshot, None).experiment
            except (ValueError, KeyError, OSError):
                continue
    return Experiment(row.id, row.name, checked_config(row.config))


def _thawed(log: Log, row: ExperimentRow, snapshot: SnapshotRow, seed: Any) -> Restored:
    data = log.snapshot(snapshot)
    if digest_of(data) != snapshot.digest:
        raise ValueError("its digest is another; the file is damaged")
    header, arrays = peek(data, _ARRAYS)
    version = header["model_version"]
    [digest] = [model.digest for model in log.models(row.id) if model.version == version]
    start = start_of(log.file(digest))
    base = start if isinstance(start, Model) else start._model
    experiment = Experiment(row.id, row.name, checked_config(header["config"]), seed)
    agent, _ = thawed(data, base, HierTS, seed, **header["options"], half_life=experiment.config.half_life)
    experiment.restore(agent, base, header)
    traffic = Traffic.restored(header["traffic"], arrays)
    return Restored(experiment, traffic, Position(*header["followed"]))
