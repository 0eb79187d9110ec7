"""The commands of the pages are such as `bough` takes, and every option is in the pages."""

import argparse
import re

import pytest

from bough.cli.parser import make_parser
from pages import DOCS, FILES, PAGES, commands, name_of, prose

OTHERS = {
    "--quick": "benchmarks/bench_gpu.py",
    "--only": "benchmarks/bench_gpu.py",
    "--table": "benchmarks and validation",
    "--keep": "benchmarks",
    "--strict": "mypy",
    "--squarecb": "Vowpal Wabbit",
    "--bag": "Vowpal Wabbit",
}
"""Options of other tools that the pages speak of."""


def parsers(parser):
    """The parser of each command, and of the commands below it, by name."""
    found = {"": parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                found |= {f"{name} {rest}".strip(): one for rest, one in parsers(command).items()}
    return found


COMMANDS = parsers(make_parser())
OPTIONS = {word for command in COMMANDS.values() for action in command._actions for word in action.option_strings}


def test_there_are_commands_in_the_pages():
    assert sum(len(commands(page)) for page in [*FILES, *PAGES]) > 50


@pytest.mark.parametrize("page", [page for page in [*FILES, *PAGES] if commands(page)], ids=name_of)
def test_every_command_of_a_page_is_one(page, capsys):
    for words in commands(page):
        if "..." in words or "NAME" in words:
            continue  # a hint at what goes there
        try:
            make_parser().parse_args(words)
        except (SystemExit, ValueError) as error:
            shown = capsys.readouterr()
            if words[-1] not in ("--help", "--version"):
                raise AssertionError(f"{words}: {error} {shown.err}") from error


@pytest.mark.parametrize("page", [page for page in [*FILES, *PAGES] if page.name != "CHANGELOG.md"], ids=name_of)
def test_every_option_that_a_page_names_exists(page):
    named = set(re.findall(r"`[^`]*?(?<![\w-])(--[a-z][\w-]*)", prose(page)))
    assert named - OPTIONS - set(OTHERS) == set()


def test_every_option_is_in_the_page_of_the_command():
    text = (DOCS / "reference" / "cli.md").read_text()
    missing = {word for word in OPTIONS if f"`{word}" not in text and f", {word}" not in text}
    assert missing == {"--version"}  # of the command itself: on the page about installing
    assert "bough --version" in (DOCS / "start" / "install.md").read_text()


LEAVES = [name for name in COMMANDS if name and not any(other.startswith(f"{name} ") for other in COMMANDS)]


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_its_section(name):
    assert f"## bough {name}\n" in (DOCS / "reference" / "cli.md").read_text()
