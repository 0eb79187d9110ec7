"""Draws of actions whose noise variance is integrated out, given their parents: from the mixtures of noisy.py."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.noisy import AVERAGE, CUMULATIVE, FIRST, SIZE, WIDEST, C, mixture
from bough.inference.kernels.quantiles import quantile
from bough.inference.kernels.scalar import DEVIATION, GAIN, MEAN, OFFSET
from bough.inference.kernels.scalar_draws import drawn

_TRIES = 4  # proposals
_ROOT_HALF = math.sqrt(0.5)


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
    c, weight = mixture(row, where, pool)
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
    where: Floats,  # (rows, 8)
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
        c, weight = mixture(row, where, pool)
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
    where: Floats,  # (rows, 8)
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
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3)
    out: Floats,  # (n, r)
) -> None:
    """Overwrites out with the probabilities that actions are above the limits, given their parents."""
    part = np.empty(longest(where))
    for j in range(len(slot)):
        row, v = slot_row[slot[j]], class_variance[slot_class[slot[j]]]
        c, weight = mixture(row, where, pool)
        for i in range(len(limit)):
            off = evidence[row, MEAN] - above[i, j]
            total = _parts(off, v, c, weight, part)
            found = 0.0
            for k in range(len(c)):
                p = 1.0 / (v + c[k])
                z = (limit[i, j] - above[i, j] - v * p * off) / math.sqrt(v * c[k] * p)
                found += part[k] * 0.5 * math.erfc(z * _ROOT_HALF)
            out[i, j] = found / total
