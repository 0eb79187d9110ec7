"""What a caller gives, as JSON has it; a `ValueError` for what it cannot be, before anything is sent."""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Name = str | int
Context = list[float] | dict[str, Any]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}")
_PLAIN = (float, int, str, bool, list, dict)
_TIMES = ("m", "M")  # numpy's, which would turn into numbers of nanoseconds
_EXPERIMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def plain(value: Any) -> Any:
    """Python's own number, text or list for one of numpy's or of another library of arrays."""
    if type(value) in _PLAIN:
        return value
    if getattr(getattr(value, "dtype", None), "kind", None) in _TIMES:
        raise ValueError(f"{reprlib.repr(value)} is a time; give numbers or text")
    return value.tolist() if hasattr(value, "tolist") else value


def number(value: Any, what: str) -> float:
    """A finite number.

    >>> number(True, "reward")
    1.0
    >>> number(float("nan"), "reward")
    Traceback (most recent call last):
    ...
    ValueError: the reward is nan; give a finite number
    """
    given = plain(value)
    try:
        if isinstance(given, (str, bytes, bytearray)):
            raise TypeError
        found = float(given)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the {what} is {reprlib.repr(value)}; give a number") from None
    if not math.isfinite(found):
        raise ValueError(f"the {what} is {found}; give a finite number")
    return found


def positive(value: Any, what: str) -> float:
    """A positive number."""
    found = number(value, what)
    if found <= 0.0:
        raise ValueError(f"{what} is {found:g}; give a positive number")
    return found


def whole(value: Any, what: str, least: int, most: int | None = None) -> int:
    """A whole number within limits."""
    given = plain(value)
    if isinstance(given, bool) or not isinstance(given, int) or given < least or (most is not None and given > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{what} is {reprlib.repr(value)}; give a whole number {limits}")
    return int(given)


def flag(value: Any, what: str) -> bool:
    """True or False."""
    given = plain(value)
    if not isinstance(given, bool):
        raise ValueError(f"{what} is {reprlib.repr(value)}; give True or False")
    return given


def name(value: Any, what: str = "action") -> Name:
    """The name of an action or of another node.

    >>> name("kettle"), name(7)
    ('kettle', 7)
    """
    given = plain(value)
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise ValueError(f"the {what} is {reprlib.repr(value)}; names are text or whole numbers")
    return given


def names(values: Any, what: str) -> list[Name]:
    """Some names, as a list."""
    return [name(one, f"action in {what}") for one in _listed(values, what, "action names")]


def texts(values: Any, what: str) -> list[str]:
    """Some texts, as a list."""
    given = _listed(values, what, "texts")
    for one in given:
        if not isinstance(one, str):
            raise ValueError(f"{what} has {reprlib.repr(one)}; give a list of texts")
    return given


def _listed(values: Any, what: str, kind: str) -> list[Any]:
    given = plain(values)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise ValueError(f"{what} is {reprlib.repr(values)}; give a list of {kind}")
    return list(given)


def one_or_more(values: Any) -> Name | list[Name]:
    """One name, or a list of some."""
    given = plain(values)
    if isinstance(given, (str, int)) or not isinstance(given, Iterable):
        return name(given)
    found = names(given, "name")
    if not found:
        raise ValueError("name is an empty list; give at least one name")
    return found


def context(value: Any) -> Context | None:
    """A list of numbers, or a dict of features by name.

    >>> context((1, 0.5)), context({"hour": 20, "country": "NL"})
    ([1.0, 0.5], {'hour': 20, 'country': 'NL'})
    """
    if value is None:
        return None
    given = plain(value)
    if isinstance(given, Mapping):
        return {_feature_name(key): _feature(key, one) for key, one in given.items()}
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ValueError(f"the context is {reprlib.repr(value)}; give a list of numbers, or a dict of features")
    return [number(one, f"context at place {place}") for place, one in enumerate(given)]


def _feature_name(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"the context has a feature called {reprlib.repr(key)}; give the names of features as text")
    return key


def _feature(key: str, value: Any) -> Any:
    given = plain(value)
    if given is None or isinstance(given, (str, bool, int)):
        return given
    if isinstance(given, (bytes, bytearray, Iterable)):
        raise ValueError(f"the context's {key!r} is {reprlib.repr(value)}; give one number or one text")
    return number(given, f"context's {key!r}")


def factors(value: Any) -> dict[str, Name] | None:
    """The levels of the factors of a decision, by name.

    >>> factors({"store": "north"})
    {'store': 'north'}
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"factors is {reprlib.repr(value)}; give a dict from factors to levels")
    return {key: name(one, f"level of {key!r}") for key, one in value.items()}


def labels(value: Any) -> dict[str, Any] | None:
    """The levels of one action, by factor; or of several, by factor and by the action's name. None stands for no level.

    >>> labels({"brand": {"kettle": "Acme", 7: ["Acme", "Bolt"], "spade": None}, "colour": "red"})
    {'brand': {'kettle': 'Acme', '7': ['Acme', 'Bolt'], 'spade': []}, 'colour': 'red'}
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(factor, str) for factor in value):
        raise ValueError(f'factors is {reprlib.repr(value)}; give a dict from factors, such as {{"brand": "Acme"}}')
    found: dict[str, Any] = {}
    for factor, given in value.items():
        if isinstance(given, Mapping):
            found[factor] = {str(name(action)): _levels(one) for action, one in given.items()}
        else:
            found[factor] = _levels(given)
    return found


def _levels(given: Any) -> Any:
    """One level of an action, or a list of them; none where it has none, which a service would not read from null."""
    if given is None:
        return []
    return [name(level, "level") for level in given] if isinstance(given, list) else name(given, "level")


def decision_id(value: Any) -> str:
    """The id of a decision, which is given as text, or as what `decide` returned."""
    return identifier(getattr(value, "decision_id", value), "decision_id")


def identifier(value: Any, what: str) -> str:
    """An id that the service takes.

    >>> identifier("cart 7", "decision_id")
    Traceback (most recent call last):
    ...
    ValueError: decision_id is 'cart 7'; give 1 to 128 letters, digits and . _ : ~ - with a letter or digit first
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(
            f"{what} is {reprlib.repr(value)}; give 1 to 128 letters, digits and . _ : ~ - with a letter or digit first"
        )
    return value


def experiment(value: Any) -> str:
    """The name of an experiment."""
    if not isinstance(value, str) or not _EXPERIMENT.fullmatch(value):
        raise ValueError(
            f"experiment is {reprlib.repr(value)}; give 1 to 64 letters, digits, _ and - with a letter or digit first"
        )
    return value


def path(value: Any, what: str) -> Path:
    """The path of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{what} is {reprlib.repr(value)}; give the path of a file")
    return Path(value)
