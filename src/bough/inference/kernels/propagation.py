"""Expectation propagation at the actions of a tree: cavities, and sites made again in them."""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import ETA, ETA_SENT, M_SENT, M, refresh_path
from bough.inference.kernels.sites import site
from bough.inference.kernels.slots import place

# Columns of the evidence of an action whose rewards are counts: how many observations, their sum, the sum of their
# squares, their exposure; the site that stands for them, and the mean and the variance of the cavity it was made in.
COUNT, TOTAL, SQUARES, EXPOSURE, SITE_M, SITE_ETA, CAVITY, WIDTH = range(8)

_STILL = 1e-9  # a cavity that moves by less than this, in its own standard deviations, leaves its site as it is
_ROUNDING = 1e-12  # of a cavity's mean: it comes from differences of messages


@kernel
def cavity(slot: int, parent: Nodes, slot_class: Nodes, variance: Floats, state: Floats) -> tuple[float, float]:
    """The mean, as a deviation from the prior's, and the variance of a leaf given what all others have said.

    Rootward: the leaf is a (what is above) + offset + noise, and each ancestor, given what has been said below it but
    not by the leaf, is again such a line in its own parent.
    """
    v = variance[slot_class[slot]]
    a, offset = 1.0, 0.0
    m, eta = 0.0, 0.0  # what the child on the path would have sent without the leaf
    m_sent, eta_sent = state[slot, M_SENT], state[slot, ETA_SENT]
    slot = parent[slot]
    while slot >= 0:
        own = variance[slot_class[slot]]
        m += max(state[slot, M] - m_sent, 0.0)
        eta += state[slot, ETA] - eta_sent
        gain = 1.0 / (1.0 + own * m)
        offset += a * own * gain * eta
        v += a * a * own * gain
        a *= gain
        m *= gain
        eta *= gain
        m_sent, eta_sent = state[slot, M_SENT], state[slot, ETA_SENT]
        slot = parent[slot]
    return offset, v


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
    m_off, eta_off = m - state[slot, M], eta - state[slot, ETA]
    state[slot, M] += size * m_off
    state[slot, ETA] += size * eta_off
    evidence[row, SITE_M] = state[slot, M]
    evidence[row, SITE_ETA] = state[slot, ETA]
    evidence[row, CAVITY] = offset
    evidence[row, WIDTH] = v
    if size < 1.0 and (abs(m_off) * v > _STILL or abs(eta_off - m_off * offset) * math.sqrt(v) > _STILL):
        evidence[row, WIDTH] = -1.0  # not there yet, even if the cavity stays
    refresh_path(slot, parent, slot_class, variance, state, law)


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
        still = _STILL * math.sqrt(v) + _ROUNDING * abs(offset)
        if abs(offset - evidence[row, CAVITY]) <= still and abs(v - evidence[row, WIDTH]) <= _STILL * v:
            continue
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
        m, eta = state[slot, M], state[slot, ETA]
        _, _, surplus = site(family, evidence[row, TOTAL], evidence[row, EXPOSURE], mean, offset, v)
        gain = 1.0 / (1.0 + v * m)
        surplus -= gain * (eta * offset - 0.5 * m * offset * offset + 0.5 * v * eta * eta) - 0.5 * math.log1p(v * m)
        total += surplus
    return total
