"""Contexts by name: a dict, a Series or a frame as rows of numbers, in the order of a model's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough._frames import collected, make_frame
from bough.model.encoders import encode, input_names
from bough.model.feature_names import INTERCEPT, distinct_names, shown
from bough.model.features import Features
from bough.model.model import Model


class NamedRows(NamedTuple):
    """Contexts whose values go by name."""

    columns: dict[Any, Any]
    """The values of each name, one for each row."""
    n: int
    frame: nw.DataFrame[Any] | None
    """The frame that they came in, if it was one."""


def one_by_name(model: Model, context: Any) -> Any:
    """A context with names as the (d,) numbers of the model's features; one without as it is."""
    if model.feature_names is not None and _is_named_tuple(context):
        context = context._asdict()
    rows = named_row(context)
    if rows is None:
        return context
    if rows.n != 1:
        raise ValueError(
            f"the context has {rows.n} rows; give one row for one action, or one for each of a list of them"
        )
    return in_order(model, rows)[0]


def many_by_name(model: Model, contexts: Any) -> Any:
    """Contexts with names as the (n, d) numbers of the model's features; others as they are."""
    if model.feature_names is not None and isinstance(contexts, (list, tuple)) and any(map(_is_named_tuple, contexts)):
        contexts = [one._asdict() if _is_named_tuple(one) else one for one in contexts]
    rows = named_rows(contexts)
    return contexts if rows is None else in_order(model, rows)


def named_row(context: Any) -> NamedRows | None:
    """One context with the names of its values; None where it has none, and goes by position."""
    if isinstance(context, Mapping):
        return NamedRows({name: [value] for name, value in context.items()}, 1, None)
    if _is_named_series(context):
        return NamedRows({name: [value] for name, value in _as_dict(context).items()}, 1, None)
    return _framed(context)


def named_rows(contexts: Any) -> NamedRows | None:
    """Many contexts with the names of their values; None where they have none, and go by position."""
    if isinstance(contexts, Mapping):
        columns = {name: _column(name, values) for name, values in contexts.items()}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns of the contexts have lengths {sorted(lengths)}; give one value for each row")
        return NamedRows(columns, lengths.pop() if lengths else 0, None)
    if isinstance(contexts, (list, tuple)):
        return _listed(contexts)
    return _framed(contexts)


def _column(name: Any, values: Any) -> Any:
    if not _checks.is_list(values) or not hasattr(values, "__len__"):
        raise ValueError(f"{name!r} of the contexts is {values!r:.60}; give a column, with one value for each row")
    return values


def _listed(contexts: Sequence[Any]) -> NamedRows | None:
    """A list of dicts or Series."""
    if not len(contexts) or not (isinstance(contexts[0], Mapping) or _is_named_series(contexts[0])):
        return None
    rows = [_as_dict(one) for one in contexts]
    odd = next((i for i, row in enumerate(rows) if row.keys() != rows[0].keys()), None)
    if odd is not None:
        raise ValueError(
            f"the context in row {odd} has {shown(rows[odd])}, and that in row 0 {shown(rows[0])}; give all the same"
        )
    return NamedRows({name: [row[name] for row in rows] for name in rows[0]}, len(rows), None)


def _is_named_series(context: Any) -> bool:
    """Whether it is a pandas Series whose index has names, be it not throughout."""
    if not (hasattr(context, "index") and hasattr(context, "to_dict") and getattr(context, "ndim", 0) == 1):
        return False
    return any(isinstance(name, str) for name in context.index)


def _is_named_tuple(context: Any) -> bool:
    """Whether it is a row such as `itertuples` gives, which goes by name where the model has names."""
    return isinstance(context, tuple) and hasattr(context, "_asdict")


def _as_dict(context: Any) -> Mapping[Any, Any]:
    """A context of a list that has names, or none at all where it has no names."""
    if isinstance(context, Mapping):
        return context
    if not _is_named_series(context):
        return {}
    _check_distinct(list(context.index), "Series")
    found: Mapping[Any, Any] = context.to_dict()
    return found


