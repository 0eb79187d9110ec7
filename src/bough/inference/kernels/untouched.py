"""Untouched subtrees in the capped search: the best action of a group, and all of its actions above a threshold.

The actions of a group are exchangeable, so that who they are is drawn when it matters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.lines import (
    CHILD_KIND,
    COUNT,
    KIND,
    N_CHILDREN,
    OWN_STEP,
    TABLE_FIRST,
    TABLE_SIZE,
    TABLE_START,
    TABLE_STEP,
    Lines,
)
from bough.inference.kernels.quantiles import quantile, rate
from bough.inference.kernels.regular import cubic
from bough.inference.kernels.slots import find_one, whole
from bough.inference.kernels.top import insert

_CERTAIN = 1e9  # a rate, in place of infinity
_CELLS_PER_UNIT = 8
_REACH = 9  # deviations
_N_CELLS = 2 * _REACH * _CELLS_PER_UNIT


@kernel
def rate_above(lines: Lines, kind: int, distance: float) -> Any:
    """The rate at which the best action below a node of a kind is that far above the value of the node's parent."""
    of = lines.kind[kind]
    if of[CHILD_KIND] < 0.0:
        return min(rate(distance / of[OWN_STEP]), _CERTAIN)
    size = int(of[TABLE_SIZE])
    place = max((distance - of[TABLE_START]) / of[TABLE_STEP], 0.0)
    if place >= size - 1:
        return 0.0
    i = min(max(int(place), 1), size - 3)
    first = int(of[TABLE_FIRST]) + i
    a, b = math.log(lines.rates[first - 1]), math.log(lines.rates[first])
    c, d = math.log(lines.rates[first + 1]), math.log(lines.rates[first + 2])
    return math.exp(cubic(place - i, a, b, c, d))


@kernel
def height_of_rate(lines: Lines, kind: int, wanted: float) -> Any:
    """How far above the value of its parent the best action below a node is, where that has this rate."""
    of = lines.kind[kind]
    if of[CHILD_KIND] < 0.0:
        return of[OWN_STEP] * quantile(max(wanted, 1e-300))
    first, size = int(of[TABLE_FIRST]), int(of[TABLE_SIZE])
    low, high = 0, size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if lines.rates[first + middle] >= wanted:
            low = middle
        else:
            high = middle
    i = min(max(low, 1), size - 3)
    a, b = math.log(lines.rates[first + i - 1]), math.log(lines.rates[first + i])
    c, d = math.log(lines.rates[first + i + 1]), math.log(lines.rates[first + i + 2])
    target = math.log(max(wanted, 1e-300))
    left, right = float(low - i), float(high - i)
    for _ in range(48):
        middle_u = 0.5 * (left + right)
        if cubic(middle_u, a, b, c, d) >= target:
            left = middle_u
        else:
            right = middle_u
    return of[TABLE_START] + (i + 0.5 * (left + right)) * of[TABLE_STEP]


@kernel
def untouched_child(
    node: int,
    kind: int,
    uniform: float,
    known: Nodes,  # (n,) nodes that have been drawn already
    child_start: Nodes,  # (V + 1,)
    kind_of_node: Nodes,  # (V,)
    slot_node: Nodes,  # (T,)
    table: Nodes,  # (a power of two,) of slots
) -> int:
    """A child of a node, any of those of this kind that are untouched and not known, with equal chances."""
    low, high = child_start[node], child_start[node + 1]
    n = 0
    for child in range(low, high):
        if _is_new(child, kind, known, kind_of_node, slot_node, table):
            n += 1
    wanted = int(uniform * n)
    for child in range(low, high):
        if _is_new(child, kind, known, kind_of_node, slot_node, table):
            if wanted == 0:
                return child
            wanted -= 1
    return -1


@kernel
def _is_new(node: int, kind: int, known: Nodes, kind_of_node: Nodes, slot_node: Nodes, table: Nodes) -> bool:
    """Whether a node is of a kind, untouched, and not known."""
    if kind_of_node[node] != kind or find_one(node, slot_node, table) >= 0:
        return False
    is_known = False
    for one in known:
        is_known |= one == node
    return not is_known


@kernel
def any_action_below(node: int, uniform: float, child_start: Nodes) -> int:
    """An action of a subtree that is alike throughout, all with equal chances."""
    low, high = node, node + 1
    while child_start[low] < child_start[high]:
        low, high = child_start[low], child_start[high]
    return low + int(uniform * (high - low))


