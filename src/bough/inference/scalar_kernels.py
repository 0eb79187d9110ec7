"""The compiled kernels of the scalar engine; scalar.py says what the columns of state and law mean."""

from __future__ import annotations

import math

import numpy as np

from bough.arrays import Flags, Floats, Integers, Nodes
from bough.inference.jit import kernel

# Columns of the state of a slot, and of its law given the parent, which is all that sampling reads.
M, ETA, M_TOLD, ETA_TOLD, COUNT, SPREAD = range(6)
GAIN, OFFSET, DEVIATION = range(3)


@kernel
def collect(
    slots: Nodes,  # (n,)
    rewards: Floats,  # (n,)
    mean: float,
    precision: float,  # of one reward
    state: Floats,  # (T, 6)
) -> None:
    """Adds each reward to its leaf's row of state."""
    for i in range(len(slots)):
        slot = slots[i]
        reward = rewards[i] - mean
        if state[slot, COUNT] > 0.0:
            # Welford's sum of squares around the running mean, which is eta / M.
            off = reward - state[slot, ETA] / state[slot, M]
            state[slot, SPREAD] += off * off * state[slot, COUNT] / (state[slot, COUNT] + 1.0)
        state[slot, COUNT] += 1.0
        state[slot, M] += precision
        state[slot, ETA] += precision * reward


@kernel
def collect_sums(
    slots: Nodes,  # (n,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,) of the rewards, less the prior mean
    spreads: Floats,  # (n,) sums of squares around the averages
    precision: float,  # of one reward
    state: Floats,  # (T, 6)
) -> None:
    """Adds rewards that come summed to their leaves' rows of state."""
    for i in range(len(slots)):
        slot = slots[i]
        n = counts[i]
        state[slot, SPREAD] += spreads[i]
        if state[slot, COUNT] > 0.0:
            off = averages[i] - state[slot, ETA] / state[slot, M]
            state[slot, SPREAD] += off * off * n * state[slot, COUNT] / (state[slot, COUNT] + n)
        state[slot, COUNT] += n
        state[slot, M] += precision * n
        state[slot, ETA] += precision * n * averages[i]


@kernel
def mark_paths(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    law: Floats,  # (T, 3)
    stale: Nodes,  # (room,)
) -> int:
    """Overwrites stale with the slots on the paths to the root, each once; returns how many.

    A negative gain, which no law has, marks a slot that is listed already.
    """
    n_stale = 0
    for i in range(len(slots)):
        slot = slots[i]
        while slot >= 0 and not law[slot, GAIN] < 0.0:
            law[slot, GAIN] = -1.0
            stale[n_stale] = slot
            n_stale += 1
            slot = parent[slot]
    return n_stale


@kernel
def refresh_slot(slot: int, above: int, v: float, state: Floats, law: Floats) -> None:
    """Overwrites the law of a slot of prior variance v, and tells the state above (-1: none) what changed."""
    m = state[slot, M]
    eta = state[slot, ETA]
    gain = 1.0 / (1.0 + v * m)
    law[slot, GAIN] = gain
    law[slot, OFFSET] = v * gain * eta
    law[slot, DEVIATION] = math.sqrt(v * gain)
    if above >= 0:
        state[above, M] += m * gain - state[slot, M_TOLD]
        state[above, ETA] += eta * gain - state[slot, ETA_TOLD]
    state[slot, M_TOLD] = m * gain
    state[slot, ETA_TOLD] = eta * gain


@kernel
def refresh(
    rootward: Nodes,  # (n,) slots, descending
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws of the given slots, and tells their parents' states what has changed."""
    for i in range(len(rootward)):
        slot = rootward[i]
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)


@kernel
def observe_one(
    slots: Nodes,  # (1,)
    rewards: Floats,  # (1,)
    mean: float,
    precision: float,  # of one reward
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    law: Floats,  # (T, 3)
) -> None:
    """Adds one reward to its leaf, and refreshes the path to the root."""
    collect(slots, rewards, mean, precision, state)
    slot = slots[0]
    while slot >= 0:
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)
        slot = parent[slot]


