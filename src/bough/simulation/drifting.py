"""Drifting: the problem of a model whose truth moves while policies play."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough.model.model import Model
from bough.simulation.worlds import World

Movers = Literal["actions", "nodes"]


@dataclass(frozen=True, eq=False)
class Drifting:
    """Worlds whose nodes move away from where they began; made by `bough.problems.drifting`."""

    model: Model
    half_life: float
    movers: Movers = "actions"
    redrawn: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model) or not self.model.is_scalar:
            raise ValueError(f"model is {self.model!r:.80}; worlds drift in models without contexts")
        self.model._refuse_factors("worlds do not drift in a model")
        half_life = _checks.number(self.half_life, "half_life")
        if not 0.0 < half_life < math.inf:
            raise ValueError(f"half_life is {self.half_life!r}; give a positive number of rounds")
        object.__setattr__(self, "half_life", half_life)
        _checks.one_of("movers", self.movers, ("actions", "nodes"))
        if not isinstance(self.redrawn, (bool, np.bool_)):
            raise ValueError(f"redrawn is {self.redrawn!r}; give True or False")

    def world(self, rounds: int, rng: np.random.Generator) -> World:
        """Where every action stands in every round, and the noise."""
        truth = self.model.mean_reward(self._scores(rounds, rng))
        return World(self.model, truth, self.model.likelihood.draw_noise(rng, rounds))

    def _scores(self, rounds: int, rng: np.random.Generator) -> Floats:
        """(rounds, K) the actions' parameters."""
        tree, model = self.model.tree, self.model
        spread = model.class_factors[model.classes.of_node]
        deviations = np.tile(spread * rng.standard_normal(tree.n_nodes), (rounds, 1))  # of each node from its parent
        movers = tree.leaves if self.movers == "actions" else np.arange(1, tree.n_nodes)
        deviations[:, movers] = self._paths(deviations[0, movers], spread[movers], rounds, rng)
        deviations[:, 0] += model.mean
        for start, end in pairwise(tree.level_start.tolist()[1:]):
            deviations[:, start:end] += deviations[:, tree.parent[start:end]]
        return np.ascontiguousarray(deviations[:, tree.leaves])

    def _paths(self, begin: Floats, spread: Floats, rounds: int, rng: np.random.Generator) -> Floats:
        """(rounds, n) stationary paths with this spread and the autocorrelation 2^(-rounds apart / half-life)."""
        kept = 2.0 ** (-1.0 / self.half_life)
        path = spread * rng.standard_normal((rounds, len(begin)))
        path[0] = begin
        if self.redrawn:
            stays = rng.random(path.shape) < kept
            for before, now, still in zip(path, path[1:], stays[1:], strict=False):
                np.copyto(now, before, where=still)
        else:
            path[1:] *= math.sqrt(-math.expm1(-2.0 * math.log(2.0) / self.half_life))  # 1 - kept^2, to all digits
            for before, now in pairwise(path):
                now += kept * before
        return path
