"""Fits with crossed factors: lme4's own maxima, the engine's evidence, exact gradients, and what is refused."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import bough
from bough.learning import factor_evidence
from bough.learning.factor_evidence import FactorEvidence
from bough.learning.forest import Forest
from bough.learning.node_classes import NodeClasses

FIXTURES = Path(__file__).parents[1] / "fixtures"


def read(name):
    with open(FIXTURES / name, newline="") as file:
        return list(csv.DictReader(file))


def lme4(data):
    return {row["what"]: float(row["value"]) for row in read("crossed_lme4.csv") if row["data"] == data}


PENICILLIN = ("plate", "diameter", {"sample": ["sample"]}, {"depth 1": "plate", "sample": "sample"})
INSTEVAL = ("d", "y", {"s": ["s"], "unit": ["dept", "service"]}, {"depth 1": "d", "s": "s", "unit": "dept:service"})


@pytest.mark.parametrize(("name", "case"), [("penicillin", PENICILLIN), ("insteval", INSTEVAL)])
def test_maximum_likelihood_is_lme4s(name, case):
    """The actions are plates or lecturers; samples, students, and departments with their service are decisions'."""
    action, reward, factors, groups = case
    rows = read(f"{name}.csv")
    levels = {
        factor: [":".join(row[column].strip() for column in columns) for row in rows]
        for factor, columns in factors.items()
    }
    actions = [row[action].strip() for row in rows]
    tree = bough.Tree.from_nested(sorted(set(actions)))
    log = bough.Statistics.from_rows(actions, [float(row[reward]) for row in rows], factors=levels)
    fit = bough.fit_prior(tree, log, penalty=None, factors={factor: factor for factor in factors})
    reference = lme4(name)
    assert fit.converged
    assert fit.log_evidence == pytest.approx(reference["log likelihood"], abs=1e-6)
    for label, group in groups.items():
        assert fit.covariances[label] == pytest.approx(reference[group], rel=1e-3)
    assert fit.noise_variance == pytest.approx(reference["Residual"], rel=1e-3)
    assert fit.mean == pytest.approx(reference["mean"], rel=1e-6)
    error = (fit.estimates["mean"].high - fit.estimates["mean"].low) / (2 * 1.96)
    assert error == pytest.approx(reference["mean error"], rel=1e-3)


def logged(seed=0, n=200):
    """A tree with tags and stores, and rewards that mean little."""
    rng = np.random.default_rng(seed)
    tree = bough.Tree.balanced(4, 3)
    tags = [[int(tag) for tag in rng.choice(7, rng.integers(0, 3), replace=False)] for _ in range(tree.n_actions)]
    factors = {
        "tag": bough.Factor(tags, levels=list(range(7)), variance=0.5),
        "store": bough.Factor(levels=["n", "s", "w"], variance=0.2, at_decision=True),
    }
    model = bough.GaussianModel(tree, 1.0, bough.by_depth([0.0, 0.7, 0.4, 0.3]), 0.8, factors=factors)
    actions = rng.choice(tree.leaves, n)
    stores = [factors["store"].levels[i] for i in rng.integers(3, size=n)]
    return model, actions, rng.normal(size=n) * 2.0, stores


@pytest.mark.parametrize("mean", [1.0, None])
def test_the_evidence_is_the_engines_and_its_gradient_that_of_differences(mean):
    model, actions, rewards, stores = logged()
    log = bough.Statistics.from_rows(actions, rewards, factors={"store": stores})
    classes = NodeClasses.of("depth", [model.tree])
    forest = Forest.from_logs([model.tree], [log], classes, effects=model.effects)
    variance = np.array([0.0, 0.7, 0.4, 0.3, 0.5, 0.2])
    objective = FactorEvidence(forest, variance, np.array([-1, 0, 1, 2, 3, 4]), 0.8, True, mean, None)
    value, gradient = objective.evidence(variance, 0.8)
    posterior = bough.Posterior(
        bough.GaussianModel(model.tree, objective.mean, model.classes, 0.8, factors=model.factors)
    )
    posterior.absorb(log)
    assert value == pytest.approx(posterior.log_evidence(), rel=1e-12)
    for i in range(1, 7):
        ends = []
        for step in (1e-5, -1e-5):
            moved, noise = variance.copy(), 0.8
            if i < 6:
                moved[i] *= np.exp(step)
            else:
                noise *= np.exp(step)
            ends.append(objective.evidence(moved, noise)[0])
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-6)
    if mean is None:  # the best mean is best
        for off in (-0.01, 0.01):
            other = bough.Posterior(
                bough.GaussianModel(model.tree, objective.mean + off, model.classes, 0.8, factors=model.factors)
            )
            other.absorb(log)
            assert other.log_evidence() < value


