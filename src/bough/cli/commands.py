"""What the commands do with their arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import bough
from bough import _checks, policy_table
from bough.experiments import registry
from bough.experiments.options import Options
from bough.model.kinds import MODELS
from bough.tree.names import twin

_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_NO_TREE = "no tree was given; give --tree FILE, one path an action, or a table with --levels"


def reproduce(given: argparse.Namespace) -> None:
    """Run experiments, and write what came of them."""
    for name in given.experiments:
        registry.check_name(name)
    _check_counts(given)
    from bough.experiments import reproduction
    from bough.experiments.experiment import Settings

    _make_folder(given.out / "cells")
    plan = reproduction.make_plan(given.experiments, Options(given.features, given.reduce, given.scale, given.tree))
    settings = Settings(given.rounds, given.runs, given.seed)
    with _progress("reproduce", reproduction.count_runs(plan.wanted, settings)) as advance:
        outcomes = reproduction.run_plan(plan, settings, given.out, given.jobs, advance)
    outcomes += reproduction.earlier_outcomes(plan, settings, given.out)
    for claim in reproduction.write_all(outcomes, plan.missing, given.out):
        print(f"{claim.verdict:<13} {claim.claim} ({claim.measured})")
    for name, how in plan.missing.items():
        print(f"{'not run':<13} {name}: {how}")
    print(f"\nreport: {given.out / 'report.html'}")


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / ".writable").touch()
        (path / ".writable").unlink()
    except OSError as error:
        reason = error.strerror or "it is not a folder"
        raise ValueError(f"cannot write into {path} ({reason}); give another folder with --out") from error


def _check_target(path: Path | None, option: str) -> None:
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise ValueError(f"{option} {path} cannot be written; give a file in a folder that exists")


def simulate(given: argparse.Namespace) -> None:
    """Simulate policies, and print their regret."""
    names = [name.strip() for name in given.policies.split(",") if name.strip()]
    chosen = [policy_table.named(name) for name in names or [""]]
    _check_counts(given)
    _check_target(given.csv, "--csv")
    _check_target(given.plot, "--plot")
    model = _model(given)
    policies = {built_in.name: built_in.policy for built_in in chosen}
    with _progress("simulate", given.runs) as advance:
        run = bough.simulate(model, policies, given.rounds, given.runs, given.seed, given.jobs, progress=advance)
    print(run.summary())
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
    model = _model(given)
    delta = given.delta if given.delta in (None, "best") else _number(given.delta, "--delta")
    models = {"HierTS": model, "FlatTS": model.flat(), "TS": model.independent()}
    bounds = {}
    for name, one in models.items():
        try:
            bounds[name] = bough.theory.regret_bound(one, given.rounds, delta, given.constant)
        except ValueError:
            if name == "HierTS" or given.constant != "two":  # the premise of "two" may hold for HierTS alone
                raise
    columns = ("bound", "first term", "second term", "G(n)", "c", "sigma_max", "delta")
    print(f"{'':<10}" + "".join(f"{column:>13}" for column in columns))
    for name, b in bounds.items():
        print(
            f"{name:<10}{b.total:>13.1f}{b.first:>13.1f}{b.second:>13.1f}{b.complexity:>13.1f}{b.c:>13.4g}"
            f"{b.sigma_max:>13.3g}{b.delta:>13.3g}"
        )
    print(f"{'uniform':<10}{bough.theory.uniform_regret(model, given.rounds):>13.1f}")


def fit(given: argparse.Namespace) -> None:
    """Learn a prior, print it, and write the model."""
    _check_target(given.out, "--out")
    if given.tree is None:
        raise ValueError(_NO_TREE)
    if given.context is None and (given.structure is not None or given.intercept):
        raise ValueError("--structure and --intercept go with --context; name its columns, or leave them out")
    model: Any = MODELS[given.rewards or "gaussian"]
    by_rows = not model.kind.sums_suffice and given.context is not None
    if by_rows and given.weight is not None:
        raise ValueError("clicks and counts in contexts are fitted row by row; leave out --weight")
    penalty = None if given.penalty.lower() == "none" else _number(given.penalty, "--penalty", ' or "none"')
    noise = given.noise if given.noise == "learn" else _number(given.noise, "--noise", ' or "learn"')
    root = None if given.root is None else _number(given.root, "--root")
    tree = _read_tree(given)
    context = None if given.context is None else _listed(given.context, "--context")
    bad = "skip-most" if given.skip_most else "skip" if given.skip_bad else "error"
    model.kind.check_words(given.trials, given.exposure)
    options: dict[str, Any] = {"trials": given.trials, "exposure": given.exposure, "bad": bad}
    columns, intercept = (given.action, given.reward, context), given.intercept
    data: Any
    if by_rows:
        read_rows = import_module("bough.data.logs").read_rows
        pairs = [read_rows(log, tree, *columns, intercept=intercept, **options) for log in given.log]
        data, statistics = (sum(parts[1:], start=parts[0]) for parts in zip(*pairs, strict=True))
    else:
        first, *others = (
            bough.summarise(log, tree, *columns, given.weight, intercept=intercept, **options) for log in given.log
        )
        data = statistics = sum(others, start=first)
    if statistics.n_rows == 0:
        raise ValueError("the log has no row that can be used, and there is nothing to learn from; give another log")
    fit = bough.fit_prior(
        tree, data, given.by, noise, root=root, structure=given.structure or "full", penalty=penalty, model=model
    )
    for why, n in statistics.skipped.items():
        print(f"left out: {n:,} row{'s' if n != 1 else ''} ({why})")
    features = None if context is None else [*(["intercept"] if given.intercept else []), *context]
    print(fit.summary(features=features))
    fit.model.save(given.out)
    print(f"model: {given.out}")


def adopt(given: argparse.Namespace) -> None:
    """Have an agent go on with a new table, print what has changed, and write the agent."""
    from bough.policies import files

    _check_target(given.out, "--out")
    if given.model is not None and (given.tree or given.levels or given.sep or given.missing) is not None:
        raise ValueError("--model has a tree already; leave out --tree, --levels, --sep and --missing")
    if given.model is None and given.tree is None:
        raise ValueError(_NO_TREE)
    agent = files.load(given.agent)
    if not hasattr(agent, "adopt"):
        name = type(agent).__name__
        raise ValueError(f"{given.agent} holds a {name}, which does without a tree; adopt goes with the other policies")
    old = agent.posterior.model.tree
    model = None if given.model is None else bough.GaussianModel.load(given.model)
    tree = _read_tree(given, old) if model is None else model.tree
    renamed = _renamed(given.renamed, old, tree)
    _check_same_names(old, tree, given.tree or given.model, bool(renamed))
    changes = agent.adopt(model or tree, renamed, given.gone)
    if given.out is not None:
        agent.save(given.out)
    print(changes)
    print("agent: not written; give --out FILE for that" if given.out is None else f"agent: {given.out}")


def _renamed(given: list[str], old: bough.Tree, new: bough.Tree) -> dict[Any, Any]:
    """The new names of actions, by the old ones, each of the type that it has in its tree."""
    pairs: list[tuple[Any, ...]] = []
    for text in given:
        before, sign, after = text.partition("=")
        if sign:
            pairs.append((before, after))
        elif Path(text).suffix.lower() not in _TABLES:
            raise ValueError(f"--renamed is {text!r}; give OLD=NEW, or a CSV or Parquet file with columns old and new")
        else:
            pairs += import_module("bough.data.files").rows_of_table(text, ["old", "new"])
    renamed = {}
    for before, after in pairs:
        name = _name_in(old, before)
        if name in renamed:
            raise ValueError(f"--renamed gives {name!r} more than one new name; give it one")
        renamed[name] = _name_in(new, after)
    return renamed


def _name_in(tree: bough.Tree, name: Any) -> Any:
    meant = twin(tree.node_names, name)
    return name if meant is None else meant


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


def data(given: argparse.Namespace) -> None:
    """Make a file of features."""
    from bough.experiments.cifar100 import features, reader

    _check_target(given.out, "--out")
    features.check_network(given.network)
    archive = given.archive
    if archive is None:
        archive = given.out.with_name("cifar-100-python.tar.gz")
        with _progress("download", reader.ARCHIVE_BYTES) as advance:
            reader.download(archive, progress=advance)
    images = reader.read_archive(archive)
    with _progress("features", len(images.images)) as advance:
        features.make_features(images, given.out, given.network, advance)
    print(f"features: {given.out} ({len(images.images):,} images)")


def _listed(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"{option} is {text!r}; give column names with commas between them")
    return names


def _read_tree(given: argparse.Namespace, like: bough.Tree | None = None) -> bough.Tree:
    path, sep = given.tree, given.sep
    if sep is None:
        sep = "/" if like is None else like.sep
    if given.levels is not None:
        read = import_module("bough.data.files").tree_of_table
        tree: bough.Tree = read(path, _listed(given.levels, "--levels"), sep, like, given.missing or "error")
        return tree
    if path.suffix.lower() in _TABLES:
        raise ValueError(f"{path} is a table; name its columns, coarsest first, with --levels")
    if given.missing is not None:
        raise ValueError("--missing goes with a table; name its columns with --levels, or leave it out")
    return bough.Tree.from_paths(_checks.text_lines(path, "one path an action, one a line"), sep)


def _model(given: argparse.Namespace) -> Any:
    if given.model is not None:
        of_tree = ("tree", "levels", "sep", "missing", "branching", "height")
        of_prior = ("problem", "by_depth", "mean", "noise_variance", "rewards")
        twice = next((name for name in (*of_tree, *of_prior) if getattr(given, name) is not None), None)
        if twice is not None:
            raise ValueError(f"--model has the tree and the prior already; leave out --{twice.replace('_', '-')}")
        loaded = bough.GaussianModel.load(given.model)
        if not loaded.is_scalar:
            raise ValueError(
                f"{given.model} takes contexts of length {loaded.dim}, which the command does not have; use the library"
            )
        return loaded
    if given.tree is not None:
        if given.branching is not None or given.height is not None:
            raise ValueError("--tree goes without --branching and --height; give one or the other")
        tree = _read_tree(given)
    elif given.branching is None or given.height is None:
        raise ValueError("no tree was given; give --branching and --height, --tree FILE, or --model FILE")
    else:
        tree = bough.Tree.balanced(given.branching, given.height)
    model: Any = MODELS[given.rewards or "gaussian"]
    covariance: Any = 1.0
    if given.by_depth:
        covariance = bough.by_depth([_number(value, "--by-depth") for value in given.by_depth.split(",")])
    elif given.problem is None and model.kind.usual_variance is not None:
        covariance = model.kind.usual_variance / (tree.height + 1)
    elif given.problem != "constant":
        covariance = bough.by_height([2.0**height for height in range(tree.height + 1)])
    mean = 0.0 if given.mean is None else given.mean
    if model.kind.noise_is_added:
        return model(tree, mean, covariance, 1.0 if given.noise_variance is None else given.noise_variance)
    if given.noise_variance is not None:
        raise ValueError(f"--noise-variance goes with gaussian rewards, not with {given.rewards}; leave it out")
    return model(tree, mean, covariance)


def _number(text: str, option: str, other: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} has {text!r}; give a number{other}") from None


def _check_counts(given: argparse.Namespace) -> None:
    for name, value, least in (("runs", given.runs, 2), ("rounds", given.rounds, 1)):
        if value is not None and value < least:
            raise ValueError(f"--{name} is {value}; give at least {least}")
    if given.seed < 0:
        raise ValueError(f"--seed is {given.seed}; give a whole number of at least 0")
    if given.jobs == 0:
        raise ValueError("--jobs is 0; give how many, or -1 for every core")


@contextmanager
def _progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal that rich can draw on; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda _: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda n: bar.advance(task, n)


def one_line(error: Exception) -> str:
    """What an error says, in one line."""
    if isinstance(error, (OverflowError, MemoryError)):
        return f"the numbers given are too large to compute with ({error}); give smaller ones"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(text).split())
