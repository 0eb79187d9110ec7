"""Clock: the present time, which the user owns, and how times and half-lives are given."""

from __future__ import annotations

import math
import reprlib
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Floats

_KINDS = ("number", "naive", "aware")
_EPOCH = datetime(1970, 1, 1)


class Clock:
    """A time that starts when it is first given, and never goes back.

    Times are numbers, in whatever unit the user likes, or datetimes: all of one kind. Inside they are numbers since
    `start`, in seconds where they are datetimes.

    >>> clock = Clock()
    >>> clock.advance(12.5), clock.now, clock.since(11.0)
    (0.0, 12.5, -1.5)
    """

    def __init__(self) -> None:
        self._kind: str | None = None
        self._start = 0.0
        self._elapsed = 0.0

    @property
    def is_started(self) -> bool:
        """Whether any time has been given."""
        return self._kind is not None

    @property
    def elapsed(self) -> float:
        """How long it has run."""
        return self._elapsed

    @property
    def now(self) -> Any:
        """The present time, as it was given: a number or a datetime; None before the first."""
        if self._kind is None:
            return None
        present = self._start + self._elapsed
        if self._kind == "number":
            return present
        moment = _EPOCH + timedelta(seconds=present)
        return moment if self._kind == "naive" else moment.replace(tzinfo=UTC)

    def since(self, times: Any) -> Any:
        """How long after the clock's start times are: a float for one, an array for many; 0 if it has not started."""
        kind, numbers = _read(times)
        self._check_kind(kind, times)
        if self._kind is None:
            start = float(np.min(numbers)) if np.size(numbers) else 0.0
            return numbers - start
        return numbers - self._start

    def advance(self, times: Any, *, is_now: bool = False) -> float:
        """Go to the latest of the times if that is after the present; how long that took.

        With `is_now` a `ValueError` where it is before the present.
        """
        kind, numbers = _read(times)
        self._check_kind(kind, times)
        if isinstance(numbers, float):  # what services tell it millions of times
            earliest = latest = float(numbers)
        elif is_now:
            raise ValueError(f"now is {_shown(times)}; give one time, a number or a datetime")
        elif not len(numbers):
            return 0.0
        else:
            earliest, latest = float(np.min(numbers)), float(np.max(numbers))
        if self._kind is None:
            self._kind, self._start = kind, earliest
        step = latest - self._start - self._elapsed
        if is_now and step < 0.0:
            raise ValueError(f"now is {times!r}, and it was {self.now!r} already; time does not go back")
        if step <= 0.0:
            return 0.0
        self._elapsed = latest - self._start
        return step

    def _check_kind(self, kind: str, given: Any) -> None:
        if self._kind is not None and kind != self._kind:
            words = {"number": "a number", "naive": "a datetime without a zone", "aware": "a datetime with a zone"}
            raise ValueError(f"the time {_shown(given)} is {words[kind]}, and the clock was given {words[self._kind]}")

    def copy(self) -> Clock:
        """A clock that goes on by itself."""
        twin = Clock()
        twin.__dict__.update(self.__dict__)
        return twin

    def contents(self) -> dict[str, Any] | None:
        """What a file keeps; None before the first time."""
        return None if self._kind is None else {"kind": self._kind, "start": self._start, "elapsed": self._elapsed}

    @classmethod
    def restored(cls, contents: Any) -> Clock:
        """What `contents` gave, checked."""
        clock = cls()
        if contents is None:
            return clock
        if not isinstance(contents, dict) or contents.keys() != {"kind", "start", "elapsed"}:
            raise ValueError(f"the clock is {contents!r:.60}; expected its kind, start and elapsed time")
        start, elapsed = (_checks.number(contents[name], name) for name in ("start", "elapsed"))
        sound = contents["kind"] in _KINDS and elapsed >= 0.0 and math.isfinite(start + elapsed)
        if sound and contents["kind"] != "number":
            try:
                _EPOCH + timedelta(seconds=start + elapsed)
            except OverflowError:
                sound = False
        if not sound:
            raise ValueError(f"the clock is {contents!r:.60}; no clock can be there")
        clock._kind, clock._start, clock._elapsed = contents["kind"], start, elapsed
        return clock


