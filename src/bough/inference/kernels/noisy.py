"""Actions whose noise variance is integrated out: their mixtures, and their sites.

`noise_grid.py` makes the mixtures. They are kept in one pool, an action's components side by side, since every draw
asks for them.
"""

from __future__ import annotations

import math

from bough._arrays import Flags, Floats, Nodes
from bough.inference.kernels.cavities import cavity, has_moved, mass_of_site, move_site
from bough.inference.kernels.jit import kernel
from bough.inference.kernels.noise_grid import components, site_in, tilted
from bough.inference.kernels.scalar import COUNT, ETA, MEAN, SPREAD, M, add
from bough.inference.kernels.slots import place

# Columns of the evidence of an action, after those of scalar.py: the site that stands for its rewards, and the mean and
# the variance of the cavity it was made in.
SITE_M, SITE_ETA, CAVITY, WIDTH = range(3, 7)
# Columns of where an action's components are in the pool, and what else is said of its mixture: its constant, the mean
# of the rewards, and the widest deviation that a component leaves the action given its parent; how far that mean is
# from what others say, as a square, where this needs nodes for it; and for how much of that the nodes are good.
FIRST, SIZE, ROOM, CONSTANT, AVERAGE, WIDEST, OFF, REACH = range(8)
# Columns of the pool: the variance of the mean of the rewards around the action, the component's weight, and the
# cumulative weights from which draws begin. Its first row says how much of it is used.
C, WEIGHT, CUMULATIVE = range(3)

CHUNK = 8  # components that are made room for at once


@kernel
def mix(
    slots: Nodes,  # (n,) of actions
    slot_row: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    grid: Floats,  # (2 + G, 4)
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3)
    scratch: Floats,  # (2, most)
) -> int:
    """Overwrites where and the pool with the mixtures of actions; how many, until the pool is full."""
    for i in range(len(slots)):
        if not mix_one(slot_row[slots[i]], class_variance[slot_class[slots[i]]], evidence, grid, where, pool, scratch):
            return i
    return len(slots)


@kernel
def mix_one(row: int, v: float, evidence: Floats, grid: Floats, where: Floats, pool: Floats, scratch: Floats) -> bool:
    """Overwrites where and the pool with the mixture of an action; False, and nothing, where the pool is full."""
    count = evidence[row, COUNT]
    if not count > 0.0:
        where[row, SIZE] = 0.0
        return True
    variance, weight = scratch
    n, constant, _, _, reach = components(count, evidence[row, SPREAD], where[row, OFF], v, grid, variance, weight)
    if n > where[row, ROOM]:
        room = (n + CHUNK - 1) // CHUNK * CHUNK
        used = max(pool[0, 0], 1.0)
        if used + room > len(pool):
            return False
        where[row, FIRST], where[row, ROOM] = used, room
        pool[0, 0] = used + room
    where[row, SIZE], where[row, CONSTANT], where[row, REACH] = n, constant, reach
    first, total = int(where[row, FIRST]), 0.0
    for k in range(n):
        c = variance[k] / count
        total += weight[k] / math.sqrt(v + c)
        pool[first + k, C], pool[first + k, WEIGHT], pool[first + k, CUMULATIVE] = c, weight[k], total
    c = variance[n - 1] / count
    where[row, AVERAGE], where[row, WIDEST] = evidence[row, MEAN], math.sqrt(v * c / (v + c))
    return True


@kernel
def mixture(row: int, where: Floats, pool: Floats) -> tuple[Floats, Floats]:
    """The variances and the weights of an action's components."""
    first = int(where[row, FIRST])
    n = first + int(where[row, SIZE])
    return pool[first:n, C], pool[first:n, WEIGHT]


@kernel
def _site(
    row: int, mean: float, offset: float, v: float, evidence: Floats, where: Floats, pool: Floats
) -> tuple[float, float, float]:
    """The site of an action in a cavity, and how probable its rewards are there."""
    c, weight = mixture(row, where, pool)
    return site_in(evidence[row, MEAN] - mean - offset, offset, v, c, weight, where[row, CONSTANT])


@kernel
def _refresh_site(
    slot: int, row: int, mean: float, parent: Nodes, slot_class: Nodes, class_variance: Floats, evidence: Floats,
    where: Floats, pool: Floats, state: Floats, law: Floats, offset: float, v: float, size: float,
) -> None:  # fmt: skip
    """Overwrites an action's site, as far as the size of the step goes, and refreshes the path to the root."""
    m, eta, _ = _site(row, mean, offset, v, evidence, where, pool)
    move_site(slot, row, SITE_M, m, eta, offset, v, size, parent, slot_class, class_variance, evidence, state, law)


