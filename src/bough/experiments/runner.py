"""Runs the cells of an experiment, keeps each as soon as it is finished, and never runs it twice."""

from __future__ import annotations

import csv
import json
import platform
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bough import _storage
from bough.experiments.experiment import Cell, CellResult, Experiment, Results, Settings
from bough.simulation.simulate import simulate

_KIND = "simulated-cell"
_VERSION = 2
_SIZES = {"mean": "rounds", "error": "rounds", "final": "runs", "tried": "runs", "seconds": "runs"}


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
            _storage.write(path, {"kind": _KIND, "version": _VERSION, **wanted}, _arrays(kept))
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
        "policies": list(experiment.policies_in(cell)),
        "versions": versions(),
    }
    return out / "cells" / f"{name}.bough", wanted


def _simulated(
    cell: Cell, experiment: Experiment, settings: Settings, jobs: int | None, progress: Callable[[int], None] | None
) -> CellResult:
    policies = experiment.policies_in(cell)
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
        with _storage.read(path, _KIND, _VERSION) as contents:
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


def tidy_rows(experiment: Experiment, results: Results) -> Iterator[tuple[Any, ...]]:
    """(experiment, cell, policy, round, mean, se, runs) for every policy and round of every cell."""
    for result in results:
        for policy in result.mean:
            curves = zip(result.mean[policy].tolist(), result.error[policy].tolist(), strict=True)
            for t, (mean, error) in enumerate(curves, 1):
                yield experiment.name, result.cell.name, policy, t, f"{mean:.6g}", f"{error:.6g}", result.runs


def write_csv(experiment: Experiment, results: Results, path: Path) -> None:
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
