"""A transaction of PostgreSQL: all that a service appends to its log, in a few statements per batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg

from bough.service.log.base import LogError
from bough.service.log.postgres_connections import CHANGES, LARGE_SECONDS, Connection
from bough.service.log.postgres_rows import (
    ADD_DECISIONS,
    ADD_OUTCOMES,
    FIND,
    KEY,
    LOCK,
    OUTCOMES,
    SET_STATES,
    XID,
    decision,
    decisions_json,
    experiment,
    json,
    key_arrays,
    outcome,
    outcomes_json,
    printable,
    states_json,
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

_LAST_CHANGE = "SELECT xid, seq FROM changes WHERE experiment = %s ORDER BY xid DESC, seq DESC LIMIT 1"
_ADD_CHANGE = f"""INSERT INTO changes (xid, experiment, at, kind, "by", body)
VALUES ({XID}, %s, %s, %s, %s, %s) RETURNING xid, seq"""
_FIND_EXPERIMENT = "SELECT id, name, config, created FROM experiments WHERE name = %s"
_ADD_EXPERIMENT = """INSERT INTO experiments (name, config, created) VALUES (%s, %s, %s)
ON CONFLICT DO NOTHING RETURNING id, name, config, created"""
_ADD_KEY = f"INSERT INTO keys ({KEY}) VALUES (%s, %b, %s, %s, %s, %s, %s)"
_SET_PROPENSITIES = """
WITH given AS (SELECT * FROM json_to_recordset(%s::json) AS given (experiment bigint, id text, propensity text)),
locked AS (
    SELECT d.experiment, d.id, given.propensity
    FROM decisions AS d JOIN given ON d.id = given.id AND d.experiment + 0 = given.experiment
    ORDER BY d.id, d.experiment FOR UPDATE OF d
)
UPDATE decisions AS d SET propensity = coalesce(d.propensity, locked.propensity) FROM locked
WHERE d.id = locked.id AND d.experiment + 0 = locked.experiment"""

_position = itemgetter(0, 1)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _guarded(
    method: Callable[Concatenate[PostgresTransaction, _P], _R],
) -> Callable[Concatenate[PostgresTransaction, _P], _R]:
    """The method, after whose failure nothing of the transaction is left."""

    @wraps(method)
    def guarded(self: PostgresTransaction, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.ended:
            raise LogError("the transaction has ended, and nothing of it was kept; begin another")
        try:
            return method(self, *args, **kwargs)
        except (psycopg.Error, OverflowError, UnicodeError) as error:
            raise self._failed(error) from None

    return guarded


class PostgresTransaction:
    """What is appended together: all of it, or nothing.

    The number of a transaction, by which its records are ordered, is drawn by its first write or lock. What builds on
    records of others must be in order after them, and is, where the transaction began with `lock_changes` and `states`.
    """

    def __init__(self, connection: Connection, failed: Callable[[Exception], Exception]) -> None:
        """`failed` rolls back, and makes the error to raise of one of psycopg."""
        self._cursor = connection.cursor(binary=True)
        self._failed = failed
        self._seqs: dict[Key, int] = {}
        self._new_experiments: set[int] = set()
        self.ended = False
        self.has_records = False
        """Whether there is something for other processes to read."""

    @_guarded
    def decisions(self, keys: Collection[Key]) -> dict[Key, DecisionRow]:
        """Those of the decisions that there are."""
        return self._decisions(FIND, keys)

    @_guarded
    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Those of the decisions that there are, with their outcomes; nobody else changes them until the end."""
        found = self._decisions(LOCK, keys)
        if not found:
            return {}
        # A statement of its own sees what those have appended who held the locks before.
        self._cursor.execute(OUTCOMES, ([self._seqs[key] for key in found],))
        outcomes: dict[int, list[OutcomeRow]] = defaultdict(list)
        for row in sorted(self._cursor.fetchall(), key=_position):
            outcomes[row[-1]].append(outcome(row[:-1]))
        return {key: State(row, outcomes.get(self._seqs[key], [])) for key, row in found.items()}

    @_guarded
    def add_decisions(self, rows: Sequence[DecisionRow]) -> dict[Key, DecisionRow]:
        """Append decisions with distinct ids; those whose ids were there already are left as they are, and returned."""
        if not rows:
            return {}
        self._cursor.execute(ADD_DECISIONS, (decisions_json(rows),))
        added = {Key(experiment, id): seq for seq, experiment, id in self._cursor.fetchall()}
        self._seqs.update(added)
        if len(added) == len(rows):
            return {}
        return self._decisions(FIND, [row.key for row in rows if row.key not in added])

    @_guarded
    def add_outcomes(self, rows: Sequence[OutcomeRow]) -> None:
        """Append outcomes of decisions whose states were read; sets their `seq` and `xid`."""
        if not rows:
            return
        keys = [Key(row.experiment, row.decision) for row in rows]
        self._decisions(FIND, [key for key in keys if key not in self._seqs])
        for key in keys:
            if key not in self._seqs:
                raise psycopg.IntegrityError(f"there is no decision {key.decision!r} in experiment {key.experiment}")
        self._cursor.execute(ADD_OUTCOMES, (outcomes_json(rows, (self._seqs[key] for key in keys)),))
        self.has_records = True
        for row, (xid, seq) in zip(rows, self._cursor.fetchall(), strict=True):
            row.xid, row.seq = xid, seq

    @_guarded
    def set_states(self, rows: Sequence[DecisionRow]) -> None:
        """Write `active`, `closes` and `open` of decisions whose states were read."""
        if rows:
            self._cursor.execute(SET_STATES, (states_json(rows),), prepare=False)

    @_guarded
    def lock_changes(self, experiment: int) -> Position:
        """Have nobody else append changes of an experiment until the end; the position of the last one, or (0, 0)."""
        if experiment in self._new_experiments:
            return Position()
        self._cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
        if self._cursor.fetchone() != (True,):
            raise RuntimeError("lock_changes comes after a write; call it first, or the changes are not in order")
        self._cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", (CHANGES, experiment))
        self._cursor.execute(
            _LAST_CHANGE, (experiment,)
        )  # a statement of its own, which sees what came before the lock
        found = self._cursor.fetchone()
        return Position() if found is None else Position(*found)

    @_guarded
    def add_change(self, row: ChangeRow) -> None:
        """Append a change; sets its `seq` and `xid`."""
        self._cursor.execute(_ADD_CHANGE, (row.experiment, row.at, row.kind, row.by, json(row.body)))
        self.has_records = True
        (row.xid, row.seq) = self._one()

    @_guarded
    def add_experiment(self, name: str, config: dict[str, Any], at: float) -> ExperimentRow:
        """A new experiment; or the one that has the name already."""
        found = self._cursor.execute(_FIND_EXPERIMENT, (name,)).fetchone()
        if found is None:
            found = self._cursor.execute(_ADD_EXPERIMENT, (name, json(config), at)).fetchone()
            if found is not None:
                self._new_experiments.add(found[0])
        if found is None:  # another process was quicker
            self._cursor.execute(_FIND_EXPERIMENT, (name,))
            found = self._one()
        return experiment(found)

    @_guarded
    def add_model(self, row: ModelRow) -> None:
        """A new version of a model, whose file has been put."""
        self._cursor.execute(
            "INSERT INTO models (experiment, version, digest, from_seq) VALUES (%s, %s, %s, %s)",
            (row.experiment, row.version, row.digest, row.from_seq),
        )

    @_guarded
    def put_file(self, digest: str, data: bytes) -> None:
        """Keep the bytes of a model or a tree, by their digest (sha256, hexadecimal); twice is once."""
        if self._cursor.execute("SELECT FROM files WHERE digest = %s", (digest,)).fetchone() is None:
            self._cursor.execute(f"SET LOCAL statement_timeout = '{LARGE_SECONDS}s'")
            insert = "INSERT INTO files (digest, data) VALUES (%s, %b) ON CONFLICT DO NOTHING"
            self._cursor.execute(insert, (digest, data))

    @_guarded
    def add_key(self, row: KeyRow) -> None:
        """A new key."""
        self._cursor.execute(
            _ADD_KEY, (row.id, row.hash, json(row.scopes), row.experiment, row.rate, row.created, row.revoked)
        )

    @_guarded
    def revoke_key(self, id: str, at: float) -> bool:
        """Have a key no longer be one; whether there was such a key that was not revoked."""
        self._cursor.execute("UPDATE keys SET revoked = %s WHERE id = %s AND revoked IS NULL", (at, id))
        return self._cursor.rowcount == 1

    @_guarded
    def set_propensities(self, found: Sequence[tuple[Key, list[float]]]) -> None:
        """Fill in propensities that decisions do not have yet."""
        given = [{"experiment": key[0], "id": key[1], "propensity": json(numbers)} for key, numbers in found]
        if given:
            self._cursor.execute(_SET_PROPENSITIES, (json(given),), prepare=False)

    @_guarded
    def quarantine(self, position: Position, why: str) -> None:
        """Note that a record could not be learned; twice is once."""
        insert = "INSERT INTO quarantine (xid, seq, why) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        self._cursor.execute(insert, (*position, printable(why)))

    def _decisions(self, query: str, keys: Collection[Key]) -> dict[Key, DecisionRow]:
        """Decisions, and notes of their numbers."""
        if not keys:
            return {}
        found = {}
        for values in self._cursor.execute(query, key_arrays(keys)).fetchall():
            row = decision(values)
            found[row.key] = row
            self._seqs[row.key] = values[1]
        return found

    def _one(self) -> tuple[Any, ...]:
        row = self._cursor.fetchone()
        assert row is not None
        return row