@kernel
def collect(
    slots: Nodes,  # (n,)
    slot_row: Nodes,  # (T,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,)
    spreads: Floats,  # (n,)
    evidence: Floats,  # (rows, 7)
) -> None:
    """Adds rewards, which come summed, to their actions' rows of evidence, whose sites are stale then."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        add(evidence, row, counts[i], averages[i], spreads[i])
        evidence[row, WIDTH] = -1.0


@kernel
def observe_one(
    node: int,
    reward: float,
    weight_of_one: float,
    mean: float,
    slot_node: Nodes,  # (room,)
    table: Nodes,  # (a power of two,) of slots
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    slot_row: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    grid: Floats,  # (2 + G, 4)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3), with room for one more mixture
    scratch: Floats,  # (2, most)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
) -> bool:
    """Adds one reward to its action, and makes its site again; False, and nothing, where it has no slot."""
    slot = table[place(node, slot_node, table)] - 1
    if slot < 0:
        return False
    row = slot_row[slot]
    add(evidence, row, weight_of_one, reward, 0.0)
    offset, v = cavity(slot, parent, slot_class, class_variance, state)
    where[row, OFF] = (evidence[row, MEAN] - mean - offset) ** 2
    mix_one(row, class_variance[slot_class[slot]], evidence, grid, where, pool, scratch)
    _refresh_site(
        slot, row, mean, parent, slot_class, class_variance, evidence, where, pool, state, law, offset, v, 1.0
    )
    return True


@kernel
def sweep(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
    law: Floats,  # (T, 3)
    size: float,  # of the steps to the new sites
) -> int:
    """Makes the sites of actions again whose cavities have moved, one after the other; returns how many."""
    moved = 0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, class_variance, state)
        if has_moved(row, SITE_M, offset, v, evidence):
            _refresh_site(
                slot, row, mean, parent, slot_class, class_variance, evidence, where, pool, state, law, offset, v,
                size,
            )  # fmt: skip
            moved += 1
    return moved


@kernel
def outgrown(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 8)
    state: Floats,  # (T, 4)
    found: Flags,  # (n,)
) -> None:
    """Overwrites found: whose rewards are farther from what others say than its mixture is good for; notes how far."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        offset, _ = cavity(slots[i], parent, slot_class, class_variance, state)
        off = (evidence[row, MEAN] - mean - offset) ** 2
        found[i] = off > where[row, REACH]
        if found[i]:
            where[row, OFF] = off


@kernel
def surplus(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
) -> float:
    """The sum over actions of how much more probable, as a logarithm, rewards are than their sites, in the cavity."""
    total = 0.0
    for i in range(len(slots)):
        slot = slots[i]
        row = slot_row[slot]
        offset, v = cavity(slot, parent, slot_class, class_variance, state)
        _, _, mass = _site(row, mean, offset, v, evidence, where, pool)
        total += mass - mass_of_site(state[slot, M], state[slot, ETA], offset, v)
    return total


@kernel
def cavities(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 4)
    offset: Floats,  # (n,)
    variance: Floats,  # (n,)
) -> None:
    """Overwrites offset and variance: the cavities of actions, as deviations from the prior mean."""
    for i in range(len(slots)):
        offset[i], variance[i] = cavity(slots[i], parent, slot_class, class_variance, state)


@kernel
def moments(
    slots: Nodes,  # (n,) of actions with evidence
    slot_row: Nodes,  # (T,)
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    class_variance: Floats,  # (n_classes,)
    evidence: Floats,  # (rows, 7)
    where: Floats,  # (rows, 8)
    pool: Floats,  # (room, 3)
    state: Floats,  # (T, 4)
    means: Floats,  # (n,)
    variances: Floats,  # (n,)
) -> None:
    """Overwrites means and variances with the moments of a cavity times the mixture, also where no site has them."""
    for i in range(len(slots)):
        row = slot_row[slots[i]]
        c, weight = mixture(row, where, pool)
        offset, v = cavity(slots[i], parent, slot_class, class_variance, state)
        off = evidence[row, MEAN] - mean - offset
        _, p, _, open_ = tilted(off, v, c, weight, where[row, CONSTANT])
        means[i] = mean + offset + v * p * off
        variances[i] = v * open_
