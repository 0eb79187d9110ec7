"""What goes wrong between a client and the service: a class for each, which is also the library's or Python's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from bough.client.limits import SHOWN

if TYPE_CHECKING:
    import httpx

_PREFIX = "urn:bough:problem:"


class ServiceError(Exception):
    """Whatever goes wrong with a request; its text begins with the request's id, by which the service's log has it.

    >>> error = ServiceError("there is no decision 'd7'", remedy="give the id of one", request_id="7f3a")
    >>> print(error)
    7f3a: there is no decision 'd7'; give the id of one
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        code: str | None = None,
        value: Any = None,
        remedy: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        response: httpx.Response | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """The status of the answer, such as 409; None where there was no answer."""
        self.code = code
        """The service's own word for the problem, such as "same-id"."""
        self.value = value
        """What was wrong, where it is a single value."""
        self.remedy = remedy
        """What would be right."""
        self.request_id = request_id
        self.retry_after = retry_after
        """The seconds to wait that the service asked for."""
        self.response = response
        """The whole answer, an `httpx.Response`; None where there was none, and for one reward of many."""
        self.tries = 1
        """How often the request was sent."""

    def __str__(self) -> str:
        text = str(self.args[0]) if self.args else type(self).__name__
        if self.remedy and self.remedy not in text:
            text = f"{text}; {self.remedy}"
        if self.tries > 1:
            text = f"{text} ({self.tries} tries)"
        return f"{self.request_id}: {text}" if self.request_id else text


class InvalidValueError(ServiceError, ValueError):
    """The service cannot use a value, such as a context of the wrong length."""


class TooLargeError(ServiceError, ValueError):
    """The body is larger than the service takes."""


class UnknownActionError(ServiceError, KeyError):
    """There is no such action."""


class NotFoundError(ServiceError, KeyError):
    """There is no such thing; the classes below say which."""


class UnknownDecisionError(NotFoundError):
    """There is no such decision."""


class UnknownExperimentError(NotFoundError):
    """There is no such experiment."""


class UnknownNodeError(NotFoundError):
    """There is no such node in the tree."""


class RouteError(ServiceError):
    """The address is none of the service's: the url is wrong, or the service of another version."""


class ConflictError(ServiceError, ValueError):
    """The request does not go with what there is."""


class SameIdError(ConflictError):
    """The id was used before, for something else: another context, or another reward."""


class WrongStateError(ConflictError):
    """The decision is not in a state that allows this, such as a reward for one that was cancelled."""


class NoKeyError(ServiceError, PermissionError):
    """There is no key, or one that the service does not know, or no longer."""


class WrongScopeError(ServiceError, PermissionError):
    """The key is not for this, or not for this experiment."""


class TooManyRequestsError(ServiceError):
    """The key has made more requests than it may in that time; `retry_after` says how long to wait."""


class UnavailableError(ServiceError):
    """The service cannot answer now, such as while it starts."""


class InternalError(ServiceError):
    """The service failed at the request, and may do so again: its log has the request by its id."""


class ServiceTimeoutError(ServiceError, TimeoutError):
    """No answer came in time. Whether the request was handled is not known."""


class ServiceConnectionError(ServiceError, ConnectionError):
    """The service cannot be reached, or the connection broke before the answer."""


class AnswerError(ServiceError):
    """The answer is none of the service's, such as a proxy's page."""


class RewardsError(ServiceError):
    """Some rewards of a batch were not taken: `failed` has each of them, with what is wrong.

    >>> gone = UnknownDecisionError("there is no decision 'd7'", code="unknown-decision", status=404)
    >>> error = RewardsError.of([({"decision_id": "d7", "value": 1.0}, gone)])
    >>> print(error)
    1 reward was not taken: that of decision 'd7', since there is no decision 'd7'; `failed` has them all
    >>> [row for row, _ in error.failed]
    [{'decision_id': 'd7', 'value': 1.0}]
    """

    failed: list[tuple[dict[str, Any], ServiceError]]

    @classmethod
    def of(cls, failed: list[tuple[dict[str, Any], ServiceError]]) -> RewardsError:
        """The error of these rewards; it has the status and the code of the first."""
        row, first = failed[0]
        how_many = "1 reward was" if len(failed) == 1 else f"{len(failed)} rewards were"
        that = "that" if len(failed) == 1 else "the first is that"
        error = cls(
            f"{how_many} not taken: {that} of decision {row['decision_id']!r}, since {first}; `failed` has them all",
            status=first.status,
            code=first.code,
        )
        error.failed = failed
        return error


