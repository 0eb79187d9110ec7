"""The grid over which noise variances are integrated out, for one law of them; kernels/noise_grid.py has the sums."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.noise_grid import FIRST_POINT, LEAST_ROOM
from bough.model.noise import PerAction

_REACH = 9.5  # spreads that a grid reaches below and above the median


class Fineness(NamedTuple):
    """How fine the sums over noise variances are."""

    widest_step: float
    """Of the shared grid, as a log variance."""
    step: float
    """Of the spread, where that is less."""
    own_steps: float
    """Of an action's own grid, in one deviation of its log variance."""
    fall_below: float
    """How far below the top, as a logarithm, what is left out is where noise is less."""
    fall_above: float
    """The same where noise is more, which an outlier makes up for: one of s deviations by s^2 / 2."""


FINE = Fineness(0.5, 0.8, 1.25, 22.0, 45.0)
"""Off by less than 1e-6 where an action's mean is up to four deviations from what others say of it."""
ROUGH = Fineness(1.0, 1.0, 1.0, 12.0, 20.0)
"""A third as many steps, for the first part of a search."""


def noise_grid(noise: PerAction, fineness: Fineness = FINE) -> Floats:
    """(2 + G, 4) the grid for this law, as kernels/noise_grid.py names its columns and those of its first rows.

    >>> from bough.model.noise import per_action
    >>> len(noise_grid(per_action(1.0, 1.1, 0.01))), len(noise_grid(per_action(1.0, 0.0, 0.01)))
    (45, 3)
    """
    centre, spread, floor = math.log(noise.median), noise.spread, noise.floor
    if spread == 0.0:
        places, step, log_prior = np.zeros(1), 1.0, np.zeros(1)
    else:
        step = min(fineness.widest_step, fineness.step * spread)
        reach = math.ceil(_REACH * spread / step)
        places = np.arange(-reach, reach + 1, dtype=np.float64)
        log_prior = -0.5 * np.square(step / spread * places) + math.log(step / spread) - 0.5 * math.log(2.0 * math.pi)
    u = centre + step * places
    w = floor + np.exp(u)
    about = np.array([[centre, spread, floor, step], [*fineness[2:], 0.0]])
    return np.concatenate([about, np.stack([u, w, np.log(w), log_prior], axis=1)])


def room_for(grid: Floats) -> int:
    """How many components a mixture may have."""
    return max(len(grid) - FIRST_POINT, LEAST_ROOM)
