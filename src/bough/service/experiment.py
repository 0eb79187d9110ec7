"""An experiment as a pure state machine: no web, no database, and the time comes from outside.

A decision is logged, inactive until it is activated if it was deferred, then open, and in the end rewarded, defaulted
when its window closes, or cancelled. What may happen to it is decided here, from its state in the log; whoever calls
makes the result durable before anybody hears of it. The posterior changes by `learn` and `apply` alone, which are given
what the log has, in its order: so all processes that read the same log end at the same posterior.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from bough.service.learner import Learner, check_factors, known_factors
from bough.service.problems import Problem, refused
from bough.service.records import (
    CANCEL,
    CLOSE,
    RETRACT,
    DecisionRow,
    Factors,
    OutcomeKind,
    OutcomeRow,
    State,
)
from bough.service.schema import Decide, Decided, Reward, Rewarded, Stated, encoded
from bough.service.trials import check_reward, checked_numbers


class Verdict(NamedTuple):
    """What is to be logged, and what is to be answered when it is."""

    answer: Any
    outcomes: Sequence[OutcomeRow] = ()
    changed: DecisionRow | None = None


class Experiment(Learner):
    """One experiment: what it decides, what becomes of its decisions, and what it has learned.

    >>> import bough
    >>> from bough.service.records import ChangeRow
    >>> from bough.service.schema import ExperimentConfig
    >>> shop = Experiment(1, "shop", ExperimentConfig(), seed=0)
    >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    >>> shop.apply(ChangeRow(1, 0.0, "model", "me", {"version": 1}), model)
    >>> row = shop.decide(Decide(), now=10.0)
    >>> verdict = shop.reward(Reward(decision_id=row.id, value=1.0), State(row, []), now=12.0)
    >>> verdict.answer.status, shop.learn(verdict.outcomes), shop.agent
    ('learned', [], HierTS(n_actions=2, n_observations=1))
    """

    # -- deciding --------------------------------------------------------------------------------

    def decide(self, asked: Decide, now: float) -> DecisionRow:
        """A decision, to be logged under its id; `answer` says what is answered then."""
        agent, config = self.ready_agent(), self.config
        with_propensity = config.propensity == "always" if asked.propensity is None else asked.propensity
        offered: dict[str, Any] | None = None
        propensity: list[float] | None = None
        actions: Any
        plain = asked.k is None and asked.among is None and asked.exclude is None
        try:
            context = checked_numbers(agent, asked.context)
            check_factors(agent._model, asked.factors, needed=config.default is not None)
            if asked.action is not None and config.mode != "observe":
                raise ValueError(
                    f"action is {asked.action!r}, and the service chooses, since the mode is {config.mode}; leave it "
                    "out, or set the mode to observe"
                )
            if config.mode == "observe":
                actions, offered = self._observed(asked, context)
            elif with_propensity:
                made = agent.decision(
                    context,
                    k=asked.k,
                    among=asked.among,
                    exclude=asked.exclude,
                    samples=config.samples,
                    factors=asked.factors,
                )
                actions, propensity = made.actions, made.propensities
                offered = {"drawn": made.scores[0]}
            else:
                actions, drawn = agent._decide_with_score(context, asked.k, asked.among, asked.exclude, asked.factors)
                offered = {"drawn": drawn}
        except KeyError as error:
            raise refused(error, "unknown-action") from None
        except ValueError as error:
            raise refused(error) from None
        if not plain:
            offered = {**_offered(asked), **(offered or {})}
        active = None if asked.defer else now
        window = config.window
        return DecisionRow(
            self.id,
            asked.decision_id or decision_id(now),
            now,
            actions,
            asked.context,
            offered,
            self.model_version,
            self.position.xid,
            self.position.seq,
            propensity,
            config.mode,
            b"" if asked.decision_id is None else _digest(asked),
            active,
            None if window is None or active is None else active + window,
            config.learning,
            config.learning == "at_close",
            asked.factors,
        )

    def _observed(self, asked: Decide, context: Any) -> tuple[list[Any], dict[str, Any]]:
        """The caller's own action, and what would have been chosen in its place."""
        if asked.action is None:
            raise ValueError("the experiment observes, and no action was given; give action, the one that you take")
        if asked.k is not None:
            raise ValueError(f"the experiment observes one action at a time, and k is {asked.k}; leave it out")
        agent = self.ready_agent()
        agent.posterior._catalogue.action_node(asked.action)
        return [asked.action], {"suggested": agent.decide(context, among=asked.among, exclude=asked.exclude)}

    def answer(self, row: DecisionRow, asked: Decide, replayed: bool) -> Decided:
        """What is answered to a decision that is in the log; a problem where its id stands for another request.

        An id that was made here stands for no other: it is in the log already where a commit was tried a second time,
        because the connection broke before anybody knew that the first had succeeded.
        """
        if replayed and asked.decision_id is not None and row.request_digest != _digest(asked):
            raise Problem(
                "same-id",
                f"the decision {row.id!r} was asked for with another body; give another decision_id",
                value=row.id,
                remedy="give another decision_id, or the body of the first request",
            )
        offered = row.offered or {}
        several = "k" in offered
        propensity = row.propensity
        return Decided(
            row.id,
            row.model_version,
            replayed,
            None if several else row.actions[0],
            row.actions if several else None,
            propensity if several or propensity is None else propensity[0],
            row.active is not None,
            offered.get("suggested"),
        )

    # -- what becomes of decisions ---------------------------------------------------------------

    def reward(self, asked: Reward, state: State, now: float) -> Verdict:
        """What becomes of a reward."""
        decision, outcomes = state
        if asked.slot >= len(decision.actions):
            raise Problem(
                "invalid-value",
                f"slot is {asked.slot}, and the decision has {len(decision.actions)} actions; count them from 0",
                value=asked.slot,
            )
        own_id = asked.reward_id or ""
        for row in outcomes:
            if row.id == own_id and row.slot == asked.slot and row.kind in ("reward", "late"):
                factors = _factors(decision, asked) if asked.factors else row.factors
                if (row.value, row.trials, row.exposure) != (asked.value, asked.trials, asked.exposure):
                    raise _conflict(
                        decision,
                        f"has the reward {row.value:g} already, and not {asked.value:g}",
                        "a decision has one reward, unless each has a reward_id and learning is at_close",
                        code="same-id",
                    )
                if factors != row.factors:
                    raise _conflict(
                        decision,
                        f"has this reward at {_said(row.factors)}, and not at {_said(factors)}",
                        "give the same factors",
                        code="same-id",
                    )
                return Verdict(_rewarded(asked, self._status(row, decision), True))
        if any(row.id == CANCEL for row in outcomes):
            raise _conflict(decision, "was cancelled", "make another decision")
        if decision.active is None:
            raise _conflict(decision, "is not active", "activate it first")
        mine = [row for row in outcomes if row.slot == asked.slot and row.kind == "reward"]
        if decision.learning == "at_once" and mine:
            raise _conflict(
                decision,
                f"has a reward already{f', {mine[0].id!r},' if mine[0].id else ''} and the experiment learns at once",
                "give one reward per decision, or have the experiment learn at_close",
            )
        # One that came in time, and is judged after the window was closed, would wait for ever to be learned.
        is_closed = decision.learning == "at_close" and not decision.open
        late = is_closed or (decision.closes is not None and now > decision.closes)
        self._check_new_factors(asked, [decision, *mine])
        row = self._outcome(decision, asked.slot, own_id, now, "late" if late else "reward", asked)
        for other in mine:
            if row.factors != other.factors:
                raise _conflict(
                    decision,
                    f"has a reward at {_said(other.factors)}, and this one is at {_said(row.factors)}",
                    "give all rewards of a decision the same factors",
                )
        if not late:
            self._check(_total([*mine, row]))
        row.learn = not late and decision.learning == "at_once" and self.config.mode != "frozen"
        return Verdict(_rewarded(asked, self._status(row, decision), False), [row])

    def _check_new_factors(self, asked: Reward, logged: Sequence[DecisionRow | OutcomeRow]) -> None:
        """Refuse factors that come with a reward, and that the model does not have.

        What the log has of the decision may be of a model that there was before: a reward may repeat it.
        """
        if asked.factors:
            known = {name for row in logged for name in row.factors or ()}
            more = {name: level for name, level in asked.factors.items() if name not in known}
            check_factors(self.ready_agent()._model, more)

    def _status(self, row: OutcomeRow, decision: DecisionRow) -> Any:
        if row.kind == "late":
            return "late"
        if decision.learning == "at_close":
            return "open"
        return "learned" if row.learn else "logged"

    def _outcome(
        self, decision: DecisionRow, slot: int, id: str, now: float, kind: OutcomeKind, asked: Reward | None
    ) -> OutcomeRow:
        value, trials, exposure = (0.0, None, None) if asked is None else (asked.value, asked.trials, asked.exposure)
        return OutcomeRow(
            self.id, decision.id, slot, id, now, kind, value, trials, exposure, decision.actions[slot],
            decision.context, decision.at, False, factors=_factors(decision, asked),
        )  # fmt: skip

    def _check(self, row: OutcomeRow) -> None:
        """Refuse a reward that the model could not learn from: in the log it would be there for ever."""
        try:
            agent = self.ready_agent()
            factors = known_factors(agent._model, row.factors)
            check_factors(agent._model, factors, needed=True)
            check_reward(agent, row.action, row.value, row.context, row.trials, row.exposure, factors)
        except KeyError as error:
            raise refused(error, "unknown-action", value=row.action) from None
        except ValueError as error:
            raise refused(error, value=row.value) from None

    def activate(self, state: State, now: float) -> Verdict:
        """Have a decision that was deferred count: its window begins."""
        decision, outcomes = state
        if any(row.id == CANCEL for row in outcomes):
            raise _conflict(decision, "was cancelled", "make another decision")
        if decision.active is not None:
            return Verdict(Stated(decision.id, "active", True))
        decision.active = now
        decision.closes = None if self.config.window is None else now + self.config.window
        return Verdict(Stated(decision.id, "active", False), changed=decision)

    def cancel(self, state: State, now: float) -> Verdict:
        """Have a decision count for nothing: it was never carried out."""
        decision, outcomes = state
        if any(row.id == CANCEL for row in outcomes):
            return Verdict(Stated(decision.id, "cancelled", True))
        if any(row.learn for row in outcomes):
            raise _conflict(decision, "has a reward that was learned", "retract it")
        decision.open = False
        return Verdict(
            Stated(decision.id, "cancelled", False),
            [self._outcome(decision, 0, CANCEL, now, "cancelled", None)],
            decision,
        )

    def close(self, state: State, now: float) -> Verdict:
        """Have the window of a decision be closed: what its rewards add up to is learned, or the default."""
        decision, outcomes = state
        if not decision.open or decision.closes is None or decision.closes > now:
            return Verdict(None)
        decision.open = False
        found = []
        for slot in range(len(decision.actions)):
            mine = [row for row in outcomes if row.slot == slot and row.kind == "reward"]
            if not mine and self.config.default is None:
                continue
            if mine:
                row = _total(mine)
                row = msgspec.structs.replace(row, id=CLOSE, at=now, kind="closed")
            else:
                row = self._outcome(decision, slot, CLOSE, now, "default", None)
                row.value = float(self.config.default or 0.0)
            row.learn = self.config.mode != "frozen" and self._is_learnable(row)
            found.append(row)
        return Verdict(None, found, decision)

    def _is_learnable(self, row: OutcomeRow) -> bool:
        try:
            self._check(row)
        except Problem:  # its action is gone, say; that nothing is learned of it is in the log
            return False
        return True

    def retract(self, state: State, now: float) -> Verdict:
        """Take back what was learned of a decision: a refund, say."""
        decision, outcomes = state
        if any(row.id == RETRACT for row in outcomes):
            return Verdict(Stated(decision.id, "retracted", True))
        learned = [row for row in outcomes if row.learn]
        if not learned:
            raise _conflict(decision, "has no reward that was learned", "cancel it, if it is open")
        taken = [msgspec.structs.replace(row, id=RETRACT, at=now, kind="retracted") for row in learned]
        self.check_retractions(taken)
        return Verdict(Stated(decision.id, "retracted", False), taken)


