"""What a posterior says of its nodes: the frame, the explanation of one action, and their figures."""

import sys
from datetime import timedelta

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import bough
from bough.explanation import paths

matplotlib.use("Agg")

TREE = bough.Tree.from_nested({"tea": {"hot": ["green", "black"], "cold": ["iced"]}, "coffee": ["filter", "espresso"]})
COLUMNS = ["name", "level", "path", "mean", "deviation", "low", "high", "observations", "share"]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def learned(model=None, **more):
    posterior = bough.Posterior(bough.GaussianModel(TREE) if model is None else model, **more)
    posterior.update(["green", "green", "iced", "espresso"], [1, 0, 1, 0])
    return posterior


def contextual(kind=bough.GaussianModel):
    posterior = bough.Posterior(kind(TREE, mean=[0.5, -0.5], covariance=0.3))
    posterior.update(["green", "iced"], [1, 0], context=[[1.0, 2.0], [0.5, -1.0]])
    return posterior


KINDS = {
    "gaussian": learned,
    "clicks": lambda: learned(bough.BernoulliModel(TREE)),
    "counts": lambda: learned(bough.PoissonModel(TREE)),
    "by height": lambda: learned(bough.GaussianModel(TREE, covariance=bough.by_height([0.1, 0.2, 0.3, 0.4]))),
    "drift": lambda: learned(bough.GaussianModel(TREE, drift=2.0)),
    "half-life": lambda: learned(half_life=2.0),
    "half-life of days": lambda: learned(half_life=timedelta(days=2)),
}


# -- the frame -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_frame_says_what_the_posterior_says(kind):
    posterior = KINDS[kind]()
    frame = posterior.to_frame(backend="polars")
    assert frame.columns == COLUMNS
    np.testing.assert_array_equal(frame["mean"], posterior.mean)
    np.testing.assert_allclose(frame["deviation"], np.sqrt(posterior.covariance))
    np.testing.assert_array_equal(frame["observations"], posterior.count)
    np.testing.assert_array_equal(frame["level"], TREE.depth)
    assert frame["name"].to_list() == [TREE.name(node) for node in range(TREE.n_nodes)]
    _, low, high = posterior.mean_reward()
    np.testing.assert_allclose(frame["low"].to_numpy()[TREE.leaves], low)
    np.testing.assert_allclose(frame["high"].to_numpy()[TREE.leaves], high)


@pytest.mark.parametrize("kind", [bough.GaussianModel, bough.BernoulliModel, bough.PoissonModel])
def test_with_contexts_the_frame_has_products_with_the_context(kind):
    posterior, context = contextual(kind), np.array([1.0, -2.0])
    frame = posterior.to_frame(context=context, interval=0.8, backend="polars")
    np.testing.assert_allclose(frame["mean"], posterior.mean @ context)
    variance = np.einsum("i,nij,j->n", context, posterior.covariance, context)
    np.testing.assert_allclose(frame["deviation"].to_numpy() ** 2, variance)
    _, low, high = posterior.mean_reward(context, level=0.8)
    np.testing.assert_allclose(frame["low"].to_numpy()[TREE.leaves], low)
    np.testing.assert_allclose(frame["high"].to_numpy()[TREE.leaves], high)


def test_shares_are_of_all_observations():
    frame = learned().to_frame(backend="polars")
    share = dict(zip(frame["name"], frame["share"], strict=True))
    assert share == {
        "": 1.0, "tea": 0.75, "coffee": 0.25, "tea/hot": 0.5, "tea/cold": 0.25, "green": 0.5, "black": 0.0,
        "iced": 0.25, "filter": 0.0, "espresso": 0.25,
    }  # fmt: skip


def test_shares_are_zero_where_nothing_was_observed():
    assert set(bough.Posterior(bough.GaussianModel(TREE)).to_frame(backend="polars")["share"]) == {0.0}


def test_shares_of_faded_rewards_are_not_rounded_away():
    posterior = bough.Posterior(bough.GaussianModel(TREE), half_life=1.0)
    posterior.update(["green", "black", "iced", "filter"], [1.0] * 4, at=0.0)
    posterior.now = 2.0
    frame = posterior.to_frame(level=0, backend="polars")
    assert frame["observations"].to_list() == [1]
    shares = posterior.to_frame(backend="polars").filter(name="green")
    assert shares["share"].to_list() == [pytest.approx(0.25)]
    assert shares["observations"].to_list() == [0]


@pytest.mark.parametrize("level", range(4))
def test_one_level_is_its_rows_of_the_whole(level):
    posterior = learned()
    whole = posterior.to_frame(backend="polars")
    assert posterior.to_frame(level, backend="polars").equals(whole.filter(level=level))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", None])
