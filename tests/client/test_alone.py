"""What a client's machine needs is httpx, and what the docs show runs."""

import inspect
import re
import subprocess
import sys
import textwrap

import pytest

from bough.client import Client
from places import ROOT
from scripted_server import scripted_server

BLOCKED = (
    "import sys; sys.modules.update(dict.fromkeys(['numpy', 'scipy', 'numba', 'msgspec', 'starlette', 'narwhals']))"
)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_client_works_where_neither_numpy_nor_the_service_can_be_imported(server):
    done = run(
        f"{BLOCKED}\nimport bough.client\n"
        f"with bough.client.Client({server.url!r}, experiment='shop') as client:\n"
        "    decided = client.decide([1, 0.5])\n"
        "    print(decided.action, client.reward(decided, 1.0).status)\n"
        "assert not [name for name in sys.modules if name.startswith('bough.') and not name.startswith('bough.client')]"
    )
    assert (done.stdout.strip(), done.stderr) == ("kettle learned", "")


def test_without_httpx_the_error_says_what_to_install():
    done = run("import sys; sys.modules['httpx'] = None; import bough.client")
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: bough.client needs httpx; pip install '.[client]' in a clone of bough, "
        "or 'bough[client]' from an index"
    )


def blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "client.md").read_text(), re.DOTALL)


def test_what_the_page_shows_runs_as_it_stands(server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOUGH_KEY", "secret")
    found = blocks()
    assert len(found) >= 5
    names = {"show": lambda *_: None, "outcomes": [("d1", 1.0)], "cart": type("Cart", (), {"id": "c7"})}
    for block in found:
        exec(block.replace("http://127.0.0.1:8000", server.url), names)
    names["client"].close()
    assert len(server.requests) > len(found)


@pytest.mark.parametrize("name", [name for name in vars(Client) if "::\n\n" in (getattr(Client, name).__doc__ or "")])
def test_what_a_docstring_shows_runs_as_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.bough").write_bytes(b"a model")
    [block] = re.findall(r"::\n\n(.*?)(?:\n\n|\Z)", inspect.getdoc(getattr(Client, name)), re.DOTALL)
    with scripted_server() as server:
        code = f"""
import time, bough.client
with bough.client.Client({server.url!r}, experiment="shop") as client:
    show, model = (lambda _: None), type("Model", (), dict(save=lambda path: None))
    decided = client.decide()
{textwrap.indent(textwrap.dedent(block), "    ")}
"""
        exec(code, {})
        assert len(server.requests) >= 2
