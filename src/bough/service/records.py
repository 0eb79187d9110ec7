"""The rows of the log, as the state machine and the databases exchange them. Times are seconds since 1970."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

Name = str | int
"""What actions are called in an experiment: what JSON has without loss."""
Context = list[float] | dict[str, str | int | float | bool | None]
"""The numbers that a model takes, or the values of its features by their names; nothing is nested in them."""
Factors = dict[str, Name]
"""The levels of the factors of a decision, such as the store where it is made."""
Mode = Literal["learn", "observe", "frozen"]
Learning = Literal["at_once", "at_close"]

CLOSE = "!close"
"""The id of the outcome that the close of a window adds up to; no client can give such an id."""
CANCEL = "!cancel"
RETRACT = "!retract"


class Position(NamedTuple):
    """A place in the log; outcomes and changes are replayed in this order. SQLite has one writer, and xid 0."""

    xid: int = 0
    seq: int = 0


class Key(NamedTuple):
    """What a decision is found by."""

    experiment: int
    decision: str


class DecisionRow(msgspec.Struct):
    """One decision."""

    experiment: int
    id: str
    at: float
    actions: list[Name]
    """Best first; in the mode observe the caller's own."""
    context: Context | None
    offered: dict[str, Any] | None
    """`k`, `among` and `exclude`, as far as they were given; `drawn`, the score of the first action in the draw that
    decided; and `suggested`, in the mode observe."""
    model_version: int
    learned_xid: int
    """With `learned_seq`: how far in the log the model had learned."""
    learned_seq: int
    propensity: list[float] | None
    mode: Mode
    request_digest: bytes
    active: float | None
    """When it became active; None while it waits to be."""
    closes: float | None
    """When its window closes; None for never, and while it is inactive."""
    learning: Learning
    open: bool
    """Whether something is still to be learned when its window closes."""
    factors: Factors | None = None

    @property
    def key(self) -> Key:
        """What it is found by."""
        return Key(self.experiment, self.id)


OutcomeKind = Literal["reward", "closed", "default", "late", "cancelled", "retracted"]


class OutcomeRow(msgspec.Struct):
    """One thing that came of a decision; it has the action, the context and the factors, so that replay is one scan."""

    experiment: int
    decision: str
    slot: int
    """Which of the actions of the decision."""
    id: str
    """The reward's own id, empty where it has none; CLOSE, CANCEL and RETRACT are those of the service."""
    at: float
    kind: OutcomeKind
    value: float
    trials: float | None
    exposure: float | None
    action: Name
    context: Context | None
    earned: float
    """When the decision was made, which is when the reward counts as earned."""
    learn: bool
    """Whether the model learns from it, or, of what is retracted, unlearns it."""
    xid: int = 0
    seq: int = 0
    factors: Factors | None = None

    @property
    def position(self) -> Position:
        """Where in the log it is."""
        return Position(self.xid, self.seq)


ChangeKind = Literal["tree", "action", "model", "config", "tick", "prune", "key"]


class ChangeRow(msgspec.Struct):
    """One change of an experiment; one of the keys has experiment 0."""

    experiment: int
    at: float
    kind: ChangeKind
    by: str
    """The id of the key that asked for it, or "keeper"."""
    body: dict[str, Any]
    """What is to be done. A file, such as that of a tree, goes by its digest."""
    xid: int = 0
    seq: int = 0

    @property
    def position(self) -> Position:
        """Where in the log it is."""
        return Position(self.xid, self.seq)


Record = OutcomeRow | ChangeRow


class KeyRow(msgspec.Struct):
    """One key; of the token itself only a hash is kept."""

    id: str
    hash: bytes
    scopes: list[str]
    experiment: str | None
    """The name of the only experiment that it is for; None for all."""
    rate: float | None
    """Requests per second; None for the service's own limit."""
    created: float
    revoked: float | None = None


class ModelRow(msgspec.Struct):
    """One version of an experiment's model; its file goes by the digest."""

    experiment: int
    version: int
    digest: str
    from_seq: int


class ExperimentRow(msgspec.Struct):
    """One experiment as it was created; changes of its configuration are in the log."""

    id: int
    name: str
    config: dict[str, Any]
    created: float


class SnapshotRow(msgspec.Struct):
    """One snapshot: it holds what all rows up to its position have taught."""

    experiment: int
    xid: int
    seq: int
    digest: str
    created: float

    @property
    def position(self) -> Position:
        """Up to where in the log it holds."""
        return Position(self.xid, self.seq)


class State(NamedTuple):
    """A decision and what has come of it."""

    decision: DecisionRow
    outcomes: list[OutcomeRow]
