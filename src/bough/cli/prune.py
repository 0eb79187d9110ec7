"""bough prune: what is old goes from the log of a service, and what it taught stays."""

from __future__ import annotations

import argparse
import sys
import time

from bough.cli import logs, output


def prune(given: argparse.Namespace) -> None:
    """Delete contexts, and then rows, behind a snapshot that holds what they taught."""
    before = logs.moment(given.before, "--before")
    assert before is not None
    if before > time.time():
        raise ValueError(f"--before is {given.before!r}, which is yet to come; give a time that is past")
    with logs.opened(given) as log:
        rows = logs.experiments_in(log, given.experiment)
        _ask(given, [row.name for row in rows])
        from bough.service.offline import prune as pruned

        found = {row.name: pruned(log, row, before, given.contexts_only) for row in rows}
    what = "contexts" if given.contexts_only else "decisions"
    lines = [f"{name}: {n:,} {what} deleted" for name, n in found.items()]
    output.show(given, "\n".join(lines), {"before": logs.said(before), "what": what, "deleted": found})


def _ask(given: argparse.Namespace, names: list[str]) -> None:
    """Have a person say yes; what is deleted is gone."""
    if given.yes or not sys.stdin.isatty():
        return
    what = "contexts of decisions" if given.contexts_only else "decisions"
    print(f"Delete the {what} before {given.before} of {', '.join(names)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("not confirmed, and nothing was deleted; give --yes, or answer y")
