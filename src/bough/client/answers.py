"""What the service answers, as the client returns it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bough.client.errors import AnswerError, ServiceError, problem_error
from bough.client.limits import SHOWN
from bough.client.values import Name

if TYPE_CHECKING:
    import httpx

    A = TypeVar("A", "Decided", "Rewarded", "Stated", "Accepted", "Node")


@dataclass(frozen=True)
class Decided:
    """A decision: what was chosen, and the id that its reward will name.

    >>> decided = Decided("7f3a", "kettle", ["kettle", "toaster"], model_version=1)
    >>> print(decided)
    decision 7f3a: kettle, toaster
    >>> decided.action
    'kettle'
    """

    decision_id: str
    action: Name
    """The chosen action; the best of them, where there are several."""
    actions: list[Name]
    """All chosen actions, best first."""
    model_version: int
    """Which version of the experiment's model decided."""
    propensity: float | list[float] | None = None
    """How likely the action was to be chosen; with k a list; None where it was not asked for."""
    replayed: bool = False
    """Whether the decision had been made before, so that this is only its answer again."""
    active: bool = True
    """False where the decision waits for `activate`."""
    suggested: Name | list[Name] | None = None
    """What the service would have chosen, where the caller chose."""

    def __str__(self) -> str:
        return f"decision {self.decision_id}: {', '.join(map(str, self.actions))}"


@dataclass(frozen=True)
class Rewarded:
    """What became of a reward.

    >>> print(Rewarded("7f3a", "learned"))
    decision 7f3a: reward learned
    """

    decision_id: str
    status: str
    """learned: the model learns from it at once; open: when the window closes; late, logged: not at all."""
    replayed: bool = False
    """Whether the same reward had been given before, so that nothing was learned from it again."""
    reward_id: str | None = None
    slot: int = 0
    """Which of the decision's actions it is for."""

    def __str__(self) -> str:
        return f"decision {self.decision_id}: reward {self.status}"


@dataclass(frozen=True)
class Stated:
    """What became of a decision that was activated or cancelled, or whose reward was taken back.

    >>> print(Stated("7f3a", "cancelled"))
    decision 7f3a: cancelled
    """

    decision_id: str
    status: str
    """active, cancelled or retracted."""
    replayed: bool = False
    """Whether it had been done before."""

    def __str__(self) -> str:
        return f"decision {self.decision_id}: {self.status}"


@dataclass(frozen=True)
class Accepted:
    """A change of the experiment, and where in its log it stands.

    >>> Accepted(seq=40, model_version=2).model_version
    2
    """

    seq: int
    model_version: int
    """The version that decides from then on."""


@dataclass(frozen=True)
class Node:
    """One node of the tree, in numbers.

    >>> Node("kettle", mean=0.5, deviation=0.1, observed_mean=None, decisions=0).mean
    0.5
    """

    name: Name
    mean: float
    """Of the posterior."""
    deviation: float
    """The posterior's standard deviation."""
    observed_mean: float | None
    """What its decisions earned on average; None where there are none."""
    decisions: int
    low: float | None = None
    """With `high`: the 95% interval of the mean, for the nodes of `top`."""
    high: float | None = None
    path: list[Name] | None = None
    """From the root to the node, for those of `top` and `search`."""
    retired: bool = False
    added: float | None = None
    """When it was added, for those of `top`; None where it has been there from the start."""


def decided(response: httpx.Response) -> Decided:
    """A decision, of one action or of several."""
    found = json(response)
    actions = found.get("actions")
    if actions is None and "action" in found:
        actions = [found["action"]]
    if not isinstance(actions, list) or not actions:
        raise not_answered(response, "it has no action")
    return _taken(Decided, {**found, "action": actions[0], "actions": actions}, response)


def rewarded(response: httpx.Response) -> Rewarded:
    """What became of a reward."""
    return _taken(Rewarded, json(response), response)


def stated(response: httpx.Response) -> Stated:
    """What became of a decision."""
    return _taken(Stated, json(response), response)


def accepted(response: httpx.Response) -> Accepted:
    """A change."""
    return _taken(Accepted, json(response), response)


def nodes(response: httpx.Response) -> list[Node]:
    """Some nodes."""
    return [_taken(Node, one, response) for one in _listed("nodes", response)]


def results(response: httpx.Response, n: int) -> list[Rewarded | ServiceError]:
    """What became of each of `n` rewards."""
    rows = _listed("results", response)
    if len(rows) != n:
        raise not_answered(response, f"it has {len(rows)} results for {n} rewards")
    return [_result(row, response) for row in rows]


def _result(row: Any, response: httpx.Response) -> Rewarded | ServiceError:
    if isinstance(row, dict):
        problem = row if isinstance(row.get("status"), int) else row.get("problem")
        if isinstance(problem, dict):
            return problem_error(problem)
    return _taken(Rewarded, row, response)


def json(response: httpx.Response) -> dict[str, Any]:
    """A JSON object, as it is."""
    try:
        found = response.json()
    except ValueError:
        raise not_answered(response, "it is not JSON") from None
    if not isinstance(found, dict):
        raise not_answered(response, "it is not a JSON object")
    return found


def not_answered(response: httpx.Response, why: str) -> AnswerError:
    """The error of an answer that is not what the service answers."""
    request = response.request
    return AnswerError(
        f"the answer to {request.method} {request.url.path} is not the service's: {why}: {response.text[:SHOWN]!r}",
        status=response.status_code,
        remedy="see whether the url is that of a bough service, of this version",
        request_id=response.headers.get("x-request-id"),
        response=response,
    )


def _listed(key: str, response: httpx.Response) -> list[Any]:
    found = json(response).get(key)
    if not isinstance(found, list):
        raise not_answered(response, f"it has no {key}")
    return found


def _taken(kind: type[A], found: Any, response: httpx.Response) -> A:
    """The fields that the client knows; a newer service may answer with more."""
    if not isinstance(found, dict):
        raise not_answered(response, "it is not a JSON object")
    known = {field.name: found[field.name] for field in dataclasses.fields(kind) if field.name in found}
    try:
        return kind(**known)
    except TypeError as error:
        raise not_answered(response, str(error).partition("() ")[2]) from None
