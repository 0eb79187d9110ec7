"""When a request is sent again, and how long after: decided here, and done by whoever runs the steps.

`exchange` is a generator. It yields what is to be done, a request to send or a time to wait, and is sent what came of
it; it returns what the caller gets, or raises. So `Client` and `AsyncClient` share it, and tests
need no clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bough.client import calls
from bough.client.answers import Rewarded
from bough.client.call import Call
from bough.client.errors import ServiceError, response_error
from bough.client.limits import (
    FIRST_DELAY,
    LONG_TIMEOUT,
    LONGEST_DELAY,
    LONGEST_RETRY_AFTER,
    REWARDS_PER_REQUEST,
    SHORTEST_TIMEOUT,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_TEMPORARY = frozenset({408, 429, 502, 503, 504})
_STARTING = "starting"
_NOT_DONE = frozenset({"too-slow", "too-fast", "not-replayed", "overloaded", _STARTING})
"""The codes of answers that say that nothing was done."""
_LASTING = frozenset({"no-model"})
"""The codes of what does not pass by itself, whatever its status."""


class Send(NamedTuple):
    """Send a request, and wait for its answer for so many seconds."""

    call: Call[Any]
    timeout: float


class Wait(NamedTuple):
    """Do nothing for so many seconds."""

    seconds: float


class Failure(NamedTuple):
    """Why there is no answer."""

    error: ServiceError
    may_have_arrived: bool
    """Whether the service may have handled the request all the same."""


Steps = Generator[Send | Wait, "httpx.Response | Failure | None", T]
"""What is to be done, one step at a time; a `Send` is answered with its response or failure, a `Wait` with None."""


@dataclass(frozen=True)
class Patience:
    """How long and how often a client tries.

    The most that it waits before the next try doubles with each; how much of it is random (full jitter), so that many
    clients do not come back at once.

    >>> patience = Patience(timeout=2.0, retries=4, deadline=30.0, jitter=lambda: 1.0, clock=lambda: 0.0)
    >>> [patience.delay(tries) for tries in (1, 2, 3, 9)]
    [0.1, 0.2, 0.4, 5.0]
    >>> patience.delay(1, asked=2.0)
    2.1
    """

    timeout: float
    retries: int
    deadline: float
    jitter: Callable[[], float]
    """A random number from 0 to 1, another one each time."""
    clock: Callable[[], float]

    def delay(self, tries: int, asked: float | None = None) -> float:
        """How long to wait after so many tries, where the service asked for so many seconds."""
        return (asked or 0.0) + self.jitter() * min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** (tries - 1))


def exchange(call: Call[T], patience: Patience) -> Steps[T]:
    """The steps of one request, until it is answered or given up."""
    timeout = max(patience.timeout, LONG_TIMEOUT) if call.is_long else patience.timeout
    ends = patience.clock() + (max(patience.deadline, LONG_TIMEOUT) if call.is_long else patience.deadline)
    early = 0  # tries that came while the service started: for those there is time, and no number
    try:
        for tries in itertools.count(1):
            found = yield Send(call, max(SHORTEST_TIMEOUT, min(timeout, ends - patience.clock())))
            assert found is not None, "a request was sent, and nothing came of it"
            if isinstance(found, Failure):
                error, again = found.error, call.is_repeatable or not found.may_have_arrived
            elif found.is_success or found.status_code in call.good:
                return call.read(found)
            else:
                error = response_error(found)
                again = _is_passing(error) and (call.is_repeatable or error.code in _NOT_DONE)
            error.tries = tries
            early += error.code == _STARTING and patience.retries > 0
            delay = patience.delay(tries, error.retry_after)
            too_long = (error.retry_after or 0.0) > LONGEST_RETRY_AFTER or patience.clock() + delay >= ends
            if not again or tries - early > patience.retries or too_long:
                raise error
            yield Wait(delay)
        raise AssertionError("it is tried until it is answered or given up")
    finally:
        if call.into is not None:
            call.into.unlink(missing_ok=True)


def _is_passing(error: ServiceError) -> bool:
    """Whether the same request may be answered otherwise a little later: the service says so, or its status does."""
    return error.retry_after is not None or (error.status in _TEMPORARY and error.code not in _LASTING)


def rewards_in_parts(rows: Any, patience: Patience) -> Steps[list[Rewarded | ServiceError]]:
    """The steps of any number of rewards, in requests of a size that the service takes."""
    checked = calls.reward_rows(rows)
    found: list[Rewarded | ServiceError] = []
    for begin in range(0, len(checked), REWARDS_PER_REQUEST):
        found += yield from exchange(calls.rewards(checked[begin : begin + REWARDS_PER_REQUEST]), patience)
    return found
