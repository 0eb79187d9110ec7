"""Rows where parameters are vectors: what actions have observed, taken rootward; `vector.py` says what is kept.

A reward is a row [x | y]. It is folded into its action's own evidence, and what it adds to the action's message is the
row that the parent sees. That row is small where much is known already, while what is left of the reward may be huge,
so its entries must not come from a difference of large numbers: `message_row` has them as sums.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.rotations import enter, fold

# Columns of the evidence of an action in contexts: the number of rewards, their sum, what no parameter explains of
# their squares, and from here on the packed triangle [R | z] that says the same as all of them.
COUNT, TOTAL, RESIDUAL, TRIANGLE = range(4)

_NARROWED = 1e3  # a diagonal of C beyond which rotating a row costs it more than six digits
_ROUNDING = 2e-16


@kernel
def message_row(
    evidence: Floats,  # (rows, 3 + d (d + 3) / 2)
    row: int,
    combination: Floats,  # (d + 1,) how the last reward is made of the triangle's rows and what is left of it
    left: float,  # what is left of it
    class_: int,
    factor: Floats,  # (n_classes, d, d) L'
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    u: Floats,  # (d,)
) -> float:
    """Overwrites u with the row that the last reward adds to the action's message; returns its right-hand side.

    With G = R L L' R' / noise, t the combination of R's rows and p the part of what is left in the reward, y solving
    (I + G) y = t, the row is R' y / sqrt(p^2 + t' y), and its right-hand side (p left + y' (z - R mean)) likewise, in
    units of the noise. docs/explanation/mathematics.md derives it. Nothing is subtracted but the mean.
    """
    d = len(mean)
    T = np.zeros((1, d * (d + 3) // 2))  # a triangle with T'T = I + G, and t as its last column solved for
    spare, column = np.empty(d + 1), np.zeros(d + 1)
    start = 0
    for k in range(d):
        T[0, start] = 1.0
        start += d + 1 - k
    for k in range(d):  # column k of R L / deviation is one more row of the root of I + G
        start = TRIANGLE
        for i in range(d):
            total = 0.0
            for j in range(i, d):
                total += evidence[row, start + j - i] * factor[class_, k, j]
            column[i] = total / deviation
            start += d + 1 - i
        column[d] = 0.0
        fold(column, T, 0, 0, spare)
    y = np.empty(d)
    start = 0
    for k in range(d):  # T' h = t
        y[k] = combination[k]
    for k in range(d):
        y[k] /= T[0, start]
        for j in range(k + 1, d):
            y[j] -= T[0, start + j - k] * y[k]
        start += d + 1 - k
    for k in range(d - 1, -1, -1):  # T y = h
        start -= d + 1 - k
        for j in range(k + 1, d):
            y[k] -= T[0, start + j - k] * y[j]
        y[k] /= T[0, start]
    size = combination[d] * combination[d]
    right = combination[d] * left
    u[:] = 0.0
    start = TRIANGLE
    for k in range(d):
        size += combination[k] * y[k]
        off = evidence[row, start + d - k]
        for j in range(k, d):
            off -= evidence[row, start + j - k] * mean[j]
            u[j] += evidence[row, start + j - k] * y[k]
        right += y[k] * off
        start += d + 1 - k
    scale = 1.0 / (deviation * math.sqrt(size))
    for j in range(d):
        u[j] *= scale
    return float(right * scale)


@kernel
def climb(
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
    reach: Floats,  # (d,) how far each feature's parameters may be from their mean a priori
    account: Floats,  # (2,)
) -> None:
    """Takes the row w' theta = r from a slot to the root, updating triangle to stale.

    Adds to account the squared surprise above the root, and the square of what rounding may have cost the messages on
    the way, in standard deviations of what they speak of.
    """
    while slot >= 0:
        _into(w, slot_class[slot], factor, own)
        size = _size(w, reach)
        r = enter(own, w, r, slot, triangle, pull, target, cosine, sine)
        if _is_narrow(triangle, slot):
            account[1] += (_ROUNDING * size * r) ** 2
        stale[slot] = True
        slot = parent[slot]
    account[0] += r * r


@kernel
def _size(w: Floats, reach: Floats) -> float:
    """About the largest that w' theta can be a priori."""
    total = 0.0
    for j in range(len(w)):
        total += (w[j] * reach[j]) ** 2
    return math.sqrt(total)


@kernel
def _is_narrow(triangle: Floats, slot: int) -> bool:
    """Whether some direction of a node is known a million times better, in variance, than before observations."""
    largest = 1.0
    for k in range(triangle.shape[1]):
        largest = max(largest, triangle[slot, k, k])
    return largest > _NARROWED


@kernel
def _into(w: Floats, class_: int, factor: Floats, own: Floats) -> None:
    """Overwrites own with L'w."""
    d = len(w)
    for k in range(d):
        total = 0.0
        for j in range(d):
            total += factor[class_, k, j] * w[j]
        own[k] = total


@kernel
def observe_row(
    x: Floats,  # (d + 1,) context and reward; overwritten
    slot: int,
    row: int,
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    singular: bool,  # whether some covariance is, so that even sums may cancel
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    evidence: Floats,  # (rows, 3 + d (d + 3) / 2)
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    stale: Flags,  # (T,)
    w: Floats,  # (d,) scratch, as the next four
    own: Floats,
    cosine: Floats,
    sine: Floats,
    combination: Floats,  # (d + 1,)
    reach: Floats,  # (d,) as in `climb`
    account: Floats,  # (2,)
) -> None:
    """Takes one reward into its action's evidence and to the root, updating evidence to stale, and account."""
    d = len(mean)
    r = x[d]
    for j in range(d):
        w[j] = x[j] / deviation
        r -= x[j] * mean[j]
    r /= deviation
    left = fold(x, evidence, row, TRIANGLE, combination)
    evidence[row, RESIDUAL] += left * left
    _into(w, slot_class[slot], factor, own)
    size = _size(w, reach)
    r = enter(own, w, r, slot, triangle, pull, target, cosine, sine)
    stale[slot] = True
    if _is_narrow(triangle, slot):
        r = message_row(evidence, row, combination, left, slot_class[slot], factor, mean, deviation, w)
        if singular:
            account[1] += (_ROUNDING * size * r) ** 2
    climb(
        w, r, parent[slot], parent, slot_class, factor, triangle, pull, target, stale, own, cosine, sine, reach, account
    )


@kernel
def observe_rows(
    slots: Nodes,  # (n,)
    rows: Floats,  # (n, d + 1) contexts and rewards; overwritten
    slot_row: Nodes,  # (T,)
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    singular: bool,  # whether some covariance is, so that even sums may cancel
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    factor: Floats,  # (n_classes, d, d) L'
    evidence: Floats,  # (rows, 3 + d (d + 3) / 2)
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    stale: Flags,  # (T,)
    reach: Floats,  # (d,) as in `climb`
    account: Floats,  # (2,)
) -> None:
    """Takes each reward from its action to the root, updating evidence to stale, and account."""
    d = len(mean)
    w, own, cosine, sine, combination = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d + 1)
    for i in range(len(slots)):
        observe_row(
            rows[i], slots[i], slot_row[slots[i]], mean, deviation, singular, parent, slot_class, factor, evidence,
            triangle, pull, target, stale, w, own, cosine, sine, combination, reach, account,
        )  # fmt: skip


