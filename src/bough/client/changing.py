"""Requests that change an experiment: its catalogue, its model, its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bough.client import answers, values
from bough.client.answers import Accepted
from bough.client.call import BYTES, Call, body

_GONE = ("retire", "forget", "raise")


def add(name: Any, under: Any, *, factors: Any = None) -> Call[Accepted]:
    """The change that adds an action, or a list of them, below a node.

    ::

        client.add("home/kitchen/juicer", under="home/kitchen")
        client.add("home/kitchen/whisk", under="home/kitchen", factors={"brand": {"home/kitchen/whisk": "Acme"}})

    `factors` has the levels of the model's factors that the actions have, by their names.

    Changes of single actions are sent again only where they were surely not handled: after a `ServiceTimeoutError` or
    a `ServiceConnectionError` look with `search` whether it was.
    """
    return _change("add", name, under=values.name(under, "node to add it under"), factors=values.labels(factors))


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


def add_level(factor: Any, level: Any) -> Call[Accepted]:
    """The change after which a factor has another level, or each of a list: a new brand, or a new store.

    ::

        client.add_level("brand", "newcomer")
    """
    if not isinstance(factor, str):
        raise ValueError(f"the factor is {factor!r:.80}; give its name")
    if isinstance(level, tuple):
        raise ValueError(f"the level is {level!r:.80}, a tuple; levels that a client gives are text or whole numbers")
    return _change("add_level", level, factor=factor)


def _change(op: str, name: Any, **fields: Any) -> Call[Accepted]:
    content = body(op=op, name=values.one_or_more(name), **fields)
    return Call("POST", "actions", answers.accepted, content, is_repeatable=False, is_long=True)


def put_tree(
    paths: Any,
    sep: str = "/",
    *,
    renamed: Mapping[str, str] | None = None,
    gone: str = "retire",
    factors: Any = None,
) -> Call[Accepted]:
    """The change to a whole new catalogue, given as one path per action; what was learned of those that stay is kept.

    ::

        client.put_tree(["home/kitchen/kettle", "home/garden/spade"])

    `renamed` maps old names to new ones; `gone` says what becomes of actions that are not among the paths: "retire",
    "forget", or "raise" for an error. `factors` has the levels of the model's factors that the actions have, by name;
    known actions that it leaves out keep theirs, and None takes them away.
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
        factors=values.labels(factors),
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
    if isinstance(model, (bytes, bytearray, memoryview)):
        content = bytes(model)
    else:
        content = values.path(model, "model").read_bytes()
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


def refit() -> Call[dict[str, Any]]:
    """That the prior is being learned again, in the background, from all that was observed.

    ::

        client.refit()

    `describe` says when the new version decides.
    """
    return Call("POST", "refit", answers.json, body(), is_repeatable=False, is_long=True)
