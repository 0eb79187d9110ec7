"""bough dashboard: an agent in a file as a page to look at."""

from __future__ import annotations

import argparse

import bough
from bough.cli import inputs, logs, output


def dashboard(given: argparse.Namespace) -> None:
    """Write the page; the agent stays as it is."""
    logs.check_extras(given, "dashboard")
    agent = inputs.load_agent(given.agent)
    if not hasattr(agent, "posterior"):
        name = type(agent).__name__
        raise ValueError(f"{given.agent} holds a {name}, which has no posterior to show; give a HierTS, say")
    output.watch(given, lambda: [given.out])
    bough.write_dashboard(agent, given.out, title=given.title or given.agent.stem)
    size = given.out.stat().st_size
    output.show(given, f"wrote {given.out} ({size / 1e6:.1f} MB)", {"out": given.out, "bytes": size})
