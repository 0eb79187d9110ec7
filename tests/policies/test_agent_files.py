"""A policy that was saved goes on where it stood: its decisions, its learning, its refits and its random numbers."""

import threading

import numpy as np
import pytest

import bough
import file_parts
from threads import check_consistent, in_threads

TREE = bough.Tree.from_nested({"tea": ["green", "black", "white"], "coffee": {"hot": ["short", "long", "iced"]}})
NAMES = list(TREE.actions)
LARGE = bough.Tree.balanced(7, 4)
SPREAD = bough.by_depth([0.5, 1.0, 0.7, 0.3])
MODELS = {
    "scalar": bough.GaussianModel(TREE, 0.5, SPREAD, 0.4),
    "vector": bough.GaussianModel(TREE, [0.5, 0.1, -0.2], SPREAD, 0.4),
    "clicks": bough.BernoulliModel(TREE, -0.5, SPREAD),
    "counts": bough.PoissonModel(TREE, 0.5, SPREAD),
    "clicks in contexts": bough.BernoulliModel(TREE, [0.0, 0.1, 0.3], SPREAD),
    "counts in contexts": bough.PoissonModel(TREE, [0.0, 0.1, 0.3], SPREAD),
    "a large tree": bough.GaussianModel(LARGE),
}
POLICIES = [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy]


def reward(model, rng):
    if isinstance(model, bough.GaussianModel):
        return float(rng.normal())
    return float(rng.integers(2)) if isinstance(model, bough.BernoulliModel) else float(rng.poisson(2.0))


def context(model, rng):
    return None if model.is_scalar else rng.normal(size=model.dim)


def play(agent, rounds, seed):
    """Let an agent decide and learn; what it decided."""
    rng, decided = np.random.default_rng(seed), []
    for _ in range(rounds):
        now = context(agent._model, rng)
        decided.append(agent.decide(now))
        agent.update(decided[-1], reward(agent._model, rng), *([] if now is None else [now]))
    return decided


def decisions(agent, seed=9):
    """50 decisions: of one, of three, with some left out, among some."""
    rng, names = np.random.default_rng(seed), list(agent._model.tree.actions)
    made = []
    for i in range(50):
        now = context(agent._model, rng)
        ways = ({}, {"k": 3}, {"exclude": names[:2]}, {"among": names[1:4]}, {"among": names[1:5], "k": 2})
        made.append(agent.decide(now, **ways[i % 5]))
    return made


def prior(model):
    return model.mean, model.classes.table.tolist(), model.likelihood


