"""The compiled search for the best actions of one posterior sample; docs/explanation/decisions.md derives it.

Touched nodes come with their sampled values. Below each hangs a *group*, its untouched children with everything below
them, whose steps are independent prior noise. Level l of a group, l = 1 for the children, has free[slot, l] nodes, and
the largest of their standard normals is drawn without drawing them: q with -log Phi(q) = Exp(1) / count. A group is
only opened, child by child, while the sum of its levels' largest steps could beat what has been found.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.groups import free_child, mark_touched
from bough.inference.kernels.heap import grown, grown_rows, pop, push
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.quantiles import quantile, rate
from bough.inference.kernels.top import insert

RATE_STEP = 32.0  # entries of the table of rates for each unit
RATE_FROM, RATE_TO = -6.0, 39.0


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
def search(
    value: Floats,  # (T,) sampled values of the touched nodes, in the direction of the context
    choosable: Flags,  # (T,) the actions that may be chosen
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
    """Overwrites top_* with the k best actions of the sample, best first; returns how many nodes were visited."""
    height = len(widest) - 1
    top_score[:] = -math.inf
    top_node[:] = -1
    last = len(top_score) - 1
    for slot in range(len(value)):
        if value[slot] > top_score[last] and choosable[slot]:
            insert(slot_node[slot], value[slot], top_node, top_score)
    visited = len(value)

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
                heap, bounds, bases = grown(heap, room), grown(bounds, room), grown(bases, room)
                nodes, slots, depths = grown(nodes, room), grown(slots, room), grown(depths, room)
                left, largest = grown(left, room), grown_rows(largest, room)
            bounds[used], bases[used], nodes[used] = bound, value[slot], slot_node[slot]
            slots[used], depths[used], left[used] = slot, depth, free[slot, 1]
            largest[used] = q
            push(heap, size, bounds, used)
            used += 1
            size += 1

    pick = np.empty(height + 2, dtype=np.int64)
    total = np.empty(height + 2, dtype=np.int64)
    while size > 0 and bounds[heap[0]] > top_score[last]:
        entry = pop(heap, size, bounds)
        size -= 1
        node, slot, depth, base = nodes[entry], slots[entry], depths[entry], bases[entry]
        start, end = child_start[node], child_start[node + 1]
        q[:] = largest[entry]
        if q[2] == -math.inf and widest[depth + 1] == narrowest[depth + 1]:
            # Actions alike: the largest belongs to any of them that is neither touched nor taken already.
            visited += 1
            if slot < 0 and left[entry] == end - start:
                child = start + int(rng.random() * (end - start))
            else:
                marked = np.empty(end - start, dtype=np.bool_)
                mark_touched(slot, start, slot_node, first_child, next_sibling, marked)
                for i in range(len(top_node)):
                    if start <= top_node[i] < end:
                        marked[top_node[i] - start] = True
                child = free_child(start, marked, int(rng.random() * left[entry]))
                visited += end - start
            insert(child, bounds[entry], top_node, top_score)
            if last > 0 and left[entry] > 1:
                left[entry] -= 1
                q[1] = quantile(rate(q[1]) + rng.standard_exponential() / left[entry])
                bounds[entry] = base + widest[depth + 1] * q[1]
                largest[entry] = q
                push(heap, size, bounds, entry)
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
        mark_touched(slot, start, slot_node, first_child, next_sibling, marked)
        for child in range(start, end):
            if marked[child - start]:
                continue
            visited += 1
            own = q[1]
            if pick[1] != 0:
                own = quantile(rate(q[1]) + rng.standard_exponential())
            pick[1] -= 1
            score = base + deviation[class_of_node[child]] * own
            low, high = child_start[child], child_start[child + 1]
            if low == high:
                if score > top_score[last]:
                    insert(child, score, top_node, top_score)
                continue
            if used == room:
                room *= 2
                heap, bounds, bases = grown(heap, room), grown(bounds, room), grown(bases, room)
                nodes, slots, depths = grown(nodes, room), grown(slots, room), grown(depths, room)
                left, largest = grown(left, room), grown_rows(largest, room)
            below = largest[used]
            below[:] = -math.inf
            for level in range(2, height - depth + 1):  # where the child's largest are known, how many nodes it has
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
                push(heap, size, bounds, used)
                used += 1
                size += 1
    return visited
