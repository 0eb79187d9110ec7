"""Every public name has its place in the API reference."""

import ast
import inspect
import re
import textwrap
from importlib import import_module

import pytest

import bough
import bough.batch
import bough.client
import bough.data
import bough.theory
from pages import DOCS, PAGES
from places import ROOT

API = DOCS / "reference" / "api"
DIRECTIVE = re.compile(r"^\.\. (?:currentmodule:: (?P<module>\S+)|auto\w+:: (?P<name>\S+))", re.MULTILINE)


def documented():
    """The full names that the pages of the API have entries for."""
    found = set()
    for page in API.glob("*.md"):
        module = ""
        for one in DIRECTIVE.finditer(page.read_text()):
            if one["module"]:
                module = one["module"]
            else:
                found.add(one["name"] if one["name"].startswith("bough.") else f"{module}.{one['name']}")
    return found


MODULES = {name: f"bough.{name}" for name in ("theory", "batch", "data")} | {"problems": "bough.simulation.problems"}


@pytest.mark.parametrize("name", bough.__all__)
def test_every_public_name_has_an_entry(name):
    entries = documented()
    if name in MODULES:
        assert any(entry == MODULES[name] or entry.startswith(f"{MODULES[name]}.") for entry in entries)
    else:
        assert f"bough.{name}" in entries


@pytest.mark.parametrize("module", [bough.client, bough.batch, bough.data])
def test_every_name_of_a_public_module_has_an_entry(module):
    assert {f"{module.__name__}.{name}" for name in module.__all__} <= documented()


def named_tuples():
    places = (full.rpartition(".") for full in sorted(documented()))
    found = (getattr(import_module(module), name, None) for module, _, name in places)
    return [one for one in found if isinstance(one, type) and issubclass(one, tuple)]


@pytest.mark.parametrize("made", [*named_tuples(), bough.Comparison], ids=lambda made: made.__name__)
def test_every_field_of_an_answer_has_words(made):
    """Sphinx would otherwise say "Alias for field number 0", or leave it out."""
    body = ast.parse(textwrap.dedent(inspect.getsource(made))).body[0].body
    fields = [i for i, one in enumerate(body) if isinstance(one, ast.AnnAssign) and not one.target.id.startswith("_")]
    bare = [body[i].target.id for i in fields if not isinstance(body[i + 1 : i + 2][0], ast.Expr)]
    assert bare == []


def test_the_index_lists_every_name():
    text = (API / "index.md").read_text()
    assert [name for name in bough.__all__ if name not in MODULES and f"`{name}`" not in text] == []


def test_every_figure_is_in_the_gallery():
    gallery = (DOCS / "results" / "gallery.md").read_text()
    shown = {name for page in PAGES for name in re.findall(r"images/([\w-]+\.png)", page.read_text())}
    assert {name for name in shown if f"images/{name}" not in gallery} == set()
    assert {path.name for path in (DOCS / "images").glob("*.png")} == shown


def test_pages_that_docstrings_speak_of_exist():
    titles = {page.read_text().partition("\n")[0].removeprefix("# ") for page in PAGES}
    source = "\n".join(path.read_text() for path in sorted((ROOT / "src" / "bough").rglob("*.py")))
    named = {" ".join(title.split()) for title in re.findall(r'\b[Tt]he\s+page\s+"([^"]+)"', source)}
    assert len(named) >= 4
    assert named - titles == set()
