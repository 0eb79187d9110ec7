"""Requests that look, and change nothing."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bough.client import answers, values
from bough.client.answers import Decided, Node
from bough.client.call import Call, body, query

_FORMATS = {".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson"}


def decision(decision: Decided | str) -> Call[dict[str, Any]]:
    """A decision as it was logged, and what has come of it.

    ::

        client.decision("7f3a")["outcomes"]
    """
    return Call("GET", f"decisions/{_segment(decision)}", answers.json)


def explain(decision: Decided | str) -> Call[dict[str, Any]]:
    """Why an action was chosen: the path to it from the root, in numbers.

    ::

        explained = client.explain(decided)
        print(explained["sentence"])
    """
    return Call("GET", f"decisions/{_segment(decision)}/explain", answers.json, is_long=True)


def _segment(decision: Decided | str) -> str:
    return quote(values.decision_id(decision), safe="")


def top(k: int | None = None) -> Call[list[Node]]:
    """The `k` best actions, best first.

    ::

        for node in client.top(10):
            print(node.name, node.mean, node.deviation)
    """
    found = query(k=None if k is None else values.whole(k, "k", 1))
    return Call("GET", "top", answers.nodes, query=found, is_long=True)


def tree(node: Any = None, levels: int | None = None, limit: int | None = None) -> Call[dict[str, Any]]:
    """A part of the tree: a node (the root unless given), and `levels` of the best `limit` children.

    ::

        client.tree("home/kitchen", levels=1)
    """
    fields = query(
        node=None if node is None else values.name(node, "node"),
        levels=None if levels is None else values.whole(levels, "levels", 1),
        limit=None if limit is None else values.whole(limit, "limit", 1),
    )
    return Call("GET", "tree", answers.json, query=fields, is_long=True)


def search(text: str, limit: int | None = None) -> Call[list[Node]]:
    """The nodes with a text in their names, each with its path.

    ::

        [node.name for node in client.search("kettle")]
    """
    if not isinstance(text, str) or not text:
        raise ValueError(f"text is {text!r:.80}; give a part of a name")
    found = query(q=text, limit=None if limit is None else values.whole(limit, "limit", 1))
    return Call("GET", "search", answers.nodes, query=found, is_long=True)


def series(minutes: int | None = None) -> Call[dict[str, Any]]:
    """The decisions, the rewards and their mean in the latest minutes, as lists of equal lengths.

    ::

        client.series(minutes=60)["decisions"]
    """
    found = query(minutes=None if minutes is None else values.whole(minutes, "minutes", 1))
    return Call("GET", "series", answers.json, query=found, is_long=True)


def export(
    path: str | os.PathLike[str], format: str | None = None, *, since: float | None = None, until: float | None = None
) -> Call[Path]:
    """The path of a file with the logged decisions and their rewards, which is Parquet or lines of JSON.

    ::

        client.export("events.parquet")

    `format` is "parquet" or "ndjson"; unless given, the file's name says which. `since` and `until` are seconds since
    1970. A file appears only when all of it has arrived.
    """
    target = values.path(path, "path")
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
