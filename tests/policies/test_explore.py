"""`explore` scales how far a draw deviates from the posterior mean, however the draw is made.

Chi-squared tests compare two sets of 20,000 decisions, fixed seeds, at a level of 1e-4 each: false-alarm rate 2e-3
over the file. Propensities are at most 5 standard errors of the difference from shares: 6e-7 a comparison.
"""

import copy

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import bough

UNEVEN = bough.Tree.from_paths(
    ["a/b/c", "a/b/d", "a/e", "f", "g/h", "g/i/j/k", "g/i/j/l", "m/n/o", "m/n/p", "m/q", "r/s/t/u/v"]
)
SPREAD = bough.by_depth([0.5, 1.0, 2.0, 0.7, 1.0, 0.4])
CONTEXT = np.array([1.0, -0.5, 0.3])
N = 20_000

MODELS = {
    "regular": bough.problems.constant(branching=3, height=3),
    "uneven": bough.GaussianModel(UNEVEN, 0.2, SPREAD),
    "vectors": bough.GaussianModel(UNEVEN, [0.1, 0.0, -0.2], SPREAD),
    "clicks": bough.BernoulliModel(UNEVEN, -1.0, SPREAD),
    "drift": bough.GaussianModel(UNEVEN, 0.4, 1.0, drift=3.0),
}


def taught(model, policy=bough.HierTS, **options):
    """An agent that has seen some rewards, with most actions untouched."""
    agent = policy(model, seed=0, **options)
    rng = np.random.default_rng(1)
    seen = list(model.tree.actions)[:8:2]
    for _ in range(8):
        reward = float(rng.integers(2)) if isinstance(model, bough.BernoulliModel) else float(rng.normal())
        agent.update(seen[rng.integers(4)], reward, *([] if model.is_scalar else [rng.normal(size=3)]))
    return agent


def context_of(model):
    return None if model.is_scalar else CONTEXT


def counts(agent, n=N, **how):
    """How often each action is chosen in n decisions."""
    names = {name: i for i, name in enumerate(agent.posterior.model.tree.actions)}
    found = np.zeros(len(names))
    context = context_of(agent.posterior.model)
    for _ in range(n):
        found[names[agent.decide(context, **how)]] += 1
    return found


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 2.0])
def test_a_draw_deviates_from_the_mean_by_so_much_more_or_less(kind, scale):
    posterior = taught(MODELS[kind]).posterior
    leaves = posterior.model.tree.leaves[:5]
    for draw in (posterior._draw, lambda *how: posterior._sample_leaves(leaves, *how)):
        plain, scaled = draw(np.random.default_rng(3), 1.0), draw(np.random.default_rng(3), scale)
        mean = draw(np.random.default_rng(3), 0.0)
        np.testing.assert_allclose(scaled, mean + scale * (plain - mean), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(posterior._draw(np.random.default_rng(3), 0.0), posterior.mean, rtol=1e-12)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_a_search_chooses_as_drawing_every_node_does(kind, scale):
    searched = counts(taught(MODELS[kind], search=True, explore=scale))
    drawn = counts(taught(MODELS[kind], search=False, explore=scale))
    seen = searched + drawn > 10
    assert seen.sum() >= 3
    table = np.array([[*one[seen], one[~seen].sum() + 1.0] for one in (searched, drawn)])
    assert chi2_contingency(table).pvalue > 1e-4


def test_less_exploring_takes_the_best_more_often():
    agents = [taught(MODELS["uneven"], explore=scale) for scale in (2.0, 1.0, 0.3, 0.0)]
    best = agents[0].posterior.action_moments()[0].argmax()
    shares = [counts(agent, 2_000)[best] for agent in agents]
    assert shares == sorted(shares)
    assert shares[-1] == 2_000


@pytest.mark.parametrize("kind", ["regular", "uneven", "vectors", "drift"])
@pytest.mark.parametrize("search", [False, True])
def test_zero_is_greedy(kind, search):
    context = context_of(MODELS[kind])
    agent, greedy = taught(MODELS[kind], explore=0.0, search=search), taught(MODELS[kind], bough.Greedy)
    best = greedy.propensity(list(agent.posterior.model.tree.actions), context).probability
    found = agent.propensity(list(agent.posterior.model.tree.actions), context).probability
    np.testing.assert_allclose(found, best)
    for _ in range(20):
        assert best[list(agent.posterior.model.tree.actions).index(agent.decide(context))] > 0.0


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("k", [None, 2])
def test_propensities_are_of_what_is_drawn(kind, search, k):
    agent = taught(MODELS[kind], search=search, explore=0.5)
    context, names = context_of(MODELS[kind]), list(agent.posterior.model.tree.actions)
    times = dict.fromkeys(names, 0)
    for _ in range(5_000):
        chosen = agent.decide(context, k=k)
        for name in [chosen] if k is None else chosen:
            times[name] += 1
    share = np.array(list(times.values())) / 5_000
    found = agent.propensity(names, context, k=k, samples=2_000, seed=7)
    error = np.sqrt(found.standard_error**2 + np.maximum(share * (1.0 - share), 1.0 / 5_000) / 5_000)
    assert (np.abs(found.probability - share)[~found.is_upper_bound] <= 5.0 * error[~found.is_upper_bound]).all()


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS])
def test_it_is_saved_with_the_agent_and_copied(tmp_path, policy):
    agent = taught(MODELS["uneven"], policy, explore=0.25)
    agent.save(tmp_path / "agent.bough")
    again = policy.load(tmp_path / "agent.bough")
    twin = copy.deepcopy(agent)
    assert again.explore == twin.explore == 0.25
    decided = [agent.decide() for _ in range(20)]
    assert [again.decide() for _ in range(20)] == decided
    assert [twin.decide() for _ in range(20)] == decided


def test_one_posterior_serves_agents_that_explore_unlike():
    agent = taught(MODELS["regular"], search=True)
    other = bough.HierTS(agent.posterior, seed=0, search=True, explore=0.1)
    alone = taught(MODELS["regular"], search=True)
    assert [(agent.decide(), other.decide())[0] for _ in range(50)] == [alone.decide() for _ in range(50)]


@pytest.mark.parametrize("bad", [-0.1, 1e7, 1e300, float("nan"), float("inf"), "much", None, [1.0]])
def test_what_is_no_factor_is_refused(bad):
    with pytest.raises(ValueError, match="explore is"):
        bough.HierTS(MODELS["uneven"], explore=bad)


@pytest.mark.parametrize("search", [True, False])
def test_the_largest_factor_decides_and_has_propensities(search):
    decision = taught(MODELS["uneven"], search=search, explore=1e6).decision(samples=50)
    assert np.isfinite(decision.scores).all()
    assert 0.0 < decision.propensity < 1.0
