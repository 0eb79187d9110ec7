"""What the command takes: its parser, from which the reference in the docs is made."""

from __future__ import annotations

import argparse
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bough
from bough.cli import commands
from bough.experiments import registry
from bough.experiments.options import FEATURES, REDUCTIONS, SCALES
from bough.model.kinds import MODELS
from bough.policy_table import POLICIES


def make_parser() -> argparse.ArgumentParser:
    """The parser, which is also what the reference in the docs is made from."""
    parser = argparse.ArgumentParser(
        prog="bough",
        description="Exact hierarchical bandits on trees: priors from logs, simulations, the paper's experiments and "
        "bounds.",
    )
    parser.add_argument("--version", action="version", version=f"bough {bough.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_reproduce(subparsers)
    _add_simulate(subparsers)
    _add_bound(subparsers)
    _add_fit(subparsers)
    _add_adopt(subparsers)
    _add_data(subparsers)
    return parser


def _add_reproduce(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "reproduce",
        help="run the paper's experiments and write figures and a report",
        description="Run the paper's experiments and write CSV, PNG, SVG, settings and a report of all claims. "
        "Finished cells are kept and not run again with the same settings.",
    )
    command.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help=f"which ones (default: all but {', '.join(registry.ON_REQUEST)}): {', '.join(registry.EXPERIMENTS)}",
    )
    _add_run_options(command, rounds=None, runs=None)
    command.add_argument(
        "--out", type=Path, default=Path("reproduction"), metavar="DIR", help="folder (default: reproduction)"
    )
    classes = command.add_argument_group("classes")
    classes.add_argument(
        "--features", type=Path, default=None, metavar="FILE",
        help=f"features of images, as bough data makes them (default: {FEATURES}, if it is there)",
    )  # fmt: skip
    classes.add_argument("--reduce", choices=REDUCTIONS, default="pca", help="to d = 10 (default: %(default)s)")
    classes.add_argument(
        "--scale", choices=SCALES, default="unit", help="mean norm 1, or as they are (default: %(default)s)"
    )
    classes.add_argument(
        "--tree", type=Path, metavar="FILE", help="a deeper tree as well: a text file with one path a class"
    )
    command.set_defaults(run=commands.reproduce)


def _add_simulate(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "simulate",
        help="simulate policies on a tree of your own",
        description="Simulate policies on problems drawn from a model, and print their regret.",
    )
    _add_model_options(command, rewards=True)
    command.add_argument(
        "--policies",
        default="HierTS,FlatTS,TS",
        metavar="NAMES",
        help=f"some of {', '.join(POLICIES)} (default: %(default)s)",
    )
    _add_run_options(command, rounds=500, runs=100)
    command.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write policy, round, mean, se, runs to a CSV file"
    )
    command.add_argument("--plot", type=Path, metavar="FILE", help="also draw the regret into a PNG, SVG or PDF file")
    command.set_defaults(run=commands.simulate)


def _add_bound(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "bound",
        help="compute the regret bound of Theorem 1",
        description="Compute the regret bound of Theorem 1 with its parts, for HierTS, FlatTS and TS, beside the "
        "regret of uniform play.",
    )
    _add_model_options(command, rewards=False)
    command.add_argument("--rounds", type=int, default=500, metavar="N", help="horizon (default: %(default)s)")
    command.add_argument("--delta", default=None, metavar="D", help='a probability, or "best" (default: 1 / rounds)')
    command.add_argument(
        "--constant", default="lemma", metavar="C", help='"lemma", "two" or "telescoped" (default: %(default)s)'
    )
    command.set_defaults(run=commands.bound)


