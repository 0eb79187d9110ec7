"""One run of one policy: the world that it meets, and its regret in each round, compiled where it is bough's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from inspect import isclass
from statistics import NormalDist
from typing import Any

import numpy as np

from bough.arrays import Floats
from bough.inference import scalar_kernels, vector_kernels
from bough.model import GaussianModel
from bough.policies import TS, BayesUCB, FlatTS, Greedy, HierTS, Policy, PosteriorPolicy

Contexts = Callable[[np.random.Generator, int], Floats] | Floats | None


class World:
    """What every policy of one run meets: true parameters, contexts, noise."""

    def __init__(self, model: GaussianModel, rounds: int, contexts: Contexts, rng: np.random.Generator) -> None:
        self.truth = np.ascontiguousarray(model.tree.at_leaves(model.draw(rng)))  # (K,) or (K, d)
        self.noise = rng.standard_normal(rounds) * np.sqrt(model.noise_variance)
        self.contexts: Floats | None = None
        if callable(contexts):
            self.contexts = context_rows(contexts(rng, rounds), (rounds, model.dim)).copy()
        elif contexts is not None:
            self.contexts = contexts[rng.integers(len(contexts), size=rounds)]
        if self.contexts is not None:
            self.contexts.setflags(write=False)  # what one policy does to them, the next would see

    def mean_rewards(self, t: int) -> Floats:
        """(K,) the mean reward of each action in round t."""
        return self.truth if self.contexts is None else self.truth @ self.contexts[t]


_Play = Callable[[World, np.random.Generator], Floats]
_BUILT_IN = (HierTS, FlatTS, TS, BayesUCB, Greedy)


def is_compiled(model: GaussianModel, policy: Any) -> bool:
    """Whether the whole run of this policy is one kernel."""
    return policy in _BUILT_IN and (model.is_scalar or policy is not BayesUCB)


def player(model: GaussianModel, policy: Any) -> _Play:
    """A function that plays one run and returns the regret of each round."""
    if not is_compiled(model, policy):
        return lambda world, rng: _play_in_python(_made(policy, model, rng), model, world)
    believed = policy(model).posterior.model
    sampled = issubclass(policy, HierTS)
    if model.is_scalar:
        return lambda world, rng: _play_scalar(believed, sampled, policy is BayesUCB, world, rng)
    return lambda world, rng: _play_vector(believed, sampled, world, rng)


def _made(policy: Any, model: GaussianModel, rng: np.random.Generator) -> Policy:
    fresh = isinstance(policy, Policy) and not isclass(policy)
    made: Any = copy.deepcopy(policy) if fresh else policy(model, seed=rng)
    if isinstance(made, PosteriorPolicy):
        made._rng = rng  # a copy would otherwise draw the same numbers in every run
    if not isinstance(made, Policy):
        raise ValueError(f"{policy!r} made a {type(made).__name__}; a policy has decide and update")
    return made


def _play_in_python(agent: Policy, model: GaussianModel, world: World) -> Floats:
    tree = model.tree
    gaps = np.empty(len(world.noise))
    for t in range(len(gaps)):
        context = None if world.contexts is None else world.contexts[t]
        rewards = world.mean_rewards(t)
        action = agent.decide(context)
        taken = rewards[np.searchsorted(tree.leaves, tree.action_node(action))]
        gaps[t] = rewards.max() - taken
        agent.update(action, taken + world.noise[t], context)
    return gaps


def _play_scalar(
    believed: GaussianModel, sampled: bool, optimist: bool, world: World, rng: np.random.Generator
) -> Floats:
    tree, rounds = believed.tree, len(world.noise)
    quantiles = np.zeros(rounds)
    if optimist:
        quantiles[:] = [NormalDist().inv_cdf(1.0 - 1.0 / max(t, 2)) for t in range(1, rounds + 1)]
    gap = np.empty(rounds)
    scalar_kernels.play(
        sampled, quantiles, rng, world.truth, world.noise, tree.leaves, tree.parent, believed.classes.of_node,
        believed.classes.table, believed.class_factors, believed.mean, 1.0 / believed.noise_variance,
        np.zeros((tree.n_nodes, 6)), np.empty((tree.n_nodes, 3)), np.empty(tree.n_nodes), np.empty(tree.n_nodes),
        np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap


def _play_vector(believed: GaussianModel, sampled: bool, world: World, rng: np.random.Generator) -> Floats:
    assert world.contexts is not None
    tree, d, rounds = believed.tree, believed.dim, len(world.noise)
    gap = np.empty(rounds)
    triangle = np.zeros((tree.n_nodes, d, d))
    triangle[:] = np.eye(d)
    vector_kernels.play(
        sampled, rng, world.truth, world.contexts, world.noise, tree.leaves, tree.parent, believed.classes.of_node,
        np.ascontiguousarray(believed.class_factors.transpose(0, 2, 1)), np.asarray(believed.mean),
        np.sqrt(believed.noise_variance), triangle, np.zeros((tree.n_nodes, d, d)), np.zeros((tree.n_nodes, d)),
        np.empty((tree.n_nodes, d, d)), np.zeros(tree.n_nodes, dtype=np.bool_), np.empty((tree.n_nodes, d)),
        np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap


def context_rows(contexts: Any, shape: tuple[int, int]) -> Floats:
    given = np.ascontiguousarray(contexts, dtype=np.float64)
    if given.shape != shape or not len(given):
        raise ValueError(f"the contexts have shape {given.shape}; give rows of length {shape[1]}")
    if not np.isfinite(given).all():
        raise ValueError("the contexts are not all finite; drop the rows with NaN or infinite values")
    return given
