"""How the rows of the log stand in PostgreSQL: lists, objects and the names of actions as the text of JSON.

Many rows go to the database as one parameter, a JSON array, which the statements take apart: it costs a third of what
arrays of their columns cost. The texts in it are escaped twice, so that even a NUL in a name is only six letters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any

import msgspec

from bough.service.records import ChangeRow, DecisionRow, ExperimentRow, Key, KeyRow, Name, OutcomeRow, Record

_DECISION = {
    "experiment": "bigint",
    "id": "text",
    "at": "double precision",
    "actions": "text",
    "context": "text",
    "offered": "text",
    "model_version": "bigint",
    "learned_xid": "bigint",
    "learned_seq": "bigint",
    "propensity": "text",
    "mode": "text",
    "request_digest": "text",
    "active": "double precision",
    "closes": "double precision",
    "learning": "text",
    "open": "boolean",
    "factors": "text",
}
_OUTCOME = {
    "experiment": "bigint",
    "decision": "text",
    "slot": "integer",
    "id": "text",
    "at": "double precision",
    "kind": "text",
    "value": "double precision",
    "trials": "double precision",
    "exposure": "double precision",
    "action": "text",
    "context": "text",
    "earned": "double precision",
    "learn": "boolean",
    "factors": "text",
}


def given(columns: dict[str, str]) -> str:
    """The rows of a parameter, a JSON array of objects, as a table `given` that also numbers them.

    >>> print(given({"id": "text", "value": "double precision"}))
    ROWS FROM (json_to_recordset(%s::json) AS (id text, value double precision))
        WITH ORDINALITY AS given (id, value, number)
    """
    types = ", ".join(f"{name} {type}" for name, type in columns.items())
    return (
        f"ROWS FROM (json_to_recordset(%s::json) AS ({types}))\n"
        f"    WITH ORDINALITY AS given ({', '.join(columns)}, number)"
    )


XID = "(SELECT pg_current_xact_id()::text::bigint + shift FROM clock)"
"""The transaction's own number, which its rows are ordered by."""
SETTLED = "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + shift FROM clock)"
"""The number of the oldest transaction that is not over; no row can still come before it."""

# Numbered in the order given, and inserted in that of their ids, so that two processes with the same ids do not wait
# for each other.
ADD_DECISIONS = f"""INSERT INTO decisions (xid, seq, {", ".join(_DECISION)})
SELECT {XID}, seq, {", ".join(_DECISION).replace("request_digest", "decode(request_digest, 'hex')")}
FROM (SELECT nextval('decision_numbers') AS seq, given.* FROM {given(_DECISION)} ORDER BY number) AS numbered
ORDER BY id COLLATE "C", experiment ON CONFLICT (id, experiment) DO NOTHING RETURNING seq, experiment, id"""
ADD_OUTCOMES = f"""INSERT INTO outcomes (xid, decision_seq, {", ".join(_OUTCOME)})
SELECT {XID}, decision_seq, {", ".join(_OUTCOME)} FROM {given({**_OUTCOME, "decision_seq": "bigint"})}
ORDER BY number RETURNING xid, seq"""
# A plan for this is made each time: a join would be done the wrong way round where it was made for few rows.
SET_STATES = f"""UPDATE decisions AS d SET active = given.active, closes = given.closes, open = given.open
FROM {given({name: _DECISION[name] for name in ("experiment", "id", "active", "closes", "open")})}
WHERE d.id = given.id AND d.experiment + 0 = given.experiment"""

DECISION = ", ".join(f"d.{name}" for name in ("xid", "seq", *_DECISION))
OUTCOME = ", ".join(f"o.{name}" for name in ("xid", "seq", *_OUTCOME))
# A change in the columns of an outcome, so that one statement, and so one snapshot, reads both. Its slot is missing.
CHANGE = """c.xid, c.seq, c.experiment, c."by", NULL, NULL, c.at, c.kind, NULL, NULL, NULL, NULL, c.body, NULL, NULL,
NULL"""
KEY = "id, hash, scopes, experiment, rate, created, revoked"

# Plans are kept, also those that were made while a table was nearly empty and any index would do. Hence LATERAL, which
# has the planner look for each key apart; and the sum, which no index has, so that only the one by id is left.
_WANTED = "FROM unnest(%s::bigint[], %s::text[]) AS k (experiment, id) CROSS JOIN LATERAL"
_FOUND = "SELECT * FROM decisions AS d WHERE d.id = k.id AND d.experiment + 0 = k.experiment"
FIND = f"SELECT {DECISION} {_WANTED} ({_FOUND} OFFSET 0) AS d"
LOCK = f"SELECT {DECISION} {_WANTED} ({_FOUND} FOR UPDATE) AS d"
STATES = f"""SELECT {DECISION}, {OUTCOME} {_WANTED} ({_FOUND} OFFSET 0) AS d
LEFT JOIN LATERAL (SELECT * FROM outcomes AS o WHERE o.decision_seq = d.seq OFFSET 0) AS o ON true"""
OUTCOMES = f"""SELECT {OUTCOME}, o.decision_seq FROM unnest(%s::bigint[]) AS k (seq)
CROSS JOIN LATERAL (SELECT * FROM outcomes AS o WHERE o.decision_seq = k.seq OFFSET 0) AS o"""
N_DECISION = len(_DECISION) + 2

