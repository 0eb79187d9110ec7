"""branching: what the tree is worth as it grows wider, in Problem 2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bough.experiments import synthetic
from bough.experiments.claims import APART, decide, slope
from bough.experiments.experiment import Claim, Experiment, Results, Verdict
from bough.experiments.figures import curves
from bough.experiments.options import Options
from bough.experiments.synthetic import SyntheticCell
from bough.plotting import regret_panels

_PANELS = (2, 5, 10)  # the branching factors that figure 2 shows


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
        section=synthetic.section,
    )


def figure(experiment: Experiment, results: Results) -> Any:
    """Regret against rounds for three branching factors, and the final regret for all."""
    panels = {f"b = {r.cell.branching}": curves(r) for r in results if r.cell.branching in _PANELS}
    final = {
        name: (np.array([r.mean[name][-1] for r in results]), np.array([r.error[name][-1] for r in results]))
        for name in experiment.policies
    }
    return regret_panels(panels, ("branching factor b", [r.cell.branching for r in results], final))


def claims(results: Results) -> list[Claim]:
    """HierTS against both baselines, and how its gain grows."""
    return [below_both(results), apart_from_flat(results)]


def below_both(results: Results) -> Claim:
    """Held where HierTS is apart below both baselines for every b, partly where in some and apart above in none."""
    gaps = {(r.cell.branching, base): r.difference(base, "HierTS") for r in results for base in ("FlatTS", "TS")}
    below = {key for key, (gap, error) in gaps.items() if gap > APART * error}
    above = {key for key, (gap, error) in gaps.items() if gap < -APART * error}
    verdict = decide(len(below), len(above), len(gaps))
    measured = f"apart below in {len(below)} of {len(gaps)} comparisons"
    for base in ("FlatTS", "TS"):
        for which, keys in (("apart above", above), ("within noise of", gaps.keys() - below - above)):
            cells = [
                f"{b} ({-gaps[b, base][0]:+.1f} ± {gaps[b, base][1]:.1f})" for b, name in sorted(keys) if name == base
            ]
            if cells:
                measured += f"; {which} {base} at b = {', '.join(cells)}"
    return Claim("HierTS has lower regret than both baselines for every b", "section 6.1, figure 2", measured, verdict)


def apart_from_flat(results: Results) -> Claim:
    """The slope of the share of FlatTS's regret that HierTS saves, against b: held where it is apart above 0."""
    branching = np.array([float(result.cell.branching) for result in results])
    pairs = [result.ratio("HierTS", "FlatTS") for result in results]
    saved, error = np.array([1.0 - value for value, _ in pairs]), np.array([error for _, error in pairs])
    claim = Claim("The gain over FlatTS grows with the branching factor", "beyond the paper", "", "undecided")
    if not (error > 0.0).all():
        return replace(claim, measured="too few runs to form the ratios")
    found, uncertainty, _ = slope(branching, saved, error)
    verdict: Verdict = "held" if found > APART * uncertainty else "undecided"
    if found < -APART * uncertainty:
        verdict = "did not hold"
    ends = ", ".join(f"{saved[i]:.0%} ± {error[i]:.0%} at b = {branching[i]:.0f}" for i in (0, -1))
    return replace(claim, measured=f"regret saved against FlatTS: {ends}", verdict=verdict)
