"""The command: parse, call, and say in one line what went wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bough.cli import commands
from bough.cli.parser import make_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    parser = make_parser()
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except KeyboardInterrupt:
        print("bough: stopped; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ImportError as error:
        print(f"bough: {error.name} is not installed; pip install 'bough[reproduce]'", file=sys.stderr)
        return 2
    except (ValueError, KeyError, OSError, OverflowError, MemoryError) as error:
        print(f"bough: {commands.one_line(error)}", file=sys.stderr)
        return 2
    return 0