def test_frames_are_of_the_library_that_is_asked_for(backend):
    frame = learned().to_frame(backend=backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert frame.shape == (10, 9)
    assert names == COLUMNS


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_names_of_two_kinds_are_text_and_of_one_kind_stay(backend):
    tree = bough.Tree.from_nested({"tea": [101, 102], "coffee": [201]})
    posterior = bough.Posterior(bough.GaussianModel(tree))

    def names(level=None):
        column = posterior.to_frame(level, backend=backend)["name"]
        return column.to_pylist() if backend == "pyarrow" else column.to_list()

    assert names() == ["", "tea", "coffee", "101", "102", "201"]
    assert names(level=2) == [101, 102, 201]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (TREE, ["", "tea", "coffee", "tea/hot", "tea/cold", "coffee/filter", "coffee/espresso"]),
        (bough.Tree.from_paths(["a/b/c", "a/d"]), ["", "a", "a/b", "a/d", "a/b/c"]),
        (bough.Tree.from_nested({"tea": ["tea leaf"]}), ["", "tea", "tea/tea leaf"]),
        (bough.Tree.from_parents([-1, 0, 1], ["all", "cat1", "cat10"]), ["all", "all/cat1", "all/cat1/cat10"]),
        (bough.Tree.balanced(2, 2), ["0", "0/1", "0/2", "0/1/3", "0/1/4", "0/2/5", "0/2/6"]),
    ],
)
def test_paths_repeat_nothing(tree, expected):
    found = paths(tree, np.arange(tree.n_nodes, dtype=np.int32))
    assert found[: len(expected)] == expected
    some = np.array([tree.n_nodes - 1, 1], dtype=np.int32)
    assert paths(tree, some) == [found[-1], found[1]]


def test_added_moved_and_retired_actions_are_where_they_hang_now():
    agent = bough.HierTS(bough.GaussianModel(TREE), seed=0)
    agent.update(["green", "iced"], [1.0, 2.0])
    agent.add("white", under="tea/hot")
    agent.move("iced", under="coffee")
    agent.retire("green")
    agent.update("white", 3.0)
    frame = agent.posterior.to_frame(backend="polars")
    rows = {row["path"]: row for row in frame.iter_rows(named=True)}
    assert rows["tea/hot/white"]["observations"] == rows["coffee/iced"]["observations"] == 1
    assert rows["tea"]["observations"] == 2
    assert "tea/cold/iced" not in rows
    assert rows["tea/hot/green"]["share"] == pytest.approx(1 / 3)
    assert rows["tea/hot/white"]["mean"] == agent.posterior.mean[agent.posterior.model.tree.index("white")]


BAD = {
    "level": (lambda p: p.to_frame(level=4), "level is 4; give a depth from 0, the root's, to 3"),
    "level below": (lambda p: p.to_frame(level=-1), "level is -1"),
    "level's name": (lambda p: p.to_frame(level="tea"), "level is 'tea'"),
    "level's truth": (lambda p: p.to_frame(level=True), "level is True"),
    "interval": (lambda p: p.to_frame(interval=95), "interval is 95; give a number between 0 and 1"),
    "interval of an explanation": (lambda p: p.explain("green", interval=0), "interval is 0"),
    "context": (lambda p: p.to_frame(context=[1.0]), "context"),
    "backend": (lambda p: p.to_frame(backend="excel"), "backend is 'excel'"),
    "top": (lambda p: p.plot(top=0), "top is 0; give a whole number of at least 1"),
    "much": (lambda p: p.plot(top=1_001), "top is 1001; give at most 1,000"),
    "level of a plot": (lambda p: p.plot(level=9), "level is 9"),
    "name": (lambda p: p.explain("gren"), "'gren'"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_named(what):
    ask, text = BAD[what]
    with pytest.raises((ValueError, KeyError)) as caught:
        ask(learned())
    assert text in str(caught.value)


@pytest.mark.parametrize("ask", [lambda p: p.to_frame(), lambda p: p.explain("green"), lambda p: p.plot()])
def test_a_contextual_model_needs_a_context(ask):
    with pytest.raises(ValueError, match="context"):
        ask(contextual())


def test_an_unknown_name_is_an_unknown_name_error():
    with pytest.raises(bough.UnknownNameError):
        learned().explain("gren")


# -- the explanation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_explanation_is_the_path_with_what_the_frame_says(kind):
    posterior = KINDS[kind]()
    explanation = posterior.explain("green")
    frame = posterior.to_frame(backend="polars")
    by_name = {row["name"]: row for row in frame.iter_rows(named=True)}
    assert [node.name for node in explanation.nodes] == TREE.path("green")
    for node in explanation.nodes:
        row = by_name[node.name]
        assert {column: getattr(node, column) for column in COLUMNS} == row
    assert explanation.nodes[-1].reward == pytest.approx(
        posterior.mean_reward().mean[list(TREE.actions).index("green")]
    )
    assert posterior.explain("green").to_frame("polars").columns == list(bough.ExplainedNode._fields)


def test_ranks_are_among_siblings():
    posterior = bough.Posterior(bough.GaussianModel(bough.Tree.from_nested(["a", "b", "c", "d"])))
    posterior.update(["a", "b", "c", "d"], [1.0, 4.0, 3.0, 2.0])
    ranks = {name: posterior.explain(name).nodes[-1][6:8] for name in "abcd"}
    assert ranks == {"a": (4, 4), "b": (1, 4), "c": (2, 4), "d": (3, 4)}
    assert posterior.explain("a").nodes[0][6:8] == (1, 1)


def test_retired_siblings_are_not_ranked():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_nested(["a", "b", "c"])), seed=0)
    agent.update(["a", "b", "c"], [1.0, 4.0, 3.0])
    agent.retire("b")
    assert agent.posterior.explain("c").nodes[-1][6:8] == (1, 2)
    assert agent.posterior.explain("b").nodes[-1][6:8] == (1, 3)
    labels = [text.get_text() for text in agent.posterior.plot().get_yticklabels()]
    assert labels == ["c", "a"]


