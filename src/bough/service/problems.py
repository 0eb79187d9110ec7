"""Problems: what the service answers where it cannot do what was asked, in the shape of RFC 9457."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bough.service.wording import in_json, remedy_in


class Kind(NamedTuple):
    """What problems of one code have in common."""

    status: int
    title: str


KINDS = {
    "invalid-body": Kind(422, "The body is not what this route takes"),
    "invalid-value": Kind(422, "A value cannot be used"),
    "unknown-action": Kind(422, "There is no such action"),
    "no-key": Kind(401, "A key is needed"),
    "wrong-scope": Kind(403, "The key does not reach this far"),
    "unknown-route": Kind(404, "There is nothing at this address"),
    "unknown-experiment": Kind(404, "There is no such experiment"),
    "unknown-decision": Kind(404, "There is no such decision"),
    "unknown-node": Kind(404, "There is no such node"),
    "unknown-key": Kind(404, "There is no such key"),
    "wrong-method": Kind(405, "The address does not take this method"),
    "too-slow": Kind(408, "The body took too long to arrive"),
    "same-id": Kind(409, "The id stands for something else"),
    "wrong-state": Kind(409, "The decision is not in a state that allows this"),
    "conflict": Kind(409, "This does not go with what there is"),
    "too-large": Kind(413, "The body is too large"),
    "too-fast": Kind(429, "Too many requests"),
    "internal": Kind(500, "The service failed"),
    "not-installed": Kind(501, "A package is missing where the service runs"),
    "no-model": Kind(503, "The experiment has no model yet"),
    "starting": Kind(503, "The service is starting"),
    "not-replayed": Kind(503, "The process is behind its log"),
    "not-written": Kind(503, "The log could not be written"),
    "overloaded": Kind(503, "Too much is waiting"),
}
"""The codes, which docs/reference/service-problems.md explains one by one."""


class Problem(Exception):  # noqa: N818 - RFC 9457 calls it so
    """What is wrong, the value, and the remedy.

    >>> problem = Problem("unknown-decision", "there is no decision 'd7'", value="d7", remedy="give the id of one")
    >>> problem.status, problem.to_dict()["remedy"]
    (404, 'give the id of one')
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        value: Any = None,
        remedy: str | None = None,
        retry_after: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.value, self.retry_after = code, detail, value, retry_after
        self.remedy = remedy or remedy_in(detail)
        """What to do about it; where it is not given, what the detail says after a semicolon."""
        self.headers = dict(headers or {})
        """What HTTP wants beside the body: Retry-After, Allow, WWW-Authenticate."""
        if retry_after is not None:
            self.headers["retry-after"] = str(max(1, math.ceil(retry_after)))

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.code].status

    def to_dict(self) -> dict[str, Any]:
        """The body of the answer; what is not known is left out."""
        found: dict[str, Any] = {
            "type": f"urn:bough:problem:{self.code}",
            "title": KINDS[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "value": self.value,
            "remedy": self.remedy,
        }
        return {name: value for name, value in found.items() if value is not None}


def refused(error: Exception, code: str = "invalid-value", value: Any = None) -> Problem:
    """The problem of something that the library refused: its messages say what is wrong, and after that the remedy.

    >>> refused(ValueError("k is 9; give at most 3, the number of actions to choose from")).remedy
    'give at most 3, the number of actions to choose from'
    """
    message = str(error.args[0]) if error.args else str(error)
    return Problem(code, in_json(message), value=value)
