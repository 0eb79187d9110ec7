"""Experiments as data: which problems, which policies, and where in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bough import problems
from bough.model import GaussianModel
from bough.policies import TS, BayesUCB, FlatTS, Greedy, HierTS

POLICIES = {"HierTS": HierTS, "FlatTS": FlatTS, "TS": TS, "BayesUCB": BayesUCB, "Greedy": Greedy}
PAPER = ("HierTS", "FlatTS", "TS")


@dataclass(frozen=True)
class Cell:
    """One problem of a sweep.

    >>> Cell("increasing", branching=10, height=2).name
    'increasing/b10-h2'
    """

    problem: Literal["constant", "increasing"]
    branching: int
    height: int

    @property
    def name(self) -> str:
        """What the cell is called in files and tables."""
        return f"{self.problem}/b{self.branching}-h{self.height}"

    def model(self) -> GaussianModel:
        """The problem itself."""
        return {"constant": problems.constant, "increasing": problems.increasing}[self.problem](
            self.branching, self.height
        )


@dataclass(frozen=True)
class Experiment:
    """A sweep: every policy on every cell."""

    name: str
    title: str
    where: str
    cells: tuple[Cell, ...]
    policies: tuple[str, ...] = PAPER


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "branching",
            "Problem 2, height 2, branching from 2 to 10",
            "section 6.1, figure 2",
            tuple(Cell("increasing", b, 2) for b in range(2, 11)),
        ),
        Experiment(
            "height-constant",
            "Problem 1, branching 2, height from 1 to 7",
            "section 6.1, figure 3a",
            tuple(Cell("constant", 2, h) for h in range(1, 8)),
        ),
        Experiment(
            "height-increasing",
            "Problem 2, branching 2, height from 1 to 7",
            "section 6.1, figure 3b",
            tuple(Cell("increasing", 2, h) for h in range(1, 8)),
        ),
        Experiment(
            "policies",
            "Five policies on two larger trees of Problem 2",
            "beyond the paper",
            (Cell("increasing", 10, 2), Cell("increasing", 4, 3)),
            ("HierTS", "BayesUCB", "Greedy", "TS", "FlatTS"),
        ),
    )
}
