"""What requests and answers look like; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bough.service.records import Context, Learning, Mode, Name

Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~-]*\Z", description=(
    "1 to 128 letters, digits, and . _ : ~ - after the first"))]  # fmt: skip
ExperimentName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*\Z")]
Finite = Annotated[float, Meta(ge=-1.7e308, le=1.7e308)]


class _Body(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A body, of which nothing is ignored."""


# -- requests --------------------------------------------------------------------------------------


class Decide(_Body):
    """What a decision is asked for."""

    decision_id: Id | None = None
    context: Context | None = None
    k: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    among: list[Name] | None = None
    exclude: list[Name] | None = None
    defer: bool = False
    propensity: bool | None = None
    action: Name | None = None
    """The caller's own action, in the mode observe."""


class Reward(_Body):
    """What came of a decision."""

    decision_id: Id
    value: Finite
    reward_id: Id | None = None
    trials: Finite | None = None
    exposure: Finite | None = None
    slot: Annotated[int, Meta(ge=0, lt=10_000)] = 0


class Rewards(_Body):
    """Many rewards at once."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=10_000)]


class DecisionId(_Body):
    """A decision to activate, to cancel, or to take the reward of back."""

    decision_id: Id


class ActionChange(_Body):
    """A single change of the catalogue."""

    op: Literal["add", "retire", "restore", "forget", "move"]
    name: Name | Annotated[list[Name], Meta(min_length=1, max_length=100_000)]
    under: Name | None = None


class ExperimentConfig(_Body, frozen=True):
    """How an experiment decides and learns."""

    mode: Mode = "learn"
    learning: Learning = "at_once"
    window: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Seconds after which a reward is late; None for never."""
    default: Finite | None = None
    """The reward of a decision that got none until its window closed; None for no such thing."""
    propensity: Literal["asked", "always", "later"] = "asked"
    samples: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    """Draws that a propensity is estimated from."""
    half_life: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    """Seconds after which a reward counts half; None for rewards that do not fade."""
    keep_contexts: Annotated[float, Meta(gt=0, le=36_500)] | None = None
    """Days after which the contexts of decisions are deleted; None for never."""
    keep_rows: Annotated[float, Meta(gt=0, le=36_500)] | None = None
    """Days after which decisions and outcomes are deleted; None for never."""

    def __post_init__(self) -> None:
        if self.learning == "at_close" and self.window is None:
            raise ValueError("learning is at_close, and there is no window to close; give window, in seconds")
        if self.default is not None and self.learning != "at_close":
            raise ValueError(
                "default is given, and learning is at_once; give learning=at_close, or every new action looks too "
                "good: rewards come in minutes, and their absence only when the window closes"
            )


class TreeBody(_Body):
    """A whole new catalogue: one path per action."""

    paths: Annotated[list[str], Meta(min_length=1)]
    sep: Annotated[str, Meta(min_length=1, max_length=8)] = "/"
    renamed: dict[str, str] | None = None
    gone: Literal["retire", "forget", "raise"] = "retire"


class RefitBody(_Body):
    """A refit of the prior from all that was observed."""

    adopt: bool = True
    """Whether decisions are made by it from then on; otherwise it is only a version that can be put."""


class EvaluateBody(_Body):
    """A judgement of the present policy from the logged decisions."""

    since: float | None = None
    until: float | None = None
    estimators: list[Literal["ips", "snips", "dm", "dr"]] | None = None


# -- answers ---------------------------------------------------------------------------------------


class Decided(Struct, omit_defaults=True):
    """A decision."""

    decision_id: str
    model_version: int
    replayed: bool
    """Whether the decision had been made before, so that this is only its answer again."""
    action: Name | None = None
    actions: list[Name] | None = None
    propensity: float | list[float] | None = None
    active: bool = True
    suggested: Name | list[Name] | None = None

    # `replayed` has no default, so that it is always there.


class Rewarded(Struct, omit_defaults=True):
    """What became of a reward."""

    decision_id: str
    status: Literal["learned", "open", "late", "logged"]
    """learned: the model learns from it at once; open: when the window closes; late, logged: not at all."""
    replayed: bool
    reward_id: str | None = None
    slot: int = 0


class Stated(Struct):
    """What became of a request to activate or cancel a decision, or to take its reward back."""

    decision_id: str
    status: Literal["active", "cancelled", "retracted"]
    replayed: bool


class Node(Struct):
    """One node of the tree, in numbers."""

    name: Name
    mean: float
    deviation: float
    observed_mean: float | None
    decisions: int


class Accepted(Struct):
    """A change, and the place in the log where it stands."""

    seq: int
    model_version: int


def encoded(value: Any) -> bytes:
    """JSON, with the keys of objects in order: the same for the same value."""
    return msgspec.json.encode(value, order="sorted")
