"""Refit: when a policy that learns its prior as it goes does so, and from which model."""

from __future__ import annotations

import reprlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bough._arrays import Integers
from bough._storage import Contents
from bough.data.statistics import Statistics
from bough.learning.fit import Learned
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses
from bough.learning.options import FitOptions, with_factors
from bough.model.covariance import ClassCovariances, checked_classes
from bough.model.factors import Factor
from bough.model.files import own_parameters
from bough.model.model import Model
from bough.posterior import Posterior

_FIRST = 20  # observations at the first refit; each next one is at twice as many
_MOST_TRIES = 3
_WIDTH = 2.0  # of the weak prior on the log-variances, as fit_prior has it


class Refit:
    """The model that a policy was given, refitted to its posterior's evidence at 20, 40, 80, ... observations.

    What is learned is the size of each covariance that the given model has, and the noise. In a K-armed model the mean
    is learned as well and the root's variance stays as given; with contexts the mean stays as given, covariances
    keep their shape, and the root's size is learned. Covariances of zero stay zero. Where every node has a
    covariance of its own, those of one depth grow and shrink together.
    """

    def __init__(self, posterior: Posterior) -> None:
        model = posterior.model
        if not model.kind.sums_suffice and not model.is_scalar:
            raise ValueError(
                f"refit keeps sums, which say too little of a {type(model).__name__} with contexts; learn the prior "
                "from a log with fit_prior instead"
            )
        if model.drift_half_life is not None:
            raise ValueError(
                "refit learns from sums, which do not say when rewards came, and the model has drift; learn both from "
                "a log with fit_drift instead"
            )
        if posterior.n_observations:
            posterior.statistics  # noqa: B018, for its error where a file has lost them
        self._given = model
        self._next = _FIRST
        self._count = 0.0
        self.lock = threading.RLock()
        self._catch_up(posterior)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())

    def _catch_up(self, posterior: Posterior) -> None:
        """Count anew, and find the next number of observations to refit at."""
        self._count = posterior.n_observations
        while self._next <= self._count:
            self._next *= 2

    def after(self, n: float, posterior: Posterior) -> None:
        """Refit the posterior if it is time to, after n more observations (inf: after who knows how many)."""
        self._count += n
        if self._count < self._next:
            return
        due = posterior.n_observations >= self._next
        self._catch_up(posterior)
        if due:
            self._refit(posterior)

    def _refit(self, posterior: Posterior) -> None:
        """Have the posterior learn its model's sizes, and go on with those."""
        for _ in range(_MOST_TRIES):  # decisions go on meanwhile, and the catalogue may change
            self._follow(posterior.model)
            try:
                if posterior._take_model(refitted(self._given, posterior.statistics)):
                    return
            except (
                ValueError,
                KeyError,
                MemoryError,
            ):  # nothing to learn a variance from yet: what was assumed so far goes on
                return

    def begin_at(self, model: Model, posterior: Posterior) -> None:
        """Have another model be the one that is refitted, at once if there is enough to learn from."""
        with self.lock:
            self._given = model
            if posterior.n_observations >= _FIRST:
                self._refit(posterior)

    def _follow(self, model: Model) -> None:
        """Have the given model on the tree that the posterior has by now; classes that are new come as they are."""
        given = self._given
        if given.tree is not model.tree:
            table = np.concatenate([given.classes.table, model.classes.table[len(given.classes.table) :]])
            classes = ClassCovariances(model.classes.kind, model.classes.of_node, table[: len(model.classes.table)])
            self._given = given = replace(given, tree=model.tree, covariance=classes)
        if model.effects is not None:  # labels and levels as they are now, with the variances that were given
            factors = {name: one.with_variance(given.factors[name].variance) for name, one in model.factors.items()}
            self._given = replace(given, factors=factors)

    def contents(self, posterior: Posterior) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file keeps: the model that was given, but for what refits leave as it is."""
        self._follow(posterior.model)
        given = self._given
        arrays = {"given_mean": np.asarray(given.mean), "given_covariances": given.classes.table}
        if given.factors:
            arrays["given_factors"] = np.array([factor.variance for factor in given.factors.values()])
        return {"given": given.likelihood.parameters()}, arrays

    def restore(self, contents: Contents) -> None:
        """Take over what `contents` gave."""
        model = self._given
        mean = contents.array("given_mean", np.float64, np.shape(model.mean))
        table = contents.array("given_covariances", np.float64, model.classes.table.shape)
        given = contents.header["given"]
        if not isinstance(given, dict) or given.keys() != set(model.kind.parameter_names()):
            raise ValueError(f"given is {reprlib.repr(given)}; expected the parameters of the rewards")
        own = own_parameters(given, type(model))
        classes = checked_classes(model.classes.kind, model.classes.of_node, table, mean.size, model.is_scalar)
        own |= {"factors": _restored_factors(model, contents)}
        self._given = replace(model, mean=float(mean) if model.is_scalar else mean, covariance=classes, **own)


def _restored_factors(model: Model, contents: Contents) -> Mapping[str, Factor]:
    """The factors of a model with the variances that were given; older files do not have these."""
    factors: dict[str, Factor] = model.factors
    if "given_factors" not in contents:
        return factors
    variances = contents.array("given_factors", np.float64, (len(factors),)).tolist()
    return {
        name: factor.with_variance(variance)
        for (name, factor), variance in zip(factors.items(), variances, strict=True)
    }


def refitted(model: Model, statistics: Statistics) -> Model:
    """The model with the sizes of its covariances, its noise and, if it is K-armed, its mean learned."""
    classes = NodeClasses.of_model(model.classes)
    group = _groups(model)
    mean = None if model.is_scalar else np.asarray(model.mean)
    noise = None if model.kind.noise_is_added else 1.0
    options = FitOptions(
        noise,
        mean,
        None,
        _WIDTH,
        "scaled",
        type(model),
        base=model.classes.table,
        features=model.features,
        per_action=model.kind.has_own_noise,
    )
    if model.effects is not None:
        variances = np.array([factor.variance for factor in model.factors.values()])
        base = np.concatenate([model.classes.table, variances])
        options = options._replace(effects=model.effects, base=base)
        group = with_factors(group, options, variances)
    forest = Forest.from_logs([model.tree], [statistics], classes, effects=options.effects)
    learned = Learned.of(forest, (*classes.labels, *options.factor_names), group, options)
    of_tree, of_factors = np.split(learned.covariance, [len(classes.labels)])
    covariances = classes.covariances([model.tree], of_tree)[0]
    return options.built(model.tree, learned.objective.mean, covariances, learned.noise, of_factors)


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
