"""Every kind of reward goes through every operation; a new line in the registry is tested here without another word."""

import numpy as np
import pytest

import bough
from bough.inference.kernels import likelihoods as kernels
from bough.inference.oracles.grid import GridPosterior
from bough.model.kinds import MODELS
from bough.model.likelihood import Likelihood

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": {"hot": ["espresso"], "cold": ["brew"]}})
POLICIES = (bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy)


def model_of(name: str, dim: int | None = None) -> bough.GaussianModel:
    return MODELS[name](TREE, -0.5 if dim is None else np.full(dim, -0.2), 0.3)


def draw_rows(model, n: int, seed: int = 0) -> dict:
    """A log of rewards that the model itself could have made."""
    rng = np.random.default_rng(seed)
    actions = rng.choice(np.asarray(TREE.actions), n).tolist()
    contexts = None if model.is_scalar else rng.normal(size=(n, model.dim))
    truth = model.draw(rng)[[TREE.index(action) for action in actions]]
    means = model.mean_reward(truth if contexts is None else (truth * contexts).sum(axis=1))
    noise = model.likelihood.draw_noise(rng, n)
    rewards = [model.likelihood.reward(float(mean), float(one)) for mean, one in zip(means, noise, strict=True)]
    return {"action": actions, "reward": rewards, "context": contexts}


@pytest.fixture(params=[(name, dim) for name in MODELS for dim in (None, 2)], ids=lambda p: f"{p[0]}-{p[1]}")
def model(request):
    return model_of(*request.param)


@pytest.mark.parametrize("name", MODELS)
def test_a_kind_says_what_it_is(name):
    kind = MODELS[name].kind
    assert issubclass(kind, Likelihood)
    assert kind.name == name
    for capability in ("is_conjugate", "sums_suffice", "has_exposure", "is_log_concave"):
        assert isinstance(getattr(kind, capability), bool)
    assert kind.has_exposure == (kind.exposure_word is not None)
    assert [model.kind.code for model in MODELS.values()].count(kind.code) == 1
    likelihood = model_of(name).likelihood
    assert kind.from_parameters(likelihood.parameters()) == likelihood
    with pytest.raises(AttributeError):
        likelihood.name = "other"  # frozen


