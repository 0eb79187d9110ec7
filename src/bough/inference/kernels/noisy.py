"""Actions whose noise variance is integrated out: their mixtures, their sites, and draws of them.

`noise_grid.py` makes the mixtures. They are kept in one pool, an action's components side by side, since every draw
asks for them.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.noise_grid import components, site_in, tilted
from bough.inference.kernels.propagation import cavity
from bough.inference.kernels.quantiles import quantile
from bough.inference.kernels.scalar import (
    COUNT,
    DEVIATION,
    ETA,
    GAIN,
    MEAN,
    OFFSET,
    SPREAD,
    M,
    add,
    refresh_path,
)
from bough.inference.kernels.scalar_draws import drawn
from bough.inference.kernels.slots import place

# Columns of the evidence of an action, after those of scalar.py: the site that stands for its rewards, and the mean and
# the variance of the cavity it was made in.
SITE_M, SITE_ETA, CAVITY, WIDTH = range(3, 7)
# Columns of where an action's components are in the pool, and what else is said of its mixture: its constant, the mean
# of the rewards, and the widest deviation that a component leaves the action given its parent.
FIRST, SIZE, ROOM, CONSTANT, AVERAGE, WIDEST = range(6)
# Columns of the pool: the variance of the mean of the rewards around the action, the component's weight, and the
# cumulative weights from which draws begin. Its first row says how much of it is used.
C, WEIGHT, CUMULATIVE = range(3)

_STILL = 1e-9  # a cavity that moves by less than this, in its own standard deviations, leaves its site as it is
_ROUNDING = 1e-12  # of a cavity's mean: it comes from differences of messages
CHUNK = 8  # components that are made room for at once
_TRIES = 4  # proposals
_ROOT_HALF = math.sqrt(0.5)


@kernel
def mix(
    slots: Nodes,  # (n,) of actions
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    grid: Floats,  # (2 + G, 4)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    scratch: Floats,  # (2, most)
) -> int:
    """Overwrites where and the pool with the mixtures of actions; how many, until the pool is full."""
    for i in range(len(slots)):
        if not mix_one(slot_row[slots[i]], class_variance[slot_class[slots[i]]], evidence, grid, where, pool, scratch):
            return i
    return len(slots)


@kernel
def mix_one(row: int, v: float, evidence: Floats, grid: Floats, where: Floats, pool: Floats, scratch: Floats) -> bool:
    """Overwrites where and the pool with the mixture of an action; False, and nothing, where the pool is full."""
    count = evidence[row, COUNT]
    if not count > 0.0:
        where[row, SIZE] = 0.0
        return True
    variance, weight = scratch
    n, constant, _, _ = components(count, evidence[row, SPREAD], grid, variance, weight)
    if n > where[row, ROOM]:
        room = (n + CHUNK - 1) // CHUNK * CHUNK
        used = max(pool[0, 0], 1.0)
        if used + room > len(pool):
            return False
        where[row, FIRST], where[row, ROOM] = used, room
        pool[0, 0] = used + room
    where[row, SIZE], where[row, CONSTANT] = n, constant
    first, total = int(where[row, FIRST]), 0.0
    for k in range(n):
        c = variance[k] / count
        total += weight[k] / math.sqrt(v + c)
        pool[first + k, C], pool[first + k, WEIGHT], pool[first + k, CUMULATIVE] = c, weight[k], total
    c = variance[n - 1] / count
    where[row, AVERAGE], where[row, WIDEST] = evidence[row, MEAN], math.sqrt(v * c / (v + c))
    return True


@kernel
def _mixture(row: int, where: Floats, pool: Floats) -> tuple[Floats, Floats]:
    """The variances and the weights of an action's components."""
    first = int(where[row, FIRST])
    n = first + int(where[row, SIZE])
    return pool[first:n, C], pool[first:n, WEIGHT]


@kernel
def _site(
    row: int, mean: float, offset: float, v: float, evidence: Floats, where: Floats, pool: Floats
) -> tuple[float, float, float]:
    """The site of an action in a cavity, and how probable its rewards are there."""
    c, weight = _mixture(row, where, pool)
    return site_in(evidence[row, MEAN] - mean - offset, offset, v, c, weight, where[row, CONSTANT])


