"""Draws the pictures of the README and the docs: `make pictures`, or those named in the arguments."""

import contextlib
import doctest
import io
import sys
import time
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars

import bough
from bough.experiments.experiment import Settings
from bough.experiments.figures import draw
from bough.experiments.options import Options
from bough.experiments.reproduction import make_plan
from bough.experiments.runner import run_experiment
from bough.inference.pace import FEWEST
from bough.plotting import colour

IMAGES = Path(__file__).parent / "images"
PLAIN = {"Software": None}  # no versions in the files
POLICIES = {"HierTS": bough.HierTS, "FlatTS": bough.FlatTS, "TS": bough.TS}


def draw_regret() -> None:
    """100 actions of Problem 2, as the page of the paper has it."""
    run = bough.simulate(bough.problems.increasing(10, 2), POLICIES, rounds=500, runs=100, seed=0, jobs=-1)
    axes = run.plot()
    axes.set_title("100 actions in 10 groups", fontsize=10)
    axes.figure.set_size_inches(6.4, 3.6)
    axes.figure.savefig(IMAGES / "regret.png", dpi=160, metadata=PLAIN)


def draw_experiments() -> None:
    """The figures of the paper and of real data, as `bough reproduce` draws them; finished cells are not run again."""
    plan = make_plan((), Options())
    for experiment in plan.wanted + plan.others:
        results = run_experiment(experiment, Settings(), Path("reproduction"), jobs=-1)
        draw(experiment, results).savefig(IMAGES / f"{experiment.name}.png", dpi=120, metadata=PLAIN)


def draw_grocery() -> None:
    """The picture of the README: what share of the best a policy earns on the products of a grocery, round by round."""
    whole = make_plan(("catalogue",), Options()).wanted[0]
    first = replace(whole, cells=whole.cells[:1])
    (result,) = run_experiment(first, Settings(), Path("reproduction"), jobs=-1)
    rounds = np.unique(np.geomspace(100, result.rounds, 60).astype(int))
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name in POLICIES:
        share = [100.0 * result.share_of_best(name, at) for at in rounds.tolist()]
        axes.plot(rounds, share, color=colour(name, []), linewidth=2)
        axes.annotate(name, (rounds[-1], share[-1]), (5, 0), textcoords="offset points", va="center",
                      color=colour(name, []), fontsize=9)  # fmt: skip
    for name, away in (("HierTS", 7), ("TS", -14)):
        share = 100.0 * result.share_of_best(name, 1_000)
        axes.plot(1_000, share, "o", color=colour(name, []), markersize=5)
        axes.annotate(f"{share:.0f}%", (1_000, share), (-4, away), textcoords="offset points", ha="right", fontsize=9)
    axes.set(xscale="log", xlabel="rounds (log axis)", ylabel="reward, as a share of the best (%)", ylim=(0, 104))
    axes.set_xticks([100, 1_000, 10_000], ["100", "1,000", "10,000"])
    axes.minorticks_off()
    axes.set_title(f"{result.n_actions:,} products of a grocery, mean of {result.runs} runs", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "grocery.png", dpi=160, metadata=PLAIN)


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
        looked.append(np.mean([(agent.decide(), agent.posterior.nodes_visited)[1] for _ in range(100)]))
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


def draw_capped() -> None:
    """The line of a family, and the time of a decision by both searches where everything has been tried."""
    figure, (line, clock) = plt.subplots(
        1, 2, figsize=(10.0, 3.7), layout="constrained", gridspec_kw={"width_ratios": [1.25, 1]}
    )
    draw_a_line(line)
    touched, plain, capped = [], [], []
    for height in range(3, 7):
        agent = tried(bough.problems.constant(10, height), 20_000)
        touched.append(agent.posterior._engine.slots.count)
        rng, nobody = np.random.default_rng(0), np.empty(0, dtype=np.int32)
        search = agent.posterior._search_state.without(agent.posterior._engine, None, nobody)
        plain.append(fastest(lambda: search.best(search.draw(rng).values, 1, rng), 20))  # noqa: B023, called at once
        capped.append(fastest(agent.decide, 2_000) if touched[-1] > FEWEST else np.nan)
    clock.loglog(touched, [1e6 * t for t in plain], color="#d98324", marker="o", label="plain search")
    clock.loglog(touched, [1e6 * t for t in capped], color=colour("HierTS", []), marker="o", label="capped: decide()")
    clock.set(xlabel="touched nodes", ylabel="time of a decision (microseconds)", ylim=(1, 3e4))
    clock.set_title("Every action tried, then 20,000 rounds", fontsize=10)
    clock.spines[["top", "right"]].set_visible(False)
    clock.legend(frameon=False)
    figure.savefig(IMAGES / "capped.png", dpi=140, metadata=PLAIN)


