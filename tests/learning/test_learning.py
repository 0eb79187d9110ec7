"""Priors learned from logs: gradients, evidence, references that nobody here computed, recovery and rescue."""

import copy
import csv
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from bough.inference.oracles.dense import DensePosterior
from bough.learning.fit import _objective
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses
from bough.learning.options import FitOptions, groups_of

from cases import SHAPES, parents  # isort: skip
from places import FIXTURES


def read(name):
    with open(FIXTURES / name, newline="") as file:
        return list(csv.DictReader(file))


def random_log(tree, n, dim, rng):
    x = None if dim is None else rng.normal(size=(n, dim)) * 10.0 ** rng.uniform(-2, 2, dim)
    names = rng.choice(np.asarray(tree.actions), n)
    return names, rng.normal(rng.normal(), 10.0 ** rng.uniform(-1, 1), n), x


@st.composite
def forests(draw, most_trees=3):
    """Trees with a log each, classes by depth or height, and what is learned of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dim = draw(st.sampled_from([None, None, 1, 2, 3]))
    shapes = [draw(st.sampled_from(SHAPES)) for _ in range(draw(st.integers(1, most_trees)))]
    trees = [bough.Tree.from_parents(parents(shape, int(rng.integers(2, 12)), rng)) for shape in shapes]
    rows = [random_log(tree, int(rng.integers(3, 25)), dim, rng) for tree in trees]
    by = draw(st.sampled_from(["depth", "height"]))
    given_mean = draw(st.booleans())
    mean = None if not given_mean else (0.3 if dim is None else np.full(dim, 0.3))
    structure = draw(st.sampled_from(["full", "diagonal", "scaled"]))
    width = draw(st.sampled_from([None, 2.0]))
    noise = draw(st.sampled_from([None, 0.7]))
    return trees, rows, by, FitOptions(noise, mean, "learn", width, structure), rng


def made(trees, rows, by, options):
    classes = NodeClasses.of(by, trees)
    forest = Forest.from_logs(trees, [bough.Statistics.from_rows(*one) for one in rows], classes)
    learned = (groups_of(trees, classes, options) >= 0) & (forest.nodes_of_class > 0)
    group = np.where(learned, np.cumsum(learned) - 1, -1)
    return classes, _objective(forest, group, options, forest.reward_variance())


@settings(max_examples=150, deadline=None)
@given(forests())
def test_the_gradient_is_that_of_finite_differences(case):
    trees, rows, by, options, rng = case
    _, objective = made(trees, rows, by, options)
    at = objective.start()
    at = at + rng.normal(size=len(at)) * 0.3
    _, gradient = objective.value_and_gradient(at)
    step = 1e-5
    differences = [
        (objective.value_and_gradient(at + h)[0] - objective.value_and_gradient(at - h)[0]) / (2 * step)
        for h in np.eye(len(at)) * step
    ]
    scale = 1.0 + np.abs(gradient).max(initial=0.0) + abs(objective.value_and_gradient(at)[0])
    np.testing.assert_allclose(gradient / scale, np.array(differences) / scale, atol=1e-8)


@settings(max_examples=150, deadline=None)
@given(forests(most_trees=1))
def test_the_evidence_is_the_oracles(case):
    trees, rows, by, options, rng = case
    classes, objective = made(trees, rows, by, options)
    at = objective.start()
    covariance, noise = objective.unpacked(at + rng.normal(size=len(at)) * 0.5)
    value, _ = objective.evidence(covariance, noise)
    model = bough.GaussianModel(trees[0], objective.mean, classes.covariances(trees, covariance)[0], noise)
    names, rewards, contexts = rows[0]
    oracle = DensePosterior(model)
    oracle.update(names.tolist(), rewards, contexts)
    assert value == pytest.approx(oracle.log_evidence(), rel=1e-8, abs=1e-8)


@settings(max_examples=100, deadline=None)
@given(forests(most_trees=1))
def test_the_mean_by_least_squares_has_the_most_evidence(case):
    trees, rows, by, options, rng = case
    options = options._replace(mean=None)
    classes, objective = made(trees, rows, by, options)
    covariance, noise = objective.unpacked(objective.start())
    best, _ = objective.evidence(covariance, noise)
    middle, error = np.asarray(objective.mean), np.asarray(objective.mean_error)
    prior = classes.covariances(trees, covariance)[0]
    for _ in range(3):
        other = middle + error * rng.normal(size=middle.shape)
        posterior = bough.Posterior(bough.GaussianModel(trees[0], other if other.ndim else float(other), prior, noise))
        posterior.absorb(bough.Statistics.from_rows(*rows[0]))
        assert posterior.log_evidence() <= best + 1e-7 * (1.0 + abs(best))


# -- references that nobody here computed -----------------------------------------------------------


def nested_fit(rows, levels, reward):
    paths = ["/".join(row[level] for level in levels) for row in rows]
    tree = bough.Tree.from_paths(sorted(set(paths)))
    statistics = bough.Statistics.from_rows(paths, [float(row[reward]) for row in rows])
    fit = bough.fit_prior(tree, statistics, penalty=None)
    posterior = bough.Posterior(fit.model)
    posterior.absorb(statistics)
    assert posterior.log_evidence() == pytest.approx(fit.log_evidence, abs=1e-8)
    assert fit.converged
    return fit


@pytest.mark.parametrize(
    ("name", "levels", "reward", "groups"),
    [
        ("pastes", ["batch", "cask"], "strength", ["batch", "cask:batch"]),
        ("plates", ["plate", "sample"], "diameter", ["plate", "sample:plate"]),
        ("dyestuff2", ["batch"], "yield", ["Batch"]),  # whose variance is zero
    ],
)
def test_maximum_likelihood_is_lme4s(name, levels, reward, groups):
    reference = {row["what"]: float(row["value"]) for row in read("fits_lme4.csv") if row["data"] == name}
    fit = nested_fit(read(f"{name}.csv"), levels, reward)
    ours = [fit.covariances[f"depth {i + 1}"] for i in range(len(groups))]
    np.testing.assert_allclose(ours, [reference[group] for group in groups], rtol=1e-6)
    assert fit.noise_variance == pytest.approx(reference["Residual"], rel=1e-6)
    assert fit.mean == pytest.approx(reference["mean"], rel=1e-6)
    assert fit.log_evidence == pytest.approx(reference["log likelihood"], abs=1e-8)


def test_maximum_likelihood_is_gpboosts():
    reference = {row["what"]: row["value"] for row in read("nested_gpboost.csv")}
    fit = nested_fit(read("nested.csv"), ["first", "second", "third"], "y")
    for i, level in enumerate(("first", "second", "third")):
        assert fit.covariances[f"depth {i + 1}"] == pytest.approx(float(reference[level]), rel=1e-5)
    assert fit.noise_variance == pytest.approx(float(reference["noise"]), rel=1e-5)
    assert fit.log_evidence == pytest.approx(float(reference["log likelihood"]), abs=1e-7)


# -- what comes out ----------------------------------------------------------------------------------


def test_variances_are_recovered_from_the_logs_of_the_policy_itself():
    """Pools of 30 trees. One pool's estimate at height 2 (120 nodes) has a standard error of 19%, so ten of them are

    averaged (in the logarithm), where it has 6% and the others less: a correct fit fails for one seed in a hundred.
    """
    tree = bough.Tree.balanced(4, 3)
    truth = bough.GaussianModel(tree, 0.0, bough.by_height([1.0, 2.0, 4.0, 4.0]), 1.0)
    found = []
    for pool in range(10):
        logs = []
        for world in range(30):
            rng = np.random.default_rng([20, pool, world])
            parameters, agent = truth.draw(rng), bough.HierTS(truth, seed=rng)
            log = []
            for _ in range(300):
                action = agent.decide()
                log.append((action, parameters[action] + rng.normal()))
                agent.update(*log[-1])
            logs.append(bough.Statistics.from_rows(*zip(*log, strict=True)))
        fit = bough.fit_prior([tree] * 30, logs, by="height")
        assert fit.converged
        assert fit.covariances["height 3"] > 0.0  # several trees tell the root's variance
        found.append(
            [fit.covariances["height 0"], fit.covariances["height 1"], fit.covariances["height 2"], fit.noise_variance]
        )
    np.testing.assert_allclose(np.exp(np.log(found).mean(axis=0)), [1.0, 2.0, 4.0, 1.0], rtol=0.15)


def contextual_log(rng, structure):
    d = 3
    tree = bough.Tree.balanced(12, 2)
    root = rng.normal(size=(d, d))
    shapes = {
        "full": (root @ root.T, np.diag([0.5, 1.0, 2.0]) + 0.3),
        "diagonal": (np.diag([4.0, 1.0, 0.25]), np.diag([0.5, 1.0, 2.0])),
        "scaled": (2.0 * np.eye(d), 0.5 * np.eye(d)),  # contexts of one size: the diagonal is the identity
    }[structure]
    model = bough.GaussianModel(tree, [1.0, -1.0, 0.0], bough.by_depth([0.0, *shapes]), 0.5)
    n = 4_000
    actions, contexts = rng.choice(tree.leaves, n), rng.normal(size=(n, d))
    rewards = (model.draw(rng)[actions] * contexts).sum(axis=1) + rng.normal(0.0, 0.5**0.5, n)
    return model, bough.Statistics.from_rows(actions, rewards, contexts)


@pytest.mark.parametrize("structure", ["full", "diagonal", "scaled"])
def test_covariances_are_recovered(structure):
    """Distances in standard errors of a covariance from n nodes, below 4: a false alarm in a thousand fits or so."""
    model, log = contextual_log(np.random.default_rng(5), structure)
    fit = bough.fit_prior(model.tree, log, structure=structure)
    assert fit.converged
    for depth, n_nodes in ((1, 12), (2, 144)):
        truth = model.classes.table[depth]
        error = np.sqrt((truth**2 + np.outer(np.diag(truth), np.diag(truth))) / n_nodes)
        assert (np.abs(fit.covariances[f"depth {depth}"] - truth) < 4.0 * error + 0.1).all()
        off_diagonal = fit.covariances[f"depth {depth}"] - np.diag(np.diag(fit.covariances[f"depth {depth}"]))
        assert (np.abs(off_diagonal).max() > 0.0) == (structure == "full")
    assert fit.noise_variance == pytest.approx(0.5, rel=0.1)
    assert np.shape(fit.mean) == (3,)
    assert "mean of feature 2" in fit.summary()


def test_a_context_of_ones_is_no_context():
    rng = np.random.default_rng(3)
    tree = bough.Tree.balanced(5, 2)
    names, rewards = rng.choice(tree.leaves, 200), rng.normal(2.0, 1.0, 200)
    number = bough.fit_prior(tree, bough.Statistics.from_rows(names, rewards))
    for structure in ("full", "diagonal", "scaled"):
        vector = bough.fit_prior(
            tree, bough.Statistics.from_rows(names, rewards, np.ones((200, 1))), structure=structure
        )
        assert vector.log_evidence == pytest.approx(number.log_evidence, abs=1e-6)
        for label, value in number.covariances.items():
            assert vector.covariances[label][0, 0] == pytest.approx(value, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("dim", "structure"), [(None, "full"), (2, "full"), (2, "diagonal"), (2, "scaled")])
def test_units_decide_nothing(dim, structure):
    rng = np.random.default_rng(4)
    tree = bough.Tree.balanced(6, 2)
    names, rewards, contexts = rng.choice(tree.leaves, 300), rng.normal(1.0, 2.0, 300), None
    unit = np.ones(1)
    if dim is not None:
        contexts, unit = rng.normal(size=(300, dim)), np.array([1e3, 1e-2])
    scaled = None if contexts is None else contexts * unit
    one = bough.fit_prior(tree, bough.Statistics.from_rows(names, rewards, contexts), structure=structure)
    other = bough.fit_prior(tree, bough.Statistics.from_rows(names, 100.0 * rewards, scaled), structure=structure)
    for label in ("depth 1", "depth 2"):
        expected = np.asarray(one.covariances[label]) * 1e4 / np.outer(unit, unit).squeeze()
        np.testing.assert_allclose(other.covariances[label], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert other.noise_variance == pytest.approx(1e4 * one.noise_variance, rel=1e-4)


def test_what_is_given_is_kept():
    rng = np.random.default_rng(8)
    tree = bough.Tree.balanced(4, 2)
    log = bough.Statistics.from_rows(rng.choice(tree.leaves, 100), rng.normal(size=100))
    fit = bough.fit_prior(tree, log, noise=0.5, mean=3.0, root=2.0)
    assert (fit.noise_variance, fit.mean, fit.covariances["depth 0"]) == (0.5, 3.0, 2.0)
    assert fit.summary().count(" set") == 3
    learned = bough.fit_prior(tree, log, mean=3.0, root="learn")
    assert learned.covariances["depth 0"] > 1.0  # the mean is three, the rewards' is zero


def test_classes_by_name_are_the_classes_by_depth():
    rng = np.random.default_rng(9)
    tree = bough.Tree.from_paths([f"{i}/{j}" for i in range(6) for j in range(5)])
    log = bough.Statistics.from_rows(rng.choice(np.asarray(tree.actions), 200), rng.normal(size=200))
    by_name = {tree.name(node): ("top", "middle", "leaf")[tree.depth[node]] for node in range(tree.n_nodes)}
    one, other = bough.fit_prior(tree, log), bough.fit_prior(tree, log, by=by_name)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
    assert list(other.covariances) == ["top", "middle", "leaf"]
    np.testing.assert_allclose(other.model.marginal_covariance, one.model.marginal_covariance, rtol=1e-6)
    with pytest.raises(ValueError, match="by has '7', which is no node"):
        bough.fit_prior(tree, log, by=by_name | {"7": "middle"})
    with pytest.raises(ValueError, match="a class is called 'noise'"):
        bough.fit_prior(tree, log, by=by_name | {"": "noise"})
    del by_name["3"]
    with pytest.raises(ValueError, match="by leaves out 1 of 37 nodes, '3' among them"):
        bough.fit_prior(tree, log, by=by_name)


def test_two_trees_with_one_prior_and_one_log_each():
    rng = np.random.default_rng(10)
    trees = [bough.Tree.balanced(5, 2), bough.Tree.balanced(3, 3)]
    logs = [bough.Statistics.from_rows(rng.choice(tree.leaves, 80), rng.normal(size=80)) for tree in trees]
    fit = bough.fit_prior(trees, logs)
    assert [model.tree for model in fit.models] == trees
    total = 0.0
    for model, log in zip(fit.models, logs, strict=True):
        posterior = bough.Posterior(model)
        posterior.absorb(log)
        total += posterior.log_evidence()
    assert total == pytest.approx(fit.log_evidence, abs=1e-9)


def test_a_log_is_summarised_on_the_way():
    import polars

    rng = np.random.default_rng(11)
    tree = bough.Tree.balanced(4, 2)
    log = polars.DataFrame({"item": rng.choice(tree.leaves, 90), "y": rng.normal(size=90)})
    direct = bough.fit_prior(tree, log, action="item", reward="y")
    summed = bough.fit_prior(tree, bough.summarise(log, tree, "item", "y"))
    assert direct.log_evidence == pytest.approx(summed.log_evidence, abs=1e-9)
    with pytest.raises(ValueError, match="columns are not named"):
        bough.fit_prior(tree, log)


def test_what_the_data_cannot_tell_is_said_to_be_unknown():
    tree = bough.Tree.balanced(30, 1)
    log = bough.Statistics.from_rows(tree.leaves, np.random.default_rng(0).normal(size=30))  # one reward an action
    fit = bough.fit_prior(tree, log, penalty=None)
    assert (fit.estimates["depth 1"].low, fit.estimates["depth 1"].high) == (0.0, np.inf)
    assert fit.summary().count("not known") == 2
    held = bough.fit_prior(tree, log)
    total = held.covariances["depth 1"] + held.noise_variance
    assert 0.3 < held.covariances["depth 1"] / total < 0.7  # the penalty splits what cannot be told apart


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(by="level"), "by is 'level'"),
        (dict(noise=-1.0), 'noise is -1.0; give a positive number, "learn" or "per action"'),
        (dict(noise="much"), "noise is 'much'"),
        (dict(mean=[1.0]), "mean is"),
        (dict(penalty=0), "penalty is 0"),
        (dict(structure="round"), "structure is 'round'"),
        (dict(root=-2.0), "covariance of the root is -2.0"),
        (dict(tree=3), "tree is a int"),
        (dict(tree=[bough.Tree.balanced(2, 2)] * 2), "2 trees and 1 logs"),
        (dict(data=bough.Statistics.from_rows([3, 4], [1.0, 1.0])), "do not vary"),
        (dict(data=bough.Statistics.from_rows([], [])), "the 0 rewards do not vary"),
        (dict(by=dict.fromkeys(range(7), "all"), root=1.0), "shares its class"),
    ],
)
def test_what_cannot_be_fitted_says_why(change, message):
    call = dict(tree=bough.Tree.balanced(2, 2), data=bough.Statistics.from_rows([3, 4, 3], [1.0, 2.0, 3.0])) | change
    with pytest.raises(ValueError, match=message):
        bough.fit_prior(call.pop("tree"), call.pop("data"), **call)


def test_a_mean_that_the_contexts_cannot_tell_is_not_known():
    rng = np.random.default_rng(0)
    tree = bough.Tree.balanced(5, 1)
    x = rng.normal(size=(200, 1))
    twice = bough.Statistics.from_rows(rng.choice(tree.leaves, 200), rng.normal(size=200), np.hstack([x, x, 0 * x]))
    fit = bough.fit_prior(tree, twice, structure="diagonal")
    assert np.isinf(fit.estimates["mean"].high).all()
    assert fit.summary(features=["price", "copy", "void"]).count("not known") == 3
    assert "mean of copy" in fit.summary(features=["price", "copy", "void"])


def test_plain_likelihood_refuses_a_level_without_data():
    tree = bough.Tree.from_paths(["a/b", "a/c", "d"])
    log = bough.Statistics.from_rows(["d", "d"], [1.0, 2.0])
    with pytest.raises(ValueError, match="no observed node has depth 2"):
        bough.fit_prior(tree, log, penalty=None)
    assert bough.fit_prior(tree, log).covariances["depth 2"] > 0.0


# -- from features -----------------------------------------------------------------------------------


def labelled_features(rng, n_each=200):
    tree = bough.Tree.from_nested({f"g{i}": [f"g{i}c{j}" for j in range(6)] for i in range(8)})
    between, inside = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.3, -0.1], [-0.1, 0.4]])
    within = np.array([[1.0, 0.2], [0.2, 3.0]])
    model = bough.GaussianModel(tree, [5.0, -3.0], bough.by_depth([np.zeros((2, 2)), between, inside]))
    centre = tree.at_leaves(model.draw(rng))
    labels = np.repeat(np.asarray(tree.actions), n_each)
    return tree, labels, np.repeat(centre, n_each, axis=0) + rng.multivariate_normal([0, 0], within, len(labels)), model


def test_fits_to_items_are_numpys_covariances():
    tree, labels, features, _ = labelled_features(np.random.default_rng(0), 20)
    model = bough.prior_from_features(tree, features, labels, noise_variance=0.25)
    assert model.noise_variance == 0.25
    np.testing.assert_allclose(model.mean, features.mean(axis=0))
    np.testing.assert_allclose(model.classes.table[0], np.cov(features.T, ddof=0))
    for name in ("g3", "g3c2"):
        rows = features[[label.startswith(name) for label in labels]]
        np.testing.assert_allclose(model.classes.table[tree.index(name)], np.cov(rows.T, ddof=0), atol=1e-12)


def test_items_far_apart_and_close_together_keep_their_covariances():
    rng = np.random.default_rng(2)
    tree = bough.Tree.from_nested({"a": ["x", "y"], "b": ["z", "w"]})
    labels = np.repeat(["x", "y", "z", "w"], 50)
    features = rng.normal(0.0, 1e-4, (200, 3)) + 1e5 * np.repeat(np.arange(4), 50)[:, None]
    model = bough.prior_from_features(tree, features, labels)
    for name in ("x", "w"):
        expected = np.cov(features[labels == name].T, ddof=0)
        np.testing.assert_allclose(model.classes.table[tree.index(name)], expected, rtol=1e-3, atol=1e-12)


def test_fits_to_means_are_the_spread_of_the_means():
    tree, labels, features, truth = labelled_features(np.random.default_rng(1))
    model = bough.prior_from_features(tree, features, labels, spread="means", penalty=None)
    np.testing.assert_array_equal(model.classes.table[0], np.zeros((2, 2)))
    for depth, n_nodes in ((1, 8), (2, 48)):
        expected = truth.classes.table[depth]
        error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n_nodes)
        assert (np.abs(model.classes.table[depth] - expected) < 4.0 * error).all()
    items = bough.prior_from_features(tree, features, labels)
    leaf = tree.index("g0c0")
    assert np.trace(items.marginal_covariance[leaf]) > 2.0 * np.trace(model.marginal_covariance[leaf])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(spread="wide"), "spread is 'wide'"),
        (dict(features=[1.0, 2.0]), "shape"),
        (dict(features=[[1.0, np.nan]] * 4), "features in row 0 are"),
        (dict(action=["left"] * 3), "action has length 3 and features 4"),
        (dict(action=["left", "left", "left", "right"]), "'right' has 1 rows"),
        (dict(spread="means", features=[[1.0, 1.0]] * 4), "constant, or combinations"),
    ],
)
def test_features_that_cannot_be_used_say_why(change, message):
    call = dict(features=np.eye(4)[:, :2], action=["left", "left", "right", "right"]) | change
    with pytest.raises(ValueError, match=message):
        bough.prior_from_features(bough.Tree.from_nested(["left", "right"]), **call)


# -- online ------------------------------------------------------------------------------------------


def test_a_wrong_prior_is_rescued():
    """100 runs; the ratios' standard errors are about 0.04, and the measured ratios are at most 1.13."""
    tree = bough.Tree.balanced(4, 3)
    right = np.array([1.0, 2.0, 4.0, 8.0])
    truth = bough.GaussianModel(tree, 0.0, bough.by_height(right))

    def policy(variances, refit):
        model = bough.GaussianModel(tree, 0.0, bough.by_height(variances))
        return lambda _, seed: bough.HierTS(model, seed, refit=refit)

    wrong = {"large": 16 * right, "small": right / 16, "reversed": right[::-1]}
    policies = {"oracle": bough.HierTS}
    policies |= {name: policy(variances, True) for name, variances in wrong.items()}
    policies["large, fixed"] = policy(wrong["large"], False)
    run = bough.simulate(truth, policies, rounds=500, runs=100, seed=1, jobs=1)
    final = {name: run.mean(name)[-1] for name in policies}
    for name in wrong:
        assert final[name] < 1.25 * final["oracle"]
    assert final["large, fixed"] > 1.6 * final["oracle"]


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
@pytest.mark.parametrize("dim", [None, 2])
def test_every_policy_refits(policy, dim):
    rng = np.random.default_rng(2)
    tree = bough.Tree.balanced(3, 2)
    given_model = bough.GaussianModel(tree, 0.0 if dim is None else np.zeros(dim), noise_variance=100.0)
    agent = policy(given_model, seed=0, refit=True)
    before = agent.posterior.model
    for t in range(45):
        context = None if dim is None else rng.normal(size=dim)
        action = agent.decide(context)
        agent.update(action, float(action) + rng.normal(), context)
        if t == 18:
            assert agent.posterior.model is before
        if t in (19, 39):
            assert agent.posterior.model is not before
            before = agent.posterior.model
    assert agent.posterior.n_observations == 45
    assert agent.statistics.n_rows == 45
    assert agent.posterior.model.noise_variance < 50.0


