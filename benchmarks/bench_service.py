"""What a durable decision costs over HTTP, beside its floors: bare ASGI with the same log, a sync, the library."""

import json
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from service_runs import peer, served, sync_seconds

import bough
from bough.service.experiment import Experiment
from bough.service.files import model_bytes
from bough.service.log.sqlite import SqliteLog
from bough.service.records import ChangeRow, DecisionRow, OutcomeRow, Position
from bough.service.restore import taken
from bough.service.schema import ExperimentConfig
from bough.service.traffic import Traffic

MANY = 1_000_000


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    small, large = folder / "small.bough", folder / "large.bough"
    bough.GaussianModel(bough.Tree.balanced(10, 4)).save(small)
    tree = bough.Tree.balanced(10, 6)
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    rng = np.random.default_rng(0)
    tried = rng.choice(tree.actions, 100_000, replace=False)
    agent.update(tried, rng.normal(size=len(tried)))
    agent.save(large)
    return {"small": small, "large": large, "tried": agent}


def test_the_cost_of_a_pair(benchmark, table, models, tmp_path):
    """Decide + reward at K = 10^4: processor time of the server, in turns with its peers."""
    found = {"serve": [], "bare": [], "fastapi": []}
    rates, rows = [], []

    def turn():
        for kind in found:
            folder = tmp_path / f"{kind}-{len(found[kind])}"
            folder.mkdir()
            starting = served if kind == "serve" else lambda *given, kind=kind: peer(kind, *given)
            with starting(folder / "data", models["small"], folder) as server:
                server.load(8, 1.0)
                began = server.cpu
                load = server.load(32, 4.0)
                found[kind].append((server.cpu - began) / load["pairs"])
                if kind == "serve":
                    rates.append(load)
                    rows.append(server.figure("bough_commit_rows_sum") / server.figure("bough_commit_rows_count"))

    benchmark.pedantic(turn, rounds=3)
    ours, bare, fast = (min(found[kind]) for kind in ("serve", "bare", "fastapi"))
    table.amount("service: processor time per durable decide + reward, K = 10^4", ours * 1e6, 350, "us")
    table.compared("service: the same / bare ASGI with the same log", ours, bare, at_most=1.5)
    table.compared("service: FastAPI with the same log / the same", ours, fast)
    best = max(rates, key=lambda load: load["per_second"])
    sync = sync_seconds(tmp_path)
    slowest = max(best["decide_p99"], best["reward_p99"])
    table.at_least("service: pairs per second, 32 clients on the same 2 cores, SQLite FULL", best["per_second"], 2_000)
    table.amount(f"service: p99 under that load (a sync takes {sync * 1e3:.2f} ms)", slowest, 5e3 * sync + 10, "ms")
    table.at_least("service: requests per commit under that load", max(rows), 8)


def test_decide_among_a_million(benchmark, table, models, tmp_path):
    """One client, K = 10^6 and 10^5 tried: a decision over HTTP beside the library's own and a request's floor."""
    with served(tmp_path / "data", models["large"], tmp_path) as server:
        times = {"served": [], "floor": [], "library": []}
        agent = models["tried"]

        def turn():
            for _ in range(20):
                for name, ask in (("served", lambda: server.load(1, 0.0, "decide")["decide_p50"] / 1e3),):
                    times[name].append(ask())

        server.load(1, 2.0, "decide")
        served_time = server.load(1, 4.0, "decide")["decide_p50"] / 1e3
        for _ in range(200):
            began = time.perf_counter()
            agent.decide()
            times["library"].append(time.perf_counter() - began)
        library = float(np.median(times["library"]))
    small = tmp_path / "small"
    small.mkdir()
    with served(small / "data", models["small"], small) as server:
        server.load(1, 1.0, "decide")
        floor = server.load(1, 3.0, "decide")["decide_p50"] / 1e3
    quick = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(10, 4)), seed=0)
    spent = []
    for _ in range(200):
        began = time.perf_counter()
        quick.decide()
        spent.append(time.perf_counter() - began)
    floor -= float(np.median(spent))
    benchmark.pedantic(agent.decide, rounds=5)
    table.compared(
        "service: decide, K = 10^6, 10^5 tried / the library's own time + a durable request's floor",
        served_time,
        library + floor,
        at_most=1.3,
    )
    table.note("service: that floor, with its sync", f"{floor * 1e3:.2f} ms")


def test_decide_while_a_refit_runs(benchmark, table, models, tmp_path):
    """p99 of decide at K = 10^6 without and with a refit in the background."""
    with served(tmp_path / "data", models["large"], tmp_path) as server:
        server.load(1, 2.0, "decide")
        without = server.load(2, 5.0, "decide")["decide_p99"]
        server.ask("/v1/shop/refit", b"{}")
        during = []

        def turn():
            while json.loads(server.ask("/v1/shop"))["refit"] == "running" and len(during) < 12:
                during.append(server.load(2, 3.0, "decide")["decide_p99"])

        benchmark.pedantic(turn, rounds=1)
        said = json.loads(server.ask("/v1/shop"))["refit"]
    assert during, said
    table.compared(
        f"service: p99 of decide while a refit of K = 10^6 runs ({said}) / without",
        float(np.median(during)) / 1e3,
        without / 1e3,
        at_most=2,
    )


