"""One kill after another while clients decide and reward, and after each: was anything lost, or learned twice?

The plan, with its seed, is printed first, so that a run that fails can be had again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import bough
from bough.service.log import open_log
from bough.service.log.base import Log
from service_http import GoneError
from service_load import Checker, Ledger, ask_again, load
from service_posterior import difference, library, moments, served_moments
from service_process import PATIENCE, ServiceProcess

EXPERIMENTS = ("shop", "clicks")
_WINDOW = 0.3  # seconds
_NEVER = 1e18  # seconds since 1970
_ASKED_AGAIN = 40  # of those decisions that were acknowledged, after each kill
_EXACT = 1e-9
_HAND = ThreadPoolExecutor(1)
"""What strikes while clients go on. It stays: a database that it has started stops when the thread ends."""


@dataclass(frozen=True)
class Plan:
    """What is done; `least` and `most` are how many answers come between two kills."""

    seed: int
    kills: int
    what: str = "the service"
    clients: int = 16
    least: int = 100
    most: int = 600


class Report(NamedTuple):
    """What came of it."""

    kills: int
    acknowledged: int
    changes: int
    """Of the catalogue."""
    wrong: list[str]


def small_model() -> bough.GaussianModel:
    """The model of both experiments."""
    return bough.GaussianModel(bough.Tree.balanced(branching=5, height=2))


def crash(process: ServiceProcess, plan: Plan, strike: Callable[[], None] | None = None) -> Report:
    """Kill a service as often as planned, or, by `strike`, something that it needs and finds again."""
    print(f"{plan}: run it again with this seed", flush=True)
    rng, ledger = random.Random(plan.seed), Ledger()
    _begin(process)
    with closing(_opened(process)) as log:
        checker = Checker(ledger, {row.id: row.name for row in log.experiments()})
    wrong: list[str] = []
    for number in range(1, plan.kills + 1):
        n_before = len(ledger.entries)
        _run_until(process, ledger, ledger.acknowledged + rng.randint(plan.least, plan.most), strike, plan, number)
        with closing(_opened(process)) as log:
            wrong = checker.check(log) or _learned_once(process, checker, log)
        if not wrong:
            asyncio.run(_ask_again(process, ledger, rng, n_before))
            wrong = ledger.faults
        if wrong:
            return Report(number, ledger.acknowledged, len(ledger.added), wrong)
    with closing(_opened(process)) as log:
        wrong = checker.check(log) or _learned_once(process, checker, log) or _posterior(process, log)
    return Report(plan.kills, ledger.acknowledged, len(ledger.added), wrong)


def _begin(process: ServiceProcess) -> None:
    """A second experiment beside the first, which learns when windows close."""
    config = {"learning": "at_close", "window": _WINDOW, "default": 0.0}
    assert process.ask("PUT", "/v1/clicks", config).status == 201
    file = process.ask("GET", "/v1/shop/model").body
    assert process.ask("PUT", "/v1/clicks/model", file).status == 200


def _opened(process: ServiceProcess) -> Log:
    return open_log(process.data, process.database, exclusive=False)


def _run_until(
    process: ServiceProcess, ledger: Ledger, target: int, strike: Callable[[], None] | None, plan: Plan, number: int
) -> None:
    """Have clients at work until there have been so many answers, then strike, and have all go on."""
    struck: Future[None] | None = None

    def on_acknowledged(n: int) -> None:
        nonlocal struck
        if n >= target and struck is None:
            if strike is None:
                struck = Future()
                process.strike()
            else:
                struck = _HAND.submit(strike)
        elif struck is not None and struck.done() and n >= target + plan.least:
            ledger.is_over = True  # it has gone on by itself

    ledger.is_over, ledger.on_acknowledged = False, on_acknowledged
    asyncio.run(load(process.port, process.token, ledger, f"{plan.seed}.{number}", plan.clients, EXPERIMENTS))
    ledger.on_acknowledged = lambda n: None
    assert struck is not None, f"the service went away by itself:\n{process.said()}"
    if strike is None:
        process.reap()
        process.start()
    else:
        struck.result()
        process.wait()


async def _ask_again(process: ServiceProcess, ledger: Ledger, rng: random.Random, since: int) -> None:
    fresh = ledger.entries[since:]
    unanswered = [entry for entry in fresh if entry.action is None or (entry.is_sent and entry.reward is None)]
    answered = [entry for entry in ledger.entries if entry.action is not None]
    again = unanswered + rng.sample(answered, min(_ASKED_AGAIN, len(answered)))
    try:
        await ask_again(process.port, process.token, ledger, again)
    except GoneError:
        ledger.fault(f"the service went away by itself:\n{process.said()}")


def _learned_once(process: ServiceProcess, checker: Checker, log: Log) -> list[str]:
    """What the model has learned beside what the log has for it, when all windows have closed."""
    until = time.monotonic() + PATIENCE
    while True:
        is_closed = not any(log.due(id, _NEVER, 1) for id in checker.names)
        wrong = checker.check(log) if is_closed else ["not closed: windows of decisions"]
        for name in checker.names.values() if is_closed else ():
            info = process.ask("GET", f"/v1/{name}").body
            n = checker.learnable[name]
            if info["learned"] < n:
                wrong.append(f"not learned: {name} has learned {info['learned']} of {n}")
            elif info["learned"] > n or info["observations"] != n:
                wrong.append(f"learned twice: {name} has {info['learned']}, and {info['observations']} of {n}")
        if not wrong or time.monotonic() > until or any(one.startswith(("lost", "learned twice")) for one in wrong):
            return wrong
        time.sleep(0.01)


def _posterior(process: ServiceProcess, log: Log) -> list[str]:
    """What the model knows beside the library, fed with the export."""
    wrong = []
    for row in log.experiments():
        apart = difference(moments(library(log, row.id, process.folder)), served_moments(process, row.name))
        if apart > _EXACT:
            wrong.append(f"learned otherwise: {row.name} is {apart} apart from the library")
    return wrong
