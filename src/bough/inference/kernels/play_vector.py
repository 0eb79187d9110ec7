"""A whole run of one policy where parameters are vectors: decisions, rewards and updates in one kernel."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.kernels.choose import choose
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.likelihoods import GAUSSIAN, drawn_reward, expected_reward, mean_reward
from bough.inference.kernels.sites import site
from bough.inference.kernels.vector import observe_row
from bough.inference.kernels.vector_draws import draw_touched, draw_untouched, refresh_root, score_moments


@kernel
def _draw_all(
    sampled: bool,
    rng: np.random.Generator,
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    factor: Floats,  # (n_classes, d, d) L'
    mean: Floats,  # (d,)
    pull: Floats,  # (V, d, d) E'
    target: Floats,  # (V, d) f
    root: Floats,  # (V, d, d) F'
    touched: Flags,  # (V,)
    value: Floats,  # (V, d)
) -> None:
    """Overwrites value with a draw of every node, or with the means; moves rng on by V d normals for a draw."""
    d = len(mean)
    above, inner, drawn = np.empty(d), np.empty(d), np.empty(d)
    for i in range(len(value)):
        for k in range(d):
            value[i, k] = rng.standard_normal() if sampled else 0.0
    for i in range(len(value)):
        p = tree_parent[i]
        if touched[i]:
            draw_touched(value, i, p, mean, i, pull, target, root, above, inner, drawn)
        else:
            draw_untouched(value, i, p, mean, class_of_node[i], factor, drawn)


@kernel
def _spread_all(
    x: Floats,  # (d,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    factor: Floats,  # (n_classes, d, d) L'
    covariance: Floats,  # (n_classes, d, d)
    triangle: Floats,  # (V, d, d) C
    pull: Floats,  # (V, d, d) E'
    target: Floats,  # (V, d) f
    touched: Flags,  # (V,)
    spread: Floats,  # (V,)
) -> None:
    """Overwrites spread with the variance of each node's product with the context x."""
    d = len(x)
    direction, scratch = np.empty(d), np.empty(d)
    own = np.zeros(len(covariance))
    for c in range(len(covariance)):
        for j in range(d):
            for k in range(d):
                own[c] += x[j] * covariance[c, j, k] * x[k]
    for i in range(len(spread)):
        if touched[i]:
            direction[:] = x
            _, spread[i] = score_moments(
                direction, i, tree_parent, class_of_node, factor, triangle, pull, target, scratch
            )
        else:
            spread[i] = (spread[tree_parent[i]] if i > 0 else 0.0) + own[class_of_node[i]]


@kernel
def _score_all(
    family: int,
    expected: bool,
    quantile: float,
    x: Floats,  # (d,)
    leaves: Nodes,  # (K,)
    value: Floats,  # (V, d)
    spread: Floats,  # (V,) where it counts
    score: Floats,  # (K,)
) -> None:
    """Overwrites score: values times the context, their quantiles, or what reward is expected."""
    before, of_value = -1, 0.0
    for a in range(len(leaves)):
        i = leaves[a]
        total = 0.0
        for k in range(len(x)):
            total += value[i, k] * x[k]
        score[a] = total
        if expected:
            if before >= 0 and total == of_value and spread[i] == spread[before]:  # siblings that nobody has tried
                score[a] = score[a - 1]
            else:
                score[a] = expected_reward(family, total, spread[i])
        elif quantile != 0.0:
            score[a] += quantile * math.sqrt(spread[i])
        before, of_value = i, total


@kernel
def _product(parameters: Floats, row: int, x: Floats) -> float:
    total = 0.0
    for k in range(len(x)):
        total += parameters[row, k] * x[k]
    return total


@kernel
def play(
    family: int,
    sampled: bool,  # draw parameters each round; otherwise take their means
    expected: bool,  # score an action by its expected reward, which counts what is uncertain
    quantiles: Floats,  # (rounds,) standard deviations added to the means
    rng: np.random.Generator,
    truth: Floats,  # (K, d) each action's parameter
    eligible: Flags,  # (K,) the actions among which the best is sought
    contexts: Floats,  # (rounds, d)
    noise: Floats,  # (rounds,) added to the mean reward or, of counts, uniform, unless there are residuals
    residuals: Floats,  # (n,) each action's own noise, or empty
    residual_start: Integers,  # (K + 1,)
    pick: Floats,  # (rounds,) uniform
    largest: float,  # the largest mean reward that can be drawn around
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    factor: Floats,  # (n_classes, d, d) L'
    covariance: Floats,  # (n_classes, d, d)
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    least: float,  # the smallest precision of a site
    evidence: Floats,  # (V, 3 + d (d + 3) / 2) zeros on entry
    triangle: Floats,  # (V, d, d) C, identities on entry
    pull: Floats,  # (V, d, d) E', zeros on entry
    target: Floats,  # (V, d) f, zeros on entry
    root: Floats,  # (V, d, d) F'
    touched: Flags,  # (V,) False on entry
    value: Floats,  # (V, d)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> bool:
    """Overwrites gap with the regret of each round, and everything from evidence on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number. The same numbers, drawn in the same order, as the
    policy's own decide and update give. False, before the run is over, where a reward cannot be drawn or learned from.
    """
    d = len(mean)
    own, cosine, sine, w, x = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    row, combination, reach, account = np.empty(d + 1), np.empty(d + 1), np.zeros(d), np.zeros(2)
    for t in range(len(gap)):
        x[:] = contexts[t]
        _draw_all(sampled, rng, tree_parent, class_of_node, factor, mean, pull, target, root, touched, value)
        if expected or quantiles[t] != 0.0:
            _spread_all(
                x, tree_parent, class_of_node, factor, covariance, triangle, pull, target, touched, spread
            )  # fmt: skip
        _score_all(family, expected, quantiles[t], x, leaves, value, spread, score)
        action = choose(score, rng)
        best = -math.inf
        for a in range(len(leaves)):
            if eligible[a]:
                best = max(best, _product(truth, a, x))
        taken = mean_reward(family, _product(truth, action, x))
        gap[t] = mean_reward(family, best) - taken
        if not taken <= largest:
            return False
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        slot = leaves[action]
        row[:d] = x
        row[d] = drawn_reward(family, taken, off)
        if family != GAUSSIAN:  # a row of unit noise stands for it
            centre = _product(mean.reshape(1, d), 0, x)
            offset, v = score_moments(x, slot, tree_parent, class_of_node, factor, triangle, pull, target, w)
            m, eta, probability = site(family, row[d], 1.0, centre, offset, v)
            scale = math.sqrt(max(m, least))
            if not (math.isfinite(probability) and math.isfinite(m) and math.isfinite(eta / scale)):
                return False
            for k in range(d):
                row[k] *= scale
            row[d] = eta / scale + scale * centre
        observe_row(
            row, slot, slot, mean, deviation, False, tree_parent, class_of_node, factor, evidence, triangle, pull,
            target, touched, w, own, cosine, sine, combination, reach, account,
        )  # fmt: skip
        while slot >= 0:
            refresh_root(slot, class_of_node[slot], factor, triangle, root)
            slot = tree_parent[slot]
    return True
