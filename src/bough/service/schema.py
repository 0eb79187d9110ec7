"""What requests and answers look like; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from bough.service.records import Context, Factors, Learning, Mode, Name, OutcomeKind

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
    """The caller's own id, with which the request can be sent again; None for one that the service makes."""
    context: Context | None = None
    """What is known at the moment of the decision: numbers, or values by name."""
    factors: Factors | None = None
    """The levels of the model's factors of the decision, such as the store."""
    k: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many actions, best first; None for one."""
    among: list[Name] | None = None
    """The actions to choose from; None for all."""
    exclude: list[Name] | None = None
    """Actions not to choose."""
    defer: bool = False
    """Whether the decision waits until it is activated, or cancelled."""
    propensity: bool | None = None
    """Whether to say how likely the action was; None for what the experiment does."""
    action: Name | None = None
    """The caller's own action, in the mode observe; refused in other modes."""


class Reward(_Body):
    """What came of a decision."""

    decision_id: Id
    value: Finite
    """The reward: a number, a click (0 or 1), or a count, as the model has it."""
    reward_id: Id | None = None
    """An id of its own, where a decision earns several rewards."""
    trials: Finite | None = None
    """Of how many trials the value counts the successes."""
    exposure: Finite | None = None
    """In how long, or over how much, the value was counted."""
    slot: Annotated[int, Meta(ge=0, lt=10_000)] = 0
    """Which of the actions it is for, counted from 0."""
    factors: Factors | None = None
    """The levels of factors of the decision that it was made without."""


class Rewards(_Body):
    """Many rewards at once."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=10_000)]


class DecisionId(_Body):
    """A decision to activate, to cancel, or to take the reward of back."""

    decision_id: Id


Levels = Name | list[Name]
"""The level of a factor that an action has, or several."""


class ActionChange(_Body):
    """A single change of the catalogue."""

    op: Literal["add", "retire", "restore", "forget", "move", "add_level"]
    """What to do."""
    name: Name | Annotated[list[Name], Meta(min_length=1, max_length=100_000)]
    """The action, or a list of them."""
    under: Name | None = None
    """The category, where actions are added or moved."""
    factors: dict[str, Levels | dict[str, Levels]] | None = None
    """Of what is added: for each of the model's factors the levels of one action, or those of several by name."""
    factor: str | None = None
    """What gets the new levels of add_level, which are given as names."""


class ExperimentConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How an experiment decides and learns."""

    mode: Mode = "learn"
    """Whether the service decides and learns, only observes, or is frozen."""
    learning: Learning = "at_once"
    """Whether rewards are learned when they come, or when the window of their decision closes."""
    window: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Seconds after which a reward is late; None for never."""
    default: Finite | None = None
    """The reward of a decision that got none until its window closed; None for no such thing."""
    propensity: Literal["asked", "always", "later"] = "asked"
    """Which decisions have propensities: those that ask for them, all, or all within minutes."""
    samples: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Draws that a propensity is estimated from, at most; other requests wait for them."""
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
                "default is given, and learning is at_once, by which every new action would look too good: rewards "
                "come in minutes, and their absence only when the window closes; give learning at_close and a window, "
                "or leave out default"
            )


class TreeBody(_Body):
    """A whole new catalogue: one path per action."""

    paths: Annotated[list[str], Meta(min_length=1)]
    """The path of every action, such as home/kitchen/kettle."""
    sep: Annotated[str, Meta(min_length=1, max_length=8)] = "/"
    """What stands between the parts of a path."""
    renamed: dict[str, str] | None = None
    """The new name of each action that has one, by the old name."""
    gone: Literal["retire", "forget", "raise"] = "retire"
    """What becomes of actions that are missing in it."""
    factors: dict[str, dict[str, Levels]] | None = None
    """For each of the model's factors the levels of actions, by name; known actions that it leaves out keep theirs."""


class RefitBody(_Body):
    """A refit of the prior from all that was observed; there is nothing to say."""


class EvaluateBody(_Body):
    """A judgement of the present policy from the logged decisions."""

    since: float | None = None
    """Only decisions from then on, in seconds since 1970."""
    until: float | None = None
    """Only decisions before then."""
    estimators: list[Literal["ips", "snips", "dm", "dr"]] | None = None
    """The estimators; None for snips and dr."""