@kernel
def _refresh_site(
    slot: int, row: int, mean: float, parent: Nodes, slot_class: Nodes, class_variance: Floats, evidence: Floats,
    where: Floats, pool: Floats, state: Floats, law: Floats, offset: float, v: float, size: float,
) -> None:  # fmt: skip
    """Overwrites an action's site, as far as the size of the step goes, and refreshes the path to the root."""
    m, eta, _ = _site(row, mean, offset, v, evidence, where, pool)
    m_off, eta_off = m - state[slot, M], eta - state[slot, ETA]
    state[slot, M] += size * m_off
    state[slot, ETA] += size * eta_off
    evidence[row, SITE_M] = state[slot, M]
    evidence[row, SITE_ETA] = state[slot, ETA]
    evidence[row, CAVITY] = offset
    evidence[row, WIDTH] = v
    if size < 1.0 and (abs(m_off) * v > _STILL or abs(eta_off - m_off * offset) * math.sqrt(v) > _STILL):
        evidence[row, WIDTH] = -1.0  # not there yet, even if the cavity stays
    refresh_path(slot, parent, slot_class, class_variance, state, law)


@kernel
def collect(
    slots: Nodes,  # (n,)
    slot_row: Nodes,  # (T,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,)
    spreads: Floats,  # (n,)
    evidence: Floats,  # (rows, 7)
) -> None:
    """Adds rewards, which come summed, to their actions' rows of evidence, whose sites are stale then."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        add(evidence, row, counts[i], averages[i], spreads[i])
        evidence[row, WIDTH] = -1.0


@kernel
def observe_one(
    node: int,
    reward: float,
    weight_of_one: float,
    mean: float,
    slot_node: Nodes,  # (room,)
    table: Nodes,  # (a power of two,) of slots
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    grid: Floats,  # (2 + G, 4)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3), with room for one more mixture
    scratch: Floats,  # (2, most)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> bool:
    """Adds one reward to its action, and makes its site again; False, and nothing, where it has no slot."""
    slot = table[place(node, slot_node, table)] - 1
    if slot < 0:
        return False
    row = slot_row[slot]
    add(evidence, row, weight_of_one, reward, 0.0)
    mix_one(row, class_variance[slot_class[slot]], evidence, grid, where, pool, scratch)
    offset, v = cavity(slot, parent, slot_class, class_variance, state)
    _refresh_site(
        slot, row, mean, parent, slot_class, class_variance, evidence, where, pool, state, law, offset, v, 1.0
    )
    return True


@kernel
def sweep(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    size: float,  # of the steps to the new sites
    still: float,  # how far a cavity may move, in its standard deviations, without its site being made again
) -> int:
    """Makes the sites of actions again whose cavities have moved, one after the other; returns how many."""
    moved = 0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, class_variance, state)
        near = still * math.sqrt(v) + _ROUNDING * abs(offset)
        if abs(offset - evidence[row, CAVITY]) <= near and abs(v - evidence[row, WIDTH]) <= still * v:
            continue
        _refresh_site(
            slot, row, mean, parent, slot_class, class_variance, evidence, where, pool, state, law, offset, v,
            size,
        )  # fmt: skip
        moved += 1
    return moved


@kernel
def surplus(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
) -> float:
    """The sum over actions of how much more probable, as a logarithm, rewards are than their sites, in the cavity."""
    total = 0.0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, class_variance, state)
        m, eta = state[slot, M], state[slot, ETA]
        _, _, mass = _site(row, mean, offset, v, evidence, where, pool)
        gain = 1.0 / (1.0 + v * m)
        mass -= gain * (eta * offset - 0.5 * m * offset * offset + 0.5 * v * eta * eta) - 0.5 * math.log1p(v * m)
        total += mass
    return total


@kernel
def cavities(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    offset: Floats,  # (n,)
    variance: Floats,  # (n,)
) -> None:
    """Overwrites offset and variance: the cavities of actions, as deviations from the prior mean."""
    for i in range(len(slots)):
        offset[i], variance[i] = cavity(slots[i], parent, slot_class, class_variance, state)


@kernel
def moments(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
    means: Floats,  # (n,)
    variances: Floats,  # (n,)
) -> None:
    """Overwrites means and variances with the moments of a cavity times the mixture, also where no site has them."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        c, weight = _mixture(row, where, pool)
        offset, v = cavity(slots[i], parent, slot_class, class_variance, state)
        off = evidence[row, MEAN] - mean - offset
        _, p, _, open_ = tilted(off, v, c, weight, where[row, CONSTANT])
        means[i] = mean + offset + v * p * off
        variances[i] = v * open_


