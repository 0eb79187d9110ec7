"""Evidence: what has been observed at each touched action, which is all that a posterior knows; one row per action.

Messages, laws and draws are derived from it, and can be made again from it in one rootward pass, under another model
or on another tree. Engines keep it in one table of numbers with room to spare; the kinds here say what its columns are,
which of them could not have come from observations, and what sums they amount to.

| rewards | columns |
| --- | --- |
| Gaussian | their number, their mean, their sum of squares around it |
| with noise variances of their own | the same; the site that stands for them, and its cavity |
| of actions that drift | their number; the law that they leave, and when; a message; two parts of the log evidence |
| clicks, counts | their number, sum, sum of squares and exposure; the site that stands for them, and its cavity |
| in contexts | their number, sum, and squares that no parameter explains; a triangle [R | z] that says the rest |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from bough._arrays import Floats, Integers, Names, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.kernels import drift, noisy, propagation, scalar, vector
from bough.model.effects import Effects
from bough.model.likelihood import LARGEST
from bough.model.model import Model

_ROUNDING = 1e-6  # relative: how far sums may be from any that rows have
FADED_AWAY = 1e-30  # observations: so few say nothing
_SAME = 1e-6  # relative: how far a reward that is taken back may be from what was observed, by rounding
_NO_DIRECTION = 1e-12  # of the largest: what is seen in no direction, to rounding
_UNDERFLOW = float(np.finfo(np.float64).tiny)  # a row: squares below this are no longer exact


class Evidence(ABC):
    """What the columns of a table of evidence mean."""

    width: int
    """How many columns there are; the first is always the number of observations."""
    has_one_row: ClassVar[bool] = True
    """Whether all that was observed of an action is in one row."""

    @abstractmethod
    def sound(self, table: Floats) -> Any:
        """(n,) whether observations could have made each row."""

    def are_distinct(self, nodes: Nodes, table: Floats) -> bool:  # noqa: ARG002
        """Whether no two rows are of the same, for rows of these actions, which are distinct where each has one."""
        return True

    @abstractmethod
    def statistics(self, actions: Names, table: Floats) -> Statistics:
        """The sums of the rewards of these actions, as `Statistics`."""

    @abstractmethod
    def totals(self, table: Floats) -> tuple[Floats, Floats]:
        """(n,) and (n,): the sum of the rewards of each row, and what their mean is over: rewards, or exposure."""

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:  # noqa: ARG002
        """The same evidence for another model: the leaves, and their rows."""
        return leaves, table.copy()

    def taken(self, table: Floats) -> Floats:
        """The same evidence with this kind's columns, where it may come from a kind that says the same in others."""
        return table

    def scale(self, table: Floats, factor: float) -> None:
        """Have the evidence count that much of what it did; overwrites the table."""
        self._scale(table, factor)
        table[table[:, 0] < FADED_AWAY] = 0.0

    @abstractmethod
    def _scale(self, table: Floats, factor: float) -> None:
        """Multiply what the rewards add up to."""

    @abstractmethod
    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        """Take the i-th of these rewards back from a row of evidence, which is overwritten.

        A `ValueError` where it cannot have been among those that were observed.
        """


def joined(table: Floats, group: Integers | Nodes, n: int) -> Floats:
    """(n, 3) the number, mean and spread of all rewards of each group of rows that have these."""
    count = np.bincount(group, table[:, 0], minlength=n)
    total = np.bincount(group, table[:, 0] * table[:, 1], minlength=n)
    mean = np.divide(total, count, out=np.zeros(n), where=count > 0.0)
    off = table[:, 1] - mean[group]
    return np.column_stack([count, mean, np.bincount(group, table[:, 2] + table[:, 0] * off * off, minlength=n)])


