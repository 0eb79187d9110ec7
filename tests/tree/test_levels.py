"""Names of levels and the separator: where they come from, what keeps them, and where they are shown."""

import copy
import pickle

import numpy as np
import polars
import pytest

import bough
import file_parts

COLUMNS = ["department", "commodity", "product"]
LEVELS = ("root", *COLUMNS)
FRAME = polars.DataFrame(
    [
        ("home", "kitchen", "kettle"),
        ("home", "garden", "spade"),
        ("toys", "outdoor", "kite"),
        ("toys", "indoor", "ludo"),
    ],
    schema=COLUMNS,
    orient="row",
)
TREE = bough.Tree.from_frame(FRAME, COLUMNS, sep=" > ")


def known(tree):
    return tree.levels, tree.sep


# -- where they come from ------------------------------------------------------------------------------


def test_levels_are_called_by_their_columns():
    assert known(TREE) == (LEVELS, " > ")
    assert bough.Tree.from_frame(FRAME, "product").levels == ("root", "product")
    assert bough.Tree.from_frame(FRAME.to_pandas(), COLUMNS).levels == LEVELS


def test_columns_without_text_for_a_name_are_called_as_they_read():
    frame = FRAME.to_pandas()
    frame.columns = [0, 1, 2]
    assert bough.Tree.from_frame(frame, [0, 1, 2]).levels == ("root", "0", "1", "2")


def test_a_column_that_is_called_root_keeps_its_name():
    tree = bough.Tree.from_frame(FRAME.rename({"department": "root"}), ["root", "product"])
    assert tree.levels == ("(root)", "root", "product")
    both = bough.Tree.from_paths(["a/b"], levels=["(root)", "root"])
    assert both.levels == ("((root))", "(root)", "root")
    posterior = bough.Posterior(bough.GaussianModel(tree))
    assert posterior.to_frame("root", backend="polars")["name"].to_list() == ["home", "toys"]


def test_paths_and_mappings_take_names_of_levels():
    assert bough.Tree.from_paths(["a/b", "c"], levels=["kind", "drink"]).levels == ("root", "kind", "drink")
    assert bough.Tree.from_nested({"a": ["b"]}, sep=".", levels=["kind", "drink"]).levels == ("root", "kind", "drink")


def test_trees_without_names_of_levels_have_none():
    trees = [bough.Tree.from_paths(["a/b"]), bough.Tree.balanced(2, 2), bough.Tree.from_parents([-1, 0])]
    assert [known(tree) for tree in trees] == [(None, "/")] * 3


