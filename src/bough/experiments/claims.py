"""The rules by which the measured data decide claims; nothing is judged by hand.

"Significantly" means that the 95% interval of the paired difference, Student's as in `Simulation.compare`, is on one
side of 0: with many runs, about two standard errors. A law "fits" unless so poor a fit has probability below one in a
thousand. A claim that holds only in part says what of it holds, and what the data at hand cannot tell is "undecided":
so is all that is measured in fewer runs than `FEWEST`. What is claimed of an experiment stands in its module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtrc, stdtrit

from bough._arrays import Floats
from bough.experiments.experiment import CellResult, Claim, Outcome, Results, Verdict

FEWEST = 10  # runs: standard errors of fewer are themselves hardly known
MISFIT = 1e-3


def apart(runs: int) -> float:
    """From how many standard errors on a difference is significant; infinite where there are too few runs to tell.

    >>> apart(100), apart(10), apart(5)
    (1.984..., 2.262..., inf)
    """
    return float(stdtrit(runs - 1, 0.975)) if runs >= FEWEST else math.inf


def judge(outcomes: Iterable[Outcome]) -> list[Claim]:
    """Every claim that the experiments at hand can decide, in their order.

    Claims of pooled cells stand behind the last experiment that has a part in them.
    """
    outcomes = list(outcomes)
    pools: dict[Callable[[Results], list[Claim]], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.experiment.pooled_claims is not None:
            pools.setdefault(outcome.experiment.pooled_claims, []).append(outcome)
    claims = []
    for outcome in outcomes:
        if outcome.experiment.claims is not None:
            claims += outcome.experiment.claims(outcome.results)
        for judge_pool, pooled in pools.items():
            if pooled[-1] is outcome:
                claims += judge_pool(list({r.cell: r for each in pooled for r in each.results}.values()))
    return claims


def decide(right: int, wrong: int, comparisons: int) -> Verdict:
    """Of comparisons: how many differ significantly as claimed, and how many the other way.

    >>> decide(9, 0, 9), decide(7, 1, 9), decide(1, 7, 9), decide(0, 0, 9)
    ('holds', 'holds in part', 'does not hold', 'undecided')
    """
    if right == comparisons:
        return "holds"
    if right > wrong:
        return "holds in part"
    return "does not hold" if wrong else "undecided"


def by_gaps(pairs: Sequence[tuple[CellResult, str, str]], claim: str, where: str) -> Claim:
    """Whether the first policy's regret is significantly higher than the second's in every one of these."""
    gaps = [(r, worse, better, *r.difference(worse, better)) for r, worse, better in pairs]
    right = [g for g in gaps if g[3] > apart(g[0].runs) * g[4]]
    wrong = [g for g in gaps if g[3] < -apart(g[0].runs) * g[4]]
    verdict = decide(len(right), len(wrong), len(gaps))
    one_cell = len({id(g[0]) for g in gaps}) == 1
    shown = gaps if one_cell else [g for g in gaps if g not in right]
    texts = [
        f"{worse} - {better} = {gap:.1f} ± {error:.1f}" + ("" if one_cell else f" ({r.cell.name})")
        for r, worse, better, gap, error in shown
    ]
    measured = "; ".join([*([] if one_cell else [f"significantly so in {len(right)} of {len(gaps)}"]), *texts])
    holds = "" if verdict != "holds in part" else _what_holds(right, wrong, len(gaps), one_cell)
    return Claim(claim, where, measured, verdict, holds)


def _what_holds(right: Sequence[tuple[Any, ...]], wrong: Sequence[tuple[Any, ...]], n: int, one_cell: bool) -> str:
    """What of a claim holds that does so in some comparisons."""
    if one_cell:
        below = ", ".join(f"{better} below {worse}" for _, worse, better, *_ in right)
        return below + "".join(f", but {better} above {worse}" for _, worse, better, *_ in wrong)
    other_way = f", and the other way in {len(wrong)}" if wrong else ""
    return f"in {len(right)} of {n} comparisons{other_way}"


def ratios(results: Results, policy: str = "HierTS") -> tuple[Floats, Floats]:
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
