"""What the command about many decisions takes: batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.cli import batch
from bough.cli.options import add_json_option


def add_batch(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "batch",
        help="have an agent in a file choose for every row of a file",
        description="Have an agent in a file choose for every row of a file of contexts, or, where it takes none, --n "
        "times, and write the decisions to another file. Each is made from a draw of its own. The file is read by "
        "chunks, so that it may be of any size. The agent's file stays as it is, and so the same command gives the "
        "same decisions; --seed makes others.",
        examples=(
            "bough batch agent.bough --n 1000 --out decisions.parquet",
            "bough batch agent.bough contexts.parquet --out decisions.parquet --k 5 --id customer",
            "bough batch agent.bough contexts.csv --out decisions.csv --among @in-stock.txt --propensities --json",
        ),
    )
    command.add_argument("agent", type=Path, metavar="AGENT", help="a file that an agent's save wrote")
    command.add_argument(
        "contexts", type=Path, nargs="?", default=None, metavar="CONTEXTS",
        help="a Parquet or CSV file with a column for each feature; - is the standard input",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE",
        help="the Parquet or CSV file to write: row, action and score, and position where there are several",
    )  # fmt: skip
    command.add_argument(
        "--n", type=int, default=None, metavar="N", help="how many decisions, where the agent takes no contexts"
    )
    command.add_argument(
        "--context", default=None, metavar="COL,COL,...",
        help="the columns, in the agent's order (default: those that its features are called)",
    )  # fmt: skip
    command.add_argument(
        "--id", default=None, metavar="COLUMN", help="write this column of the contexts instead of the row's number"
    )
    command.add_argument(
        "--k", type=int, default=None, metavar="K", help="choose the K best, best first (default: one action)"
    )
    command.add_argument(
        "--among", metavar="NAME,NAME,...",
        help="choose only among these: actions with commas between them, or @FILE with one per line",
    )  # fmt: skip
    command.add_argument(
        "--device", choices=("cpu", "gpu"), default="cpu",
        help="compiled code on all cores, or JAX on a GPU, which the extra gpu brings (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--jobs", type=int, default=None, metavar="N", help="threads on the CPU (default: one for each core)"
    )
    command.add_argument(
        "--propensities", action="store_true",
        help="write how likely each action was to be chosen: a question of its own for each row, which takes much "
        "longer than the decision itself, and one for each action where there are no contexts",
    )  # fmt: skip
    command.add_argument(
        "--samples", type=int, default=200, metavar="N",
        help="most draws for a propensity that is not exact (default: %(default)s)",
    )  # fmt: skip
    command.add_argument(
        "--seed", type=int, default=None, metavar="S",
        help="draw with this seed (default: go on from the agent's own random numbers)",
    )  # fmt: skip
    add_json_option(command)
    command.set_defaults(run=batch.batch, reads={"contexts": ".csv", "among": ".txt"})
