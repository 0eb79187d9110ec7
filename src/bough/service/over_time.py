"""What happened over time: decisions, rewards and their mean, in spans of equal lengths."""

from __future__ import annotations

import math

from bough import _checks
from bough.service.schema import Series
from bough.service.traffic import DAY, HOUR, MINUTE, Sums, Traffic

_QUANTILE = 1.959963984540054  # of a 95% interval
_NICE = (*(MINUTE * n for n in (1, 2, 5, 10, 15, 30)), *(HOUR * n for n in (1, 2, 3, 6, 12)), DAY)


def series(traffic: Traffic, since: float, until: float, points: int = 240) -> Series:
    """What happened from one time to another, in seconds since 1970, in at most so many spans, one more at the edges.

    Spans are minutes, or as many minutes, hours or days as it takes; where only hours or days are known, at least that.

    >>> traffic = Traffic()
    >>> traffic.add_counts({"tea": 2}, [(600, Sums(decisions=2, rewards=2, total=3.0, squares=5.0))])
    >>> found = series(traffic, 540, 720)
    >>> found.start, found.decisions, found.mean
    ([540, 600, 660], [0, 2, 0], [None, 1.5, None])
    """
    points = _checks.whole_number("points", points, least=1)
    if not (math.isfinite(since) and math.isfinite(until) and since < until):
        raise ValueError(f"since is {since!r} and until {until!r}; give two times, the earlier one first")
    spans = [span for span in traffic.spans() if span.start + span.seconds > since and span.start < until]
    width = _width(until - since, points, max((span.seconds for span in spans), default=MINUTE))
    first, last = math.floor(since / width), math.ceil(until / width)
    sums = [Sums()] * (last - first)
    for span in spans:
        place = max(span.start // width - first, 0)
        sums[place] = sums[place].plus(span.sums)
    means = [_mean(one) for one in sums]
    return Series(
        width,
        [width * place for place in range(first, last)],
        [one.decisions for one in sums],
        [one.rewards for one in sums],
        [mean for mean, _, _ in means],
        [low for _, low, _ in means],
        [high for _, _, high in means],
        [one.late for one in sums],
        [one.agreed / one.observed if one.observed else None for one in sums],
        [one.explored / one.judged if one.judged else None for one in sums],
        [one.gain / one.weighed if one.weighed else None for one in sums],
        [change for change in traffic.history.changes if since <= change.at < until],
    )


def _width(seconds: float, points: int, least: int) -> int:
    """The shortest length of spans that is nice to read."""
    wanted = max(seconds / points, least)
    return next((width for width in _NICE if width >= wanted), DAY * math.ceil(wanted / DAY))


def _mean(sums: Sums) -> tuple[float | None, float | None, float | None]:
    """The mean of rewards and its 95% interval."""
    n = sums.rewards
    if not n or not math.isfinite(sums.squares):
        return None, None, None
    mean = sums.total / n
    if n < 2:
        return mean, None, None
    width = _QUANTILE * math.sqrt(max(sums.squares / n - mean * mean, 0.0) / (n - 1))
    return mean, mean - width, mean + width
