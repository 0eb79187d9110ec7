"""bough key: the keys of a service, made, listed and revoked, also while it runs."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from bough.cli import inputs, logs, output

if TYPE_CHECKING:
    from bough.service.log.base import Transaction
    from bough.service.records import KeyRow

_BY = "command"
"""Who changes keys, in the log: nobody with a key."""


def create(given: argparse.Namespace) -> None:
    """Make a key, and print it this once."""
    scopes: Any = inputs.listed(given.scopes, "--scopes", "scopes")
    logs.check_extras(given)
    from bough.service.auth import make_key
    from bough.service.records import ChangeRow

    now = time.time()
    token, row = make_key(scopes, at=now, experiment=given.experiment, rate=given.rate)
    with logs.opened(given, make=True) as log:
        if given.experiment is not None:
            logs.experiments_in(log, given.experiment)

        def work(transaction: Transaction) -> None:
            transaction.add_key(row)
            transaction.add_change(ChangeRow(0, now, "key", _BY, {"created": row.id}))

        logs.written(log, work)
    text = f"{token}\n{row.id}: {_reach(row)}. The key is shown this once; send it as Authorization: Bearer KEY."
    output.show(given, text, {"key": token, **_results(row)})


def show(given: argparse.Namespace) -> None:
    """List all keys, without their tokens."""
    with logs.opened(given) as log:
        rows = log.keys()
    head = ["id", "scopes", "experiment", "rate", "created", "revoked"]
    lines = [
        [
            row.id, ",".join(row.scopes), row.experiment or "all", "" if row.rate is None else f"{row.rate:g}",
            str(logs.said(row.created)), logs.said(row.revoked) or "",
        ]
        for row in rows
    ]  # fmt: skip
    text = output.table(head, lines) if rows else "there are no keys; bough key create makes one"
    output.show(given, text, {"keys": [_results(row) for row in rows]})


def revoke(given: argparse.Namespace) -> None:
    """Have a key no longer be one."""
    with logs.opened(given) as log:
        from bough.service.records import ChangeRow

        now = time.time()

        def work(transaction: Transaction) -> bool:
            found = transaction.revoke_key(given.id, now)
            if found:
                transaction.add_change(ChangeRow(0, now, "key", _BY, {"revoked": given.id}))
            return found

        if not logs.written(log, work):
            raise ValueError(f"there is no key {given.id!r} that is valid; see bough key list for those that there are")
    output.show(given, f"{given.id} is no longer a key", {"id": given.id, "revoked": logs.said(now)})


def _reach(row: KeyRow) -> str:
    where = "all experiments" if row.experiment is None else f"the experiment {row.experiment}"
    rate = "" if row.rate is None else f", at most {row.rate:g} requests per second"
    return f"{', '.join(row.scopes)}, for {where}{rate}"


def _results(row: KeyRow) -> dict[str, Any]:
    return logs.plain_row(
        id=row.id, scopes=row.scopes, experiment=row.experiment, rate=row.rate, created=row.created, revoked=row.revoked
    )
