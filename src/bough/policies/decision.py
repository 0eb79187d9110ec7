"""A decision as it can be logged: what was chosen, how likely that was, and from what."""

from __future__ import annotations

import os
from collections.abc import Hashable
from datetime import date, time
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from bough.tree.name_columns import is_missing

_VERSION = version("bough")


class Decision(NamedTuple):
    """What an agent chose, how likely that was, and all that evaluation needs of it; made by `decision`.

    >>> import bough
    >>> agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["left", "middle", "right"])), seed=0)
    >>> decision = agent.decision(among=["left", "right"])
    >>> decision.action, round(decision.propensity, 1)
    ('right', 0.5)
    >>> list(decision.to_dict())
    ['decision_id', 'at', 'action', 'actions', 'propensity', 'propensity_error', 'context', 'among', 'exclude',
    'n_observations', 'version']
    """

    decision_id: str
    """A name for the decision that no other has, to find it by when its reward comes."""
    action: Hashable
    """The chosen action; the best of them, where there are several."""
    actions: list[Hashable]
    """All chosen actions, best first."""
    scores: list[float]
    """Their scores in the draw that was decided by: with Gaussian rewards mean rewards."""
    propensities: list[float] | None = None
    """How likely each was to be chosen, with k to be among the k; None where no samples were taken."""
    propensity_errors: list[float] | None = None
    """The standard errors of these."""
    context: list[float] | dict[str, Any] | None = None
    """The context decided in, as `update` takes it: by name where the model has `features`, and else a list."""
    among: list[Hashable] | None = None
    """What the choice was restricted to; None for all actions."""
    exclude: list[Hashable] | None = None
    """What was left out; None for nothing."""
    at: Any = None
    """The agent's time, `now`."""
    n_observations: int = 0
    """How much the agent had learned from."""
    version: str = _VERSION
    """The version of bough that decided."""
    factors: dict[str, Any] | None = None
    """The levels of the factors of the decision that were named; None where there were none."""

    @property
    def propensity(self) -> float | None:
        """How likely `action` was to be chosen, with k to be among the k; None where no samples were taken."""
        return None if self.propensities is None else self.propensities[0]

    @property
    def propensity_error(self) -> float | None:
        """The standard error of `propensity`."""
        return None if self.propensity_errors is None else self.propensity_errors[0]

    def to_dict(self) -> dict[str, Any]:
        """The row of a log of decisions, ready for `json.dumps`; names that JSON lacks become text.

        >>> import bough, json
        >>> tree = bough.Tree.from_nested(["left", "right"])
        >>> agent = bough.Greedy(bough.GaussianModel(tree, mean=[0.0, 0.0]), seed=0)
        >>> agent.update("left", 1.0, context=[1.0, 2.0])
        >>> row = agent.decision(context=[1.0, 0.5]).to_dict()
        >>> row["decision_id"], row["version"] = "7f3a", "1.0"
        >>> print(json.dumps(row))
        {"decision_id": "7f3a", "at": null, "action": "left", "actions": ["left"], "propensity": 1.0,
        "propensity_error": 0.0, "context": [1.0, 0.5], "among": null, "exclude": null, "n_observations": 1,
        "version": "1.0"}
        """
        levels = {} if self.factors is None else {"factors": _plain(self.factors)}
        return {
            "decision_id": self.decision_id,
            "at": _plain(self.at),
            "action": _plain(self.action),
            "actions": _plain(self.actions),
            "propensity": self.propensity,
            "propensity_error": self.propensity_error,
            "context": _plain(self.context),
            "among": _plain(self.among),
            "exclude": _plain(self.exclude),
            "n_observations": self.n_observations,
            "version": self.version,
            **levels,
        }


def new_id() -> str:
    """What `uuid.uuid4().hex` would give, in a third of the time: it is much of what a logged decision adds."""
    digits = os.urandom(16).hex()
    return f"{digits[:12]}4{digits[13:16]}{'89ab'[ord(digits[16]) & 3]}{digits[17:]}"


def _plain(value: Any) -> Any:
    """What JSON has for a name, a time or a list of names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: None if is_missing(one) else _plain(one) for name, one in value.items()}
    if isinstance(value, (date, time)):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    return str(value)
