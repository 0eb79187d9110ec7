"""How likely each action is to be the best: messages over the tree, on grids; docs/mathematics.md derives them.

Nodes here are those that have a step of their own, numbered parents first. Node 0 is a constant above the root. What
has no step is where its parent is: actions that are at the same node tie. A node is a LEAF where nothing but actions
is at it, SOFT where only other nodes hang below it, and HARD where it has both. DEAD ones have no action that counts.

A SOFT node has the same points for every x. A HARD one cannot be above x, so its points are distances below x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel

DEAD, LEAF, SOFT, HARD = range(4)
REACH = 8.0  # deviations beyond which nothing is left that matters: 6e-16 of the mass
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_NOTHING = 1e-290  # what is smaller is zero, before it is too small to be divided by

# -- the normal distribution function, tabulated ---------------------------------------------------------

_FROM, _TO, _PER_UNIT = -9.0, 8.5, 64.0
_EDGES = _FROM + np.arange(int((_TO - _FROM) * _PER_UNIT) + 2) / _PER_UNIT
_NORMAL = np.array([[0.5 * math.erfc(-z * math.sqrt(0.5)), math.exp(-0.5 * z * z) / _ROOT_TWO_PI] for z in _EDGES])


@kernel
def _below(z: float) -> Any:
    """P(a standard normal is at most z), by the cubic with the right values and slopes at both ends of a cell."""
    if z >= _TO:
        return 1.0
    place = (z - _FROM) * _PER_UNIT
    if place < 0.0:
        return 0.0
    i = int(place)
    u = place - i
    low, high = _NORMAL[i, 0], _NORMAL[i + 1, 0]
    slope_low, slope_high = _NORMAL[i, 1] / _PER_UNIT, _NORMAL[i + 1, 1] / _PER_UNIT
    rise = high - low
    bend = slope_low + slope_high - 2.0 * rise
    return low + u * (slope_low + u * (rise - slope_low - bend + u * bend))


@kernel
def _interpolated(place: float, table: Floats) -> Any:
    """The cubic through the four nearest entries."""
    i = min(max(int(place), 1), len(table) - 3)
    u = place - i
    a, b, c, d = table[i - 1], table[i], table[i + 1], table[i + 2]
    return (
        -u * (u - 1.0) * (u - 2.0) / 6.0 * a
        + (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0 * b
        - (u + 1.0) * u * (u - 2.0) / 2.0 * c
        + (u + 1.0) * u * (u - 1.0) / 6.0 * d
    )


# -- the tree of what has a step -------------------------------------------------------------------------


@kernel
def contract(
    parent: Nodes,  # (n,) -1 for the root
    gain: Floats,  # (n,)
    offset: Floats,  # (n,)
    deviation: Floats,  # (n,)
    node: Nodes,  # (n,)
    up: Nodes,  # (n + 1,)
    law: Floats,  # (n + 1, 3)
) -> int:
    """Overwrites node, at which each place of the tree is, and up and law of the nodes; returns how many there are."""
    up[0] = -1
    law[0] = 0.0
    n = 1
    for i in range(len(parent)):
        above = node[parent[i]] if parent[i] >= 0 else 0
        if deviation[i] == 0.0:  # and so gain one and offset zero
            node[i] = above
            continue
        node[i] = n
        up[n] = above
        law[n, 0], law[n, 1], law[n, 2] = gain[i], offset[i], deviation[i]
        n += 1
    return n


@kernel
def _note_width(node: int, width: float, count: float, narrowest: Floats, alike: Floats) -> None:
    """Adds children of that width to the narrowest below a node, and to how many are about as narrow."""
    if width < 0.5 * narrowest[node]:
        alike[node] = 0.0
    if width <= 2.0 * narrowest[node]:
        alike[node] += count
    narrowest[node] = min(narrowest[node], width)


@kernel
def _sharpness(width: float, count: float) -> float:
    """One over the square of how wide a product of steps of that width is: the more there are, the steeper it falls."""
    log = math.log(count)
    return (1.0 + log + 0.3 * log * log) / (width * width)


@kernel
def survey(
    up: Nodes,  # (N,)
    law: Floats,  # (N, 3) gain, offset, deviation
    ties: Floats,  # (N,) how many actions are at each node
    group_start: Integers,  # (N + 1,) where the groups of each node begin
    group_type: Nodes,  # (n_groups,)
    group_count: Floats,  # (n_groups,)
    type_variance: Floats,  # (n_types,) of an action around the node above its group
    type_width: Floats,  # (n_types,)
    tilt: float,  # 1 where mean rewards are exponential, so that tails count for more
    mean: Floats,  # (N,)
    deviation: Floats,  # (N,) of a node by itself
    top: Floats,  # (N,)
    kind: Nodes,  # (N,)
    width: Floats,  # (N,)
) -> None:
    """Overwrites the last five: the law of each node, where the highest action below it ends, what it is, and how
    narrow the functions of its value are that are to be integrated."""
    n = len(up)
    narrowest, alike = np.full(n, np.inf), np.zeros(n)
    for j in range(n):
        above = up[j]
        mean[j], deviation[j] = 0.0, 0.0
        if above >= 0:
            mean[j] = law[j, 0] * mean[above] + law[j, 1]
            deviation[j] = math.hypot(law[j, 2], law[j, 0] * deviation[above])
        top[j], kind[j] = -math.inf, DEAD
        if ties[j] > 0.0:
            top[j] = mean[j] + REACH * deviation[j] + tilt * deviation[j] ** 2
            kind[j] = LEAF
        for g in range(group_start[j], group_start[j + 1]):
            spread = math.sqrt(deviation[j] ** 2 + type_variance[group_type[g]])
            top[j] = max(top[j], mean[j] + REACH * spread + tilt * spread**2)
            kind[j] = SOFT if ties[j] == 0.0 else HARD
            _note_width(j, type_width[group_type[g]], group_count[g], narrowest, alike)
    for j in range(n - 1, 0, -1):
        above = up[j]
        if kind[j] == DEAD:
            continue
        below = 0.0 if kind[j] != SOFT else 1.0 / _sharpness(narrowest[j], alike[j])
        _note_width(above, math.sqrt(law[j, 2] ** 2 + below) / law[j, 0], 1.0, narrowest, alike)
        kind[above] = SOFT if ties[above] == 0.0 else HARD
        top[above] = max(top[above], top[j])
    for j in range(n):
        width[j] = 0.0
        if kind[j] >= SOFT and j > 0:
            width[j] = 1.0 / math.sqrt(1.0 / law[j, 2] ** 2 + _sharpness(narrowest[j], alike[j]))


@kernel
def panels(
    low: float,
    deviation: Floats,  # (n,) of actions
    top: Floats,  # (n,) where each ends
    count: Floats,  # (n,) how many are like it
    size: float,  # of a panel, in widths of what is to be integrated
    edges: Floats,  # (most,)
) -> int:
    """Overwrites edges, from low to the highest top, between which the best action's law is smooth; how many.

    Whatever reaches beyond x began below low, so that steps grow as x does. Zero where there is not enough room.
    """
    x = low
    highest = top.max()
    edges[0] = x
    n = 1
    while x < highest:
        narrowest = math.inf
        for i in range(len(top)):
            if top[i] > x:
                narrowest = min(narrowest, deviation[i])
        alike = 0.0
        for i in range(len(top)):
            if top[i] > x and deviation[i] <= 2.0 * narrowest:
                alike += count[i]
        x += size / math.sqrt(_sharpness(narrowest, alike))
        if n == len(edges):
            return 0
        edges[n] = x
        n += 1
    return n


# -- messages ----------------------------------------------------------------------------------------------


@kernel
def _density_row(centre: float, deviation: float, point: Floats, row: Floats) -> tuple[int, int]:
    """Overwrites the part of row that matters with the normal density at evenly spaced points; where that part is."""
    n = len(point)
    step = (point[n - 1] - point[0]) / (n - 1)
    first = (point[0] - centre) / deviation
    d = step / deviation
    low = max(0, math.ceil((-REACH - first) / d))
    high = min(n, math.floor((REACH - first) / d) + 1)
    if low >= high:
        return 0, 0
    z = first + low * d
    value = math.exp(-0.5 * z * z) / (_ROOT_TWO_PI * deviation)
    ratio = math.exp(-z * d - 0.5 * d * d)  # from one to the next, and so is its own ratio
    change = math.exp(-d * d)
    for k in range(low, high):
        row[k] = value
        value *= ratio
        ratio *= change
    return low, high


@kernel
def _collect(
    x: Floats,  # (b,)
    law: Floats,  # (3,) of the child
    above: Floats,  # (n_above,) points of the parent
    above_hard: bool,
    point: Floats,  # (n,) points of the child
    weight: Floats,  # (n,)
    is_hard: bool,
    below: Floats,  # (n, b or more) P(all below the child <= x), at its points
    row: Floats,  # (n,) scratch
    sent: Floats,  # (n_above, b or more)
) -> None:
    """Overwrites sent: P(all at and below the child <= x), at the parent's points."""
    b = len(x)
    gain, offset, deviation = law[0], law[1], law[2]
    for m in range(len(above)):
        out = sent[m]
        for i in range(b):
            out[i] = 0.0
        if is_hard or above_hard:
            for i in range(b):
                centre = gain * (x[i] - above[m] if above_hard else above[m]) + offset
                for k in range(len(point)):
                    z = ((x[i] - point[k] if is_hard else point[k]) - centre) / deviation
                    if -REACH <= z <= REACH:
                        out[i] += weight[k] * math.exp(-0.5 * z * z) / (_ROOT_TWO_PI * deviation) * below[k, i]
        else:
            low, high = _density_row(gain * above[m] + offset, deviation, point, row)
            for k in range(low, high):
                coefficient = weight[k] * row[k]
                source = below[k]
                for i in range(b):
                    out[i] += coefficient * source[i]
        for i in range(b):
            if out[i] < _NOTHING:
                out[i] = 0.0