def filled(folder, model, n):
    """A log with n rewards, made as quickly as can be."""
    log = SqliteLog(folder)
    data = model_bytes(model)
    from bough.service.changes import first_model

    first_model(log, "shop", data, 0.0)
    rng = np.random.default_rng(0)
    actions = rng.choice(model.tree.actions, n).tolist()
    values = rng.normal(size=n).tolist()
    for start in range(0, n, 20_000):
        decisions, outcomes = [], []
        for i in range(start, min(n, start + 20_000)):
            decisions.append(DecisionRow(1, f"d{i}", 1.0 * i, [actions[i]], None, None, 1, 0, 1, None, "learn", b"",
                                         1.0 * i, None, "at_once", False))  # fmt: skip
            outcomes.append(OutcomeRow(1, f"d{i}", 0, "", i + 0.5, "reward", values[i], None, None, actions[i], None,
                                       1.0 * i, True))  # fmt: skip
        with log.transaction() as transaction:
            transaction.add_decisions(decisions)
            transaction.states([row.key for row in decisions])
            transaction.add_outcomes(outcomes)
    log.checkpoint()
    log.close()


RESTART = """
import sys, time, asyncio
from pathlib import Path
from bough.service.service import Service
from bough.service.settings import Settings
from bough.service.access import Events
from bough.service.log.sqlite import SqliteLog
import bough.service.server, bough.policies.warm_up, bough.inference.engines

async def main():
    began = time.perf_counter()
    service = Service(SqliteLog(Path(sys.argv[1])), Settings(), Events(quiet=True))
    await service.start()
    while service.is_replaying:
        await asyncio.sleep(0.005)
    print(time.perf_counter() - began, service.experiment("shop").n_learned)
    await service.keeper.snapshot(service.experiment("shop"))
    await service.stop()

asyncio.run(main())
"""


def test_a_restart(benchmark, table, tmp_path):
    """From the import until decisions are answered, with 10^6 rewards in the log."""
    model = bough.GaussianModel(bough.Tree.balanced(10, 4))
    filled(tmp_path / "data", model, MANY)

    def restart():
        done = subprocess.run(
            [sys.executable, "-c", RESTART, str(tmp_path / "data")], capture_output=True, text=True, check=True
        )
        seconds, learned = done.stdout.split()
        assert int(learned) == MANY
        return float(seconds)

    without = restart()
    found = []
    benchmark.pedantic(lambda: found.append(restart()), rounds=3)
    table.amount("service: restart with 10^6 rewards, beyond the import, without a snapshot", without, 5, "s")
    table.amount("service: the same with a snapshot", min(found), 1, "s")


def test_the_stall_by_a_snapshot(benchmark, table, models):
    """How long the loop waits for a snapshot, T = 10^5 tried of K = 10^6."""
    experiment = Experiment(1, "shop", ExperimentConfig())
    model = models["tried"]._model
    experiment.apply(ChangeRow(1, 0.0, "model", "bench", {"version": 1}, seq=1), model)
    statistics = models["tried"].posterior.statistics
    experiment.agent.absorb(statistics)
    traffic = Traffic()
    traffic.add_counts(dict.fromkeys(statistics.actions.tolist(), 3))
    times = []

    def stall():
        began = time.perf_counter()
        taken(experiment, traffic, Position(0, 1), Position(0, 1))
        times.append(time.perf_counter() - began)

    benchmark.pedantic(stall, rounds=20, warmup_rounds=2)
    table.amount("service: stall of the loop by a snapshot, 10^5 tried", float(np.median(times)) * 1e3, 20, "ms")


def test_two_processes_on_postgresql(benchmark, table, models, tmp_path):
    """Processor time per pair with one process and with two, and how far one is behind what the other logged."""
    sys.path.insert(0, "../tests/support")
    postgres = pytest.importorskip("postgres")
    found = {1: [], 2: []}
    lags = []

    def turn():
        for n in (1, 2):
            folder = tmp_path / f"pg-{n}-{len(found[n])}"
            folder.mkdir()
            address = postgres.new_log()
            with served(address, models["small"], folder) as one:
                if n == 1:
                    found[1].append(cost([one]))
                else:
                    with served(address, models["small"], folder) as two:
                        found[2].append(cost([one, two]))
                        lags.append(max(server.figure("bough_lag_seconds") for server in (one, two)))

    benchmark.pedantic(turn, rounds=2)
    table.compared(
        "service: processor time per pair, PostgreSQL, 2 processes / 1", min(found[2]), min(found[1]), at_most=1.2
    )
    table.amount("service: lag of a process behind the log", min(lags) * 1e3, 500, "ms")


def cost(servers) -> float:
    """Processor seconds per pair of services that are asked together."""
    for server in servers:
        server.load(8, 1.0)
    began = sum(server.cpu for server in servers)
    loads = [{} for _ in servers]

    def ask(i):
        loads[i] = servers[i].load(32 // len(servers), 4.0)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(servers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (sum(server.cpu for server in servers) - began) / sum(load["pairs"] for load in loads)
