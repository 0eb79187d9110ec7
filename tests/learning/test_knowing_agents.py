"""From a log to an agent: posteriors and policies of a fit, which know what it was learned from."""

import pickle
from functools import partial

import numpy as np
import polars
import pytest
from scipy.special import expit

import bough

TREE = bough.Tree.balanced(4, 2)
KINDS = {"gaussian": bough.GaussianModel, "bernoulli": bough.BernoulliModel, "poisson": bough.PoissonModel}
ALL = sorted((kind, dim) for kind in KINDS for dim in (0, 2))


def rows(kind, dim, n=300, seed=0):
    """A log as `Observations`, with contexts of length dim or without."""
    rng = np.random.default_rng(seed)
    mean = np.full(dim, -0.5) if dim else -0.5
    worth = KINDS[kind](TREE, mean, bough.by_depth([0.0, 0.5, 0.3])).draw(rng)
    actions = rng.choice(TREE.leaves, n)
    contexts = np.column_stack([np.ones(n), rng.normal(size=(n, dim - 1))]) if dim else None
    score = worth[actions] if contexts is None else np.einsum("nd,nd->n", worth[actions], contexts)
    if kind == "gaussian":
        rewards = score + rng.normal(size=n)
    else:
        rewards = rng.random(n) < expit(score) if kind == "bernoulli" else rng.poisson(np.exp(score))
    return bough.Observations(actions, np.asarray(rewards, dtype=float), contexts)


def fitted(kind, dim, **more):
    log = rows(kind, dim)
    return log, bough.fit_prior(TREE, log, model=KINDS[kind], **more)


@pytest.mark.parametrize(("kind", "dim"), ALL)
def test_the_posterior_of_a_fit_has_observed_the_log_it_was_learned_from(kind, dim):
    log, fit = fitted(kind, dim)
    posterior = fit.posterior
    by_hand = bough.Posterior(fit.model)
    if dim and kind != "gaussian":
        by_hand.settle(log)
    else:
        by_hand.update(log.action, log.reward, log.context)
    assert posterior.model is fit.model
    assert posterior.n_observations == 300
    np.testing.assert_allclose(posterior.mean, by_hand.mean, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance, by_hand.covariance, atol=1e-8)
    assert posterior.log_evidence() == pytest.approx(fit.log_evidence, abs=1e-5)


@pytest.mark.parametrize(("kind", "dim"), ALL)
def test_what_is_done_to_a_posterior_or_an_agent_of_a_fit_stays_there(kind, dim):
    _, fit = fitted(kind, dim)
    context = None if not dim else [1.0, 0.5]
    before = fit.posterior.mean.copy()
    fit.posterior.update(TREE.actions[0], 1.0, context)
    fit.agent(seed=0).update(TREE.actions[0], 1.0, context)
    again = fit.posterior
    np.testing.assert_array_equal(again.mean, before)
    assert again.n_observations == 300


@pytest.mark.parametrize(("kind", "dim"), ALL)
def test_an_agent_of_a_fit_is_hierts_with_the_posterior_of_the_log(kind, dim):
    _, fit = fitted(kind, dim)
    context = None if not dim else [1.0, 0.5]
    agent, same = fit.agent(seed=3), bough.HierTS.resume(fit.posterior, seed=3)
    assert type(agent) is bough.HierTS
    np.testing.assert_allclose(agent.posterior.mean, fit.posterior.mean, atol=1e-12)
    assert [agent.decide(context) for _ in range(20)] == [same.decide(context) for _ in range(20)]