REFUSED = {
    "too few": (lambda: bough.Tree.from_paths(["a/b"], levels=["kind"]), "levels has 1 names; the tree has 2 levels"),
    "too many": (lambda: bough.Tree.from_nested(["a"], levels=["kind", "drink"]), "levels has 2 names"),
    "twice": (lambda: bough.Tree.from_paths(["a/b"], levels=["kind", "kind"]), "levels has 'kind' twice"),
    "one text": (lambda: bough.Tree.from_paths(["a/b"], levels="ab"), "levels is 'ab'; give a list of names"),
    "numbers": (lambda: bough.Tree.from_paths(["a/b"], levels=[1, 2]), "levels is [1, 2]"),
    "a column twice": (lambda: bough.Tree.from_frame(FRAME, ["product", "product"]), "columns has 'product' twice"),
    "missing": (lambda: bough.Tree.from_frame(FRAME, COLUMNS, missing="skip"), "missing is 'skip'; give \"error\" or"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_odd_levels_are_refused(what):
    build, text = REFUSED[what]
    with pytest.raises(ValueError, match=r".{20}") as caught:
        build()
    assert text in str(caught.value)


# -- what keeps them -----------------------------------------------------------------------------------


def test_an_edited_tree_keeps_them():
    assert known(TREE.edited(add={"mug": "home > kitchen"})) == (LEVELS, " > ")
    assert known(TREE.edited(remove=["kite"])) == (LEVELS, " > ")


def test_levels_come_and_go_with_the_depths_of_a_tree():
    deeper = TREE.edited(add={"small kettle": "kettle"})
    assert deeper.levels == (*LEVELS, "depth 4")
    flat = TREE.edited(move={"kettle": "home", "spade": "home"}, remove=["toys"])
    assert (flat.height, flat.levels) == (2, LEVELS[:3])
    assert flat.edited(add={"mugs": "home", "mug": "mugs"}).levels == LEVELS


def test_the_star_of_a_tree_has_its_first_and_last_level():
    assert known(TREE.star()) == (("root", "product"), " > ")
    assert bough.Tree.balanced(2, 3).star().levels is None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_copies_and_pickles_keep_them(again):
    assert known(again(TREE)) == (LEVELS, " > ")


def things(folder):
    """All that has a tree, as it comes back from its file."""
    model = bough.GaussianModel(TREE)
    agent = bough.TS(model, seed=0)
    agent.save(folder / "agent")
    model.save(folder / "model")
    bough.Posterior(model).save(folder / "posterior")
    bough.BetaTS(bough.BernoulliModel(TREE), seed=0).save(folder / "beta")
    yield bough.GaussianModel.load(folder / "model").tree, LEVELS
    yield bough.Posterior.load(folder / "posterior").model.tree, LEVELS
    yield bough.BetaTS.load(folder / "beta").model.tree, LEVELS
    loaded = bough.TS.load(folder / "agent")
    yield loaded.posterior.model.tree, ("root", "product")
    yield loaded._star.whole.tree, LEVELS


def test_files_keep_them(tmp_path):
    assert [(tree.levels, tree.sep) for tree, _ in things(tmp_path)] == [
        (levels, " > ") for _, levels in things(tmp_path)
    ]


def test_a_file_says_nothing_of_what_a_tree_does_not_have(tmp_path):
    path = tmp_path / "model"
    bough.GaussianModel(bough.Tree.from_paths(["a/b"])).save(path)
    assert not {"levels", "sep"} & file_parts.header(path).keys()
    assert known(bough.GaussianModel.load(path).tree) == (None, "/")


@pytest.mark.parametrize(
    "settings",
    [{"sep": ""}, {"sep": 3}, {"sep": ["/"]}, {"levels": "ab"}, {"levels": [1]}, {"levels": {"a": 1}}, {"levels": 5}],
)
def test_a_file_with_odd_levels_is_refused(tmp_path, settings):
    path = tmp_path / "model"
    bough.GaussianModel(TREE).save(path)
    file_parts.change(path, settings)
    with pytest.raises(ValueError, match=next(iter(settings))):
        bough.GaussianModel.load(path)


@pytest.mark.parametrize("policy", [bough.HierTS, bough.FlatTS, bough.TS])
def test_an_agent_keeps_them_while_its_catalogue_changes(policy):
    agent = policy(bough.GaussianModel(TREE), seed=0)
    before = agent.posterior.model.tree.levels
    agent.add("mug", under="home > kitchen")
    agent.move("kite", under="toys > indoor")
    assert agent.posterior.model.tree.find("mug") == ["mug"]
    assert known(agent.posterior.model.tree) == (before, " > ")


def test_an_adopted_table_brings_its_own_and_ghosts_hang_in_it():
    agent = bough.HierTS(bough.GaussianModel(TREE), seed=0)
    columns = {"department": "area", "commodity": "group", "product": "item"}
    tonight = FRAME.head(3).rename(columns)
    agent.adopt(bough.Tree.from_frame(tonight, ["area", "group", "item"], sep=" > "))
    assert agent.retired == ["ludo"]
    assert known(agent.posterior.model.tree) == (("root", "area", "group", "item"), " > ")


# -- where they are shown ------------------------------------------------------------------------------


def learned(tree=TREE):
    posterior = bough.Posterior(bough.GaussianModel(tree))
    posterior.update(["kettle", "spade", "kite"], [1.0, 2.0, 0.0])
    return posterior


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_have_the_names_of_levels(backend):
    posterior = learned()

    def column(frame, name):
        return frame[name].to_pylist() if backend == "pyarrow" else frame[name].to_list()

    whole = posterior.to_frame(backend=backend)
    assert column(whole, "level") == [LEVELS[depth] for depth in TREE.depth]
    for depth, name in enumerate(LEVELS):
        frames = [posterior.to_frame(level, backend=backend) for level in (name, depth, np.int64(depth))]
        assert len({tuple(column(frame, "name")) for frame in frames}) == 1
        assert set(column(frames[0], "level")) == {name}


def test_paths_are_joined_with_the_separator_of_the_tree():
    frame = learned().to_frame("product", backend="polars")
    assert frame["path"].to_list()[:2] == ["home > kitchen > kettle", "home > garden > spade"]
    by_path = bough.Tree.from_paths(["a.b.c", "a.d"], sep=".")
    assert bough.Posterior(bough.GaussianModel(by_path)).to_frame(backend="polars")["path"].to_list() == [
        "", "a", "a.b", "a.d", "a.b.c",
    ]  # fmt: skip


def test_an_explanation_shows_the_level_of_each_node():
    explanation = learned().explain("kettle")
    assert [node.level for node in explanation.nodes] == list(LEVELS)
    head, *lines = str(explanation).splitlines()
    assert head.split()[0] == "level"
    assert [line[head.index("level") :].split()[0] for line in lines] == list(LEVELS)
    assert "level" not in str(learned(bough.Tree.from_nested(["kettle", "spade", "kite"])).explain("kettle"))


def test_a_plot_takes_a_level_by_its_name():
    posterior = learned()
    titles = {posterior.plot(level=level).get_title() for level in ("department", 1)}
    assert titles == {"All 2 nodes of level department, with 95% intervals"}


def test_an_unknown_level_is_answered_with_those_that_there_are():
    wanted = "level is 'dept'; give root, department, commodity, product, or a depth from 0, the root's, to 3"
    for ask in (learned().to_frame, learned().plot):
        with pytest.raises(ValueError, match=wanted):
            ask(level="dept")


def test_an_action_that_hangs_higher_is_on_the_level_of_its_depth():
    gaps = FRAME.with_columns(commodity=polars.when(polars.col("product") != "kite").then("commodity"))
    posterior = learned(bough.Tree.from_frame(gaps, COLUMNS, missing="parent"))
    assert [node.level for node in posterior.explain("kite").nodes] == ["root", "department", "commodity"]
    frame = posterior.to_frame("product", backend="polars")
    assert frame["name"].to_list() == ["kettle", "spade", "ludo"]


# -- in priors -----------------------------------------------------------------------------------------


def log():
    rng = np.random.default_rng(0)
    return bough.Statistics.from_rows([*TREE.actions] * 5, rng.normal(size=5 * TREE.n_actions))


def lines_of(fit, *given):
    return [line.split("  ")[0].removeprefix("variance at ") for line in fit.summary(*given).splitlines()[2:-2]]


def test_a_fit_shows_the_names_of_levels():
    fit = bough.fit_prior(TREE, log())
    assert lines_of(fit) == list(LEVELS)
    assert lines_of(fit, {"depth 1": "area"}) == ["root", "area", "commodity", "product"]
    assert list(fit.covariances) == ["depth 0", "depth 1", "depth 2", "depth 3"]
    labels = [label.get_text() for label in fit.plot()[0].get_yticklabels()]
    assert labels == ["department", "commodity", "product", "noise"]


def test_heights_and_classes_keep_their_own_names():
    assert lines_of(bough.fit_prior(TREE, log(), by="height"))[0] == "height 0"


def test_trees_that_call_a_level_otherwise_leave_it_its_depth():
    other = bough.Tree.from_frame(FRAME.rename({"commodity": "group"}), ["department", "group", "product"])
    shallow = bough.Tree.from_frame(FRAME, ["department", "product"])
    unnamed = bough.Tree.from_paths(["kettle", "spade", "kite", "ludo"])
    assert lines_of(bough.fit_prior([TREE, other], [log()] * 2)) == ["root", "department", "depth 2", "product"]
    assert lines_of(bough.fit_prior([shallow, TREE], [log()] * 2)) == ["root", "department", "depth 2", "product"]
    assert lines_of(bough.fit_prior([unnamed, TREE], [log()] * 2)) == list(LEVELS)


def test_covariances_may_go_by_the_names_of_levels():
    by_name = {"product": 1.0, "root": 8.0, "commodity": 2.0, "department": 4.0}
    model = bough.GaussianModel(TREE, covariance=bough.by_depth(by_name))
    same = bough.GaussianModel(TREE, covariance=bough.by_depth([8.0, 4.0, 2.0, 1.0]))
    assert model.is_same_prior(same)


BAD_COVARIANCES = {
    "too few": (
        [1.0, 2.0, 3.0],
        "by_depth has 3 covariances; the tree has 4 levels (root, department, commodity, prod",
    ),
    "negative": ([1.0, -2.0, 3.0, 4.0], "the covariance at department is -2.0"),
    "left out": ({"root": 1.0, "department": 1.0, "product": 1.0}, "by_depth leaves out 'commodity'"),
    "no level": (dict.fromkeys([*LEVELS, "sku"], 1.0), "by_depth has 'sku', which is no level"),
    "negative by name": (dict.fromkeys(COLUMNS, -1.0) | {"root": 1.0}, "the covariance at department is -1.0"),
}


@pytest.mark.parametrize("what", BAD_COVARIANCES)
def test_odd_covariances_are_answered_with_the_names_of_levels(what):
    values, text = BAD_COVARIANCES[what]
    with pytest.raises(ValueError, match="covariance") as caught:
        bough.GaussianModel(TREE, covariance=bough.by_depth(values))
    assert text in str(caught.value)


def test_names_of_levels_need_a_tree_that_has_them():
    with pytest.raises(ValueError, match="the levels of this tree have no names; give a list of covariances"):
        bough.GaussianModel(bough.Tree.balanced(2, 1), covariance=bough.by_depth({"root": 1.0, "kind": 1.0}))