_encode = msgspec.json.Encoder().encode
_names = msgspec.json.Decoder(list[Name]).decode
_name: Callable[[str], Name] = msgspec.json.Decoder(Name).decode
_context: Callable[[str], Any] = msgspec.json.Decoder(list[float] | dict[str, Any]).decode  # whatever has been logged
_factors = msgspec.json.Decoder(dict[str, Name]).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_numbers = msgspec.json.Decoder(list[float]).decode
_words = msgspec.json.Decoder(list[str]).decode


def json(value: Any) -> str:
    """A value as the text of JSON."""
    return _encode(value).decode()


def decisions_json(rows: Iterable[DecisionRow]) -> str:
    """The parameter of ADD_DECISIONS."""
    return json([_decision_values(row) for row in rows])


def _decision_values(row: DecisionRow) -> dict[str, Any]:
    context, offered, propensity = row.context, row.offered, row.propensity
    return {
        "experiment": row.experiment,
        "id": row.id,
        "at": row.at,
        "actions": json(row.actions),
        "context": None if context is None else json(context),
        "offered": None if offered is None else json(offered),
        "model_version": row.model_version,
        "learned_xid": row.learned_xid,
        "learned_seq": row.learned_seq,
        "propensity": None if propensity is None else json(propensity),
        "mode": row.mode,
        "request_digest": row.request_digest.hex(),
        "active": row.active,
        "closes": row.closes,
        "learning": row.learning,
        "open": row.open,
        "factors": None if row.factors is None else json(row.factors),
    }


def outcomes_json(rows: Iterable[OutcomeRow], decision_seqs: Iterable[int]) -> str:
    """The parameter of ADD_OUTCOMES."""
    return json([_outcome_values(row, seq) for row, seq in zip(rows, decision_seqs, strict=True)])


def _outcome_values(row: OutcomeRow, decision_seq: int) -> dict[str, Any]:
    return {
        "decision_seq": decision_seq,
        "experiment": row.experiment,
        "decision": row.decision,
        "slot": row.slot,
        "id": row.id,
        "at": row.at,
        "kind": row.kind,
        "value": row.value,
        "trials": row.trials,
        "exposure": row.exposure,
        "action": json(row.action),
        "context": None if row.context is None else json(row.context),
        "earned": row.earned,
        "learn": row.learn,
        "factors": None if row.factors is None else json(row.factors),
    }


def key_arrays(keys: Collection[Key]) -> tuple[list[int], list[str]]:
    """The parameters of FIND, LOCK and STATES.

    They are in the order of their ids: as everyone locks in this order, none waits for one who waits for him.
    """
    ordered = sorted(keys, key=itemgetter(1, 0))
    return [key[0] for key in ordered], [key[1] for key in ordered]


def states_json(rows: Iterable[DecisionRow]) -> str:
    """The parameter of SET_STATES."""
    names = ("experiment", "id", "active", "closes", "open")
    return json([{name: getattr(row, name) for name in names} for row in rows])


def decision(values: tuple[Any, ...]) -> DecisionRow:
    """A decision from the columns DECISION."""
    (_, _, experiment, id, at, actions, context, offered, *rest) = values
    (model_version, learned_xid, learned_seq, propensity, mode, request_digest, active, *rest) = rest
    (closes, learning, open, factors) = rest
    return DecisionRow(
        experiment,
        id,
        at,
        _names(actions),
        None if context is None else _context(context),
        None if offered is None else _object(offered),
        model_version,
        learned_xid,
        learned_seq,
        None if propensity is None else _numbers(propensity) or None,  # none are those that cannot be known
        mode,
        request_digest,
        active,
        closes,
        learning,
        open,
        None if factors is None else _factors(factors),
    )


def outcome(values: tuple[Any, ...]) -> OutcomeRow:
    """An outcome from the columns OUTCOME."""
    (xid, seq, experiment, decision, slot, id, at, kind, value, trials, exposure, action, *rest) = values
    (context, earned, learn, factors) = rest
    return OutcomeRow(
        experiment,
        decision,
        slot,
        id,
        at,
        kind,
        value,
        trials,
        exposure,
        _name(action),
        None if context is None else _context(context),
        earned,
        learn,
        xid,
        seq,
        None if factors is None else _factors(factors),
    )


def record(values: tuple[Any, ...]) -> Record:
    """An outcome or a change from the columns OUTCOME or CHANGE."""
    if values[4] is not None:
        return outcome(values)
    xid, seq, experiment, by, _, _, at, kind, _, _, _, _, body, *_ = values
    return ChangeRow(experiment, at, kind, by, _object(body), xid, seq)


def key(values: tuple[Any, ...]) -> KeyRow:
    """A key from the columns KEY."""
    id, hash, scopes, experiment, rate, created, revoked = values
    return KeyRow(id, hash, _words(scopes), experiment, rate, created, revoked)


def experiment(values: tuple[Any, ...]) -> ExperimentRow:
    """An experiment from its columns."""
    id, name, config, created = values
    return ExperimentRow(id, name, _object(config), created)


def printable(text: str) -> str:
    """The text with what PostgreSQL does not take written out.

    >>> print(printable("no action 'a\\x00b'"))
    no action 'a\\x00b'
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
