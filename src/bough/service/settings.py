"""The settings of the service, in one place: what each is called, its default, its bounds, and what it means."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple, get_type_hints

_MIB = 1 << 20


def _setting(default: Any, help: str, least: float = -math.inf, most: float = math.inf) -> Any:
    return field(default=default, metadata={"help": help, "least": least, "most": most})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one process of the service goes about its work.

    >>> Settings(port=8001).port
    8001
    >>> Settings(port=99_999)
    Traceback (most recent call last):
    ValueError: port is 99999; give a whole number from 0 to 65535
    """

    host: str = _setting("127.0.0.1", "The address to listen at; 0.0.0.0 for all of the machine's.")
    port: int = _setting(8000, "The port to listen at; 0 for any that is free.", 0, 65_535)
    rate: float = _setting(10_000.0, "Requests per second for a key that has no rate of its own; 0 for no limit.", 0)
    burst: float = _setting(2.0, "How many seconds of its rate a key may use at once.", 0.001, 3_600)
    body_bytes: int = _setting(_MIB, "The largest body of a request.", 1_000)
    batch_bytes: int = _setting(4 * _MIB, "The largest body of a batch of rewards.", 1_000)
    file_bytes: int = _setting(256 * _MIB, "The largest tree or model.", 1_000)
    body_seconds: float = _setting(10.0, "How long a body, and each further MiB of it, may take to arrive.", 0.01)
    head_seconds: float = _setting(
        10.0, "How long the head of a request may take to arrive, and a new connection may say nothing.", 0.01
    )
    answer_seconds: float = _setting(
        30.0, "How long a client may take nothing of its answer before it is cut off.", 0.01
    )
    most_waiting: int = _setting(10_000, "How many requests may wait to be logged before more are refused.", 1)
    most_connections: int = _setting(2_000, "How many connections may be open before more are refused.", 1)
    snapshot_seconds: float = _setting(60.0, "How often a snapshot is written, where something was learned.", 0.01)
    snapshot_rows: int = _setting(100_000, "After how many rows a snapshot is written, however soon that is.", 1)
    checkpoint_bytes: int = _setting(
        16 * _MIB, "How large SQLite's write-ahead log may grow before it is moved into the database.", 100_000
    )
    prune_seconds: float = _setting(3_600.0, "How often contexts and rows that are too old are looked for.", 1)
    keeper_interval: float = _setting(
        1.0, "Seconds between two rounds of the keeper, who closes windows, writes snapshots and prunes.", 0.01, 3_600
    )
    lag_limit: float = _setting(10.0, "How many seconds learning may lag before /ready says no.", 0.01)
    cors: tuple[str, ...] = _setting((), "Origins whose pages may call the service, such as https://shop.example.")
    quiet: bool = _setting(False, "Whether to leave out the line that is printed per request.")
    drain_seconds: float = _setting(
        0.0, "How long /ready says no before the service stops listening, so that a balancer can notice.", 0, 3_600
    )
    grace_seconds: float = _setting(
        10.0, "How long requests under way may go on when the service is to stop.", 0, 3_600
    )

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            setting.check(getattr(self, setting.name))


class Setting(NamedTuple):
    """One setting."""

    name: str
    type: Any
    default: Any
    help: str
    least: float
    most: float

    @property
    def option(self) -> str:
        """What it is called on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def check(self, value: Any) -> None:
        """Refuse a value that makes no sense, and say what would."""
        if not self._is_sound(value):
            raise ValueError(f"{self.name} is {value!r}; give {self._wanted()}")

    def _is_sound(self, value: Any) -> bool:
        if self.type is bool:
            return isinstance(value, bool)
        if self.type is str:
            return isinstance(value, str) and bool(value) and not any(c.isspace() or c == "\0" for c in value)
        if self.type == tuple[str, ...]:
            return isinstance(value, tuple) and all(_is_origin(one) for one in value)
        kinds = (int,) if self.type is int else (int, float)
        return (
            isinstance(value, kinds)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and self.least <= value <= self.most
        )

    def _wanted(self) -> str:
        if self.type is bool:
            return "True or False"
        if self.type is str:
            return "a name without spaces"
        if self.type == tuple[str, ...]:
            return "a tuple of origins, such as https://shop.example or http://localhost:3000, without a path"
        what = "a whole number" if self.type is int else "a number"
        if self.most == math.inf:
            return f"{what} of at least {self.least}"
        return f"{what} from {self.least} to {self.most}"


def _is_origin(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    scheme, _, host = value.partition("://")
    return value == "*" or (
        scheme in ("http", "https") and bool(host) and not any(c.isspace() or c in "/?#@,*\0" for c in host)
    )


def _settings() -> tuple[Setting, ...]:
    types = get_type_hints(Settings)
    assert all(one.default is not MISSING for one in fields(Settings))
    return tuple(Setting(one.name, types[one.name], one.default, **one.metadata) for one in fields(Settings))


SETTINGS = _settings()
"""All settings, in the order of the documentation; docs/reference/service-settings.md has each of them."""
