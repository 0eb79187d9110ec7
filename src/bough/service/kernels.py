"""`python -m bough.service.kernels` compiles what services need, so that a machine has it before they start."""

from __future__ import annotations

from collections.abc import Iterator

import bough
from bough.model.model import Model


def compile_all() -> int:
    """Compile, or load, the kernels of agents on every kind of model; of how many.

    They are kept where `NUMBA_CACHE_DIR` says. Those of one machine serve another one only if both have the same
    processor, or if `NUMBA_CPU_NAME=generic` is set on both.
    """
    n = 0
    for model in _models():
        for half_life in (None, 1.0):
            bough.warm_up(bough.HierTS(model, seed=0, half_life=half_life))
            n += 1
    return n


def _models() -> Iterator[Model]:
    tree = bough.Tree.balanced(branching=2, height=2)
    for kind in (bough.GaussianModel, bough.BernoulliModel, bough.PoissonModel):
        for mean in (0.0, [0.0, 0.0]):
            yield kind(tree, mean=mean)


if __name__ == "__main__":
    print(f"compiled the kernels of {compile_all()} kinds of agents")
