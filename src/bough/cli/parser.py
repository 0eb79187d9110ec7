"""What the command takes: its parser, from which the reference in the docs is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bough
from bough.cli import agent_parser, batch_parser, commands, service_parser
from bough.cli.layout import Parser, reference_of
from bough.cli.options import (
    TREE_READS,
    add_factor_option,
    add_json_option,
    add_log_columns,
    add_model_options,
    add_rewards_option,
    add_run_options,
    add_skip_options,
    add_tree_option,
)
from bough.experiments import registry
from bough.experiments.options import FEATURES, REDUCTIONS, SCALES
from bough.policy_table import POLICIES


def make_parser() -> Parser:
    """The parser, which is also what the reference in the docs is made from."""
    parser = Parser(
        prog="bough",
        description="Exact hierarchical bandits on trees: priors from logs, agents in files, a service that decides "
        "over HTTP, simulations, the paper's experiments and bounds. Results go to the standard output, with --json as "
        "one JSON document; progress and errors go to the standard error. An error is one line, with exit status 2; an "
        "interrupt has status 130.",
        examples=(
            "bough fit log.parquet --tree products.csv --levels department,sku --action sku --reward sales",
            "bough simulate --model model.bough --rounds 1000",
            "bough show agent.bough",
            "bough decide agent.bough --k 5 --json",
            "bough serve --data ./data --demo",
        ),
    )
    parser.add_argument("--version", action="version", version=f"bough {bough.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (
        _add_reproduce,
        _add_simulate,
        _add_bound,
        _add_fit,
        agent_parser.add_learn,
        agent_parser.add_show,
        agent_parser.add_dashboard,
        agent_parser.add_decide,
        batch_parser.add_batch,
        agent_parser.add_best,
        agent_parser.add_evaluate,
        agent_parser.add_adopt,
        service_parser.add_serve,
        service_parser.add_key,
        service_parser.add_export,
        service_parser.add_rebuild,
        service_parser.add_prune,
        _add_data,
    ):
        add(subparsers)
    return parser


def reference() -> str:
    """The page of the docs about the command, which a test compares with."""
    return reference_of(make_parser())


def _add_reproduce(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "reproduce",
        help="run the paper's experiments and write figures and a report",
        description="Run the paper's experiments and write CSV, PNG, SVG, settings and a report of all claims. "
        "Finished cells are kept and not run again with the same settings.",
        examples=(
            "bough reproduce",
            "bough reproduce branching height-constant --runs 1000 --seed 7",
            "bough reproduce branching --runs 10 --rounds 100 --out quick --json",
        ),
    )
    command.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help=f"which ones (default: all but {', '.join(registry.ON_REQUEST)}): {', '.join(registry.EXPERIMENTS)}",
    )
    add_run_options(command, rounds=None, runs=None)
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
        "--tree", type=Path, metavar="FILE",
        help="a deeper tree as well: a text file with one path per class; - is the standard input",
    )  # fmt: skip
    add_json_option(command)
    command.set_defaults(run=commands.reproduce, reads=TREE_READS)


def _add_simulate(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "simulate",
        help="simulate policies on a tree of your own",
        description="Simulate policies on problems drawn from a model, and print their regret.",
        examples=(
            "bough simulate --branching 10 --height 2",
            "bough simulate --tree paths.txt --by-depth 1,0.5,0.2 --policies HierTS,TS --plot regret.png",
            "cut -f1 products.tsv | bough simulate --tree - --rewards bernoulli --json",
        ),
    )
    add_model_options(command, rewards=True)
    command.add_argument(
        "--policies",
        default="HierTS,FlatTS,TS",
        metavar="NAMES",
        help=f"some of {', '.join(POLICIES)} (default: %(default)s)",
    )
    add_run_options(command, rounds=500, runs=100)
    command.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write policy, round, mean, se, runs to a CSV file"
    )
    command.add_argument("--plot", type=Path, metavar="FILE", help="also draw the regret into a PNG, SVG or PDF file")
    add_json_option(command)
    command.set_defaults(run=commands.simulate, reads=TREE_READS)


def _add_bound(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "bound",
        help="compute the regret bound of Theorem 1",
        description="Compute the regret bound of Theorem 1 with its parts, for HierTS, FlatTS and TS, beside the "
        "regret of uniform play.",
        examples=(
            "bough bound --branching 10 --height 2 --problem constant",
            "bough bound --model model.bough --rounds 10000 --delta best --constant telescoped --json",
        ),
    )
    add_model_options(command, rewards=False)
    command.add_argument("--rounds", type=int, default=500, metavar="N", help="horizon (default: %(default)s)")
    command.add_argument("--delta", default=None, metavar="D", help='a probability, or "best" (default: 1 / rounds)')
    command.add_argument(
        "--constant", default="lemma", metavar="C", help='"lemma", "two" or "telescoped" (default: %(default)s)'
    )
    add_json_option(command)
    command.set_defaults(run=commands.bound, reads=TREE_READS)


def _add_fit(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "fit",
        help="learn a prior from a log",
        description="Learn the mean, the variances and the noise of a model from a log, print them with their "
        "uncertainty, and write the model to a file that simulate, bound and the library read.",
        examples=(
            "bough fit log.parquet --tree products.csv --levels department,sku --action sku --reward sales",
            "bough fit log.csv --tree products.csv --levels department,sku --action sku --reward sales "
            "--agent agent.bough",
            "bough fit log.parquet --tree paths.txt --action item --reward sales --agent agent.bough",
            "bough fit log.csv --tree products.csv --levels department,sku --factor brand --action sku --reward sales",
            "bough fit 'logs/*.csv' --tree paths.txt --action item --reward clicks --trials views --rewards bernoulli",
            "zcat log.csv.gz | bough fit - --tree paths.txt --action item --reward sales --noise-variance 0.5",
        ),
    )
    command.add_argument(
        "log", nargs="+", metavar="LOG",
        help="Parquet or CSV files, folders of them, or quoted globs; - is one of these from the standard input; "
        "all are added up",
    )  # fmt: skip
    add_tree_option(command)
    add_factor_option(command)
    command.add_argument(
        "--decision-factor", action="append", default=[], metavar="COL",
        help="a column of the log that is a crossed factor of the decisions, such as the store; may be repeated",
    )  # fmt: skip
    add_log_columns(command)
    command.add_argument(
        "--context", metavar="COL,COL,...", help="the columns of the log with the context, for a contextual model"
    )
    command.add_argument(
        "--intercept", action="store_true", help="put a feature that is always 1 before the columns of --context"
    )
    add_rewards_option(command)
    command.add_argument(
        "--by",
        choices=("depth", "height"),
        default="depth",
        help="nodes of the same depth, or of the same height, share a variance (default: %(default)s)",
    )
    command.add_argument(
        "--noise-variance",
        default="learn",
        metavar="V",
        help='the noise variance of a Gaussian reward: a number, "learn", or "per action" for one of its own for each '
        "action (default: %(default)s)",
    )
    command.add_argument(
        "--root", default=None, metavar="V", help="the variance of the root, which is not learned (default: 0)"
    )
    command.add_argument(
        "--structure", choices=("full", "diagonal", "scaled"), default=None,
        help="the structure of the covariances, with --context (default: full)",
    )  # fmt: skip
    command.add_argument(
        "--penalty", default="2", metavar="W",
        help='width of the weak prior on log-variances, or "none" (default: %(default)s)',
    )  # fmt: skip
    add_skip_options(command)
    command.add_argument(
        "--out", type=Path, default=Path("model.bough"), metavar="FILE", help="the model file (default: %(default)s)"
    )
    command.add_argument(
        "--agent", type=Path, default=None, metavar="FILE",
        help="write an agent as well: HierTS with the learned prior, which knows the log, for show, decide and adopt",
    )  # fmt: skip
    command.add_argument(
        "--seed",
        type=int,
        default=None,
        metavar="S",
        help="the seed of the agent's random numbers (default: a fresh one)",
    )
    add_json_option(command)
    command.set_defaults(run=commands.fit, reads={"log": ".csv", **TREE_READS})


def _add_data(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "data",
        help="make the features of images that reproduce classes needs",
        description="Make a file of features from the official CIFAR-100 archive, for reproduce classes. Without "
        "--archive it is downloaded and its checksum verified. An interrupted command goes on where it stopped.",
        examples=("bough data cifar100", "bough data cifar100 --archive cifar-100-python.tar.gz --network pixels"),
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
    add_json_option(command)
    command.set_defaults(run=commands.data)
