"""A log whose contexts an encoder makes: its rows in memory, with the numbers of the features as columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import narwhals as nw

from bough._frames import position
from bough.data.contexts import NamedRows, encoded, named_rows
from bough.data.rows import Observations, check_intercept
from bough.model.encoders import LostEncoder, encoded_names, input_names, is_encoder, with_intercept
from bough.model.feature_names import INTERCEPT, distinct_names, shown


def checked_encoder(features: Any, intercept: Any) -> Any:
    """What is to make features of the columns of a log, with an intercept if that is asked for."""
    if isinstance(features, LostEncoder) or not is_encoder(features):
        raise ValueError(
            f"features is {features!r:.80}; give a bough.Features, or a fitted transformer of scikit-learn's"
        )
    names = encoded_names(features)
    check_intercept(intercept, names)
    if intercept and INTERCEPT in names:
        raise ValueError("intercept is True, and features has one already; leave out one of them")
    return with_intercept(features) if intercept else features


def encoded_log(
    log: Any, others: Sequence[str], context: Sequence[str] | None, features: Any, intercept: Any
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """A frame of the other columns of a log and of its features, what these are called in it, and their names."""
    encoder = checked_encoder(features, intercept)
    if isinstance(log, (str, os.PathLike)):
        raise ValueError(f"features makes numbers of rows in memory, and log is a path, {log!r}; read it into a frame")
    frame: Any = nw.from_native(log, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise ValueError(
            f"features makes numbers of rows in memory, and log is a {type(log).__name__}; give a pandas, polars or "
            "pyarrow frame: collect or fetch it first"
        )
    taken = _checked_columns(context, encoder)
    for column in (*others, *taken):
        position(column, frame.columns, "the log")
    names = encoded_names(encoder)
    part = frame.select(*taken)
    numbers = encoded(encoder, names, NamedRows({name: part[name] for name in taken}, len(part), part))
    kept = frame.select(*dict.fromkeys(others))
    labels = tuple(name if name not in others else f"{name} (feature)" for name in names)
    distinct_names(labels)
    columns = [
        nw.new_series(label, numbers[:, j], nw.Float64, backend=frame.implementation) for j, label in enumerate(labels)
    ]
    return kept.with_columns(*columns).to_native(), labels, names


def encoded_rows(log: Observations, features: Any, intercept: Any) -> Observations:
    """Rows whose contexts are a frame, with the numbers that features makes of it."""
    encoder = checked_encoder(features, intercept)
    names = encoded_names(encoder)
    rows = None if log.context is None else named_rows(log.context)
    if rows is None:  # numbers already
        return log.arranged(names)
    return Observations(log.action, log.reward, encoded(encoder, names, rows), log.trials, log.exposure, features=names)


def _checked_columns(context: Any, encoder: Any) -> list[str]:
    """The columns of the log that the encoder is given."""
    taken = input_names(encoder)
    if context is None:
        if taken is None:
            raise ValueError(
                f"features, a {type(encoder).__name__}, does not say which columns it takes; give context="
            )
        return taken
    names = list(distinct_names(context, "context"))
    if taken is not None and set(taken) - set(names):
        raise ValueError(f"context is {shown(names)}, and features takes {shown(taken)}; name these")
    return names
