"""The figure of an experiment: its own, or a panel for each cell."""

from __future__ import annotations

from typing import Any

from bough.experiments.experiment import CellResult, Experiment, Results
from bough.plotting import Curves, regret_panels


def draw(experiment: Experiment, results: Results) -> Any:
    """The matplotlib figure of an experiment's results."""
    if experiment.figure is not None:
        return experiment.figure(experiment, results)
    return regret_panels({r.cell.name: curves(r) for r in results})


def curves(result: CellResult) -> Curves:
    """The mean regret of every policy in a cell, and its standard error."""
    return {name: (result.mean[name], result.error[name]) for name in result.mean}
