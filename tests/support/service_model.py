"""What a service must do, as a few dictionaries: the model that the state machine is tested against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Effect = tuple[str, Any, float]
"""What the posterior hears of: ("learn" or "unlearn", action, value)."""


@dataclass
class Outcome:
    """One thing that came of a decision."""

    kind: str
    slot: int
    id: str
    value: float
    learn: bool


@dataclass
class Decision:
    """One decision."""

    body: dict[str, Any]
    actions: list[Any]
    active: float | None
    closes: float | None
    at_close: bool
    is_open: bool
    outcomes: list[Outcome] = field(default_factory=list)

    def has(self, kind: str) -> bool:
        """Whether something of a kind has come of it."""
        return any(one.kind == kind for one in self.outcomes)

    @property
    def status(self) -> str:
        """What GET says."""
        if self.has("cancelled"):
            return "cancelled"
        if self.has("reward") or self.has("closed"):
            return "rewarded"
        if self.has("default"):
            return "defaulted"
        return "inactive" if self.active is None else "open"


class ShortModel:
    """The decisions of one experiment; each method says what is answered, and adds to `effects`."""

    def __init__(self, window: float | None, default: float | None, at_close: bool) -> None:
        self.window, self.default, self.at_close, self.frozen = window, default, at_close, False
        self.decisions: dict[str, Decision] = {}
        self.effects: list[Effect] = []
        self.n_learned = 0

    def decide(self, id: str, body: dict[str, Any], now: float, chosen: list[Any]) -> Any:
        """A decision that is new takes what the service chose; one that is not is answered as it was."""
        known = self.decisions.get(id)
        if known is not None:
            return (True, known.actions) if known.body == body else "same-id"
        active = None if body.get("defer") else now
        closes = None if active is None or self.window is None else active + self.window
        self.decisions[id] = Decision(body, chosen, active, closes, self.at_close, self.at_close)
        return False, chosen

    def reward(self, id: str, value: float, slot: int, own: str, now: float) -> Any:
        """What becomes of a reward: its status, and whether it was there before."""
        one = self.decisions.get(id)
        if one is None:
            return "unknown-decision"
        if slot >= len(one.actions):
            return "invalid-value"
        mine = [row for row in one.outcomes if row.slot == slot and row.kind in ("reward", "late")]
        for row in mine:
            if row.id == own:
                return (self._said(one, row), True) if row.value == value else "same-id"
        if one.has("cancelled") or one.active is None:
            return "wrong-state"
        if not one.at_close and any(row.kind == "reward" for row in mine):
            return "wrong-state"
        late = (one.at_close and not one.is_open) or (one.closes is not None and now > one.closes)
        row = Outcome("late" if late else "reward", slot, own, value, not (late or one.at_close or self.frozen))
        self._add(one, row)
        return self._said(one, row), False

    def _said(self, one: Decision, row: Outcome) -> str:
        if row.kind == "late":
            return "late"
        return "open" if one.at_close else "learned" if row.learn else "logged"

    def _add(self, one: Decision, row: Outcome) -> None:
        one.outcomes.append(row)
        if row.learn:
            self.n_learned += 1
            self.effects.append(("unlearn" if row.kind == "retracted" else "learn", one.actions[row.slot], row.value))

    def touch(self, what: str, id: str, now: float) -> Any:
        """What becomes of a request to activate, cancel or retract: its status, and whether it was so before."""
        one = self.decisions.get(id)
        return "unknown-decision" if one is None else getattr(self, f"_{what}")(one, now)

    def _activate(self, one: Decision, now: float) -> Any:
        if one.has("cancelled"):
            return "wrong-state"
        if one.active is not None:
            return "active", True
        one.active, one.closes = now, None if self.window is None else now + self.window
        return "active", False

    def _cancel(self, one: Decision, now: float) -> Any:
        if one.has("cancelled"):
            return "cancelled", True
        if any(row.learn for row in one.outcomes):
            return "wrong-state"
        one.is_open = False
        self._add(one, Outcome("cancelled", 0, "", 0.0, False))
        return "cancelled", False

    def _retract(self, one: Decision, now: float) -> Any:
        if one.has("retracted"):
            return "retracted", True
        learned = [row for row in one.outcomes if row.learn]
        for row in learned:
            self._add(one, Outcome("retracted", row.slot, "", row.value, True))
        return ("retracted", False) if learned else "wrong-state"

    def close(self, now: float) -> None:
        """The windows that are over close: what came in them is learned, or else the default."""
        for one in self.decisions.values():
            if not one.is_open or one.closes is None or one.closes > now:
                continue
            one.is_open = False
            for slot in range(len(one.actions)):
                values = [row.value for row in one.outcomes if row.slot == slot and row.kind == "reward"]
                if values:
                    self._add(one, Outcome("closed", slot, "", sum(values), not self.frozen))
                elif self.default is not None:
                    self._add(one, Outcome("default", slot, "", self.default, not self.frozen))
