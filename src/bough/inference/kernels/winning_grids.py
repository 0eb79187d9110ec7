"""What the grids for the probabilities of being best follow from: a tree of steps, and how narrow things are in it.

Nodes here are those that have a step of their own, numbered parents first. Node 0 is a constant above the root. What
has no step is where its parent is: actions that are at the same node tie. A node is a LEAF where nothing but actions
is at it, SOFT where only other nodes hang below it, and HARD where it has both. DEAD ones have no action that counts.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel

DEAD, LEAF, SOFT, HARD = range(4)
REACH = 8.0  # deviations beyond which nothing is left that matters: 6e-16 of the mass


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
    longest: float,  # of a panel, in scores
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
        x += min(size / math.sqrt(_sharpness(narrowest, alike)), longest)
        if n == len(edges):
            return 0
        edges[n] = x
        n += 1
    return n
