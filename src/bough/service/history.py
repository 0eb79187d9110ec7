"""What happened last to an experiment: decisions, actions that came, and changes of its catalogue, model and mode."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from bough.service.records import ChangeRow, DecisionRow, Name
from bough.service.schema import Change, Fitted

_DECISIONS, _CHANGES, _ADDED = 50, 300, 500  # that are kept
_TOGETHER = 60.0  # seconds within which changes of single actions are told as one


class History:
    """The last decisions, new actions and changes of one experiment; one thread notes while others read.

    >>> history = History()
    >>> body = {"op": "add", "names": ["oolong"], "under": "tea"}
    >>> history.note_change(ChangeRow(1, 60.0, "action", "me", body, seq=7))
    >>> history.added, [change.text for change in history.changes]
    ({'oolong': 60.0}, ['1 action added'])
    """

    def __init__(self) -> None:
        self._decisions: deque[tuple[str, float, Name, int]] = deque(maxlen=_DECISIONS)
        self._changes: deque[tuple[float, str, str, int]] = deque(maxlen=_CHANGES)
        self._added: dict[Name, float] = {}
        self._seen = (0, 0)
        self._mode: str | None = None
        self.fitted: Fitted | None = None
        """Where the present model came from; None where nothing is known of it."""

    # -- what happens ------------------------------------------------------------------------------

    def note_decisions(self, rows: Iterable[DecisionRow]) -> None:
        """Remember decisions that were logged."""
        self._decisions.extend((row.id, row.at, row.actions[0], len(row.actions)) for row in rows)

    def note_change(self, row: ChangeRow) -> None:
        """Remember a change that was made; the same one again is passed over."""
        position = (row.xid, row.seq)
        if position <= self._seen:
            return
        self._seen = position
        if row.kind == "action":
            self._note_action(row)
        elif row.kind == "tree":
            self._changes.append((row.at, "catalogue", "the whole catalogue", 1))
        elif row.kind == "model":
            version, refit = int(row.body.get("version", 1)), bool(row.body.get("refit"))
            self.fitted = Fitted(row.at, version, refit, row.body.get("estimates") or {})
            if version > 1:
                self._changes.append((row.at, "model", f"{'a refit, ' if refit else ''}version {version}", 1))
        elif row.kind == "config":
            mode = str(row.body.get("config", {}).get("mode", "learn"))
            if mode != (self._mode or "learn"):
                self._changes.append((row.at, "mode", mode, 1))
            self._mode = mode

    def _note_action(self, row: ChangeRow) -> None:
        op, names = str(row.body.get("op")), list(row.body.get("names", ()))
        if op == "add":
            self._added |= dict.fromkeys(names, row.at)
        while len(self._added) > _ADDED:
            del self._added[next(iter(self._added))]
        if self._changes:
            at, kind, before, n = self._changes[-1]
            if (kind, before) == ("catalogue", op) and row.at - at < _TOGETHER:
                self._changes[-1] = (at, kind, op, n + len(names))
                return
        self._changes.append((row.at, "catalogue", op, len(names)))

    # -- reading -----------------------------------------------------------------------------------

    @property
    def decisions(self) -> list[tuple[str, float, Name, int]]:
        """The last decisions, the last one first: their ids, times, first actions, and how many actions they have."""
        return list(self._decisions)[::-1]

    @property
    def added(self) -> dict[Name, float]:
        """The actions that were added last, the first of them first, and when."""
        return dict(self._added)

    @property
    def changes(self) -> list[Change]:
        """The last changes, the first of them first; those of single actions within a minute are told as one."""
        return [Change(at, kind, _words(kind, what, n)) for at, kind, what, n in list(self._changes)]  # type: ignore[arg-type]

    # -- snapshots ---------------------------------------------------------------------------------

    def contents(self) -> dict[str, Any]:
        """What JSON keeps, and `restored` makes the same history of."""
        fitted = self.fitted
        return {
            "decisions": list(self._decisions),
            "changes": list(self._changes),
            "added": [[name, at] for name, at in list(self._added.items())],
            "seen": self._seen,
            "mode": self._mode,
            "fitted": None if fitted is None else [fitted.at, fitted.version, fitted.refit, fitted.estimates],
        }

    @classmethod
    def restored(cls, contents: dict[str, Any]) -> History:
        """The history that `contents` was asked of.

        >>> history = History()
        >>> history.note_change(ChangeRow(1, 60.0, "tree", "me", {}, seq=7))
        >>> History.restored(history.contents()).changes == history.changes
        True
        """
        history = cls()
        history._decisions.extend(tuple(one) for one in contents.get("decisions", ()))
        history._changes.extend(tuple(one) for one in contents.get("changes", ()))
        history._added = dict(contents.get("added", ()))
        history._seen = tuple(contents.get("seen", (0, 0)))
        history._mode = contents.get("mode")
        fitted = contents.get("fitted")
        history.fitted = None if fitted is None else Fitted(*fitted)
        return history


_DONE = {"add": "added", "retire": "retired", "restore": "restored", "forget": "forgotten", "move": "moved"}


def _words(kind: str, what: str, n: int) -> str:
    """A change as people read it."""
    if kind == "model":
        return f"another model: {what}"
    if kind == "mode":
        return f"mode {what}"
    if what in _DONE:
        return f"{n:,} action{'s' * (n != 1)} {_DONE[what]}"
    return "a new catalogue"
