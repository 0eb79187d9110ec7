"""The noise variance of one action, integrated out: its rewards as a finite mixture of normals.

With w = floor + e^u the noise variance, n rewards of mean y and spread S (their squares around it) say of the action's
parameter t

    L(t) = (integral over u) p(u) (2 pi w)^(-(n - 1) / 2) n^(-1/2) exp(-S / (2 w)) N(y; t, w / n),

which a sum over even steps of u makes a mixture of normals around y. Sums of smooth functions over even steps are off
by exp(-2 pi d / step), d how far from the real line they stay smooth, so that few steps are enough. All actions share
a grid that is finer than most need, so that no action computes a logarithm: each takes every so many of its points, as
its law of u is narrow or wide. Where that does not do, an action has nodes of its own (noise_nodes.py).
"""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.noise_nodes import (
    CENTRE,
    FALL_ABOVE,
    FALL_BELOW,
    FINE_STEP,
    MOST_STRIDE,
    ROOM_TO_MOVE,
    SPREAD_OF_U,
    STEP,
    STEPS,
    is_floored,
    may_have_two_modes,
    own_nodes,
    slopes_of,
)

# Columns of the shared grid: variance, its logarithm, half its inverse, and the log of the prior density.
W, LOG_W, HALF_OVER_W, LOG_PRIOR = range(4)
# Its first two rows are no points; they say what the noise is and how fine sums are, as noise_nodes.py names them.
FIRST_POINT = 2

_LEAST_STRIDE = 4  # in points, at which a mode is near enough; who needs it more exactly has nodes of its own
_WIDE = 4  # of the widest steps, that a search for the highest point begins with
_LOG_2_PI = math.log(2.0 * math.pi)


@kernel
def _grid_height(j: int, half: float, spread: float, points: Floats) -> float:
    """`height_of` a point of the shared grid."""
    return float(points[j, LOG_PRIOR] - half * points[j, LOG_W] - spread * points[j, HALF_OVER_W])


@kernel
def _highest(half: float, spread: float, points: Floats, stride: int) -> tuple[int, float]:
    """About the highest point of the grid, and how high: of wide steps first, then of narrower ones around it."""
    best, top = 0, -math.inf
    for j in range(0, len(points), stride):
        found = _grid_height(j, half, spread, points)
        if found > top:
            best, top = j, found
    while stride > _LEAST_STRIDE:
        stride //= 2
        for j in (best - stride, best + stride):
            if 0 <= j < len(points):
                found = _grid_height(j, half, spread, points)
                if found > top:
                    best, top = j, found
                    break
    return best, top


@kernel
def _grid_nodes(
    best: int, top: float, stride: int, half: float, spread: float, grid: Floats, variance: Floats, height: Floats
) -> tuple[int, int]:
    """Overwrites variance and height with every so many points of the grid about the best; how many, and the first.

    None, where they would be more than the grid has.
    """
    fine, points = grid[1], grid[FIRST_POINT:]
    first, end, n = best, len(points) - 1, 0
    while first >= stride and _grid_height(first - stride, half, spread, points) >= top - fine[FALL_BELOW]:
        first -= stride
    j = first
    while j <= end and n < len(height):
        found = _grid_height(j, half, spread, points)
        if j > best and found < top - fine[FALL_ABOVE]:
            break
        variance[n], height[n] = points[j, W], found
        j += stride
        n += 1
    return (n if first >= stride and j <= end and n < len(height) else 0), first


