"""The compiled search for the best actions of one posterior sample; docs/decisions.md derives it.

Touched nodes come with their sampled values. Below each hangs a *group*, its untouched children with everything below
them, whose steps are independent prior noise. Level l of a group, l = 1 for the children, has free[slot, l] nodes, and
the largest of their standard normals is drawn without drawing them: q with -log Phi(q) = Exp(1) / count. A group is
only opened, child by child, while the sum of its levels' largest steps could beat what has been found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bough.arrays import Flags, Floats, Nodes
from bough.inference.jit import kernel

_ROOT_HALF = math.sqrt(0.5)
RATE_STEP = 32.0  # entries of the table of rates for each unit
RATE_FROM, RATE_TO = -6.0, 39.0


@kernel
def rate(q: float) -> float:
    """-log Phi(q), the rate at which one standard normal is above q."""
    if q > 0.0:
        return -math.log1p(-0.5 * math.erfc(q * _ROOT_HALF))
    return -math.log(0.5 * math.erfc(-q * _ROOT_HALF))


@kernel
def _rational(r: float, top: Floats, bottom: Floats) -> float:
    over = 0.0
    under = 0.0
    for i in range(len(top)):
        over = over * r + top[i]
        under = under * r + bottom[i]
    return over / under


# Coefficients of Wichura's algorithm AS 241, highest power first: the centre, the tail, the far tail.
_CENTRE = (
    np.array([2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
              1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080]),
    np.array([5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
              5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0]),
)  # fmt: skip
_TAIL = (
    np.array([7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
              3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734]),
    np.array([1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
              6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0]),
)  # fmt: skip
_FAR = (
    np.array([2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
              2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720]),
    np.array([2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
              1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0]),
)  # fmt: skip


@kernel
def _lower(p: float) -> float:
    """The standard normal quantile of a probability of at most 1/2, to 16 digits."""
    off = p - 0.5
    if off > -0.425:
        return off * _rational(0.180625 - off * off, _CENTRE[0], _CENTRE[1])
    r = math.sqrt(-math.log(p))
    if r <= 5.0:
        return -_rational(r - 1.6, _TAIL[0], _TAIL[1])
    return -_rational(r - 5.0, _FAR[0], _FAR[1])


@kernel
def quantile(t: float) -> float:
    """The q with -log Phi(q) = t: accurate for small t, the upper tail, and for large t, the lower."""
    return _lower(math.exp(-t)) if t > math.log(2.0) else -_lower(-math.expm1(-t))


@kernel
def sync(
    start: int,
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    child_start: Nodes,  # (V + 1,)
    free: Nodes,  # (T, height + 2)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
) -> None:
    """Overwrites the rows of slots from start on, and takes them out of their parents' groups.

    The descendants of a node at one level have consecutive numbers, so two of them bound a level.
    """
    for slot in range(start, len(slot_node)):
        above = slot_parent[slot]
        first_child[slot] = -1
        slot_depth[slot] = 0
        if above >= 0:
            next_sibling[slot] = first_child[above]
            first_child[above] = slot
            slot_depth[slot] = slot_depth[above] + 1
            free[above, 1] -= 1
        low = slot_node[slot]
        high = low + 1
        for level in range(1, free.shape[1]):
            low = child_start[low]
            high = child_start[high]
            free[slot, level] = high - low
            if above >= 0 and level + 1 < free.shape[1]:
                free[above, level + 1] -= high - low


@kernel
def extend_values(
    start: int,
    value: Floats,  # (T,)
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    rng: np.random.Generator,
) -> None:
    """Overwrites the values of slots from start on, where nothing has been observed, with draws from the prior."""
    for slot in range(start, len(value)):
        above = value[slot_parent[slot]] if slot_parent[slot] >= 0 else mean
        value[slot] = above + deviation[class_of_node[slot_node[slot]]] * rng.standard_normal()


@kernel
def _insert(node: int, score: float, top_node: Nodes, top_score: Floats) -> None:
    """Overwrites top_*, which are kept best first, with the action in its place."""
    place = len(top_score) - 1
    while place > 0 and top_score[place - 1] < score:
        top_score[place] = top_score[place - 1]
        top_node[place] = top_node[place - 1]
        place -= 1
    top_score[place] = score
    top_node[place] = node


@kernel
def _bound(base: float, depth: int, q: Floats, widest: Floats, narrowest: Floats, has_actions: Flags) -> float:
    """The largest value that an action of a group can have: the best partial sum of its levels' largest steps."""
    total = base
    best = -math.inf
    for level in range(1, len(widest) - depth):
        if q[level] == -math.inf:
            break
        total += q[level] * (widest[depth + level] if q[level] > 0.0 else narrowest[depth + level])
        if has_actions[depth + level]:
            best = max(best, total)
    return best


