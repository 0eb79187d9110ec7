"""The exact posterior of a K-armed model whose actions drift around their parents.

An action is theta_a(t) = theta_p + delta_a(t), where delta_a is a stationary Ornstein-Uhlenbeck process of variance v
and half-life H: a Gaussian process of mean zero and covariance v 2^(-|t - s| / H). Inner nodes stand still. Given its
parent, an action is a Kalman filter of its own rewards, y ~ N(theta_a, s): with all parameters as deviations from the
prior mean,

    law        theta_a(t) | theta_p ~ N(A theta_p + c, P)        at first A = 1, c = 0, P = v
    time       r = 2^(-dt/H):    A <- r A + (1 - r),  c <- r c,  P <- r^2 P + (1 - r^2) v
    reward     F = P + s:        M~ += A^2 / F,  eta~ += A (y - c) / F
               c += (P / F) (y - c),  A <- A s / F,  P <- P s / F

What the rewards say of theta_p is exp(eta~ theta_p - M~ theta_p^2 / 2), whatever the time is. So as far as messages go
a drifting action is a node of prior variance zero which collects M~ and eta~ itself: classes of actions are doubled,
once with no variance for the messages and once with their own. Time makes the actions' own laws older and changes
nothing else. An untouched action has its prior's law at any time, so the search for the best is what it was.

The log evidence needs, beside the messages, the sum of log F over the rewards, and the squares that no theta_p
explains. With m = eta~ / M~ just before a reward, that sum grows by (y - c - A m)^2 / (F + A^2 / M~).
"""

from __future__ import annotations

import math

import numpy as np

from bough._arrays import Floats, Nodes
from bough.data.rows import Rows
from bough.data.statistics import Statistics
from bough.inference.evidence import DriftEvidence
from bough.inference.kernels import drift as kernels
from bough.inference.kernels import scalar_draws as draws
from bough.inference.scalar import ScalarEngine
from bough.inference.slots import Slots
from bough.model.model import Model


class OutOfOrderError(ValueError):
    """A reward that is earlier than another one of its action, which has been observed already."""

    def __init__(self, leaf: int, time: float, last: float) -> None:
        super().__init__(f"the reward of node {leaf} at {time:g} is earlier than its last one, at {last:g}")
        self.leaf = leaf
        self.time = time
        self.last = last


