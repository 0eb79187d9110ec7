"""Polya-Gamma variables: given one, a reward of 0 or 1 says exp(kappa s - omega s^2 / 2) of its score s.

Of polyagamma's methods only Devroye's is used. In version 2.0.2 the others are no good here: left to itself it takes
a normal variable above shape 50, "alternate" has a wrong mean from shape 2 on, and "saddle" at large tilts. Devroye's
takes time in proportion to the shape, and is wrong itself at tilts of some hundreds. So many trials go by the gamma
variables that a Polya-Gamma one is a sum of, and far tilts by an inverse Gaussian one.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from bough._arrays import Floats
from bough._extras import install

_ONE_BY_ONE = 20.0  # up to this shape Devroye's method is about as fast as the gamma variables
_FAR = 30.0  # beyond this tilt the inverse Gaussian variable differs by a probability of shape * exp(-tilt)
_GAMMAS = 24  # how many of the infinitely many gamma variables are drawn, each by itself
_NEAR = 0.05  # below this tilt moments come from their power series, where their formulas lose digits


def polya_gamma(rng: np.random.Generator, shape: Floats, tilt: Floats) -> Floats:
    """(n,) a draw of PG(shape, tilt) for each of n whole shapes and tilts.

    >>> import numpy
    >>> shapes, tilts = numpy.array([1.0, 1e3, 1e6]), numpy.array([0.5, -2.0, 90.0])
    >>> polya_gamma(numpy.random.default_rng(0), shapes, tilts).astype(int)
    array([   0,  195, 5555])
    """
    try:
        devroye = import_module("polyagamma").random_polyagamma
    except ImportError:
        raise ValueError(f"Gibbs sampling takes polyagamma; {install('mcmc')}") from None
    tilt = np.abs(tilt)
    far = tilt > _FAR
    few = ~far & (shape <= _ONE_BY_ONE)
    many = ~far & ~few
    omega = np.empty(len(shape))
    if far.any():
        omega[far] = rng.wald(0.5 * shape[far] / tilt[far], 0.25 * shape[far] ** 2)
    if few.any():
        omega[few] = devroye(shape[few], tilt[few], method="devroye", random_state=rng)
    if many.any():
        multiple, scale = gamma_parts(tilt[many])
        omega[many] = (scale * rng.standard_gamma(shape[many, None] * multiple)).sum(axis=1)
    return omega


def gamma_parts(tilt: Floats) -> tuple[Floats, Floats]:
    """(n, 25) and (n, 25), multiple and scale: PG(b, tilt) is the sum of scale * Gamma(b * multiple).

    In truth the sum is infinite and every multiple is 1. All that comes after the first 24, less than 0.004 of the
    variance, is one variable of the right mean and variance; the skewness is then off by less than 4e-5 / sqrt(b).
    """
    k = np.arange(_GAMMAS) + 0.5
    scale = 0.5 / (np.square(np.pi * k) + np.square(0.5 * tilt)[:, None])
    near = tilt < _NEAR
    z, square = np.where(near, 1.0, tilt), np.square(tilt)
    t = np.tanh(0.5 * z)
    mean = np.where(near, 1 / 4 - square / 48 + square**2 / 480, 0.5 * t / z)
    variance = np.where(near, 1 / 24 - square / 120 + 17 * square**2 / 13440, (2 * t - z * (1 - t * t)) / (4 * z**3))
    mean -= scale.sum(axis=1)
    variance -= np.square(scale).sum(axis=1)
    multiple = np.column_stack([np.ones_like(scale), mean**2 / variance])
    return multiple, np.column_stack([scale, variance / mean])
