"""Limits: how often a key may ask, how large a body may be, and how long it may take to arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator, Mapping, MutableMapping
from typing import Any

from bough.service.problems import Problem
from bough.service.records import KeyRow
from bough.service.routes import ROUTES
from bough.service.settings import Settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Coroutine[Any, Any, Message]]
_PIECE = 1 << 20
"""Each piece of a body of this size has the whole time to arrive: a tree may be large, and a client slow and honest."""


class _Bucket:
    """What a key has left to spend, as it was at some time."""

    __slots__ = ("at", "tokens")

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens, self.at = tokens, at


class RateLimits:
    """A bucket of tokens per key: each request takes one, and they come back at the key's rate.

    >>> clock = iter([0.0, 0.0, 0.0, 0.5]).__next__
    >>> limits, key = RateLimits(rate=2.0, burst=1.0, clock=clock), KeyRow("k1", b"", ["read"], None, None, 0.0)
    >>> limits.take(key), limits.take(key)
    (None, None)
    >>> limits.take(key)
    Traceback (most recent call last):
    bough.service.problems.Problem: the key k1 makes more than 2 requests per second
    >>> limits.take(key)
    """

    def __init__(
        self, rate: float, burst: float, most: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._buckets: dict[str, _Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: KeyRow) -> None:
        """Count a request; a problem that says when to come back where there have been too many."""
        rate = self._rate if key.rate is None else key.rate
        if rate <= 0:
            return
        now, capacity = self._clock(), max(1.0, rate * self._burst)
        bucket = self._buckets.get(key.id)
        if bucket is None:
            bucket = self._new_bucket(key.id, capacity, now)
        tokens = min(capacity, bucket.tokens + (now - bucket.at) * rate)
        if tokens < 1.0:
            raise _too_fast(key, rate, (1.0 - tokens) / rate)
        bucket.tokens, bucket.at = tokens - 1.0, now

    def _new_bucket(self, id: str, capacity: float, now: float) -> _Bucket:
        """A full bucket; those that have been used least lately make room for it, as they are the fullest."""
        if len(self._buckets) >= self._most:
            by_age = sorted(self._buckets, key=lambda id: self._buckets[id].at)
            for old in by_age[: len(by_age) // 2 + 1]:
                del self._buckets[old]
        bucket = self._buckets[id] = _Bucket(capacity, now)
        return bucket


def _too_fast(key: KeyRow, rate: float, seconds: float) -> Problem:
    return Problem(
        "too-fast",
        f"the key {key.id} makes more than {rate:g} requests per second",
        remedy="wait as long as Retry-After says; send rewards in batches; or make a key with a higher rate",
        retry_after=seconds,
    )


def body_limits(settings: Settings) -> Mapping[str, int]:
    """The largest body in bytes, by the name of the route, for those that take one.

    >>> body_limits(Settings())["decide"]
    1048576
    """
    large = {"rewards": settings.batch_bytes, "put_tree": settings.file_bytes, "put_model": settings.file_bytes}
    return {
        name: large.get(name, settings.body_bytes) for name, route in ROUTES.items() if route.body is not None
    }  # fmt: skip


class ClientGoneError(Exception):
    """The client went before its request was complete; there is nobody to answer."""


async def read_body(receive: Receive, length: bytes | None, limit: int, seconds: float) -> bytes:
    """The body of a request; a problem as soon as it is known to be too large, or has taken too long.

    `length` is the header Content-Length, as it was sent. The first MiB must arrive within so many seconds, and then
    each further one.
    """
    if length is not None and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise _too_large(limit)
    first = receive()
    try:
        # Mostly the body is there when it is asked for. To run one step, and to set a timer only where that does not
        # suffice, saves most of what reading a small body costs.
        waits_for = first.send(None)
    except StopIteration as done:
        message = done.value
        body = _piece(message, 0, limit)
        if not message.get("more_body", False):
            return body
        rest: _Resumed | None = None
    else:
        body, rest = b"", _Resumed(first, waits_for)
    try:
        async with asyncio.timeout(seconds) as patience:
            return await _read_on(receive, body, rest, limit, seconds, patience)
    except TimeoutError:
        raise Problem(
            "too-slow",
            f"the body, or the next MiB of it, did not arrive within {seconds:g} seconds",
            remedy="send it faster, or in smaller pieces",
            headers={"connection": "close"},
        ) from None


async def _read_on(
    receive: Receive, body: bytes, rest: _Resumed | None, limit: int, seconds: float, patience: asyncio.Timeout
) -> bytes:
    """A body that comes in pieces, of which one is there, and the next may be under way."""
    pieces, size, more = [body], len(body), True
    while more:
        message = await (receive() if rest is None else rest)
        rest = None
        piece = _piece(message, size, limit)
        pieces.append(piece)
        if size // _PIECE < (size + len(piece)) // _PIECE:
            patience.reschedule(asyncio.get_running_loop().time() + seconds)
        size += len(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)


class _Resumed:
    """The rest of a coroutine that has run up to where it first waits for something."""

    __slots__ = ("_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Message], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for

    def __await__(self) -> Generator[Any, Any, Message]:
        try:
            while True:
                try:
                    sent = yield self._waits_for
                except BaseException as error:
                    self._waits_for = self._coroutine.throw(error)
                else:
                    self._waits_for = self._coroutine.send(sent)
        except StopIteration as done:
            message: Message = done.value
            return message


def _piece(message: Message, size: int, limit: int) -> bytes:
    """The next piece of a body, of which so many bytes are there."""
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    piece: bytes = message.get("body", b"")
    if size + len(piece) > limit:
        raise _too_large(limit)
    return piece


def _too_large(limit: int) -> Problem:
    return Problem(
        "too-large",
        f"the body has more than {limit:,} bytes",
        remedy="send less at once, or raise the limit of the service",
        headers={"connection": "close"},
    )