@kernel
def normal_below(
    lines: Lines, kind: int, distance: float, envelope: Floats, uniforms: Floats, at: int
) -> tuple[float, int]:
    """The standard normal of a node below which some action is known to be that far above the node's parent.

    Its density is that of a normal times the probability that some child has such an action, which increases: in each
    cell of a grid the largest of the one and the value at the end of the other bound it, and a draw below the bounds is
    kept if it is below the density. Also how many random numbers were used; 0 where there are too few.
    """
    of = lines.kind[kind]
    child, count, step = int(of[CHILD_KIND]), of[N_CHILDREN], of[OWN_STEP]
    total = 0.0
    for cell in range(_N_CELLS):
        low, high = cell / _CELLS_PER_UNIT - _REACH, (cell + 1) / _CELLS_PER_UNIT - _REACH
        nearest = low if low >= 0.0 else (high if high <= 0.0 else 0.0)
        some = -math.expm1(-count * rate_above(lines, child, distance - step * high))
        envelope[cell] = math.exp(-0.5 * nearest * nearest) * some
        total += envelope[cell]
    used = 0
    while at + used + 3 <= len(uniforms):
        wanted, cell = uniforms[at + used] * total, 0
        while cell < _N_CELLS - 1 and wanted >= envelope[cell]:
            wanted -= envelope[cell]
            cell += 1
        normal = (cell + uniforms[at + used + 1]) / _CELLS_PER_UNIT - _REACH
        some = -math.expm1(-count * rate_above(lines, child, distance - step * normal))
        used += 3
        if uniforms[at + used - 1] * envelope[cell] < math.exp(-0.5 * normal * normal) * some:
            return normal, used
    return 0.0, 0


@kernel
def first_of(total: float, uniform: float) -> float:
    """The first point of a Poisson process on a line of that length, where there is one."""
    return -math.log1p(uniform * math.expm1(-total))


@kernel
def is_in(node: int, nodes: Nodes) -> bool:
    """Whether an ascending list has a node."""
    i = np.searchsorted(nodes, node)
    return bool(i < len(nodes) and nodes[i] == node)


@kernel
def open_group(
    lines: Lines,
    group: int,
    owner: int,  # the node above it
    value: float,  # that node's
    length: float,  # that each member takes of the group's line
    point: float,  # how far along the line its first point is; -1 where that is not known
    left_out: Nodes,  # ascending
    known: Nodes,  # (n,) nodes that have been drawn, and room for more
    n_known: int,
    child_start: Nodes,  # (V + 1,)
    kind_of_node: Nodes,  # (V,)
    slot_node: Nodes,  # (T,)
    table: Nodes,  # (a power of two,)
    uniforms: Floats,
    at: int,
    top: Nodes,  # (k,)
    top_score: Floats,  # (k,)
) -> tuple[int, int, int]:
    """Overwrites top_* with what a group has to offer; returns how many random numbers were used, and nodes known.

    And how much was looked at. The members of the group lie on a line, and so do the children of each member that is
    known to have an action above the k-th best: such a member is gone into at once, and then the line is followed
    further. The first number is -1 where there are too few random numbers.
    """
    last = len(top_score) - 1
    levels = 2
    below = whole(lines.kind[lines.group[group, KIND], CHILD_KIND])
    while below >= 0:
        levels += 1
        below = whole(lines.kind[below, CHILD_KIND])
    node, kind, left = np.empty(levels, np.int64), np.empty(levels, np.int64), np.empty(levels, np.int64)
    values, firsts, thresholds = np.empty(levels), np.empty(levels), np.empty(levels)
    envelope = np.empty(_N_CELLS)
    node[0], kind[0], left[0] = owner, lines.group[group, KIND], lines.group[group, COUNT]
    values[0], firsts[0], thresholds[0] = value, point, top_score[last]
    depth, looked = 1, 0
    while depth > 0:
        if at + 4 > len(uniforms):
            return -1, n_known, looked
        here = depth - 1
        is_first = firsts[here] >= 0.0
        threshold = thresholds[here] if is_first else top_score[last]
        each = rate_above(lines, whole(kind[here]), threshold - values[here])
        if is_first:
            distance = firsts[here]
            firsts[here] = -1.0
        else:
            distance = -math.log1p(-uniforms[at])
            at += 1
        taken = length if is_first and here == 0 else each
        looked += 1
        if left[here] == 0 or distance >= left[here] * taken:
            depth -= 1
            continue
        passed = int(distance / taken)
        offset = distance - passed * taken
        left[here] -= passed + 1
        if offset >= each:  # the length was more than it takes
            continue
        of = lines.kind[kind[here]]
        child = untouched_child(
            node[here], kind[here], uniforms[at], known[:n_known], child_start, kind_of_node, slot_node, table
        )
        at += 1
        looked += child_start[node[here] + 1] - child_start[node[here]]
        known[n_known] = child
        n_known += 1
        if of[CHILD_KIND] < 0.0:
            score = values[here] + of[OWN_STEP] * quantile(max(offset, 1e-17))
            if score > top_score[last] and not is_in(child, left_out):
                insert(child, score, top, top_score)
            continue
        normal, used = normal_below(lines, kind[here], threshold - values[here], envelope, uniforms, at)
        at += used
        if used == 0 or at + 1 > len(uniforms):
            return -1, n_known, looked
        looked += _N_CELLS
        values[depth], thresholds[depth] = values[here] + of[OWN_STEP] * normal, threshold
        node[depth], kind[depth], left[depth] = child, int(of[CHILD_KIND]), int(of[N_CHILDREN])
        total = left[depth] * rate_above(lines, kind[depth], threshold - values[depth])
        firsts[depth] = first_of(total, uniforms[at])
        at += 1
        depth += 1
    return at, n_known, looked
