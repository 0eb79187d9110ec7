"""Prints the table of figures at the end of a run, which fails if a target is missed.

It is written where `--table` says if nothing failed.
"""

from pathlib import Path

import pytest
from figures import FIGURES


def pytest_addoption(parser):
    parser.addoption("--table", type=Path, help="a Markdown file for the table")
    parser.addoption("--append", action="store_true", help="add to the lines of the table, which are of other files")


@pytest.fixture(scope="session")
def figures():
    """Where the files here put their lines."""
    return FIGURES


def pytest_sessionfinish(session, exitstatus):
    if FIGURES.missed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if FIGURES.lines:
        terminalreporter.write_line(f"\n{FIGURES}")
        if config.option.table and exitstatus == pytest.ExitCode.OK and not FIGURES.missed:
            FIGURES.write(config.option.table, config.option.append)
