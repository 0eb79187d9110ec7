"""One run of one policy: its regret in each round, compiled from the first to the last where that is quickest."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from inspect import isclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Floats
from bough.inference.evidence import ContextEvidence
from bough.inference.kernels.play_scalar import play as play_scalar
from bough.inference.kernels.play_vector import play as play_vector
from bough.model.model import Model
from bough.policies.base import Policy, ScoringPolicy
from bough.policies.baselines import BayesUCB
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policies.thompson import SMALL
from bough.policy_table import Rewards, find_built_in
from bough.simulation.worlds import World
from bough.tree.tree import Tree

_NO_VALUES = np.empty(0)
_NO_PLACES = np.empty(0, dtype=np.int64)


class RunResult(NamedTuple):
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


Runner = Callable[[World, np.random.Generator], RunResult]


def is_compiled(model: Model, policy: Any) -> bool:
    """Whether the whole run of this policy is one kernel.

    Sampling a large tree is left to the policy itself, which looks for the best action without drawing them all.
    """
    built_in = find_built_in(policy)
    if built_in is None or _rewards(model) not in built_in.compiled_for or model.drift_half_life is not None:
        return False
    return not built_in.samples or model.tree.n_nodes <= SMALL


def _rewards(model: Model) -> Rewards:
    if model.is_scalar:
        return "conjugate" if model.kind.is_conjugate else "other"
    return "conjugate in contexts" if model.kind.is_conjugate else "other in contexts"


def runner(model: Model, policy: Any) -> Runner:
    """A function that plays one run in a world of this model."""

    def in_python(world: World, rng: np.random.Generator) -> RunResult:
        return _timed(world, _play_in_python, _made(policy, world.model, rng))

    built_in = find_built_in(policy)
    if built_in is None or not is_compiled(model, policy):
        return in_python
    assumed = policy(model).posterior.model
    sampled = built_in.samples

    def compiled(world: World, rng: np.random.Generator) -> RunResult:
        if world.moves:  # kernels know one truth for all rounds
            return in_python(world, rng)
        if model.is_scalar:
            return _timed(world, _play_scalar, assumed, sampled, policy is BayesUCB, rng)
        return _timed(world, _play_vector, assumed, sampled, rng)

    return compiled


def _timed(world: World, play: Callable[..., tuple[Floats, int]], *arguments: Any) -> RunResult:
    start = time.perf_counter()
    gaps, tried = play(world, *arguments)
    seconds = time.perf_counter() - start
    return RunResult(gaps, tried, seconds, world.average_best(), world.model.tree.n_actions)


def _made(policy: Any, model: Model, rng: np.random.Generator) -> Policy:
    fresh = isinstance(policy, Policy) and not isclass(policy)
    made: Any = copy.deepcopy(policy) if fresh else policy(model, seed=rng)
    if isinstance(made, ScoringPolicy):
        made._rng = rng  # a copy would otherwise draw the same numbers in every run
    if not isinstance(made, Policy):
        raise ValueError(f"{policy!r} made a {type(made).__name__}; a policy has decide and update")
    return made


def _play_in_python(world: World, agent: Any) -> tuple[Floats, int]:
    """Bough's own go by the actions' places, which spares them looking up names; others by names.

    The clock of a policy that keeps time shows the number of the round.
    """
    tree = world.model.tree
    own = find_built_in(type(agent)) is not None and _same_actions(agent._model.tree, tree)
    gaps = np.empty(world.rounds)
    tried = np.zeros(tree.n_actions, dtype=np.bool_)
    best = world.best_rewards() if world.contexts is None else None
    keeps_time = _keeps_time(agent)
    for t in range(len(gaps)):
        if keeps_time:
            agent.now = float(t)
        context = None if world.contexts is None else world.contexts[t]
        rewards = world._mean_rewards(t)
        if own:
            place = agent._choose_place(context)
        else:
            place = int(np.searchsorted(tree.leaves, tree.action_node(agent.decide(context))))
        gaps[t] = (world.best(rewards) if best is None else best[t]) - rewards[place]
        tried[place] = True
        reward = world._reward(t, place, float(rewards[place]))
        if own:
            agent._learn(place, reward, context)
        else:
            agent.update(tree.actions[place], reward, context)
    return gaps, int(tried.sum())


def _keeps_time(agent: Any) -> bool:
    """Whether a policy wants to know the time: one of bough's own where it matters, another where it has a clock."""
    if isinstance(agent, PosteriorPolicy):
        return agent.posterior.half_life is not None or agent._model.drift_half_life is not None
    return hasattr(agent, "now")


def _same_actions(tree: Tree, other: Tree) -> bool:
    """Whether two trees have the same actions in the same order, so that places mean the same in both."""
    return tree is other or np.array_equal(np.asarray(tree.actions), np.asarray(other.actions))


def _residuals(world: World) -> tuple[Any, Any, Floats]:
    """Where a kernel takes an action's noise from; empty where the world's own noise is for all."""
    if world.residuals is None:
        return _NO_VALUES, _NO_PLACES, _NO_VALUES
    return world.residuals.values, world.residuals.start, world.residuals.pick


def _play_scalar(
    world: World, assumed: Model, sampled: bool, optimist: bool, rng: np.random.Generator
) -> tuple[Floats, int]:
    tree, rounds = assumed.tree, world.rounds
    quantiles = np.zeros(rounds)
    if optimist:
        quantiles[:] = [NormalDist().inv_cdf(1.0 - 1.0 / max(t, 2)) for t in range(1, rounds + 1)]
    even = assumed.classes.kind == "depth" and bool(tree.leaves[0] == tree.level_start[-2])
    gap = np.empty(rounds)
    likelihood = assumed.likelihood
    evidence, state = np.zeros((tree.n_nodes, 2)), np.zeros((tree.n_nodes, 4))
    play_scalar(
        likelihood.code, sampled, even, quantiles, rng, world.truth, world.best(world.truth), world.noise,
        *_residuals(world), tree.leaves, tree.parent, assumed.classes.of_node, assumed.classes.table,
        assumed.class_factors, assumed.mean, 1.0 / likelihood.noise_deviation**2, evidence, state,
        np.empty((tree.n_nodes, 3)), np.empty(tree.n_nodes), np.empty(tree.n_nodes), np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap, int((state[tree.leaves, 0] > 0.0).sum())


def _play_vector(world: World, assumed: Model, sampled: bool, rng: np.random.Generator) -> tuple[Floats, int]:
    assert world.contexts is not None
    tree, d, rounds = assumed.tree, assumed.dim, world.rounds
    gap = np.empty(rounds)
    triangle = np.zeros((tree.n_nodes, d, d))
    triangle[:] = np.eye(d)
    touched = np.zeros(tree.n_nodes, dtype=np.bool_)
    eligible = np.ones(tree.n_actions, dtype=np.bool_) if world.eligible is None else world.eligible
    play_vector(
        sampled, rng, world.truth, eligible, world.contexts, world.noise, *_residuals(world), tree.leaves, tree.parent,
        assumed.classes.of_node, np.ascontiguousarray(assumed.class_factors.transpose(0, 2, 1)),
        np.asarray(assumed.mean), assumed.likelihood.noise_deviation,
        np.zeros((tree.n_nodes, ContextEvidence(assumed).width)), triangle, np.zeros((tree.n_nodes, d, d)),
        np.zeros((tree.n_nodes, d)), np.empty((tree.n_nodes, d, d)), touched, np.empty((tree.n_nodes, d)),
        np.empty(tree.n_actions), gap,
    )  # fmt: skip
    return gap, int(touched[tree.leaves].sum())
