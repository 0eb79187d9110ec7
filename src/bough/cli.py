"""The command: parse, call, print."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import bough

_ALL_POLICIES = ("HierTS", "FlatTS", "TS", "BayesUCB", "Greedy")
_EXPERIMENTS = ("branching", "height-constant", "height-increasing", "policies", "classes", "catalogue")
_FEATURES = Path("cifar100.npz")  # where `bough data cifar100` writes and `bough reproduce classes` looks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except KeyboardInterrupt:
        print("bough: stopped; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ImportError as error:
        print(f"bough: {error.name} is not installed; pip install 'bough[reproduce]'", file=sys.stderr)
        return 2
    except (ValueError, KeyError, OSError, OverflowError, MemoryError) as error:
        print(f"bough: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


def _one_line(error: Exception) -> str:
    if isinstance(error, (OverflowError, MemoryError)):
        return f"the numbers given are too large to compute with ({error}); give smaller ones"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(text).split())


def make_parser() -> argparse.ArgumentParser:
    """The parser, which is also what the reference in the docs is made from."""
    parser = argparse.ArgumentParser(
        prog="bough",
        description="Exact hierarchical bandits on trees: priors from logs, simulations, the paper's experiments and "
        "bounds.",
    )
    parser.add_argument("--version", action="version", version=f"bough {bough.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_reproduce(commands)
    _add_simulate(commands)
    _add_bound(commands)
    _add_fit(commands)
    _add_data(commands)
    return parser


def _add_reproduce(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and write figures and a report",
        description="Run the paper's experiments and write CSV, PNG, SVG, settings and a report of all claims. "
        "Finished cells are kept and not run again with the same settings.",
    )
    command.add_argument(
        "experiments", nargs="*", metavar="EXPERIMENT", help=f"which ones (default: all): {', '.join(_EXPERIMENTS)}"
    )
    _add_run_options(command, rounds=None, runs=None)
    command.add_argument(
        "--out", type=Path, default=Path("reproduction"), metavar="DIR", help="folder (default: reproduction)"
    )
    classes = command.add_argument_group("classes")
    classes.add_argument(
        "--features", type=Path, default=None, metavar="FILE",
        help=f"features of images, as bough data makes them (default: {_FEATURES}, if it is there)",
    )  # fmt: skip
    classes.add_argument(
        "--reduce", choices=("pca", "mean", "stride"), default="pca", help="to d = 10 (default: %(default)s)"
    )
    classes.add_argument(
        "--scale", choices=("unit", "raw"), default="unit", help="mean norm 1, or as they are (default: %(default)s)"
    )
    classes.add_argument(
        "--tree", type=Path, metavar="FILE", help="a deeper tree as well: a text file with one path a class"
    )
    command.set_defaults(run=_reproduce)


def _add_simulate(commands: Any) -> None:
    command = commands.add_parser(
        "simulate",
        help="simulate policies on a tree of your own",
        description="Simulate policies on problems drawn from a model, and print their regret.",
    )
    _add_model_options(command)
    command.add_argument(
        "--policies",
        default="HierTS,FlatTS,TS",
        metavar="NAMES",
        help=f"some of {', '.join(_ALL_POLICIES)} (default: %(default)s)",
    )
    _add_run_options(command, rounds=500, runs=100)
    command.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write policy, round, mean, se, runs to a CSV file"
    )
    command.add_argument("--plot", type=Path, metavar="FILE", help="also draw the regret into a PNG, SVG or PDF file")
    command.set_defaults(run=_simulate)


def _add_bound(commands: Any) -> None:
    command = commands.add_parser(
        "bound",
        help="compute the regret bound of Theorem 1",
        description="Compute the regret bound of Theorem 1 with its parts, for HierTS, FlatTS and TS, beside the "
        "regret of uniform play.",
    )
    _add_model_options(command)
    command.add_argument("--rounds", type=int, default=500, metavar="N", help="horizon (default: %(default)s)")
    command.add_argument("--delta", default=None, metavar="D", help='a probability, or "best" (default: 1 / rounds)')
    command.add_argument(
        "--constant", default="lemma", metavar="C", help='"lemma", "two" or "telescoped" (default: %(default)s)'
    )
    command.set_defaults(run=_bound)


def _add_fit(commands: Any) -> None:
    command = commands.add_parser(
        "fit",
        help="learn a prior from a log",
        description="Learn the mean, the variances and the noise of a model from a log, print them with their "
        "uncertainty, and write the model to a file that simulate, bound and the library read.",
    )
    command.add_argument(
        "log", nargs="+", metavar="LOG", help="Parquet or CSV files, folders of them, or quoted globs; added up"
    )
    _add_tree_option(command)
    command.add_argument(
        "--action", required=True, metavar="COL", help="the log's column of actions, named as in the tree"
    )
    command.add_argument("--reward", required=True, metavar="COL", help="and that of rewards")
    command.add_argument("--context", metavar="COL,COL,...", help="columns of the context, for a contextual model")
    command.add_argument("--intercept", action="store_true", help="put a feature that is always 1 before them")
    command.add_argument("--weight", metavar="COL", help="a column that says how many rows a row stands for")
    command.add_argument(
        "--by", choices=("depth", "height"), default="depth", help="nodes that share a variance (default: %(default)s)"
    )
    command.add_argument("--noise", default="learn", metavar="V", help="variance of a reward (default: %(default)s)")
    command.add_argument(
        "--root", default=None, metavar="V", help="variance of the root, which is not learned (default: 0)"
    )
    command.add_argument(
        "--structure", choices=("full", "diagonal", "scaled"), default=None,
        help="of covariances, with --context (default: full)",
    )  # fmt: skip
    command.add_argument(
        "--penalty", default="2", metavar="W",
        help='width of the weak prior on log-variances, or "none" (default: %(default)s)',
    )  # fmt: skip
    command.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be used, and say how many")
    command.add_argument(
        "--out", type=Path, default=Path("model.bough"), metavar="FILE", help="the model file (default: %(default)s)"
    )
    command.set_defaults(run=_fit)


def _add_data(commands: Any) -> None:
    command = commands.add_parser(
        "data",
        help="make the features of images that reproduce classes needs",
        description="Make a file of features from the official CIFAR-100 archive, for reproduce classes. Without "
        "--archive it is downloaded and its checksum verified. An interrupted command goes on where it stopped.",
    )
    command.add_argument("dataset", choices=("cifar100",), help="which images")
    command.add_argument("--archive", type=Path, metavar="FILE", help="cifar-100-python.tar.gz, if it is there already")
    command.add_argument(
        "--out", type=Path, default=_FEATURES, metavar="FILE", help="file of features (default: %(default)s)"
    )
    command.add_argument(
        "--network", choices=("efficientnet-lite0", "pixels"), default="efficientnet-lite0",
        help="what describes an image: a pretrained network, or, needing nothing, its pixels (default: %(default)s)",
    )  # fmt: skip
    command.set_defaults(run=_data)


def _add_tree_option(group: Any) -> None:
    group.add_argument(
        "--tree", type=Path, metavar="FILE",
        help="a text file with one path an action, such as home/kitchen/kettle, or a table, with --levels",
    )  # fmt: skip
    group.add_argument(
        "--levels", metavar="COL,COL,...",
        help="where --tree is a Parquet or CSV table with one row an action: its columns, coarsest first",
    )  # fmt: skip


def _add_run_options(command: argparse.ArgumentParser, rounds: int | None, runs: int | None) -> None:
    own = "the experiment's own"
    command.add_argument(
        "--runs", type=int, default=runs, metavar="N", help=f"runs a cell, at least 2 (default: {runs or own})"
    )
    command.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help=f"rounds a run (default: {rounds or own})"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="S", help="one seed, the same numbers (default: %(default)s)"
    )
    command.add_argument(
        "--jobs",
        type=int,
        default=-1 if find_spec("joblib") else 1,
        metavar="J",
        help="parallel jobs; -1 is every core (default: that, if joblib is installed)",
    )


def _add_model_options(command: argparse.ArgumentParser) -> None:
    shape = command.add_argument_group("the tree")
    shape.add_argument("--branching", type=int, metavar="B", help="a balanced tree with B children a node")
    shape.add_argument("--height", type=int, metavar="H", help="and height H")
    _add_tree_option(shape)
    shape.add_argument("--model", type=Path, metavar="FILE", help="or a model that fit, or GaussianModel.save, wrote")
    prior = command.add_argument_group("the model")
    prior.add_argument(
        "--problem", choices=("constant", "increasing"), default=None,
        help="every variance 1, or 2 to the power of a node's height (default: increasing)",
    )  # fmt: skip
    prior.add_argument("--by-depth", metavar="V,V,...", help="variances by depth instead, root first")
    prior.add_argument("--mean", type=float, default=None, metavar="M", help="prior mean (default: 0)")
    prior.add_argument("--noise-variance", type=float, default=None, metavar="V", help="of a reward (default: 1)")


# -- what the commands do --------------------------------------------------------------------------


def _reproduce(given: argparse.Namespace) -> None:
    unknown = [name for name in given.experiments if name not in _EXPERIMENTS]
    if unknown:
        raise ValueError(f"unknown experiment {unknown[0]!r}; there are {', '.join(_EXPERIMENTS)}")
    _check_counts(given)
    _make_folder(given.out / "cells")
    runner, figures, report, plotting = (
        import_module(f"bough.{name}")
        for name in ("experiments.runner", "experiments.figures", "experiments.report", "plotting")
    )
    plotting.matplotlib.use("Agg")
    experiments, absent = _available(given)
    wanted = [name for name in given.experiments or _EXPERIMENTS if name in experiments]
    settings = runner.Settings(given.rounds, given.runs, given.seed)
    total = sum(settings.at(experiments[name], cell).runs for name in wanted for cell in experiments[name].cells)
    outcomes = {}
    with _progress("reproduce", total) as advance:
        for name in wanted:
            experiment = experiments[name]

            def started(cell: Any, kept: bool, experiment: Any = experiment) -> None:
                if kept:
                    advance(settings.at(experiment, cell).runs)

            results = runner.run_experiment(experiment, settings, given.out, given.jobs, started, advance)
            outcomes[name] = runner.Outcome(experiment, settings, results)
            runner.write_csv(experiment, results, given.out / f"{name}.csv")
            runner.write_settings(experiment, settings, given.out / f"{name}.json")
    for name, experiment in experiments.items():  # what an earlier command has left belongs in the report as well
        if name not in outcomes:
            try:
                kept = runner.kept_results(experiment, settings, given.out)
            except ValueError:  # damaged, and nobody asked for it
                kept = None
            if kept:
                outcomes[name] = runner.Outcome(experiment, settings, kept)
    for name, outcome in outcomes.items():
        plotting.save_figure(figures.draw(outcome.experiment, outcome.results), given.out / name)
    report.write_report(outcomes, absent, given.out)
    judged = {name: outcome.results for name, outcome in outcomes.items()}
    for claim in import_module("bough.experiments.claims").judge(judged):
        print(f"{claim.verdict:<13} {claim.claim} ({claim.measured})")
    for name, how in absent.items():
        print(f"{'not run':<13} {name}: {how}")
    print(f"\nreport: {given.out / 'report.html'}")


def _available(given: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """The experiments that can be run here, and how to get the data of the others; an error if one was asked for."""
    found: dict[str, Any] = dict(import_module("bough.experiments.sweeps").EXPERIMENTS)
    absent = {}
    classes, catalogue = (import_module(f"bough.experiments.{name}") for name in ("classes", "catalogue"))
    features = given.features or _FEATURES
    asked = "classes" in given.experiments or (not given.experiments and given.features is not None)
    if features.exists() or (asked and given.features is not None):
        try:
            found["classes"] = classes.experiment(features, given.reduce, given.scale, given.tree)
        except (ValueError, OSError) as error:
            if asked:
                raise
            absent["classes"] = _one_line(error)
    else:
        absent["classes"] = "the features of the images are not here; make them with bough data cifar100"
    if given.tree is not None and "classes" not in found:
        raise ValueError(f"--tree goes with classes: {absent['classes']}")
    try:
        found["catalogue"] = catalogue.experiment()
    except ValueError as error:
        absent["catalogue"] = str(error)
    missing = next((name for name in given.experiments if name in absent), None)
    if missing is not None:
        raise ValueError(f"{missing}: {absent[missing]}")
    return found, absent


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


def _simulate(given: argparse.Namespace) -> None:
    names = [name.strip() for name in given.policies.split(",") if name.strip()]
    unknown = [name for name in names if name not in _ALL_POLICIES]
    if unknown or not names:
        raise ValueError(f"unknown policy {(unknown or [''])[0]!r}; there are {', '.join(_ALL_POLICIES)}")
    _check_counts(given)
    _check_target(given.csv, "--csv")
    _check_target(given.plot, "--plot")
    model = _model(given)
    policies = {name: getattr(bough, name) for name in names}
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


def _bound(given: argparse.Namespace) -> None:
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


def _fit(given: argparse.Namespace) -> None:
    _check_target(given.out, "--out")
    if given.tree is None:
        raise ValueError("no tree was given; give --tree FILE, one path an action, or a table with --levels")
    if given.context is None and (given.structure is not None or given.intercept):
        raise ValueError("--structure and --intercept go with --context; name its columns, or leave them out")
    penalty = None if given.penalty.lower() == "none" else _number(given.penalty, "--penalty", ' or "none"')
    noise = given.noise if given.noise == "learn" else _number(given.noise, "--noise", ' or "learn"')
    root = None if given.root is None else _number(given.root, "--root")
    tree = _read_tree(given.tree, given.levels)
    context = None if given.context is None else _listed(given.context, "--context")
    bad: Literal["error", "skip"] = "skip" if given.skip_bad else "error"
    first, *others = (
        bough.summarise(
            log, tree, given.action, given.reward, context, given.weight, intercept=given.intercept, bad=bad
        )
        for log in given.log
    )
    statistics = sum(others, start=first)
    fit = bough.fit_prior(
        tree, statistics, given.by, noise, root=root, structure=given.structure or "full", penalty=penalty
    )
    for why, n in statistics.skipped.items():
        print(f"left out: {n:,} row{'s' if n != 1 else ''} ({why})")
    levels = (
        dict(zip((f"depth {i}" for i in range(1, 99)), given.levels.split(","), strict=False)) if given.levels else {}
    )
    features = None if context is None else [*(["intercept"] if given.intercept else []), *context]
    print(fit.summary(levels, features))
    fit.model.save(given.out)
    print(f"model: {given.out}")


def _data(given: argparse.Namespace) -> None:
    cifar100 = import_module("bough.datasets.cifar100")
    _check_target(given.out, "--out")
    cifar100.check_network(given.network)
    archive = given.archive
    if archive is None:
        archive = given.out.with_name("cifar-100-python.tar.gz")
        with _progress("download", cifar100.ARCHIVE_BYTES) as advance:
            cifar100.download(archive, progress=advance)
    images = cifar100.read_archive(archive)
    with _progress("features", len(images.images)) as advance:
        cifar100.make_features(images, given.out, given.network, advance)
    print(f"features: {given.out} ({len(images.images):,} images)")


def _listed(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"{option} is {text!r}; give column names with commas between them")
    return names


def _read_tree(path: Path, levels: str | None) -> bough.Tree:
    if levels is not None:
        tree: bough.Tree = import_module("bough.logs").tree_of_table(path, _listed(levels, "--levels"))
        return tree
    if path.suffix.lower() in (".csv", ".tsv", ".parquet", ".pq"):
        raise ValueError(f"{path} is a table; name its columns, coarsest first, with --levels")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; give one path an action, one a line") from None
    return bough.Tree.from_paths([line.strip() for line in lines if line.strip()])


def _model(given: argparse.Namespace) -> bough.GaussianModel:
    if given.model is not None:
        options = ("tree", "levels", "branching", "height", "problem", "by_depth", "mean", "noise_variance")
        twice = next((name for name in options if getattr(given, name) is not None), None)
        if twice is not None:
            raise ValueError(f"--model has the tree and the prior already; leave out --{twice.replace('_', '-')}")
        model = bough.GaussianModel.load(given.model)
        if not model.is_scalar:
            raise ValueError(
                f"{given.model} takes contexts of length {model.dim}, which the command does not have; use the library"
            )
        return model
    if given.tree is not None:
        if given.branching is not None or given.height is not None:
            raise ValueError("--tree goes without --branching and --height; give one or the other")
        tree = _read_tree(given.tree, given.levels)
    elif given.branching is None or given.height is None:
        raise ValueError("no tree was given; give --branching and --height, --tree FILE, or --model FILE")
    else:
        tree = bough.Tree.balanced(given.branching, given.height)
    covariance: Any = 1.0
    if given.by_depth:
        covariance = bough.by_depth([_number(value, "--by-depth") for value in given.by_depth.split(",")])
    elif given.problem != "constant":
        covariance = bough.by_height([2.0**height for height in range(tree.height + 1)])
    mean = 0.0 if given.mean is None else given.mean
    noise = 1.0 if given.noise_variance is None else given.noise_variance
    return bough.GaussianModel(tree, mean, covariance, noise)


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


def reference() -> str:
    """What every command takes, as the page of the docs that a test compares with."""
    parser = make_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = ["# The command", "Made by `make reference`; a test keeps it true.", parser.description or ""]
    for name, command in commands.choices.items():
        # argparse's own layout differs between versions of Python
        rows = [(_option(action), command._get_formatter()._expand_help(action)) for action in command._actions]
        table = "\n".join(f"| `{option}` | {text} |" for option, text in rows)
        parts += [f"## bough {name}", command.description or "", f"| option | meaning |\n| --- | --- |\n{table}"]
    return "\n\n".join(parts) + "\n"


def _option(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join([", ".join(action.option_strings), value or ""]).strip()


if __name__ == "__main__":
    sys.exit(main())
