"""Random models with crossed factors: every shape of tree, one to three factors, several levels per action, zeros."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import bough
from bough.inference.oracles.dense import DensePosterior
from cases import covariance, parents

SHAPES = ("single", "chain", "star", "random", "unary", "caterpillar")


@dataclass(frozen=True)
class CrossedCase:
    """A model with factors and rewards observed in it, with the levels of their decisions."""

    model: bough.GaussianModel
    actions: list
    rewards: np.ndarray
    levels: dict

    def factors(self, rows=slice(None)):
        """The levels of some rewards, as `update` takes them; None where no factor is the decision's."""
        return {name: column[rows] for name, column in self.levels.items()} or None

    def posterior(self, one_by_one=False):
        posterior = bough.Posterior(self.model)
        if one_by_one:
            for i, (action, reward) in enumerate(zip(self.actions, self.rewards, strict=True)):
                posterior.update(action, float(reward), factors=self.factors(i))
        else:
            posterior.update(self.actions, self.rewards, factors=self.factors())
        return posterior

    def dense(self):
        dense = DensePosterior(self.model)
        dense.update(self.actions, self.rewards, factors=self.levels)
        return dense


@st.composite
def crossed_cases(draw, most_nodes=9):
    shape, n_nodes = draw(st.sampled_from(SHAPES)), draw(st.integers(2, most_nodes))
    n = 10_000 if draw(st.sampled_from([False] * 19 + [True])) else draw(st.integers(1, 30))
    return make_crossed_case(shape, n_nodes, n, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))


def make_crossed_case(shape, n_nodes, n, rng):
    tree = bough.Tree.from_parents(parents(shape, n_nodes, rng))
    factors = {f"factor {i}": make_factor(tree, rng) for i in range(rng.integers(1, 4))}
    prior = np.array([covariance(None, rng) for _ in range(tree.n_nodes)])
    noise = 10.0 ** rng.uniform(-2, 2)
    model = bough.GaussianModel(tree, float(rng.normal()), bough.by_node(prior), noise, factors=factors)
    names = np.asarray(tree.actions)
    # 10^4 observations go to one action, which then sits beside others with none
    actions = (np.full(n, rng.choice(names)) if n >= 10_000 else rng.choice(names, n)).tolist()
    levels, added = {}, np.zeros(n)
    drawn = model.draw(rng, effects=True)
    scores = drawn[tree.leaves] + model.effects.totals(drawn[tree.n_nodes :])
    for name, factor, first in model.effects.decided:
        codes = rng.integers(len(factor.levels), size=n)
        levels[name] = [factor.levels[code] for code in codes]
        added += drawn[tree.n_nodes + first + codes]
    place = np.searchsorted(tree.leaves, tree.action_nodes(actions))
    rewards = scores[place] + added + rng.normal(size=n) * np.sqrt(noise)
    if rng.random() < 0.2:  # rewards that the model did not make
        rewards[rng.integers(n)] += 1e3 * rng.normal()
    return CrossedCase(model, actions, rewards, levels)


def make_factor(tree, rng):
    """One of decisions, or of actions: with one level each, with several, with none; some levels have no action."""
    levels = [f"level {i}" for i in range(rng.integers(1, 5))]
    variance = covariance(None, rng)
    if rng.random() < 0.35:
        return bough.Factor(levels=levels, variance=variance, at_decision=True)
    labels = []
    for _ in range(tree.n_actions):
        kind = rng.random()
        several = [level for level in levels if rng.random() < 0.4]
        labels.append(several if kind < 0.4 else None if kind < 0.55 else levels[rng.integers(len(levels))])
    return bough.Factor(labels, levels=levels, variance=variance)
