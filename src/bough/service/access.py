"""Structured logs: one line of JSON per request and per event, to standard error.

No context, body or token is ever in them. A request is named by its route, not by its path, which has the ids of
decisions in it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
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


class Events:
    """The log of a service: a line per request, unless it is quiet, and one per event of the service itself.

    >>> import io
    >>> stream = io.BytesIO()
    >>> events = Events(stream, now=lambda: 0.5)
    >>> events.say("snapshot", experiment="shop", seq=12)
    >>> events.request("r1", "GET", "health", None, 200, 0.0012, 85)
    >>> print(stream.getvalue().decode(), end="")
    {"at":"1970-01-01T00:00:00.500Z","event":"snapshot","experiment":"shop","seq":12}
    {"at":"1970-01-01T00:00:00.500Z","request":"r1","method":"GET","route":"health","status":200,"ms":1.2,"bytes":85}
    """

    def __init__(
        self, stream: BinaryIO | None = None, quiet: bool = False, now: Callable[[], float] = time.time
    ) -> None:
        self._lines, self._quiet, self._now = LineWriter(stream), quiet, now
        self._encode = msgspec.json.Encoder(enc_hook=str).encode
        self._second, self._said = -1, ""

    def request(
        self,
        id: str,
        method: str,
        route: str,
        experiment: str | None,
        status: int,
        seconds: float,
        size: int,
        key: str | None = None,
    ) -> None:
        """Write the line of a request that was answered: how long that took, and how many bytes it were."""
        if not self._quiet:
            line = _Request(self._at(), id, method, route, status, round(seconds * 1e3, 3), size, experiment, key)
            self._lines.write(self._encode(line))

    def say(self, event: str, **fields: Any) -> None:
        """Write the line of something else that happened."""
        self._lines.write(self._encode({"at": self._at(), "event": event, **fields}))

    def failed(self, message: str, error: BaseException, *, request_id: str | None = None) -> None:
        """Write the line of an error, with its traceback.

        An error that came of a request goes by the id of that, empty where it is not known; what such errors say is
        left out, since it may name a context.
        """
        fields = {"request": request_id} if request_id else {}
        trace = "".join(traceback.format_exception(error)) if request_id is None else _places(error)
        self.say("error", message=message, error=type(error).__qualname__, traceback=trace[-_LONGEST:], **fields)

    def flush(self) -> None:
        """Write what waits."""
        self._lines.flush()

    def close(self) -> None:
        """Write what waits, and say no more."""
        self._lines.close()

    def _at(self) -> str:
        now = self._now()
        second = int(now)
        if second != self._second:  # all but the fraction is the same for many lines
            self._said = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second
        return f"{self._said}.{int((now - second) * 1e3):03d}Z"


class ServerLines(logging.Handler):
    """Has what the web server says be lines of the log of the service, without what exceptions in it say.

    >>> import io
    >>> stream = io.BytesIO()
    >>> handler = ServerLines(Events(stream, now=lambda: 0.0))
    >>> handler.handle(logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, "Invalid request.", (), None))
    True
    >>> print(stream.getvalue().decode(), end="")
    {"at":"1970-01-01T00:00:00.000Z","event":"server","level":"warning","message":"Invalid request."}
    """

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of something that the server says."""
        message, error = record.getMessage().strip(), record.exc_info[1] if record.exc_info else None
        if error is None:
            self._events.say("server", level=record.levelname.lower(), message=message)
        else:
            self._events.failed(message, error, request_id="")


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