@pytest.mark.parametrize("name", MODELS)
def test_the_link_goes_up_and_back(name):
    likelihood = model_of(name).likelihood
    scores = np.linspace(-4.0, 3.0, 41)
    means = likelihood.mean_reward(scores)
    assert (np.diff(means) > 0.0).all()
    np.testing.assert_allclose([likelihood.score_of(float(mean)) for mean in means], scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(likelihood.expected_reward(scores, np.zeros(41)), means, rtol=1e-7)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    integral = (likelihood.mean_reward(scores[:, None] + np.sqrt(0.7) * nodes) * weights).sum(axis=1) / weights.sum()
    np.testing.assert_allclose(likelihood.expected_reward(scores, np.full(41, 0.7)), integral, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("variance", [0.0, 0.01, 0.7, 9.0])
def test_the_variance_of_the_mean_reward_is_that_of_a_normal_score(name, variance):
    likelihood = model_of(name).likelihood
    scores = np.linspace(-4.0, 3.0, 9)
    z = np.linspace(-12.0, 12.0, 40_001)
    weights = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    values = likelihood.mean_reward(scores[:, None] + np.sqrt(variance) * z)
    wanted = np.square(values - (values @ weights)[:, None]) @ weights
    found = likelihood.reward_variance(scores, np.full(9, variance))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_kernels_have_the_same_log_likelihood(name):
    kind = MODELS[name].kind
    if kind.is_conjugate:
        return  # its posterior is exact, and no site is ever made
    total, exposure, step = 3.0, 7.0, 1e-4
    for score in (-2.5, -0.3, 0.0, 1.2):
        partition, slope, curve = kind().log_partition(score)
        assert kernels.log_likelihood(kind.code, total, exposure, score) == pytest.approx(
            total * score - exposure * partition
        )
        first, second = kernels.slopes(kind.code, total, exposure, score)
        assert first == pytest.approx(total - exposure * slope)
        assert second == pytest.approx(-exposure * curve)
        ahead, behind = (kind().log_partition(score + by * step)[0] for by in (1, -1))
        assert slope == pytest.approx((ahead - behind) / (2.0 * step), rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_compiled_rewards_are_those_of_the_likelihood(name):
    likelihood, rng = model_of(name).likelihood, np.random.default_rng(3)
    for noise in likelihood.draw_noise(rng, 200).tolist():
        mean = float(likelihood.mean_reward(rng.normal()))
        assert kernels.drawn_reward(likelihood.code, mean, noise) == pytest.approx(likelihood.reward(mean, noise))


@pytest.mark.parametrize("name", MODELS)
def test_compiled_means_are_those_of_the_likelihood(name):
    likelihood = model_of(name).likelihood
    for score in (-4.0, -0.3, 0.0, 2.5):
        mean = kernels.mean_reward(likelihood.code, score)
        assert mean == pytest.approx(float(likelihood.mean_reward(score)), rel=1e-13)
        for variance in (0.0, 0.4, 2.0, 2.5, 30.0):  # on both sides of where a sigmoid is taken for a step
            expected = kernels.expected_reward(likelihood.code, score, variance)
            whole = likelihood.expected_reward(np.array([score]), np.array([variance]))
            assert expected == pytest.approx(float(whole[0]), rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_simulated_rewards_have_the_mean_that_they_should(name):
    likelihood, n = model_of(name).likelihood, 20_000
    mean = float(likelihood.mean_reward(-0.4))
    noise = likelihood.draw_noise(np.random.default_rng(1), n)
    rewards = np.array([likelihood.reward(mean, one) for one in noise.tolist()])
    assert abs(rewards.mean() - mean) < 5.0 * rewards.std() / np.sqrt(n)  # a false alarm in 2 million


def test_one_by_one_in_a_batch_and_summed_are_the_same(model):
    rows = draw_rows(model, 40)
    batch, single = bough.Posterior(model), bough.Posterior(model)
    batch.update(**rows)
    for i, (action, reward) in enumerate(zip(rows["action"], rows["reward"], strict=True)):
        single.update(action, reward, None if model.is_scalar else rows["context"][i])
    if model.is_scalar:
        single.settle()
    np.testing.assert_allclose(single.mean, batch.mean, rtol=1e-6, atol=1e-7)
    assert single.n_observations == batch.n_observations == 40
    if model.is_scalar or model.kind.sums_suffice:
        summed = bough.Posterior(model)
        summed.absorb(bough.Statistics.from_rows(rows["action"], rows["reward"], rows["context"]))
        np.testing.assert_allclose(summed.mean, batch.mean, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_the_posterior_is_close_to_the_one_on_a_grid(name):
    model = model_of(name)
    rows = draw_rows(model, 12)
    posterior, grid = bough.Posterior(model), GridPosterior(model)
    posterior.update(rows["action"], rows["reward"])
    grid.update(rows["action"], rows["reward"])
    deviation = np.sqrt(grid.covariance)
    assert (np.abs(posterior.mean - grid.mean) < 0.02 * deviation).all()
    assert (np.abs(np.sqrt(posterior.covariance) - deviation) < 0.02 * deviation).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_decides_learns_and_comes_back_from_a_file(model, policy, tmp_path):
    agent = policy(model, seed=0)
    context = None if model.is_scalar else np.ones(model.dim)
    agent.update(**draw_rows(model, 20))
    agent.save(tmp_path / "agent.bough")
    again = policy.load(tmp_path / "agent.bough")
    assert [again.decide(context) for _ in range(20)] == [agent.decide(context) for _ in range(20)]
    assert set(agent.decide(context, k=3)) <= set(TREE.actions)
    assert agent.decide(context, among=["green", "brew"]) in ("green", "brew")


def test_models_and_posteriors_come_back_from_files(model, tmp_path):
    model.save(tmp_path / "model.bough")
    back = bough.GaussianModel.load(tmp_path / "model.bough")
    assert (type(back), back.likelihood) == (type(model), model.likelihood)
    posterior = bough.Posterior(model)
    posterior.update(**draw_rows(model, 15))
    posterior.save(tmp_path / "posterior.bough")
    np.testing.assert_allclose(bough.Posterior.load(tmp_path / "posterior.bough").mean, posterior.mean, rtol=1e-10)


def test_every_kind_is_simulated(model):
    contexts = None if model.is_scalar else np.random.default_rng(2).normal(size=(30, model.dim))
    run = bough.simulate(model, {"HierTS": bough.HierTS, "TS": bough.TS}, 20, 3, seed=0, contexts=contexts)
    assert (np.diff(run.regret["HierTS"], axis=1) >= -1e-12).all()


def test_every_kind_is_fitted(model):
    rows = draw_rows(model, 400, seed=5)
    if model.is_scalar or model.kind.sums_suffice:
        log = bough.Statistics.from_rows(rows["action"], rows["reward"], rows["context"])
    else:
        log = bough.Observations(**rows)
    fit = bough.fit_prior(TREE, log, model=type(model))
    assert type(fit.model) is type(model)
    assert np.isfinite(fit.log_evidence)
    assert ("noise" in fit.estimates) == model.kind.noise_is_added


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_refits_as_it_goes(name):
    agent = bough.HierTS(model_of(name), seed=0, refit=True)
    rows = draw_rows(agent.posterior.model, 45, seed=6)
    for action, reward in zip(rows["action"], rows["reward"], strict=True):
        agent.update(action, reward)
    assert agent.posterior.n_observations == agent.statistics.n_rows == 45
    assert not agent.posterior.model.is_same_prior(model_of(name))


@pytest.mark.parametrize("name", MODELS)
def test_rewards_of_other_kinds_and_words_are_refused(name):
    model = model_of(name)
    kind, posterior = model.kind, bough.Posterior(model)
    for word in {"trials", "exposure"} - {kind.exposure_word}:
        with pytest.raises(ValueError, match=f"{word} was given"):
            posterior.update("green", 1.0, **{word: 2})
    for odd in (float("nan"), float("inf"), 1e200, *([] if kind.noise_is_added else [-1.0, 0.5])):
        with pytest.raises(ValueError, match="reward"):
            posterior.update("green", odd)
        with pytest.raises(ValueError, match="reward"):
            posterior.update(["green", "black"], [1.0, odd])
    assert posterior.n_observations == 0


def test_no_kind_is_asked_for_by_name_outside_its_own_file():
    from pathlib import Path

    source = Path(bough.__file__).parent
    own = {"gaussian.py", "bernoulli.py", "poisson.py", "kinds.py", "__init__.py"}
    for path in source.rglob("*.py"):
        text = path.read_text()
        assert "has_counts" not in text, path
        if path.name not in own:
            assert 'rewards == "' not in text, path
            for name in MODELS.values():
                assert f"isinstance(model, {name.__name__})" not in text, path
    for path in (source / "posterior.py", source / "inference" / "answers.py"):
        assert "isinstance(engine" not in path.read_text()
        assert "isinstance(self._engine" not in path.read_text()