def test_what_made_the_log_is_found_again():
    """216 actions, 60 brands, 40 stores: with this seed all five 95% intervals hold what made the log."""
    rng = np.random.default_rng(7)
    tree = bough.Tree.balanced(6, 3)
    brands, n = rng.integers(60, size=216).tolist(), 20_000
    truth = bough.GaussianModel(
        tree, 2.0, bough.by_depth([0.0, 1.0, 0.5, 0.3]), 1.0,
        factors={
            "brand": bough.Factor(brands, levels=list(range(60)), variance=0.8),
            "store": bough.Factor(levels=[f"store {i}" for i in range(40)], variance=0.4, at_decision=True),
        },
    )  # fmt: skip
    drawn = truth.draw(rng, effects=True)
    scores = drawn[tree.leaves] + truth.effects.totals(drawn[tree.n_nodes :])
    places, stores = rng.integers(216, size=n), rng.integers(40, size=n)
    first = tree.n_nodes + truth.effects.first_of("store")
    rewards = scores[places] + drawn[first + stores] + rng.normal(size=n)
    log = pl.DataFrame({"item": tree.leaves[places], "sales": rewards, "shop": [f"store {i}" for i in stores]})
    fit = bough.fit_prior(
        tree, log, action="item", reward="sales", factors={"brand": bough.Factor(brands), "store": "shop"}
    )
    for name, value in (("depth 2", 0.5), ("depth 3", 0.3), ("brand", 0.8), ("store", 0.4), ("noise", 1.0)):
        assert fit.estimates[name].low < value < fit.estimates[name].high
    assert fit.estimates["brand"].told_by == 60
    assert "variance of brand" in fit.summary()
    assert "60 levels" in fit.summary()
    assert fit.model.factors["store"].at_decision
    agent = fit.agent(seed=0)
    effects = agent.posterior.effects("store", "polars")
    found = dict(zip(effects["level"], effects["mean"], strict=True))
    true = {f"store {i}": drawn[first + i] for i in range(40)}
    assert np.corrcoef([found[name] for name in true], list(true.values()))[0, 1] > 0.98
    assert fit.plot({"brand": "make"})[0].get_yticklabels()[-3].get_text() == "make"


def test_a_factor_that_says_nothing_comes_out_as_zero():
    rng = np.random.default_rng(1)
    tree = bough.Tree.balanced(5, 2)
    actions = np.repeat(tree.leaves, 20)
    rewards = rng.normal(size=25).repeat(20) + rng.normal(size=500)
    factor = bough.Factor(rng.integers(4, size=25).tolist())
    fit = bough.fit_prior(tree, bough.Statistics.from_rows(actions, rewards), penalty=None, factors={"brand": factor})
    alone = bough.fit_prior(tree, bough.Statistics.from_rows(actions, rewards), penalty=None)
    assert fit.covariances["brand"] == pytest.approx(0.0, abs=0.2)
    assert fit.log_evidence >= alone.log_evidence - 1e-6


def dominated(deviation, seed):
    """A log in which brands explain nearly everything, and their labels."""
    tree = bough.Tree.balanced(6, 2)
    rng = np.random.default_rng(seed)
    brands = rng.integers(5, size=tree.n_actions)
    effect, place = rng.normal(size=5), rng.integers(tree.n_actions, size=300)
    rewards = effect[brands[place]] + deviation * rng.standard_normal(300)
    return tree, brands.tolist(), bough.Statistics.from_rows(tree.leaves[place], rewards)


@pytest.mark.parametrize(("deviation", "seed"), [(0.03, 0), (0.01, 9), (0.01, 11), (1e-3, 0), (1e-3, 9)])
def test_a_factor_that_explains_nearly_everything_is_found(deviation, seed):
    """On its way there the search meets precisions whose squares have no digits left beside the prior's."""
    tree, brands, log = dominated(deviation, seed)
    fit = bough.fit_prior(tree, log, factors={"brand": bough.Factor(brands)})
    assert fit.converged
    assert fit.noise_variance == pytest.approx(deviation**2, rel=0.4)
    assert fit.estimates["brand"].share > 0.8
    assert fit.posterior.log_evidence() == pytest.approx(fit.log_evidence, rel=1e-9)


