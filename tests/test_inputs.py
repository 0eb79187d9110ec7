"""What a user may give by mistake is refused in words, whatever the call, and leaves everything as it was."""

import datetime

import numpy as np
import pandas
import pyarrow
import pytest

import bough
from bough import theory
from bough.simulation import problems

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", 7]})
NUMBERED = bough.Tree.balanced(3, 3)
LEVELLED = bough.Tree.from_nested({"tea": ["green", "black"]}, levels=["kind", "drink"])
PAIR = ["green", "black"]
PLAIN = bough.GaussianModel(TREE)
CONTEXTUAL = bough.GaussianModel(TREE, [0.0, 0.0])
CLICKS = bough.BernoulliModel(TREE, -1.0)
SUMS = bough.Statistics.from_rows(PAIR * 4, [1.0, 2.0, 3.0, 1.0, 2.0, 1.0, 0.0, 3.0])
FRAME = pandas.DataFrame({"a": PAIR, "r": [1.0, 0.0], "c": [0.0, 1.0]})


# -- sums that no rows have --------------------------------------------------------------------------


def sums(**changes):
    given = {"actions": ["a", "b"], "count": [2.0, 1.0], "sum_y": [3.0, 1.0], "sum_yy": [5.0, 1.0]}
    return bough.Statistics(**(given | changes))


def with_contexts(**changes):
    xx = [[[2.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]]
    return sums(**({"sum_xy": [[3.0, 2.0], [1.0, 0.0]], "sum_xx": xx} | changes))


IMPOSSIBLE = {
    "NaN": (lambda: sums(sum_y=[np.nan, 1.0]), "not finite"),
    "infinite": (lambda: sums(sum_yy=[np.inf, 1.0]), "not finite"),
    "no rows": (lambda: sums(count=[0.0, 1.0]), "count is not positive"),
    "negative count": (lambda: sums(count=[2.0, -1.0]), "'b': count is not positive"),
    "no exposure": (lambda: sums(exposure=[0.0, 1.0]), "exposure is not positive"),
    "negative squares": (lambda: sums(sum_y=[0.0, 1.0], sum_yy=[-1.0, 1.0]), "sum_yy is negative"),
    "too small squares": (lambda: sums(sum_yy=[4.4, 1.0]), "square of sum_y"),
    "other lengths": (lambda: sums(sum_y=[3.0]), "sum_y has shape"),
    "more actions than sums": (lambda: sums(actions=["a", "b", "c"]), "for 3 actions"),
    "table of counts": (lambda: sums(count=[[2.0, 1.0]]), "count has shape"),
    "an action twice": (lambda: sums(actions=["a", "a"]), "'a' is there more than once"),
    "an integer twice": (lambda: sums(actions=[1, 1]), "1 is there more than once"),
    "not hashable": (lambda: sums(actions=[["a"], ["b"]]), "hashable"),
    "missing name": (lambda: sums(actions=["a", None]), "cannot be a node's name"),
    "masked count": (lambda: sums(count=np.ma.array([2.0, 1.0], mask=[False, True])), "masked"),
    "complex": (lambda: sums(sum_y=[1j, 1.0]), "give numbers"),
    "no counts": (lambda: sums(count=None), "count is None"),
    "skipped": (lambda: sums(skipped={"bad": -1}), "skipped"),
    "xy without xx": (lambda: sums(sum_xy=[[1.0], [1.0]]), "give both"),
    "shape of xy": (lambda: with_contexts(sum_xy=[[3.0], [1.0]]), "sum_xx has shape"),
    "shape of xx": (lambda: with_contexts(sum_xx=np.ones((2, 2))), "sum_xx has shape"),
    "negative square of x": (lambda: with_contexts(sum_xx=[-np.eye(2), np.eye(2)]), "positive semi-definite"),
    "not symmetric": (lambda: with_contexts(sum_xx=[[[2.0, 1.0], [0.9, 1.0]]] * 2), "not symmetric"),
    "indefinite": (lambda: with_contexts(sum_xx=[[[2.0, 1.5], [1.5, 1.0]]] * 2), "positive semi-definite"),
    "xy without x": (lambda: with_contexts(sum_xy=[[3.0, 2.0], [1.0, 0.5]]), "'b'"),
    "xy beyond yy": (lambda: with_contexts(sum_xy=[[3.2, 2.0], [1.0, 0.0]]), "'a'"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_sums_that_no_rows_have_are_refused(what):
    make, text = IMPOSSIBLE[what]
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize("scale", [1e-170, 1e-155, 1.0, 1e140])
@pytest.mark.parametrize("dim", [None, 1, 4])
def test_sums_of_rows_are_taken_whatever_their_size_and_span(dim, scale):
    rng = np.random.default_rng(0)
    actions, rewards = rng.integers(5, size=40), scale * rng.normal(size=40)
    contexts = None if dim is None else np.repeat(rng.normal(size=(40, 1)), dim, axis=1) * 10.0 ** np.arange(dim)
    found = bough.Statistics.from_rows(actions, rewards, contexts, weight=rng.random(40))
    again = bough.Statistics(found.actions, found.count, found.sum_y, found.sum_yy, found.sum_xy, found.sum_xx)
    assert again.sum_y.tolist() == found.sum_y.tolist()
    rounded = {name: np.float32(array) for name, array in found._sums.items()} if 1e-100 < scale < 1e10 else {}
    assert not rounded or bough.Statistics(found.actions, **rounded).n_rows == pytest.approx(found.n_rows, rel=1e-6)


def test_what_is_done_to_the_given_sums_later_changes_nothing():
    count = np.array([2.0, 1.0])
    statistics = sums(count=count)
    count[0] = 5.0
    assert statistics.count.tolist() == [2.0, 1.0]


def test_a_batch_of_statistics_that_is_refused_leaves_the_posterior_alone():
    posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["a", "b"])))
    posterior.absorb(sums())
    before = posterior.mean.copy()
    with pytest.raises(ValueError, match="count is not positive"):
        posterior.absorb(sums(count=[-2.0, 1.0]))
    np.testing.assert_array_equal(posterior.mean, before)


