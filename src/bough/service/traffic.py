"""What decisions and rewards there were, as totals: per action, and per minute, hour or day."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bough._arrays import Floats, Integers, Nodes
from bough.data.rows import checked_context
from bough.model.feature_names import INTERCEPT
from bough.model.model import Model
from bough.service.history import History
from bough.service.records import Context, DecisionRow, Learning, Name, OutcomeRow
from bough.tree.catalogue import Catalogue
from bough.tree.tree import Tree

MINUTE, HOUR, DAY = 60, 3_600, 86_400
_WIDTHS = (MINUTE, HOUR, DAY)
_KEPT = (2 * DAY, 60 * DAY)  # seconds that minutes, and hours, are kept for
_CONTEXTS = 256  # that wait to be averaged
_VERSION = 1


class Sums(NamedTuple):
    """What happened in a span of time; spans add up."""

    decisions: int = 0
    rewards: int = 0
    """Whole observations: learned, or only logged; late ones are not among them."""
    total: float = 0.0
    """The sum of their values."""
    squares: float = 0.0
    late: int = 0
    observed: int = 0
    """Decisions in the mode observe."""
    agreed: int = 0
    """Those of them in which the caller's own actions were the suggested ones."""
    judged: int = 0
    """Decisions of which it is known whether they explored."""
    explored: int = 0
    """Those of them whose action was not the one with the highest mean."""
    weighed: int = 0
    """Decisions of which it is known what the best action was expected to earn more."""
    gain: float = 0.0
    """The sum of what it was expected to earn more."""

    def plus(self, other: Iterable[float]) -> Sums:
        """The sums of both.

        >>> Sums(decisions=2).plus(Sums(decisions=1, late=1))[:5]
        (3, 0, 0.0, 0.0, 1)
        """
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[arg-type]


class Span(NamedTuple):
    """A span of time, in seconds since 1970, and what happened in it."""

    start: int
    seconds: int
    sums: Sums


