"""Draws the pictures of the README and the docs: `make pictures`."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bough

IMAGES = Path(__file__).parent / "images"
COLOURS = {"HierTS": "#0b6e4f", "FlatTS": "#d98324", "TS": "#4a5899"}
RUNS, ROUNDS = 60, 500


def regret_of(policy: type, model: bough.GaussianModel, seed: int) -> np.ndarray:
    """(ROUNDS,) the cumulative regret of one run on a problem drawn from the model."""
    rng = np.random.default_rng(seed)
    truth = model.draw(rng)
    best = truth[model.tree.leaves].max()
    agent = policy(model, seed=seed)
    gaps = np.empty(ROUNDS)
    for t in range(ROUNDS):
        action = agent.decide()
        gaps[t] = best - truth[action]
        agent.update(action, truth[action] + rng.normal())
    return gaps.cumsum()


def draw_regret() -> None:
    model = bough.GaussianModel(bough.Tree.balanced(10, 2), covariance=bough.by_height([1.0, 2.0, 4.0]))
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    rounds = np.arange(1, ROUNDS + 1)
    for name, colour in COLOURS.items():
        runs = np.array([regret_of(getattr(bough, name), model, seed) for seed in range(RUNS)])
        mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(RUNS)
        axes.plot(rounds, mean, color=colour, label=name)
        axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        axes.annotate(name, (ROUNDS, mean[-1]), (6, 0), textcoords="offset points", color=colour, va="center")
    axes.set(xlabel="round", ylabel="cumulative regret", xlim=(0, ROUNDS), ylim=(0, None))
    axes.set_title(f"100 actions in 10 groups, mean of {RUNS} runs ± one standard error", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "regret.png", dpi=160)


if __name__ == "__main__":
    draw_regret()
