"""The switch between the two searches of scalar models: the plain one, and the capped one where it is quicker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bough._arrays import Floats
from bough.inference.alike import Alike
from bough.inference.capped import CappedSearch, Memory
from bough.inference.engine import Engine
from bough.inference.kinds import Kinds
from bough.inference.pace import KEPT, LOOK, Pace
from bough.inference.scalar import ScalarEngine

_NOTHING = np.empty(0, dtype=np.int32)
_MOST_UNLIKE = 4  # inner nodes and groups that are kept though nothing is touched, for each touched node
_ANYWAY = 20_000  # of them that are always worth it


class Switch:
    """Says which search a decision takes, and has the capped one ready for it."""

    def __init__(self, alike: Callable[[], Alike]) -> None:
        self._alike = alike  # which takes a while where it has not been asked for
        self._kinds: Kinds | None = None
        self._capped: CappedSearch | None = None
        self.pace = Pace()

    def ready(self, engine: Engine, scale: float) -> CappedSearch | None:
        """The capped search, up to date, where the next decision is for it."""
        if not self.pace.is_due(engine.slots.count) or not engine.is_searchable or not engine.is_normal:
            return None
        capped = self._capped
        if capped is None or capped.scale != scale or not capped.is_of(engine):
            if not isinstance(engine, ScalarEngine) or not engine.slots.count:
                return None
            engine.bring_up_to_date()
            self._capped = self._built(engine, scale)
            return self._capped
        capped.bring_up_to_date()
        if engine.news.of_everything:
            self.pace.after_change()
            if self.pace.rest:
                self._capped = None
                return None
            self._tune(capped)
        return capped

    def look(self, engine: Engine, scale: float) -> CappedSearch | None:
        """The capped search, to look at draws by, where it is in use; nothing changes for later decisions."""
        capped = self._capped
        if capped is None or self.pace.rest or capped.scale != scale or not isinstance(engine, ScalarEngine):
            return None
        engine.bring_up_to_date()
        return capped if capped.is_of(engine) and capped.look() else None

    @property
    def nodes_drawn(self) -> float:
        """How many nodes the plain search would draw in the time of a capped decision."""
        return LOOK * self.pace.average

    def _built(self, engine: ScalarEngine, scale: float) -> CappedSearch | None:
        """A capped search that is ready; None where there cannot be one, or it is not worth it."""
        capped = self._new(engine, scale)
        if capped is None:
            self.pace.pause()
            return None
        capped.find_champions()
        self._tune(capped)
        return capped

    def _new(self, engine: ScalarEngine, scale: float) -> CappedSearch | None:
        """A capped search that is still to be tuned."""
        if self._kinds is None:
            self._kinds = Kinds(engine.model.tree, self._alike())
        kinds = self._kinds
        tables = None
        if len(kinds.unlike) + len(kinds.groups[1]) <= max(_MOST_UNLIKE * engine.slots.count, _ANYWAY):
            tables = kinds.tables(scale * engine.class_deviations())
        if tables is None:
            return None
        return CappedSearch(engine, kinds, tables, scale)

    def _tune(self, capped: CappedSearch) -> None:
        capped.refer_to(np.array(self.pace.bests))
        capped.remake()
        self.pace.begin()

    def memory(self, engine: Engine) -> Memory | None:
        """What the capped search knows, where it is in use."""
        capped = self._capped
        if capped is None or not isinstance(engine, ScalarEngine) or not capped.is_of(engine):
            return None
        engine.bring_up_to_date()
        return capped.memory()

    def recall(self, engine: ScalarEngine, memory: Memory) -> None:
        """Go on with what another capped search knew."""
        engine.bring_up_to_date()
        capped = self._new(engine, memory.scale)
        if capped is not None:
            capped.recall(memory)
        self._capped = capped

    def rehearse(self, engine: Engine) -> None:
        """Have the capped search in use, however little is touched, and call what decisions call of it."""
        if not isinstance(engine, ScalarEngine) or not engine.is_normal:
            return
        engine.bring_up_to_date()
        capped, rng = self._capped, np.random.default_rng(0)
        if capped is None:
            self.pace.bests = [0.0]
            capped = self._capped = self._built(engine, 1.0)
        if capped is not None:
            capped.refresh()
            capped.best(rng, 1, _NOTHING)
            if capped.look():
                capped.others(rng, 1, _NOTHING, capped.champions[:1])

    def after_plain(self, visited: int, n_touched: int, value: float) -> None:
        """Mind a decision of the plain search, and the value that the next action would have had to beat."""
        self.pace.after_plain(visited, n_touched, value)

    def after_many(self, values: Floats) -> None:
        """Mind many decisions at once, of either search, each with the value that it had to beat."""
        self.pace.after_many(values[-KEPT:].tolist(), len(values))

    def after_capped(self, looked: int, value: float) -> None:
        """Mind a decision of the capped search."""
        capped = self._capped
        assert capped is not None
        verdict = self.pace.after_capped(looked, value, capped.n_touched)
        if verdict == "tune":
            self._tune(capped)
        elif verdict == "rest":
            self._capped = None
