"""Starting a service: the log, the first key, the experiment, and the server around it."""

from __future__ import annotations

import gc
import logging
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from bough.service.access import Events, ServerLines
from bough.service.app import App
from bough.service.auth import SCOPES, make_key
from bough.service.changes import first_model
from bough.service.connections import connections
from bough.service.listening import address_of, listen
from bough.service.log import open_log
from bough.service.log.base import Log
from bough.service.records import ChangeRow
from bough.service.service import Service
from bough.service.settings import Settings

_KEPT_OPEN = 75  # seconds without a request; balancers keep connections for 60
_SWITCH_INTERVAL = 0.001  # seconds: Python's 5 ms are long beside a request
_OTHER_FILES = 256  # that the process has open beside its connections


class Started(NamedTuple):
    """What a service says when it has begun to listen."""

    address: str
    key: str | None
    """The first key, which is shown this once; None where there were keys already."""
    experiment: str | None


class _Server(uvicorn.Server):
    """A server that says for a while that it is about to stop, so that a balancer can notice."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, at once where nobody is to notice, or where it is asked for a second time."""
        seconds = self._service.settings.drain_seconds
        if self._service.is_draining or not seconds:
            super().handle_exit(sig, frame)
            return
        self._service.is_draining = True
        timer = threading.Timer(seconds, super().handle_exit, (sig, frame))
        timer.daemon = True
        timer.start()


def first_key(log: Log, now: float) -> str | None:
    """A key with all scopes, where there is none yet; its token, which is shown this once."""
    if log.keys():
        return None
    token, row = make_key(SCOPES, at=now)
    with log.transaction() as transaction:
        transaction.add_key(row)
        transaction.add_change(ChangeRow(0, now, "key", "start", {"created": row.id}))
    return token


def serve(
    settings: Settings,
    *,
    data: Path | None = None,
    database: str | None = None,
    model: Path | None = None,
    experiment: str | None = None,
    demo: bool = False,
    say: Callable[[Started], object] = print,
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until told to stop; `tell` gets a line when it is ready, and before that when it has to compile code."""
    with listen(settings.host, settings.port) as listener:
        _serve(listener, settings, data, database, model, experiment, demo, say, tell)


def _serve(
    listener: socket.socket,
    settings: Settings,
    data: Path | None,
    database: str | None,
    model: Path | None,
    experiment: str | None,
    demo: bool,
    say: Callable[[Started], object],
    tell: Callable[[str], object],
) -> None:
    log = open_log(data, database, exclusive=True)
    try:
        if demo:
            from bough.service.demo import demo_model
            from bough.service.files import model_bytes

            experiment = experiment or "demo"
            start = None if model is not None else model_bytes(demo_model())
        else:
            start = None
        if model is not None:
            start = model.read_bytes()
        if start is not None or experiment is not None:
            first_model(log, experiment, start, time.time())
        token = first_key(log, time.time())  # last: one that is not shown is lost
    except BaseException:
        log.close()
        raise
    events = Events(quiet=settings.quiet)
    service = Service(log, settings, events, public=experiment if demo else None, tell=tell)
    if demo:
        from bough.service.visits import visit

        assert experiment is not None
        service.also.append(partial(visit, service, experiment))
    server = server_of(App(service), settings, events)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.freeze()
    say(Started(address_of(listener), token, experiment))
    server.run([listener])
    if not server.started:
        raise ValueError("the service could not start; its log on the standard error says why")


def server_of(app: App, settings: Settings, events: Events) -> uvicorn.Server:
    """The web server around an application."""
    _allow_files(settings.most_connections)
    lines = logging.getLogger("uvicorn.error")
    lines.handlers, lines.propagate = [ServerLines(events)], False
    application: Any = app
    if settings.cors:
        from starlette.middleware.cors import CORSMiddleware

        application = CORSMiddleware(
            application,
            allow_origins=list(settings.cors),
            allow_methods=["*"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["retry-after", "x-request-id"],
        )
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http=connections(settings, app.refuse),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEPT_OPEN,
        timeout_graceful_shutdown=int(settings.grace_seconds),
    )
    return _Server(config, app.service)


def _allow_files(connections: int) -> None:
    """Have the process be allowed as many open files as there may be connections, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
