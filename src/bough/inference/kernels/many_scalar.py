"""Blocks of decisions where parameters are numbers: each from a joint draw of its own, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.groups import extend_values
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.normals import fill
from bough.inference.kernels.regular import search_regular
from bough.inference.kernels.scalar_draws import sample_some, sample_touched
from bough.inference.kernels.search import search
from bough.inference.kernels.top import top_of

FIRST_UNIFORMS = 16


@kernel
def _draw(
    rng: np.random.Generator, value: Floats, n: int, scale: float, parent: Nodes, mean: float, law: Floats,
    slot_node: Nodes, slot_parent: Nodes, class_of_node: Nodes, deviation: Floats,
) -> None:  # fmt: skip
    """Overwrites value with a joint draw of the n touched slots, and of those that a search has in addition."""
    fill(rng, value)
    if scale != 1.0:
        for slot in range(n):
            value[slot] *= scale
    sample_touched(value[:n], parent, mean, law)
    extend_values(n, value, slot_node, slot_parent, class_of_node, deviation, mean)


@kernel
def more_uniforms(rng: np.random.Generator, uniforms: Floats) -> Any:
    """Twice as many uniforms, the first of them the same."""
    n = len(uniforms)
    out = np.empty(2 * n)
    out[:n] = uniforms
    for i in range(n, 2 * n):
        out[i] = rng.random()
    return out


@kernel
def best_in_regular_tree(
    rng: np.random.Generator,
    touched: int,
    scale: float,
    parent: Nodes,  # (touched,)
    mean: float,
    law: Floats,  # (touched, 3)
    slot_parent: Nodes,  # (T,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    choosable: Flags,  # (T,)
    slot_node: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    free: Nodes,  # (T, height + 2)
    child_start: Nodes,  # (V + 1,)
    rates: Floats,  # (height + 1, n)
    log_rates: Floats,  # (height + 1, n)
    start: float,
    step: float,
    top_node: Nodes,  # (decisions, 1)
    top_score: Floats,  # (decisions, 1)
) -> None:
    """Overwrites top_* with the best action of each draw."""
    value = np.empty(len(slot_node))
    for i in range(len(top_node)):
        _draw(rng, value, touched, scale, parent, mean, law, slot_node, slot_parent, class_of_node, deviation)
        uniforms = np.empty(FIRST_UNIFORMS)
        for j in range(FIRST_UNIFORMS):
            uniforms[j] = rng.random()
        while search_regular(
            value, choosable, slot_node, slot_depth, first_child, next_sibling, free, child_start, rates, log_rates,
            start, step, uniforms, top_node[i], top_score[i],
        ) < 0:  # fmt: skip
            uniforms = more_uniforms(rng, uniforms)


@kernel
def best_in_any_tree(
    rng: np.random.Generator,
    touched: int,
    scale: float,
    parent: Nodes,  # (touched,)
    mean: float,
    law: Floats,  # (touched, 3)
    slot_parent: Nodes,  # (T,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    choosable: Flags,  # (T,)
    slot_node: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    free: Nodes,  # (T, height + 2)
    child_start: Nodes,  # (V + 1,)
    widest: Floats,  # (height + 1,)
    narrowest: Floats,  # (height + 1,)
    has_actions: Flags,  # (height + 1,)
    typical: Floats,  # (height + 1, height + 1)
    bounds: Floats,  # (n,) of rates
    top_node: Nodes,  # (decisions, k)
    top_score: Floats,  # (decisions, k)
) -> None:
    """Overwrites top_* with the k best actions of each draw."""
    value = np.empty(len(slot_node))
    for i in range(len(top_node)):
        _draw(rng, value, touched, scale, parent, mean, law, slot_node, slot_parent, class_of_node, deviation)
        search(
            value, choosable, slot_node, slot_depth, first_child, next_sibling, free, child_start, class_of_node,
            deviation, widest, narrowest, has_actions, typical, bounds, rng, top_node[i], top_score[i],
        )  # fmt: skip


@kernel
def best_of_drawn(
    rng: np.random.Generator,
    scale: float,
    parent_position: Nodes,  # (n,)
    classes: Nodes,  # (n,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,)
    law: Floats,  # (T, 3)
    candidates: Nodes,  # positions
    top: Nodes,  # (decisions, k) positions
    top_score: Floats,  # (decisions, k)
) -> None:
    """Overwrites top and top_score with the k best candidates of each draw of all nodes; ties in random order."""
    value = np.empty(len(slots))
    for i in range(len(top)):
        fill(rng, value)
        if scale != 1.0:
            for j in range(len(value)):
                value[j] *= scale
        sample_some(value, parent_position, classes, deviation, mean, slots, law)
        top_of(value, candidates, rng, top[i], top_score[i])
