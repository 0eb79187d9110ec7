"""A whole run of one policy where parameters are vectors: decisions, rewards and updates in one kernel."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.kernels.choose import choose
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.vector import observe_row
from bough.inference.kernels.vector_draws import draw_touched, draw_untouched, refresh_root


@kernel
def play(
    sampled: bool,  # draw parameters each round; otherwise take their means
    rng: np.random.Generator,
    truth: Floats,  # (K, d) each action's parameter
    eligible: Flags,  # (K,) the actions among which the best is sought
    contexts: Floats,  # (rounds, d)
    noise: Floats,  # (rounds,) added to the mean reward, unless there are residuals
    residuals: Floats,  # (n,) each action's own noise, or empty
    residual_start: Integers,  # (K + 1,)
    pick: Floats,  # (rounds,) uniform
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    factor: Floats,  # (n_classes, d, d) L'
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    evidence: Floats,  # (V, 3 + d (d + 3) / 2) zeros on entry
    triangle: Floats,  # (V, d, d) C, identities on entry
    pull: Floats,  # (V, d, d) E', zeros on entry
    target: Floats,  # (V, d) f, zeros on entry
    root: Floats,  # (V, d, d) F'
    stale: Flags,  # (V,) False on entry: not observed yet
    value: Floats,  # (V, d)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from evidence on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number, and stale says which are touched. The same
    numbers, drawn in the same order, as the policy's own decide and update give.
    """
    d = len(mean)
    above, inner, drawn = np.empty(d), np.empty(d), np.empty(d)
    own, cosine, sine, w = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    x, combination, reach, account = np.empty(d + 1), np.empty(d + 1), np.zeros(d), np.zeros(2)
    for t in range(len(gap)):
        for i in range(len(value)):
            for k in range(d):
                value[i, k] = rng.standard_normal() if sampled else 0.0
        for i in range(len(value)):
            p = tree_parent[i]
            if stale[i]:
                draw_touched(value, i, p, mean, i, pull, target, root, above, inner, drawn)
            else:
                draw_untouched(value, i, p, mean, class_of_node[i], factor, drawn)
        best = -math.inf
        for a in range(len(leaves)):
            score[a] = 0.0
            true = 0.0
            for k in range(d):
                score[a] += value[leaves[a], k] * contexts[t, k]
                true += truth[a, k] * contexts[t, k]
            if eligible[a]:
                best = max(best, true)
        action = choose(score, rng)
        taken = 0.0
        for k in range(d):
            taken += truth[action, k] * contexts[t, k]
        gap[t] = best - taken
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        for k in range(d):
            x[k] = contexts[t, k]
        x[d] = taken + off
        slot = leaves[action]
        observe_row(
            x, slot, slot, mean, deviation, False, tree_parent, class_of_node, factor, evidence, triangle, pull, target,
            stale, w, own, cosine, sine, combination, reach, account,
        )  # fmt: skip
        while slot >= 0:
            refresh_root(slot, class_of_node[slot], factor, triangle, root)
            slot = tree_parent[slot]
