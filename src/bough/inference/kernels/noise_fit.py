"""Sweeps of expectation propagation over a forest whose actions have a noise variance each, for fits.

`noisy.py` keeps a posterior up to date, one action at a time. A fit asks for the evidence of one law after another, so
here one sweep makes all sites at once: what actions say goes rootward, what all others say of each comes back leafward,
and every action is integrated there, with the gradient of the evidence along with its site.
"""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.exponential import exp_of, in_lanes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.noise_grid import components
from bough.inference.kernels.noise_nodes import CENTRE, FLOOR, SPREAD_OF_U

# Columns of the sums of an action, as deviations from one mean of all rewards.
COUNT, AVERAGE, SPREAD = range(3)
# Columns of where an action's components are in the pool, the constant of its mixture, how many spreads the u of its
# first component is from the centre, and each other one from that before it; how far its rewards are from its cavity,
# as a square, where this needs nodes for it; and for how much of that they are good.
FIRST, SIZE, CONSTANT, FAR, STEP, OFF, REACH = range(7)
# Rows of the pool: the variance of the mean of the rewards around the action, the component's weight, and twice the
# slope, by its noise variance, of the log of the integrand without that mean.
C, WEIGHT, SLOPE = range(3)
# Columns of the state of a node: what it has collected from below, what it sends rootward, and its cavity: the mean and
# the variance of what all others say.
M, ETA, M_SENT, ETA_SENT, CAVITY, WIDTH = range(6)
# Rows of what each component of an action adds to its sums. They are made in short loops over rows of one array, which
# compilers make vectors of, if the pool has as many components as go into these, the last ones of weight 0.
P, SHARE, BY_MEAN, BY_SQUARE, OPEN, BY_NOISE = range(6)

_LOG_2_PI = math.log(2.0 * math.pi)


@kernel
def mix(
    begin: int,
    sums: Floats,  # (n, 3)
    own: Floats,  # (n,) the variances of the actions themselves
    grid: Floats,  # (2 + G, 4)
    where: Floats,  # (n, 7)
    pool: Floats,  # (3, room)
    scratch: Floats,  # (2, most)
) -> int:
    """Overwrites where and the pool with the mixtures of actions from `begin` on, until the pool is full; the next."""
    variance, weight = scratch
    centre, per_spread = grid[0, CENTRE], 1.0 / max(grid[0, SPREAD_OF_U], 1e-300)
    used = 0 if begin == 0 else int(where[begin - 1, FIRST]) + in_lanes(int(where[begin - 1, SIZE]))
    for i in range(begin, len(sums)):
        if used + len(weight) > pool.shape[1]:
            return i
        count, squares = sums[i, COUNT], sums[i, SPREAD]
        n, constant, u, step, where[i, REACH] = components(
            count, squares, where[i, OFF], own[i], grid, variance, weight
        )
        where[i, FIRST], where[i, SIZE], where[i, CONSTANT] = used, n, constant
        where[i, FAR], where[i, STEP] = (u - centre) * per_spread, step * per_spread
        per_count = 1.0 / count
        lanes = in_lanes(n)
        for k in range(n, lanes):
            variance[k], weight[k] = variance[n - 1], 0.0
        for k in range(lanes):
            pool[C, used + k] = scratch[0, k] * per_count
            pool[WEIGHT, used + k] = scratch[1, k]
        for k in range(lanes):
            inverse = 1.0 / scratch[0, k]
            pool[SLOPE, used + k] = (squares * inverse - (count - 1.0)) * inverse
        used += lanes
    return len(sums)


@kernel
def collect(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    action: Nodes,  # (T,) its row of sums, -1 inside
    variance: Floats,  # (n_classes,)
    site: Floats,  # (n, 2) precision and information of each action
    state: Floats,  # (T, 6)
    top: Floats,  # (2,)
) -> float:
    """Overwrites state with what nodes collect and send, and top with what is sent to the prior mean.

    Returns the log of the integral of all sites over the tree, were the prior mean zero.
    """
    total = 0.0
    top[:] = 0.0
    for slot in range(len(parent)):
        row = action[slot]
        state[slot, M] = site[row, 0] if row >= 0 else 0.0
        state[slot, ETA] = site[row, 1] if row >= 0 else 0.0
    for slot in range(len(parent) - 1, -1, -1):
        v, m, eta = variance[slot_class[slot]], state[slot, M], state[slot, ETA]
        gain = 1.0 / (1.0 + v * m)
        state[slot, M_SENT], state[slot, ETA_SENT] = gain * m, gain * eta
        total += v * eta * eta * gain - math.log1p(v * m)
        above = parent[slot]
        if above >= 0:
            state[above, M] += gain * m
            state[above, ETA] += gain * eta
        else:
            top[0] += gain * m
            top[1] += gain * eta
    return 0.5 * total


@kernel
def share(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    prior_mean: float,
    state: Floats,  # (T, 6)
) -> None:
    """Overwrites the cavities in state: what is said of each node by all that is not below it."""
    for slot in range(len(parent)):
        above, v = parent[slot], variance[slot_class[slot]]
        if above < 0:
            state[slot, CAVITY], state[slot, WIDTH] = prior_mean, v
            continue
        width = state[above, WIDTH]
        m = max(state[above, M] - state[slot, M_SENT], 0.0)
        eta = state[above, ETA] - state[slot, ETA_SENT]
        gain = 1.0 / (1.0 + width * m)
        state[slot, CAVITY] = gain * (state[above, CAVITY] + width * eta)
        state[slot, WIDTH] = v + width * gain


