"""Expectation propagation at actions whose rewards are counts."""

from __future__ import annotations

from bough._arrays import Floats, Nodes
from bough.inference.kernels.cavities import cavity, has_moved, mass_of_site, move_site
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import ETA, M
from bough.inference.kernels.sites import site
from bough.inference.kernels.slots import place

# Columns of the evidence of an action whose rewards are counts: how many observations, their sum, the sum of their
# squares, their exposure; the site that stands for them, and the mean and the variance of the cavity it was made in.
COUNT, TOTAL, SQUARES, EXPOSURE, SITE_M, SITE_ETA, CAVITY, WIDTH = range(8)


@kernel
def refresh_site(
    slot: int,
    row: int,
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 8)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    offset: float,  # of the cavity
    v: float,
    size: float,  # of the step to the new site: 1 is all of it
) -> None:
    """Overwrites an action's site, and refreshes the path to the root."""
    m, eta, _ = site(family, evidence[row, TOTAL], evidence[row, EXPOSURE], mean, offset, v)
    move_site(slot, row, SITE_M, m, eta, offset, v, size, parent, slot_class, variance, evidence, state, law)


@kernel
def add_counts(evidence: Floats, row: int, total: float, squares: float, exposure: float, count: float) -> None:
    """Adds counts to a row of evidence, whose site is stale then."""
    evidence[row, COUNT] += count
    evidence[row, TOTAL] += total
    evidence[row, SQUARES] += squares
    evidence[row, EXPOSURE] += exposure
    evidence[row, WIDTH] = -1.0


@kernel
def collect_counts(
    slots: Nodes,  # (n,)
    slot_row: Nodes,  # (T,)
    totals: Floats,  # (n,)
    squares: Floats,  # (n,)
    exposures: Floats,  # (n,)
    counts: Floats,  # (n,)
    evidence: Floats,  # (rows, 8)
) -> None:
    """Adds counts to their actions' rows of evidence."""
    for i in range(len(slots)):
        add_counts(evidence, slot_row[slots[i]], totals[i], squares[i], exposures[i], counts[i])


@kernel
def observe_one_count(
    node: int,
    total: float,
    exposure: float,
    count: float,
    family: int,
    mean: float,
    slot_node: Nodes,  # (room,)
    table: Nodes,  # (a power of two,) of slots
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 8)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> bool:
    """Adds one count to its action, and makes its site again; False, and nothing, where it has no slot."""
    slot = table[place(node, slot_node, table)] - 1
    if slot < 0:
        return False
    row = slot_row[slot]
    add_counts(evidence, row, total, total * total, exposure, count)
    offset, v = cavity(slot, parent, slot_class, variance, state)
    refresh_site(slot, row, family, mean, parent, slot_class, variance, evidence, state, law, offset, v, 1.0)
    return True


@kernel
def sweep(
    slots: Nodes,  # (n,) of actions
    slot_row: Nodes,  # (T,)
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 8)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    size: float,  # of the steps to the new sites
) -> int:
    """Makes the sites of actions again whose cavities have moved, one after the other; returns how many."""
    moved = 0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, variance, state)
        if has_moved(row, SITE_M, offset, v, evidence):
            refresh_site(slot, row, family, mean, parent, slot_class, variance, evidence, state, law, offset, v, size)
            moved += 1
    return moved


@kernel
def site_surplus(
    slots: Nodes,  # (n,) of actions
    slot_row: Nodes,  # (T,)
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 8)
    state: Floats,  # (T, 4)
) -> float:
    """The sum over actions of how much more probable, as a logarithm, counts are than their sites, in the cavity."""
    total = 0.0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, variance, state)
        _, _, mass = site(family, evidence[row, TOTAL], evidence[row, EXPOSURE], mean, offset, v)
        total += mass - mass_of_site(state[slot, M], state[slot, ETA], offset, v)
    return total
