"""kill -9 under load, and a start: nothing that was acknowledged is lost, and nothing is learned twice.

`make soak` does the same hundreds of times.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from service_crashes import Plan, crash, model
from service_process import ServiceProcess


def test_nothing_is_lost_and_nothing_learned_twice_on_sqlite(tmp_path: Path) -> None:
    with_seed = Plan(seed=1, kills=5)
    process = ServiceProcess(tmp_path, model=model())
    try:
        report = crash(process, with_seed)
    finally:
        process.close()
    assert report.wrong == []
    assert report.kills == 5


@pytest.mark.parametrize(("mutant", "found"), [("acknowledge-before-commit", "lost"), ("learn-twice", "learned twice")])
def test_a_service_with_a_fault_is_found_out(tmp_path: Path, mutant: str, found: str) -> None:
    process = ServiceProcess(tmp_path, model=model(), mutant=mutant)
    try:
        report = crash(process, Plan(seed=2, kills=5))
    finally:
        process.close()
    assert any(one.startswith(found) for one in report.wrong), report
