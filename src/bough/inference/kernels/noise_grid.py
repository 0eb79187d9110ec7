"""The noise variance of one action, integrated out: its rewards as a finite mixture of normals.

With w = floor + e^u the noise variance, n rewards of mean y and spread S (their squares around it) say of the action's
parameter t

    L(t) = (integral over u) p(u) (2 pi w)^(-(n - 1) / 2) n^(-1/2) exp(-S / (2 w)) N(y; t, w / n),

which a sum over even steps of u makes a mixture of normals around y. Sums of smooth functions over even steps are off
by exp(-2 pi d / step), d how far from the real line they stay smooth, so that few steps are enough. All actions share
a grid that is finer than most need, so that no action computes a logarithm: each takes every so many of its points, as
its law of u is narrow or wide. An action with a law that is too narrow for that, after very many rewards, or that is
beyond the grid, has steps of its own around its mode.
"""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

# Columns of the shared grid: variance, its logarithm, half its inverse, and the log of the prior density.
W, LOG_W, HALF_OVER_W, LOG_PRIOR = range(4)
# Columns of its first row, which has no point but says of the noise: the prior of u, the floor, and the grid's step.
CENTRE, SPREAD_OF_U, FLOOR, STEP = range(4)
# Columns of its second row, which says how fine sums are: steps in one deviation of an action's log variance, at least;
# how far below the top, as a logarithm, heights are left out where noise is less, and more; and how many points of the
# grid the widest step takes.
STEPS, FALL_BELOW, FALL_ABOVE, MOST_STRIDE = range(4)
FIRST_POINT = 2

_MANY, _FINE = 10.0, 0.3
_LEAST_STRIDE = 4  # in points, at which a mode is near enough; who needs it more exactly has nodes of its own
LEAST_ROOM = 96  # nodes of an action's own grid, at most
_LOG_2_PI = math.log(2.0 * math.pi)


@kernel
def _height(u: float, w: float, half: float, spread: float, noise: Floats) -> float:
    """The log of the integrand, without constants."""
    off = (u - noise[CENTRE]) / noise[SPREAD_OF_U]
    return float(-half * math.log(w) - 0.5 * spread / w - 0.5 * off * off)


@kernel
def _slopes(u: float, w: float, half: float, spread: float, noise: Floats) -> tuple[float, float]:
    """The first and the second derivative of that."""
    share = 1.0 - noise[FLOOR] / w
    said = 0.5 * spread / w
    precision = 1.0 / (noise[SPREAD_OF_U] * noise[SPREAD_OF_U])
    slope = share * (said - half) - (u - noise[CENTRE]) * precision
    return slope, share * (1.0 - share) * (said - half) - share * share * said - precision


@kernel
def _mode(
    u: float, low: float, high: float, widest: float, half: float, spread: float, noise: Floats
) -> tuple[float, float]:
    """A mode between low and high, searched for from u, and the curvature there, as a positive number."""
    curve = -1.0
    for _ in range(60):
        slope, curve = _slopes(u, noise[FLOOR] + math.exp(u), half, spread, noise)
        if slope > 0.0:
            low = u
        else:
            high = u
        step = -slope / curve if curve < 0.0 else math.inf
        if not low < u + step < high:
            step = 0.5 * (low + high) - u
        u += step
        if abs(step) * math.sqrt(abs(curve)) < 1e-3:
            break
    _, curve = _slopes(u, noise[FLOOR] + math.exp(u), half, spread, noise)
    return u, max(-curve, 1.0 / widest**2)


@kernel
def _walked(
    u: float, step: float, fall: float, top: float, first: int, half: float, spread: float, noise: Floats,
    variance: Floats, height: Floats,
) -> int:  # fmt: skip
    """Overwrites variance and height with the nodes at u, u + step, ... until they are so far below the top."""
    own, factor = math.exp(u), math.exp(step)
    k = first
    while k < len(height):
        w = noise[FLOOR] + own
        found = _height(u, w, half, spread, noise)
        if k > first and found < top - fall:
            break
        variance[k], height[k] = w, found
        u += step
        own *= factor
        k += 1
    return k


