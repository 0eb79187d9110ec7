"""One run of one policy: its regret in each round, compiled from the first to the last where that is quickest."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from inspect import isclass
from typing import Any, NamedTuple

import numpy as np

from bough._arrays import Floats
from bough.model.model import Model
from bough.policies.base import Policy, ScoringPolicy
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policy_table import find_built_in
from bough.simulation.compiled_runs import compiled_run
from bough.simulation.worlds import World
from bough.tree.tree import Tree


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


def runner(model: Model, policy: Any) -> Runner:
    """A function that plays one run in a world of this model."""
    play = compiled_run(model, policy)

    def played(world: World, rng: np.random.Generator) -> RunResult:
        start, seed = time.perf_counter(), rng.bit_generator.state
        found = None if play is None or world.moves else play(world, rng)  # kernels know one truth for all rounds
        if found is None:
            rng.bit_generator.state = seed
            agent = _made(policy, world.model, rng)
            start = time.perf_counter()
            found = _play_in_python(world, agent)
        gaps, tried = found
        seconds = time.perf_counter() - start
        return RunResult(gaps, tried, seconds, world.average_best(), world.model.tree.n_actions)

    return played


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
