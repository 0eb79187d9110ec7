"""The paper's claims and the rules by which the measured data decide them; nothing here is judged by hand.

"Apart" means by more than two standard errors of the paired difference. A law "fits" unless so poor a fit has
probability below one in a thousand. What the data at hand cannot tell is "undecided".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from scipy.special import chdtrc

from bough import theory
from bough.arrays import Floats
from bough.experiments.runner import CellResult
from bough.experiments.sweeps import SyntheticCell

Verdict = Literal["held", "held partly", "did not hold", "undecided"]
APART = 2.0
MISFIT = 1e-3
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
    swept = ("branching", "height-constant", "height-increasing")
    cells = list({r.cell: r for name in swept if name in results for r in results[name]}.values())
    if cells:
        claims += [baselines_are_close(cells), below_the_bound(cells), bound_says_something(cells)]
    if "clicks" in results:
        claims += clicks_claims(results["clicks"])
    if "classes" in results:
        claims += classes_claims(results["classes"])
    if "catalogue" in results:
        claims += catalogue_claims(results["catalogue"])
    return claims


def below_both(results: Sequence[CellResult]) -> Claim:
    """Held where HierTS is apart below both baselines for every b, partly where in some and apart above in none."""
    gaps = {(r.cell.branching, base): r.difference(base, "HierTS") for r in results for base in ("FlatTS", "TS")}
    below = {key for key, (gap, error) in gaps.items() if gap > APART * error}
    above = {key for key, (gap, error) in gaps.items() if gap < -APART * error}
    verdict = _verdict(len(below), len(above), len(gaps))
    measured = f"apart below in {len(below)} of {len(gaps)} comparisons"
    for base in ("FlatTS", "TS"):
        for which, keys in (("apart above", above), ("within noise of", gaps.keys() - below - above)):
            cells = [
                f"{b} ({-gaps[b, base][0]:+.1f} ± {gaps[b, base][1]:.1f})" for b, name in sorted(keys) if name == base
            ]
            if cells:
                measured += f"; {which} {base} at b = {', '.join(cells)}"
    return Claim("HierTS has lower regret than both baselines for every b", "section 6.1, figure 2", measured, verdict)


def _verdict(right: int, wrong: int, comparisons: int) -> Verdict:
    """Of comparisons: how many are apart as claimed, and how many the other way."""
    if wrong:
        return "did not hold"
    if right == comparisons:
        return "held"
    return "held partly" if right else "undecided"


def apart_from_flat(results: Sequence[CellResult]) -> Claim:
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


def ratios(results: Sequence[CellResult], policy: str = "HierTS") -> tuple[Floats, Floats]:
    """The regret of TS over that of a policy for each cell, and its standard error."""
    pairs = [result.ratio("TS", policy) for result in results]
    return np.array([value for value, _ in pairs]), np.array([error for _, error in pairs])


def slope(x: Floats, y: Floats, error: Floats) -> tuple[float, float, float]:
    """The weighted least-squares slope of y on x, its standard error, and how likely so poor a fit is by chance.

    >>> import numpy
    >>> slope(numpy.array([0.0, 1.0, 2.0]), numpy.array([1.0, 3.0, 5.0]), numpy.ones(3))
    (2.0, 0.707..., 1.0)
    """
    weight = 1.0 / error**2
    centred = x - (weight * x).sum() / weight.sum()
    spread = (weight * centred**2).sum()
    found = float((weight * centred * y).sum() / spread)
    left_over = y - (weight * y).sum() / weight.sum() - found * centred
    return found, float(spread**-0.5), float(chdtrc(len(x) - 2, (weight * left_over**2).sum()))


def grows_linearly(results: Sequence[CellResult]) -> Claim:
    """ratio ~ h^p: held where p is within a quarter of 1 and the law fits; partly where the ratio grows otherwise."""
    return _growth(
        results,
        Claim("Problem 1: regret of TS over HierTS grows like O(h)", "section 6.1, figure 3a", "", "undecided"),
        lambda heights: np.log(heights),
        "ratio ~ h^p with p",
        expected=1.0,
    )


def grows_exponentially(results: Sequence[CellResult]) -> Claim:
    """ratio ~ 2^(r h): held where r is within a quarter of 1/2 and the law fits; partly where it grows otherwise."""
    return _growth(
        results,
        Claim("Problem 2: regret of TS over HierTS grows like 2^(h/2)", "section 6.1, figure 3b", "", "undecided"),
        lambda heights: heights * np.log(2.0),
        "ratio ~ 2^(r h) with r",
        expected=0.5,
    )


def _growth(
    results: Sequence[CellResult], claim: Claim, scale: Callable[[Floats], Floats], symbol: str, expected: float
) -> Claim:
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
    if found > APART * uncertainty:
        verdict = "held" if fits and abs(found - expected) <= expected / 4 else "held partly"
    else:  # not seen to grow: a failure only where growth as claimed would have been seen
        verdict = "did not hold" if found + APART * uncertainty < expected / 2 else "undecided"
    ends = ", ".join(f"{value[i]:.2f} ± {error[i]:.2f} at h = {heights[i]:.0f}" for i in (0, len(value) // 2, -1))
    law = "which fits" if fits else f"which does not fit (so poor a fit has probability {chance:.0e})"
    return replace(claim, measured=f"{symbol} = {found:.2f} ± {uncertainty:.2f}, {law}; {ends}", verdict=verdict)


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
    """Held where HierTS's regret is apart below Theorem 1's bound in every cell, with the sharpest constant."""
    bound = np.array([bounds(result)["telescoped"] for result in results])
    regret = np.array([result.mean["HierTS"][-1] for result in results])
    error = np.array([result.error["HierTS"][-1] for result in results])
    verdict: Verdict = "held" if (regret + APART * error < bound).all() else "undecided"
    if (regret - APART * error > bound).any():
        verdict = "did not hold"
    measured = (
        f"below in {(regret < bound).sum()} of {len(bound)} cells; at most {(regret / bound).max():.0%} of the bound"
    )
    return Claim("HierTS's regret is below the bound of Theorem 1", "section 5.2", measured, verdict)


def bound_says_something(results: Sequence[CellResult]) -> Claim:
    """Held where the bound is below the regret of uniform play in every cell: otherwise it is vacuous there."""
    vacuous = {
        constant: [result.cell.name for result in results if bounds(result)[constant] >= bounds(result)["uniform"]]
        for constant in ("lemma", "telescoped")
    }
    n = len(results)
    verdict: Verdict = "held" if not vacuous["telescoped"] else "held partly"
    if len(vacuous["telescoped"]) == n:
        verdict = "did not hold"
    measured = (
        f"Lemma 4: vacuous in {len(vacuous['lemma'])} of {n} cells; telescoped: vacuous in {len(vacuous['telescoped'])}"
    )
    if vacuous["telescoped"]:
        measured += f" ({', '.join(vacuous['telescoped'])})"
    return Claim("The bound is below the regret of uniform play", "beyond the paper", measured, verdict)


def bounds(result: CellResult) -> dict[str, float]:
    """Theorem 1's bounds of a cell with both constants, for HierTS and TS, and the regret of uniform play."""
    return _bounds(result.cell, len(result.mean["HierTS"]))


