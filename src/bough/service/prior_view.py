"""What the prior of an experiment says, level by level."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import msgspec
import numpy as np

from bough._arrays import Floats
from bough.inference.crossed import CrossedEngine
from bough.learning.options import NOISE_NAMES
from bough.model.effects import Effects
from bough.model.model import Model
from bough.policies.posterior_policy import PosteriorPolicy
from bough.service.node_numbers import moment_of
from bough.service.schema import Fitted, PriorLevel, PriorNoise, PriorNumber, PriorView
from bough.service.traffic import Traffic
from bough.tree.levels import level_of


def prior(agent: PosteriorPolicy, traffic: Traffic) -> PriorView:
    """The variances of the prior by level, their shares, and how many nodes have observations.

    Where nodes of one level differ, the variance is their average. Intervals are those of the last refit.

    >>> import bough
    >>> model = bough.GaussianModel(bough.Tree.from_paths(["tea/green", "tea/black", "coffee"]), 0.5, 1.0, 0.25)
    >>> agent = bough.HierTS(model, seed=0)
    >>> agent.update("tea/green", 2.0)
    >>> found = prior(agent, Traffic())
    >>> [(level.level, level.variance, round(level.share, 2), level.nodes, level.touched) for level in found.levels]
    [(0, 1.0, 0.33, 1, 1), (1, 1.0, 0.33, 2, 1), (2, 1.0, 0.33, 2, 1)]
    >>> found.mean, found.noise_variance, found.untouched
    (0.5, 0.25, 2)
    """
    fitted = traffic.history.fitted
    with moment_of(agent, traffic) as moment:
        model, tree = moment.model, moment.model.tree
        at = moment.slots.node[moment.has_observations]
        inside, added = at[at < tree.n_nodes], at[at >= tree.n_nodes].tolist()
        touched = np.bincount(tree.depth[inside], minlength=tree.height + 1)
        for node in added:
            touched[moment.catalogue.depth(node)] += 1
        steps = moment.engine.class_deviations(moment.context) ** 2
        n_actions, retired = moment.catalogue.n_actions, len(moment.retired)
        tried = np.count_nonzero(moment.catalogue._are_leaves(inside)) + sum(map(moment.catalogue.is_action, added))
        effect_counts = cast(CrossedEngine, moment.engine).effect_counts() if model.effects is not None else np.empty(0)
        centre = float(model.mean if moment.context is None else moment.context @ model.mean)
    variance = _by_level(model, steps)
    factors = [] if model.effects is None else _by_factor(model.effects, effect_counts, fitted)
    total = float(variance.sum()) + sum(share for _, share in factors)
    mean = float(np.asarray(model.likelihood.expected_reward(np.array([centre]), np.array([total])))[0])
    levels = []
    for depth, (one, n) in enumerate(zip(variance.tolist(), np.diff(tree.level_start).tolist(), strict=True)):
        interval = _interval(fitted, _label(model, depth))
        share = one / total if total > 0.0 else 0.0
        levels.append(PriorLevel(level_of(tree, depth), one, *interval, share, int(n), int(touched[depth])))
    for one_factor, part in factors:
        levels.append(msgspec.structs.replace(one_factor, share=part / total if total > 0.0 else 0.0))
    noise = None if model.kind.has_own_noise else getattr(model, "noise_variance", None)
    return PriorView(
        model.kind.name, mean, None if noise is None else float(np.mean(noise)), _noise(model, fitted), levels,
        n_actions, n_actions - int(tried), retired, fitted,
    )  # fmt: skip


def _by_factor(effects: Effects, counts: Floats, fitted: Fitted | None) -> list[tuple[PriorLevel, float]]:
    """A line for each crossed factor, and what it adds to the variance of an action's score, on average.

    A factor of the decision adds nothing: it is the same for all actions.
    """
    found = []
    for name, factor in effects.factors.items():
        first = effects.first_of(name)
        n, seen = len(factor.levels), int(np.count_nonzero(counts[first : first + len(factor.levels)]))
        level = PriorLevel(name, factor.variance, *_interval(fitted, name), 0.0, n, seen)
        found.append((level, factor.variance * len(factor._labels) / effects.tree.n_actions))
    return found


def _by_level(model: Model, steps: Floats) -> Floats:
    """The average variance of the nodes of each level, given that of each class."""
    tree, classes = model.tree, model.classes
    start = tree.level_start
    if classes.kind == "depth":
        return np.array([steps[classes.of_node[one]] for one in start[:-1].tolist()])
    of_node = steps[classes.of_node]
    return np.array([of_node[low:high].mean() for low, high in pairwise(start.tolist())])


def _noise(model: Model, fitted: Fitted | None) -> PriorNoise | None:
    """How noise variances differ from action to action, where they do."""
    if not model.kind.has_own_noise:
        return None
    law = model.likelihood.per_action
    return PriorNoise(
        *(PriorNumber(value, *_interval(fitted, name)) for name, value in zip(NOISE_NAMES, law, strict=True))
    )


def _label(model: Model, depth: int) -> str:
    """What a refit calls the variance of a level; it learns them by depth or, in a tree of one, by height."""
    return f"depth {depth}" if model.classes.kind == "depth" else f"height {model.tree.height - depth}"


def _interval(fitted: Fitted | None, name: str) -> tuple[float | None, float | None]:
    """The 95% interval of a number of the prior, where the last refit has learned it."""
    found = None if fitted is None else fitted.estimates.get(name)
    return (None, None) if found is None else (found[1], found[2])