def again(agent, tmp_path):
    agent.save(tmp_path / "agent.bough")
    return type(agent).load(tmp_path / "agent.bough")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_saved_agent_makes_the_same_decisions_and_learns_the_same(tmp_path, policy, kind):
    agent = policy(MODELS[kind], seed=3)
    play(agent, 25, seed=4)
    loaded = again(agent, tmp_path)
    assert type(loaded) is policy
    assert repr(loaded) == repr(agent)
    assert decisions(loaded) == decisions(agent)
    assert play(loaded, 25, seed=5) == play(agent, 25, seed=5)
    np.testing.assert_allclose(loaded.posterior.mean, agent.posterior.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loaded.posterior.covariance, agent.posterior.covariance, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(loaded.posterior.count, agent.posterior.count)
    assert loaded.posterior.log_evidence() == pytest.approx(agent.posterior.log_evidence(), rel=1e-9)


def test_a_saved_beta_agent_makes_the_same_decisions_and_learns_the_same(tmp_path):
    agent = bough.BetaTS(MODELS["clicks"], seed=3)
    play(agent, 25, seed=4)
    agent.update(["green", "long"], [3, 1], trials=[9, 4])
    loaded = again(agent, tmp_path)
    assert repr(loaded) == repr(agent) == "BetaTS(n_actions=6, n_observations=38)"
    assert decisions(loaded) == decisions(agent)
    assert play(loaded, 25, seed=5) == play(agent, 25, seed=5)
    np.testing.assert_array_equal(loaded.successes, agent.successes)
    np.testing.assert_array_equal(loaded.failures, agent.failures)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_agent_that_has_seen_nothing_comes_back(tmp_path, policy):
    agent = policy(MODELS["scalar"], seed=1)
    loaded = again(agent, tmp_path)
    assert loaded.posterior.n_observations == 0
    assert decisions(loaded) == decisions(agent)


@pytest.mark.parametrize("search", [True, False, None])
def test_how_a_tree_is_searched_is_an_option_that_comes_back(tmp_path, search):
    agent = bough.HierTS(MODELS["scalar"], seed=1, search=search)
    play(agent, 10, seed=2)
    loaded = again(agent, tmp_path)
    assert loaded._options == {"refit": False, "search": search}
    assert decisions(loaded) == decisions(agent)


def models_after(agent, stream):
    """The model after each reward of a stream, and the numbers of observations at which it changed."""
    models, changed = [], []
    for name, given in stream:
        before = agent.posterior.model
        agent.update(name, given)
        models.append(agent.posterior.model)
        if models[-1] is not before:
            changed.append(agent.posterior.n_observations)
    return models, changed


@pytest.mark.parametrize("kind", ["scalar", "clicks", "counts"])
@pytest.mark.parametrize("at", [0, 7, 20, 33, 40])
def test_an_agent_goes_on_refitting_when_and_as_it_would_have(tmp_path, kind, at):
    rng = np.random.default_rng(5)
    scores = dict(zip(NAMES, rng.normal(size=len(NAMES)), strict=True))
    draw = {
        "scalar": lambda name: rng.normal(scores[name]),
        "clicks": lambda name: float(rng.random() < 1.0 / (1.0 + np.exp(-scores[name]))),
        "counts": lambda name: float(rng.poisson(np.exp(scores[name]))),
    }[kind]
    stream = [(name, draw(name)) for name in rng.choice(NAMES, 90).tolist()]
    agent = bough.HierTS(MODELS[kind], seed=1, refit=True)
    models_after(agent, stream[:at])
    loaded = again(agent, tmp_path)
    (models, changed), (others, other_changed) = models_after(agent, stream[at:]), models_after(loaded, stream[at:])
    assert changed == other_changed == [n for n in (20, 40, 80) if n > at]
    for one, other in zip(models, others, strict=True):
        np.testing.assert_allclose(other.classes.table, one.classes.table, rtol=1e-7)
        assert other.mean == pytest.approx(one.mean, rel=1e-7)
        assert getattr(other, "noise_variance", 0.0) == pytest.approx(getattr(one, "noise_variance", 0.0), rel=1e-7)
    np.testing.assert_allclose(loaded.posterior.mean, agent.posterior.mean, rtol=1e-6)
    np.testing.assert_array_equal(loaded.statistics.sum_y, agent.statistics.sum_y)
    assert decisions(loaded) == decisions(agent)


def test_an_agent_in_contexts_goes_on_refitting(tmp_path):
    agent = bough.HierTS(MODELS["vector"], seed=1, refit=True)
    play(agent, 30, seed=2)
    loaded = again(agent, tmp_path)
    refits = agent.posterior.model
    assert play(loaded, 30, seed=3) == play(agent, 30, seed=3)
    assert agent.posterior.model is not refits
    np.testing.assert_allclose(loaded.posterior.model.classes.table, agent.posterior.model.classes.table, rtol=1e-7)
    np.testing.assert_allclose(loaded.posterior.mean, agent.posterior.mean, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_goes_on_where_it_stood(tmp_path, name):
    rng = np.random.Generator(getattr(np.random, name)(11))
    agent = bough.HierTS(MODELS["scalar"], rng)
    rng.integers(10, size=3, dtype=np.uint32)  # half of a number of 64 bits is left over
    assert agent._rng.bit_generator.state.get("has_uint32", 1) == 1
    loaded = again(agent, tmp_path)
    assert loaded._rng.bit_generator.state["bit_generator"] == name
    for draw in (lambda r: r.integers(100, size=700, dtype=np.uint32), lambda r: r.random(700)):
        np.testing.assert_array_equal(draw(loaded._rng), draw(agent._rng))
    assert decisions(loaded) == decisions(agent)


def test_a_generator_that_is_not_of_numpy_is_refused_before_anything_is_written(tmp_path):
    class Own(np.random.PCG64):
        pass

    for agent in (
        bough.HierTS(MODELS["scalar"], np.random.Generator(Own(1))),
        bough.BetaTS(MODELS["clicks"], np.random.Generator(Own(1))),
    ):
        with pytest.raises(ValueError, match="the generator is a Own; only agents with one of numpy's own"):
            agent.save(tmp_path / "agent.bough")
    assert not list(tmp_path.iterdir())


# -- what is refused ---------------------------------------------------------------------------------


def test_an_agent_is_loaded_by_its_own_class(tmp_path):
    path = tmp_path / "agent.bough"
    agents = [*(policy(MODELS["clicks"], seed=0) for policy in POLICIES), bough.BetaTS(MODELS["clicks"], seed=0)]
    for agent in agents:
        agent.save(path)
        for other in agents:
            if type(other) is type(agent):
                assert type(type(other).load(path)) is type(agent)
                continue
            words = rf"agent\.bough.*holds a '{type(agent).__name__}'.*not by {type(other).__name__}"
            with pytest.raises(ValueError, match=words):
                type(other).load(path)


def test_a_file_of_another_kind_says_what_it_holds(tmp_path):
    path = tmp_path / "file.bough"
    bough.Posterior(MODELS["scalar"]).save(path)
    for policy in (*POLICIES, bough.BetaTS):
        with pytest.raises(ValueError, match=r"file\.bough holds a 'posterior'; expected an agent file"):
            policy.load(path)
    bough.HierTS(MODELS["scalar"], seed=0).save(path)
    with pytest.raises(ValueError, match=r"file\.bough holds an 'agent'; expected a posterior file"):
        bough.Posterior.load(path)
    with pytest.raises(ValueError, match=r"file\.bough holds an 'agent'; expected a model file"):
        bough.GaussianModel.load(path)


def saved(tmp_path, kind="scalar", **options):
    agent = bough.BetaTS(MODELS["clicks"], seed=3) if kind == "beta" else bough.HierTS(MODELS[kind], seed=3, **options)
    play(agent, 25, seed=4)
    agent.save(tmp_path / "agent.bough")
    return tmp_path / "agent.bough"


def refused(path, match="not a complete agent file", policy=bough.HierTS):
    with pytest.raises(ValueError, match=rf"agent\.bough.*{match}"):
        policy.load(path)


def test_a_damaged_agent_file_is_refused(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()
    for start in range(0, len(whole) - 60, 151):
        path.write_bytes(whole[:start] + whole[start + 50 :])
        refused(path, "")
    path.write_bytes(whole)
    evidence = file_parts.arrays(path)["evidence"]
    evidence[0, 0] = -1.0
    file_parts.change(path, evidence=evidence)
    refused(path, "the evidence is none that observations could have made")


@pytest.mark.parametrize(
    "options",
    [
        None, [], "refit", {}, {"refit": False}, {"search": None}, {"refit": 1, "search": None},
        {"refit": False, "search": "yes"}, {"refit": False, "search": None, "seed": 1},
        {"refit": False, "search": None, "model": 1}, {"refit": False, "search": None, "more": 1},
        {"refit": True, "search": None},
    ],
)  # fmt: skip
def test_odd_options_are_refused(tmp_path, options):
    path = saved(tmp_path)
    file_parts.change(path, {"options": options})
    refused(path)


def odd_states():
    """States that numpy would take, or would stumble over."""
    for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        state = bough.policies.files.generator_state(np.random.Generator(getattr(np.random, name)(1)))
        for key in state:
            yield {one: value for one, value in state.items() if one != key}
        yield {**state, "bit_generator": "PCG65"}
        yield {**state, "bit_generator": ["PCG64"]}
        yield {**state, "state": 5}
        yield {**state, "more": 5}
        if "has_uint32" in state:
            yield from ({**state, "has_uint32": value} for value in (2, -1, 0.5, None))
            yield from ({**state, "uinteger": value} for value in (-1, 2**32, 0.5))
    pcg = {"bit_generator": "PCG64", "has_uint32": 0, "uinteger": 0}
    for here, inc in ((-1, 1), (2**128, 1), (1, 2), (1.5, 1), (1, -1)):
        yield {**pcg, "state": {"state": here, "inc": inc}}
    mersenne = np.random.MT19937(1).state
    key = mersenne["state"]["key"].tolist()
    for inner in (
        {"key": key, "pos": 625}, {"key": key, "pos": 10**9}, {"key": key, "pos": -1}, {"key": key[:-1], "pos": 1},
        {"key": [*key, 1], "pos": 1}, {"key": [0] * 624, "pos": 1}, {"key": [-1, *key[1:]], "pos": 1},
        {"key": [2**32, *key[1:]], "pos": 1}, {"key": [[1], *key[1:]], "pos": 1}, {"key": "x" * 624, "pos": 1},
    ):  # fmt: skip
        yield {"bit_generator": "MT19937", "state": inner}
    philox = bough.policies.files.generator_state(np.random.Generator(np.random.Philox(1)))
    yield from ({**philox, "buffer_pos": value} for value in (5, 10**9, -1, 0.5))
    yield {**philox, "buffer": [0] * 5}
    yield {**philox, "state": {"counter": [0] * 3, "key": [0, 0]}}


def test_a_generator_that_cannot_stand_there_is_refused(tmp_path):
    path = saved(tmp_path)
    for state in (*odd_states(), None, 5, [], "PCG64", {}):
        file_parts.change(path, {"generator": state})
        refused(path, "generator")


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"given": 5}, {}),
        ({"given": None}, {}),
        ({"given": {}}, {}),
        ({"given": ["noise_variance"]}, {}),
        ({"given": {"noise_variance": True}}, {}),
        ({"given": {"noise_variance": -1.0}}, {}),
        ({"given": {"noise_variance": "1"}}, {}),
        ({"given": {"noise_variance": 1e200}}, {}),
        ({"given": {"noise_variance": 1.0, "more": 1.0}}, {}),
        ({}, {"given_mean": None}),
        ({}, {"given_mean": np.array(np.nan)}),
        ({}, {"given_mean": np.array(1e200)}),
        ({}, {"given_mean": np.zeros(1)}),
        ({}, {"given_covariances": None}),
        ({}, {"given_covariances": np.ones(3)}),
        ({}, {"given_covariances": np.array([1.0, -1.0, 1.0, 1.0])}),
        ({}, {"given_covariances": np.array([1.0, np.inf, 1.0, 1.0])}),
        ({}, {"given_covariances": np.full(4, 1e200)}),
        ({"partial": True}, {}),
    ],
)
def test_a_given_model_that_cannot_be_is_refused(tmp_path, settings, changed):
    path = saved(tmp_path, refit=True)
    assert bough.HierTS.load(path)._refit._given.noise_variance == 0.4
    file_parts.change(path, settings, **changed)
    refused(path, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("successes", -1.0), ("successes", 0.0), ("successes", np.nan), ("successes", 1e200), ("failures", np.inf),
        ("failures", 0.0), ("failures", 1e30),
    ],
)  # fmt: skip
def test_beta_counts_that_no_clicks_make_are_refused(tmp_path, name, value):
    path = saved(tmp_path, "beta")
    counts = file_parts.arrays(path)[name]
    counts[2] = value
    file_parts.change(path, **{name: counts})
    refused(path, policy=bough.BetaTS)
    file_parts.change(path, **{name: counts[:-1]})
    refused(path, policy=bough.BetaTS)


