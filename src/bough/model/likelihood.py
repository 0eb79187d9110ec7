"""Likelihood: how a reward comes about, given its score; one object per kind, and all that the rest asks of it.

A *score* is the action's parameter, or its product with the context. The mean reward increases with the score, so that
the best action has the highest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from bough import _checks
from bough._arrays import Floats, Names

_STEPS = np.linspace(-8.0, 8.0, 81)  # deviations; sums of smooth functions over even steps are nearly exact
_SHARES = np.exp(-0.5 * _STEPS**2) / np.exp(-0.5 * _STEPS**2).sum()
LARGEST = 1e150  # the square of anything larger is no longer a number


@dataclass(frozen=True)
class Likelihood(ABC):
    """The distribution of a reward given its score. Its fields are its own parameters, which files keep by name."""

    name: ClassVar[str]
    """What files and the command line call it."""
    code: ClassVar[int]
    """What `inference.kernels.likelihoods` calls it."""
    has_exposure: ClassVar[bool] = False
    """Whether an observation has a size."""
    exposure_word: ClassVar[str | None] = None
    """What a user calls that size: "trials" or "exposure"."""
    is_conjugate: ClassVar[bool] = False
    """Whether the posterior is Gaussian exactly; otherwise expectation propagation makes it so."""
    sums_suffice: ClassVar[bool] = False
    """Whether sums over an action's rows say all that they say, in contexts too."""
    has_own_noise: ClassVar[bool] = False
    """Whether each action has a noise variance of its own, which is not known."""
    is_log_concave: ClassVar[bool] = True
    """Whether the log likelihood is concave in the score, so that there is one mode."""
    takes_factors: ClassVar[bool] = False
    """Whether crossed factors may add to the score: then the posterior of all of them is known exactly."""
    is_logistic: ClassVar[bool] = False
    """Whether rewards are successes with probability sigmoid(score), which Polya-Gamma variables make Gaussian."""
    is_exponential: ClassVar[bool] = False
    """Whether the mean reward is exp(score), which is largest in the far tail of a score."""
    usual_variance: ClassVar[float | None] = None
    """A usual variance of scores, which a fit shares out a priori; None where the rewards' own variance says it."""
    largest_mean: ClassVar[float] = float("inf")
    """The largest mean reward that can be simulated."""

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of a reward around its score; 1 where rewards are not on the scale of scores."""
        return 1.0

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """What its own parameters are called."""
        return tuple(field.name for field in fields(cls))

    def parameters(self) -> dict[str, float]:
        """Its own parameters, by name."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def model_arguments(self) -> dict[str, Any]:
        """What a model of such rewards is made with."""
        return self.parameters()

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> Self:
        """The likelihood with these parameters; a `ValueError` where one is missing or not sound."""
        names = cls.parameter_names()
        missing = next((name for name in names if name not in given), None)
        if missing is not None:
            raise ValueError(f"{missing} is missing")
        return cls(**{name: given[name] for name in names})

    # -- the reward and its score --------------------------------------------------------------

    @abstractmethod
    def mean_reward(self, score: Any) -> Any:
        """The mean reward where the score is known."""

    @abstractmethod
    def expected_reward(self, mean: Floats, variance: Floats) -> Floats:
        """The mean reward where the score is normal."""

    def reward_variance(self, mean: Floats, variance: Floats) -> Floats:
        """The variance of the mean reward where the score is normal."""
        values = np.asarray(self.mean_reward(mean[:, None] + np.sqrt(variance)[:, None] * _STEPS))
        return np.asarray(np.square(values - (values @ _SHARES)[:, None]) @ _SHARES)

    def at_most(self, count: Floats, mean: Floats, size: float) -> Floats:
        """How likely a count is to be at most that, where the mean reward is known, in so many trials or exposure."""
        raise NotImplementedError(f"{self.name} rewards are no counts")

    @abstractmethod
    def score_of(self, mean_reward: float) -> float:
        """The score that has this mean reward."""

    @abstractmethod
    def log_partition(self, score: Any) -> tuple[Any, Any, Any]:
        """A, A' and A'' at a score, where a log likelihood is total * score - exposure * A(score)."""

    # -- checks --------------------------------------------------------------------------------

    def is_plain(self, reward: float) -> bool:
        """Whether a single reward needs no further look: a quick check that may say no to what is fine."""
        return abs(reward) < LARGEST  # False for NaN

    @classmethod
    @abstractmethod
    def checked_exposure(cls, rewards: Floats, trials: Any, exposure: Any) -> Floats | None:
        """How many trials, or how much exposure, each reward had; a `ValueError` where it cannot be a reward."""

    @classmethod
    def check_words(cls, trials: Any, exposure: Any) -> None:
        """Refuse trials or exposure where they go with another kind of reward."""
        for word, given in (("trials", trials), ("exposure", exposure)):
            if given is not None and word != cls.exposure_word:
                owner = {"trials": "BernoulliModel", "exposure": "PoissonModel"}[word]
                raise ValueError(f"{word} was given, which goes with a bough.{owner}; give that model, or leave it out")

    @classmethod
    @abstractmethod
    def check_sums(
        cls, actions: Names, total: Floats, squares: Floats, count: Floats, exposure: Floats | None, owner: str
    ) -> None:
        """Refuse sums over each action's rows that rewards of this kind cannot have; `owner` is the model's name."""

    @classmethod
    def check_variation(cls, total: float, exposure: float) -> None:
        """Refuse rewards that are all the same, from which no variance can be learned."""
        if total == 0.0:
            raise_constant(total, exposure)

    @classmethod
    def n_observations(cls, rows: Any, exposure: Any) -> Any:  # noqa: ARG003
        """How many observations rows with this exposure are: one each, unless their trials are counted."""
        return rows

    # -- simulation ----------------------------------------------------------------------------

    noise_is_added: ClassVar[bool] = False
    """Whether noise is added to the mean reward; otherwise it is uniform on [0, 1), and the reward its quantile."""

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """(rounds,) what decides the rewards of a simulation together with their means."""
        return rng.random(rounds)

    def draw_deviations(self, rng: np.random.Generator, n: int) -> Floats | None:  # noqa: ARG002
        """(n,) what the noise of each action is multiplied by in a simulation; None where they do not differ."""
        return None

    @abstractmethod
    def reward(self, mean: float, noise: float) -> float:
        """The reward that this noise gives around this mean."""


