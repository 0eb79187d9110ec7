"""Noise that differs from action to action: `per_action`, and the likelihood of such rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough.model.likelihood import LARGEST
from bough.model.normal import Normal

_WIDEST = 10.0  # spread: e to the power of that is a factor of 22,000
_NARROWEST = 1e-8  # spread: with less, noise variances differ by no more than rounding
_LEAST, _LARGEST = 1e-100, 1e200  # noise variances: what is made of them, and of their squares, are numbers still


class PerAction(NamedTuple):
    """How noise variances are spread over the actions, before any reward; made by `per_action`."""

    median: float
    """Of what an action's noise variance has beyond the floor."""
    spread: float
    """The standard deviation of its logarithm."""
    floor: float
    """What every action's noise variance has at least."""

    def __repr__(self) -> str:
        return f"per_action(median={self.median:g}, spread={self.spread:g}, floor={self.floor:g})"

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """(n,) noise variances, drawn independently."""
        return np.asarray(self.floor + self.median * np.exp(self.spread * rng.standard_normal(n)))


def per_action(median: float, spread: float, floor: float) -> PerAction:
    """A noise variance for each action, which nobody knows, for the `noise` of a `GaussianModel`.

    The variance of an action's rewards is ``floor + s``, where the logarithm of s is normal: its median is `median`,
    and the standard deviation of its logarithm `spread`. With a spread of 1, two thirds of all actions have an s from
    0.37 to 2.7 times the median; with a spread of 0 all have the same noise. The floor keeps an action that was seen to
    earn the same a few times from being taken for one without noise: a thousandth of the median is a usual choice.
    `fit_prior(..., noise="per action")` learns all three from a log.

    >>> import bough
    >>> tree = bough.Tree.from_nested(["steady", "wild"])
    >>> model = bough.GaussianModel(tree, noise=bough.per_action(median=0.5, spread=1.0, floor=0.001))
    >>> model
    GaussianModel(n_actions=2, height=1, dim=1, noise=per_action(median=0.5, spread=1, floor=0.001))
    """
    median, floor = _checked("median", median, _LEAST, _LARGEST), _checked("floor", floor, _LEAST, _LARGEST)
    spread = _checked("spread", spread, 0.0, _WIDEST)
    return PerAction(median, spread if spread > _NARROWEST else 0.0, floor)


def _checked(what: str, value: Any, least: float, most: float) -> float:
    try:
        number = float("nan") if isinstance(value, (bool, np.bool_)) else _checks.number(value, what)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise ValueError(f"{what} is {value!r}; give a number from {least:g} to {most:g}")
    return number


def check_fits(noise: Any, noise_variance: float, is_scalar: bool, drift: Any, factors: Any) -> None:
    """Refuse noise per action where a model cannot have it, with the reason: the one place for such checks."""
    if not isinstance(noise, PerAction):
        raise ValueError(f"noise is {noise!r}; give bough.per_action(median, spread, floor), or noise_variance instead")
    per_action(*noise)
    if not (noise_variance == 1.0 or math.isnan(noise_variance)):  # as it is where it was not given
        raise ValueError(
            f"noise_variance is {noise_variance!r} and noise is {noise}; one is for all actions and the other for each "
            "of them: give one of the two"
        )
    if not is_scalar:
        raise ValueError(
            f"noise is {noise} and mean is a vector; a noise variance per action needs its rewards around one mean, "
            "and in contexts they have many: give a number for the mean, or noise_variance"
        )
    if drift is not None:
        raise ValueError(
            f"noise is {noise} and drift is {drift!r}; how far an action drifts and how noisy it is cannot be told "
            "apart from sums: leave drift out, or give noise_variance"
        )
    if factors:
        raise ValueError(
            f"noise is {noise} and there are factors ({', '.join(factors)}); what is known of shared effects is exact "
            "for one noise variance alone: give noise_variance, or leave the factors out"
        )


@dataclass(frozen=True)
class OwnNoise(Normal):
    """A reward is its score plus normal noise, of a variance that each action has for itself.

    >>> OwnNoise(0.24, 1.0, 0.01).noise_deviation
    0.5
    """

    noise_median: float
    noise_spread: float
    noise_floor: float
    has_own_noise: ClassVar[bool] = True
    is_log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in zip(self.parameter_names(), per_action(*self.parameters().values()), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, noise: PerAction) -> Self:
        """The likelihood of such rewards."""
        return cls(*noise)

    @property
    def per_action(self) -> PerAction:
        """How noise variances are spread."""
        return PerAction(self.noise_median, self.noise_spread, self.noise_floor)

    def model_arguments(self) -> dict[str, Any]:
        return {"noise": self.per_action}

    @cached_property
    def noise_deviation(self) -> float:
        """That of an action of median noise."""
        return math.sqrt(self.noise_floor + self.noise_median)

    def is_plain(self, reward: float) -> bool:
        return abs(reward) < self._limit  # False for NaN

    @cached_property
    def _limit(self) -> float:
        """What squares, in units of the least noise, to a number."""
        return LARGEST * min(math.sqrt(self.noise_floor), 1.0)

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        """Standard normals: a world multiplies them by the deviation of the action that was taken."""
        return rng.standard_normal(rounds)

    def draw_deviations(self, rng: np.random.Generator, n: int) -> Floats:
        return np.asarray(np.sqrt(self.per_action.draw(rng, n)))
