"""Clicks: a reward is a number of successes, each with probability sigmoid(score), out of some trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, expit

from bough._arrays import Floats, Names
from bough.model.likelihood import Likelihood, check_each, column_beside, raise_constant, raise_odd_sums
from bough.model.logistic import logistic_mean
from bough.model.model import Model

_MOST_TRIALS = 2.0**53  # beyond it not every whole number is one


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Scores are log-odds.

    >>> Bernoulli().mean_reward(0.0)
    np.float64(0.5)
    """

    name: ClassVar[str] = "bernoulli"
    code: ClassVar[int] = 1
    has_exposure: ClassVar[bool] = True
    exposure_word: ClassVar[str | None] = "trials"
    is_logistic: ClassVar[bool] = True
    usual_variance: ClassVar[float | None] = 1.0
    largest_mean: ClassVar[float] = 1.0

    def mean_reward(self, score: Any) -> Any:
        return expit(score)

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        return logistic_mean(mean, variance)

    def at_most(self, count: Floats, mean: Floats, size: float) -> Floats:
        below = np.clip(count, 0.0, size)
        # Not bdtr, whose numbers of trials have 32 bits.
        some = betainc(np.maximum(size - below, 1.0), below + 1.0, 1.0 - mean)
        return np.where(count < 0.0, 0.0, np.where(count >= size, 1.0, some))

    def score_of(self, mean_reward: float) -> float:
        return float(np.log(mean_reward / (1.0 - mean_reward)))

    def log_partition(self, score: Any) -> tuple[Any, Any, Any]:
        mean = expit(score)
        return np.logaddexp(0.0, score), mean, mean * (1.0 - mean)

    def is_plain(self, reward: float) -> bool:
        return reward in (0.0, 1.0)

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats:
        cls.check_words(trials, exposure)
        given = column_beside(trials, "trials", rewards)
        sound = (given >= 1.0) & (given == np.floor(given)) & (given < _MOST_TRIALS)
        check_each(given, sound, "number of trials", "a whole number of 1 or more, and below 9e15")
        check_each(
            rewards,
            (rewards >= 0.0) & (rewards <= given) & (rewards == np.floor(rewards)),
            "reward",
            "0 or 1, or with trials=m a whole number of successes from 0 to m"
            if trials is None
            else "a whole number of successes from 0 to its trials",
        )
        return given

    @classmethod
    def check_sums(
        cls, actions: Names, total: Floats, squares: Floats, count: Floats, exposure: Floats | None, owner: str
    ) -> None:
        size = count if exposure is None else exposure
        bad = (total < 0.0) | (total > size * (1.0 + 1e-12))
        wanted = "give clicks of 0 to as many as there were trials"
        if exposure is None:  # each is 0 or 1, so that squares change nothing
            bad |= np.abs(squares - total) > 1e-9 * squares
            wanted = "give 0 or 1, or, where they are clicks of many views, these as trials="
        raise_odd_sums(bad, actions, total, squares, size, owner, wanted)

    @classmethod
    def check_variation(cls, total: float, exposure: float) -> None:
        if total == 0.0 or total >= exposure:
            raise_constant(total, exposure)

    @classmethod
    def n_observations(cls, rows: Any, exposure: Any) -> Any:  # noqa: ARG003
        """As many as their trials."""
        return exposure

    def reward(self, mean: float, noise: float) -> float:
        """A success where the noise is below the probability."""
        return float(noise < mean)


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliModel(Model):
    """The same prior on a tree, for clicks: a reward is 1 with probability sigmoid(parameter), and 0 otherwise.

    Parameters, and so `mean` and `covariance`, are log-odds; with a vector for `mean`, the log-odds of a reward are the
    product of the action's parameter with the context, whose entries have the names of `features`, if it is given.
    Rewards may also come as n successes out of m `trials`. The posterior is Gaussian as well, by expectation
    propagation; :doc:`/explanation/propagation` says how close it is.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> model = bough.BernoulliModel(tree, mean=-3.0, covariance=0.5)
    >>> model
    BernoulliModel(n_actions=3, height=2, dim=1)
    >>> posterior = bough.Posterior(model)
    >>> posterior.update("coffee", 1)
    >>> posterior.update(["tea/green", "tea/black"], [30, 12], trials=[200, 150])
    >>> posterior.mean_reward().mean.round(2)
    array([0.15, 0.15, 0.08])
    """

    kind: ClassVar[type[Likelihood]] = Bernoulli
