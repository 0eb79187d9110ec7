"""A server of its own for each test, and each kind of client in turn."""

import asyncio
import inspect
import ssl

import httpx
import pytest

from bough.client import AsyncClient, Client
from scripted_server import scripted_server

CERTIFICATES = ssl.create_default_context()  # to read them takes longer than most of the tests


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("BOUGH_URL", "BOUGH_KEY", "BOUGH_EXPERIMENT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with scripted_server() as running:
        yield running


class Asking:
    """One kind of client, which notes its waits in place of waiting, the whole of each."""

    def __init__(self, kind, url):
        self.kind, self.url = kind, url
        self.waits = []

    def __call__(self, work, jitter=1.0, **options):
        """What a piece of work with a new client returns, or raises."""
        given = {"experiment": "shop", "key": "secret", "timeout": 10.0, "jitter": lambda: jitter, **options}
        if self.kind == "sync":
            with (
                httpx.Client(verify=CERTIFICATES) as http,
                Client(self.url, http=http, sleep=self.waits.append, **given) as client,
            ):
                return work(client)
        return asyncio.run(self._awaited(work, given))

    async def _awaited(self, work, given):
        async def sleep(seconds):
            self.waits.append(seconds)

        async with (
            httpx.AsyncClient(verify=CERTIFICATES) as http,
            AsyncClient(self.url, http=http, sleep=sleep, **given) as client,
        ):
            found = work(client)
            return await found if inspect.isawaitable(found) else found


@pytest.fixture(params=["sync", "async"])
def ask(request, server):
    return Asking(request.param, server.url)