# -- masked and missing values -----------------------------------------------------------------------

HIDDEN = np.ma.array([1.0, 2.0], mask=[False, True])
HIDDEN_NAMES = np.ma.array(PAIR, mask=[False, True])
HIDDEN_ROWS = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, False], [True, False]])

MASKED = {
    "rewards": lambda: bough.Posterior(PLAIN).update(PAIR, HIDDEN),
    "a list of rewards": lambda: bough.Posterior(PLAIN).update(PAIR, list(HIDDEN)),
    "one reward": lambda: bough.Posterior(PLAIN).update("green", HIDDEN[1]),
    "actions": lambda: bough.Posterior(PLAIN).update(HIDDEN_NAMES, [1.0, 2.0]),
    "one context": lambda: bough.Posterior(CONTEXTUAL).update("green", 1.0, HIDDEN),
    "contexts": lambda: bough.Posterior(CONTEXTUAL).update(PAIR, [1.0, 2.0], HIDDEN_ROWS),
    "a list of contexts": lambda: bough.Posterior(CONTEXTUAL).update(PAIR, [1.0, 2.0], list(HIDDEN_ROWS)),
    "trials": lambda: bough.Posterior(CLICKS).update(PAIR, [1, 1], trials=HIDDEN),
    "observations": lambda: bough.Observations(PAIR, HIDDEN).rows(PLAIN),
    "added observations": lambda: bough.Observations(PAIR, HIDDEN) + bough.Observations(PAIR, [1.0, 2.0]),
    "rows": lambda: bough.Statistics.from_rows(PAIR, HIDDEN),
    "names of rows": lambda: bough.Statistics.from_rows(HIDDEN_NAMES, [1.0, 2.0]),
    "contexts of rows": lambda: bough.Statistics.from_rows(PAIR, [1.0, 2.0], HIDDEN_ROWS),
    "weights": lambda: bough.Statistics.from_rows(PAIR, [1.0, 2.0], weight=HIDDEN),
    "among": lambda: bough.HierTS(PLAIN, 0).decide(among=HIDDEN_NAMES),
    "exclude": lambda: bough.HierTS(PLAIN, 0).decide(exclude=HIDDEN_NAMES),
    "best's among": lambda: bough.Posterior(PLAIN).best(among=HIDDEN_NAMES),
    "best's exclude": lambda: bough.Posterior(PLAIN).best(exclude=HIDDEN_NAMES),
    "best's context": lambda: bough.Posterior(CONTEXTUAL).best(HIDDEN),
    "decide": lambda: bough.HierTS(CONTEXTUAL, 0).decide(HIDDEN),
    "decide_many": lambda: bough.HierTS(CONTEXTUAL, 0).decide_many(HIDDEN_ROWS),
    "action_nodes": lambda: TREE.action_nodes(HIDDEN_NAMES),
    "truth": lambda: bough.World(PLAIN, np.ma.array(np.ones(4), mask=[0, 0, 0, 1]), np.ones(3)),
    "mean": lambda: bough.GaussianModel(TREE, HIDDEN),
    "parents": lambda: bough.Tree.from_parents(np.ma.array([-1, 0], mask=[False, True])),
}


@pytest.mark.parametrize("what", MASKED)
def test_a_masked_entry_is_a_missing_value(what):
    with pytest.raises(ValueError, match="masked"):
        MASKED[what]()


def test_an_array_with_nothing_masked_is_like_any_other():
    masked, usual = bough.Posterior(CONTEXTUAL), bough.Posterior(CONTEXTUAL)
    masked.update(np.ma.array(PAIR), np.ma.array([1.0, 2.0]), np.ma.array(np.eye(2), mask=np.zeros((2, 2))))
    usual.update(PAIR, [1.0, 2.0], np.eye(2))
    np.testing.assert_array_equal(masked.mean, usual.mean)


@pytest.mark.parametrize(
    "rewards",
    [
        pandas.array([1, None], "Int64"),
        pandas.Series([1.0, None], dtype="Float64"),
        pyarrow.array([1.0, None]),
        [1, None],
    ],
    ids=["Int64", "Float64", "arrow", "None"],
)
def test_a_null_among_rewards_is_refused_by_its_row(rewards):
    posterior = bough.Posterior(PLAIN)
    with pytest.raises(ValueError, match="the reward in row 1 is nan"):
        posterior.update(PAIR, rewards)
    assert posterior.n_observations == 0


@pytest.mark.parametrize(
    "actions",
    [pandas.array([7, None], "Int64"), pyarrow.array(["green", None]), ["green", pandas.NA], ["green", None]],
    ids=["Int64", "arrow", "NA", "None"],
)
def test_a_null_among_actions_is_an_unknown_action(actions):
    posterior = bough.Posterior(PLAIN)
    with pytest.raises(KeyError, match="unknown action"):
        posterior.update(actions, [1.0, 2.0])
    with pytest.raises(ValueError, match="cannot be a node's name"):
        bough.Statistics.from_rows(actions, [1.0, 2.0])
    assert posterior.n_observations == 0


def test_nullable_columns_without_nulls_are_numbers_and_names():
    posterior = bough.Posterior(bough.GaussianModel(NUMBERED))
    posterior.update(pandas.array([13, 14], "Int64"), pandas.array([1, 2], "Int64"))
    posterior.update(pyarrow.array([13, 14]), pyarrow.array([1, 2]))
    assert posterior.n_observations == 4


