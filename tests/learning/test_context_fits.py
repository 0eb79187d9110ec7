"""Priors of clicks and counts in contexts: rows that repeat, how closely the search settles them, and its report."""

import numpy as np
import pytest
from scipy.special import expit

import bough
from bough.learning import count_evidence
from bough.learning.count_evidence import VectorSiteEvidence

KINDS = {"bernoulli": bough.BernoulliModel, "poisson": bough.PoissonModel}
TREE = bough.Tree.balanced(5, 2)


def log_of(kind, n, seed, dim=3):
    rng = np.random.default_rng(seed)
    actions, contexts = rng.choice(TREE.leaves, n), np.column_stack([np.ones(n), rng.normal(size=(n, dim - 1))])
    return drawn_log(kind, actions, contexts, rng)


def drawn_log(kind, actions, contexts, rng):
    dim = contexts.shape[1]
    truth = KINDS[kind](TREE, np.append(-1.0, np.zeros(dim - 1)), bough.by_depth([0.0, 0.5, 0.3]))
    score = np.einsum("nd,nd->n", truth.draw(rng)[actions], contexts)
    rewards = rng.random(len(score)) < expit(score) if kind == "bernoulli" else rng.poisson(np.exp(score))
    return bough.Observations(actions, rewards.astype(float), contexts)


@pytest.mark.parametrize("structure", ["full", "diagonal", "scaled"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_settling_no_further_than_the_search_asks_changes_variances_by_less_than_a_thousandth(
    kind, structure, monkeypatch
):
    """Beside fits whose every evaluation settles to 1e-9, and whose search ends at a slope of 1e-7."""
    log = log_of(kind, 1_500, seed=1)
    quick = bough.fit_prior(TREE, log, model=KINDS[kind], structure=structure)
    monkeypatch.setattr(count_evidence, "_STILL", 1e-9)
    monkeypatch.setattr(count_evidence, "_NEAR", 0.0)
    monkeypatch.setattr(VectorSiteEvidence, "flat", 1e-7)
    strict = bough.fit_prior(TREE, log, model=KINDS[kind], structure=structure)
    assert quick.converged
    assert strict.converged
    assert quick.log_evidence == pytest.approx(strict.log_evidence, abs=1e-3)
    np.testing.assert_allclose(quick.mean, strict.mean, atol=1e-4)
    for name in ("depth 1", "depth 2"):
        size = np.abs(strict.covariances[name]).max()
        np.testing.assert_allclose(quick.covariances[name], strict.covariances[name], atol=1e-3 * size)
        for end in ("low", "high"):
            ends = (getattr(fit.estimates[name], end) for fit in (quick, strict))
            assert next(ends) == pytest.approx(next(ends), rel=5e-3)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fit_of_rows_that_repeat_is_that_of_their_totals(kind):
    rng, contexts = np.random.default_rng(2), np.array([[1.0, 0.3], [1.0, -1.2], [0.5, 0.0], [2.0, 1.0]])
    cells = rng.permutation(np.arange(2_000) % 100)  # every action is 20 times in every context
    log = drawn_log(kind, TREE.leaves[cells // 4], contexts[cells % 4], rng)
    totals, sizes = np.bincount(cells, log.reward), {KINDS[kind].kind.exposure_word: np.full(100, 20.0)}
    summed = bough.Observations(TREE.leaves[np.arange(100) // 4], totals, contexts[np.arange(100) % 4], **sizes)
    one, other = (bough.fit_prior(TREE, rows, model=KINDS[kind]) for rows in (log, summed))
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-7)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-7)
    for name in ("depth 1", "depth 2"):
        np.testing.assert_allclose(one.covariances[name], other.covariances[name], rtol=1e-6)


def test_a_context_of_ones_is_the_k_armed_fit():
    log = log_of("bernoulli", 600, seed=3, dim=1)
    one = bough.fit_prior(TREE, log, model=bough.BernoulliModel)
    other = bough.fit_prior(TREE, bough.Observations(log.action, log.reward), model=bough.BernoulliModel)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-5)
    assert one.mean[0] == pytest.approx(other.mean, abs=1e-4)
    for name in ("depth 1", "depth 2"):
        assert one.covariances[name][0, 0] == pytest.approx(other.covariances[name], rel=1e-3)


@pytest.mark.parametrize("penalty", [2.0, None])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_contexts_with_hardly_a_reward_are_fitted_or_refused(kind, penalty):
    """Of 20 sparse logs none may end in anything but a finite fit or a clear refusal."""
    fits, refusals = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(10.0 ** rng.uniform(1.0, 2.5))
        contexts = np.column_stack([np.ones(n), 10.0 ** rng.uniform(-1.0, 1.0) * rng.normal(size=n)])
        log = bough.Observations(rng.choice(TREE.leaves, n), (rng.random(n) < 0.05).astype(float), contexts)
        try:
            fits.append(bough.fit_prior(TREE, log, model=KINDS[kind], penalty=penalty))
        except ValueError as error:
            refusals.append(str(error))
    assert all("give" in text or "all are the same" in text for text in refusals)
    assert len(fits) > 10
    assert all(np.isfinite(fit.mean).all() and np.isfinite(fit.log_evidence) for fit in fits)


@pytest.mark.parametrize("dim", [None, 2])
@pytest.mark.parametrize("model", [bough.GaussianModel, bough.BernoulliModel])
def test_progress_counts_every_sweep_and_changes_nothing(model, dim, monkeypatch):
    log = log_of("bernoulli", 400, seed=4, dim=dim or 1)
    log = bough.Observations(log.action, log.reward, None if dim is None else log.context)
    sweeps, seen = [], []
    swept = VectorSiteEvidence._swept
    monkeypatch.setattr(VectorSiteEvidence, "_swept", lambda *given: sweeps.append(1) or swept(*given))
    fit = bough.fit_prior(TREE, log, model=model, progress=seen.append)
    assert set(seen) == {1}
    if dim is not None and model is bough.BernoulliModel:
        assert len(seen) == len(sweeps) > 30  # before the search, in it, and for the intervals
    assert fit.log_evidence == bough.fit_prior(TREE, log, model=model).log_evidence
