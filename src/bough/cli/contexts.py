"""What a decision is made in, as the command line has it: a context, or the levels of the factors of the decision."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from typing import Any

from bough.model.features import Features
from bough.model.model import Model

_WANTED = 'give numbers such as 1,0.5, or name=value pairs such as age=3,price=2, or JSON such as {"age": 3}'


def context_for(model: Model, given: Sequence[str] | None) -> list[float] | dict[str, Any] | None:
    """The context of --context for a model: values of its categories are text, so that 075 stays 075."""
    features = model.features
    return context_of(given, (features.categories or {}) if isinstance(features, Features) else ())


def levels_for(model: Model, given: Sequence[str]) -> dict[str, Any] | None:
    """The levels of --decision-factor, by the names of the factors; a level that is no text is what it is written as.

    >>> import bough
    >>> store = bough.Factor(levels=["north", 7], at_decision=True)
    >>> model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]), factors={"store": store})
    >>> levels_for(model, ["store=7"])
    {'store': 7}
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, level = text.partition("=")
        if not name or not equals:
            raise ValueError(f"--decision-factor is {text!r}; give a factor and its level, such as store=north")
        if name in found:
            raise ValueError(f"--decision-factor has {name!r} more than once; give each factor one level")
        known = model.factors[name].levels if name in model.factors else ()
        found[name] = level if level in known else next((one for one in known if str(one) == level), level)
    return found or None


def context_of(given: Sequence[str] | None, categories: Container[str] = ()) -> list[float] | dict[str, Any] | None:
    """The context of --context, which may be repeated: a list of numbers, or a mapping from names to values.

    A value that reads as a number is one, but for those of `categories`.

    >>> context_of(["1,0.5"]), context_of(["age=3,price=2.5", "colour=red"]), context_of(['{"age": 3}']), context_of([])
    ([1.0, 0.5], {'age': 3.0, 'price': 2.5, 'colour': 'red'}, {'age': 3}, None)
    """
    if not given:
        return None
    parts = [_part(text, categories) for text in given]
    numbers = [value for part in parts if isinstance(part, list) for value in part]
    named = [part for part in parts if isinstance(part, dict)]
    if not named:
        return numbers
    if numbers:
        raise ValueError(f"--context has both numbers and names; {_WANTED}")
    values: dict[str, Any] = {}
    for part in named:
        twice = next((name for name in part if name in values), None)
        if twice is not None:
            raise ValueError(f"--context has {twice!r} more than once; give each feature one value")
        values |= part
    return values


def _part(text: str, categories: Container[str]) -> list[float] | dict[str, Any]:
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text)
    pieces = [piece.strip() for piece in text.split(",")]
    if all("=" in piece for piece in pieces):
        return _from_pairs(pieces, text, categories)
    try:
        return [float(piece) for piece in pieces]
    except ValueError:
        raise ValueError(f"--context is {text!r}; {_WANTED}") from None


def _from_pairs(pieces: Sequence[str], text: str, categories: Container[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for piece in pieces:
        name, _, value = (part.strip() for part in piece.partition("="))
        if not name or name in found:
            raise ValueError(f"--context is {text!r}; give each feature a name and one value")
        found[name] = value if name in categories else _number_or_text(value)
    return found


def _number_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _from_json(text: str) -> list[float] | dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--context is {text!r}, which is no JSON ({error}); {_WANTED}") from None
    if isinstance(found, dict):
        return found
    numbers = [one for one in found if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(numbers) < len(found):
        raise ValueError(f"--context is {text!r}; {_WANTED}")
    return [float(one) for one in numbers]
