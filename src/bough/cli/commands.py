"""The commands that compute: experiments, simulations, bounds, fits and features."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import bough
from bough import policy_table
from bough.cli import inputs, output
from bough.experiments import registry
from bough.experiments.options import Options
from bough.model.kinds import MODELS

# -- reproduce -------------------------------------------------------------------------------------


def reproduce(given: argparse.Namespace) -> None:
    """Run experiments, and write what came of them."""
    for name in given.experiments:
        registry.check_name(name)
    inputs.check_counts(given)
    from bough.experiments import reproduction
    from bough.experiments.experiment import Settings

    _make_folder(given.out / "cells")
    output.watch(given, lambda: _files_of(given.out), goes_on=True)
    plan = reproduction.make_plan(given.experiments, Options(given.features, given.reduce, given.scale, given.tree))
    settings = Settings(given.rounds, given.runs, given.seed)
    with output.progress("reproduce", reproduction.count_runs(plan.wanted, settings)) as advance:
        outcomes = reproduction.run_plan(plan, settings, given.out, given.jobs, advance)
    outcomes += reproduction.earlier_outcomes(plan, settings, given.out)
    claims = reproduction.write_all(outcomes, plan.missing, given.out, given.command)
    report = given.out / "report.html"
    lines = [f"{c.verdict:<13} {c.claim} ({f'holds: {c.holds}; ' if c.holds else ''}{c.measured})" for c in claims]
    lines += [f"{'not run':<13} {name}: {how}" for name, how in plan.missing.items()]
    judged = [
        {"claim": c.claim, "where": c.where, "measured": c.measured, "verdict": c.verdict, "holds": c.holds or None}
        for c in claims
    ]
    output.show(
        given,
        "\n".join([*lines, "", f"report: {report}"]),
        {"claims": judged, "not_run": plan.missing, "report": report},
    )


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        reason = error.strerror or "it is not a folder"
        raise ValueError(f"cannot write into {path} ({reason}); give another folder with --out") from error


def _files_of(out: Path) -> Iterator[Path]:
    yield from (out / "cells").glob("*.bough")
    for ending in ("csv", "json", "png", "svg", "md", "html"):
        yield from out.glob(f"*.{ending}")


# -- simulate and bound ----------------------------------------------------------------------------


def simulate(given: argparse.Namespace) -> None:
    """Simulate policies, and print their regret."""
    names = [name.strip() for name in given.policies.split(",") if name.strip()]
    chosen = [policy_table.named(name) for name in names or [""]]
    inputs.check_counts(given)
    inputs.check_targets({"--csv": given.csv, "--plot": given.plot})
    if given.plot is not None:
        inputs.check_picture(given.plot)
    output.watch(given, lambda: [given.csv, given.plot])
    model = inputs.make_model(given)
    policies = {built_in.name: built_in.policy for built_in in chosen}
    with output.progress("simulate", given.runs) as advance:
        run = bough.simulate(model, policies, given.rounds, given.runs, given.seed, given.jobs, progress=advance)
    regret = {
        name: {"regret": run.mean(name)[-1], "standard_error": run.standard_error(name)[-1]} for name in run.regret
    }
    sizes = {"rounds": run.rounds, "runs": run.runs, "seed": given.seed, "actions": run.n_actions}
    output.show(given, run.summary(), {**sizes, "policies": regret})  # before anything that may fail
    if given.csv:
        _write_csv(run, given.csv)
    if given.plot:
        run.plot().figure.savefig(given.plot)


def _write_csv(run: Any, path: Path) -> None:
    lines = ["policy,round,mean,se,runs"]
    for name in run.regret:
        curves = zip(run.mean(name).tolist(), run.standard_error(name).tolist(), strict=True)
        lines += [f"{name},{t},{mean:.6g},{error:.6g},{run.runs}" for t, (mean, error) in enumerate(curves, 1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def bound(given: argparse.Namespace) -> None:
    """Print the bounds of Theorem 1."""
    model = inputs.make_model(given)
    delta = given.delta if given.delta in (None, "best") else inputs.number(given.delta, "--delta")
    models = {"HierTS": model, "FlatTS": model.flat(), "TS": model.independent()}
    bounds = {}
    for name, one in models.items():
        try:
            bounds[name] = bough.theory.regret_bound(one, given.rounds, delta, given.constant)
        except ValueError:
            if name == "HierTS" or given.constant != "two":  # the premise of "two" may hold for HierTS alone
                raise
    uniform = bough.theory.uniform_regret(model, given.rounds)
    parts = {"first_term": "first", "second_term": "second", "complexity": "complexity", "c": "c"}
    parts = {"bound": "total", **parts, "sigma_max": "sigma_max", "delta": "delta"}
    results = {policy: {name: getattr(found, own) for name, own in parts.items()} for policy, found in bounds.items()}
    output.show(
        given,
        _bounds_as_text(bounds, uniform),
        {"rounds": given.rounds, "constant": given.constant, "bounds": results, "uniform": uniform},
    )


def _bounds_as_text(bounds: dict[str, Any], uniform: float) -> str:
    columns = ("bound", "first term", "second term", "G(n)", "c", "sigma_max", "delta")
    lines = [f"{'':<10}" + "".join(f"{column:>13}" for column in columns)]
    lines += [
        f"{name:<10}{b.total:>13.1f}{b.first:>13.1f}{b.second:>13.1f}{b.complexity:>13.1f}{b.c:>13.4g}"
        f"{b.sigma_max:>13.3g}{b.delta:>13.3g}"
        for name, b in bounds.items()
    ]
    lines.append(f"{'uniform':<10}{uniform:>13.1f}")
    above = [name for name, b in bounds.items() if b.total > uniform]
    if above:
        lines.append(f"above uniform, the regret of playing at random, a bound says nothing: {', '.join(above)}")
    return "\n".join(lines)


# -- fit -------------------------------------------------------------------------------------------


def fit(given: argparse.Namespace) -> None:
    """Learn a prior, print it, and write the model, and an agent that knows the log if one is wanted."""
    inputs.check_targets({"--out": given.out, "--agent": given.agent})
    inputs.check_seed(given.seed)
    output.watch(given, lambda: [given.out, given.agent])
    if given.tree is None:
        raise ValueError(inputs.NO_TREE)
    if given.context is None and (given.structure is not None or given.intercept):
        raise ValueError("--structure and --intercept go with --context; name its columns, or leave them out")
    model: Any = MODELS[given.rewards or "gaussian"]
    by_rows = not model.kind.sums_suffice and given.context is not None
    if by_rows and given.weight is not None:
        raise ValueError("clicks and counts in contexts are fitted row by row; leave out --weight")
    penalty = None if given.penalty.lower() == "none" else inputs.number(given.penalty, "--penalty", ' or "none"')
    noise: Any = given.noise_variance
    if noise not in ("learn", "per action"):
        noise = inputs.number(noise, "--noise-variance", ', "learn" or "per action"')
    root = None if given.root is None else inputs.number(given.root, "--root")
    tree = inputs.read_tree(given)
    context = None if given.context is None else inputs.listed(given.context, "--context")
    model.kind.check_words(given.trials, given.exposure)
    labels = inputs.read_labels(given, tree)
    decided = {column: column for column in dict.fromkeys(given.decision_factor)}
    twice = next((name for name in decided if name in labels), None)
    if twice is not None:
        raise ValueError(f"--factor and --decision-factor both name {twice!r}; a factor is one or the other")
    for column, what in ((given.action, "actions"), (given.reward, "rewards")):
        if column in decided:
            raise ValueError(f"--decision-factor is {column!r}, the column of the {what}; give another column")
    if decided and by_rows:
        raise ValueError("--decision-factor goes without --context; leave one of them out")
    data, statistics = _read_logs(given, tree, context, by_rows, decided)
    if statistics.n_rows == 0:
        raise ValueError("the log has no row that can be used, and there is nothing to learn from; give another log")
    learned = bough.fit_prior(
        tree, data, given.by, noise, root=root, structure=given.structure or "full", penalty=penalty, model=model,
        factors={**labels, **decided} or None,
    )  # fmt: skip
    ends = [output.target(what, path) for what, path in (("model", given.out), ("agent", given.agent)) if path]
    learned.model.save(given.out)
    if given.agent is not None:
        learned.agent(seed=given.seed).save(given.agent)
    lines = output.left_out(statistics.skipped)
    levels = {f"depth {depth}": name for depth, name in enumerate(tree.levels or ())}
    features = None if context is None else [*(["intercept"] if given.intercept else []), *context]
    estimates = {name: {"level": levels.get(name), **one._asdict()} for name, one in learned.estimates.items()}
    results = {"left_out": statistics.skipped, "features": features, "estimates": estimates}
    found = {"log_evidence": learned.log_evidence, "converged": learned.converged, "model": given.out}
    text = "\n".join([*lines, learned.summary(features=features), *ends])
    output.show(given, text, {**results, **found, "agent": given.agent})


def _read_logs(
    given: argparse.Namespace, tree: bough.Tree, context: list[str] | None, by_rows: bool, factors: dict[str, str]
) -> tuple[Any, Any]:
    """What a fit takes, rows or sums, and the sums of all logs."""
    bad = "skip-most" if given.skip_most else "skip" if given.skip_bad else "error"
    options: dict[str, Any] = {"trials": given.trials, "exposure": given.exposure, "bad": bad}
    options |= {"intercept": given.intercept, "model": MODELS[given.rewards or "gaussian"]}
    columns = (given.action, given.reward, context)
    if by_rows:
        read_rows = import_module("bough.data.logs").read_rows
        pairs = [read_rows(log, tree, *columns, **options) for log in given.log]
        rows, sums = (sum(parts[1:], start=parts[0]) for parts in zip(*pairs, strict=True))
        return rows, sums
    options["factors"] = factors or None
    first, *others = (bough.summarise(log, tree, *columns, given.weight, **options) for log in given.log)
    statistics = sum(others, start=first)
    return statistics, statistics


# -- data ------------------------------------------------------------------------------------------


def data(given: argparse.Namespace) -> None:
    """Make a file of features."""
    from bough.experiments.cifar100 import features, reader

    inputs.check_target(given.out, "--out")
    features.check_network(given.network)
    archive = given.archive or given.out.with_name("cifar-100-python.tar.gz")
    partial = [path.with_name(f"{path.name}.partial") for path in (archive, given.out)]
    output.watch(given, lambda: [archive, given.out, *partial], goes_on=True)
    if given.archive is None:
        with output.progress("download", reader.ARCHIVE_BYTES) as advance:
            reader.download(archive, progress=advance)
    images = reader.read_archive(archive)
    with output.progress("features", len(images.images)) as advance:
        features.make_features(images, given.out, given.network, advance)
    n = len(images.images)
    output.show(given, f"features: {given.out} ({n:,} images)", {"features": given.out, "images": n})
