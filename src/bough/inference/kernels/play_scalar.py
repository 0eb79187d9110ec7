"""A whole run of one policy where parameters are numbers: decisions, rewards and updates in one kernel."""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.kernels.cavities import cavity
from bough.inference.kernels.choose import choose
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.likelihoods import GAUSSIAN, drawn_reward, expected_reward
from bough.inference.kernels.scalar import DEVIATION, ETA, GAIN, OFFSET, M, refresh_slot
from bough.inference.kernels.scalar_draws import drawn
from bough.inference.kernels.sites import site


@kernel
def _leader(
    family: int,
    expected: bool,
    quantile: float,
    touched: Nodes,  # (n,) the touched nodes, parents before children
    free: Nodes,  # (V,) the children of each node that are not touched
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,) the depth of each node
    first_leaf: int,
    variance: Floats,  # (n_classes,)
    mean: float,
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
) -> int:
    """The place of the action with the highest score, if it is a touched one and alone; -1 otherwise.

    Overwrites value and spread of the touched nodes. What is untouched below a touched node has its mean, and its
    variance with those of the levels below added, so that nobody else has to be looked at. All leaves are equally deep.
    """
    lowest = class_of_node[first_leaf]
    best, rival, leader = -math.inf, -math.inf, -1
    for k in range(len(touched)):
        i = touched[k]
        above = value[tree_parent[i]] if i > 0 else mean
        value[i] = drawn(mean, above, law[i, GAIN], law[i, OFFSET], 0.0, law[i, DEVIATION])
        score = value[i]
        if expected or quantile != 0.0:
            wide = spread[tree_parent[i]] if i > 0 else 0.0
            wide = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * wide
            spread[i] = wide
            for depth in range(class_of_node[i] + 1, lowest + 1):
                wide = wide + variance[depth]
            score = expected_reward(family, score, wide) if expected else score + quantile * math.sqrt(wide)
        if i < first_leaf and free[i] == 0:
            continue
        if score > best:
            best, rival, leader = score, best, (i - first_leaf if i >= first_leaf else -1)
        elif score > rival:
            rival = score
    return leader if best > rival else -1


@kernel
def _best_of_all(
    family: int,
    sampled: bool,
    expected: bool,
    quantile: float,
    rng: np.random.Generator,
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    touched: Flags,  # (V,)
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
) -> int:
    """The place of the action with the highest score; overwrites value to score, moves rng on."""
    for i in range(len(value)):
        above = value[tree_parent[i]] if i > 0 else mean
        if touched[i]:
            step = law[i, DEVIATION] * rng.standard_normal() if sampled else 0.0
            value[i] = drawn(mean, above, law[i, GAIN], law[i, OFFSET], step, law[i, DEVIATION])
        else:
            step = deviation[class_of_node[i]] * rng.standard_normal() if sampled else 0.0
            value[i] = above + step
    if expected or quantile != 0.0:
        for i in range(len(value)):
            above = spread[tree_parent[i]] if i > 0 else 0.0
            if touched[i]:
                spread[i] = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * above
            else:
                spread[i] = above + variance[class_of_node[i]]
    before, width = -1, 0.0
    for k in range(len(leaves)):
        i = leaves[k]
        score[k] = value[i]
        if expected:
            if before >= 0 and spread[i] == spread[before] and value[i] == value[before]:  # siblings nobody has tried
                score[k] = score[k - 1]
            else:
                score[k] = expected_reward(family, value[i], spread[i])
        elif quantile != 0.0:
            if before < 0 or spread[i] != spread[before]:
                width = quantile * math.sqrt(spread[i])
            score[k] += width
        before = i
    return choose(score, rng)


@kernel
def play(
    family: int,
    sampled: bool,  # draw parameters each round; otherwise take their means
    expected: bool,  # score an action by its expected reward, which counts what is uncertain
    even: bool,  # all leaves are equally deep, and classes are depths
    quantiles: Floats,  # (rounds,) standard deviations added to the means
    rng: np.random.Generator,
    truth: Floats,  # (K,) each action's mean reward
    best: float,  # what regret is measured against
    noise: Floats,  # (rounds,) added to the mean reward, unless there are residuals
    residuals: Floats,  # (n,) each action's own noise, or empty
    residual_start: Integers,  # (K + 1,)
    pick: Floats,  # (rounds,) uniform
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    precision: float,  # of one reward
    evidence: Floats,  # (V, 2) zeros on entry: the sum and the exposure of counts
    state: Floats,  # (V, 4) zeros on entry
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from evidence on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number. The same numbers, drawn in the same order, as
    the policy's own decide and update give.
    """
    touched = np.zeros(len(law), dtype=np.bool_)  # a byte a node to look at, where state and law have seven numbers
    order = np.empty(len(law), dtype=np.int32)
    n_touched = 0
    free = np.zeros(len(law), dtype=np.int32)
    for i in range(1, len(law)):
        free[tree_parent[i]] += 1
    for t in range(len(gap)):
        action = -1
        if even and not sampled:
            action = _leader(
                family, expected, quantiles[t], order[:n_touched], free, tree_parent, class_of_node, leaves[0],
                variance, mean, law, value, spread,
            )  # fmt: skip
        if action < 0:
            action = _best_of_all(
                family, sampled, expected, quantiles[t], rng, leaves, tree_parent, class_of_node, variance, deviation,
                mean, touched, law, value, spread, score,
            )  # fmt: skip
        gap[t] = best - truth[action]
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        slot = leaves[action]
        reward = drawn_reward(family, truth[action], off)
        if family == GAUSSIAN:
            state[slot, M] += precision
            state[slot, ETA] += precision * (reward - mean)
        else:
            evidence[slot, 0] += reward
            evidence[slot, 1] += 1.0
            offset, v = cavity(slot, tree_parent, class_of_node, variance, state)
            site_of = site(family, evidence[slot, 0], evidence[slot, 1], mean, offset, v)
            state[slot, M], state[slot, ETA] = site_of[0], site_of[1]
        before = n_touched
        while slot >= 0:
            if not touched[slot]:
                touched[slot] = True
                order[n_touched] = slot
                n_touched += 1
                if tree_parent[slot] >= 0:
                    free[tree_parent[slot]] -= 1
            refresh_slot(slot, tree_parent[slot], variance[class_of_node[slot]], state, law)
            slot = tree_parent[slot]
        order[before:n_touched] = order[before:n_touched][::-1].copy()
