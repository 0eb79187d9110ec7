"""A service as a machine for Hypothesis: whatever may be asked of it, compared with a short model of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import bough
import postgres
from bough.service.log import open_log
from bough.service.log.base import Log
from bough.service.records import CANCEL, CLOSE, RETRACT
from service_driver import Driver
from service_model import ShortModel

TREE = bough.Tree.from_paths(["home/kettle", "home/spade", "food/tea", "food/cake"])
MOST_ADDED = 4
IDS = [f"d{i}" for i in range(6)]
OF_THE_SERVICE = (CANCEL, CLOSE, RETRACT)

ids = st.sampled_from(IDS)
bodies = st.sampled_from([{}, {}, {}, {"defer": True}, {"k": 2}, {"exclude": ["home/spade"]}])
values = st.sampled_from([-2.0, 0.0, 1.0, 3.5])
slots = st.sampled_from([0, 0, 0, 1])
reward_ids = st.sampled_from([None, None, "r1", "r2"])


class Machine(RuleBasedStateMachine):
    """What may happen, in any order."""

    def open_log(self) -> Log:
        raise NotImplementedError

    @initialize(window=st.sampled_from([None, 60.0]), at_close=st.booleans(), default=st.sampled_from([None, 0.0, 1.0]))
    def begin(self, window: float | None, at_close: bool, default: float | None) -> None:
        at_close = at_close and window is not None
        default = default if at_close else None
        self.config = dict(window=window, learning="at_close" if at_close else "at_once", default=default)
        self.short = ShortModel(window, default, at_close)
        model = bough.GaussianModel(TREE)
        self.library = bough.HierTS(model)
        self.version, self.n_added = 1, 0
        self.driver = Driver(self.open_log, model)
        self.driver.configure(**self.config)

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.close()

    # -- decisions ---------------------------------------------------------------------------------

    @rule(id=ids, asked=st.lists(bodies, min_size=1, max_size=2))
    def decide(self, id: str, asked: list[dict[str, Any]]) -> None:
        """Also twice at the same time, with the same body or another."""
        driver = self.driver
        found = driver.attempts(*(driver.deciding(decision_id=id, **body) for body in asked))
        for body, one in zip(asked, found, strict=True):
            chosen = [] if isinstance(one, str) else one.actions or [one.action]
            if not chosen and id not in self.short.decisions:
                assert one == "invalid-value", "k is larger than what is left"
                assert body.get("k", 1) > self.n_choices
                continue
            told = one if isinstance(one, str) else (one.replayed, chosen)
            assert told == self.short.decide(id, body, driver.now, chosen)
            if told[0] is False:
                assert not set(chosen) & {*self.library.retired, *body.get("exclude", ())}
                assert one.model_version == self.version

    @property
    def n_choices(self) -> int:
        return self.library.posterior.model.tree.n_actions - len(self.library.retired)

    @rule(id=ids, asked=st.lists(st.tuples(values, slots, reward_ids), min_size=1, max_size=2))
    def reward(self, id: str, asked: list[tuple[float, int, str | None]]) -> None:
        """Also twice at the same time."""
        driver = self.driver
        calls = [driver.rewarding(id, value, slot=slot, reward_id=own) for value, slot, own in asked]
        for (value, slot, own), one in zip(asked, driver.attempts(*calls), strict=True):
            told = one if isinstance(one, str) else (one.status, one.replayed)
            assert told == self.short.reward(id, value, slot, own or "", driver.now)

    @rule(id=ids, what=st.sampled_from(["activate", "cancel", "retract"]))
    def touch(self, id: str, what: str) -> None:
        one = self.driver.attempt(self.driver.touching(what, id))
        told = one if isinstance(one, str) else (one.status, one.replayed)
        assert told == self.short.touch(what, id, self.driver.now)

    # -- time --------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1.0, 59.0, 60.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.driver.now += seconds

    @rule()
    def keep(self) -> None:
        """Windows that are over close."""
        self.driver.keep()
        self.short.close(self.driver.now)

    # -- changes -----------------------------------------------------------------------------------

    @rule(frozen=st.booleans())
    def configure(self, frozen: bool) -> None:
        self.driver.configure(mode="frozen" if frozen else "learn", **self.config)
        self.short.frozen = frozen

    @precondition(lambda self: self.n_added < MOST_ADDED)
    @rule(under=st.sampled_from(["home", "food"]))
    def add(self, under: str) -> None:
        self.n_added += 1
        self.change("add", f"new-{self.n_added}", under)

    @rule(op=st.sampled_from(["retire", "restore"]), number=st.integers(0, 7))
    def retire_or_restore(self, op: str, number: int) -> None:
        self.change(op, self.action(number))

    @rule(number=st.integers(0, 7), under=st.sampled_from(["home", "food"]))
    def move(self, number: int, under: str) -> None:
        self.change("move", self.action(number), under)

    def action(self, number: int) -> Any:
        actions = self.library.posterior.model.tree.actions
        return actions[number % len(actions)]

    def change(self, op: str, name: Any, *under: str) -> None:
        """What the library refuses, the service refuses, and it changes nothing."""
        expected = None
        try:
            getattr(self.library, op)(name, *under)
        except KeyError:
            expected = "unknown-action"
        except ValueError:
            expected = "invalid-value"
        found = self.driver.attempt(self.driver.changing(op, name, *under))
        assert (found if isinstance(found, str) else None) == expected

    @rule(noise=st.sampled_from([0.5, 1.0, 2.0]))
    def refit(self, noise: float) -> None:
        """A new version of the model; who is retired stays so."""
        self.version += 1
        model = bough.GaussianModel(
            TREE, covariance=bough.by_depth([0.0, noise, 1.0]), noise_variance=noise * self.version
        )
        retired = self.library.retired
        assert self.driver.put_model(model, refit=True).model_version == self.version
        own = self.library.posterior.model.tree
        self.library.adopt(bough.GaussianModel(own, covariance=model.covariance, noise_variance=model.noise_variance))
        assert self.driver.experiment.agent.retired == retired

    # -- ends and beginnings ---------------------------------------------------------------------

    @rule()
    def snapshot(self) -> None:
        assert self.driver.snapshot() is not None

    @rule(gracefully=st.booleans())
    def restart(self, gracefully: bool) -> None:
        self.driver.restart(gracefully)

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def the_decisions_are_those_of_the_short_model(self) -> None:
        if not hasattr(self, "driver"):
            return
        for id, state in zip(IDS, self.driver.states(*IDS), strict=True):
            short = self.short.decisions.get(id)
            assert (state is None) == (short is None)
            if state is not None and short is not None:
                row = state.decision
                assert (row.actions, row.active, row.closes, row.open) == (
                    short.actions, short.active, short.closes, short.is_open,
                )  # fmt: skip
                found = [
                    (one.kind, one.slot, "" if one.id in OF_THE_SERVICE else one.id, one.value, one.learn)
                    for one in state.outcomes
                ]
                assert found == [(one.kind, one.slot, one.id, one.value, one.learn) for one in short.outcomes]

    @invariant()
    def the_posterior_is_that_of_the_library(self) -> None:
        if not hasattr(self, "driver"):
            return
        for what, action, value in self.short.effects:
            (self.library.retract if what == "unlearn" else self.library.update)(action, value)
        self.short.effects.clear()
        experiment = self.driver.experiment
        assert (experiment.n_learned, experiment.model_version) == (self.short.n_learned, self.version)
        mine, own = experiment.agent.posterior, self.library.posterior
        assert mine.n_observations == own.n_observations
        assert sorted(mine.model.tree.actions) == sorted(own.model.tree.actions)
        assert experiment.agent.retired == self.library.retired
        order = [own.model.tree.actions.index(name) for name in mine.model.tree.actions]
        for found, right in zip(mine.action_moments(), own.action_moments(), strict=True):
            np.testing.assert_allclose(found, right[order], rtol=0, atol=1e-9)


class SqliteMachine(Machine):
    """On SQLite, each time in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="bough-machine-")

    def open_log(self) -> Log:
        return open_log(Path(self.folder.name))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class PostgresMachine(Machine):
    """On PostgreSQL, in a database that is emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.address = postgres.empty_log()

    def open_log(self) -> Log:
        return open_log(None, self.address)
