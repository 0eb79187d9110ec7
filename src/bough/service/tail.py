"""The tail: reads the log in its order, and has experiments learn from it. Nothing else changes a posterior."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Protocol

from bough.service.experiment import Experiment
from bough.service.files import file_of
from bough.service.learner import Refused, warm
from bough.service.log.base import Log, LogError
from bough.service.problems import Problem
from bough.service.records import ChangeRow, OutcomeRow, Position, Record

_PIECE = 256  # records that the loop learns from at once
_REPLAY_PIECE = 100_000  # records, where nobody waits for the loop
_POLL = 0.2  # seconds
_GATHER = 0.03  # seconds in which records of other processes gather, since each query costs as much as many of them


class Hearer(Protocol):
    """What hears of the log as it is read."""

    def knows(self, id: int) -> bool:
        """Whether there is no need to look for an experiment in the log."""
        ...

    def experiment_of(self, id: int) -> Experiment | None:
        """The experiment with this number, also one that another process has made since."""
        ...

    def heard(self, records: list[Record], refused: Refused) -> None:
        """Records were learned from, except for those that could not be."""
        ...

    def keys_changed(self) -> None:
        """Keys were made or revoked."""
        ...


class Tail:
    """How far this process has read the log."""

    def __init__(self, log: Log, hearer: Hearer, now: Callable[[], float]) -> None:
        self._log, self._hearer, self._now = log, hearer, now
        self.position = Position()
        self.is_replayed = False
        """Whether the log has been read up to its end, and all that follows from it is ready."""
        self.lag = 0.0
        """Seconds between the logging of the last record and its being learned."""
        self.caught_up_at = now()
        """When all that could be read had been learned, for the last time."""
        self._is_stepping = self._is_applying = False
        self._woken = asyncio.Event()
        self._learned = asyncio.Condition()

    @property
    def is_changing(self) -> bool:
        """Whether posteriors are ahead of `position`, or between two states: no moment for a snapshot."""
        return self._is_stepping or self._is_applying

    def wake(self) -> None:
        """Say that something was committed."""
        self._woken.set()

    def replay(self) -> None:
        """Read all that there is; for a thread, before anybody asks for decisions."""
        while True:
            records = self._log.read_after(self.position, _REPLAY_PIECE)
            for part in _parts(records):
                if isinstance(part, ChangeRow):
                    self._hearer.heard([part], self._apply(part))
                else:
                    self._learn(part)
            if not records:
                break
            self.position = records[-1].position

    async def run(self) -> None:
        """Go on reading, for ever."""
        while True:
            self._woken.clear()
            n = await self.step()
            if n < _PIECE:
                await self._rest()

    async def _rest(self) -> None:
        """Wait until something may have been appended, by this process or another."""
        if not self._log.one_process:
            await asyncio.sleep(_GATHER)
            await asyncio.to_thread(self._log.wait, _POLL)
            return
        try:
            async with asyncio.timeout(_POLL):
                await self._woken.wait()
        except TimeoutError:  # a command may have written
            return

    async def step(self) -> int:
        """Read once, and learn from what there was; how many records."""
        if self._log.one_process:  # microseconds
            records = self._log.read_after(self.position, _PIECE)
        else:
            records = await asyncio.to_thread(self._log.read_after, self.position, _PIECE)
            await self._look_for_experiments(records)
        if len(records) < _PIECE:
            self.caught_up_at = self._now()
        self._is_stepping = True  # also where this ends before its time: what was learned is then ahead of the position
        for part in _parts(records):
            if isinstance(part, ChangeRow):
                refused = await self._apply_in_time(part)
                self._hearer.heard([part], refused)
            else:
                self._learn(part)
        if records:
            last = records[-1]
            self.position, self.lag = last.position, max(0.0, self._now() - last.at)
        self._is_stepping = False
        if records:
            async with self._learned:
                self._learned.notify_all()
        return len(records)

    async def _look_for_experiments(self, records: list[Record]) -> None:
        """Have those be known that other processes have made, or the loop would have to wait for the database."""
        for id in {record.experiment for record in records}:
            if id and not self._hearer.knows(id):
                await asyncio.to_thread(self._hearer.experiment_of, id)

    async def until(self, position: Position, patience: float = 30.0) -> None:
        """Wait until a record has been learned."""
        self.wake()
        try:
            async with asyncio.timeout(patience), self._learned:
                await self._learned.wait_for(lambda: self.position >= position)
        except TimeoutError:
            raise Problem(
                "not-replayed", "the change is logged and not yet made; ask again soon", retry_after=5.0
            ) from None

    def _learn(self, rows: list[OutcomeRow]) -> None:
        refused: Refused = []
        fresh: list[Record] = []
        for id, own in _by_experiment(rows):
            experiment = self._hearer.experiment_of(id)
            if experiment is not None:
                mine = [row for row in own if row.position > experiment.position]
                refused += experiment.learn(mine)
                fresh += mine
        self._hearer.heard(fresh, refused)

    async def _apply_in_time(self, change: ChangeRow) -> Refused:
        """Make a change, in a thread if it takes long: decisions go on with what there is meanwhile."""
        if change.kind == "key":  # all keys are read again
            return await asyncio.to_thread(self._apply, change)
        if change.kind not in ("tree", "model"):
            return self._apply(change)
        self._is_applying = True
        return await asyncio.to_thread(self._apply_at_length, change)

    def _apply_at_length(self, change: ChangeRow) -> Refused:
        try:
            return self._apply(change)
        finally:
            self._is_applying = False  # here: whoever waits may have been cancelled, and the thread goes on

    def _apply(self, change: ChangeRow) -> Refused:
        if change.kind == "key":
            self._hearer.keys_changed()
            return []
        experiment = self._hearer.experiment_of(change.experiment)
        if experiment is None or change.position <= experiment.position:
            return []
        try:
            digest = change.body.get("digest")
            file = None if digest is None else file_of(change.kind, self._log.file(digest))
            if change.kind == "model" and self.is_replayed and not change.body.get("refit"):
                warm(file, experiment.config.half_life)  # before it decides, or decisions would wait for kernels
            experiment.apply(change, file)
        except LogError:  # it is there, and can be read later
            raise
        except Exception as error:
            return [(change.position, str(error.args[0]) if error.args else type(error).__name__)]
        return []


def _parts(records: list[Record]) -> Iterable[list[OutcomeRow] | ChangeRow]:
    """Runs of outcomes, and the changes between them."""
    for is_change, run in groupby(records, lambda record: isinstance(record, ChangeRow)):
        if is_change:
            yield from run  # type: ignore[misc]
        else:
            yield list(run)  # type: ignore[arg-type]


def _by_experiment(rows: list[OutcomeRow]) -> Iterable[tuple[int, list[OutcomeRow]]]:
    if all(row.experiment == rows[0].experiment for row in rows):
        return [(rows[0].experiment, rows)]
    found: dict[int, list[OutcomeRow]] = {}
    for row in rows:
        found.setdefault(row.experiment, []).append(row)
    return found.items()