def as_span(value: Any, what: str) -> float | timedelta:
    """A half-life as a float, or as a timedelta where it is a span of time; a `ValueError` where it is neither.

    >>> as_span(30, "half_life"), as_span(np.timedelta64(1, "m"), "half_life")
    (30.0, datetime.timedelta(seconds=60))
    """
    span: Any = math.nan
    try:
        if isinstance(value, np.timedelta64):
            span = timedelta(seconds=float(value / np.timedelta64(1, "s")))
        elif isinstance(value, timedelta):
            span = timedelta(seconds=value.total_seconds())
        elif not isinstance(value, bool):
            span = _checks.number(value, what)
    except (ValueError, OverflowError):  # no number, or no time at all
        span = math.nan
    if not 0.0 < half_life_of(span) < math.inf:
        wanted = "a positive, finite number, or a timedelta where times are datetimes"
        raise ValueError(f"{what} is {value!r}; give a half-life: {wanted}")
    return span  # type: ignore[no-any-return]


def half_life_of(span: float | timedelta) -> float:
    """A half-life as a number, in seconds where it is a timedelta.

    >>> half_life_of(30.0), half_life_of(timedelta(minutes=1))
    (30.0, 60.0)
    """
    return span.total_seconds() if isinstance(span, timedelta) else span


def span_contents(span: float | timedelta | None) -> Any:
    """A half-life as a file's header has it: a number, {"seconds": number}, or None."""
    return {"seconds": span.total_seconds()} if isinstance(span, timedelta) else span


def restored_span(contents: Any, what: str) -> float | timedelta | None:
    """What `span_contents` gave, checked.

    >>> restored_span({"seconds": 60.0}, "half_life")
    datetime.timedelta(seconds=60)
    """
    if contents is None:
        return None
    in_seconds = isinstance(contents, dict) and contents.keys() == {"seconds"}
    value = contents["seconds"] if in_seconds else contents
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{what} is {reprlib.repr(contents)}; expected a number, or one of seconds")
    try:
        return as_span(timedelta(seconds=value) if in_seconds else value, what)
    except OverflowError:
        raise ValueError(f"{what} is {value!r} seconds; that is too long") from None


def check_units(half_life: float | timedelta, times: Any, what: str) -> None:
    """Refuse datetimes with a half-life that is a number, and the reverse."""
    by_date = isinstance(half_life, timedelta)
    if (_read(times)[0] != "number") != by_date:
        wanted = "datetimes" if by_date else "numbers"
        raise ValueError(f"{what} is {half_life!r}, so times are {wanted}; {_shown(times)} was given")


def _read(times: Any) -> tuple[str, Any]:
    """The kind of one time or many, and the numbers that they are: a float, or an array."""
    if type(times) is float and math.isfinite(times):
        return "number", times
    if isinstance(times, datetime):
        return _of_datetime(times)
    if isinstance(times, np.datetime64):
        return "naive", float(_seconds(np.array([times]), times)[0])
    if _checks.is_one(times):
        try:
            return "number", _finite(_checks.number(times, "time"), times)
        except ValueError:
            raise ValueError(f"the time is {_shown(times)}; give a finite number, or a datetime") from None
    if hasattr(times, "dt") and hasattr(times, "to_numpy"):  # a column of a frame
        zone = getattr(times.dtype, "tz", None) or getattr(times.dtype, "time_zone", None)
        column = times.dt.tz_convert(None) if getattr(times.dtype, "tz", None) else times
        if np.asarray(column.to_numpy()).dtype.kind == "M":
            return "aware" if zone else "naive", _seconds(np.asarray(column.to_numpy()), times)
    array = np.asarray(times)
    if array.dtype.kind == "M":
        return "naive", _seconds(array, times)
    if array.dtype.kind == "O" and array.size and all(isinstance(one, datetime) for one in array.ravel()):
        read = [_of_datetime(one) for one in array.ravel()]
        kinds = {kind for kind, _ in read}
        if len(kinds) > 1:
            raise ValueError("some of the times have a zone and some have none; give all with one, or none")
        return kinds.pop(), np.array([number for _, number in read])
    return "number", _finite(_checks.vector(times, "times"), times)


def _of_datetime(time: datetime) -> tuple[str, float]:
    if time != time:  # pandas' NaT
        raise ValueError(f"the time {time!r} is missing; give every reward a time")
    if time.tzinfo is None:
        return "naive", (time - _EPOCH).total_seconds()
    return "aware", (time.astimezone(UTC).replace(tzinfo=None) - _EPOCH).total_seconds()


def _seconds(array: Any, given: Any) -> Floats:
    if np.isnat(array).any():
        raise ValueError(f"some of the times {_shown(given)} are missing; give every reward a time")
    return np.asarray(array.astype("datetime64[us]").astype(np.int64) / 1e6)


def _finite(numbers: Any, given: Any) -> Any:
    if not np.isfinite(numbers).all():
        raise ValueError(f"the time {_shown(given)} is not finite; give numbers or datetimes")
    return numbers


def _shown(given: Any) -> str:
    text = repr(given).replace("\n", " ")
    return text if len(text) < 80 else text[:77] + "..."
