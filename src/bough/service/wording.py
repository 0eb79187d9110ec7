"""What the library and the decoder of JSON say, in the words of those who send JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

_ADD_LEVEL = re.compile(r"add_level(\(.*?\))$")
_FACTORS = re.compile(r"factors=\{'([^']*)': \.\.\.\}")
_MEANT = re.compile(r"did you mean (.*)\?")
_SUCH_AS = re.compile(r"an action of this tree is (.*)")
_PATTERN = re.compile(r"Expected `str` matching regex '([^']*)'")
_ENUM = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_ID = "1 to 128 letters, digits and . _ : ~ - with a letter or digit first"
_EXPERIMENT = "up to 64 letters, digits, _ and - with a letter or digit first"


def in_json(message: str) -> str:
    """A message of the library, where what it would have one call or give is JSON.

    >>> print(in_json("unknown level; add a new one with add_level('store', 'nort')"))
    unknown level; add a new one by POST .../actions with {"op": "add_level", "factor": "store", "name": "nort"}
    >>> print(in_json("the level is missing; give factors={'store': ...}"))
    the level is missing; give "factors": {"store": ...}
    """
    message = _FACTORS.sub(lambda found: f'"factors": {{{json.dumps(found[1])}: ...}}', message)
    found = _ADD_LEVEL.search(message)
    if found is None:
        return message
    try:
        factor, level = ast.literal_eval(found[1])
        body = json.dumps({"op": "add_level", "factor": factor, "name": level})
    except (ValueError, SyntaxError, TypeError):  # a long name, which the message has in part
        body = "the op add_level"
    return f"{message[: found.start()].removesuffix('with ')}by POST .../actions with {body}"


def remedy_in(detail: str) -> str | None:
    """What a message says after its semicolon, as something to do; None where there is nothing.

    >>> remedy_in("unknown action 'bred'; did you mean 'bread'?")
    "give 'bread', if that is meant"
    """
    found = detail.partition("; ")[2]
    found = _MEANT.sub(r"give \1, if that is meant", found)
    return _SUCH_AS.sub(r"give the name of an action, such as \1", found) or None


def wrong_value(error: msgspec.ValidationError, of: Any, otherwise: str) -> tuple[str, str]:
    """What is wrong with what was sent as a struct of such a type, and the remedy.

    >>> from typing import Literal
    >>> Body = msgspec.defstruct("Body", [("op", Literal["add", "move"])])
    >>> wrong_value(msgspec.ValidationError("Invalid enum value 'ad' - at `$.op`"), Body, "see there")
    ("op is 'ad'", "give 'add' or 'move'")
    """
    what, _, place = str(error).partition(" - at `$.")
    place = place.removesuffix("`")
    pattern, enum = _PATTERN.fullmatch(what), _ENUM.fullmatch(what)
    if pattern and place:
        return f"{place} has characters that it cannot have", f"give {_ID if ':' in pattern[1] else _EXPERIMENT}"
    names = _choices(of, place.partition("[")[0]) if enum else []
    if enum and names:
        return f"{place} is {enum[1]}", f"give {', '.join(names[:-1])} or {names[-1]}"
    return str(error).partition("; ")[0], remedy_in(what) or otherwise


def _choices(of: Any, field: str) -> list[str]:
    """What a field of a struct takes, as it is written, where it takes one of a few."""
    about = inspect.type_info(of)
    fields = about.fields if isinstance(about, inspect.StructType) else ()
    return [repr(name) for one in fields if one.encode_name == field for name in _literals(one.type)]


def _literals(about: Any) -> Iterator[Any]:
    """All that one of a few can be, within a type."""
    if isinstance(about, inspect.LiteralType):
        yield from about.values
    elif isinstance(about, inspect.UnionType):
        for one in about.types:
            yield from _literals(one)
    elif isinstance(about, inspect.CollectionType):
        yield from _literals(about.item_type)
