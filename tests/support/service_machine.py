"""A service as a machine for Hypothesis: whatever may be asked of it, compared with a short model of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bough
import postgres
from bough.service.handlers import _status
from bough.service.log import open_log
from bough.service.log.base import Log
from bough.service.records import CANCEL, CLOSE, RETRACT
from bough.service.trials import trial
from service_driver import Driver
from service_model import ShortModel

TREE = bough.Tree.from_paths(["home/kettle", "home/spade", "food/tea", "food/cake"])
MOST_ADDED = 4
WINDOW = 60.0
OF_THE_SERVICE = (CANCEL, CLOSE, RETRACT)

bodies = st.sampled_from([{}, {}, {}, {"defer": True}, {"k": 2}, {"exclude": ["home/spade"]}])
values = st.sampled_from([-2.0, 0.0, 1.0, 3.5])
slots = st.sampled_from([0, 0, 0, 1])
reward_ids = st.sampled_from([None, None, "r1", "r2"])
which = st.sampled_from([0, 0, 0, 1, 2, 5])
"""How many decisions ago one was made: most happens to the latest."""
moves = st.one_of(
    st.tuples(st.just("decide"), bodies),
    st.tuples(st.just("decide"), bodies),
    st.tuples(st.just("decide_twice"), bodies, bodies),
    st.tuples(st.just("decide_again"), which, bodies, st.booleans()),
    st.tuples(st.just("reward"), which, values, slots, reward_ids),
    st.tuples(st.just("reward"), which, values, slots, reward_ids),
    st.tuples(st.just("reward_twice"), which, values, slots, reward_ids, values, reward_ids),
    st.tuples(st.just("reward_again"), which, st.integers(0, 3), st.sampled_from([0.0, 0.0, 1.0])),
    st.tuples(st.just("touch"), which, st.sampled_from(["activate", "cancel", "retract"]), st.booleans()),
    st.tuples(st.just("touch"), which, st.sampled_from(["activate", "cancel", "retract"]), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1.0, WINDOW, WINDOW, WINDOW + 1])),
    st.tuples(st.just("keep")),
    st.tuples(st.just("configure"), st.booleans()),
    st.tuples(st.just("ask_for_what_is_not_there"), st.sampled_from(["reward", "activate", "cancel", "retract"])),
)
"""What clients, operators, the clock and the keeper do, one thing after the other."""


class Machine(RuleBasedStateMachine):
    """What may happen, in any order."""

    tolerance = 1e-9

    def open_log(self) -> Log:
        raise NotImplementedError

    def model(self, tree: bough.Tree, variance: float = 1.0, noise: float = 1.0) -> bough.GaussianModel:
        """A prior with this variance of categories, and with noise of this variance."""
        return bough.GaussianModel(tree, covariance=bough.by_depth([0.0, variance, 1.0]), noise_variance=noise)

    def settled(self, agent: bough.HierTS) -> bough.Posterior:
        """What an agent knows, without a trace of the order in which it learned that."""
        return agent.posterior

    @initialize(
        learning=st.sampled_from(["at_once", "at_once", "at_close", "at_close"]),
        is_timed=st.sampled_from([False, True, True]),
        default=st.sampled_from([None, 0.0, 1.0]),
    )
    def begin(self, learning: str, is_timed: bool, default: float | None) -> None:
        at_close = learning == "at_close"
        window = WINDOW if is_timed or at_close else None
        default = default if at_close else None
        self.config = dict(window=window, learning=learning, default=default)
        self.short = ShortModel(window, default, at_close)
        model = self.model(TREE)
        self.library = bough.HierTS(model)
        self.version, self.n_added = 1, 0
        self.driver = Driver(self.open_log, model)
        self.driver.configure(**self.config)

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.close()

    # -- decisions ---------------------------------------------------------------------------------

    @rule(moves=st.lists(moves, min_size=4, max_size=12))
    def visit(self, moves: list[tuple[Any, ...]]) -> None:
        """Decide, reward and wait, in any order, over and over."""
        for what, *how in moves:
            getattr(self, what)(*how)

    def decide(self, body: dict[str, Any]) -> None:
        """A new decision."""
        self.decide_all(f"d{len(self.short.decisions)}", [body])

    def decide_twice(self, body: dict[str, Any], other: dict[str, Any]) -> None:
        """A new decision that is asked for twice at the same time."""
        self.decide_all(f"d{len(self.short.decisions)}", [body, other])

    def decide_again(self, which: int, body: dict[str, Any], same: bool) -> None:
        """A decision that there is."""
        id = self.made(which)
        if id in self.short.decisions:
            self.decide_all(id, [self.short.decisions[id].body if same else body])

    def made(self, which: int) -> str:
        return f"d{max(0, len(self.short.decisions) - 1 - which)}"

    def decide_all(self, id: str, asked: list[dict[str, Any]]) -> None:
        driver = self.driver
        found = driver.attempts(*(driver.deciding(decision_id=id, **body) for body in asked))
        for body, one in zip(asked, found, strict=True):
            chosen = [] if isinstance(one, str) else one.actions or [one.action]
            if not chosen and id not in self.short.decisions:
                assert one == "invalid-value", "k is larger than what is left"
                assert body.get("k", 1) > self.n_choices - ("exclude" in body)
                continue
            told = one if isinstance(one, str) else (one.replayed, chosen)
            assert told == self.short.decide(id, body, driver.now, chosen)
            if told[0] is False:
                assert not set(chosen) & {*self.library.retired, *body.get("exclude", ())}
                assert one.model_version == self.version

    @property
    def n_choices(self) -> int:
        return self.library.posterior.model.tree.n_actions - len(self.library.retired)

    def reward(self, which: int, value: float, slot: int, own: str | None) -> None:
        """What came of a decision."""
        self.reward_all(self.made(which), [(value, slot, own)])

    def reward_twice(
        self, which: int, value: float, slot: int, own: str | None, other: float, other_own: str | None
    ) -> None:
        """Two rewards of a decision at the same time."""
        self.reward_all(self.made(which), [(value, slot, own), (other, slot, other_own)])

    def reward_again(self, which: int, number: int, more: float) -> None:
        """A reward that there is, or another one in its place."""
        decision = self.short.decisions.get(self.made(which))
        there = [] if decision is None else [row for row in decision.outcomes if row.kind in ("reward", "late")]
        if there:
            row = there[number % len(there)]
            self.reward_all(self.made(which), [(row.value + more, row.slot, row.id or None)])

    def reward_all(self, id: str, asked: list[tuple[float, int, str | None]]) -> None:
        driver = self.driver
        calls = [driver.rewarding(id, value, slot=slot, reward_id=own) for value, slot, own in asked]
        for (value, slot, own), one in zip(asked, driver.attempts(*calls), strict=True):
            told = one if isinstance(one, str) else (one.status, one.replayed)
            assert told == self.short.reward(id, value, slot, own or "", driver.now)

    def touch(self, which: int, what: str, twice: bool) -> None:
        """Activate, cancel or retract; also twice at the same time."""
        driver, id = self.driver, self.made(which)
        for one in driver.attempts(*(driver.touching(what, id) for _ in range(1 + twice))):
            told = one if isinstance(one, str) else (one.status, one.replayed)
            assert told == self.short.touch(what, id, driver.now)

    def ask_for_what_is_not_there(self, what: str) -> None:
        driver = self.driver
        call = driver.rewarding("never", 1.0) if what == "reward" else driver.touching(what, "never")
        assert driver.attempt(call) == "unknown-decision"

    # -- time --------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        self.driver.now += seconds

    def keep(self) -> None:
        """Windows that are over close when the keeper looks at them."""
        self.driver.keep()
        self.short.close(self.driver.now)

    # -- changes -----------------------------------------------------------------------------------

    def configure(self, frozen: bool) -> None:
        """Whether rewards are learned changes."""
        self.short.frozen = frozen
        self.driver.configure(mode="frozen" if frozen else "learn", **self.config)

    @rule(
        op=st.sampled_from(["refit", "add", "add", "retire", "retire", "restore", "move"]),
        number=st.integers(0, 7),
        under=st.sampled_from(["home", "food"]),
    )
    def change(self, op: str, number: int, under: str) -> None:
        """The catalogue or the model changes."""
        if op == "refit":
            self.refit(0.5 * (1 + number))
        elif op == "add" and self.n_added < MOST_ADDED:
            self.n_added += 1
            self.change_catalogue("add", f"new-{self.n_added}", under)
        elif op != "add":
            self.change_catalogue(op, self.action(number), *([under] if op == "move" else []))

    def action(self, number: int) -> Any:
        actions = self.library.posterior.model.tree.actions
        return actions[number % len(actions)]

    def change_catalogue(self, op: str, name: Any, *under: str) -> None:
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

    def refit(self, noise: float) -> None:
        """A new version of the model; who is retired stays so."""
        self.version += 1
        model = self.model(TREE, noise, noise * self.version)
        retired = self.library.retired
        assert self.driver.put_model(model, refit=True).model_version == self.version
        self.library.adopt(self.model(self.library.posterior.model.tree, noise, noise * self.version))
        assert self.driver.experiment.agent.retired == retired

    # -- ends and beginnings ---------------------------------------------------------------------

    @rule(how=st.sampled_from(["snapshot", "crash", "crash", "stop"]))
    def end(self, how: str) -> None:
        """A snapshot; or the service ends, after a crash without one, and starts again."""
        if how == "snapshot":
            assert self.driver.snapshot() is not None
        else:
            self.driver.restart(gracefully=how == "stop")

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def the_decisions_are_those_of_the_short_model(self) -> None:
        if not hasattr(self, "driver"):
            return
        for short, state in zip(self.short.decisions.values(), self.driver.states(*self.short.decisions), strict=True):
            assert state is not None
            row = state.decision
            assert _status(state) == short.status
            assert (row.actions, row.active, row.closes) == (short.actions, short.active, short.closes)
            assert row.open == short.is_open
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
        mine, own = self.settled(experiment.agent), self.settled(self.library)
        assert mine.n_observations == own.n_observations
        assert sorted(mine.model.tree.actions) == sorted(own.model.tree.actions)
        assert experiment.agent.retired == self.library.retired
        order = [own.model.tree.actions.index(name) for name in mine.model.tree.actions]
        for found, right in zip(mine.action_moments(), own.action_moments(), strict=True):
            np.testing.assert_allclose(found, right[order], rtol=0, atol=self.tolerance)


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


class NoisyMachine(SqliteMachine):
    """With a noise variance per action: single rewards refine only their own action, and a restart refines all."""

    tolerance = 1e-6

    def model(self, tree: bough.Tree, variance: float = 1.0, noise: float = 1.0) -> bough.GaussianModel:
        law = bough.per_action(median=noise, spread=1.0, floor=1e-3)
        return bough.GaussianModel(tree, covariance=bough.by_depth([0.0, variance, 1.0]), noise=law)

    def settled(self, agent: bough.HierTS) -> bough.Posterior:
        posterior = trial(agent).posterior
        posterior.settle()
        return posterior


class PostgresMachine(Machine):
    """On PostgreSQL, in a database that is emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.address = postgres.empty_log()

    def open_log(self) -> Log:
        return open_log(None, self.address)
