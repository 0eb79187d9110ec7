"""From a request's method and path to its route, and from its query to what the route takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from bough.service import schema
from bough.service.problems import Problem
from bough.service.routes import ROUTES, Route
from bough.service.wording import wrong_value

QueryStruct = TypeVar("QueryStruct", bound=msgspec.Struct)


class _Template(NamedTuple):
    """The routes of one path."""

    methods: dict[str, Route]
    fixed: tuple[tuple[int, bytes], ...]
    """The segments that must be what they are, the last one left out where a route is found by it."""
    parameters: tuple[tuple[int, str], ...]
    """The segments to fill in, and their names."""


class _Parameter(NamedTuple):
    """What a parameter of a path may be; anything else has never been the name of something."""

    pattern: re.Pattern[str]
    code: str
    what: str


def _pattern(of: Any) -> re.Pattern[str]:
    meta = of.__metadata__[0]
    return re.compile(rf"(?=.{{{meta.min_length},{meta.max_length}}}\Z){meta.pattern}")


_EXPERIMENT = _Parameter(_pattern(schema.ExperimentName), "unknown-experiment", "experiment")
_DECISION = _Parameter(_pattern(schema.Id), "unknown-decision", "decision")
_KEY = _Parameter(_pattern(schema.Id), "unknown-key", "key")


def _table() -> tuple[dict[bytes, dict[str, Route]], dict[tuple[int, bytes | None], _Template]]:
    """Paths without parameters; and the others, by the number of segments and the last one, None for a parameter."""
    plain: dict[bytes, dict[str, Route]] = {}
    templates: dict[tuple[int, bytes | None], _Template] = {}
    for route in ROUTES.values():
        if not route.parameters:
            methods = plain.setdefault(route.path.encode(), {})
        else:
            parts = route.path.split("/")
            last = None if parts[-1].startswith("{") else parts[-1].encode()
            fixed = tuple((i, part.encode()) for i, part in enumerate(parts) if part and not part.startswith("{"))
            named = tuple((i, part[1:-1]) for i, part in enumerate(parts) if part.startswith("{"))
            made = _Template({}, fixed[:-1] if last else fixed, named)
            template = templates.setdefault((len(parts), last), made)
            assert template.fixed == made.fixed, f"{route.path} is found by the same segments as another path"
            methods = template.methods
        methods[route.method] = route
        if route.method == "GET":
            methods["HEAD"] = route
    return plain, templates


_PLAIN, _TEMPLATES = _table()


def find(method: str, path: bytes) -> tuple[Route, dict[str, str]]:
    """The route of a request, and the parameters in its path, decoded.

    `path` is as it was sent (`raw_path` in ASGI), so that a slash within a name, `%2F`, is part of the name.

    >>> route, parameters = find("GET", b"/v1/shop/decisions/a%3A7")
    >>> route.name, parameters
    ('decision', {'experiment': 'shop', 'id': 'a:7'})
    """
    methods = _PLAIN.get(path)
    if methods is not None:
        route = methods.get(method)
        if route is None:
            raise _wrong_method(method, methods)
        return route, {}
    parts = path.split(b"/")
    template = _TEMPLATES.get((len(parts), parts[-1])) or _TEMPLATES.get((len(parts), None))
    if template is None or parts[0]:
        raise _unknown_route(path)
    for i, segment in template.fixed:
        if parts[i] != segment:
            raise _unknown_route(path)
    route = template.methods.get(method)
    if route is None:
        raise _wrong_method(method, template.methods)
    parameters: dict[str, str] = {}
    for i, name in template.parameters:
        if name == "experiment":
            text, allowed = _experiment(parts[i]), _EXPERIMENT
        else:
            allowed = _KEY if route.name == "revoke_key" else _DECISION
            text = _decoded(parts[i], allowed.pattern)
        if text is None:
            raise _never(route, allowed, parts[i]) if parts[i] else _unknown_route(path)
        parameters[name] = text
    return route, parameters


def _decoded(segment: bytes, pattern: re.Pattern[str]) -> str | None:
    """What a segment says; None where that cannot be."""
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return None
    return text if pattern.match(text) else None


@lru_cache(1024)
def _experiment(segment: bytes) -> str | None:
    """The name of an experiment; there are few, and they are in every request."""
    return _decoded(segment, _EXPERIMENT.pattern)


def _unknown_route(path: bytes) -> Problem:
    shown = path[:100].decode("ascii", "backslashreplace")
    return Problem("unknown-route", f"there is nothing at {shown}", remedy="see /openapi.json for what there is")


def _wrong_method(method: str, methods: Mapping[str, Route]) -> Problem:
    allowed = ", ".join(sorted(methods))
    return Problem(
        "wrong-method", f"this address does not take {method[:20]}", remedy=f"use {allowed}", headers={"allow": allowed}
    )


def _never(route: Route, parameter: _Parameter, segment: bytes) -> Problem:
    """What cannot be the name of anything is not looked for."""
    text = unquote_to_bytes(segment)[:100].decode(errors="replace")
    if route.name == "put_experiment":
        return Problem(
            "invalid-value",
            f"an experiment cannot be called {text!r}",
            value=text,
            remedy="use up to 64 letters, digits, _ and -, a letter or a digit first",
        )
    return Problem(parameter.code, f"there is no {parameter.what} {text!r}", value=text)


def read_query(of: type[QueryStruct], query: bytes) -> QueryStruct:
    """A query as what its route takes; nothing in it is ignored.

    >>> read_query(schema.TreeQuery, b"node=teas&levels=1").levels
    1
    """
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise Problem("invalid-value", f"the query cannot be read: {error}", remedy="encode it as UTF-8") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("invalid-value", "the query gives a parameter twice", remedy="give each parameter once")
    try:
        return msgspec.convert(found, of, strict=False)
    except msgspec.ValidationError as error:
        wrong, remedy = wrong_value(error, of, "see /openapi.json for the parameters")
        raise Problem("invalid-value", f"the query is not what this route takes: {wrong}", remedy=remedy) from None
