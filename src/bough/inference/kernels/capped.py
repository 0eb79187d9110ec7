"""The capped search: the best of one joint draw, most of which is never made; proof in docs/explanation/decisions.md.

Values are deviations from the prior mean. Random numbers are given, so that one stream of numpy's serves; where there
are too few of them, the same call with more of them behind the same ones comes to the same point, and goes on.
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.lengths import LONGEST, N_CAPS, N_COLUMNS, N_REFERENCES
from bough.inference.kernels.lines import (
    ABOVE,
    BLOCK,
    BLOCKS,
    COUNT,
    KIND,
    NODE,
    SIZE,
    START,
    Lines,
    cap,
    law_of,
    member_length,
    room_for,
    untouched_length,
)
from bough.inference.kernels.quantiles import quantile
from bough.inference.kernels.scalar import DEVIATION, GAIN, OFFSET
from bough.inference.kernels.slots import whole
from bough.inference.kernels.top import insert
from bough.inference.kernels.untouched import (
    any_action_below,
    height_of_rate,
    is_in,
    open_group,
    untouched_child,
)

_ROOT_HALF = math.sqrt(0.5)
ALWAYS = 1  # champion that every decision draws
TOO_FEW = -1  # random numbers


@kernel
def column_for(lines: Lines, unit: int, value: float, best: float, within: int) -> int:
    """The column with the least total that dismisses what cannot beat the best; -1 where there is none.

    With a reference that is d below the best, a node may be d above its cap. `within` is a column that was fired in,
    or -1: what is known of it holds for lower caps and higher references alone.
    """
    chosen, least = -1, math.inf
    first, caps = 0, N_CAPS
    if within >= 0:
        first, caps = within // N_CAPS, within % N_CAPS + 1
    for b in range(first, N_REFERENCES):
        if lines.references[b] > best:
            break
        needed = value - (best - lines.references[b])
        for k in range(caps):
            if cap(lines, unit, k) >= needed:
                total = lines.row[unit, N_COLUMNS + b * N_CAPS + k]
                if total < least:
                    chosen, least = b * N_CAPS + k, total
                break
    return chosen


@kernel
def next_point(lines: Lines, unit: int, column: int, member: int, distance: float) -> tuple[int, float, int]:
    """The member, from a given one on, that has the point that far along; the size where none has.

    Also how far into that member it is, and how many lengths and sums were looked at.
    """
    size = whole(lines.unit[unit, SIZE])
    looked = 1
    if member == 0 and distance >= lines.row[unit, N_COLUMNS + column]:
        return size, 0.0, looked
    reference, above = lines.references[column // N_CAPS], cap(lines, unit, column % N_CAPS)
    start = whole(lines.unit[unit, START])
    room = room_for(size) if size > BLOCK else 0
    while member < size:
        if room > BLOCK and member % BLOCK == 0:
            # The largest blocks that begin here and have no point are passed over.
            blocks, here, stride, at = lines.unit[unit, BLOCKS], 0, 1, member
            skipped = 0
            wide = room
            while wide > BLOCK and at % BLOCK == 0:
                at //= BLOCK
                stride *= BLOCK
                looked += 1
                if distance < lines.block[blocks + here + at, column]:
                    break
                skipped = stride
                passed = lines.block[blocks + here + at, column]
                wide = (wide + BLOCK - 1) // BLOCK
                here += wide
            if skipped:
                distance -= passed
                member += skipped
                continue
        length = member_length(lines, whole(lines.member[start + member]), reference, above, column)
        looked += 1
        if distance < length:
            return member, distance, looked
        distance -= length
        member += 1
    return size, 0.0, looked


@kernel
def _tail(x: float) -> float:
    """P(z > x) of a standard normal."""
    return 0.5 * math.erfc(x * _ROOT_HALF)


@kernel
def normal_between(low: float, high: float, uniform: float) -> float:
    """A standard normal that is known to be above low and not above high."""
    if low >= 0.0:
        chance = _tail(high) + uniform * (_tail(low) - _tail(high))
        return quantile(-math.log1p(-chance)) if chance > 0.0 else low
    chance = _tail(-low) + uniform * (_tail(-high) - _tail(-low))
    return quantile(-math.log(chance)) if chance > 0.0 else high


@kernel
def fire(
    lines: Lines,
    child: int,
    column: int,
    offset: float,  # how far into its length the point is
    uniforms: Floats,
    at: int,
) -> tuple[int, float, float]:
    """What is known of an inner node that has a point: its column, its standard normal, and its family's first point.

    The column is -1 where the node is above all caps, and nothing is known of its family. It is -2 where the point is
    beyond what the node takes of the line, which its length may exceed: then it has lost.
    """
    gain, shift, deviation = law_of(lines, child)
    deviation = max(deviation, 1e-300)
    mean = gain * cap(lines, whole(lines.unit[child, ABOVE]), column % N_CAPS) + shift
    first = column - column % N_CAPS
    fires, before = 0.0, 1.0
    for j in range(N_CAPS):
        above = _tail((cap(lines, child, j) - mean) / deviation)
        fires += (before - above) * -math.expm1(-lines.row[child, N_COLUMNS + first + j])
        before = above
    fires += before
    if offset >= -math.log1p(-min(fires, 1.0)):
        return -2, 0.0, 0.0
    wanted = uniforms[at] * fires
    low, before = -math.inf, 1.0
    for j in range(N_CAPS):
        high = (cap(lines, child, j) - mean) / deviation
        above = _tail(high)
        some = -math.expm1(-lines.row[child, N_COLUMNS + first + j])
        weight = (before - above) * some
        if wanted < weight:
            return first + j, normal_between(low, high, uniforms[at + 1]), -math.log1p(-uniforms[at + 2] * some)
        wanted -= weight
        low, before = high, above
    return -1, normal_between(low, math.inf, uniforms[at + 1]), 0.0


@kernel
def _has(slots: Nodes, slot: int) -> bool:
    """Whether a short list has a slot."""
    found = False
    for one in slots:
        found |= one == slot
    return found


@kernel
def _found(unit: int, units: Integers, n: int) -> int:
    """Where an inner node is in a short list; -1 where it is not."""
    place = -1
    for i in range(n):
        if units[i] == unit:
            place = i
    return place


@kernel
def standard_normal(uniform: float) -> float:
    """A standard normal."""
    return quantile(max(-math.log1p(-uniform), 1e-17))


@kernel
def decide(
    lines: Lines,
    slot_node: Nodes,  # (T,)
    slot_parent: Nodes,  # (T,)
    table: Nodes,  # (a power of two,) of slots
    child_start: Nodes,  # (V + 1,)
    kind_of_node: Nodes,  # (V,)
    place: Nodes,  # (T,)
    champions: Nodes,  # (n,) slots of actions
    left_out: Nodes,  # (m,) actions that are not to be chosen, ascending
    by_name: bool,  # whether the untouched are to be told apart at once: where k > 1, or some of them are left out
    height: int,  # of the tree
    uniforms: Floats,
    asked: Floats,  # (n, 2)
    counts: Integers,  # (1,)
    top: Nodes,  # (k,)
    top_score: Floats,  # (k,)
) -> int:
    """Overwrites top_* with the k best actions, best first; returns how much was looked at, or `TOO_FEW`.

    Also overwrites counts with how many random numbers were used, and asked with the values of the parents of the first
    champions, and their own.
    """
    last = len(top) - 1
    top_score[:] = -math.inf
    top[:] = -1
    at, looked, depth = 0, 0, 0
    # Nodes whose families are gone through: the value and the first point; the node, the next member, and the column
    # that it was fired in.
    room = (len(champions) + 1) * (height + 2)
    frame, frame_at = np.empty((room, 2)), np.empty((room, 3), np.int64)
    stamped, stamped_value = np.empty(room, np.int64), np.empty(room)
    n_stamped = whole(0)
    known = np.empty(len(uniforms) if by_name else 0, np.int32)
    n_known = whole(0)
    # The champions' paths, drawn plainly: what is drawn is stamped, and its family waits.
    n_drawn = 0
    while n_drawn < len(champions) and (n_drawn < len(asked) + ALWAYS or not top_score[last] >= lines.references[0]):
        slot = whole(champions[n_drawn])
        n_drawn += 1
        first = depth
        u = whole(place[slot_parent[slot]])
        known_as = _found(u, stamped, n_stamped)
        while u >= 0 and known_as < 0:
            frame_at[depth, 0] = u
            depth += 1
            u = whole(lines.unit[u, ABOVE])
            known_as = _found(u, stamped, n_stamped)
        value = 0.0 if u < 0 else stamped_value[known_as]
        if at + depth - first + 1 > len(uniforms):
            return TOO_FEW
        for i in range((depth - first) // 2):  # so that parents come first
            j = first + depth - 1 - (first + i)
            frame_at[first + i, 0], frame_at[j, 0] = frame_at[j, 0], frame_at[first + i, 0]
        for i in range(first, depth):
            u = frame_at[i, 0]
            gain, shift, deviation = law_of(lines, u)
            value = gain * value + shift + deviation * standard_normal(uniforms[at])
            at += 1
            stamped[n_stamped], stamped_value[n_stamped] = u, value
            n_stamped += 1
            frame[i, 0], frame_at[i, 1], frame_at[i, 2] = value, 0, -1
        if n_drawn <= len(asked):
            asked[n_drawn - 1, 0] = value
        law = lines.law[slot]
        value = law[GAIN] * value + law[OFFSET] + lines.scale * law[DEVIATION] * standard_normal(uniforms[at])
        at += 1
        if n_drawn <= len(asked):
            asked[n_drawn - 1, 1] = value
        looked += depth - first + 1
        if value > top_score[last] and lines.choosable[slot] and not is_in(whole(slot_node[slot]), left_out):
            insert(whole(slot_node[slot]), value, top, top_score)
    if n_drawn == 0:  # there is no champion: begin at the root
        if len(uniforms) == 0:
            return TOO_FEW
        gain, shift, deviation = law_of(lines, whole(0))
        frame[0, 0] = shift + deviation * standard_normal(uniforms[0])
        frame_at[0, 0], frame_at[0, 1], frame_at[0, 2] = 0, 0, -1
        stamped[0], n_stamped = 0, whole(1)
        at, depth = 1, 1
    winner, winning_group = -1, -1
    while depth > 0:
        if at + 4 > len(uniforms):
            return TOO_FEW
        here = depth - 1
        unit, value, member, within = frame_at[here, 0], frame[here, 0], frame_at[here, 1], frame_at[here, 2]
        best = top_score[last]
        column = column_for(lines, unit, value, best, within)
        looked += 1
        if column < 0:  # each child is drawn by itself, until a column will do
            offset = -math.log1p(-uniforms[at])
            at += 1
        elif within >= 0:  # the first point is known
            member, offset, seen = next_point(lines, unit, within, whole(0), frame[here, 1])
            frame_at[here, 2] = -1
            looked += seen
        else:
            member, offset, seen = next_point(lines, unit, column, member, -math.log1p(-uniforms[at]))
            at += 1
            looked += seen
        if member == lines.unit[unit, SIZE]:
            depth -= 1
            continue
        frame_at[here, 1] = member + 1
        code = whole(lines.member[lines.unit[unit, START] + member])
        if code >= 0:
            law = lines.law[code]
            score = law[GAIN] * value + law[OFFSET] + lines.scale * law[DEVIATION] * quantile(max(offset, 1e-17))
            may_be = lines.choosable[code] and not _has(champions[:n_drawn], code)
            if score > best and may_be and not is_in(whole(slot_node[code]), left_out):
                insert(whole(slot_node[code]), score, top, top_score)
            continue
        other = (-1 - code) >> 1
        if (-1 - code) & 1:
            count = lines.group[other, COUNT]
            if count == 0:
                continue
            if by_name:
                length, point = 0.0, -1.0
                if column >= 0:
                    line = within if within >= 0 else column
                    reference, above = lines.references[line // N_CAPS], cap(lines, unit, line % N_CAPS)
                    length = untouched_length(lines, whole(lines.group[other, KIND]), reference - above)
                    if count * length <= LONGEST:  # or the line was cut short, and all of it is to be gone through
                        point = offset
                at, n_known, seen = open_group(
                    lines, other, whole(lines.unit[unit, NODE]), value, length, point, left_out, known, n_known,
                    child_start, kind_of_node, slot_node, table, uniforms, at, top, top_score,
                )  # fmt: skip
                if at < 0:
                    return TOO_FEW
                looked += seen
                continue
            score = value + height_of_rate(lines, whole(lines.group[other, KIND]), offset / count)
            if score > best:
                top[0], top_score[0] = -1, score
                winner, winning_group = unit, other
            continue
        if _found(other, stamped, n_stamped) >= 0:
            continue
        gain, shift, deviation = law_of(lines, other)
        fired, first_point = -1, 0.0
        if column < 0:
            normal = quantile(max(offset, 1e-17))
        else:
            fired, normal, first_point = fire(lines, other, column, offset, uniforms, at)
            if fired == -2:
                continue
            at += 3
        frame_at[depth, 0], frame_at[depth, 1], frame_at[depth, 2] = other, 0, fired
        frame[depth, 0] = gain * value + shift + deviation * normal
        frame[depth, 1] = first_point
        depth += 1
    if top[0] < 0 and winner >= 0:  # any of the actions of the group
        if at + 2 > len(uniforms):
            return TOO_FEW
        node, kind = whole(lines.unit[winner, NODE]), whole(lines.group[winning_group, KIND])
        child = untouched_child(node, kind, uniforms[at], known, child_start, kind_of_node, slot_node, table)
        top[0] = any_action_below(child, uniforms[at + 1], child_start)
        looked += child_start[node + 1] - child_start[node]
        at += 2
    counts[0] = at
    return looked
