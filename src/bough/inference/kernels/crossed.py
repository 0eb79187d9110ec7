"""Crossed effects beside a tree of numbers: what one reward changes; docs/explanation/crossed.md derives it.

Given the effects b, the tree is what `scalar.py` has, with information eta - H b in place of eta. A slot's row of H is
zero but for the effects below it, so it is kept as a list: entries from `first` on, `size` of them, each with its
effect, its value H, the value that the parent was sent, and where in the parent's list the same effect is. The effects
themselves are b = D u, u standard normal a priori, and all that is known of u is a triangle R and a target f: R u = f
but for standard normal errors.
"""

from __future__ import annotations

import math

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.rotations import rotation
from bough.inference.kernels.scalar import ETA, GAIN, M_SENT, M, refresh_slot


@kernel
def room_needed(slot: int, n: int, parent: Nodes, size: Nodes) -> int:
    """The most entries that `enlist` of n effects may take."""
    total = 0
    while slot >= 0:
        total += 2 * (size[slot] + n)
        slot = parent[slot]
    return total


@kernel
def enlist(
    slot: int,
    effects: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    room: Nodes,  # (T,) how many entries a list has space for
    effect: Nodes,  # (E,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    sent: Floats,  # (E,)
    used: int,  # entries that some list has space for; `room_needed` are free
    places: Nodes,  # (n,)
) -> int:
    """Have the lists from a slot to the root have these effects; overwrites places with where the slot has each.

    Returns how many entries are used now.
    """
    for i in range(len(effects)):
        at = slot
        below = -1
        while at >= 0:
            found = -1
            for e in range(first[at], first[at] + size[at]):
                if effect[e] == effects[i]:
                    found = e - first[at]
                    break
            is_new = found < 0
            if is_new:
                if size[at] == room[at]:
                    wanted = 2 * size[at] if size[at] > 0 else len(effects)
                    for k in range(size[at]):
                        old = first[at] + k
                        effect[used + k] = effect[old]
                        up[used + k] = up[old]
                        value[used + k] = value[old]
                        sent[used + k] = sent[old]
                    first[at] = used
                    room[at] = wanted
                    used += wanted
                found = size[at]
                size[at] += 1
                effect[first[at] + found] = effects[i]
                value[first[at] + found] = 0.0
                sent[first[at] + found] = 0.0
                up[first[at] + found] = -1
            if below >= 0:
                up[below] = found
            if at == slot:
                places[i] = found
            if not is_new:
                break
            below = first[at] + found
            at = parent[at]
    return used


@kernel
def room_for_all(
    slots: Nodes,  # (n,)
    first_of: Integers,  # (n + 1,) where the effects of each begin
    parent: Nodes,  # (T,)
    size: Nodes,  # (T,)
) -> int:
    """The most entries that `enlist_all` may take, where no list has space yet."""
    most = 0
    for i in range(len(slots)):
        slot = slots[i]
        n = first_of[i + 1] - first_of[i]
        while slot >= 0:
            size[slot] += n
            slot = parent[slot]
    for slot in range(len(size)):
        most += 4 * size[slot]
        size[slot] = 0
    return int(most)


@kernel
def enlist_all(
    slots: Nodes,  # (n,)
    first_of: Integers,  # (n + 1,) where the effects of each begin
    effects: Nodes,
    parent: Nodes,  # (T,)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    room: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    sent: Floats,  # (E,)
    used: int,
    places: Nodes,  # of all effects
) -> int:
    """`enlist` of the effects of each of many slots."""
    for i in range(len(slots)):
        start = first_of[i]
        end = first_of[i + 1]
        used = enlist(
            slots[i], effects[start:end], parent, first, size, room, effect, up, value, sent, used, places[start:end]
        )
    return used


@kernel
def refresh_one(
    slot: int,
    above: int,
    v: float,
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    sent: Floats,  # (E,)
) -> None:
    """Overwrites the law of a slot, and tells the state and the list above what changed."""
    refresh_slot(slot, above, v, state, law)
    gain = law[slot, GAIN]
    start = first[above] if above >= 0 else 0
    for e in range(first[slot], first[slot] + size[slot]):
        new = value[e] * gain
        if above >= 0:
            value[start + up[e]] += new - sent[e]
        sent[e] = new


