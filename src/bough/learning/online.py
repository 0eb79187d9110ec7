"""Refit: what a policy that learns its prior as it goes keeps, and when it learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough import inputs
from bough.learning.classes import NodeClasses
from bough.learning.fit import Wishes, fit
from bough.model import GaussianModel
from bough.posterior import Posterior
from bough.statistics import Statistics

_FIRST = 20  # observations at the first refit; each next one is at twice as many


class Refit:
    """The log of a policy as statistics, and the model refitted to it at 20, 40, 80, ... observations.

    What is learned is the size of each covariance that the given model has, and the noise. In a K-armed model the mean
    is learned as well and the root's variance stays as given; with contexts the mean stays as given, covariances
    keep their shape, and the root's size is learned. Covariances of zero stay zero.
    """

    def __init__(self, model: GaussianModel, statistics: Statistics | None = None) -> None:
        self._model = model
        self._statistics = statistics
        self._rows: list[tuple[list[Any], np.ndarray[Any, Any], Any]] = []  # since the statistics were summed
        self._count = 0 if statistics is None else round(statistics.n_rows)
        self._next = _FIRST
        while self._next <= self._count:
            self._next *= 2

    @property
    def statistics(self) -> Statistics | None:
        """All that was observed; None where nothing was."""
        if self._rows:
            names = [name for batch, _, _ in self._rows for name in batch]
            rewards = np.concatenate([batch for _, batch, _ in self._rows])
            contexts = None if self._model.is_scalar else np.concatenate([batch for _, _, batch in self._rows])
            recent = Statistics.from_rows(names, rewards, contexts)
            self._statistics = recent if self._statistics is None else self._statistics + recent
            self._rows = []
        return self._statistics

    def observe(self, action: Any, reward: Any, context: Any) -> Posterior | None:
        """Remember what the posterior has taken already; the refitted posterior where it is time for one."""
        if inputs.is_one(reward):
            names, rewards, contexts = [action], [reward], None if context is None else [context]
        else:
            names, rewards, contexts = list(inputs.as_names(action)), reward, context
        kept = None if contexts is None else np.array(contexts, dtype=np.float64)
        self._rows.append((names, np.array(rewards, dtype=np.float64), kept))
        self._count += len(names)
        if self._count < self._next:
            return None
        while self._next <= self._count:
            self._next *= 2
        return self._refitted()

    def _refitted(self) -> Posterior | None:
        statistics, model = self.statistics, self._model
        assert statistics is not None
        if np.ptp(statistics.sum_y / statistics.count) == 0.0 and _is_constant(statistics):
            return None  # nothing to learn a variance from yet
        posterior = Posterior(refitted(model, statistics))
        posterior.absorb(statistics)
        return posterior


def _is_constant(statistics: Statistics) -> bool:
    level = statistics.sum_y[0] / statistics.count[0]
    return bool((statistics.sum_yy == statistics.count * level * level).all())


def refitted(model: GaussianModel, statistics: Statistics) -> GaussianModel:
    """The model with the sizes of its covariances, its noise and, if it is K-armed, its mean learned."""
    table = model.classes.table
    fixed = (table == 0.0) if model.is_scalar else np.linalg.eigvalsh(table)[:, 0] <= 0.0
    wishes = Wishes(
        noise=None,
        mean=None if model.is_scalar else np.asarray(model.mean),
        root=table[model.classes.of_node[0]] if model.is_scalar else "learn",
        width=2.0,
        structure="scaled",
        base=table,
        fixed=fixed,
    )
    return fit([model.tree], [statistics], NodeClasses.of_model(model.classes), wishes).model
