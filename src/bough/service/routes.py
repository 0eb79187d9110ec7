"""The table of all routes, as data: what is where, who may call it, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from bough.service import schema
from bough.service.problems import KINDS

Method = Literal["GET", "POST", "PUT", "DELETE"]
Answer = type[Struct] | str | tuple[str, ...] | None
"""A struct, which goes as JSON; or one media type, or several to choose from; or nothing."""

BYTES = "application/octet-stream"
JSON = "application/json"
NDJSON = "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
TEXT = "text/plain"


class Route(NamedTuple):
    """One route.

    >>> ROUTES["decide"].method, ROUTES["decide"].path, ROUTES["decide"].scope
    ('POST', '/v1/{experiment}/decide', 'decide')
    >>> ROUTES["decide"].codes[:3]
    ('invalid-body', 'invalid-value', 'unknown-action')
    """

    name: str
    """What its handler is called."""
    method: Method
    path: str
    scope: schema.Scope | None
    """What a key must be allowed; None where no key is needed."""
    body: type[Struct] | type[bytes] | None
    answers: Mapping[int, Answer]
    problems: tuple[str, ...]
    """The codes of the problems that it may answer with, beyond those that follow from its other fields."""
    summary: str
    query: type[Struct] | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what is to be filled in in its path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all problems that it may answer with, in the order of `KINDS`."""
        found = {*self.problems, "wrong-method", "internal", "overloaded"}
        if self.scope is not None:
            found |= {"no-key", "wrong-scope", "too-fast"}
        if self.body is not None:
            found |= {"invalid-body", "too-slow", "too-large"}
        if self.query is not None:
            found |= {"invalid-value"}
        if self.parameters:
            found |= {"unknown-route"}
        if "experiment" in self.parameters:
            found |= {"unknown-experiment", "starting"}
        return tuple(code for code in KINDS if code in found)


_WRITES = ("not-replayed", "not-written")
_CHANGES = ("invalid-value", "conflict", "no-model", *_WRITES)

