"""The bounds by their formulas, the lemmas on random trees and histories."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
from bough import theory
from cases import parents


@st.composite
def histories(draw):
    """A K-armed posterior after some rewards, with positive variances, and an action."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["chain", "star", "random", "unary", "caterpillar"]))
    tree = bough.Tree.from_parents(parents(shape, draw(st.integers(2, 10)), rng))
    variances = 10.0 ** rng.uniform(-2, 2, tree.n_nodes)
    model = bough.GaussianModel(tree, 0.0, bough.by_node(variances), 10.0 ** rng.uniform(-1, 1))
    posterior = bough.Posterior(model)
    n = draw(st.integers(0, 30))
    names = np.asarray(tree.actions)
    posterior.update(rng.choice(names, n), rng.normal(size=n))
    return posterior, rng.choice(names).item()


@settings(max_examples=200)
@given(histories())
def test_the_terms_of_lemma_2_sum_to_the_marginal_variance(history):
    posterior, action = history
    terms = theory.variance_decomposition(posterior, action)
    node = posterior.model.tree.index(action)
    assert len(terms) == posterior.model.tree.depth[node] + 1
    assert (terms >= 0).all()
    assert terms.sum() == pytest.approx(posterior.covariance[node], rel=1e-9)


@settings(max_examples=200)
@given(histories(), st.sampled_from(["lemma", "telescoped"]))
def test_the_information_gained_is_exact_and_at_least_its_bound(history, constant):
    posterior, action = history
    tree = posterior.model.tree
    nodes = [tree.index(name) for name in tree.path(action)]
    before = np.array([1 / posterior.conditional(node).covariance for node in nodes])
    gained, bound = theory.information(posterior, action, constant)
    posterior.update(action, 0.3)
    after = np.array([1 / posterior.conditional(node).covariance for node in nodes])
    assert (np.abs(gained - (after - before)) <= 1e-6 * gained + 1e-9 * after).all()
    assert (bound <= gained * (1 + 1e-9)).all()


@settings(max_examples=200)
@given(histories())
def test_the_telescoped_constant_bounds_the_growth_along_every_path(history):
    posterior, action = history
    tree, model = posterior.model.tree, posterior.model
    nodes = [tree.index(name) for name in tree.path(action)]
    before = np.array([posterior.conditional(node).covariance for node in nodes])
    posterior.update(action, 0.3)
    growth = before / np.array([posterior.conditional(node).covariance for node in nodes])
    along = np.append(np.cumprod(growth[:0:-1])[::-1], 1.0)  # the product strictly below each node
    telescoped, _ = theory.scaling_constants(model, "telescoped")
    lemma, _ = theory.scaling_constants(model, "lemma")
    assert (along <= telescoped[nodes] * (1 + 1e-9)).all()
    assert (telescoped <= lemma * (1 + 1e-12)).all()
    single = 1.0 + model.classes.table[model.classes.of_node] / (model.noise_variance + theory.variance_below(model))
    on_its_path = 1.0 + np.array([model.classes.table[model.classes.of_node[n]] for n in nodes]) / (
        model.noise_variance + np.append(np.cumsum(model.classes.table[model.classes.of_node[nodes]][:0:-1])[::-1], 0.0)
    )
    assert (growth <= on_its_path * (1 + 1e-9)).all()
    assert (single > 1).all()


def test_problem_1_gives_height_plus_one_in_place_of_two_to_the_height():
    model = bough.problems.constant(branching=3, height=5)
    height = model.tree.node_height
    np.testing.assert_allclose(theory.scaling_constants(model, "telescoped")[0], height + 1.0)
    np.testing.assert_allclose(theory.scaling_constants(model, "lemma")[0], 2.0**height)


def test_problem_2_has_a_lemma_constant_of_one_plus_two_to_the_height():
    assert theory.scaling_constants(bough.problems.increasing(branching=2, height=4), "lemma")[1] == 17.0


def test_the_bound_is_the_theorem_written_out():
    b, h, n = 3, 2, 400
    bound = theory.regret_bound(bough.problems.increasing(b, h), n)

    def w(variance, inner):
        return variance / math.log(1 + variance) * math.log(1 + variance * inner)

    c = 5.0
    weights = [(9, w(1, n), 1.0), (3, w(2, 3 / 1), c), (1, w(4, 3 / 2), c**2)]
    complexity = sum(count * weight * scale for count, weight, scale in weights)
    sigma_max = math.sqrt(7)
    assert bound.complexity == pytest.approx(complexity)
    assert bound.first == pytest.approx(math.sqrt(2 * n * complexity * math.log(n)))
    assert bound.second == pytest.approx(math.sqrt(2 / math.pi) * sigma_max * 9)
    assert (bound.c, bound.sigma_max, bound.delta) == (c, pytest.approx(sigma_max), 1 / n)
    assert bound.total == bound.first + bound.second
    assert bound.weight @ bound.scaling == pytest.approx(complexity)


def test_a_known_root_adds_nothing_as_for_k_armed_bandits():
    bound = theory.regret_bound(bough.problems.constant(3, 2).independent(), 100)
    assert bound.weight[0] == 0.0
    assert bound.complexity == pytest.approx(9 * 3 / math.log(4) * math.log(301))


