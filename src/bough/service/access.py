"""Structured logs: one line of JSON per request and per event, to standard error.

No context, body or token is ever in them. A request is named by its route, not by its path, which has the ids of
decisions in it.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, BinaryIO

import msgspec

_DELAY = 0.2  # seconds that a line may wait for others
_LARGE = 1 << 16  # bytes that may wait
_LONGEST = 20_000  # characters of a traceback


class LineWriter:
    """Lines for a stream, written some at a time: when the loop has a moment, when there are many, and at exit.

    >>> import io
    >>> stream = io.BytesIO()
    >>> writer = LineWriter(stream)
    >>> writer.write(b"one"), writer.flush(), stream.getvalue()
    (None, None, b'one\\n')
    """

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = sys.stderr.buffer if stream is None else stream
        self._lines: list[bytes] = []
        self._size = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that has been asked to flush; None where none has."""
        self._lock = threading.Lock()
        atexit.register(self.flush)

    def write(self, line: bytes) -> None:
        """Write a line, soon; from any thread."""
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
        if self._loop is None or self._size > _LARGE:
            self._see_to_it()

    def _see_to_it(self) -> None:
        """Have the loop flush soon; where there is no loop in this thread, or much waits, do it now."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if self._size > _LARGE:
            self.flush()
        else:
            self._loop = loop
            loop.call_later(_DELAY, self.flush)

    def flush(self) -> None:
        """Write what waits. Where the stream is gone, lines are dropped: the service goes on without."""
        with self._lock:
            lines, self._lines, self._size, self._loop = self._lines, [], 0, None
            if not lines:
                return
            try:
                self._stream.write(b"\n".join(lines) + b"\n")
                self._stream.flush()
            except (OSError, ValueError):  # a broken pipe; a closed file
                pass

    def close(self) -> None:
        """Write what waits, and be forgotten."""
        self.flush()
        atexit.unregister(self.flush)


class _Request(msgspec.Struct, omit_defaults=True):
    """The line of a request."""

    at: str
    request: str
    method: str
    route: str
    status: int
    ms: float
    bytes: int
    experiment: str | None = None
    key: str | None = None


class AccessLog:
    """One line per request.

    >>> import io
    >>> stream = io.BytesIO()
    >>> log = AccessLog(LineWriter(stream), now=lambda: 0.5)
    >>> log.request("3f-1", "POST", "decide", 200, 0.0012, 85, "shop", "k1")
    >>> log.lines.flush()
    >>> print(stream.getvalue().decode(), end="")
    {"at":"1970-01-01T00:00:00.500Z","request":"3f-1","method":"POST","route":"decide","status":200,"ms":1.2,"bytes":85,"experiment":"shop","key":"k1"}
    """

    def __init__(self, lines: LineWriter, quiet: bool = False, now: Callable[[], float] = time.time) -> None:
        self.lines, self.quiet, self._now = lines, quiet, now
        self._encode = msgspec.json.Encoder().encode
        self._second, self._said = -1, ""

    def request(
        self,
        id: str,
        method: str,
        route: str,
        status: int,
        seconds: float,
        size: int,
        experiment: str | None = None,
        key: str | None = None,
    ) -> None:
        """Write the line of a request that was answered: the name of its route, the seconds and bytes of the answer."""
        if self.quiet:
            return
        now = self._now()
        second = int(now)
        if second != self._second:  # the rest of the time is the same for all requests of a second
            self._second, self._said = second, _iso(second)[:-1]
        at = f"{self._said}.{int((now - second) * 1e3):03d}Z"
        line = _Request(at, id, method, route, status, round(seconds * 1e3, 3), size, experiment, key)
        self.lines.write(self._encode(line))


class Events:
    """One line per thing that happens to the service itself: starts, snapshots, refits, failures.

    >>> import io
    >>> stream = io.BytesIO()
    >>> events = Events(LineWriter(stream), now=lambda: 0.0)
    >>> events.say("snapshot", experiment="shop", seq=12)
    >>> print(stream.getvalue().decode(), end="")
    {"at":"1970-01-01T00:00:00Z","event":"snapshot","experiment":"shop","seq":12}
    """

    def __init__(self, lines: LineWriter | None = None, now: Callable[[], float] = time.time) -> None:
        self.lines, self._now = LineWriter() if lines is None else lines, now

    def say(self, event: str, **fields: Any) -> None:
        """Write the line of an event."""
        line = {"at": _iso(self._now()), "event": event, **fields}
        self.lines.write(msgspec.json.encode(line, enc_hook=str))

    def failed(self, message: str, error: BaseException, *, request: str | None = None) -> None:
        """Write the line of an error, with its traceback.

        An error that came of a request goes by the id of that; what such errors say is left out, since it may name a
        context.
        """
        fields = {} if request is None else {"request": request}
        trace = "".join(traceback.format_exception(error)) if request is None else _places(error)
        self.say("error", message=message, error=type(error).__qualname__, traceback=trace[-_LONGEST:], **fields)


def _places(error: BaseException) -> str:
    """A traceback without what the errors in it say: the places and the types, the first error first."""
    parts: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        parts.append("".join(traceback.format_tb(one.__traceback__)) + type(one).__qualname__ + "\n")
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return "then\n".join(reversed(parts))


def _iso(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")


_PROCESS = secrets.token_hex(4)
_COUNT = itertools.count(1)


def request_id() -> str:
    """An id for a request that no other has, in any process."""
    return f"{_PROCESS}-{next(_COUNT):x}"
