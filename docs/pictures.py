"""Draws the pictures of the README and the docs: `make pictures`."""

import contextlib
import doctest
import io
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bough
from bough.experiments.experiment import Settings
from bough.experiments.figures import draw
from bough.experiments.options import Options
from bough.experiments.reproduction import make_plan
from bough.experiments.runner import run_experiment
from bough.plotting import colour

IMAGES = Path(__file__).parent / "images"
PLAIN = {"Software": None}  # no versions in the files
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
    figure.savefig(IMAGES / "regret.png", dpi=160, metadata=PLAIN)


def draw_experiments() -> None:
    """The figures of the paper and of real data, as `bough reproduce` draws them; finished cells are not run again."""
    for experiment in make_plan((), Options()).wanted:
        results = run_experiment(experiment, Settings(), Path("reproduction"), jobs=-1)
        draw(experiment, results).savefig(IMAGES / f"{experiment.name}.png", dpi=120, metadata=PLAIN)


def fastest(function, times: int) -> float:
    """The shortest of that many calls, in seconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return min(spent)


def draw_decisions() -> None:
    """How many nodes a decision looks at after 1,000 rounds, for 10^3 to 10^7 actions, beside how many there are."""
    actions, looked, touched, every, times = [], [], [], [], []
    for height in range(3, 8):
        model = bough.problems.constant(10, height)
        rng = np.random.default_rng(0)
        truth, agent = model.draw(rng), bough.HierTS(model, seed=0, search=True)
        for _ in range(1_000):
            action = agent.decide()
            agent.update(action, truth[action] + rng.normal())
        actions.append(model.tree.n_actions)
        every.append(model.tree.n_nodes)
        looked.append(np.mean([(agent.decide(), agent.posterior.looked_at)[1] for _ in range(100)]))
        touched.append(int((agent.posterior.count > 0).sum()))
        full = bough.HierTS.resume(agent.posterior, seed=1, search=False)
        times.append((fastest(agent.decide, 200), fastest(full.decide, 5)))
    figure, (axes, clock) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    clock.loglog(actions, [1e6 * b for _, b in times], color="0.6", linestyle="--", marker="o", label="full sampler")
    clock.loglog(actions, [1e6 * a for a, _ in times], color=colour("HierTS", []), marker="o", label="search")
    clock.set(xlabel="number of actions K", ylabel="time of a decision (microseconds)", ylim=(5, None))
    clock.spines[["top", "right"]].set_visible(False)
    clock.legend(frameon=False)
    axes.loglog(actions, every, color="0.6", linestyle="--", marker="o", label="full sampler: every node")
    axes.loglog(actions, looked, color=colour("HierTS", []), marker="o", label="search: nodes looked at")
    axes.loglog(actions, touched, color="#d98324", linestyle=":", marker="x", label="touched nodes (with data below)")
    axes.set(xlabel="number of actions K", ylabel="nodes", ylim=(100, None))
    figure.suptitle("One decision after 1,000 rounds, fan-out 10", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(IMAGES / "decisions.png", dpi=140, metadata=PLAIN)


def draw_hierarchy() -> None:
    """What each level explains in four trees over the same log; docs/hierarchy.md makes it as here."""
    page = (Path(__file__).parent / "hierarchy.md").read_text()
    made: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in doctest.DocTestParser().get_examples(page):
            exec(compile(example.source, "hierarchy.md", "single"), made)
    figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    shades = ["#0b6e4f", "#5aa784", "#b9dccb", "0.85"]
    for row, tree in enumerate(made["trees"].values()):
        estimates = bough.fit_prior(tree, made["log"], penalty=None).estimates
        parts = [estimates[f"depth {depth}"].share for depth in range(1, tree.height)]
        parts += [0.0] * (2 - len(parts)) + [estimates[f"depth {tree.height}"].share, estimates["noise"].share]
        axes.barh(row, parts, left=np.cumsum([0.0, *parts[:-1]]), color=shades)
    for label, shade in zip(("first level", "second level", "actions themselves", "noise"), shades, strict=True):
        axes.barh(0, 0, color=shade, label=label)
    axes.set_yticks(range(len(made["trees"])), list(made["trees"]))
    axes.invert_yaxis()
    axes.set(xlabel="share of the variance of a reward", xlim=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1.0), fontsize=8)
    figure.savefig(IMAGES / "hierarchy.png", dpi=140, metadata=PLAIN)


if __name__ == "__main__":
    draw_hierarchy()
    draw_decisions()
    draw_regret()
    draw_experiments()