def test_a_child_without_variance_is_looked_through():
    direct = bough.GaussianModel(bough.Tree.from_parents([-1, 0, 0]), covariance=bough.by_depth([2.0, 1.0]))
    linked = bough.GaussianModel(bough.Tree.from_parents([-1, 0, 0, 1, 2]), covariance=bough.by_depth([2.0, 0.0, 1.0]))
    np.testing.assert_allclose(theory.node_weights(linked, 50)[[0, 3, 4]], theory.node_weights(direct, 50)[[0, 1, 2]])


@pytest.mark.parametrize("constant", ["lemma", "telescoped"])
def test_the_best_delta_is_no_worse_than_any_other(constant):
    for model in (bough.problems.constant(2, 3), bough.problems.increasing(10, 2)):
        best = theory.regret_bound(model, 500, "best", constant)
        others = [theory.regret_bound(model, 500, delta, constant).total for delta in np.logspace(-12, 0, 200)]
        assert best.total <= min(others) * (1 + 1e-6)
        assert theory.regret_bound(model, 500, constant=constant).total >= best.total


def test_two_is_allowed_only_where_its_premise_holds():
    assert theory.regret_bound(bough.problems.constant(2, 3), 100, constant="two").c == 2.0
    with pytest.raises(ValueError, match="largest prior variance 8"):
        theory.regret_bound(bough.problems.increasing(2, 3), 100, constant="two")


def test_bounds_hold_on_an_unbalanced_tree_in_simulation():
    tree = bough.Tree.from_paths(["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i"])
    model = bough.GaussianModel(tree, 0.0, bough.by_height([0.5, 1.0, 1.5, 1.0]))
    run = bough.simulate(model, {"HierTS": bough.HierTS}, rounds=200, runs=50, seed=0)
    for constant in ("lemma", "telescoped"):
        assert run.mean("HierTS")[-1] < theory.regret_bound(model, 200, constant=constant).total


@pytest.mark.parametrize(
    "model",
    [
        bough.problems.increasing(3, 3),
        bough.GaussianModel(
            bough.Tree.from_paths(["a/b/c", "a/b/d", "a/e", "f", "g/h"]), 0.7, bough.by_height([0.5, 1.0, 0.0, 2.0])
        ),
    ],
)
def test_the_expected_maximum_agrees_with_monte_carlo(model):
    # 20,000 draws; within 5 standard errors: false-alarm rate below 1e-6.
    rng = np.random.default_rng(1)
    largest = np.array([model.draw(rng)[model.tree.leaves].max() for _ in range(20_000)])
    assert abs(theory.expected_maximum(model) - largest.mean()) < 5 * largest.std() / math.sqrt(20_000)


def test_the_expected_maximum_of_independent_normals_is_known():
    star = bough.GaussianModel(bough.Tree.balanced(3, 1), 1.0, bough.by_depth([5.0, 4.0]))
    assert theory.expected_maximum(star) == pytest.approx(1.0 + 2.0 * 1.5 / math.sqrt(math.pi), rel=1e-6)
    assert theory.expected_maximum(bough.GaussianModel(bough.Tree.balanced(1, 0), 2.0)) == 2.0
    wide_root = bough.GaussianModel(bough.Tree.balanced(2, 1), 0.0, bough.by_depth([1e6, 1e-4]))
    assert theory.expected_maximum(wide_root) == pytest.approx(0.01 / math.sqrt(math.pi), rel=1e-6)
    still_leaves = bough.GaussianModel(bough.Tree.balanced(2, 2), 0.0, bough.by_depth([1.0, 1.0, 0.0]))
    assert theory.expected_maximum(still_leaves) == pytest.approx(1.0 / math.sqrt(math.pi), rel=1e-6)
    uneven = bough.GaussianModel(bough.Tree.balanced(2, 2), 0.0, bough.by_depth([1.0, 100.0, 1e-6]))
    assert theory.expected_maximum(uneven) == pytest.approx(10.0 / math.sqrt(math.pi), rel=1e-3)


def test_the_complexity_ratio_grows_as_section_5_3_says():
    ratios = [theory.complexity_ratio(bough.problems.increasing(10, h), 500, "telescoped") for h in (1, 2, 3, 4)]
    assert (np.diff(ratios) > 0).all()


BAD = {
    "rounds": (lambda m: theory.regret_bound(m, 0), "rounds is 0"),
    "delta": (lambda m: theory.regret_bound(m, 10, 2.0), "delta is 2.0"),
    "delta word": (lambda m: theory.regret_bound(m, 10, "small"), "delta is 'small'"),
    "constant": (lambda m: theory.regret_bound(m, 10, constant="three"), "constant is 'three'"),
    "vectors": (lambda m: theory.regret_bound(bough.GaussianModel(m.tree, [0.0, 0.0]), 10), "length 2"),
    "model": (lambda _: theory.uniform_regret("x", 10), "model is a str"),
    "action": (lambda m: theory.variance_decomposition(bough.Posterior(m), 0), "not an action"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused(what):
    with pytest.raises((ValueError, KeyError)) as caught:
        BAD[what][0](bough.problems.constant(2, 2))
    assert BAD[what][1] in str(caught.value)


def test_the_theory_is_for_actions_that_stand_still():
    with pytest.raises(ValueError, match="drift=9"):
        bough.theory.regret_bound(bough.GaussianModel(bough.Tree.balanced(2, 2), drift=9.0), rounds=10)
