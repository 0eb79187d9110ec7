"""Cases of the capped search: posteriors small enough to be drawn whole, in every way that it is used, and misused."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

import bough
from bough.inference.alike import Alike
from bough.inference.capped import CappedSearch
from bough.inference.kernels.lines import CENTRE, WIDTH
from bough.inference.kinds import Kinds

NOTHING = np.empty(0, dtype=np.int32)
PATHS = ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
UNEVEN = bough.Tree.from_paths(PATHS)
BUSHY = bough.Tree.from_parents(
    [-1] + [0] * 6 + [1] * 4 + [2] * 7 + [3] * 2 + [4] * 30 + [7] * 3 + [9] * 3 + [11] * 5 + [12] * 5 + [13] * 5
)


@dataclass(frozen=True)
class Case:
    """A posterior, what is asked of it, and what is done to the search before."""

    make: Callable[[], Any]
    k: int = 1
    scale: float = 1.0
    exclude: tuple[int, ...] = ()
    """Places of actions that are left out."""
    spoil: Callable[[CappedSearch], None] = field(default=lambda _: None)


def observed(model, n, seed=0, spread=2.0, **more):
    posterior = bough.Posterior(model, **more)
    rng = np.random.default_rng(seed)
    rewards = spread * rng.normal(size=n)
    if not model.kind.is_conjugate:
        rewards = rng.integers(0, 2, n).astype(float)
    posterior.update(rng.choice(np.asarray(model.tree.actions, dtype=object), n).tolist(), rewards)
    return posterior


def gaussian(tree, n, covariance=1.0, mean=0.3, **more):
    return lambda: observed(bough.GaussianModel(tree, mean, covariance, **more), n)


def six_orders():
    tree = bough.Tree.balanced(4, 3)
    variances = 10.0 ** np.random.default_rng(5).uniform(-3, 3, tree.n_nodes)
    return observed(bough.GaussianModel(tree, 0.0, bough.by_node(variances)), 40)


def still_inside():
    tree = bough.Tree.balanced(3, 4)
    return observed(bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 1.0, 0.0, 0.0, 1.0])), 12)


def drifting():
    model = bough.GaussianModel(bough.Tree.balanced(4, 3), drift=5.0)
    posterior = bough.Posterior(model)
    rng = np.random.default_rng(3)
    for day in range(20):
        posterior.update(rng.choice(model.tree.leaves, 3).tolist(), rng.normal(size=3), at=float(day))
    posterior.now = 24.0
    return posterior


def fading():
    posterior = observed(bough.GaussianModel(bough.Tree.balanced(4, 3)), 60, half_life=2.0)
    posterior.now = 0.0
    posterior.now = 3.0
    return posterior


def shop():
    """Actions that were retired, added, moved, forgotten."""
    tree = bough.Tree.from_nested({c: {f"{c}{d}": [f"{c}{d}{i}" for i in range(4)] for d in "xyz"} for c in "abc"})
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    rng = np.random.default_rng(2)
    agent.update(rng.choice(np.asarray(tree.actions), 25).tolist(), 2 * rng.normal(size=25))
    agent.retire(["ax0", "by1", "cz3"])
    agent.add(["new 1", "new 2"], under="a/ax")
    agent.move("bx1", under="c/cy")
    agent.update(["new 1", "bx1"], [1.5, 2.0])
    agent.forget(["cx2"])
    return agent.posterior


def adopted():
    old = bough.Tree.from_nested({c: {f"{c}{d}": [f"{c}{d}{i}" for i in range(4)] for d in "xyz"} for c in "abc"})
    new = bough.Tree.from_nested({c: {f"{c}{d}": [f"{c}{d}{i}" for i in range(5)] for d in "xy"} for c in "abcd"})
    agent = bough.HierTS(bough.GaussianModel(old), seed=0)
    rng = np.random.default_rng(2)
    agent.update(rng.choice(np.asarray(old.actions), 30).tolist(), 2 * rng.normal(size=30))
    agent.adopt(new)
    return agent.posterior


def played(rounds=3_000):
    """After rounds in which means drift, each taken in one path at a time; the search is the one that lived through."""
    model = bough.GaussianModel(bough.Tree.balanced(5, 3), noise_variance=0.5)
    posterior, rng = bough.Posterior(model), np.random.default_rng(4)
    truth = model.draw(rng)[model.tree.leaves]
    posterior.update(model.tree.leaves[:10].tolist(), truth[:10])
    capped = forced(posterior)
    for _ in range(rounds):
        truth += 0.03 * rng.normal(size=len(truth))
        nodes, _, _ = capped.best(rng, 1, NOTHING)
        place = int(np.searchsorted(model.tree.leaves, nodes[0]))
        posterior.update(int(nodes[0]), float(truth[place] + 0.7 * rng.normal()))
    posterior.capped = capped
    return posterior


def known_champion():
    """An action that is known to be at 2, and others that may be above it: what they take of lines has no slack."""
    tree = bough.Tree.balanced(6, 2)
    posterior = observed(bough.GaussianModel(tree, 0.0, bough.by_depth([0.0, 0.5, 1.0])), 12, spread=0.5)
    posterior.update(np.full(40_000, tree.leaves[0]).tolist(), np.full(40_000, 2.0))
    return posterior


def caps(centre, width):
    def spoil(capped):
        capped._number[:, CENTRE] = centre
        capped._number[:, WIDTH] = width
        capped.remake(recentre=False)

    return spoil


def references(*values):
    def spoil(capped):
        capped.references = np.array(values)
        capped.remake()

    return spoil


def no_champions(capped):
    capped.champions = NOTHING


def star(n, n_observed):
    return gaussian(bough.Tree.balanced(n, 1), n_observed, bough.by_depth([0.5, 1.0]))


def chain(depth):
    parents = [-1, *range(depth), *range(0, depth, 4)]
    return gaussian(bough.Tree.from_parents(parents), 40, bough.by_height([1.0] + [0.05] * depth))


def clicks(kind):
    return lambda: observed(kind(bough.Tree.balanced(4, 3), mean=-1.0), 60)


def reduced(how):
    return lambda: observed(getattr(bough.GaussianModel(bough.Tree.balanced(4, 3), 0.2), how)(), 60)


BALANCED = bough.Tree.balanced(4, 3)
DEEP = bough.Tree.balanced(3, 5)
MIXED = bough.by_node(np.random.default_rng(11).uniform(0.1, 2.0, UNEVEN.n_nodes))
CASES = {
    "nearly all touched": Case(gaussian(BALANCED, 300)),
    "a few touched": Case(gaussian(BALANCED, 4, bough.by_depth([1.0, 0.5, 2.0, 0.3]))),
    "a deep tree, a few touched": Case(gaussian(DEEP, 6)),
    "concentrated": Case(gaussian(BALANCED, 3_000, noise_variance=0.5)),
    "nearly the prior": Case(gaussian(BALANCED, 64, noise_variance=1e4)),
    "uneven, a few touched": Case(gaussian(UNEVEN, 3, bough.by_height([0.5, 1.0, 2.0, 0.7, 1.0, 0.4]))),
    "uneven, mixed variances": Case(gaussian(UNEVEN, 8, MIXED)),
    "families that mix leaves, groups and inner nodes": Case(gaussian(BUSHY, 20)),
    "variances over six orders": Case(six_orders),
    "no variance inside": Case(still_inside),
    "a wide star": Case(star(300, 40)),
    "a long chain": Case(chain(40)),
    "clicks": Case(clicks(bough.BernoulliModel)),
    "counts": Case(clicks(bough.PoissonModel)),
    "drift": Case(drifting),
    "fading": Case(fading),
    "FlatTS": Case(reduced("flat")),
    "TS": Case(reduced("independent")),
    "explore 0.5": Case(gaussian(BALANCED, 20), scale=0.5),
    "explore 3": Case(gaussian(UNEVEN, 6), scale=3.0),
    "the two best": Case(gaussian(BALANCED, 12), k=2),
    "the two best of a deep tree": Case(gaussian(DEEP, 6), k=2),
    "the five best": Case(gaussian(BUSHY, 20), k=5),
    "the five best of few touched": Case(gaussian(BALANCED, 3, bough.by_depth([1.0, 0.5, 2.0, 0.3])), k=5),
    "touched and untouched ones excluded": Case(gaussian(BALANCED, 12), exclude=(0, 1, 2, 5, 17, 40, 41, 63)),
    "excluded, the two best": Case(gaussian(UNEVEN, 6), k=2, exclude=(0, 1, 4, 7)),
    "retired, added, moved, forgotten": Case(shop),
    "retired, added, moved, forgotten: the two best": Case(shop, k=2),
    "after adopt": Case(adopted),
    "caps absurdly low": Case(gaussian(BALANCED, 60), spoil=caps(-50.0, 0.1)),
    "caps absurdly high": Case(gaussian(BALANCED, 60), spoil=caps(50.0, 0.1)),
    "caps all alike": Case(gaussian(BALANCED, 60), spoil=caps(0.0, 0.0)),
    "references far too low": Case(gaussian(BALANCED, 60), spoil=references(-90.0, -80.0, -70.0)),
    "references far too high": Case(gaussian(BALANCED, 60), spoil=references(60.0, 70.0, 80.0)),
    "references all alike": Case(gaussian(BALANCED, 60), spoil=references(1.0, 1.0, 1.0)),
    "a champion that is known": Case(known_champion, spoil=references(1.98, 1.99, 2.0)),
    "no champions": Case(gaussian(BALANCED, 60), spoil=no_champions),
    "3,000 rounds, one path at a time": Case(played),
}


def forced(posterior, scale=1.0):
    """A capped search of a posterior, however few of its nodes are touched."""
    engine = posterior._engine
    kinds = Kinds(engine.model.tree, Alike(engine.model.tree, engine.model.classes.of_node))
    tables = kinds.tables(scale * engine.class_deviations())
    assert tables is not None
    engine.bring_up_to_date()
    capped = CappedSearch(engine, kinds, tables, scale)
    capped.find_champions()
    capped.refer_to(posterior._sample_leaves(choices(posterior), np.random.default_rng(0), scale) + np.zeros(1))
    capped.remake()
    return capped


def choices(posterior, exclude=()):
    """The actions that may be chosen, ascending."""
    actions = posterior._catalogue.actions
    left_out = {*(actions[list(exclude)].tolist()), *posterior._retired}
    return np.array([node for node in actions.tolist() if node not in left_out], dtype=np.int32)


def drawn_law(case, posterior, draws, seed):
    """(draws, k) nodes and scores by drawing everything."""
    actions, rng = choices(posterior, case.exclude), np.random.default_rng(seed)
    nodes, position = posterior._catalogue.with_ancestors(actions)
    place = np.searchsorted(nodes, actions)
    best, scores = np.empty((draws, case.k), dtype=np.int64), np.empty((draws, case.k))
    for start in range(0, draws, 1_000):
        values = case.scale * rng.standard_normal((min(1_000, draws - start), len(nodes)))
        for row in values:
            posterior._engine.transform_some(nodes, position, row)
        found = values[:, place]
        order = np.argsort(-found, axis=1)[:, : case.k]
        best[start : start + len(values)] = actions[order]
        scores[start : start + len(values)] = np.take_along_axis(found, order, axis=1)
    return best, scores


def capped_law(case, posterior, draws, seed, spoil=None):
    """The same by the capped search."""
    capped = getattr(posterior, "capped", None) or forced(posterior, case.scale)
    case.spoil(capped)
    if spoil is not None:
        spoil(capped)
    excluded = posterior._catalogue.actions[list(case.exclude)] if case.exclude else NOTHING
    rng = np.random.default_rng(seed)
    found = [capped.best(rng, case.k, excluded) for _ in range(draws)]
    return np.array([nodes for nodes, _, _ in found], dtype=np.int64), np.array([scores for _, scores, _ in found])


def p_values(one, other):
    """How likely two samples of nodes and scores are to differ so much by chance: by action, and by each score."""
    (nodes, scores), (other_nodes, other_scores) = one, other
    k = nodes.shape[1]
    code = np.array([1, 1_000_003])[: min(k, 2)]
    by_action = same_law(nodes[:, :2] @ code, other_nodes[:, :2] @ code)
    by_score = [ks_2samp(scores[:, i], other_scores[:, i]).pvalue for i in {0, k - 1}]
    return by_action, *by_score


def same_law(one, other):
    """The p-value of two samples of categories having one law; rare categories are pooled."""
    values, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = np.array([np.bincount(part, minlength=len(values)) for part in np.split(place, [len(one)])])
    rare = counts.sum(axis=0) < 20
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
