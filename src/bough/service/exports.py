"""The log as tables: events, from which an agent can be made again, and decisions, by which a policy is judged."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, get_args

from msgspec import UNSET, convert

from bough.service.experiment import Experiment
from bough.service.log.base import Log
from bough.service.problems import refused
from bough.service.records import (
    ChangeRow,
    Context,
    DecisionRow,
    Factors,
    Name,
    OutcomeKind,
    OutcomeRow,
    Position,
    Record,
    State,
)
from bough.service.routes import NDJSON, PARQUET
from bough.service.schema import ExportQuery
from bough.service.tables import Column, Format, Row, check_parquet, pieces, read_table, write_table

_PIECE = 10_000  # decisions that are read at once
_OUTCOMES = get_args(OutcomeKind)
_MEDIA = {"ndjson": NDJSON, "parquet": PARQUET}

EVENTS = (
    Column("xid", "int"),
    Column("seq", "int"),
    Column("kind", "text"),
    Column("experiment", "int"),
    Column("at", "float"),
    Column("decision_id", "text"),
    Column("reward_id", "text"),
    Column("slot", "int"),
    Column("action", "text"),
    Column("action_is_number", "bool"),
    Column("actions", "json"),
    Column("value", "float"),
    Column("trials", "float"),
    Column("exposure", "float"),
    Column("context", "json"),
    Column("factors", "json"),
    Column("offered", "json"),
    Column("propensity", "json"),
    Column("model_version", "int"),
    Column("learned_xid", "int"),
    Column("learned_seq", "int"),
    Column("mode", "text"),
    Column("learn", "bool"),
    Column("earned", "float"),
    Column("by", "text"),
    Column("body", "json"),
    Column("file", "bytes"),
)
"""Of a row what does not go with its kind is empty. An action is text, also where its name is a number, which
`action_is_number` says; `file` has the bytes of a tree or a model, whose digest is in the body."""


# -- events ----------------------------------------------------------------------------------------


def write_events(
    path: str | os.PathLike[str],
    log: Log,
    experiment: int,
    since: float | None = None,
    until: float | None = None,
    *,
    decisions: bool = True,
) -> int:
    """Write all that happened in an experiment to a file, in the order of the log; how many rows there are.

    There is one row for each outcome and each change, and for each decision unless `decisions` is False. `since` and
    `until` are seconds since 1970.
    """
    return write_table(path, EVENTS, event_rows(log, experiment, since, until, decisions=decisions))


def event_rows(
    log: Log, experiment: int, since: float | None = None, until: float | None = None, *, decisions: bool = True
) -> Iterator[Row]:
    """The rows of `write_events`. A decision stands before the first record that was not known to it."""
    records = log.records(experiment, Position(), log.end())
    made = _decisions(log, experiment) if decisions else iter(())
    for row in _merged(records, made):
        if (since is None or row.at >= since) and (until is None or row.at < until):
            yield event_row(row, _file(log, row))


def _merged(records: Iterator[Record], decisions: Iterator[DecisionRow]) -> Iterator[DecisionRow | Record]:
    waiting = next(decisions, None)
    for record in records:
        while waiting is not None and Position(waiting.learned_xid, waiting.learned_seq) < record.position:
            yield waiting
            waiting = next(decisions, None)
        yield record
    if waiting is not None:
        yield waiting
    yield from decisions


def _file(log: Log, row: DecisionRow | Record) -> bytes | None:
    """The bytes that a change names by their digest, as far as they are kept."""
    digest = row.body.get("digest") if isinstance(row, ChangeRow) else None
    if not isinstance(digest, str):
        return None
    try:
        return log.file(digest)
    except KeyError:
        return None


def event_row(row: DecisionRow | Record, file: bytes | None = None) -> Row:
    """One row of the table of events."""
    given: dict[str, Any] = {"experiment": row.experiment, "at": row.at, "file": file}
    if isinstance(row, ChangeRow):
        given |= {"xid": row.xid, "seq": row.seq, "kind": row.kind, "by": row.by, "body": row.body}
    elif isinstance(row, OutcomeRow):
        given |= {"xid": row.xid, "seq": row.seq, "kind": row.kind, "decision_id": row.decision, "reward_id": row.id}
        given |= {"slot": row.slot, "value": row.value, "trials": row.trials, "exposure": row.exposure}
        given |= {"context": row.context, "earned": row.earned, "learn": row.learn, **_named(row.action)}
        given |= {"factors": row.factors}
    else:
        state = {"active": row.active, "closes": row.closes, "learning": row.learning, "open": row.open}
        given |= {"kind": "decision", "decision_id": row.id, "actions": row.actions, **_named(row.actions[0])}
        given |= {"context": row.context, "offered": row.offered, "propensity": row.propensity, "mode": row.mode}
        given |= {"model_version": row.model_version, "learned_xid": row.learned_xid, "learned_seq": row.learned_seq}
        given |= {"body": state, "factors": row.factors}
    return tuple(given.get(column.name) for column in EVENTS)


def _named(action: Name) -> dict[str, Any]:
    return {"action": str(action), "action_is_number": not isinstance(action, str)}


def read_events(path: str | os.PathLike[str], files: dict[str, bytes] | None = None) -> Iterator[Record]:
    """The outcomes and changes that `write_events` wrote, in the order of the log; decisions are passed over.

    `files` gets the bytes of each tree and model by their digest, before the change that names it comes.
    """
    for row in read_table(path, EVENTS):
        if row["kind"] == "decision":
            continue
        try:
            record = _record(row)
            if files is not None and row["file"] is not None:
                files[row["body"]["digest"]] = row["file"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} has a row that is no record, with seq {row['seq']!r:.80}: {error}; give a file that bough "
                "export wrote"
            ) from None
        yield record


def _record(row: dict[str, Any]) -> Record:
    if row["kind"] not in _OUTCOMES:
        return convert({name: row[name] for name in ChangeRow.__struct_fields__}, ChangeRow)
    action = int(row["action"]) if row["action_is_number"] else row["action"]
    return convert({**row, "decision": row["decision_id"], "id": row["reward_id"], "action": action}, OutcomeRow)


def _decisions(log: Log, experiment: int) -> Iterator[DecisionRow]:
    position = Position()
    while found := log.decisions_after(experiment, position, _PIECE):
        position = found[-1][0]
        yield from (row for _, row in found)


# -- decisions -------------------------------------------------------------------------------------

DECISIONS = (
    Column("decision_id", "text"),
    Column("at", "float"),
    Column("position", "int"),
    Column("action", "text"),
    Column("reward", "float"),
    Column("trials", "float"),
    Column("exposure", "float"),
    Column("propensity", "float"),
    Column("mode", "text"),
    Column("model_version", "int"),
    Column("learned_seq", "int"),
    Column("among", "json"),
    Column("exclude", "json"),
    Column("context", "json"),
    Column("factors", "json"),
)
"""Columns that `bough.evaluate` reads by these names; those of the features and of the factors of the decision follow,
each by its own name."""


class _Own(NamedTuple):
    """The columns that only some experiments have."""

    features: dict[str, Column]
    factors: dict[str, Column]
    """By the names of factors: where a name is that of another column, this one has `factor_` before it."""

    @classmethod
    def of(cls, states: list[State], features: Sequence[str] | None) -> _Own:
        """Those that some decisions have."""
        taken = {column.name for column in DECISIONS}
        contexts = [_by_name(state.decision.context, features) for state in states]
        names = [name for name in dict.fromkeys(name for context in contexts for name in context) if name not in taken]
        of_features = {name: Column(name, _kind_of([context.get(name) for context in contexts])) for name in names}
        levels = _levels(states)
        of_factors = {}
        for factor, found in levels.items():
            name = factor
            while name in taken or name in of_features or (name != factor and name in levels):
                name = f"factor_{name}"
            of_factors[factor] = Column(name, "int" if _are_whole(found) else "text")
        return cls(of_features, of_factors)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them, in the order of `cells`."""
        return (*self.factors.values(), *self.features.values())

    def cells(self, factors: Factors | None, context: Mapping[str, Any]) -> Iterator[Any]:
        """What a row has in them."""
        for factor, column in self.factors.items():
            yield _level((factors or {}).get(factor), column.kind)
        for name, column in self.features.items():
            yield _cell(context.get(name), column.kind)


