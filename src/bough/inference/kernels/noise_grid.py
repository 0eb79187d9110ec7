"""The noise variance of one action, integrated out: its rewards as a finite mixture of normals.

With w = floor + e^u the noise variance, n rewards of mean y and spread S (their squares around it) say of the action's
parameter t

    L(t) = (integral over u) p(u) (2 pi w)^(-(n - 1) / 2) n^(-1/2) exp(-S / (2 w)) N(y; t, w / n),

which a sum over even steps of u makes a mixture of normals around y. Sums of smooth functions over even steps are off
by exp(-2 pi d / step), d how far from the real line they stay smooth, so that few steps are enough. Steps are those of
a grid that all actions share where the law of u is wider than these; where many rewards make it narrower, an action has
steps of its own around its mode.
"""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

# Columns of the shared grid: log variance, variance, its logarithm, and the log of prior density times step.
U, W, LOG_W, LOG_PRIOR = range(4)
# Columns of its first row, which has no point but says of the noise: the prior of u, the floor, and the step.
CENTRE, SPREAD_OF_U, FLOOR, STEP = range(4)
# Columns of its second row, which says how fine sums are: steps of an action's own grid in one deviation of its log
# variance, at least; and how far below the top, as a logarithm, heights are left out where noise is less, and more.
STEPS, FALL_BELOW, FALL_ABOVE = range(3)
FIRST_POINT = 2

_MANY, _FINE = 10.0, 0.3
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
def _mode(u: float, low: float, high: float, half: float, spread: float, noise: Floats) -> tuple[float, float]:
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
    return u, max(-curve, 1.0 / (noise[STEP] * noise[STEP]))


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
def components(
    count: float,
    spread: float,
    grid: Floats,  # (2 + G, 4)
    variance: Floats,  # (room,)
    weight: Floats,  # (room,)
) -> tuple[int, float]:
    """Overwrites variance and weight: the noise variances of the mixture, ascending, and their weights, which sum to 1.

    Returns how many there are, and the log of what they were divided by: L(t) is the exponential of that times
    the mixture's density at the mean of the rewards.
    """
    half = 0.5 * (count - 1.0)
    constant = -half * _LOG_2_PI - 0.5 * math.log(count)
    noise, fine, grid = grid[0], grid[1], grid[FIRST_POINT:]
    if len(grid) == 1:
        variance[0], weight[0] = grid[0, W], 1.0
        return 1, constant - half * grid[0, LOG_W] - 0.5 * spread / grid[0, W]
    best = 0
    for j in range(len(grid)):
        weight[j] = grid[j, LOG_PRIOR] - half * grid[j, LOG_W] - 0.5 * spread / grid[j, W]
        if weight[j] > weight[best]:
            best = j
    top, end = weight[best], len(grid) - 1
    _, curve = _slopes(grid[best, U], grid[best, W], half, spread, noise)
    # Where the floor is most of the noise, many rewards say what is above it, and e^u is in squares in an exponential.
    is_floored = half >= _MANY and noise[FLOOR] > 0.5 * grid[best, W]
    is_inside = weight[0] <= top - fine[FALL_BELOW] and weight[end] <= top - fine[FALL_ABOVE]
    if is_inside and not is_floored and -curve * (fine[STEPS] * noise[STEP]) ** 2 <= 1.0:
        first, last = best, best
        for j in range(best):
            if weight[j] >= top - fine[FALL_BELOW]:
                first = j
                break
        for j in range(end, best, -1):
            if weight[j] >= top - fine[FALL_ABOVE]:
                last = j
                break
        n = last - first + 1
        for k in range(n):
            variance[k], weight[k] = grid[first + k, W], weight[first + k]
    else:
        u = grid[best, U]
        low, high = u - noise[STEP], u + noise[STEP]
        if best == 0:  # beyond the grid, but no further than all rewards could move it
            low = min(low, noise[CENTRE] - half * noise[SPREAD_OF_U] ** 2 - 1.0)
        elif best == end:
            high = max(high, math.log(max(spread, 1e-300)) + 1.0)
        u, curve = _mode(u, low, high, half, spread, noise)
        step = 1.0 / (fine[STEPS] * math.sqrt(curve))
        if is_floored:
            step = min(step, _FINE)
        top = _height(u, noise[FLOOR] + math.exp(u), half, spread, noise)
        n = _walked(u - step, -step, fine[FALL_BELOW], top, 0, half, spread, noise, variance, weight)
        for k in range(n // 2):
            variance[k], variance[n - 1 - k] = variance[n - 1 - k], variance[k]
            weight[k], weight[n - 1 - k] = weight[n - 1 - k], weight[k]
        n = _walked(u, step, fine[FALL_ABOVE], top, n, half, spread, noise, variance, weight)
        constant += math.log(step / noise[SPREAD_OF_U]) - 0.5 * _LOG_2_PI
    total = 0.0
    for k in range(n):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    for k in range(n):
        weight[k] /= total
    return n, constant + top + math.log(total)


@kernel
def tilted(off: float, v: float, c: Floats, weight: Floats, constant: float) -> tuple[float, float, float]:
    """The log of the integral of L times a normal density of variance v, with y off its mean; and two sums.

    c has the variance of y around t in each component, w / n. The sums are over p = 1 / (v + c), weighted with the
    component's part of the integral: their mean, and that less off^2 times their variance. The first two derivatives
    of the log integral by the normal's mean are off times the one, and minus the other.
    """
    n = len(c)
    widest, some = 1.0 / (v + c[n - 1]), 1.0 / (v + c[n // 2])
    z, first, second = 0.0, 0.0, 0.0
    half = 0.5 * off * off
    for k in range(n):
        p = 1.0 / (v + c[k])
        part = weight[k] * math.sqrt(p) * math.exp(-half * (p - widest))
        z += part
        first += part * (p - some)
        second += part * (p - some) * (p - some)
    first /= z
    spread = max(second / z - first * first, 0.0)
    p = some + first
    return constant + math.log(z) - half * widest - 0.5 * _LOG_2_PI, p, p - off * off * spread


@kernel
def site_in(
    off: float, offset: float, v: float, c: Floats, weight: Floats, constant: float
) -> tuple[float, float, float]:
    """The precision and the information of the Gaussian that changes a cavity's moments as rewards do.

    The cavity's mean is offset, and off below that of the rewards, and its variance v; c as in `tilted`. Where the
    rewards contradict the cavity, so that it gets wider, the precision is zero, and the mean alone is right. Also
    returns how probable the rewards are in the cavity, as a logarithm.
    """
    mass, p, precision = tilted(off, v, c, weight, constant)
    precision = max(precision, 0.0)
    rest = 1.0 / (1.0 - v * precision)
    return precision * rest, (p * off + precision * offset) * rest, mass
