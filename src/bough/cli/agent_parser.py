"""What the commands about agents in files take: learn, show, dashboard, decide, best, evaluate and adopt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.cli import adopt, best, dashboard, decide, evaluate, learn, show
from bough.cli.layout import Parser
from bough.cli.options import (
    TREE_READS,
    add_context_option,
    add_factor_option,
    add_json_option,
    add_log_columns,
    add_skip_options,
    add_tree_option,
)


def add_learn(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "learn",
        help="have an agent in a file learn the rewards of a log",
        description="Have an agent in a file learn the rewards of a log, such as those of today, and write it back to "
        "its file, whole or not at all. A row counts each time that it is given. A single reward is a log of one row, "
        "also from the standard input. Where decisions had crossed factors, such as the store, the log has a column "
        "of that name.",
        examples=(
            "bough learn agent.bough log.csv --action sku --reward sales",
            "printf 'sku,sales\\nkettle,3.5\\n' | bough learn agent.bough - --action sku --reward sales",
            "bough learn agent.bough 'logs/*.csv' --action sku --reward sales --out tomorrow.bough --json",
        ),
    )
    command.add_argument("agent", type=Path, metavar="AGENT", help="a file that an agent's save, or bough fit, wrote")
    command.add_argument(
        "log", nargs="+", metavar="LOG",
        help="Parquet or CSV files, folders of them, or quoted globs; - is one of these from the standard input",
    )  # fmt: skip
    add_log_columns(command)
    command.add_argument(
        "--context", metavar="COL,COL,...",
        help="the columns of the log with the context (default: called as the agent's features are)",
    )  # fmt: skip
    add_skip_options(command)
    command.add_argument(
        "--out", type=Path, default=None, metavar="FILE", help="where to write the agent instead (default: AGENT)"
    )
    add_json_option(command)
    command.set_defaults(run=learn.learn, reads={"log": ".csv"})


def add_show(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "show",
        help="show what is in a file: tree, prior, best actions",
        description="Show what is in a file that bough wrote: an agent, a posterior, a model, statistics or a "
        "simulation. Of an agent or a posterior: the tree, the prior, what was observed, and the actions with the "
        "highest mean reward, with 95% intervals. The file stays as it is.",
        examples=(
            "bough show agent.bough",
            "bough show model.bough --json",
            "bough show agent.bough --context 1,0.5 --top 20",
        ),
    )
    command.add_argument("file", type=Path, metavar="FILE", help="a file that save, or bough fit, wrote")
    add_context_option(command)
    command.add_argument(
        "--top", type=int, default=10, metavar="N", help="how many actions to show (default: %(default)s)"
    )
    add_json_option(command)
    command.set_defaults(run=show.show)


def add_dashboard(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "dashboard",
        help="write what an agent in a file has learned as a page",
        description="Write what an agent in a file has learned as one self-contained HTML page: a map of the tree, the "
        "best actions, why they are, and what the prior says. It needs no network and no service, and can be sent to "
        "anybody. Of a large tree it has the 20,000 nodes with the most rewards, and says what it leaves out.",
        examples=(
            "bough dashboard agent.bough --out page.html",
            "bough dashboard agent.bough --out page.html --title 'The shop in May'",
        ),
    )
    command.add_argument("agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote")
    command.add_argument("--out", type=Path, required=True, metavar="PAGE", help="the page to write")
    command.add_argument(
        "--title", default=None, metavar="TEXT", help="what the page says it is of (default: the file's name)"
    )
    add_json_option(command)
    command.set_defaults(run=dashboard.dashboard)


def add_decide(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "decide",
        help="have an agent in a file choose",
        description="Print what an agent in a file would choose next, with its score in the draw that decided, and its "
        "propensity: how likely it was to be chosen. The file stays as it is, and so the same command gives the same "
        "answer; --seed makes another draw.",
        examples=(
            "bough decide agent.bough",
            "bough decide agent.bough --k 5 --exclude kettle,toaster",
            "bough decide agent.bough --context age=3,price=2 --among @in-stock.txt --seed 7 --json",
            "bough decide agent.bough --decision-factor store=north --json",
        ),
    )
    command.add_argument("agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote")
    add_context_option(command)
    command.add_argument(
        "--decision-factor", action="append", default=[], metavar="NAME=LEVEL",
        help="the level of a crossed factor of the decision, such as store=north, which is logged with it; may be "
        "repeated",
    )  # fmt: skip
    command.add_argument(
        "--k", type=int, default=None, metavar="K", help="choose the K best, best first (default: one action)"
    )
    _add_choices(command, "choose only among these")
    command.add_argument(
        "--seed", type=int, default=None, metavar="S",
        help="draw with this seed (default: go on from the agent's own random numbers)",
    )  # fmt: skip
    command.add_argument(
        "--samples", type=int, default=1_000, metavar="N",
        help="most draws for the propensity; 0 leaves it out (default: %(default)s)",
    )  # fmt: skip
    add_json_option(command)
    command.set_defaults(run=decide.decide, reads={"among": ".txt", "exclude": ".txt"})


def add_best(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "best",
        help="say how sure an agent in a file is of its best action",
        description="Print which actions are likeliest to be the best, what committing to each now would cost per "
        "round, and whether one may stop: the least expected loss is at most --loss, and that action is the best with "
        "at least --probability. Exact without contexts; from draws with them. The file stays as it is.",
        examples=(
            "bough best agent.bough",
            "bough best agent.bough --loss 0.01 --probability none",
            "bough best agent.bough --context age=3,price=2 --among @in-stock.txt --json",
        ),
    )
    command.add_argument("agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote")
    add_context_option(command)
    _add_choices(command, "ask only about these")
    command.add_argument(
        "--top", type=int, default=10, metavar="N", help="how many actions to show (default: %(default)s)"
    )
    command.add_argument(
        "--loss", default="0.001", metavar="L", help='the largest expected loss to stop at, or "none" (default: 0.001)'
    )
    command.add_argument(
        "--probability", default="0.95", metavar="P",
        help='the least probability of being the best to stop at, or "none" (default: 0.95)',
    )  # fmt: skip
    command.add_argument(
        "--samples", type=int, default=1_000, metavar="N",
        help="draws, where the answer is not exact (default: %(default)s)",
    )  # fmt: skip
    command.add_argument("--seed", type=int, default=0, metavar="S", help="of these draws (default: %(default)s)")
    add_json_option(command)
    command.set_defaults(run=best.best, reads={"among": ".txt", "exclude": ".txt"})


def add_evaluate(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "evaluate",
        help="estimate what agents in files would have earned on a log",
        description="Estimate what agents would have earned per row of a log of another policy's decisions, with "
        "intervals, and say whether the log can tell. The log has an action, a reward and a propensity in each row, "
        "called as Decision.to_dict calls them unless you say otherwise.",
        examples=(
            "bough evaluate logs.parquet --agent agent.bough",
            "bough evaluate logs.parquet --agent new=agent.bough --agent greedy=greedy.bough --plot values.png",
            "bough evaluate log.csv --agent agent.bough --action product --reward click --propensity p --json",
        ),
    )
    command.add_argument(
        "log", metavar="LOG", help="a Parquet or CSV file, or a pattern for many; - is the standard input",
    )  # fmt: skip
    command.add_argument(
        "--agent", action="append", required=True, metavar="[NAME=]FILE",
        help="a file that an agent's save wrote; may be repeated",
    )  # fmt: skip
    add_tree_option(command)
    columns = command.add_argument_group("the columns of the log")
    for name, what in (
        ("action", "what was chosen"),
        ("reward", "what it earned"),
        ("propensity", "how likely it was"),
    ):
        columns.add_argument(f"--{name}", default=name, metavar="COLUMN", help=f"{what} (default: %(default)s)")
    columns.add_argument(
        "--context", metavar="COL,COL,...", help="one column for each feature, where the agents take contexts"
    )
    columns.add_argument("--position", metavar="COLUMN", help="where in a list the action was shown")
    command.add_argument(
        "--model", type=Path, metavar="FILE",
        help="a model for dm and dr, as fit, or a model's save, wrote it (default: a prior learned from the log)",
    )  # fmt: skip
    command.add_argument(
        "--estimators", default="snips,dr,dm", metavar="E,E,...",
        help="of ips, snips, dm, dr, and mips-1, mips-2, ... at a depth of the tree (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--interval", choices=evaluate.INTERVALS, default="cressie-read",
        help="anytime is for a log that grows and is looked at again (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--level", type=float, default=0.95, metavar="L", help="of the intervals (default: %(default)s)"
    )
    command.add_argument(
        "--reward-range", metavar="LOW,HIGH",
        help="the least and the largest reward that there can be (default: those of the log)",
    )  # fmt: skip
    command.add_argument(
        "--samples", type=int, default=200, metavar="N",
        help="most draws for a propensity that is not exact (default: %(default)s)",
    )  # fmt: skip
    command.add_argument("--seed", type=int, default=0, metavar="S", help="of these draws (default: %(default)s)")
    command.add_argument("--skip-bad", action="store_true", help="leave out rows that cannot be used")
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the estimates into this picture")
    add_json_option(command)
    command.set_defaults(run=evaluate.evaluate, reads={"log": ".csv", **TREE_READS})


def add_adopt(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "adopt",
        help="have an agent go on with tonight's product table",
        description="Have an agent go on with a new product table: what it has learned goes to where each action is "
        "now, and what has changed is printed. Nothing is written before all is well.",
        examples=(
            "bough adopt agent.bough --tree products.csv --levels department,sku",
            "bough adopt agent.bough --tree products.csv --levels department,sku --out agent.bough",
            "bough adopt agent.bough --tree paths.txt --renamed kettle=kettle-2 --gone forget --json",
        ),
    )
    command.add_argument(
        "agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote; not one of a posterior or a model"
    )
    add_tree_option(command)
    add_factor_option(command)
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
        help="an action that has another name now, or a Parquet or CSV table of them with the columns old and new, "
        "where - is the standard input; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, default=None, metavar="FILE",
        help="where to write the agent, also AGENT itself (default: only say what would change)",
    )  # fmt: skip
    add_json_option(command)
    command.set_defaults(run=adopt.adopt, reads={"renamed": ".csv", **TREE_READS})


def _add_choices(command: Parser, among: str) -> None:
    """--among and --exclude."""
    for option, what in (("among", among), ("exclude", "leave these out")):
        command.add_argument(
            f"--{option}", metavar="NAME,NAME,...",
            help=f"{what}: actions with commas between them, or @FILE with one per line; @- is the standard input",
        )  # fmt: skip
