"""report.md and report.html: the claims first, then each experiment's figure, regrets and bounds."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from bough.experiments.claims import bounds, judge
from bough.experiments.runner import CellResult, Settings, versions
from bough.experiments.sweeps import EXPERIMENTS, Experiment

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; vertical-align: top; }
img { max-width: 100%; }
code { background: #f4f4f4; padding: 0.1rem 0.3rem; }
"""


def write_report(results: Mapping[str, Sequence[CellResult]], settings: Settings, out: Path) -> list[Path]:
    """Write both reports into the folder that holds the figures."""
    text = markdown(results, settings)
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


def markdown(results: Mapping[str, Sequence[CellResult]], settings: Settings) -> str:
    """The whole report as Markdown."""
    parts = [
        "# Deep Hierarchy in Bandits, reproduced",
        f"{settings.runs} runs of {settings.rounds} rounds a cell, seed {settings.seed}; "
        + ", ".join(f"{name} {number}" for name, number in versions().items())
        + ". Regret is cumulative Bayes regret, ± one standard error.",
        "## Claims",
        "Each verdict is computed from the data by a rule in `bough.experiments.claims`; a gap counts where it is "
        "more than two standard errors of the paired difference.",
        _table(
            ["claim", "where in the paper", "measured", "verdict"],
            ([c.claim, c.where, c.measured, f"**{c.verdict}**"] for c in judge(results)),
        ),
    ]
    for name, experiment in EXPERIMENTS.items():
        parts.append(f"## {name}: {experiment.title}")
        if name in results:
            parts += _section(experiment, results[name])
        else:
            parts.append(f"Not run this time: `bough reproduce {name}`.")
    parts += [
        "## classes: the class hierarchy of section 6.2, figure 4",
        "Needs image features, and is not part of this version.",
    ]
    return "\n\n".join(parts) + "\n"


def _section(experiment: Experiment, results: Sequence[CellResult]) -> list[str]:
    regrets = _table(
        ["cell", "actions", *experiment.policies, "TS / HierTS"],
        (
            [
                r.cell.name,
                str(r.cell.branching**r.cell.height),
                *(f"{r.mean[name][-1]:.1f} ± {r.error[name][-1]:.1f}" for name in experiment.policies),
                "{:.2f} ± {:.2f}".format(*r.ratio("TS", "HierTS")),
            ]
            for r in results
        ),
    )
    return [
        f"{experiment.where[0].upper()}{experiment.where[1:]}.",
        f"![{experiment.title}]({experiment.name}.png)",
        regrets,
        "Bounds of Theorem 1 with delta = 1/n: HierTS with the constant of Lemma 4 and with the telescoped one, TS "
        "and FlatTS with the telescoped one, the ratio of the complexities of TS and HierTS, and the regret of uniform "
        "play. A bound above the regret of uniform play is vacuous and stands in parentheses.",
        _table(
            ["cell", "HierTS, lemma", "HierTS, telescoped", "TS", "FlatTS", "G(TS) / G(HierTS)", "uniform play"],
            map(_bound_row, results),
        ),
    ]


def _bound_row(result: CellResult) -> list[str]:
    values = bounds(result)
    uniform = values["uniform"]

    def shown(value: float) -> str:
        return f"{value:.0f}" if value < uniform else f"({value:.0f})"

    named = [shown(values[name]) for name in ("lemma", "telescoped", "TS", "FlatTS")]
    return [result.cell.name, *named, f"{values['ratio']:.2f}", f"{uniform:.0f}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
