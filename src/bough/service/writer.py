"""Group commit: all requests that wait are committed together, with one sync, and answered when that is done.

On SQLite appending takes microseconds, and is done in the loop itself; only the commit, which waits for the disk, is
left to a thread. That spares two threads the quarrel about the interpreter's lock. PostgreSQL is asked from the thread
alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from bough.service.experiment import Experiment, Verdict
from bough.service.log.base import Log, LogAwayError, LogBusyError, LogError, LogFullError, Transaction
from bough.service.problems import Problem
from bough.service.records import DecisionRow, Key, State
from bough.service.schema import Decide, Decided

T = TypeVar("T")
_BUSY_WAIT = 0.003  # seconds between tries to write, while another process does
_PATIENCE = 10.0  # seconds of such tries
_REMEMBERED = 10.0  # seconds for which a failure counts
_GATHER = 0.001  # seconds in which requests gather, where a transaction takes several journeys to the database


class Watch(Protocol):
    """What hears of commits."""

    def committed(self, rows: int, seconds: float) -> None:
        """So many rows were committed."""
        ...

    def not_committed(self, error: LogError) -> None:
        """A commit has failed, after others have succeeded."""
        ...


class _Decision:
    """A decision that waits to be logged."""

    __slots__ = ("asked", "experiment", "future", "row")

    def __init__(self, experiment: Experiment, asked: Decide, row: DecisionRow, future: asyncio.Future[Any]) -> None:
        self.experiment, self.asked, self.row, self.future = experiment, asked, row, future


class _Touch:
    """Something that waits to happen to a decision that is in the log."""

    __slots__ = ("future", "judge", "key")

    def __init__(self, key: Key, judge: Callable[[State], Verdict], future: asyncio.Future[Any]) -> None:
        self.key, self.judge, self.future = key, judge, future


_Op = _Decision | _Touch
_Result = tuple[asyncio.Future[Any], Any]


class Writer:
    """The only one who appends to the log in this process."""

    def __init__(self, log: Log, watch: Watch, most_waiting: int) -> None:
        self._log, self._watch, self._most_waiting = log, watch, most_waiting
        self._waiting: list[_Op] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bough-writer")
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._failure: tuple[str, float] | None = None

    @property
    def failure(self) -> str | None:
        """Why the last commit failed; None where it did not, or a while ago.

        Whoever is told so sends no more requests, and without requests nobody would learn that commits succeed again.
        """
        if self._failure is None or time.monotonic() - self._failure[1] > _REMEMBERED:
            return None
        return self._failure[0]

    @property
    def n_waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    def decide(self, experiment: Experiment, asked: Decide, row: DecisionRow) -> asyncio.Future[Decided]:
        """Log a decision; the answer, once it is durable."""
        future = asyncio.get_running_loop().create_future()
        self._wait(_Decision(experiment, asked, row, future))
        return future

    def touch(self, key: Key, judge: Callable[[State], Verdict]) -> asyncio.Future[Any]:
        """Have something happen to a decision that is in the log; the answer, once it is durable."""
        future = asyncio.get_running_loop().create_future()
        self._wait(_Touch(key, judge, future))
        return future

    async def touch_alone(self, key: Key, judge: Callable[[State], Verdict]) -> Any:
        """`touch`, in a transaction of its own, whose records come after those that it is judged by.

        The order of PostgreSQL's records is that in which transactions first wrote or locked something, so that one
        which began with other requests could come before what another process has logged of this decision.
        """
        op = _Touch(key, judge, asyncio.get_running_loop().create_future())
        try:
            [(_, result)] = await self.append(lambda transaction: _append(transaction, [op]))
        except LogError as error:
            raise not_written(error) from None
        if isinstance(result, Exception):
            raise result
        self._watch.committed(1, 0.0)
        return result

    async def append(self, work: Callable[[Transaction], T]) -> T:
        """Do something else in a transaction of its own; what it returns, once that is durable."""
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._in_transaction, work)

    async def close(self) -> None:
        """Commit what waits, and stop."""
        while self._task is not None:
            await asyncio.shield(self._task)
        self._thread.shutdown()

    def _wait(self, op: _Op) -> None:
        if len(self._waiting) >= self._most_waiting:
            raise Problem(
                "overloaded",
                f"{len(self._waiting)} requests wait to be logged; try again in a second",
                remedy="try again in a second",
                retry_after=1.0,
            )
        self._waiting.append(op)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._commit_all())

    async def _commit_all(self) -> None:
        try:
            while self._waiting:
                if not self._log.one_process:
                    await asyncio.sleep(_GATHER)
                async with self._lock:
                    batch, self._waiting = self._waiting, []
                    await self._commit(batch)
        finally:
            self._task = None

    async def _commit(self, batch: list[_Op], again: bool = False) -> None:
        began = time.perf_counter()
        try:
            results = await self._patiently(batch)
        except LogAwayError as error:
            if again:  # one by one they would have to wait for a database that is away as often as there are of them
                self._failed(batch, error)
            else:
                await self._commit(batch, again=True)
            return
        except LogError as error:
            if len(batch) > 1 and not isinstance(error, (LogBusyError, LogFullError)):
                for op in batch:  # one of them is to blame, and the others are not to suffer
                    await self._commit([op])
            else:
                self._failed(batch, error)
            return
        except Exception as error:  # a fault of ours: whoever waits is to hear of it
            _fail(batch, error)
            return
        self._failure = None
        for future, result in results:
            if future.done():  # the client is gone
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._watch.committed(len(batch), time.perf_counter() - began)

    def _failed(self, batch: Sequence[_Op], error: LogError) -> None:
        if self.failure is None:
            self._watch.not_committed(error)
        self._failure = str(error), time.monotonic()
        _fail(batch, not_written(error))

    async def _patiently(self, batch: list[_Op]) -> list[_Result]:
        """Append and commit, again and again while another process writes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        while True:
            try:
                if not self._log.one_process:
                    return await loop.run_in_executor(
                        self._thread, self._in_transaction, lambda transaction: _append(transaction, batch)
                    )
                transaction = self._log.begin()
                try:
                    results = _append(transaction, batch)
                except BaseException:
                    self._log.rollback()
                    raise
                await loop.run_in_executor(self._thread, self._log.commit)
                return results
            except LogBusyError:
                if loop.time() > until:
                    raise
                await asyncio.sleep(_BUSY_WAIT)

    def _in_transaction(self, work: Callable[[Transaction], T]) -> T:
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                with self._log.transaction() as transaction:
                    return work(transaction)
            except LogBusyError:
                if time.monotonic() > until:
                    raise
                time.sleep(_BUSY_WAIT)


