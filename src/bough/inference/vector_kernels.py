"""The compiled kernels of the vector engine; vector.py says what triangle, pull, target and root are."""

from __future__ import annotations

import math

import numpy as np

from bough.arrays import Flags, Floats, Integers, Nodes
from bough.inference.jit import kernel


@kernel
def triangulate(
    slots: Nodes,  # (n,) sorted
    rows: Floats,  # (n, d + 1) the last column is the value
    counts: Integers,  # (leaves,)
    kept_slots: Nodes,  # (total,)
    kept: Floats,  # (total, d + 1) zeros on entry
    surprise: Floats,  # (1,)
) -> None:
    """Overwrites rows, kept_slots, kept; adds to surprise what no parameter of a leaf can explain."""
    d = rows.shape[1] - 1
    start = 0
    place = 0
    for leaf in range(len(counts)):
        end = start + counts[leaf]
        size = min(counts[leaf], d)
        kept_slots[place : place + size] = slots[start]
        for i in range(start, end):
            if counts[leaf] <= d:
                kept[place + i - start] = rows[i]
                continue
            for k in range(d):
                if rows[i, k] != 0.0:
                    pivot = place + k
                    length = math.hypot(kept[pivot, k], rows[i, k])  # either may be tiny
                    c = kept[pivot, k] / length
                    s = rows[i, k] / length
                    for j in range(k, d + 1):
                        a = kept[pivot, j]
                        b = rows[i, j]
                        kept[pivot, j] = c * a + s * b
                        rows[i, j] = c * b - s * a
            surprise[0] += rows[i, d] * rows[i, d]
        start = end
        place += size


@kernel
def observe_row(
    w: Floats,  # (d,) overwritten
    r: float,
    slot: int,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    stale: Flags,  # (T,)
    own: Floats,  # (d,) scratch, as the next two
    cosine: Floats,
    sine: Floats,
) -> float:
    """Takes the row w' theta = r from a leaf to the root, updating triangle to stale; returns the surprise."""
    d = len(w)
    while slot >= 0:
        class_ = slot_class[slot]
        for k in range(d):
            total = 0.0
            for j in range(d):
                total += factor[class_, k, j] * w[j]
            own[k] = total
        for k in range(d):  # rotate [own | w | r] against each row of [C | E | f]
            length = math.sqrt(triangle[slot, k, k] ** 2 + own[k] * own[k])
            c = triangle[slot, k, k] / length
            s = own[k] / length
            cosine[k] = c
            sine[k] = s
            for j in range(k, d):
                a = triangle[slot, k, j]
                b = own[j]
                triangle[slot, k, j] = c * a + s * b
                own[j] = c * b - s * a
            a = target[slot, k]
            target[slot, k] = c * a + s * r
            r = c * r - s * a
        for j in range(d):
            left = w[j]
            for k in range(d):
                a = pull[slot, j, k]
                pull[slot, j, k] = cosine[k] * a + sine[k] * left
                left = cosine[k] * left - sine[k] * a
            w[j] = left
        stale[slot] = True
        slot = parent[slot]
    return r


@kernel
def observe_rows(
    slots: Nodes,  # (n,)
    rows: Floats,  # (n, d) overwritten
    values: Floats,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    stale: Flags,  # (T,)
    surprise: Floats,  # (1,)
) -> None:
    """Takes each row from its leaf to the root, updating triangle, pull, target, stale and surprise."""
    d = rows.shape[1]
    own, cosine, sine = np.empty(d), np.empty(d), np.empty(d)
    for i in range(len(slots)):
        left = observe_row(
            rows[i], values[i], slots[i], parent, slot_class, factor, triangle, pull, target, stale, own, cosine, sine
        )
        surprise[0] += left * left


@kernel
def score_moments(
    x: Floats,  # (d,) overwritten
    slot: int,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    u: Floats,  # (d,) scratch
) -> tuple[float, float]:
    """The mean and the variance of x' theta at a slot, theta as a deviation from the prior mean.

    Rootward: with u = F'x it is u'f + u'n at the node itself, and (x - E'u)' theta of the parent.
    """
    d = len(x)
    mean, variance = 0.0, 0.0
    while slot >= 0:
        class_ = slot_class[slot]
        for k in range(d):  # C' u = L' x, row by row
            total = 0.0
            for j in range(d):
                total += factor[class_, k, j] * x[j]
            for m in range(k):
                total -= triangle[slot, m, k] * u[m]
            u[k] = total / triangle[slot, k, k]
            mean += u[k] * target[slot, k]
            variance += u[k] * u[k]
        for j in range(d):
            for k in range(d):
                x[j] -= pull[slot, j, k] * u[k]
        slot = parent[slot]
    return mean, variance


