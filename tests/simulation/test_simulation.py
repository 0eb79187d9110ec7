"""One seed, the same numbers: compiled or in Python, with any number of jobs, whoever else plays."""

import joblib
import numpy as np
import pytest

import bough
from bough.inference.kernels.play_beta import drawn_beta

PROBLEM = bough.problems.increasing(branching=3, height=2)
ALL = {name: getattr(bough, name) for name in ("HierTS", "FlatTS", "TS", "BayesUCB", "Greedy")}
CONTEXTUAL = bough.GaussianModel(
    bough.Tree.from_paths(["a/b/c", "a/b/d", "a/e", "f"]), [0.3, -0.2], bough.by_height([0.2, 0.5, 1.0, 1.0]), 0.5
)


EVEN = bough.Tree.balanced(3, 3)
COUNTS = {
    "clicks": bough.BernoulliModel(EVEN, -1.0, bough.by_depth([0.3, 0.5, 0.4, 0.3])),
    "wide clicks": bough.BernoulliModel(EVEN, 0.5, bough.by_depth([1.0, 4.0, 1.0, 9.0])),
    "uneven clicks": bough.BernoulliModel(CONTEXTUAL.tree, -1.0, bough.by_height([0.2, 0.5, 1.0, 1.0])),
    "counts": bough.PoissonModel(EVEN, 0.5, bough.by_depth([0.1, 0.3, 0.2, 0.1])),
}
CONTEXTUAL_COUNTS = {
    "clicks": bough.BernoulliModel(EVEN, [-0.5, 0.3], bough.by_depth([0.3, 0.5, 0.4, 0.3])),
    "counts": bough.PoissonModel(CONTEXTUAL.tree, [0.5, 0.2], bough.by_height([0.1, 0.1, 0.3, 0.2])),
}


def customers(rng, n):
    return rng.normal(size=(n, 2))


def in_python(policy):
    """The same policy behind a function, which is not compiled."""
    return lambda model, seed: policy(model, seed=seed)


