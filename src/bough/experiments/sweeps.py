"""Experiments as data: which problems, which policies, and where in the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from bough import problems
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.policies import TS, BayesUCB, BetaTS, FlatTS, Greedy, HierTS
from bough.worlds import Problem

POLICIES = {"HierTS": HierTS, "FlatTS": FlatTS, "TS": TS, "BayesUCB": BayesUCB, "Greedy": Greedy, "BetaTS": BetaTS}
PAPER = ("HierTS", "FlatTS", "TS")


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


class Cell(Protocol):
    """One problem of an experiment.

    It may have `makers`, policies of its own by name, and `usual`, its own usual rounds and runs.
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


@dataclass(frozen=True)
class Experiment:
    """A sweep: every policy on every cell."""

    name: str
    title: str
    where: str
    cells: tuple[Cell, ...]
    policies: tuple[str, ...] = PAPER
    rounds: int = 500
    runs: int = 100
    baseline: str = "TS"
    """What the regret of HierTS is divided into, in the report."""
    details: Callable[[], str] | None = None
    """Something more for the report, as Markdown."""

    def usual(self, cell: Cell) -> tuple[int, int]:
        """The rounds and runs of a cell where nobody asks for others."""
        own: tuple[int, int] = getattr(cell, "usual", (self.rounds, self.runs))
        return own

    def makers(self, cell: Cell) -> dict[str, Any]:
        """The policies that play in a cell, by name."""
        own: dict[str, Any] | None = getattr(cell, "makers", None)
        return {name: POLICIES[name] for name in self.policies} if own is None else own


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "branching",
            "Problem 2, height 2, branching from 2 to 10",
            "section 6.1, figure 2",
            tuple(SyntheticCell("increasing", b, 2) for b in range(2, 11)),
        ),
        Experiment(
            "height-constant",
            "Problem 1, branching 2, height from 1 to 7",
            "section 6.1, figure 3a",
            tuple(SyntheticCell("constant", 2, h) for h in range(1, 8)),
        ),
        Experiment(
            "height-increasing",
            "Problem 2, branching 2, height from 1 to 7",
            "section 6.1, figure 3b",
            tuple(SyntheticCell("increasing", 2, h) for h in range(1, 8)),
        ),
        Experiment(
            "policies",
            "Five policies on two larger trees of Problem 2",
            "beyond the paper",
            (SyntheticCell("increasing", 10, 2), SyntheticCell("increasing", 4, 3)),
            ("HierTS", "BayesUCB", "Greedy", "TS", "FlatTS"),
        ),
    )
}

NAMES = (*EXPERIMENTS, "clicks", "classes", "catalogue")
