"""Evidence: what has been observed at each touched action, which is all that a posterior knows; one row per action.

Messages, laws and draws are derived from it, and can be made again from it in one rootward pass, under another model
or on another tree. Engines keep it in one table of numbers with room to spare; the kinds here say what its columns are,
which of them could not have come from observations, and what sums they amount to.

| rewards | columns |
| --- | --- |
| Gaussian | their number, their mean, their sum of squares around it |
| of actions that drift | their number; the law that they leave, and when; a message; two parts of the log evidence |
| clicks, counts | their number, sum, sum of squares and exposure; the site that stands for them, and its cavity |
| in contexts | their number, sum, and squares that no parameter explains; a triangle [R | z] that says the rest |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from bough._arrays import Floats, Names
from bough.data.statistics import Statistics
from bough.inference.kernels import drift, propagation, scalar, vector
from bough.model.likelihood import LARGEST
from bough.model.model import Model

_ROUNDING = 1e-6  # relative: how far sums may be from any that rows have
_UNDERFLOW = float(np.finfo(np.float64).tiny)  # a row: squares below this are no longer exact


class Evidence(ABC):
    """What the columns of a table of evidence mean."""

    width: int
    """How many columns there are; the first is always the number of observations."""

    @abstractmethod
    def sound(self, table: Floats) -> Any:
        """(n,) whether observations could have made each row."""

    @abstractmethod
    def statistics(self, actions: Names, table: Floats) -> Statistics:
        """The sums of the rewards of these actions, as `Statistics`."""

    def moved(self, table: Floats, old_mean: Any, new_mean: Any) -> Floats:  # noqa: ARG002
        """The same evidence for a model with another prior mean."""
        return table.copy()


class RewardEvidence(Evidence):
    """Gaussian rewards of a K-armed model."""

    width = 3

    def sound(self, table: Floats) -> Any:
        return (table[:, scalar.COUNT] > 0.0) & (table[:, scalar.SPREAD] >= 0.0)

    def statistics(self, actions: Names, table: Floats) -> Statistics:
        count, mean, spread = table.T
        return Statistics(actions, count, count * mean, spread + count * mean**2)


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

    def moved(self, table: Floats, old_mean: Any, new_mean: Any) -> Floats:
        """What actions and parents deviate by grows by the same; what no parent explains of rewards does not."""
        moved = table.copy()
        moved[:, drift.SHIFT] += (1.0 - table[:, drift.SHARE]) * (old_mean - new_mean)
        moved[:, drift.INFORMATION] += table[:, drift.PRECISION] * (old_mean - new_mean)
        return moved


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

    def moved(self, table: Floats, old_mean: Any, new_mean: Any) -> Floats:
        """Sites speak of deviations from the mean; those from another one are a place to begin at."""
        moved = table.copy()
        moved[:, propagation.SITE_ETA] += moved[:, propagation.SITE_M] * (old_mean - new_mean)
        moved[:, propagation.WIDTH] = -1.0
        return moved


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


def _can_be_sums(count: Floats, total: Floats, squares: Floats) -> Any:
    """(n,) whether that many rewards can have this sum, and this sum of squares."""
    return np.abs(total) <= np.sqrt(count) * np.sqrt(np.maximum(squares, 0.0) + count * _UNDERFLOW) * (1.0 + _ROUNDING)


def evidence_of(model: Model) -> Evidence:
    """What a model's evidence looks like."""
    if not model.is_scalar:
        return ContextEvidence(model)
    if model.drift_half_life is not None:
        return DriftEvidence()
    return RewardEvidence() if model.kind.is_conjugate else CountEvidence(model)
