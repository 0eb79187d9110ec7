"""bough adopt: an agent goes on with a new table of actions."""

from __future__ import annotations

import argparse
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import bough
from bough.cli import inputs, output
from bough.tree.names import twin


def adopt(given: argparse.Namespace) -> None:
    """Have an agent go on with a new table, print what has changed, and write the agent."""
    inputs.check_target(given.out, "--out")
    output.watch(given, lambda: [given.out])
    own = given.tree or given.levels or given.sep or given.missing
    if given.model is not None and (own is not None or given.factor):
        raise ValueError("--model has a tree already; leave out --tree, --levels, --sep, --missing and --factor")
    if given.model is None and given.tree is None:
        raise ValueError(inputs.NO_TREE)
    agent = inputs.load_agent(given.agent)
    if not hasattr(agent, "adopt"):
        name = type(agent).__name__
        raise ValueError(f"{given.agent} holds a {name}, which does without a tree; adopt goes with the other policies")
    old = agent.posterior.model.tree
    model = None if given.model is None else bough.GaussianModel.load(given.model)
    tree = inputs.read_tree(given, old) if model is None else model.tree
    renamed = _renamed(given.renamed, old, tree)
    _check_same_names(old, tree, given.tree or given.model, bool(renamed))
    factors = {} if model is not None else inputs.read_labels(given, tree)
    more = {"factors": factors} if factors else {}
    changes = agent.adopt(model or tree, renamed, given.gone, **more)
    if given.out is not None:
        agent.save(given.out)
    end = "agent: not written; give --out FILE for that" if given.out is None else f"agent: {given.out}"
    results = {name: getattr(changes, name) for name in (one.name for one in fields(changes))}
    output.show(given, f"{changes}\n{end}", {**results, "agent": given.out})


def _renamed(given: list[str], old: bough.Tree, new: bough.Tree) -> dict[Any, Any]:
    """The new names of actions, by the old ones, each of the type that it has in its tree."""
    pairs: list[tuple[Any, ...]] = []
    for text in given:
        before, sign, after = text.partition("=")
        if sign:
            pairs.append((before, after))
        elif Path(text).suffix.lower() not in inputs.TABLES:
            raise ValueError(f"--renamed is {text!r}; give OLD=NEW, or a CSV or Parquet file with columns old and new")
        else:
            pairs += import_module("bough.data.files").rows_of_table(text, ["old", "new"])
    renamed = {}
    for before, after in pairs:
        name = inputs.name_in(old, before)
        if name in renamed:
            raise ValueError(f"--renamed gives {name!r} more than one new name; give it one")
        renamed[name] = inputs.name_in(new, after)
    return renamed


def _check_same_names(old: bough.Tree, new: bough.Tree, path: Path, are_renamed: bool) -> None:
    """Refuse a table that calls the agent's actions otherwise: all of them would be gone."""
    names = list(new.actions)
    known = old.node_names.find_all(names) >= 0
    for name in (name for name, is_known in zip(names, known.tolist(), strict=True) if not is_known):
        meant = twin(old.node_names, name)
        if meant is not None:
            kinds = ("an integer", "text") if isinstance(meant, int) else ("text", "an integer")
            odd = next((one for one in names if not str(one).lstrip("-").isdecimal()), None)
            why = f" ({odd!r} is no integer)" if odd is not None else ""
            raise ValueError(f"{meant!r} is {kinds[0]} in the agent and {kinds[1]} in {path}{why}; cast one of them")
    if not known.any() and not are_renamed:
        raise ValueError(
            f"{path} has none of the agent's {old.n_actions:,} actions: they are called such as {old.actions[0]!r} "
            f"there and {names[0]!r} here; give the table that has them"
        )
