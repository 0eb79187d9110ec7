"""An exponential that compilers can make one of vectors, where a library's is one call after another."""

from __future__ import annotations

from bough.inference.kernels.jit import kernel

LANES = 8
LOWEST = -44.0  # e to the power of that is as good as nothing beside 1


@kernel
def exp_of(x: float) -> float:
    """e to the power of x, which is at most 0, to eleven digits; below `LOWEST`, that of `LOWEST`.

    A series for x / 64, and six squarings.
    """
    r = max(x, LOWEST) * 0.015625
    high = 1.0 / 40320.0 + r * (1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * (1.0 / 39916800.0 + r / 479001600.0)))
    low = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * high)))
    e = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * low)))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@kernel
def in_lanes(n: int) -> int:
    """The least number of rounds of a short loop, of n or more, that goes into vectors without a rest."""
    return (n + LANES - 1) // LANES * LANES
