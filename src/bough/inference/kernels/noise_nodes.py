"""The nodes of an action's own, where the shared grid of noise_grid.py does not serve it.

That is so where very many rewards make its law of the noise too narrow for the grid, or put it beyond the grid; where
the floor hides what the prior expects, so that the law may have two modes, what is expected and what was seen; and
where the mean of the rewards is so far from what others say of the action that noise which is next to impossible
explains it best.
"""

from __future__ import annotations

import math

from bough._arrays import Floats
from bough.inference.kernels.jit import kernel

# Columns of the first row of a grid, which has no point but says of the noise: the prior of u, the floor, and the
# grid's step.
CENTRE, SPREAD_OF_U, FLOOR, STEP = range(4)
# Columns of its second row, which says how fine sums are: steps in one deviation of an action's log variance, at least;
# how far below the top, as a logarithm, heights are left out where noise is less, and more; and how many points of the
# grid the widest step takes.
STEPS, FALL_BELOW, FALL_ABOVE, MOST_STRIDE = range(4)

MANY, FINE_STEP = 10.0, 0.3
LEAST_ROOM = 384  # nodes of an action's own, at most
_APART, _TAIL = 128.0, 8.0  # steps to the other mode, at most: of modes further apart the higher is taken alone
_LOOKED_AT = 64  # steps from the noise that is expected to the noise that was seen
_LEAST = 650.0  # below the top, as a logarithm: the exponential of much less is no number
_FAR_STEP = 0.5  # as a share of the usual: what is far off and says little of its noise makes the law of that narrow
ROOM_TO_MOVE = 4.0  # rewards that are far off may get twice as far, and keep their nodes


@kernel
def height_of(u: float, w: float, half: float, spread: float, noise: Floats) -> float:
    """The log of the integrand, without constants."""
    off = (u - noise[CENTRE]) / noise[SPREAD_OF_U]
    return float(-half * math.log(w) - 0.5 * spread / w - 0.5 * off * off)


@kernel
def slopes_of(u: float, w: float, half: float, spread: float, noise: Floats) -> tuple[float, float]:
    """The first and the second derivative of that."""
    share = 1.0 - noise[FLOOR] / w
    said = 0.5 * spread / w
    precision = 1.0 / (noise[SPREAD_OF_U] * noise[SPREAD_OF_U])
    slope = share * (said - half) - (u - noise[CENTRE]) * precision
    return slope, share * (1.0 - share) * (said - half) - share * share * said - precision


@kernel
def is_floored(w: float, half: float, noise: Floats) -> bool:
    """Where the floor is most of the noise, many rewards say what is above it, and e^u is in squares in an exponent."""
    return bool(half >= MANY and noise[FLOOR] > 0.5 * w)


@kernel
def may_have_two_modes(half: float, spread: float, noise: Floats) -> bool:
    """Whether rewards vary far more than is expected where the floor hides small changes of that."""
    floor, expected = noise[FLOOR], math.exp(noise[CENTRE])
    return bool(floor > 0.1 * expected and spread > 4.0 * half * (floor + expected))


@kernel
def _mode(
    u: float, low: float, high: float, widest: float, half: float, spread: float, grid: Floats
) -> tuple[float, float, float]:
    """A mode between low and high, searched for from u, how high it is, and the step that sums about it take."""
    noise, curve = grid[0], -1.0
    for _ in range(60):
        slope, curve = slopes_of(u, noise[FLOOR] + math.exp(u), half, spread, noise)
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
    w = noise[FLOOR] + math.exp(u)
    _, curve = slopes_of(u, w, half, spread, noise)
    step = 1.0 / (grid[1, STEPS] * math.sqrt(max(-curve, 1.0 / widest**2)))
    if is_floored(w, half, noise):
        step = min(step, FINE_STEP)
    return u, height_of(u, w, half, spread, noise), step


@kernel
def _peak(start: float, apart: float, half: float, spread: float, noise: Floats) -> float:
    """The first of the points from start on, so far apart, after which the integrand falls."""
    at, before = start, height_of(start, noise[FLOOR] + math.exp(start), half, spread, noise)
    for i in range(1, _LOOKED_AT + 1):
        following = start + i * apart
        found = height_of(following, noise[FLOOR] + math.exp(following), half, spread, noise)
        if found < before:
            break
        at, before = following, found
    return at


