"""One run of one policy: its regret in each round, compiled from the first to the last where that is quickest."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from inspect import isclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from bough.arrays import Floats
from bough.choosing import Chooser, Policy
from bough.inference import scalar_kernels, vector_kernels
from bough.inference.scalar_sites import FAMILIES
from bough.model.gaussian import GaussianModel
from bough.model.model import Model
from bough.policies import SMALL, BayesUCB
from bough.policy_table import Rewards, find_built_in
from bough.tree import Tree
from bough.worlds import World

_NO_VALUES = np.empty(0)
_NO_PLACES = np.empty(0, dtype=np.int64)


class Played(NamedTuple):
    """What one run of one policy came to."""

    gaps: Floats
    """(rounds,) the regret of each round."""
    tried: int
    """How many different actions were taken."""
    seconds: float
    """How long it took, by the clock."""
    best: float
    """The mean reward that regret is measured against, averaged over the rounds."""
    n_actions: int


Player = Callable[[World, np.random.Generator], Played]


def is_compiled(model: Model, policy: Any) -> bool:
    """Whether the whole run of this policy is one kernel.

    Sampling a large tree is left to the policy itself, which looks for the best action without drawing them all.
    """
    built_in = find_built_in(policy)
    if built_in is None or _rewards(model) not in built_in.compiled_for:
        return False
    return not built_in.samples or model.tree.n_nodes <= SMALL


def _rewards(model: Model) -> Rewards:
    if model.is_scalar:
        return "counts" if model.has_counts else "numbers"
    return "counts in contexts" if model.has_counts else "numbers in contexts"


def player(model: Model, policy: Any) -> Player:
    """A function that plays one run in a world of this model."""
    built_in = find_built_in(policy)
    if built_in is None or not is_compiled(model, policy):
        return lambda world, rng: _timed(world, _play_in_python, _made(policy, world.model, rng))
    believed = policy(model).posterior.model
    sampled = built_in.samples
    if model.is_scalar:
        return lambda world, rng: _timed(world, _play_scalar, believed, sampled, policy is BayesUCB, rng)
    return lambda world, rng: _timed(world, _play_vector, believed, sampled, rng)


def _timed(world: World, play: Callable[..., tuple[Floats, int]], *arguments: Any) -> Played:
    start = time.perf_counter()
    gaps, tried = play(world, *arguments)
    seconds = time.perf_counter() - start
    return Played(gaps, tried, seconds, world.average_best(), len(world.truth))


def _made(policy: Any, model: Model, rng: np.random.Generator) -> Policy:
    fresh = isinstance(policy, Policy) and not isclass(policy)
    made: Any = copy.deepcopy(policy) if fresh else policy(model, seed=rng)
    if isinstance(made, Chooser):
        made._rng = rng  # a copy would otherwise draw the same numbers in every run
    if not isinstance(made, Policy):
        raise ValueError(f"{policy!r} made a {type(made).__name__}; a policy has decide and update")
    return made


def _play_in_python(world: World, agent: Any) -> tuple[Floats, int]:
    """Bough's own go by the actions' places, which spares them looking up names; others by names."""
    tree = world.model.tree
    own = find_built_in(type(agent)) is not None and _same_actions(agent._model.tree, tree)
    gaps = np.empty(world.rounds)
    tried = np.zeros(tree.n_actions, dtype=np.bool_)
    best = world.best(world.truth) if world.contexts is None else 0.0
    for t in range(len(gaps)):
        context = None if world.contexts is None else world.contexts[t]
        rewards = world.mean_rewards(t)
        if own:
            place = agent._choose_place(context)
        else:
            place = int(np.searchsorted(tree.leaves, tree.action_node(agent.decide(context))))
        gaps[t] = (best if context is None else world.best(rewards)) - rewards[place]
        tried[place] = True
        reward = world.reward(t, place, float(rewards[place]))
        if own:
            agent._learn(place, reward, context)
        else:
            agent.update(tree.actions[place], reward, context)
    return gaps, int(tried.sum())


def _same_actions(tree: Tree, other: Tree) -> bool:
    """Whether two trees have the same actions in the same order, so that places mean the same in both."""
    return tree is other or np.array_equal(np.asarray(tree.actions), np.asarray(other.actions))


def _residuals(world: World) -> tuple[Any, Any, Floats]:
    """Where a kernel takes an action's noise from; empty where the world's own noise is for all."""
    if world.residuals is None:
        return _NO_VALUES, _NO_PLACES, _NO_VALUES
    return world.residuals.values, world.residuals.start, world.residuals.pick


def _play_scalar(
    world: World, believed: Model, sampled: bool, optimist: bool, rng: np.random.Generator
) -> tuple[Floats, int]:
    tree, rounds = believed.tree, world.rounds
    quantiles = np.zeros(rounds)
    if optimist:
        quantiles[:] = [NormalDist().inv_cdf(1.0 - 1.0 / max(t, 2)) for t in range(1, rounds + 1)]
    even = believed.classes.kind == "depth" and bool(tree.leaves[0] == tree.level_start[-2])
    gap = np.empty(rounds)
    state = np.zeros((tree.n_nodes, 9 if believed.has_counts else 6))
    precision = 1.0 / believed.noise_variance if isinstance(believed, GaussianModel) else 0.0
    scalar_kernels.play(
        FAMILIES[believed.rewards], sampled, even, quantiles, rng, world.truth, world.best(world.truth), world.noise,
        *_residuals(world), tree.leaves, tree.parent, believed.classes.of_node, believed.classes.table,
        believed.class_factors, believed.mean, precision, state, np.empty((tree.n_nodes, 3)), np.empty(tree.n_nodes),
        np.empty(tree.n_nodes), np.empty(tree.n_actions), gap,
    )  # fmt: skip
    seen = scalar_kernels.EXPOSURE if believed.has_counts else scalar_kernels.M
    return gap, int((state[tree.leaves, seen] > 0.0).sum())


def _play_vector(world: World, believed: GaussianModel, sampled: bool, rng: np.random.Generator) -> tuple[Floats, int]:
    assert world.contexts is not None
    tree, d, rounds = believed.tree, believed.dim, world.rounds
    gap = np.empty(rounds)
    triangle = np.zeros((tree.n_nodes, d, d))
    triangle[:] = np.eye(d)
    touched = np.zeros(tree.n_nodes, dtype=np.bool_)
    eligible = np.ones(tree.n_actions, dtype=np.bool_) if world.eligible is None else world.eligible
    vector_kernels.play(
        sampled, rng, world.truth, eligible, world.contexts, world.noise, *_residuals(world), tree.leaves, tree.parent,
        believed.classes.of_node, np.ascontiguousarray(believed.class_factors.transpose(0, 2, 1)),
        np.asarray(believed.mean), np.sqrt(believed.noise_variance), triangle, np.zeros((tree.n_nodes, d, d)),
        np.zeros((tree.n_nodes, d)), np.empty((tree.n_nodes, d, d)), touched, np.empty((tree.n_nodes, d)),
        np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap, int(touched[tree.leaves].sum())
