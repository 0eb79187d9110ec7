"""A log with times: its rows in blocks of time, as the kernels of `prediction.py` read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import narwhals as nw
import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough._frames import collected
from bough.data.logs import Bad, read_rows
from bough.data.rows import Observations
from bough.data.statistics import Statistics
from bough.tree.tree import Tree

_MOST_BLOCKS = 100
_MICRO = 1e-6


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
    has_dates: bool

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
        log, has_dates = _with_numbers(log, action, reward, time)
        rows, _ = read_rows(log, tree, action, reward, [time], bad=bad)
        times = rows.context[:, 0]
        times = (times - times.min(initial=np.inf)) * (_MICRO if has_dates else 1.0)
        return cls._of(tree.action_nodes(rows.action), np.asarray(rows.reward), times, has_dates)

    @classmethod
    def _of(cls, leaves: Nodes, rewards: Floats, times: Floats, has_dates: bool) -> TimedLog:
        block = _blocks(times)
        order = np.lexsort((times, leaves, block))
        leaves, rewards, times, block = leaves[order], rewards[order], times[order], block[order]
        first = np.ones(len(leaves), dtype=np.bool_)
        first[1:] = (leaves[1:] != leaves[:-1]) | (times[1:] != times[:-1])
        start = np.flatnonzero(first)
        count = np.diff(np.append(start, len(leaves))).astype(np.float64)
        average = np.add.reduceat(rewards, start) / count
        squares = np.add.reduceat((rewards - np.repeat(average, count.astype(np.int64))) ** 2, start)
        return cls(leaves[start], times[start], count, average, squares, block[start], has_dates)

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

    def shown(self, half_life: float) -> float | timedelta:
        """A span of time in the user's units."""
        return timedelta(seconds=half_life) if self.has_dates else half_life


def _with_numbers(log: Any, action: str, reward: str, time: str) -> tuple[Any, bool]:
    """The log with its dates, if its times are such, as numbers of microseconds; whether they are."""
    try:
        frame: Any = nw.from_native(log)
        schema = frame.collect_schema()
    except (TypeError, nw.exceptions.NarwhalsError):
        return log, False  # a path; or whoever reads it will say what is wrong
    names = list(dict.fromkeys((action, reward, time)))
    if not all(name in schema for name in names) or not isinstance(schema[time], (nw.Datetime, nw.Date)):
        return log, False
    kept = collected(frame.select(*names))  # not every engine can make numbers of dates, and rows are read anyway
    return kept.with_columns(nw.col(time).dt.timestamp("us").cast(nw.Float64)).to_native(), True


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
