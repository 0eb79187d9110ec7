"""The client that waits for its answers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
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


def _method(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(exchange(make(*args, **kwargs), self._patience))

    return described(method, make, "Client")


class Client:
    """A client of the decision service: it decides and rewards once, however often a request has to be sent.

    >>> with Client("http://127.0.0.1:8000", experiment="shop", key="secret") as client:
    ...     client
    Client('http://127.0.0.1:8000', experiment='shop')

    `url`, `experiment` and `key` are otherwise those of the environment: BOUGH_URL, BOUGH_EXPERIMENT and BOUGH_KEY.
    A try may take `timeout` seconds to connect, to send, and between two pieces of the answer. It is repeated up to
    `retries` times, after random and growing delays or as long as the service asks for, while all of it takes less
    than `deadline` seconds (None for no such limit).

    Any number of threads may use one client, which keeps its connections; close it, or use ``with``. `http` is an
    `httpx.Client` of your own, with certificates or proxies, which is then yours to close. `sleep` waits, and `jitter`
    gives a random number from 0 to 1; tests have their own.
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
        http: httpx.Client | None = None,
        sleep: Callable[[float], object] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings = Settings.of(url, experiment, key)
        self._patience = patience(timeout, retries, deadline, jitter, time.monotonic)
        self._sleep = sleep
        self._is_own = http is None
        self._http = httpx.Client(limits=transport.limits()) if http is None else http

    def __repr__(self) -> str:
        return f"Client({self._settings.url!r}, experiment={self._settings.experiment!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        if self._is_own:
            self._http.close()

    decide = _method(calls.decide)
    reward = _method(calls.reward)

    def rewards(self, rows: Any) -> list[Rewarded | ServiceError]:
        """What became of each of many rewards: a `Rewarded`, or the error that says why it was not taken.

        ::

            results = client.rewards([(decided, 1.0), ("7f3a", 0.0), {"decision_id": "7f3b", "value": 2, "trials": 9}])

        Each reward is a pair of a decision and a value, or a dict of what `reward` takes. Where a whole request fails,
        its error is raised; to give all the rewards again is safe, since those that were taken are not taken twice.
        """
        return self._run(rewards_in_parts(rows, self._patience))

    def batch(self, size: int = BATCH_SIZE, seconds: float = BATCH_SECONDS) -> Batch:
        """A collector of rewards, which sends them in batches: see `Batch`.

        ::

            with client.batch() as batch:
                batch.reward(decided, 1.0)
        """
        return Batch(self, size, seconds)

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

    def _run(self, steps: Steps[T]) -> T:
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
                    self._sleep(step.seconds)
                else:
                    found = self._send(step)

    def _send(self, send: Send) -> httpx.Response | Failure:
        into = send.call.into
        try:
            with self._http.stream(**transport.arguments(send, self._settings)) as response:
                if into is None or not response.is_success:
                    response.read()
                else:
                    with into.open("wb") as file:
                        for piece in response.iter_bytes():
                            file.write(piece)
                return response
        except httpx.RequestError as error:
            return transport.failure(error, send, self._settings)


class Batch:
    """A collector of rewards, made by `Client.batch`: it sends them as soon as there are `size`, or after `seconds`.

    ::

        with client.batch(size=500, seconds=1.0) as batch:
            for decided, value in outcomes:
                batch.reward(decided, value)

    A reward that the service refuses, or that cannot be sent, is in a `RewardsError`, with its own error. It is raised
    by the next `reward` or `flush`, at the latest at the end of the ``with`` statement; the reward that `reward` was
    then called with is kept, and sent like any other. Any number of threads may use one batch.
    """

    def __init__(self, client: Client, size: int, seconds: float) -> None:
        self._buffer = Buffer(values.whole(size, "size", 1, MOST_REWARDS))
        self._seconds = values.positive(seconds, "seconds")
        self._client = client
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def taken(self) -> int:
        """How many rewards the service has taken."""
        return self._buffer.taken

    def __len__(self) -> int:
        """How many rewards wait to be sent."""
        return len(self._buffer)

    def __enter__(self) -> Batch:
        if self._thread is not None:
            raise ValueError("the batch has been used; make another with client.batch()")
        self._thread = threading.Thread(target=self._send_now_and_then, name="bough batch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None, "it was entered"
        self._buffer.close()
        self._done.set()
        self._thread.join()
        try:
            self.flush()
        except RewardsError as failed:
            if error is None or isinstance(error, Exception):
                raise
            error.add_note(str(failed))  # an interrupt stays an interrupt

    def reward(
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
        """Let a reward wait to be sent, with what `Client.reward` takes."""
        if self._thread is None:
            raise ValueError("the batch is not open; use it within `with client.batch() as batch:`")
        row = calls.reward_row(
            decision, value, reward_id=reward_id, trials=trials, exposure=exposure, slot=slot, factors=factors
        )
        if self._buffer.add(row):
            self._send()
        self._buffer.raise_failed()

    def flush(self) -> None:
        """Send all that waits now."""
        self._send()
        self._buffer.raise_failed()

    def _send_now_and_then(self) -> None:
        while not self._done.wait(self._seconds):
            self._send()

    def _send(self) -> None:
        while rows := self._buffer.take():
            results: list[Rewarded | ServiceError]
            try:
                results = self._client._run(exchange(calls.rewards(rows), self._client._patience))
            except ServiceError as error:
                results = [error] * len(rows)
            except BaseException:
                self._buffer.put_back(rows)
                raise
            self._buffer.settle(rows, results)
