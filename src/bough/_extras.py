"""What to install where a package is missing."""

from __future__ import annotations


def install(extra: str) -> str:
    """How to install an extra: from a clone, and from an index that has bough.

    >>> install("plot")
    "pip install '.[plot]' in a clone of bough, or 'bough[plot]' from an index"
    """
    return f"pip install '.[{extra}]' in a clone of bough, or 'bough[{extra}]' from an index"
