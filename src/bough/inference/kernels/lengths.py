"""Lengths on the lines of the capped search: quick upper bounds on rates; see docs/explanation/decisions.md.

A length may be any number that is at least the rate it stands for. So tables serve, read by chords: -log Phi is convex,
and so is the upper tail of a normal above its mean, so that a chord is never below it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough.inference.kernels.jit import kernel

N_REFERENCES = 3
N_CAPS = 6
N_COLUMNS = N_REFERENCES * N_CAPS
LONGEST = 40.0  # an infinite length would hide what lies behind it; a point is beyond this with probability 4e-18

REACH = 9.0  # deviations that the tables go either way
PER_UNIT = 64  # entries
_EDGES = np.arange(-REACH * PER_UNIT, REACH * PER_UNIT + 1) / PER_UNIT
_BELOW = 1.0 + 2e-5  # chords are this much too low at most, where the tail is concave
_UPPER = np.array([0.5 * math.erfc(edge / math.sqrt(2.0)) for edge in _EDGES])
_LOWER = np.array([0.5 * math.erfc(-edge / math.sqrt(2.0)) for edge in _EDGES])
_RATES = np.where(_EDGES > 0.0, -np.log1p(-np.minimum(_UPPER, 0.5)), -np.log(_LOWER))
_UPPER = np.minimum(_UPPER * _BELOW, 1.0)
_RATES, _UPPER = np.append(_RATES, _RATES[-1]), np.append(_UPPER, _UPPER[-1])  # beyond the last, what is there
_LAST = float(len(_EDGES) - 1)

_SHORT = 0.05  # below, the first terms of a series do
_PER_LENGTH, _PER_PROBABILITY, _LIKELY = 64.0, 512.0, 0.95
_LAST_LENGTH = LONGEST * _PER_LENGTH - 1.0
# It is concave, and so its chords are too low, by less than this of it.
_POINTS = np.minimum(-np.expm1(-np.arange(LONGEST * _PER_LENGTH + 1.0) / _PER_LENGTH) * (1.0 + 7e-4), 1.0)
_LENGTHS = -np.log1p(-np.arange(_PER_PROBABILITY) / _PER_PROBABILITY)  # convex


@kernel
def long_enough(x: float) -> Any:
    """At least -log Phi(x), or `LONGEST` where that is more: the length of an action, x deviations from a reference."""
    return rate_at((x + REACH) * PER_UNIT)


@kernel
def rate_at(place: float) -> Any:
    """`long_enough` of a place in the table."""
    place = min(max(place, 0.0), _LAST)
    i = int(place)
    return min(_RATES[i] + (place - i) * (_RATES[i + 1] - _RATES[i]), LONGEST)


@kernel
def upper_tail(x: float) -> Any:
    """At least P(z > x) of a standard normal."""
    place = min(max((x + REACH) * PER_UNIT, 0.0), _LAST)
    i = int(place)
    return _UPPER[i] + (place - i) * (_UPPER[i + 1] - _UPPER[i])


@kernel
def some_point(length: float) -> Any:
    """At least 1 - exp(-length), the probability of a point on a line of that length."""
    if length < _SHORT:
        return length * (1.0 - 0.5 * length * (1.0 - length / 3.0))
    place = min(length * _PER_LENGTH, _LAST_LENGTH)
    i = int(place)
    return _POINTS[i] + (place - i) * (_POINTS[i + 1] - _POINTS[i])


@kernel
def length_of(probability: float) -> Any:
    """At least -log(1 - probability), or `LONGEST`."""
    if probability < _SHORT:
        return probability * (1.0 + probability * (0.5 + 0.36 * probability))
    if probability < _LIKELY:
        place = probability * _PER_PROBABILITY
        i = int(place)
        return _LENGTHS[i] + (place - i) * (_LENGTHS[i + 1] - _LENGTHS[i])
    return min(-math.log1p(-probability), LONGEST) if probability < 1.0 else LONGEST
