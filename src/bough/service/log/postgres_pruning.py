"""Deleting what is old from the log in PostgreSQL, in pieces that hardly disturb a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bough.service.log.postgres_connections import Connection
from bough.service.records import Position

_PIECE = 1_000  # decisions per transaction

# Decisions that someone else holds are left for the next time, so that pruning never waits, nor has two wait for each
# other. Those with and without contexts have an index each, by age.
_OLD = """SELECT seq, id, at FROM decisions
WHERE experiment = %(experiment)s AND at < %(before)s AND (at, seq) > (%(at)s, %(seq)s) AND (NOT open OR active IS NULL)
    AND context IS {context} ORDER BY at, seq LIMIT %(piece)s FOR UPDATE SKIP LOCKED"""
# A statement of its own sees the outcomes that came until the decisions were locked.
_CHOSEN = """WITH chosen AS (
    SELECT old.seq, old.id FROM unnest(%(seqs)s::bigint[], %(ids)s::text[]) AS old (seq, id)
    WHERE NOT EXISTS (SELECT FROM outcomes AS o WHERE o.decision_seq = old.seq
        AND (o.xid, o.seq) > (%(until_xid)s, %(until_seq)s))
)"""
_DELETE = f"""{_CHOSEN}, deleted AS (DELETE FROM outcomes AS o USING chosen WHERE o.decision_seq = chosen.seq)
DELETE FROM decisions AS d USING chosen WHERE d.id = chosen.id AND d.experiment + 0 = %(experiment)s"""
_FORGET = f"""{_CHOSEN}, forgotten AS (
    UPDATE outcomes AS o SET context = NULL FROM chosen WHERE o.decision_seq = chosen.seq
)
UPDATE decisions AS d SET context = NULL FROM chosen WHERE d.id = chosen.id AND d.experiment + 0 = %(experiment)s"""


class Place(NamedTuple):
    """How far pruning has come."""

    at: float
    seq: int


START = Place(float("-inf"), 0)


def prune(
    write: Callable[[Callable[[Connection], tuple[int, Place | None]]], tuple[int, Place | None]],
    experiment: int,
    before: float,
    until: Position,
    *,
    contexts_only: bool,
) -> int:
    """Delete contexts, or decisions with their outcomes; how many decisions it were."""
    count = 0
    for with_context in (True,) if contexts_only else (True, False):
        place: Place | None = START
        while place is not None:
            piece = _Piece(experiment, before, until, contexts_only, with_context, place)
            found, place = write(piece.prune)
            count += found
    return count


class _Piece(NamedTuple):
    """What is pruned in one transaction."""

    experiment: int
    before: float
    until: Position
    contexts_only: bool
    with_context: bool
    place: Place

    def prune(self, connection: Connection) -> tuple[int, Place | None]:
        """How many decisions it were, and where to go on, if anywhere."""
        old = connection.execute(
            _OLD.format(context="NOT NULL" if self.with_context else "NULL"),
            {"experiment": self.experiment, "before": self.before, "piece": _PIECE, **self.place._asdict()},
        ).fetchall()
        if not old:
            return 0, None
        done = connection.execute(
            _FORGET if self.contexts_only else _DELETE,
            {
                "experiment": self.experiment,
                "seqs": [row[0] for row in old],
                "ids": [row[1] for row in old],
                "until_xid": self.until.xid,
                "until_seq": self.until.seq,
            },
            prepare=False,  # as for SET_STATES
        )
        seq, _, at = old[-1]
        return done.rowcount, Place(at, seq) if len(old) == _PIECE else None
