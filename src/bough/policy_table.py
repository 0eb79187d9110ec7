"""The built-in policies, one line for each: what the command, figures, experiments and the simulator know of them.

Light to import: a class loads when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Rewards = Literal["numbers", "counts", "numbers in contexts", "counts in contexts"]


@dataclass(frozen=True)
class BuiltIn:
    """What is known of a policy without loading it.

    >>> POLICIES["Greedy"].policy
    <class 'bough.policies.Greedy'>
    """

    name: str
    """Of its class in `bough.policies`."""
    colour: str
    """In figures."""
    compiled_for: tuple[Rewards, ...]
    """The rewards for which a whole run is one kernel."""
    samples: bool
    """Whether a decision draws from the posterior."""

    @property
    def policy(self) -> type[Any]:
        """The class itself."""
        from bough import policies

        found: type[Any] = getattr(policies, self.name)
        return found


POLICIES = {
    policy.name: policy
    for policy in (
        BuiltIn("HierTS", "#0b6e4f", ("numbers", "counts", "numbers in contexts"), samples=True),
        BuiltIn("FlatTS", "#d98324", ("numbers", "counts", "numbers in contexts"), samples=True),
        BuiltIn("TS", "#4a5899", ("numbers", "counts", "numbers in contexts"), samples=True),
        BuiltIn("BayesUCB", "#a23b72", ("numbers", "counts"), samples=False),
        BuiltIn("Greedy", "#7a7a7a", ("numbers", "numbers in contexts"), samples=False),
        BuiltIn("BetaTS", "#c1121f", (), samples=True),
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