def tried(model, rounds: int):
    """HierTS after one reward of each action, and that many rounds of its own."""
    rng = np.random.default_rng(0)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=0, search=True)
    agent.update(model.tree.leaves, truth[model.tree.leaves] + rng.normal(size=model.tree.n_actions))
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, truth[action] + rng.normal())
    return agent


def draw_a_line(axes) -> None:
    """Six children on a line, in two columns: with a high cap on their parent, and with a low one."""
    kinds = ["action", "action", "inner node", "group of 40", "action", "inner node"]
    colours = {"action": "#8fb8de", "inner node": "#e8b96f", "group of 40": "#b9d8a9"}
    high, low = [0.5, 0.2, 0.9, 0.7, 0.25, 0.5], [0.22, 0.08, 0.45, 0.3, 0.1, 0.2]
    for y, lengths, label in ((1.0, high, "high cap"), (0.0, low, "low cap")):
        start = 0.0
        for kind, length in zip(kinds, lengths, strict=True):
            axes.barh(y, length, left=start, height=0.34, color=colours[kind], edgecolor="white", linewidth=1.5)
            start += length
        axes.text(-0.08, y, label, ha="right", va="center", fontsize=9)
        axes.text(start + 0.05, y, f"sum {start / 5.0:.2f}", va="center", fontsize=9)
    edges = np.cumsum([0.0, *high])
    for i, kind in enumerate(kinds):
        axes.text(edges[i] + high[i] / 2, 1.24, kind.replace(" ", "\n", 1), ha="center", va="bottom", fontsize=7.5)
    for y, points in ((1.0, [1.16, 1.9]), (0.0, [])):
        axes.plot(points, [y] * len(points), "v", color="black", markersize=7)
    axes.annotate("the first point: this child is looked at;\nthose to its left have lost", (1.16, 0.8), (0.05, 0.44),
                  fontsize=8, arrowprops={"arrowstyle": "->", "color": "0.3"})  # fmt: skip
    axes.annotate("then the next", (1.9, 0.8), (2.15, 0.5), fontsize=8, arrowprops={"arrowstyle": "->", "color": "0.3"})
    axes.text(0.0, -0.3, "three exponentials in four are beyond this sum: then all have lost", fontsize=8, va="top")
    axes.set(xlim=(-0.75, 3.75), ylim=(-0.6, 1.75))
    axes.set_title("A family's line: each child takes at least its rate of it", fontsize=10)
    axes.axis("off")


def names_of_page(page: str) -> dict:
    """What the examples of a page make, by name."""
    made: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in doctest.DocTestParser().get_examples((Path(__file__).parent / page).read_text()):
            exec(compile(example.source, page, "single"), made)
    return made


def draw_looking() -> None:
    """The figures of docs/howto/looking.md, of what its examples make."""
    made = names_of_page("howto/looking.md")
    figures = {
        "best": made["posterior"].plot(top=10),
        "explanation": made["explanation"].plot(),
        "fit": made["fit"].plot()[0],
        "run": made["run"].plot(),
    }
    for name, axes in figures.items():
        axes.figure.savefig(IMAGES / f"looking-{name}.png", dpi=140, metadata=PLAIN)


def draw_hierarchy() -> None:
    """What each level explains in four trees over the same log; docs/howto/hierarchy.md makes it as here."""
    made = names_of_page("howto/hierarchy.md")
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