# -- draws -----------------------------------------------------------------------------------------


@kernel
def _parts(off: float, v: float, c: Floats, weight: Floats, part: Floats) -> float:
    """Overwrites part (n,) with the components' weights given the parent, off below the rewards' mean; their sum."""
    widest = 1.0 / (v + c[len(c) - 1])
    half = 0.5 * off * off
    total = 0.0
    for k in range(len(c)):
        p = 1.0 / (v + c[k])
        part[k] = weight[k] * math.sqrt(p) * math.exp(-half * (p - widest))
        total += part[k]
    return total


@kernel
def _in_component(above: float, off: float, v: float, c: float, z: float) -> float:
    """A draw given the parent, where the mean of the rewards is off above it and has variance c around the action."""
    p = 1.0 / (v + c)
    return above + v * p * off + math.sqrt(v * c * p) * z


@kernel
def _of_one_normal(above: float, off: float, v: float, c: Floats, weight: Floats, z: float, part: Floats) -> float:
    """A draw of the mixture from one standard normal, which says which component it is and where in it."""
    if len(c) == 1:
        return _in_component(above, off, v, c[0], z)
    total = _parts(off, v, c, weight, part)
    left = 0.5 * math.erfc(abs(z) * _ROOT_HALF) * total  # counted from the end that is nearer
    n, k = len(c), 0
    for k in range(n):
        here = part[k] if z < 0.0 else part[n - 1 - k]
        if left <= here or k == n - 1:
            break
        left -= here
    chosen = k if z < 0.0 else n - 1 - k
    share = min(max(left / part[chosen], 1e-300), 1.0 - 1e-16)
    within = quantile(-math.log(share))
    return _in_component(above, off, v, c[chosen], within if z < 0.0 else -within)


@kernel
def _component(
    off: float, v: float, row: int, where: Floats, pool: Floats, uniforms: Floats, used: int, part: Floats
) -> tuple[float, int]:
    """The variance of a component that is drawn given the parent, off below the rewards' mean; uniforms used by then.

    Proposed is one as if the parent were at that mean, which is accepted with the probability of its being as far off,
    relative to that of the widest; where this fails again and again, all weights are made.
    """
    first = int(where[row, FIRST])
    last = first + int(where[row, SIZE]) - 1
    if last == first:
        return pool[first, C], used
    if used + 2 * _TRIES + 1 > len(uniforms):
        return 0.0, len(uniforms) + 1
    widest, half = 1.0 / (v + pool[last, C]), 0.5 * off * off
    for _ in range(_TRIES):
        limit = uniforms[used] * pool[last, CUMULATIVE]
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if pool[middle, CUMULATIVE] > limit:
                high = middle
            else:
                low = middle + 1
        rate = half * (1.0 / (v + pool[low, C]) - widest)
        used += 2
        if uniforms[used - 1] < math.exp(-rate):
            return pool[low, C], used
    c, weight = _mixture(row, where, pool)
    left, k = uniforms[used] * _parts(off, v, c, weight, part), 0
    for k in range(len(c)):
        left -= part[k]
        if left < 0.0:
            break
    return c[k], used + 1


@kernel
def longest(where: Floats) -> int:
    """The most components that an action has."""
    most = 1.0
    for row in range(len(where)):
        most = max(most, where[row, SIZE])
    return int(most)


