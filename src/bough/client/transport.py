"""What `Client` and `AsyncClient` share of httpx: the arguments of a request, and what its exceptions mean."""

from __future__ import annotations

from typing import Any

import httpx

from bough.client.errors import AnswerError, ServiceConnectionError, ServiceTimeoutError
from bough.client.limits import CONNECTIONS, KEEP_ALIVE
from bough.client.retrying import Failure, Send
from bough.client.settings import Settings

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


def limits() -> httpx.Limits:
    """How many connections there are, and how long they are kept."""
    return httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEEP_ALIVE)


def arguments(send: Send, settings: Settings) -> dict[str, Any]:
    """What `httpx.Client.stream` takes."""
    call = send.call
    return {
        "method": call.method,
        "url": settings.address(call),
        "headers": settings.headers(call),
        "content": call.content,
        "params": call.query or None,
        "timeout": send.timeout,
    }


def failure(error: httpx.RequestError, send: Send, settings: Settings) -> Failure:
    """What one of httpx's exceptions means."""
    path = f"{send.call.method} {settings.address(send.call)}"
    why = str(error) or type(error).__name__
    found: ServiceTimeoutError | ServiceConnectionError | AnswerError
    if isinstance(error, httpx.TimeoutException):
        found = ServiceTimeoutError(f"{path} was not answered within {send.timeout:.3g} s ({type(error).__name__})")
    elif isinstance(error, httpx.TransportError):
        found = ServiceConnectionError(f"{path} was not answered: {why}", remedy="see whether the service runs there")
    else:
        found = AnswerError(f"the answer to {path} cannot be read: {why}")
    found.__cause__ = error
    return Failure(found, may_have_arrived=not isinstance(error, _NEVER_SENT))