def test_a_batch_refits_as_single_updates_do_and_a_policy_goes_on_where_it_stopped(tmp_path):
    rng = np.random.default_rng(3)
    model = bough.GaussianModel(bough.Tree.balanced(3, 2))
    names, rewards = rng.choice(model.tree.leaves, 40), rng.normal(2.0, 1.0, 40)
    single, batch = bough.HierTS(model, refit=True), bough.HierTS(model, refit=True)
    for name, reward in zip(names, rewards, strict=True):
        single.update(int(name), reward)
    batch.update(names, rewards)
    np.testing.assert_allclose(batch.posterior.mean, single.posterior.mean, atol=1e-5)
    batch.posterior.save(tmp_path / "posterior")
    batch.statistics.save(tmp_path / "statistics")
    statistics = bough.Statistics.load(tmp_path / "statistics")
    for known in (None, statistics):  # a posterior keeps what it needs; statistics may still be given
        saved = bough.Posterior.load(tmp_path / "posterior")
        later = bough.HierTS.resume(saved, refit=True, statistics=known)
        later.update(names, rewards)
        assert later.posterior.n_observations == 80
        assert later.posterior.model.noise_variance != batch.posterior.model.noise_variance
    with pytest.raises(ValueError, match="has 40 observations and the statistics 80"):
        bough.HierTS.resume(batch.posterior, refit=True, statistics=statistics + statistics)
    with pytest.raises(ValueError, match="refit is 'often'"):
        bough.HierTS(model, refit="often")