class DriftEngine(ScalarEngine):
    """State and operations of the posterior of a K-armed model with drift; times are since the clock's start."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, DriftEvidence())
        assert model.drift_half_life is not None
        self._half_life = model.drift_half_life
        self._noise = float(model.likelihood.noise_variance)
        classes = model.classes
        doubled = classes.of_node.copy()
        doubled[model.tree.leaves] += len(classes.table)
        self.slots = Slots(model.tree, doubled)
        nothing = np.zeros_like(classes.table)
        self._variance = np.concatenate([classes.table, nothing])  # of messages
        self._own = np.concatenate([nothing, classes.table])  # of actions around their parents
        self._laws_at = math.nan  # the time for which the laws of all actions are right
        self._news_at = math.nan  # and for which the search knows them

    def advance(self, now: float) -> None:
        """Move the clock forward; what is known of actions ages when it is next asked for."""
        self.now = now

    # -- observations --------------------------------------------------------------------------

    def observe_one(self, leaf: int, reward: float) -> None:
        """Add one reward of a leaf, which comes now, and refresh its path to the root."""
        slots = self.slots
        while not kernels.observe_one(
            leaf, reward, self.now, self._mean, self._noise, self._half_life, slots._node, slots._table, slots._parent,
            slots._class, slots._row, self._variance, self._own, self._table, self._state, self._law,
        ):  # fmt: skip
            self._touch(np.array([leaf], dtype=np.int32))
            self._laws_at = math.nan
        self.news.of_one(leaf)

    def observe(self, rows: Rows, settle: bool = True) -> None:  # noqa: ARG002
        """Add rewards of leaves in the order of their times; an `OutOfOrderError` where one comes too late."""
        leaves, rewards, times = rows.leaves, rows.rewards, rows.times
        if times is None:
            times = np.full(len(rewards), self.now)
        else:
            self._check_order(leaves, times)
            order = np.argsort(times, kind="stable")
            leaves, rewards, times = leaves[order], rewards[order], times[order]
        self._take(leaves, np.ones(len(rewards)), rewards, np.zeros(len(rewards)), times)

    def absorb(self, leaves: Nodes, statistics: Statistics, settle: bool = True) -> None:  # noqa: ARG002
        """Add the rewards that were summed for distinct leaves, as if all of them came now."""
        self._take(leaves, statistics.count, *statistics.averages_and_spreads(), np.full(len(leaves), self.now))

    def _check_order(self, leaves: Nodes, times: Floats) -> None:
        slots = self.slots.find(leaves)
        known = np.flatnonzero(slots >= 0)
        kept = self._table[self.slots.row[slots[known]]]
        early = known[(kept[:, kernels.COUNT] > 0.0) & (times[known] < kept[:, kernels.LAST])]
        if len(early):
            first = int(early[0])
            last = self._table[self.slots.row[slots[first]], kernels.LAST]
            raise OutOfOrderError(int(leaves[first]), float(times[first]), float(last))

    def _take(self, leaves: Nodes, counts: Floats, averages: Floats, squares: Floats, times: Floats) -> None:
        slots = self._touch(leaves)
        self.news.of_some(leaves)
        stale = np.empty(min(self.slots.count, len(slots) * (self._tree.height + 1)), dtype=np.int32)
        kernels.collect(
            slots, self.slots.row, self.slots.class_, counts, averages, squares, times, self._own, self._mean,
            self._noise, self._half_life, self._table, self._state,
        )  # fmt: skip
        self._refresh_paths(slots, stale)
        self._laws_at = math.nan

    def place(self, leaves: Nodes, evidence: Floats) -> None:
        """Forget everything, and know this evidence of distinct leaves and nothing else; now is not before it."""
        super().place(leaves, evidence)
        self.now = max(self.now, float(evidence[:, kernels.LAST].max(initial=-math.inf)))

    def _said(self, evidence: Floats) -> tuple[Floats, Floats]:
        self._laws_at = math.nan  # all messages are made again
        return evidence[:, kernels.PRECISION], evidence[:, kernels.INFORMATION]

    def _begin(self, slots: Nodes) -> None:
        super()._begin(slots)
        self._laws_at = math.nan

    def _class_of_action(self, class_: int) -> int:
        return class_ + len(self.model.classes.table)

    def _class_of_category(self, class_: int) -> int:
        return class_ % len(self.model.classes.table)

    def discount(self, factor: float) -> None:
        """Refused: old rewards count less by themselves."""
        self.kind.scale(self._table, factor)  # whose evidence says so

    # -- answers -------------------------------------------------------------------------------

    def is_finite(self) -> bool:
        """Whether the laws of all touched nodes are numbers that can be computed with."""
        return super().is_finite() and bool(np.isfinite(self.table).all())

    def _made_good(self) -> None:
        """Bring the laws of actions, which rootward passes leave as those of nodes without variance, to now."""
        if self._laws_at != self.now:
            slots = self.slots
            kernels.age(slots.row, slots.class_, self.now, self._own, self._half_life, self._table, self._law)
            self._laws_at = self.now
        if self._news_at != self.now:  # all of them have aged
            self.news.of_all()
            self._news_at = self.now

    def conditional(self, node: int) -> tuple[float, float, float]:
        """(gain, offset, variance) of a node given its parent."""
        slot = int(self.slots.find(np.array([node], dtype=np.int32))[0])
        if slot < 0 or self.slots.row[slot] < 0:
            return super().conditional(node)
        self._made_good()
        gain, offset, deviation = self._law[slot].tolist()
        return gain, offset + (1.0 - gain) * self._mean, deviation**2

    def log_evidence(self) -> float:
        """The log density of all rewards observed so far."""
        slots, own = self.slots, self.table[:, [kernels.LOG_VARIANCES, kernels.RESIDUAL]].sum()
        constant = float(self.table[:, kernels.COUNT].sum()) * math.log(2.0 * math.pi)
        deviance = draws.deviance(slots.parent, slots.class_, self._variance, self._state[: slots.count])
        return -0.5 * (constant + float(own) + float(deviance))


def check_same_drift(old: Model, new: Model, old_classes: Nodes, new_leaves: Nodes) -> None:
    """Refuse to take what is known of leaves, which were of these classes, to a model where it would be something else.

    What a drifting action keeps holds for one noise, one drift, and one variance of the action; the prior mean, the
    tree and the variances above actions may change.
    """
    if old.drift_half_life is None and new.drift_half_life is None:
        return
    before, after = old.classes.table[old_classes], new.classes.table[new.classes.of_node[new_leaves]]
    others = np.flatnonzero(before != after)
    if old.drift_half_life != new.drift_half_life:
        what = f"drift is {new.drift_half_life} and was {old.drift_half_life}"
    elif len(before) and old.likelihood != new.likelihood:
        what = f"noise_variance is {new.likelihood.noise_variance} and was {old.likelihood.noise_variance}"
    elif len(others):
        first = int(others[0])
        what = f"the variance of {new.tree.name(int(new_leaves[first]))!r} is {after[first]} and was {before[first]}"
    else:
        return
    raise ValueError(f"{what}; with drift that needs the log: give it to a new posterior with update(..., at=...)")
