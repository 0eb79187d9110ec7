"""What can be asked of the service: each function makes the request of the clients' method of its name.

Their docstrings are those of the methods of `Client` and `AsyncClient`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bough.client import answers, values
from bough.client.answers import Accepted, Decided, Node, Rewarded, Stated
from bough.client.call import BYTES, Call, body, query
from bough.client.errors import ServiceError
from bough.client.limits import MOST_REWARDS

_FORMATS = {".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson"}
_GONE = ("retire", "forget", "raise")

# -- deciding and learning -------------------------------------------------------------------------


def decide(
    context: Any = None,
    *,
    k: int | None = None,
    among: Any = None,
    exclude: Any = None,
    defer: bool = False,
    propensity: bool | None = None,
    action: Any = None,
    decision_id: str | None = None,
) -> Call[Decided]:
    """A decision: the action to take, or the `k` best, and the id that its reward will name.

    ::

        decided = client.decide({"hour": 20, "country": "NL"}, exclude=["kettle"])
        show(decided.action)

    `context` is a list of numbers or a dict of features; `among` and `exclude` restrict the choice. A decision made
    with ``defer=True`` waits for `activate`. `propensity` asks for how likely the action was. `action` is the caller's
    own, for an experiment in the mode "observe". Without `decision_id` the client makes one; every try of the request
    has the same, so that the decision is made once, however often it was sent.
    """
    made = uuid.uuid4().hex if decision_id is None else values.decision_id(decision_id)
    content = body(
        decision_id=made,
        context=values.context(context),
        k=None if k is None else values.whole(k, "k", 1),
        among=None if among is None else values.names(among, "among"),
        exclude=None if exclude is None else values.names(exclude, "exclude"),
        defer=values.flag(defer, "defer") or None,
        propensity=None if propensity is None else values.flag(propensity, "propensity"),
        action=None if action is None else values.name(action),
    )
    return Call("POST", "decide", answers.decided, content)


def reward(
    decision: Decided | str,
    value: float,
    *,
    reward_id: str | None = None,
    trials: float | None = None,
    exposure: float | None = None,
    slot: int = 0,
) -> Call[Rewarded]:
    """What became of a reward for a decision, which is given by its id or as `decide` returned it.

    ::

        client.reward(decided, 1.0)
        client.reward("7f3a", 0.0)

    Without a `reward_id` a decision has one reward: the same again is answered as before, and another value is a
    `SameIdError`. `slot` says which of the `k` actions it is for.
    """
    row = reward_row(decision, value, reward_id=reward_id, trials=trials, exposure=exposure, slot=slot)
    return Call("POST", "reward", answers.rewarded, body(**row))


def reward_row(
    decision_id: Decided | str,
    value: float,
    *,
    reward_id: str | None = None,
    trials: float | None = None,
    exposure: float | None = None,
    slot: int = 0,
) -> dict[str, Any]:
    """A reward as it is sent.

    >>> reward_row("7f3a", 1, slot=2)
    {'decision_id': '7f3a', 'value': 1.0, 'slot': 2}
    """
    if trials is not None and exposure is not None:
        raise ValueError("both trials and exposure were given; trials go with clicks, exposure with counts")
    return query(
        decision_id=values.decision_id(decision_id),
        value=values.number(value, "reward"),
        reward_id=None if reward_id is None else values.identifier(reward_id, "reward_id"),
        trials=None if trials is None else values.positive(trials, "trials"),
        exposure=None if exposure is None else values.positive(exposure, "exposure"),
        slot=values.whole(slot, "slot", 0) or None,
    )


def reward_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rewards, each a pair or a dict, as they are sent; a `ValueError` names the first bad one.

    >>> reward_rows([("d1", 1.0), {"decision_id": "d2", "value": 0.0}])
    [{'decision_id': 'd1', 'value': 1.0}, {'decision_id': 'd2', 'value': 0.0}]
    """
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise ValueError(f"rows is {rows!r:.80}; give a list of (decision, reward) pairs, or of dicts")
    found = []
    for place, row in enumerate(rows):
        try:
            found.append(reward_row(**row) if isinstance(row, Mapping) else reward_row(*_pair(row)))
        except (TypeError, ValueError) as error:
            wrong = str(error).replace("reward_row()", "the dict")
            raise ValueError(f"row {place}: {wrong}") from None
    return found


def _pair(row: Any) -> tuple[Any, Any]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable) or len(pair := tuple(row)) != 2:
        raise ValueError(f"{row!r:.80} is not a reward; give a (decision, reward) pair, or a dict")
    return pair


def rewards(rows: list[dict[str, Any]]) -> Call[list[Rewarded | ServiceError]]:
    """One request with many rewards, whose rows are already as they are sent."""
    if not 1 <= len(rows) <= MOST_REWARDS:
        raise ValueError(f"there are {len(rows)} rewards; give 1 to {MOST_REWARDS} in one request")
    return Call("POST", "rewards", partial(answers.results, n=len(rows)), body(rewards=rows))


