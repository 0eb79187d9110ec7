"""branching: what the tree is worth as it grows wider, in Problem 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bough.experiments import synthetic
from bough.experiments.claims import apart, decide, slope
from bough.experiments.experiment import Claim, Experiment, Outcome, PaperNumber, Results, Verdict
from bough.experiments.figures import curves, final_regrets
from bough.experiments.options import Options
from bough.experiments.synthetic import SyntheticCell
from bough.plotting import regret_panels

_PANELS = (2, 5, 10)  # the branching factors that have a panel
BASELINES = ("FlatTS", "TS")


def experiment(_: Options) -> Experiment:
    """The sweep of figure 2."""
    return Experiment(
        "branching",
        "Problem 2, height 2, branching from 2 to 10",
        "section 6.1, figure 2",
        tuple(SyntheticCell("increasing", b, 2) for b in range(2, 11)),
        figure=figure,
        claims=claims,
        pooled_claims=synthetic.claims,
        paper=paper,
        section=synthetic.section,
    )


def figure(experiment: Experiment, results: Results) -> Any:
    """Regret against rounds for three branching factors, and the final regret for all."""
    panels = {f"b = {r.cell.branching}": curves(r) for r in results if r.cell.branching in _PANELS}
    final = final_regrets(experiment, results)
    return regret_panels(panels, ("branching factor b", [r.cell.branching for r in results], final))


def paper(outcome: Outcome) -> list[PaperNumber]:
    """What section 6.1 says of this sweep."""
    first, last = outcome.results[0], outcome.results[-1]
    gains = [
        f"{base} / HierTS from {first.ratio(base, 'HierTS')[0]:.2f} at b = {first.cell.branching} to "
        f"{last.ratio(base, 'HierTS')[0]:.2f} at b = {last.cell.branching}"
        for base in BASELINES
    ]
    swept = _listed([r.cell.branching for r in outcome.results])
    return [
        *synthetic.settings_of_paper(outcome, "Problem 2, varying b"),
        PaperNumber("branching factors b at height 2", "figure 2", "printed in the figure only", swept),
        PaperNumber(
            "regret at height 2",
            "section 6.1",
            "HierTS significantly outperforms both baselines for all b",
            "; ".join(gains),
        ),
    ]


def claims(results: Results) -> list[Claim]:
    """HierTS against both baselines, and how its gain grows."""
    return [below_both(results), apart_from_flat(results)]


def below_both(results: Results) -> Claim:
    """Holds where HierTS is significantly below both baselines for every b, in part where that is so more often."""
    gaps = {(r.cell.branching, base): r.difference(base, "HierTS") for r in results for base in BASELINES}
    wide = apart(min(r.runs for r in results))
    below = {key for key, (gap, error) in gaps.items() if gap > wide * error}
    above = {key for key, (gap, error) in gaps.items() if gap < -wide * error}
    verdict = decide(len(below), len(above), len(gaps))
    measured = f"significantly lower in {len(below)} of {len(gaps)} comparisons"
    for base in BASELINES:
        for which, keys in (("significantly higher than", above), ("within noise of", gaps.keys() - below - above)):
            cells = [
                f"{b} ({-gaps[b, base][0]:+.1f} ± {gaps[b, base][1]:.1f})" for b, name in sorted(keys) if name == base
            ]
            if cells:
                measured += f"; {which} {base} at b = {', '.join(cells)}"
    claim = Claim("HierTS has lower regret than both baselines for every b", "section 6.1, figure 2", measured, verdict)
    if verdict != "holds in part":
        return claim
    holding = [r.cell.branching for r in results if all((r.cell.branching, base) in below for base in BASELINES)]
    return replace(claim, holds=f"for b = {_listed(holding)}" if holding else f"in {len(below)} of {len(gaps)}")


def _listed(values: list[int]) -> str:
    """Whole numbers in a line, with three or more in a row as a range.

    >>> _listed([2, 4, 5, 6, 9, 10])
    '2, 4 to 6, 9, 10'
    """
    parts: list[str] = []
    start = 0
    for i, value in enumerate(values, 1):
        if i == len(values) or values[i] != value + 1:
            row = values[start:i]
            parts += [f"{row[0]} to {row[-1]}"] if len(row) > 2 else [str(one) for one in row]
            start = i
    return ", ".join(parts)


def apart_from_flat(results: Results) -> Claim:
    """The slope of the share of FlatTS's regret that HierTS saves, against b: holds where that is above 0."""
    branching = np.array([float(result.cell.branching) for result in results])
    pairs = [result.ratio("HierTS", "FlatTS") for result in results]
    saved, error = np.array([1.0 - value for value, _ in pairs]), np.array([error for _, error in pairs])
    claim = Claim("The gain over FlatTS grows with the branching factor", "beyond the paper", "", "undecided")
    if not (error > 0.0).all():
        return replace(claim, measured="too few runs to form the ratios")
    found, uncertainty, _ = slope(branching, saved, error)
    wide = apart(min(r.runs for r in results)) * uncertainty
    verdict: Verdict = "holds" if found > wide else "undecided"
    if found < -wide:
        verdict = "does not hold"
    ends = ", ".join(f"{saved[i]:.0%} ± {error[i]:.0%} at b = {branching[i]:.0f}" for i in (0, -1))
    return replace(claim, measured=f"regret saved against FlatTS: {ends}", verdict=verdict)
