"""Estimators of a policy's value: what it would have earned per row, had it decided instead of the logger.

Each gives a value and its standard error, and what the value is beyond the log's own mean reward, its lift. With the
weights w = target's probability / propensity, and a model's mean reward q:

    ips     mean of w y                                     no model; fails where weights are large, or the target
                                                            plays what was never logged, which counts as nothing
    snips   sum of w y / sum of w                           as ips, less noisy, and unbiased only in the long run; what
                                                            was never logged is taken to be like the rest
    dm      mean of sum_a pi(a) q(a)                        fails where the model is wrong, and shows no sign of it
    dr      dm + mean of w (y - q)                          fails where weights are large and the model is wrong
    mips    sum over categories of pi * mean reward there   fails where a category's actions differ, and the target
                                                            prefers other ones than the logger did
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from bough import _checks
from bough._arrays import Floats, Integers
from bough.data.propensities import PropensitySums
from bough.evaluation.totals import Totals
from bough.tree.tree import Tree

NAMES = ("ips", "snips", "dm", "dr")
NEED_A_MODEL = ("dm", "dr")
_MIPS = re.compile(r"mips-(\d{1,9})")


class Estimated(NamedTuple):
    """An estimate, and what its interval is made from."""

    value: float
    error: float
    """Its standard error; of `dm` the deviation of the posterior."""
    lift: float
    lift_error: float
    totals: Totals | None
    """What Cressie-Read takes; None where the interval is the posterior's."""
    offset: float = 0.0
    """What is added to the mean of z."""


def checked_names(given: Any, tree: Tree) -> tuple[str, ...]:
    """The names of estimators, or a `ValueError`."""
    if not _checks.is_list(given) or not all(isinstance(name, str) for name in given) or not len(given):
        raise ValueError(f'estimators is {given!r:.80}; give a list of names, such as ("snips", "dr", "dm")')
    names = tuple(dict.fromkeys(given))
    for name in names:
        depth = depth_of(name)
        if name not in NAMES and depth is None:
            raise ValueError(f'there is no estimator {name!r}; there are {", ".join(NAMES)}, and "mips-1" at depth 1')
        if depth is not None and not 1 <= depth <= tree.height:
            raise ValueError(f"{name!r} asks for depth {depth}; the tree has depths 1 to {tree.height}")
    return names


def depth_of(name: str) -> int | None:
    """The depth that is asked for; None for an estimator without one."""
    found = _MIPS.fullmatch(name)
    return None if found is None else int(found[1])


def ips(totals: Totals) -> Estimated:
    """Inverse propensities: the mean of w y. Unbiased where the propensities are right and cover the target.

    Horvitz and Thompson (1952). It fails where few rows carry most of the weight: then it is far too low almost always,
    and far too high once in a while.
    """
    return _mean_of_z(totals, 0.0)


def snips(totals: Totals) -> Estimated:
    """Self-normalised inverse propensities: the mean of y with weights w, and its error by the delta method.

    Swaminathan and Joachims (2015). Constants come back: adding 1 to all rewards adds 1. It fails as `ips` does, and
    where part of the target was never logged it takes that part to earn what the rest does.
    """
    n, value, mean = totals.n, totals.z / totals.w, totals.w / totals.n
    squares = totals.zz - 2.0 * value * totals.wz + value**2 * totals.ww  # of z - value w
    with_reward = totals.zy - value * totals.wy
    spread = squares / mean**2 - 2.0 * with_reward / mean + n * totals.reward_variance
    lift = value - totals.mean_reward
    return Estimated(value, _error(squares / mean**2, n), lift, _error(spread, n), totals)


def dr(totals: Totals, direct: float) -> Estimated:
    """Doubly robust: what the model predicts, and the weighted mean of what it did not foresee.

    Dudik, Langford and Li (2011). Right in the long run where the propensities are right *or* the model is. A row's
    residual is taken from the model without that row, so that the model does not foresee what it has seen. Its error is
    that of the correction, the model taken as it is.
    """
    return _mean_of_z(totals, direct)


def dm(totals: Totals, direct: float, deviation: float) -> Estimated:
    """The direct method: what the model predicts that the target earns. It has the least noise, and trusts the model.

    Its error is the posterior's: it holds where the model is right, the target was learned from this log, and the
    logger acted on nothing that is not in it. Nothing in the estimate shows where that is not so; `dr` does.
    """
    lift_error = math.hypot(deviation, math.sqrt(totals.reward_variance / totals.n))
    return Estimated(direct, deviation, direct - totals.mean_reward, lift_error, None)


def mips(
    tree: Tree, depth: int, sums: PropensitySums, probabilities: Floats, reward_range: tuple[float, float]
) -> Estimated:
    """Marginalised inverse propensities: the mean reward of each category at a depth, with the target's weights.

    Saito and Joachims (2022), with categories for embeddings. The logger's probability of a category is its share of
    the rows. It needs no propensities, and has small weights. It fails where the actions of a category differ: it takes
    the target to earn in a category what the logger did.
    """
    above = ancestors(tree, depth)
    width = len(sums.positions)
    cell, group = np.unique(above[sums.place] * width + sums.position, return_inverse=True)
    rows, y, yy = (np.bincount(group, values) for values in (sums.n, sums.y, sums.yy))
    shares = sums.rows_at / sums.n_rows
    mass = np.stack([np.bincount(above, each, minlength=tree.n_nodes) for each in probabilities])
    target = mass[cell % width, cell // width] * shares[cell % width]
    covered = float(target.sum())
    n = sums.n_rows
    w = target * n / (rows * covered) if covered > 0.0 else np.zeros(len(rows))
    within = np.maximum(yy - y**2 / rows, 0.0)  # sums of squares around each category's mean
    pooled = float(within.sum()) / max(n - len(rows), 1.0)
    within = rows * np.where(rows > 1.0, within / np.maximum(rows - 1.0, 1.0), pooled)
    totals = Totals(
        n=n,
        w=float(w @ rows),
        ww=float(w**2 @ rows),
        z=float(w @ y),
        wz=float(w**2 @ y),
        zz=float(w**2 @ yy),
        y=float(y.sum()),
        yy=float(yy.sum()),
        wy=float(w @ y),
        zy=float(w @ yy),
        largest=float(w.max(initial=0.0)),
        lowest=reward_range[0],
        highest=reward_range[1],
    )
    value = totals.z / n if covered > 0.0 else math.nan
    between = float(rows @ (y / rows - totals.mean_reward) ** 2)
    lift_squares = float((w - 1.0) ** 2 @ within) + between
    return Estimated(
        value, _error(float(w**2 @ within), n), value - totals.mean_reward, _error(lift_squares, n), totals
    )


def ancestors(tree: Tree, depth: int) -> Integers:
    """(K,) the node at that depth above each action; the action itself where it is no deeper."""
    nodes = tree.leaves.astype(np.int64)
    for _ in range(tree.height - depth):
        nodes = np.where(tree.depth[nodes] > depth, tree.parent[nodes], nodes)
    return nodes


def _mean_of_z(totals: Totals, offset: float) -> Estimated:
    n, mean = totals.n, totals.z / totals.n
    squares = totals.zz - n * mean**2
    lift_mean = (totals.z - totals.y) / n
    lift_squares = totals.zz - 2.0 * totals.zy + totals.yy - n * lift_mean**2
    return Estimated(offset + mean, _error(squares, n), offset + lift_mean, _error(lift_squares, n), totals, offset)


def _error(squares: float, n: float) -> float:
    """The standard error of a mean, from the sum of squares around it."""
    return math.sqrt(max(squares, 0.0) / max(n - 1.0, 1.0) / n)
