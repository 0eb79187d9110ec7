"""Dry runs: whether an agent would refuse a change or a reward, found out before it is logged."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np

from bough import _checks
from bough.data.rows import Rows, checked_context, checked_rows, one_action
from bough.policies.living import Star
from bough.policies.posterior_policy import PosteriorPolicy

LARGEST = 1e12  # what a reward, an entry of a context, and the number of trials or the exposure may be
Agent = TypeVar("Agent", bound=PosteriorPolicy)


def trial(agent: Agent) -> Agent:
    """An agent that goes on by itself from where this one is, to try a change on: what it refuses, this one would.

    The tree, the names and the prior are shared, and what was observed is copied. Its random numbers are its own, and
    it does not refit.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), seed=0)
    >>> trial(agent).retire("left")
    >>> agent.retired
    []
    >>> trial(agent).retire(["left", "right"])
    Traceback (most recent call last):
    ...
    ValueError: 'right' is the last action that is not retired; leave at least one to choose
    """
    with agent._learning, agent._moment:
        twin = copy.copy(agent)
        twin.posterior = agent.posterior._twin()
        if agent._star is not None:
            twin._star = Star(agent._star.whole, twin._assumed)
    twin._refit = None
    twin._rng = np.random.default_rng()
    return twin


def check_reward(
    agent: PosteriorPolicy,
    action: Any,
    value: Any,
    context: Any = None,
    trials: Any = None,
    exposure: Any = None,
    factors: Any = None,
) -> None:
    """Refuse one reward that `agent.update` would refuse: the `ValueError` or `KeyError` that it would raise.

    Nothing changes. What this passes, `update` takes, as long as the agent is as it is now. It is stricter than that:
    one client with wrong units must not spoil what all others learn, so that no number is beyond 1e12.

    >>> import bough
    >>> agent = bough.HierTS(bough.BernoulliModel(bough.Tree.from_nested(["left", "right"])), seed=0)
    >>> check_reward(agent, "left", 1)
    >>> check_reward(agent, "left", 2)
    Traceback (most recent call last):
    ...
    ValueError: the reward is 2; give 0 or 1, or with trials=m a whole number of successes from 0 to m
    """
    posterior = agent.posterior
    catalogue, model = posterior._catalogue, posterior._engine.model
    if (
        (type(value) is float or type(value) is int)
        and context is None
        and trials is None
        and exposure is None
        and model.is_scalar
        and factors is None
        and (model.effects is None or not model.effects.decided)
        and -LARGEST <= value <= LARGEST
        and model.likelihood.is_plain(value)
    ):
        if not catalogue.is_changed:
            one_action(catalogue.tree, action)  # which never changes, so that nobody has to wait
            return
        with posterior._lock:
            one_action(posterior._catalogue, action)
            return
    if not _checks.is_one(value):
        raise ValueError(f"the reward is {value!r:.80}; give one number")
    with posterior._lock:
        engine = posterior._engine
        rows = checked_rows(engine.model, action, value, context, trials, exposure, posterior._catalogue, factors)
        _check_units(rows)
        if engine.may_refuse:
            engine.check(rows)


def checked_numbers(agent: PosteriorPolicy, context: Any) -> Any:
    """The numbers of a context that was given by names or as they are; None where the model takes none.

    Refused is what `agent.decide` would refuse, and what no reward could be learned in later: numbers beyond 1e12.

    >>> import bough
    >>> tree = bough.Tree.from_nested(["left", "right"])
    >>> agent = bough.HierTS(bough.GaussianModel(tree, mean=[0.0, 0.0], features=["age", "price"]), seed=0)
    >>> checked_numbers(agent, {"price": 4.5, "age": 33})
    array([33. ,  4.5])
    """
    model = agent._model
    if context is None and model.is_scalar:
        return None
    found = checked_context(model, context)
    if (np.abs(found) > LARGEST).any():
        raise _too_large("context", found)
    return found


def _too_large(what: str, numbers: Any) -> ValueError:
    return ValueError(f"the {what} has {np.abs(numbers).max():g}; give numbers up to {LARGEST:g}: is its unit right?")


def _check_units(rows: Rows) -> None:
    """Refuse numbers that can be computed with by themselves, and hardly with others."""
    for what, numbers in (("reward", rows.rewards), ("context", rows.contexts), ("size", rows.exposure)):
        if numbers is not None and (np.abs(numbers) > LARGEST).any():
            raise _too_large(what, numbers)
    if rows.exposure is not None and (rows.exposure < 1.0 / LARGEST).any():
        raise ValueError(
            f"the exposure is {rows.exposure.min():g}; give at least {1.0 / LARGEST:g}: is its unit right?"
        )
