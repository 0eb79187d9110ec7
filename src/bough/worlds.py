"""World: what every policy of one run meets. A problem makes one for each run; a model is the simplest problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bough.arrays import Flags, Floats, Integers
from bough.model import GaussianModel

Contexts = Callable[[np.random.Generator, int], Floats] | Floats | None


@dataclass(frozen=True, eq=False)
class Residuals:
    """Real deviations of rewards from their action's mean, to be drawn with replacement.

    In round t an action with n of them gets number ``int(pick[t] * n)``, so that all policies of a run draw alike.
    """

    values: Floats
    """(n,) one action's after another's."""
    start: Integers
    """(K + 1,) where each action's begin; none may be without."""
    pick: Floats
    """(rounds,) uniform on [0, 1)."""


@dataclass(frozen=True, eq=False)
class World:
    """The truth of one run: mean rewards, contexts and noise, with the model that policies are given to start from.

    >>> import bough, numpy
    >>> class Coins:
    ...     '''Two coins that the model knows nothing of.'''
    ...     def world(self, rounds, rng):
    ...         model = bough.GaussianModel(bough.Tree.from_nested(["fair", "bent"]))
    ...         return bough.World(model, truth=numpy.array([0.5, 0.7]), noise=rng.choice([-0.5, 0.5], rounds))
    >>> bough.simulate(Coins(), {"TS": bough.TS}, rounds=10, runs=2, seed=0).regret["TS"].shape
    (2, 10)
    """

    model: GaussianModel
    truth: Floats
    """(K,) each action's mean reward, or (K, d) its parameter, in `tree.actions` order."""
    noise: Floats
    """(rounds,) what is added to the mean reward in each round."""
    contexts: Floats | None = None
    """(rounds, d), with contexts."""
    residuals: Residuals | None = None
    """Each action's own noise, instead of `noise`."""
    eligible: Flags | None = None
    """(K,) the actions among which the best is sought that regret is measured against; all where None."""

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.noise)

    def mean_rewards(self, t: int) -> Floats:
        """(K,) the mean reward of each action in round t."""
        return self.truth if self.contexts is None else np.asarray(self.truth @ self.contexts[t])

    def best(self, rewards: Floats) -> float:
        """The highest of mean rewards that counts."""
        return float(rewards.max() if self.eligible is None else rewards[self.eligible].max())

    def average_best(self) -> float:
        """The highest mean reward that counts, averaged over the rounds."""
        if self.contexts is None:
            return self.best(self.truth)
        truth = self.truth if self.eligible is None else self.truth[self.eligible]
        pieces = [truth @ self.contexts[start : start + 256].T for start in range(0, self.rounds, 256)]
        return float(np.concatenate([piece.max(axis=0) for piece in pieces]).mean())

    def deviation(self, t: int, action: int) -> float:
        """How far the reward of an action, given by its place, is from its mean in round t."""
        if self.residuals is None:
            return float(self.noise[t])
        start, end = self.residuals.start[action : action + 2].tolist()
        return float(self.residuals.values[start + int(self.residuals.pick[t] * (end - start))])


@runtime_checkable
class Problem(Protocol):
    """Anything that makes a `World` for each run; what `simulate` takes beside a model."""

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """A world of that many rounds."""
        ...


@dataclass(frozen=True, eq=False)
class Drawn:
    """The problem of a model: every run draws its own true parameters from the prior."""

    model: GaussianModel
    contexts: Contexts = None

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """True parameters, noise and contexts, drawn in this order."""
        truth = np.ascontiguousarray(self.model.tree.at_leaves(self.model.draw(rng)))
        noise = rng.standard_normal(rounds) * np.sqrt(self.model.noise_variance)
        contexts: Floats | None = None
        if callable(self.contexts):
            contexts = context_rows(self.contexts(rng, rounds), (rounds, self.model.dim)).copy()
        elif self.contexts is not None:
            contexts = self.contexts[rng.integers(len(self.contexts), size=rounds)]
        if contexts is not None:
            contexts.setflags(write=False)  # what one policy does to them, the next would see
        return World(self.model, truth, noise, contexts)


def context_rows(contexts: Any, shape: tuple[int, int]) -> Floats:
    given = np.ascontiguousarray(contexts, dtype=np.float64)
    if given.shape != shape or not len(given):
        raise ValueError(f"the contexts have shape {given.shape}; give rows of length {shape[1]}")
    if not np.isfinite(given).all():
        raise ValueError("the contexts are not all finite; drop the rows with NaN or infinite values")
    return given
