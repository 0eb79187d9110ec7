"""The paper's claims and the rules by which the measured data decide them; nothing here is judged by hand.

"Apart" means by more than two standard errors of the paired difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from bough import theory
from bough.arrays import Floats
from bough.experiments.runner import CellResult
from bough.experiments.sweeps import Cell

Verdict = Literal["held", "held partly", "did not hold", "undecided"]
APART = 2.0
Results = Mapping[str, Sequence[CellResult]]


@dataclass(frozen=True)
class Claim:
    """One line of the report's table."""

    claim: str
    where: str
    measured: str
    verdict: Verdict


def judge(results: Results) -> list[Claim]:
    """Every claim that the experiments at hand can decide."""
    claims = []
    if "branching" in results:
        claims += [below_both(results["branching"]), apart_from_flat(results["branching"])]
    if "height-constant" in results:
        claims.append(grows_linearly(results["height-constant"]))
    if "height-increasing" in results:
        claims.append(grows_exponentially(results["height-increasing"]))
    cells = [result for name in results if name != "policies" for result in results[name]]
    if cells:
        claims += [baselines_are_close(cells), below_the_bound(cells), bound_says_something(cells)]
    return claims


def below_both(results: Sequence[CellResult]) -> Claim:
    """Held where HierTS is apart below both baselines for every b; partly where its mean is below them for every b."""
    gaps = {(r.cell.branching, base): r.difference(base, "HierTS") for r in results for base in ("FlatTS", "TS")}
    apart = [gap > APART * error for gap, error in gaps.values()]
    below = [gap > 0 for gap, _ in gaps.values()]
    verdict: Verdict = (
        "held" if all(apart) else "held partly" if all(below) or sum(apart) > len(apart) / 2 else "did not hold"
    )
    within = {base: [str(b) for (b, name), (gap, error) in gaps.items() if name == base and not gap > APART * error]
              for base in ("FlatTS", "TS")}  # fmt: skip
    measured = f"apart below in {sum(apart)} of {len(apart)} comparisons"
    for base, which in within.items():
        if which:
            measured += f"; not apart from {base} at b = {', '.join(which)}"
    return Claim("HierTS has lower regret than both baselines for every b", "section 6.1, figure 2", measured, verdict)


def apart_from_flat(results: Sequence[CellResult]) -> Claim:
    """Held where the gap to FlatTS, in units of FlatTS's regret, is larger for the largest b than for the smallest."""
    first, last = results[0], results[-1]
    shares = []
    for result in (first, last):
        value, error = result.ratio("HierTS", "FlatTS")
        shares.append((1.0 - value, error))
    (small, small_error), (large, large_error) = shares
    growth, error = large - small, float(np.hypot(small_error, large_error))
    verdict: Verdict = "held" if growth > APART * error else "held partly" if growth > 0 else "did not hold"
    measured = (
        f"regret saved against FlatTS: {small:.0%} ± {small_error:.0%} at b = {first.cell.branching}, "
        f"{large:.0%} ± {large_error:.0%} at b = {last.cell.branching}"
    )
    return Claim("The gain over FlatTS grows with the branching factor", "section 6.1, figure 2", measured, verdict)


def ratios(results: Sequence[CellResult], policy: str = "HierTS") -> tuple[Floats, Floats]:
    """The regret of TS over that of a policy for each cell, and its standard error."""
    pairs = [result.ratio("TS", policy) for result in results]
    return np.array([value for value, _ in pairs]), np.array([error for _, error in pairs])


def slope(x: Floats, y: Floats, error: Floats) -> tuple[float, float]:
    """The weighted least-squares slope of y on x, and its standard error from those of y.

    >>> import numpy
    >>> slope(numpy.array([0.0, 1.0, 2.0]), numpy.array([1.0, 3.0, 5.0]), numpy.ones(3))
    (2.0, 0.707...)
    """
    weight = 1.0 / error**2
    centred = x - (weight * x).sum() / weight.sum()
    spread = (weight * centred**2).sum()
    return float((weight * centred * y).sum() / spread), float(spread**-0.5)


def grows_linearly(results: Sequence[CellResult]) -> Claim:
    """The exponent p of ratio ~ h^p: held within a quarter of 1; partly where it is only apart from 0.

    Section 6.1 says O(h). Section 5.3 derives the square root of that, p = 1/2, for the regret.
    """
    return _growth(
        results,
        Claim(
            "Problem 1: regret of TS over HierTS grows like O(h)", "sections 5.3 and 6.1, figure 3a", "", "undecided"
        ),
        lambda heights: np.log(heights),
        "ratio ~ h^p with p",
        expected=1.0,
    )