@kernel
def draw_leaves(
    out: Floats,  # (n,) parameters, of which those of actions are overwritten
    at: Nodes,  # (r,) where these are
    above: Nodes,  # (r,) where their parents are; -1 for none
    normal: Floats,  # (r,) standard normals
    slot: Nodes,  # (r,) of actions with evidence
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    mean: float,
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    scale: float,  # of deviations from the posterior mean, which parents' parameters have already
    means: Floats,  # (T,) posterior means by slot; only where the scale is not 1
    parent: Nodes,  # (T,)
) -> None:
    """Overwrites out with draws of actions from their mixtures, given their parents."""
    part = np.empty(longest(where))
    for i in range(len(at)):
        row, v = slot_row[slot[i]], class_variance[slot_class[slot[i]]]
        p = out[above[i]] if above[i] >= 0 else mean
        if v == 0.0:
            out[at[i]] = p
            continue
        if scale != 1.0 and above[i] >= 0:
            centre = means[parent[slot[i]]]
            p = centre + (p - centre) / scale
        c, weight = _mixture(row, where, pool)
        drawn = _of_one_normal(p, evidence[row, MEAN] - p, v, c, weight, normal[i], part)
        if scale != 1.0:
            drawn = means[slot[i]] + scale * (drawn - means[slot[i]])
        out[at[i]] = drawn


@kernel
def draw_best(
    normal: Floats,  # (T,) standard normals
    uniforms: Floats,  # (n,)
    parent: Nodes,  # (T,)
    choosable: Flags,  # (T,)
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    mean: float,
    law: Floats,  # (T, 3)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    all_matter: bool,
    out: Floats,  # (T,)
    most: Floats,  # (T,) scratch
    part: Floats,  # (most components,) scratch
) -> bool:
    """Overwrites out with a joint draw, parameters by slot, in which not all actions need matter.

    Then those that cannot be the best, whichever their components are, have a value that is no higher than the best.
    False where it would have taken more uniforms.
    """
    best, first, used = -math.inf, -1, 0
    for slot in range(len(out)):
        above = out[parent[slot]] if slot > 0 else mean
        row = slot_row[slot]
        most[slot] = -math.inf
        if row < 0 or where[row, SIZE] == 0.0:
            width = law[slot, DEVIATION]
            out[slot] = drawn(mean, above, law[slot, GAIN], law[slot, OFFSET], width * normal[slot], width)
            if row >= 0 and choosable[slot]:
                best = max(best, out[slot])
            continue
        out[slot] = max(above, where[row, AVERAGE]) + where[row, WIDEST] * max(normal[slot], 0.0)
        if not choosable[slot] and not all_matter:
            continue
        most[slot] = out[slot]
        if first < 0 or most[slot] > most[first]:
            first = slot
    least = -math.inf if all_matter else best
    for i in range(-1, len(out)):  # the one that may be highest comes first
        slot = first if i < 0 else i
        if slot < 0 or most[slot] <= least:
            continue
        above = out[parent[slot]] if slot > 0 else mean
        row, v = slot_row[slot], class_variance[slot_class[slot]]
        if v == 0.0:
            out[slot] = above
        else:
            off = where[row, AVERAGE] - above
            c, used = _component(off, v, row, where, pool, uniforms, used, part)
            if used > len(uniforms):
                return False
            out[slot] = _in_component(above, off, v, c, normal[slot])
        most[slot] = -math.inf
        if not all_matter:
            least = max(least, out[slot])
    return True


@kernel
def exceedance(
    limit: Floats,  # (n, r)
    above: Floats,  # (n, r) parents
    slot: Nodes,  # (r,) of actions with evidence
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 6)
    pool: Floats,  # (room, 3)
    out: Floats,  # (n, r)
) -> None:
    """Overwrites out with the probabilities that actions are above the limits, given their parents."""
    part = np.empty(longest(where))
    for j in range(len(slot)):
        row, v = slot_row[slot[j]], class_variance[slot_class[slot[j]]]
        c, weight = _mixture(row, where, pool)
        for i in range(len(limit)):
            off = evidence[row, MEAN] - above[i, j]
            total = _parts(off, v, c, weight, part)
            found = 0.0
            for k in range(len(c)):
                p = 1.0 / (v + c[k])
                z = (limit[i, j] - above[i, j] - v * p * off) / math.sqrt(v * c[k] * p)
                found += part[k] * 0.5 * math.erfc(z * _ROOT_HALF)
            out[i, j] = found / total
