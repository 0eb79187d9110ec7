"""Pace: which search a decision takes, and when the capped one is tuned.

All of it is decided before anything is drawn, from counts of what earlier decisions looked at, never from seconds: the
same decisions are made on every machine. Costs are in units of what the plain search takes for one touched node.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any, Literal

FEWEST = 8_000  # nodes that the plain search goes to: below, it is about as quick
LOOK = 6.0  # of one thing that the capped search looks at: a length, a sum, a column
TUNE = 14.0  # of setting references and caps anew, per touched node
PAYS = 2 * int(TUNE)  # decisions after which a rebuild has paid
_KNOWN = 16  # bests that references can be set by
KEPT = 64  # of them that are remembered
_SETTLES = 16  # decisions after which an average says something
_LEAST = 256  # decisions between two tunings, unless they take more than usual
_MOST_OPENED = 10  # nodes for each touched one
_REST = 1_000  # decisions that the plain search makes where the capped one was no better
_MOST_DOUBLINGS = 8

_LARGEST = 2.0**53
_COUNTS = ("rest", "failures", "n_decisions", "n_tunings", "since_change")
_AMOUNTS = ("plain", "average", "work", "excess")

Verdict = Literal["go on", "tune", "rest"]


class Pace:
    """What is remembered of past decisions, to choose how the next one is made."""

    def __init__(self) -> None:
        self.bests: list[float] = []
        """The last of the values that decisions had to beat, oldest first."""
        self.rest = 0
        """Decisions that the plain search makes before the capped one is tried again."""
        self.failures = 0
        """How often in turn the capped one was not worth it."""
        self.plain = 0.0
        """The average of the nodes that the plain search went to, the last decisions most: in uneven trees these are
        more than the touched ones."""
        self.average = 0.0
        """Of what decisions looked at, the last ones most."""
        self.usual = math.inf
        """That average, soon after the last tuning."""
        self.work = 0.0
        """What decisions have looked at since the last tuning."""
        self.excess = 0.0
        """What they have looked at beyond twice the usual."""
        self.n_decisions = 0
        """Capped decisions since the last tuning."""
        self.n_tunings = 0
        self.since_change = 0
        """Capped decisions since everything changed."""

    def is_due(self, n_touched: int) -> bool:
        """Whether the next decision is for the capped search."""
        return (n_touched >= FEWEST or self.plain >= FEWEST) and self.rest == 0 and len(self.bests) >= _KNOWN

    def after_plain(self, visited: int, n_touched: int, value: float) -> None:
        """Mind a decision of the plain search, which went to so many nodes; those of one wide family are soon seen."""
        self.bests.append(value)
        if len(self.bests) > KEPT:
            del self.bests[0]
        most = _MOST_OPENED * n_touched
        self.plain += ((visited if visited < most else most) - self.plain) / _SETTLES
        if self.rest:
            self.rest -= 1

    def after_many(self, values: list[float], n: int) -> None:
        """Mind n decisions at once, with the last values that they had to beat; what they looked at is not known."""
        self.bests = [*self.bests, *values][-KEPT:]
        self.rest = max(0, self.rest - n)
        self.since_change += n

    def after_change(self) -> None:
        """Mind that everything has changed, so that the capped search has to be rebuilt."""
        if self.since_change >= PAYS:
            self.failures = 0
        else:
            self.pause(PAYS)
        self.since_change = 0

    def begin(self) -> None:
        """Mind that the capped search was built, or built anew."""
        self.average = self.work = self.excess = 0.0
        self.usual, self.n_decisions = math.inf, 0

    def after_capped(self, looked: int, value: float, n_touched: int) -> Verdict:
        """Mind a decision of the capped search, and say what is to be done before the next one."""
        self.bests.append(value)
        if len(self.bests) > KEPT:
            del self.bests[0]
        self.since_change += 1
        self.work += looked
        n = self.n_decisions = self.n_decisions + 1
        self.average += (looked - self.average) / (n if n < _SETTLES else _SETTLES)
        if n <= _SETTLES:
            if n < _SETTLES:
                return "go on"
            self.usual = self.average
        excess = self.excess + looked - 2.0 * self.usual
        self.excess = excess if excess > 0.0 else 0.0
        if LOOK * self.average > n_touched and LOOK * self.average > self.plain:
            self.pause()
            return "rest"
        share = LOOK / (TUNE * n_touched)  # of the price of a tuning
        if (n >= _LEAST and share * self.work > 2.0**self.n_tunings) or share * excess > 1.0:
            self.n_tunings = max(self.n_tunings, math.ceil(math.log2(share * self.work))) + 1
            return "tune"
        return "go on"

    def pause(self, decisions: int = _REST) -> None:
        """Have the plain search make the next decisions, twice as many each time in turn."""
        self.rest = decisions * 2 ** min(self.failures, _MOST_DOUBLINGS)
        self.failures += 1

    def numbers(self) -> dict[str, float | None]:
        """All that is remembered but the bests, as JSON has it."""
        found = {name: getattr(self, name) for name in _COUNTS + _AMOUNTS}
        return {**found, "usual": None if self.usual == math.inf else self.usual}

    def recall(self, numbers: Mapping[str, Any], bests: list[float]) -> None:
        """Go on with what `numbers` gave; a `ValueError` where that cannot be."""
        for name in (*_COUNTS, *_AMOUNTS, "usual"):
            value = numbers[name]
            if name == "usual" and value is None:
                value = math.inf
            elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < _LARGEST:
                raise ValueError(f"{name} is {reprlib.repr(value)}; expected a number that is not negative")
            elif name in _COUNTS and not isinstance(value, int):
                raise ValueError(f"{name} is {reprlib.repr(value)}; expected a whole number")
            setattr(self, name, value)
        self.bests = bests[-KEPT:]
