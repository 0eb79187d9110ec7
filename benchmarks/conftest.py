"""Prints the table of ratios at the end of a run, and writes it where `--table` says if nothing failed."""

from pathlib import Path

import pytest
from table import TABLE


def pytest_addoption(parser):
    parser.addoption("--table", type=Path, help="a Markdown file for the table")
    parser.addoption("--keep", action="store_true", help="keep the lines of the table that this run does not measure")


@pytest.fixture(scope="session")
def table():
    """Where benchmarks put their lines."""
    return TABLE


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if TABLE.lines:
        terminalreporter.write_line(f"\n{TABLE}")
        if config.option.table and exitstatus == pytest.ExitCode.OK:
            TABLE.write(config.option.table, keep=config.option.keep)