def draw_evaluation() -> None:
    """Three policies on a log of 3,000 clicks, in which no action was more than twice as likely as another."""
    tree = bough.Tree.balanced(4, 2)
    model = bough.BernoulliModel(tree, -1.0, bough.by_depth([0.1, 0.4, 0.4]))
    rng = np.random.default_rng(2)
    means = model.mean_reward(model.draw(rng))[tree.leaves]
    logger = rng.uniform(1.0, 2.0, 16)
    logger /= logger.sum()
    place = rng.choice(16, 3_000, p=logger)
    clicks = (rng.random(3_000) < means[place]).astype(float)
    log = polars.DataFrame({"action": tree.leaves[place], "reward": clicks, "propensity": logger[place]})
    agent = bough.HierTS(model, seed=0)
    agent.update(tree.leaves[place[:300]], clicks[:300])
    policies = {"HierTS": agent, "Greedy": bough.Greedy.resume(agent.posterior), "uniform": np.full(16, 1 / 16)}
    axes = bough.evaluate(policies, log, tree).plot()
    axes.figure.savefig(IMAGES / "evaluation.png", dpi=120, metadata=PLAIN)


# Tasks of the chart of speed, and in each the name of a peer with how its line of the table begins.
SPEED = {
    "a decision among a million actions, after 10,000 rounds": {
        "bough, drawing every node": "decide, 10^6 actions, 10,000 rounds",
    },
    "an update, 10,000 actions": {"bayesianbandits": "update, K = 10^4"},
    "a decision and an update in context, 10,000 actions, d = 10": {
        "bayesianbandits": "decide + update, K = 10^4, d = 10: bayesianbandits",
        "VW --squarecb": "decide + update, K = 10^4, d = 10: VW --squarecb",
        "VW --bag 5": "decide + update, K = 10^4, d = 10: VW --bag 5",
        "mabwiser LinTS": "decide + update, K = 10^4, d = 10: mabwiser",
    },
    "a prior learned from 50,000 rows": {
        "gpboost, exact": "fit, 10^4 actions, 5 x 10^4 rows / gpboost (cholesky)",
        "gpboost, iterative": "fit, 10^4 actions, 5 x 10^4 rows / gpboost (iterative)",
    },
    "a summary of 20 million rows": {"DuckDB's bare group-by": "summary of 2 x 10^7 rows"},
}


def measured_ratios() -> dict[str, float]:
    """By claim, how many times longer the reference took than bough, from the table that `make bench` wrote."""
    text = (Path(__file__).parent / "results" / "performance-table.md").read_text().split("<!-- all -->")[1]
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and cells[2] and cells[3].endswith(" x"):
            claim, _, _, ratio, target, _ = cells
            value = float(ratio.removesuffix(" x"))
            found[claim] = 1.0 / value if target.startswith("at most") else value
    return found


def draw_performance() -> None:
    """How many times longer others take, on a log axis: bars to the right of 1 are in bough's favour."""
    ratios, place, places, names = measured_ratios(), 0.0, [], []
    figure, axes = plt.subplots(figsize=(7.0, 4.6), layout="constrained")
    for task, peers in SPEED.items():
        axes.text(1.08, place, task, fontsize=9, fontweight="bold", va="center")
        for name, beginning in peers.items():
            place += 1.0
            ratio = next((value for claim, value in ratios.items() if claim.startswith(beginning)), None)
            if ratio is None:
                raise SystemExit(
                    f"docs/results/performance-table.md has no ratio for {beginning!r}; run the whole of make bench"
                )
            axes.barh(place, ratio - 1.0, left=1.0, height=0.72, color=colour("HierTS", []))
            shown = f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.2f} times"
            axes.annotate(shown, (max(ratio, 1.0), place), (4, 0), textcoords="offset points", va="center", fontsize=9)
            places.append(place)
            names.append(name)
        place += 1.3
    axes.axvline(1.0, color="0.3", linewidth=0.8)
    axes.set(xscale="log", xlim=(0.7, 8_000), xlabel="time of the other over the time of bough (log axis)")
    axes.set_xticks([1, 10, 100, 1_000], ["1", "10", "100", "1,000"])
    axes.set_yticks(places, names, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(IMAGES / "performance.png", dpi=140, metadata=PLAIN)


PICTURES = {
    "performance": draw_performance,
    "hierarchy": draw_hierarchy,
    "evaluation": draw_evaluation,
    "looking": draw_looking,
    "decisions": draw_decisions,
    "capped": draw_capped,
    "grocery": draw_grocery,
    "regret": draw_regret,
    "experiments": draw_experiments,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
