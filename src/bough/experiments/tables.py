"""Tables of the report, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.experiments.experiment import Outcome


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with these columns."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def regret_table(outcome: Outcome) -> str:
    """The final regret of every policy in every cell that it plays in, and that of the baseline over HierTS's."""
    policies, baseline = outcome.experiment.policies, outcome.experiment.baseline
    compared = {baseline, "HierTS"} <= set(policies)
    head = ["cell", "actions", *policies, *([f"{baseline} / HierTS"] if compared else [])]
    rows = []
    for r in outcome.results:
        regrets = [f"{r.mean[name][-1]:.1f} ± {r.error[name][-1]:.1f}" if name in r.mean else "" for name in policies]
        ratio = ["{:.2f} ± {:.2f}".format(*r.ratio(baseline, "HierTS"))] if compared else []
        rows.append([r.cell.name, str(r.n_actions), *regrets, *ratio])
    return table(head, rows)
