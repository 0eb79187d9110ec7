"""The socket that a service listens at: taken before anything else, so that a port in use is said at once."""

from __future__ import annotations

import socket

_WAITING = 2_048  # connections that may wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; a `ValueError` where that cannot be."""
    try:
        [family, kind, protocol, _, address] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot(host, port, error) from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_WAITING)
    except OSError as error:
        found.close()
        raise _cannot(host, port, error) from error
    return found


def _cannot(host: str, port: int, error: OSError) -> ValueError:
    return ValueError(
        f"cannot listen at {host}, port {port} ({error.strerror or error}); give another --port or --host"
    )


def address_of(listener: socket.socket) -> str:
    """Where a socket listens, for a browser.

    >>> with listen("127.0.0.1", 0) as listener:
    ...     address_of(listener).startswith("http://127.0.0.1:")
    True
    """
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
