"""Refit: what a policy that learns its prior as it goes keeps, and when it learns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from bough import inputs
from bough.arrays import Floats, Integers
from bough.learning.asked import Wishes
from bough.learning.classes import NodeClasses
from bough.learning.fit import Learned
from bough.learning.forest import Forest
from bough.model import Model
from bough.posterior import Posterior
from bough.statistics import Statistics

_FIRST = 20  # observations at the first refit; each next one is at twice as many
_WIDTH = 2.0  # of the weak prior on the log-variances, as fit_prior has it


class Refit:
    """The log of a policy as statistics, and the model refitted to it at 20, 40, 80, ... observations.

    What is learned is the size of each covariance that the given model has, and the noise. In a K-armed model the mean
    is learned as well and the root's variance stays as given; with contexts the mean stays as given, covariances
    keep their shape, and the root's size is learned. Covariances of zero stay zero. Where every node has a
    covariance of its own, those of one depth grow and shrink together.
    """

    def __init__(self, model: Model, statistics: Statistics | None = None) -> None:
        if model.has_counts and not model.is_scalar:
            raise ValueError(
                f"refit keeps sums, which say too little of a {type(model).__name__} with contexts; learn the prior "
                "from a log with fit_prior instead"
            )
        self._model = model
        self._statistics = statistics
        self._rows: list[tuple[list[Any], Floats, Any, Floats]] = []  # since the statistics were summed
        self._count = 0.0 if statistics is None else observed(model, statistics)
        self._next = _FIRST
        self.lock = threading.RLock()
        self._skip_passed()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())

    def _skip_passed(self) -> None:
        while self._next <= self._count:
            self._next *= 2

    @property
    def statistics(self) -> Statistics | None:
        """All that was observed; None where nothing was."""
        with self.lock:
            if self._rows:
                names = [name for row in self._rows for name in row[0]]
                rewards = np.concatenate([row[1] for row in self._rows])
                contexts = None if self._model.is_scalar else np.concatenate([row[2] for row in self._rows])
                exposure = np.concatenate([row[3] for row in self._rows]) if self._model.has_counts else None
                self._add(Statistics.from_rows(names, rewards, contexts, exposure=exposure))
                self._rows = []
            return self._statistics

    def _add(self, statistics: Statistics) -> None:
        self._statistics = statistics if self._statistics is None else self._statistics + statistics

    def check(self, posterior: Posterior, n: float) -> None:
        """Refuse n more observations of a posterior that has others than the policy's own."""
        if self._count + n >= self._next and abs(posterior.n_observations - self._count) > 0.75:  # one is rounded
            raise ValueError(
                f"the posterior has {posterior.n_observations} observations and the policy {self._count:g}; with "
                "refit=True give them to the policy, by update or absorb, and not to its posterior"
            )

    def observe(self, action: Any, reward: Any, context: Any, exposure: Any = None) -> Posterior | None:
        """Remember what the posterior has taken already; the refitted posterior where it is time for one."""
        if inputs.is_one(reward):
            names, rewards, contexts = [action], [reward], None if context is None else [context]
        else:
            names, rewards, contexts = list(inputs.as_names(action)), reward, context
        kept = None if contexts is None else np.array(contexts, dtype=np.float64)
        seen = np.broadcast_to(np.asarray(1.0 if exposure is None else exposure, dtype=np.float64), len(names)).copy()
        self._rows.append((names, np.array(rewards, dtype=np.float64), kept, seen))
        self._count += float(np.sum(self._model.counted(np.ones(len(seen)), seen)))
        return self._refitted()

    def absorb(self, statistics: Statistics) -> Posterior | None:
        """The same for rows that come summed."""
        self._add(statistics)
        self._count += observed(self._model, statistics)
        return self._refitted()

    def _refitted(self) -> Posterior | None:
        if self._count < self._next:
            return None
        self._skip_passed()
        statistics = self.statistics
        assert statistics is not None
        try:
            model = refitted(self._model, statistics)
        except ValueError:  # nothing to learn a variance from yet: what was believed so far goes on
            return None
        posterior = Posterior(model)
        posterior.absorb(statistics)
        return posterior


def observed(model: Model, statistics: Statistics) -> float:
    """How many observations a posterior says that these are: trials where rewards are clicks, rows otherwise."""
    return float(model.counted(statistics.count, statistics.exposure_or_count).sum())


def refitted(model: Model, statistics: Statistics) -> Model:
    """The model with the sizes of its covariances, its noise and, if it is K-armed, its mean learned."""
    classes = NodeClasses.of_model(model.classes)
    group = _groups(model)
    mean = None if model.is_scalar else np.asarray(model.mean)
    noise = 1.0 if model.has_counts else None
    wishes = Wishes(noise, mean, None, _WIDTH, "scaled", type(model), base=model.classes.table)
    forest = Forest.planted([model.tree], [statistics], classes)
    learned = Learned.of(forest, classes.labels, group, wishes)
    covariances = classes.covariances([model.tree], learned.covariance)[0]
    return wishes.built(model.tree, learned.objective.mean, covariances, learned.noise)


def _groups(model: Model) -> Integers:
    """(n_classes,) the classes whose sizes are learned as one; -1 for those that stay."""
    table, of_node = model.classes.table, model.classes.of_node
    group = np.arange(len(table))
    if model.classes.kind == "node":
        group = np.full(len(table), -1)
        group[of_node[::-1]] = model.tree.depth[::-1]  # a class that several depths have goes with the highest
    stays = (table == 0.0) if model.is_scalar else (table == 0.0).all(axis=(1, 2))
    if model.is_scalar:
        stays[of_node[0]] |= not (of_node[1:] == of_node[0]).any()
    group[stays] = -1
    _, numbered = np.unique(group, return_inverse=True)
    return np.asarray(numbered - (group.min() < 0))
