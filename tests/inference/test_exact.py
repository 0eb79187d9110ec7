"""The engine against the dense oracle, the oracle against 80-digit algebra, and both against the paper."""

import numpy as np
import pytest
from hypothesis import given, settings

import bough
from bough.inference.normals import standard_normals
from bough.inference.oracles.dense import DensePosterior
from cases import Case, cases, make_case
from naive import paper_linear, paper_scalar, textbook

TOLERANCE = 1e-8


def node_scale(dense: DensePosterior) -> np.ndarray:
    """(V,) the largest posterior standard deviation within each node: the natural unit of its parameter."""
    covariance = dense.covariance
    variance = covariance if covariance.ndim == 1 else np.einsum("nii->ni", covariance).max(axis=1)
    return np.sqrt(variance)


def oracle(case: Case) -> DensePosterior:
    dense = DensePosterior(case.model)
    dense.update(case.actions, case.rewards, case.contexts)
    return dense


def largest_within_node(values: np.ndarray) -> np.ndarray:
    return np.abs(values).reshape(len(values), -1).max(axis=1)


def check_case(case: Case) -> None:
    posterior, dense = case.posterior(), oracle(case)
    n_nodes, d = case.model.tree.n_nodes, case.model.dim
    deviation = node_scale(dense)

    off = largest_within_node(posterior.mean - dense.mean)
    assert (off <= TOLERANCE * (largest_within_node(dense.mean) + deviation)).all()

    off = largest_within_node(posterior.covariance - dense.covariance)
    assert (off <= TOLERANCE * deviation**2).all()

    assert posterior.log_evidence() == pytest.approx(dense.log_evidence(), rel=TOLERANCE, abs=TOLERANCE)

    centre = posterior.from_normals(np.zeros_like(posterior.mean))
    units = np.eye(n_nodes * d).reshape(-1, *centre.shape)
    root = np.array([(posterior.from_normals(unit) - centre).ravel() for unit in units]).T
    scale = np.repeat(deviation, d)
    assert (np.abs(root @ root.T - dense.joint_covariance) <= sampling_tolerance(scale, centre)).all()

    for node in range(n_nodes):
        fast, (gain, offset, covariance) = posterior.conditional(node), dense.conditional(node)
        largest = float(np.max(np.abs(covariance)))
        assert np.max(np.abs(fast.gain - gain)) <= TOLERANCE * max(1.0, np.max(np.abs(gain)))
        assert np.max(np.abs(fast.offset - offset)) <= TOLERANCE * (np.max(np.abs(offset)) + np.sqrt(largest))
        assert np.max(np.abs(fast.covariance - covariance)) <= TOLERANCE * largest


