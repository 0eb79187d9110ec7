"""Choosing the largest of some scores."""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel


@kernel
def choose(score: Floats, rng: np.random.Generator) -> int:
    """The largest score's place, ties broken as `policies.base.largest` breaks them."""
    best = 0
    ties = 1
    for k in range(1, len(score)):
        if score[k] > score[best]:
            best = k
            ties = 1
        elif score[k] == score[best]:
            ties += 1
    if ties > 1:
        wanted = int(rng.random() * ties)
        for k in range(best, len(score)):
            if score[k] == score[best]:
                if wanted == 0:
                    return k
                wanted -= 1
    return best
