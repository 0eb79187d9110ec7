"""How the service is doing, and its last decisions: what the dashboard has beside the model's own numbers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bough.policies.posterior_policy import PosteriorPolicy
from bough.service.node_numbers import moment_of
from bough.service.records import Key, Name, State
from bough.service.schema import RecentDecision, RecentDecisions, ServiceState
from bough.service.traffic import Traffic

if TYPE_CHECKING:
    from bough.service.experiment import Experiment
    from bough.service.service import Service

_SHOWN = 5  # reasons why records could not be learned
_EARNED = ("reward", "closed", "default")


class RecentRequests:
    """How many requests there were lately, and how many of them failed, minute by minute.

    >>> clock = iter([0.0, 0.0, 30.0, 5_000.0]).__next__
    >>> recent = RecentRequests(clock)
    >>> recent.note(200), recent.note(503)
    (None, None)
    >>> recent.totals()
    (2, 1)
    >>> recent.totals()
    (0, 0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, minutes: int = 15) -> None:
        self._clock, self._minutes = clock, minutes
        self._counts: deque[list[int]] = deque(maxlen=minutes)

    def note(self, status: int) -> None:
        """A request was answered with this status."""
        minute = int(self._clock() // 60.0)
        if not self._counts or self._counts[-1][0] != minute:
            self._counts.append([minute, 0, 0])
        now = self._counts[-1]
        now[1] += 1
        now[2] += status >= 500

    def totals(self) -> tuple[int, int]:
        """Requests, and those that failed."""
        since = int(self._clock() // 60.0) - self._minutes
        recent = [one for one in self._counts if one[0] > since]
        return sum(one[1] for one in recent), sum(one[2] for one in recent)


async def state_of(service: Service, experiment: Experiment) -> ServiceState:
    """How the service and an experiment are doing."""
    traffic = service.traffic[experiment.id]
    requests, errors = service.recent.totals()
    agent = experiment.agent
    snapshots = await asyncio.to_thread(service.log.snapshots, experiment.id)
    return ServiceState(
        service.now(),
        experiment.config.mode,
        await service.lag(),
        traffic.total,
        0 if agent is None else agent.posterior.n_observations,
        0 if agent is None else await asyncio.to_thread(_n_tried, agent, traffic),
        len(service.refusals),
        list(service.refusals.values())[-_SHOWN:],
        max((row.created for row in snapshots), default=None),
        requests,
        errors,
        service.keeper.is_keeper,
    )


def _n_tried(agent: PosteriorPolicy, traffic: Traffic) -> int:
    with moment_of(agent, traffic) as moment:
        return int(moment.has_observations.sum())


async def recent_decisions(service: Service, experiment: Experiment, limit: int) -> RecentDecisions:
    """The last decisions, and what has come of them."""
    traffic, agent = service.traffic[experiment.id], experiment.agent
    rows = traffic.history.decisions[:limit]
    keys = [Key(experiment.id, id) for id, *_ in rows]
    states = await asyncio.to_thread(service.log.states, keys) if keys else {}
    paths = {} if agent is None else _paths(agent, traffic, [action for _, _, action, _ in rows])
    return RecentDecisions(
        [
            RecentDecision(id, at, action, paths.get(action, []), n, _reward(states.get(key)))
            for (id, at, action, n), key in zip(rows, keys, strict=True)
        ]
    )


def _paths(agent: PosteriorPolicy, traffic: Traffic, actions: list[Name]) -> dict[Name, list[Name]]:
    """From the root to each of the actions that there are."""
    with moment_of(agent, traffic) as moment:
        nodes = {action: moment.catalogue.find(action) for action in actions}
        return {
            action: moment.names(np.array(moment.path(node), dtype=np.int32))
            for action, node in nodes.items()
            if node >= 0
        }


def _reward(state: State | None) -> float | None:
    """What came of the first action of a decision."""
    outcomes = [] if state is None else [row for row in state.outcomes if row.slot == 0 and row.kind in _EARNED]
    closed = [row.value for row in outcomes if row.kind == "closed"]
    if closed:
        return closed[0]
    return sum(row.value for row in outcomes) if outcomes else None
