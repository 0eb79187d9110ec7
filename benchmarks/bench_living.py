"""A catalogue that lives: single changes, tonight's table, and fading, at 10^6 actions with 10^5 tried ones."""

import copy
import itertools
import statistics
import time

import numpy as np
import polars
import pytest

import bough

TRIED = 100_000


class Watched:
    """A lock that remembers how long it was held at a time."""

    def __init__(self, lock):
        self._lock, self._depth, self.longest = lock, 0, 0.0

    def __enter__(self):
        self._lock.acquire()
        if not self._depth:
            self._since = time.perf_counter()
        self._depth += 1

    def __exit__(self, *_):
        self._depth -= 1
        if not self._depth:
            self.longest = max(self.longest, time.perf_counter() - self._since)
        self._lock.release()


@pytest.fixture(scope="module")
def paths():
    """The products of a shop of six levels, ten below each."""
    return ["/".join(digits) for digits in itertools.product("0123456789", repeat=6)]


@pytest.fixture(scope="module")
def tree(paths):
    return bough.Tree.from_paths(paths)


def agent_of(model, paths):
    """HierTS that knows one reward of each of 10^5 products."""
    agent = bough.HierTS(model, seed=0)
    rng = np.random.default_rng(1)
    tried = [paths[i] for i in rng.choice(len(paths), TRIED, replace=False)]
    rewards = rng.normal(size=TRIED) if model.kind.is_conjugate else rng.integers(0, 2, TRIED)
    agent.update(tried, rewards, None if model.is_scalar else rng.normal(size=(TRIED, model.dim)))
    agent.decide(None if model.is_scalar else np.ones(model.dim))
    return agent, tried


def microseconds(change, items):
    spent = []
    for item in items:
        start = time.perf_counter()
        change(item)
        spent.append(1e6 * (time.perf_counter() - start))
    return statistics.median(spent)


def test_single_changes(benchmark, table, tree, paths):
    agent, tried = agent_of(bough.GaussianModel(tree), paths)
    before = bough.HierTS(copy.deepcopy(agent.posterior), seed=1)
    before.decide()
    shelves = [path.rpartition("/")[0] for path in paths[::1000]]
    where = "10^6 actions, 10^5 tried"
    add = microseconds(lambda i: agent.add(f"new {i}", under=shelves[i]), range(400))
    table.amount(f"add an action, {where}", add, 50.0, "us")
    retire = microseconds(agent.retire, paths[500:400_500:1000])
    table.amount(f"retire an action, {where}", retire, 50.0, "us")
    move = microseconds(lambda name: agent.move(name, under=shelves[7]), tried[:200])
    table.amount(f"move an action with its rewards, {where}", move, 200.0, "us")
    assert agent.posterior._catalogue.n_changes == 600
    table.ratio(
        benchmark,
        f"decide with 1,000 changes outstanding / before them, {where}",
        agent.decide,
        before.decide,
        at_most=1.2,
        rounds=20,
        burst=5,
    )


def test_fading_against_a_draw(benchmark, table, tree, paths):
    posterior = agent_of(bough.GaussianModel(tree), paths)[0].posterior
    engine, rng = posterior._engine, np.random.default_rng(0)

    def discount():
        posterior.discount(0.9999)
        engine._made_good()

    table.ratio(
        benchmark,
        f"discount, {engine.slots.count / 1e3:.0f} thousand touched nodes / a draw of them",
        discount,
        lambda: engine.touched_values(rng),
        at_most=1.0,
        rounds=20,
        burst=5,
    )


def changed(tree, paths, number):
    """Another night's tree: 1,000 products more, fewer and elsewhere."""
    shelves = [path.rpartition("/")[0] for path in paths[::1000]]
    there = [name for name in paths[number::331][:3_000] if tree.node_names.find(name) >= 0]
    add = {f"night {number} {i}": shelves[i] for i in range(1_000)}
    return tree.edited(add=add, move=dict.fromkeys(there[:1_000], shelves[11]), remove=there[1_000:2_000])


@pytest.fixture(scope="module")
def adopted(tree, paths):
    """How long a night takes by kind of reward: with `edited`, and with the lock held."""
    found = {}
    for name, model in {
        "d = 1": bough.GaussianModel(tree),
        "clicks": bough.BernoulliModel(tree),
        "d = 4": bough.GaussianModel(tree, np.zeros(4)),
    }.items():
        agent = agent_of(model, paths)[0]
        spent = []
        for number in range(3):
            watched = agent.posterior._lock = Watched(agent.posterior._lock)
            start = time.perf_counter()
            agent.adopt(changed(agent.posterior.model.tree, paths, number))
            spent.append((time.perf_counter() - start, watched.longest))
            agent.posterior._lock = watched._lock
        found[name] = tuple(min(column) for column in zip(*spent, strict=True))
    return found


def test_tonight_s_table(benchmark, table, tree, paths, adopted):
    benchmark.pedantic(lambda: None, rounds=1)
    where = "10^6 actions, 10^5 tried"
    table.amount(f"adopt with edited, {where}", adopted["d = 1"][0], 1.5, "s")
    table.amount(f"adopt with edited, {where}: the lock is held", adopted["d = 1"][1], 0.3, "s")
    table.compared(f"adopt, clicks / Gaussian, {where}", adopted["clicks"][0], adopted["d = 1"][0], at_most=1.5)
    table.amount(f"adopt with edited, d = 4, {where}", adopted["d = 4"][0], 2.0, "s")
    levels = [f"level {i}" for i in range(6)]
    frame = polars.DataFrame([path.split("/") for path in paths], schema=levels, orient="row")
    frame = frame.with_columns(product=polars.Series(paths))
    start = time.perf_counter()
    again = bough.Tree.from_frame(frame, [*levels[:-1], "product"])
    table.amount("from_frame of 10^6 rows, which stands beside adopt", time.perf_counter() - start, 2.25, "s")
    assert again.n_actions == tree.n_actions


def test_one_untried_row_that_moves_changes_nobody_else(benchmark, table, tree, paths):
    agent, tried = agent_of(bough.GaussianModel(tree), paths)
    known = set(tried)
    untried = next(path for path in paths if path not in known)
    before = dict(zip(tree.actions, agent.posterior.action_moments()[0], strict=True))
    benchmark.pedantic(agent.adopt, args=(tree.edited(move={untried: "9/9/9/9/9"}),), rounds=1)
    now = zip(agent.posterior.model.tree.actions, agent.posterior.action_moments()[0], strict=True)
    off = max(abs(mean - before[name]) for name, mean in now if name != untried)
    table.note("one untried row of 10^6 moves: the largest change of another mean", f"{off:.0e}")
    assert off < 1e-12
