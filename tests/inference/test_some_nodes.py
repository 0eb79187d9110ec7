"""What is asked of some nodes is what the whole posterior says of them, also where actions were added or moved."""

import numpy as np
import pytest

import bough

TREE = bough.Tree.from_nested(
    {"tea": {"green": ["sencha", "matcha"], "black": ["assam"]}, "coffee": ["espresso", "filter"], "water": None}
)
KINDS = {
    "rewards": lambda: bough.GaussianModel(TREE, 0.5, bough.by_depth([1.0, 0.0, 2.0, 0.5]), 0.3),
    "clicks": lambda: bough.BernoulliModel(TREE, -1.0),
    "counts": lambda: bough.PoissonModel(TREE, 0.2),
    "rewards in contexts": lambda: bough.GaussianModel(TREE, [0.5, -1.0], np.array([[2.0, 0.5], [0.5, 1.0]])),
    "clicks in contexts": lambda: bough.BernoulliModel(TREE, [0.0, 0.3]),
}


def taught(model, seed=0):
    rng = np.random.default_rng(seed)
    posterior = bough.Posterior(model)
    names = list(rng.choice(["sencha", "matcha", "espresso"], 30))
    contexts = None if model.is_scalar else rng.normal(size=(30, 2))
    posterior.update(names, (rng.random(30) < 0.4).astype(float), contexts)
    return posterior, None if model.is_scalar else np.array([0.7, -1.2])


@pytest.mark.parametrize("kind", KINDS)
def test_moments_of_some_nodes_are_those_of_all_at_their_places(kind):
    posterior, context = taught(KINDS[kind]())
    mean, variance = posterior._engine.node_moments(context)
    for nodes in (np.array([0]), np.array([3, 9]), np.array([8, 2, 2, 5]), np.arange(TREE.n_nodes)):
        some_mean, some_variance = posterior._moments_of(nodes.astype(np.int32), context)
        np.testing.assert_allclose(some_mean, mean[nodes], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(some_variance, variance[nodes], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_need_no_new_tree_where_actions_were_added_and_moved(kind):
    posterior, context = taught(KINDS[kind]())
    posterior._add(["oolong", "decaf"], "coffee")
    posterior._move("matcha", "tea/black")
    if kind in ("clicks", "counts"):
        posterior.settle()  # as a new tree would
    catalogue = posterior._catalogue
    names = ["oolong", "decaf", "matcha", "sencha", "tea", "coffee"]
    nodes = np.array([catalogue.index(name) for name in names], dtype=np.int32)
    some, everything = posterior._moments_of(nodes, context), posterior._moments_of(None, context)
    assert catalogue.is_changed  # still
    tree = posterior.model.tree
    mean, variance = posterior._engine.node_moments(context)
    places = [tree.index(name) for name in names]
    for found, wanted in zip(some, (mean, variance), strict=True):
        np.testing.assert_allclose(found, wanted[places], rtol=1e-8, atol=1e-9)  # to which sites settle
    for found, wanted in zip(everything, some, strict=True):
        np.testing.assert_array_equal(found[nodes], wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_averages_are_those_of_the_rewards_below_a_node(kind):
    model = KINDS[kind]()
    posterior = bough.Posterior(model)
    context = None if model.is_scalar else np.ones((4, 2))
    posterior.update(["sencha", "sencha", "matcha", "espresso"], [1.0, 0.0, 1.0, 0.0], context)
    averages = np.full(TREE.n_nodes, np.nan)
    averages[posterior._engine.slots.node] = posterior._engine.slot_averages()
    wanted = {
        "": 0.5,
        "tea": 2 / 3,
        "tea/green": 2 / 3,
        "sencha": 0.5,
        "matcha": 1.0,
        "espresso": 0.0,
        "filter": np.nan,
    }
    for name, average in wanted.items():
        np.testing.assert_allclose(averages[TREE.index(name)], average)


def test_averages_of_counts_are_per_exposure_and_those_of_drifting_actions_are_not_known():
    posterior = bough.Posterior(bough.PoissonModel(TREE))
    posterior.update(["sencha", "matcha"], [6.0, 2.0], exposure=[2.0, 6.0])
    assert posterior._engine.slot_averages()[0] == 1.0
    drifting = bough.Posterior(bough.GaussianModel(TREE, drift=5.0))
    drifting.update("sencha", 1.0)
    assert np.isnan(drifting._engine.slot_averages()).all()


def test_children_are_those_that_there_are_now():
    posterior, _ = taught(KINDS["rewards"]())
    posterior._add(["oolong", "decaf"], "tea/green")
    posterior._move("matcha", "coffee")
    catalogue = posterior._catalogue
    above = np.array([catalogue.index(name) for name in ("coffee", "tea/green", "water", "oolong")], dtype=np.int32)
    below, of = catalogue.children(above)
    names = [[catalogue.name(node) for node in below[of == i].tolist()] for i in range(4)]
    assert names == [["espresso", "filter", "matcha"], ["sencha", "oolong", "decaf"], [], []]
    nothing, _ = catalogue.children(above[:0])
    assert not len(nothing)