@kernel
def _own_nodes(
    best: int, stride: int, half: float, spread: float, grid: Floats, variance: Floats, height: Floats
) -> tuple[int, float, float, float]:
    """Overwrites variance and height with nodes of an action's own; how many, the top, their first u and their step."""
    noise, fine, last = grid[0], grid[1], len(grid) - FIRST_POINT - 1
    widest = stride * noise[STEP]
    u = noise[CENTRE] + (best - last // 2) * noise[STEP]
    low, high = u - widest, u + widest
    if best == 0:  # beyond the grid, but no further than all rewards could move it
        low = min(low, noise[CENTRE] - half * noise[SPREAD_OF_U] ** 2 - 1.0)
    elif best == last:
        high = max(high, math.log(max(spread, 1e-300)) + 1.0)
    u, curve = _mode(u, low, high, widest, half, spread, noise)
    step = 1.0 / (fine[STEPS] * math.sqrt(curve))
    w = noise[FLOOR] + math.exp(u)
    if _is_floored(w, half, noise):
        step = min(step, _FINE)
    top = _height(u, w, half, spread, noise)
    n = _walked(u - step, -step, fine[FALL_BELOW], top, 0, half, spread, noise, variance, height)
    first = u - n * step
    for k in range(n // 2):
        variance[k], variance[n - 1 - k] = variance[n - 1 - k], variance[k]
        height[k], height[n - 1 - k] = height[n - 1 - k], height[k]
    n = _walked(u, step, fine[FALL_ABOVE], top, n, half, spread, noise, variance, height)
    return n, top, first, step


@kernel
def _is_floored(w: float, half: float, noise: Floats) -> bool:
    """Where the floor is most of the noise, many rewards say what is above it, and e^u is in squares in an exponent."""
    return bool(half >= _MANY and noise[FLOOR] > 0.5 * w)


@kernel
def _grid_height(j: int, half: float, spread: float, points: Floats) -> float:
    """`_height` of a point of the shared grid."""
    return float(points[j, LOG_PRIOR] - half * points[j, LOG_W] - spread * points[j, HALF_OVER_W])


@kernel
def _highest(half: float, spread: float, points: Floats, stride: int) -> tuple[int, float]:
    """About the highest point of the grid, and how high: of the widest steps first, then of narrower ones around it."""
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
def components(
    count: float,
    spread: float,
    grid: Floats,  # (2 + G, 4)
    variance: Floats,  # (room,)
    weight: Floats,  # (room,)
) -> tuple[int, float, float, float]:
    """Overwrites variance (ascending) and weight: the mixture's.

    Weights sum to 1. Returns how many components there are, and the log of what weights were divided by: L(t) is the
    exponential of that times the mixture's density at the mean of the rewards. Then the first component's u, and the
    step to the next, and to each after it.
    """
    half = 0.5 * (count - 1.0)
    noise, fine, points = grid[0], grid[1], grid[FIRST_POINT:]
    if len(points) == 1:
        variance[0], weight[0] = points[0, W], 1.0
        constant = -half * (_LOG_2_PI + points[0, LOG_W]) - spread * points[0, HALF_OVER_W] - 0.5 * math.log(count)
        return 1, constant, noise[CENTRE], 0.0
    widest, end = int(fine[MOST_STRIDE]), len(points) - 1
    best, top = _highest(half, spread, points, widest)
    u, w = noise[CENTRE] + (best - end // 2) * noise[STEP], points[best, W]
    _, curve = _slopes(u, w, half, spread, noise)
    stride = widest
    if curve < 0.0:
        stride = min(stride, int(1.0 / (fine[STEPS] * math.sqrt(-curve) * noise[STEP])))
    if _is_floored(w, half, noise):
        stride = min(stride, int(_FINE / noise[STEP]))
    is_inside, n = stride > 0, 0
    if is_inside:
        first = best
        while first >= stride and _grid_height(first - stride, half, spread, points) >= top - fine[FALL_BELOW]:
            first -= stride
        j = first
        while j <= end and n < len(weight):
            found = _grid_height(j, half, spread, points)
            if j > best and found < top - fine[FALL_ABOVE]:
                break
            variance[n], weight[n] = points[j, W], found
            j += stride
            n += 1
        is_inside = first >= stride and j <= end and n < len(weight)
        u, step = noise[CENTRE] + (first - end // 2) * noise[STEP], stride * noise[STEP]
    if not is_inside:
        n, top, u, step = _own_nodes(best, widest, half, spread, grid, variance, weight)
    total = 0.0
    for k in range(n):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    inverse = 1.0 / total
    for k in range(n):
        weight[k] *= inverse
    # of n^(-1/2), the density of u, and the steps
    factor = total * step / (noise[SPREAD_OF_U] * math.sqrt(count))
    return n, top - (half + 0.5) * _LOG_2_PI + math.log(factor), u, step


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