Scope = Literal["decide", "reward", "read", "admin"]


class KeyBody(_Body):
    """A key to make."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4)]
    """What it may do; admin includes all."""
    experiment: ExperimentName | None = None
    """The only experiment that it is for; None for all."""
    rate: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    """Requests per second; None for the service's own limit."""


# -- queries ---------------------------------------------------------------------------------------


class TreeQuery(_Body):
    """A part of the tree."""

    node: str | UnsetType = UNSET
    """The node to begin with; the root unless given. A name that is a number is meant where no text is so called."""
    levels: Annotated[int, Meta(ge=1, le=4)] = 2
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 40
    """Children per node."""
    nodes: Annotated[int, Meta(ge=1, le=20_000)] = 20_000
    """Nodes in all; where there are more, those with the most decisions are shown."""


Order = Literal["mean", "uncertain", "newest", "retired"]


class TopQuery(_Body):
    """The best actions, or others."""

    k: Annotated[int, Meta(ge=1, le=1_000)] = 20
    order: Order = "mean"
    """mean: the highest mean rewards; uncertain: the least known; newest: added last; retired: only those."""


class DecisionsQuery(_Body):
    """The last decisions."""

    limit: Annotated[int, Meta(ge=1, le=50)] = 20


class SeriesQuery(_Body):
    """The latest minutes."""

    minutes: Annotated[int, Meta(ge=1, le=10_080)] = 60


class SearchQuery(_Body):
    """A part of a name."""

    q: Annotated[str, Meta(min_length=1, max_length=256)]
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 20


class ExportQuery(_Body):
    """Which decisions, and how they are written."""

    format: Literal["ndjson", "parquet"] = "ndjson"
    since: Annotated[float, Meta(ge=0, le=1e12)] | UnsetType = UNSET
    """Seconds since 1970; the beginning unless given."""
    until: Annotated[float, Meta(ge=0, le=1e12)] | UnsetType = UNSET


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


class ProblemBody(Struct, omit_defaults=True):
    """What is wrong, the value, and the remedy, in the shape of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    value: Any = None
    remedy: str | None = None


class RewardResult(Struct, omit_defaults=True):
    """What became of one reward of a batch."""

    decision_id: str
    status: Literal["learned", "open", "late", "logged", "refused"]
    replayed: bool = False
    reward_id: str | None = None
    slot: int = 0
    problem: ProblemBody | None = None
    """Why it was refused."""


class RewardResults(Struct):
    """A result for each reward of a batch, in its order."""

    results: list[RewardResult]
    refused: int


class Outcome(Struct, omit_defaults=True):
    """One thing that came of a decision."""

    at: float
    kind: OutcomeKind
    value: float
    learn: bool
    """Whether the model learns from it."""
    slot: int = 0
    reward_id: str | None = None
    trials: float | None = None
    exposure: float | None = None


class DecisionInfo(Struct, omit_defaults=True):
    """A decision as it was logged, and what has come of it."""

    decision_id: str
    at: float
    status: Literal["inactive", "open", "rewarded", "defaulted", "cancelled"]
    actions: list[Name]
    model_version: int
    learned_seq: int
    mode: Mode
    outcomes: list[Outcome]
    context: Context | None = None
    offered: dict[str, Any] | None = None
    propensity: list[float] | None = None
    active: float | None = None
    closes: float | None = None
    factors: Factors | None = None


class BestNode(Node):
    """A node with the 95% interval of its mean reward."""

    low: float
    high: float
    path: list[Name]
    """From the root to the node, itself included."""
    added: float | None
    """When it was added; None where it has been there from the start."""


class Top(Struct):
    """The best actions, the best one first."""

    nodes: list[BestNode]
    observations: int
    at: float


class TreeNodes(Struct):
    """Nodes of the tree, parents first, as lists of equal lengths: half as many bytes as one object for each."""

    name: list[Name]
    parent: list[int]
    """The place of each one's parent in these lists; -1 for the first."""
    mean: list[float]
    deviation: list[float]
    observed_mean: list[float | None]
    decisions: list[int]
    more: list[int]
    """How many children of each are not shown."""
    retired: list[int]
    """The places of retired actions; not as long as the others."""
    low: list[float]
    """The 95% intervals of the mean rewards, in four digits."""
    high: list[float]
    added: list[int]
    """The places of actions that were added since the beginning; not as long as the others."""


