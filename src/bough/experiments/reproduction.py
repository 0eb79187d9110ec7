"""What `bough reproduce` does: run experiments, add what earlier commands have left, and write it all down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bough.experiments import registry
from bough.experiments.claims import judge
from bough.experiments.experiment import Cell, Claim, Experiment, Outcome, Settings
from bough.experiments.figures import draw
from bough.experiments.options import MissingDataError, Options
from bough.experiments.report import write_report
from bough.experiments.runner import kept_results, run_experiment, write_csv, write_settings
from bough.plotting import draw_without_display, save_figure


@dataclass(frozen=True)
class Plan:
    """What there is to do."""

    wanted: tuple[Experiment, ...]
    """To run."""
    others: tuple[Experiment, ...]
    """Not to run; what an earlier command has left of them belongs in the report as well."""
    missing: Mapping[str, str]
    """By name, what has no data here, and how to get them."""


def make_plan(names: Sequence[str], options: Options) -> Plan:
    """The experiments of these names; without names, all that have data here but those that run on request.

    A `ValueError` where a named one has no data.
    """
    made: dict[str, Experiment] = {}
    missing: dict[str, str] = {}
    for name in registry.EXPERIMENTS:
        try:
            made[name] = registry.make(name, options)
        except MissingDataError as error:
            if name in (names or options.asked_for):
                raise ValueError(f"{name}: {error}") from error
            missing[name] = str(error)
    chosen = dict.fromkeys(names or [name for name in made if name not in registry.ON_REQUEST])
    others = tuple(experiment for name, experiment in made.items() if name not in chosen)
    return Plan(tuple(made[name] for name in chosen), others, missing)


def count_runs(experiments: Iterable[Experiment], settings: Settings) -> int:
    """How many runs these experiments have in all."""
    return sum(settings.at(each, cell).runs or 0 for each in experiments for cell in each.cells)


def run_plan(
    plan: Plan, settings: Settings, out: Path, jobs: int | None, progress: Callable[[int], None]
) -> list[Outcome]:
    """Run what is wanted and write its tables into a folder that is there; `progress` is told of finished runs."""
    outcomes = []
    for experiment in plan.wanted:

        def started(cell: Cell, kept: bool, experiment: Experiment = experiment) -> None:
            if kept:
                progress(settings.at(experiment, cell).runs or 0)

        results = run_experiment(experiment, settings, out, jobs, started, progress)
        write_csv(experiment, results, out / f"{experiment.name}.csv")
        write_settings(experiment, settings, out / f"{experiment.name}.json")
        outcomes.append(Outcome(experiment, settings, results))
    return outcomes


def earlier_outcomes(plan: Plan, settings: Settings, out: Path) -> list[Outcome]:
    """What an earlier command has left of the experiments that were not to be run."""
    outcomes = []
    for experiment in plan.others:
        try:
            kept = kept_results(experiment, settings, out)
        except ValueError:  # damaged, and nobody asked for it
            continue
        if kept:
            outcomes.append(Outcome(experiment, settings, kept))
    return outcomes


def write_all(
    outcomes: Iterable[Outcome], missing: Mapping[str, str], out: Path, command: str = "bough reproduce"
) -> list[Claim]:
    """Draw the figures and write the report, which names the command; the claims that it judges."""
    named = {outcome.experiment.name: outcome for outcome in outcomes}
    ordered = {name: named[name] for name in registry.EXPERIMENTS if name in named}
    draw_without_display()
    for name, outcome in ordered.items():
        save_figure(draw(outcome.experiment, outcome.results), out / name)
    write_report(ordered, missing, out, command)
    return judge(ordered.values())
