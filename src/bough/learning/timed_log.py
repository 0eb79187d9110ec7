"""A log with times: its rows in blocks of time, as the kernels of `prediction.py` read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any, Literal

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers, Names, Nodes
from bough._frames import collected
from bough.data.logs import Bad, read_rows
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.tree.tree import Tree

_MOST_BLOCKS = 100
_MICRO = 1e-6

Times = Literal["numbers", "dates", "dates with a zone"]


@dataclass(frozen=True, eq=False)
class TimedLog:
    """The rewards of a log, those of one action at one time as one row: in the order of blocks, actions and times."""

    leaves: Nodes
    """(n,) the node of each row's action."""
    times: Floats
    """(n,) since the first one; seconds where the log has dates."""
    count: Floats
    average: Floats
    squares: Floats
    """(n,) around the average."""
    block: Integers
    """(n,) ascending."""
    start: float
    """The first time as the log has it; in microseconds since 1970 where it has dates."""
    kind: Times

    @classmethod
    def read(cls, log: Any, tree: Tree, action: str, reward: str, time: str, bad: Bad) -> TimedLog:
        """The rows of a log; a `ValueError` where they cannot be used, or where there is but one block of time."""
        if isinstance(log, (Statistics, Observations)):
            raise ValueError(
                f"log is {type(log).__name__}, which do not say when rewards came; give a frame with a column of times"
            )
        for what, column in (("action", action), ("reward", reward), ("time", time)):
            if not isinstance(column, str):
                raise ValueError(f"{what} is {column!r}; give the name of a column")
        log, kind = _with_numbers(log, action, reward, time)
        rows, _ = read_rows(log, tree, action, reward, [time], bad=bad)
        start = float(rows.context[:, 0].min(initial=np.inf))
        times = (rows.context[:, 0] - start) * (1.0 if kind == "numbers" else _MICRO)
        return cls._of(tree.action_nodes(rows.action), np.asarray(rows.reward), times, start, kind)

    @classmethod
    def _of(cls, leaves: Nodes, rewards: Floats, times: Floats, start: float, kind: Times) -> TimedLog:
        block = _blocks(times)
        order = np.lexsort((times, leaves, block))
        leaves, rewards, times, block = leaves[order], rewards[order], times[order], block[order]
        first = np.ones(len(leaves), dtype=np.bool_)
        first[1:] = (leaves[1:] != leaves[:-1]) | (times[1:] != times[:-1])
        rows = np.flatnonzero(first)
        count = np.diff(np.append(rows, len(leaves))).astype(np.float64)
        average = np.add.reduceat(rewards, rows) / count
        squares = np.add.reduceat((rewards - np.repeat(average, count.astype(np.int64))) ** 2, rows)
        return cls(leaves[rows], times[rows], count, average, squares, block[rows], start, kind)

    @property
    def n_blocks(self) -> int:
        """How many blocks of time there are."""
        return int(self.block[-1]) + 1

    @property
    def n_predicted(self) -> int:
        """How many rewards have a block before their own."""
        return round(float(self.count[self.block > 0].sum()))

    @property
    def span(self) -> float:
        """The time from the first reward to the last."""
        return float(self.times.max())

    @property
    def block_times(self) -> Floats:
        """(B,) the mean time of each block's rewards."""
        weights = np.bincount(self.block, self.count)
        return np.asarray(np.bincount(self.block, self.count * self.times) / weights)

    def statistics(self, tree: Tree) -> Statistics:
        """The sums of all rewards of each action."""
        leaves, place = np.unique(self.leaves, return_inverse=True)
        sums = (self.count, self.count * self.average, self.squares + self.count * self.average**2)
        count, total, squares = (np.bincount(place, values).astype(np.float64) for values in sums)
        return Statistics(tree.actions[np.searchsorted(tree.leaves, leaves)], count, total, squares)

    def as_rewards(self, tree: Tree) -> tuple[Names, Floats, Any]:
        """Actions, rewards and times as `update` takes them: those of one row scatter as far as the log's own did.

        Of a count n, an average and a sum of squares s around it, one reward is the average where n is odd, and the
        others are in pairs at the same distance from it on both sides.
        """
        count = self.count.astype(np.int64)
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # within its row
        paired = place < np.repeat(count - count % 2, count)
        distance = np.sqrt(self.squares / np.maximum(count - count % 2, 1))
        rewards = np.repeat(self.average, count) + np.where(place % 2, 1.0, -1.0) * paired * np.repeat(distance, count)
        names = tree.actions[np.searchsorted(tree.leaves, np.repeat(self.leaves, count))]
        return names, rewards, self._as_given(np.repeat(self.times, count))

    def _as_given(self, times: Floats) -> Any:
        """Times since the first one as the log had them: numbers, or datetimes."""
        if self.kind == "numbers":
            return self.start + times
        dates = np.rint(self.start + times / _MICRO).astype(np.int64).astype("datetime64[us]")
        return dates if self.kind == "dates" else [one.replace(tzinfo=UTC) for one in dates.tolist()]

    def shown(self, half_life: float) -> float | timedelta:
        """A span of time in the user's units."""
        return half_life if self.kind == "numbers" else timedelta(seconds=half_life)


def _with_numbers(log: Any, action: str, reward: str, time: str) -> tuple[Any, Times]:
    """The log with its dates, if its times are such, as numbers of microseconds; what they are."""
    try:
        frame: Any = nw.from_native(log)
        schema = frame.collect_schema()
    except (TypeError, nw.exceptions.NarwhalsError):
        return log, "numbers"  # a path; or whoever reads it will say what is wrong
    names = list(dict.fromkeys((action, reward, time)))
    if not all(name in schema for name in names) or not isinstance(schema[time], (nw.Datetime, nw.Date)):
        return log, "numbers"
    kind: Times = "dates with a zone" if getattr(schema[time], "time_zone", None) else "dates"
    kept = collected(frame.select(*names))  # not every engine can make numbers of dates, and rows are read anyway
    return kept.with_columns(nw.col(time).dt.timestamp("us").cast(nw.Float64)).to_native(), kind


def _blocks(times: Floats) -> Integers:
    """The block of each row: every time that there is where they are few, or else blocks of about as many rewards."""
    distinct, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        shown = "no rewards" if not len(distinct) else "all rewards at one time"
        raise ValueError(f"the log has {shown}; it takes two times or more to see whether anything changes")
    if len(distinct) <= _MOST_BLOCKS:
        return place
    before = np.cumsum(counts) - counts
    _, block = np.unique(before * _MOST_BLOCKS // len(times), return_inverse=True)
    return np.asarray(block[place])