@pytest.mark.parametrize("name", ALL)
def test_compiled_runs_equal_the_policy_objects_own(name):
    for model in (PROBLEM, bough.GaussianModel(PROBLEM.tree, 0.7, bough.by_depth([0.0, 2.0, 0.5]), 0.3)):
        fast = bough.simulate(model, {name: ALL[name]}, rounds=150, runs=4, seed=1).regret[name]
        slow = bough.simulate(model, {name: in_python(ALL[name])}, rounds=150, runs=4, seed=1).regret[name]
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_compiled_contextual_runs_equal_the_policy_objects_own(name):
    settings = dict(rounds=100, runs=3, seed=2, contexts=customers)
    fast = bough.simulate(CONTEXTUAL, {name: ALL[name]}, **settings).regret[name]
    slow = bough.simulate(CONTEXTUAL, {name: in_python(ALL[name])}, **settings).regret[name]
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("name", ALL)
def test_compiled_runs_of_clicks_and_counts_equal_the_policy_objects_own(name, kind):
    fast = bough.simulate(COUNTS[kind], {name: ALL[name]}, rounds=150, runs=3, seed=1)
    slow = bough.simulate(COUNTS[kind], {name: in_python(ALL[name])}, rounds=150, runs=3, seed=1)
    np.testing.assert_allclose(fast.regret[name], slow.regret[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fast.tried[name], slow.tried[name])


@pytest.mark.parametrize("kind", CONTEXTUAL_COUNTS)
@pytest.mark.parametrize("name", ALL)
def test_compiled_runs_of_clicks_and_counts_in_contexts_equal_the_policy_objects_own(name, kind):
    settings = dict(rounds=100, runs=3, seed=2, contexts=customers)
    fast = bough.simulate(CONTEXTUAL_COUNTS[kind], {name: ALL[name]}, **settings)
    slow = bough.simulate(CONTEXTUAL_COUNTS[kind], {name: in_python(ALL[name])}, **settings)
    np.testing.assert_allclose(fast.regret[name], slow.regret[name], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(fast.tried[name], slow.tried[name])


@pytest.mark.parametrize("kind", ["clicks", "wide clicks", "uneven clicks"])
def test_compiled_runs_of_beta_sampling_equal_the_policy_objects_own(kind):
    fast = bough.simulate(COUNTS[kind], {"BetaTS": bough.BetaTS}, rounds=300, runs=3, seed=3)
    slow = bough.simulate(COUNTS[kind], {"BetaTS": in_python(bough.BetaTS)}, rounds=300, runs=3, seed=3)
    np.testing.assert_array_equal(fast.regret["BetaTS"], slow.regret["BetaTS"])
    np.testing.assert_array_equal(fast.tried["BetaTS"], slow.tried["BetaTS"])


def test_compiled_draws_of_beta_distributions_are_numpys_own():
    rng = np.random.default_rng(4)
    for scale in (0.5, 3.0, 8.0):  # the last has draws that underflow
        successes, failures = np.exp(scale * rng.normal(size=(2, 1_000))).clip(1e-9)
        ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
        drawn = [drawn_beta(a, b, ours) for a, b in zip(successes, failures, strict=True)]
        np.testing.assert_allclose(drawn, theirs.beta(successes, failures), rtol=1e-12)
        assert ours.random() == theirs.random()


@pytest.mark.parametrize("kind", ["gaussian", *CONTEXTUAL_COUNTS])
def test_who_chooses_by_means_meets_ties_in_compiled_runs_as_in_python(kind):
    # 81 actions and 8 features: where a library's matrix product rounds equal rows apart.
    tree, mean = bough.Tree.balanced(9, 2), np.linspace(-0.3, 0.4, 8)
    model = {"gaussian": bough.GaussianModel, "clicks": bough.BernoulliModel, "counts": bough.PoissonModel}[kind](
        tree, mean, bough.by_depth([0.1, 0.1, 0.1])
    )
    settings = dict(rounds=60, runs=2, seed=6, contexts=lambda rng, n: rng.normal(size=(n, 8)))
    for name in ("Greedy", "BayesUCB"):
        fast = bough.simulate(model, {name: ALL[name]}, **settings).regret[name]
        slow = bough.simulate(model, {name: in_python(ALL[name])}, **settings).regret[name]
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("policy", [bough.HierTS, in_python(bough.HierTS)], ids=["compiled", "python"])
def test_counts_that_cannot_be_drawn_are_refused_in_the_same_words(policy):
    model = bough.PoissonModel(EVEN, [17.0, 0.0], bough.by_depth([1.0, 1.0, 1.0, 1.0]))
    contexts = np.array([[1.0, 0.0], [1.0, 0.5]])
    with pytest.raises(ValueError, match=r"a mean reward of .* is too large to simulate counts of"):
        bough.simulate(model, {"HierTS": policy}, rounds=50, runs=2, seed=0, contexts=contexts)


def test_the_number_of_jobs_changes_nothing_where_rewards_are_clicks():
    policies = {**ALL, "BetaTS": bough.BetaTS}
    serial = bough.simulate(COUNTS["clicks"], policies, rounds=50, runs=9, seed=3, jobs=1)
    parallel = bough.simulate(COUNTS["clicks"], policies, rounds=50, runs=9, seed=3, jobs=2)
    for name in policies:
        np.testing.assert_array_equal(parallel.regret[name], serial.regret[name])


def test_the_number_of_jobs_changes_nothing():
    serial = bough.simulate(PROBLEM, ALL, rounds=50, runs=9, seed=3, jobs=1)
    for jobs in (2, 3, None):
        parallel = bough.simulate(PROBLEM, ALL, rounds=50, runs=9, seed=3, jobs=jobs)
        for name in ALL:
            np.testing.assert_array_equal(parallel.regret[name], serial.regret[name])


def test_a_dask_cluster_gives_the_serial_numbers():
    distributed = pytest.importorskip("distributed")
    serial = bough.simulate(PROBLEM, ALL, rounds=50, runs=6, seed=4, jobs=1)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        clustered = bough.simulate(PROBLEM, ALL, rounds=50, runs=6, seed=4)
    for name in ALL:
        np.testing.assert_array_equal(clustered.regret[name], serial.regret[name])


def test_a_policys_numbers_do_not_depend_on_who_else_plays():
    alone = bough.simulate(PROBLEM, {"TS": bough.TS}, rounds=40, runs=5, seed=5)
    together = bough.simulate(PROBLEM, ALL, rounds=40, runs=5, seed=5)
    np.testing.assert_array_equal(alone.regret["TS"], together.regret["TS"])


def test_more_runs_begin_with_the_same_runs():
    few = bough.simulate(PROBLEM, {"TS": bough.TS}, rounds=30, runs=4, seed=6)
    many = bough.simulate(PROBLEM, {"TS": bough.TS}, rounds=30, runs=40, seed=6)
    np.testing.assert_array_equal(many.regret["TS"][:4], few.regret["TS"])


def test_seeds_are_anything_that_default_rng_takes():
    def regret(seed):
        return bough.simulate(PROBLEM, {"TS": bough.TS}, rounds=20, runs=3, seed=seed).regret["TS"]

    np.testing.assert_array_equal(regret(7), regret(np.random.SeedSequence(7)))
    sequence = np.random.SeedSequence(7)
    np.testing.assert_array_equal(regret(sequence), regret(sequence))
    np.testing.assert_array_equal(regret(np.random.default_rng(7)), regret(np.random.default_rng(7)))
    generator = np.random.default_rng(7)
    assert not np.array_equal(regret(generator), regret(generator))
    with pytest.raises(ValueError, match="seed is 'a'"):
        regret("a")


class Oracle:
    """Knows nothing, and always takes the same action; a policy of the user's own."""

    def __init__(self, action):
        self.action = action
        self.seen = 0

    def decide(self, context=None, *, k=None, among=None):
        return self.action

    def update(self, action, reward, context=None):
        self.seen += 1


def test_any_object_with_the_protocol_plays_and_is_copied_for_each_run():
    player = Oracle(PROBLEM.tree.actions[0])
    run = bough.simulate(PROBLEM, {"fixed": player}, rounds=30, runs=50, seed=8)
    assert player.seen == 0
    gaps = np.diff(run.regret["fixed"], axis=1)
    np.testing.assert_allclose(gaps, gaps[:, :1].repeat(29, axis=1), atol=1e-9)  # regret is the gap of means, not noisy
    assert gaps.min() >= 0


def test_a_policy_object_of_bough_draws_anew_in_every_run():
    run = bough.simulate(PROBLEM, {"TS": bough.TS(PROBLEM, seed=0)}, rounds=1, runs=40, seed=0)
    np.testing.assert_array_equal(run.regret["TS"], bough.simulate(PROBLEM, {"TS": bough.TS}, 1, 40, 0).regret["TS"])


def test_a_policy_object_that_has_learned_begins_every_run_with_what_it_knows():
    agent = bough.HierTS(PROBLEM, seed=0)
    agent.update([PROBLEM.tree.actions[2]] * 1_000, [100.0] * 1_000)
    run = bough.simulate(PROBLEM, {"sure": agent}, rounds=20, runs=5, seed=0)
    assert run.tried["sure"].tolist() == 5 * [1]
    assert agent.posterior.n_observations == 1_000


def test_a_policy_cannot_change_the_world_of_the_next():
    class Vandal(Oracle):
        def decide(self, context=None, *, k=None, among=None):
            context[:] = 0.0
            return self.action

    with pytest.raises(ValueError, match="read-only"):
        bough.simulate(CONTEXTUAL, {"vandal": Vandal("f")}, 5, 2, 0, contexts=customers)


def test_regret_is_measured_against_the_best_action_in_each_context():
    model = bough.GaussianModel(bough.Tree.balanced(2, 1), [0.0, 0.0], bough.by_depth([0.0, 1.0]))
    contexts = np.array([[1.0, 0.0], [0.0, 1.0]])
    run = bough.simulate(model, {"one": Oracle(1)}, rounds=400, runs=30, seed=9, contexts=contexts)
    gaps = [len(np.unique(np.diff(curve).round(9))) for curve in run.regret["one"]]
    assert max(gaps) == 2  # one for each of the two contexts
    assert min(gaps) == 1  # or none in both, where the action is the better in both


def test_the_bayes_regret_of_a_fixed_action_is_the_prior_expectation():
    # 4,000 runs; within 5 standard errors: false-alarm rate below 1e-6.
    run = bough.simulate(PROBLEM, {"fixed": Oracle(PROBLEM.tree.actions[0])}, rounds=1, runs=4_000, seed=10)
    expected = bough.theory.uniform_regret(PROBLEM, rounds=1)
    assert abs(run.mean("fixed")[0] - expected) < 5 * run.standard_error("fixed")[0]


def test_progress_counts_every_run_once():
    seen = []
    bough.simulate(PROBLEM, {"TS": bough.TS}, rounds=5, runs=70, seed=0, progress=seen.append)
    assert sum(seen) == 70


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", None])
def test_frames_are_tidy(backend):
    run = bough.simulate(PROBLEM, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=7, runs=3, seed=0)
    frame = run.to_frame(backend)
    assert frame.shape == (14, 5)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["policy", "round", "mean", "se", "runs"]


def test_a_plot_has_a_line_and_a_band_for_each_policy():
    import matplotlib

    matplotlib.use("Agg")
    axes = bough.simulate(PROBLEM, {"HierTS": bough.HierTS, "TS": bough.TS}, rounds=7, runs=3, seed=0).plot()
    assert [line.get_label() for line in axes.lines] == ["HierTS", "TS"]
    assert len(axes.collections) == 2
    assert axes.get_xlabel() == "round (mean of 3 runs with 95% bands)"


def test_summary_names_every_policy():
    run = bough.simulate(PROBLEM, ALL, rounds=5, runs=3, seed=0)
    assert [line.split()[0] for line in run.summary().splitlines()[1:]] == list(ALL)


BAD = {
    "rounds": (dict(rounds=0), "rounds is 0"),
    "runs": (dict(runs=1), "runs is 1"),
    "no policies": (dict(policies={}), "policies is empty; give a mapping from names to policies, such as"),
    "a list": (dict(policies=[bough.TS]), "give a mapping"),
    "a name": (dict(policies={1: bough.TS}), "the policy name 1 is not a string; give names such as '1'"),
    "not a policy": (dict(policies={"x": 3}), "policy 'x' is 3"),
    "makes no policy": (
        dict(policies={"x": lambda model, seed: 3}),
        "what policy 'x' makes is a int without decide(context); a policy has decide(context), which",
    ),
    "contexts": (dict(contexts=customers), "model without contexts"),
    "backend": (dict(backend="excel"), "backend is 'excel'"),
    "unknown": (dict(unknown="UCB"), "no policy 'UCB'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_settings_are_refused_by_a_text_that_names_them(what):
    changed, text = BAD[what]
    changed = dict(changed)
    backend, unknown = changed.pop("backend", None), changed.pop("unknown", None)
    settings = {"policies": {"TS": bough.TS}, "rounds": 3, "runs": 2, "seed": 0, **changed}

    def go():
        run = bough.simulate(PROBLEM, **settings)
        run.to_frame(backend)
        run.mean(unknown or "TS")

    with pytest.raises((ValueError, KeyError)) as caught:
        go()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("contexts", "text"),
    [
        (None, "give contexts="),
        (np.ones((3, 5)), "rows of length 2"),
        (np.empty((0, 2)), "rows of length 2"),
        ([[1.0, np.nan]], "not all finite"),
        (lambda rng, n: rng.normal(size=(n, 3)), "rows of length 2"),
    ],
)
def test_bad_contexts_are_refused(contexts, text):
    with pytest.raises(ValueError, match=text):
        bough.simulate(CONTEXTUAL, {"TS": bough.TS}, rounds=3, runs=2, seed=0, contexts=contexts)