class Traffic:
    """The totals of one experiment. One thread notes what happens while others read.

    >>> traffic = Traffic()
    >>> traffic.add_counts({"tea": 3, "coffee": 1}, [(1_700_000_040, Sums(decisions=4, rewards=2, total=1.0))])
    >>> traffic.total, traffic.decisions("tea"), traffic.spans()[0].sums.rewards
    (4, 3, 2)
    """

    def __init__(self) -> None:
        self._writing = threading.Lock()  # held for moments only, so that noting never waits
        self._reading = threading.Lock()
        self._new: dict[Name, int] = {}  # decisions since the last time that someone read
        self._spans: tuple[dict[int, list[float]], ...] = ({}, {}, {})
        self._latest = self._merged = 0  # minutes
        self._since = (0, 0)  # what minutes, and hours, are kept from
        self._contexts: deque[Context] = deque(maxlen=_CONTEXTS)
        self._count: dict[Name, int] = {}
        self._total = 0
        self._placed: _Placed | None = None
        self._unplaced: dict[Name, int] = {}
        self._context_sum: Floats | None = None
        self._n_contexts = 0
        self.history = History()

    # -- what happens --------------------------------------------------------------------------

    def note_decisions(self, rows: list[DecisionRow]) -> None:
        """Count decisions that were logged."""
        with self._writing:
            new = self._new
            for row in rows:
                for action in row.actions:
                    new[action] = new.get(action, 0) + 1
                sums = self._minute(row.at)
                sums[0] += 1
                if row.mode == "observe":
                    sums[5] += 1
                    sums[6] += _is_agreed(row)
                if row.context is not None:
                    self._contexts.append(row.context)
            self.history.note_decisions(rows[-_CONTEXTS:])

    def note_exploration(self, at: float, judged: int, explored: int, weighed: int, gain: float) -> None:
        """Count decisions of a minute by whether they explored, and what the best action was expected to earn more."""
        with self._writing:
            sums = self._minute(at)
            for place, more in zip(range(7, 11), (judged, explored, weighed, gain), strict=True):
                sums[place] += more

    def note_outcomes(self, rows: list[OutcomeRow], learning: Learning = "at_once") -> None:
        """Count rewards in the minutes in which they came.

        Where learning is `at_close`, a reward that is not learned is a part of what is learned when its window closes,
        and is not counted by itself.
        """
        with self._writing:
            for row in rows:
                if row.kind == "late":
                    self._minute(row.at)[4] += 1
                elif row.kind in ("closed", "default") or (
                    row.kind == "reward" and (row.learn or learning == "at_once")
                ):
                    sums = self._minute(row.at)
                    sums[1] += 1
                    sums[2] += row.value
                    sums[3] += row.value * row.value

    def add_counts(
        self, decisions: Mapping[Name, int] | None = None, spans: Iterable[tuple[float, Iterable[float]]] = ()
    ) -> None:
        """Add decisions per action, and what `Sums` has per minute, such as a database has them.

        A minute goes by the second in which it began.
        """
        with self._writing:
            for action, count in (decisions or {}).items():
                self._new[action] = self._new.get(action, 0) + int(count)
            for start, sums in spans:
                self._add(self._minute(start), sums)

    def _minute(self, at: float) -> list[float]:
        """The sums of the minute of a time, or of the hour or the day where that is long ago."""
        minute = int(at // MINUTE) * MINUTE
        found = self._spans[0].get(minute)
        if found is not None:
            return found
        if minute > self._latest:
            self._latest = minute
            if minute >= self._merged + HOUR:
                self._merge()
        level = next((i for i, since in enumerate(self._since) if minute >= since), 2)
        start = minute - minute % _WIDTHS[level]
        return self._spans[level].setdefault(start, list(Sums()))

    @staticmethod
    def _add(sums: list[float], more: Iterable[float]) -> None:
        sums[:] = [a + b for a, b in zip(sums, more, strict=True)]

    def _merge(self) -> None:
        """Have old minutes be parts of hours, and old hours parts of days."""
        self._merged = self._latest
        ago = [self._latest - kept for kept in _KEPT]
        self._since = (ago[0] - ago[0] % HOUR, ago[1] - ago[1] % DAY)  # so that no minute is in an hour as well
        for level, since in enumerate(self._since):
            spans, width = self._spans[level], _WIDTHS[level + 1]
            for start in [start for start in spans if start < since]:
                self._add(self._spans[level + 1].setdefault(start - start % width, list(Sums())), spans.pop(start))

    # -- reading -------------------------------------------------------------------------------

    def spans(self) -> list[Span]:
        """What happened in each minute, or, long ago, in each hour or day, in order; empty ones are left out."""
        with self._writing:
            found = [
                Span(start, width, _summed(sums))
                for width, spans in zip(_WIDTHS, self._spans, strict=True)
                for start, sums in spans.items()
            ]
        return sorted(found)

    @property
    def total(self) -> int:
        """How many actions were decided for, all slots counted, also actions that are gone."""
        with self._reading:
            self._take_in()
            return self._total

    def decisions(self, action: Name) -> int:
        """How many decisions there were for an action, all slots counted."""
        with self._reading:
            self._take_in()
            return self._count.get(action, 0)

    def at_nodes(self, catalogue: Catalogue) -> Integers:
        """Decisions at or below each node, of the tree and added; those for actions that are gone count at the root.

        What was found is kept, and only the paths of actions with new decisions are counted again.
        """
        with self._reading:
            self._take_in()
            if self._placed is None or not self._placed.goes_with(catalogue):
                self._placed, self._unplaced = _Placed(catalogue), dict(self._count)
            self._placed.add(catalogue, self._unplaced)
            self._unplaced = {}
            return self._placed.counts

    def prepare(self, tree: Tree) -> None:
        """Have decisions counted at the nodes of a tree, if they are not, so that `at_nodes` is quick."""
        placed = self._placed
        if placed is None or placed.tree is not tree:
            self.at_nodes(Catalogue(tree))

    def _take_in(self) -> None:
        """Have the new decisions among the counts."""
        with self._writing:
            fresh, self._new = self._new, {}
        counts = (self._count,) if self._placed is None else (self._count, self._unplaced)
        for action, count in fresh.items():
            self._total += count
            for known in counts:
                known[action] = known.get(action, 0) + count

    def mean_context(self, model: Model) -> Floats | None:
        """The average of the contexts of decisions, as numbers; None where the model takes none.

        Before there was one, features have their own averages, and all numbers are 1 where there are no features.
        """
        if model.is_scalar:
            return None
        with self._writing:
            waiting = list(self._contexts)
            self._contexts.clear()
        with self._reading:
            if self._context_sum is None or len(self._context_sum) != model.dim:
                self._context_sum, self._n_contexts = np.zeros(model.dim), 0
            for context in waiting:
                try:
                    self._context_sum += checked_context(model, context)
                except ValueError:  # of another model that there was before
                    continue
                self._n_contexts += 1
            if self._n_contexts:
                return self._context_sum / self._n_contexts
        names = model.feature_names
        return np.ones(model.dim) if names is None else np.array([float(name == INTERCEPT) for name in names])

    # -- snapshots -----------------------------------------------------------------------------

    def contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A header and arrays that `restored` makes the same traffic of."""
        spans = self.spans()
        with self._reading:
            self._take_in()
            names = msgspec.json.encode(list(self._count))
            counts = np.fromiter(self._count.values(), np.int64, len(self._count))
            contexts = None if self._context_sum is None else self._context_sum.tolist()
            header = {
                "version": _VERSION,
                "contexts": contexts,
                "n_contexts": self._n_contexts,
                "history": self.history.contents(),
            }
        arrays = {
            "names": np.frombuffer(names, dtype=np.uint8),
            "decisions": counts,
            "span": np.array([span[:2] for span in spans], dtype=np.int64).reshape(-1, 2),
            "sums": np.array([span.sums for span in spans], dtype=np.float64).reshape(-1, len(Sums._fields)),
        }
        return header, arrays

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Traffic:
        """The traffic that `contents` was asked of; a `ValueError` where it cannot have been.

        >>> traffic = Traffic()
        >>> traffic.add_counts({"tea": 3, 7: 1})
        >>> Traffic.restored(*traffic.contents()).decisions(7)
        1
        """
        if header.get("version") != _VERSION:
            raise ValueError(f"the traffic is of version {header.get('version')!r}; this bough reads {_VERSION}")
        names = msgspec.json.decode(arrays["names"].tobytes(), type=list[Name])
        counts, places, sums = arrays["decisions"], arrays["span"], arrays["sums"]
        if len(names) != len(counts) or len(places) != len(sums) or not set(places[:, 1].tolist()) <= set(_WIDTHS):
            raise ValueError("the traffic is damaged: its parts do not go together")
        traffic = cls()
        traffic._count = dict(zip(names, counts.tolist(), strict=True))
        traffic._total = int(counts.sum())
        for (start, width), row in zip(places.tolist(), sums.tolist(), strict=True):
            traffic._spans[_WIDTHS.index(width)][start] = row
        traffic._latest = max(traffic._spans[0], default=0)
        traffic._merge()
        if header["contexts"] is not None:
            traffic._context_sum = np.array(header["contexts"], dtype=np.float64)
            traffic._n_contexts = int(header["n_contexts"])
        traffic.history = History.restored(header.get("history", {}))
        return traffic


def _is_agreed(row: DecisionRow) -> bool:
    suggested = (row.offered or {}).get("suggested")
    return (suggested if isinstance(suggested, list) else [suggested]) == row.actions


def _summed(row: list[float]) -> Sums:
    """Sums of a row, in which all numbers are floating; counts are whole."""
    whole = [int(value) for value in row]
    return Sums(*whole)._replace(total=row[2], squares=row[3], gain=row[-1])


class _Placed:
    """Decisions at or below each node of a catalogue, which may get more actions."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.tree, self._n_gone = catalogue.tree, catalogue.n_gone
        self._counts = np.zeros(catalogue.tree.n_nodes, dtype=np.int64)

    def goes_with(self, catalogue: Catalogue) -> bool:
        """Whether the nodes that it knows have the same numbers, and are in the same places, there."""
        return self.tree is catalogue.tree and self._n_gone == catalogue.n_gone

    @property
    def counts(self) -> Integers:
        """(n,) for each node, of the tree and added; not to be written to."""
        found = self._counts.view()
        found.setflags(write=False)
        return found

    def add(self, catalogue: Catalogue, decisions: dict[Name, int]) -> None:
        """Add decisions for actions, on their paths; those that are gone count at the root."""
        above = catalogue.parents
        if len(above) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(above) - len(self._counts), dtype=np.int64)])
        if not decisions:
            return
        names = list(decisions)
        nodes = _found(catalogue, names)
        counts = np.fromiter(decisions.values(), np.int64, len(names))
        nodes[nodes < 0] = 0
        while len(nodes):
            np.add.at(self._counts, nodes, counts)
            nodes = above[nodes]
            nodes, counts = nodes[nodes >= 0], counts[nodes >= 0]


def _found(catalogue: Catalogue, names: list[Name]) -> Nodes:
    """The node of each name, or -1."""
    nodes = np.array(catalogue.tree.node_names.find_all(names), dtype=np.int32)
    if catalogue.is_changed:
        for i in np.flatnonzero((nodes < 0) | catalogue.are_gone(nodes)).tolist():
            nodes[i] = catalogue.find(names[i])
    return nodes
