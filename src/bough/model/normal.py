"""Rewards that are their score plus normal noise: what the kinds of such rewards have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bough._arrays import Floats, Names
from bough.model.likelihood import Likelihood


class Normal(Likelihood):
    """A reward is its score plus normal noise; subclasses say of which variance."""

    name: ClassVar[str] = "gaussian"
    code: ClassVar[int] = 0
    sums_suffice: ClassVar[bool] = True
    noise_is_added: ClassVar[bool] = True

    def mean_reward(self, score: Any) -> Any:
        return score

    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:  # noqa: ARG002
        return mean

    def reward_variance(self, mean: Floats, variance: Floats) -> Floats:  # noqa: ARG002
        return variance

    def score_of(self, mean_reward: float) -> float:
        return mean_reward

    def log_partition(self, score: Any) -> tuple[Any, Any, Any]:
        return 0.5 * score**2, score, np.ones_like(score)

    @classmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> None:  # noqa: ARG003
        cls.check_words(trials, exposure)

    @classmethod
    def check_sums(
        cls,
        actions: Names,  # noqa: ARG003
        total: Floats,  # noqa: ARG003
        squares: Floats,  # noqa: ARG003
        count: Floats,  # noqa: ARG003
        exposure: Floats | None,
        owner: str,
    ) -> None:
        if exposure is not None:
            raise ValueError(
                "the statistics have trials or exposures, which go with a bough.BernoulliModel or PoissonModel, "
                f"and not with a {owner}"
            )

    def reward(self, mean: float, noise: float) -> float:
        return mean + noise