def grows_exponentially(results: Sequence[CellResult]) -> Claim:
    """The rate r of ratio ~ 2^(r h): held within a quarter of 1/2; partly where it is only apart from 0."""
    return _growth(
        results,
        Claim(
            "Problem 2: regret of TS over HierTS grows like 2^(h/2)", "sections 5.3 and 6.1, figure 3b", "", "undecided"
        ),
        lambda heights: heights * np.log(2.0),
        "ratio ~ 2^(r h) with r",
        expected=0.5,
    )


def _growth(
    results: Sequence[CellResult], claim: Claim, scale: Callable[[Floats], Floats], symbol: str, expected: float
) -> Claim:
    """The claim, decided by the slope of the log ratio against the scaled heights."""
    heights = np.array([float(result.cell.height) for result in results])
    value, error = ratios(results)
    usable = (value > 0.0) & (error > 0.0)  # false where a ratio is not a number
    if usable.sum() < 3:
        return replace(claim, measured="too few runs to form the ratios")
    heights, value, error = heights[usable], value[usable], error[usable]
    found, uncertainty = slope(scale(heights), np.log(value), error / value)
    verdict: Verdict = "held" if abs(found - expected) <= expected / 4 else "held partly"
    if found <= APART * uncertainty:
        verdict = "did not hold"
    ends = ", ".join(f"{value[i]:.2f} ± {error[i]:.2f} at h = {heights[i]:.0f}" for i in (0, -1))
    return replace(claim, measured=f"{symbol} = {found:.2f} ± {uncertainty:.2f}; {ends}", verdict=verdict)


def baselines_are_close(results: Sequence[CellResult]) -> Claim:
    """Held where the regret of TS is within 25% of FlatTS's in every cell, partly where in more than half."""
    value, _ = ratios(results, "FlatTS")
    close = (value >= 0.8) & (value <= 1.25)
    verdict: Verdict = "held" if close.all() else "held partly" if close.mean() > 0.5 else "did not hold"
    measured = (
        f"TS / FlatTS from {value.min():.2f} to {value.max():.2f}; within 25% in {close.sum()} of {len(close)} cells"
    )
    return Claim("TS and FlatTS are close to each other", "figures 2 and 3", measured, verdict)


def below_the_bound(results: Sequence[CellResult]) -> Claim:
    """Held where HierTS's regret is below Theorem 1's bound in every cell, with the sharpest constant."""
    share = np.array([bounds(result)["telescoped"] for result in results])
    regret = np.array([result.mean["HierTS"][-1] + APART * result.error["HierTS"][-1] for result in results])
    below = regret < share
    verdict: Verdict = "held" if below.all() else "held partly" if below.any() else "did not hold"
    measured = f"below in {below.sum()} of {len(below)} cells; at most {(regret / share).max():.0%} of the bound"
    return Claim("HierTS's regret is below the bound of Theorem 1", "section 5.2", measured, verdict)


def bound_says_something(results: Sequence[CellResult]) -> Claim:
    """Held where the bound is below the regret of uniform play in every cell: otherwise it is vacuous there."""
    parts = []
    informative = {}
    for constant in ("lemma", "telescoped"):
        useful = [bounds(result)[constant] < bounds(result)["uniform"] for result in results]
        informative[constant] = np.array(useful)
        vacuous = [result.cell.name for result, ok in zip(results, useful, strict=True) if not ok]
        parts.append(f"{constant}: vacuous in {len(vacuous)} of {len(useful)} cells")
    everywhere, somewhere = informative["telescoped"].all(), informative["telescoped"].any()
    verdict: Verdict = "held" if everywhere else "held partly" if somewhere else "did not hold"
    return Claim("The bound is below the regret of uniform play", "section 5.2", "; ".join(parts), verdict)


def bounds(result: CellResult) -> dict[str, float]:
    """Theorem 1's bounds of a cell with both constants, for HierTS and TS, and the regret of uniform play."""
    return _bounds(result.cell, len(result.mean["HierTS"]))


@cache
def _bounds(cell: Cell, rounds: int) -> dict[str, float]:
    model = cell.model()
    return {
        "lemma": theory.regret_bound(model, rounds).total,
        "telescoped": theory.regret_bound(model, rounds, constant="telescoped").total,
        "TS": theory.regret_bound(model.independent(), rounds, constant="telescoped").total,
        "FlatTS": theory.regret_bound(model.flat(), rounds, constant="telescoped").total,
        "ratio": theory.complexity_ratio(model, rounds, "telescoped"),
        "uniform": theory.uniform_regret(model, rounds),
    }
