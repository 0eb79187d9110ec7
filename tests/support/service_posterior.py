"""The posterior of a service beside the library's, fed with what the log has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import bough
from bough.service.records import OutcomeRow, Record
from service_process import ServiceProcess

Moments = dict[Any, tuple[float, float]]
"""The mean and the deviation of each action's mean reward."""


def feed(agent: bough.HierTS, records: Iterable[Record], timed: bool = False) -> bough.HierTS:
    """The agent, after all that is to be learned of the records of an experiment without changes."""
    for row in records:
        if isinstance(row, OutcomeRow) and row.learn:
            call = agent.retract if row.kind == "retracted" else agent.update
            at = row.earned if timed else None
            call(row.action, row.value, row.context, trials=row.trials, exposure=row.exposure, at=at)
    return agent


def moments(agent: bough.HierTS, context: Any = None) -> Moments:
    """What the library has, of scores."""
    posterior = agent.posterior
    means, variances = posterior.action_moments(context)
    pairs = zip(means.tolist(), np.sqrt(variances).tolist(), strict=True)
    return dict(zip(posterior.model.tree.actions, pairs, strict=True))


def served_moments(process: ServiceProcess, experiment: str) -> Moments:
    """What a service says, of all actions that are not retired."""
    answer = process.ask("GET", f"/v1/{experiment}/top?k=1000")
    assert answer.status == 200, answer
    return {node["name"]: (node["mean"], node["deviation"]) for node in answer.body["nodes"]}


def difference(one: Moments, other: Moments) -> float:
    """How far two are apart at most; infinitely far where they are not of the same actions."""
    if one.keys() != other.keys():
        return float("inf")
    return max(float(np.max(np.abs(np.subtract(one[name], other[name])))) for name in one)
