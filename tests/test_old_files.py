"""Files that earlier versions wrote still load, and say what they said then."""

import json

import numpy as np
import pytest

import bough
from places import FIXTURES

FILES = FIXTURES / "version1"
EXPECTED = json.loads((FILES / "expected.json").read_text())

# What was observed once more after the file was written.
ACTIONS = ["green", "black", "espresso", "espresso"]
CLICKS, TRIALS = [1, 0, 3, 1], np.array([1, 1, 5, 2])
REWARDS = [-0.802, -1.324, -0.248, 0.42]
CONTEXTS = [[-0.785, 0.749, 1.635], [0.273, -1.233, -0.958], [1.6, 0.203, -1.732], [-0.084, -1.163, -0.629]]
MORE = {
    "gaussian": {"reward": REWARDS},
    "gaussian-vector": {"reward": REWARDS, "context": CONTEXTS},
    "gaussian-vector-singular": {"reward": REWARDS, "context": CONTEXTS},
    "bernoulli": {"reward": CLICKS, "trials": TRIALS},
    "poisson": {"reward": CLICKS, "exposure": TRIALS * 0.5},
    "bernoulli-vector": {"reward": CLICKS, "trials": TRIALS, "context": CONTEXTS},
    "poisson-vector": {"reward": CLICKS, "context": CONTEXTS},
}


@pytest.mark.parametrize("which", EXPECTED)
def test_a_posterior_of_the_first_version_loads(which):
    posterior, expected = bough.Posterior.load(FILES / f"posterior-{which}.bough"), EXPECTED[which]
    np.testing.assert_allclose(posterior.mean, expected["mean"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(posterior.covariance, expected["covariance"], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(posterior.count, expected["count"])
    assert posterior.log_evidence() == pytest.approx(expected["log_evidence"], rel=1e-9)


@pytest.mark.parametrize("which", MORE)
def test_a_posterior_of_the_first_version_goes_on(which):
    posterior, expected = bough.Posterior.load(FILES / f"posterior-{which}.bough"), EXPECTED[which]
    posterior.update(ACTIONS, **MORE[which])
    np.testing.assert_allclose(posterior.mean, expected["mean_after"], rtol=1e-9, atol=1e-9)
    assert posterior.log_evidence() == pytest.approx(expected["log_evidence_after"], rel=1e-9)


@pytest.mark.parametrize("which", MORE)
def test_what_an_old_file_knows_is_all_in_a_new_one(which, tmp_path):
    posterior = bough.Posterior.load(FILES / f"posterior-{which}.bough")
    posterior.save(tmp_path / "new.bough")
    again, expected = bough.Posterior.load(tmp_path / "new.bough"), EXPECTED[which]
    np.testing.assert_allclose(again.mean, expected["mean"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again.covariance, expected["covariance"], rtol=1e-9, atol=1e-9)
    assert again.log_evidence() == pytest.approx(expected["log_evidence"], rel=1e-9)
    again.update(ACTIONS, **MORE[which])
    np.testing.assert_allclose(again.mean, expected["mean_after"], rtol=1e-9, atol=1e-9)
    again.save(tmp_path / "newer.bough")
    newer = bough.Posterior.load(tmp_path / "newer.bough")
    np.testing.assert_allclose(newer.mean, expected["mean_after"], rtol=1e-9, atol=1e-9)
    assert newer.log_evidence() == pytest.approx(expected["log_evidence_after"], rel=1e-9)


def test_messages_that_say_more_than_the_evidence_are_not_made_again_from_it():
    posterior = bough.Posterior.load(FILES / "posterior-gaussian-vector-singular.bough")
    before = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    for _ in range(3):  # with rounding on the way to the root that elsewhere has messages made again
        posterior.update("green", 1e9, [1e6, -1e6, 1e6])
    after = np.diagonal(posterior.covariance, axis1=1, axis2=2)
    assert (after <= before * (1.0 + 1e-9) + 1e-9).all()  # whatever is observed, nothing is forgotten


@pytest.mark.parametrize("which", ["gaussian", "bernoulli", "poisson"])
def test_a_posterior_of_the_first_version_without_contexts_has_its_sums(which):
    posterior = bough.Posterior.load(FILES / f"posterior-{which}.bough")
    again = bough.Posterior(posterior.model)
    again.absorb(posterior.statistics)
    np.testing.assert_allclose(again.mean, posterior.mean, rtol=1e-7)
    np.testing.assert_allclose(again.covariance, posterior.covariance, rtol=1e-7)


def test_a_model_of_the_first_version_loads():
    model = bough.GaussianModel.load(FILES / "model-gaussian.bough")
    assert (model.mean, model.noise_variance) == (0.3, 0.4)
    assert model.tree.actions == ["green", "black", "white", "espresso", "filter", "brew"]
    assert model.marginal_covariance[model.tree.index("espresso")] == pytest.approx(1.875)


def test_statistics_of_the_first_version_load():
    statistics = bough.Statistics.load(FILES / "statistics.bough")
    assert statistics.actions.tolist() == ["green", "black", "espresso", "filter"]
    assert statistics.count.tolist() == [3.0, 1.0, 2.0, 1.0]
    assert statistics.sum_y.tolist() == [-1.245, -1.324, 0.172, 1.136]
    assert statistics.sum_xy.shape == (4, 3)
    assert np.trace(statistics.sum_xx[1]) == pytest.approx(2.512582)
