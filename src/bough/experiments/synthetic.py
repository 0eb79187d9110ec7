"""Balanced trees of the paper's two problems: the cells that experiments sweep, and Theorem 1's bounds there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from bough import theory
from bough.experiments.claims import FEWEST, apart, decide, ratios
from bough.experiments.experiment import CellResult, Claim, Outcome, PaperNumber, Results, Verdict
from bough.experiments.tables import regret_table, table
from bough.model.gaussian import GaussianModel
from bough.simulation import problems


@dataclass(frozen=True)
class SyntheticCell:
    """One problem of a sweep.

    >>> SyntheticCell("increasing", branching=10, height=2).name
    'increasing/b10-h2'
    """

    kind: Literal["constant", "increasing"]
    branching: int
    height: int

    @property
    def name(self) -> str:
        """What the cell is called in files and tables."""
        return f"{self.kind}/b{self.branching}-h{self.height}"

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        return f"b{self.branching}-h{self.height}"

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        return asdict(self)

    def problem(self) -> GaussianModel:
        """What `simulate` takes."""
        return self.model()

    def model(self) -> GaussianModel:
        """The problem itself."""
        return {"constant": problems.constant, "increasing": problems.increasing}[self.kind](
            self.branching, self.height
        )


CONSTANTS: dict[theory.Constant, str] = {
    "lemma": "the c of Lemma 4",
    "two": "c = 2",
    "telescoped": "the telescoped constant",
}
"""What bounds the growth of a node's precision in one round, by its name in `bough.theory`."""

_WHERE = {"lemma": "sections 5.1 and 5.2", "two": "section 5.3", "telescoped": "beyond the paper"}
_BOUNDS = ("HierTS, lemma", "HierTS, c = 2", "HierTS, telescoped", "TS", "FlatTS")
_NAMED = 4  # cells that a line names


def section(outcome: Outcome) -> list[str]:
    """The regrets, and the bounds beside the regret of uniform play."""
    return [
        regret_table(outcome),
        "Bounds of Theorem 1 with delta = 1/n: HierTS with the constant of Lemma 4, with c = 2 where its premise holds "
        "(noise at least as wide as every prior), and with the telescoped one; TS and FlatTS with the telescoped one; "
        "the ratio of the complexities of TS and HierTS; and the regret of uniform play. A bound above the regret of "
        "uniform play is vacuous and stands in parentheses.",
        table(["cell", *_BOUNDS, "G(TS) / G(HierTS)", "uniform play"], map(_bound_row, outcome.results)),
    ]


def _bound_row(result: CellResult) -> list[str]:
    values = bounds(result)
    uniform = values["uniform"]

    def shown(value: float) -> str:
        if math.isnan(value):
            return "-"
        return f"{value:.0f}" if value < uniform else f"({value:.0f})"

    named = [shown(values[name]) for name in (*CONSTANTS, "TS", "FlatTS")]
    return [result.cell.name, *named, f"{values['ratio']:.2f}", f"{uniform:.0f}"]


def settings_of_paper(outcome: Outcome, which: str) -> list[PaperNumber]:
    """The settings of section 6.1, beside those here."""
    sizes = sorted({(r.rounds, r.runs) for r in outcome.results})
    here = "; ".join(f"{rounds:,} rounds, {runs:,} runs" for rounds, runs in sizes)
    return [PaperNumber(f"{which}: size", "section 6.1", "500 rounds, 100 runs", here)]


# -- claims ----------------------------------------------------------------------------------------


def claims(results: Results) -> list[Claim]:
    """What is claimed of all swept cells together; of the bound, for each constant by itself."""
    judged = [baselines_are_close(results), c_is_two(results)]
    for judge in (below_the_bound, bound_says_something):
        for constant in CONSTANTS:
            proven = _proven(results, constant)
            judged += [judge(proven, constant)] if proven else []
    return judged


def baselines_are_close(results: Results) -> Claim:
    """Holds where the regret of TS is within 25% of FlatTS's in every cell, in part where in more than half."""
    value, _ = ratios(results, "FlatTS")
    close = (value >= 0.8) & (value <= 1.25)
    verdict: Verdict = "holds" if close.all() else "holds in part" if close.mean() > 0.5 else "does not hold"
    if min(result.runs for result in results) < FEWEST:
        verdict = "undecided"
    measured = (
        f"TS / FlatTS from {value.min():.2f} to {value.max():.2f}; within 25% in {close.sum()} of {len(close)} cells"
    )
    holds = f"in {close.sum()} of {len(close)} cells" if verdict == "holds in part" else ""
    return Claim("TS and FlatTS are close to each other", "figures 2 and 3", measured, verdict, holds)