def _append(transaction: Transaction, batch: Sequence[_Op]) -> list[_Result]:
    """Append what waits; what is to be answered, once it is durable. The same id twice is answered alike."""
    decisions = [op for op in batch if isinstance(op, _Decision)]
    touches = [op for op in batch if isinstance(op, _Touch)]
    results: list[_Result] = []
    if decisions:
        first: dict[Key, _Decision] = {}
        for op in decisions:
            first.setdefault(op.row.key, op)
        known = transaction.add_decisions([op.row for op in first.values()])
        for op in decisions:
            key = op.row.key
            replayed = key in known or first[key] is not op
            row = known.get(key) or first[key].row
            results.append((op.future, _attempt(op.experiment.answer, row, op.asked, replayed)))
    if touches:
        states = transaction.states({op.key for op in touches})
        outcomes, changed = [], {}
        for touch in touches:
            state = states.get(touch.key)
            verdict = _unknown(touch.key) if state is None else _attempt(touch.judge, state)
            if isinstance(verdict, Exception):
                results.append((touch.future, verdict))
                continue
            assert state is not None
            state.outcomes.extend(verdict.outcomes)
            outcomes.extend(verdict.outcomes)
            if verdict.changed is not None:
                changed[touch.key] = verdict.changed
            results.append((touch.future, verdict.answer))
        if outcomes:
            transaction.add_outcomes(outcomes)
        if changed:
            transaction.set_states(list(changed.values()))
    return results


def _attempt(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or what it raises: one request's fault is not that of the batch."""
    try:
        return call(*arguments)
    except LogError:
        raise
    except Exception as error:
        return error


def _unknown(key: Key) -> Problem:
    return Problem(
        "unknown-decision",
        f"there is no decision {key.decision!r}; give the decision_id of one",
        value=key.decision,
        remedy="give the decision_id that was answered to decide",
    )


def not_written(error: LogError) -> Problem:
    """What is answered where the log could not be written; where the database is, is nobody's business."""
    why = error if isinstance(error, (LogBusyError, LogFullError)) else "the database failed"
    return Problem(
        "not-written",
        f"nothing was logged: {why}; try again with the same id",
        remedy="try again with the same id",
        retry_after=1.0,
    )


def _fail(batch: Sequence[_Op], error: Exception) -> None:
    for op in batch:
        if not op.future.done():
            op.future.set_exception(error)
