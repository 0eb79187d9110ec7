"""One run of one policy: its regret in each round, compiled from the first to the last where that is quickest."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from inspect import isclass
from typing import Any, NamedTuple

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough.model.model import Model
from bough.policies.base import Policy, ScoringPolicy
from bough.policies.posterior_policy import PosteriorPolicy
from bough.policy_table import find_built_in
from bough.simulation.compiled_runs import compiled_run
from bough.simulation.protocols import check_methods, check_takes_factors, takes_factors
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


class Position:
    """Where a simulation is, for the note that an error gets; all is counted from 0.

    >>> at = Position()
    >>> at.run, at.policy, at.round = 3, "mine", 20
    >>> at.note
    "in policy 'mine', run 3, round 20 (counted from 0)"
    """

    run: int = 0
    policy: str | None = None
    """None while the world or the policies of the run are made."""
    round: int | None = None
    """None where nothing is played in Python."""

    @property
    def note(self) -> str:
        """The place in words."""
        policy = "" if self.policy is None else f"policy {self.policy!r}, "
        rounds = "" if self.round is None else f", round {self.round}"
        return f"in {policy}run {self.run}{rounds} (counted from 0)"


Runner = Callable[[World, np.random.Generator, Policy | None, Position], RunResult]


def runner(name: str, model: Model, policy: Any) -> Runner:
    """A function that plays one run in a world of this model, by the policy that was made for it, if one was."""
    play = compiled_run(model, policy)

    def played(world: World, rng: np.random.Generator, agent: Policy | None, at: Position) -> RunResult:
        at.policy, at.round = name, None
        start, seed = time.perf_counter(), rng.bit_generator.state
        found = play(world, rng) if play is not None and world.is_plain else None
        if found is None:
            if agent is None:
                rng.bit_generator.state = seed
                agent = made(name, policy, world.model, rng)
            start = time.perf_counter()
            found = _play_in_python(name, world, agent, at)
        gaps, tried = found
        seconds = time.perf_counter() - start
        return RunResult(gaps, tried, seconds, world.average_best(), world.model.tree.n_actions)

    return played


def made(name: str, policy: Any, model: Model, rng: np.random.Generator) -> Policy:
    """The policy of one run: a copy of the object that was given, or what the class or function makes."""
    is_object = isinstance(policy, Policy) and not isclass(policy)
    agent: Any = copy.deepcopy(policy) if is_object else policy(model, seed=rng)
    if isinstance(agent, ScoringPolicy):
        agent._rng = rng  # a copy would otherwise draw the same numbers in every run
    elif not is_object:
        check_methods(f"what policy {name!r} makes", agent)
    checked: Policy = agent
    return checked


def _play_in_python(name: str, world: World, agent: Any, at: Position) -> tuple[Floats, int]:
    """The regret of each round, and how many actions were tried.

    The clock of a policy that keeps time shows the number of the round.
    """
    player = _ByPlace(world, agent) if _is_own(world, agent) else _ByName(name, world, agent)
    gaps = np.empty(world.rounds)
    tried = np.zeros(world.model.tree.n_actions, dtype=np.bool_)
    best = world.best_rewards() if world.contexts is None else None
    keeps_time = _keeps_time(agent)
    for t in range(len(gaps)):
        at.round = t
        if keeps_time:
            agent.now = float(t)
        context, rewards = player.context(t), world._mean_rewards(t)
        place = player.decide(t, context)
        gaps[t] = (world.best(rewards) if best is None else best[t]) - rewards[place]
        tried[place] = True
        player.learn(t, place, world._reward(t, place, float(rewards[place])), context)
    return gaps, int(tried.sum())


class _ByPlace:
    """Bough's own policies go by the actions' places, which spares them looking up names."""

    def __init__(self, world: World, agent: Any) -> None:
        levels = world.levels_for(agent._model)
        self._agent, self._contexts = agent, world.contexts if levels is None else levels

    def context(self, t: int) -> Any:
        """What the decision of round t is made in: a context, or the places of its levels."""
        return None if self._contexts is None else self._contexts[t]

    def decide(self, t: int, context: Any) -> int:  # noqa: ARG002
        """The place of the action in round t."""
        return self._agent._choose_place(context)  # type: ignore[no-any-return]

    def learn(self, t: int, place: int, reward: float, context: Any) -> None:  # noqa: ARG002
        """Tell the policy what its action earned."""
        self._agent._learn(place, reward, context)


class _ByName:
    """Other policies go by names, and are told the levels of the decisions where they take them."""

    def __init__(self, name: str, world: World, agent: Any) -> None:
        self._name, self._tree, self._agent, self._contexts = name, world.model.tree, agent, world.contexts
        self._levels = _levels_of(world, agent)
        self._decides_by_level = bool(self._levels) and takes_factors(agent, "decide")

    def context(self, t: int) -> Any:
        """The context of round t."""
        return None if self._contexts is None else self._contexts[t]

    def decide(self, t: int, context: Any) -> int:
        """The place of the action in round t."""
        more = self._factors(t) if self._decides_by_level else {}
        return _place(self._name, self._tree, self._agent.decide(context, **more))

    def learn(self, t: int, place: int, reward: float, context: Any) -> None:
        """Tell the policy what its action earned."""
        self._agent.update(self._tree.actions[place], reward, context, **self._factors(t))

    def _factors(self, t: int) -> dict[str, Any]:
        """What is said of the levels of round t, if there are any."""
        if not self._levels:
            return {}
        return {"factors": {name: levels[t] for name, levels in self._levels.items()}}


def check_factors(name: str, world: World, agent: Any) -> None:
    """Refuse a policy that cannot learn at the levels that the decisions of a world have."""
    if not _is_own(world, agent) and (levels := _levels_of(world, agent)):
        check_takes_factors(name, agent, levels)


def _levels_of(world: World, agent: Any) -> dict[str, list[Any]]:
    """The levels of a world's decisions; of one of bough's policies, or one derived from it, those that it knows."""
    found = world.level_names()
    if not isinstance(agent, ScoringPolicy):
        return found
    known = () if world.levels_for(agent._model) is None else agent._model.factors
    return {name: levels for name, levels in found.items() if name in known}


def _is_own(world: World, agent: Any) -> bool:
    """Whether a policy is one of bough's, with the actions of the world."""
    return find_built_in(type(agent)) is not None and _same_actions(agent._model.tree, world.model.tree)


