"""The sigmoid of a normal score: its mean and its moments."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr

from bough._arrays import Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_WIDE = 1.5  # a standard deviation beyond which the sigmoid is closer to a step than to a polynomial
_LAGUERRE, _LAGUERRE_WEIGHTS = np.polynomial.laguerre.laggauss(40)
_SLICE = 1 << 16  # rows that are integrated at once


def logistic_mean(mean: Floats, variance: Floats) -> Floats:
    """The mean of sigmoid(s), s normal with these means and variances, to about 1e-8.

    >>> import numpy
    >>> logistic_mean(numpy.array([0.0, -3.0, 2.0]), numpy.array([1.0, 0.0, 100.0])).round(4)
    array([0.5   , 0.0474, 0.578 ])
    """
    mean, deviation = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.sqrt(variance))
    out = np.empty(mean.shape)
    flat_mean, flat_deviation, flat = mean.reshape(-1), deviation.reshape(-1), out.reshape(-1)
    for start in range(0, len(flat), _SLICE):
        m, s = flat_mean[start : start + _SLICE], flat_deviation[start : start + _SLICE]
        narrow = np.einsum("nk,k->n", expit(m[:, None] + s[:, None] * _NODES), _WEIGHTS)  # equal where rows are
        value = np.where(s <= _WIDE, narrow, 0.0)
        wide = s > _WIDE
        value[wide] = _wide_mean(m[wide], s[wide])
        flat[start : start + _SLICE] = value
    return out


def _wide_mean(m: Floats, s: Floats) -> Floats:
    """A step at zero, and what the sigmoid differs from it: sigmoid(-|s|), which decays as exp(-|s|)."""
    x = _LAGUERRE
    off = _LAGUERRE_WEIGHTS / (1.0 + np.exp(-x))  # sigmoid(-x) e^x
    density = np.exp(-0.5 * ((x + m[:, None]) / s[:, None]) ** 2) - np.exp(-0.5 * ((x - m[:, None]) / s[:, None]) ** 2)
    return np.asarray(ndtr(m / s) + np.einsum("nk,k->n", density, off) / (s * np.sqrt(2.0 * np.pi)))


def logistic_moments(mean: float, variance: float) -> tuple[float, float]:
    """The mean and the variance of sigmoid(s), s normal, by a fine sum.

    >>> moments = logistic_moments(0.0, 4.0)
    >>> round(moments[0], 6), round(moments[1], 6)
    (0.5, 0.098574)
    """
    z = np.linspace(-9.0, 9.0, 20_001)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    values = expit(mean + np.sqrt(variance) * z)
    average = float(weight @ values)
    return average, float(weight @ (values - average) ** 2)