@kernel
def _spread(
    x: Floats,  # (b,)
    law: Floats,  # (3,) of the child
    above: Floats,  # (n_above,) points of the parent
    above_hard: bool,
    point: Floats,  # (n,) points of the child
    is_hard: bool,
    others: Floats,  # (n_above, b or more) mass at the parent's points with all but what is below the child <= x
    row: Floats,  # (n,) scratch
    density: Floats,  # (n, b or more)
) -> None:
    """Overwrites density: that of the child's value, with all actions that are not at or below it <= x."""
    b = len(x)
    gain, offset, deviation = law[0], law[1], law[2]
    for k in range(len(point)):
        for i in range(b):
            density[k, i] = 0.0
    for m in range(len(above)):
        source = others[m]
        if is_hard or above_hard:
            for i in range(b):
                centre = gain * (x[i] - above[m] if above_hard else above[m]) + offset
                for k in range(len(point)):
                    z = ((x[i] - point[k] if is_hard else point[k]) - centre) / deviation
                    if -REACH <= z <= REACH:
                        density[k, i] += source[i] * math.exp(-0.5 * z * z) / (_ROOT_TWO_PI * deviation)
        else:
            low, high = _density_row(gain * above[m] + offset, deviation, point, row)
            for k in range(low, high):
                coefficient = row[k]
                out = density[k]
                for i in range(b):
                    out[i] += coefficient * source[i]


