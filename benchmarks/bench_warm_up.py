"""What the first requests of a process wait for, with `warm_up` and without, and how long that takes itself.

Times are those of the processor, since half a second of a busy machine says nothing.
"""

import tempfile

import pytest
from fresh import in_a_new_process

CODE = """
import time, numpy as np, bough
tree = bough.Tree.balanced(10, 5)
model = bough.{model}
context = None if model.is_scalar else np.ones(model.dim)
agent = bough.HierTS(model, seed=0)
start = time.process_time()
if {warm}:
    bough.warm_up(model)
spent = time.process_time() - start
start = time.process_time()
decision = agent.decision(context)
agent.update(decision.action, 1.0, context)
agent.decide(context, k=10)
print(time.process_time() - start, spent)
"""
MODELS = {
    "10^5 actions": "GaussianModel(tree)",
    "clicks of 10^5 actions": "BernoulliModel(tree, -3.0)",
    "10^5 actions in contexts, d = 5": "GaussianModel(tree, np.zeros(5))",
    "clicks of 10^5 actions in contexts, d = 5": "BernoulliModel(tree, np.zeros(5))",
}


def first_request(model: str, cache: str, warm: bool) -> list[float]:
    return in_a_new_process(CODE.format(model=model, warm=warm), cache)


@pytest.mark.parametrize("name", MODELS)
def test_the_first_request(benchmark, table, name):
    model = MODELS[name]
    with tempfile.TemporaryDirectory() as cache:
        compiling = first_request(model, cache, warm=True)[1]
        without = min(first_request(model, cache, warm=False)[0] for _ in range(3))
        runs = []
        benchmark.pedantic(lambda: runs.append(first_request(model, cache, warm=True)), rounds=3)
        warm, loading = (min(column) for column in zip(*runs, strict=True))
    table.compared(
        f"first decision, update and decide(k=10), {name}: without warm_up / after it", warm, without, at_least=5
    )
    table.note(f"warm_up, {name}: on a new machine, in a later process", f"{compiling:.2f} s, {loading:.2f} s")
