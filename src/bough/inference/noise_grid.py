"""The grid over which noise variances are integrated out, for one law of them; kernels/noise_grid.py has the sums."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.exponential import in_lanes
from bough.inference.kernels.noise_grid import FIRST_POINT, LOG_PRIOR, W
from bough.inference.kernels.noise_nodes import LEAST_ROOM, MOST_STRIDE
from bough.model.noise import PerAction

_REACH = 9.5  # spreads that a grid reaches below and above the median
_STRIDE = 64  # points of the grid in the widest step


class Fineness(NamedTuple):
    """How fine the sums over noise variances are."""

    widest_step: float
    """As a log variance."""
    step: float
    """The widest as a share of the spread, where that is less."""
    steps: float
    """In one deviation of an action's log variance, at least."""
    fall_below: float
    """How far below the top, as a logarithm, what is left out is where noise is less."""
    fall_above: float
    """The same where noise is more, which an outlier makes up for: one of s deviations by s^2 / 2."""


FINE = Fineness(0.5, 0.8, 1.25, 22.0, 45.0)
"""Off by less than 1e-6 where an action's mean is up to four deviations from what others say of it."""
FIT = Fineness(1.0, 1.0, 1.0, 16.0, 28.0)
"""Two thirds as many steps: the log evidence of ten thousand actions is off by less than 0.05."""


def noise_grid(noise: PerAction, fineness: Fineness = FINE) -> Floats:
    """(2 + G, 4) the grid for this law, as kernels/noise_grid.py names its columns and those of its first rows.

    >>> from bough.model.noise import per_action
    >>> len(noise_grid(per_action(1.0, 1.1, 0.01))), len(noise_grid(per_action(1.0, 0.0, 0.01)))
    (2691, 3)
    """
    centre, spread, floor = math.log(noise.median), noise.spread, noise.floor
    if spread == 0.0:
        places, step, log_prior = np.zeros(1), 1.0, np.zeros(1)
    else:
        widest = min(fineness.widest_step, fineness.step * spread)
        step, reach = widest / _STRIDE, _STRIDE * math.ceil(_REACH * spread / widest)
        places = np.arange(-reach, reach + 1, dtype=np.float64)
        log_prior = -0.5 * np.square(step / spread * places)
    w = floor + np.exp(centre + step * places)
    about = np.array([[centre, spread, floor, step], [*fineness[2:], _STRIDE]])
    return np.concatenate([about, np.stack([w, np.log(w), 0.5 / w, log_prior], axis=1)])


def prior_mixture(grid: Floats) -> tuple[Floats, Floats]:
    """(K,) twice: the noise variances of an action without rewards, and their weights."""
    points = grid[FIRST_POINT :: int(grid[1, MOST_STRIDE])]
    weights = np.exp(points[:, LOG_PRIOR])
    return points[:, W], weights / weights.sum()


def room_for(grid: Floats) -> int:
    """How many components a mixture may have."""
    return in_lanes(max(len(prior_mixture(grid)[0]), LEAST_ROOM))
