"""The command `bough`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    try:
        from bough.cli.command import run  # loads numpy, which takes long enough to be interrupted
    except KeyboardInterrupt:
        print("bough: stopped; nothing was written", file=sys.stderr)
        return 130
    return run(arguments)