@kernel
def _push(heap: Nodes, size: int, bounds: Floats, entry: int) -> None:
    """Overwrites heap (largest bound first) with the entry at its place."""
    i = size
    while i > 0 and bounds[heap[(i - 1) // 2]] < bounds[entry]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = entry


@kernel
def _pop(heap: Nodes, size: int, bounds: Floats) -> int:
    """Overwrites heap, which has size entries, and returns the entry of the largest bound."""
    first = heap[0]
    moved = heap[size - 1]
    i = 0
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and bounds[heap[child + 1]] > bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] <= bounds[moved]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = moved
    return int(first)


@kernel
def _mark_touched(
    slot: int, start: int, slot_node: Nodes, first_child: Nodes, next_sibling: Nodes, marked: Flags
) -> None:
    """Overwrites marked with the touched children, counted from start, of the node in that slot (-1: none are)."""
    marked[:] = False
    child = first_child[slot] if slot >= 0 else -1
    while child >= 0:
        marked[slot_node[child] - start] = True
        child = next_sibling[child]


@kernel
def search(
    value: Floats,  # (T,) sampled values of the touched nodes, in the direction of the context
    allowed: Flags,  # (T,) False for excluded actions, or (0,) where there are none
    slot_node: Nodes,  # (T,)
    slot_depth: Nodes,  # (T,)
    first_child: Nodes,  # (T,)
    next_sibling: Nodes,  # (T,)
    free: Nodes,  # (T, height + 2) untouched nodes below each slot, by level
    child_start: Nodes,  # (V + 1,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,) standard deviation of a step
    widest: Floats,  # (height + 1,) the largest at each depth
    narrowest: Floats,  # (height + 1,) the smallest
    has_actions: Flags,  # (height + 1,)
    typical: Floats,  # (height + 1, height + 1) about how large q is, by depth of the node above and level
    rates: Floats,  # (n,) table of upper bounds on rate
    rng: np.random.Generator,
    top_node: Nodes,  # (k,)
    top_score: Floats,  # (k,)
) -> int:
    """Overwrites top_* with the k best actions of the sample, best first; returns how many nodes were looked at."""
    height = len(widest) - 1
    everything = len(allowed) == 0
    top_score[:] = -math.inf
    top_node[:] = -1
    last = len(top_score) - 1
    for slot in range(len(value)):
        if value[slot] > top_score[last] and (everything or allowed[slot]):
            node = slot_node[slot]
            if child_start[node] == child_start[node + 1]:
                _insert(node, value[slot], top_node, top_score)
    looked_at = len(value)

    # Waiting groups: the node above, its slot or -1, its value and depth, and each level's largest normal.
    room = 64
    size = 0
    used = 0
    heap = np.empty(room, dtype=np.int32)
    bounds, bases = np.empty(room), np.empty(room)
    nodes, slots, depths = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    left = np.empty(room, dtype=np.int32)  # children that may still be drawn
    largest = np.empty((room, height + 2))
    q, spent = np.empty(height + 2), np.empty(height + 2)
    sums = np.zeros(height + 1)  # of widest, and of widest times typical, below each depth
    needed = np.zeros(height + 1)
    for depth in range(height):
        for level in range(1, height - depth + 1):
            sums[depth] += widest[depth + level]
            needed[depth] += widest[depth + level] * typical[depth, level]

    budget = rng.standard_exponential()
    for slot in range(len(value)):
        if free[slot, 1] == 0:
            continue
        depth = slot_depth[slot]
        # Could it win only if some level's largest is above its threshold, typical + slack? The exponentials that say
        # so for each level of each group are independent, and by their lack of memory one budget serves them all.
        slack = (top_score[last] - value[slot] - needed[depth]) / sums[depth]
        fired = 0
        if slack > 0.0:
            for level in range(1, height - depth + 1):
                if free[slot, level] == 0:
                    break
                place = (typical[depth, level] + slack - RATE_FROM) * RATE_STEP
                spent[level] = free[slot, level] * rates[int(place)] if place < len(rates) else 0.0
                if budget <= spent[level]:
                    fired = level
                    break
                budget -= spent[level]
            if fired == 0:
                continue
        q[:] = -math.inf
        for level in range(1, height - depth + 1):
            if free[slot, level] == 0:
                break
            draw = rng.standard_exponential()
            if level == fired:
                draw = budget
            elif level < fired:  # known not to have fired
                draw += spent[level]
            q[level] = quantile(draw / free[slot, level])
        if fired > 0:
            budget = rng.standard_exponential()
        bound = _bound(value[slot], depth, q, widest, narrowest, has_actions)
        if bound > top_score[last]:
            if used == room:
                room *= 2
                heap, bounds, bases = _grown(heap, room), _grown(bounds, room), _grown(bases, room)
                nodes, slots, depths = _grown(nodes, room), _grown(slots, room), _grown(depths, room)
                left, largest = _grown(left, room), _grown_rows(largest, room)
            bounds[used], bases[used], nodes[used] = bound, value[slot], slot_node[slot]
            slots[used], depths[used], left[used] = slot, depth, free[slot, 1]
            largest[used] = q
            _push(heap, size, bounds, used)
            used += 1
            size += 1

    pick = np.empty(height + 2, dtype=np.int64)
    total = np.empty(height + 2, dtype=np.int64)
    while size > 0 and bounds[heap[0]] > top_score[last]:
        entry = _pop(heap, size, bounds)
        size -= 1
        node, slot, depth, base = nodes[entry], slots[entry], depths[entry], bases[entry]
        start, end = child_start[node], child_start[node + 1]
        q[:] = largest[entry]
        if q[2] == -math.inf and widest[depth + 1] == narrowest[depth + 1]:
            # Actions alike: the largest belongs to any of them that is neither touched nor taken already.
            looked_at += 1
            if slot < 0 and left[entry] == end - start:
                child = start + int(rng.random() * (end - start))
            else:
                marked = np.empty(end - start, dtype=np.bool_)
                _mark_touched(slot, start, slot_node, first_child, next_sibling, marked)
                for i in range(len(top_node)):
                    if start <= top_node[i] < end:
                        marked[top_node[i] - start] = True
                wanted = int(rng.random() * left[entry])
                child = start
                while marked[child - start] or wanted > 0:
                    if not marked[child - start]:
                        wanted -= 1
                    child += 1
                looked_at += end - start
            _insert(child, bounds[entry], top_node, top_score)
            if last > 0 and left[entry] > 1:
                left[entry] -= 1
                q[1] = quantile(rate(q[1]) + rng.standard_exponential() / left[entry])
                bounds[entry] = base + widest[depth + 1] * q[1]
                largest[entry] = q
                _push(heap, size, bounds, entry)
                size += 1
            continue
        # Which of its level's nodes has each level's largest; then the children in turn.
        low, high = start, end
        for level in range(1, height - depth + 1):
            if q[level] == -math.inf:
                break
            count = free[slot, level] if slot >= 0 else high - low
            pick[level] = int(rng.random() * count)
            low, high = child_start[low], child_start[high]
        marked = np.empty(end - start, dtype=np.bool_)
        _mark_touched(slot, start, slot_node, first_child, next_sibling, marked)
        for child in range(start, end):
            if marked[child - start]:
                continue
            looked_at += 1
            own = q[1]
            if pick[1] != 0:
                own = quantile(rate(q[1]) + rng.standard_exponential())
            pick[1] -= 1
            score = base + deviation[class_of_node[child]] * own
            low, high = child_start[child], child_start[child + 1]
            if low == high:
                if score > top_score[last]:
                    _insert(child, score, top_node, top_score)
                continue
            if used == room:
                room *= 2
                heap, bounds, bases = _grown(heap, room), _grown(bounds, room), _grown(bases, room)
                nodes, slots, depths = _grown(nodes, room), _grown(slots, room), _grown(depths, room)
                left, largest = _grown(left, room), _grown_rows(largest, room)
            below = largest[used]
            below[:] = -math.inf
            for level in range(
                2, height - depth + 1
            ):  # where this child's largest are known, and how many nodes it has
                total[level] = high - low
                if high == low:
                    break
                below[level - 1] = q[level]
                low, high = child_start[low], child_start[high]
            hopeless = _bound(score, depth + 1, below, widest, narrowest, has_actions) <= top_score[last]
            for level in range(2, height - depth + 1):
                if below[level - 1] == -math.inf:
                    break
                inherits = 0 <= pick[level] < total[level]
                pick[level] -= total[level]
                if not inherits and not hopeless:
                    below[level - 1] = quantile(rate(q[level]) + rng.standard_exponential() / total[level])
            if hopeless:
                continue
            bound = _bound(score, depth + 1, below, widest, narrowest, has_actions)
            if bound > top_score[last]:
                bounds[used], bases[used], nodes[used] = bound, score, child
                slots[used], depths[used], left[used] = -1, depth + 1, child_start[child + 1] - child_start[child]
                _push(heap, size, bounds, used)
                used += 1
                size += 1
    return looked_at


@kernel
def _grown(array: Any, size: int) -> Any:
    """A copy with room for size entries."""
    larger = np.empty(size, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


@kernel
def _grown_rows(array: Floats, size: int) -> Floats:
    """A copy with room for size rows."""
    larger = np.empty((size, array.shape[1]))
    larger[: len(array)] = array
    return larger