class RewardEvidence(Evidence):
    """Gaussian rewards of a K-armed model."""

    width = 3

    def sound(self, table: Floats) -> Any:
        return (table[:, scalar.COUNT] > 0.0) & (table[:, scalar.SPREAD] >= 0.0)

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        count, mean, spread = table.T
        return Statistics(actions, count, count * mean, spread + count * mean**2)

    def taken(self, table: Floats) -> Floats:
        return table[:, : self.width]  # what else there is says what noise variances of their own make of them

    def totals(self, table: Floats) -> tuple[Floats, Floats]:
        return table[:, scalar.COUNT] * table[:, scalar.MEAN], table[:, scalar.COUNT]

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:
        if len(leaves) and new.effects is not None:
            new.effects.check_decided(old.effects)
        return leaves, table.copy()

    def _scale(self, table: Floats, factor: float) -> None:
        table[:, [scalar.COUNT, scalar.SPREAD]] *= factor

    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        count, mean, spread = row.tolist()
        reward, weight = float(rows.rewards[i]), float(rows.counts[i])
        left, off = _left(count, weight), reward - mean
        if left == 0.0:
            missing = off * off
        else:  # what adding it changed, the other way round
            row[:] = left, mean - off * weight / left, spread - off * off * count * weight / left
            missing = -row[scalar.SPREAD] / weight
        if missing > (_SAME * (abs(reward) + abs(mean) + math.sqrt(spread / count))) ** 2:
            raise ValueError(_never_observed(reward))
        row[scalar.SPREAD] = max(row[scalar.SPREAD], 0.0)
        if left == 0.0:
            row[:] = 0.0


class CrossedEvidence(RewardEvidence):
    """Gaussian rewards of a K-armed model with crossed factors: each action's apart by the levels of its decisions."""

    has_one_row = False

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self.width = 3 + len(effects.decided)

    def are_distinct(self, nodes: Nodes, table: Floats) -> bool:
        return len(np.unique(np.column_stack([nodes, table[:, 3:]]), axis=0)) == len(nodes)

    def sound(self, table: Floats) -> Any:
        levels = table[:, 3:]
        known = np.array([len(factor.levels) for _, factor, _ in self._effects.decided])
        return super().sound(table) & ((levels >= 0.0) & (levels < known) & (levels % 1.0 == 0.0)).all(axis=1)

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        count, mean, spread = table[:, :3].T
        levels = self._effects.decided_names(table[:, 3:].astype(np.int64))
        return Statistics._trusted(
            actions, factors=levels, count=count.copy(), sum_y=count * mean, sum_yy=spread + count * mean**2
        )

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:
        """By the names of levels; rows that differ in factors that the new model lacks become one."""
        decided = () if new.effects is None else new.effects.decided
        if not len(leaves):
            return leaves, np.empty((0, 3 + len(decided)))
        if new.effects is not None:
            new.effects.check_decided(old.effects)
        mine = {name: (i, factor) for i, (name, factor, _) in enumerate(self._effects.decided)}
        codes = np.empty((len(leaves), len(decided)))
        for i, (name, factor, _) in enumerate(decided):
            place, former = mine[name]
            used = np.unique(table[:, 3 + place].astype(np.int64))
            code = np.zeros(len(former.levels))
            code[used] = [factor.code_of_observed(former.levels[one], name) for one in used.tolist()]
            codes[:, i] = code[table[:, 3 + place].astype(np.int64)]
        keys, group = np.unique(np.column_stack([leaves, codes]), axis=0, return_inverse=True)
        rows = np.column_stack([joined(table[:, :3], group.ravel(), len(keys)), keys[:, 1:]])
        return keys[:, 0].astype(np.int32), rows

    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        super().retract(row[:3], rows, i)


class NoiseEvidence(RewardEvidence):
    """Gaussian rewards of actions with noise variances of their own: the same, and the sites that stand for them."""

    width = 7

    def sound(self, table: Floats) -> Any:
        site, information, cavity, width = table.T[noisy.SITE_M :]
        good = super().sound(table) & (site >= 0.0) & ((width >= 0.0) | (width == -1.0))
        return good & (np.abs([site, information, cavity, width]) < LARGEST).all(axis=0)

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        return super().statistics(actions, table[:, : RewardEvidence.width])

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:
        """Sites and cavities speak of deviations from the mean."""
        leaves, moved = super().moved(leaves, table, old, new)
        moved[:, noisy.SITE_ETA] += moved[:, noisy.SITE_M] * (old.mean - new.mean)
        moved[:, noisy.CAVITY] += old.mean - new.mean
        return leaves, moved

    def taken(self, table: Floats) -> Floats:
        """Of one noise variance for all, too: without sites, which are to be made."""
        if table.shape[1] == self.width:
            return table
        found = np.zeros((len(table), self.width))
        found[:, : RewardEvidence.width] = table[:, : RewardEvidence.width]
        found[:, noisy.WIDTH] = -1.0
        return found

    def _scale(self, table: Floats, factor: float) -> None:
        super()._scale(table, factor)
        table[:, [noisy.SITE_M, noisy.SITE_ETA]] *= factor  # a place to begin at
        table[:, noisy.WIDTH] = -1.0

    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        super().retract(row[: RewardEvidence.width], rows, i)
        row[noisy.WIDTH] = -1.0
        if row[scalar.COUNT] == 0.0:
            row[:] = 0.0


