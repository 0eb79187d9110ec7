"""What to install where a package is missing."""

from __future__ import annotations


def install(extra: str) -> str:
    """How to install an extra, from an index and from a clone.

    >>> install("plot")
    "pip install 'bough[plot]', or '.[plot]' in a clone"
    """
    return f"pip install 'bough[{extra}]', or '.[{extra}]' in a clone"
