"""Counts: a reward is Poisson, with mean exposure times exp(score)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import pdtr, pdtrik

from bough._arrays import Floats, Names
from bough.model.likelihood import LARGEST, Likelihood, check_each, column_beside, raise_odd_sums
from bough.model.model import Model

_MOST_COUNTED = 1e8  # a rate beyond which drawing a count would take too long
_LARGEST_COUNT = 2.0**53  # beyond it not every whole number is one, and a site's precision is lost to rounding


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Scores are logarithms of rates.

    >>> Poisson().mean_reward(0.0)
    np.float64(1.0)
    """

    name: ClassVar[str] = "poisson"
    code: ClassVar[int] = 2
    has_exposure: ClassVar[bool] = True
    exposure_word: ClassVar[str | None] = "exposure"
    is_exponential: ClassVar[bool] = True
    usual_variance: ClassVar[float | None] = 1.0
    largest_mean: ClassVar[float] = _MOST_COUNTED

    def mean_reward(self, score: Any) -> Any:
        with np.errstate(over="ignore"):
            return np.exp(score)

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(mean + 0.5 * variance))

    def reward_variance(self, mean: Floats, variance: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(2.0 * mean + variance) * np.expm1(variance))

    def at_most(self, count: Floats, mean: Floats, size: float) -> Floats:
        return np.where(count < 0.0, 0.0, pdtr(np.maximum(count, 0.0), size * mean))

    def score_of(self, mean_reward: float) -> float:
        return float(np.log(mean_reward))

    def log_partition(self, score: Any) -> tuple[Any, Any, Any]:
        rate = self.mean_reward(score)
        return rate, rate, rate

    def is_plain(self, reward: float) -> bool:
        return bool(0.0 <= reward < _LARGEST_COUNT and reward == int(reward))

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats:
        cls.check_words(trials, exposure)
        given = column_beside(exposure, "exposure", rewards)
        check_each(given, (given > 1.0 / LARGEST) & (given < LARGEST), "exposure", "a positive, finite number")
        sound = (rewards >= 0.0) & (rewards == np.floor(rewards)) & (rewards < _LARGEST_COUNT)
        check_each(rewards, sound, "reward", "a count, a whole number of 0 or more, and below 9e15")
        return given

    @classmethod
    def check_sums(
        cls, actions: Names, total: Floats, squares: Floats, count: Floats, exposure: Floats | None, owner: str
    ) -> None:
        size = count if exposure is None else exposure
        # Fractions are no counts, but totals that have faded are.
        raise_odd_sums(total < 0.0, actions, total, squares, size, owner, "give counts of 0 or more")

    def reward(self, mean: float, noise: float) -> float:
        """The quantile of the Poisson distribution."""
        if not mean <= _MOST_COUNTED:
            raise ValueError(f"a mean reward of {mean:g} is too large to simulate counts of; give smaller variances")
        if mean == 0.0 or noise <= float(np.exp(-mean)):
            return 0.0
        found = float(np.ceil(pdtrik(noise, mean)))
        return found - 1.0 if found >= 1.0 and pdtr(found - 1.0, mean) >= noise else found


@dataclass(frozen=True, eq=False, repr=False)
class PoissonModel(Model):
    """The same prior on a tree, for counts: a reward is Poisson with mean exposure times exp(parameter).

    Parameters, and so `mean` and `covariance`, are logarithms of rates; with a vector for `mean`, the log-rate is the
    product of the action's parameter with the context, whose entries have the names of `features`, if it is given.
    `exposure` is how long, or how much, was counted.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.PoissonModel(tree, mean=1.0, covariance=0.5)
    >>> posterior = bough.Posterior(model)
    >>> posterior.update("coffee", 4)
    >>> posterior.update(["tea/green", "tea/black"], [12, 31], exposure=[2.0, 4.5])
    >>> posterior.mean_reward().mean.round(1)
    array([4.1, 5.9, 6.8])
    """

    kind: ClassVar[type[Likelihood]] = Poisson
