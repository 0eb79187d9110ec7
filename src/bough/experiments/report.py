"""report.md and report.html: the claims first, then the section of each experiment."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from markdown_it import MarkdownIt

from bough.experiments import registry
from bough.experiments.claims import judge
from bough.experiments.experiment import Outcome, Results
from bough.experiments.runner import versions
from bough.experiments.tables import regret_table, table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; vertical-align: top; }
img { max-width: 100%; }
code { background: #f4f4f4; padding: 0.1rem 0.3rem; }
"""


def write_report(outcomes: Mapping[str, Outcome], absent: Mapping[str, str], out: Path) -> list[Path]:
    """Write both reports into the folder that holds the figures; `absent` says how to get what was not run."""
    text = markdown(outcomes, absent)
    paths = [out / "report.md", out / "report.html"]
    paths[0].write_text(text, encoding="utf-8")
    body = re.sub(r'src="([^"]+\.png)"', lambda match: f'src="{_inlined(out / match[1])}"', _html(text))
    page = (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>bough: the paper, reproduced</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}</body>\n</html>\n"
    )
    paths[1].write_text(page, encoding="utf-8")
    return paths


def _html(text: str) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(text))


def _inlined(picture: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()


def markdown(outcomes: Mapping[str, Outcome], absent: Mapping[str, str]) -> str:
    """The whole report as Markdown."""
    parts = [
        "# Deep Hierarchy in Bandits, reproduced",
        ", ".join(f"{name} {number}" for name, number in versions().items())
        + ". Regret is cumulative, averaged over the runs, ± one standard error.",
        "## Claims",
        "Each verdict is computed from the data by a rule in `bough.experiments.claims`; a gap counts where it is "
        "more than two standard errors of the paired difference.",
        table(
            ["claim", "where in the paper", "measured", "verdict"],
            ([c.claim, c.where, c.measured, f"**{c.verdict}**"] for c in judge(outcomes.values())),
        ),
    ]
    for name in registry.EXPERIMENTS:
        if name in outcomes:
            parts += _section(outcomes[name])
        else:
            parts += [f"## {name}", absent.get(name, f"Not run this time: `bough reproduce {name}`.")]
    return "\n\n".join(parts) + "\n"


def _section(outcome: Outcome) -> list[str]:
    experiment, results = outcome.experiment, outcome.results
    parts = [
        f"## {experiment.name}: {experiment.title}",
        f"{experiment.where[0].upper()}{experiment.where[1:]}. {_sizes(results)}; seed {outcome.settings.seed}.",
        f"![{experiment.title}]({experiment.name}.png)",
    ]
    parts += [regret_table(outcome)] if experiment.section is None else experiment.section(outcome)
    if experiment.details is not None:
        parts.append(experiment.details())
    return parts


def _sizes(results: Results) -> str:
    """How many runs of how many rounds the cells had, those of most of them first."""
    sizes = Counter((r.runs, r.rounds) for r in results).most_common()
    parts = [f"{sizes[0][0][0]} runs of {sizes[0][0][1]:,} rounds a cell"]
    for (runs, rounds), _ in sizes[1:]:
        names = [r.cell.name for r in results if (r.runs, r.rounds) == (runs, rounds)]
        parts.append(f"{runs} of {rounds:,} for {'; '.join(names)}")
    return ", but ".join(parts)
