"""What a user gives as rewards, contexts and actions, as numbers and arrays; a clear error for what they cannot be."""

from __future__ import annotations

import math
import reprlib
from pathlib import Path
from typing import Any

import numpy as np

from bough._arrays import Floats, Names


def whole_number(what: str, value: Any, least: int) -> int:
    """A count as an int, or a `ValueError` that names it.

    >>> whole_number("runs", 3, least=2)
    3
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{what} is {value!r}; give a whole number of at least {least}")
    return int(value)


def text_lines(path: Path, wanted: str) -> list[str]:
    """The lines of a text file that are not blank, or a `ValueError` that says what is wanted there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; give {wanted}") from None
    return [line.strip() for line in lines if line.strip()]


def level(value: Any) -> float:
    """The level of an interval, or a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0.0 < value < 1.0:
        raise ValueError(f"level is {value!r}; give a number between 0 and 1, such as 0.95")
    return float(value)


def either(trials: Any, exposure: Any) -> Any:
    """What is given of two words for the same: out of how much a count is."""
    if trials is not None and exposure is not None:
        raise ValueError("both trials and exposure were given; trials go with clicks, exposure with counts")
    return exposure if trials is None else trials


def is_one(reward: Any) -> bool:
    """Whether a reward is a single one, and so the action as well, which may be a tuple or another odd name."""
    if hasattr(reward, "ndim"):
        return bool(reward.ndim == 0)
    return isinstance(reward, (str, bytes)) or not hasattr(reward, "__len__")


def number(reward: Any) -> float:
    try:
        value = float("nan") if isinstance(reward, (str, bytes)) else float(reward)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"the reward is {reward!r}; give a number") from None
    if not math.isfinite(value):
        raise ValueError(f"the reward is {reward!r}; rewards are finite numbers")
    return value


def vector(rewards: Any, what: str) -> Floats:
    given = floats(rewards, what)
    if given.ndim != 1:
        raise ValueError(f"the {what} have shape {given.shape}; give one number an observation")
    finite = np.isfinite(given)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(f"the {what.removesuffix('s')} in row {row} is {given[row]}; {what} must be finite")
    return np.ascontiguousarray(given)


def floats(values: Any, what: str) -> Floats:
    try:
        given = np.asarray(values)
        if given.dtype.kind in "biufO":  # numpy would read numbers into text, times and imaginary parts as well
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"the {what} is {reprlib.repr(values)}; give numbers")


def as_names(action: Any) -> list[Any] | Names:
    """A batch's actions as a list or an array; a frame's column gives its values."""
    if isinstance(action, list):
        return action
    if hasattr(action, "to_pylist"):
        return list(action.to_pylist())
    if isinstance(action, np.ndarray) or hasattr(action, "to_numpy"):
        column = np.asarray(action if isinstance(action, np.ndarray) else action.to_numpy())
        if column.ndim != 1:
            raise ValueError(f"the actions have shape {column.shape}; give one column of names")
        return column
    if isinstance(action, str) or not hasattr(action, "__len__"):
        raise ValueError(f"action is {action!r} but there are many rewards; give as many actions")
    return list(action)