def _place(name: str, tree: Tree, action: Any) -> int:
    """The place of what a policy decided on."""
    try:
        return int(np.searchsorted(tree.leaves, tree.action_node(action)))
    except KeyError:
        but, example = _what_it_is_instead(tree, action)
        raise ValueError(
            f"policy {name!r} decided on {action!r:.80}, which is not an action{but}; decide gives the name of one, "
            f"such as {tree.actions[example]!r:.80}"
        ) from None


def _what_it_is_instead(tree: Tree, action: Any) -> tuple[str, int]:
    """What is not an action may be, in words, and the place of an action that may be meant."""
    if _checks.is_whole(action) and 0 <= action < tree.n_actions:
        return f", though a place in tree.actions: tree.actions[{action}] is the name there", int(action)
    return (" but a category" if tree.node_names.find(action) >= 0 else ""), 0


def _keeps_time(agent: Any) -> bool:
    """Whether a policy wants to know the time: one of bough's own where it matters, another where it has a clock."""
    if isinstance(agent, PosteriorPolicy):
        return agent.posterior.half_life is not None or agent._model.drift_half_life is not None
    return hasattr(agent, "now")


def _same_actions(tree: Tree, other: Tree) -> bool:
    """Whether two trees have the same actions in the same order, so that places mean the same in both."""
    return tree is other or np.array_equal(np.asarray(tree.actions), np.asarray(other.actions))
