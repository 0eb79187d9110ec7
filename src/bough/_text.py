"""Numbers as people read them."""

from __future__ import annotations

import math


def rounded(value: float, width: float) -> str:
    """A number with as many decimals as an interval of that width justifies: two digits of the width.

    >>> rounded(0.28765, 0.27), rounded(1234.5678, 41.0), rounded(-1e-9, 41.0)
    ('0.29', '1,235', '0')
    """
    decimals = 1 - math.floor(math.log10(width)) if 0.0 < width < math.inf else 2
    return f"{value:z,.{min(max(decimals, 0), 12)}f}"  # z: no minus before a zero
