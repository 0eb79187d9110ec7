"""Batches that leave settling for later: a stream of them, then `settle`, is what one batch is."""

import numpy as np
import pytest

import bough

TREE = bough.Tree.balanced(4, 3)
MODELS = {
    "gaussian": bough.GaussianModel(TREE, 0.3),
    "gaussian in contexts": bough.GaussianModel(TREE, np.zeros(3)),
    "clicks": bough.BernoulliModel(TREE, -1.0, 0.7),
    "counts": bough.PoissonModel(TREE, 0.5, 0.4),
}
COUNTED = ("clicks", "counts")


def log_of(model, n, seed):
    """Actions, rewards, and what else `update` takes of them."""
    rng = np.random.default_rng(seed)
    actions = rng.choice(TREE.leaves, n)
    if isinstance(model, bough.GaussianModel):
        contexts = None if model.is_scalar else rng.normal(size=(n, model.dim))
        return actions, rng.normal(size=n), {} if contexts is None else {"context": contexts}
    sizes = rng.integers(1, 6, n).astype(float)
    if isinstance(model, bough.PoissonModel):
        return actions, rng.poisson(sizes).astype(float), {"exposure": sizes}
    return actions, rng.binomial(sizes.astype(int), 0.3).astype(float), {"trials": sizes}


def in_batches(posterior, log, size, **more):
    actions, rewards, rest = log
    for start in range(0, len(rewards), size):
        some = slice(start, start + size)
        posterior.update(actions[some], rewards[some], **{name: column[some] for name, column in rest.items()}, **more)


def assert_same(posterior, other, tolerance):
    np.testing.assert_allclose(posterior.mean, other.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(posterior.covariance, other.covariance, rtol=tolerance, atol=tolerance)
    assert posterior.log_evidence() == pytest.approx(other.log_evidence(), rel=tolerance, abs=tolerance)
    assert posterior.n_observations == other.n_observations


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("kind", MODELS)
def test_a_stream_of_batches_settled_in_the_end_is_what_one_batch_is(kind, size):
    model, tolerance = MODELS[kind], 1e-6 if kind in COUNTED else 1e-9
    log = log_of(model, 300, seed=1)
    whole, stream = bough.Posterior(model), bough.Posterior(model)
    in_batches(whole, log, 300)
    in_batches(stream, log, size, settle=False)
    stream.settle()
    assert_same(stream, whole, tolerance)


@pytest.mark.parametrize("kind", MODELS)
def test_rewards_that_fade_between_batches_are_those_that_fade_in_one(kind):
    model, tolerance = MODELS[kind], 1e-6 if kind in COUNTED else 1e-9
    actions, rewards, rest = log_of(model, 120, seed=2)
    times = np.repeat([0.0, 1.0, 2.5, 4.0], 30)
    whole, stream = (bough.Posterior(model, half_life=3.0) for _ in range(2))
    whole.update(actions, rewards, **rest, at=times)
    for batch in np.split(np.arange(120), 4):
        some = {name: column[batch] for name, column in rest.items()}
        stream.update(actions[batch], rewards[batch], **some, at=float(times[batch[0]]), settle=False)
        if batch[0] == 30:  # what has faded is taken in where something is read
            stream.mean  # noqa: B018
    for posterior in (whole, stream):
        posterior.now = 5.0
        posterior.settle()
    np.testing.assert_allclose(stream.mean, whole.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(stream.covariance, whole.covariance, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_taken_back_and_what_comes_summed_settle_later_as_well(kind):
    model, tolerance = MODELS[kind], 1e-6 if kind in COUNTED else 1e-9
    actions, rewards, rest = log_of(model, 60, seed=3)
    whole, stream = bough.Posterior(model), bough.Posterior(model)
    whole.update(actions, rewards, **rest)
    first = slice(0, 20)
    stream.update(actions[first], rewards[first], **{n: c[first] for n, c in rest.items()}, settle=False)
    sizes = rest.get("trials", rest.get("exposure"))
    more = {} if sizes is None else {"exposure" if kind == "counts" else "trials": sizes[20:]}
    contexts = None if "context" not in rest else rest["context"][20:]
    stream.absorb(bough.Statistics.from_rows(actions[20:], rewards[20:], contexts, **more), settle=False)
    extra = {name: column[:5] for name, column in rest.items()}
    stream.update(actions[:5], rewards[:5], **extra, settle=False)
    stream.retract(actions[:5], rewards[:5], **extra)
    stream.settle()
    np.testing.assert_allclose(stream.mean, whole.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(stream.covariance, whole.covariance, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", COUNTED)
def test_without_settling_a_batch_leaves_the_sites_of_other_actions_alone(kind):
    model = MODELS[kind]
    agent = bough.HierTS(model, seed=0)
    first, second = TREE.leaves[:2].tolist(), TREE.leaves[2:4].tolist()
    agent.update(first, [1, 0])
    engine = agent.posterior._engine
    before = {node: engine.table[engine._row_of(node)].copy() for node in first}
    agent.update(second, [1, 1], settle=False)
    for node in first:
        np.testing.assert_array_equal(engine.table[engine._row_of(node)], before[node])
    agent.posterior.settle()
    for node in first:
        assert (engine.table[engine._row_of(node)] != before[node]).any()
