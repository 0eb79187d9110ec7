"""The compiled search in a regular tree, whose subtrees of a depth are alike; docs/explanation/decisions.md derives it.

As in search.py, touched nodes come with their sampled values, and below each hangs a group of untouched ones.
Here the law of the largest value below an untouched node depends on its depth alone and is tabulated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.groups import free_child, mark_touched
from bough.inference.kernels.jit import kernel


@kernel
def cubic(u: float, a: float, b: float, c: float, d: float) -> float:
    """At u of the cubic through a, b, c, d at -1, 0, 1, 2."""
    return (
        -u * (u - 1.0) * (u - 2.0) / 6.0 * a
        + (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0 * b
        - (u + 1.0) * u * (u - 2.0) / 2.0 * c
        + (u + 1.0) * u * (u - 1.0) / 6.0 * d
    )


@kernel
def _log_rate(x: float, log_rates: Floats, start: float, step: float) -> Any:
    """The tabulated log rate at x, by the cubic through the four nearest entries."""
    place = (x - start) / step
    i = min(max(int(place), 1), len(log_rates) - 3)
    u = place - i
    return cubic(u, log_rates[i - 1], log_rates[i], log_rates[i + 1], log_rates[i + 2])


@kernel
def _invert(target: float, log_rates: Floats, start: float, step: float) -> Any:
    """The x at which the tabulated rate, which decreases, is the target."""
    wanted = math.log(target)
    low, high = 0, len(log_rates) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if log_rates[middle] >= wanted:
            low = middle
        else:
            high = middle
    left, right = start + low * step, start + high * step
    for _ in range(60):
        middle_x = 0.5 * (left + right)
        if _log_rate(middle_x, log_rates, start, step) >= wanted:
            left = middle_x
        else:
            right = middle_x
    return 0.5 * (left + right)


@kernel
def search_regular(
    value: Floats,  # (T,)
    choosable: Flags,  # (T,) the actions that may be chosen
    slot_node: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    free: Nodes,  # (T, height + 2)
    child_start: Nodes,  # (V + 1,)
    rates: Floats,  # (height + 1, n) rate at which the best action below a node of that depth is above an entry
    log_rates: Floats,  # (height + 1, n)
    start: float,  # where the first entry is
    step: float,  # from one to the next
    uniforms: Floats,  # (n,) at least three
    top_node: Nodes,  # (1,)
    top_score: Floats,  # (1,)
) -> int:
    """Overwrites top_* with the best action of the sample; returns how many nodes were visited.

    Or -1, when it needs more uniforms: the same call with more of them behind the same ones goes on.
    The largest value below n alike nodes has a tabulated law, so a group needs one draw, and the action that attains
    it may be any of the group's, equally likely.
    """
    best = -math.inf
    winner = -1
    for slot in range(len(value)):
        if value[slot] > best and choosable[slot]:
            best = value[slot]
            winner = slot
    last = rates.shape[1] - 1
    budget = -math.log1p(-uniforms[2])
    drawn = 3
    for slot in range(len(value)):
        count = free[slot, 1]
        if count == 0:
            continue
        depth = slot_depth[slot] + 1
        place = (best - value[slot] - start) / step
        if place >= last:
            continue  # beyond the table the rate is below every number that matters
        spent = count * rates[depth, int(place)] if place > 0.0 else math.inf
        if budget > spent:
            budget -= spent
            continue
        largest = value[slot] + _invert(budget / count, log_rates[depth], start, step)
        if largest > best:
            best = largest
            winner = slot
        if drawn == len(uniforms):
            return -1
        budget = -math.log1p(-uniforms[drawn])
        drawn += 1
    visited = len(value)
    node = slot_node[winner]
    if not choosable[winner]:  # in the group below it
        low, high = child_start[node], child_start[node + 1]
        marked = np.empty(high - low, dtype=np.bool_)
        mark_touched(winner, low, slot_node, first_child, next_sibling, marked)
        child = free_child(low, marked, int(uniforms[0] * free[winner, 1]))
        visited += high - low
        low, high = child, child + 1
        while child_start[low] < child_start[high]:
            low, high = child_start[low], child_start[high]
        node = low + int(uniforms[1] * (high - low))
    top_node[0] = node
    top_score[0] = best
    return visited
