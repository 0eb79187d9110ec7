"""What the dashboard asks of a service of 10^6 actions: processor time and size of each call, and of the page."""

import gzip
import time

import msgspec
import numpy as np
import pytest

import bough
from bough.dashboard.page import self_contained
from bough.service import views
from bough.service.records import DecisionRow
from bough.service.traffic import Traffic

LIMITS = {"search": 100}  # milliseconds; 50 for the rest


@pytest.fixture(scope="module")
def shop():
    """10^6 products in 100 departments of 100 categories each; a tenth of them have a reward."""
    paths = [
        f"department-{d:03d}/category-{c:03d}/product-{d:03d}{c:03d}{p:02d}"
        for d in range(100) for c in range(100) for p in range(100)
    ]  # fmt: skip
    agent = bough.HierTS(bough.BernoulliModel(bough.Tree.from_paths(paths), -3.0), seed=0)
    rng = np.random.default_rng(0)
    tried = [paths[i] for i in rng.choice(len(paths), 100_000, replace=False)]
    agent.update(tried, (rng.random(len(tried)) < 0.1).astype(float))
    traffic = Traffic()
    traffic.add_counts(dict(zip(tried, rng.integers(1, 100, len(tried)).tolist(), strict=True)))
    return agent, traffic, tried


def test_each_call_of_the_page(benchmark, table, shop):
    """A reward comes before each call, as in a service at work, so that nothing is known from the call before."""
    agent, traffic, tried = shop
    row = DecisionRow(
        1, "d1", time.time(), [tried[0]], None, {"drawn": 0.3}, 1, 0, 2, None, "learn", b"", 0.0, None, "at_once", False
    )  # fmt: skip
    calls = {
        "treemap": lambda: views.tree(agent, traffic, None, 3, 40, None, 1_550),
        "treemap of a department": lambda: views.tree(agent, traffic, "department-007", 3, 40, None, 1_550),
        "best actions": lambda: views.top(agent, traffic, 12),
        "most uncertain": lambda: views.top(agent, traffic, 12, order="uncertain"),
        "retired": lambda: views.top(agent, traffic, 12, order="retired"),
        "explanation": lambda: views.explained(agent, row, traffic),
        "prior": lambda: views.prior(agent, traffic),
        "search": lambda: views.search(agent, traffic, "0070070", 12),
    }
    spent, size = {name: [] for name in calls}, {}

    def turn():
        for name, call in calls.items():
            agent.update(tried[0], 1.0)
            began = time.thread_time()
            size[name] = len(msgspec.json.encode(call()))
            spent[name].append(time.thread_time() - began)

    benchmark.pedantic(turn, rounds=10, warmup_rounds=2)
    for name in calls:
        table.amount(
            f"dashboard, 10^6 actions: {name}", float(np.median(spent[name])) * 1e3, LIMITS.get(name, 50), "ms"
        )
    table.amount("dashboard, 10^6 actions: the largest answer", max(size.values()) / 1e3, 150, "kB")


def test_the_size_of_the_page(benchmark, table):
    page = benchmark.pedantic(lambda: self_contained({"title": ""}), rounds=1)
    table.amount("dashboard: all of the page, compressed", len(gzip.compress(page.encode())) / 1e3, 60, "kB")
