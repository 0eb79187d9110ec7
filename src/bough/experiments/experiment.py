"""Experiments as data: cells, policies, figure, claims and section of the report; and what comes of running one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from bough import policy_table
from bough._arrays import Floats
from bough.model.model import Model
from bough.simulation.worlds import Problem

PAPER = ("HierTS", "FlatTS", "TS")
Verdict = Literal["holds", "holds in part", "does not hold", "undecided"]


class Cell(Protocol):
    """One problem of an experiment.

    It may have `policies`, its own by name, and `usual`, its own usual rounds and runs.
    """

    @property
    def name(self) -> str:
        """What the cell is called in tables."""
        ...

    @property
    def slug(self) -> str:
        """What the cell is called in the names of files."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the cell's numbers."""
        ...

    def problem(self) -> Model | Problem:
        """What `simulate` takes."""
        ...


@dataclass(frozen=True, eq=False)
class CellResult:
    """The regret of each policy in one cell."""

    cell: Any
    mean: dict[str, Floats]
    """(rounds,) cumulative regret averaged over the runs"""
    error: dict[str, Floats]
    """(rounds,) its standard error"""
    final: dict[str, Floats]
    """(runs,) the regret of each run after the last round; runs are paired across policies"""
    tried: dict[str, Floats]
    """(runs,) how many different actions each run took"""
    seconds: dict[str, Floats]
    """(runs,) how long each run took by the clock"""
    n_actions: int
    best: float
    """The mean reward that regret is measured against, averaged over runs and rounds"""

    @property
    def rounds(self) -> int:
        """How many rounds a run has."""
        return len(next(iter(self.mean.values())))

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(next(iter(self.final.values())))

    def share_of_best(self, policy: str, rounds: int) -> float:
        """The reward per round that a policy has reached by then, as a share of the best: over the last tenth."""
        window = max(rounds // 10, 1)
        regret = np.concatenate([[0.0], self.mean[policy]])
        return float(1.0 - (regret[rounds] - regret[rounds - window]) / (window * self.best))

    def difference(self, policy: str, other: str) -> tuple[float, float]:
        """The final regret of `policy` less that of `other`, and the standard error of that paired difference."""
        gap = self.final[policy] - self.final[other]
        return float(gap.mean()), float(gap.std(ddof=1) / math.sqrt(len(gap)))

    def ratio(self, policy: str, other: str) -> tuple[float, float]:
        """The final regret of `policy` over that of `other`, and its standard error (delta method, runs paired)."""
        top, bottom = self.final[policy], self.final[other]
        if bottom.mean() == 0.0:  # a handful of short runs may have no regret at all
            return math.nan, math.nan
        value = float(top.mean() / bottom.mean())
        residual = (top - value * bottom) / bottom.mean()
        return value, float(residual.std(ddof=1) / math.sqrt(len(residual)))


Results = Sequence[CellResult]
"""One for each cell of an experiment, in its order."""


@dataclass(frozen=True)
class Claim:
    """One line of the report's table of claims."""

    claim: str
    where: str
    measured: str
    verdict: Verdict
    holds: str = ""
    """Where the claim holds only in part: what of it holds."""

    @property
    def but(self) -> str:
        """What to add to the verdict, or to the claim: nothing, or what of it holds."""
        return f": {self.holds}" if self.holds else ""


class PaperNumber(NamedTuple):
    """Something that the paper says in words or numbers, beside what was found here."""

    what: str
    where: str
    """In the paper."""
    paper: str
    here: str


@dataclass(frozen=True)
class Experiment:
    """Every policy on every cell, and how to show and judge what comes of it."""

    name: str
    title: str
    where: str
    """In the paper, or that it is beyond it."""
    cells: tuple[Cell, ...]
    policies: tuple[str, ...] = PAPER
    """Names of built-in ones, or of those that its cells bring."""
    rounds: int = 500
    runs: int = 100
    baseline: str = "TS"
    """What is divided by the regret of HierTS in the table of regrets, where both are played."""
    figure: Callable[[Experiment, Results], Any] | None = None
    """Draws the matplotlib figure; None for a panel of regret for each cell."""
    claims: Callable[[Results], list[Claim]] | None = None
    """Judges what is claimed of this experiment."""
    pooled_claims: Callable[[Results], list[Claim]] | None = None
    """Judges what is claimed of the cells of all experiments that have the same function here, each cell once."""
    paper: Callable[[Outcome], list[PaperNumber]] | None = None
    """What the paper says of this experiment, beside what came of it here."""
    section: Callable[[Outcome], list[str]] | None = None
    """The paragraphs below the figure, as Markdown; None for the table of regrets."""
    details: Callable[[], str] | None = None
    """Something more for the end of the section, as Markdown."""

    def usual(self, cell: Cell) -> tuple[int, int]:
        """The rounds and runs of a cell where nobody asks for others."""
        own: tuple[int, int] = getattr(cell, "usual", (self.rounds, self.runs))
        return own

    def policies_in(self, cell: Cell) -> dict[str, Any]:
        """The policies that play in a cell, by name, as `simulate` takes them."""
        own: dict[str, Any] | None = getattr(cell, "policies", None)
        return {name: policy_table.named(name).policy for name in self.policies} if own is None else own


@dataclass(frozen=True)
class Settings:
    """What decides the numbers of a cell, beside the cell itself; None stands for the experiment's own."""

    rounds: int | None = None
    runs: int | None = None
    seed: int = 0

    def at(self, experiment: Experiment, cell: Cell) -> Settings:
        """These settings in a cell, with nothing left open."""
        rounds, runs = experiment.usual(cell)
        return Settings(self.rounds or rounds, self.runs or runs, self.seed)


@dataclass(frozen=True)
class Outcome:
    """An experiment that was run: with which settings, and what came of each cell."""

    experiment: Experiment
    settings: Settings
    results: Results
