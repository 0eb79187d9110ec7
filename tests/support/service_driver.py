"""A service in this process, without the web and without a clock of its own: one thing happens after the other."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar
from unittest import mock

from bough.service.access import Events
from bough.service.changes import first_model
from bough.service.experiment import Experiment
from bough.service.files import model_bytes
from bough.service.log.base import Log
from bough.service.problems import Problem
from bough.service.records import Key, State
from bough.service.schema import ActionChange, Decide, Decided, ExperimentConfig, Reward
from bough.service.service import Service
from bough.service.settings import Settings

T = TypeVar("T")
NAME = "shop"


class Driver:
    """Every call ends when all that it logged has been learned; the clock goes on when told to."""

    def __init__(self, make_log: Callable[[], Log], model: Any = None, seed: Any = 0, name: str = NAME) -> None:
        """With a model the experiment is begun, where there is none yet."""
        self._make_log, self._seed, self._name, self.now = make_log, seed, name, 1_000.0
        self._loop = asyncio.new_event_loop()
        self.said = io.BytesIO()
        """What the service has printed."""
        self.begin(None if model is None else model_bytes(model))

    def begin(self, model: bytes | None = None) -> None:
        """Start a service."""
        log = self._make_log()
        if model is not None:
            first_model(log, self._name, model, self.now)
        self.service = Service(log, Settings(), Events(self.said, quiet=True), lambda: self.now, self._seed)
        with mock.patch("bough.service.service.warm_up"):  # which takes as long as all the rest
            self.service._replay()
        self.service.tail.is_replayed = True

    def restart(self, gracefully: bool = False) -> None:
        """End the service, as a crash does or as an operator does, and start another on the same log."""
        self.end(gracefully)
        self.begin()

    def end(self, gracefully: bool = False) -> None:
        """End the service; nothing can be asked for then."""
        service = self.service
        if gracefully:
            service.keeper.is_keeper = service.log.try_to_keep()
            self._loop.run_until_complete(service.stop())
        else:
            service.writer._thread.shutdown()
            service.log.close()

    def close(self) -> None:
        """End the service for good."""
        self.end()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    # -- what can be done ------------------------------------------------------------------------

    def run(self, *calls: Coroutine[Any, Any, Any], learn: bool = True) -> list[Any]:
        """Have things done at the same time, and all that is logged learned; the answers, or the problems."""

        async def all_of_it() -> list[Any]:
            tasks = [asyncio.ensure_future(call) for call in calls]
            tail = self.service.tail
            while learn and not all(task.done() for task in tasks):
                await tail.step()
                await asyncio.wait(tasks, timeout=0.001)
            while learn and await tail.step():
                pass
            return await asyncio.gather(*tasks, return_exceptions=True)

        return self._loop.run_until_complete(all_of_it())

    def one(self, call: Coroutine[Any, Any, T], learn: bool = True) -> T:
        """Have one thing done; its answer. A problem is raised."""
        [found] = self.run(call, learn=learn)
        if isinstance(found, BaseException):
            raise found
        answer: T = found
        return answer

    def attempts(self, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
        """Have things done at the same time; the answers, or the codes of problems."""
        found = self.run(*calls)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, Problem):
                raise one
        return [one.code if isinstance(one, Problem) else one for one in found]

    def attempt(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Have one thing done; its answer, or the code of a problem."""
        return self.attempts(call)[0]

    @property
    def experiment(self) -> Experiment:
        """The experiment."""
        return self.service.experiment(self._name)

    def deciding(self, **asked: Any) -> Coroutine[Any, Any, Decided]:
        """A request for a decision."""
        return self.service.decide(self.experiment, Decide(**asked))

    def rewarding(self, id: str, value: float, **asked: Any) -> Coroutine[Any, Any, Any]:
        """A reward."""
        return self.service.reward(self.experiment, Reward(decision_id=id, value=value, **asked))

    async def touching(self, what: str, id: str) -> Any:
        """Something that happens to a decision: activate, cancel or retract."""
        experiment = self.experiment
        judge = partial(getattr(experiment, what), now=self.now)
        return await self.service.writer.touch(Key(experiment.id, id), judge)

    def decide(self, **asked: Any) -> Decided:
        """A decision."""
        return self.one(self.deciding(**asked))

    def reward(self, id: str, value: float, **asked: Any) -> Any:
        """What became of a reward."""
        return self.one(self.rewarding(id, value, **asked))

    def configure(self, **config: Any) -> None:
        """Have the experiment go by another configuration."""
        self.one(self.service.changer.configure(self._name, ExperimentConfig(**config), "test"))

    def changing(self, op: Any, name: Any, under: Any = None) -> Coroutine[Any, Any, Any]:
        """A single change of the catalogue."""
        body = ActionChange(op=op, name=name, under=under)
        return self.service.changer.change_action(self.experiment, body, "test")

    def put_model(self, model: Any, **more: Any) -> Any:
        """Another model."""
        return self.one(self.service.changer.put_model(self.experiment, model_bytes(model), "test", **more))

    def keep(self) -> None:
        """One round of the keeper."""
        self.one(self.service.keeper.look_after(self.experiment))
        self.one(self.service.keep_refusals())

    def snapshot(self) -> Any:
        """Write a snapshot; up to where it holds."""
        return self.one(self.service.keeper.snapshot(self.experiment))

    def states(self, *ids: str) -> list[State | None]:
        """Decisions with what has come of them."""
        keys = [Key(self.experiment.id, id) for id in ids]
        found = self.service.log.states(keys)
        return [found.get(key) for key in keys]
