"""The command: parse, call, and say in one line what went wrong."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from bough._extras import install
from bough.cli import inputs, output
from bough.cli.parser import make_parser


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    given = argparse.Namespace(command=shlex.join(["bough", *words]), written="nothing was written")
    try:
        make_parser().parse_args(words, given)
        with inputs.standard_input(given):
            given.run(given)
    except KeyboardInterrupt:
        print(f"bough: stopped; {given.written}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ImportError as error:
        missing = f"{error.name or error} is not installed; {install('reproduce')}"
        print(f"bough: {error if 'pip install' in str(error) else missing}", file=sys.stderr)
        return 2
    except (ValueError, KeyError, OSError, OverflowError, MemoryError) as error:
        print(f"bough: {output.one_line(error)}", file=sys.stderr)
        return 2
    return 0
