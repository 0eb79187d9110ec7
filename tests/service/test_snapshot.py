"""Snapshots: the state of an agent as bytes, taken in a moment, and the agent again."""

import threading
from datetime import timedelta

import numpy as np
import pytest

import bough
from bough import _storage
from bough.service.snapshot import encode, frozen, thawed
from threads import check_consistent, in_threads

NAMES = {
    "tea": {"leaf": ["green", "black"], "bag": ["mint"]},
    "coffee": {"beans": ["espresso", "filter", 7]},
    "milk": ["cow"],
}
TREE = bough.Tree.from_nested(NAMES)
ACTIONS = ["green", "black", "mint", "espresso", "filter", 7, "cow"]
DEPTHS = bough.by_depth([1.0, 0.5, 0.5, 2.0])
MODELS = {
    "gaussian": lambda tree=TREE: bough.GaussianModel(tree, 0.2, DEPTHS, 0.3),
    "gaussian in contexts": lambda tree=TREE: bough.GaussianModel(tree, np.array([0.1, 0.0, -0.2]), DEPTHS),
    "noise per action": lambda tree=TREE: bough.GaussianModel(
        tree, 0.2, DEPTHS, noise=bough.per_action(0.3, 1.0, 1e-3)
    ),
    "clicks": lambda tree=TREE: bough.BernoulliModel(tree, -1.0, DEPTHS),
    "clicks in contexts": lambda tree=TREE: bough.BernoulliModel(tree, np.zeros(2), DEPTHS),
    "counts": lambda tree=TREE: bough.PoissonModel(tree, 0.5, DEPTHS),
    "counts in contexts": lambda tree=TREE: bough.PoissonModel(tree, np.zeros(2), 0.3),
    "drifting": lambda tree=TREE: bough.GaussianModel(tree, 0.2, DEPTHS, 0.3, drift=5.0),
}
EXACT = ("gaussian", "gaussian in contexts", "drifting")


def rows(model, n, seed, actions=ACTIONS):
    """Rows of (action, reward, context)."""
    rng = np.random.default_rng(seed)
    contexts = [None] * n if model.is_scalar else list(rng.normal(size=(n, model.dim)))
    if isinstance(model, bough.GaussianModel):
        rewards = rng.normal(size=n).tolist()
    else:
        rewards = rng.integers(0, 2 if isinstance(model, bough.BernoulliModel) else 5, n).tolist()
    return [(actions[i], reward, c) for i, reward, c in zip(rng.integers(len(actions), size=n), rewards, contexts)]  # noqa: B905


def taught(model, n=60, seed=0, policy=bough.HierTS, **options):
    agent = policy(model, seed=0, **options)
    for action, reward, context in rows(model, n, seed):
        agent.update(action, reward, context)
    return agent


def again(agent, base, **options):
    """The agent after a snapshot, and the header."""
    return thawed(encode(frozen(agent, base), {"position": 41, "of": "shop"}), base, type(agent), **options)


def assert_same(mine, other, tolerance):
    assert mine.model.tree.actions == other.model.tree.actions
    np.testing.assert_allclose(mine.mean, other.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(mine.covariance, other.covariance, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(mine.count, other.count)
    assert mine.log_evidence() == pytest.approx(other.log_evidence(), rel=tolerance, abs=tolerance)
    assert mine.retired == other.retired
    assert (mine.now, mine.half_life) == (other.now, other.half_life)


@pytest.mark.parametrize("kind", MODELS)
def test_an_agent_comes_back_with_all_that_it_learned(kind):
    base = MODELS[kind]()
    agent = taught(base)
    agent.retire(["mint", 7])
    restored, header = again(agent, base)
    assert header == {"position": 41, "of": "shop"}
    assert restored.posterior._engine.model is base  # which was not in the bytes
    assert_same(restored.posterior, agent.posterior, 1e-12 if kind in EXACT else 1e-9)
    more = rows(base, 20, seed=9)
    for action, reward, context in more:
        agent.update(action, reward, context)
        restored.update(action, reward, context)
    assert_same(restored.posterior, agent.posterior, 1e-11 if kind in EXACT else 1e-9)


@pytest.mark.parametrize("kind", ["clicks", "counts", "noise per action"])
def test_sites_that_wait_to_be_settled_wait_there_too(kind):
    base = MODELS[kind]()
    agent = bough.HierTS(base, seed=0)
    log = rows(base, 60, seed=1)
    for start in range(0, 60, 6):
        actions, rewards, _ = zip(*log[start : start + 6], strict=True)
        agent.update(list(actions), list(rewards), settle=False)
    restored, _ = again(agent, base)
    assert_same(restored.posterior, agent.posterior, 1e-12)
    agent.posterior.settle()
    restored.posterior.settle()
    assert_same(restored.posterior, agent.posterior, 1e-9)


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "drifting"])
def test_the_clock_and_what_has_faded_come_back(kind, is_read):
    base = MODELS[kind]()
    agent = bough.HierTS(base, seed=0, half_life=4.0)
    for i, (action, reward, context) in enumerate(rows(base, 40, seed=2)):
        agent.update(action, reward, context, at=0.25 * i)
    agent.now = 12.0
    if is_read:
        agent.posterior.mean  # noqa: B018, or what has faded is still put off
    restored, _ = again(agent, base)
    assert restored.now == 12.0
    assert restored.posterior.half_life == 4.0
    for one in (agent, restored):
        one.now = 13.0
        one.posterior.mean  # noqa: B018, which settles what has faded
    # Settled from another place, sites are the same to what settling leaves, 1e-9 of a cavity's deviation.
    assert_same(restored.posterior, agent.posterior, 1e-11 if kind in EXACT else 1e-8)


