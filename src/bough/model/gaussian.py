"""Gaussian rewards: the score plus noise of one variance."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough._clock import as_span, half_life_of
from bough.model.likelihood import LARGEST, Likelihood
from bough.model.model import Model
from bough.model.noise import OwnNoise, PerAction, check_fits
from bough.model.normal import Normal
from bough.model.prior import TreePrior


@dataclass(frozen=True)
class Gaussian(Normal):
    """A reward is its score plus normal noise.

    >>> Gaussian(0.25).noise_deviation
    0.5
    """

    noise_variance: float = 1.0
    is_conjugate: ClassVar[bool] = True
    takes_factors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_variance", _checked_noise(self.noise_variance))

    @cached_property
    def noise_deviation(self) -> float:
        return float(np.sqrt(self.noise_variance))

    def is_plain(self, reward: float) -> bool:
        return abs(reward) < self._limit  # False for NaN

    @cached_property
    def _limit(self) -> float:
        """What squares, in units of the noise, to a number."""
        return LARGEST * min(self.noise_deviation, 1.0)

    def draw_noise(self, rng: np.random.Generator, rounds: int) -> Floats:
        return np.asarray(rng.standard_normal(rounds) * np.sqrt(self.noise_variance))


@dataclass(frozen=True, eq=False, repr=False)
class GaussianModel(Model):
    """A Gaussian hierarchical prior on a tree, with Gaussian rewards.

    The root's parameter is drawn around `mean`, every other node's around its parent's, each with its own
    covariance; a reward is the action's parameter (or its product with the context) plus noise of variance
    `noise_variance`.

    A number for `mean` makes a K-armed bandit: parameters are numbers and no context is taken. A vector, also one of
    length 1, makes a contextual linear bandit with contexts of that length. `covariance` is a number or a matrix
    for every node, or `by_depth`, `by_height`, `by_node`; a number stands for that multiple of the identity, and
    zeros are fine.

    `noise`, instead of `noise_variance`, is `per_action(...)`: each action of a K-armed bandit has a noise variance of
    its own, which is learned with the rest.

    `features` has the names of the entries of a context, so that it may be a dict, a Series or a frame, in any order;
    or a `Features`, or another transformer, that makes them of a frame. One that is called "intercept" is always 1.

    With `drift`, a half-life, the actions of a K-armed bandit do not stand still. Each wanders around its parent and
    stays as far from it as its variance says, but after a half-life only half of where it was is left. It is a number
    in the units of the user's own clock, or a `datetime.timedelta`. Inner nodes stand still.

    With `factors`, a mapping from names to `Factor`, the actions of a K-armed bandit share more than the tree: the
    score of one is its parameter plus the effects of, say, its brand and of the store where the decision is made.

    >>> import bough
    >>> tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    >>> bough.GaussianModel(tree, mean=[0.0, 0.0], covariance=bough.by_depth([4.0, 2.0, 1.0]))
    GaussianModel(n_actions=3, height=2, dim=2, noise_variance=1.0)
    >>> bough.GaussianModel(tree, drift=90.0)
    GaussianModel(n_actions=3, height=2, dim=1, noise_variance=1.0, drift=90.0)
    >>> origin = bough.Factor({"tea/green": "Japan", "tea/black": "India", "coffee": "India"}, variance=0.3)
    >>> bough.GaussianModel(tree, factors={"origin": origin})
    GaussianModel(n_actions=3, height=2, dim=1, noise_variance=1.0, factors=['origin'])
    """

    noise_variance: float = 1.0
    drift: float | timedelta | None = None
    noise: PerAction | None = None
    kind: ClassVar[type[Likelihood]] = Gaussian

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise is not None:
            check_fits(self.noise, self.noise_variance, self.is_scalar, self.drift, self.factors)
            object.__setattr__(self, "kind", OwnNoise)
        # Where each action has its own, there is no such number.
        object.__setattr__(self, "noise_variance", getattr(self.likelihood, "noise_variance", float("nan")))
        if self.drift is not None:
            object.__setattr__(self, "drift", as_span(self.drift, "drift"))
            if not self.is_scalar:
                raise ValueError(
                    f"drift is {self.drift!r} and mean is a vector; only the actions of a K-armed model drift: "
                    "leave drift out, or give a number for the mean"
                )
        if self.drift is not None and self.factors:
            raise ValueError(
                f"drift is {self.drift!r} and there are factors; what drifts is forgotten action by action, and "
                "effects are shared by many: leave one of them out"
            )

    def __repr__(self) -> str:
        drift = "" if self.drift is None else f", drift={self.drift!r}"
        noise = f"noise_variance={self.noise_variance}" if self.noise is None else f"noise={self.noise}"
        factors = f", factors={list(self.factors)}" if self.factors else ""
        return f"{super().__repr__()[:-1]}, {noise}{drift}{factors})"

    @property
    def drift_half_life(self) -> float | None:
        """The half-life of `drift` as a number, in seconds where it is a `timedelta`; None where nothing drifts."""
        return None if self.drift is None else half_life_of(self.drift)

    def is_same_prior(self, other: TreePrior) -> bool:
        """Whether the other has the same tree, the same mean, covariance at every node, and drift."""
        return super().is_same_prior(other) and self.drift == getattr(other, "drift", None)

    @cached_property
    def likelihood(self) -> Gaussian | OwnNoise:
        """How a reward comes about."""
        return Gaussian(self.noise_variance) if self.noise is None else OwnNoise.of(self.noise)

    @classmethod
    def _kind_in_file(cls, header: Mapping[str, Any]) -> type[Likelihood]:
        """What kind of rewards a file's header speaks of."""
        return OwnNoise if any(name in header for name in OwnNoise.parameter_names()) else Gaussian


def _checked_noise(noise_variance: Any) -> float:
    try:
        value = _checks.number(noise_variance, "noise_variance")
    except ValueError:
        value = float("nan")
    if not 1.0 / LARGEST < value < LARGEST:
        is_nan = isinstance(noise_variance, float) and math.isnan(noise_variance)
        unknown = " (with noise per action a model has no such number)" if is_nan else ""
        raise ValueError(
            f"noise_variance is {reprlib.repr(noise_variance)}{unknown}; give a positive, finite number, "
            f"between {1 / LARGEST:g} and {LARGEST:g}"
        )
    return value