class TreeColumns(Struct):
    """A part of the tree: a node, and some of what is below it, as a page draws it."""

    path: list[Name]
    """From the root to the node, itself included."""
    level: int | str
    """What the level of the node is called, or its depth."""
    low: float
    """The 95% interval of the mean reward of the node."""
    high: float
    observations: int
    """How many rewards were observed at or below it."""
    prior_deviation: list[float]
    """What the deviation of a node of each depth, the root's first, was before all observations."""
    sep: str
    """What stands between the parts of names that are paths."""
    nodes: TreeNodes


class TreeNode(Node, omit_defaults=True):
    """A node with some of its children."""

    more: int = 0
    """How many of its children are not shown."""
    retired: bool = False
    children: list[TreeNode] = []


class TreeView(Struct):
    """A part of the tree: a node, with some of what is below it."""

    path: list[Name]
    """From the root to the node, itself included."""
    level: int | str
    """What the level of the node is called, or its depth."""
    low: float
    """The 95% interval of the mean reward of the node."""
    high: float
    observations: int
    """How many rewards were observed at or below it."""
    node: TreeNode


class FoundNode(Node):
    """A node whose name was searched for."""

    path: list[Name]
    retired: bool


class Found(Struct):
    """The nodes whose names have what was searched for."""

    nodes: list[FoundNode]


class Change(Struct):
    """A change of an experiment."""

    at: float
    kind: Literal["catalogue", "model", "mode"]
    text: str


class Series(Struct):
    """What happened over time, in spans of equal lengths: one entry for each."""

    seconds: int
    """The length of a span."""
    start: list[int]
    """When each began, in seconds since 1970."""
    decisions: list[int]
    rewards: list[int]
    mean: list[float | None]
    """Of the rewards; None where there were none."""
    low: list[float | None]
    """The 95% interval of that mean; None where there were fewer than 2 rewards."""
    high: list[float | None]
    late: list[int]
    agreement: list[float | None]
    """The share of decisions in the mode observe that were as suggested; None where there were none."""
    exploration: list[float | None]
    """The share of decisions whose action was not the one with the highest mean; None where it is not known."""
    gain_left: list[float | None]
    """What the best action would earn more per decision than the chosen ones, as was expected; None where unknown."""
    changes: list[Change]
    """What was changed in that time, the first change first."""


class Sibling(Struct):
    """A node that another is compared with."""

    name: Name
    mean: float
    low: float
    high: float
    decisions: int
    rank: int


class ExplainedNode(Struct):
    """A node on the path to the action of a decision, beside its siblings."""

    name: Name
    level: int | str
    mean: float
    low: float
    high: float
    rank: int
    """1 where no sibling has a higher mean reward."""
    of: int
    """How many it is ranked among, itself included; retired actions are not."""
    observations: int
    share: float
    """Of all observations."""
    observed_mean: float | None
    decisions: int
    beside: list[Sibling]
    """The best of its siblings, the best one first; retired actions are not among them."""


class Explained(Struct):
    """Why an action was chosen, by what is known now."""

    decision_id: str
    action: Name
    nodes: list[ExplainedNode]
    """From the root down to the action; empty where that cannot be said any more, and `note` says why."""
    sentence: str
    """The same in words."""
    note: str
    """What the numbers are known from."""
    propensity: float | None
    """How likely it was to be chosen, as it was logged."""
    gain_left: float | None
    """What the best of the actions would earn more per decision, as far as is known; None where that takes long."""
    drawn: float | None
    """The mean reward that was drawn for the action when it was chosen; None where it was not logged."""


class RecentDecision(Struct):
    """One of the last decisions."""

    decision_id: str
    at: float
    action: Name
    """The first, where there are several."""
    path: list[Name]
    """From the root to the action; empty where there is no such action any more."""
    actions: int
    """How many actions it has."""
    reward: float | None
    """What came of its first action until now; None where nothing did."""


class RecentDecisions(Struct):
    """The last decisions, the last one first."""

    decisions: list[RecentDecision]


class PriorLevel(Struct):
    """What the prior says of the nodes of one level."""

    level: int | str
    """Of the tree; or the name of a crossed factor, whose levels are counted in place of nodes."""
    variance: float
    """Of a node around its parent; in a model with contexts, of its score in the average context."""
    low: float | None
    """The 95% interval of the variance, where a refit has learned it."""
    high: float | None
    share: float
    """Of the variance of an action's own mean, or score."""
    nodes: int
    touched: int
    """How many of them have observations."""


