"""Clients of the decision service: `Client` and `AsyncClient`. They need httpx, and nothing else of bough.

import bough.client

client = bough.client.Client("http://127.0.0.1:8000", experiment="shop", key="...")
decided = client.decide()
client.reward(decided, 1.0)
"""

from __future__ import annotations

try:
    import httpx as _httpx  # noqa: F401
except ModuleNotFoundError as error:
    from bough._extras import install

    raise ModuleNotFoundError(f"bough.client needs httpx; {install('client')}", name=error.name) from error

from bough.client.answers import Accepted, Decided, Node, Rewarded, Stated
from bough.client.async_client import AsyncBatch, AsyncClient
from bough.client.client import Batch, Client
from bough.client.errors import (
    AnswerError,
    ConflictError,
    InternalError,
    InvalidValueError,
    NoKeyError,
    NotFoundError,
    RewardsError,
    RouteError,
    SameIdError,
    ServiceConnectionError,
    ServiceError,
    ServiceTimeoutError,
    TooLargeError,
    TooManyRequestsError,
    UnavailableError,
    UnknownActionError,
    UnknownDecisionError,
    UnknownExperimentError,
    UnknownNodeError,
    WrongScopeError,
    WrongStateError,
)

__all__ = [
    "Accepted",
    "AnswerError",
    "AsyncBatch",
    "AsyncClient",
    "Batch",
    "Client",
    "ConflictError",
    "Decided",
    "InternalError",
    "InvalidValueError",
    "NoKeyError",
    "Node",
    "NotFoundError",
    "Rewarded",
    "RewardsError",
    "RouteError",
    "SameIdError",
    "ServiceConnectionError",
    "ServiceError",
    "ServiceTimeoutError",
    "Stated",
    "TooLargeError",
    "TooManyRequestsError",
    "UnavailableError",
    "UnknownActionError",
    "UnknownDecisionError",
    "UnknownExperimentError",
    "UnknownNodeError",
    "WrongScopeError",
    "WrongStateError",
]