@pytest.mark.parametrize("level", [7.7, 0.1, 0.001, 1 / 3, 1e9 + 0.1])
def test_constant_rewards_are_learned_from_without_trouble(level):
    """The squares of such rewards do not add up exactly, but what is left is rounding and not variance."""
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True, seed=0)
    for _ in range(45):
        agent.update(agent.decide(), level)
    assert agent.posterior.model.noise_variance == 1.0
    assert agent.posterior.n_observations == 45


def test_rewards_that_depend_on_the_action_alone_leave_some_noise():
    tree = bough.Tree.balanced(3, 2)
    log = bough.Statistics.from_rows(np.repeat(tree.leaves, 5), np.repeat(np.arange(9.0), 5))
    fit = bough.fit_prior(tree, log)
    assert fit.noise_variance == pytest.approx(1e-8 * np.var(np.arange(9.0)))
    assert not fit.converged  # the likelihood has no maximum


def test_rewards_whose_variance_is_lost_in_their_size_are_refused():
    rng = np.random.default_rng(0)
    log = bough.Statistics.from_rows(rng.integers(4, 13, 300), 1e9 + rng.normal(size=300))
    with pytest.raises(ValueError, match="take off what they have in common"):
        bough.fit_prior(bough.Tree.balanced(3, 2), log)