def sampling_tolerance(scale: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """A column of the root is the difference of two draws, so it carries the rounding of the mean as well."""
    rounding = np.finfo(float).eps * np.abs(centre).ravel()
    return TOLERANCE * np.outer(scale, scale) + 100 * len(scale) * (
        np.outer(scale, rounding) + np.outer(rounding, scale) + np.outer(rounding, rounding)
    )


@settings(max_examples=600)
@given(cases(dims=(None,)))
def test_numbers_agree_with_the_oracle(case):
    check_case(case)


@settings(max_examples=600)
@given(cases(dims=(1, 2, 3, 4, 5), most_nodes=7))
def test_vectors_agree_with_the_oracle(case):
    check_case(case)


@pytest.mark.parametrize("dim", [None, 1, 3])
@pytest.mark.parametrize("shape", ["single", "chain", "star", "random"])
def test_the_oracle_agrees_with_eighty_digit_algebra(dim, shape):
    rng = np.random.default_rng([dim or 0, len(shape)])
    for _ in range(3):
        case = make_case(dim, shape, 4, 6, rng)
        dense = oracle(case)
        mean, covariance, log_evidence = textbook(case.model, case.actions, case.rewards, case.contexts)
        scale = np.repeat(node_scale(dense), case.model.dim)
        np.testing.assert_array_less(np.abs(dense.mean.ravel() - mean), 1e-9 * (np.abs(mean).max() + scale) + 1e-300)
        assert (np.abs(dense.joint_covariance - covariance) <= 1e-9 * np.outer(scale, scale)).all()
        assert dense.log_evidence() == pytest.approx(log_evidence, rel=1e-10, abs=1e-10)


def moderate_model(dim: int | None, rng: np.random.Generator) -> bough.GaussianModel:
    tree = bough.Tree.from_parents([-1, 0, 0, 0, 1, 1, 2, 4, 4])
    if dim is None:
        return bough.GaussianModel(tree, 0.5, bough.by_node(rng.uniform(0.2, 3.0, tree.n_nodes)), 0.7)
    roots = rng.normal(size=(tree.n_nodes, dim, dim))
    return bough.GaussianModel(tree, rng.normal(size=dim), bough.by_node(roots @ roots.transpose(0, 2, 1)), 0.7)


def test_the_papers_scalar_formulas_agree_where_their_inverses_exist():
    rng = np.random.default_rng(0)
    model = moderate_model(None, rng)
    for n in (1, 3, 20):
        actions = rng.choice(np.asarray(model.tree.actions), n).tolist()
        rewards = rng.normal(size=n)
        posterior = bough.Posterior(model)
        posterior.update(actions, rewards)
        answers = paper_scalar(model, actions, rewards)
        assert len(answers) >= 2
        for node, expected in answers.items():
            np.testing.assert_allclose(posterior.conditional(node), expected, rtol=1e-10, atol=1e-12)


def test_the_papers_linear_formulas_agree_with_the_index_corrected():
    rng = np.random.default_rng(1)
    model = moderate_model(3, rng)
    actions = np.repeat(np.asarray(model.tree.actions), 5).tolist()  # enough for every inverse to exist
    rewards, contexts = rng.normal(size=len(actions)), rng.normal(size=(len(actions), 3))
    posterior = bough.Posterior(model)
    posterior.update(actions, rewards, contexts)
    for node, expected in paper_linear(model, actions, rewards, contexts).items():
        for ours, theirs in zip(posterior.conditional(node), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dim", [None, 2])
def test_a_unary_chain_acts_as_one_node_with_the_variances_added(dim):
    mean = 0.0 if dim is None else np.zeros(dim)
    chain = bough.GaussianModel(bough.Tree.from_parents([-1, 0, 1, 2]), mean, bough.by_depth([1.0, 0.5, 0.25, 2.0]))
    link = bough.GaussianModel(bough.Tree.from_parents([-1, 0]), mean, bough.by_depth([1.0, 2.75]))
    contexts = None if dim is None else [[1.0, 2.0], [0.5, -1.0]]
    long, short = bough.Posterior(chain), bough.Posterior(link)
    long.update([3, 3], [1.0, 2.0], contexts)
    short.update([1, 1], [1.0, 2.0], contexts)
    np.testing.assert_allclose(long.mean[[0, 3]], short.mean, rtol=1e-12)
    np.testing.assert_allclose(long.covariance[[0, 3]], short.covariance, rtol=1e-12)
    assert long.log_evidence() == pytest.approx(short.log_evidence(), rel=1e-12)


def test_a_sample_without_data_is_a_draw_from_the_prior():
    rng = np.random.default_rng(2)
    for dim in (None, 3):
        model = moderate_model(dim, rng)
        np.testing.assert_allclose(bough.Posterior(model).sample(7), model.draw(7), rtol=1e-12, atol=1e-14)


def test_many_draws_have_the_posterior_mean_and_covariance():
    # 20,000 draws; each entry within 5 standard errors: false-alarm rate below 1e-4 for the whole test.
    rng = np.random.default_rng(3)
    posterior = bough.Posterior(moderate_model(None, rng))
    posterior.update(rng.choice(np.asarray(posterior.model.tree.actions), 20), rng.normal(size=20))
    draws = posterior.sample(4, size=20_000)
    deviation = np.sqrt(posterior.covariance)
    assert (np.abs(draws.mean(axis=0) - posterior.mean) <= 5 * deviation / np.sqrt(20_000)).all()
    assert (np.abs(draws.var(axis=0) - deviation**2) <= 5 * deviation**2 * np.sqrt(2 / 20_000)).all()


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.SFC64, np.random.MT19937])
def test_compiled_normals_are_numpys_own_stream(bits):
    ours, theirs = np.random.Generator(bits(3)), np.random.Generator(bits(3))
    np.testing.assert_allclose(standard_normals(ours, (1000, 300)), theirs.standard_normal((1000, 300)), rtol=1e-14)
    assert ours.random() == theirs.random()
