"""Many decisions at once on the CPU, against a loop of single ones; a GPU has benchmarks/bench_gpu.py."""

import numpy as np

import bough


def test_contexts_against_a_loop(benchmark, table):
    tree, rng = bough.Tree.balanced(10, 4), np.random.default_rng(0)
    agent = bough.HierTS(bough.GaussianModel(tree, np.zeros(10)), seed=0)
    agent.update(tree.leaves, rng.normal(size=10_000), rng.normal(size=(10_000, 10)))
    contexts = rng.normal(size=(10_000, 10))
    agent.decide_many(contexts[:200])
    table.ratio(
        benchmark,
        "decide_many of 10^4 contexts, K = 10^4, d = 10, all touched: a loop of decide / it",
        lambda: agent.decide_many(contexts),
        lambda: [agent.decide(context) for context in contexts],
        at_least=1.6,
        rounds=1,
    )


def test_numbers_against_a_loop(benchmark, table):
    model, rng = bough.problems.constant(10, 6), np.random.default_rng(0)
    truth, agent = model.draw(rng), bough.HierTS(model, seed=0)
    for _ in range(1_000):
        action = agent.decide()
        agent.update(action, truth[model.tree.index(action)] + rng.normal())
    agent.decide_many(1_000)
    table.ratio(
        benchmark,
        "decide_many(10^5), K = 10^6, 10^3 rounds: a loop of decide / it",
        lambda: agent.decide_many(100_000),
        lambda: [agent.decide() for _ in range(100_000)],
        at_least=2.0,
        rounds=2,
    )
