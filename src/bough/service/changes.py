"""Changes of experiments while they run: checked on a copy, logged, and made when the log is read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from bough.service.experiment import Experiment
from bough.service.files import digest_of, file_of, tree_bytes
from bough.service.learner import warm
from bough.service.log.base import Log, LogError, Transaction
from bough.service.problems import Problem, refused
from bough.service.records import ChangeKind, ChangeRow, ExperimentRow, ModelRow
from bough.service.refits import evidence_of, refitted_elsewhere
from bough.service.schema import Accepted, ActionChange, ExperimentConfig, ExperimentName, TreeBody
from bough.service.trials import trial
from bough.service.writer import not_written

if TYPE_CHECKING:
    from bough.service.service import Service

_MOST_TRIES = 20


class _BehindError(Exception):
    """Another process has made a change that this one has not read yet."""


class Changer:
    """Makes changes, one at a time for each experiment."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._locks: dict[str, asyncio.Lock] = {}
        self._refits: dict[int, asyncio.Task[None]] = {}
        self._refit_said: dict[int, str] = {}

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    # -- what is asked for -----------------------------------------------------------------------

    async def configure(self, name: str, config: ExperimentConfig, by: str) -> tuple[Accepted, bool]:
        """Make an experiment, or have one go by another configuration; also whether it is new."""
        service, body = self._service, msgspec.to_builtins(config)
        try:
            experiment, is_new = await service.find(name), False
        except Problem as problem:
            if problem.code != "unknown-experiment":
                raise
            row: ExperimentRow = await self.append(
                lambda transaction: transaction.add_experiment(name, body, service.now())
            )
            found = await asyncio.to_thread(service.experiment_of, row.id)
            assert found is not None
            experiment, is_new = found, True
        if not is_new and experiment.config == config:
            return Accepted(experiment.position.seq, experiment.model_version), False
        return await self.make(experiment, "config", {"config": body}, by), is_new

    async def put_model(self, experiment: Experiment, data: bytes, by: str, **more: Any) -> Accepted:
        """Have an experiment go on with another model; the same one again changes nothing."""
        digest = digest_of(data)
        models = await asyncio.to_thread(self._service.log.models, experiment.id)
        if models and models[-1].digest == digest and experiment.model_version == models[-1].version:
            return Accepted(experiment.position.seq, experiment.model_version)
        return await self.make(experiment, "model", {"digest": digest, **more}, by, data)

    async def put_tree(self, experiment: Experiment, body: TreeBody, by: str) -> Accepted:
        """Have an experiment go on with a whole new catalogue."""
        data = await asyncio.to_thread(tree_bytes, body)
        what: dict[str, Any] = {"digest": digest_of(data), "renamed": body.renamed, "gone": body.gone}
        if body.factors is not None:
            what["factors"] = body.factors
        return await self.make(experiment, "tree", what, by, data)

    async def change_action(self, experiment: Experiment, body: ActionChange, by: str) -> Accepted:
        """Make a single change of the catalogue."""
        names = body.name if isinstance(body.name, list) else [body.name]
        what = {"op": body.op, "names": names, "under": body.under}
        what |= {name: given for name in ("factors", "factor") if (given := getattr(body, name)) is not None}
        return await self.make(experiment, "action", what, by)

    # -- how it is done --------------------------------------------------------------------------

    async def make(
        self, experiment: Experiment, kind: ChangeKind, body: dict[str, Any], by: str, data: bytes | None = None
    ) -> Accepted:
        """Check a change, log it, and wait until it is made."""
        service = self._service
        change = ChangeRow(experiment.id, service.now(), kind, by, body)
        file: Any = None
        if data is not None:
            try:
                file = await asyncio.to_thread(file_of, kind, data)
            except (ValueError, KeyError) as error:
                raise refused(error) from None
        async with self._lock(experiment.name):
            for _ in range(_MOST_TRIES):
                if kind == "model":
                    body["version"] = await self._next_version(experiment)
                if "refit" not in body:  # the prior of a refit goes with any catalogue, and trying it takes long
                    await asyncio.to_thread(experiment.check, change, file)
                    if kind == "model":
                        await self._warm(experiment, file)
                try:
                    await self.append(lambda transaction: _log(transaction, experiment, change, data))
                    break
                except _BehindError:
                    await asyncio.sleep(0.05)  # the tail is about to read it
            else:
                raise Problem("conflict", "others change the experiment all the time; try again", remedy="try again")
            await service.tail.until(change.position)
        why = service.refusals.get(change.position)
        if why is not None:
            raise Problem("conflict", f"it is in the log, and could not be made: {why}")
        return Accepted(change.seq, experiment.model_version)

    async def _next_version(self, experiment: Experiment) -> int:
        """A version that there has not been, nor of a model that could not be made in the end."""
        rows = await asyncio.to_thread(self._service.log.models, experiment.id)
        return 1 + max([experiment.model_version, *(row.version for row in rows)])

    async def _warm(self, experiment: Experiment, file: Any) -> None:
        try:
            await asyncio.to_thread(warm, file, experiment.config.half_life)
        except ValueError as error:  # what it needs is not installed
            raise refused(error, "not-installed") from None

    async def append(self, work: Any) -> Any:
        """Do something in a transaction; a problem where the log cannot be written."""
        try:
            return await self._service.writer.append(work)
        except LogError as error:
            raise not_written(error) from None

    # -- refits ----------------------------------------------------------------------------------

    def refit_state(self, experiment: Experiment) -> str | None:
        """What the last refit is doing, or came to."""
        return self._refit_said.get(experiment.id)

    async def refit(self, experiment: Experiment, by: str) -> None:
        """Learn the prior from all that was observed, in another process, and go on with it."""
        running = self._refits.get(experiment.id)
        if running is not None and not running.done():
            raise Problem("conflict", "a refit is running; wait until it is done", remedy="wait until it is done")
        self._refits[experiment.id] = asyncio.current_task()  # type: ignore[assignment]
        try:
            agent = trial(experiment.ready_agent())  # so that decisions need not wait
            evidence = await asyncio.to_thread(evidence_of, agent, experiment, self._service.log)
        except ValueError as error:
            raise refused(error, "conflict") from None
        self._refit_said[experiment.id] = "running"
        self._refits[experiment.id] = asyncio.create_task(self._refitted(experiment, evidence, by))

    async def _refitted(self, experiment: Experiment, evidence: Any, by: str) -> None:
        service = self._service
        try:
            found = await refitted_elsewhere(evidence)
            accepted = await self.put_model(experiment, found.file, by, refit=True, estimates=found.estimates)
            said = f"done: version {accepted.model_version}"
            service.metrics.refitted(True)
        except Exception as error:
            said = f"failed: {error}"
            service.metrics.refitted(False)
            service.events.failed(f"the refit of {experiment.name} failed", error)
        self._refit_said[experiment.id] = said
        service.events.say("refit", experiment=experiment.name, result=said)

    async def stop(self) -> None:
        """End refits that run."""
        for task in self._refits.values():
            task.cancel()
        await asyncio.gather(*self._refits.values(), return_exceptions=True)


