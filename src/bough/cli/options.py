"""Options that several commands have."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bough.cli.layout import Parser
from bough.model.kinds import MODELS

TREE_READS = {"tree": ".txt"}
"""What `-` stands for where --tree is an option: text, which a table is read from too."""


def add_json_option(command: Parser) -> None:
    """--json, of every command that prints results."""
    command.add_argument(
        "--json", action="store_true", help="print the results as one JSON document, with every digit of its numbers"
    )


def add_tree_option(group: Any) -> None:
    """--tree, and how it is read: --levels, --sep and --missing."""
    group.add_argument(
        "--tree", type=Path, metavar="FILE",
        help="a text file with one path per action, such as home/kitchen/kettle, or a table, with --levels; - is the "
        "standard input",
    )  # fmt: skip
    group.add_argument(
        "--levels", metavar="COL,COL,...",
        help="where --tree is a Parquet or CSV table with one row per action: its columns, coarsest first",
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


def add_factor_option(group: Any) -> None:
    """--factor, of commands that read a table."""
    group.add_argument(
        "--factor", action="append", default=[], metavar="COL",
        help="a column of the table of --tree that is a crossed factor of the actions, such as the brand; may be "
        "repeated",
    )  # fmt: skip


def add_run_options(command: Parser, rounds: int | None, runs: int | None) -> None:
    """--runs, --rounds, --seed and --jobs."""
    own = "the experiment's own"
    command.add_argument(
        "--runs", type=int, default=runs, metavar="N", help=f"runs per cell, at least 2 (default: {runs or own})"
    )
    command.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help=f"rounds per run (default: {rounds or own})"
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


def add_model_options(command: Parser, rewards: bool) -> None:
    """What makes a model: a tree and a prior, or a file."""
    shape = command.add_argument_group("the tree")
    shape.add_argument("--branching", type=int, metavar="B", help="a balanced tree with B children per node")
    shape.add_argument("--height", type=int, metavar="H", help="and height H")
    add_tree_option(shape)
    shape.add_argument("--model", type=Path, metavar="FILE", help="or a model that fit, or a model's save, wrote")
    prior = command.add_argument_group("the model")
    if rewards:
        add_rewards_option(prior)
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


def add_rewards_option(group: Any) -> None:
    """--rewards."""
    group.add_argument(
        "--rewards", choices=tuple(MODELS), default=None,
        help="numbers, clicks (0 or 1) or counts; variances are then of log-odds or log-rates (default: gaussian)",
    )  # fmt: skip


def add_log_columns(command: Parser) -> None:
    """--action, --reward and --weight, --trials and --exposure, of commands that learn from a log."""
    command.add_argument(
        "--action", required=True, metavar="COL", help="the column of the log with the actions, named as in the tree"
    )
    command.add_argument("--reward", required=True, metavar="COL", help="the column of the log with the rewards")
    command.add_argument("--weight", metavar="COL", help="a column that says how many rows a row stands for")
    command.add_argument(
        "--trials", metavar="COL", help="where rewards are clicks: a column that says how many views they are of"
    )
    command.add_argument(
        "--exposure", metavar="COL",
        help="where rewards are counts: a column that says how long, or how much, was counted",
    )  # fmt: skip


def add_skip_options(command: Parser) -> None:
    """--skip-bad and --skip-most."""
    command.add_argument(
        "--skip-bad", action="store_true",
        help="leave out rows of the log that cannot be used, up to half of them, and say how many",
    )  # fmt: skip
    command.add_argument(
        "--skip-most", action="store_true", help="leave out rows that cannot be used, however many they are"
    )


def add_context_option(command: Parser) -> None:
    """--context of a decision."""
    command.add_argument(
        "--context", action="append", default=[], metavar="CONTEXT",
        help="what the model takes: numbers such as 1,0.5, or name=value pairs such as age=3,price=2 where the model "
        "names its features, or JSON; may be repeated",
    )  # fmt: skip
