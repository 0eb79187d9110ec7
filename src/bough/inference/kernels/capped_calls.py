"""What the capped search calls: kernels that take everything it keeps as one tuple, which is quick to hand over."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.inference.kernels import lines as families
from bough.inference.kernels.capped import TOO_FEW, decide
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.lines import Lines
from bough.inference.kernels.many_scalar import more_uniforms
from bough.inference.kernels.slots import find_one, whole

FEWEST_UNIFORMS = 128  # random numbers that a decision begins with: rarely too few


@kernel
def _lines(kept: Any, references: Floats, scale: float) -> Lines:
    """What a decision reads, of all that is kept."""
    unit, number, row, member, block, group, kind, rates, law, choosable = kept[:10]
    return Lines(unit, number, row, member, block, group, kind, rates, law, choosable, references, scale)


@kernel
def remake(kept: Any, references: Floats, scale: float, n_units: int, recentre: bool) -> None:
    """Overwrites all rows and sums, and first, if asked to, all caps."""
    families.remake(_lines(kept, references, scale), n_units, recentre)


@kernel
def refresh(
    lines: Lines,
    kept: Any,
    height: int,
    changed: Nodes,  # (n,) actions whose laws have changed
    first_new: int,  # slots from here on are new to the families
    count: int,  # of slots
    recentre: bool,
) -> None:
    """Overwrites the rows and sums on the paths of actions that have changed, or are new, and caps if asked to."""
    slot_node, slot_parent, slot_row, table, _, kind_of_node, place = kept[10:17]
    path, moved = np.empty(height + 2, np.int32), np.empty(height + 2, np.bool_)
    for i in range(len(changed) + count - first_new):
        slot = find_one(whole(changed[i]), slot_node, table) if i < len(changed) else first_new + i - len(changed)
        is_twice = i < len(changed) and slot >= first_new
        if slot >= 0 and slot_row[slot] >= 0 and not is_twice:
            families.refresh_path(
                lines, slot, whole(place[slot_parent[slot]]), whole(place[slot]), first_new, kind_of_node, slot_node,
                recentre, path, moved,
            )  # fmt: skip


@kernel
def refresh_all(
    kept: Any, references: Floats, scale: float, height: int, changed: Nodes, first_new: int, count: int, recentre: bool
) -> None:
    """`refresh` by itself."""
    refresh(_lines(kept, references, scale), kept, height, changed, first_new, count, recentre)


@kernel
def decide_next(
    kept: Any,
    references: Floats,
    scale: float,
    height: int,
    changed: Nodes,  # (n,) actions whose laws have changed since the last decision
    first_new: int,  # slots from here on are new to the families
    count: int,  # of slots
    champions: Nodes,  # (n,) slots
    left_out: Nodes,  # (m,) ascending
    by_name: bool,
    uniforms: Floats,
    mean: float,
    asked: Floats,  # (n, 2)
    counts: Integers,  # (1,)
    top: Nodes,  # (k,)
    top_score: Floats,  # (k,)
) -> int:
    """`decide`, where laws have changed; and overwrites the champions with the best action first, if it is touched."""
    lines = _lines(kept, references, scale)
    if len(changed) or first_new < count:
        refresh(lines, kept, height, changed, first_new, count, True)
    slot_node, slot_parent, _, table, child_start, kind_of_node, place = kept[10:17]
    looked = decide(
        lines, slot_node, slot_parent, table, child_start, kind_of_node, place, champions, left_out, by_name,
        height, uniforms, asked, counts, top, top_score,
    )  # fmt: skip
    if looked == TOO_FEW:
        return TOO_FEW
    top_score += mean
    asked += mean
    slot = find_one(whole(top[0]), slot_node, table)
    if slot >= 0:
        i = 0
        while i < len(champions) - 1 and champions[i] != slot:
            i += 1
        while i > 0:
            champions[i] = champions[i - 1]
            i -= 1
        champions[0] = slot
    return looked


@kernel
def decide_block(
    kept: Any,
    references: Floats,
    scale: float,
    height: int,
    champions: Nodes,  # (n,) slots
    left_out: Nodes,  # (m,) ascending
    by_name: bool,
    rng: np.random.Generator,
    mean: float,
    top: Nodes,  # (decisions, k)
    top_score: Floats,  # (decisions, k)
) -> None:
    """Overwrites top_* with the k best actions of each of many draws, and champions; moves rng on."""
    nothing, asked, counts = champions[:0], np.empty((0, 2)), np.empty(1, np.int64)
    wanted = FEWEST_UNIFORMS
    for i in range(len(top)):
        uniforms = np.empty(wanted)
        for j in range(wanted):
            uniforms[j] = rng.random()
        while True:
            looked = decide_next(
                kept, references, scale, height, nothing, 0, 0, champions, left_out, by_name, uniforms, mean,
                asked, counts, top[i], top_score[i],
            )  # fmt: skip
            if looked != TOO_FEW:
                break
            uniforms = more_uniforms(rng, uniforms)
        wanted = max(FEWEST_UNIFORMS, 2 * counts[0])