@pytest.mark.parametrize("policy", [bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
@pytest.mark.parametrize(("kind", "dim"), ALL)
def test_every_policy_knows_the_log_under_the_model_that_it_assumes(policy, kind, dim):
    log, fit = fitted(kind, dim)
    by_hand = policy(fit.model, seed=0)
    if dim and kind != "gaussian":
        by_hand.posterior.settle(log)
    else:
        by_hand.absorb(fit.logs[0])
    for agent in (fit.agent(policy, seed=0), fit.agent(policy.__name__, seed=0)):
        assert type(agent) is policy
        np.testing.assert_allclose(agent.posterior.mean, by_hand.posterior.mean, atol=1e-9)


def test_beta_priors_know_the_log_as_well():
    _, fit = fitted("bernoulli", 0)
    agent = fit.agent("BetaTS", seed=0)
    sums = fit.logs[0]
    assert repr(agent) == "BetaTS(n_actions=16, n_observations=300)"
    place = list(TREE.actions).index(sums.actions[0])
    prior = bough.BetaTS(fit.model)
    assert agent.successes[place] - prior.successes[place] == pytest.approx(sums.sum_y[0])


def test_options_are_those_of_the_policy():
    _, fit = fitted("gaussian", 0)
    assert fit.agent(seed=0, half_life=7.0).posterior.half_life == 7.0
    assert fit.agent(partial(bough.HierTS, half_life=7.0)).posterior.half_life == 7.0
    assert fit.agent(refit=True).statistics.n_rows == 300
    with pytest.raises(TypeError, match="speed"):
        fit.agent(speed=3)


def test_of_several_trees_each_has_its_posterior_and_its_agent():
    other = bough.Tree.balanced(3, 2)
    first, second = rows("gaussian", 0), bough.Statistics.from_rows(other.leaves.repeat(2), np.arange(18.0) % 7)
    fit = bough.fit_prior([TREE, other], [first, second])
    assert [one.model for one in fit.posteriors] == list(fit.models)
    assert [one.n_observations for one in fit.posteriors] == [300, 18]
    assert fit.posterior.n_observations == 300
    assert repr(fit.agent(which=1)) == "HierTS(n_actions=9, n_observations=18)"
    total = sum(one.log_evidence() for one in fit.posteriors)
    assert total == pytest.approx(fit.log_evidence, abs=1e-6)  # the prior mean and the variances are known by now


def test_a_frame_and_its_weights_are_absorbed():
    sold, times = [1.0, 2.0, 4.0, 5.0, 2.0, 3.5], [1.0, 2.0, 3.0, 1.0, 2.0, 0.5]
    log = polars.DataFrame({"drink": [5, 6, 7, 9, 5, 7], "sold": sold, "times": times})
    fit = bough.fit_prior(TREE, log, action="drink", reward="sold", weight="times")
    by_hand = bough.Posterior(fit.model)
    by_hand.absorb(bough.summarise(log, TREE, action="drink", reward="sold", weight="times"))
    np.testing.assert_allclose(fit.posterior.mean, by_hand.mean, rtol=1e-12)
    assert fit.posterior.count[0] == round(9.5)


@pytest.mark.parametrize(("kind", "dim"), [("gaussian", 0), ("bernoulli", 2)])
def test_a_fit_survives_pickling_whether_or_not_it_was_asked_for_its_posterior(kind, dim):
    _, fit = fitted(kind, dim)
    fresh = pickle.dumps(fit)
    mean = fit.posterior.mean
    for text in (fresh, pickle.dumps(fit)):
        again = pickle.loads(text)
        assert "_known" not in vars(again)  # what can be made again is not kept
        np.testing.assert_allclose(again.posterior.mean, mean, atol=1e-10)
        assert again.summary() == fit.summary()


class Unteachable:
    def __init__(self, model, seed=None):
        self.tree = model.tree

    def decide(self):
        return self.tree.actions[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "Thompson"}, "unknown policy 'Thompson'; there are HierTS"),
        ({"policy": ""}, "unknown policy ''"),
        ({"policy": 3}, "policy is 3; give a policy's class, such as bough.TS, or its name"),
        ({"policy": int}, "policy is <class 'int'>; give a policy's class"),
        ({"policy": Unteachable}, "policy makes a Unteachable, which cannot take in a log"),
        ({"which": 1}, "which is 1, and the fit has 1 tree"),
        ({"which": -1}, "which is -1; give a whole number of at least 0"),
        ({"which": "first"}, "which is 'first'; give a whole number"),
    ],
)
@pytest.mark.parametrize(("kind", "dim"), [("gaussian", 0), ("bernoulli", 2)])
def test_agents_that_cannot_be_are_refused(kind, dim, given, message):
    _, fit = fitted(kind, dim)
    with pytest.raises(ValueError, match=message):
        fit.agent(**given)


def test_clicks_in_contexts_have_no_times_to_fade_by():
    _, fit = fitted("bernoulli", 2)
    with pytest.raises(ValueError, match="a log has no times"):
        fit.agent(half_life=30.0)
