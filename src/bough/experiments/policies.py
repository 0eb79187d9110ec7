"""policies: other ways to choose with the same posterior, on larger trees than the paper has."""

from __future__ import annotations

from typing import Any

from bough.experiments import synthetic
from bough.experiments.experiment import Experiment, Results
from bough.experiments.figures import curves
from bough.experiments.options import Options
from bough.experiments.synthetic import SyntheticCell
from bough.plotting import regret_panels


def experiment(_: Options) -> Experiment:
    """Two larger trees."""
    return Experiment(
        "policies",
        "Five policies on two larger trees of Problem 2",
        "beyond the paper",
        (SyntheticCell("increasing", 10, 2), SyntheticCell("increasing", 4, 3)),
        ("HierTS", "BayesUCB", "Greedy", "TS", "FlatTS"),
        figure=figure,
        section=synthetic.section,
    )


def figure(_: Experiment, results: Results) -> Any:
    """Regret against rounds, a panel for each tree."""
    return regret_panels({f"b = {r.cell.branching}, h = {r.cell.height}": curves(r) for r in results})
