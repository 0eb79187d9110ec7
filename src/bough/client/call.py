"""A request as data: what is sent, how its answer is read, and whether it may be sent again."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

JSON = "application/json"
BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request to the service.

    >>> Call("GET", "top", read=lambda response: response.json(), query={"k": 3}).query
    {'k': 3}
    """

    method: str
    path: str
    """Below the experiment's address; with a slash first, below the service's."""
    read: Callable[[httpx.Response], T]
    """What the caller gets of a good answer."""
    content: bytes | None = None
    content_type: str = JSON
    query: dict[str, Any] | None = None
    is_repeatable: bool = True
    """Whether to do it twice is to do it once, so that it may be sent again where it may have been handled."""
    is_long: bool = False
    good: tuple[int, ...] = ()
    """Statuses that are answers too, beside those from 200 to 299."""
    into: Path | None = None
    """The file that a good answer is written into, in place of memory."""


def body(**fields: Any) -> bytes:
    """A body of JSON; what is None is left out.

    >>> body(decision_id="d1", k=None, defer=True)
    b'{"decision_id":"d1","defer":true}'
    """
    return json.dumps(query(**fields), allow_nan=False, separators=(",", ":")).encode()


def query(**fields: Any) -> dict[str, Any]:
    """The fields of a query; what is None is left out."""
    return {name: value for name, value in fields.items() if value is not None}


def described(method: F, make: Callable[..., Any], owner: str) -> F:
    """The method, with the name, the docstring and the arguments of the function that makes its call."""
    signature = inspect.signature(make)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__name__, method.__qualname__, method.__doc__ = make.__name__, f"{owner}.{make.__name__}", make.__doc__
    returned = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    parameters = [this, *signature.parameters.values()]
    # help() and Sphinx show this in place of *args and **kwargs
    method.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    return method
