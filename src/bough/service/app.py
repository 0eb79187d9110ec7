"""The web side: plain ASGI around the service. A request is found, allowed, read, handled and answered here."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

import msgspec

from bough.dashboard.page import SERVED_POLICY, File, served_files
from bough.policies.decision import new_id
from bough.service.auth import PUBLIC
from bough.service.exports import Stream
from bough.service.handlers import HANDLERS, Call, Reply
from bough.service.limits import ClientGoneError, RateLimits, body_limits, read_body
from bough.service.log.base import LogError
from bough.service.problems import Problem
from bough.service.router import find, read_query
from bough.service.routes import ROUTES, Route
from bough.service.schema import encoded
from bough.service.service import Service
from bough.service.wording import wrong_value

Scope = MutableMapping[str, Any]
Receive = Callable[[], Coroutine[Any, Any, MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_PROBLEM = (b"content-type", b"application/problem+json")
_SAFE = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
"""What every answer has: it is for the one who asked, and is what it says that it is."""
_REQUEST_ID = re.compile(rb"[!-~]{1,128}").fullmatch


def _decoder(route: Route) -> Callable[[bytes], Any] | None:
    if route.body is None or route.body is bytes:
        return None
    return msgspec.json.Decoder(route.body).decode


_PROBES = ("health", "ready", "metrics")
"""What machines ask all the time; that a service is not ready yet is no failure."""
_PAGE = {address.encode(): file for address, file in served_files().items()}
_PAGE_HEADERS = (
    (b"content-security-policy", SERVED_POLICY.encode()),
    (b"cache-control", b"no-cache"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_DECODERS = {name: _decoder(route) for name, route in ROUTES.items()}
_ENCODE = msgspec.json.Encoder().encode


class App:
    """An ASGI application."""

    def __init__(self, service: Service) -> None:
        self.service = service
        settings = service.settings
        self._rates = RateLimits(settings.rate, settings.burst)
        self._largest, self._body_seconds = body_limits(settings), settings.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.service.start()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        service = self.service
        authorization: bytes | None = None
        length: bytes | None = None
        id = ""
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"content-length":
                length = value
            elif name == b"x-request-id" and _REQUEST_ID(value):
                id = value.decode()
        id = id or new_id()
        route: Route | None = None
        key_id: str | None = None
        code: str | None = None
        experiment: str | None = None
        status, headers, payload = 500, [_JSON], b""
        stream: Stream | None = None
        first = b""
        try:
            page = _PAGE.get(scope["raw_path"])
            if page is not None and scope["method"] in ("GET", "HEAD"):
                await self._send_page(page, scope["method"], send)
                return
            route, parameters = find(scope["method"], scope["raw_path"])
            experiment = parameters.get("experiment")
            if route.scope is not None:
                if authorization is None and _is_public(service, route, experiment):
                    key = PUBLIC
                else:
                    key = service.keys.check(authorization, route.scope, experiment)
                key_id = key.id
                self._rates.take(key)
            body: Any = None
            if route.body is not None:
                body = await read_body(receive, length, self._largest[route.name], self._body_seconds)
                decode = _DECODERS[route.name]
                body = body if decode is None else _decoded(decode, body, route.body)
            query = None if route.query is None else read_query(route.query, scope["query_string"])
            found = None
            if experiment is not None and route.name != "put_experiment":
                found = await service.find(experiment)
            reply = await HANDLERS[route.name](Call(service, parameters, found, body, query, key_id or ""))
            if isinstance(reply, Stream):
                first = await anext(reply.parts, b"")  # what fails at once can still be answered as a problem
                status, headers, stream = 200, [(b"content-type", reply.media.encode())], reply
            elif isinstance(reply, Reply):
                status, headers = reply.status, [(b"content-type", reply.media.encode())] if reply.media else []
                payload = reply.body if isinstance(reply.body, bytes) else _ENCODE(reply.body)
            else:
                status, payload = 200, _ENCODE(reply)
        except Problem as problem:
            code = problem.code
            status, headers, payload = self._problem(problem)
        except ClientGoneError:  # nobody waits for an answer
            return
        except LogError as error:
            service.events.failed("the log could not be read", error, request_id=id)
            code = "not-written"
            status, headers, payload = self._problem(
                Problem(code, "the log cannot be reached; try again in a second", retry_after=1.0)
            )
        except Exception as error:
            service.events.failed("a request failed", error, request_id=id)
            code = "internal"
            status, headers, payload = self._problem(
                Problem(code, f"the service failed; look for the request {id} in its log")
            )
        headers += [(b"x-request-id", id.encode()), *_SAFE]
        sent = 0
        if stream is None:
            if status != 204:
                headers += [(b"content-length", b"%d" % len(payload))]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            sent = len(payload)
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else payload})
        else:
            headers += [(b"content-disposition", f'attachment; filename="{stream.name}"'.encode())]
            try:
                sent = await _stream(send, status, headers, first, stream.parts)
            except Exception as error:  # the server closes what is not complete, so that the client can tell
                service.events.failed("an answer could not be sent to its end", error, request_id=id)
                code = "internal"
        seconds = time.perf_counter() - began
        name = "" if route is None else route.name
        service.metrics.answered(name, status, seconds, code)
        if name not in _PROBES:
            service.recent.note(status)
        service.events.request(id, scope["method"], name, experiment, status, seconds, sent, key_id)

    async def _send_page(self, page: File, method: str, send: Send) -> None:
        """Send a file of the dashboard, which needs no key: it has no numbers in it."""
        headers = [
            (b"content-type", page.media.encode()),
            (b"content-length", b"%d" % len(page.data)),
            *_PAGE_HEADERS,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else page.data})

    async def refuse(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer, as an ASGI application, where there are too many connections."""
        problem = Problem(
            "overloaded",
            "too many connections are open; try again in a second",
            retry_after=1.0,
            headers={"connection": "close"},
        )
        status, headers, payload = self._problem(problem)
        headers += [(b"content-length", b"%d" % len(payload)), *_SAFE]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else payload})
        self.service.metrics.answered("", status, 0.0, problem.code)

    def _problem(self, problem: Problem) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        headers = [_PROBLEM]
        headers += [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        return problem.status, headers, encoded(problem.to_dict())


def _is_public(service: Service, route: Route, experiment: str | None) -> bool:
    """Whether this may be read without a key: of one experiment, if at all, everything but its log."""
    if service.public is None or route.scope != "read" or route.method != "GET" or route.name == "export":
        return False
    return experiment == service.public or route.name == "experiments"


def _decoded(decode: Callable[[bytes], Any], body: bytes, of: Any) -> Any:
    if not body.strip():
        raise Problem("invalid-body", "no body was sent; send a JSON object, at least {}")
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        wrong, remedy = wrong_value(error, of, "see /openapi.json for what it takes")
        raise Problem("invalid-body", f"the body is not what this route takes: {wrong}", remedy=remedy) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem("invalid-body", f"the body is not JSON: {error}", remedy="send a JSON object") from None
    except RecursionError:
        raise Problem("invalid-body", "the body is nested too deeply", remedy="send a flat JSON object") from None


async def _stream(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], first: bytes, parts: AsyncIterator[bytes]
) -> int:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    sent = len(first)
    async for part in parts:
        sent += len(part)
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return sent
