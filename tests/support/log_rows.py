"""Rows of the log to test with: what is not given is ordinary."""

from __future__ import annotations

from typing import Any

from bough.service.log.base import Log
from bough.service.records import ChangeRow, DecisionRow, Key, OutcomeRow, Record


def a_decision(id: str, **given: Any) -> DecisionRow:
    """A decision for the action "kettle", learned from at once."""
    fields: dict[str, Any] = dict(
        experiment=1,
        id=id,
        at=100.0,
        actions=["kettle"],
        context=None,
        offered=None,
        model_version=1,
        learned_xid=0,
        learned_seq=0,
        propensity=None,
        mode="learn",
        request_digest=b"\x00\xff" * 16,
        active=100.0,
        closes=None,
        learning="at_once",
        open=False,
    )
    return DecisionRow(**(fields | given))


def an_outcome(decision: str, **given: Any) -> OutcomeRow:
    """A reward of 1 for such a decision."""
    fields: dict[str, Any] = dict(
        experiment=1,
        decision=decision,
        slot=0,
        id="",
        at=101.5,
        kind="reward",
        value=1.0,
        trials=None,
        exposure=None,
        action="kettle",
        context=None,
        earned=100.0,
        learn=True,
    )
    return OutcomeRow(**(fields | given))


def a_change(**given: Any) -> ChangeRow:
    """A tick of the clock."""
    fields: dict[str, Any] = dict(experiment=1, at=102.0, kind="tick", by="keeper", body={"at": 102.0})
    return ChangeRow(**(fields | given))


def append(log: Log, *rows: DecisionRow | Record) -> None:
    """Append rows in their order, in one transaction."""
    with log.transaction() as transaction:
        for row in rows:
            if isinstance(row, DecisionRow):
                assert transaction.add_decisions([row]) == {}
            elif isinstance(row, OutcomeRow):
                transaction.states([Key(row.experiment, row.decision)])
                transaction.add_outcomes([row])
            else:
                transaction.add_change(row)