@kernel
def score_moments_of_all(
    rows: Floats,  # (n, d) contexts, overwritten
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    means: Floats,  # (n,)
    variances: Floats,  # (n,)
) -> None:
    """Overwrites means and variances with those of the score of each row, as a deviation from the prior's."""
    u = np.empty(rows.shape[1])
    for i in range(len(rows)):
        means[i], variances[i] = score_moments(rows[i], slots[i], parent, slot_class, factor, triangle, pull, target, u)


@kernel
def refresh_root(slot: int, class_: int, factor: Floats, triangle: Floats, root: Floats) -> None:
    """Overwrites root[slot], solving C' F' = L' row by row."""
    d = factor.shape[1]
    for k in range(d):
        for j in range(d):
            root[slot, k, j] = factor[class_, k, j]
        for m in range(k):
            c = triangle[slot, m, k]
            for j in range(d):
                root[slot, k, j] -= c * root[slot, m, j]
        c = triangle[slot, k, k]
        for j in range(d):
            root[slot, k, j] /= c


@kernel
def refresh_roots(
    stale: Flags,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    root: Floats,  # (T, d, d) F'
) -> None:
    """Overwrites the stale roots, and stale."""
    for slot in range(len(stale)):
        if stale[slot]:
            refresh_root(slot, slot_class[slot], factor, triangle, root)
            stale[slot] = False


@kernel
def _draw_touched(
    out: Floats,
    i: int,
    p: int,
    mean: Floats,
    slot: int,
    pull: Floats,
    target: Floats,
    root: Floats,
    above: Floats,
    inner: Floats,
    value: Floats,
) -> None:
    """Overwrites out[i], normals on entry, and the last three: mean + above + F (f - E above + normals)."""
    d = len(mean)
    for k in range(d):
        a = out[p, k] - mean[k] if p >= 0 else 0.0
        above[k] = a
        inner[k] = target[slot, k] + out[i, k]
        value[k] = mean[k] + a
    for j in range(d):
        a = above[j]
        for k in range(d):
            inner[k] -= pull[slot, j, k] * a
    for j in range(d):
        a = inner[j]
        for k in range(d):
            value[k] += root[slot, j, k] * a
    for k in range(d):
        out[i, k] = value[k]


@kernel
def _draw_untouched(out: Floats, i: int, p: int, mean: Floats, class_: int, factor: Floats, value: Floats) -> None:
    """Overwrites out[i], normals on entry, and value: the parent's value + L normals."""
    d = len(mean)
    for k in range(d):
        value[k] = out[p, k] if p >= 0 else mean[k]
    for j in range(d):
        a = out[i, j]
        for k in range(d):
            value[k] += factor[class_, j, k] * a
    for k in range(d):
        out[i, k] = value[k]


@kernel
def sample_all(
    out: Floats,  # (V, d) standard normals on entry, parameters on return
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    factor: Floats,  # (n_classes, d, d) L'
    mean: Floats,  # (d,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    root: Floats,  # (T, d, d) F'
) -> None:
    """Overwrites out, parents before children."""
    above, inner, value = np.empty(len(mean)), np.empty(len(mean)), np.empty(len(mean))
    touched = 0
    for i in range(len(out)):
        p = tree_parent[i]
        if touched < len(nodes) and nodes[touched] == i:
            _draw_touched(out, i, p, mean, slots[touched], pull, target, root, above, inner, value)
            touched += 1
        else:
            _draw_untouched(out, i, p, mean, class_of_node[i], factor, value)


@kernel
def sample_some(
    out: Floats,  # (n, d) standard normals on entry, parameters on return
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    factor: Floats,  # (n_classes, d, d) L'
    mean: Floats,  # (d,)
    slots: Nodes,  # (n,) -1 where untouched
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    root: Floats,  # (T, d, d) F'
) -> None:
    """Overwrites out, parents before children."""
    above, inner, value = np.empty(len(mean)), np.empty(len(mean)), np.empty(len(mean))
    for i in range(len(out)):
        p = parent_position[i]
        if slots[i] >= 0:
            _draw_touched(out, i, p, mean, slots[i], pull, target, root, above, inner, value)
        else:
            _draw_untouched(out, i, p, mean, classes[i], factor, value)


