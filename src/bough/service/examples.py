"""One example of each body and answer, for the OpenAPI document: a shop that sells tea."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from bough.service import schema
from bough.service.problems import KINDS, Problem

_ID = "d-7f3a"
_AT = 1_767_225_600.0
_PROBLEM = Problem(
    "unknown-decision",
    "there is no decision 'd-7f3b'; give the decision_id of one",
    value="d-7f3b",
    remedy="give the decision_id that was answered to decide",
)
_CONFIG = schema.ExperimentConfig(learning="at_close", window=3_600.0, default=0.0)
_EXPERIMENT = schema.ExperimentInfo("shop", _AT, _CONFIG, 2, 10_416, 40_000, 41_250, 81_250, None)
_KEY = schema.KeyInfo("k5d2c8f0a91be", ["decide", "reward"], _AT, experiment="shop")

_ALL: tuple[Struct, ...] = (
    # -- bodies ----------------------------------------------------------------------------------
    schema.Decide(decision_id=_ID, k=2, among=["tea/green", "tea/black", "tea/oolong"]),
    schema.Reward(decision_id=_ID, value=1.0, reward_id="click-1"),
    schema.Rewards(rewards=[schema.Reward(decision_id=_ID, value=1.0), schema.Reward(decision_id="d-7f3b", value=0.0)]),
    schema.DecisionId(decision_id=_ID),
    schema.ActionChange(op="add", name=["tea/white"], under="tea"),
    _CONFIG,
    schema.TreeBody(paths=["tea/green", "tea/black", "coffee/espresso"], renamed={"tea/mate": "tea/green"}),
    schema.RefitBody(),
    schema.EvaluateBody(since=_AT, estimators=["snips", "dr"]),
    schema.KeyBody(scopes=["decide", "reward"], experiment="shop", rate=500.0),
    # -- answers ---------------------------------------------------------------------------------
    schema.Decided(_ID, 2, False, actions=["tea/green", "tea/oolong"]),
    schema.Rewarded(_ID, "open", False, reward_id="click-1"),
    schema.RewardResults(
        [
            schema.RewardResult(_ID, "open"),
            schema.RewardResult("d-7f3b", "refused", problem=schema.ProblemBody(**_PROBLEM.to_dict())),
        ],
        1,
    ),
    schema.Stated(_ID, "active", False),
    schema.DecisionInfo(
        _ID, _AT, "rewarded", ["tea/green", "tea/oolong"], 2, 81_250, "learn",
        [schema.Outcome(_AT + 40.0, "reward", 1.0, False, reward_id="click-1")],
        offered={"k": 2}, active=_AT, closes=_AT + 3_600.0,
    ),
    schema.Explained(
        _ID, "tea/green",
        [
            schema.ExplainedNode("", 0, 0.11, 0.1, 0.12, 1, 1, 40_000, 1.0, 0.112, 41_250, []),
            schema.ExplainedNode("tea", 1, 0.14, 0.12, 0.16, 1, 12, 9_000, 0.225, 0.143, 9_300, []),
            schema.ExplainedNode("tea/green", 2, 0.17, 0.13, 0.21, 1, 40, 310, 0.00775, 0.174, 320,
                                 [schema.Sibling("tea/black", 0.15, 0.11, 0.19, 280, 2)]),
        ],
        "of 40 categories, 'tea' looks best; its 1,204 rewards averaged 0.174", "by what is known now",
        None, 0.004, 0.19,
    ),
    schema.TreeView(
        ["", "tea"], 1, 0.12, 0.16, 9_000,
        schema.TreeNode(
            "tea", 0.14, 0.01, 0.143, 9_300, 39, children=[schema.TreeNode("tea/green", 0.17, 0.02, 0.174, 320)]
        ),
    ),
    schema.TreeColumns(
        ["", "tea"], 1, 0.12, 0.16, 9_000, [0.5, 0.4, 0.3], "/",
        schema.TreeNodes(
            ["tea", "tea/green"], [-1, 0], [0.14, 0.17], [0.01, 0.02], [0.143, 0.174], [9_300, 320], [39, 0], [],
            [0.12, 0.13], [0.16, 0.21], [1],
        ),
    ),
    schema.Top(
        [schema.BestNode("tea/green", 0.17, 0.02, 0.174, 320, 0.13, 0.21, ["", "tea", "tea/green"], None)], 40_000, _AT
    ),
    schema.Series(60, [int(_AT), int(_AT) + 60], [120, 131], [14, 0], [0.11, None], [0.05, None], [0.17, None],
                  [0, 1], [None, None], [0.2, None], [0.004, None], [schema.Change(_AT + 70.0, "mode", "mode frozen")]),
    schema.RecentDecisions([schema.RecentDecision(_ID, _AT, "tea/green", ["", "tea", "tea/green"], 2, 1.0)]),
    schema.PriorView(
        "gaussian", 0.1, 0.25, None,
        [schema.PriorLevel(0, 0.02, None, None, 0.2, 1, 1), schema.PriorLevel(1, 0.05, 0.03, 0.1, 0.5, 30, 28),
         schema.PriorLevel(2, 0.03, 0.02, 0.04, 0.3, 10_416, 607)],
        10_416, 9_809, 3, schema.Fitted(_AT, 2, True, {"depth 1": [0.05, 0.03, 0.1], "depth 2": [0.03, 0.02, 0.04]}),
    ),
    schema.ServiceState(_AT, "learn", 0.0, 41_250, 40_000, 720, 0, [], _AT - 20.0, 5_000, 0, True),
    schema.Found([schema.FoundNode("tea/green", 0.17, 0.02, 0.174, 320, ["", "tea", "tea/green"], False)]),
    schema.Evaluation(
        38_000, 0.11, [schema.Estimate("snips", 0.13, 0.12, 0.14, 0.02, 0.01, 0.03)], True, ["38000 rows were used"]
    ),
    schema.Experiments([_EXPERIMENT]),
    _EXPERIMENT,
    schema.Accepted(81_251, 3),
    schema.Refitting("started", 2),
    schema.Keys([_KEY]),
    schema.KeyMade(_KEY.id, _KEY.scopes, _AT, experiment="shop", token="bough_..."),
    schema.Health("ok", "0.2.0"),
    schema.Ready("ready", 0.0, True),
)  # fmt: skip

OWN: Mapping[str, Struct] = {
    "cancel": schema.Stated(_ID, "cancelled", False),
    "retract": schema.Stated(_ID, "retracted", False),
}
"""By the name of a route: its answer, where that is not the one of all routes with such an answer."""

EXAMPLES: Mapping[type[Struct], Struct] = {type(one): one for one in _ALL}
"""An example of each struct that is the body or the answer of a route."""

_DETAILS = {
    "invalid-body": "the body is not what this route takes: Object missing required field `value`",
    "invalid-value": "k is 9; give at most 3, the number of actions to choose from",
    "unknown-action": "there is no action 'tea/mate'; give the name of one, or add it",
    "no-key": "no key was sent",
    "wrong-scope": "the key k5d2c8f0a91be may decide, and this needs reward",
    "unknown-route": "there is nothing at /v2/shop/decide",
    "unknown-experiment": "there is no experiment 'shop'; make it by PUT /v1/shop",
    "unknown-decision": _PROBLEM.detail,
    "unknown-node": "there is no node 'teas'; give the name of one",
    "unknown-key": "there is no key 'k0' to revoke; see GET /v1/keys",
    "wrong-method": "this address does not take PATCH",
    "too-slow": "the body, or the next MiB of it, did not arrive within 10 seconds",
    "same-id": "the decision 'd-7f3a' was made for another request; give another id",
    "wrong-state": "the decision 'd-7f3a' was cancelled; decide again",
    "conflict": "a refit is running; wait until it is done",
    "too-large": "the body has more than 1,048,576 bytes",
    "too-fast": "the key k5d2c8f0a91be makes more than 500 requests per second",
    "internal": "the service failed; its log has more under 0198c0de",
    "not-installed": "no frame library is installed; pip install '.[frames]' in a clone of bough",
    "no-model": "the experiment has no model yet; put one",
    "starting": "the log is being replayed; try again in a second",
    "not-replayed": "the change is logged and not yet made; ask again soon",
    "not-written": "nothing was logged: the disk is full; try again with the same id",
    "overloaded": "10000 requests wait to be logged; try again in a second",
}

PROBLEMS: Mapping[str, schema.ProblemBody] = {
    code: schema.ProblemBody(**Problem(code, _DETAILS[code]).to_dict()) for code in KINDS
}
"""An example of each problem."""