def activate(decision: Decided | str) -> Call[Stated]:
    """What became of a deferred decision: its action was shown, so that its reward window opens.

    ::

        client.activate(decided)
    """
    return Call("POST", "activate", answers.stated, body(decision_id=values.decision_id(decision)))


def cancel(decision: Decided | str) -> Call[Stated]:
    """What became of a decision whose action was not taken after all: nothing will be learned from it.

    ::

        client.cancel(decided)
    """
    return Call("POST", "cancel", answers.stated, body(decision_id=values.decision_id(decision)))


def retract(decision: Decided | str) -> Call[Stated]:
    """What became of a decision whose reward is taken back: the model forgets it.

    ::

        client.retract("7f3a")
    """
    return Call("POST", "retract", answers.stated, body(decision_id=values.decision_id(decision)))


# -- looking ---------------------------------------------------------------------------------------


def decision(decision: Decided | str) -> Call[dict[str, Any]]:
    """A decision as it was logged, and what has come of it.

    ::

        client.decision("7f3a")["outcomes"]
    """
    return Call("GET", f"decisions/{_segment(decision)}", answers.json)


def explain(decision: Decided | str) -> Call[dict[str, Any]]:
    """Why an action was chosen: the path to it from the root, in numbers.

    ::

        for node in client.explain(decided)["nodes"]:
            print(node["name"], node["mean"])
    """
    return Call("GET", f"decisions/{_segment(decision)}/explain", answers.json)


def _segment(decision: Decided | str) -> str:
    return quote(values.decision_id(decision), safe="")


def top(k: int | None = None) -> Call[list[Node]]:
    """The `k` best actions, best first.

    ::

        for node in client.top(10):
            print(node.name, node.mean, node.deviation)
    """
    return Call("GET", "top", answers.nodes, query=query(k=None if k is None else values.whole(k, "k", 1)))


def tree(node: Any = None, levels: int | None = None, limit: int | None = None) -> Call[dict[str, Any]]:
    """A part of the tree: a node (the root unless given), and `levels` of the best `limit` children.

    ::

        client.tree("home/kitchen", levels=1)["children"]
    """
    fields = query(
        node=None if node is None else values.name(node, "node"),
        levels=None if levels is None else values.whole(levels, "levels", 1),
        limit=None if limit is None else values.whole(limit, "limit", 1),
    )
    return Call("GET", "tree", answers.json, query=fields)


def search(text: str, limit: int | None = None) -> Call[list[Node]]:
    """The nodes with a text in their names, each with its path.

    ::

        [node.name for node in client.search("kettle")]
    """
    if not isinstance(text, str) or not text:
        raise ValueError(f"text is {text!r:.80}; give a part of a name")
    found = query(q=text, limit=None if limit is None else values.whole(limit, "limit", 1))
    return Call("GET", "search", answers.nodes, query=found)


def series(minutes: int | None = None) -> Call[dict[str, Any]]:
    """The decisions, the rewards and their mean, minute by minute, as lists of equal lengths.

    ::

        client.series(minutes=60)["decisions"]
    """
    found = query(minutes=None if minutes is None else values.whole(minutes, "minutes", 1))
    return Call("GET", "series", answers.json, query=found)


def export(
    path: str | os.PathLike[str], format: str | None = None, *, since: float | None = None, until: float | None = None
) -> Call[Path]:
    """The path of a file with the logged decisions and their rewards, which is Parquet or lines of JSON.

    ::

        client.export("events.parquet")

    `format` is "parquet" or "ndjson"; unless given, the file's name says which. `since` and `until` are seconds since
    1970. A file appears only when all of it has arrived.
    """
    target = _path(path, "path")
    chosen = _FORMATS.get(target.suffix.lower()) if format is None else format
    if chosen not in _FORMATS.values():
        wrong = f"{target.name!r} does not say its format" if format is None else f"format is {format!r:.80}"
        raise ValueError(f'{wrong}; give format="parquet" or format="ndjson"')
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {str(target.parent)!r}; make it first")
    part = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.part")

    def read(_: Any) -> Path:
        return part.replace(target)

    fields = query(
        format=chosen,
        since=None if since is None else values.number(since, "since"),
        until=None if until is None else values.number(until, "until"),
    )
    return Call("GET", "export", read, query=fields, is_long=True, into=part)


def _path(given: Any, what: str) -> Path:
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(f"{what} is {given!r:.80}; give the path of a file")
    return Path(given)


def evaluate(*, since: float | None = None, until: float | None = None, estimators: Any = None) -> Call[dict[str, Any]]:
    """What the present policy would have earned per decision, by the logged decisions.

    ::

        client.evaluate(estimators=["snips", "dr"])["estimates"]
    """
    content = body(
        since=None if since is None else values.number(since, "since"),
        until=None if until is None else values.number(until, "until"),
        estimators=None if estimators is None else values.texts(estimators, "estimators"),
    )
    return Call("POST", "evaluate", answers.json, content, is_long=True)