# -- numbers that are not real -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize(
    "reward", [1 + 2j, np.complex128(1 + 2j), np.complex64(1), np.array(1 + 0j), np.datetime64("2020-01-01"), "1.0"]
)
def test_a_reward_that_is_no_real_number_is_refused_one_by_one_and_in_batches(reward):
    posterior = bough.Posterior(PLAIN)
    for give in (
        lambda: posterior.update("green", reward),
        lambda: posterior.update(["green"], [reward]),
        lambda: posterior.update(["green"], np.array([reward], dtype=object)),
        lambda: bough.GaussianModel(TREE, reward),
        lambda: bough.GaussianModel(TREE, noise_variance=reward),
        lambda: bough.GaussianModel(TREE, covariance=reward),
    ):
        with pytest.raises(ValueError, match="give"):
            give()
    assert posterior.n_observations == 0


def test_one_decision_and_many_take_the_same_contexts():
    agent = bough.HierTS(CONTEXTUAL, 0)
    for context in ([1e200, 0.0], [np.nan, 0.0], [0.0, -np.inf], [1e150, 0.0], ["1", "2"], [1j, 0.0]):
        with pytest.raises(ValueError, match="context"):
            agent.decide(context)
        with pytest.raises(ValueError, match="context"):
            agent.decide_many([context])
    assert agent.decide([9e149, 0.0]) in TREE.actions
    assert agent.decide_many([[9e149, 0.0]])[0] in TREE.actions


# -- True is not 1 -----------------------------------------------------------------------------------