class DriftEvidence(Evidence):
    """Gaussian rewards of a K-armed model whose actions drift, in deviations from the prior mean."""

    width = 9

    def sound(self, table: Floats) -> Any:
        count, _, share, spread, _, precision, _, _, residual = table.T
        good = (count > 0.0) & (share >= 0.0) & (share <= 1.0) & (spread >= 0.0)
        return good & (precision > 0.0) & (residual >= 0.0)

    def statistics(self, actions: Names, table: Floats) -> Statistics:  # noqa: ARG002
        raise ValueError(
            "sums cannot tell when rewards came, so a posterior of actions that drift has none; keep the log itself"
        )

    def totals(self, table: Floats) -> tuple[Floats, Floats]:
        return np.zeros(len(table)), np.zeros(len(table))  # which are not kept

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:
        """What actions and parents deviate by grows by the same; what no parent explains of rewards does not."""
        moved = table.copy()
        moved[:, drift.SHIFT] += (1.0 - table[:, drift.SHARE]) * (old.mean - new.mean)
        moved[:, drift.INFORMATION] += table[:, drift.PRECISION] * (old.mean - new.mean)
        return leaves, moved

    def _scale(self, table: Floats, factor: float) -> None:  # noqa: ARG002
        raise ValueError("with drift old rewards count less by themselves; discount and half_life go with other models")

    def retract(self, row: Floats, rows: Rows, i: int) -> None:  # noqa: ARG002
        raise ValueError("with drift rewards cannot be taken back; give the log without them to a new agent")


class CountEvidence(Evidence):
    """Clicks or counts of a K-armed model."""

    width = 8

    def __init__(self, model: Model) -> None:
        self._kind = model.kind

    def sound(self, table: Floats) -> Any:
        count, total, squares, exposure, site, information, cavity, width = table.T
        good = (count > 0.0) & (exposure > 0.0) & (exposure < LARGEST) & (total >= 0.0) & (site >= 0.0)
        good &= _can_be_sums(count, total, squares) & ((width >= 0.0) | (width == -1.0))
        good &= (np.abs([total, site, information, cavity, width]) < LARGEST).all(axis=0)
        if self._kind.is_logistic:
            good &= (total <= exposure * (1.0 + 1e-12)) & (np.abs(count - exposure) <= 1e-9 * exposure)
        return good

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        count, total, squares, exposure = table.T[:4]
        return Statistics(actions, count, total, squares, exposure=exposure)

    def totals(self, table: Floats) -> tuple[Floats, Floats]:
        return table[:, propagation.TOTAL], table[:, propagation.EXPOSURE]

    def moved(self, leaves: Nodes, table: Floats, old: Model, new: Model) -> tuple[Nodes, Floats]:
        """Sites and cavities speak of deviations from the mean."""
        moved = table.copy()
        moved[:, propagation.SITE_ETA] += moved[:, propagation.SITE_M] * (old.mean - new.mean)
        moved[:, propagation.CAVITY] += old.mean - new.mean
        return leaves, moved

    def _scale(self, table: Floats, factor: float) -> None:
        table[:, : propagation.CAVITY] *= factor  # sites too: a place to begin at
        table[:, propagation.WIDTH] = -1.0

    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        assert rows.exposure is not None
        reward, exposure, weight = float(rows.rewards[i]), float(rows.exposure[i]), float(rows.counts[i])
        before, total, squares, exposed = row[: propagation.SITE_M].tolist()
        left = _left(exposed, weight * exposure)
        slack = _SAME * (weight * exposure + weight * reward)
        total -= weight * reward
        if total < -slack or (self._kind.is_logistic and total > left + slack) or (left == 0.0 and total > slack):
            raise ValueError(_never_observed(reward))
        if left == 0.0:
            row[:] = 0.0
            return
        # One reward may stand for many that were observed one by one, so that their number and their squares are only
        # known to be such as the rest can have.
        total = min(max(total, 0.0), left) if self._kind.is_logistic else max(total, 0.0)
        count = left if self._kind.is_logistic else max(before - weight, before * left / exposed)
        row[: propagation.SITE_M] = count, total, max(squares - weight * reward**2, total**2 / count), left
        row[propagation.WIDTH] = -1.0


