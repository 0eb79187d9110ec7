"""A bar that shows how far a long computation is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bough._extras import install


@contextmanager
def reporting(
    progress: bool | Callable[[int], Any] | None, what: str, total: int | None = None, unit: str = "run"
) -> Iterator[Callable[[int], Any]]:
    """A function of how much was just finished: the user's own, one that moves a bar, or one that does nothing.

    >>> with reporting(print, "simulate", 2) as advance:
    ...     advance(2)
    2
    """
    if progress is None or progress is False:
        yield lambda _: None
    elif progress is True:
        with _bar()(total=total, desc=what, unit=unit) as bar:
            yield bar.update
    elif callable(progress):
        yield progress
    else:
        raise ValueError(
            f"progress is {progress!r:.80}; give True for a bar, or a function of the number of {unit}s that were just "
            "finished"
        )


def _bar() -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        raise ValueError(f"progress is True but tqdm is not installed; {install('progress')}") from None
    return tqdm
