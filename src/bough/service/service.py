"""The service without its web side: experiments, the writer, the tail and the keeper, put together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from bough.policies.warm_up import warm_up
from bough.service.access import Events
from bough.service.aside import aside
from bough.service.auth import Keyring
from bough.service.changes import Changer
from bough.service.experiment import Experiment
from bough.service.exploration import Exploration
from bough.service.keeper import Keeper
from bough.service.learner import Refused
from bough.service.log.base import Log, LogError
from bough.service.metrics import Metrics
from bough.service.name_search import prepare_search
from bough.service.problems import Problem
from bough.service.records import ChangeRow, DecisionRow, ExperimentRow, Key, OutcomeRow, Position, Record, State
from bough.service.restore import restored
from bough.service.schema import Decide, Decided, ExperimentInfo, Reward, Rewarded, Stated
from bough.service.settings import Settings
from bough.service.short_memory import ShortMemory
from bough.service.startup import READY, Startup
from bough.service.state_view import RecentRequests
from bough.service.tail import Tail
from bough.service.traffic import Traffic
from bough.service.writer import Writer

_KEPT_REFUSALS = 1_000
_AGAIN = 2.0  # seconds after which replay is tried again
_COUNTED_AT_ONCE = 2_000  # decisions
_THREADS = 32


class Service:
    """One process of the service."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        events: Events,
        now: Callable[[], float] = time.time,
        seed: Any = None,
        public: str | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.log, self.settings, self.events, self.now, self._seed = log, settings, events, now, seed
        self.metrics = Metrics()
        self.keys = Keyring(log.keys())
        self.writer = Writer(log, self, settings.most_waiting)
        self.tail = Tail(log, self, now)
        self.changer = Changer(self)
        self.keeper = Keeper(self)
        self.startup = Startup(tell)
        self.traffic: dict[int, Traffic] = {}
        self.recent, self.answers = RecentRequests(), ShortMemory()
        self.public = public
        """The experiment that can be read without a key; None for none."""
        self._explorations: dict[int, Exploration] = {}
        self.followed: dict[int, Position] = {}
        """Up to where the decisions of each experiment are counted in its traffic."""
        self.refusals: dict[Position, str] = {}
        """Why records could not be learned; the last of them."""
        self.judging = asyncio.Lock()
        """Held while a policy is judged: that takes long, and much memory."""
        self.is_draining = False
        """Whether it is about to stop, and balancers are to send nothing more."""
        self.also: list[Callable[[], Any]] = []
        """What else goes on while it lives, such as visits of the demo."""
        self._by_id: dict[int, Experiment] = {}
        self._by_name: dict[str, Experiment] = {}
        self._looking = threading.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._not_kept: Refused = []

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to replay the log; decisions can be asked for when that is done."""
        # The few threads that there are unless told otherwise could all be at work for people who look at something,
        # and the tail would wait for one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "bough"))
        self._tasks.append(asyncio.create_task(self._replay_and_go_on(), name="replay"))

    async def _replay_and_go_on(self) -> None:
        began = time.perf_counter()
        while True:
            try:
                with self.startup.watched():
                    await aside(self._replay)
                break
            except LogError as error:  # the database is away, say
                self.events.failed("the log could not be replayed, and is tried again", error)
                await asyncio.sleep(_AGAIN)
            except Exception as error:
                self.events.failed("the log could not be replayed", error)
                raise
        self.tail.is_replayed = True  # not before what was replayed is settled, and the kernels are there
        self.events.say("replayed", seconds=round(time.perf_counter() - began, 3), seq=self.tail.position.seq)
        self.startup.tell(READY)
        self._tasks += [
            asyncio.create_task(self._for_ever(self.tail.run), name="tail"),
            asyncio.create_task(self._for_ever(self.keeper.run), name="keeper"),
            asyncio.create_task(self._for_ever(self._count_decisions), name="traffic"),
            *(asyncio.create_task(self._for_ever(work)) for work in self.also),
            asyncio.create_task(aside(self._prepare_search), name="names"),
        ]

    def _prepare_search(self) -> None:
        """Have all names ready to be searched; decisions do not wait for it."""
        for experiment in self.experiments:
            if experiment.agent is not None:
                prepare_search(experiment.agent._model.tree)

    def _replay(self) -> None:
        self._by_id.clear()
        self._by_name.clear()
        for row in self.log.experiments():
            self._take(row)
        self.tail.position = min((one.position for one in self._by_id.values()), default=Position())
        self.tail.replay()
        self.startup.is_read = True
        if self._by_id:
            self.events.say("warming up")
        for experiment in self._by_id.values():
            experiment.settle()
            if experiment.agent is not None:
                warm_up(experiment.agent)  # or the first requests would wait for kernels to be compiled

    async def _for_ever(self, work: Callable[[], Any]) -> None:
        """Have work go on, also after a failure: the database may be away for a while."""
        while True:
            try:
                await work()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self.events.failed(f"{getattr(work, '__qualname__', work)} failed, and begins again", error)
                await asyncio.sleep(1.0)

    async def _count_decisions(self) -> None:
        """Count decisions as they are logged, also those of other processes."""
        while True:
            for experiment in self.experiments:
                id = experiment.id
                read = self.log.decisions_after
                while found := await asyncio.to_thread(read, id, self.followed[id], _COUNTED_AT_ONCE):
                    rows = [row for _, row in found]
                    self.traffic[id].note_decisions(rows)
                    self.followed[id] = found[-1][0]
                    await asyncio.to_thread(self._judge, experiment, rows)
            await asyncio.sleep(self.settings.keeper_interval)

    def _judge(self, experiment: Experiment, rows: list[DecisionRow]) -> None:
        """Find out which of some decisions explored."""
        if experiment.agent is not None:
            known = self._explorations.setdefault(experiment.id, Exploration(self._seed))
            known.judge(experiment.agent, rows, self.traffic[experiment.id], self.now())

    async def stop(self) -> None:
        """Commit what waits, and end."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task
        await self.changer.stop()
        await self.keeper.stop()
        await self.writer.close()
        self.log.close()
        self.events.close()

    @property
    def is_replaying(self) -> bool:
        """Whether the log is still being replayed for the first time."""
        return not self.tail.is_replayed

    # -- experiments -----------------------------------------------------------------------------

    @property
    def experiments(self) -> list[Experiment]:
        """All experiments, by number."""
        return [self._by_id[id] for id in sorted(self._by_id)]

    async def find(self, name: str) -> Experiment:
        """The experiment of a name, also one that another process has made since."""
        if name not in self._by_name and not self.is_replaying:
            await asyncio.to_thread(self._look_for_experiments)
        return self.experiment(name)

    def experiment(self, name: str) -> Experiment:
        """The experiment of a name; a problem where none is known, or the process still starts."""
        found = self._by_name.get(name)
        if self.is_replaying:
            raise self.startup.problem()
        if found is None:
            raise Problem(
                "unknown-experiment",
                f"there is no experiment {name!r}; make it by PUT /v1/{name}",
                value=name,
                remedy="make it by PUT, or see GET /v1 for those that there are",
            )
        return found

    def knows(self, id: int) -> bool:
        """Whether there is no need to look for an experiment in the log."""
        return id in self._by_id

    def experiment_of(self, id: int) -> Experiment | None:
        """The experiment with a number, also one that another process has made since."""
        if id not in self._by_id:
            self._look_for_experiments()
        return self._by_id.get(id)

    def _look_for_experiments(self) -> None:
        """Have all experiments of the log be known; it asks the database, and so is for a thread."""
        with self._looking:  # two threads that find the same one would learn into one, and forget it for the other
            for row in self.log.experiments():
                if row.id not in self._by_id:
                    self._take(row)
                    agent = self._by_id[row.id].agent
                    if agent is not None:
                        warm_up(agent)

    def _take(self, row: ExperimentRow) -> None:
        experiment, self.traffic[row.id], self.followed[row.id] = restored(self.log, row, self._seed, self.events)
        experiment.created = row.created
        self._by_id[row.id] = self._by_name[row.name] = experiment

    # -- decisions -------------------------------------------------------------------------------

    async def decide(self, experiment: Experiment, asked: Decide) -> Decided:
        """A decision that is durable."""
        try:
            row = experiment.decide(asked, self.now())
        except Problem:
            known = None if asked.decision_id is None else await self.state(experiment, asked.decision_id)
            if known is None:
                raise
            return experiment.answer(known.decision, asked, True)  # made before what makes it impossible now
        decided = await self.writer.decide(experiment, asked, row)
        if not decided.replayed:
            self.metrics.decided(experiment.name, decided)
        return decided

    async def reward(self, experiment: Experiment, asked: Reward) -> Rewarded:
        """What became of a reward, once it is durable."""
        experiment.ready_agent()
        judge = partial(experiment.reward, asked, now=self.now())
        answer: Rewarded = await self.writer.touch(Key(experiment.id, asked.decision_id), judge)
        if not answer.replayed:
            self.metrics.rewarded(experiment.name, answer.status)
        return answer

    async def retract(self, experiment: Experiment, decision: str) -> Stated:
        """Take back what was learned of a decision; first all that is logged has to be learned here."""
        await self.tail.until(await asyncio.to_thread(self.log.end))
        judge = partial(experiment.retract, now=self.now())
        answer: Stated = await self.writer.touch_alone(Key(experiment.id, decision), judge)
        return answer

    async def state(self, experiment: Experiment, decision: str) -> State | None:
        """A decision with what has come of it; None where there is none."""
        key = Key(experiment.id, decision)
        found = await asyncio.to_thread(self.log.states, [key])
        return found.get(key)

    async def lag(self) -> float:
        """Seconds that this process is behind the log; 0 where it has learned from all of it."""
        end = await asyncio.to_thread(self.log.end)
        return 0.0 if end <= self.tail.position else max(0.0, self.now() - self.tail.caught_up_at)

    # -- what writer and tail say ----------------------------------------------------------------

    def committed(self, rows: int, seconds: float) -> None:
        """Rows were committed."""
        self.metrics.committed(rows, seconds)
        self.tail.wake()

    def not_committed(self, error: LogError) -> None:
        """A commit has failed, after others have succeeded."""
        self.events.failed("the log could not be written", error)

    def heard(self, records: list[Record], refused: Refused) -> None:
        """Records were learned from."""
        outcomes: dict[int, list[OutcomeRow]] = {}
        for record in records:
            if isinstance(record, OutcomeRow) and record.kind != "retracted":
                outcomes.setdefault(record.experiment, []).append(record)
            elif isinstance(record, ChangeRow) and record.experiment in self.traffic and not refused:
                self.traffic[record.experiment].history.note_change(record)
        for id, rows in outcomes.items():
            if id in self.traffic:
                self.traffic[id].note_outcomes(rows, self._by_id[id].config.learning)
        private = {record.position for record in records if isinstance(record, OutcomeRow) and record.context}
        for position, why in refused:
            self.refusals[position] = why
            while len(self.refusals) > _KEPT_REFUSALS:
                del self.refusals[next(iter(self.refusals))]
            said = "the table quarantine says why, and may name its context" if position in private else why
            self.events.say("quarantined", seq=position.seq, why=said)
        if refused:
            self.metrics.quarantined(len(refused))
            self._not_kept += refused

    async def keep_refusals(self) -> None:
        """Write down what could not be learned."""
        found, self._not_kept = self._not_kept, []
        if found:

            def work(transaction: Any) -> None:
                for position, why in found:
                    transaction.quarantine(position, why)

            try:
                await self.writer.append(work)
            except BaseException:
                self._not_kept = found + self._not_kept
                raise

    def keys_changed(self) -> None:
        """Keys were made or revoked."""
        self.keys.reload(self.log.keys())

    def describe(self, experiment: Experiment) -> ExperimentInfo:
        """What there is to say about an experiment."""
        agent = experiment.agent
        return ExperimentInfo(
            experiment.name,
            experiment.created,
            experiment.config,
            experiment.model_version,
            0 if agent is None else agent._catalogue.n_actions,
            0 if agent is None else agent.posterior.n_observations,
            experiment.n_learned,
            experiment.position.seq,
            self.changer.refit_state(experiment),
        )
