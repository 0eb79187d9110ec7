"""How much of the traffic explores, and how much there is left to gain: found out beside the decisions, at little cost.

A decision explores where its action is not the one with the highest mean. The gain left is E[max] - E[chosen]: what the
best action, whichever it is, is expected to earn more than the chosen one. E[max] is estimated from draws.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bough._arrays import Nodes
from bough.policies.posterior_policy import PosteriorPolicy
from bough.posterior import Posterior
from bough.service.node_numbers import best_places, moment_of
from bough.service.records import DecisionRow, Name
from bough.service.traffic import Traffic

_DRAWS = 64  # that E[max] is estimated from
_SMALL = 2_000  # nodes: drawing so few takes less time than searching
_RECENT = 60.0  # seconds: what is known now says nothing of older decisions
_SHARE = 50.0  # times as long as it took, until what is the best is found out again


class Exploration:
    """Judges the decisions of one experiment as they come; takes about 2% of a core at most.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
    >>> agent.update(["left"] * 9, [1.0] * 9)
    >>> rows = [
    ...     DecisionRow(1, "d1", 0.0, [name], None, None, 1, 0, 2, None, "learn", b"", 0.0, None, "at_once", False)
    ...     for name in ("left", "right")
    ... ]
    >>> traffic = Traffic()
    >>> Exploration(seed=0).judge(agent, rows, traffic, now=1.0)
    >>> traffic.spans()[0].sums.judged, traffic.spans()[0].sums.explored
    (2, 1)
    """

    def __init__(self, seed: Any = None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._rng, self._clock = np.random.default_rng(seed), clock
        self._known: tuple[Name, float] | None = None
        """The action with the highest mean, and E[max]."""
        self._again = -math.inf

    def judge(self, agent: PosteriorPolicy, rows: Sequence[DecisionRow], traffic: Traffic, now: float) -> None:
        """Count decisions by whether they explore; only recent ones, for which anything could be chosen, are judged.

        In a model with contexts the best action is another one in each context, and nothing is counted.
        """
        plain = [row for row in rows if row.at > now - _RECENT and row.mode != "observe" and _is_plain(row)]
        if not plain or not agent.posterior._engine.model.is_scalar:
            return
        best, most = self._best(agent, traffic)
        names = list({row.actions[0]: None for row in plain})
        with moment_of(agent, traffic) as moment:
            nodes = np.array([moment.catalogue.find(name) for name in names], dtype=np.int32)
            mean = np.full(len(nodes), np.nan)
            there = nodes >= 0
            mean[there] = moment.likelihood.expected_reward(*moment.scores(nodes[there]))
        means = dict(zip(names, mean.tolist(), strict=True))
        for row in plain:
            gain = most - means[row.actions[0]]
            is_known = math.isfinite(gain)
            traffic.note_exploration(
                row.at, 1, int(row.actions[0] != best), int(is_known), max(gain, 0.0) if is_known else 0.0
            )

    def _best(self, agent: PosteriorPolicy, traffic: Traffic) -> tuple[Name, float]:
        """The action with the highest mean, and E[max], as they were a moment ago."""
        began = self._clock()
        if self._known is None or began >= self._again:
            self._known = self._best_by_mean(agent, traffic), self._expected_maximum(agent)
            ended = self._clock()
            self._again = ended + max(1.0, _SHARE * (ended - began))
        return self._known

    @staticmethod
    def _best_by_mean(agent: PosteriorPolicy, traffic: Traffic) -> Name:
        with moment_of(agent, traffic) as moment:
            nodes = _choices(moment.posterior)
            score, variance = moment.scores(nodes)
        place = best_places(moment.likelihood, score, variance, 1)
        return moment.names(nodes[place])[0]

    def _expected_maximum(self, agent: PosteriorPolicy) -> float:
        likelihood = agent.posterior._engine.model.likelihood
        highest = np.array([self._highest(agent) for _ in range(_DRAWS)])
        return float(np.mean(likelihood.mean_reward(highest)))

    def _highest(self, agent: PosteriorPolicy) -> float:
        """The highest score in one draw, from random numbers of its own."""
        posterior = agent.posterior
        with posterior._lock:
            if posterior._catalogue.n_tree_nodes > _SMALL:
                found = posterior._highest(self._rng)
                if found is not None:
                    return found
            return float(posterior._sample_leaves(_choices(posterior), self._rng).max())


def _choices(posterior: Posterior) -> Nodes:
    """The actions that are not retired."""
    nodes, retired = posterior._catalogue.actions, posterior._retired
    return np.setdiff1d(nodes, np.array(sorted(retired), dtype=np.int32)) if retired else nodes


def _is_plain(row: DecisionRow) -> bool:
    """Whether it is for one action, and any could be chosen."""
    offered = row.offered or {}
    return len(row.actions) == 1 and not offered.get("among") and not offered.get("exclude")
