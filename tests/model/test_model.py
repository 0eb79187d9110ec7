"""Covariances in every form, and the transformations that make the baselines."""

import json
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings

import bough
from cases import cases

TREE = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])  # '', tea, coffee, tea/green, tea/black


def test_covariances_go_by_depth_by_height_by_node_or_are_shared():
    def variances(covariance):
        model = bough.GaussianModel(TREE, covariance=covariance)
        return model.classes.table[model.classes.of_node].tolist()

    assert variances(3.0) == [3.0] * 5
    assert variances(bough.by_depth([4, 2, 1])) == [4, 2, 2, 1, 1]
    assert variances(bough.by_height([1, 2, 4])) == [4, 2, 1, 1, 1]
    assert variances(bough.by_node([5, 4, 3, 2, 1])) == [5, 4, 3, 2, 1]
    assert variances(bough.by_node({"": 0, "tea": 1, "coffee": 2, "tea/green": 3, "tea/black": 4})) == [0, 1, 2, 3, 4]
    assert variances(bough.by_node({"coffee": 9}, default=1)) == [1, 1, 9, 1, 1]


def test_a_number_is_a_multiple_of_the_identity_beside_full_matrices():
    full = np.array([[2.0, 1.0], [1.0, 3.0]])
    model = bough.GaussianModel(TREE, [0.0, 0.0], bough.by_depth([4.0, full, 0.0]))
    assert model.dim == 2
    np.testing.assert_array_equal(model.classes.table, [4.0 * np.eye(2), full, np.zeros((2, 2))])
    np.testing.assert_allclose(model.marginal_covariance[3], 4.0 * np.eye(2) + full)


def test_a_singular_covariance_draws_nothing_in_its_empty_direction():
    direction = np.array([1.0, 2.0, -1.0])
    model = bough.GaussianModel(TREE, np.zeros(3), np.outer(direction, direction))
    draw = model.draw(0)
    np.testing.assert_allclose(np.cross(draw, direction), 0.0, atol=1e-12)
    assert np.abs(draw).max() > 0.1


def test_covariances_are_stored_by_class_and_not_by_node():
    model = bough.GaussianModel(bough.Tree.balanced(10, 5), np.zeros(8), bough.by_depth(np.arange(6.0)))
    assert model.classes.table.shape == (6, 8, 8)
    assert model.flat().classes.table.shape == (2, 8, 8)
    assert model.independent().classes.table.shape == (2, 8, 8)


@settings(max_examples=100)
@given(cases())
def test_flat_and_independent_keep_every_actions_prior_marginal(case):
    model = case.model
    ours = model.marginal_covariance[model.tree.leaves]
    for other in (model.flat(), model.independent()):
        assert other.tree.actions == model.tree.actions
        theirs = other.marginal_covariance[other.tree.leaves]
        np.testing.assert_allclose(theirs, ours, rtol=1e-12, atol=1e-12 * np.abs(ours).max())
        assert other.noise_variance == model.noise_variance
        np.testing.assert_array_equal(other.mean, model.mean)
    if model.tree.height:
        assert not model.independent().classes.table[0].any()
        root = model.classes.table[model.classes.of_node[0]]
        np.testing.assert_array_equal(model.flat().classes.table[0], root)


def test_flat_on_a_tree_of_height_one_is_the_model_itself():
    model = bough.GaussianModel(bough.Tree.balanced(4, 1), 0.5, bough.by_depth([2.0, 3.0]))
    flat = model.flat()
    assert flat.tree is model.tree
    np.testing.assert_array_equal(flat.marginal_covariance, model.marginal_covariance)


def test_draws_have_the_prior_marginals():
    # 20,000 draws of 5 nodes; variances within 5 standard errors: false-alarm rate below 1e-5.
    model = bough.GaussianModel(TREE, 2.0, bough.by_depth([4.0, 2.0, 1.0]))
    rng = np.random.default_rng(1)
    draws = np.array([model.draw(rng) for _ in range(20_000)])
    assert (np.abs(draws.var(axis=0) / model.marginal_covariance - 1) < 5 * np.sqrt(2 / 20_000)).all()
    assert (np.abs(draws.mean(axis=0) - 2.0) < 5 * np.sqrt(model.marginal_covariance / 20_000)).all()


def test_a_vector_of_length_one_is_a_contextual_model():
    model = bough.GaussianModel(TREE, [0.0])
    assert model.dim == 1
    assert not model.is_scalar
    assert model.draw(0).shape == (5, 1)
    posterior = bough.Posterior(model)
    posterior.update("coffee", 1.0, [2.0])
    assert posterior.covariance.shape == (5, 1, 1)


def model(**changed):
    return bough.GaussianModel(TREE, **changed)


