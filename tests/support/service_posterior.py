"""The posterior of a service beside the library's, fed with what the service exports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import bough
from bough.service.exports import read_events, write_events
from bough.service.files import start_of, tree_of
from bough.service.log.base import Log
from bough.service.records import ChangeRow, OutcomeRow, Record
from service_process import ServiceProcess

Moments = dict[Any, tuple[float, float]]
"""The mean and the deviation of each action's score."""


def library(log: Log, experiment: int, folder: Path, half_life: float | None = None) -> bough.HierTS:
    """The library's agent, fed with the export of an experiment."""
    path, files = folder / f"export-{experiment}.ndjson", dict[str, bytes]()
    write_events(path, log, experiment)
    return fed(read_events(path, files), files, half_life)


def fed(records: Iterable[Record], files: dict[str, bytes], half_life: float | None = None) -> bough.HierTS:
    """The library's agent after all that records say, by what anybody can call.

    Clicks and counts are settled in the end; in contexts from the rows, of which the posterior keeps too little.
    """
    agent: bough.HierTS | None = None
    taught = []
    for row in records:
        if isinstance(row, ChangeRow):
            agent = _changed(agent, row, files, half_life)
        elif row.learn:
            assert agent is not None
            taught.append(row)
            call = agent.retract if row.kind == "retracted" else agent.update
            at = None if half_life is None else row.earned
            call(row.action, row.value, row.context, trials=row.trials, exposure=row.exposure, at=at)
    assert agent is not None
    settle(agent, taught)
    return agent


def settle(agent: bough.HierTS, taught: Iterable[OutcomeRow] = ()) -> None:
    """Refine what was learned of clicks and counts, so that the order in which they came leaves no trace."""
    rows = list(taught)
    if agent.posterior.model.is_scalar or agent.posterior.model.kind.sums_suffice:
        agent.posterior.settle()
    elif rows:
        columns = [row.action for row in rows], [row.value for row in rows], [row.context for row in rows]
        sizes = {
            name: [1.0 if getattr(row, name) is None else getattr(row, name) for row in rows]
            for name in ("trials", "exposure")
            if any(getattr(row, name) is not None for row in rows)
        }
        agent.posterior.settle(bough.Observations(*columns, **sizes))


def _changed(
    agent: bough.HierTS | None, change: ChangeRow, files: dict[str, bytes], half_life: float | None
) -> bough.HierTS | None:
    body = change.body
    if change.kind == "model":
        model = start_of(files[body["digest"]])
        if agent is None:
            return bough.HierTS(model, half_life=half_life)
        agent.adopt(model)
    elif agent is not None and change.kind == "tree":
        agent.adopt(tree_of(files[body["digest"]]), renamed=body.get("renamed"), gone=body.get("gone", "retire"))
    elif agent is not None and change.kind == "action":
        under = () if body["under"] is None else (body["under"],)
        for name in body["names"]:
            getattr(agent, body["op"])(name, *under)
    elif agent is not None and change.kind == "tick":
        agent.now = max(body["now"], agent.now or 0.0)
    return agent


def moments(agent: bough.HierTS, context: Any = None) -> Moments:
    """What an agent knows of each action."""
    posterior = agent.posterior
    means, variances = posterior.action_moments(context)
    pairs = zip(means.tolist(), np.sqrt(variances).tolist(), strict=True)
    return dict(zip(posterior.model.tree.actions, pairs, strict=True))


def served_moments(process: ServiceProcess, experiment: str) -> Moments:
    """What a service says that it knows, with Gaussian rewards, of all actions that are not retired."""
    answer = process.ask("GET", f"/v1/{experiment}/top?k=1000")
    assert answer.status == 200, answer
    return {node["name"]: (node["mean"], node["deviation"]) for node in answer.body["nodes"]}


def difference(one: Moments, other: Moments) -> float:
    """How far two are apart at most; infinitely far where they are not of the same actions."""
    if one.keys() != other.keys():
        return float("inf")
    return max(float(np.max(np.abs(np.subtract(one[name], other[name])))) for name in one)