@kernel
def integrate(
    slots: Nodes,  # (n,) of actions, in the order of their rows
    sums: Floats,  # (n, 3)
    grid: Floats,  # (2 + G, 4)
    where: Floats,  # (n, 7)
    pool: Floats,  # (3, room)
    state: Floats,  # (T, 6)
    size: float,  # of the step to the new sites
    site: Floats,  # (n, 2)
    part: Floats,  # (6, most) scratch
    gradient: Floats,  # (3,)
) -> tuple[float, float, int]:
    """Overwrites sites, and gradient: of the log evidence by the logs of the median, the spread and the floor.

    Notes how far rewards are from a cavity where that is farther than their mixture is good for. Returns how much more
    probable, as a logarithm, rewards are in their cavities than the sites were that these are made of; how far the mean
    of an action moved at most, in deviations of its cavity, or its precision relative to that; and of how many actions
    the rewards are that far.
    """
    gradient[:] = 0.0
    total, moved, outgrown = 0.0, 0.0, 0
    floor, spread = grid[0, FLOOR], grid[0, SPREAD_OF_U]
    for i in range(len(slots)):
        offset, v = state[slots[i], CAVITY], state[slots[i], WIDTH]
        count, off = sums[i, COUNT], sums[i, AVERAGE] - offset
        first, n = int(where[i, FIRST]), int(where[i, SIZE])
        if off * off > where[i, REACH]:
            where[i, OFF] = off * off
            outgrown += 1
        middle = pool[C, first + n // 2]
        widest, some = 1.0 / (v + pool[C, first + n - 1]), 1.0 / (v + middle)
        half, per_count = 0.5 * off * off, 1.0 / count
        lanes = in_lanes(n)
        for k in range(lanes):
            part[P, k] = 1.0 / (v + pool[C, first + k])
        for k in range(lanes):
            p = part[P, k]
            part[SHARE, k] = pool[WEIGHT, first + k] * math.sqrt(p) * exp_of(half * (widest - p))
        for k in range(lanes):
            beyond = (middle - pool[C, first + k]) * part[P, k] * some  # p - some, as in `tilted`
            part[BY_MEAN, k] = part[SHARE, k] * beyond
            part[BY_SQUARE, k] = part[SHARE, k] * beyond * beyond
        squared = off * off * per_count
        for k in range(lanes):
            p = part[P, k]
            part[OPEN, k] = part[SHARE, k] * pool[C, first + k] * p
            part[BY_NOISE, k] = part[SHARE, k] * ((squared * p - per_count) * p + pool[SLOPE, first + k])
        z, by_mean, by_square, open_, far, far_square, by_noise = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        x, step = where[i, FAR], where[i, STEP]
        for k in range(n):
            one = part[SHARE, k]
            z += one
            by_mean += part[BY_MEAN, k]
            by_square += part[BY_SQUARE, k]
            open_ += part[OPEN, k]
            by_noise += part[BY_NOISE, k]
            far += one * x
            far_square += one * x * x
            x += step
        inverse = 1.0 / z
        if spread > 0.0:
            gradient[0] += far * inverse / spread
            gradient[1] += far_square * inverse - 1.0
        else:
            gradient[0] += 0.5 * by_noise * inverse * (pool[C, first] * count - floor)  # of the one component
        gradient[2] += 0.5 * by_noise * inverse * floor
        further = by_mean * inverse
        contradiction = off * off * max(by_square * inverse - further * further, 0.0)
        p = some + further
        precision = p - contradiction
        rest = 1.0 / (open_ * inverse + v * contradiction)
        if precision < 0.0:
            precision, rest = 0.0, 1.0
        m, eta = site[i, 0], site[i, 1]
        gain = 1.0 / (1.0 + v * m)
        total += where[i, CONSTANT] + math.log(z) - half * widest - 0.5 * _LOG_2_PI
        total -= gain * (eta * offset - 0.5 * m * offset * offset + 0.5 * v * eta * eta) - 0.5 * math.log1p(v * m)
        m_new, eta_new = precision * rest, (p * off + precision * offset) * rest
        far_off = abs((eta_new - m_new * offset) - (eta - m * offset)) * math.sqrt(v)
        moved = max(moved, max(far_off * gain, abs(m_new - m) * v * gain))
        site[i, 0] = m + size * (m_new - m)
        site[i, 1] = eta + size * (eta_new - eta)
    return total, moved, outgrown


@kernel
def slopes(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    gradient: Floats,  # (n_classes,)
) -> None:
    """Overwrites gradient: of the log evidence by the logs of the variances, at the fixed point."""
    gradient[:] = 0.0
    for slot in range(len(parent)):
        class_ = slot_class[slot]
        v = variance[class_]
        # what is beyond the node's own step: its cavity less that
        sent, width = state[slot, M_SENT], state[slot, WIDTH] - v
        gain = 1.0 / (1.0 + width * sent)
        surprise = (state[slot, ETA_SENT] - sent * state[slot, CAVITY]) * gain
        gradient[class_] += 0.5 * v * (surprise * surprise - sent * gain)
