"""Names of the features of contexts: checked, compared, put in order, and kept in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Integers
from bough._storage import Contents
from bough.tree.files import pack_names, unpack_names
from bough.tree.name_columns import as_column

INTERCEPT = "intercept"
"""What the feature that is always 1 is called: a context that goes by name need not have it."""

_SHOWN = 12  # names that a message shows


def checked_names(features: Any, dim: int | None) -> tuple[str, ...]:
    """Distinct names of features, as many as `dim`, or a `ValueError` that says what is wrong with them.

    >>> checked_names(["age", "price"], 2)
    ('age', 'price')
    """
    if dim is None:
        raise ValueError(
            f"features is {features!r:.80}, and there are no contexts; leave it out, or give the model a mean vector"
        )
    names = distinct_names(features)
    if len(names) != dim:
        raise ValueError(f"features has {len(names)} names, {shown(names)}; give {dim} names, one for each entry")
    return names


def distinct_names(features: Any, what: str = "features") -> tuple[str, ...]:
    """Any number of names, or a `ValueError` where something is no name, or two are the same.

    >>> distinct_names(["age", "price"])
    ('age', 'price')
    """
    if isinstance(features, (Mapping, Set)) or not _checks.is_list(features):
        raise ValueError(f"{what} is {features!r:.80}; give a list of names")
    _checks.refuse_masked(features, what)
    names = list(features)
    odd = [name for name in names if not isinstance(name, str) or not name]
    if odd:
        raise ValueError(f"{what} is {shown(names)}, {odd[0]!r:.80} among them; give names that are text")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"{what} has {twice!r} twice; give each a name of its own")
    return tuple(map(str, names))


def shown(names: Iterable[Any]) -> str:
    """Names as a message shows them: not all where they are many.

    >>> shown(["age", "price"])
    "'age', 'price'"
    """
    listed = [f"{name!r:.60}" for name in names]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more or "none"


def order_of(names: Sequence[str], wanted: Sequence[str], owner: str) -> Integers:
    """Where each of the wanted features is among the names, which must be the same ones in any order."""
    if set(names) != set(wanted):
        hint = "; was it summed without intercept=True?" if set(wanted) - set(names) == {INTERCEPT} else ""
        raise ValueError(f"{owner} has the features {shown(names)}, and {shown(wanted)} are wanted{hint}")
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[name] for name in wanted], dtype=np.int64)


def names_contents(names: Sequence[str]) -> dict[str, Any]:
    """The arrays that a file keeps of names of features."""
    return pack_names("features", as_column(names))


def restored_names(contents: Contents, dim: int | None) -> tuple[str, ...] | None:
    """The names that `names_contents` packed, checked; None where the header has no features."""
    if "features" not in contents.header:
        if "features_text" in contents or "features_ends" in contents:
            raise ValueError("there are names of features, which the header does not have")
        return None
    return checked_names(unpack_names("features", contents, dim).tolist(), dim)
