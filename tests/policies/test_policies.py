"""What is decided, among what, in which order; and that the baselines are the same engine on other models."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import bough

TREE = bough.Tree.from_nested({"tea": ["green", "black", "white"], "coffee": ["espresso", "filter"], "water": None})
POLICIES = [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy]


def trained(policy, dim=None, seed=0):
    model = bough.GaussianModel(TREE, 0.0 if dim is None else np.zeros(dim), bough.by_depth([1.0, 2.0, 0.5]))
    agent = policy(model, seed=seed)
    rng = np.random.default_rng(1)
    actions = rng.choice(np.asarray(TREE.actions), 12)
    agent.update(actions, rng.normal(size=12), None if dim is None else rng.normal(size=(12, dim)))
    return agent


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dim", [None, 3])
def test_every_policy_decides_learns_and_fits_the_protocol(policy, dim):
    agent = trained(policy, dim)
    context = None if dim is None else np.ones(dim)
    assert isinstance(agent, bough.Policy)
    assert agent.decide(context) in TREE.actions
    assert sorted(agent.decide(context, k=6)) == sorted(TREE.actions)
    assert set(agent.decide(context, k=2, among=["green", "filter", "water"])) <= {"green", "filter", "water"}
    agent.update("green", 1.0, context)
    assert agent.posterior.n_observations == 13
    assert repr(agent) == f"{policy.__name__}(n_actions=6, n_observations=13)"


@pytest.mark.parametrize("policy", POLICIES)
def test_one_seed_gives_the_same_decisions(policy):
    one, other = trained(policy, seed=5), trained(policy, seed=5)
    assert [one.decide() for _ in range(20)] == [other.decide() for _ in range(20)]


def test_the_k_best_come_from_one_sample_best_first():
    agent, twin = trained(bough.HierTS, seed=3), trained(bough.HierTS, seed=3)
    sample = twin.posterior.sample(twin._rng)[TREE.leaves]
    assert agent.decide(k=4) == [TREE.actions[i] for i in np.argsort(-sample)[:4]]


@pytest.mark.parametrize("dim", [None, 2])
def test_among_has_the_law_of_the_full_sample_restricted(dim):
    # Two samples of 20,000 decisions over three actions; chi-squared with false-alarm rate 1e-4.
    agent = trained(bough.HierTS, dim)
    among = ["black", "espresso", "water"]
    context = None if dim is None else np.array([1.0, -0.5])
    n = 20_000
    few = [agent.decide(context, among=among) for _ in range(n)]
    leaves = [TREE.index(name) for name in among]
    samples = agent.posterior.sample(agent._rng, size=n)[:, leaves]
    scores = samples if dim is None else samples @ context
    full = np.bincount(scores.argmax(axis=1), minlength=3)
    table = np.array([[few.count(name) for name in among], full])
    assert chi2_contingency(table).pvalue > 1e-4


def test_flat_ts_on_a_tree_of_height_one_is_hierts():
    model = bough.GaussianModel(bough.Tree.balanced(5, 1), 0.1, bough.by_depth([2.0, 1.0]))
    flat, hierarchical = bough.FlatTS(model, seed=1), bough.HierTS(model, seed=1)
    rng = np.random.default_rng(2)
    for _ in range(50):
        action = flat.decide()
        assert action == hierarchical.decide()
        reward = rng.normal()
        flat.update(action, reward)
        hierarchical.update(action, reward)
    np.testing.assert_array_equal(flat.posterior.mean, hierarchical.posterior.mean)


def test_ts_learns_each_action_by_its_own_rewards_alone():
    agent = bough.TS(bough.GaussianModel(TREE, 0.5, bough.by_depth([1.0, 2.0, 0.5])))
    agent.update(["green", "green"], [3.0, 4.0])
    mean = dict(zip(TREE.actions, agent.posterior.mean[agent.posterior.model.tree.leaves], strict=True))
    assert mean["green"] == pytest.approx((0.5 / 3.5 + 7.0) / (1 / 3.5 + 2))
    assert {mean[name] for name in TREE.actions if name != "green"} == {0.5}


def test_ties_are_broken_at_random():
    # 600 decisions among 6 equal actions; each within 5 standard errors of 100: false-alarm rate below 1e-5.
    for policy in (bough.Greedy, bough.HierTS):
        agent = policy(bough.GaussianModel(TREE, covariance=0.0), seed=0)
        counts = np.array([[agent.decide() for _ in range(600)].count(name) for name in TREE.actions])
        assert (np.abs(counts - 100) < 5 * np.sqrt(600 * 5 / 36)).all()
        pairs = {tuple(agent.decide(k=2)) for _ in range(600)}
        assert len(pairs) == 30


def test_ties_at_the_end_of_the_k_best_are_broken_at_random():
    agent = bough.Greedy(bough.GaussianModel(TREE, covariance=bough.by_depth([0.0, 0.0, 1.0])), seed=0)
    agent.update("green", 5.0)
    chosen = [agent.decide(k=2) for _ in range(300)]
    assert {first for first, _ in chosen} == {"green"}
    assert {second for _, second in chosen} == set(TREE.actions) - {"green"}


def test_bayes_ucb_follows_the_quantile_of_the_exact_marginal():
    from scipy.stats import norm

    agent = trained(bough.BayesUCB)
    leaves = TREE.leaves
    mean, deviation = agent.posterior.mean[leaves], np.sqrt(agent.posterior.covariance[leaves])
    index = norm.ppf(1 - 1 / 13, mean, deviation)
    assert agent.decide(k=6) == [TREE.actions[i] for i in np.argsort(-index)]
    contextual, x = trained(bough.BayesUCB, dim=3), np.array([1.0, -2.0, 0.5])
    mean = contextual.posterior.mean[leaves] @ x
    deviation = np.sqrt(np.einsum("i,nij,j->n", x, contextual.posterior.covariance[leaves], x))
    assert contextual.decide(x, k=6) == [TREE.actions[i] for i in np.argsort(-norm.ppf(1 - 1 / 13, mean, deviation))]


def test_greedy_follows_the_posterior_mean():
    agent = trained(bough.Greedy)
    order = np.argsort(-agent.posterior.mean[TREE.leaves])
    assert agent.decide(k=6) == [TREE.actions[i] for i in order]


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
def test_an_agent_predicts_as_its_posterior_does(policy):
    agent = policy(bough.PoissonModel(TREE, 1.0, 0.5), seed=0)
    agent.update(["green", "black"], [3, 1])
    asked = dict(level=0.8, exposure=2.0)
    assert agent.predictive("green", **asked) == agent.posterior.predictive("green", **asked)


def test_an_agent_predicts_for_the_store_that_is_named():
    stores = {"store": bough.Factor(levels=["north", "south"], at_decision=True)}
    agent = bough.HierTS(bough.GaussianModel(TREE, 1.0, 0.5, factors=stores), seed=0)
    agent.update("green", 3.0, factors={"store": "south"})
    there = {"factors": {"store": "south"}}
    assert agent.predictive("green", **there) == agent.posterior.predictive("green", **there)
    assert agent.predictive("green", **there).mean > agent.predictive("green", factors={"store": "north"}).mean


def test_hierts_finds_the_best_category_in_a_large_tree():
    model = bough.GaussianModel(bough.Tree.balanced(10, 3), covariance=bough.by_height([0.1, 0.1, 1.0, 0.0]))
    truth = model.draw(3)
    agent = bough.HierTS(model, seed=0)
    rng = np.random.default_rng(1)
    for _ in range(300):
        action = agent.decide()
        agent.update(action, truth[action] + rng.normal())
    best_category = 1 + int(truth[1:11].argmax())
    assert agent.posterior.count[best_category] > 150


BAD = {
    "k zero": (lambda a: a.decide(k=0), "k is 0"),
    "k half": (lambda a: a.decide(k=1.5), "k is 1.5"),
    "k too large": (lambda a: a.decide(k=7), "k is 7; give at most 6"),
    "k larger than among": (lambda a: a.decide(k=2, among=["green", "green"]), "k is 2; give at most 1"),
    "empty among": (lambda a: a.decide(among=[]), "among is empty"),
    "among a string": (lambda a: a.decide(among="green"), "among is 'green'"),
    "unknown in among": (lambda a: a.decide(among=["green", "mate"]), "unknown action 'mate'"),
    "a category in among": (lambda a: a.decide(among=["tea"]), "'tea' is not an action"),
    "k as a context": (lambda a: a.decide(5), "the context is the number 5; to choose so many actions, give k=5"),
    "many explained": (lambda a: a.explain(["green", "black"]), "2 names, ['green', 'black']; give one name"),
    "context not taken": (lambda a: a.decide([1.0]), "model without contexts"),
    "model": (lambda _: bough.HierTS("model"), "model is a str"),
    "reward": (lambda a: a.update("green", "good"), "reward is 'good'"),
    "nan": (lambda a: a.update("green", float("nan")), "reward is nan"),
    "rewards": (lambda a: a.update(["green"], ["good"]), "rewards is ['good']"),
    "nan in a row": (lambda a: a.update(["green", "black"], [1.0, float("nan")]), "reward in row 1 is nan"),
    "shape": (lambda a: a.update(["green"], [[1.0]]), "rewards have shape (1, 1)"),
    "one action": (lambda a: a.update("green", [1.0, 2.0]), "action is 'green' but there are many rewards"),
    "lengths": (lambda a: a.update(["green"], [1.0, 2.0]), "action has length 1 and reward 2"),
    "number in text": (lambda a: a.update("green", "1"), "reward is '1'"),
    "numbers in text": (lambda a: a.update(["green"], ["1"]), "rewards is ['1']"),
    "one reward": (lambda a: a.update(["green", "black"], 1.0), "one reward for 2 actions"),
    "table of actions": (lambda a: a.update(np.array([["green"]]), [1.0]), "actions have shape (1, 1)"),
    "seed": (lambda _: bough.HierTS(bough.GaussianModel(TREE), seed="a"), "the seed is 'a'"),
    "resume": (lambda _: bough.HierTS.resume("file"), "posterior is a str"),
    "node": (lambda a: a.posterior.conditional(99), "99 is not a node number"),
    "size": (lambda a: a.posterior.sample(0, size=-1), "size is -1"),
    "normals": (lambda a: a.posterior.from_normals([1.0]), "normals have shape (1,)"),
}
BAD_CONTEXT = {
    "missing": (lambda a: a.decide(), "takes contexts of length 3"),
    "missing in update": (lambda a: a.update("green", 1.0), "takes contexts of length 3"),
    "length": (lambda a: a.decide([1.0, 2.0]), "shape (2,); give a vector of length 3"),
    "nan": (lambda a: a.decide([1.0, 2.0, float("nan")]), "it must be finite"),
    "text": (lambda a: a.decide("abc"), "context is 'abc'"),
    "rows": (lambda a: a.update(["green"], [1.0], [[1.0, 2.0]]), "give (1, 3)"),
    "row": (lambda a: a.update(["green"], [1.0], [[1.0, 2.0, float("inf")]]), "context in row 0"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_by_a_text_that_names_it(what):
    agent = trained(bough.HierTS)
    with pytest.raises((ValueError, KeyError)) as caught:
        BAD[what][0](agent)
    assert BAD[what][1] in str(caught.value)
    assert agent.posterior.n_observations == 12


@pytest.mark.parametrize("what", BAD_CONTEXT)
def test_a_bad_context_is_refused_by_a_text_that_names_it(what):
    agent = trained(bough.HierTS, dim=3)
    with pytest.raises(ValueError, match="context") as caught:
        BAD_CONTEXT[what][0](agent)
    assert BAD_CONTEXT[what][1] in str(caught.value)


def test_a_posterior_of_another_model_on_the_same_tree_is_refused():
    star = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    posterior = bough.HierTS(star).posterior
    posterior.update("left", 3.0)
    with pytest.raises(ValueError, match="another model than TS"):
        bough.TS.resume(posterior)
    assert bough.FlatTS.resume(posterior).posterior is posterior  # on a star HierTS is FlatTS
    own = bough.TS(star).posterior
    own.update("left", 3.0)
    assert bough.TS.resume(own).posterior.mean[star.tree.index("right")] == 0.0


def test_what_is_not_checked_is_not_public():
    for owner, names in (
        (bough.Posterior, ("observe", "search", "checked_context")),
        (bough.HierTS, ("learn", "choose")),
        (bough.BetaTS, ("learn", "choose")),
    ):
        assert not [name for name in names if hasattr(owner, name)]
