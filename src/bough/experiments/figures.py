"""The figure of an experiment: its own, or a panel for each cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough.experiments.experiment import CellResult, Experiment, Results
from bough.plotting import Curves, add_caption, regret_panels


def draw(experiment: Experiment, results: Results) -> Any:
    """The matplotlib figure of an experiment's results."""
    if experiment.figure is not None:
        figure = experiment.figure(experiment, results)
    else:
        figure = regret_panels({r.cell.name: curves(r) for r in results})
    runs = sorted({r.runs for r in results})
    add_caption(figure, f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}")
    return figure


def curves(result: CellResult) -> Curves:
    """The mean regret of every policy in a cell, and its standard error."""
    return {name: (result.mean[name], result.error[name]) for name in result.mean}


def final_regrets(experiment: Experiment, results: Results) -> Curves:
    """The regret of every policy after the last round, and its standard error: one entry per cell."""
    return {
        name: (np.array([r.mean[name][-1] for r in results]), np.array([r.error[name][-1] for r in results]))
        for name in experiment.policies
    }