BAD = {
    "tree": (lambda: bough.GaussianModel("tree"), "tree is a str"),
    "mean": (lambda: model(mean="x"), "mean is 'x'"),
    "number in text": (lambda: model(mean="0"), "mean is '0'"),
    "list of variances": (lambda: model(covariance=[4.0, 2.0, 1.0]), "or by_depth, by_height or by_node"),
    "mean shape": (lambda: model(mean=np.zeros((2, 2))), "mean has shape (2, 2)"),
    "empty mean": (lambda: model(mean=[]), "mean has shape (0,)"),
    "infinite mean": (lambda: model(mean=np.inf), "mean is inf"),
    "noise zero": (lambda: model(noise_variance=0.0), "noise_variance is 0.0"),
    "noise negative": (lambda: model(noise_variance=-1), "noise_variance is -1"),
    "noise infinite": (lambda: model(noise_variance=np.inf), "noise_variance is inf"),
    "noise nan": (lambda: model(noise_variance=np.nan), "noise_variance is nan"),
    "noise of each action": (lambda: model(noise_variance=np.ones(200)), "..., 1., 1., 1.]); give a positive"),
    "noise text": (lambda: model(noise_variance="low"), "noise_variance is 'low'"),
    "negative variance": (lambda: model(covariance=-1.0), "-1.0; a variance is zero or positive"),
    "nan variance": (lambda: model(covariance=np.nan), "covariance is nan"),
    "negative at a depth": (lambda: model(covariance=bough.by_depth([1, -2, 1])), "covariance at depth 1 is -2"),
    "too few depths": (lambda: model(covariance=bough.by_depth([1, 2])), "by_depth has 2 covariances"),
    "too many heights": (lambda: model(covariance=bough.by_height([1] * 4)), "by_height has 4 covariances"),
    "not a list": (lambda: model(covariance=bough.by_depth(3.0)), "by_depth was given 3.0"),
    "too few nodes": (lambda: model(covariance=bough.by_node([1, 2])), "by_node has 2 covariances"),
    "a node left out": (lambda: model(covariance=bough.by_node({"": 1.0})), "leaves out 4 of 5 nodes, 'tea'"),
    "an unknown node": (lambda: model(covariance=bough.by_node({"milk": 1.0}, default=1.0)), "unknown name 'milk'"),
    "default with an array": (lambda: bough.by_node([1.0], default=2.0), "default goes with a mapping"),
    "matrix for numbers": (lambda: model(covariance=np.eye(2)), "shape (2, 2); give a number"),
    "matrix of a wrong size": (lambda: model(mean=[0, 0], covariance=np.eye(3)), "shape (3, 3)"),
    "not symmetric": (lambda: model(mean=[0, 0], covariance=[[1, 2], [0, 1]]), "not symmetric"),
    "not semi-definite": (lambda: model(mean=[0, 0], covariance=[[1, 2], [2, 1]]), "smallest eigenvalue is -1"),
    "text": (lambda: model(covariance="wide"), "'wide'; give a number"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_model_is_refused_by_a_text_that_names_what_is_wrong(what):
    build, text = BAD[what]
    with pytest.raises((ValueError, KeyError)) as caught:
        build()
    assert text in str(caught.value)


def test_drift_is_a_positive_half_life_of_a_k_armed_model():
    assert bough.GaussianModel(TREE).drift is None
    assert bough.GaussianModel(TREE, drift=90).drift_half_life == 90.0
    weeks = bough.GaussianModel(TREE, drift=timedelta(weeks=2))
    assert weeks.drift_half_life == 14 * 86400.0
    assert "drift=datetime.timedelta(days=14)" in repr(weeks)
    for wrong in (0, -1.0, float("inf"), float("nan"), "long", timedelta(0), timedelta(days=-1), [1.0]):
        with pytest.raises(ValueError, match=r"drift is .*; give a half-life"):
            bough.GaussianModel(TREE, drift=wrong)
    with pytest.raises(ValueError, match="only the actions of a K-armed model drift"):
        bough.GaussianModel(TREE, mean=[0.0], drift=3.0)
    for model in (bough.BernoulliModel, bough.PoissonModel):
        with pytest.raises(TypeError):
            model(TREE, drift=3.0)


def test_drift_is_part_of_the_prior():
    still, slow = bough.GaussianModel(TREE), bough.GaussianModel(TREE, drift=3.0)
    assert slow.is_same_prior(bough.GaussianModel(TREE, drift=3))
    assert not slow.is_same_prior(still)
    assert not still.is_same_prior(slow)
    assert slow.flat().drift == slow.independent().drift == 3.0


def test_files_keep_drift_and_have_no_word_of_it_where_there_is_none(tmp_path):
    path = tmp_path / "model.bough"
    for drift in (None, 3.5, timedelta(hours=7)):
        bough.GaussianModel(TREE, drift=drift).save(path)
        assert bough.GaussianModel.load(path).drift == drift
        with np.load(path) as archive:
            header = json.loads(archive["header"].tobytes())
        assert ("drift" in header) == (drift is not None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drift": "long"}, "drift is 'long'; expected a number"),
        ({"drift": True}, "drift is True; expected a number"),
        ({"drift": -1.0}, "drift is -1.0; give a half-life"),
        ({"drift": {"seconds": 1e300}}, "that is too long"),
        ({"drift": {"days": 1.0}}, "expected a number, or one of seconds"),
    ],
)
def test_odd_drift_in_a_file_is_refused(change, said, tmp_path):
    path = tmp_path / "model.bough"
    bough.GaussianModel(TREE).save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = {**json.loads(arrays["header"].tobytes()), **change}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    with pytest.raises(ValueError, match=said):
        bough.GaussianModel.load(path)
