"""bough decide: what an agent in a file would choose."""

from __future__ import annotations

import argparse
from typing import Any

from bough import _seeds
from bough.cli import inputs, output
from bough.cli.contexts import context_for, levels_for


def decide(given: argparse.Namespace) -> None:
    """Print a decision with its propensity; the file stays as it is."""
    inputs.check_seed(given.seed)
    for option, value, least in (("k", given.k, 1), ("samples", given.samples, 0)):
        if value is not None and value < least:
            raise ValueError(f"--{option} is {value}; give at least {least}")
    agent = inputs.load_agent(given.agent)
    context, factors = context_for(agent._model, given.context), levels_for(agent._model, given.decision_factor)
    if given.seed is not None:
        agent._rng = _seeds.generator(given.seed)
    tree = agent._model.tree
    choices = {
        option: None if text is None else inputs.names_in(tree, text, f"--{option}")
        for option, text in (("among", given.among), ("exclude", given.exclude))
    }
    decision = agent.decision(context, k=given.k, samples=given.samples, **choices, factors=factors)
    each = {"scores": decision.scores, "propensities": decision.propensities}
    each["propensity_errors"] = decision.propensity_errors
    output.show(given, _as_text(decision), {**decision.to_dict(), **each})


def _as_text(decision: Any) -> str:
    rows = []
    for i, (action, score) in enumerate(zip(decision.actions, decision.scores, strict=True)):
        row = [str(action), f"{score:.4g}"]
        if decision.propensities is not None:
            row.append(f"{decision.propensities[i]:.3g} ± {decision.propensity_errors[i]:.1g}")
        rows.append(row)
    head = ["action", "score", *([] if decision.propensities is None else ["propensity"])]
    return output.table(head, rows)
