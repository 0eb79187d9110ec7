"""Tables of the report, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.experiments.experiment import Outcome


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with these columns."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def regret_table(outcome: Outcome) -> str:
    """The final regret of every policy in every cell, and how many times that of HierTS the baseline has."""
    experiment = outcome.experiment
    compared = {experiment.baseline, "HierTS"} <= set(experiment.policies)
    head = ["cell", "actions", *experiment.policies]
    rows = [
        [r.cell.name, str(r.n_actions)]
        + [f"{r.mean[name][-1]:.1f} ± {r.error[name][-1]:.1f}" for name in experiment.policies]
        for r in outcome.results
    ]
    if compared:
        head.append(f"{experiment.baseline} / HierTS")
        for row, result in zip(rows, outcome.results, strict=True):
            row.append("{:.2f} ± {:.2f}".format(*result.ratio(experiment.baseline, "HierTS")))
    return table(head, rows)
