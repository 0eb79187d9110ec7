"""What a user gives as rewards, contexts and actions, as numbers and arrays; a clear error for what they cannot be."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bough._arrays import Floats, Integers, Names

_MOST = 2**63 - 1  # what counts and sizes of arrays can be


def whole_number(what: str, value: Any, least: int) -> int:
    """A count as an int, or a `ValueError` that names it.

    >>> whole_number("runs", 3, least=2)
    3
    """
    if not is_whole(value) or value < least:
        raise ValueError(f"{what} is {reprlib.repr(value)}; give a whole number of at least {least}")
    if value > _MOST:
        raise ValueError(f"{what} is {reprlib.repr(value)}; give a whole number of at most {_MOST}")
    return int(value)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer; True and a span of time, which Python and numpy count among them, are not."""
    return type(value) is int or (
        isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))
    )


def one_of(what: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a word that is not one of a few."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(f'"{choice}"' for choice in choices[:-1])
        raise ValueError(f'{what} is {reprlib.repr(value)}; give {wanted} or "{choices[-1]}"')


def flag(what: str, value: Any) -> bool:
    """True or False as a bool, or a `ValueError` that names it.

    >>> flag("settle", np.True_)
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{what} is {reprlib.repr(value)}; give True or False")
    return bool(value)


def is_list(values: Any) -> bool:
    """Whether a value has entries to go through; text and an array without dimensions have none."""
    return isinstance(values, Iterable) and not isinstance(values, (str, bytes)) and getattr(values, "ndim", 1) > 0


def is_nothing(given: Any) -> bool:
    """Whether nothing is given where a mapping may be: a frame will not say whether it is empty."""
    return given is None or (isinstance(given, Mapping) and not given)


def shown(value: Any) -> str:
    """A value as an error has it: short, and on one line, which frames are not.

    >>> shown(np.eye(2))
    'array([[1., 0... [0., 1.]])'
    """
    return " ".join(reprlib.repr(value).split())


def column(values: Any, what: str, wanted: str) -> list[Any]:
    """The entries of a list, an array, or one column of a frame, as Python has them; `wanted` is what to give instead.

    >>> column(np.array([3, 1]), "levels", "a list")
    [3, 1]
    """
    if isinstance(values, (set, frozenset)):
        raise ValueError(f"{what} is {shown(values)}, a set, which has no order; give {wanted}")
    if not is_list(values) or isinstance(values, Mapping) or hasattr(values, "columns"):
        raise ValueError(f"{what} is {shown(values)}; give {wanted}")
    refuse_masked(values, what.removeprefix("the "))
    if hasattr(values, "to_pylist"):  # pyarrow's entries are no values of Python
        return list(values.to_pylist())
    return list(values.tolist() if hasattr(values, "tolist") else values)


def is_among(name: Any, names: Iterable[Any]) -> bool:
    """Whether a name is one of some; an odd one, which will not be compared, is not."""
    try:
        return name in set(names)
    except TypeError:
        return False


def integers(values: Any, what: str) -> Integers:
    """A list of whole numbers as an array, or a `ValueError`; what they may be is left to the caller.

    >>> integers([3, 1], "nodes")
    array([3, 1])
    """
    refuse_masked(values, what)
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        given = np.empty((0, 0))
    huge = given.dtype.kind == "u" and given.size and int(given.max()) > _MOST
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu") or huge:
        raise ValueError(f"{what} is {reprlib.repr(values)}; give a list of integers")
    return given.astype(np.int64)


def no_file(path: object) -> str:
    """What to say of a file that is not there: what it may have been meant to be.

    >>> no_file("no-such-folder/agent.bough")
    "there is no file 'no-such-folder/agent.bough'; give one that is there"
    """
    name, folder = Path(str(path)).name, Path(str(path)).parent
    there = [one.name for one in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(name, there, n=1, cutoff=0.8)
    hint = f"did you mean {str(folder / near[0])!r}?" if near else "give one that is there"
    return f"there is no file {str(path)!r}; {hint}"


def text_lines(path: Path, wanted: str) -> list[str]:
    """The lines of a text file that are not blank, or a `ValueError` that says what is wanted there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file; give {wanted}") from None
    return [line.strip() for line in lines if line.strip()]


def level(value: Any, what: str = "level") -> float:
    """The level of an interval, or a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0.0 < value < 1.0:
        raise ValueError(f"{what} is {value!r}; give a number between 0 and 1, such as 0.95")
    return float(value)


def trials_or_exposure(trials: Any, exposure: Any) -> Any:
    """What is given of two words for the same: out of how much a count is."""
    if trials is not None and exposure is not None:
        raise ValueError("both trials and exposure were given; trials go with clicks, exposure with counts")
    return exposure if trials is None else trials


def is_one(reward: Any) -> bool:
    """Whether a reward is a single one, and so the action as well, which may be a tuple or another odd name."""
    if hasattr(reward, "ndim"):
        return bool(reward.ndim == 0)
    return isinstance(reward, (str, bytes)) or not hasattr(reward, "__len__")


def number(given: Any, what: str = "reward") -> float:
    try:
        value = float(given) if isinstance(given, (float, int)) else _number(given)
    except (TypeError, ValueError, OverflowError):
        shown = "masked, a missing value" if given is np.ma.masked else reprlib.repr(given)
        raise ValueError(f"the {what} is {shown}; give a number") from None
    if not math.isfinite(value):
        raise ValueError(f"the {what} is {given!r}; give a finite number")
    return value


def _number(given: Any) -> float:
    value = floats(given, "number")
    if value.ndim:
        raise ValueError("a list, where one number is wanted")
    return float(value)


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
    """Numbers as an array of floats; a `ValueError` for text, times, imaginary parts and masked entries."""
    refuse_masked(values, what)
    try:
        given = np.asarray(values)
        # numpy would read numbers into text, times and imaginary parts as well
        if given.dtype.kind in "biuf" or (given.dtype.kind == "O" and not any(map(_is_odd, given.flat))):
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"the {what} is {reprlib.repr(values)}; give numbers")


def _is_odd(value: Any) -> bool:
    return isinstance(value, (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64, np.ndarray))


def refuse_masked(values: Any, what: str) -> None:
    """A `ValueError` where an entry of a masked array, or of a list of them, is masked.

    What numpy would otherwise read there is whatever number lies below the mask.
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values).reshape(len(values) if values.ndim else 1, -1).any(axis=1)
    elif isinstance(values, (list, tuple)) and any(
        issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, values))
    ):
        masked = np.array([bool(np.ma.getmaskarray(one).any()) for one in values])
    else:
        return
    if masked.any():
        row = int(np.flatnonzero(masked)[0])
        raise ValueError(f"the {what} is masked in row {row}, which is a missing value; drop such rows or fill them in")


def listed(names: Any, what: str) -> list[Any]:
    """The names as a list; a `ValueError` where they are one name, or masked."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__len__") or getattr(names, "ndim", 1) != 1:
        raise ValueError(f"{what} is {names!r}; give a list of action names")
    refuse_masked(names, what)
    return names.to_pylist() if hasattr(names, "to_pylist") else list(names)


def as_names(action: Any) -> list[Any] | Names:
    """A batch's actions as a list or an array; a frame's column gives its values."""
    refuse_masked(action, "action")
    if isinstance(action, list):
        return action
    if hasattr(action, "to_pylist"):
        return list(action.to_pylist())
    if isinstance(action, np.ndarray) or hasattr(action, "to_numpy"):
        column = np.asarray(action if isinstance(action, np.ndarray) else action.to_numpy())
        if column.ndim != 1:
            raise ValueError(f"the actions have shape {column.shape}; give one column of names")
        return column
    if isinstance(action, (str, bytes)) or not hasattr(action, "__len__"):
        raise ValueError(f"action is {action!r} but there are many rewards; give as many actions")
    return list(action)