def _log(transaction: Transaction, experiment: Experiment, change: ChangeRow, data: bytes | None) -> None:
    """Append a change, unless another process made one that has not been read here."""
    last = transaction.lock_changes(experiment.id)
    if last > experiment.last_change:
        raise _BehindError
    if data is not None:
        transaction.put_file(change.body["digest"], data)
    if change.kind == "model":
        transaction.add_model(
            ModelRow(experiment.id, change.body["version"], change.body["digest"], experiment.position.seq)
        )
    transaction.add_change(change)


def first_model(log: Log, name: str | None, data: bytes | None, now: float) -> None:
    """Have an experiment with a model, before anything is served; the same model again changes nothing."""
    rows = {row.name: row for row in log.experiments()}
    if name is None:
        raise ValueError("a model is given, and no experiment; give --experiment NAME")
    check_name(name)
    row = rows.get(name)
    models = [] if row is None else log.models(row.id)
    if data is None:
        if row is None:
            raise ValueError(f"there is no experiment {name!r} yet; give --model FILE to begin it")
        return
    digest = digest_of(data)
    if models:
        if digest not in (models[0].digest, models[-1].digest):
            raise ValueError(
                f"the experiment {name!r} has another model; leave --model out, or put the new one: "
                f"PUT /v1/{name}/model"
            )
        return
    config = ExperimentConfig()
    trial = Experiment(0, name, config)
    change = ChangeRow(0, now, "model", "start", {"digest": digest, "version": 1})
    try:
        trial.check(change, file_of("model", data))
    except Problem as problem:
        raise ValueError(problem.detail) from None
    with log.transaction() as transaction:
        made = row or transaction.add_experiment(name, msgspec.to_builtins(config), now)
        transaction.lock_changes(made.id)
        transaction.put_file(digest, data)
        transaction.add_model(ModelRow(made.id, 1, digest, 0))
        transaction.add_change(ChangeRow(made.id, now, "model", "start", change.body))


def check_name(name: str) -> None:
    """Refuse what no experiment can be called."""
    if name == "keys":
        raise ValueError("an experiment cannot be called 'keys', which is an address of its own; give another name")
    try:
        msgspec.convert(name, ExperimentName)
    except msgspec.ValidationError:
        raise ValueError(
            f"an experiment cannot be called {name!r:.80}; give up to 64 letters, digits, _ and -, a letter first"
        ) from None
