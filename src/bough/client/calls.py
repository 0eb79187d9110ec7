"""Requests that decide and learn: each function makes the request of the clients' method of its name.

Their docstrings, and those in `looking` and `changing`, are those of the methods of `Client` and `AsyncClient`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from bough.client import answers, values
from bough.client.answers import Decided, Rewarded, Stated
from bough.client.call import Call, body, query
from bough.client.errors import ServiceError
from bough.client.limits import MOST_REWARDS


def decide(
    context: Any = None,
    *,
    factors: Any = None,
    k: int | None = None,
    among: Any = None,
    exclude: Any = None,
    defer: bool = False,
    propensity: bool | None = None,
    action: Any = None,
    decision_id: str | None = None,
) -> Call[Decided]:
    """A decision: the action to take, or the `k` best, and the id that its reward will name.

    ::

        decided = client.decide({"hour": 20, "country": "NL"}, exclude=["kettle"])
        show(decided.action)

    `context` is a list of numbers or a dict of features; `factors` has the levels of the model's factors of the
    decision, such as ``{"store": "north"}``; `among` and `exclude` restrict the choice. A decision made
    with ``defer=True`` waits for `activate`. `propensity` asks for how likely the action was. `action` is the caller's
    own, for an experiment in the mode "observe"; others refuse it. Without `decision_id` the client makes one; every
    try of the request has the same, so that the decision is made once, however often it was sent.
    """
    made = uuid.uuid4().hex if decision_id is None else values.decision_id(decision_id)
    content = body(
        decision_id=made,
        context=values.context(context),
        factors=values.factors(factors),
        k=None if k is None else values.whole(k, "k", 1),
        among=None if among is None else values.names(among, "among"),
        exclude=None if exclude is None else values.names(exclude, "exclude"),
        defer=values.flag(defer, "defer") or None,
        propensity=None if propensity is None else values.flag(propensity, "propensity"),
        action=None if action is None else values.name(action),
    )
    return Call("POST", "decide", answers.decided, content)


def reward(
    decision: Decided | str,
    value: float,
    *,
    reward_id: str | None = None,
    trials: float | None = None,
    exposure: float | None = None,
    slot: int = 0,
    factors: Any = None,
) -> Call[Rewarded]:
    """What became of a reward for a decision, which is given by its id or as `decide` returned it.

    ::

        client.reward(decided, 1.0)
        client.reward("7f3a", 0.0)

    Without a `reward_id` a decision has one reward: the same again is answered as before, and another value is a
    `SameIdError`. `slot` says which of the `k` actions it is for. `factors` has levels that the decision was made
    without.
    """
    row = reward_row(decision, value, reward_id=reward_id, trials=trials, exposure=exposure, slot=slot, factors=factors)
    return Call("POST", "reward", answers.rewarded, body(**row))


def reward_row(
    decision_id: Decided | str,
    value: float,
    *,
    reward_id: str | None = None,
    trials: float | None = None,
    exposure: float | None = None,
    slot: int = 0,
    factors: Any = None,
) -> dict[str, Any]:
    """A reward as it is sent.

    >>> reward_row("7f3a", 1, slot=2)
    {'decision_id': '7f3a', 'value': 1.0, 'slot': 2}
    """
    if trials is not None and exposure is not None:
        raise ValueError("both trials and exposure were given; trials go with clicks, exposure with counts")
    return query(
        decision_id=values.decision_id(decision_id),
        value=values.number(value, "reward"),
        reward_id=None if reward_id is None else values.identifier(reward_id, "reward_id"),
        trials=None if trials is None else values.positive(trials, "trials"),
        exposure=None if exposure is None else values.positive(exposure, "exposure"),
        slot=values.whole(slot, "slot", 0) or None,
        factors=values.factors(factors),
    )


def reward_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rewards, each a pair or a dict, as they are sent; a `ValueError` names the first bad one.

    >>> reward_rows([("d1", 1.0), {"decision_id": "d2", "value": 0.0}])
    [{'decision_id': 'd1', 'value': 1.0}, {'decision_id': 'd2', 'value': 0.0}]
    """
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise ValueError(f"rows is {rows!r:.80}; give a list of (decision, reward) pairs, or of dicts")
    found = []
    for place, row in enumerate(rows):
        try:
            found.append(reward_row(**row) if isinstance(row, Mapping) else reward_row(*_pair(row)))
        except (TypeError, ValueError) as error:
            wrong = str(error).replace("reward_row()", "the dict")
            raise ValueError(f"row {place}: {wrong}") from None
    return found


def _pair(row: Any) -> tuple[Any, Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable) or len(pair := tuple(row)) != 2:
        raise ValueError(f"{row!r:.80} is not a reward; give a (decision, reward) pair, or a dict")
    return pair


def rewards(rows: list[dict[str, Any]]) -> Call[list[Rewarded | ServiceError]]:
    """One request with many rewards, whose rows are already as they are sent."""
    if not 1 <= len(rows) <= MOST_REWARDS:
        raise ValueError(f"there are {len(rows)} rewards; give 1 to {MOST_REWARDS} in one request")
    return Call("POST", "rewards", partial(answers.results, n=len(rows)), body(rewards=rows))


def activate(decision: Decided | str) -> Call[Stated]:
    """What became of a deferred decision: its action was shown, so that its reward window opens.

    ::

        client.activate(decided)
    """
    return Call("POST", "activate", answers.stated, body(decision_id=values.decision_id(decision)))


def cancel(decision: Decided | str) -> Call[Stated]:
    """What became of a decision whose action was not taken after all: nothing will be learned from it.

    ::

        client.cancel(decided)
    """
    return Call("POST", "cancel", answers.stated, body(decision_id=values.decision_id(decision)))


def retract(decision: Decided | str) -> Call[Stated]:
    """What became of a decision whose reward is taken back: the model forgets it.

    ::

        client.retract("7f3a")
    """
    return Call("POST", "retract", answers.stated, body(decision_id=values.decision_id(decision)))
