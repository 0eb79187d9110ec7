"""height-constant and height-increasing: what the tree is worth as it grows deeper, in both problems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bough._arrays import Floats
from bough.experiments import synthetic
from bough.experiments.claims import MISFIT, apart, ratios, slope
from bough.experiments.experiment import Claim, Experiment, Outcome, PaperNumber, Results, Verdict
from bough.experiments.figures import final_regrets
from bough.experiments.options import Options
from bough.experiments.synthetic import SyntheticCell
from bough.plotting import ratio_figure

_HEIGHTS = range(1, 8)


def constant(_: Options) -> Experiment:
    """The sweep of figure 3a."""
    return Experiment(
        "height-constant",
        "Problem 1, branching 2, height from 1 to 7",
        "section 6.1, figure 3a",
        tuple(SyntheticCell("constant", 2, h) for h in _HEIGHTS),
        figure=partial(_figure, law="$h$", growth=lambda h: h),
        claims=lambda results: [grows_linearly(results)],
        pooled_claims=synthetic.claims,
        paper=lambda outcome: _paper(
            outcome,
            "Problem 1",
            "the O(h) that section 6.1 confirms; section 5.3 derives sqrt(h) for b > 2, and for b = 2 a regret "
            "comparable to that of TS",
            lambda h: h,
        ),
        section=synthetic.section,
    )


def increasing(_: Options) -> Experiment:
    """The sweep of figure 3b."""
    return Experiment(
        "height-increasing",
        "Problem 2, branching 2, height from 1 to 7",
        "section 6.1, figure 3b",
        tuple(SyntheticCell("increasing", 2, h) for h in _HEIGHTS),
        figure=lambda experiment, results: _figure(
            experiment, results, "$2^{h/2}$", lambda h: 2.0 ** ((h - 1.0) / 2.0)
        ),
        claims=lambda results: [grows_exponentially(results)],
        pooled_claims=synthetic.claims,
        paper=lambda outcome: _paper(
            outcome,
            "Problem 2",
            "the O(2^(h/2)) that section 6.1 confirms, and that section 5.3 derives for b > 4",
            lambda h: 2.0 ** (h / 2.0),
        ),
        section=synthetic.section,
    )


def _figure(experiment: Experiment, results: Results, law: str, growth: Callable[[Floats], Floats]) -> Any:
    """The regret of TS over that of the others, beside the law that the paper has for HierTS, and the regrets."""
    heights = [r.cell.height for r in results]
    curves = {name: ratios(results, name) for name in experiment.policies if name != "TS"}
    guide = curves["HierTS"][0][0] * growth(np.array(heights, dtype=np.float64))
    return ratio_figure(
        curves, heights, (f"proportional to {law}", guide), final_regrets(experiment, results), experiment.title
    )


def grows_linearly(results: Results) -> Claim:
    """ratio ~ h^p: holds where p is within a quarter of 1 and the law fits; in part where the ratio grows otherwise."""
    return _growth(
        results,
        Claim("Problem 1: regret of TS over HierTS grows like O(h)", "section 6.1, figure 3a", "", "undecided"),
        lambda heights: np.log(heights),
        "ratio ~ h^p with p",
        expected=1.0,
    )


def grows_exponentially(results: Results) -> Claim:
    """ratio ~ 2^(r h): holds where r is within a quarter of 1/2 and the law fits; in part where it grows otherwise."""
    return _growth(
        results,
        Claim("Problem 2: regret of TS over HierTS grows like 2^(h/2)", "section 6.1, figure 3b", "", "undecided"),
        lambda heights: heights * np.log(2.0),
        "ratio ~ 2^(r h) with r",
        expected=0.5,
    )


def _growth(results: Results, claim: Claim, scale: Callable[[Floats], Floats], symbol: str, expected: float) -> Claim:
    """The claim, decided by the slope of the log ratio against the scaled heights and by how well a line fits."""
    heights = np.array([float(result.cell.height) for result in results])
    value, error = ratios(results)
    usable = (value > 0.0) & (error > 0.0)  # false where a ratio is not a number
    if usable.sum() < 4:
        return replace(claim, measured="too few runs to form the ratios")
    heights, value, error = heights[usable], value[usable], error[usable]
    found, uncertainty, chance = slope(scale(heights), np.log(value), error / value)
    fits = chance > MISFIT
    verdict: Verdict
    holds = ""
    wide = apart(min(result.runs for result in results)) * uncertainty
    if found > wide:
        as_claimed = abs(found - expected) <= expected / 4
        verdict = "holds" if fits and as_claimed else "holds in part"
        if verdict == "holds in part":
            holds = "grows, but not by this law" if not fits else f"grows, but {_pace(found, expected)}"
    else:  # not seen to grow: a failure only where growth as claimed would have been seen
        verdict = "does not hold" if found + wide < expected / 2 else "undecided"
    ends = ", ".join(f"{value[i]:.2f} ± {error[i]:.2f} at h = {heights[i]:.0f}" for i in (0, len(value) // 2, -1))
    law = "which fits" if fits else f"which does not fit (so poor a fit has probability {chance:.0e})"
    measured = f"{symbol} = {found:.2f} ± {uncertainty:.2f}, {law}; {ends}"
    return replace(claim, measured=measured, verdict=verdict, holds=holds)


def _pace(found: float, expected: float) -> str:
    return "more slowly than that" if found < expected else "faster than that"


def _paper(outcome: Outcome, problem: str, laws: str, growth: Callable[[float], float]) -> list[PaperNumber]:
    """What section 6.1 says of this sweep; `growth` is the law that it confirms."""
    first, last = outcome.results[0], outcome.results[-1]
    h, top = first.cell.height, last.cell.height
    (low, low_error), (high, high_error) = (r.ratio("TS", "HierTS") for r in (first, last))
    grown = high / low if low else math.nan
    error = grown * math.hypot(low_error / low, high_error / high) if low and high else math.nan
    expected = growth(top) / growth(h)
    return [
        *synthetic.settings_of_paper(outcome, f"{problem}, varying h"),
        PaperNumber(
            f"{problem}: how many times TS / HierTS is at h = {top} what it is at h = {h}",
            "sections 5.3 and 6.1",
            f"{expected:.3g} by {laws}",
            f"{grown:.2f} ± {error:.2f} (from {low:.2f} to {high:.2f})",
        ),
    ]