@pytest.mark.parametrize("n", [-1, 0.5, True, "25", None, 2**63, [25]])
def test_an_odd_number_of_observations_of_a_beta_agent_is_refused(tmp_path, n):
    path = saved(tmp_path, "beta")
    file_parts.change(path, {"n_observations": n})
    refused(path, "n_observations", bough.BetaTS)


def test_a_beta_agent_has_a_model_of_clicks(tmp_path):
    path = saved(tmp_path)
    file_parts.change(path, {"policy": "BetaTS"})
    refused(path, "BetaTS takes a bough.BernoulliModel", bough.BetaTS)


# -- threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("kind", ["gaussian", "clicks"])
def test_an_agent_that_is_saved_while_others_update_is_one_moment(tmp_path, kind, refit):
    tree = bough.Tree.balanced(10, 4)
    model = bough.GaussianModel(tree) if kind == "gaussian" else bough.BernoulliModel(tree, -1.0, 0.3)
    agent, done, taken, written = bough.HierTS(model, seed=0, refit=refit), threading.Event(), [], []

    def write(seed):
        rng, n = np.random.default_rng(seed), 0
        while n < 100 or not done.is_set():
            agent.update(int(rng.choice(tree.leaves)), float(rng.random() < 0.3))
            n += 1
        written.append(n)

    def save():
        try:
            for _ in range(6):
                agent.save(tmp_path / "agent.bough")
                taken.append(bough.HierTS.load(tmp_path / "agent.bough"))
        finally:
            done.set()

    in_threads(lambda: write(1), lambda: write(2), save)
    assert agent.posterior.n_observations == sum(written)
    for one in taken:
        check_consistent(one.posterior)
        if refit:
            assert prior(one._refit._given) == prior(model)


