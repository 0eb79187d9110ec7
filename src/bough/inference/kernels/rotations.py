"""Givens rotations: the one way in which rows are taken into triangles."""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel


@kernel
def rotation(diagonal: float, entry: float) -> tuple[float, float]:
    """The cosine and the sine that bring an entry to zero against the diagonal above it; either may be tiny."""
    length = math.hypot(diagonal, entry)
    return diagonal / length, entry / length


@kernel
def fold(
    row: Floats,  # (d + 1,)
    triangles: Floats,  # (n, room)
    which: int,
    start: int,  # where in its row of `triangles` the packed triangle begins
    combination: Floats,  # (d + 1,)
) -> float:
    """Rotates a row [x | y] into a packed triangle [R | z], overwriting both; returns what is left of y.

    Row k of the triangle has the entries k to d - 1 of R and then its z; the rows stand one after the other. Overwrites
    combination with how the given row is made of the new triangle's rows and, last, of what is left.
    """
    d = len(row) - 1
    left = 1.0
    for k in range(d):
        combination[k] = 0.0
        if row[k] != 0.0:
            c, s = rotation(triangles[which, start], row[k])
            for j in range(k, d + 1):
                a = triangles[which, start + j - k]
                triangles[which, start + j - k] = c * a + s * row[j]
                row[j] = c * row[j] - s * a
            combination[k] = s * left
            left *= c
        start += d + 1 - k
    combination[d] = left
    return float(row[d])


@kernel
def enter(
    own: Floats,  # (d,)
    right: Floats,  # (d,)
    r: float,
    slot: int,
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    cosine: Floats,  # (d,) scratch
    sine: Floats,  # (d,) scratch
) -> float:
    """Rotates a row [own | right | r] into the rows [C | E | f] of a slot, overwriting both; own comes out as zero.

    Returns what is left of r. The diagonal of C is 1 or more, so that squares do no harm.
    """
    d = len(own)
    for k in range(d):
        length = math.sqrt(triangle[slot, k, k] ** 2 + own[k] * own[k])
        c = triangle[slot, k, k] / length
        s = own[k] / length
        cosine[k] = c
        sine[k] = s
        for j in range(k, d):
            a = triangle[slot, k, j]
            b = own[j]
            triangle[slot, k, j] = c * a + s * b
            own[j] = c * b - s * a
        a = target[slot, k]
        target[slot, k] = c * a + s * r
        r = c * r - s * a
    for j in range(d):
        left = right[j]
        for k in range(d):
            a = pull[slot, j, k]
            pull[slot, j, k] = cosine[k] * a + sine[k] * left
            left = cosine[k] * left - sine[k] * a
        right[j] = left
    return r


@kernel
def fold_dense(row: Floats, matrix: Floats) -> None:
    """Rotates row (n,) into matrix (d, n), triangular in its first d columns; overwrites both, row with zeros there."""
    for k in range(len(matrix)):
        if row[k] != 0.0:
            c, s = rotation(matrix[k, k], row[k])
            for j in range(k, len(row)):
                a = matrix[k, j]
                matrix[k, j] = c * a + s * row[j]
                row[j] = c * row[j] - s * a
