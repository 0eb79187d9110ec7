"""An experiment as its newest good snapshot has it, or as it began."""

from __future__ import annotations

from typing import Any

from bough.service.access import Events
from bough.service.experiment import Experiment
from bough.service.files import digest_of, start_of
from bough.service.learner import checked_config
from bough.service.log.base import Log
from bough.service.records import ExperimentRow, Position, SnapshotRow
from bough.service.snapshot import Frozen, encode, frozen, thawed
from bough.service.traffic import Traffic


def taken(experiment: Experiment, traffic: Traffic, position: Position) -> tuple[Frozen, dict[str, Any]]:
    """What a snapshot has, all of one moment; quick, since the loop waits for it."""
    assert experiment.agent is not None
    assert experiment.base is not None
    header = {
        "experiment": experiment.id,
        "position": list(position),
        "last_change": list(experiment.last_change),
        "model_version": experiment.model_version,
        "n_learned": experiment.n_learned,
        "config": experiment.config_body(),
        "traffic": traffic.contents(),
    }
    return frozen(experiment.agent, experiment.base), header


def packed(moment: Frozen, header: dict[str, Any]) -> bytes:
    """The bytes of a snapshot."""
    return encode(moment, header)


def restored(log: Log, row: ExperimentRow, seed: Any, events: Events) -> tuple[Experiment, Traffic]:
    """An experiment to be gone on with; a damaged snapshot is passed over, since the log has it all."""
    for snapshot in log.snapshots(row.id):
        try:
            return _thawed(log, row, snapshot, seed)
        except (ValueError, KeyError, OSError) as error:
            events.failed(f"the snapshot at {snapshot.seq} of {row.name} is passed over", error)
    return Experiment(row.id, row.name, checked_config(row.config), seed), Traffic()


def _thawed(log: Log, row: ExperimentRow, snapshot: SnapshotRow, seed: Any) -> tuple[Experiment, Traffic]:
    data = log.snapshot(snapshot)
    if digest_of(data) != snapshot.digest:
        raise ValueError("its digest is another; the file is damaged")
    raise NotImplementedError