class ContextEvidence(Evidence):
    """Gaussian rewards in contexts, or the sites that stand for clicks or counts there."""

    def __init__(self, model: Model) -> None:
        self._dim = model.dim
        self._kind = model.kind
        self.width = 3 + model.dim * (model.dim + 3) // 2

    def sound(self, table: Floats) -> Any:
        diagonal = vector.TRIANGLE + np.cumsum([0, *range(self._dim + 1, 2, -1)])
        count, total, residual = table.T[: vector.TRIANGLE]
        good = (count > 0.0) & (residual >= 0.0) & (table[:, diagonal] >= 0.0).all(axis=1)
        if not self._kind.sums_suffice:  # z is not made of rewards
            return good & (total >= 0.0)
        return good & _can_be_sums(
            count, total, np.square(table[:, diagonal + np.arange(self._dim, 0, -1)]).sum(axis=1) + residual
        )

    def triangles(self, table: Floats) -> Floats:
        """(n, d, d + 1): the triangles [R | z]."""
        rows = np.empty((len(table), self._dim, self._dim + 1))
        vector.unpack(table, vector.TRIANGLE, rows)
        return rows

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        if not self._kind.sums_suffice:
            raise ValueError(
                "sums cannot tell which rewards came in which contexts, so a posterior of clicks or counts in contexts "
                "has none; keep the log itself, as bough.Observations"
            )
        rows = self.triangles(table)
        R, z = rows[:, :, :-1], rows[:, :, -1]
        count, total, residual = table.T[: vector.TRIANGLE]
        xx, xy = np.einsum("nij,nik->njk", R, R), np.einsum("nij,ni->nj", R, z)
        return Statistics(actions, count, total, np.square(z).sum(axis=1) + residual, xy, xx)

    def totals(self, table: Floats) -> tuple[Floats, Floats]:
        return table[:, vector.TOTAL], table[:, vector.COUNT]

    def _scale(self, table: Floats, factor: float) -> None:
        table[:, : vector.TRIANGLE] *= factor
        table[:, vector.TRIANGLE :] *= math.sqrt(factor)

    def retract(self, row: Floats, rows: Rows, i: int) -> None:
        if not self._kind.sums_suffice:
            raise ValueError(
                "clicks and counts in contexts are kept as the Gaussian factors that stood for them, and cannot be "
                "taken back one by one; give the log without them to settle"
            )
        assert rows.contexts is not None
        reward, weight = float(rows.rewards[i]), float(rows.counts[i])
        left = _left(float(row[vector.COUNT]), weight)
        triangle = self.triangles(row[None])[0]
        removed = math.sqrt(weight) * np.append(rows.contexts[i], reward)
        found = without_row(triangle, float(row[vector.RESIDUAL]), removed)
        if found is None:
            raise ValueError(_never_observed(reward))
        if left == 0.0:
            row[:] = 0.0
            return
        row[: vector.TRIANGLE] = left, row[vector.TOTAL] - weight * reward, found[1]
        vector.pack(found[0][None], vector.TRIANGLE, row[None])


def _left(count: float, weight: float) -> float:
    """How many observations are left; exactly 0 where none is."""
    if count <= 0.0 or weight > count * (1.0 + _SAME):
        raise ValueError(f"there are {count:g} observations of it, and {weight:g} were to be taken back")
    return 0.0 if weight > count * (1.0 - 1e-9) else count - weight


