"""Prints the table of ratios at the end of a run."""

import pytest
from table import TABLE


@pytest.fixture(scope="session")
def table():
    """Where benchmarks put their lines."""
    return TABLE


def pytest_terminal_summary(terminalreporter):
    if TABLE.lines:
        terminalreporter.write_line(f"\n{TABLE}")
