"""The grid over which noise variances are integrated out, for one law of them; kernels/noise_grid.py has the sums."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.noise_grid import LEAST_ROOM
from bough.model.noise import PerAction

_WIDEST_STEP = 0.5  # of a log variance: the sums over it are off by about 1e-8
_STEP = 0.8  # of the spread, where that is less
_REACH = 9.5  # spreads that a grid reaches below and above the median


def noise_grid(noise: PerAction, widest_step: float = _WIDEST_STEP) -> Floats:
    """(1 + G, 4) the grid for this law, as kernels/noise_grid.py names its columns and those of its first row.

    >>> from bough.model.noise import per_action
    >>> len(noise_grid(per_action(1.0, 1.1, 0.01))), len(noise_grid(per_action(1.0, 0.0, 0.01)))
    (44, 2)
    """
    centre, spread, floor = math.log(noise.median), noise.spread, noise.floor
    if spread == 0.0:
        u, log_prior, step = np.array([centre]), np.zeros(1), 1.0
    else:
        step = min(widest_step, _STEP * spread)
        reach = math.ceil(_REACH * spread / step)
        places = np.arange(-reach, reach + 1)
        u = centre + step * places
        log_prior = -0.5 * (step / spread * places) ** 2 + math.log(step / spread) - 0.5 * math.log(2.0 * math.pi)
    w = floor + np.exp(u)
    about = np.array([[centre, spread, floor, step]])
    return np.concatenate([about, np.stack([u, w, np.log(w), log_prior], axis=1)])


def room_for(grid: Floats) -> int:
    """How many components a mixture may have."""
    return max(len(grid) - 1, LEAST_ROOM)