def _never_observed(reward: float) -> str:
    return f"a reward of {reward:g} cannot have been among those that were observed of it"


def without_row(triangle: Floats, residual: float, row: Floats) -> tuple[Floats, float] | None:
    """The triangle [R | z] (d, d + 1) and the residual squares before a row [x | y] came in; None if it never did.

    Some unit vector (q, a) takes the rows [R | z] and [0 | r] to [x | y]. A reflection that takes it to the last axis
    turns them into the row and what there was before it, which is made a triangle again: rotations only, so that the
    outcome is exact relative to the triangle that was given.

    >>> import numpy as np
    >>> triangle, residual = without_row(np.array([[5.0, 2.2]]), 0.16, np.array([3.0, 1.0]))
    >>> triangle.round(9), round(residual, 9)  # before (3, 1) came there was (4, 2)
    (array([[4., 2.]]), 0.0)
    """
    d = len(triangle)
    # Every feature at a size of about 1, so that units do not decide what is rounding; powers of 2 round nothing.
    unit = np.append(np.exp2(np.frexp(np.abs(triangle[:, :d]).max(axis=0))[1]), 1.0)
    row = row / unit
    triangle, residual = _without_null_rows(triangle / unit, residual)
    R, z, x, y = triangle[:, :d], triangle[:, d], row[:d], float(row[d])
    size = np.abs(R).max(initial=0.0)
    q = np.linalg.lstsq(R.T, x, rcond=_NO_DIRECTION)[0]
    spare = 1.0 - float(q @ q)
    if np.abs(R.T @ q - x).max() > _SAME * size or spare < -_SAME:
        return None
    left = y - float(q @ z)
    scale = abs(y) + float(np.abs(z).max()) + math.sqrt(residual)
    if spare <= 1e-10:  # nothing else has been seen in this direction
        spare, unexplained = 0.0, 0.0
        q = q / np.linalg.norm(q)
        if abs(left) > _SAME * scale:
            return None
    else:
        unexplained = left / math.sqrt(spare)
        if unexplained**2 > residual + (_SAME * scale) ** 2 / spare:
            return None
    rows = np.zeros((d + 1, d + 1))
    rows[:d] = triangle
    rows[d, d] = unexplained
    direction = np.append(q, math.sqrt(spare))
    direction[d] += math.copysign(1.0, direction[d])
    rows -= np.outer(direction, (2.0 / float(direction @ direction)) * (direction @ rows))
    upper = np.asarray(np.linalg.qr(rows[:d], mode="r"))
    upper *= np.where(np.diagonal(upper) < 0.0, -1.0, 1.0)[:, None]
    return np.triu(upper) * unit, max(residual - unexplained**2, 0.0)


def _without_null_rows(triangle: Floats, residual: float) -> tuple[Floats, float]:
    """The same with all that no parameter explains in the residual, also where fewer than d directions were seen.

    There R has combinations of rows that are zero, and what z has in these directions is a residual by another name.
    """
    d = len(triangle)
    left, sizes, _ = np.linalg.svd(triangle[:, :d])
    null = left[:, sizes <= _NO_DIRECTION * sizes.max(initial=0.0)]
    hidden = null.T @ triangle[:, d]
    kept = triangle.copy()
    kept[:, d] -= null @ hidden
    return kept, residual + float(hidden @ hidden)


def _can_be_sums(count: Floats, total: Floats, squares: Floats) -> Any:
    """(n,) whether that many rewards can have this sum, and this sum of squares."""
    return np.abs(total) <= np.sqrt(count) * np.sqrt(np.maximum(squares, 0.0) + count * _UNDERFLOW) * (1.0 + _ROUNDING)


def evidence_of(model: Model) -> Evidence:
    """What a model's evidence looks like."""
    if not model.is_scalar:
        return ContextEvidence(model)
    if model.drift_half_life is not None:
        return DriftEvidence()
    if model.effects is not None:
        return CrossedEvidence(model.effects)
    if model.kind.has_own_noise:
        return NoiseEvidence()
    return RewardEvidence() if model.kind.is_conjugate else CountEvidence(model)
