"""News: which actions' laws have changed since a search last asked."""

from __future__ import annotations

import numpy as np

from bough._arrays import Nodes

_MOST = 2_000  # actions that it pays to name


class News:
    """What an engine tells a search: actions whose laws, with those of all nodes above them, have changed."""

    def __init__(self) -> None:
        self.of_everything = True
        """Whether anything may have changed; so it is until somebody listens."""
        self.of_families = False
        """Whether an action has become a category, so that families are others than they were."""
        self._actions: list[int] = []

    def of_one(self, action: int) -> None:
        """An action has changed."""
        if not self.of_everything:
            self._actions.append(action)
            if len(self._actions) > _MOST:
                self.of_all()

    def of_some(self, actions: Nodes) -> None:
        """Actions have changed."""
        if not self.of_everything:
            self._actions += actions[: _MOST + 1].tolist()
            if len(self._actions) > _MOST:
                self.of_all()

    def of_all(self) -> None:
        """Everything may have changed."""
        self.of_everything = True
        self._actions = []

    def of_a_new_category(self) -> None:
        """An action has become a category."""
        self.of_families = True
        self.of_all()

    def seen(self) -> Nodes:
        """The actions that have changed since the last time that news were taken, which they are not now."""
        return np.array(self._actions, dtype=np.int32)

    def taken(self) -> Nodes:
        """The actions that have changed since the last time; from now on somebody listens."""
        self.of_everything = self.of_families = False
        if not self._actions:
            return _NONE
        actions, self._actions = self._actions, []
        return np.array(actions, dtype=np.int32)


_NONE = np.empty(0, dtype=np.int32)
