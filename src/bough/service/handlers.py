"""What each route does: a handler per name in the table of routes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET

import bough
from bough.service import schema, views
from bough.service.auth import PUBLIC, make_key
from bough.service.experiment import Experiment
from bough.service.exports import Stream, exported
from bough.service.judgement import judged
from bough.service.openapi import document
from bough.service.problems import Problem, refused
from bough.service.records import CANCEL, ChangeRow, Key, State
from bough.service.routes import BYTES
from bough.service.service import Service
from bough.service.state_view import recent_decisions, state_of

_TOGETHER = 500  # rewards of a batch that are logged at once, so that other requests come in between


class Call(NamedTuple):
    """A request that has been read and allowed."""

    service: Service
    parameters: dict[str, str]
    experiment: Experiment | None
    body: Any
    query: Any
    by: str
    """The id of the key."""

    @property
    def own(self) -> Experiment:
        """The experiment that the path names."""
        assert self.experiment is not None
        return self.experiment


class Reply(NamedTuple):
    """An answer with another status than 200, or another media type than JSON."""

    status: int
    body: Any
    media: str | None = "application/json"


# -- deciding and learning -----------------------------------------------------------------------


async def decide(call: Call) -> schema.Decided:
    return await call.service.decide(call.own, call.body)


async def reward(call: Call) -> schema.Rewarded:
    return await call.service.reward(call.own, call.body)


async def rewards(call: Call) -> schema.RewardResults:
    found: list[Any] = []
    for start in range(0, len(call.body.rewards), _TOGETHER):
        waiting = [call.service.reward(call.own, asked) for asked in call.body.rewards[start : start + _TOGETHER]]
        found += await asyncio.gather(*waiting, return_exceptions=True)
    for one in found:
        if isinstance(one, Problem) and one.status == 503:
            raise one  # sent again, the whole of it is safe: what was logged is answered as before
    results = [_result(asked, one) for asked, one in zip(call.body.rewards, found, strict=True)]
    return schema.RewardResults(results, sum(one.status == "refused" for one in results))


def _result(asked: schema.Reward, found: Any) -> schema.RewardResult:
    if isinstance(found, schema.Rewarded):
        return schema.RewardResult(asked.decision_id, found.status, found.replayed, asked.reward_id, asked.slot)
    if not isinstance(found, Problem):
        raise found
    problem = schema.ProblemBody(**found.to_dict())
    return schema.RewardResult(asked.decision_id, "refused", False, asked.reward_id, asked.slot, problem)


async def activate(call: Call) -> schema.Stated:
    return await _touched(call, call.own.activate)


async def cancel(call: Call) -> schema.Stated:
    return await _touched(call, call.own.cancel)


async def retract(call: Call) -> schema.Stated:
    return await call.service.retract(call.own, call.body.decision_id)


async def _touched(call: Call, judge: Callable[..., Any]) -> schema.Stated:
    key = Key(call.own.id, call.body.decision_id)
    answer: schema.Stated = await call.service.writer.touch(key, partial(judge, now=call.service.now()))
    return answer


# -- looking -------------------------------------------------------------------------------------


async def decision(call: Call) -> schema.DecisionInfo:
    state = await _state(call)
    row = state.decision
    return schema.DecisionInfo(
        row.id, row.at, _status(state), row.actions, row.model_version, row.learned_seq, row.mode,
        [
            schema.Outcome(one.at, one.kind, one.value, one.learn, one.slot, _own(one.id), one.trials, one.exposure)
            for one in state.outcomes
        ],
        row.context, row.offered, row.propensity, row.active, row.closes, row.factors,
    )  # fmt: skip


def _own(id: str) -> str | None:
    """A reward's own id; None where it has none, or is the service's."""
    return None if not id or id.startswith("!") else id


async def _state(call: Call) -> State:
    id = call.parameters["id"]
    found = await call.service.state(call.own, id)
    if found is None:
        raise Problem("unknown-decision", f"there is no decision {id!r}", value=id, remedy="give the id of one")
    return found


def _status(state: State) -> Any:
    kinds = {row.kind for row in state.outcomes}
    if any(row.id == CANCEL for row in state.outcomes):
        return "cancelled"
    if kinds & {"reward", "closed"}:
        return "rewarded"
    if "default" in kinds:
        return "defaulted"
    return "inactive" if state.decision.active is None else "open"


async def explain(call: Call) -> Any:
    state = await _state(call)
    agent, traffic = call.own.ready_agent(), call.service.traffic[call.own.id]
    return await asyncio.to_thread(views.explained, agent, state.decision, traffic)


async def tree(call: Call) -> schema.TreeView:
    return views.nested(await treemap(call))


async def treemap(call: Call) -> schema.TreeColumns:
    agent, traffic, query = call.own.ready_agent(), call.service.traffic[call.own.id], call.query
    node = None if query.node is UNSET else query.node
    try:
        return await asyncio.to_thread(views.tree, agent, traffic, node, query.levels, query.limit, None, query.nodes)
    except KeyError as error:
        raise refused(error, "unknown-node", value=node) from None


async def top(call: Call) -> Any:
    agent, traffic, query = call.own.ready_agent(), call.service.traffic[call.own.id], call.query

    def look() -> schema.Top:
        found = views.top(agent, traffic, query.k, order=query.order)
        return schema.Top(found, agent.posterior.n_observations, call.service.now())

    return await call.service.answers.get((call.own.id, query.k, query.order), look)


async def series(call: Call) -> Any:
    now = call.service.now()
    return views.series(call.service.traffic[call.own.id], now - 60.0 * call.query.minutes, now)


async def search(call: Call) -> Any:
    agent, traffic = call.own.ready_agent(), call.service.traffic[call.own.id]
    return schema.Found(await asyncio.to_thread(views.search, agent, traffic, call.query.q, call.query.limit))


async def recent(call: Call) -> schema.RecentDecisions:
    return await recent_decisions(call.service, call.own, call.query.limit)


async def prior(call: Call) -> schema.PriorView:
    return await asyncio.to_thread(views.prior, call.own.ready_agent(), call.service.traffic[call.own.id])


async def state(call: Call) -> schema.ServiceState:
    return await state_of(call.service, call.own)


async def export(call: Call) -> Stream:
    return exported(call.service.log, call.own, call.query)


async def evaluate(call: Call) -> Any:
    if call.service.judging.locked():
        raise Problem("conflict", "an evaluation is running; wait until it is done")
    async with call.service.judging:
        return await asyncio.to_thread(judged, call.service.log, call.own, call.body)


# -- experiments ---------------------------------------------------------------------------------


async def experiments(call: Call) -> schema.Experiments:
    if call.service.is_replaying:
        raise call.service.startup.problem()
    service = call.service
    public = service.public if call.by == PUBLIC.id else None
    return schema.Experiments(
        [service.describe(one) for one in service.experiments if public is None or one.name == public]
    )


async def experiment(call: Call) -> schema.ExperimentInfo:
    return call.service.describe(call.own)


async def put_experiment(call: Call) -> Reply:
    service, name = call.service, call.parameters["experiment"]
    _, is_new = await service.changer.configure(name, call.body, call.by)
    return Reply(201 if is_new else 200, service.describe(service.experiment(name)))


async def put_tree(call: Call) -> schema.Accepted:
    return await call.service.changer.put_tree(call.own, call.body, call.by)


async def put_model(call: Call) -> schema.Accepted:
    return await call.service.changer.put_model(call.own, call.body, call.by)


async def model(call: Call) -> Reply:
    call.own.ready_agent()
    log, version = call.service.log, call.own.model_version  # before the rows are read, so that they have it
    rows = await asyncio.to_thread(log.models, call.own.id)
    [digest] = [row.digest for row in rows if row.version == version]
    return Reply(200, await asyncio.to_thread(log.file, digest), BYTES)


async def actions(call: Call) -> schema.Accepted:
    return await call.service.changer.change_action(call.own, call.body, call.by)


async def refit(call: Call) -> Reply:
    await call.service.changer.refit(call.own, call.by)
    return Reply(202, schema.Refitting("started", call.own.model_version))


# -- keys ----------------------------------------------------------------------------------------


async def keys(call: Call) -> schema.Keys:
    rows = await asyncio.to_thread(call.service.log.keys)
    return schema.Keys([_key_info(row) for row in rows])


def _key_info(row: Any) -> schema.KeyInfo:
    return schema.KeyInfo(row.id, row.scopes, row.created, row.experiment, row.rate, row.revoked)


async def create_key(call: Call) -> Reply:
    token, row = make_key(call.body.scopes, at=call.service.now(), experiment=call.body.experiment, rate=call.body.rate)

    def work(transaction: Any) -> None:
        transaction.add_key(row)
        transaction.add_change(ChangeRow(0, row.created, "key", call.by, {"created": row.id}))

    await call.service.changer.append(work)
    await asyncio.to_thread(call.service.keys_changed)
    made = schema.KeyMade(row.id, call.body.scopes, row.created, row.experiment, row.rate, token=token)
    return Reply(201, made)


async def revoke_key(call: Call) -> Reply:
    id, now = call.parameters["id"], call.service.now()

    def work(transaction: Any) -> None:
        transaction.add_change(ChangeRow(0, now, "key", call.by, {"revoked": id}))
        if not transaction.revoke_key(id, now):  # and nothing is logged
            raise Problem("unknown-key", f"there is no key {id!r} to revoke", value=id, remedy="see GET /v1/keys")

    await call.service.changer.append(work)
    await asyncio.to_thread(call.service.keys_changed)
    return Reply(204, b"", None)


# -- the service ---------------------------------------------------------------------------------


async def health(call: Call) -> schema.Health:  # noqa: ARG001
    return schema.Health("ok", bough.__version__)


async def ready(call: Call) -> schema.Ready:
    service = call.service
    if service.is_replaying:
        raise service.startup.problem()
    if service.writer.failure is not None:
        raise Problem("not-written", "the log could not be written; the service's own log says why", retry_after=5.0)
    if service.is_draining:
        raise Problem("overloaded", "the service is about to stop; ask another one", retry_after=1.0)
    lag = await service.lag()
    if lag > service.settings.lag_limit:
        raise Problem("not-replayed", f"this process is {lag:.1f} seconds behind the log", retry_after=1.0)
    return schema.Ready("ready", lag, service.keeper.is_keeper)


async def metrics(call: Call) -> Reply:
    body, media = await asyncio.to_thread(call.service.metrics.page, call.service)
    return Reply(200, body, media)


async def openapi(call: Call) -> Reply:  # noqa: ARG001
    return Reply(200, document(bough.__version__))


HANDLERS: dict[str, Callable[[Call], Awaitable[Any]]] = {
    one.__name__: one
    for one in (
        decide, reward, rewards, activate, cancel, retract, decision, explain, tree, treemap, top, series, search,
        recent, prior, state, export, evaluate, experiments, experiment, put_experiment, put_tree, put_model, model,
        actions, refit, keys,
        create_key, revoke_key, health, ready, metrics, openapi,
    )
}  # fmt: skip