class DecisionTable(NamedTuple):
    """The columns and the rows of a table of decisions."""

    columns: tuple[Column, ...]
    rows: Iterator[Row]


def write_decisions(
    path: str | os.PathLike[str],
    log: Log,
    experiment: int,
    since: float | None = None,
    until: float | None = None,
    *,
    unrewarded: bool = False,
    features: Sequence[str] | None = None,
) -> int:
    """Write the decisions of an experiment with their rewards to a file that `bough evaluate` reads; how many rows.

    There is one row for each action that was decided for, with its `position` in the list. Decisions without a reward,
    and those that were cancelled or retracted, are left out, unless `unrewarded` asks for them, with no reward. Where
    there are contexts, the features have a column each: those of objects by their names, those of lists by `features`,
    or else x0, x1 and so on. So has each factor of the decision, with the level that was learned from. `since` and
    `until` are seconds since 1970.
    """
    table = decision_table(log, experiment, since, until, unrewarded=unrewarded, features=features)
    return write_table(path, *table)


def decision_table(
    log: Log,
    experiment: int,
    since: float | None = None,
    until: float | None = None,
    *,
    unrewarded: bool = False,
    features: Sequence[str] | None = None,
) -> DecisionTable:
    """The table of `write_decisions`. Its first thousands of rows say which features and factors it has columns for."""
    states = _states(log, experiment, since, until)
    first = next(states, [])
    numbers = bool(first) and _are_whole([name for state in first for name in state.decision.actions])
    columns = tuple(Column("action", "int") if numbers and one.name == "action" else one for one in DECISIONS)
    own = _Own.of(first, features)

    def rows() -> Iterator[Row]:
        for state in chain.from_iterable(chain([first], states)):
            if unrewarded or _is_final(state):
                yield from _decision_rows(state, unrewarded, own, features, numbers)

    return DecisionTable((*columns, *own.columns), rows())