ERRORS: Mapping[str | int, type[ServiceError]] = {
    "invalid-body": InvalidValueError,
    "invalid-value": InvalidValueError,
    "unknown-action": UnknownActionError,
    422: InvalidValueError,
    400: InvalidValueError,
    "no-key": NoKeyError,
    401: NoKeyError,
    "wrong-scope": WrongScopeError,
    403: WrongScopeError,
    "unknown-route": RouteError,
    "unknown-experiment": UnknownExperimentError,
    "unknown-decision": UnknownDecisionError,
    "unknown-node": UnknownNodeError,
    404: NotFoundError,
    "wrong-method": RouteError,
    405: RouteError,
    "too-slow": ServiceTimeoutError,
    408: ServiceTimeoutError,
    "same-id": SameIdError,
    "wrong-state": WrongStateError,
    "conflict": ConflictError,
    409: ConflictError,
    "too-large": TooLargeError,
    413: TooLargeError,
    "too-fast": TooManyRequestsError,
    429: TooManyRequestsError,
    "internal": InternalError,
    500: InternalError,
    "not-installed": UnavailableError,
    501: UnavailableError,
    502: UnavailableError,
    "no-model": UnavailableError,
    "starting": UnavailableError,
    "not-replayed": UnavailableError,
    "not-written": UnavailableError,
    "overloaded": UnavailableError,
    503: UnavailableError,
    504: ServiceTimeoutError,
}
"""The class of a problem: by its code, and where the client does not know that, by the status."""


def problem_error(problem: Mapping[str, Any], response: httpx.Response | None = None) -> ServiceError:
    """The error of a problem in the shape of RFC 9457.

    >>> problem_error({"type": "urn:bough:problem:same-id", "status": 409, "detail": "the id is taken"})
    SameIdError('the id is taken')
    """
    kind, status, detail = problem.get("type"), problem.get("status"), problem.get("detail")
    code = kind.removeprefix(_PREFIX) if isinstance(kind, str) and kind.startswith(_PREFIX) else None
    if response is not None:
        status = response.status_code
    status = status if isinstance(status, int) else None
    remedy = problem.get("remedy")
    found = ERRORS.get(code or "") or ERRORS.get(status or 0) or ServiceError
    return found(
        detail if isinstance(detail, str) else str(problem.get("title") or f"the service answered {status}"),
        status=status,
        code=code,
        value=problem.get("value"),
        remedy=remedy if isinstance(remedy, str) else None,
        request_id=None if response is None else response.headers.get("x-request-id"),
        retry_after=None if response is None else retry_after(response.headers.get("retry-after")),
        response=response,
    )


def response_error(response: httpx.Response) -> ServiceError:
    """The error of an answer that is not what was asked for; where it is no problem's, its text is shown."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict) and ("detail" in problem or "title" in problem):
        return problem_error(problem, response)
    text = response.text.strip()
    shown = f": {text[:SHOWN]!r}" if text else ""
    remedy = None
    if response.has_redirect_location:
        remedy = f"give the address that it points to, {response.headers['location']}"
    return problem_error({"detail": f"the service answered {response.status_code}{shown}", "remedy": remedy}, response)


def retry_after(header: str | None) -> float | None:
    """The seconds that a `Retry-After` header asks for, which is a number or a date; None where it is neither.

    >>> retry_after("2"), retry_after("Fri, 01 Jan 1999 00:00:00 GMT"), retry_after("soon")
    (2.0, 0.0, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return None
        now = datetime.now(UTC)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    return max(seconds, 0.0) if math.isfinite(seconds) else None
