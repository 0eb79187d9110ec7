"""bough export and bough rebuild: the log of a service as a file, and the agent that such a file leads to."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from bough.cli import inputs, logs, output

_PIECE = 10_000  # decisions that are read at once
_SHOWN = 5  # reasons why rows could not be learned


def export(given: argparse.Namespace) -> None:
    """Write the events of an experiment, or its decisions, to a file."""
    since, until = (logs.moment(getattr(given, name), f"--{name}") for name in ("since", "until"))
    inputs.check_target(given.out, "the file")
    logs.check_extras(given)
    from bough.service import exports, tables

    tables.format_of(given.out)
    output.watch(given, lambda: [given.out])
    with logs.opened(given) as log:
        [row] = logs.experiments_in(log, given.experiment)
        write: Any = exports.write_decisions if given.decisions else exports.write_events
        options = {"features": _features(log, row.id)} if given.decisions else {}
        decided = _decided_for(log, row.id, since, until) if given.decisions else 0
        n = write(given.out, log, row.id, since, until, **options)
    what = "decisions" if given.decisions else "events"
    results = {"file": given.out, "what": what, "rows": n}
    lines = [f"{what}: {given.out} ({n:,} rows)"]
    if given.decisions:
        results["left_out"] = left_out = max(decided - n, 0)  # more may be decided while it is written
        lines += [f"left out: {left_out:,}, without a reward, cancelled or taken back"] if left_out else []
    output.show(given, "\n".join(lines), results)


def _decided_for(log: Any, experiment: int, since: float | None, until: float | None) -> int:
    """How many actions were decided for in some time, whatever came of them."""
    from bough.service.records import Position

    n, position = 0, Position()
    while found := log.decisions_after(experiment, position, _PIECE):
        position = found[-1][0]
        rows = [row for _, row in found if (since is None or row.at >= since) and (until is None or row.at < until)]
        n += sum(len(row.actions) for row in rows)
    return n


def _features(log: Any, experiment: int) -> tuple[str, ...] | None:
    """What the model of an experiment calls the numbers of its contexts; None where it does not."""
    from bough.model.model import Model
    from bough.service.files import start_of

    models = log.models(experiment)
    if not models:
        return None
    start = start_of(log.file(models[-1].digest))
    return (start if isinstance(start, Model) else start._model).feature_names


def rebuild(given: argparse.Namespace) -> None:
    """Replay events on a model, and write the agent."""
    inputs.check_target(given.out, "--out")
    inputs.check_seed(given.seed)
    for path in (given.events, given.model):
        if path is not None and not path.is_file():
            raise ValueError(f"{path} cannot be read: there is no such file")
    logs.check_extras(given)
    output.watch(given, lambda: [given.out])
    with logs.in_one_line():
        from bough.service.exports import read_events
        from bough.service.files import start_of
        from bough.service.rebuilding import rebuilt

        model = None if given.model is None else start_of(given.model.read_bytes())
        files: dict[str, bytes] = {}
        found = rebuilt(read_events(given.events, files), files, model, given.seed)
        found.agent.save(given.out)
    reasons = Counter(why for _, why in found.refused)
    lines = [f"learned: {found.learned:,} rows", f"could not be learned: {len(found.refused):,} rows"]
    lines += [f"  {n:,}: {why}" for why, n in reasons.most_common(_SHOWN)]
    results = {"learned": found.learned, "changes": found.changes, "refused": dict(reasons), "agent": given.out}
    output.show(given, "\n".join([*lines, f"agent: {given.out}"]), results)
