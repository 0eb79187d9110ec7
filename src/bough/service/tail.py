"""The tail: reads the log in its order, and has experiments learn from it. Nothing else changes a posterior."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Protocol

from bough.service.experiment import Experiment
from bough.service.files import file_of
from bough.service.learner import Refused
from bough.service.log.base import Log, LogError
from bough.service.problems import Problem
from bough.service.records import ChangeRow, OutcomeRow, Position, Record

_PIECE = 256  # records that the loop learns from at once
_REPLAY_PIECE = 100_000  # records, where nobody waits for the loop
_POLL = 0.2  # seconds
_GATHER = 0.03  # seconds in which records of other processes gather, since each query costs as much as many of them


class Hearer(Protocol):
    """What hears of the log as it is read."""

    def experiment_of(self, id: int) -> Experiment | None:
        """The experiment with this number, also one that another process has made since."""
        ...

    def heard(self, records: list[Record], refused: Refused) -> None:
        """Records were learned from, except for those that could not be."""
        ...

    def keys_changed(self) -> None:
        """Keys were made or revoked."""
        ...

    def model_came(self, experiment: Experiment) -> None:
        """An experiment goes on by another model; called in a thread, and not while all is replayed."""
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
        self.is_changing = False
        """Whether a change is being made that takes long; the posterior is then between two states."""
        self._woken = asyncio.Event()
        self._learned = asyncio.Condition()

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
        if len(records) < _PIECE:
            self.caught_up_at = self._now()
        for part in _parts(records):
            if isinstance(part, ChangeRow):
                refused = await self._apply_in_time(part)
                self._hearer.heard([part], refused)
            else:
                self._learn(part)
        if records:
            last = records[-1]
            self.position, self.lag = last.position, max(0.0, self._now() - last.at)
            async with self._learned:
                self._learned.notify_all()
        return len(records)

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
        if change.kind not in ("tree", "model"):
            return self._apply(change)
        self.is_changing = True
        return await asyncio.to_thread(self._apply_at_length, change)

    def _apply_at_length(self, change: ChangeRow) -> Refused:
        try:
            return self._apply(change)
        finally:
            self.is_changing = False  # here: whoever waits may have been cancelled, and the thread goes on

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
