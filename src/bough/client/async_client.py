"""The client whose answers are awaited, with asyncio."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from bough.client import calls, changing, looking, transport, values
from bough.client.answers import Decided, Rewarded
from bough.client.buffer import Buffer
from bough.client.call import Call, described
from bough.client.errors import RewardsError, ServiceError
from bough.client.limits import BATCH_SECONDS, BATCH_SIZE, DEADLINE, MOST_REWARDS, RETRIES, TIMEOUT
from bough.client.retrying import Failure, Send, Steps, Wait, exchange, rewards_in_parts
from bough.client.settings import Settings, patience

P = ParamSpec("P")
T = TypeVar("T")


def _method(make: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(exchange(make(*args, **kwargs), self._patience))

    return described(method, make, "AsyncClient")


class AsyncClient:
    """`Client` for asyncio: the same methods with the same arguments, each of them to be awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with AsyncClient("http://127.0.0.1:8000", experiment="shop", key="secret") as client:
    ...         print(client)
    >>> asyncio.run(main())
    AsyncClient('http://127.0.0.1:8000', experiment='shop')

    `http` is an `httpx.AsyncClient` of your own, and `sleep` is awaited; all else is as in `Client`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        experiment: str | None = None,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        deadline: float | None = DEADLINE,
        http: httpx.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings = Settings.of(url, experiment, key)
        self._patience = patience(timeout, retries, deadline, jitter, time.monotonic)
        self._sleep = sleep
        self._is_own = http is None
        self._http = httpx.AsyncClient(limits=transport.limits()) if http is None else http

    def __repr__(self) -> str:
        return f"AsyncClient({self._settings.url!r}, experiment={self._settings.experiment!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._is_own:
            await self._http.aclose()

    decide = _method(calls.decide)
    reward = _method(calls.reward)

    async def rewards(self, rows: Any) -> list[Rewarded | ServiceError]:
        """What became of each of many rewards, as `Client.rewards`."""
        return await self._run(rewards_in_parts(rows, self._patience))

    def batch(self, size: int = BATCH_SIZE, seconds: float = BATCH_SECONDS) -> AsyncBatch:
        """A collector of rewards, which sends them in batches: see `AsyncBatch`."""
        return AsyncBatch(self, size, seconds)

    activate = _method(calls.activate)
    cancel = _method(calls.cancel)
    retract = _method(calls.retract)
    decision = _method(looking.decision)
    explain = _method(looking.explain)
    top = _method(looking.top)
    tree = _method(looking.tree)
    search = _method(looking.search)
    series = _method(looking.series)
    export = _method(looking.export)
    evaluate = _method(looking.evaluate)
    describe = _method(looking.describe)
    health = _method(looking.health)
    ready = _method(looking.ready)
    add = _method(changing.add)
    retire = _method(changing.retire)
    restore = _method(changing.restore)
    forget = _method(changing.forget)
    move = _method(changing.move)
    add_level = _method(changing.add_level)
    put_tree = _method(changing.put_tree)
    put_model = _method(changing.put_model)
    configure = _method(changing.configure)
    refit = _method(changing.refit)

    async def _run(self, steps: Steps[T]) -> T:
        found: httpx.Response | Failure | None = None
        with closing(steps):
            while True:
                try:
                    step = steps.send(found)
                except StopIteration as done:
                    answer: T = done.value
                    return answer
                if isinstance(step, Wait):
                    found = None
                    await self._sleep(step.seconds)
                else:
                    found = await self._send(step)

    async def _send(self, send: Send) -> httpx.Response | Failure:
        into = send.call.into
        try:
            async with self._http.stream(**transport.arguments(send, self._settings)) as response:
                if into is None or not response.is_success:
                    await response.aread()
                else:
                    with into.open("wb") as file:
                        # a piece is small, and written to memory: less than a thread would cost
                        async for piece in response.aiter_bytes():
                            file.write(piece)
                return response
        except httpx.RequestError as error:
            return transport.failure(error, send, self._settings)


class AsyncBatch:
    """`Batch` for asyncio, made by `AsyncClient.batch`.

    ::

        async with client.batch() as batch:
            await batch.reward(decided, 1.0)
    """

    def __init__(self, client: AsyncClient, size: int, seconds: float) -> None:
        self._buffer = Buffer(values.whole(size, "size", 1, MOST_REWARDS))
        self._seconds = values.positive(seconds, "seconds")
        self._client = client
        self._done = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def taken(self) -> int:
        """How many rewards the service has taken."""
        return self._buffer.taken

    def __len__(self) -> int:
        """How many rewards wait to be sent."""
        return len(self._buffer)

    async def __aenter__(self) -> AsyncBatch:
        if self._task is not None:
            raise ValueError("the batch has been used; make another with client.batch()")
        self._task = asyncio.create_task(self._send_now_and_then(), name="bough batch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None, "it was entered"
        self._buffer.close()
        self._done.set()
        await self._task
        try:
            await self.flush()
        except RewardsError as failed:
            if error is None or isinstance(error, Exception):
                raise
            error.add_note(str(failed))  # a cancelled task stays cancelled

    async def reward(
        self,
        decision: Decided | str,
        value: float,
        *,
        reward_id: str | None = None,
        trials: float | None = None,
        exposure: float | None = None,
        slot: int = 0,
        factors: Any = None,
    ) -> None:
        """Let a reward wait to be sent, with what `AsyncClient.reward` takes."""
        if self._task is None:
            raise ValueError("the batch is not open; use it within `async with client.batch() as batch:`")
        row = calls.reward_row(
            decision, value, reward_id=reward_id, trials=trials, exposure=exposure, slot=slot, factors=factors
        )
        if self._buffer.add(row):
            await self._send()
        self._buffer.raise_failed()

    async def flush(self) -> None:
        """Send all that waits now."""
        await self._send()
        self._buffer.raise_failed()

    async def _send_now_and_then(self) -> None:
        while not self._done.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), self._seconds)
            if not self._done.is_set():
                await self._send()

    async def _send(self) -> None:
        while rows := self._buffer.take():
            results: list[Rewarded | ServiceError]
            try:
                results = await self._client._run(exchange(calls.rewards(rows), self._client._patience))
            except ServiceError as error:
                results = [error] * len(rows)
            except BaseException:
                self._buffer.put_back(rows)
                raise
            self._buffer.settle(rows, results)
