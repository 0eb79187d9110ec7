"""Gaussian rewards, where every quantity is exact: against one dense factorisation, gpboost, and simulation."""

import numpy as np
import pytest

import bough
from cases import SHAPES, make_case
from test_calibration import TREE, VARIANCES, p_value, ranks
from test_exact import largest_within_node, node_scale, oracle


def test_the_posterior_against_one_dense_factorisation(figures):
    means, covariances, evidences = [], [], []
    for seed in range(2_000):
        rng = np.random.default_rng(seed)
        dim = (None, 1, 2, 3, 4, 5)[seed % 6]
        case = make_case(
            dim, SHAPES[rng.integers(len(SHAPES))], int(rng.integers(2, 10)), int(rng.integers(1, 31)), rng
        )
        posterior, dense = case.posterior(), oracle(case)
        deviation = node_scale(dense)
        known = deviation == 0.0
        np.testing.assert_array_equal(posterior.covariance[known], 0.0)
        unit = largest_within_node(dense.mean) + deviation
        means.append((largest_within_node(posterior.mean - dense.mean) / unit).max())
        off = largest_within_node(posterior.covariance - dense.covariance)
        covariances.append((off[~known] / deviation[~known] ** 2).max(initial=0.0))
        exact = dense.log_evidence()
        evidences.append(abs(posterior.log_evidence() - exact) / max(1.0, abs(exact)))
    for what, errors in (("means", means), ("covariances", covariances), ("log evidence", evidences)):
        figures.at_most(
            f"Gaussian rewards, 2,000 random trees, d from 1 to 5, error of {what}: worst", max(errors), 1e-8
        )


def test_calibration(figures):
    """The rank of the truth among posterior draws is uniform, although HierTS chose what it learned from."""
    model = bough.GaussianModel(TREE, covariance=bough.by_node(VARIANCES))
    found = [ranks(model, model, seed) for seed in range(1, 7)]
    worst = min(p_value(np.concatenate([one[name] for one in found])) for name in found[0])
    figures.at_least("36,000 runs of HierTS, ranks of the truth, five quantities: smallest p-value", worst, 1e-4)
    wrong = VARIANCES.copy()
    wrong[3] *= 0.9**2
    believed = bough.GaussianModel(TREE, covariance=bough.by_node(wrong))
    worst = min(p_value(rank) for rank in ranks(model, believed, seed=1).values())
    figures.at_most(
        "6,000 runs with one standard deviation believed 10% too small, which must show: the same", worst, 1e-4
    )


@pytest.mark.parametrize("method", ["cholesky", "iterative"])
def test_the_fit_beside_gpboost(figures, method):
    """gpboost is exact with "cholesky"; with "iterative", its default for such data, it approximates."""
    pytest.importorskip("gpboost")
    from nested import by_gpboost, nested_log, variances

    tree, actions, rewards = nested_log()
    fit = bough.fit_prior(tree, bough.Statistics.from_rows(actions, rewards), penalty=None)
    _, theirs, log_likelihood = by_gpboost(tree, actions, rewards, method)
    apart, less = np.abs(theirs / variances(fit) - 1.0).max(), abs(fit.log_evidence - log_likelihood)
    exact, name = method == "cholesky", f"fit, 10^4 actions, 5 x 10^4 rows, gpboost ({method})"
    figures.at_most(f"{name}: difference of variances, relative", apart, 1e-4 if exact else None)
    figures.at_most("  the same: difference of log likelihoods", less, 1e-6 if exact else None)