def _check_distinct(names: Sequence[Any], what: str) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"the {what} of the context has {shown(names)}; give each a name of its own")


def _framed(context: Any) -> NamedRows | None:
    """A frame; None where it is none, or its columns are only numbered."""
    frame: Any = nw.from_native(context, pass_through=True)
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        return None
    table = collected(frame)
    names = table.columns
    if names and not any(isinstance(name, str) for name in names):
        return None
    _check_distinct(names, "frame")
    return NamedRows({name: table[name] for name in names}, len(table), table)


# -- in the order of the model -------------------------------------------------------------------


def in_order(model: Model, rows: NamedRows) -> Floats:
    """(n, d) the numbers of a model's features; a `ValueError` where a name is missing or unknown."""
    names = model.feature_names
    if names is None:
        raise ValueError(
            f"the context goes by name, {shown(rows.columns)}, and the model has no names for its features; give it "
            f"features=[...], or give the {model.dim} numbers alone, in its order"
        )
    if isinstance(model.features, tuple):
        return arranged(rows, names)
    return encoded(model.features, names, rows)


def arranged(rows: NamedRows, names: Sequence[str]) -> Floats:
    """(n, d) the columns of those names; the intercept is 1 where it is missing."""
    _check_names(rows, names, [name for name in names if name != INTERCEPT])
    found = np.ones((rows.n, len(names)))
    for j, name in enumerate(names):
        if name in rows.columns:
            found[:, j] = _numbers(name, rows.columns[name])
    return found


def encoded(encoder: Any, names: tuple[str, ...], rows: NamedRows) -> Floats:
    """(n, d) what an encoder makes of contexts."""
    taken = input_names(encoder)
    if taken is not None:
        _check_names(rows, taken, taken if isinstance(encoder, Features) else ())
    if isinstance(encoder, Features):
        return encode(encoder, rows.columns, rows.n, names)
    order = [name for name in taken or rows.columns if name in rows.columns]
    if rows.frame is not None:
        frame = rows.frame.select(*order).to_native()
    else:
        frame = make_frame({name: rows.columns[name] for name in order})
    return encode(encoder, frame, rows.n, names)


def _check_names(rows: NamedRows, known: Sequence[Any], needed: Sequence[Any]) -> None:
    missing = [name for name in needed if name not in rows.columns]
    unknown = [name for name in rows.columns if name not in known]
    if missing or unknown:
        parts = [f"lacks {shown(missing)}"] if missing else []
        parts += [f"has {shown(unknown)}, which the model does not know"] if unknown else []
        raise ValueError(f"the context {', and '.join(parts)}; give {shown(known)}")


def _numbers(name: str, values: Any) -> Floats:
    given = _checks.floats(values.to_numpy() if isinstance(values, nw.Series) else values, f"context's {name!r}")
    if given.ndim != 1:
        raise ValueError(f"{name!r} of the context has shape {given.shape}; give one number for each row")
    return given


def without_model(contexts: Any, features: Any = None) -> tuple[Any, Any]:
    """Contexts as numbers, and the names of their columns where they have any; `features` says in which order."""
    rows = None if contexts is None else named_rows(contexts)
    if rows is None:
        return contexts, features
    names = distinct_names(list(rows.columns) if features is None else features)
    return arranged(rows, names), names


def as_logged(model: Model, given: Any, checked: Floats | None) -> Any:
    """A context as a log keeps it, and as `update` takes it again: by name where the model has names."""
    if checked is None or model.feature_names is None:
        return None if checked is None else checked.tolist()
    if isinstance(model.features, tuple):
        return dict(zip(model.feature_names, checked.tolist(), strict=True))
    rows = named_row(given)
    if rows is None:
        return checked.tolist()
    return {name: values[0] for name, values in rows.columns.items()}