def test_no_reward_is_saved_without_the_refit_that_it_brings_about(tmp_path, monkeypatch):
    agent = bough.HierTS(MODELS["scalar"], seed=0, refit=True)
    rng = np.random.default_rng(0)
    for _ in range(19):
        agent.update(NAMES[rng.integers(6)], rng.normal())
    contents, threads = bough.Posterior._contents, []

    def with_a_reward_meanwhile(posterior):
        threads.append(threading.Thread(target=agent.update, args=(NAMES[0], 1.0)))
        threads[0].start()
        threads[0].join(0.5)  # it waits for the save, or is done long before this
        return contents(posterior)

    monkeypatch.setattr(bough.Posterior, "_contents", with_a_reward_meanwhile)
    agent.save(tmp_path / "agent.bough")
    threads[0].join()
    loaded = bough.HierTS.load(tmp_path / "agent.bough")
    is_given = prior(loaded.posterior.model) == prior(MODELS["scalar"])
    assert (loaded.posterior.n_observations, is_given) in ((19, True), (20, False))
    assert agent.posterior.n_observations == 20


def test_a_beta_agent_that_is_saved_while_others_update_is_one_moment(tmp_path):
    agent = bough.BetaTS(bough.BernoulliModel(bough.Tree.balanced(10, 3), -1.0), seed=0)
    before, done, taken = agent.successes.sum() + agent.failures.sum(), threading.Event(), []

    def write():
        while not done.is_set():
            agent.update([111, 222, 333], [1, 0, 1])

    def save():
        try:
            for _ in range(10):
                agent.save(tmp_path / "agent.bough")
                taken.append(bough.BetaTS.load(tmp_path / "agent.bough"))
        finally:
            done.set()

    in_threads(write, write, save)
    assert taken[-1].n_observations > 0
    for one in taken:
        assert one.successes.sum() + one.failures.sum() - before == pytest.approx(one.n_observations)
        assert one.n_observations % 3 == 0
