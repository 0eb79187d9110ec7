"""report.md and report.html: the claims first, then each experiment's figure, regrets and bounds."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt

from bough.experiments.claims import bounds, judge
from bough.experiments.runner import CellResult, Outcome, versions
from bough.experiments.sweeps import EXPERIMENTS, NAMES, Experiment

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
        _table(
            ["claim", "where in the paper", "measured", "verdict"],
            (
                [c.claim, c.where, c.measured, f"**{c.verdict}**"]
                for c in judge({name: outcome.results for name, outcome in outcomes.items()})
            ),
        ),
    ]
    for name in NAMES:
        if name in outcomes:
            parts += _section(outcomes[name])
        else:
            parts += [f"## {name}", absent.get(name, f"Not run this time: `bough reproduce {name}`.")]
    return "\n\n".join(parts) + "\n"


def _section(outcome: Outcome) -> list[str]:
    experiment, results = outcome.experiment, outcome.results
    synthetic = experiment.name in EXPERIMENTS
    parts = [
        f"## {experiment.name}: {experiment.title}",
        f"{experiment.where[0].upper()}{experiment.where[1:]}. {_sizes(results)}; seed {outcome.settings.seed}.",
        f"![{experiment.title}]({experiment.name}.png)",
    ]
    if experiment.name == "catalogue":
        parts += [text for result in results for text in _reached(result)]
    else:
        parts.append(_regrets(experiment, results))
    if synthetic:
        parts += [
            "Bounds of Theorem 1 with delta = 1/n: HierTS with the constant of Lemma 4 and with the telescoped one, TS "
            "and FlatTS with the telescoped one, the ratio of the complexities of TS and HierTS, and the regret of "
            "uniform play. A bound above the regret of uniform play is vacuous and stands in parentheses.",
            _table(
                ["cell", "HierTS, lemma", "HierTS, telescoped", "TS", "FlatTS", "G(TS) / G(HierTS)", "uniform play"],
                map(_bound_row, results),
            ),
        ]
    if experiment.details is not None:
        parts.append(experiment.details())
    return parts


def _sizes(results: Sequence[CellResult]) -> str:
    """How many runs of how many rounds the cells had, those of most of them first."""
    sizes = Counter((r.runs, len(r.mean["HierTS"])) for r in results).most_common()
    parts = [f"{sizes[0][0][0]} runs of {sizes[0][0][1]:,} rounds a cell"]
    for (runs, rounds), _ in sizes[1:]:
        names = [r.cell.name for r in results if (r.runs, len(r.mean["HierTS"])) == (runs, rounds)]
        parts.append(f"{runs} of {rounds:,} for {'; '.join(names)}")
    return ", but ".join(parts)


def _regrets(experiment: Experiment, results: Sequence[CellResult]) -> str:
    return _table(
        ["cell", "actions", *experiment.policies, f"{experiment.baseline} / HierTS"],
        (
            [
                r.cell.name,
                str(r.n_actions),
                *(f"{r.mean[name][-1]:.1f} ± {r.error[name][-1]:.1f}" for name in experiment.policies),
                "{:.2f} ± {:.2f}".format(*r.ratio(experiment.baseline, "HierTS")),
            ]
            for r in results
        ),
    )


def _reached(result: CellResult) -> list[str]:
    """What matters to a user in one cell of real rewards."""
    rounds = len(next(iter(result.mean.values())))
    stops = [1_000, rounds] if rounds > 1_000 else [rounds]
    few = " There are fewer rounds than products." if rounds < result.n_actions else ""
    rows = []
    for name in result.mean:
        low, high = np.quantile(result.final[name], [0.25, 0.75])
        rows.append(
            [
                name,
                f"{result.mean[name][-1]:.0f} ± {result.error[name][-1]:.0f}",
                f"{low:.0f} to {high:.0f}",
                *(f"{result.share_of_best(name, stop):.0%}" for stop in stops),
                f"{result.tried[name].mean():,.0f}",
                f"{np.median(result.seconds[name]) / rounds * 1e6:.0f} µs",
            ]
        )
    shares = [f"share of the best at round {stop:,}" for stop in stops]
    return [
        f"### {result.cell.name[0].upper()}{result.cell.name[1:]}",
        f"{result.n_actions:,} products; the best earns {result.best:.3f} a line.{few} A share is that of the mean "
        "reward over the last tenth of the rounds up to then.",
        _table(["policy", "regret", "half of the runs", *shares, "products tried", "time a round"], rows),
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