@kernel
def refresh_path(
    slot: int,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    sent: Floats,  # (E,)
) -> None:
    """Overwrites the laws from a slot up to the root, and what each has sent to its parent."""
    while slot >= 0:
        refresh_one(slot, parent[slot], variance[slot_class[slot]], state, law, first, size, up, value, sent)
        slot = parent[slot]


@kernel
def remake(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,) the row of an action, -1 inside
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4) of actions, M and ETA on entry
    law: Floats,  # (T, 3)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,) of actions on entry
    sent: Floats,  # (E,)
) -> None:
    """Overwrites law, and all of state and lists but what actions say: one rootward pass."""
    for slot in range(len(parent)):
        inside = slot_row[slot] < 0
        if inside:
            state[slot, M] = 0.0
            state[slot, ETA] = 0.0
        state[slot, M_SENT] = 0.0
        state[slot, M_SENT + 1] = 0.0
        for e in range(first[slot], first[slot] + size[slot]):
            sent[e] = 0.0
            if inside:
                value[e] = 0.0
    for slot in range(len(parent) - 1, -1, -1):
        refresh_one(slot, parent[slot], variance[slot_class[slot]], state, law, first, size, up, value, sent)


@kernel
def look(
    slot: int,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    path: Nodes,  # (height + 1,) scratch
    k: Floats,  # (q,)
) -> tuple[float, float]:
    """The mean m and the variance s of a slot's parameter where b = 0; overwrites k: the mean given b is m - k'b."""
    n = 0
    while slot >= 0:
        path[n] = slot
        n += 1
        slot = parent[slot]
    m = 0.0
    s = 0.0
    k[:] = 0.0
    for i in range(n - 1, -1, -1):
        at = path[i]
        v = variance[slot_class[at]]
        gain = 1.0 / (1.0 + v * state[at, M])
        step = v * gain
        m = gain * m + step * state[at, ETA]
        s = step + gain * gain * s
        if gain != 1.0:
            for j in range(len(k)):
                k[j] *= gain
        for e in range(first[at], first[at] + size[at]):
            k[effect[e]] += step * value[e]
    return m, s


@kernel
def _rotate(upper: Floats, lower: Floats, c: float, s: float) -> None:
    """Overwrites two rows with their rotation; as vectors of their own they are worked on several entries at once."""
    for j in range(len(lower)):
        a = upper[j]
        b = lower[j]
        upper[j] = c * a + s * b
        lower[j] = c * b - s * a


@kernel
def fold(row: Floats, target: float, triangle: Floats, targets: Floats) -> float:
    """Rotates a row (q,) with its target into triangle (q, q) and targets (q,), overwriting all; what is left of it."""
    for i in range(len(row)):
        if row[i] != 0.0:
            c, s = rotation(triangle[i, i], row[i])
            _rotate(triangle[i, i:], row[i:], c, s)
            a = targets[i]
            targets[i] = c * a + s * target
            target = c * target - s * a
    return target


@kernel
def learn(
    slot: int,
    effects: Nodes,  # (n,) of the reward
    reward: float,  # as a deviation from the prior mean
    noise: float,  # its variance
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    effect: Nodes,  # (E,)
    value: Floats,  # (E,)
    deviation: Floats,  # (q,) D
    triangle: Floats,  # (q, q)
    targets: Floats,  # (q,)
    path: Nodes,  # (height + 1,) scratch
    row: Floats,  # (q,) scratch
) -> None:
    """Overwrites triangle and targets: what a reward says of the effects, before the tree knows of it."""
    m, s = look(slot, parent, slot_class, variance, state, first, size, effect, value, path, row)
    for i in range(len(effects)):
        row[effects[i]] -= 1.0
    unit = 1.0 / math.sqrt(s + noise)
    for j in range(len(row)):
        row[j] *= -unit * deviation[j]
    fold(row, (reward - m) * unit, triangle, targets)


@kernel
def say(
    slot: int,
    places: Nodes,  # (n,) of a reward's effects in the slot's list
    reward: float,  # as a deviation from the prior mean
    precision: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    first: Integers,  # (T,)
    size: Nodes,  # (T,)
    up: Nodes,  # (E,)
    value: Floats,  # (E,)
    sent: Floats,  # (E,)
) -> None:
    """Overwrites the laws and what is sent from the slot of an action to the root, with one more reward of it."""
    state[slot, M] += precision
    state[slot, ETA] += precision * reward
    for i in range(len(places)):
        value[first[slot] + places[i]] += precision
    refresh_path(slot, parent, slot_class, variance, state, law, first, size, up, value, sent)
