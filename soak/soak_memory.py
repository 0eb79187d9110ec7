"""Memory of a service under a steady load: an hour at 70% of what it can do, and it stays what it is.

MINUTES=10 makes it shorter; what it prints is the memory in each of twenty spans.
"""

import os
import sys
from pathlib import Path

import bough

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from service_runs import served

MINUTES = float(os.environ.get("MINUTES", 60))
SPANS = 20
SHARE = 0.7  # of what it can do
GROWTH = 1.05  # of the second half over the first


def resident(pid: int) -> float:
    """Megabytes of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def test_memory_is_flat(tmp_path):
    """After the first quarter, in which all actions have been tried, nothing grows but the log."""
    model = tmp_path / "model.bough"
    bough.GaussianModel(bough.Tree.balanced(10, 3)).save(model)
    found = []
    with served(tmp_path / "data", model, tmp_path) as server:
        able = server.load(32, 10.0)["per_second"]
        for span in range(SPANS):
            load = server.load(32, 60.0 * MINUTES / SPANS, "both", str(SHARE * able))
            found.append(resident(server.process.pid))
            print(f"span {span + 1}: {load['per_second']:,.0f} pairs per second, {found[-1]:.1f} MB", flush=True)
    kept = found[SPANS // 4 :]
    half = len(kept) // 2
    first, second = max(kept[:half]), max(kept[half:])
    assert second <= GROWTH * first, f"it grew from {first:.1f} to {second:.1f} MB"
