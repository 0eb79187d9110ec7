"""bough learn: an agent in a file learns the rewards of a log."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import bough
from bough.cli import inputs, output
from bough.model.encoders import is_encoder
from bough.model.feature_names import INTERCEPT


def learn(given: argparse.Namespace) -> None:
    """Have an agent learn the rows of logs, and write it, to its own file unless another is named."""
    out = given.agent if given.out is None else given.out
    inputs.check_target(out, "--out")
    output.watch(given, lambda: [out])
    agent = inputs.load_agent(given.agent)
    context = _context(given, agent._model)
    tree = agent._catalogue.folded().tree
    learned = [_learn(agent, log, tree, context, given) for log in given.log]
    statistics = sum(learned[1:], start=learned[0])
    if statistics.n_rows == 0:
        raise ValueError("the log has no row that can be used, and there is nothing to learn from; give another log")
    end = output.target("agent", out)
    agent.save(out)
    n_actions = len(set(statistics.actions.tolist()))
    lines = [*output.left_out(statistics.skipped), f"learned: {statistics.n_rows:,.10g} rows of {n_actions:,} actions"]
    found = {"left_out": statistics.skipped, "rows": statistics.n_rows, "actions": n_actions, "agent": out}
    output.show(given, "\n".join([*lines, end]), found)


def _context(given: argparse.Namespace, model: Any) -> list[str] | None:
    """The columns of the context: those that are named, or else those that the model's features are called."""
    if is_encoder(model.features):
        raise ValueError(
            f"{given.agent} makes its features of columns itself, which takes a frame; in Python give agent.update one"
        )
    if given.context is not None:
        return inputs.listed(given.context, "--context")
    if model.is_scalar:
        return None
    if model.feature_names is None:
        raise ValueError(f"{given.agent} takes contexts of length {model.dim}; name their columns with --context")
    return [name for name in model.feature_names if name != INTERCEPT]


def _learn(agent: Any, log: str, tree: bough.Tree, context: list[str] | None, given: argparse.Namespace) -> Any:
    """Have the agent learn one log; the sums of its rows."""
    model = agent._model
    options: dict[str, Any] = {"trials": given.trials, "exposure": given.exposure, "model": type(model)}
    options["bad"] = "skip-most" if given.skip_most else "skip" if given.skip_bad else "error"
    options["intercept"] = context is not None and len(context) + 1 == model.dim
    columns = (log, tree, given.action, given.reward, context)
    if context is None or model.kind.sums_suffice:
        decided = () if model.effects is None else model.effects.decided
        statistics = bough.summarise(*columns, given.weight, **options, factors={name: name for name, *_ in decided})
        agent.absorb(statistics)
        return statistics
    if given.weight is not None:
        raise ValueError("clicks and counts in contexts are learned row by row; leave out --weight")
    rows, statistics = import_module("bough.data.logs").read_rows(*columns, **options)
    rows = rows.arranged(model.feature_names)
    agent.update(rows.action, rows.reward, rows.context, trials=rows.trials, exposure=rows.exposure)
    return statistics