def raise_constant(total: float, exposure: float) -> None:
    """What to say where all rewards are the same."""
    raise ValueError(
        f"the rewards sum to {total:g} in {exposure:g} trials or exposure: all are the same, and there is no "
        "variance to learn from them"
    )


def raise_odd_sums(
    bad: Any, actions: Names, total: Floats, squares: Floats, size: Floats, owner: str, wanted: str
) -> None:
    """A `ValueError` that shows the first of the bad sums, if there are any."""
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"the action {actions[i]!r} has rewards that a {owner} cannot have (a sum of {total[i]:g}, and of their "
            f"squares {squares[i]:g}, in {size[i]:g}); {wanted}"
        )


def column_beside(given: Any, what: str, rewards: Floats) -> Floats:
    """Numbers beside the rewards, all 1 where none are given."""
    if given is None:
        return np.ones(len(rewards))
    column = _checks.floats(given, what)
    if column.ndim == 0:
        column = np.broadcast_to(column, rewards.shape)
    if column.shape != rewards.shape:
        raise ValueError(f"{what} has shape {column.shape} and the rewards {rewards.shape}; give one for each")
    return np.ascontiguousarray(column)


def check_each(values: Floats, sound: Any, what: str, wanted: str) -> None:
    """Refuse values of which one is not sound."""
    if not sound.all():
        row = int(np.flatnonzero(~sound)[0])
        where = f" in row {row}" if len(values) > 1 else ""
        raise ValueError(f"the {what}{where} is {values[row]:g}; give {wanted}")
