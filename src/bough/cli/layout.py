"""How the command's help looks, and how it refuses words that it does not know; and the page of the docs made of it."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_EXAMPLES = "examples:\n"


class Parser(argparse.ArgumentParser):
    """A parser that keeps examples as they are written, and whose errors are one line."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Formatter, **kwargs})
        self.examples = tuple(examples)
        self.epilog = _EXAMPLES + "\n".join(f"  {example}" for example in examples) if examples else None
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d)[-+\d.,eE]*$")  # lists of numbers as well

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What the words mean; an error of this very command where it does not know one of them."""
        words = sys.argv[1:] if args is None else list(args)
        self._refuse_unknown_option(words)
        given, left = super().parse_known_args(words, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return given, left

    def _refuse_unknown_option(self, words: Sequence[str]) -> None:
        """Name an option that there is not, before anything else that may be missing because of it."""
        has_commands = bool(_choices(self))
        for word in words:
            is_option = word.startswith("-") and word != "-" and " " not in word
            if word == "--" or (has_commands and not is_option):  # further words are not this parser's
                return
            name = word.partition("=")[0]
            known = [option for option in self._option_string_actions if option.startswith(name)]
            if is_option and not known and not self._negative_number_matcher.match(word):
                self.error(f"there is no option {name}{_close(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = _close(value, action.choices)
            self.error(f"there is no command {value!r}{near or ', but ' + ', '.join(action.choices)}")
        super()._check_value(action, value)

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


def _close(word: str, known: Iterable[str]) -> str:
    """What to add where a word is nearly one that is known.

    >>> _close("--rewad", ["--reward", "--action"])
    ' (did you mean --reward?)'
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


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
