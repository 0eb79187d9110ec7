"""How the command's help looks, and how it refuses words that it does not know; and the page of the docs made of it."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

_EXAMPLES = "examples:\n"


class Parser(argparse.ArgumentParser):
    """A parser that keeps examples as they are written, and whose errors are one line."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Formatter, **kwargs})
        self.examples = tuple(examples)
        self.epilog = _EXAMPLES + "\n".join(f"  {example}" for example in examples) if examples else None
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d)[-+\d.,eE]*$")  # lists of numbers as well

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end with status 2."""
        if message.endswith("required: COMMAND"):
            message = f"give a command: {', '.join(_choices(self))}"
        print(f"bough: {message}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


class _Formatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)


def reference_of(parser: Parser) -> str:
    """What every command takes, as a page of the docs."""
    parts = ["# The command", "Made by `make reference`; a test keeps it true.", _wrapped(parser.description)]
    parts.append(_shell(parser.examples))
    for name, command in commands_of(parser).items():
        # argparse's own layout differs between versions of Python
        rows = [(_option(action), command._get_formatter()._expand_help(action)) for action in command._actions]
        table = "\n".join(f"| `{option}` | {text} |" for option, text in rows)
        parts += [f"## bough {name}", _wrapped(command.description), _shell(command.examples)]
        parts.append(f"| option | meaning |\n| -- | -- |\n{table}")
    return "\n\n".join(parts) + "\n"


def commands_of(parser: Parser) -> dict[str, Parser]:
    """The parser of each command, by name; one that has commands of its own, such as key, stands for these."""
    found: dict[str, Parser] = {}
    for name, command in _choices(parser).items():
        own = _choices(command)
        found |= {f"{name} {part}": one for part, one in own.items()} if own else {name: command}
    return found


def _choices(parser: Parser) -> dict[str, Parser]:
    return {
        name: command
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, command in action.choices.items()
    }


def _shell(examples: Sequence[str]) -> str:
    return "\n".join(["```sh", *examples, "```"])


def _wrapped(text: str | None) -> str:
    """Prose as mdformat leaves it, at the width of the pages of the docs."""
    return textwrap.fill(text or "", 100, break_long_words=False, break_on_hyphens=False)


def _option(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join([", ".join(action.option_strings), value or ""]).strip()
