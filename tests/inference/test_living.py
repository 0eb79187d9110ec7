"""A living catalogue: every change, in any order, against a shop in plain Python on a tree that is built anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from shop import Shop

START = {
    "": None, "home": "", "home/kitchen": "home", "home/garden": "home", "toys": "", "toys/air": "toys",
    "kettle": "home/kitchen", "toaster": "home/kitchen", "spade": "home/garden", "rake": "home/garden",
    "kite": "toys/air", "plane": "toys/air", "ball": "toys",
}  # fmt: skip
CHANGES = ("update", "update", "update", "batch", "add", "add", "retire", "restore", "forget", "move", "adopt")
FADING = ("discount", "retract")
sequences = st.lists(st.tuples(st.sampled_from(CHANGES + FADING), st.integers(0, 10**6)), max_size=14)


def shop_of(dim, kind):
    """The start, as a shop and as a posterior of an agent that searches, so that changes stay on top of the tree."""
    mean = 0.3 if dim is None else np.linspace(-0.5, 0.5, dim)
    sizes = np.array([0.7, 1.3, 0.5, 2.0])
    by_name = {name: float(0.2 + (3 * i) % 7) for i, name in enumerate(START)}
    if kind == "one":
        shop, covariance = Shop(START, lambda name, depth: 0.8, mean, 0.4), 0.8
    elif kind == "depth":
        shop, covariance = Shop(START, lambda name, depth: sizes[depth], mean, 0.4), bough.by_depth(sizes)
    else:
        shop, covariance = Shop(START, lambda name, depth: by_name[name], mean, 0.4), bough.by_node(by_name)
        shop.by_name = by_name
    model = bough.GaussianModel(shop.tree(), mean, covariance, 0.4)
    return shop, bough.HierTS(model, seed=0, search=True)


def play(shop, agent, kind, sequence):
    """Do to both what the sequence says."""
    dim = None if np.ndim(shop.mean) == 0 else len(shop.mean)
    for number, (change, seed) in enumerate(sequence):
        rng = np.random.default_rng(seed)
        actions = shop.actions
        name = actions[rng.integers(len(actions))]
        context = None if dim is None else rng.normal(size=dim).round(2)
        if change == "update":
            reward = round(float(rng.normal()), 2)
            shop.update(name, reward, context)
            agent.update(name, reward, context)
        elif change == "batch":
            names = [actions[i] for i in rng.integers(len(actions), size=3)]
            rewards = rng.normal(size=3).round(2)
            contexts = None if dim is None else rng.normal(size=(3, dim)).round(2)
            for i in range(3):
                shop.update(names[i], float(rewards[i]), None if dim is None else contexts[i])
            agent.update(names, rewards, contexts)
        elif change == "add":
            places = [one for one in shop.parent if not shop.has_evidence(one)]
            under, new = places[rng.integers(len(places))], f"new {number}"
            too_deep = kind == "depth" and len(shop.path(under)) > 3
            extra = {}
            if kind == "node":
                shop.by_name[new] = extra["covariance"] = float(rng.choice([0.5, 1.5]))
            if too_deep:
                with pytest.raises(ValueError, match="by_depth has"):
                    agent.add(new, under=under)
            else:
                shop.add(new, under)
                agent.add(new, under=under, **extra)
        elif change == "retire":
            left = [one for one in actions if one not in shop.retired]
            if len(left) > 1 and name not in shop.retired:
                shop.retired.append(name)
                agent.retire(name)
        elif change == "restore" and shop.retired:
            agent.restore(shop.retired[-1])
            shop.retired.pop()
        elif change == "forget":
            shop.forget(name)
            agent.forget(name)
        elif change == "move":
            movable = [one for one in shop.parent if one != ""]
            one = movable[rng.integers(len(movable))]
            targets = [c for c in shop.categories if one not in shop.path(c)]
            if not targets:
                continue
            under = targets[rng.integers(len(targets))]
            deepest = max(len(shop.path(leaf)) - len(shop.path(one)) for leaf in actions if one in shop.path(leaf))
            if kind == "depth" and len(shop.path(under)) + deepest > 3:
                with pytest.raises(ValueError, match="by_depth has"):
                    agent.move(one, under=under)
            else:
                shop.move(one, under)
                agent.move(one, under=under)
        elif change == "adopt" and kind != "node":
            adopt(shop, agent, rng, number)
        elif change == "discount":
            factor = float(rng.choice([0.9, 0.5, 0.01]))
            shop.discount(factor)
            agent.posterior.discount(factor)
        elif change == "retract" and any(row[3] == 1.0 for row in shop.rewards):
            whole = [row for row in shop.rewards if row[3] == 1.0]
            row = whole[rng.integers(len(whole))]
            shop.retract(row)
            agent.retract(row[0], row[1], row[2])
        if rng.random() < 0.3:
            assert agent.decide(None if dim is None else np.ones(dim)) not in shop.retired


def adopt(shop, agent, rng, number):
    """A new table: some rows lost, one new, one moved."""
    actions = [one for one in shop.actions if one not in shop.retired or rng.random() < 0.3]
    kept = [one for one in actions if rng.random() > 0.2] or actions[:1]
    table = {one: shop.parent[one] for one in kept}
    categories = [shop.parent[one] for one in kept]
    table[f"row {number}"] = categories[rng.integers(len(categories))]
    table[kept[0]] = categories[rng.integers(len(categories))]
    needed = set(table.values())
    while needed - table.keys():
        for one in needed - table.keys():
            table[one] = shop.parent[one]
        needed = set(table.values()) - {None}
    table = {one: table[one] for one in [*[c for c in shop.parent if c in table], *table]}
    gone = str(rng.choice(["retire", "forget"]))
    names = list(table)
    place = {one: i for i, one in enumerate(names)}
    agent.adopt(bough.Tree.from_parents([place.get(table[one], -1) for one in names], names), gone=gone)
    shop.adopt(table, gone)


def assert_same_posterior(shop, posterior, tolerance):
    dense, tree = shop.dense(), posterior.model.tree
    names = [tree.name(node) for node in range(tree.n_nodes)]
    assert set(names) == set(shop.parent)
    for name in names:
        assert tree.path(name) == shop.path(name)
    order = [dense.model.tree.index(name) for name in names]
    np.testing.assert_allclose(posterior.mean, dense.mean[order], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(posterior.covariance, dense.covariance[order], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["one", "depth", "node"])
@pytest.mark.parametrize("dim", [None, 2])
@settings(max_examples=60, deadline=None)
@given(sequence=sequences)
def test_changes_in_any_order_leave_the_exact_posterior_of_the_tree_that_they_make(dim, kind, sequence):
    shop, agent = shop_of(dim, kind)
    play(shop, agent, kind, sequence)
    assert sorted(agent.retired) == sorted(shop.retired)
    assert_same_posterior(shop, agent.posterior, 1e-8)
    assert sorted(agent.posterior.model.tree.actions) == sorted(shop.actions)


@pytest.mark.parametrize("family", [bough.BernoulliModel, bough.PoissonModel])
@settings(max_examples=40, deadline=None)
@given(sequence=sequences)
def test_counts_after_changes_in_any_order_are_those_of_a_fresh_posterior_of_the_same_totals(family, sequence):
    shop, _ = shop_of(None, "one")
    agent = bough.HierTS(family(shop.tree(), 0.3, 0.8), seed=0, search=True)
    sums = {}

    def gone():
        for name in [one for one in sums if one not in shop.actions]:
            del sums[name]

    for number, (change, seed) in enumerate(sequence):
        rng = np.random.default_rng(seed)
        name = shop.actions[rng.integers(len(shop.actions))]
        if change in ("update", "batch"):
            names = [name] if change == "update" else [shop.actions[i] for i in rng.integers(len(shop.actions), size=3)]
            rewards = rng.integers(0, 2, len(names)).astype(float)
            agent.update(names if change == "batch" else name, rewards if change == "batch" else float(rewards[0]))
            for one, reward in zip(names, rewards, strict=True):
                sums[one] = sums.get(one, np.zeros(2)) + np.array([reward, 1.0])
                shop.update(one, reward)
        elif change == "discount":
            agent.posterior.discount(0.25)
            sums = {one: 0.25 * both for one, both in sums.items()}
            shop.discount(0.25)
        elif change == "retract":
            whole = [row for row in shop.rewards if row[3] == 1.0]
            if whole:
                shop.retract(whole[-1])
                agent.retract(whole[-1][0], whole[-1][1])
                sums[whole[-1][0]] = sums[whole[-1][0]] - [whole[-1][1], 1.0]
        elif change == "forget":
            sums.pop(name, None)
            shop.forget(name)
            agent.forget(name)
        else:
            play(shop, agent, "one", [(change, seed)] if change != "add" else [])
            if change == "add":
                places = [one for one in shop.parent if not shop.has_evidence(one)]
                under = places[rng.integers(len(places))]
                shop.add(f"new {number}", under)
                agent.add(f"new {number}", under=under)
            gone()
    agent.posterior.settle()
    fresh = bough.Posterior(family(shop.tree(), 0.3, 0.8))
    left = {one: both for one, both in sums.items() if both[1] > 0.0}
    if left:
        totals, exposure = np.array(list(left.values())).T
        count = exposure if family is bough.BernoulliModel else np.ones(len(left))
        fresh.absorb(bough.Statistics(list(left), count, totals, totals**2 + 1.0, exposure=exposure))
    tree = agent.posterior.model.tree
    order = [fresh.model.tree.index(tree.name(node)) for node in range(tree.n_nodes)]
    np.testing.assert_allclose(agent.posterior.mean, fresh.mean[order], atol=1e-6)
    np.testing.assert_allclose(agent.posterior.covariance, fresh.covariance[order], atol=1e-6)
