"""The agent that the events of an experiment lead to, from nothing but these and a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bough.data.rows import Observations
from bough.policies.thompson import HierTS
from bough.service.experiment import Experiment
from bough.service.files import file_of
from bough.service.learner import Refused
from bough.service.problems import Problem
from bough.service.records import ChangeRow, OutcomeRow, Record
from bough.service.schema import ExperimentConfig

_AT_ONCE = 100_000  # rewards


class Rebuilt(NamedTuple):
    """What came of a replay."""

    agent: HierTS
    learned: int
    """Rewards, and rewards that were taken back."""
    changes: int
    refused: Refused
    """What could not be learned, and why."""


def rebuilt(records: Iterable[Record], files: Mapping[str, bytes], model: Any = None, seed: Any = None) -> Rebuilt:
    """Replay events on a model, or on an agent, or, where there is none, on the one that the experiment began with.

    `files` has the bytes of trees and models by their digests; it may be filled while the records are read.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> row = OutcomeRow(1, "d1", 0, "", 5.0, "reward", 1.0, None, None, "left", None, 4.0, True, seq=1)
    >>> rebuilt([row], {}, model, seed=0).agent
    HierTS(n_actions=2, n_observations=1)
    """
    experiment = Experiment(0, "rebuilt", ExperimentConfig(), seed)
    taught: list[OutcomeRow] | None = []
    changes = 0
    refused: Refused = []
    for part in _parts(records):
        if isinstance(part, ChangeRow):
            changes += part.kind != "key"
            refused += _apply(experiment, part, files, model)
            taught = None if _breaks_off(part) else taught
            continue
        if experiment.agent is None:
            _begin(experiment, model)
        if not experiment.n_learned and experiment.ready_agent().posterior.n_observations:
            taught = None  # it began with an agent that had learned before
        refused_here = experiment.learn(part)
        refused += refused_here
        if taught is not None and not _sums_suffice(experiment):
            without = {position for position, _ in refused_here}
            taught += [row for row in part if row.learn and row.position not in without]
    if experiment.agent is None:
        _begin(experiment, model)
    _settle(experiment, taught)
    return Rebuilt(experiment.ready_agent(), experiment.n_learned, changes, refused)


def _parts(records: Iterable[Record]) -> Iterator[list[OutcomeRow] | ChangeRow]:
    """Runs of outcomes, and the changes between them."""
    part: list[OutcomeRow] = []
    for record in records:
        if isinstance(record, ChangeRow) or len(part) == _AT_ONCE:
            if part:
                yield part
            part = []
        if isinstance(record, ChangeRow):
            yield record
        else:
            part.append(record)
    if part:
        yield part


def _begin(experiment: Experiment, model: Any) -> None:
    if model is None:
        raise ValueError("the events have no model before the first reward; give the one that they began with")
    experiment.apply(ChangeRow(0, 0.0, "model", "rebuild", {"version": 1}), model)


def _apply(experiment: Experiment, change: ChangeRow, files: Mapping[str, bytes], model: Any) -> Refused:
    if change.kind == "key":
        return []
    try:
        if change.kind == "model" and experiment.agent is None and model is not None:
            file = model
        else:
            digest = change.body.get("digest")
            if digest is not None and digest not in files:
                raise ValueError(f"the events lack the file {digest!r} that a change names; export them whole")
            file = None if digest is None else file_of(change.kind, files[digest])
        experiment.apply(change, file)
    except (ValueError, KeyError, Problem) as error:
        return [(change.position, str(error.args[0]) if error.args else type(error).__name__)]
    return []


def _breaks_off(change: ChangeRow) -> bool:
    """Whether the rows before a change do not say any more what was observed of the actions after it."""
    return bool(change.body.get("renamed")) or "forget" in (change.body.get("op"), change.body.get("gone"))


def _sums_suffice(experiment: Experiment) -> bool:
    """Whether the posterior has all that rewards said, so that it can be settled without them."""
    model = experiment.ready_agent()._model
    return model.is_scalar or model.kind.sums_suffice


def _settle(experiment: Experiment, taught: Sequence[OutcomeRow] | None) -> None:
    """Refine what was learned of counts, so that the order in which they came leaves no trace.

    Counts in contexts are settled from their rows, unless they fade or the rows are not the whole story.
    """
    if _sums_suffice(experiment):
        experiment.settle()
    elif taught and experiment.config.half_life is None:
        columns = {
            name: [1.0 if getattr(row, name) is None else getattr(row, name) for row in taught]
            for name in ("trials", "exposure")
            if any(getattr(row, name) is not None for row in taught)
        }
        rows = [row.action for row in taught], [row.value for row in taught], [row.context for row in taught]
        experiment.ready_agent().posterior.settle(Observations(*rows, **columns))