@kernel
def triangulate(
    rows: Floats,  # (n, d + 1) contexts and rewards, those of one action after another's; overwritten
    counts: Integers,  # (actions,) how many rows each has
    kept: Floats,  # (actions, d (d + 3) / 2) zeros on entry
    residual: Floats,  # (actions,)
) -> None:
    """Overwrites kept with a packed triangle for each action, and residual with what no parameter of it explains."""
    spare = np.empty(rows.shape[1])
    i = 0
    for action in range(len(counts)):
        residual[action] = 0.0
        for _ in range(counts[action]):
            left = fold(rows[i], kept, action, 0, spare)
            residual[action] += left * left
            i += 1


@kernel
def unpack(triangles: Floats, start: int, rows: Floats) -> None:
    """Overwrites rows (n, d, d + 1) with the triangles [R | z] that are packed in triangles (n, room) from start on."""
    d = rows.shape[1]
    rows[:] = 0.0
    for i in range(len(rows)):
        place = start
        for k in range(d):
            for j in range(k, d + 1):
                rows[i, k, j] = triangles[i, place]
                place += 1


@kernel
def pack(rows: Floats, start: int, triangles: Floats) -> None:
    """Overwrites triangles (n, room) from start on with the upper triangles [R | z] of rows (n, d, d + 1)."""
    d = rows.shape[1]
    for i in range(len(rows)):
        place = start
        for k in range(d):
            for j in range(k, d + 1):
                triangles[i, place] = rows[i, k, j]
                place += 1


@kernel
def remake(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    mean: Floats,  # (d,)
    deviation: float,  # of the noise
    factor: Floats,  # (n_classes, d, d) L'
    evidence: Floats,  # (rows, 3 + d (d + 3) / 2)
    collected: Floats,  # (T, d (d + 3) / 2)
    triangle: Floats,  # (T, d, d) C
    pull: Floats,  # (T, d, d) E'
    target: Floats,  # (T, d) f
    stale: Flags,  # (T,)
    account: Floats,  # (2,)
) -> None:
    """Overwrites collected, scratch, to account with what the evidence says: one rootward pass."""
    d = len(mean)
    w, own, cosine, sine, spare = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d + 1)
    message = np.empty(d + 1)
    collected[:] = 0.0
    account[:] = 0.0
    for slot in range(len(parent) - 1, -1, -1):
        for i in range(d):
            target[slot, i] = 0.0
            for j in range(d):
                triangle[slot, i, j] = 1.0 if i == j else 0.0
                pull[slot, i, j] = 0.0
        stale[slot] = True
        row = slot_row[slot]
        if row >= 0:
            _in_units_of_noise(evidence, row, mean, deviation, collected, slot)
            account[0] += evidence[row, RESIDUAL] / (deviation * deviation)
        start = 0
        for k in range(d):
            for j in range(d):
                w[j] = collected[slot, start + j - k] if j >= k else 0.0
            r = collected[slot, start + d - k]
            start += d + 1 - k
            _into(w, slot_class[slot], factor, own)
            r = enter(own, w, r, slot, triangle, pull, target, cosine, sine)
            above = parent[slot]
            if above < 0:
                account[0] += r * r
                continue
            message[:d] = w
            message[d] = r
            left = fold(message, collected, above, 0, spare)
            account[0] += left * left


@kernel
def _in_units_of_noise(
    evidence: Floats, row: int, mean: Floats, deviation: float, collected: Floats, slot: int
) -> None:
    """Overwrites collected[slot] with the action's triangle, for deviations from the mean."""
    d = len(mean)
    start = 0
    for k in range(d):
        off = evidence[row, TRIANGLE + start + d - k]
        for j in range(k, d):
            entry = evidence[row, TRIANGLE + start + j - k]
            collected[slot, start + j - k] = entry / deviation
            off -= entry * mean[j]
        collected[slot, start + d - k] = off / deviation
        start += d + 1 - k
