"""The laws of the best of a group of actions alike, as tables of quantiles by the logarithm of a rate.

With P(best <= x) = exp(-m rate(x)) for a group of m, the best is where rate(x) = E / m for an exponential E, and the
next best where it is that plus E' / (m - 1). The rate of one action is -log Phi(x). Where whole subtrees are alike,
`rate_tables` has theirs, and their quantiles scale with the deviations.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, ndtri_exp

from bough._arrays import Floats, Nodes
from bough.batch.frozen import Frozen
from bough.batch.shapes import QUANTILE_FROM, QUANTILE_STEP, QUANTILES
from bough.inference.rate_tables import RateTables, rate_tables

_LOG_RATES = QUANTILE_FROM + QUANTILE_STEP * np.arange(QUANTILES)


class GroupLaws(NamedTuple):
    """Tables of quantiles, in standard deviations of an action's step."""

    tables: Floats
    """(n_laws, QUANTILES) the first is that of the normal distribution."""
    of_depth: Nodes | None
    """(height + 1,) the table of an untouched subtree by the depth of its top; None where subtrees are not alike."""
    leaf_class: int
    """The class whose step the tables of subtrees are scaled by."""


def group_laws(frozen: Frozen, k: int) -> GroupLaws:
    """The laws of groups; those of subtrees only give their single best."""
    normal = _normal_quantiles()[None]
    tables = _subtree_rates(frozen) if k == 1 else None
    if tables is None:
        return GroupLaws(normal, None, 0)
    height = len(frozen.level_start) - 2
    leaf_class = int(frozen.class_of_node[-1])
    step = _size(frozen.factor[leaf_class])
    below = [_inverse(tables, depth) / step for depth in range(1, height)]
    of_depth = np.arange(height + 1, dtype=np.int32)
    of_depth[height] = 0
    return GroupLaws(np.concatenate([normal, *(table[None] for table in below)]), of_depth, leaf_class)


def _normal_quantiles() -> Floats:
    rates = np.exp(_LOG_RATES)
    return np.asarray(np.where(rates < 0.7, -ndtri(-np.expm1(-rates)), ndtri_exp(-rates)))


def _size(factor: Floats) -> float:
    return float(np.sqrt(np.square(factor).sum()))


def _subtree_rates(frozen: Frozen) -> RateTables | None:
    """The rates of subtrees by depth; None where nodes of a depth are not alike, or covariances are not in proportion.

    They are for steps of the size of each depth's root.
    """
    levels = list(pairwise(frozen.level_start.tolist()))
    if len(levels) < 3:
        return None  # no subtrees but actions
    n_children = np.diff(frozen.child_start)
    branching, classes = [], []
    for depth, (start, end) in enumerate(levels):
        inside, own = n_children[start:end], frozen.class_of_node[start:end]
        if (own != own[0]).any() or (depth < len(levels) - 1 and (inside != inside[0]).any()):
            return None
        branching.append(int(inside[0]))
        classes.append(int(own[0]))
    sizes = np.array([_size(frozen.factor[class_]) for class_ in classes])
    if not sizes[1:].all():
        return None
    unit = [frozen.factor[class_] / size for class_, size in zip(classes[1:], sizes[1:], strict=True)]
    shapes = [root @ root.T for root in unit]
    if any(np.abs(shape - shapes[0]).max() > 1e-12 for shape in shapes):
        return None
    return rate_tables(sizes, np.array(branching[:-1], dtype=np.int32))


def _inverse(tables: RateTables, depth: int) -> Floats:
    """(QUANTILES,) where the rate of a depth has each logarithm, by bisection; the rate decreases."""
    log_rates = tables.log_rates[depth]
    low = np.full(QUANTILES, tables.start)
    high = np.full(QUANTILES, tables.start + tables.step * (len(log_rates) - 1))
    for _ in range(60):
        middle = 0.5 * (low + high)
        is_below = _interpolated(middle, log_rates, tables.start, tables.step) >= _LOG_RATES
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(0.5 * (low + high))


def _interpolated(x: Floats, log_rates: Floats, start: float, step: float) -> Floats:
    """The tabulated log rates at x, by the cubic through the four nearest entries."""
    place = (x - start) / step
    i = np.clip(place.astype(np.int64), 1, len(log_rates) - 3)
    u = place - i
    a, b, c, d = (log_rates[i + shift] for shift in (-1, 0, 1, 2))
    return np.asarray(
        -u * (u - 1.0) * (u - 2.0) / 6.0 * a
        + (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0 * b
        - (u + 1.0) * u * (u - 2.0) / 2.0 * c
        + (u + 1.0) * u * (u - 1.0) / 6.0 * d
    )
