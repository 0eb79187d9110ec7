"""Rows of text as a Markdown table: one for a terminal, one for the docs. validation/ uses it, too."""

from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows) -> str:
    """For a terminal: every column as wide as its widest cell. The first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in ruled
    )


def compact(rows: Rows) -> str:
    """For the docs, as mdformat leaves it. The first row is the head."""
    ruled = [rows[0], ["--"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in row)} |" for row in ruled)