def test_times_may_be_dates_and_a_half_life_a_span():
    base = MODELS["gaussian"]()
    agent = bough.HierTS(base, seed=0, half_life=timedelta(days=2))
    agent.update("green", 1.0, at=np.datetime64("2026-01-05T12:00:00"))
    restored, _ = again(agent, base)
    assert restored.now == agent.now
    assert restored.posterior.half_life == timedelta(days=2)
    same, _ = again(agent, base, half_life=timedelta(hours=48))
    assert same.posterior.half_life == timedelta(days=2)
    data = encode(frozen(agent, base), {})
    with pytest.raises(ValueError, match="half_life is"):
        thawed(data, base, bough.HierTS, half_life=timedelta(days=3))


CHANGES = {
    "add": lambda agent: agent.add(["oolong", "white"], under="tea/leaf"),
    "add a category": lambda agent: (agent.add("iced", under="tea"), agent.add("peach", under="iced")),
    "move": lambda agent: agent.move("black", under="tea/bag"),
    "move a category": lambda agent: agent.move("tea/bag", under="coffee"),
    "move and retire": lambda agent: (agent.move("black", under="tea/bag"), agent.retire(["black", 7])),
    "retire and restore": lambda agent: (agent.retire(["black", "mint"]), agent.restore("black")),
    "forget": lambda agent: agent.forget("green"),
    "adopt": lambda agent: agent.adopt(bough.Tree.from_nested({"hot": {"all": ["green", "filter", 7, "cocoa"]}})),
    "adopt and add": lambda agent: (
        agent.adopt(bough.Tree.from_nested({"hot": {"all": ["green", "filter", 7]}}), gone="forget"),
        agent.add("cocoa", under="hot/all"),
    ),
    "a retired action becomes a category": lambda agent: (
        agent.forget("cow"),
        agent.retire(["cow", "green"]),
        agent.add("oat", under="cow"),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "drifting"])
def test_a_changed_catalogue_comes_back_with_its_own_tree(kind, what):
    base, tolerance = MODELS[kind](), 1e-11 if kind in EXACT else 1e-8
    agent = taught(base, seed=3)
    CHANGES[what](agent)
    for i, name in enumerate(name for name in ("oolong", "peach", "cocoa") if agent._catalogue.find(name) >= 0):
        _, reward, context = rows(base, 3, seed=4)[i]
        agent.update(name, reward, context)
    if base.is_scalar:
        agent.posterior.settle()  # as whoever asks for the tree itself does
    restored, _ = again(agent, base)
    assert_same(restored.posterior, agent.posterior, tolerance)
    context = None if base.is_scalar else np.ones(base.dim)
    assert restored.decide(context) not in agent.retired
    twice, _ = again(restored, base)  # which has a model of its own now
    assert_same(twice.posterior, agent.posterior, tolerance)


def test_a_model_is_in_the_bytes_only_where_the_agent_has_another():
    tree = bough.Tree.balanced(10, 4)
    base = bough.GaussianModel(tree)
    agent = bough.HierTS(base, seed=0)
    agent.update(int(tree.leaves[0]), 1.0)
    small = len(encode(frozen(agent, base), {}))
    assert small < 5_000
    agent.retire(int(tree.leaves[1]))
    assert len(encode(frozen(agent, base), {})) < 5_000
    other = bough.GaussianModel(tree)
    assert len(encode(frozen(agent, other), {})) > small + 4 * tree.n_nodes
    agent.add(99_999, under=5)
    moment = frozen(agent, base)
    assert agent.posterior._catalogue.is_changed  # nothing was folded for it
    assert not moment.is_base
    assert len(encode(moment, {})) > small + 4 * tree.n_nodes


