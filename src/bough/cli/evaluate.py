"""bough evaluate: what agents in files would have earned on a log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import bough
from bough.cli import inputs, output

INTERVALS = ("cressie-read", "normal", "anytime")


def evaluate(given: argparse.Namespace) -> None:
    """Print what each agent would have earned per row of the log, and whether the log can tell."""
    inputs.check_seed(given.seed)
    inputs.check_target(given.plot, "--plot")
    output.watch(given, lambda: [given.plot])
    if given.plot is not None:
        inputs.check_picture(given.plot)
    agents = {name: inputs.load_agent(path) for name, path in _named(given.agent).items()}
    first = next(iter(agents.values()))
    tree = inputs.read_tree(given) if given.tree is not None else _tree_of(first)
    model = None if given.model is None else bough.GaussianModel.load(given.model)
    limits = None
    if given.reward_range is not None:
        limits = [inputs.number(end, "--reward-range") for end in given.reward_range.split(",")]
        if len(limits) != 2:
            raise ValueError(f"--reward-range is {given.reward_range!r}; give the least and the largest reward, as 0,1")
    context = None if given.context is None else inputs.listed(given.context, "--context")
    report = bough.evaluate(
        agents,
        given.log,
        tree,
        given.action,
        given.reward,
        given.propensity,
        context=context,
        position=given.position,
        model=model,
        estimators=inputs.listed(given.estimators, "--estimators", "estimators"),
        interval=given.interval,
        level=given.level,
        reward_range=None if limits is None else (limits[0], limits[1]),
        samples=given.samples,
        seed=given.seed,
        bad="skip" if given.skip_bad else "error",
    )
    text = report.summary()
    if given.plot is not None:
        report.plot().figure.savefig(given.plot)
        text += f"\nfigure: {given.plot}"
    output.show(given, text, {**_results(report), "figure": given.plot})


def _results(report: Any) -> dict[str, Any]:
    policies = {
        name: {
            "problems": list(one.problems),
            "is_usable": one.is_usable,
            **{
                part: getattr(one, part) for part in ("mean_weight", "effective_rows", "largest_weight", "never_logged")
            },
        }
        for name, one in report.diagnostics.policies.items()
    }
    return {
        "rows": report.n_rows,
        "logged_value": report.logged_value,
        "interval": report.interval,
        "level": report.level,
        "values": [one._asdict() for one in report.values],
        "diagnostics": {"log": list(report.diagnostics.log), "policies": policies},
        "notes": list(report.notes),
    }


def _named(given: list[str]) -> dict[str, Path]:
    """The files of agents by name: NAME=FILE, or FILE, which is called by its own name."""
    found: dict[str, Path] = {}
    for text in given:
        name, sign, path = text.partition("=")
        if not sign or not name:
            name, path = Path(text).stem, text
        if name in found:
            raise ValueError(f"two agents are called {name!r}; give one of them another name, as in new={path}")
        found[name] = Path(path)
    return found


def _tree_of(agent: Any) -> bough.Tree:
    """The tree that an agent was given, also where it reasons with less."""
    star = getattr(agent, "_star", None)
    tree: bough.Tree = agent._model.tree if star is None else star.whole.tree
    return tree