@kernel
def components(
    count: float,
    spread: float,
    off: float,  # the square of how far the mean of the rewards is from what others say of the action
    v: float,  # the action's own variance
    grid: Floats,  # (2 + G, 4)
    variance: Floats,  # (room,)
    weight: Floats,  # (room,)
) -> tuple[int, float, float, float, float]:
    """Overwrites variance (ascending) and weight: the mixture's.

    Weights sum to 1. Returns how many components there are, and the log of what weights were divided by: L(t) is the
    exponential of that times the mixture's density at the mean of the rewards. Then the first component's u, and the
    step to the next, and to each after it; and for which `off`, at most, the mixture is good.
    """
    half = 0.5 * (count - 1.0)
    noise, fine, points = grid[0], grid[1], grid[FIRST_POINT:]
    if len(points) == 1:
        variance[0], weight[0] = points[0, W], 1.0
        constant = -half * (_LOG_2_PI + points[0, LOG_W]) - spread * points[0, HALF_OVER_W] - 0.5 * math.log(count)
        return 1, constant, noise[CENTRE], 0.0, math.inf
    widest, end = int(fine[MOST_STRIDE]), len(points) - 1
    best, top = _highest(half, spread, points, _WIDE * widest)
    u, w = noise[CENTRE] + (best - end // 2) * noise[STEP], points[best, W]
    reach = fine[FALL_ABOVE] * (v + w / count)  # at which wide noise, left out, gains half of its fall
    _, curve = slopes_of(u, w, half, spread, noise)
    stride, n, first = widest, 0, best
    if curve < 0.0:
        stride = min(stride, int(1.0 / (fine[STEPS] * math.sqrt(-curve) * noise[STEP])))
    if is_floored(w, half, noise):
        stride = min(stride, int(FINE_STEP / noise[STEP]))
    if stride > 0 and off <= reach and not may_have_two_modes(half, spread, noise):
        n, first = _grid_nodes(best, top, stride, half, spread, grid, variance, weight)
    if n > 0:
        u, step = noise[CENTRE] + (first - end // 2) * noise[STEP], stride * noise[STEP]
    else:
        off = 0.0 if off <= reach else off
        reach = max(reach, ROOM_TO_MOVE * off)
        about = widest * noise[STEP]
        low, high = u - about, u + about
        if best == 0:  # beyond the grid, but no further than all rewards could move it
            low = min(low, noise[CENTRE] - half * noise[SPREAD_OF_U] ** 2 - 1.0)
        elif best == end:
            high = max(high, math.log(max(spread, 1e-300)) + 1.0)
        n, u, step = own_nodes(u, low, high, about, half, spread, count, off, v, grid, variance, weight)
        for k in range(n):
            top = weight[k] if k == 0 else max(top, weight[k])
    total = 0.0
    for k in range(n):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    inverse = 1.0 / total
    for k in range(n):
        weight[k] *= inverse
    # of n^(-1/2), the density of u, and the steps
    factor = total * step / (noise[SPREAD_OF_U] * math.sqrt(count))
    return n, top - (half + 0.5) * _LOG_2_PI + math.log(factor), u, step, reach


@kernel
def tilted(off: float, v: float, c: Floats, weight: Floats, constant: float) -> tuple[float, float, float, float]:
    """The log of the integral of L times a normal density of variance v, with y off its mean; and three sums.

    c has the variance of y around t in each component, w / n. The sums are over p = 1 / (v + c), weighted with the
    component's part of the integral: their mean; that less off^2 times their variance, q; and 1 - v q, which is not
    made by that difference, since v q may be 1 but for a rounding error. The first two derivatives of the log integral
    by the normal's mean are off times the first sum, and minus q.
    """
    n = len(c)
    middle = c[n // 2]
    widest, some = 1.0 / (v + c[n - 1]), 1.0 / (v + middle)
    z, first, second, open_ = 0.0, 0.0, 0.0, 0.0
    half = 0.5 * off * off
    for k in range(n):
        p = 1.0 / (v + c[k])
        part = weight[k] * math.sqrt(p) * math.exp(-half * (p - widest))
        more = (middle - c[k]) * p * some  # p - some, also where the two are nearly the same
        z += part
        first += part * more
        second += part * more * more
        open_ += part * c[k] * p
    first /= z
    spread = off * off * max(second / z - first * first, 0.0)
    p = some + first
    return constant + math.log(z) - half * widest - 0.5 * _LOG_2_PI, p, p - spread, open_ / z + v * spread


@kernel
def site_in(
    off: float, offset: float, v: float, c: Floats, weight: Floats, constant: float
) -> tuple[float, float, float]:
    """The precision and the information of the Gaussian that changes a cavity's moments as rewards do.

    The cavity's mean is offset, and off below that of the rewards, and its variance v; c as in `tilted`. Where the
    rewards contradict the cavity, so that it gets wider, the precision is zero, and the mean alone is right. Also
    returns how probable the rewards are in the cavity, as a logarithm.
    """
    mass, p, precision, open_ = tilted(off, v, c, weight, constant)
    if precision <= 0.0:
        return 0.0, p * off, mass
    return precision / open_, (p * off + precision * offset) / open_, mass
