"""The interface as an OpenAPI 3.1 document, made from the table of routes and the structs."""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from bough.service import schema
from bough.service.examples import EXAMPLES, OWN, PROBLEMS
from bough.service.problems import KINDS
from bough.service.routes import BYTES, JSON, ROUTES, Route

_PROBLEM = "application/problem+json"
_REF = "#/components/schemas/{name}"
_ABOUT = """Choose among very many actions, and learn from what comes of it.

Every answer that is not a success is a problem in the shape of RFC 9457: what is wrong, the value, and the remedy. Its
`type` is `urn:bough:problem:` and a code. A request with an id can be sent again, and is answered as the first time.

A body is read as JSON, in UTF-8, whatever its `Content-Type` says; only a model is sent as it is. Every answer has a
header `X-Request-Id`: the one of the request, where that is 1 to 128 printable letters without spaces, or a new one."""
_MEANINGS = {
    200: "Done",
    201: "Made",
    202: "Begun; it goes on in the background",
    204: "Done; there is nothing to say",
}
_HEADERS = {
    401: ("WWW-Authenticate", "string", "What is asked for: a Bearer token"),
    405: ("Allow", "string", "The methods that the address takes"),
    429: ("Retry-After", "integer", "Seconds until it is worth trying again"),
    503: ("Retry-After", "integer", "Seconds until it is worth trying again"),
}
_OF_A_DECISION = ("decision", "explain", "reward", "activate", "cancel", "retract")
_FROM = {"decide": ("decision_id", _OF_A_DECISION), "create_key": ("id", ("revoke_key",))}
"""Which field of an answer says what to give to which other routes."""


@lru_cache(4)
def document(version: str) -> dict[str, Any]:
    """The OpenAPI document; the same object each time, so do not change it.

    >>> document("1.0")["paths"]["/v1/{experiment}/decide"]["post"]["operationId"]
    'decide'
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES.values():
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bough", "version": version, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key, as `bough key create` makes them."}
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": route.name, "summary": route.summary}
    if route.scope is None:
        found["security"] = []
    else:
        found["security"] = [{"key": [route.scope]}]
        found["description"] = f"Needs a key with the scope `{route.scope}`, or `admin`."
    parameters = [_path_parameter(name) for name in route.parameters] + _query_parameters(route.query)
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = {"required": True, "content": _content(route.body)}
    found["responses"] = _responses(route)
    return found


def _path_parameter(name: str) -> dict[str, Any]:
    of: Any = schema.ExperimentName if name == "experiment" else schema.Id
    shape = _plain(msgspec.json.schema(of))
    if name == "experiment":
        shape["not"] = {"const": "keys"}
    example = {"experiment": "shop", "id": "d-7f3a"}[name]
    return {"name": name, "in": "path", "required": True, "schema": shape, "example": example}


def _query_parameters(of: type[Struct] | None) -> list[dict[str, Any]]:
    if of is None:
        return []
    _, components = _components((of,))
    shape = components[of.__name__]
    found: list[dict[str, Any]] = []
    for name, one in shape["properties"].items():
        about = {"description": one.pop("description")} if "description" in one else {}
        found.append({"name": name, "in": "query", "required": name in shape["required"], **about, "schema": one})
    return found


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, answer in route.answers.items():
        found[str(status)] = {"description": _MEANINGS[status]}
        if answer is not None:
            found[str(status)]["content"] = _content(answer, OWN.get(route.name))
        if route.name in _FROM:
            field, names = _FROM[route.name]
            found[str(status)]["links"] = {name: _link(ROUTES[name], field) for name in names}
    for status in sorted({KINDS[code].status for code in route.codes}):
        codes = [code for code in route.codes if KINDS[code].status == status]
        problem = {
            "schema": {"$ref": _REF.format(name="ProblemBody")},
            "examples": {code: {"value": msgspec.to_builtins(PROBLEMS[code])} for code in codes},
        }
        about = "; ".join(f"`{code}`: {KINDS[code].title}" for code in codes)
        found[str(status)] = {"description": about, "content": {_PROBLEM: problem}}
        if status in _HEADERS:
            name, kind, meaning = _HEADERS[status]
            found[str(status)]["headers"] = {name: {"description": meaning, "schema": {"type": kind}}}
    return found


def _link(to: Route, field: str) -> dict[str, Any]:
    """Where to go on with what a field of the answer names."""
    value = f"$response.body#/{field}"
    own = {name: f"$request.path.{name}" for name in to.parameters if name == "experiment"}
    if to.body is not None:
        return {"operationId": to.name, "parameters": own, "requestBody": {field: value}}
    return {"operationId": to.name, "parameters": {**own, "id": value}}


def _content(of: Any, example: Struct | None = None) -> dict[str, Any]:
    """What a body or an answer holds, by its media type, with an example: that of its type, unless given."""
    if isinstance(of, tuple):
        return {media: one for each in of for media, one in _content(each).items()}
    if of is bytes or of == BYTES:
        return {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    if of == JSON:
        return {JSON: {"schema": {"type": "object"}}}
    if isinstance(of, str):
        binary = {} if of.startswith("text/") or of.endswith("json") else {"format": "binary"}
        return {of: {"schema": {"type": "string", **binary}}}
    ref = {"$ref": _REF.format(name=of.__name__)}
    return {JSON: {"schema": ref, "example": msgspec.to_builtins(example or EXAMPLES[of])}}


def _schemas() -> dict[str, Any]:
    """The shapes of all structs that bodies and answers have."""
    used = [route.body for route in ROUTES.values()]
    used += [answer for route in ROUTES.values() for answer in route.answers.values()]  # type: ignore[misc]
    structs = {one.__name__: one for one in used if isinstance(one, type) and issubclass(one, Struct)}
    _, components = _components((*structs.values(), schema.ProblemBody))
    return dict(sorted(components.items()))


def _components(structs: tuple[type[Struct], ...]) -> tuple[Any, dict[str, Any]]:
    """What msgspec says of structs, with what stands below their fields in the source."""
    refs, components = msgspec.json.schema_components(structs, ref_template=_REF)
    for name, shape in components.items():
        for field, about in _field_docs(getattr(schema, name)).items():
            shape["properties"][field] = {"description": about, **shape["properties"][field]}
    return refs, _plain(components)


def _field_docs(struct: type[Struct]) -> dict[str, str]:
    """The strings that stand below the fields of a struct, and of those that it is made from."""
    found: dict[str, str] = {}
    for one in reversed(struct.__mro__):
        if one.__module__ != schema.__name__:
            continue
        made = _classes()[one.__name__]
        for field, below in zip(made.body, made.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                found[field.target.id] = str(below.value.value)
    return found


@lru_cache(1)
def _classes() -> dict[str, ast.ClassDef]:
    """The source of the structs; to look for each by itself would take a second."""
    return {one.name: one for one in ast.parse(inspect.getsource(schema)).body if isinstance(one, ast.ClassDef)}


def _plain(shape: Any) -> Any:
    """A schema with patterns as all languages read them: `\\Z` is Python's own."""
    if isinstance(shape, dict):
        return {
            name: one.replace("\\Z", "$") if name == "pattern" and isinstance(one, str) else _plain(one)
            for name, one in shape.items()
        }
    return [_plain(one) for one in shape] if isinstance(shape, list) else shape
