"""bough best: how sure an agent in a file is of its best action, and whether one may stop."""

from __future__ import annotations

import argparse
from typing import Any

from bough.cli import inputs, output
from bough.cli.contexts import context_of


def best(given: argparse.Namespace) -> None:
    """Print the likeliest actions to be the best, and whether one may commit to one of them."""
    for option, value, least in (("top", given.top, 1), ("samples", given.samples, 2)):
        if value < least:
            raise ValueError(f"--{option} is {value}; give at least {least}")
    inputs.check_seed(given.seed)
    loss = None if given.loss.lower() == "none" else inputs.number(given.loss, "--loss", ' or "none"')
    probability = None
    if given.probability.lower() != "none":
        probability = inputs.number(given.probability, "--probability", ' or "none"')
    context = context_of(given.context)
    agent = inputs.load_agent(given.agent)
    if not hasattr(agent, "best"):
        raise ValueError(f"{given.agent} holds a {type(agent).__name__}, which has no posterior to ask for the best")
    tree = agent._model.tree
    choices = {
        option: None if text is None else inputs.names_in(tree, text, f"--{option}")
        for option, text in (("among", given.among), ("exclude", given.exclude))
    }
    found = agent.best(context, **choices, samples=given.samples, seed=given.seed)
    decision = agent.should_stop(loss, probability, context=context, **choices, samples=given.samples, seed=given.seed)
    rows = list(_rows(found, given.top))
    maximum = found.maximum
    text = [
        output.table(["action", "probability", "expected loss", "mean reward"], [_shown(row) for row in rows]),
        f"the best of all earns {maximum.mean:.4g}, below {maximum.quantile(0.95):.4g} with probability 0.95"
        + (f" (from {given.samples:,} draws)" if found.method == "sampled" else ""),
        str(decision),
    ]
    stop = {name: getattr(decision, name) for name in ("stop", "action", "expected_loss", "probability")}
    about = {"method": found.method, "maximum": {"mean": maximum.mean, "quantile_0.95": maximum.quantile(0.95)}}
    output.show(given, "\n".join(text), {"actions": rows, **about, "should_stop": stop})


def _rows(found: Any, top: int) -> Any:
    """One mapping per action, the likeliest first."""
    for place in found.likeliest(top).tolist():
        numbers = ("probability", "standard_error", "expected_loss", "mean_reward")
        name = found.tree.name(int(found.tree.leaves[place]))
        yield {"action": name, **{column: float(getattr(found, column)[place]) for column in numbers}}


def _shown(row: dict[str, Any]) -> list[str]:
    probability = f"{row['probability']:.3g}"
    if row["standard_error"] > 0.0:
        probability += f" ± {row['standard_error']:.1g}"
    return [str(row["action"]), probability, f"{row['expected_loss']:.3g}", f"{row['mean_reward']:.4g}"]
