"""The figure of each experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bough.experiments.claims import ratios
from bough.experiments.runner import CellResult
from bough.experiments.sweeps import Experiment
from bough.plotting import Curves, ratio_figure, regret_panels

_PANELS = (2, 5, 10)  # the branching factors that figure 2 shows


def draw(experiment: Experiment, results: Sequence[CellResult]) -> Any:
    """The matplotlib figure of an experiment's results."""
    return _DRAWN[experiment.name](experiment, results)


def _curves(result: CellResult) -> Curves:
    return {name: (result.mean[name], result.error[name]) for name in result.mean}


def _branching(experiment: Experiment, results: Sequence[CellResult]) -> Any:
    panels = {f"b = {r.cell.branching}": _curves(r) for r in results if r.cell.branching in _PANELS}
    final = {
        name: (np.array([r.mean[name][-1] for r in results]), np.array([r.error[name][-1] for r in results]))
        for name in experiment.policies
    }
    return regret_panels(panels, ("branching factor b", [r.cell.branching for r in results], final))


def _height(experiment: Experiment, results: Sequence[CellResult]) -> Any:
    heights = [r.cell.height for r in results]
    curves = {name: ratios(results, name) for name in experiment.policies if name != "TS"}
    h = np.array(heights, dtype=np.float64)
    if experiment.name == "height-constant":
        guide = ("proportional to $h$", curves["HierTS"][0][0] * h)
    else:
        guide = ("proportional to $2^{h/2}$", curves["HierTS"][0][0] * 2.0 ** ((h - 1.0) / 2.0))
    return ratio_figure(curves, heights, guide, experiment.title)


def _policies(_: Experiment, results: Sequence[CellResult]) -> Any:
    return regret_panels({f"b = {r.cell.branching}, h = {r.cell.height}": _curves(r) for r in results})


def _clicks(_: Experiment, results: Sequence[CellResult]) -> Any:
    return regret_panels({r.cell.name: _curves(r) for r in results})


def _classes(_: Experiment, results: Sequence[CellResult]) -> Any:
    first = results[0].cell
    shown = [r for r in results if r.cell.reduce == first.reduce]
    return regret_panels({r.cell.name: _curves(r) for r in shown})


def _catalogue(_: Experiment, results: Sequence[CellResult]) -> Any:
    return regret_panels({r.cell.name.replace(", ", "\n"): _curves(r) for r in results}, columns=2)


_DRAWN: dict[str, Callable[[Experiment, Sequence[CellResult]], Any]] = {
    "branching": _branching,
    "height-constant": _height,
    "height-increasing": _height,
    "policies": _policies,
    "clicks": _clicks,
    "classes": _classes,
    "catalogue": _catalogue,
}
