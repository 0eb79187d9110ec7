"""bough show: what is in a file of bough's."""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np

import bough
from bough import _storage
from bough._text import rounded
from bough.cli import output
from bough.cli.contexts import context_for
from bough.model.model import Model
from bough.tree import printing

_INTERVAL = 0.95
_NAMES = 3  # names of retired actions in a line
_LEVELS = 12  # numbers in a line
_CHILDREN = 8  # of the root, in the outline of the tree


@dataclass
class Page:
    """What is known of a file: lines with a label each, what stands below them, and the same for JSON."""

    results: dict[str, Any]
    lines: list[tuple[str, str]] = field(default_factory=list)
    below: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The page as it is printed."""
        width = max(len(label) for label, _ in self.lines)
        return "\n".join([*(f"{label:<{width}}  {text}" for label, text in self.lines), *self.below])


def show(given: argparse.Namespace) -> None:
    """Print what is in a file."""
    if given.top < 0:
        raise ValueError(f"--top is {given.top}; give how many actions to show, or 0 for none")
    kind = _storage.kind_of(given.file)
    pages = {
        "agent": _agent,
        "posterior": _posterior,
        "model": _model,
        "statistics": _statistics,
        "simulation": _simulation,
    }
    if not isinstance(kind, str) or kind not in pages:
        raise ValueError(f"{given.file} holds {kind!r:.40}; show is for {', '.join(pages)}")
    if given.context and kind not in ("agent", "posterior"):
        raise ValueError(
            f"--context goes with an agent or a posterior, and {given.file} is of kind {kind}; leave it out"
        )
    page = Page({"file": given.file, "kind": kind})
    pages[kind](given, page)
    output.show(given, page.text(), page.results)


# -- the kinds of files ----------------------------------------------------------------------------


def _agent(given: argparse.Namespace, page: Page) -> None:
    from bough.policies import files

    agent = files.load(given.file)
    name, options = type(agent).__name__, getattr(agent, "_options", {})
    page.results |= {"policy": name, "options": options}
    chosen = [f"{option}={value}" for option, value in options.items() if value not in (None, False)]
    page.lines.append(("agent", ", ".join([name, *chosen])))
    if not hasattr(agent, "posterior"):
        _describe_model(agent.model, page)
        _describe_observations(agent.n_observations, agent.successes + agent.failures > _beta_prior(agent), page)
        _describe_retired(agent.retired, page)
        _show_best_of_beta(agent, given, page)
        return
    star = agent._star
    _describe_model(agent.posterior.model if star is None else star.whole, page)
    if star is not None:
        page.lines.append(("", f"{name} reasons with its actions below one root"))
    _describe_posterior(agent.posterior, given, page)


def _posterior(given: argparse.Namespace, page: Page) -> None:
    posterior = bough.Posterior.load(given.file)
    page.lines.append(("posterior", type(posterior.model).__name__))
    _describe_model(posterior.model, page)
    _describe_posterior(posterior, given, page)


def _model(given: argparse.Namespace, page: Page) -> None:
    model = bough.GaussianModel.load(given.file)
    page.lines.append(("model", type(model).__name__))
    _describe_model(model, page)


def _statistics(given: argparse.Namespace, page: Page) -> None:
    sums = bough.Statistics.load(given.file)
    n = len(sums.actions)
    contexts = f", contexts of length {sums.dim}" if sums.dim else ""
    page.lines.append(("statistics", f"{sums.n_rows:,.10g} rows of {n:,} action{'s' * (n != 1)}{contexts}"))
    page.lines += [("left out", f"{count:,} rows ({why})") for why, count in sums.skipped.items()]
    page.results |= {"rows": sums.n_rows, "actions": n, "dim": sums.dim, "left_out": sums.skipped}
    most = np.argsort(-sums.count, kind="stable")[: given.top].tolist()
    names = sums.actions.tolist()
    rows = [{"action": names[i], "rows": sums.count[i], "mean": sums.sum_y[i] / sums.count[i]} for i in most]
    page.results["most_observed"] = rows
    if rows:
        texts = [[str(row["action"]), f"{row['rows']:,.10g}", f"{row['mean']:.4g}"] for row in rows]
        page.below += [
            "",
            _title("most observed", len(rows), n),
            output.table(["action", "rows", "mean reward"], texts),
        ]


def _simulation(given: argparse.Namespace, page: Page) -> None:
    run = bough.Simulation.load(given.file)
    page.lines.append(("simulation", f"{run.runs:,} runs of {run.rounds:,} rounds, {run.n_actions:,} actions"))
    page.below += ["", run.summary()]
    regret = {
        name: {"regret": run.mean(name)[-1], "standard_error": run.standard_error(name)[-1]} for name in run.regret
    }
    page.results |= {"runs": run.runs, "rounds": run.rounds, "actions": run.n_actions, "policies": regret}


# -- what they have in common ----------------------------------------------------------------------


def _describe_model(model: Model, page: Page) -> None:
    tree = model.tree
    levels = np.diff(tree.level_start).tolist()
    sizes = f"{tree.n_actions:,} actions, {tree.n_nodes:,} nodes, height {tree.height}"
    per_level = _numbers(levels, "{:,}")
    if tree.levels is not None:
        per_level = ", ".join(f"{name} {n:,}" for name, n in zip(tree.levels, levels, strict=True))
    page.lines.append(("tree", f"{sizes} (nodes per level: {per_level})"))
    outline = list(printing.lines(tree, 1, _CHILDREN))
    page.lines += [("", line) for line in outline[1:]]
    shape = {"actions": tree.n_actions, "nodes": tree.n_nodes, "height": tree.height, "levels": levels}
    if tree.levels is not None:
        shape["level_names"] = list(tree.levels)
    page.results["tree"] = {**shape, "children": [tree.name(node) for node in tree.children(0)[:_CHILDREN].tolist()]}

    own = model.likelihood.parameters()
    rewards = [model.kind.name, *(f"{name.replace('_', ' ')} {value:.4g}" for name, value in own.items())]
    if not model.is_scalar:
        rewards.append(f"contexts of length {model.dim}")
    page.lines.append(("rewards", ", ".join(rewards)))
    features = model.feature_names
    if features is not None:
        page.lines.append(("features", ", ".join(map(str, features))))
    variances, text = _variances(model)
    page.lines.append(("prior", f"mean {_numbers(np.atleast_1d(model.mean).tolist())}; {text}"))
    for name, factor in model.factors.items():
        whose = "of the decision" if factor.at_decision else "of the actions"
        n = len(factor.levels)
        page.lines.append((f"factor {name}", f"{whose}, {n:,} level{'s' * (n != 1)}, variance {factor.variance:.4g}"))
    page.results["factors"] = {
        name: {"at_decision": one.at_decision, "levels": len(one.levels), "variance": one.variance}
        for name, one in model.factors.items()
    }
    drift = getattr(model, "drift", None)
    if drift is not None:
        page.lines.append(("drift", f"actions drift with a half-life of {_span(drift)}"))
    page.results["rewards"] = {"kind": model.kind.name, "dim": model.dim, **own}
    page.results["prior"] = {"mean": model.mean, "by": model.classes.kind, "covariances": variances, "drift": drift}


def _variances(model: Model) -> tuple[Any, str]:
    """The covariances of the prior: for JSON, and in words."""
    classes, height = model.classes, model.tree.height
    one = classes.table if model.is_scalar else np.trace(classes.table, axis1=1, axis2=2) / model.dim
    what = "variances" if model.is_scalar else "mean variances of a feature"
    if classes.kind == "node":
        used = one[np.unique(classes.of_node)]
        found = {"least": used.min(), "most": used.max(), "different": len(used)}
        return found, f"{what} by node from {used.min():.4g} to {used.max():.4g}, {len(used):,} different ones"
    first = "root first" if classes.kind == "depth" else "leaves first"
    shown = _numbers(one[: height + 1].tolist())
    return classes.table[: height + 1], f"{what} by {classes.kind}, {first}: {shown}"


def _describe_posterior(posterior: bough.Posterior, given: argparse.Namespace, page: Page) -> None:
    tree = posterior.model.tree
    _describe_observations(posterior.n_observations, posterior.count[tree.leaves] > 0, page)
    now, half_life = posterior.now, posterior.half_life
    page.results |= {"now": now, "half_life": half_life}
    if now is not None:
        page.lines.append(("clock", f"now {now}"))
    if half_life is not None:
        page.lines.append(("half-life", f"a reward counts half after {_span(half_life)}"))
    _describe_retired(posterior.retired, page)
    _show_best(posterior, given, page)


def _describe_observations(n: int, observed: Any, page: Page) -> None:
    page.results |= {"observations": n, "observed_actions": int(np.sum(observed))}
    page.lines.append(("observations", f"{n:,}, of {int(np.sum(observed)):,} of {len(observed):,} actions"))


def _describe_retired(retired: Sequence[Hashable], page: Page) -> None:
    page.results["retired"] = list(retired)
    if retired:
        more = f" and {len(retired) - _NAMES:,} more" if len(retired) > _NAMES else ""
        page.lines.append(("retired", f"{len(retired):,}: {', '.join(map(str, retired[:_NAMES]))}{more}"))


# -- the best actions ------------------------------------------------------------------------------


def _show_best(posterior: bough.Posterior, given: argparse.Namespace, page: Page) -> None:
    context, tree = context_for(posterior.model, given.context), posterior.model.tree
    page.results["context"] = context
    if context is None and not posterior.model.is_scalar:
        page.below += ["", "The best actions depend on the context: give --context to see them."]
        page.results["best"] = None
        return
    mean, low, high = posterior.mean_reward(context, _INTERVAL)
    _list_best(tree, posterior.retired, mean, low, high, posterior.count[tree.leaves], given.top, page)


def _show_best_of_beta(agent: Any, given: argparse.Namespace, page: Page) -> None:
    if given.context:
        raise ValueError(f"{given.file} holds a BetaTS, which knows no contexts; leave out --context")
    from scipy.special import betaincinv

    won, lost = agent.successes, agent.failures
    low, high = (betaincinv(won, lost, 0.5 + half * _INTERVAL) for half in (-0.5, 0.5))
    seen = np.rint(won + lost - _beta_prior(agent)).astype(np.int64)
    _list_best(agent.model.tree, agent.retired, won / (won + lost), low, high, seen, given.top, page)


def _beta_prior(agent: Any) -> Any:
    """(K,) what the successes and failures of a BetaTS summed to before any trial."""
    fresh = type(agent)(agent.model)
    return fresh.successes + fresh.failures


def _list_best(
    tree: bough.Tree, retired: Sequence[Hashable], mean: Any, low: Any, high: Any, seen: Any, top: int, page: Page
) -> None:
    """The actions with the highest of the mean rewards, which are in the order of the tree's actions."""
    may_be = np.ones(tree.n_actions, dtype=np.bool_)
    if retired:
        may_be[np.searchsorted(tree.leaves, tree.action_nodes(list(retired)))] = False
    choices = np.flatnonzero(may_be)
    best = choices[np.argsort(-mean[choices], kind="stable")[:top]].tolist()
    page.results["best"] = [
        {"action": tree.actions[i], "mean": mean[i], "low": low[i], "high": high[i], "observations": seen[i]}
        for i in best
    ]
    if not best:
        return
    rows = []
    for row in page.results["best"]:
        width = row["high"] - row["low"]
        ends = f"{rounded(row['low'], width)} to {rounded(row['high'], width)}"
        rows.append([str(row["action"]), rounded(row["mean"], width), ends, f"{row['observations']:,}"])
    head = ["action", "mean reward", f"{_INTERVAL:.0%} interval", "observations"]
    page.below += ["", _title("best", len(rows), len(choices)), output.table(head, rows)]


def _title(which: str, shown: int, n: int) -> str:
    return f"All {n:,} actions, {which} first" if shown == n else f"The {shown:,} {which} of {n:,} actions"


def _numbers(values: Sequence[float], how: str = "{:.4g}") -> str:
    shown = [how.format(value) for value in values[:_LEVELS]]
    return ", ".join([*shown, *(["..."] if len(values) > _LEVELS else [])])


def _span(span: float | timedelta) -> str:
    return str(span).removesuffix(", 0:00:00") if isinstance(span, timedelta) else f"{span:g}"
