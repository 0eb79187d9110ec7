"""Snapshots of experiments: taken in a moment, and gone on from. A snapshot is only a faster way to the same state."""

from __future__ import annotations

from typing import Any

from bough.model.model import Model
from bough.policies.thompson import HierTS
from bough.service.access import Events
from bough.service.experiment import Experiment
from bough.service.files import digest_of, start_of
from bough.service.learner import checked_config
from bough.service.log.base import Log
from bough.service.records import ExperimentRow, Position, SnapshotRow
from bough.service.snapshot import Frozen, frozen, peek, thawed
from bough.service.traffic import Traffic


def taken(experiment: Experiment, traffic: Traffic, position: Position) -> tuple[Frozen, dict[str, Any]]:
    """What a snapshot has, all of one moment; quick, since the loop waits for it."""
    assert experiment.agent is not None
    assert experiment.base is not None
    header = {**experiment.header, "position": list(position), "traffic": traffic.contents()}
    return frozen(experiment.agent, experiment.base), header


def restored(log: Log, row: ExperimentRow, seed: Any, events: Events) -> tuple[Experiment, Traffic]:
    """An experiment to be gone on with; a damaged snapshot is passed over, since the log has it all."""
    for snapshot in log.snapshots(row.id):
        try:
            return _thawed(log, row, snapshot, seed)
        except (ValueError, KeyError, OSError) as error:
            events.failed(f"the snapshot at {snapshot.seq} of {row.name} is passed over", error)
    return Experiment(row.id, row.name, checked_config(row.config), seed), Traffic()


def restored_before(log: Log, experiment: Experiment, position: Position) -> Experiment:
    """A second experiment like one, as it was at a position or before."""
    [row] = [row for row in log.experiments() if row.id == experiment.id]
    for snapshot in log.snapshots(row.id):
        if snapshot.position <= position:
            try:
                return _thawed(log, row, snapshot, None)[0]
            except (ValueError, KeyError, OSError):
                continue
    return Experiment(row.id, row.name, checked_config(row.config))


def _thawed(log: Log, row: ExperimentRow, snapshot: SnapshotRow, seed: Any) -> tuple[Experiment, Traffic]:
    data = log.snapshot(snapshot)
    if digest_of(data) != snapshot.digest:
        raise ValueError("its digest is another; the file is damaged")
    header = peek(data)
    version = header["model_version"]
    [digest] = [model.digest for model in log.models(row.id) if model.version == version]
    start = start_of(log.file(digest))
    base = start if isinstance(start, Model) else start._model
    experiment = Experiment(row.id, row.name, checked_config(header["config"]), seed)
    agent, _ = thawed(data, base, HierTS, seed, **header["options"], half_life=experiment.config.half_life)
    experiment.restore(agent, base, header)
    return experiment, Traffic.restored(header["traffic"])
