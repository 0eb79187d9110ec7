"""The keeper: the one process that closes windows, ticks the clock, writes snapshots, prunes and fills in.

It holds a lock that dies with it; the next process takes over. All that it does could be done twice without harm.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from bough.service.experiment import Experiment
from bough.service.files import digest_of
from bough.service.learner import prune_body
from bough.service.log.base import LogError
from bough.service.problems import Problem
from bough.service.propensities import Shadow
from bough.service.records import Key, Position, SnapshotRow
from bough.service.restore import taken

if TYPE_CHECKING:
    from bough.service.service import Service

_CLOSED_AT_ONCE = 500  # windows per commit
_TICKS = 200  # per half-life
_DAY = 86_400.0
_FILLED_AT_ONCE = 200  # propensities per round


class Keeper:
    """What is done from time to time, by one process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.is_keeper = False
        self._snapshots: dict[int, tuple[float, int]] = {}
        """When the last snapshot of an experiment was made, and how much had been learned."""
        self._ticked: dict[int, float] = {}
        self._pruned: dict[int, float] = {}
        self._shadows: dict[int, Shadow] = {}

    async def run(self) -> None:
        """Look after everything, for ever."""
        service = self._service
        while True:
            try:
                await service.keep_refusals()
                self.is_keeper = await asyncio.to_thread(service.log.try_to_keep)
                if self.is_keeper:
                    for experiment in service.experiments:
                        await self.look_after(experiment)
                        n_open = await asyncio.to_thread(service.log.n_open, experiment.id)
                        service.metrics.opened(experiment.name, n_open)
                    await asyncio.to_thread(self._look_after_files)
                await asyncio.to_thread(service.metrics.observe, service)
            except (LogError, Problem) as error:
                service.events.failed("the keeper could not write, and tries again", error)
            await asyncio.sleep(service.settings.keeper_interval)

    async def look_after(self, experiment: Experiment) -> None:
        """Do what is due for an experiment."""
        if experiment.agent is None:
            return
        await self.close_windows(experiment)
        await self._tick(experiment)
        await self._snapshot_in_time(experiment)
        await self._prune(experiment)
        if experiment.config.propensity == "later":
            await self._fill_in(experiment)

    async def stop(self) -> None:
        """Write a last snapshot of what has been learned since, so that the next start is quick."""
        service = self._service
        if not self.is_keeper:
            return
        for experiment in service.experiments:
            if experiment.agent is not None and self._n_new(experiment):
                try:
                    await self.snapshot(experiment)
                except (LogError, OSError) as error:
                    service.events.failed(f"no last snapshot of {experiment.name}", error)

    # -- windows and the clock -------------------------------------------------------------------

    async def close_windows(self, experiment: Experiment) -> int:
        """Close the windows that are over; how many."""
        service, total = self._service, 0
        while True:
            now = service.now()
            keys: list[Key] = await asyncio.to_thread(service.log.due, experiment.id, now, _CLOSED_AT_ONCE)
            judge = partial(experiment.close, now=now)
            waiting = [service.writer.touch(key, judge) for key in keys]
            await asyncio.gather(*waiting)
            total += len(keys)
            if len(keys) < _CLOSED_AT_ONCE:
                return total

    async def _tick(self, experiment: Experiment) -> None:
        """Log the time, where rewards fade: all processes go by the same clock."""
        half_life, now = experiment.config.half_life, self._service.now()
        if half_life is None:
            return
        agent_now = experiment.ready_agent().now
        last = max(self._ticked.get(experiment.id, 0.0), agent_now or 0.0)
        if now - last < half_life / _TICKS:
            return
        self._ticked[experiment.id] = now
        await self._service.changer.make(experiment, "tick", {"now": now}, "keeper")

    # -- snapshots -------------------------------------------------------------------------------

    def _n_new(self, experiment: Experiment) -> int:
        """How many records were learned since the last snapshot."""
        return max(0, experiment.position.seq - self._snapshots.get(experiment.id, (0.0, 0))[1])

    async def _snapshot_in_time(self, experiment: Experiment) -> None:
        settings, n_new = self._service.settings, self._n_new(experiment)
        if experiment.id not in self._snapshots:
            rows = await asyncio.to_thread(self._service.log.snapshots, experiment.id)
            self._snapshots[experiment.id] = (time.monotonic(), rows[0].seq if rows else 0)
            return
        since = time.monotonic() - self._snapshots[experiment.id][0]
        if n_new >= settings.snapshot_rows or (n_new and since >= settings.snapshot_seconds):
            await self.snapshot(experiment)

    async def snapshot(self, experiment: Experiment) -> Position | None:
        """Write a snapshot; up to where it holds. None where a long change is being made."""
        service = self._service
        if service.tail.is_changing or experiment.agent is None:
            return None
        began = time.perf_counter()
        # A step of the tail that failed half-way has been learned further than the tail says.
        position = max(service.tail.position, experiment.position)
        moment = taken(experiment, service.traffic[experiment.id], position, service.followed[experiment.id])
        stall = time.perf_counter() - began

        def write() -> int:
            data = moment.packed()
            row = SnapshotRow(experiment.id, position.xid, position.seq, digest_of(data), service.now())
            service.log.put_snapshot(row, data)
            return len(data)

        size = await asyncio.to_thread(write)
        self._snapshots[experiment.id] = (time.monotonic(), position.seq)
        service.metrics.snapshotted(experiment.name, size, stall)
        service.events.say(
            "snapshot", experiment=experiment.name, seq=position.seq, bytes=size, stall_ms=round(stall * 1e3, 2)
        )
        return position

    # -- what grows ------------------------------------------------------------------------------

    async def _prune(self, experiment: Experiment) -> None:
        """Delete what the configuration says is too old, behind a snapshot that holds what it taught."""
        config, now = experiment.config, self._service.now()
        if config.keep_contexts is None and config.keep_rows is None:
            return
        if now - self._pruned.get(experiment.id, 0.0) < min(_DAY / 24, self._service.settings.prune_seconds):
            return
        self._pruned[experiment.id] = now
        if config.keep_contexts is not None:
            await self.prune(experiment, now - config.keep_contexts * _DAY, contexts_only=True)
        if config.keep_rows is not None:
            await self.prune(experiment, now - config.keep_rows * _DAY, contexts_only=False)

    async def prune(self, experiment: Experiment, before: float, *, contexts_only: bool) -> int:
        """Delete contexts or rows of decisions before a time; how many decisions it were."""
        n_learned, position = experiment.n_learned, await self.snapshot(experiment)
        if position is None:
            return 0
        await self._service.changer.make(experiment, "prune", prune_body(position, n_learned), "keeper")
        log = self._service.log
        n: int = await asyncio.to_thread(
            partial(log.prune, experiment.id, before, position, contexts_only=contexts_only)
        )
        if n:
            self._service.events.say("pruned", experiment=experiment.name, decisions=n, contexts_only=contexts_only)
        return n

    def _look_after_files(self) -> None:
        """Have what the database writes beside its file go into it, so that it does not grow for ever."""
        log = self._service.log
        if log.sizes().get("waiting", 0) > self._service.settings.checkpoint_bytes:
            log.checkpoint()

    # -- propensities ----------------------------------------------------------------------------

    async def _fill_in(self, experiment: Experiment) -> None:
        """Fill in propensities of decisions, from what the model knew when they were made."""
        shadow = self._shadows.setdefault(experiment.id, Shadow(self._service.log, experiment))
        found = await asyncio.to_thread(shadow.fill_in, _FILLED_AT_ONCE)
        if found:
            await self._service.writer.append(lambda transaction: transaction.set_propensities(found))
