"""bough export and bough rebuild: the log of a service as a file, and the agent that such a file leads to."""

from __future__ import annotations

import argparse

from bough.cli import inputs, logs, output

ENDINGS = (".parquet", ".ndjson", ".csv")


def export(given: argparse.Namespace) -> None:
    """Write the events of an experiment, or its decisions, to a file."""
    raise NotImplementedError


def rebuild(given: argparse.Namespace) -> None:
    """Replay events on a model, and write the agent."""
    raise NotImplementedError
