"""bough serve: the decision service, started."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import bough
from bough.cli import logs, output
from bough.service.settings import SETTINGS, Settings

if TYPE_CHECKING:
    from bough.service.server import Started


def serve(given: argparse.Namespace) -> None:
    """Serve until told to stop."""
    settings = settings_of(given)
    if given.demo and given.model is not None:
        raise ValueError("--demo has a model of its own; leave out --model")
    if given.model is not None and given.experiment is None:
        raise ValueError("--model begins an experiment; name it with --experiment NAME")
    if given.model is not None and not given.model.is_file():
        raise ValueError(f"--model is {given.model}, and there is no such file; give one that bough fit or save wrote")
    logs.check_extras(given)
    logs.check_folder(given)
    with _until_stopped(), logs.in_one_line():
        from bough.service import server

        server.serve(
            settings,
            data=given.data,
            database=given.database,
            model=given.model,
            experiment=given.experiment,
            demo=given.demo,
            say=lambda started: _say(given, started),
            tell=lambda line: _tell(given, line),
        )


def _say(given: argparse.Namespace, started: Started) -> None:
    """Print where it is, and the first key."""
    address, key, experiment = started
    link = dashboard_link(address, None if given.demo else key, experiment)
    lines = [f"bough {bough.__version__} serves {address}; Ctrl-C stops it", "", f"dashboard: {link}"]
    if key is not None:
        lines += ["", f"key: {key}", "It has all scopes, and is shown this once."]
        if experiment is not None:
            lines += ["", f"curl {address}/v1/{experiment}/decide -H 'Authorization: Bearer {key}' -d '{{}}'"]
    elif not given.demo:
        lines += ["", f"It takes the keys that it had. For a new one: {_key_command(given)}"]
    results = {"address": address, "key": key, "experiment": experiment, "dashboard": link}
    output.show(given, "\n".join(lines), results)
    sys.stdout.flush()


def _key_command(given: argparse.Namespace) -> str:
    """What makes a key for the dashboard; a database's address may have a password, which is not printed."""
    place = "--database URL" if given.data is None else f"--data {shlex.quote(str(given.data))}"
    return f"bough key create {place} --scopes read"


def _tell(given: argparse.Namespace, line: str) -> None:
    """Print how far the start is; with --json the one document is all."""
    if not given.json:
        print(f"\n{line}", flush=True)


def dashboard_link(address: str, key: str | None, experiment: str | None) -> str:
    """Where the dashboard is. What stands behind the # never reaches a server or its logs.

    >>> dashboard_link("http://127.0.0.1:8000", "bough_abc", "shop")
    'http://127.0.0.1:8000/#key=bough_abc&experiment=shop'
    """
    known = {"key": key, "experiment": experiment}
    rest = "&".join(f"{name}={value}" for name, value in known.items() if value is not None)
    return f"{address}/#{rest}" if rest else f"{address}/"


def settings_of(given: argparse.Namespace) -> Settings:
    """The settings that the options say; a `ValueError` where one makes no sense."""
    found: dict[str, Any] = {one.name: getattr(given, one.name) for one in SETTINGS}
    given_settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Settings(**given_settings)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end it without an error: what was acknowledged is durable, whenever that is."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt
