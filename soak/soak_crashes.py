"""kill -9, hundreds of times, under load: of the service on SQLite and on PostgreSQL, and of PostgreSQL itself.

The plan is printed first. SEED=17 make soak runs one again.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from service_crashes import Plan, crash, model
from service_process import ServiceProcess

SEED = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
KILLS = float(os.environ.get("KILLS", "1"))  # a factor, for a shorter run


def run(process: ServiceProcess, plan: Plan, capsys: pytest.CaptureFixture[str], strike=None) -> None:
    """Kill as planned; what is wrong afterwards is a failure."""
    with capsys.disabled():
        print(f"\n{plan}", flush=True)
    try:
        report = crash(process, plan, strike)
    finally:
        process.close()
    with capsys.disabled():
        print(f"{report.kills} kills, {report.acknowledged} answers, {len(report.wrong)} of them wrong", flush=True)
    assert report.wrong == [], plan
    assert report.kills == plan.kills


def test_nothing_is_lost_on_sqlite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(ServiceProcess(tmp_path, model=model()), Plan(SEED, round(200 * KILLS)), capsys)
