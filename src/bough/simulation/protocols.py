"""What simulate calls of what a user brings, checked before anything is played: policies, problems, contexts.

A wrong signature would otherwise be a `TypeError` in the middle of a run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from bough.policies.base import Policy

POLICY = (
    "a policy has decide(context), which gives the name of an action, and update(action, reward, context), and what "
    "makes one is called as policy(model, seed=generator)"
)
PROBLEM = "a problem with world(rounds, rng), which gives the bough.World of one run"
_METHODS = {"decide": "(context)", "update": "(action, reward, context)"}


def check_policy(name: str, policy: Any) -> None:
    """Refuse what neither is a policy nor makes one, as far as can be seen without calling it.

    >>> check_policy("mine", lambda model: None)
    Traceback (most recent call last):
    ValueError: policy 'mine' cannot be called as policy(model, seed=generator): got an unexpected keyword argument ...
    """
    what = f"policy {name!r}"
    if inspect.isclass(policy):
        _check_call(policy, what, "policy(model, seed=generator)", POLICY, None, seed=None)
        check_methods(what, policy, is_class=True)
    elif isinstance(policy, Policy):
        check_methods(what, policy)
    elif callable(policy):
        _check_call(policy, what, "policy(model, seed=generator)", POLICY, None, seed=None)
    else:
        raise ValueError(
            f"{what} is {policy!r:.80}; give a policy class, a function that makes one, or a policy: {POLICY}"
        )


def check_methods(what: str, policy: Any, *, is_class: bool = False) -> None:
    """Refuse a policy, or its class, that cannot be called as `simulate` calls it."""
    for method, arguments in _METHODS.items():
        function = getattr(policy, method, None)
        if not callable(function):
            raise ValueError(f"{what} is a {_kind(policy)} without {method}{arguments}; {POLICY}")
        found = inspect.getattr_static(policy, method, None)
        is_unbound = is_class and not isinstance(found, (staticmethod, classmethod))
        given = [None] * (arguments.count(",") + 1 + is_unbound)
        _check_call(function, f"{method} of {what}", method + arguments, POLICY, *given)


def takes_factors(policy: Any, method: str) -> bool:
    """Whether a method of a policy, called as `simulate` calls it, takes the levels of the decision as well."""
    given = [None] * (_METHODS[method].count(",") + 1)
    try:
        inspect.signature(getattr(policy, method)).bind(*given, factors=None)
    except (ValueError, TypeError):  # or of a function in C, which has no signature to look at
        return False
    return True


def check_takes_factors(name: str, policy: Any, factors: Iterable[str]) -> None:
    """Refuse a policy that cannot be told the levels of the decisions whose rewards it learns from.

    >>> import bough
    >>> class Forgetful(bough.TS):
    ...     def update(self, action, reward, context=None):
    ...         pass
    >>> check_takes_factors("mine", Forgetful(bough.GaussianModel(bough.Tree.from_nested(["a", "b"]))), ["store"])
    Traceback (most recent call last):
    ValueError: update of policy 'mine' does not take the levels of 'store', which the decisions here have; have it ...
    """
    if not takes_factors(policy, "update"):
        raise ValueError(
            f"update of policy {name!r} does not take the levels of {', '.join(map(repr, factors))}, which the "
            "decisions here have; have it take factors=None as well, which is a dict from factors to levels"
        )


def check_problem(problem: Any) -> None:
    """Refuse a problem whose `world` cannot be called as `simulate` calls it."""
    _check_call(problem.world, "world of the problem", "world(rounds, rng)", f"give {PROBLEM}", None, None)


def check_contexts(contexts: Callable[..., Any]) -> None:
    """Refuse a function that cannot be asked for contexts."""
    protocol = "a function of contexts takes a generator and a number n, and gives n rows"
    _check_call(contexts, "contexts", "contexts(rng, n)", protocol, None, None)


def check_pays(pays: Any) -> None:
    """Refuse what is no function of a mean reward and a noise."""
    protocol = "give a function of an action's mean reward and of the round's noise"
    if not callable(pays):
        raise ValueError(f"pays is {pays!r:.80}; {protocol}")
    _check_call(pays, "pays", "pays(mean, noise)", protocol, None, None)


def _check_call(function: Callable[..., Any], what: str, call: str, protocol: str, *given: Any, **named: Any) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of a function in C, which has none to look at
        return
    try:
        signature.bind(*given, **named)
    except TypeError as problem:
        raise ValueError(f"{what} cannot be called as {call}: {problem}; {protocol}") from None


def _kind(policy: Any) -> str:
    return policy.__name__ if inspect.isclass(policy) else type(policy).__name__