@kernel
def pass_over(
    x: Floats,  # (b,) ascending
    x_weight: Floats,  # (b,)
    up: Nodes,  # (N,)
    law: Floats,  # (N, 3)
    kind: Nodes,  # (N,)
    top: Floats,  # (N,)
    point_start: Integers,  # (N + 1,) where the points of each node begin
    point: Floats,  # (n_points,)
    weight: Floats,  # (n_points,)
    sent_start: Integers,  # (N,) where what each node has sent begins
    group_start: Integers,  # (N + 1,)
    group_type: Nodes,  # (n_groups,)
    group_count: Floats,  # (n_groups,)
    type_start: Integers,  # (n_types + 1,) where each type's entries begin
    type_from: Floats,  # (n_types,) the value of the first
    type_step: Floats,  # (n_types,) from one to the next
    log_rate: Floats,  # (n_entries,)
    log_hazard: Floats,  # (n_entries,)
    mass: Floats,  # (n_points, b or more) scratch
    sent: Floats,  # (n_sent, b or more) scratch
    node_wins: Floats,  # (N,)
    group_wins: Floats,  # (n_groups,)
    at_most: Floats,  # (b,)
    density: Floats,  # (b,)
) -> None:
    """Adds to node_wins and group_wins the part that has the best at these x, and overwrites the law of the best.

    A group's wins are those of one of the subtrees in it.
    """
    b = len(x)
    n = len(up)
    upto = np.zeros(n, dtype=np.int64)  # how many x are not above everything below a node
    most_points = 1
    for j in range(n):
        if kind[j] != DEAD:
            upto[j] = np.searchsorted(x, top[j])
        if kind[j] >= SOFT or j == 0:
            most_points = max(most_points, point_start[j + 1] - point_start[j])
            for k in range(point_start[j], point_start[j + 1]):
                for i in range(b):
                    mass[k, i] = 1.0
    row = np.empty(most_points)

    for j in range(n - 1, -1, -1):  # rootward
        end = upto[j]
        if end == 0:
            continue
        begin, stop = point_start[j], point_start[j + 1]
        is_hard = kind[j] == HARD and j > 0
        for g in range(group_start[j], group_start[j + 1]):
            type_ = group_type[g]
            first, step = type_from[type_], type_step[type_]
            rates = log_rate[type_start[type_] : type_start[type_ + 1]]
            last = len(rates) - 2.0
            for k in range(begin, stop):
                for i in range(end):
                    place = ((point[k] if is_hard else x[i] - point[k]) - first) / step
                    if place < 0.0:
                        mass[k, i] = 0.0
                    elif place < last:
                        mass[k, i] *= math.exp(-group_count[g] * math.exp(_interpolated(place, rates)))
        if j == 0:
            break
        above = up[j]
        start, finish = point_start[above], point_start[above + 1]
        above_hard = kind[above] == HARD and above > 0
        if kind[j] == LEAF:
            gain, offset, scale = law[j, 0], law[j, 1], 1.0 / law[j, 2]
            for k in range(start, finish):
                out = mass[k]
                if above_hard:
                    for i in range(end):
                        out[i] *= _below((x[i] - gain * (x[i] - point[k]) - offset) * scale)
                else:
                    centre = gain * point[k] + offset
                    for i in range(end):
                        out[i] *= _below((x[i] - centre) * scale)
            continue
        here = sent[sent_start[j] : sent_start[j] + finish - start]
        _collect(
            x[:end], law[j], point[start:finish], above_hard, point[begin:stop], weight[begin:stop], is_hard,
            mass[begin:stop], row, here,
        )  # fmt: skip
        for k in range(start, finish):
            for i in range(end):
                mass[k, i] *= here[k - start, i]

    for i in range(b):
        at_most[i] = mass[0, i]
        density[i] = 0.0
    found = np.empty(b)
    for j in range(n):  # leafward: from here on mass is a measure, of a node's value with all actions <= x
        end = upto[j]
        if end == 0:
            continue
        begin, stop = point_start[j], point_start[j + 1]
        is_hard = kind[j] == HARD and j > 0
        if j > 0:
            above = up[j]
            start, finish = point_start[above], point_start[above + 1]
            above_hard = kind[above] == HARD and above > 0
            gain, offset, scale = law[j, 0], law[j, 1], 1.0 / law[j, 2]
            for i in range(end):
                found[i] = 0.0
            if kind[j] == LEAF:
                for k in range(start, finish):
                    source = mass[k]
                    for i in range(end):
                        if source[i] > 0.0:
                            centre = gain * (x[i] - point[k] if above_hard else point[k]) + offset
                            z = (x[i] - centre) * scale
                            found[i] += source[i] * math.exp(-0.5 * z * z) / _below(z)
                for i in range(end):
                    found[i] *= scale / _ROOT_TWO_PI
            else:
                here = sent[sent_start[j] : sent_start[j] + finish - start]
                for k in range(start, finish):
                    for i in range(end):
                        if here[k - start, i] > 0.0:
                            here[k - start, i] = mass[k, i] / here[k - start, i]
                inner = np.empty((stop - begin, end))
                _spread(x[:end], law[j], point[start:finish], above_hard, point[begin:stop], is_hard, here, row, inner)
                if is_hard:  # its first point, of weight zero, is x itself
                    for i in range(end):
                        found[i] = inner[0, i] * mass[begin, i]
                for k in range(begin, stop):
                    for i in range(end):
                        mass[k, i] *= weight[k] * inner[k - begin, i]
            for i in range(end):
                node_wins[j] += x_weight[i] * found[i]
                density[i] += found[i]
        for g in range(group_start[j], group_start[j + 1]):
            type_ = group_type[g]
            first, step = type_from[type_], type_step[type_]
            hazards = log_hazard[type_start[type_] : type_start[type_ + 1]]
            last = len(hazards) - 2.0
            for i in range(end):
                found[i] = 0.0
            for k in range(begin, stop):
                for i in range(end):
                    place = ((point[k] if is_hard else x[i] - point[k]) - first) / step
                    if 0.0 <= place < last:
                        found[i] += mass[k, i] * math.exp(_interpolated(place, hazards))
            for i in range(end):
                group_wins[g] += x_weight[i] * found[i]
                density[i] += group_count[g] * found[i]
