"""Quantiles of the standard normal by the rate -log Phi(q), accurate in both tails."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

_ROOT_HALF = math.sqrt(0.5)


@kernel
def rate(q: float) -> float:
    """-log Phi(q), the rate at which one standard normal is above q."""
    if q > 0.0:
        return -math.log1p(-0.5 * math.erfc(q * _ROOT_HALF))
    return -math.log(0.5 * math.erfc(-q * _ROOT_HALF))


@kernel
def _rational(r: float, top: Floats, bottom: Floats) -> float:
    over = 0.0
    under = 0.0
    for i in range(len(top)):
        over = over * r + top[i]
        under = under * r + bottom[i]
    return over / under


# Coefficients of Wichura's algorithm AS 241, highest power first: the centre, the tail, the far tail.
_CENTRE = (
    np.array([2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
              1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080]),
    np.array([5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
              5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0]),
)  # fmt: skip
_TAIL = (
    np.array([7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
              3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734]),
    np.array([1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
              6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0]),
)  # fmt: skip
_FAR = (
    np.array([2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
              2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720]),
    np.array([2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
              1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0]),
)  # fmt: skip


@kernel
def _lower(p: float) -> float:
    """The standard normal quantile of a probability of at most 1/2, to 16 digits."""
    off = p - 0.5
    if off > -0.425:
        return off * _rational(0.180625 - off * off, _CENTRE[0], _CENTRE[1])
    r = math.sqrt(-math.log(p))
    if r <= 5.0:
        return -_rational(r - 1.6, _TAIL[0], _TAIL[1])
    return -_rational(r - 5.0, _FAR[0], _FAR[1])


@kernel
def quantile(t: float) -> float:
    """The q with -log Phi(q) = t: accurate for small t, the upper tail, and for large t, the lower."""
    return _lower(math.exp(-t)) if t > math.log(2.0) else -_lower(-math.expm1(-t))