@kernel
def _two_modes(widest: float, half: float, spread: float, grid: Floats) -> tuple[float, float, float, float]:
    """The lowest and the highest mode that matter, how high the higher of them is, and the step that serves both."""
    noise, fine = grid[0], grid[1]
    expected, seen = noise[CENTRE], math.log(spread / (2.0 * half) - noise[FLOOR])
    apart = (seen - expected) / _LOOKED_AT
    low = _peak(expected, apart, half, spread, noise)
    high = _peak(seen, -apart, half, spread, noise)
    low, low_height, low_step = _mode(low, low - apart, low + apart, widest, half, spread, grid)
    high, high_height, high_step = _mode(high, high - apart, high + apart, widest, half, spread, grid)
    step, top = min(low_step, high_step), max(low_height, high_height)
    both_matter = low_height > top - fine[FALL_BELOW] and high_height > top - fine[FALL_ABOVE]
    if both_matter and high - low + _TAIL * low_step <= _APART * step:
        return low, high, top, step
    if high_height > low_height:
        return high, high, high_height, high_step
    return low, low, low_height, low_step


@kernel
def _likeliest(
    first: float, step: float, half: float, spread: float, count: float, off: float, v: float, noise: Floats
) -> float:
    """The noise variance that explains best, of those at even steps of u, that rewards are so far off."""
    best, likeliest = -math.inf, 0.0
    at, last = first, math.log(count * off) + 1.0
    while at < last:
        w = noise[FLOOR] + math.exp(at)
        total = v + w / count
        found = height_of(at, w, half, spread, noise) - 0.5 * math.log(total) - 0.5 * off / total
        if found > best:
            best, likeliest = found, w
        at += step
    return likeliest


@kernel
def own_nodes(
    u: float,  # near the mode, or at the end of the grid beside it
    low: float,  # between these two is the mode
    high: float,
    widest: float,  # step
    half: float,
    spread: float,
    count: float,
    off: float,  # the square of how far the mean of the rewards is from what others say; 0 for not far
    v: float,  # the action's own variance
    grid: Floats,  # (2 + G, 4)
    variance: Floats,  # (room,)
    height: Floats,  # (room,)
) -> tuple[int, float, float]:
    """Overwrites variance (ascending) and height: those of an action's own nodes, at even steps of u.

    Returns how many they are, the first u, and the step. Where the noise that explains best that rewards are so far off
    is less likely than a number can say, it is one more node, which comes last.
    """
    noise, fine = grid[0], grid[1]
    if may_have_two_modes(half, spread, noise):
        first, last, top, step = _two_modes(widest, half, spread, grid)
    else:
        first, top, step = _mode(u, low, high, widest, half, spread, grid)
        last = first
    if off > 0.0:
        step *= _FAR_STEP
    n, room = 0, len(height) - 1  # one is left for the node that may come last
    own, factor = math.exp(first), math.exp(step)
    while n < room // 2:
        own /= factor
        w = noise[FLOOR] + own
        found = height_of(first - (n + 1) * step, w, half, spread, noise)
        if found < top - fine[FALL_BELOW]:
            break
        variance[n], height[n] = w, found
        n += 1
    for k in range(n // 2):
        variance[k], variance[n - 1 - k] = variance[n - 1 - k], variance[k]
        height[k], height[n - 1 - k] = height[n - 1 - k], height[k]
    start, best, is_explained, far = first - n * step, -math.inf, off == 0.0, ROOM_TO_MOVE * off
    own, at = math.exp(first), first
    while n < room:
        w = noise[FLOOR] + own
        found = height_of(at, w, half, spread, noise)
        total = v + w / count
        # how well this explains rewards so far off, and how well more noise would if being far off cost nothing
        best = max(best, found - 0.5 * math.log(total) - 0.5 * far / total)
        if at > last and found < top - fine[FALL_ABOVE]:
            is_explained = off == 0.0 or found - 0.5 * math.log(total) < best - fine[FALL_BELOW]
            if is_explained or found < top - _LEAST:
                break
        variance[n], height[n] = w, found
        own *= factor
        at += step
        n += 1
    if not is_explained:
        w = _likeliest(first, step, half, spread, count, off, v, noise)
        if w > variance[n - 1]:
            variance[n], height[n] = w, top - _LEAST
            n += 1
    return n, start, step
