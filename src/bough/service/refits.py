"""Refits: the prior learned anew from all that was observed, in another process, so that decisions do not wait."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from typing import Any, NamedTuple

from bough.data.rows import Observations
from bough.learning.fit import fit_prior
from bough.model.model import Model
from bough.policies.thompson import HierTS
from bough.service.experiment import Experiment
from bough.service.files import model_bytes, start_of
from bough.service.log.base import Log
from bough.service.records import OutcomeRow, Position

_LEAST = 2  # observations
_POLITE = 10  # how much a refit gives way to decisions


def evidence_of(agent: HierTS, experiment: Experiment, log: Log) -> tuple[bytes, Any, str]:
    """What `refitted` is given: the model, what was observed, and which nodes share a variance."""
    model = agent.posterior.model
    by = model.classes.kind
    if by not in ("depth", "height"):
        raise ValueError(
            "every node has a covariance of its own here, and a refit learns one per depth or height; "
            "fit a model elsewhere, and put it"
        )
    if agent.posterior.n_observations < _LEAST:
        raise ValueError(f"{agent.posterior.n_observations} rewards were observed; wait for more before a refit")
    data: Any
    if model.is_scalar or model.kind.sums_suffice:
        data = agent.posterior.statistics
    else:
        data = observations_of(experiment, log)
    return model_bytes(model), data, by


def observations_of(experiment: Experiment, log: Log) -> Observations:
    """The learned rows of the log, where sums would not say it all: counts in contexts."""
    tree = experiment.ready_agent().posterior.model.tree
    found: dict[tuple[str, int], OutcomeRow] = {}
    for row in log.records(experiment.id, Position(), experiment.position):
        if isinstance(row, OutcomeRow) and row.learn:
            if row.kind == "retracted":
                found.pop((row.decision, row.slot), None)
            elif row.context is not None and tree.node_names.find(row.action) >= 0:  # not pruned, and still there
                found[row.decision, row.slot] = row
    rows = list(found.values())
    columns: dict[str, Any] = {}
    for name in ("trials", "exposure"):
        given = [getattr(row, name) for row in rows]
        if any(one is not None for one in given):
            columns[name] = [1.0 if one is None else one for one in given]
    return Observations(
        [row.action for row in rows], [row.value for row in rows], [row.context for row in rows], **columns
    )


class Refitted(NamedTuple):
    """What a refit has learned."""

    file: bytes
    """The model with the prior that the data speak for."""
    estimates: dict[str, list[float]]
    """By depth or height, by factor, and of the noise: each number, and where its 95% interval begins and ends."""


def refitted(model_file: bytes, data: Any, by: str) -> Refitted:
    """The prior that the data speak for."""
    model = start_of(model_file)
    assert isinstance(model, Model)
    root = model.classes.table[model.classes.of_node[0]]
    noise = "per action" if model.kind.has_own_noise else "learn"
    named = {"features": model.features, "factors": model.factors or None}
    fit = fit_prior(model.tree, data, by, noise, root=root, model=type(model), **named)
    estimates = {
        label: [float(one.value), float(one.low), float(one.high)]
        for label, one in fit.estimates.items()
        if label != "mean"
    }
    return Refitted(model_bytes(fit.model), estimates)


async def refitted_elsewhere(evidence: tuple[bytes, Any, str]) -> Refitted:
    """`refitted`, in a process of its own, which gives way to decisions; it ends when nobody waits for it any more."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bough.service.refits",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        found, said = await process.communicate(pickle.dumps(evidence))
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"it ended with {process.returncode}")
    return Refitted(*pickle.loads(found))


def main() -> None:
    """Read what `evidence_of` found from the standard input, and write what was learned."""
    os.nice(_POLITE)
    sys.stdout.buffer.write(pickle.dumps(tuple(refitted(*pickle.loads(sys.stdin.buffer.read())))))


if __name__ == "__main__":
    main()
