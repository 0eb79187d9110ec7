"""A connection to a service, with as little around it as possible: it neither retries nor hides anything."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

PATIENCE = 60.0  # seconds, after which something that should have happened has not


class GoneError(Exception):
    """The service went away before it answered: what was asked for may have been done."""


class Answer(NamedTuple):
    """What a service answered."""

    status: int
    body: Any
    """What JSON says, or bytes where it is something else."""
    headers: dict[str, str]

    @property
    def code(self) -> str:
        """The code of a problem; empty where it is none."""
        problem = self.body.get("type", "") if isinstance(self.body, dict) else ""
        return str(problem).rpartition(":")[2]


class Connection:
    """One connection, opened when it is needed, and again after the service was away."""

    def __init__(self, port: int, token: str = "") -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Ask for something; `body` is JSON, or bytes that go as they are."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(PATIENCE):
                if self._streams is None:
                    self._streams = await asyncio.open_connection("127.0.0.1", self._port)
                reader, writer = self._streams
                writer.write(self._head(method, path, len(data)) + data)
                return await _answer(reader)
        except TimeoutError:
            raise AssertionError(f"no answer to {method} {path} within {PATIENCE} seconds") from None
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise GoneError(str(error)) from error

    def _head(self, method: str, path: str, length: int) -> bytes:
        key = f"authorization: Bearer {self._token}\r\n" if self._token else ""
        return f"{method} {path} HTTP/1.1\r\nhost: test\r\n{key}content-length: {length}\r\n\r\n".encode()

    async def close(self) -> None:
        """Close it; it is opened again where it is needed."""
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:  # it was closed from the other side
                return

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = b""
    is_json = "json" in headers.get("content-type", "") and "ndjson" not in headers["content-type"]
    return Answer(int(head[0].split()[1]), json.loads(body) if is_json else body, headers)


def ask(port: int, token: str, method: str, path: str, body: Any = None) -> Answer:
    """One request, for who does not run a loop."""

    async def once() -> Answer:
        async with Connection(port, token) as connection:
            return await connection.call(method, path, body)

    return asyncio.run(once())