def test_a_category_can_be_explained():
    assert [node.name for node in learned().explain("tea/hot").nodes] == ["", "tea", "tea/hot"]


def test_an_explanation_in_a_context_is_of_that_context():
    posterior = contextual(bough.BernoulliModel)
    one, other = (posterior.explain("green", context).nodes[-1] for context in ([1.0, 0.0], [-1.0, 0.0]))
    assert one.mean == pytest.approx(-other.mean)
    assert one.reward + other.reward == pytest.approx(1.0)


def test_an_explanation_prints_as_a_table():
    posterior = learned()
    lines = str(posterior.explain("green", interval=0.5)).splitlines()
    assert len(lines) == 5
    assert lines[0].split("  ")[-1] == "share"
    assert "50% interval" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["(root)", "tea", "tea/hot", "green"]
    assert lines[-1].endswith("50%")
    assert repr(posterior.explain("green")) == "Explanation('green', levels=4)"


# -- figures -------------------------------------------------------------------------------------------


def test_a_plot_has_the_best_first():
    posterior = learned()
    axes = posterior.plot(top=3)
    best = np.asarray(TREE.actions)[np.argsort(-posterior.mean_reward().mean, kind="stable")[:3]]
    assert [text.get_text() for text in axes.get_yticklabels()] == best.tolist()
    assert axes.get_title() == "The best 3 of 5 actions, with 95% intervals"
    assert axes.yaxis_inverted()


def test_a_plot_of_a_level_has_its_nodes():
    axes = learned().plot(level=1)
    assert {text.get_text() for text in axes.get_yticklabels()} == {"tea", "coffee"}
    assert axes.get_title() == "All 2 nodes of level 1, with 95% intervals"


def test_plots_are_drawn_into_axes_that_are_given():
    _, axes = plt.subplots()
    assert learned().plot(ax=axes) is axes
    assert learned().explain("green").plot(ax=axes) is axes
    assert contextual().plot(context=[1.0, 1.0], ax=axes) is axes


def test_the_plot_of_an_explanation_has_its_siblings():
    axes = learned().explain("green").plot()
    drawn = [len(line.get_xdata()) for line in axes.lines]
    assert drawn == [0, 1, 1, 1, 4]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["(root)", "tea", "tea/hot", "green"]


def test_names_with_dollars_are_not_read_as_formulas():
    tree = bough.Tree.from_nested(["$x_", "a$b$", "c" * 60])
    axes = bough.Posterior(bough.GaussianModel(tree)).plot()
    axes.figure.canvas.draw()
    assert max(len(text.get_text()) for text in axes.get_yticklabels()) <= 42


def test_what_is_beyond_numbers_is_still_shown():
    posterior = bough.Posterior(bough.PoissonModel(TREE, covariance=1e6))
    assert posterior.to_frame(level=0, backend="polars")["high"].to_list() == [np.inf]
    assert "0.00 to inf" in str(posterior.explain("green"))
    posterior.plot().figure.canvas.draw()
    posterior.explain("green").plot().figure.canvas.draw()


def test_a_tree_of_one_node_can_be_looked_at():
    posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(1, 0)))
    assert posterior.to_frame(backend="polars")["path"].to_list() == ["0"]
    assert posterior.explain(0).nodes[0].siblings == 1
    posterior.plot().figure.canvas.draw()


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "bough.plotting", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[plot\]'"):
        learned().plot()
