"""Many decisions at once: blocks of a fixed size, each with random numbers of its own, on all cores or on a GPU."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np

from bough import _checks, _seeds
from bough._arrays import Floats, Nodes
from bough.inference.many import Block

_MOST_JOBS = 1_000


def checked_jobs(jobs: Any) -> int:
    """How many threads: as many as there are cores where it is None or -1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        return cores
    if not _checks.is_whole(jobs) or jobs == 0 or not -1 <= jobs <= _MOST_JOBS:
        raise ValueError(f"jobs is {jobs!r}; give how many threads, or None for one a core")
    return cores if jobs == -1 else int(jobs)


def checked_device(device: Any) -> str:
    """Where to decide: "cpu", the compiled path, or "gpu"."""
    if device is None:
        return "cpu"
    if not isinstance(device, str) or device not in ("cpu", "gpu"):
        raise ValueError(f'device is {device!r}; give "gpu", or leave it out for the compiled path on the CPU')
    return device


def in_blocks(
    block: Block, rng: np.random.Generator, n: int, contexts: Floats | None, size: int, jobs: int, k: int
) -> tuple[Nodes, Floats]:
    """(n, k) nodes and scores; the generator moves on once, and a block's own numbers follow from its place."""
    seeds = _seeds.sequence(rng)

    def made(start: int) -> tuple[Nodes, Floats]:
        own = np.random.Generator(np.random.PCG64(_seeds.child(seeds, start // size)))
        end = min(start + size, n)
        return block(own, end - start, None if contexts is None else contexts[start:end])

    starts = range(0, n, size)
    block(np.random.default_rng(0), 0, None if contexts is None else contexts[:0])  # what threads share is made here
    if jobs == 1 or len(starts) < 2:
        parts = [made(start) for start in starts]
    else:
        with ThreadPoolExecutor(min(jobs, len(starts))) as pool:
            parts = list(pool.map(made, starts))
    if not parts:
        return np.empty((0, k), dtype=np.int32), np.empty((0, k))
    nodes, scores = (np.concatenate(each) for each in zip(*parts, strict=True))
    return nodes, scores


def scorer_of(posterior: Any, device: str, explore: float) -> Any:
    """What decides for many contexts on a device, from a posterior as it is now: a `bough.batch.Scorer`."""
    # Batches stand to the right of policies, so that they go by the name that the façade loads.
    return import_module("bough").batch.Scorer(posterior, device=device, explore=explore)