@kernel
def sample_all(
    out: Floats,  # (V,) standard normals on entry, parameters on return
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out. Untouched stretches follow the prior; between them stand the touched nodes."""
    start = 0
    if len(nodes) == 0:
        out[0] = mean + deviation[class_of_node[0]] * out[0]
        start = 1
    for k in range(len(nodes)):
        slot = slots[k]
        node = nodes[k]
        for i in range(start, node):
            out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]
        above = out[tree_parent[node]] - mean if node > 0 else 0.0
        out[node] = mean + law[slot, GAIN] * above + law[slot, OFFSET] + law[slot, DEVIATION] * out[node]
        start = node + 1
    for i in range(start, len(out)):
        out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]


@kernel
def sample_some(
    out: Floats,  # (n,) standard normals on entry, parameters on return
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,) -1 where untouched
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out, parents before children."""
    for i in range(len(out)):
        above = out[parent_position[i]] - mean if parent_position[i] >= 0 else 0.0
        slot = slots[i]
        if slot >= 0:
            out[i] = mean + law[slot, GAIN] * above + law[slot, OFFSET] + law[slot, DEVIATION] * out[i]
        else:
            out[i] = mean + above + deviation[classes[i]] * out[i]


@kernel
def sample_touched(
    out: Floats,  # (T,) standard normals on entry, parameters on return
    parent: Nodes,  # (T,)
    mean: float,
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out with a joint draw of the touched nodes, parents before children."""
    for slot in range(len(out)):
        above = out[parent[slot]] - mean if slot > 0 else 0.0
        step = law[slot, OFFSET] + law[slot, DEVIATION] * out[slot]
        out[slot] = mean + law[slot, GAIN] * above + step


@kernel
def variances(
    out: Floats,  # (V,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out: S + A var(parent) A, leafward."""
    touched = 0
    for i in range(len(out)):
        above = out[tree_parent[i]] if i > 0 else 0.0
        if touched < len(nodes) and nodes[touched] == i:
            slot = slots[touched]
            out[i] = law[slot, DEVIATION] ** 2 + law[slot, GAIN] ** 2 * above
            touched += 1
        else:
            out[i] = above + variance[class_of_node[i]]


@kernel
def deviance(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    noise: float,
    state: Floats,  # (T, 6)
) -> float:
    """Minus twice the log evidence, without its constant: a sum of terms that are none of them negative.

    A node's message says eta~ / M~ with precision M~; how far that is from the mean of what its siblings and it
    said together is what their parent finds surprising. The same at the leaves is the spread of the rewards.
    """
    total = 0.0
    for slot in range(len(state)):
        m = state[slot, M]
        above = parent[slot]
        expected = state[above, ETA] / state[above, M] if above >= 0 else 0.0
        total += state[slot, M_TOLD] * (state[slot, ETA] / m - expected) ** 2
        total += math.log1p(variance[slot_class[slot]] * m)
        total += state[slot, SPREAD] / noise
    return total


@kernel
def _choose(score: Floats, rng: np.random.Generator) -> int:
    """The largest score's place, ties broken as `policies.largest` breaks them; vector_kernels.py has its twin."""
    best = 0
    ties = 1
    for k in range(1, len(score)):
        if score[k] > score[best]:
            best = k
            ties = 1
        elif score[k] == score[best]:
            ties += 1
    if ties > 1:
        wanted = int(rng.random() * ties)
        for k in range(best, len(score)):
            if score[k] == score[best]:
                if wanted == 0:
                    return k
                wanted -= 1
    return best


@kernel
def _leader(
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
    """The place of the action with the highest mean, or quantile, if it is a touched one and alone; -1 otherwise.

    Overwrites value and spread of the touched nodes. What is untouched below a touched node has its mean, and its
    variance with those of the levels below added, so that nobody else has to be looked at. All leaves are equally deep.
    """
    lowest = class_of_node[first_leaf]
    best, rival, leader = -math.inf, -math.inf, -1
    for k in range(len(touched)):
        i = touched[k]
        above = value[tree_parent[i]] if i > 0 else mean
        value[i] = mean + law[i, GAIN] * (above - mean) + law[i, OFFSET] + 0.0
        score = value[i]
        if quantile != 0.0:
            wide = spread[tree_parent[i]] if i > 0 else 0.0
            wide = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * wide
            spread[i] = wide
            for depth in range(class_of_node[i] + 1, lowest + 1):
                wide = wide + variance[depth]
            score += quantile * math.sqrt(wide)
        if i < first_leaf and free[i] == 0:
            continue
        if score > best:
            best, rival, leader = score, best, (i - first_leaf if i >= first_leaf else -1)
        elif score > rival:
            rival = score
    return leader if best > rival else -1


@kernel
def _best_of_all(
    sampled: bool,
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
    """The place of the best action of all, by a draw, the means or a quantile; overwrites value to score, moves rng."""
    for i in range(len(value)):
        above = value[tree_parent[i]] if i > 0 else mean
        if touched[i]:
            step = law[i, DEVIATION] * rng.standard_normal() if sampled else 0.0
            value[i] = mean + law[i, GAIN] * (above - mean) + law[i, OFFSET] + step
        else:
            step = deviation[class_of_node[i]] * rng.standard_normal() if sampled else 0.0
            value[i] = above + step
    if quantile != 0.0:
        for i in range(len(value)):
            above = spread[tree_parent[i]] if i > 0 else 0.0
            if touched[i]:
                spread[i] = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * above
            else:
                spread[i] = above + variance[class_of_node[i]]
    variance_before = -1.0
    width = 0.0
    for k in range(len(leaves)):
        score[k] = value[leaves[k]]
        if quantile != 0.0:
            if spread[leaves[k]] != variance_before:  # siblings that nobody has tried have the same
                variance_before = spread[leaves[k]]
                width = quantile * math.sqrt(variance_before)
            score[k] += width
    return _choose(score, rng)


@kernel
def play(
    sampled: bool,  # draw parameters each round; otherwise take their means
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
    state: Floats,  # (V, 6) zeros on entry
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from state on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number. The same numbers, drawn in the same order, as
    the policy's own decide and update give.
    """
    touched = np.zeros(len(law), dtype=np.bool_)  # a byte a node to look at, where state and law have nine numbers
    order = np.empty(len(law), dtype=np.int32)
    n_touched = 0
    free = np.zeros(len(law), dtype=np.int32)
    for i in range(1, len(law)):
        free[tree_parent[i]] += 1
    for t in range(len(gap)):
        action = -1
        if even and not sampled:
            action = _leader(
                quantiles[t], order[:n_touched], free, tree_parent, class_of_node, leaves[0], variance, mean, law,
                value, spread,
            )  # fmt: skip
        if action < 0:
            action = _best_of_all(
                sampled, quantiles[t], rng, leaves, tree_parent, class_of_node, variance, deviation, mean, touched, law,
                value, spread, score,
            )  # fmt: skip
        gap[t] = best - truth[action]
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        slot = leaves[action]
        state[slot, M] += precision
        state[slot, ETA] += precision * (truth[action] + off - mean)
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