@pytest.mark.parametrize("policy", [bough.TS, bough.FlatTS, bough.Greedy])
def test_policies_that_reason_with_less_of_the_tree_come_back(policy):
    base = MODELS["gaussian"]()
    agent = taught(base, policy=policy)
    restored, _ = again(agent, base)
    assert_same(restored.posterior, agent.posterior, 1e-12)
    agent.add("oolong", under="tea/leaf")
    agent.update("oolong", 2.0)
    restored, _ = again(agent, base)
    assert_same(restored.posterior, agent.posterior, 1e-11)
    restored.add("white", under="tea/leaf")
    assert "white" in restored.posterior.model.tree.actions


class Own:
    """A transformer of the user's own, of which a file keeps the names alone."""

    def transform(self, frame):
        return np.column_stack([np.ones(len(frame["age"])), np.asarray(frame["age"]) / 10.0])

    def get_feature_names_out(self):
        return np.array(["one", "age"], dtype=object)


def test_features_that_no_file_can_keep_are_those_of_the_base():
    base = bough.GaussianModel(TREE, np.zeros(2), features=Own())
    agent = bough.HierTS(base, seed=0)
    agent.update(["green"], [1.0], {"age": [30.0]})
    agent.add("oolong", under="tea/leaf")
    restored, _ = again(agent, base)
    restored.update(["green"], [2.0], {"age": [40.0]})
    assert restored.posterior.n_observations == 2


def test_random_numbers_begin_anew():
    base = bough.GaussianModel(bough.Tree.balanced(10, 3))
    agent = bough.HierTS(base, seed=0)
    data = encode(frozen(agent, base), {})
    fresh = [thawed(data, base, bough.HierTS)[0].decide_many(8) for _ in range(2)]
    assert fresh[0] != fresh[1]  # by chance alike with probability below 1e-20
    seeded = [thawed(data, base, bough.HierTS, seed=5)[0].decide_many(8) for _ in range(2)]
    assert seeded[0] == seeded[1] == bough.HierTS(base, seed=5).decide_many(8)


def test_options_are_those_of_the_caller():
    base = MODELS["gaussian"]()
    restored, _ = again(bough.HierTS(base), base, explore=0.5, search=True)
    assert restored.explore == 0.5
    data = encode(frozen(bough.HierTS(base), base), {})
    with pytest.raises(ValueError, match=r"^explore is -1"):
        thawed(data, base, bough.HierTS, explore=-1)
    with pytest.raises(TypeError, match="colour"):
        thawed(data, base, bough.HierTS, colour="red")


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_frozen_stays_while_the_agent_goes_on(kind):
    base = MODELS[kind]()
    agent = taught(base)
    agent.add("oolong", under="tea/leaf")
    moment, before = frozen(agent, base), agent.posterior.n_observations
    data = encode(moment, {})
    for action, reward, context in rows(base, 30, seed=5):
        agent.update(action, reward, context)
    agent.add("white", under="tea/leaf")
    agent.retire("green")
    assert encode(moment, {}) == data
    assert thawed(data, base, bough.HierTS)[0].posterior.n_observations == before


@pytest.mark.parametrize("kind", ["gaussian", "gaussian in contexts", "clicks", "clicks in contexts"])
def test_a_snapshot_while_others_learn_is_a_prefix_of_what_they_learned(kind):
    base = MODELS[kind]()
    agent, done, moments = bough.HierTS(base, seed=0), threading.Event(), []
    log = rows(base, 600, seed=6)
    batches = [log[i : i + 3] for i in range(0, len(log), 3)]

    def learn():
        try:
            for i, batch in enumerate(batches):
                learn_batch(i, batch)
        finally:
            done.set()

    def learn_batch(i, batch):
        actions, rewards, contexts = zip(*batch, strict=True)
        if i % 2:
            for action, reward, context in batch:
                agent.update(action, reward, context)
        else:
            columns = None if base.is_scalar else np.array(contexts)
            agent.update(list(actions), list(rewards), columns, settle=False)
        if i == 100:
            agent.add("oolong", under="tea/leaf")

    def take():
        while not done.is_set() or len(moments) < 3:
            moments.append(frozen(agent, base))

    in_threads(learn, take)
    for moment in moments[:: max(len(moments) // 20, 1)]:
        restored = thawed(encode(moment, {}), base, bough.HierTS)[0].posterior
        n = restored.n_observations
        expected = dict.fromkeys(ACTIONS, 0)
        for action, _, _ in log[:n]:
            expected[action] += 1
        found = {name: int(restored.count[restored.model.tree.index(name)]) for name in ACTIONS}
        assert found == expected
        if kind != "clicks in contexts":  # whose sums are not rewards
            totals = dict(zip(restored.statistics.actions.tolist(), restored.statistics.sum_y, strict=True))
            for name in ACTIONS:
                wanted = sum(reward for action, reward, _ in log[:n] if action == name)
                assert totals.get(str(name), totals.get(name, 0.0)) == pytest.approx(wanted, abs=1e-9)
        check_consistent(restored)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "clicks in contexts"])
