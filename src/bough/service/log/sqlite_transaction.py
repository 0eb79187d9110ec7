"""A transaction of SQLite: all that a service appends to its log."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from bough.service.log.base import LogError
from bough.service.log.sqlite_rows import (
    DECISION,
    KEY,
    OUTCOME,
    decision,
    decision_values,
    json,
    json_object,
    outcome,
    outcome_values,
)
from bough.service.records import (
    ChangeRow,
    DecisionRow,
    ExperimentRow,
    Key,
    KeyRow,
    ModelRow,
    OutcomeRow,
    Position,
    State,
)


def _places(columns: str) -> str:
    """A place for each of some columns."""
    return ", ".join("?" for _ in columns.split(","))


# The module sqlite3 finds a prepared statement again by its text.
_ADD_DECISION = f"INSERT INTO decisions ({DECISION}) VALUES ({_places(DECISION)}) ON CONFLICT DO NOTHING"
_ADD_OUTCOME = f"INSERT INTO outcomes ({OUTCOME}) VALUES ({_places(OUTCOME)})"
_ADD_CHANGE = 'INSERT INTO changes (seq, experiment, at, kind, "by", body) VALUES (?, ?, ?, ?, ?, ?)'
_ADD_KEY = f"INSERT INTO keys ({KEY}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_FIND_DECISION = f"SELECT {DECISION} FROM decisions WHERE experiment = ? AND id = ?"
_FIND_OUTCOMES = f"SELECT {OUTCOME} FROM outcomes WHERE decision_seq = ? ORDER BY seq"
_FIND_SEQ = "SELECT seq FROM decisions WHERE experiment = ? AND id = ?"
_SET_STATE = "UPDATE decisions SET active = ?, closes = ?, open = ? WHERE seq = ?"
_SET_PROPENSITY = "UPDATE decisions SET propensity = ? WHERE experiment = ? AND id = ? AND propensity IS NULL"
_COUNTER = "SELECT last FROM counters WHERE name = ?"
_SET_COUNTER = "UPDATE counters SET last = ? WHERE name = ?"

_P = ParamSpec("_P")
_R = TypeVar("_R")


def states(cursor: sqlite3.Cursor, keys: Collection[Key], seqs: dict[Key, int] | None = None) -> dict[Key, State]:
    """Decisions with their outcomes; notes their numbers in `seqs`."""
    found = {}
    for key in keys:
        row = cursor.execute(_FIND_DECISION, key).fetchone()
        if row is None:
            continue
        if seqs is not None:
            seqs[key] = row[0]
        outcomes = cursor.execute(_FIND_OUTCOMES, (row[0],)).fetchall()
        found[key] = State(decision(row), [outcome(each) for each in outcomes] if outcomes else [])
    return found


def _guarded(
    method: Callable[Concatenate[SqliteTransaction, _P], _R],
) -> Callable[Concatenate[SqliteTransaction, _P], _R]:
    """The method, after whose failure nothing of the transaction is left."""

    @wraps(method)
    def guarded(self: SqliteTransaction, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.ended:
            raise LogError("the transaction has ended, and nothing of it was kept; begin another")
        try:
            return method(self, *args, **kwargs)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._failed(error) from error

    return guarded


class SqliteTransaction:
    """What is appended together: all of it, or nothing."""

    def __init__(self, connection: sqlite3.Connection, failed: Callable[[Exception], Exception]) -> None:
        """`failed` rolls back, and makes the error to raise of one of sqlite3."""
        self._connection, self._failed = connection, failed
        self._cursor = connection.cursor()
        self._seqs: dict[Key, int] = {}
        self._last: dict[str, int] = {}
        self.ended = False

    @_guarded
    def decisions(self, keys: Collection[Key]) -> dict[Key, DecisionRow]:
        """Those of the decisions that there are."""
        found = {}
        for key in keys:
            row = self._cursor.execute(_FIND_DECISION, key).fetchone()
            if row is not None:
                self._seqs[key] = row[0]
                found[key] = decision(row)
        return found

    @_guarded
    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Those of the decisions that there are, with their outcomes."""
        return states(self._cursor, keys, self._seqs)

    @_guarded
    def add_decisions(self, rows: Sequence[DecisionRow]) -> dict[Key, DecisionRow]:
        """Append decisions with distinct ids; those whose ids were there already are left as they are, and returned."""
        first = self._numbers("decisions", len(rows))
        self._cursor.executemany(_ADD_DECISION, [decision_values(seq, row) for seq, row in enumerate(rows, first)])
        if self._cursor.rowcount == len(rows):
            return {}
        found = self.decisions([row.key for row in rows])
        return {row.key: found[row.key] for seq, row in enumerate(rows, first) if self._seqs[row.key] != seq}

    @_guarded
    def add_outcomes(self, rows: Sequence[OutcomeRow]) -> None:
        """Append outcomes of decisions whose states were read; sets their `seq`."""
        first = self._numbers("records", len(rows))
        values = []
        for seq, row in enumerate(rows, first):
            values.append(outcome_values(seq, self._seq(Key(row.experiment, row.decision)), row))
            row.seq, row.xid = seq, 0
        self._cursor.executemany(_ADD_OUTCOME, values)

    @_guarded
    def set_states(self, rows: Sequence[DecisionRow]) -> None:
        """Write `active`, `closes` and `open` of decisions whose states were read."""
        values = [(row.active, row.closes, row.open, self._seq(row.key)) for row in rows]
        self._cursor.executemany(_SET_STATE, values)

    def lock_changes(self, experiment: int) -> Position:
        """The position of the last change of an experiment, or (0, 0); nobody else writes before the end anyway."""
        found = self._cursor.execute("SELECT max(seq) FROM changes WHERE experiment = ?", (experiment,)).fetchone()[0]
        return Position(0, found or 0)

    @_guarded
    def add_change(self, row: ChangeRow) -> None:
        """Append a change; sets its `seq`."""
        row.seq, row.xid = self._numbers("records", 1), 0
        self._cursor.execute(_ADD_CHANGE, (row.seq, row.experiment, row.at, row.kind, row.by, json(row.body)))

    @_guarded
    def add_experiment(self, name: str, config: dict[str, Any], at: float) -> ExperimentRow:
        """A new experiment; or the one that has the name already."""
        self._cursor.execute(
            "INSERT INTO experiments (name, config, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (name, json(config), at),
        )
        found = "SELECT id, name, config, created FROM experiments WHERE name = ?"
        id, name, text, created = self._cursor.execute(found, (name,)).fetchone()
        return ExperimentRow(id, name, json_object(text), created)

    @_guarded
    def add_model(self, row: ModelRow) -> None:
        """A new version of a model, whose file has been put."""
        self._cursor.execute(
            "INSERT INTO models (experiment, version, digest, from_seq) VALUES (?, ?, ?, ?)",
            (row.experiment, row.version, row.digest, row.from_seq),
        )

    @_guarded
    def put_file(self, digest: str, data: bytes) -> None:
        """Keep the bytes of a model or a tree, by their digest (sha256, hexadecimal); twice is once."""
        self._cursor.execute(
            "INSERT INTO files (digest, data) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM files WHERE digest = ?1)",
            (digest, data),
        )

    @_guarded
    def add_key(self, row: KeyRow) -> None:
        """A new key."""
        self._cursor.execute(
            _ADD_KEY, (row.id, row.hash, json(row.scopes), row.experiment, row.rate, row.created, row.revoked)
        )

    @_guarded
    def revoke_key(self, id: str, at: float) -> bool:
        """Have a key no longer be one; whether there was such a key that was not revoked."""
        self._cursor.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (at, id))
        return self._cursor.rowcount == 1

    @_guarded
    def set_propensities(self, found: Sequence[tuple[Key, list[float]]]) -> None:
        """Fill in propensities that decisions do not have yet."""
        self._cursor.executemany(_SET_PROPENSITY, [(json(numbers), *key) for key, numbers in found])

    @_guarded
    def quarantine(self, position: Position, why: str) -> None:
        """Note that a record could not be learned; twice is once."""
        self._cursor.execute(
            "INSERT INTO quarantine (seq, why) VALUES (?, ?) ON CONFLICT DO NOTHING", (position.seq, why)
        )

    def write_counters(self) -> None:
        """Write how far the numbers have been used, before the commit."""
        for name, last in self._last.items():
            self._cursor.execute(_SET_COUNTER, (last, name))

    def _numbers(self, name: str, count: int) -> int:
        """The first of so many new numbers; they are never used again, also when their rows are pruned."""
        last = self._last.get(name)
        if last is None:
            last = self._cursor.execute(_COUNTER, (name,)).fetchone()[0]
        self._last[name] = last + count
        return int(last) + 1

    def _seq(self, key: Key) -> int:
        """The number of a decision."""
        seq = self._seqs.get(key)
        if seq is None:
            row = self._cursor.execute(_FIND_SEQ, key).fetchone()
            if row is None:
                raise sqlite3.IntegrityError(f"there is no decision {key.decision!r} in experiment {key.experiment}")
            self._seqs[key] = seq = row[0]
        return seq
