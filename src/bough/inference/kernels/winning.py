"""How likely each action is to be the best: messages on grids; docs/explanation/being-best.md derives them.

Nodes are those of winning_grids.py. A SOFT one has the same points for every x. A HARD one cannot be above x, so its
points are distances below x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.winning_grids import DEAD, HARD, LEAF, REACH

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
def _take_groups(
    x: Floats,  # (b,)
    point: Floats,  # (n,)
    is_hard: bool,
    count: float,  # subtrees in the group
    first: float,  # where the table begins
    step: float,
    rates: Floats,  # (entries,) their logarithms
    below: Floats,  # (n, b or more)
) -> None:
    """Multiplies below with P(all actions of a group <= x)."""
    last = len(rates) - 2.0
    for k in range(len(point)):
        out = below[k]
        for i in range(len(x)):
            place = ((point[k] if is_hard else x[i] - point[k]) - first) / step
            if place < 0.0:
                out[i] = 0.0
            elif place < last:
                out[i] *= math.exp(-count * math.exp(_interpolated(place, rates)))


@kernel
def _group_density(
    x: Floats,  # (b,)
    point: Floats,  # (n,)
    is_hard: bool,
    first: float,
    step: float,
    hazards: Floats,  # (entries,) their logarithms
    mass: Floats,  # (n, b or more)
    found: Floats,  # (b,)
) -> None:
    """Overwrites found: the density at x of the best of one subtree of a group, with all others <= x."""
    last = len(hazards) - 2.0
    for i in range(len(x)):
        found[i] = 0.0
    for k in range(len(point)):
        for i in range(len(x)):
            place = ((point[k] if is_hard else x[i] - point[k]) - first) / step
            if 0.0 <= place < last:
                found[i] += mass[k, i] * math.exp(_interpolated(place, hazards))


@kernel
def _take_leaf(
    x: Floats,  # (b,)
    law: Floats,  # (3,)
    above: Floats,  # (n,) points of the parent
    above_hard: bool,
    below: Floats,  # (n, b or more)
) -> None:
    """Multiplies below with P(an action <= x)."""
    gain, offset, scale = law[0], law[1], 1.0 / law[2]
    for k in range(len(above)):
        out = below[k]
        for i in range(len(x)):
            centre = gain * (x[i] - above[k] if above_hard else above[k]) + offset
            out[i] *= _below((x[i] - centre) * scale)


@kernel
def _leaf_density(
    x: Floats,  # (b,)
    law: Floats,  # (3,)
    above: Floats,  # (n,) points of the parent
    above_hard: bool,
    mass: Floats,  # (n, b or more)
    found: Floats,  # (b,)
) -> None:
    """Overwrites found: the density of an action at x, with all others <= x."""
    gain, offset, scale = law[0], law[1], 1.0 / law[2]
    for i in range(len(x)):
        found[i] = 0.0
    for k in range(len(above)):
        source = mass[k]
        for i in range(len(x)):
            if source[i] > 0.0:
                centre = gain * (x[i] - above[k] if above_hard else above[k]) + offset
                z = (x[i] - centre) * scale
                found[i] += source[i] * math.exp(-0.5 * z * z) / _below(z)
    for i in range(len(x)):
        found[i] *= scale / _ROOT_TWO_PI


@kernel
def rootward(
    x: Floats,  # (b,) ascending
    up: Nodes,  # (N,)
    law: Floats,  # (N, 3)
    kind: Nodes,  # (N,)
    top: Floats,  # (N,)
    point_start: Integers,  # (N + 1,) where the points of each node begin
    point: Floats,  # (n_points,)
    weight: Floats,  # (n_points,)
    sent_start: Integers,  # (N,) where what each node sends begins
    group_start: Integers,  # (N + 1,)
    group_type: Nodes,  # (n_groups,)
    group_count: Floats,  # (n_groups,)
    type_start: Integers,  # (n_types + 1,) where each type's entries begin
    type_from: Floats,  # (n_types,) the value of the first
    type_step: Floats,  # (n_types,) from one to the next
    log_rate: Floats,  # (n_entries,)
    row: Floats,  # (most points of a node,) scratch
    mass: Floats,  # (n_points, b or more)
    sent: Floats,  # (n_sent, b or more)
    upto: Integers,  # (N,)
) -> None:
    """Overwrites mass, P(all below a node <= x) at its points; sent, the same as the parent sees it; and upto.

    That is how many x are not above everything below a node: beyond, it does not matter.
    """
    for j in range(len(up)):
        upto[j] = 0 if kind[j] == DEAD else np.searchsorted(x, top[j])
    mass[:] = 1.0
    for j in range(len(up) - 1, -1, -1):
        if upto[j] == 0:
            continue
        seen = x[: upto[j]]
        own = slice(point_start[j], point_start[j + 1])
        is_hard = kind[j] == HARD and j > 0
        for g in range(group_start[j], group_start[j + 1]):
            type_ = group_type[g]
            rates = log_rate[type_start[type_] : type_start[type_ + 1]]
            _take_groups(
                seen, point[own], is_hard, group_count[g], type_from[type_], type_step[type_], rates, mass[own]
            )
        if j == 0:
            return
        parents = slice(point_start[up[j]], point_start[up[j] + 1])
        above, above_hard = point[parents], kind[up[j]] == HARD and up[j] > 0
        if kind[j] == LEAF:
            _take_leaf(seen, law[j], above, above_hard, mass[parents])
            continue
        here, out = sent[sent_start[j] : sent_start[j] + len(above)], mass[parents]
        _collect(seen, law[j], above, above_hard, point[own], weight[own], is_hard, mass[own], row, here)
        for k in range(len(above)):
            for i in range(len(seen)):
                out[k, i] *= here[k, i]


@kernel
def leafward(
    x: Floats,  # (b,) ascending
    x_weight: Floats,  # (b,)
    up: Nodes,  # (N,)
    law: Floats,  # (N, 3)
    kind: Nodes,  # (N,)
    point_start: Integers,  # (N + 1,)
    point: Floats,  # (n_points,)
    weight: Floats,  # (n_points,)
    sent_start: Integers,  # (N,)
    group_start: Integers,  # (N + 1,)
    group_type: Nodes,  # (n_groups,)
    group_count: Floats,  # (n_groups,)
    type_start: Integers,  # (n_types + 1,)
    type_from: Floats,  # (n_types,)
    type_step: Floats,  # (n_types,)
    log_hazard: Floats,  # (n_entries,)
    row: Floats,  # (most points of a node,) scratch
    values: Floats,  # (most points of a node, b or more) scratch
    mass: Floats,  # (n_points, b or more) of `rootward`
    sent: Floats,  # (n_sent, b or more) of `rootward`
    upto: Integers,  # (N,) of `rootward`
    node_wins: Floats,  # (N,)
    group_wins: Floats,  # (n_groups,)
    density: Floats,  # (b,)
) -> None:
    """Adds to the wins the part that has the best at these x, and to density; overwrites mass and sent.

    Mass becomes the measure of a node's value with all actions <= x. A group's wins are those of one of its subtrees.
    """
    found = np.empty(len(x))
    for j in range(len(up)):
        if upto[j] == 0:
            continue
        seen = x[: upto[j]]
        own = slice(point_start[j], point_start[j + 1])
        is_hard = kind[j] == HARD and j > 0
        if j > 0:
            found[:] = 0.0
            parents = slice(point_start[up[j]], point_start[up[j] + 1])
            above, above_hard = point[parents], kind[up[j]] == HARD and up[j] > 0
            if kind[j] == LEAF:
                _leaf_density(seen, law[j], above, above_hard, mass[parents], found)
            else:
                here, source, out = sent[sent_start[j] : sent_start[j] + len(above)], mass[parents], mass[own]
                for k in range(len(above)):
                    for i in range(len(seen)):
                        if here[k, i] > 0.0:
                            here[k, i] = source[k, i] / here[k, i]
                _spread(seen, law[j], above, above_hard, point[own], is_hard, here, row, values)
                if is_hard:  # its first point, of weight zero, is x itself
                    for i in range(len(seen)):
                        found[i] = values[0, i] * out[0, i]
                for k in range(len(out)):
                    for i in range(len(seen)):
                        out[k, i] *= weight[point_start[j] + k] * values[k, i]
            for i in range(len(seen)):
                node_wins[j] += x_weight[i] * found[i]
                density[i] += found[i]
        for g in range(group_start[j], group_start[j + 1]):
            type_ = group_type[g]
            hazards = log_hazard[type_start[type_] : type_start[type_ + 1]]
            _group_density(seen, point[own], is_hard, type_from[type_], type_step[type_], hazards, mass[own], found)
            for i in range(len(seen)):
                group_wins[g] += x_weight[i] * found[i]
                density[i] += group_count[g] * found[i]
