"""docs/howto/service.md: the commands of the page are sent to a real service, and answered as the page says."""

import json
import re
import shlex
from pathlib import Path

import pytest

from bough.cli import parser, serve
from bough.service.server import Started
from places import ROOT
from served import Served

PAGE = (ROOT / "docs" / "howto" / "service.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = re.findall(r"^\$ (curl .*)\n(\{.*)$", "\n".join(BLOCKS), re.MULTILINE)
ADDRESS = "http://127.0.0.1:8000"
CHOSEN = {"action", "actions", "suggested", "seq", "learned_seq", "created", "at", "propensity"}
"""What is drawn, or depends on what was asked before, or on the clock."""


def request(command):
    """Method, path and body of a curl command."""
    words = shlex.split(command.replace("$SHOP", f"{ADDRESS}/v1/shop"))
    [address] = [word for word in words if word.startswith(ADDRESS)]
    body = None
    for option in ("-d", "--data-binary"):
        if option in words:
            body = words[words.index(option) + 1]
    assert body is not None
    data = Path(body[1:]).read_bytes() if body.startswith("@") else body.encode()
    method = words[words.index("-X") + 1] if "-X" in words else "POST"
    return method, address.removeprefix(ADDRESS), data


def told(value):
    """What the page can promise of an answer: all but what is drawn."""
    if isinstance(value, dict):
        return {name: None if name in CHOSEN else told(one) for name, one in value.items()}
    return value


def test_the_page_has_examples():
    assert len(EXAMPLES) > 10
    assert {command.split()[0] for command, _ in EXAMPLES} == {"curl"}


def test_the_commands_of_the_page_are_answered_as_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [python] = re.findall(r"^```python\n(import bough\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(python, {})
    with Served(tmp_path, "--data", "data", "--model", "model.bough", "--experiment", "shop") as service:
        for command, shown in EXAMPLES:
            expected = json.loads(shown)
            answer = service.ask(*request(command))
            assert told(answer.body) == told(expected), command
            if "status" in expected and isinstance(expected["status"], int):
                assert answer.status == expected["status"]
            else:
                assert answer.status in (200, 201)


def test_what_the_first_start_prints_is_what_the_page_shows(tmp_path, monkeypatch, capsys):
    [block] = [block for block in BLOCKS if block.startswith("$ bough serve")]
    command, _, shown = block.partition("\n")
    given = parser.make_parser().parse_args(shlex.split(command)[2:])
    [key] = re.findall(r"^key: (.*)$", shown, re.MULTILINE)
    serve._say(given, Started(ADDRESS, key, "shop"))
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("command", re.findall(r"^(bough (?:serve|key|prune|export).*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_are_such(command):
    given = parser.make_parser().parse_args(shlex.split(command, comments=True)[1:])
    assert callable(given.run)
