"""How the rows of the log stand in SQLite: lists and objects as JSON, the name of an action as what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bough.service.records import ChangeRow, DecisionRow, Factors, KeyRow, Name, OutcomeRow

DECISION = (
    "seq, experiment, id, at, actions, context, offered, model_version, learned_xid, learned_seq, propensity, mode, "
    "request_digest, active, closes, learning, open, factors"
)
OUTCOME = (
    "seq, experiment, decision, slot, id, at, kind, value, trials, exposure, action, context, earned, learn, "
    "decision_seq, factors"
)
CHANGE = 'seq, experiment, at, kind, "by", body'
KEY = "id, hash, scopes, experiment, rate, created, revoked"

_encode = msgspec.json.Encoder().encode
_names = msgspec.json.Decoder(list[Name]).decode
_big = msgspec.json.Decoder(int).decode
_context: Callable[[str], Any] = msgspec.json.Decoder(list[float] | dict[str, Any]).decode  # whatever has been logged
_factors = msgspec.json.Decoder(dict[str, Name]).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_numbers = msgspec.json.Decoder(list[float]).decode
_words = msgspec.json.Decoder(list[str]).decode

_LARGEST = 2**63 - 1  # of SQLite's integers; a larger name is kept as a blob of its digits


def json(value: Any) -> str:
    """A value as the text of JSON."""
    return _encode(value).decode()


def json_object(text: str) -> dict[str, Any]:
    """An object from its text."""
    return _object(text)


def _factors_text(factors: Factors | None) -> str | None:
    """The levels of a decision as JSON; None where there are none."""
    return None if factors is None else _encode(factors).decode()


def decision_values(seq: int, row: DecisionRow) -> tuple[Any, ...]:
    """The columns DECISION of a decision."""
    context, offered, propensity = row.context, row.offered, row.propensity
    return (
        seq,
        row.experiment,
        row.id,
        row.at,
        _encode(row.actions).decode(),
        None if context is None else _encode(context).decode(),
        None if offered is None else _encode(offered).decode(),
        row.model_version,
        row.learned_xid,
        row.learned_seq,
        None if propensity is None else _encode(propensity).decode(),
        row.mode,
        row.request_digest,
        row.active,
        row.closes,
        row.learning,
        row.open,
        _factors_text(row.factors),
    )


def decision(values: Any) -> DecisionRow:
    """A decision from the columns DECISION."""
    (
        _,
        experiment,
        id,
        at,
        actions,
        context,
        offered,
        model_version,
        learned_xid,
        learned_seq,
        propensity,
        mode,
        request_digest,
        active,
        closes,
        learning,
        open,
        factors,
    ) = values
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
        open == 1,
        None if factors is None else _factors(factors),
    )


def outcome_values(seq: int, decision_seq: int, row: OutcomeRow) -> tuple[Any, ...]:
    """The columns OUTCOME of an outcome."""
    action, context = row.action, row.context
    return (
        seq,
        row.experiment,
        row.decision,
        row.slot,
        row.id,
        row.at,
        row.kind,
        row.value,
        row.trials,
        row.exposure,
        _encode(action) if isinstance(action, int) and not -_LARGEST <= action <= _LARGEST else action,
        None if context is None else _encode(context).decode(),
        row.earned,
        row.learn,
        decision_seq,
        _factors_text(row.factors),
    )


def outcome(values: Any) -> OutcomeRow:
    """An outcome from the columns OUTCOME."""
    (
        seq,
        experiment,
        decision,
        slot,
        id,
        at,
        kind,
        value,
        trials,
        exposure,
        action,
        context,
        earned,
        learn,
        _,
        factors,
    ) = values
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
        _big(action) if type(action) is bytes else action,
        None if context is None else _context(context),
        earned,
        learn == 1,
        0,
        seq,
        None if factors is None else _factors(factors),
    )


def change(values: Any) -> ChangeRow:
    """A change from the columns CHANGE."""
    seq, experiment, at, kind, by, body = values
    return ChangeRow(experiment, at, kind, by, _object(body), 0, seq)


def key(values: Any) -> KeyRow:
    """A key from the columns KEY."""
    id, hash, scopes, experiment, rate, created, revoked = values
    return KeyRow(id, hash, _words(scopes), experiment, rate, created, revoked)
