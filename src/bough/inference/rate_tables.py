"""Tables of the best action's law in a regular tree, where the subtrees of a depth are all alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from bough._arrays import Floats, Nodes

_PER_DEVIATION = 8  # entries of a table in one standard deviation of the narrowest step
_LARGEST_GRID = 20_000


class RateTables(NamedTuple):
    """The rate at which the best action below a node is above a value, by depth, on an even grid of values."""

    rates: Floats  # (height + 1, n)
    log_rates: Floats  # (height + 1, n)
    start: float
    step: float


def rate_tables(deviation: Floats, branching: Nodes) -> RateTables | None:
    """-log P(no action below a node of each depth is above x, from its parent's value); None if a grid is too large.

    With U the probability that some action is: U of a leaf is a normal's upper tail. The best below b alike children is
    above x with probability 1 - (1 - U)^b, and the node's own step smooths that: a sum over the grid that is exact to
    rounding, since the step's density is sampled finely and the rest is smooth.
    """
    step = float(deviation[deviation > 0.0].min()) / _PER_DEVIATION
    half = int(np.ceil(10.0 * np.sqrt(np.square(deviation[1:]).sum()) / step))
    if half > _LARGEST_GRID:
        return None
    grid = step * np.arange(-half, half + 1)
    above = np.empty((len(deviation), len(grid)))
    above[-1] = ndtr(-grid / deviation[-1])
    for depth in range(len(deviation) - 2, 0, -1):
        with np.errstate(divide="ignore"):
            below = -np.expm1(branching[depth] * np.log1p(-np.minimum(above[depth + 1], 1.0)))
        above[depth] = _smoothed(below, deviation[depth] / step)
    above[0] = 0.0  # the root is never untouched below another
    with np.errstate(divide="ignore"):
        rates = -np.log1p(-np.minimum(above, 1.0))
        rates = np.minimum(rates, 700.0)
        return RateTables(rates, np.log(np.maximum(rates, 1e-300)), float(grid[0]), step)


def _smoothed(upper: Floats, deviation: float) -> Floats:
    """The upper tail after adding a normal step, all in units of the grid: ones to the left, zeros to the right."""
    if deviation == 0.0:
        return upper
    reach = int(np.ceil(9.5 * deviation))
    weights = np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / deviation))
    padded = np.concatenate([np.ones(reach), upper, np.zeros(reach)])
    return np.asarray(np.convolve(padded, weights / weights.sum(), mode="valid"))
