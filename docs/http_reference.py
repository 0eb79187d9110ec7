"""Writes the page of the HTTP interface from the OpenAPI document of the service: `make reference`."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import bough
from bough.service.openapi import document

PAGE = Path(__file__).parent / "reference" / "http.md"
GROUPS = {
    "Decide and learn": ("decide", "reward", "rewards", "activate", "cancel", "retract"),
    "Look": ("decision", "recent", "explain", "top", "tree", "treemap", "search", "series", "prior", "state"),
    "Experiments, models and the catalogue": (
        *("experiments", "experiment", "put_experiment", "model", "put_model", "put_tree", "actions", "refit"),
    ),
    "Logs and evaluation": ("export", "evaluate"),
    "Manage keys": ("keys", "create_key", "revoke_key"),
    "The process": ("health", "ready", "metrics", "openapi"),
}
COMMON = {"no-key", "wrong-scope", "too-fast", "unknown-route", "wrong-method", "internal", "overloaded"} | {
    *("unknown-experiment", "starting", "not-replayed", "not-written", "invalid-body", "too-slow", "too-large")
}
"""The problems that routes have because they need a key, name an experiment, take a body, or write."""

HEAD = """# The HTTP interface

Made by `make reference` from the service's OpenAPI document; a test keeps it true.

This is the REST interface of [`bough serve`](../howto/service.md). A running service has the same
as an OpenAPI 3.1 document at `/openapi.json`, from which tools make clients in other languages. For
Python there is [a client](../howto/client.md).

- Every request carries a key, `Authorization: Bearer KEY`, except where this page says that it
  needs none. A key has scopes: each route names the one that it needs, and the scope `admin` allows
  all of them.
- A body is JSON in UTF-8. Only a model is sent as the bytes of its file.
- What fails is answered as a [problem](service-problems.md): what is wrong, the value, and the
  remedy. Each route lists the problems of its own. Those of keys, bodies, addresses and the log may
  come from every route that has them.
- A request with an id of yours can be sent again, and is answered as the first time."""


def page() -> str:
    """The whole page."""
    made = document(bough.__version__)
    routes = {
        about["operationId"]: (method, path, about)
        for path, methods in made["paths"].items()
        for method, about in methods.items()
    }
    missing = routes.keys() ^ {name for names in GROUPS.values() for name in names}
    if missing:
        raise ValueError(
            f"GROUPS of docs/http_reference.py and the routes differ in {sorted(missing)}; list them there"
        )
    shapes = Shapes(made["components"]["schemas"])
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        parts += [shapes.route(*routes[name]) for name in names]
    parts += ["## Objects", "What bodies and answers are made of."]
    parts += [shapes.object(name) for name in shapes.used]
    return "\n\n".join(parts) + "\n"


class Shapes:
    """The schemas of the document, and which of them the page has mentioned and so must explain."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas, self.used = schemas, []

    def route(self, method: str, path: str, about: dict[str, Any]) -> str:
        """The section of one route."""
        parts = [f"### `{method.upper()} {path}`", wrapped(f"{about['summary']}. {scope(about)}")]
        queries = [one for one in about.get("parameters", ()) if one["in"] == "query"]
        if queries:
            rows = [
                (f"`{one['name']}`", self.kind(one["schema"]), default(one["schema"]), one.get("description", ""))
                for one in queries
            ]
            parts.append(table(("in the address", "type", "default", "meaning"), rows))
        if "requestBody" in about:
            parts += self.content("The body", about["requestBody"]["content"])
        for status, answer in about["responses"].items():
            if status < "300":
                if answer.get("content"):
                    parts += self.content(f"The answer has the status {status} and", answer["content"])
                else:
                    parts.append(f"The answer has the status {status}, and no body.")
        codes = [
            f"[{code}](service-problems.md#{code})"
            for answer in about["responses"].values()
            for code in answer.get("content", {}).get("application/problem+json", {}).get("examples", ())
            if code not in COMMON
        ]
        if codes:
            parts.append(wrapped("Problems: " + ", ".join(codes) + "."))
        return "\n\n".join(parts)

    def content(self, what: str, content: dict[str, Any]) -> list[str]:
        """What a body or an answer holds, with an example."""
        one = next(iter(content.values()))
        if "$ref" not in one["schema"]:
            kinds = " or ".join(f"`{media}`" for media in content)
            return [f"{what} is {kinds}."]
        parts = [f"{what} is {self.named(one['schema']['$ref'])}:"]
        if "example" in one:
            example = json.dumps(one["example"], indent=2, ensure_ascii=False)
            short = re.sub(
                r"\[\s+((?:[^\[\]{}]){0,80}?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", example
            )
            parts.append(f"```json\n{short}\n```")
        return parts

    def object(self, name: str) -> str:
        """The section of one schema, with a row for each field."""
        shape = self._schemas[name]
        rows = []
        for field, one in shape.get("properties", {}).items():
            needed = "" if field in shape.get("required", ()) else default(one)
            rows.append((f"`{field}`", self.kind(one), needed, one.get("description", "")))
        parts = [f"### {name}", wrapped(shape.get("description", ""))]
        if rows:
            parts.append(table(("field", "type", "default", "meaning"), rows))
        return "\n\n".join(part for part in parts if part)

    def named(self, ref: str) -> str:
        """A link to the section of a schema."""
        name = ref.rpartition("/")[2]
        if name not in self.used:
            self.used.append(name)
        return f"[{name}](#{name.lower()})"

    def kind(self, schema: dict[str, Any]) -> str:
        """What a value may be, in words."""
        if "$ref" in schema:
            return self.named(schema["$ref"])
        if "anyOf" in schema:
            kinds = list(dict.fromkeys(self.kind(one) for one in schema["anyOf"]))
            return " or ".join(one for one in kinds if one != "integer" or "number" not in kinds)
        if "enum" in schema:
            return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
        if schema.get("type") == "array":
            return f"list of {grouped(self.kind(schema['items']))}" if schema.get("items") else "list"
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"object of {grouped(self.kind(schema['additionalProperties']))}"
        return schema.get("type", "anything") + limits(schema)


def grouped(kind: str) -> str:
    """In parentheses, where it is more than one kind."""
    return f"({kind})" if " or " in kind else kind


def limits(schema: dict[str, Any]) -> str:
    """The range of a number or a length, where there is one."""
    low, high = (schema.get(f"{side}imum", schema.get(f"exclusive{side.title()}imum")) for side in ("min", "max"))
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    if schema.get("exclusiveMinimum") is not None:
        return f", above {low:,}"
    return f", at least {low:,}" if low is not None else f", at most {high:,}" if high is not None else ""


def default(schema: dict[str, Any]) -> str:
    """The default of a field that may be left out."""
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else "may be missing"


def scope(about: dict[str, Any]) -> str:
    """Which key a route needs."""
    if not about["security"]:
        return "It needs no key."
    return f"It needs a key with the scope `{about['security'][0]['key'][0]}`."


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table as mdformat leaves it."""
    lines = [head, ("--",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
    )


def wrapped(text: str) -> str:
    """Prose at the width of the pages of the docs."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page())