def _add_fit(subparsers: Any) -> None:
    command = subparsers.add_parser(
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
    _add_rewards_option(command)
    command.add_argument("--trials", metavar="COL", help="a column that says how many views the clicks are of")
    command.add_argument("--exposure", metavar="COL", help="one that says how long, or how much, was counted")
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
    command.add_argument(
        "--skip-bad", action="store_true",
        help="leave out rows that cannot be used, up to half of them, and say how many",
    )  # fmt: skip
    command.add_argument("--skip-most", action="store_true", help="leave them out, however many they are")
    command.add_argument(
        "--out", type=Path, default=Path("model.bough"), metavar="FILE", help="the model file (default: %(default)s)"
    )
    command.set_defaults(run=commands.fit)


def _add_adopt(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "adopt",
        help="have an agent go on with tonight's product table",
        description="Have an agent go on with a new product table: what it has learned goes to where each action is "
        "now, and what has changed is printed. Nothing is written before all is well.",
    )
    command.add_argument(
        "agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote; not one of a posterior or a model"
    )
    _add_tree_option(command)
    command.add_argument(
        "--model", type=Path, metavar="FILE",
        help="or a model that fit, or a model's save, wrote: its tree, and its prior instead of the agent's",
    )  # fmt: skip
    command.add_argument(
        "--gone", choices=("retire", "forget", "raise"), default="retire",
        help="what becomes of actions that the table lacks: never chosen, removed with all that was observed of them, "
        "or an error (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--renamed", action="append", default=[], metavar="OLD=NEW",
        help="an action that has another name now, or a Parquet or CSV table of them with the columns old and new; "
        "may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, default=None, metavar="FILE",
        help="where to write the agent, also AGENT itself (default: only say what would change)",
    )  # fmt: skip
    command.set_defaults(run=commands.adopt)


def _add_data(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "data",
        help="make the features of images that reproduce classes needs",
        description="Make a file of features from the official CIFAR-100 archive, for reproduce classes. Without "
        "--archive it is downloaded and its checksum verified. An interrupted command goes on where it stopped.",
    )
    command.add_argument("dataset", choices=("cifar100",), help="which images")
    command.add_argument("--archive", type=Path, metavar="FILE", help="cifar-100-python.tar.gz, if it is there already")
    command.add_argument(
        "--out", type=Path, default=FEATURES, metavar="FILE", help="file of features (default: %(default)s)"
    )
    command.add_argument(
        "--network", choices=("efficientnet-lite0", "pixels"), default="efficientnet-lite0",
        help="what describes an image: a pretrained network, or, needing nothing, its pixels (default: %(default)s)",
    )  # fmt: skip
    command.set_defaults(run=commands.data)


def _add_tree_option(group: Any) -> None:
    group.add_argument(
        "--tree", type=Path, metavar="FILE",
        help="a text file with one path an action, such as home/kitchen/kettle, or a table, with --levels",
    )  # fmt: skip
    group.add_argument(
        "--levels", metavar="COL,COL,...",
        help="where --tree is a Parquet or CSV table with one row an action: its columns, coarsest first",
    )  # fmt: skip
    group.add_argument(
        "--sep", default=None, metavar="TEXT",
        help="what stands between the parts of a path, and of a category's name (default: /, or as the agent has it)",
    )  # fmt: skip
    group.add_argument(
        "--missing", choices=("error", "parent"), default=None,
        help="what becomes of rows of a table without a level: an error, or they hang one level higher "
        "(default: error)",
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


def _add_model_options(command: argparse.ArgumentParser, rewards: bool) -> None:
    shape = command.add_argument_group("the tree")
    shape.add_argument("--branching", type=int, metavar="B", help="a balanced tree with B children a node")
    shape.add_argument("--height", type=int, metavar="H", help="and height H")
    _add_tree_option(shape)
    shape.add_argument("--model", type=Path, metavar="FILE", help="or a model that fit, or a model's save, wrote")
    prior = command.add_argument_group("the model")
    if rewards:
        _add_rewards_option(prior)
    else:
        command.set_defaults(rewards=None)
    prior.add_argument(
        "--problem", choices=("constant", "increasing"), default=None,
        help="every variance 1, or 2 to the power of a node's height (default: increasing; of clicks and counts: "
        "1 in all, in equal shares)",
    )  # fmt: skip
    prior.add_argument("--by-depth", metavar="V,V,...", help="variances by depth instead, root first")
    prior.add_argument("--mean", type=float, default=None, metavar="M", help="prior mean (default: 0)")
    prior.add_argument(
        "--noise-variance", type=float, default=None, metavar="V", help="of a Gaussian reward (default: 1)"
    )


def _add_rewards_option(group: Any) -> None:
    group.add_argument(
        "--rewards", choices=tuple(MODELS), default=None,
        help="numbers, clicks (0 or 1) or counts; variances are then of log-odds or log-rates (default: gaussian)",
    )  # fmt: skip


def reference() -> str:
    """What every command takes, as the page of the docs that a test compares with."""
    parser = make_parser()
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = ["# The command", "Made by `make reference`; a test keeps it true.", _wrapped(parser.description)]
    for name, command in subparsers.choices.items():
        # argparse's own layout differs between versions of Python
        rows = [(_option(action), command._get_formatter()._expand_help(action)) for action in command._actions]
        table = "\n".join(f"| `{option}` | {text} |" for option, text in rows)
        parts += [f"## bough {name}", _wrapped(command.description), f"| option | meaning |\n| -- | -- |\n{table}"]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str | None) -> str:
    """Prose as mdformat leaves it, at the width of the pages of the docs."""
    return textwrap.fill(text or "", 100, break_long_words=False, break_on_hyphens=False)


def _option(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join([", ".join(action.option_strings), value or ""]).strip()