_TABLE = (
    # -- deciding and learning -------------------------------------------------------------------
    Route(
        "decide", "POST", "/v1/{experiment}/decide", "decide", schema.Decide, {200: schema.Decided},
        ("invalid-value", "unknown-action", "same-id", "no-model", *_WRITES),
        "Choose an action, or the k best, and log the decision",
    ),
    Route(
        "reward", "POST", "/v1/{experiment}/reward", "reward", schema.Reward, {200: schema.Rewarded},
        ("unknown-action", "unknown-decision", "same-id", "wrong-state", *_CHANGES),
        "Say what came of a decision",
    ),
    Route(
        "rewards", "POST", "/v1/{experiment}/rewards", "reward", schema.Rewards, {200: schema.RewardResults},
        ("no-model", *_WRITES),
        "Say what came of many decisions, with a result for each",
    ),
    Route(
        "activate", "POST", "/v1/{experiment}/activate", "decide", schema.DecisionId, {200: schema.Stated},
        ("unknown-decision", "wrong-state", *_WRITES),
        "Make a deferred decision count: its action was shown",
    ),
    Route(
        "cancel", "POST", "/v1/{experiment}/cancel", "decide", schema.DecisionId, {200: schema.Stated},
        ("unknown-decision", "wrong-state", *_WRITES),
        "Have nothing come of a decision: its action was not shown",
    ),
    # -- looking ---------------------------------------------------------------------------------
    Route(
        "decision", "GET", "/v1/{experiment}/decisions/{id}", "read", None, {200: schema.DecisionInfo},
        ("unknown-decision",),
        "A decision, and what has come of it",
    ),
    Route(
        "explain", "GET", "/v1/{experiment}/decisions/{id}/explain", "read", None, {200: schema.Explained},
        ("unknown-decision", "unknown-node", "no-model"),
        "Why an action was chosen: the path to it, in numbers",
    ),
    Route(
        "treemap", "GET", "/v1/{experiment}/treemap", "read", None, {200: schema.TreeColumns},
        ("unknown-node", "no-model"),
        "The same part of the tree as columns, in half as many bytes: what the dashboard draws", schema.TreeQuery,
    ),
    Route(
        "tree", "GET", "/v1/{experiment}/tree", "read", None, {200: schema.TreeView}, ("unknown-node", "no-model"),
        "A part of the tree, the best children first", schema.TreeQuery,
    ),
    Route(
        "top", "GET", "/v1/{experiment}/top", "read", None, {200: schema.Top}, ("no-model",),
        "The best actions", schema.TopQuery,
    ),
    Route(
        "series", "GET", "/v1/{experiment}/series", "read", None, {200: schema.Series}, (),
        "Decisions and rewards, minute by minute", schema.SeriesQuery,
    ),
    Route(
        "search", "GET", "/v1/{experiment}/search", "read", None, {200: schema.Found}, ("no-model",),
        "The nodes with a text in their names", schema.SearchQuery,
    ),
    Route(
        "recent", "GET", "/v1/{experiment}/decisions", "read", None, {200: schema.RecentDecisions}, (),
        "The last decisions, and what has come of them", schema.DecisionsQuery,
    ),
    Route(
        "prior", "GET", "/v1/{experiment}/prior", "read", None, {200: schema.PriorView}, ("no-model",),
        "What the model believed before all observations, level by level",
    ),
    Route(
        "state", "GET", "/v1/{experiment}/state", "read", None, {200: schema.ServiceState}, (),
        "How the service and the experiment are doing",
    ),
    Route(
        "export", "GET", "/v1/{experiment}/export", "read", None, {200: (NDJSON, PARQUET)}, ("conflict",),
        "The logged decisions with their rewards", schema.ExportQuery,
    ),
    Route(
        "evaluate", "POST", "/v1/{experiment}/evaluate", "read", schema.EvaluateBody, {200: schema.Evaluation},
        ("invalid-value", "conflict", "not-installed", "no-model"),
        "What the present policy would have earned in the logged decisions",
    ),
    # -- experiments -----------------------------------------------------------------------------
    Route(
        "experiments", "GET", "/v1", "read", None, {200: schema.Experiments}, ("starting",),
        "All experiments",
    ),
    Route(
        "experiment", "GET", "/v1/{experiment}", "read", None, {200: schema.ExperimentInfo}, (),
        "An experiment as it is now",
    ),
    Route(
        "put_experiment", "PUT", "/v1/{experiment}", "admin", schema.ExperimentConfig,
        {200: schema.ExperimentInfo, 201: schema.ExperimentInfo}, ("invalid-value", "conflict", *_WRITES),
        "Create an experiment, or change how it decides and learns",
    ),
    Route(
        "put_tree", "PUT", "/v1/{experiment}/tree", "admin", schema.TreeBody, {200: schema.Accepted},
        ("unknown-action", "unknown-node", *_CHANGES),
        "Replace the whole catalogue; what was learned is kept",
    ),
    Route(
        "model", "GET", "/v1/{experiment}/model", "read", None, {200: BYTES}, ("no-model",),
        "The file of the present version of the model",
    ),
    Route(
        "put_model", "PUT", "/v1/{experiment}/model", "admin", bytes, {200: schema.Accepted},
        ("not-installed", *_CHANGES),
        "Decide by another model from now on; what was observed is kept",
    ),
    Route(
        "actions", "POST", "/v1/{experiment}/actions", "admin", schema.ActionChange, {200: schema.Accepted},
        ("unknown-action", "unknown-node", *_CHANGES),
        "Add, retire, restore, forget or move actions",
    ),
    Route(
        "retract", "POST", "/v1/{experiment}/retract", "admin", schema.DecisionId, {200: schema.Stated},
        ("unknown-decision", "unknown-action", "wrong-state", *_CHANGES),
        "Take back what was learned from a decision",
    ),
    Route(
        "refit", "POST", "/v1/{experiment}/refit", "admin", schema.RefitBody, {202: schema.Refitting}, _CHANGES,
        "Learn the prior again from all that was observed, in the background",
    ),
    # -- keys ------------------------------------------------------------------------------------
    Route("keys", "GET", "/v1/keys", "admin", None, {200: schema.Keys}, (), "All keys, without their tokens"),
    Route(
        "create_key", "POST", "/v1/keys", "admin", schema.KeyBody, {201: schema.KeyMade}, ("not-written",),
        "Make a key; its token is shown this once",
    ),
    Route(
        "revoke_key", "DELETE", "/v1/keys/{id}", "admin", None, {204: None}, ("unknown-key", "not-written"),
        "Have a key no longer be one",
    ),
    # -- the service -----------------------------------------------------------------------------
    Route("health", "GET", "/health", None, None, {200: schema.Health}, (), "Whether the process answers"),
    Route(
        "ready", "GET", "/ready", None, None, {200: schema.Ready}, ("starting", *_WRITES),
        "Whether the log is replayed, the writer lives, and the lag is below its limit",
    ),
    Route("metrics", "GET", "/metrics", "read", None, {200: TEXT}, (), "Figures for Prometheus"),
    Route("openapi", "GET", "/openapi.json", None, None, {200: JSON}, (), "This interface as an OpenAPI document"),
)  # fmt: skip

ROUTES: Mapping[str, Route] = {route.name: route for route in _TABLE}
"""All routes by name, in the order of the documentation."""
