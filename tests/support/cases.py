"""Random (tree, prior, data) cases: every shape of tree, wild variances and zeros, contexts that span less than R^d."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import bough

SHAPES = ("single", "chain", "star", "random", "unary", "caterpillar")


@dataclass(frozen=True)
class Case:
    """A model and rewards observed in it."""

    model: bough.GaussianModel
    actions: list
    rewards: np.ndarray
    contexts: np.ndarray | None

    def posterior(self) -> bough.Posterior:
        posterior = bough.Posterior(self.model)
        posterior.update(self.actions, self.rewards, self.contexts)
        return posterior


def parents(shape: str, n: int, rng: np.random.Generator) -> list[int]:
    if shape == "single":
        return [-1]
    if shape == "chain":
        return list(range(-1, n - 1))
    if shape == "star":
        return [-1] + [0] * (n - 1)
    if shape == "caterpillar":  # a spine with a leaf at every joint: as unbalanced as a tree gets
        return [-1] + [2 * ((i - 1) // 2) for i in range(1, n)]
    tree = [-1] + [int(rng.integers(i)) for i in range(1, n)]
    if shape == "unary":  # a link in the middle of every edge to the root
        tree = [-1] + [0 if p == 0 else p for p in tree[1:]]
        for i in range(1, n):
            if tree[i] == 0:
                tree.append(0)
                tree[i] = len(tree) - 1
    return tree


def covariance(dim: int | None, rng: np.random.Generator) -> np.ndarray | float:
    """Zero, a multiple of the identity, singular, or full; sizes from 1e-6 to 1e6."""
    size = 10.0 ** rng.uniform(-6, 6) * (rng.random() > 0.15)
    if dim is None:
        return size
    kind = rng.integers(3)
    if kind == 0:
        return size * np.eye(dim)
    root = rng.normal(size=(dim, dim if kind == 1 else max(1, dim - 1)))
    return size * root @ root.T


@st.composite
def cases(draw, dims=(None, 1, 2, 3, 4, 5), most_nodes=9):
    """A case; dim None is a K-armed bandit, dim 1 a contextual one with one feature."""
    dim = draw(st.sampled_from(dims))
    shape = draw(st.sampled_from(SHAPES))
    n_nodes = draw(st.integers(2, most_nodes))
    many = draw(st.sampled_from([False] * 19 + [True]))
    n = 10_000 if many else draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return make_case(dim, shape, n_nodes, n, rng)


def make_case(dim: int | None, shape: str, n_nodes: int, n: int, rng: np.random.Generator) -> Case:
    tree = bough.Tree.from_parents(parents(shape, n_nodes, rng))
    prior = np.array([covariance(dim, rng) for _ in range(tree.n_nodes)])
    mean = float(rng.normal()) if dim is None else rng.normal(size=dim)
    model = bough.GaussianModel(tree, mean, bough.by_node(prior), 10.0 ** rng.uniform(-2, 2))
    names = np.asarray(tree.actions)
    # 10^4 observations go to one action, which then sits beside others with none
    actions = (np.full(n, rng.choice(names)) if n >= 10_000 else rng.choice(names, n)).tolist()
    truth = model.draw(rng)[[tree.index(name) for name in actions]]
    contexts = None
    if dim is not None:
        span = rng.integers(1, dim + 1)
        contexts = rng.normal(size=(n, span)) @ rng.normal(size=(span, dim))
        truth = (truth * contexts).sum(axis=1)
    rewards = truth + rng.normal(size=n) * np.sqrt(model.noise_variance)
    if rng.random() < 0.2:  # rewards that the model did not make
        rewards[rng.integers(n)] += 1e3 * rng.normal()
    return Case(model, actions, rewards, contexts)


def learned(posterior: bough.Posterior) -> dict[str, np.ndarray]:
    """Copies of all numbers that a posterior has learned or derived, by where they are kept."""
    engine = posterior._engine
    arrays = {name: value for name, value in vars(engine).items() if isinstance(value, np.ndarray)}
    slots = {f"slots.{name}": getattr(engine.slots, name) for name in ("node", "parent", "row")}
    return {name: np.copy(value) for name, value in (arrays | slots).items() if value.flags.writeable}
