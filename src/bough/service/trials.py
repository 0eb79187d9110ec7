"""Dry runs: whether an agent would refuse a change or a reward, found out before it is logged."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np

from bough import _checks
from bough.data.rows import checked_rows, one_action
from bough.policies.living import Star
from bough.policies.posterior_policy import PosteriorPolicy

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
    agent: PosteriorPolicy, action: Any, value: Any, context: Any = None, trials: Any = None, exposure: Any = None
) -> None:
    """Refuse one reward that `agent.update` would refuse: the `ValueError` or `KeyError` that it would raise.

    Nothing changes. What this passes, `update` takes, as long as the agent is as it is now.

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
        rows = checked_rows(engine.model, action, value, context, trials, exposure, posterior._catalogue)
        if engine.may_refuse:
            engine.check(rows)
