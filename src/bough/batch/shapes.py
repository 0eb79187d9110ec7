"""The sizes that arrays are padded to, and the tiles that loops go by; what is compiled depends on these alone."""

from __future__ import annotations

from bough._arrays import Integers

NODE_TILE = 64
"""Nodes inside the tree that are drawn at once."""
GROUP_TILE = 512
"""Groups of untouched actions."""
CLASS_TILE = 8
"""Covariances that are projected at once."""
_LEAF_TILE = {"cpu": 512, "gpu": 2048}
_WIDTHS = (2, 4, 6, 8, 10, 12, 16, 24, 32, 64)  # actions below one parent that stand side by side
QUANTILE_FROM, QUANTILE_STEP, QUANTILES = -42.0, 1.0 / 176.0, 8192
"""The tables of quantiles: the logarithm of the first rate, the step, and how many there are."""
LONGEST_WRITTEN_OUT = 12
"""Numbers of a context up to which a law is written out, and not a matrix product."""


def padded(n: int, least: int) -> int:
    """The smallest power of two, times `least`, that is not below n.

    >>> padded(3, 64), padded(65, 64), padded(1000, 64)
    (64, 128, 1024)
    """
    size = least
    while size < n:
        size *= 2
    return size


def row_tile(width: int, kind: str) -> int:
    """How many rows of that width are scored at once on a kind of device."""
    size = 1
    while 2 * size * width <= _LEAF_TILE[kind]:
        size *= 2
    return size


def row_width(counts: Integers) -> int:
    """How wide rows are to be, for parents with so many touched actions: little padding, and few rows."""
    cost = {width: int((-(-counts // width) * (width + 1)).sum()) for width in _WIDTHS}
    return min(_WIDTHS, key=cost.__getitem__)