def test_rows_of_a_small_weight_are_still_many_rows():
    """64 rows of weight 1/64 have a total weight of 1, and yet a spread."""
    rng = np.random.default_rng(0)
    tree = bough.Tree.balanced(30, 1)
    names, rewards = np.repeat(tree.leaves, 64), rng.normal(size=30 * 64)
    log = bough.Statistics.from_rows(names, rewards, weight=np.full(len(names), 1 / 64))
    assert bough.fit_prior(tree, log).noise_variance == pytest.approx(1.0, rel=0.15)
    one = bough.Statistics.from_rows(tree.leaves, rng.normal(1e5, 1.0, 30))
    assert one.averages_and_spreads()[1].max() == 0.0


def test_covariances_of_every_node_keep_their_proportions_and_singular_ones_are_learned_too():
    rng = np.random.default_rng(4)
    tree = bough.Tree.balanced(6, 2)
    variances = np.where(tree.depth == 2, 0.01, 1.0) * rng.uniform(1.0, 2.0, tree.n_nodes)
    agent = bough.HierTS(bough.GaussianModel(tree, 0.0, bough.by_node(variances)), refit=True)
    truth = bough.GaussianModel(tree, 0.0, bough.by_depth([1.0, 1.0, 4.0])).draw(rng)
    names = rng.choice(tree.leaves, 320)
    agent.update(names, truth[names] + rng.normal(size=320))
    learned = agent.posterior.model.classes.table
    factor = learned / variances
    for depth in (1, 2):
        assert np.ptp(factor[tree.depth == depth]) < 1e-9 * factor[tree.depth == depth].max()
    assert factor[-1] > 20.0
    flat = np.outer([1.0, 2.0], [1.0, 2.0])
    contextual = bough.HierTS(bough.GaussianModel(tree, [0.0, 0.0], bough.by_depth([flat] * 3)), refit=True)
    contextual.update(names, rng.normal(size=320) * 5.0, rng.normal(size=(320, 2)))
    table = contextual.posterior.model.classes.table
    np.testing.assert_allclose(table[1] / table[1][0, 0], flat, atol=1e-9)
    nothing = bough.HierTS(bough.GaussianModel(tree, [0.0, 0.0], 0.0), refit=True)
    nothing.update(names, rng.normal(size=320) * 5.0, rng.normal(size=(320, 2)))
    assert nothing.posterior.model.noise_variance == pytest.approx(25.0, rel=0.3)


