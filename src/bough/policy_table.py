"""The built-in policies, one line for each: what the command, figures, experiments and the simulator know of them.

Light to import: a class loads when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

Rewards = Literal["conjugate", "other", "conjugate in contexts", "other in contexts"]

_EVERYTHING = get_args(Rewards)


@dataclass(frozen=True)
class BuiltIn:
    """What is known of a policy without loading it.

    >>> POLICIES["Greedy"].policy
    <class 'bough.policies.baselines.Greedy'>
    """

    name: str
    """Of its class in `bough`."""
    colour: str
    """In figures."""
    compiled_for: tuple[Rewards, ...]
    """The rewards for which a whole run is one kernel: whether they are conjugate, and whether they have contexts."""
    samples: bool
    """Whether a decision draws from the posterior on the tree."""

    @property
    def policy(self) -> type[Any]:
        """The class itself."""
        found: type[Any] = getattr(import_module("bough"), self.name)
        return found


POLICIES = {
    policy.name: policy
    for policy in (
        BuiltIn("HierTS", "#0b6e4f", _EVERYTHING, samples=True),
        BuiltIn("FlatTS", "#d98324", _EVERYTHING, samples=True),
        BuiltIn("TS", "#4a5899", _EVERYTHING, samples=True),
        BuiltIn("BayesUCB", "#a23b72", _EVERYTHING, samples=False),
        BuiltIn("Greedy", "#7a7a7a", _EVERYTHING, samples=False),
        BuiltIn("BetaTS", "#c1121f", ("other",), samples=False),
    )
}


def named(name: str) -> BuiltIn:
    """The line of this name."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]


def find_built_in(policy: Any) -> BuiltIn | None:
    """The line of this class; None for anything else, also for a class that is derived from one of these."""
    return next((built_in for built_in in POLICIES.values() if built_in.policy is policy), None)
