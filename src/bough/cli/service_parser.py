"""What the commands about the decision service take: serve, key, export, rebuild and prune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.cli import events, keys, prune, serve
from bough.cli.layout import Parser
from bough.cli.options import add_json_option
from bough.service.settings import SETTINGS, Setting


def add_serve(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "serve",
        help="serve decisions over HTTP, and learn from the rewards",
        description="Serve decisions over HTTP, and learn from rewards as they come. What was acknowledged is durable: "
        "in a folder, for one process, or in PostgreSQL, for any number of them. At the first start a key with all "
        "scopes is printed, this once. Requests are logged on the standard error, one line each. Ctrl-C stops it.",
        examples=(
            "bough serve --data ./data --demo",
            "bough serve --data ./data --model model.bough --experiment shop",
            "bough serve --database postgresql://bough@localhost/bough --experiment shop --port 8001",
        ),
    )
    _add_place(command)
    command.add_argument(
        "--experiment", metavar="NAME", help="an experiment to have; one that is not there yet begins with --model"
    )
    command.add_argument(
        "--model", type=Path, metavar="FILE",
        help="the model that a new experiment begins with, or an agent; for one that exists it must be the same file "
        "(another one goes to PUT /v1/NAME/model)",
    )  # fmt: skip
    command.add_argument("--demo", action="store_true", help="have a made-up shop with simulated visitors, to look at")
    group = command.add_argument_group("settings")
    for setting in SETTINGS:
        _add_setting(group, setting)
    command.add_argument("--json", action="store_true", help="print the address and the first key as one JSON document")
    command.set_defaults(run=serve.serve)


def _add_setting(group: Any, setting: Setting) -> None:
    """The option of a setting."""
    text = (setting.help[0].lower() + setting.help[1:].rstrip(".")).replace("%", "%%")
    if setting.type is bool:
        text = text.removeprefix("whether to ")
        group.add_argument(setting.option, action="store_true", help=text)
    elif setting.type == tuple[str, ...]:
        group.add_argument(
            setting.option, action="append", default=[], metavar="TEXT",
            help=f"{text}; may be repeated (default: none)",
        )  # fmt: skip
    else:
        group.add_argument(
            setting.option, type=setting.type, default=setting.default, metavar="TEXT" if setting.type is str else "N",
            help=f"{text} (default: {f'{setting.default:g}' if setting.type is float else setting.default})",
        )  # fmt: skip


def add_key(subparsers: Any) -> None:
    whole = subparsers.add_parser(
        "key",
        help="make, list and revoke the keys of a service",
        description="Make, list and revoke the keys of a service, also while it runs: it hears of it within a second.",
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = commands.add_parser(
        "create",
        help="make a key, and print it this once",
        description="Make a key, and print it this once: only a hash of it is kept. Requests send it in the header "
        "Authorization: Bearer KEY.",
        examples=(
            "bough key create --data ./data",
            "bough key create --data ./data --scopes read --experiment shop --rate 100 --json",
        ),
    )
    _add_place(create)
    create.add_argument(
        "--scopes", default="decide,reward", metavar="NAME,NAME,...",
        help="what it may do, some of decide, reward, read and admin, which may do all (default: %(default)s)",
    )  # fmt: skip
    create.add_argument("--experiment", metavar="NAME", help="the only experiment that it is for (default: all)")
    create.add_argument(
        "--rate", type=float, default=None, metavar="N",
        help="requests per second that it may make (default: as bough serve --rate says)",
    )  # fmt: skip
    add_json_option(create)
    create.set_defaults(run=keys.create)
    listing = commands.add_parser(
        "list",
        help="list the keys, without their tokens",
        description="List the keys, also those that were revoked: when they were made, what they may do, and for which "
        "experiment. The keys themselves are not known any more, and are not shown.",
        examples=("bough key list --data ./data",),
    )
    _add_place(listing)
    add_json_option(listing)
    listing.set_defaults(run=keys.show)
    revoke = commands.add_parser(
        "revoke",
        help="have a key no longer be one",
        description="Have a key no longer be one. A service that runs refuses it within a second.",
        examples=("bough key revoke --data ./data k0123456789ab",),
    )
    revoke.add_argument("id", metavar="ID", help="as bough key list shows it")
    _add_place(revoke)
    add_json_option(revoke)
    revoke.set_defaults(run=keys.revoke)


def add_export(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "export",
        help="write the log of a service to a file",
        description="Write all that happened in an experiment to a file, one row per decision, outcome or change, in "
        "the order of the log: the file that rebuild reads. With --decisions: one row per action that was decided for "
        "and has a reward, with its propensity: the file that evaluate reads; how many had none, and are left out, is "
        "printed. It works while the service runs.",
        examples=(
            "bough export --data ./data --experiment shop events.parquet",
            "bough export --data ./data --experiment shop decisions.csv --decisions --since 2026-01-01 --json",
        ),
    )
    command.add_argument(
        "out", type=Path, metavar="FILE", help="where to: a file whose name ends in .parquet, .ndjson or .csv"
    )
    _add_place(command)
    _add_experiment(command)
    command.add_argument("--decisions", action="store_true", help="write decisions instead, with what came of them")
    for name, what in (("since", "from this time on"), ("until", "up to this time")):
        command.add_argument(
            f"--{name}", metavar="TIME",
            help=f"only what happened {what}, such as 2026-01-01 or 2026-01-01T12:30 (UTC, unless it says otherwise)",
        )  # fmt: skip
    add_json_option(command)
    command.set_defaults(run=events.export)


def add_rebuild(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "rebuild",
        help="make an agent from the exported log of a service",
        description="Make the agent that a service has from its exported log alone: the events are replayed on a "
        "model, and what could not be learned is counted.",
        examples=(
            "bough rebuild events.parquet --out agent.bough",
            "bough rebuild events.parquet --model model.bough --out agent.bough --json",
        ),
    )
    command.add_argument("events", type=Path, metavar="EVENTS", help="a file that bough export wrote")
    command.add_argument(
        "--model", type=Path, default=None, metavar="FILE",
        help="what to begin with, also another prior (default: what the experiment began with)",
    )  # fmt: skip
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the agent")
    command.add_argument(
        "--seed", type=int, default=None, metavar="S", help="of the agent's random numbers (default: fresh ones)"
    )
    add_json_option(command)
    command.set_defaults(run=events.rebuild)


def add_prune(subparsers: Any) -> None:
    command = subparsers.add_parser(
        "prune",
        help="delete old contexts and decisions from the log of a service",
        description="Delete the decisions before a time, with their contexts and outcomes, from the log of a service. "
        "What they taught is kept: a snapshot that holds it is written first. Decisions that are still open stay. It "
        "works while the service runs.",
        examples=(
            "bough prune --data ./data --before 2026-01-01 --contexts-only --yes",
            "bough prune --data ./data --before 2026-01-01 --experiment shop --yes --json",
        ),
    )
    _add_place(command)
    command.add_argument(
        "--before", required=True, metavar="TIME",
        help="delete what was decided before this time, such as 2026-01-01 or 2026-01-01T12:30 (in UTC, unless it says "
        "otherwise)",
    )  # fmt: skip
    command.add_argument("--experiment", metavar="NAME", help="only of this experiment (default: of all)")
    command.add_argument(
        "--contexts-only", action="store_true", help="delete contexts, which may be personal data, and keep the rows"
    )
    command.add_argument("--yes", action="store_true", help="do not ask first")
    add_json_option(command)
    command.set_defaults(run=prune.prune)


def _add_experiment(command: Parser) -> None:
    command.add_argument("--experiment", required=True, metavar="NAME", help="of which experiment")


def _add_place(command: Parser) -> None:
    """--data and --database: where the log is."""
    place = command.add_mutually_exclusive_group(required=True)
    place.add_argument("--data", type=Path, metavar="DIR", help="the folder of a service, with its log in SQLite")
    place.add_argument(
        "--database", metavar="URL",
        help="or its PostgreSQL database, such as postgresql://bough@localhost/bough; the password is best left to "
        "PGPASSWORD or ~/.pgpass",
    )  # fmt: skip
