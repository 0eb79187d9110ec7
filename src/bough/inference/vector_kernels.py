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
                    length = math.sqrt(kept[pivot, k] ** 2 + rows[i, k] ** 2)
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
        w = rows[i]
        r = values[i]
        slot = slots[i]
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
        surprise[0] += r * r


@kernel
def refresh_roots(
    stale: Flags,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    root: Floats,  # (T, d, d) F'
) -> None:
    """Overwrites the stale roots, solving C' F' = L' row by row, and stale."""
    d = factor.shape[1]
    for slot in range(len(stale)):
        if not stale[slot]:
            continue
        F = root[slot]
        C = triangle[slot]
        L = factor[slot_class[slot]]
        for k in range(d):
            for j in range(d):
                F[k, j] = L[k, j]
            for m in range(k):
                for j in range(d):
                    F[k, j] -= C[m, k] * F[m, j]
            for j in range(d):
                F[k, j] /= C[k, k]
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