@kernel
def spread_leafward(parent: Nodes, gain: Floats, out: Floats) -> None:
    """Adds A cov(parent) A' to out (T, d, d), which comes with each slot's S."""
    d = out.shape[1]
    half = np.empty((d, d))
    for slot in range(1, len(out)):
        A = gain[slot]
        above = out[parent[slot]]
        half[:] = 0.0
        for i in range(d):
            for k in range(d):
                for j in range(d):
                    half[i, j] += A[i, k] * above[k, j]
        for i in range(d):
            for j in range(i, d):
                total = 0.0
                for k in range(d):
                    total += half[i, k] * A[j, k]
                out[slot, i, j] += total
                out[slot, j, i] = out[slot, i, j]


@kernel
def covariances(
    out: Floats,  # (V, d, d)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    covariance: Floats,  # (n_classes, d, d)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    at_slot: Floats,  # (T, d, d)
) -> None:
    """Overwrites out: a slot's covariance where touched, else the parent's and the prior's."""
    d = out.shape[1]
    touched = 0
    for i in range(len(out)):
        if touched < len(nodes) and nodes[touched] == i:
            out[i] = at_slot[slots[touched]]
            touched += 1
        else:
            for j in range(d):
                for k in range(d):
                    above = out[tree_parent[i], j, k] if i > 0 else 0.0
                    out[i, j, k] = above + covariance[class_of_node[i], j, k]


@kernel
def projected_variances(
    out: Floats,  # (V,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    class_variance: Floats,  # (n_classes,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    at_slot: Floats,  # (T,)
) -> None:
    """Overwrites out: the variance of the projection of each node on one context."""
    touched = 0
    for i in range(len(out)):
        if touched < len(nodes) and nodes[touched] == i:
            out[i] = at_slot[slots[touched]]
            touched += 1
        else:
            out[i] = (out[tree_parent[i]] if i > 0 else 0.0) + class_variance[class_of_node[i]]


@kernel
def _choose(score: Floats, rng: np.random.Generator) -> int:
    """The largest score's place, ties broken as `choosing.largest` breaks them; scalar_kernels.py has its twin."""
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
    triangle: Floats,  # (V, d, d) C, identities on entry
    pull: Floats,  # (V, d, d) E', zeros on entry
    target: Floats,  # (V, d) f, zeros on entry
    root: Floats,  # (V, d, d) F'
    stale: Flags,  # (V,) False on entry: not observed yet
    value: Floats,  # (V, d)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from triangle on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number, and stale says which are touched. The same
    numbers, drawn in the same order, as the policy's own decide and update give.
    """
    d = len(mean)
    above, inner, drawn = np.empty(d), np.empty(d), np.empty(d)
    own, cosine, sine, w = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for t in range(len(gap)):
        for i in range(len(value)):
            for k in range(d):
                value[i, k] = rng.standard_normal() if sampled else 0.0
        for i in range(len(value)):
            p = tree_parent[i]
            if stale[i]:
                _draw_touched(value, i, p, mean, i, pull, target, root, above, inner, drawn)
            else:
                _draw_untouched(value, i, p, mean, class_of_node[i], factor, drawn)
        best = -math.inf
        for a in range(len(leaves)):
            score[a] = 0.0
            true = 0.0
            for k in range(d):
                score[a] += value[leaves[a], k] * contexts[t, k]
                true += truth[a, k] * contexts[t, k]
            if eligible[a]:
                best = max(best, true)
        action = _choose(score, rng)
        taken = 0.0
        for k in range(d):
            taken += truth[action, k] * contexts[t, k]
        gap[t] = best - taken
        expected = 0.0
        for k in range(d):
            w[k] = contexts[t, k] / deviation
            expected += contexts[t, k] * mean[k]
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        r = (taken + off - expected) / deviation
        slot = leaves[action]
        observe_row(w, r, slot, tree_parent, class_of_node, factor, triangle, pull, target, stale, own, cosine, sine)
        while slot >= 0:
            refresh_root(slot, class_of_node[slot], factor, triangle, root)
            slot = tree_parent[slot]