@pytest.mark.parametrize("is_changed", [True, False])
def test_damaged_bytes_are_refused_or_read_as_they_were(kind, is_changed):
    base = MODELS[kind]()
    agent = taught(base)
    if is_changed:
        agent.add("oolong", under="tea/leaf")
    data = encode(frozen(agent, base), {"position": 3})
    rng = np.random.default_rng(7)
    n_refused = 0
    for place in rng.choice(len(data), 300, replace=False).tolist():
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        try:
            restored, header = thawed(bytes(damaged), base, bough.HierTS)
        except ValueError as error:
            assert str(error).startswith("the snapshot ")  # noqa: PT017
            n_refused += 1
        else:  # a date of a zip's member, say, which nobody reads
            assert header == {"position": 3}
            assert_same(restored.posterior, agent.posterior, 1e-9)
    assert n_refused > 150


@pytest.mark.parametrize("length", [0, 1, 100, -1, -30])
def test_bytes_that_are_cut_short_are_refused(length):
    base = MODELS["clicks"]()
    data = encode(frozen(taught(base), base), {})
    with pytest.raises(ValueError, match=r"the snapshot is not a bough file(; expected|, or is damaged or cut short)"):
        thawed(data[:length], base, bough.HierTS)


def test_the_snapshot_of_another_policy_or_model_is_refused():
    base = MODELS["gaussian"]()
    data = encode(frozen(taught(base), base), {})
    with pytest.raises(ValueError, match="the snapshot is that of a 'HierTS', and not of a TS"):
        thawed(data, base, bough.TS)
    for other in (MODELS["clicks"](), MODELS["gaussian in contexts"](), MODELS["gaussian"](TREE.edited(add={1: ""}))):
        with pytest.raises(ValueError, match=r"the snapshot is that of a model with .* and base is"):
            thawed(data, other, bough.HierTS)


def test_an_older_bough_ignores_the_snapshot_of_a_model_with_factors():
    base = MODELS["gaussian"]()
    action, *_ = TREE.actions
    crossed = bough.GaussianModel(TREE, factors={"brand": bough.Factor({action: "Acme"})})
    data = encode(frozen(bough.HierTS(crossed), base), {})
    with (
        pytest.raises(ValueError, match="format version 2; this bough reads up to 1"),
        _storage.unpacked(data, "snapshot", 1, "it"),
    ):
        pass
    agent, _ = thawed(data, base, bough.HierTS)
    assert agent.posterior.model.factors["brand"].labelled == [action]
    other = encode(frozen(bough.HierTS(MODELS["gaussian"]()), base), {})
    with _storage.unpacked(other, "snapshot", 1, "it") as contents:
        assert "model" in contents.header


def test_another_file_is_no_snapshot(tmp_path):
    base = MODELS["gaussian"]()
    bough.HierTS(base).save(tmp_path / "agent.bough")
    with pytest.raises(ValueError, match="the snapshot holds an 'agent'; expected a snapshot file"):
        thawed((tmp_path / "agent.bough").read_bytes(), base, bough.HierTS)
    newer = _storage.packed({"kind": "snapshot", "version": 9}, {}, "it")
    with pytest.raises(ValueError, match="format version 9"):
        thawed(newer, base, bough.HierTS)
    odd = _storage.packed({"kind": "snapshot", "version": 1, "policy": "HierTS", "own": 3}, {}, "it")
    with pytest.raises(ValueError, match="own is 3; expected a JSON object"):
        thawed(odd, base, bough.HierTS)


def test_agents_with_more_than_evidence_are_refused():
    base = MODELS["gaussian"]()
    with pytest.raises(ValueError, match="refit=True"):
        frozen(bough.HierTS(base, refit=True), base)
    with pytest.raises(ValueError, match="a BetaTS; give one with a posterior"):
        frozen(bough.BetaTS(MODELS["clicks"]()), base)


def test_a_header_that_is_too_long_is_refused_when_it_is_made():
    base = MODELS["gaussian"]()
    with pytest.raises(ValueError, match="the snapshot cannot be written: its header takes"):
        encode(frozen(bough.HierTS(base), base), {"long": "x" * 1_000_000})
