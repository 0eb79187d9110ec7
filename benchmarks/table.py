"""Claims of speed, timed side by side, and the table that a run prints of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass

COLUMNS = "| {:<62} | {:>10} | {:>10} | {:>8} | {:>14} | {:>3} |"


@dataclass(frozen=True)
class Line:
    """One line of the table: a ratio with its two times, or a plain amount."""

    claim: str
    ours: str
    reference: str
    ratio: str
    target: str
    met: bool

    def __str__(self) -> str:
        return COLUMNS.format(
            self.claim, self.ours, self.reference, self.ratio, self.target, "yes" if self.met else "NO"
        )


class Table:
    """Collects lines and prints them as one Markdown table."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def ratio(
        self,
        benchmark,
        claim: str,
        ours: Callable[[], object],
        reference: Callable[[], object],
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        rounds: int = 50,
        burst: int = 1,
        setup: Callable[[], object] = lambda: None,
    ) -> None:
        """Time both in turns, so that a slow spell of the machine hits both, and compare the fastest of each.

        A turn is a burst of calls, each timed by itself: as many as it takes to be at home in the caches.
        """
        times: tuple[list[float], list[float]] = ([], [])

        def pair():
            for function, spent in zip((ours, reference), times, strict=True):
                for _ in range(burst):
                    setup()
                    start = time.perf_counter()
                    function()
                    spent.append(time.perf_counter() - start)

        benchmark.pedantic(pair, rounds=rounds, warmup_rounds=2)
        mine, other = (min(spent) for spent in times)
        if at_most is not None:
            value, target, met = mine / other, f"at most {at_most:g} x", mine <= at_most * other
        else:
            value, target, met = other / mine, f"at least {at_least:g} x", other >= at_least * mine
        benchmark.extra_info["ratio"] = value
        self.lines.append(Line(claim, _milliseconds(mine), _milliseconds(other), f"{value:.2f} x", target, met))

    def amount(self, claim: str, measured: float, at_most: float, unit: str) -> None:
        """A plain time or size."""
        met = measured <= at_most
        shown = f"{measured:.2f} {unit}" if unit else f"{measured:.1e}"
        self.lines.append(Line(claim, shown, "", "", f"at most {at_most:g} {unit}".rstrip(), met))

    def comparison(self, claim: str, ours: float, reference: float) -> None:
        """Two times in seconds without a target."""
        self.lines.append(Line(claim, f"{ours:.1f} s", f"{reference:.0f} s", f"{reference / ours:.1f} x", "", True))

    def compared(self, claim: str, ours: float, reference: float, at_least: float) -> None:
        """Two times in seconds, and how many times faster ours has to be."""
        met = reference >= at_least * ours
        times = (_milliseconds(ours), _milliseconds(reference), f"{reference / ours:.0f} x")
        self.lines.append(Line(claim, *times, f"at least {at_least:g} x", met))

    def spread(self, claim: str, measured: float, at_most: float) -> None:
        """A ratio by itself."""
        self.lines.append(Line(claim, "", "", f"{measured:.2f} x", f"at most {at_most:g} x", measured <= at_most))

    def note(self, claim: str, measured: str) -> None:
        """Something measured that has no target."""
        self.lines.append(Line(claim, measured, "", "", "", True))

    def __str__(self) -> str:
        head = COLUMNS.format("claim", "bough", "reference", "ratio", "target", "met")
        rule = "|".join("-" * len(cell) for cell in head.split("|"))
        return "\n".join([head, rule, *map(str, self.lines)])


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


TABLE = Table()