@pytest.mark.parametrize("mean", ["learn", 0.2])
def test_sums_of_squares_and_rows_give_the_same_evidence(monkeypatch, mean):
    model, actions, rewards, stores = logged()
    log, found = bough.Statistics.from_rows(actions, rewards, factors={"store": stores}), []
    for mild in (np.inf, 0.0):
        monkeypatch.setattr(factor_evidence, "_MILD", mild)
        fit = bough.fit_prior(model.tree, log, factors=model.factors, mean=mean)
        found.append([fit.log_evidence, fit.mean, fit.noise_variance, *fit.covariances.values()])
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_what_is_no_fit_with_factors_is_refused():
    model, actions, rewards, stores = logged(n=20)
    tree = model.tree
    plain = bough.Statistics.from_rows(actions, rewards)
    by_store = bough.Statistics.from_rows(actions, rewards, factors={"store": stores})
    labels = {int(leaf): 1 for leaf in tree.leaves}
    for arguments, message in (
        ((tree, plain, {"store": "store"}), "no levels of 'store'"),
        ((tree, by_store, None), "name them in factors"),
        ((tree, by_store, {"brand": labels}), "by the levels of 'store'; name them in factors as well"),
        ((tree, by_store, {"store": labels}), "by the levels of 'store'; name them in factors as well"),
        ((tree, plain, {"brand": {}}), "the factor 'brand' has no levels"),
        ((tree, plain, "brand"), "give a mapping"),
        ((tree, plain, {"noise": labels}), "a factor is called 'noise'"),
        ((tree, plain, {"depth 1": labels}), "as a class of nodes is"),
        ((tree, plain, {"brand": {0: 1.5}}), "the factor 'brand': a level is 1.5, a float"),
        (([tree, tree], [plain, plain], {"brand": labels}), "one tree"),
    ):
        trees, log, factors = arguments
        with pytest.raises((ValueError, KeyError), match=message):
            bough.fit_prior(trees, log, factors=factors)
    with pytest.raises(ValueError, match="factors go with Gaussian rewards"):
        bough.fit_prior(tree, plain, factors={"brand": labels}, model=bough.BernoulliModel)


EMPTY = {"no levels": bough.Factor({}, variance=0.7), "no actions": bough.Factor({}, levels=["Acme"], variance=0.7)}


@pytest.mark.parametrize("penalty", [2.0, None])
@pytest.mark.parametrize("what", EMPTY)
def test_a_factor_of_which_no_level_was_observed_keeps_its_variance(what, penalty, capfd):
    model, actions, rewards, stores = logged()
    store = {"store": model.factors["store"]}
    by_store = bough.Statistics.from_rows(actions, rewards, factors={"store": stores})
    without = bough.fit_prior(model.tree, by_store, factors=store, penalty=penalty)
    for factors in ({"brand": EMPTY[what], **store}, {**store, "brand": EMPTY[what]}):
        fit = bough.fit_prior(model.tree, by_store, factors=factors, penalty=penalty)
        assert fit.log_evidence == pytest.approx(without.log_evidence, abs=1e-9)
        assert fit.covariances == pytest.approx({**without.covariances, "brand": 0.7}, rel=1e-5)
        assert tuple(fit.estimates["brand"]) == (0.7, 0.7, 0.7, 0.0, 0)
    plain = bough.Statistics.from_rows(actions, rewards)
    alone = bough.fit_prior(model.tree, plain, factors={"brand": EMPTY[what]}, penalty=penalty)
    assert alone.covariances["brand"] == 0.7
    assert alone.log_evidence == pytest.approx(bough.fit_prior(model.tree, plain, penalty=penalty).log_evidence)
    assert capfd.readouterr() == ("", "")  # of what LAPACK has to say


def test_an_agent_that_refits_keeps_the_variance_of_a_factor_without_rewards():
    model, actions, rewards, stores = logged()
    made = bough.GaussianModel(model.tree, factors={"brand": bough.Factor({}), "store": model.factors["store"]})
    agent = bough.HierTS(made, seed=0, refit=True)
    agent.update(actions, rewards, factors={"store": stores})
    factors = agent.posterior.model.factors
    assert factors["brand"].variance == 1.0
    assert factors["store"].variance != 0.2


def test_most_of_a_log_may_be_left_out_of_a_fit():
    log = pl.DataFrame({"item": ["a", "b"] * 3 + ["?"] * 10, "sales": [float(i * i % 7) for i in range(16)]})
    fit, tree = {"action": "item", "reward": "sales"}, bough.Tree.from_nested(["a", "b"])
    with pytest.raises(ValueError, match=r'leave out most of the log with bad="skip-most"'):
        bough.fit_prior(tree, log, **fit, bad="skip")
    assert bough.fit_prior(tree, log, **fit, bad="skip-most").estimates["noise"].told_by == 6
    with pytest.raises(ValueError, match="bad is 'none'"):
        bough.fit_prior(tree, log, **fit, bad="none")
