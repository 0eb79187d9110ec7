"""Connections to the service: how long a client may keep one without asking, and without taking its answer.

uvicorn waits for ever for the head of a request, keeps all of it however long it gets, and waits for ever until an
answer is taken. A few thousand clients that say nothing would keep everybody else out.
"""

from __future__ import annotations

import fcntl
import sys
import termios
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bough.service.schema import encoded
from bough.service.settings import Settings

_HEAD_BYTES = 1 << 16  # of a head that goes on; the first piece of it may be somewhat longer


class Patience(NamedTuple):
    """What all connections of a server have in common."""

    most: int
    """Connections that may be open."""
    head_seconds: float
    answer_seconds: float
    refuse: Any
    """The ASGI application that answers where there are too many."""
    waiting: dict[Connection, None]
    """Those of which a head is waited for, the one that takes longest first."""


def connections(settings: Settings, refuse: Any) -> Callable[..., Connection]:
    """What makes the connections of one server; `refuse`, an ASGI application, answers where there are too many."""
    patience = Patience(settings.most_connections, settings.head_seconds, settings.answer_seconds, refuse, {})

    def made(**given: Any) -> Connection:
        return Connection(patience, **given)

    return made


class Connection(HttpToolsProtocol):
    """A connection that is closed where its client takes too long to ask, or to take its answer."""

    def __init__(self, patience: Patience, **given: Any) -> None:
        super().__init__(**given)
        self._patience = patience
        self._in_head = False
        self._head_size = 0
        self._until_head: TimerHandle | None = None
        self._until_taken: TimerHandle | None = None
        self._not_taken = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._patience.most:
            self._make_room()
        self._wait_for_head()

    def _make_room(self) -> None:
        """Have the client go who has taken longest to ask for something; where there is none, this one is refused."""
        longest = next(iter(self._patience.waiting), None)
        if longest is None:
            self.app = self._patience.refuse
        else:
            longest.transport.abort()
            longest._stop_waiting()

    # -- what is asked for -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > _HEAD_BYTES:
                self._refuse(431, f"the head of the request has more than {_HEAD_BYTES:,} bytes", "send fewer headers")
                return
        if self._until_head is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size = True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._until_head is not None:
            self._stop_waiting()
        super().on_headers_complete()

    def _wait_for_head(self) -> None:
        if not self.transport.is_closing():
            self._until_head = self.loop.call_later(self._patience.head_seconds, self._waited_for_head)
            self._patience.waiting[self] = None

    def _stop_waiting(self) -> None:
        if self._until_head is not None:
            self._until_head.cancel()
            self._until_head = None
        self._patience.waiting.pop(self, None)

    def _waited_for_head(self) -> None:
        if self._in_head:
            seconds = self._patience.head_seconds
            self._refuse(408, f"the head of the request did not arrive within {seconds:g} seconds", "send it faster")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not a request, in the shape of all problems."""
        self._refuse(400, msg, "send a request of HTTP/1.1")

    def _refuse(self, status: int, detail: str, remedy: str) -> None:
        """Answer a problem to what has not become a request, and close."""
        if self.transport.is_closing():
            return
        title = HTTPStatus(status).phrase
        body = encoded({"type": "about:blank", "title": title, "status": status, "detail": detail, "remedy": remedy})
        head = f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    # -- what is answered ------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_until_taken()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_waiting_until_taken()

    def _left(self) -> int:
        """Bytes that the client has not taken yet: those that wait here, and those that wait in the system."""
        left: int = self.transport.get_write_buffer_size()
        with suppress(OSError):  # a system that does not tell
            number = self.transport.get_extra_info("socket").fileno()
            left += int.from_bytes(fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        return left

    def _wait_until_taken(self) -> None:
        self._not_taken = self._left()
        self._until_taken = self.loop.call_later(self._patience.answer_seconds, self._waited_until_taken)

    def _stop_waiting_until_taken(self) -> None:
        if self._until_taken is not None:
            self._until_taken.cancel()
            self._until_taken = None

    def _waited_until_taken(self) -> None:
        if self._left() < self._not_taken:  # slow, and honest
            self._wait_until_taken()
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_waiting_until_taken()
        super().connection_lost(exc)