INTEGERS = {
    "numbered": bough.Tree.balanced(3, 1),
    "stored": bough.Tree.from_parents([-1, 0, 0, 0], names=[5, 0, 1, 2]),
    "mixed": bough.Tree.from_nested([0, 1, "x", (1, 2)]),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("flag", [True, np.True_])
def test_true_is_not_the_name_of_action_1(kind, flag):
    tree = INTEGERS[kind]
    agent = bough.HierTS(bough.GaussianModel(tree), 0)
    assert 1 in tree.actions
    assert flag not in tree.actions
    for use in (
        lambda: tree.index(flag),
        lambda: tree.path(flag),
        lambda: tree.action_node(flag),
        lambda: tree.action_nodes([1, flag]),
        lambda: tree.action_nodes(np.array([flag, flag])),
        lambda: agent.update(flag, 1.0),
        lambda: agent.update([1, flag], [1.0, 2.0]),
        lambda: agent.decide(among=[flag]),
        lambda: agent.decide(exclude=[flag]),
        lambda: agent.absorb(bough.Statistics.from_rows([flag], [1.0])),
        lambda: bough.GaussianModel(tree, covariance=bough.by_node({flag: 1.0}, default=1.0)),
    ):
        with pytest.raises(KeyError, match="unknown"):
            use()
    assert agent.posterior.n_observations == 0


def test_a_tree_of_true_and_false_has_them_as_names_and_no_integers():
    tree = bough.Tree.from_nested([False, True])
    assert tree.action_nodes([True, False, np.True_]).tolist() == [2, 1, 2]
    assert tree.action_nodes(np.array([True, False])).tolist() == [2, 1]
    assert True in tree.actions
    assert 1 not in tree.actions
    with pytest.raises(KeyError, match="unknown action 1"):
        tree.action_nodes([1, 0])


def test_true_and_1_are_two_actions_of_statistics():
    statistics = bough.Statistics.from_rows([1, True, 1, "x"], [1.0, 2.0, 4.0, 8.0])
    assert [(type(name), total) for name, total in zip(statistics.actions, statistics.sum_y, strict=True)] == [
        (int, 5.0),
        (bool, 2.0),
        (str, 8.0),
    ]
    assert (statistics + statistics).sum_y.tolist() == [10.0, 4.0, 16.0]
    assert len(bough.Statistics(statistics.actions, statistics.count, statistics.sum_y, statistics.sum_yy).actions) == 3


def test_names_beyond_64_bits_stay_what_they_are():
    huge = np.array([2**64 - 1, 3], dtype=np.uint64)
    statistics = bough.Statistics.from_rows(huge, [1.0, 2.0])
    assert statistics.actions.tolist() == [2**64 - 1, 3]
    assert bough.Statistics(huge, [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]).actions.tolist() == [2**64 - 1, 3]


# -- every call with every odd argument --------------------------------------------------------------

ODD = {
    "None": None,
    "True": True,
    "text": "x",
    "no text": "",
    "fraction": 5.5,
    "negative": -3,
    "huge": 10**30,
    "huge fraction": 1e300,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "empty": [],
    "0-d": np.array(50),
    "nested": [[1], [2]],
    "ragged": [[1], [2, 3]],
    "masked": HIDDEN,
    "masked one": np.ma.masked,
    "complex": 1 + 2j,
    "numpy's complex": np.complex128(1 + 2j),
    "hidden complex": np.array([np.complex128(1 + 1j), 1.0], dtype=object),
    "bytes": b"ab",
    "datetime": datetime.datetime(2020, 1, 1),
    "numpy's datetime": np.datetime64("2020-01-01"),
    "timedelta": np.timedelta64(3, "s"),
    "object": object(),
    "mapping": {"a": 1},
    "NA": pandas.NA,
    "table": np.ones((3, 3)),
    "numbers as text": ["1", "2"],
    "null in a list": [None, 1.0],
    "nullable": pandas.array([1, None], "Int64"),
    "records": np.zeros(2, dtype=[("a", int)]),
    "frame": pandas.DataFrame({"z": [1, 2]}),
    "a type": int,
}
REAL = {"True", "fraction", "negative", "huge", "0-d"}
POSITIVE = REAL - {"negative"}
SPANS = {"None", "fraction", "huge", "huge fraction", "0-d", "timedelta"}
TIMES = {"True", "fraction", "negative", "huge", "huge fraction", "0-d", "datetime", "numpy's datetime"}
SEEDS = {"None", "True", "huge", "empty", "nested", "ragged", "numbers as text", "records", "table"}


def observed(model, *context):
    posterior = bough.Posterior(model)
    posterior.update("green", 1.0, *context)
    return posterior


POSTERIOR, IN_CONTEXT = observed(PLAIN), observed(CONTEXTUAL, [1.0, 0.0])
NAMED = observed(bough.GaussianModel(TREE, [0.0, 0.0], features=["age", "price"]), [1.0, 0.0])
AGENT, AGENT_IN_CONTEXT = bough.HierTS.resume(POSTERIOR, 0), bough.HierTS.resume(IN_CONTEXT, 0)
SIMULATION = bough.simulate(PLAIN, {"TS": bough.TS}, rounds=2, runs=2, seed=0, jobs=1)
WORLD = bough.World(CONTEXTUAL, np.zeros((4, 2)), np.zeros(3), np.zeros((3, 2)))
FIT = bough.fit_prior(TREE, SUMS)
LINKAGE = np.array([[0, 1, 0.1, 2], [2, 3, 0.5, 3]])
DECISIONS = pandas.DataFrame({"action": PAIR * 2, "reward": [1.0, 0.0, 0.5, 0.0], "propensity": [0.5] * 4, "c": 1.0})
POLICY = {"green": 0.5, "black": 0.5}
WIDE = np.random.default_rng(0).normal(size=(8, 2))


def simulated(**changes):
    given = {"model": PLAIN, "policies": {"TS": bough.TS}, "rounds": 2, "runs": 2, "seed": 0, "jobs": 1}
    return bough.simulate(**(given | changes))


def fitted(**changes):
    return bough.fit_prior(**({"tree": TREE, "data": SUMS} | changes))


def evaluated(**changes):
    given = {"policies": {"new": POLICY}, "log": DECISIONS, "tree": TREE, "estimators": ["ips", "snips"]}
    return bough.evaluate(**(given | changes))


def replayed(**changes):
    return bough.replay(**({"agent": AGENT, "log": DECISIONS, "tree": TREE} | changes))


# A call of one argument, and the odd ones that it may take.
CALLS = {
    "tree.index": (TREE.index, {"no text"}),
    "tree.path": (TREE.path, {"no text"}),
    "tree.find": (TREE.find, {"text", "no text", "negative", "huge"}),
    "levels of paths": (lambda v: bough.Tree.from_paths(["a/b"], levels=v), {"None", "numbers as text"}),
    "levels of mappings": (lambda v: bough.Tree.from_nested(["a"], levels=v), {"None", "mapping", "frame"}),
    "tree.name": (TREE.name, ()),
    "tree.path_nodes": (TREE.path_nodes, ()),
    "tree.children": (TREE.children, ()),
    "tree.is_action": (TREE.is_action, ()),
    "tree.action_node": (TREE.action_node, ()),
    "tree.action_nodes": (TREE.action_nodes, {"empty"}),
    "numbered action_nodes": (NUMBERED.action_nodes, {"empty"}),
    "tree.at_leaves": (TREE.at_leaves, ()),
    "show to a depth": (lambda v: TREE.show(max_depth=v), ()),
    "show children": (lambda v: TREE.show(max_children=v), ()),
    "branching": (lambda v: bough.Tree.balanced(v, 2), ()),
    "height": (lambda v: bough.Tree.balanced(2, v), ()),
    "from_parents": (bough.Tree.from_parents, ()),
    "names": (lambda v: bough.Tree.from_parents([-1, 0], v), {"None", "numbers as text", "hidden complex"}),
    "from_paths": (bough.Tree.from_paths, {"mapping", "numbers as text", "frame"}),
    "sep": (lambda v: bough.Tree.from_paths(["a"], v), {"text"}),
    "from_nested": (bough.Tree.from_nested, {"numbers as text", "hidden complex", "frame", "records"}),
    "from_frame": (lambda v: bough.Tree.from_frame(v, ["a"]), ()),
    "columns": (lambda v: bough.Tree.from_frame(FRAME, v), {"mapping"}),
    "missing levels": (lambda v: bough.Tree.from_frame(FRAME, ["a"], missing=v), ()),
    "from_networkx": (bough.Tree.from_networkx, ()),
    "from_linkage": (bough.Tree.from_linkage, ()),
    "linkage's names": (lambda v: bough.Tree.from_linkage(LINKAGE, v), {"None"}),
    "model's tree": (bough.GaussianModel, ()),
    "mean": (lambda v: bough.GaussianModel(TREE, v), REAL),
    "covariance": (lambda v: bough.GaussianModel(TREE, covariance=v), POSITIVE),
    "matrix": (lambda v: bough.GaussianModel(TREE, [0.0, 0.0], v), POSITIVE),
    "noise_variance": (lambda v: bough.GaussianModel(TREE, noise_variance=v), POSITIVE),
    "by_depth": (lambda v: bough.GaussianModel(TREE, covariance=bough.by_depth(v)), ()),
    "one of by_depth": (lambda v: bough.GaussianModel(TREE, covariance=bough.by_depth([1.0, v, 1.0])), POSITIVE),
    "by_depth of levels": (lambda v: bough.GaussianModel(LEVELLED, covariance=bough.by_depth(v)), ()),
    "level of a frame": (lambda v: POSTERIOR.to_frame(level=v), {"None"}),
    "name of a level": (lambda v: bough.Posterior(bough.GaussianModel(LEVELLED)).to_frame(level=v), {"None"}),
    "by_height": (lambda v: bough.GaussianModel(TREE, covariance=bough.by_height(v)), ()),
    "by_node": (lambda v: bough.GaussianModel(TREE, covariance=bough.by_node(v)), ()),
    "one of by_node": (lambda v: bough.GaussianModel(TREE, covariance=bough.by_node({7: v}, default=1.0)), POSITIVE),
    "draw": (PLAIN.draw, SEEDS),
    "posterior's model": (bough.Posterior, ()),
    "action": (lambda v: POSTERIOR.update(v, 1.0), ()),
    "actions": (lambda v: POSTERIOR.update(v, [1.0, 2.0]), ()),
    "rewards": (lambda v: POSTERIOR.update(PAIR, v), ()),
    "no context": (lambda v: POSTERIOR.update("green", 1.0, v), {"None"}),
    "context": (lambda v: IN_CONTEXT.update("green", 1.0, v), ()),
    "contexts": (lambda v: IN_CONTEXT.update(PAIR, [1.0, 2.0], v), ()),
    "trials": (lambda v: bough.Posterior(CLICKS).update(PAIR, [1, 1], trials=v), {"None", "True", "huge", "0-d"}),
    "settle of an update": (lambda v: bough.Posterior(PLAIN).update("green", 1.0, settle=v), {"True"}),
    "settle of an agent's batch": (lambda v: bough.HierTS(CLICKS).update(PAIR, [1, 0], settle=v), {"True"}),
    "settle of sums": (lambda v: bough.Posterior(PLAIN).absorb(SUMS, settle=v), {"True"}),
    "agent's settle of sums": (lambda v: bough.HierTS(PLAIN).absorb(SUMS, settle=v), {"True"}),
    "absorb": (POSTERIOR.absorb, ()),
    "settle": (POSTERIOR.settle, {"None"}),
    "settle's method": (lambda v: POSTERIOR.settle(method=v), ()),
    "action_moments": (IN_CONTEXT.action_moments, ()),
    "mean_reward": (IN_CONTEXT.mean_reward, ()),
    "level": (lambda v: POSTERIOR.mean_reward(level=v), ()),
    "conditional": (POSTERIOR.conditional, ()),
    "sample": (POSTERIOR.sample, SEEDS),
    "size": (lambda v: POSTERIOR.sample(0, size=v), {"None"}),
    "from_normals": (POSTERIOR.from_normals, ()),
    "sample_actions": (POSTERIOR.sample_actions, {"empty"}),
    "best_actions": (lambda v: POSTERIOR.best_actions(0, k=v), ()),
    "best_actions' exclude": (lambda v: POSTERIOR.best_actions(0, exclude=v), {"None", "empty"}),
    "best_actions' context": (lambda v: IN_CONTEXT.best_actions(0, v), ()),
    "best's context": (lambda v: IN_CONTEXT.best(v, samples=2), ()),
    "best's among": (lambda v: POSTERIOR.best(among=v), {"None"}),
    "best's exclude": (lambda v: POSTERIOR.best(exclude=v), {"None", "empty"}),
    "best's samples": (lambda v: POSTERIOR.best(samples=v), ()),
    "best's seed": (lambda v: POSTERIOR.best(seed=v), SEEDS),
    "best's name": (POSTERIOR.best().of, {"no text"}),
    "best's top": (lambda v: POSTERIOR.best().to_frame(top=v), {"None"}),
    "best's backend": (lambda v: POSTERIOR.best().to_frame(backend=v), {"None"}),
    "quantile of the best": (POSTERIOR.best().maximum.quantile, ()),
    "agent's best": (lambda v: AGENT.best(among=v), {"None"}),
    "loss to stop at": (lambda v: AGENT.should_stop(loss=v), POSITIVE - {"True"} | {"None", "huge fraction"}),
    "probability to stop at": (lambda v: AGENT.should_stop(probability=v), {"None"}),
    "exclude to stop": (lambda v: AGENT.should_stop(exclude=v), {"None", "empty"}),
    "policy's model": (bough.HierTS, ()),
    "seed": (lambda v: bough.HierTS(PLAIN, v), SEEDS),
    "search": (lambda v: bough.HierTS(PLAIN, search=v), {"None", "True"}),
    "refit": (lambda v: bough.Greedy(PLAIN, refit=v), {"True"}),
    "resume": (bough.HierTS.resume, ()),
    "resume's statistics": (lambda v: bough.HierTS.resume(POSTERIOR, refit=True, statistics=v), {"None"}),
    "explained decision": (AGENT.explain, {"no text"}),  # the name of the root
    "decide": (AGENT_IN_CONTEXT.decide, ()),
    "half_life": (
        lambda v: bough.HierTS(PLAIN, half_life=v),
        SPANS,
    ),
    "drift": (
        lambda v: bough.GaussianModel(TREE, drift=v),
        SPANS,
    ),
    "now": (lambda v: setattr(bough.HierTS(PLAIN), "now", v), TIMES),
    "at": (lambda v: bough.HierTS(PLAIN).update("green", 1.0, at=v), TIMES | {"None"}),
    "discount": (lambda v: bough.Posterior(PLAIN).discount(v), {"True"}),
    "retract": (lambda v: bough.Posterior(PLAIN).retract("green", v), {"empty"}),
    "retire": (AGENT.retire, {"empty"}),
    "restore": (AGENT.restore, {"empty"}),
    "forget": (AGENT.forget, {"empty"}),
    "move": (lambda v: AGENT.move(v, under="tea"), ()),
    "move's under": (lambda v: bough.HierTS(PLAIN).move("green", under=v), {"no text"}),
    "add's under": (lambda v: bough.HierTS(PLAIN).add("new", under=v), {"no text"}),
    "adopt": (AGENT.adopt, ()),
    "renamed in adopt": (lambda v: bough.HierTS(PLAIN).adopt(TREE, renamed=v), {"None"}),
    "gone": (lambda v: AGENT.adopt(TREE, gone=v), ()),
    "edited's add": (lambda v: TREE.edited(add=v), {"None", "empty"}),
    "edited's move": (lambda v: TREE.edited(move=v), {"None", "empty"}),
    "edited's remove": (lambda v: TREE.edited(remove=v), {"None", "empty"}),
    "k": (lambda v: AGENT.decide(k=v), {"None"}),
    "among": (lambda v: AGENT.decide(among=v), {"None"}),
    "exclude": (lambda v: AGENT.decide(exclude=v), {"None", "empty"}),
    "decide_many": (AGENT_IN_CONTEXT.decide_many, ()),
    "number of decisions": (AGENT.decide_many, ()),
    "propensity": (lambda v: AGENT.propensity(v, samples=2), {"empty"}),
    "propensity's k": (lambda v: AGENT.propensity(PAIR, k=v, samples=2), {"None"}),
    "propensity's among": (lambda v: AGENT.propensity(PAIR, among=v, samples=2), {"None"}),
    "missing": (lambda v: AGENT.decide(among=PAIR, missing=v), ()),
    "at_most": (lambda v: AGENT.decide(k=2, at_most=v), {"True"}),
    "decision's samples": (lambda v: AGENT.decision(samples=v), ()),
    "decision's context": (AGENT_IN_CONTEXT.decision, ()),
    "samples": (lambda v: AGENT.propensity(PAIR, samples=v), ()),
    "refitted action": (lambda v: bough.HierTS(PLAIN, 0, refit=True).update(v, 1.0), ()),
    "refitted rewards": (lambda v: bough.HierTS(PLAIN, 0, refit=True).update(PAIR, v), ()),
    "BetaTS": (bough.BetaTS, ()),
    "observed actions": (lambda v: bough.Observations(v, [1.0, 2.0]).rows(PLAIN), ()),
    "observed rewards": (lambda v: bough.Observations(PAIR, v).rows(PLAIN), ()),
    "observed contexts": (lambda v: bough.Observations(PAIR, [1.0, 0.0], v).rows(CONTEXTUAL), ()),
    "rows' model": (lambda v: bough.Observations(PAIR, [1.0, 0.0]).rows(v), ()),
    "added rewards": (
        lambda v: bough.Observations(PAIR, [1, 0]) + bough.Observations(PAIR, v),
        {"empty", "null in a list", "nullable"},
    ),
    "frame": (lambda v: bough.Observations.from_frame(v, "a", "r"), ()),
    "frame's action": (lambda v: bough.Observations.from_frame(FRAME, v, "r"), ()),
    "frame's context": (lambda v: bough.Observations.from_frame(FRAME, "a", "r", v), {"None", "empty", "mapping"}),
    "frame's trials": (lambda v: bough.Observations.from_frame(FRAME, "a", "r", trials=v), {"None"}),
    "world's model": (lambda v: bough.World(v, np.zeros(4), np.zeros(3)), ()),
    "truth": (lambda v: bough.World(PLAIN, v, np.zeros(3)), ()),
    "noise": (lambda v: bough.World(PLAIN, np.zeros(4), v), ()),
    "world's contexts": (lambda v: bough.World(CONTEXTUAL, np.zeros((4, 2)), np.zeros(3), v), ()),
    "residuals": (lambda v: bough.World(PLAIN, np.zeros(4), np.zeros(3), residuals=v), {"None"}),
    "eligible": (lambda v: bough.World(PLAIN, np.zeros(4), np.zeros(3), eligible=v), {"None"}),
    "truth in contexts": (lambda v: bough.World(CONTEXTUAL, v, np.zeros(3), np.zeros((3, 2))), {"a type"}),
    "pays": (lambda v: bough.World(PLAIN, np.zeros(4), np.zeros(3), pays=v), {"None", "a type"}),
    "round": (WORLD.mean_rewards, ()),
    "best": (WORLD.best, ()),
    "reward's action": (lambda v: WORLD.reward(0, v, 0.0), ()),
    "reward's mean": (lambda v: WORLD.reward(0, 0, v), REAL | {"huge fraction"}),
    "residuals' values": (lambda v: bough.Residuals(v, [0, 1], [0.5]), ()),
    "residuals' start": (lambda v: bough.Residuals([1.0, 2.0], v, [0.5]), ()),
    "simulated model": (lambda v: simulated(model=v), ()),
    "policies": (lambda v: simulated(policies=v), ()),
    "warmed up": (bough.warm_up, ()),
    "one policy": (lambda v: simulated(policies={"x": v}), ()),
    "rounds": (lambda v: simulated(rounds=v), ()),
    "runs": (lambda v: simulated(runs=v), ()),
    "simulation's seed": (lambda v: simulated(seed=v), SEEDS),
    "jobs": (lambda v: simulated(jobs=v), {"None", "negative"}),
    "simulated contexts": (lambda v: simulated(model=CONTEXTUAL, contexts=v), {"a type"}),
    "progress": (lambda v: simulated(progress=v), {"None", "True", "a type"}),
    "simulation.mean": (SIMULATION.mean, ()),
    "backend": (SIMULATION.to_frame, {"None"}),
    "bound's model": (lambda v: theory.regret_bound(v, 5), ()),
    "bound's rounds": (lambda v: theory.regret_bound(PLAIN, v), ()),
    "delta": (lambda v: theory.regret_bound(PLAIN, 5, v), {"None"}),
    "constant": (lambda v: theory.regret_bound(PLAIN, 5, constant=v), ()),
    "decomposed posterior": (lambda v: theory.variance_decomposition(v, "green"), ()),
    "decomposed action": (lambda v: theory.variance_decomposition(POSTERIOR, v), ()),
    "information": (lambda v: theory.information(v, "green"), ()),
    "expected_maximum": (theory.expected_maximum, ()),
    "uniform_regret": (lambda v: theory.uniform_regret(PLAIN, v), ()),
    "problem's height": (lambda v: problems.increasing(2, v), ()),
    "rate": (lambda v: problems.clicks(2, 2, v), ()),
    "variances": (lambda v: problems.clicks(2, 2, 0.1, v), {"None"}),
    "drifting model": (lambda v: problems.drifting(v, 5.0), ()),
    "drifting half-life": (lambda v: problems.drifting(PLAIN, v), POSITIVE | {"huge fraction"}),
    "movers": (lambda v: problems.drifting(PLAIN, 5.0, v), ()),
    "redrawn": (lambda v: problems.drifting(PLAIN, 5.0, redrawn=v), {"True"}),
    "fit's policy": (FIT.agent, {"None"}),
    "fit's seed": (lambda v: FIT.agent(seed=v), SEEDS),
    "which": (lambda v: FIT.agent(which=v), ()),
    "fitted tree": (lambda v: fitted(tree=v), ()),
    "fitted data": (lambda v: fitted(data=v), ()),
    "fitted frame": (lambda v: fitted(data=v, action="a", reward="r"), ()),
    "by": (lambda v: fitted(by=v), ()),
    "fitted noise": (lambda v: fitted(noise=v), POSITIVE - {"True"}),
    "fitted mean": (lambda v: fitted(mean=v), REAL),
    "root": (lambda v: fitted(root=v), POSITIVE | {"None"}),
    "structure": (lambda v: fitted(structure=v), ()),
    "penalty": (lambda v: fitted(penalty=v), {"None", "fraction", "huge", "0-d"}),
    "fitted model": (lambda v: fitted(model=v), ()),
    "fitted context": (lambda v: fitted(data=FRAME, action="a", reward="r", context=v), {"None"}),
    "intercept": (lambda v: fitted(data=FRAME, action="a", reward="r", context=["c"], intercept=v), {"True"}),
    "bad": (lambda v: fitted(data=FRAME, action="a", reward="r", bad=v), ()),
    "names of classes": (FIT.summary, {"None", "mapping"}),
    "names of features": (lambda v: FIT.summary(features=v), {"None", "mapping", "frame"}),
    "evaluated policies": (lambda v: evaluated(policies=v), ()),
    "evaluated policy": (lambda v: evaluated(policies={"new": v}), ()),
    "evaluated log": (lambda v: evaluated(log=v), ()),
    "evaluated tree": (lambda v: evaluated(tree=v), ()),
    "evaluated action": (lambda v: evaluated(action=v), ()),
    "evaluated reward": (lambda v: evaluated(reward=v), ()),
    "evaluated propensity": (lambda v: evaluated(propensity=v), ()),
    "evaluated context": (lambda v: evaluated(context=v), {"None"}),
    "evaluated position": (lambda v: evaluated(position=v), {"None"}),
    "propensity_error": (lambda v: evaluated(propensity_error=v), {"None"}),
    "evaluated model": (lambda v: evaluated(model=v, estimators=["dm"]), {"None"}),
    "estimators": (lambda v: evaluated(estimators=v), ()),
    "evaluated interval": (lambda v: evaluated(interval=v), ()),
    "evaluated level": (lambda v: evaluated(level=v), ()),
    "reward_range": (lambda v: evaluated(reward_range=v), {"None"}),
    "evaluated samples": (lambda v: evaluated(samples=v), ()),
    "evaluated seed": (lambda v: evaluated(seed=v), SEEDS),
    "evaluated bad": (lambda v: evaluated(bad=v), ()),
    "replayed agent": (lambda v: replayed(agent=v), ()),
    "replayed log": (lambda v: replayed(log=v), ()),
    "replayed tree": (lambda v: replayed(tree=v), ()),
    "replayed action": (lambda v: replayed(action=v), ()),
    "replayed context": (lambda v: replayed(context=v), {"None"}),
    "replayed propensity": (lambda v: replayed(propensity=v), {"None"}),
    "replayed level": (lambda v: replayed(level=v), ()),
    "replayed bad": (lambda v: replayed(bad=v), ()),
    "sample_ratio": (lambda v: bough.sample_ratio(v, TREE), ()),
    "sample_ratio's tree": (lambda v: bough.sample_ratio(DECISIONS, v), ()),
    "sample_ratio's action": (lambda v: bough.sample_ratio(DECISIONS, TREE, v), ()),
    "sample_ratio's position": (lambda v: bough.sample_ratio(DECISIONS, TREE, position=v), {"None"}),
    "from_obp": (bough.data.from_obp, ()),
    "to_obp": (lambda v: bough.data.to_obp(v, TREE), ()),
    "to_obp's tree": (lambda v: bough.data.to_obp(DECISIONS, v), ()),
    "to_obp's context": (lambda v: bough.data.to_obp(DECISIONS, TREE, context=v), {"None", "empty"}),
    "to_obp's position": (lambda v: bough.data.to_obp(DECISIONS, TREE, position=v), {"None"}),
    "gibbs": (lambda v: bough.gibbs(v, (PAIR, [1, 0])), ()),
    "gibbs' data": (lambda v: bough.gibbs(CLICKS, v, draws=4, chains=1), ()),
    "draws": (lambda v: bough.gibbs(CLICKS, (PAIR, [1, 0]), draws=v, chains=1), ()),
    "features": (lambda v: bough.prior_from_features(TREE, v, PAIR), ()),
    "model's features": (lambda v: bough.GaussianModel(TREE, [0.0, 0.0], features=v), {"None", "numbers as text"}),
    "clicks' features": (lambda v: bough.BernoulliModel(TREE, [0.0, 0.0], features=v), {"None", "numbers as text"}),
    "named context": (lambda v: NAMED.update("green", 1.0, v), ()),
    "named contexts": (lambda v: NAMED.update(PAIR, [1.0, 2.0], v), ()),
    "value of a context": (lambda v: NAMED.explain("green", {"age": v, "price": 1.0}), REAL),
    "column of contexts": (
        lambda v: bough.HierTS.resume(NAMED, 0).decide_many({"age": v, "price": [1.0, 2.0]}),
        (),
    ),
    "fitted features": (
        lambda v: fitted(data=FRAME, action="a", reward="r", context=["c"], features=v),
        {"None"},
    ),
    "summed features": (lambda v: bough.summarise(FRAME, TREE, "a", "r", ["c"], features=v), {"None"}),
    "rows' features": (
        lambda v: bough.Statistics.from_rows(PAIR, [1.0, 2.0], np.eye(2), features=v),
        {"None", "numbers as text"},
    ),
    "arranged sums": (bough.Statistics.from_rows(PAIR, [1.0, 2.0], np.eye(2), features=["x", "y"]).arranged, {"None"}),
    "arranged rows": (bough.Observations(PAIR, [1.0, 2.0], np.eye(2), features=["x", "y"]).arranged, {"None"}),
    "observed features": (
        lambda v: bough.Observations(PAIR, [1.0, 0.0], np.eye(2), features=v).rows(CONTEXTUAL),
        {"None", "numbers as text"},
    ),
    "frame's intercept": (lambda v: bough.Observations.from_frame(FRAME, "a", "r", ["c"], intercept=v), {"True"}),
    "learned frame": (bough.Features.learn, {"frame"}),
    "numeric columns": (lambda v: bough.Features.learn(FRAME, v, ["a"], other_below=1), {"None", "empty"}),
    "categorical columns": (lambda v: bough.Features.learn(FRAME, ["r"], v), {"None", "empty"}),
    "other_below": (lambda v: bough.Features.learn(FRAME, ["r"], other_below=v), {"huge"}),
    "features' intercept": (lambda v: bough.Features.learn(FRAME, ["r"], intercept=v), {"True"}),
    "transformed": (bough.Features(["r"], [0.0], [1.0]).transform, ()),
    "inverted": (bough.Features(["r"], [0.0], [1.0]).inverse, ()),
    "features' actions": (lambda v: bough.prior_from_features(TREE, WIDE, v), ()),
    "page's title": (lambda v: AGENT.dashboard("page.html", title=v), {"None", "text", "no text"}),
    "page's path": (AGENT.dashboard, {"text"}),
    "page's agent": (lambda v: bough.write_dashboard(v, "page.html"), ()),
    "spread": (lambda v: bough.prior_from_features(TREE, WIDE, [*TREE.actions] * 2, spread=v), ()),
    "rows' actions": (
        lambda v: bough.Statistics.from_rows(v, [1.0, 2.0]),
        {"numbers as text", "hidden complex", "records"},
    ),
    "rows' rewards": (lambda v: bough.Statistics.from_rows(PAIR, v), ()),
    "rows' contexts": (lambda v: bough.Statistics.from_rows(PAIR, [1.0, 2.0], v), {"None", "nested", "frame"}),
    "rows' weights": (lambda v: bough.Statistics.from_rows(PAIR, [1.0, 2.0], weight=v), {"None"}),
    "rows' trials": (lambda v: bough.Statistics.from_rows(PAIR, [1.0, 2.0], trials=v), {"None"}),
    "summed actions": (lambda v: sums(actions=v), {"numbers as text", "hidden complex"}),
    "counts": (lambda v: sums(count=v), ()),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument_is_refused_in_words_and_changes_nothing(call):
    use, taken = CALLS[call]
    before = [(one.n_observations, one.mean.copy()) for one in (POSTERIOR, IN_CONTEXT, NAMED)]
    assert set(taken) <= set(ODD)
    for what in ODD.keys() - set(taken):
        with pytest.raises((ValueError, KeyError)) as caught:
            use(ODD[what])
        assert len(str(caught.value)) > 20, what
    for one, (n, mean) in zip((POSTERIOR, IN_CONTEXT, NAMED), before, strict=True):
        assert one.n_observations == n
        np.testing.assert_array_equal(one.mean, mean)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda: AGENT.decide(exclude=np.array(5)), "give a list of action names"),
        (lambda: TREE.is_action(100), "100 is not a node number"),
        (lambda: TREE.path_nodes(-5), "-5 is not a node number"),
        (lambda: POSTERIOR.sample_actions([500]), "500 is not a node number"),
        (lambda: POSTERIOR.sample_actions([-3]), "-3 is not a node number"),
        (lambda: POSTERIOR.sample_actions([2**32 + 3]), "4294967299 is not a node number"),
        (lambda: POSTERIOR.best_actions(0, exclude=[5.5]), "give a list of integers"),
        (lambda: bough.Tree.balanced(10, 10**15), "at most"),
        (lambda: bough.Tree.from_parents(np.array([2**64 - 1, 0], dtype=np.uint64)), "give a list of integers"),
        (lambda: bough.GaussianModel(TREE, ["1", "2"]), "give numbers"),
    ],
)
def test_numbers_of_nodes_and_sizes_are_checked(use, text):
    with pytest.raises(ValueError, match=text):
        use()
