"""Expectation propagation at the actions of a tree: cavities, and the sites that are made in them.

The evidence of an action has its site in four columns, from `first` on: the precision and the information of the site,
and the mean and the variance of the cavity it was made in. The variance is negative where the site is to be made again
in any case.
"""

from __future__ import annotations

import math

from bough._arrays import Floats, Nodes
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.scalar import ETA, ETA_SENT, M_SENT, M, refresh_path

STILL = 1e-9  # a cavity that moves by less than this, in its own standard deviations, leaves its site as it is
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
def has_moved(row: int, first: int, offset: float, v: float, evidence: Floats) -> bool:
    """Whether an action's cavity is another one than its site was made in."""
    near = STILL * math.sqrt(v) + _ROUNDING * abs(offset)
    return bool(abs(offset - evidence[row, first + 2]) > near or abs(v - evidence[row, first + 3]) > STILL * v)


@kernel
def move_site(
    slot: int,
    row: int,
    first: int,
    m: float,
    eta: float,
    offset: float,  # of the cavity
    v: float,
    size: float,  # of the step to the new site: 1 is all of it
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, columns)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites an action's site, going as far towards precision m and information eta as the size of the step says.

    Refreshes the path to the root.
    """
    m_off, eta_off = m - state[slot, M], eta - state[slot, ETA]
    state[slot, M] += size * m_off
    state[slot, ETA] += size * eta_off
    evidence[row, first] = state[slot, M]
    evidence[row, first + 1] = state[slot, ETA]
    evidence[row, first + 2] = offset
    evidence[row, first + 3] = v
    if size < 1.0 and (abs(m_off) * v > STILL or abs(eta_off - m_off * offset) * math.sqrt(v) > STILL):
        evidence[row, first + 3] = -1.0  # not there yet, even if the cavity stays
    refresh_path(slot, parent, slot_class, variance, state, law)


@kernel
def mass_of_site(m: float, eta: float, offset: float, v: float) -> float:
    """The log of the integral of a site, which is 1 at the prior mean, over its cavity."""
    gain = 1.0 / (1.0 + v * m)
    return gain * (eta * offset - 0.5 * m * offset * offset + 0.5 * v * eta * eta) - 0.5 * math.log1p(v * m)
