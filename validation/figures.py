"""Figures of accuracy, each beside its target, and the table that a run prints of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from layout import aligned, compact

HEAD = ("what", "measured", "target", "met")


@dataclass(frozen=True)
class Figure:
    """One line of the table; what has no target is neither met nor missed."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.what, self.measured, self.target, {True: "yes", False: "NO", None: ""}[self.met]


class Figures:
    """Collects figures and prints them as one Markdown table."""

    def __init__(self) -> None:
        self.lines: list[Figure] = []

    def at_most(self, what: str, measured: float, limit: float | None) -> None:
        """An error; without a limit nothing is promised about it."""
        self._limited(what, _short(measured), measured, limit)

    def at_least(self, what: str, measured: float, limit: float) -> None:
        """An effective size, or the probability of so uneven a histogram by chance."""
        self.lines.append(Figure(what, _short(measured), f"at least {limit:g}", bool(measured >= limit)))

    def errors(self, what: str, values: np.ndarray, limit: float | None) -> None:
        """Many errors: their median, and in brackets the worst, which is what a limit is for."""
        worst = float(values.max())
        self._limited(what, f"{np.median(values):.3f} ({worst:.2f})", worst, limit)

    def share(self, what: str, measured: float, low: float, high: float) -> None:
        """A share of runs, and the interval that it has to be in."""
        target = f"{low:.3g} to {high:.3g}"
        self.lines.append(Figure(what, f"{measured:.4f}", target, bool(low <= measured <= high)))

    def note(self, what: str, measured: str) -> None:
        """Something measured that nothing is promised about."""
        self.lines.append(Figure(what, measured))

    def _limited(self, what: str, shown: str, value: float, limit: float | None) -> None:
        if limit is None:
            self.note(what, shown)
        else:
            self.lines.append(Figure(what, shown, f"at most {limit:g}", bool(value <= limit)))

    @property
    def missed(self) -> int:
        """How many targets were not met."""
        return sum(line.met is False for line in self.lines)

    def __str__(self) -> str:
        return aligned([HEAD, *(line.cells for line in self.lines)])

    def write(self, path: Path, append: bool = False) -> None:
        """The page of the docs includes it; with `append` after the lines that it has, of other files."""
        rows = [line.cells for line in self.lines]
        before = path.read_text().rstrip() if append else "<!-- Made by `make validate`. -->\n"
        table = compact([HEAD, *rows]).splitlines()
        path.write_text("\n".join([before, *(table[2:] if append else table)]) + "\n")


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


FIGURES = Figures()
