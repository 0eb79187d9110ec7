"""Draws the pictures of the README and the docs: `make pictures`."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import bough
from bough.experiments.figures import draw
from bough.experiments.runner import Settings, run_experiment
from bough.experiments.sweeps import EXPERIMENTS
from bough.plotting import colour

IMAGES = Path(__file__).parent / "images"
POLICIES = {"HierTS": bough.HierTS, "FlatTS": bough.FlatTS, "TS": bough.TS}


def draw_regret() -> None:
    """The picture of the README: 100 actions of Problem 2."""
    run = bough.simulate(bough.problems.increasing(10, 2), POLICIES, rounds=500, runs=100, seed=0, jobs=-1)
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    run.plot(axes).get_legend().remove()
    for name in POLICIES:
        place = (run.rounds, run.mean(name)[-1])
        shade = colour(name, list(POLICIES))
        axes.annotate(name, place, (6, 0), textcoords="offset points", color=shade, va="center")
    axes.set_title(f"100 actions in 10 groups, mean of {run.runs} runs ± one standard error", fontsize=10)
    figure.savefig(IMAGES / "regret.png", dpi=160)


def draw_experiments() -> None:
    """The figures of the paper, as `bough reproduce` draws them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, experiment in EXPERIMENTS.items():
            results = run_experiment(experiment, Settings(), Path(folder), jobs=-1)
            draw(experiment, results).savefig(IMAGES / f"{name}.png", dpi=120)


if __name__ == "__main__":
    draw_regret()
    draw_experiments()