def c_is_two(results: Results) -> Claim:
    """Holds where the premise of c = 2, noise at least as wide as every prior, does so in every cell."""
    proven = _proven(results, "two")
    verdict: Verdict = "holds" if len(proven) == len(results) else "holds in part" if proven else "does not hold"
    played = _problems(results)
    measured = (
        f"the premise of Lemma 4 for c = 2, noise at least as wide as every prior, holds in {len(proven)} of "
        f"{len(results)} cells"
    )
    if len(proven) < len(results):
        largest = max(theory.scaling_constants(r.cell.model())[1] for r in results)
        measured += f"; elsewhere the lemma gives 1 + 2^h, up to {largest:.0f}"
    holds = f"in {', '.join(_problems(proven))}" if verdict == "holds in part" else ""
    where = "both problems" if len(played) > 1 else f"{played[0]}, the one that was played"
    return Claim(f"c = 2 in {where}", "section 5.3", measured, verdict, holds)


def _problems(results: Results) -> list[str]:
    """The paper's problems that these cells are of."""
    names = {"constant": "Problem 1", "increasing": "Problem 2"}
    return list(dict.fromkeys(names[r.cell.kind] for r in results))


def below_the_bound(results: Results, constant: theory.Constant) -> Claim:
    """Holds where HierTS's regret is significantly below Theorem 1's bound with this constant in every cell."""
    bound = np.array([bounds(result)[constant] for result in results])
    regret = np.array([result.mean["HierTS"][-1] for result in results])
    wide = np.array([apart(result.runs) * float(result.error["HierTS"][-1]) for result in results])
    right, wrong = regret + wide < bound, regret - wide > bound
    verdict = decide(int(right.sum()), int(wrong.sum()), len(bound))
    measured = (
        f"below in {(regret < bound).sum()} of {len(bound)} cells; at most {(regret / bound).max():.0%} of the bound"
    )
    holds = f"in {right.sum()} of {len(bound)} cells" if verdict == "holds in part" else ""
    text = f"HierTS's regret is below the bound of Theorem 1 with {CONSTANTS[constant]}"
    return Claim(text, _WHERE[constant], measured, verdict, holds)


def bound_says_something(results: Results, constant: theory.Constant) -> Claim:
    """Holds where the bound with this constant is below the regret of uniform play: otherwise it is vacuous."""
    useful = [r.cell.name for r in results if bounds(r)[constant] < bounds(r)["uniform"]]
    vacuous = [r.cell.name for r in results if r.cell.name not in useful]
    verdict: Verdict = "holds" if not vacuous else "holds in part" if useful else "does not hold"
    measured = f"vacuous in {len(vacuous)} of {len(results)} cells"
    holds = f"in {_some(useful)}" if verdict == "holds in part" else ""
    text = f"The bound with {CONSTANTS[constant]} is below the regret of uniform play"
    return Claim(text, "beyond the paper", measured, verdict, holds)


def _proven(results: Results, constant: theory.Constant) -> list[CellResult]:
    """The cells where Theorem 1 holds with this constant."""
    return [result for result in results if not math.isnan(bounds(result)[constant])]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# -- bounds ----------------------------------------------------------------------------------------


def bounds(result: CellResult) -> dict[str, float]:
    """Theorem 1's bounds of a cell: for HierTS with each constant, NaN where its premise does not hold; TS; FlatTS.

    "ratio" is that of the complexities of TS and HierTS, and "uniform" the regret of uniform play.
    """
    return _bounds(result.cell, len(result.mean["HierTS"]))


@cache
def _bounds(cell: SyntheticCell, rounds: int) -> dict[str, float]:
    model = cell.model()
    return {
        **{constant: _bound(model, rounds, constant) for constant in CONSTANTS},
        "TS": theory.regret_bound(model.independent(), rounds, constant="telescoped").total,
        "FlatTS": theory.regret_bound(model.flat(), rounds, constant="telescoped").total,
        "ratio": theory.complexity_ratio(model, rounds, "telescoped"),
        "uniform": theory.uniform_regret(model, rounds),
    }


def _bound(model: GaussianModel, rounds: int, constant: theory.Constant) -> float:
    if constant == "two" and theory.scaling_constants(model)[1] > 2.0:  # the noise is narrower than some prior
        return math.nan
    return theory.regret_bound(model, rounds, constant=constant).total
