"""What the service asks of a database: to append and to read from a place on, and little more.

One suite of tests runs on every implementation. All calls block; who calls them from where is the writer's and the
tail's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from bough.service.records import (
    ChangeRow,
    DecisionRow,
    ExperimentRow,
    Key,
    KeyRow,
    ModelRow,
    OutcomeRow,
    Position,
    Record,
    SnapshotRow,
    State,
)


class LogError(Exception):
    """The database failed; nothing of the transaction was kept."""


class LogBusyError(LogError):
    """Another process is writing; try again soon."""


class LogFullError(LogError):
    """The disk is full; it goes on when there is room again."""


class LogAwayError(LogError):
    """The database does not answer; whether it has kept the transaction is not known."""


class LogSchemaError(ValueError):
    """The database has a schema that this bough cannot use; the message says what would."""


class Transaction(Protocol):
    """What is appended together: all of it, or nothing."""

    def decisions(self, keys: Collection[Key]) -> dict[Key, DecisionRow]:
        """Those of the decisions that there are."""
        ...

    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Those of the decisions that there are, with their outcomes; nobody else changes them until the end."""
        ...

    def add_decisions(self, rows: Sequence[DecisionRow]) -> dict[Key, DecisionRow]:
        """Append decisions with distinct ids; those whose ids were there already are left as they are, and returned."""
        ...

    def add_outcomes(self, rows: Sequence[OutcomeRow]) -> None:
        """Append outcomes of decisions whose states were read; sets their `seq` (and `xid`)."""
        ...

    def set_states(self, rows: Sequence[DecisionRow]) -> None:
        """Write `active`, `closes` and `open` of decisions whose states were read."""
        ...

    def lock_changes(self, experiment: int) -> Position:
        """Have nobody else append changes of an experiment until the end; the position of the last one, or (0, 0).

        It comes before anything is written, but for the experiment itself.
        """
        ...

    def add_change(self, row: ChangeRow) -> None:
        """Append a change; sets its `seq` (and `xid`)."""
        ...

    def add_experiment(self, name: str, config: dict[str, Any], at: float) -> ExperimentRow:
        """A new experiment; or the one that has the name already."""
        ...

    def add_model(self, row: ModelRow) -> None:
        """A new version of a model, whose file has been put."""
        ...

    def put_file(self, digest: str, data: bytes) -> None:
        """Keep the bytes of a model or a tree, by their digest (sha256, hexadecimal); twice is once."""
        ...

    def add_key(self, row: KeyRow) -> None:
        """A new key."""
        ...

    def revoke_key(self, id: str, at: float) -> bool:
        """Have a key no longer be one; whether there was such a key that was not revoked."""
        ...

    def set_propensities(self, found: Sequence[tuple[Key, list[float]]]) -> None:
        """Fill in propensities that decisions do not have yet."""
        ...

    def quarantine(self, position: Position, why: str) -> None:
        """Note that a record could not be learned; twice is once."""
        ...


class Log(Protocol):
    """A database with the log of a service."""

    one_process: bool
    """Whether only one service may use it at a time, and appending is quick enough for the loop (SQLite)."""

    # -- appending: one thread at a time ---------------------------------------------------------

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction that is committed at the end of the ``with`` statement, and rolled back by an exception.

        Raises `LogBusyError` at once where another process writes, `LogFullError` where the disk is full, and
        `LogError` for whatever else the database says.
        """
        ...

    def begin(self) -> Transaction:
        """What `transaction` begins with; then call `commit` or `rollback`, which may be in another thread."""
        ...

    def commit(self) -> None:
        """Keep what was appended since `begin`: when this returns, it is durable."""
        ...

    def rollback(self) -> None:
        """Keep nothing of what was appended since `begin`."""
        ...

    # -- reading: any thread, also while something is appended ------------------------------------

    def read_after(self, position: Position, limit: int) -> list[Record]:
        """The records after a position, of all experiments, in order, and none that another could still precede."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait until another process has appended something, or for so long; whether something may have been."""
        ...

    def end(self) -> Position:
        """The position of the last record that there is."""
        ...

    def states(self, keys: Collection[Key]) -> dict[Key, State]:
        """Decisions with their outcomes, as they are now."""
        ...

    def due(self, experiment: int, now: float, limit: int) -> list[Key]:
        """Open decisions whose windows have closed, the oldest first."""
        ...

    def n_open(self, experiment: int) -> int:
        """How many decisions wait for their windows to close."""
        ...

    def decisions_after(self, experiment: int, position: Position, limit: int) -> list[tuple[Position, DecisionRow]]:
        """The decisions of an experiment in the order in which they were logged, from a position of their own on."""
        ...

    def records(self, experiment: int, since: Position, until: Position) -> Iterator[Record]:
        """The records of an experiment, after one position and up to another; a stream."""
        ...

    def without_propensity(self, experiment: int, limit: int) -> list[DecisionRow]:
        """Decisions that have no propensity yet, in the order of what the model had learned."""
        ...

    def experiments(self) -> list[ExperimentRow]:
        """All experiments."""
        ...

    def models(self, experiment: int) -> list[ModelRow]:
        """All versions of the model of an experiment, the first one first."""
        ...

    def file(self, digest: str) -> bytes:
        """The bytes that `put_file` kept; a `KeyError` where there are none."""
        ...

    def keys(self) -> list[KeyRow]:
        """All keys, also those that were revoked."""
        ...

    def quarantined(self) -> list[tuple[Position, str]]:
        """What could not be learned, and why."""
        ...

    # -- snapshots and pruning -------------------------------------------------------------------

    def put_snapshot(self, row: SnapshotRow, data: bytes) -> None:
        """Keep a snapshot, whole or not at all; the two before it are kept too, older ones go."""
        ...

    def snapshots(self, experiment: int) -> list[SnapshotRow]:
        """The snapshots of an experiment, the newest first."""
        ...

    def snapshot(self, row: SnapshotRow) -> bytes:
        """The bytes of a snapshot; a `KeyError` where they are gone."""
        ...

    def prune(self, experiment: int, before: float, until: Position, *, contexts_only: bool) -> int:
        """Delete contexts, or whole rows, of decisions before a time that are not open, with their outcomes.

        One that was never activated waits for nothing, and goes too. Only outcomes up to a position go, which a
        snapshot must hold, and only decisions of which all have gone. It is done in pieces, each in a transaction of
        its own. How many decisions it were.
        """
        ...

    def sizes(self) -> dict[str, int]:
        """Bytes that it takes, by what for."""
        ...

    def checkpoint(self) -> None:
        """Move what is written beside the database's file into it, where there is such a thing."""
        ...

    # -- life ------------------------------------------------------------------------------------

    def try_to_keep(self) -> bool:
        """Become the keeper, or stay it; False where another process is. The lock dies with its owner."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
