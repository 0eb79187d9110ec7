"""Balanced trees of the paper's two problems: the cells that experiments sweep, and Theorem 1's bounds there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from bough import theory
from bough.experiments.claims import APART, ratios
from bough.experiments.experiment import CellResult, Claim, Outcome, Results, Verdict
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


def section(outcome: Outcome) -> list[str]:
    """The regrets, and the bounds beside the regret of uniform play."""
    return [
        regret_table(outcome),
        "Bounds of Theorem 1 with delta = 1/n: HierTS with the constant of Lemma 4 and with the telescoped one, TS "
        "and FlatTS with the telescoped one, the ratio of the complexities of TS and HierTS, and the regret of "
        "uniform play. A bound above the regret of uniform play is vacuous and stands in parentheses.",
        table(
            ["cell", "HierTS, lemma", "HierTS, telescoped", "TS", "FlatTS", "G(TS) / G(HierTS)", "uniform play"],
            map(_bound_row, outcome.results),
        ),
    ]


def _bound_row(result: CellResult) -> list[str]:
    values = bounds(result)
    uniform = values["uniform"]

    def shown(value: float) -> str:
        return f"{value:.0f}" if value < uniform else f"({value:.0f})"

    named = [shown(values[name]) for name in ("lemma", "telescoped", "TS", "FlatTS")]
    return [result.cell.name, *named, f"{values['ratio']:.2f}", f"{uniform:.0f}"]


def claims(results: Results) -> list[Claim]:
    """What is claimed of all swept cells together."""
    return [baselines_are_close(results), below_the_bound(results), bound_says_something(results)]


def baselines_are_close(results: Results) -> Claim:
    """Held where the regret of TS is within 25% of FlatTS's in every cell, partly where in more than half."""
    value, _ = ratios(results, "FlatTS")
    close = (value >= 0.8) & (value <= 1.25)
    verdict: Verdict = "held" if close.all() else "held partly" if close.mean() > 0.5 else "did not hold"
    measured = (
        f"TS / FlatTS from {value.min():.2f} to {value.max():.2f}; within 25% in {close.sum()} of {len(close)} cells"
    )
    return Claim("TS and FlatTS are close to each other", "figures 2 and 3", measured, verdict)


def below_the_bound(results: Results) -> Claim:
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


def bound_says_something(results: Results) -> Claim:
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
