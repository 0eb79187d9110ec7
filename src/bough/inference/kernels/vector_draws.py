"""Draws and moments where parameters are vectors; they read a slot's rows and change nothing but their roots."""

from __future__ import annotations

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.jit import kernel


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
def score_moments_of_some(
    mean: Floats,  # (n,) overwritten
    variance: Floats,  # (n,) overwritten
    x: Floats,  # (d,)
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    class_variance: Floats,  # (n_classes,) x' Sigma x
    slots: Nodes,  # (n,) -1 where untouched
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
) -> None:
    """Overwrites mean and variance, those of x' theta at each node, theta as a deviation; parents before children."""
    u, direction = np.empty(len(x)), np.empty(len(x))
    for i in range(len(mean)):
        if slots[i] >= 0:
            direction[:] = x
            mean[i], variance[i] = score_moments(
                direction, slots[i], parent, slot_class, factor, triangle, pull, target, u
            )
            continue
        p = parent_position[i]
        mean[i] = mean[p] if p >= 0 else 0.0
        variance[i] = (variance[p] if p >= 0 else 0.0) + class_variance[classes[i]]


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
def draw_touched(
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
def draw_untouched(out: Floats, i: int, p: int, mean: Floats, class_: int, factor: Floats, value: Floats) -> None:
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
            draw_touched(out, i, p, mean, slots[touched], pull, target, root, above, inner, value)
            touched += 1
        else:
            draw_untouched(out, i, p, mean, class_of_node[i], factor, value)


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
            draw_touched(out, i, p, mean, slots[i], pull, target, root, above, inner, value)
        else:
            draw_untouched(out, i, p, mean, classes[i], factor, value)


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
