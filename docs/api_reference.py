"""What Sphinx needs for the API reference: types of parameters in words, and links between names.

bough takes whatever looks like an array, a frame or a name, so many parameters are annotated with `Any`. `WORDS` says
what they take. Constructors of answers, which nobody calls, are left out. A name of bough in single backticks becomes
a link to it.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

import bough

CONSTRUCTED = {
    *("GaussianModel", "BernoulliModel", "PoissonModel", "Posterior", "Observations", "World", "Residuals", "Factor"),
    *("HierTS", "FlatTS", "TS", "BayesUCB", "Greedy", "BetaTS", "Client", "AsyncClient", "Scorer"),
    *("DensePosterior", "GridPosterior"),
}
"""The classes that users make by calling them. Others come from functions and methods."""

WORDS = {
    "action": "name, or list of names",
    "actions": "list of names",
    "agent": "a policy",
    "among": "list of names, or None",
    "at": "number or datetime, or one per reward; or None",
    "ax": "matplotlib Axes, or None",
    "axes": "two matplotlib Axes, or None",
    "by": '"depth", "height", or a dict from names of nodes to classes',
    "config": "the experiment's settings, by name",
    "context": "vector, dict, Series or frame of one row; for several rewards an array (n, d) or a frame; or None",
    "contexts": "array (n, d) or frame; or the number of decisions",
    "covariance": "number, matrix, `by_depth`, `by_height` or `by_node`",
    "data": "`Statistics`, `Observations`, or a log: a frame, a path, or a query",
    "decision": "`Decision`, or the name of an action",
    "default": "number or matrix, or None",
    "estimators": "list of str, or None",
    "exclude": "list of names, or None",
    "exposure": "number, or one per reward; or None",
    "feedback": "dict of arrays, as obp has it",
    "features": "list of names, `Features`, or a fitted transformer; or None",
    "factor": "name of a crossed factor",
    "factors": "dict from names of factors to levels, one or one per reward; or None",
    "fit_prior.factors": "dict from names of factors to `Factor`, labels, or columns of the log; or None",
    "GaussianModel.factors": "dict from names to `Factor`, or None",
    "frame": "pandas, polars or pyarrow frame",
    "graph": "networkx DiGraph",
    "half_life": "number or timedelta, or None",
    "input_features": "not used",
    "labels": "dict from actions to levels or lists of them, or a column in the order of the actions; or None",
    "level": "name of a level",
    "levels": "list of names, or None",
    "linkage": "array (n - 1, 4), as scipy makes it",
    "log": "frame, path, DuckDB relation, or another log that `summarise` takes",
    "mean": "number, or vector of length d",
    "model": "a prior, a `PriorFit`, a `Posterior`, or mean rewards; or None",
    "name": "name, or list of names",
    "nested": "dict of dicts and lists",
    "node": "name of a node, or None",
    "nodes": "array of node numbers",
    "noise": 'number, "learn" or "per action"',
    "normals": "array of standard normal numbers",
    "options": "options of the policy",
    "paths": "list of paths, or a `Tree`",
    "posterior": "`Posterior`, or an agent",
    "policies": "dict from names to agents, probabilities or functions",
    "policy": "class of a policy, or its name",
    "renamed": "dict from old names to new names, or None",
    "rate": "number",
    "reward": "number, or one per action",
    "rewards": "array of numbers",
    "rng": "seed or numpy Generator",
    "root": 'number or matrix, or "learn"; or None',
    "rows": "list of (decision, value) or of dicts",
    "score": "number or array",
    "seed": "seed, or None",
    "trials": "whole number, or one per reward; or None",
    "truth": "array (K,), (rounds, K) or (K, d), or a function of the context",
    "under": "name of a category",
    "values": "one for each",
    "weight": "whole number, or one per row; or None",
    "Statistics.check_kind.model": "class of a model",
    "by_depth.values": "one per depth, from the root; or a dict from names of levels",
    "by_height.values": "one per height, the actions' first",
    "by_node.values": "dict from names of nodes, or an array in the order of the nodes",
    "simulate.policies": "dict from names to classes, functions that make a policy, or policies",
    "client.Client.decide.context": "list of numbers, or dict of features; or None",
}
"""What a parameter that is annotated with `Any` takes: wherever it has this name, or in one place."""

ALIASES = re.compile(r"\b(Floats|Nodes|Integers|Names|Flags)\b")
"""Our own names for arrays, in annotations."""

KINDS = "`GaussianModel`, `BernoulliModel` or `PoissonModel`"
SHORTER = {
    "Model": KINDS,
    "Model | Posterior": f"{KINDS}; or a `Posterior`",
    "Model | Problem": f"{KINDS}; or a `Problem`",
    "type[Model]": "one of the classes `GaussianModel`, `BernoulliModel` and `PoissonModel`",
    "Floats": "array of float",
    "Floats | None": "array of float, or None",
    "Floats | Callable[[Floats], Any]": WORDS["truth"],
    "PerAction | None": "`per_action`, or None",
    "Nodes": "array of node numbers",
    "Nodes | None": "array of node numbers, or None",
    "Integers": "array of int",
    "str | os.PathLike[str]": "path",
    "Sequence[Hashable] | None": "list of names, or None",
    "Hashable": "name",
    "Hashable | None": "name, or None",
}
"""What annotations with our own names for types are called."""


def type_of(parameter: inspect.Parameter, place: str = "") -> str:
    """What to write behind the name of a parameter of something public; empty where the annotation says it."""
    annotation = str(parameter.annotation)
    if annotation in SHORTER:
        return SHORTER[annotation]
    special = f"{place.removeprefix('bough.')}.{parameter.name}"
    if special in WORDS:
        return WORDS[special]
    if "Any" not in annotation:
        return ALIASES.sub("array", annotation) if ALIASES.search(annotation) else ""
    if parameter.name not in WORDS:
        raise ValueError(
            f"no words for the parameter {parameter.name!r}; say in WORDS of docs/api_reference.py what it takes"
        )
    return WORDS[parameter.name]


def parameters_of(what: str, name: str, found: Any) -> list[inspect.Parameter]:
    """The parameters that a reader gives."""
    if what == "class" and name.rpartition(".")[2] not in CONSTRUCTED:
        return []
    if what not in ("class", "function", "method"):
        return []
    try:
        given = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one for one in given if one.name not in ("self", "cls") and not one.name.startswith("_")]


def add_types(_app: Any, what: str, name: str, found: Any, _options: Any, lines: list[str]) -> None:
    """List the parameters below the docstring, each with its type."""
    listed = parameters_of(what, name, found)
    if listed:
        lines.append("")
    for one in listed:
        lines.append(f":param {one.name}:")
        if words := type_of(one, name):  # in italics, or Sphinx would look for Python objects called "name" and "path"
            lines.append(f":type {one.name}: {words if '`' in words else f'*{words}*'}")
    returned = str(getattr(found, "__annotations__", {}).get("return", "")) if what in ("function", "method") else ""
    if ALIASES.search(returned):
        lines.append(f":rtype: *{ALIASES.sub('array', returned)}*")


def leave_out(_app: Any, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """Answers are not called, so their parameters are not shown."""
    return ("", None) if what == "class" and name.rpartition(".")[2] not in CONSTRUCTED else None


def target_of(text: str, current: str | None) -> str | None:
    """The full name of what a text in backticks is, if it is a public name or a method of the class at hand.

    >>> target_of("fit_prior", None), target_of("HierTS.load", None), target_of("search=False", None)
    ('bough.fit_prior', 'bough.HierTS.load', None)
    >>> target_of("settle", "Posterior"), target_of("reward", "Posterior")
    ('bough.Posterior.settle', None)
    """
    path = text.removeprefix("bough.").removesuffix("()").removesuffix("(...)")
    parts = path.split(".")
    if parts[0] in bough.__all__ and all(part.isidentifier() for part in parts):
        return f"bough.{path}"
    holder = getattr(bough, current or "", None)
    if path not in WORDS and path.isidentifier() and callable(getattr(holder, path, None)):
        return f"bough.{current}.{path}"
    return None


def linked(_name: str, raw: str, text: str, _line: int, inliner: Any, *_: Any) -> tuple[list[Any], list[Any]]:
    """The default role: code, and where it is a name of ours a link to it."""
    env = inliner.document.settings.env
    code = nodes.literal(raw, text, classes=["code"])
    target = target_of(text, env.ref_context.get("py:class"))
    if target is None:
        return [code], []
    link = addnodes.pending_xref(
        raw, refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False, refdoc=env.docname
    )
    link += code
    return [link], []


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", add_types)
    app.connect("autodoc-process-signature", leave_out)
    app.add_role("name", linked)
    return {"parallel_read_safe": True}
