"""Where a client finds its service: what is given, or what the environment says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import bough
from bough.client import values
from bough.client.call import Call
from bough.client.limits import MOST_RETRIES
from bough.client.retrying import Patience

URL = "BOUGH_URL"
KEY = "BOUGH_KEY"
EXPERIMENT = "BOUGH_EXPERIMENT"

_KEY = re.compile(r"[!-~]+")  # what a header may have, without spaces


@dataclass(frozen=True)
class Settings:
    """The address, the experiment and the key of a client.

    >>> Settings("http://127.0.0.1:8000", "shop", key="secret")
    Settings(url='http://127.0.0.1:8000', experiment='shop')
    """

    url: str
    experiment: str | None
    key: str | None = field(repr=False)

    @classmethod
    def of(cls, url: str | None, experiment: str | None, key: str | None) -> Settings:
        """What was given; otherwise what the environment says."""
        name = _given(experiment, EXPERIMENT)
        name = None if name is None else values.experiment(name)
        return cls(_address(_given(url, URL)), name, _key(_given(key, KEY)))

    def address(self, call: Call[Any]) -> str:
        """Where a call goes.

        >>> Settings("http://127.0.0.1:8000", "shop", None).address(Call("GET", "top", read=print))
        'http://127.0.0.1:8000/v1/shop/top'
        """
        if call.path.startswith("/"):
            return self.url + call.path
        if self.experiment is None:
            raise ValueError(f"no experiment was given; give experiment= to the client, or set {EXPERIMENT}")
        return f"{self.url}/v1/{self.experiment}/{call.path}".rstrip("/")

    def headers(self, call: Call[Any]) -> dict[str, str]:
        """What a call is sent with."""
        found = {"accept": "application/json, */*;q=0.5", "user-agent": f"bough/{bough.__version__}"}
        if self.key is not None:
            found["authorization"] = f"Bearer {self.key}"
        if call.content is not None:
            found["content-type"] = call.content_type
        return found


def patience(timeout: Any, retries: Any, deadline: Any, jitter: Any, clock: Callable[[], float]) -> Patience:
    """How long and how often to try, with everything checked; no deadline is one that never comes."""
    return Patience(
        timeout=values.positive(timeout, "timeout"),
        retries=values.whole(retries, "retries", 0, MOST_RETRIES),
        deadline=float("inf") if deadline is None else values.positive(deadline, "deadline"),
        jitter=jitter,
        clock=clock,
    )


def _given(value: Any, variable: str) -> Any:
    return os.environ.get(variable) or None if value is None else value


def _address(url: Any) -> str:
    if url is None:
        raise ValueError(f"no url was given; give that of the service, such as 'http://127.0.0.1:8000', or set {URL}")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        _ = parts.port
    except (AttributeError, TypeError, ValueError):
        sound = False
    if not sound or not isinstance(url, str):
        raise ValueError(f"url is {url!r:.100}; give one such as 'http://127.0.0.1:8000'")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the url has a user's name or a password in it; give the key as key=")
    return url.rstrip("/")


def _key(key: Any) -> str | None:
    if key is None or (isinstance(key, str) and _KEY.fullmatch(key)):
        return key
    # the message does not show it
    raise ValueError("the key is no key; give the text that `bough key create` printed, without spaces")
