"""Timed: a posterior with a clock, by which rewards fade and actions drift."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough import _checks
from bough._arrays import Floats
from bough._clock import Clock, as_span, check_units, half_life_of
from bough.data.rows import Rows
from bough.inference.answers import Answers
from bough.inference.drift import OutOfOrderError
from bough.inference.evidence import FADED_AWAY
from bough.model.model import Model


class Timed(Answers):
    """What depends on when rewards were earned, and on what time it is now."""

    half_life: Any
    """How long rewards take to count half, a number or a timedelta; None where they do not fade."""
    _half_life: float | None
    _clock: Clock

    def _start_clock(self, half_life: Any, model: Model) -> None:
        """Have no time yet, and rewards that fade by this half-life, or by none."""
        self.half_life, self._half_life, self._clock = None, None, Clock()
        if half_life is not None:
            self._set_half_life(half_life, model)

    def _set_half_life(self, half_life: Any, model: Model) -> None:
        if model.drift_half_life is not None:
            raise ValueError("the model drifts, and half_life is given; old rewards fade by either: choose one")
        self.half_life = as_span(half_life, "half_life")
        self._half_life = half_life_of(self.half_life)

    def _fade_by(self, half_life: Any) -> None:
        """Have rewards fade from now on, in a posterior that had none fade."""
        with self._lock:
            if self.half_life is not None and self.half_life != as_span(half_life, "half_life"):
                raise ValueError(f"half_life is {half_life!r}, and that of the posterior is {self.half_life!r}")
            self._check_whole()
            if self._clock.is_started:
                check_units(as_span(half_life, "half_life"), self._clock.now, "half_life")
            self._set_half_life(half_life, self._engine.model)

    @property
    def now(self) -> Any:
        """The present time, a number or a datetime as it was given; None before any was. Set it as time passes.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])), half_life=7.0)
        >>> posterior.update("left", 1.0, at=1.0)
        >>> posterior.now = 8.0
        >>> posterior.statistics.count
        array([0.5])
        """
        with self._lock:
            return self._clock.now

    @now.setter
    def now(self, time: Any) -> None:
        with self._lock:
            self._check_units(time)
            clock = self._clock.copy()
            clock.advance(time, is_now=True)
            self._go_on(clock)

    def _check_units(self, times: Any) -> None:
        """Refuse datetimes where the half-life, or that of drift, is a number, and the reverse."""
        drift = getattr(self._engine.model, "drift", None)
        for given, what in ((self.half_life, "half_life"), (drift, "drift")):
            if given is not None:
                check_units(given, times, what)

    def _go_on(self, clock: Clock) -> None:
        """Have it be later: rewards fade, and actions drift."""
        step = clock.elapsed - self._clock.elapsed
        if step > 0.0:
            self._answers.clear()
            self._engine.advance(clock.elapsed)
            if self._half_life is not None:
                self._engine.discount(0.5 ** (step / self._half_life))
        self._clock = clock

    def discount(self, factor: float) -> None:
        """Have everything observed so far count that much of what it did; what `half_life` does as the clock goes.

        The posterior becomes the one in which each reward's noise variance is divided by its weight. A `ValueError`
        where actions drift, since old rewards count less by themselves then.

        >>> import bough
        >>> posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["left", "right"])))
        >>> posterior.update("left", 3.0)
        >>> posterior.discount(0.5)
        >>> posterior.mean.round(3)
        array([0.75, 1.5 , 0.75])
        """
        given = _checks.number(factor, "factor")
        if not 0.0 < given <= 1.0:
            raise ValueError(f"factor is {factor!r}; give how much of the evidence is to stay, above 0 and up to 1")
        with self._lock:
            self._check_whole()
            self._answers.clear()
            self._engine.discount(given)

    def _observe(self, rows: Rows, settle: bool = True) -> None:
        """`update` of what has been checked, now."""
        with self._lock:
            self._answers.clear()
            self._engine.observe(rows, settle)

    def _observe_at(self, rows: Rows, at: Any, settle: bool) -> None:
        """`update` of what has been checked, at some time; nothing changes where the engine refuses it."""
        clock, times = self._ticked(at, len(rows.rewards))
        before, engine = self._clock, self._engine.snapshot() if self._engine.may_refuse else None
        self._go_on(clock)
        try:
            aged = self._aged(rows, times)
            if len(aged.rewards):
                self._observe(aged, settle)
        except OutOfOrderError as error:  # before the engine changed
            self._clock = before
            self._engine.advance(before.elapsed)
            raise ValueError(
                f"a reward of {self._catalogue.name(error.leaf)!r} is earlier than the last one that was observed of "
                "it; with drift rewards of one action come in the order of time"
            ) from None
        except ValueError:
            if engine is not None:
                self._clock, self._engine = before, engine
            raise

    def _ticked(self, at: Any, n: int) -> tuple[Clock, Floats]:
        """The clock as it is after these times, and how long after its start each of n rewards was."""
        self._check_units(at)
        clock = self._clock.copy()
        clock.advance(at)
        times = np.asarray(clock.since(at))
        if times.shape not in ((), (n,)):
            raise ValueError(f"at has shape {times.shape} for {n} rewards; give one time for each, or one for all")
        return clock, np.broadcast_to(times, n).astype(np.float64)

    def _aged(self, rows: Rows, times: Floats) -> Rows:
        """The rows with what their age makes of them, without those of which it leaves nothing."""
        if self._half_life is None:
            return rows._replace(times=times)
        weights = 0.5 ** ((self._clock.elapsed - times) / self._half_life)
        return rows._replace(times=times, weights=weights).some(weights > FADED_AWAY)
