"""kill -9, hundreds of times, under load: of the service on SQLite and on PostgreSQL, and of PostgreSQL itself.

The plan is printed first. SEED=17 make soak runs one again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import postgres
from service_crashes import Plan, crash, small_model
from service_process import ServiceProcess

SEED = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
KILLS = float(os.environ.get("KILLS", "1"))  # a factor, for a shorter run


def run(
    process: ServiceProcess,
    plan: Plan,
    capsys: pytest.CaptureFixture[str],
    strike: Callable[[], None] | None = None,
) -> None:
    """Kill as planned; what is wrong afterwards is a failure."""
    with capsys.disabled(), process:
        report = crash(process, plan, strike)
        done = f"{report.kills} kills, {report.acknowledged} answers, {report.changes} changes"
        print(f"{done}, {len(report.wrong)} wrong", flush=True)
    assert report.wrong == [], plan
    assert report.kills == plan.kills


def test_nothing_is_lost_on_sqlite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(ServiceProcess(tmp_path, model=small_model()), Plan(SEED, round(200 * KILLS)), capsys)


def test_nothing_is_lost_on_postgresql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = ServiceProcess(tmp_path, database=postgres.empty_log(), model=small_model())
    run(process, Plan(SEED + 1, round(50 * KILLS)), capsys)


def test_nothing_is_lost_when_postgresql_itself_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = postgres.server()

    def kill_and_start() -> None:
        server.kill()
        server.start()

    process = ServiceProcess(tmp_path, database=postgres.empty_log(), model=small_model())
    run(process, Plan(SEED + 2, round(10 * KILLS), "PostgreSQL"), capsys, kill_and_start)