def describe() -> Call[dict[str, Any]]:
    """The experiment as it is now: its configuration, its model's version, how much it has observed.

    ::

        client.describe()["config"]["mode"]
    """
    return Call("GET", "", answers.json)


def health() -> Call[dict[str, Any]]:
    """That the process answers, and its version. Needs no key.

    ::

        client.health()["version"]
    """
    return Call("GET", "/health", answers.json)


def ready() -> Call[bool]:
    """Whether the service has replayed its log and can decide. Needs no key.

    ::

        while not client.ready():
            time.sleep(1.0)
    """
    return Call("GET", "/ready", lambda response: bool(response.is_success), good=(503,))


# -- changing --------------------------------------------------------------------------------------


def add(name: Any, under: Any) -> Call[Accepted]:
    """The change that adds an action, or a list of them, below a node.

    ::

        client.add("home/kitchen/juicer", under="home/kitchen")

    Changes of single actions are sent again only where they were surely not handled: after a `ServiceTimeoutError` or
    a `ServiceConnectionError` look with `search` whether it was.
    """
    return _change("add", name, under=values.name(under, "node to add it under"))


def retire(name: Any) -> Call[Accepted]:
    """The change after which an action, or each of a list, is no longer chosen; what was learned from it stays.

    ::

        client.retire(["home/kitchen/toaster"])
    """
    return _change("retire", name)


def restore(name: Any) -> Call[Accepted]:
    """The change after which a retired action, or each of a list, may be chosen again.

    ::

        client.restore("home/kitchen/toaster")
    """
    return _change("restore", name)


def forget(name: Any) -> Call[Accepted]:
    """The change that removes a retired action, or a list of them, with what was learned from it.

    ::

        client.forget("home/kitchen/toaster")
    """
    return _change("forget", name)


def move(name: Any, under: Any) -> Call[Accepted]:
    """The change that hangs an action, or a list of them, below another node; what was learned goes along.

    ::

        client.move("home/kitchen/kettle", under="home/garden")
    """
    return _change("move", name, under=values.name(under, "node to move it under"))


def _change(op: str, name: Any, **fields: Any) -> Call[Accepted]:
    content = body(op=op, name=values.one_or_more(name), **fields)
    return Call("POST", "actions", answers.accepted, content, is_repeatable=False)


def put_tree(
    paths: Any, sep: str = "/", *, renamed: Mapping[str, str] | None = None, gone: str = "retire"
) -> Call[Accepted]:
    """The change to a whole new catalogue, given as one path per action; what was learned of those that stay is kept.

    ::

        client.put_tree(["home/kitchen/kettle", "home/garden/spade"])

    `renamed` maps old names to new ones; `gone` says what becomes of actions that are not among the paths: "retire",
    "forget", or "raise" for an error.
    """
    if not isinstance(sep, str) or not sep:
        raise ValueError(f"sep is {sep!r:.80}; give the text between the names of a path, such as '/'")
    if gone not in _GONE:
        raise ValueError(f'gone is {gone!r:.80}; give "retire", "forget" or "raise"')
    if renamed is not None and not (isinstance(renamed, Mapping) and _are_texts([*renamed, *renamed.values()])):
        raise ValueError(f"renamed is {renamed!r:.80}; give a dict from old names to new ones, which are text")
    content = body(
        paths=values.texts(paths, "paths"),
        sep=None if sep == "/" else sep,
        renamed=None if renamed is None else dict(renamed),
        gone=None if gone == "retire" else gone,
    )
    return Call("PUT", "tree", answers.accepted, content, is_long=True)


def _are_texts(given: list[Any]) -> bool:
    return all(isinstance(one, str) for one in given)


def put_model(model: bytes | str | os.PathLike[str]) -> Call[Accepted]:
    """The change to another model, given as the path of its file or as the bytes of it.

    ::

        model.save("model.bough")
        client.put_model("model.bough")
    """
    content = bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else _path(model, "model").read_bytes()
    return Call("PUT", "model", answers.accepted, content, BYTES, is_long=True)


def configure(**config: Any) -> Call[dict[str, Any]]:
    """The experiment with this configuration; it is created where there is none. What is not given is the default.

    ::

        client.configure(learning="at_close", window=3600.0, default=0.0)
    """
    return Call("PUT", "", answers.json, body(**{name: _setting(name, one) for name, one in config.items()}))


def _setting(name: str, value: Any) -> Any:
    given = values.plain(value)
    return given if given is None or isinstance(given, (str, bool, int)) else values.number(given, name)


def refit(adopt: bool = True) -> Call[dict[str, Any]]:
    """That the prior is being learned again, in the background, from all that was observed.

    ::

        client.refit()

    With ``adopt=False`` the new version is made, and decisions go on by the present one.
    """
    content = body(adopt=values.flag(adopt, "adopt"))
    return Call("POST", "refit", answers.json, content, is_repeatable=False, is_long=True)
