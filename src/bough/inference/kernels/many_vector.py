"""Blocks of decisions where parameters are vectors: one joint draw for each, in the direction of its context.

A law is read once for a block, and used for all of its decisions, which are the last axis. Nodes that have touched ones
below them are drawn as vectors. Of an action, and of what is below a node without observations, the score alone
matters: one normal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.groups import extend_values
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.many_scalar import FIRST_UNIFORMS, more_uniforms
from bough.inference.kernels.normals import fill
from bough.inference.kernels.regular import search_regular
from bough.inference.kernels.search import search
from bough.inference.kernels.top import top_of

TIE = 1e-9  # steps of actions this small beside the rest may be lost in rounding


@kernel
def class_deviations(
    x: Floats,  # (d, B)
    factor: Floats,  # (n_classes, d, d) L'
    scale: float,
) -> Any:
    """(n_classes, B) the deviation of a step in the direction of each context."""
    d, size = x.shape
    out = np.zeros((len(factor), size))
    row = np.empty(size)
    for class_ in range(len(factor)):
        square = out[class_]
        for k in range(d):
            row[:] = 0.0
            for j in range(d):
                entry = factor[class_, k, j]
                if entry != 0.0:
                    for b in range(size):
                        row[b] += entry * x[j, b]
            for b in range(size):
                square[b] += row[b] * row[b]
        for b in range(size):
            square[b] = scale * math.sqrt(square[b])
    return out


@kernel
def draw(
    x: Floats,  # (d, B)
    rng: np.random.Generator,
    scale: float,
    parent: Nodes,  # (n,) positions, -1 for the root
    slots: Nodes,  # (n,) -1 where untouched
    classes: Nodes,  # (n,)
    place: Nodes,  # (n,) where the vectors of touched nodes inside the tree are; -1 elsewhere
    mean: Floats,  # (d,)
    deviation: Floats,  # (n_classes, B)
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    root: Floats,  # (T, d, d) F'
    vectors: Floats,  # (inside, d, B)
    out: Floats,  # (B, n)
) -> None:
    """Overwrites vectors, and out: the score of each node for each decision; parents before children."""
    d, size = x.shape
    centre, score, square = np.zeros(size), np.empty(size), np.empty(size)
    u, w, noise = np.empty((d, size)), np.empty((d, size)), np.empty((d, size))
    nothing = np.zeros((d, size))
    for j in range(d):
        for b in range(size):
            centre[b] += mean[j] * x[j, b]
    for i in range(len(parent)):
        p, slot = parent[i], slots[i]
        if slot < 0:
            fill(rng, score)
            step = deviation[classes[i]]
            for b in range(size):
                above = out[b, p] if p >= 0 else centre[b]
                out[b, i] = above + step[b] * score[b]
            continue
        a = vectors[place[p]] if p >= 0 else nothing
        if place[i] >= 0:
            fill(rng, noise.ravel())
            for k in range(d):
                for b in range(size):
                    u[k, b] = target[slot, k] + scale * noise[k, b]
            for j in range(d):
                for k in range(d):
                    entry = pull[slot, j, k]
                    for b in range(size):
                        u[k, b] -= entry * a[j, b]
            own = vectors[place[i]]
            own[:] = a
            for j in range(d):
                for k in range(d):
                    entry = root[slot, j, k]
                    for b in range(size):
                        own[k, b] += entry * u[j, b]
            score[:] = centre
            for j in range(d):
                for b in range(size):
                    score[b] += own[j, b] * x[j, b]
            for b in range(size):
                out[b, i] = score[b]
            continue
        # u = F'x; the score is x'theta_p + u'(f - E theta_p) + |u| z.
        square[:] = 0.0
        score[:] = centre
        for j in range(d):
            for b in range(size):
                w[j, b] = x[j, b]
        for k in range(d):
            line = u[k]
            line[:] = 0.0
            for j in range(d):
                entry = root[slot, k, j]
                for b in range(size):
                    line[b] += entry * x[j, b]
            for b in range(size):
                square[b] += line[b] * line[b]
            for j in range(d):
                entry = pull[slot, j, k]
                for b in range(size):
                    w[j, b] -= entry * line[b]
        for j in range(d):
            for b in range(size):
                score[b] += a[j, b] * w[j, b]
        for k in range(d):
            entry = target[slot, k]
            for b in range(size):
                score[b] += entry * u[k, b]
        fill(rng, noise[0])
        for b in range(size):
            out[b, i] = score[b] + scale * math.sqrt(square[b]) * noise[0, b]


@kernel
def best_of_drawn(
    rng: np.random.Generator,
    values: Floats,  # (B, n)
    candidates: Nodes,  # positions
    top: Nodes,  # (B, k) positions
    top_score: Floats,  # (B, k)
) -> None:
    """Overwrites top and top_score with the k best candidates of each draw; ties in random order."""
    for b in range(len(values)):
        top_of(values[b], candidates, rng, top[b], top_score[b])


@kernel
def best_of_searches(
    x: Floats,  # (d, B)
    rng: np.random.Generator,
    drawn: Floats,  # (B, touched)
    mean: Floats,  # (d,)
    deviation: Floats,  # (n_classes, B)
    slot_parent: Nodes,  # (T,)
    class_of_node: Nodes,  # (V,)
    leaf_classes: Nodes,
    level_first: Nodes,  # (height + 2,) where in level_classes the classes of each depth start
    level_classes: Nodes,
    choosable: Flags,  # (T,)
    slot_node: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    free: Nodes,  # (T, height + 2)
    child_start: Nodes,  # (V + 1,)
    has_actions: Flags,  # (height + 1,)
    typical: Floats,  # (height + 1, height + 1)
    bounds: Floats,  # (n,) of rates
    reference: Floats,  # (height + 1,) the deviations that the tables are for; empty where there are none
    rates: Floats,  # (height + 1, n)
    log_rates: Floats,  # (height + 1, n)
    start: float,
    step: float,
    top_node: Nodes,  # (B, k)
    top_score: Floats,  # (B, k)
) -> None:
    """Overwrites top_* with the k best actions of each draw, or a first node of -1 where actions may tie."""
    d, size = x.shape
    height = len(has_actions) - 1
    value, one = np.empty(len(slot_node)), np.empty(len(deviation))
    widest, narrowest = np.empty(height + 1), np.empty(height + 1)
    n = drawn.shape[1]
    for b in range(size):
        centre, largest = 0.0, 0.0
        for j in range(d):
            centre += mean[j] * x[j, b]
        for class_ in range(len(one)):
            one[class_] = deviation[class_, b]
            largest = max(largest, one[class_])
        may_tie = False
        for class_ in leaf_classes:
            may_tie |= one[class_] <= TIE * max(largest, abs(centre))
        if may_tie:
            top_node[b, 0] = -1
            continue
        for depth in range(height + 1):
            widest[depth], narrowest[depth] = 0.0, math.inf
            for i in range(level_first[depth], level_first[depth + 1]):
                widest[depth] = max(widest[depth], one[level_classes[i]])
                narrowest[depth] = min(narrowest[depth], one[level_classes[i]])
        value[:n] = drawn[b]
        if n < len(value):
            fill(rng, value[n:])
            extend_values(n, value, slot_node, slot_parent, class_of_node, one, centre)
        in_proportion = len(reference) > 0
        scale = 1.0
        if in_proportion:
            scale = widest[height] / reference[height]
            for depth in range(height + 1):
                in_proportion &= abs(widest[depth] - scale * reference[depth]) <= 1e-14 * largest
        if not in_proportion:
            search(
                value, choosable, slot_node, slot_depth, first_child, next_sibling, free, child_start, class_of_node,
                one, widest, narrowest, has_actions, typical, bounds, rng, top_node[b], top_score[b],
            )  # fmt: skip
            continue
        uniforms = np.empty(FIRST_UNIFORMS)
        for j in range(FIRST_UNIFORMS):
            uniforms[j] = rng.random()
        while search_regular(
            value, choosable, slot_node, slot_depth, first_child, next_sibling, free, child_start, rates, log_rates,
            start * scale, step * scale, uniforms, top_node[b], top_score[b],
        ) < 0:  # fmt: skip
            uniforms = more_uniforms(rng, uniforms)