@cache
def _bounds(cell: SyntheticCell, rounds: int) -> dict[str, float]:
    model = cell.model()
    return {
        "lemma": theory.regret_bound(model, rounds).total,
        "telescoped": theory.regret_bound(model, rounds, constant="telescoped").total,
        "TS": theory.regret_bound(model.independent(), rounds, constant="telescoped").total,
        "FlatTS": theory.regret_bound(model.flat(), rounds, constant="telescoped").total,
        "ratio": theory.complexity_ratio(model, rounds, "telescoped"),
        "uniform": theory.uniform_regret(model, rounds),
    }


# -- clicks ----------------------------------------------------------------------------------------


def clicks_claims(results: Sequence[CellResult]) -> list[Claim]:
    """HierTS against the samplers that know less of the tree, and what they are apart from each other."""
    below = [(r, name, "HierTS") for r in results for name in ("BetaTS", "TS", "FlatTS")]
    rival = [(r, "BayesUCB", "HierTS") for r in results]
    return [
        _by_gaps(below, "Clicks: HierTS below BetaTS, TS and FlatTS", "beyond the paper"),
        _by_gaps(rival, "Clicks: HierTS below BayesUCB", "beyond the paper"),
    ]


# -- real data -------------------------------------------------------------------------------------


def classes_claims(results: Sequence[CellResult]) -> list[Claim]:
    """The order of the policies as figure 4 has it, in the first cell and over all ways to make the features."""
    five = [result for result in results if result.cell.which == "five"]
    first = results[0].cell.name
    claims = [
        in_order(results[:1], f"Classes ({first}): HierTS below FlatTS below TS", "section 6.2, figure 4"),
        in_order(five, "Classes: the same however features are reduced and scaled", "beyond the paper"),
    ]
    others = [result for result in results if result.cell.which != "five"]
    if others:
        claims.append(in_order(others, "Classes: the same with all classes at once", "beyond the paper"))
    return claims


def in_order(results: Sequence[CellResult], claim: str, where: str) -> Claim:
    """Held where HierTS is apart below FlatTS, and FlatTS below TS, in every cell."""
    pairs = [("FlatTS", "HierTS"), ("TS", "FlatTS"), ("TS", "HierTS")]
    return _by_gaps([(r, *pair) for r in results for pair in pairs], claim, where)


def catalogue_claims(results: Sequence[CellResult]) -> list[Claim]:
    """HierTS against the two baselines in each setting, and against everything else that was played."""
    claims = []
    for result in results:
        baselines = [(result, name, "HierTS") for name in ("FlatTS", "TS")]
        claims.append(_by_gaps(baselines, f"Catalogue, {result.cell.name}: HierTS below both", "beyond the paper"))
        others = [name for name in result.mean if name not in ("HierTS", "FlatTS", "TS")]
        if others:
            rivals = [(result, name, "HierTS") for name in others]
            text = f"Catalogue, {result.cell.name}: HierTS below {', '.join(others)}"
            claims.append(_by_gaps(rivals, text, "beyond the paper"))
    return claims


def _by_gaps(pairs: Sequence[tuple[CellResult, str, str]], claim: str, where: str) -> Claim:
    """Whether the first policy's regret is apart above the second's in every one of these."""
    gaps = [(r, worse, better, *r.difference(worse, better)) for r, worse, better in pairs]
    right = [g for g in gaps if g[3] > APART * g[4]]
    wrong = [g for g in gaps if g[3] < -APART * g[4]]
    verdict = _verdict(len(right), len(wrong), len(gaps))
    one_cell = len({id(g[0]) for g in gaps}) == 1
    shown = gaps if one_cell else [g for g in gaps if g not in right]
    texts = [
        f"{worse} - {better} = {gap:.1f} ± {error:.1f}" + ("" if one_cell else f" ({r.cell.name})")
        for r, worse, better, gap, error in shown
    ]
    measured = "; ".join([*([] if one_cell else [f"apart as claimed in {len(right)} of {len(gaps)}"]), *texts])
    return Claim(claim, where, measured, verdict)
