"""Pages that are made from the code are as the code makes them, and numbers that stand in two places are the same."""

from pathlib import Path

import pytest

from pages import DOCS
from places import ROOT


def test_the_page_of_the_http_interface_is_made_from_the_openapi_document():
    http_reference = pytest.importorskip("http_reference")
    assert http_reference.PAGE.read_text() == http_reference.page()


def rows(path: Path, after: str, before: str) -> list[list[str]]:
    """The cells of the table between two texts, without its head."""
    text = path.read_text().partition(after)[2].partition(before)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_the_readme_has_the_five_speeds_that_the_benchmarks_have_written():
    shown = rows(ROOT / "README.md", "## Speed", "## When not")
    measured = rows(DOCS / "results" / "performance-table.md", "make bench", "<!-- all -->")
    assert len(shown) == 5
    assert shown == [row[:4] for row in measured]
