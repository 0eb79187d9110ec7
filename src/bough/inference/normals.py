"""Standard normals from a numpy generator, drawn in compiled code: numpy's own stream at twice its speed."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.normals import fill

MANY = 2_000  # below this, handing the generator to compiled code takes longer than it saves


def scaled_normals(rng: np.random.Generator, shape: tuple[int, ...], scale: float) -> Floats:
    """Standard normals times a factor: what is affine in them deviates from its mean by so much more or less."""
    normals = standard_normals(rng, shape)
    if scale != 1.0:
        normals *= scale
    return normals


def standard_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """What `rng.standard_normal(shape)` would give.

    >>> import numpy
    >>> ours = standard_normals(numpy.random.default_rng(0), (2, 3))
    >>> numpy.allclose(ours, numpy.random.default_rng(0).standard_normal((2, 3)), rtol=1e-15)
    True
    """
    if math.prod(shape) < MANY:
        return rng.standard_normal(shape)
    out = np.empty(shape)
    with rng.bit_generator.lock:  # numpy's own methods take it; compiled code has to be given it
        fill(rng, out.ravel())
    return out
