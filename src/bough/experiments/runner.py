"""Runs the cells of an experiment, keeps each as soon as it is finished, and never runs it twice."""

from __future__ import annotations

import csv
import json
import math
import platform
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bough import storage
from bough.arrays import Floats
from bough.experiments.sweeps import Cell, Experiment
from bough.simulation import simulate

_KIND = "simulated-cell"
_VERSION = 2
_SIZES = {"mean": "rounds", "error": "rounds", "final": "runs", "tried": "runs", "seconds": "runs"}


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
    results: list[CellResult]


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


def run_experiment(
    experiment: Experiment,
    settings: Settings,
    out: Path,
    jobs: int | None = None,
    started: Callable[[Cell, bool], None] = lambda _cell, _kept: None,
    progress: Callable[[int], None] | None = None,
) -> list[CellResult]:
    """The results of every cell, from its file where it has been run with these settings before.

    `started` is called with each cell and whether its file was there; `progress` with runs just finished.
    """
    results = []
    for cell in experiment.cells:
        here = settings.at(experiment, cell)
        path, wanted = _place(experiment, cell, here, out)
        kept = _read(path, wanted, cell)
        started(cell, kept is not None)
        if kept is None:
            kept = _simulated(cell, experiment, here, jobs, progress)
            path.parent.mkdir(parents=True, exist_ok=True)
            storage.write(path, {"kind": _KIND, "version": _VERSION, **wanted}, _arrays(kept))
        results.append(kept)
    return results


def kept_results(experiment: Experiment, settings: Settings, out: Path) -> list[CellResult] | None:
    """The results of an experiment whose every cell is kept with these settings and versions, or None."""
    found = []
    for cell in experiment.cells:
        result = _read(*_place(experiment, cell, settings.at(experiment, cell), out), cell)
        if result is None:
            return None
        found.append(result)
    return found


def _place(experiment: Experiment, cell: Cell, settings: Settings, out: Path) -> tuple[Path, dict[str, Any]]:
    """Where the result of a cell is kept, and what its header must say for it to count."""
    name = f"{experiment.name}-{cell.slug}-n{settings.rounds}-r{settings.runs}-s{settings.seed}"
    wanted = {
        "settings": asdict(settings),
        "cell": cell.identity,
        "policies": list(experiment.makers(cell)),
        "versions": versions(),
    }
    return out / "cells" / f"{name}.bough", wanted


def _simulated(
    cell: Cell, experiment: Experiment, settings: Settings, jobs: int | None, progress: Callable[[int], None] | None
) -> CellResult:
    policies = experiment.makers(cell)
    seed = [settings.seed, zlib.crc32(cell.name.encode())]
    assert settings.rounds is not None
    assert settings.runs is not None
    run = simulate(cell.problem(), policies, settings.rounds, settings.runs, seed, jobs, progress=progress)
    return CellResult(
        cell,
        {name: run.mean(name) for name in policies},
        {name: run.standard_error(name) for name in policies},
        {name: run.regret[name][:, -1].copy() for name in policies},
        {name: run.tried[name].astype(np.float64) for name in policies},
        run.seconds,
        run.n_actions,
        run.best,
    )


def _arrays(result: CellResult) -> dict[str, Any]:
    found: dict[str, Any] = {"world": np.array([result.n_actions, result.best])}
    for part in _SIZES:
        found |= {f"{part}-{name}": curve for name, curve in getattr(result, part).items()}
    return found


def _read(path: Path, wanted: dict[str, Any], cell: Cell) -> CellResult | None:
    """The kept result, or None where there is none or it was made with other settings or versions."""
    if not path.exists():
        return None
    try:
        with storage.read(path, _KIND, _VERSION) as contents:
            if any(contents.header.get(key) != value for key, value in wanted.items()):
                return None
            parts = {
                part: {
                    name: contents.array(f"{part}-{name}", np.float64, (wanted["settings"][size],), finite=False)
                    for name in wanted["policies"]
                }
                for part, size in _SIZES.items()
            }
            n_actions, best = contents.array("world", np.float64, (2,)).tolist()
    except ValueError as error:
        raise ValueError(f"the earlier result {path} is damaged; delete it and run again ({error})") from error
    return CellResult(cell, **parts, n_actions=int(n_actions), best=best)


# -- what an experiment leaves in its folder -------------------------------------------------------


def tidy_rows(experiment: Experiment, results: list[CellResult]) -> Iterator[tuple[Any, ...]]:
    """(experiment, cell, policy, round, mean, se, runs) for every policy and round of every cell."""
    for result in results:
        for policy in result.mean:
            curves = zip(result.mean[policy].tolist(), result.error[policy].tolist(), strict=True)
            for t, (mean, error) in enumerate(curves, 1):
                yield experiment.name, result.cell.name, policy, t, f"{mean:.6g}", f"{error:.6g}", result.runs


def write_csv(experiment: Experiment, results: list[CellResult], path: Path) -> None:
    """The tidy table as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["experiment", "cell", "policy", "round", "mean", "se", "runs"])
        writer.writerows(tidy_rows(experiment, results))


def write_settings(experiment: Experiment, settings: Settings, path: Path) -> None:
    """What was run and with which versions, as JSON."""
    content = {
        "experiment": experiment.name,
        "policies": list(experiment.policies),
        "seed": settings.seed,
        "cells": [{"cell": cell.name, **asdict(settings.at(experiment, cell))} for cell in experiment.cells],
        "versions": versions(),
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@cache
def versions() -> dict[str, str]:
    """The versions that the numbers were made with."""
    packages = {name: version(name) for name in ("bough", "numpy", "scipy", "numba")}
    bits = type(np.random.default_rng(0).bit_generator).__name__
    return {"python": platform.python_version(), **packages, "numpy bit generator": bits}