def decision_id(now: float) -> str:
    """A new id: a UUID of version 7, which begins with the time, so that an index takes one beside the one before.

    >>> decision_id(1_800_000_000.0)[:12]
    '01a3185c5000'
    """
    digits = os.urandom(10).hex()
    return f"{int(now * 1e3) & 0xFFFFFFFFFFFF:012x}7{digits[:3]}{'89ab'[ord(digits[3]) & 3]}{digits[4:19]}"


def _offered(asked: Decide) -> dict[str, Any]:
    found = {"k": asked.k, "among": asked.among, "exclude": asked.exclude}
    return {name: value for name, value in found.items() if value is not None}


def _factors(decision: DecisionRow, asked: Reward | None) -> Factors | None:
    """The levels that a reward counts at: those of its decision, and others that come with it."""
    more = None if asked is None else asked.factors
    if not more:
        return decision.factors
    own = decision.factors or {}
    for name, level in more.items():
        if own.get(name, level) != level:
            raise _conflict(
                decision, f"was made with the {name} {own[name]!r}, and not {level!r}", "leave the reward's factors out"
            )
    return {**own, **more}


def _digest(asked: Decide) -> bytes:
    """What says whether two requests with one id are the same request."""
    body = msgspec.structs.replace(asked, decision_id=None)
    return hashlib.blake2b(encoded(body), digest_size=16).digest()


def _total(rows: Sequence[OutcomeRow]) -> OutcomeRow:
    """One observation that rewards add up to."""
    if len(rows) == 1:
        return rows[0]

    def added(name: str) -> float | None:
        given = [getattr(row, name) for row in rows]
        if all(one is None for one in given):
            return None
        return float(sum(1.0 if one is None else one for one in given))

    return msgspec.structs.replace(
        rows[0], value=sum(row.value for row in rows), trials=added("trials"), exposure=added("exposure")
    )


def _rewarded(asked: Reward, status: Any, replayed: bool) -> Rewarded:
    return Rewarded(asked.decision_id, status, replayed, asked.reward_id, asked.slot)


def _conflict(decision: DecisionRow, what: str, remedy: str, code: str = "wrong-state") -> Problem:
    return Problem(code, f"the decision {decision.id!r} {what}; {remedy}", value=decision.id, remedy=remedy)


def _said(factors: Factors | None) -> str:
    """The levels of a reward, as requests give them."""
    return "no levels" if factors is None else msgspec.json.encode(factors).decode()
