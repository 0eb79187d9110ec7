"""report.md and report.html: the claims first, then the section of each experiment."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from markdown_it import MarkdownIt

from bough.experiments import registry
from bough.experiments.claims import FEWEST, judge
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


_PAPER = (
    "Joey Hong, Branislav Kveton, Sumeet Katariya, Manzil Zaheer and Mohammad Ghavamzadeh, "
    '"Deep Hierarchy in Bandits", International Conference on Machine Learning (ICML) 2022'
)


def write_report(
    outcomes: Mapping[str, Outcome], absent: Mapping[str, str], out: Path, command: str = "bough reproduce"
) -> list[Path]:
    """Write both reports into the folder that holds the figures.

    `absent` says how to get what was not run, and `command` what was.
    """
    text = markdown(outcomes, absent, command)
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


def markdown(outcomes: Mapping[str, Outcome], absent: Mapping[str, str], command: str = "bough reproduce") -> str:
    """The whole report as Markdown."""
    parts = [
        "# Deep Hierarchy in Bandits, reproduced",
        f"The paper: {_PAPER}.",
        f"Written on {date.today().isoformat()} by `{command}`, with "
        + ", ".join(f"{name} {number}" for name, number in versions().items())
        + ". Regret is cumulative and lower is better; it is averaged over the runs, ± one standard error.",
        "## Claims",
        "Each verdict is computed from the data by a rule in `bough.experiments.claims`; a gap counts where the 95% "
        "interval of the paired difference excludes 0 (Student's: about two standard errors with many runs). A claim "
        "holds, holds in part (and it says what of it holds), or does not hold; it is undecided where there are too "
        f"few runs to tell, and always where there are fewer than {FEWEST}.",
        table(
            ["claim", "where in the paper", "measured", "verdict"],
            ([c.claim, c.where, c.measured, f"**{c.verdict}**{c.but}"] for c in judge(outcomes.values())),
        ),
        *_beside_the_paper(outcomes),
    ]
    for name in registry.EXPERIMENTS:
        if name in outcomes:
            parts += _section(outcomes[name])
        else:
            parts += [f"## {name}", absent.get(name, f"Not run this time: `bough reproduce {name}`.")]
    return "\n\n".join(parts) + "\n"


def _beside_the_paper(outcomes: Mapping[str, Outcome]) -> list[str]:
    """What the paper says in words and numbers, beside what was found; nothing where no experiment is the paper's."""
    told = [outcome.experiment.paper(outcome) for outcome in outcomes.values() if outcome.experiment.paper is not None]
    if not told:
        return []
    return [
        "## The paper's numbers beside these",
        "The paper shows its regrets in figures only, so that what can be compared is what its text says.",
        table(["what", "where in the paper", "the paper", "here"], [list(one) for numbers in told for one in numbers]),
    ]


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
    parts = [f"{sizes[0][0][0]} runs of {sizes[0][0][1]:,} rounds per cell"]
    for (runs, rounds), _ in sizes[1:]:
        names = [r.cell.name for r in results if (r.runs, r.rounds) == (runs, rounds)]
        parts.append(f"{runs} of {rounds:,} for {'; '.join(names)}")
    return ", but ".join(parts)