def _states(log: Log, experiment: int, since: float | None, until: float | None) -> Iterator[list[State]]:
    position = Position()
    while found := log.decisions_after(experiment, position, _PIECE):
        position = found[-1][0]
        rows = [row for _, row in found if (since is None or row.at >= since) and (until is None or row.at < until)]
        states = log.states([row.key for row in rows])
        if rows:
            yield [states[row.key] for row in rows if row.key in states]  # some may have been pruned meanwhile


def _is_final(state: State) -> bool:
    return not state.decision.open and not any(row.kind in ("cancelled", "retracted") for row in state.outcomes)


def _decision_rows(
    state: State, unrewarded: bool, own: _Own, features: Sequence[str] | None, numbers: bool
) -> Iterator[Row]:
    row, offered = state.decision, state.decision.offered or {}
    context = _by_name(row.context, features)
    for slot, action in enumerate(row.actions):
        outcome = _observation(state, slot) if _is_final(state) else None
        factors = row.factors if outcome is None else outcome.factors
        reward = None if outcome is None else (outcome.value, outcome.trials, outcome.exposure)
        if reward is None and not unrewarded:
            continue
        if numbers and not isinstance(action, int):
            raise ValueError(
                f"the actions are numbers at first, and then {action!r} comes; write them to .ndjson or .csv"
            )
        yield (
            row.id, row.at, slot, action if numbers else str(action), *(reward or (None, None, None)),
            None if row.propensity is None else row.propensity[slot], row.mode, row.model_version, row.learned_seq,
            offered.get("among"), offered.get("exclude"), row.context, factors, *own.cells(factors, context),
        )  # fmt: skip


def _observation(state: State, slot: int) -> OutcomeRow | None:
    """What was learned of a slot, or, where nothing was, what was logged of it."""
    mine = [row for row in state.outcomes if row.slot == slot and row.kind in ("reward", "closed", "default")]
    found = next((row for row in mine if row.learn), None) or next((row for row in mine if row.kind != "reward"), None)
    if found is None and len(mine) == 1:
        found = mine[0]
    return found


def _by_name(context: Context | None, features: Sequence[str] | None) -> dict[str, Any]:
    if context is None or isinstance(context, dict):
        return context or {}
    names = (
        features if features is not None and len(features) == len(context) else [f"x{i}" for i in range(len(context))]
    )
    return dict(zip(names, context, strict=True))


def _levels(states: list[State]) -> dict[str, list[Name]]:
    """The levels of each factor that some decisions or their outcomes have."""
    found: dict[str, list[Name]] = {}
    for state in states:
        for factors in (state.decision.factors, *(row.factors for row in state.outcomes)):
            for factor, level in (factors or {}).items():
                found.setdefault(factor, []).append(level)
    return found


def _are_whole(names: list[Name]) -> bool:
    """Whether names go into a column of whole numbers."""
    return all(isinstance(name, int) and abs(name) < 2**63 for name in names)


def _kind_of(values: list[Any]) -> Any:
    return "float" if all(value is None or isinstance(value, (int, float)) for value in values) else "text"


def _cell(value: Any, kind: str) -> Any:
    """A value as a column has it; what does not go there is in the context only."""
    if kind == "float":
        return float(value) if isinstance(value, (int, float)) else None
    return value if isinstance(value, str) else None


def _level(level: Name | None, kind: str) -> Any:
    """A level as a column has it; text among whole numbers is in the factors only."""
    if level is None or (kind == "int" and not _are_whole([level])):
        return None
    return level if kind == "int" else str(level)


# -- answers ---------------------------------------------------------------------------------------


class Stream(NamedTuple):
    """An answer that is sent in parts."""

    parts: AsyncIterator[bytes]
    media: str
    name: str


def exported(log: Log, experiment: Experiment, query: ExportQuery) -> Stream:
    """The decisions of an experiment with their rewards, as they are read."""
    format: Format = query.format
    if format == "parquet":
        try:
            check_parquet()
        except ValueError as error:
            raise refused(error, "conflict", value=format) from None
    since, until = (None if one is UNSET else one for one in (query.since, query.until))
    agent = experiment.agent
    features = None if agent is None else agent._model.feature_names

    def parts() -> Iterator[bytes]:
        yield from pieces(format, *decision_table(log, experiment.id, since, until, features=features))

    return Stream(_in_threads(parts()), _MEDIA[format], f"{experiment.name}.{format}")


async def _in_threads(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        if part:
            yield part