class Fitted(Struct):
    """Where the model came from."""

    at: float
    version: int
    refit: bool
    """Whether the service has learned it from its own log."""
    estimates: dict[str, list[float | None]]
    """What a refit has learned by depth or height, by factor, and of the noise: a number, and its 95% interval."""


class PriorNumber(Struct):
    """A number that the prior has."""

    value: float
    low: float | None
    """The 95% interval of it, where a refit has learned it; a point where the refit has set it."""
    high: float | None


class PriorNoise(Struct):
    """How noise variances differ from action to action, before any reward."""

    median: PriorNumber
    """Of what an action's noise variance has beyond the floor."""
    spread: PriorNumber
    """The standard deviation of its logarithm."""
    floor: PriorNumber
    """What every action's noise variance has at least."""


class PriorView(Struct):
    """What the model believed before all observations."""

    kind: str
    """The kind of rewards: gaussian, bernoulli, poisson."""
    mean: float
    """The mean reward of an action, before all observations."""
    noise_variance: float | None
    """Of a reward around its action's mean; None where rewards are counts, and where each action has its own."""
    noise: PriorNoise | None
    """Where each action has a noise variance of its own."""
    levels: list[PriorLevel]
    actions: int
    untouched: int
    """How many actions have no observation."""
    retired: int
    fitted: Fitted | None
    """None where it is not known where the model came from."""


class ServiceState(Struct):
    """How the service and an experiment are doing."""

    at: float
    mode: Mode
    lag: float
    """Seconds that this process is behind the log."""
    decisions: int
    rewards: int
    nodes_tried: int
    """How many nodes have observations."""
    quarantined: int
    """How many records could not be learned."""
    quarantine: list[str]
    """Why; the last of them."""
    snapshot: float | None
    """When the last snapshot was written; None where there is none."""
    requests: int
    """In the last 15 minutes, to this process."""
    errors: int
    """Those of them that the service failed at: with a status of 500 or more."""
    keeper: bool
    """Whether this process is the one that closes windows and writes snapshots."""


class ExperimentInfo(Struct):
    """An experiment as it is now."""

    name: str
    created: float
    config: ExperimentConfig
    model_version: int
    """0 where it has no model yet."""
    actions: int
    observations: int
    learned: int
    """How many records of the log were learned from."""
    learned_seq: int
    refit: str | None
    """What the last refit is doing, or came to; None where there was none."""


class Experiments(Struct):
    """All experiments."""

    experiments: list[ExperimentInfo]


class Refitting(Struct):
    """A refit that goes on in the background; `GET /v1/{experiment}` says when its version is there."""

    status: Literal["started"]
    model_version: int
    """The present version."""


class Estimate(Struct):
    """What the present policy would have earned per decision, and by how much more than was earned."""

    estimator: str
    value: float | None
    low: float | None
    high: float | None
    lift: float | None
    lift_low: float | None
    lift_high: float | None


class Evaluation(Struct):
    """The present policy, judged by the logged decisions."""

    decisions: int
    logged_value: float | None
    estimates: list[Estimate]
    usable: bool
    """Whether the log can tell."""
    notes: list[str]


class KeyInfo(Struct, omit_defaults=True):
    """A key, without its token."""

    id: str
    scopes: list[Scope]
    created: float
    experiment: str | None = None
    rate: float | None = None
    revoked: float | None = None


class KeyMade(KeyInfo, kw_only=True):
    """A new key; this is the only time that its token is shown."""

    token: str


class Keys(Struct):
    """All keys, also those that were revoked."""

    keys: list[KeyInfo]


class Health(Struct):
    """That the process answers."""

    status: Literal["ok"]
    version: str


class Ready(Struct):
    """That the log has been replayed, the writer lives, and little is left to learn."""

    status: Literal["ready"]
    lag: float
    """Seconds since what was learned last was logged, where there is more to learn; 0 where there is not."""
    keeper: bool


def encoded(value: Any) -> bytes:
    """JSON, with the keys of objects in order: the same for the same value."""
    return msgspec.json.encode(value, order="sorted")