def test_threads_lose_no_observation_of_a_policy_that_refits():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            agent.update(int(rng.integers(4, 13)), rng.normal())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agent.posterior.n_observations == 1_200
    assert agent.statistics.n_rows == 1_200
    assert copy.deepcopy(agent).statistics.n_rows == 1_200


def test_what_goes_straight_to_the_posterior_is_refitted_as_well():
    rng = np.random.default_rng(5)
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True)
    log = bough.Statistics.from_rows(rng.integers(4, 13, 40), rng.normal(size=40))
    agent.absorb(log)
    assert agent.posterior.n_observations == agent.statistics.n_rows == 40
    agent.posterior.absorb(log)
    agent.absorb(log)
    assert agent.posterior.n_observations == agent.statistics.n_rows == 120
    straight = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True)
    straight.absorb(log + log + log)
    np.testing.assert_allclose(agent.posterior.mean, straight.posterior.mean, rtol=1e-9, atol=1e-12)
    assert agent.posterior.model.noise_variance == pytest.approx(straight.posterior.model.noise_variance, rel=1e-9)


def test_fractions_of_rows_add_up():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True)
    rng = np.random.default_rng(0)
    for _ in range(6):
        agent.absorb(bough.Statistics.from_rows([4, 5], rng.normal(size=2), weight=[0.2, 0.2]))
    for _ in range(100):
        agent.update(int(rng.integers(4, 13)), rng.normal())
    assert agent.statistics.n_rows == pytest.approx(102.4)
    assert agent.posterior.n_observations == 102


def test_rewards_that_do_not_vary_teach_no_variance():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True, seed=0)
    for _ in range(30):
        agent.update(agent.decide(), 0.0)
    assert agent.posterior.model.noise_variance == 1.0
    agent.update(agent.decide(), 5.0)
    for _ in range(9):
        agent.update(agent.decide(), 0.0)
    assert agent.posterior.model.noise_variance != 1.0


def test_a_refused_update_is_not_remembered():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.balanced(3, 2)), refit=True)
    with pytest.raises(ValueError, match="finite"):
        agent.update(5, float("nan"))
    assert agent.statistics is None
