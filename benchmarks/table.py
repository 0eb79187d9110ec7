"""Claims of speed, timed side by side, and the table that a run prints of them."""

import os
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from layout import aligned, compact

HEAD = ("claim", "bough", "reference", "ratio", "target", "met")
# What somebody who chooses a library asks first, and how each of these lines begins.
FIRST = {
    "a decision among 10^6 actions, 10,000 rounds played / drawing every node": "decide, 10^6 actions, 10,000 rounds",
    "an update, 10^4 actions / bayesianbandits": "update, K = 10^4",
    "a decision and an update in context, 10^4 actions, d = 10 / bayesianbandits": (
        "decide + update, K = 10^4, d = 10: bayesianbandits"
    ),
    "a prior learned from 5 x 10^4 rows of 10^4 actions / gpboost": "fit, 10^4 actions, 5 x",
    "a summary of 2 x 10^7 rows, 10 features / DuckDB's bare group-by": "summary of 2 x 10^7 rows",
}


@dataclass(frozen=True)
class Line:
    """One line of the table: a ratio with its two times, or a plain amount; met is None where nothing is promised."""

    claim: str
    ours: str = ""
    reference: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        met = {True: "yes", False: "NO", None: ""}[self.met]
        return self.claim, self.ours, self.reference, self.ratio, self.target, met


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
        benchmark.extra_info["ratio"] = mine / other if at_most is not None else other / mine
        self.compared(claim, mine, other, at_most=at_most, at_least=at_least)

    def compared(
        self,
        claim: str,
        ours: float,
        reference: float,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> None:
        """Two times in seconds: ours over the reference with at_most, the reference over ours otherwise."""
        if at_most is not None:
            value, target, met = ours / reference, f"at most {at_most:g} x", ours <= at_most * reference
        else:
            value, target, met = reference / ours, "", None
        if at_least is not None:
            target, met = f"at least {at_least:g} x", reference >= at_least * ours
        self.lines.append(Line(claim, _duration(ours), _duration(reference), _times(value), target, met))

    def amount(self, claim: str, measured: float, at_most: float, unit: str) -> None:
        """A plain time or size."""
        self.lines.append(
            Line(claim, f"{measured:.2f} {unit}", target=f"at most {at_most:g} {unit}", met=measured <= at_most)
        )

    def at_least(self, claim: str, measured: float, at_least: float) -> None:
        """A plain number that is to be large."""
        self.lines.append(Line(claim, f"{measured:,.0f}", target=f"at least {at_least:,g}", met=measured >= at_least))

    def spread(self, claim: str, measured: float, at_most: float) -> None:
        """A ratio by itself."""
        self.lines.append(Line(claim, ratio=_times(measured), target=f"at most {at_most:g} x", met=measured <= at_most))

    def note(self, claim: str, measured: str) -> None:
        """Something measured that has no target."""
        self.lines.append(Line(claim, measured))

    def __str__(self) -> str:
        return aligned([HEAD, *(line.cells for line in self.lines)])

    def write(self, path: Path, keep: bool = False) -> None:
        """The five lines that come first in the docs, in plainer words, and then all of them.

        With `keep`, after a run of some files, lines of claims that it has not measured stay as they were, and so does
        what is said of the machine.
        """
        rows = [line.cells for line in self.lines]
        if keep:
            measured = {row[0] for row in rows}
            rows = [row for row in _rows_of(path) if row[0] not in measured] + rows
        first = []
        for words, beginning in FIRST.items():
            first += [(words, *row[1:]) for row in rows if row[0].startswith(beginning)][:1]
        parts = [
            "<!-- Made by `make bench`. -->",
            compact([HEAD, *first]),
            "<!-- machine -->",
            _machine_of(path) if keep else machine(),
            "<!-- all -->",
            compact([HEAD, *rows]),
        ]
        path.write_text("\n\n".join(parts) + "\n")


def machine() -> str:
    """Where this runs, in words: the processor, its cores, and what does the work."""
    info = Path("/proc/cpuinfo")  # Linux alone has it
    lines = info.read_text().splitlines() if info.exists() else []
    told = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    processor = told.get("model name", platform.machine())
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def _machine_of(path: Path) -> str:
    """The machine of a table that was written before."""
    return path.read_text().split("<!-- machine -->")[1].split("<!-- all -->")[0].strip()


def _rows_of(path: Path) -> list[tuple[str, ...]]:
    """The lines of a table that was written before."""
    whole = path.read_text().split("<!-- all -->")[1]
    cells = [line.strip().strip("|").split("|") for line in whole.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in row) for row in cells[2:]]


def _duration(seconds: float) -> str:
    """Three digits, in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e6)} us"


def _times(ratio: float) -> str:
    return f"{_three_digits(ratio)} x"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


TABLE = Table()
