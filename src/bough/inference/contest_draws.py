"""How likely each action is to be the best, from draws: where parameters are vectors, or grids would be too large.

A draw gives each action the chance that it beats the best of the others (chances.py). In a large tree the search finds
the two best of a draw, and only touched actions have chances; the wins of untouched ones are counted by group, since
actions of a group have equal chances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bough._arrays import Floats, Nodes
from bough.inference.chances import Laws, chances, laws_of
from bough.inference.contest import Contest
from bough.inference.drawn_actions import ActionDraws
from bough.inference.engine import Engine
from bough.inference.search import PreparedSearch, Search

_SMALL = 2_000  # actions: drawing so few takes less time than searching
_LARGE = 2_000_000  # numbers that draws may take at once


class DrawnWinners(NamedTuple):
    """Estimates of the probabilities of being best, and the scores of the best in each draw."""

    probability: Floats
    """(K,) zero where an action does not count, or no draw gave it a chance."""
    error: Floats
    """(K,) the standard errors."""
    best: Floats
    """(n,)"""


def drawn_winners(
    engine: Engine,
    search: Search,
    context: Floats | None,
    actions: Nodes,
    left_out: tuple[Nodes, Nodes] | None,
    samples: int,
    rng: np.random.Generator,
) -> DrawnWinners:
    """The chances of actions, ascending; where these are all but the excluded, `left_out` has those and the retired.

    The retired ones are among the actions then, and are not chosen otherwise.
    """
    if left_out is not None and len(actions) > _SMALL:
        excluded, restored = left_out
        prepared = search.without(engine, context, excluded)
        if prepared is not None:
            slots = prepared.slots.copy()
            slots.choosable[slots.find(restored)] = True
            contest = Contest.of_all(engine.slots, engine.model.tree, search.alike(), excluded, restored)
            return _searched(prepared._replace(slots=slots), contest, search, samples, rng)
    return _drawn(engine, context, actions, samples, rng)


class _Sums:
    """Means of chances over draws, and their errors."""

    def __init__(self, n: int) -> None:
        self.n_draws = 0
        self._total, self._squares = np.zeros((2, n))

    def add(self, found: Floats) -> None:
        """(n, r) the chances in n draws."""
        self.n_draws += len(found)
        self._total += found.sum(axis=0)
        self._squares += np.square(found).sum(axis=0)

    @property
    def mean(self) -> Floats:
        return self._total / self.n_draws

    @property
    def error(self) -> Floats:
        variance = np.maximum(self._squares / self.n_draws - self.mean**2, 0.0)
        return np.asarray(np.sqrt(variance / max(self.n_draws - 1, 1)))


def _drawn(
    engine: Engine, context: Floats | None, actions: Nodes, samples: int, rng: np.random.Generator
) -> DrawnWinners:
    """From draws of all of the actions."""
    tree = engine.model.tree
    nodes, position = tree.with_ancestors(actions)
    draws = ActionDraws(engine, nodes, position, actions, np.arange(len(actions)), context)
    sums, best = _Sums(len(actions)), []
    while sums.n_draws < samples:
        n = min(max(1, _LARGE // draws.width), samples - sums.n_draws)
        scores, centre = draws(rng, n)
        best.append(scores.max(axis=1))
        sums.add(np.ones_like(scores) if len(actions) == 1 else chances(scores, scores, centre, draws.laws, 1))
    probability, error = np.zeros((2, tree.n_actions))
    places = np.searchsorted(tree.leaves, actions)
    probability[places], error[places] = sums.mean, sums.error
    return DrawnWinners(probability, error, np.concatenate(best))


def _searched(
    prepared: PreparedSearch, contest: Contest, search: Search, samples: int, rng: np.random.Generator
) -> DrawnWinners:
    """From searches for the two best of each draw."""
    engine, slots = prepared.engine, prepared.slots
    touched = np.flatnonzero(slots.choosable[: engine.slots.count])
    laws = laws_of(engine, slots.node[touched], prepared.context) if len(touched) else Laws(*np.zeros((3, 0)))
    parents, nodes = slots.parent[touched], slots.node[touched]
    sums, wins = _Sums(len(touched)), np.zeros(len(contest.groups.n_alike))
    best = np.empty(samples)
    for i in range(samples):
        parameters, values = prepared.draw(rng)
        (first, _), (highest, second), _ = prepared.best(values, 2, rng)
        best[i] = highest
        centre = laws.centre((values if prepared.context is None else parameters)[parents])
        sums.add(laws.above(np.where(nodes == first, second, highest)[None], centre[None]))
        if slots.find(np.array([first], dtype=np.int32))[0] < 0:
            wins[contest.group_at(int(first))] += 1.0
    groups, share = contest.groups, wins / samples
    size = groups.n_alike * np.array([search.alike().n_actions(type_) for type_ in groups.type.tolist()])
    of_place, place_error = np.zeros((2, len(contest.node)))
    place = np.searchsorted(contest.node, nodes, sorter=(order := np.argsort(contest.node)))
    of_place[order[place]], place_error[order[place]] = sums.mean, sums.error
    group_error = np.sqrt(share * (1.0 - share) / samples) / size
    return DrawnWinners(contest.everywhere(of_place, share / size), contest.everywhere(place_error, group_error), best)
