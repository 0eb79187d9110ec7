"""Trees of frames beside the obvious version, whatever the columns hold and whichever library keeps them."""

import pandas
import polars
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bough

LIBRARIES = {
    "pandas": pandas.DataFrame,
    "pandas objects": lambda columns: pandas.DataFrame(columns, dtype=object),
    "pandas rows of one label": lambda columns: pandas.DataFrame(columns, index=[7] * len(columns["product"])),
    "pandas categories": lambda columns: pandas.DataFrame(columns).astype({"level 0": "category"}),
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
}
VALUES = {
    "text": st.sampled_from(["", "a", "b", "a/b", "ä", "a\0"]),
    "whole": st.integers(-3, 3),
    "yes or no": st.booleans(),
    "real": st.sampled_from([0.5, 1.0, 2.0]),
}


def obvious(levels, actions, sep):
    """Level by level, each node where it first appears; a row without a value stays where it is."""
    parents, names, at, known = [-1], [""], [0] * len(actions), {}
    for values in levels:
        for row, value in enumerate(values):
            if value is None:
                continue
            key = (at[row], value)
            if key not in known:
                known[key] = len(names)
                parents.append(at[row])
                names.append(f"{names[at[row]]}{sep}{value}" if at[row] else str(value))
            at[row] = known[key]
    return bough.Tree.from_parents(parents + at, names + actions)


def outcome(build):
    """The tree, or that there is none."""
    try:
        tree = build()
    except ValueError as error:  # components that read the same are the same name
        return str(error).partition(" nodes")[0]
    return tree.parent.tolist(), tree.node_names.inner.tolist(), tree.node_names.actions.tolist()


@st.composite
def tables(draw, gaps=False):
    n = draw(st.integers(1, 30))
    known = [kind for kind in VALUES if not gaps or kind != "real"]  # pandas has whole numbers beside nulls as integers
    kinds = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    values = {kind: st.none() | VALUES[kind] if gaps else VALUES[kind] for kind in known}
    levels = [draw(st.lists(values[kind], min_size=n, max_size=n)) for kind in kinds]
    order = draw(st.permutations(range(100, 100 + n)))
    return levels, draw(st.sampled_from([order, [f"product {i}" for i in order], [i + 0.5 for i in order]]))


@pytest.mark.parametrize("library", LIBRARIES)
@given(tables())
@example(([[f"{i}" for i in range(30)]] * 3, list(range(100, 130))))  # more keys than a table of them is worth
def test_a_frame_gives_the_tree_of_its_rows(library, table):
    levels, actions = table
    frame = LIBRARIES[library]({**{f"level {i}": values for i, values in enumerate(levels)}, "product": actions})
    columns = [f"level {i}" for i in range(len(levels))] + ["product"]
    got = outcome(lambda: bough.Tree.from_frame(frame, columns, sep="/"))
    assert got == outcome(lambda: obvious(levels, actions, "/"))


MAKERS = [pandas.DataFrame, polars.DataFrame, pyarrow.table]
GAPS = {
    "text": ["a", "b", None, "c", None],
    "numbers": [1.5, 2.0, float("nan"), 3.0, float("nan")],
    "integers": [1, 2, None, 3, None],
    "truths": [True, False, None, True, None],
}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("column", ["kind", "product"])
@pytest.mark.parametrize("values", GAPS.values(), ids=GAPS)
def test_nulls_are_counted_and_the_first_row_is_named(make, column, values):
    other = {"kind": "product", "product": "kind"}[column]
    with pytest.raises(ValueError, match=rf"the frame has nulls: 2 in '{column}' \(first in row 2\); "):
        bough.Tree.from_frame(make({column: values, other: ["v", "w", "x", "y", "z"]}), ["kind", "product"])


@pytest.mark.parametrize("make", MAKERS)
def test_the_nulls_of_all_columns_are_counted_at_once(make):
    frame = make({"d": ["a", None, None], "c": ["x", None, "y"], "s": ["u", "v", "w"], "p": ["1", "2", None]})
    counts = "the frame has nulls: 2 in 'd' (first in row 1), 1 in 'c' (first in row 1), 1 in 'p' (first in row 2); "
    with pytest.raises(ValueError, match="missing='parent'") as caught:
        bough.Tree.from_frame(frame, ["d", "c", "s", "p"])
    assert str(caught.value).startswith(counts)
    with pytest.raises(ValueError, match=r"nulls: 1 in 'p' \(first in row 2\); an action needs a name") as caught:
        bough.Tree.from_frame(frame, ["d", "c", "s", "p"], missing="parent")
    assert "missing=" not in str(caught.value)


@pytest.mark.parametrize("make", MAKERS)
def test_a_row_without_a_level_hangs_one_level_higher(make):
    frame = make({
        "department": ["home", "home", "home", None, None, "food"],
        "commodity": ["kitchen", None, "garden", "garden", None, "tea"],
        "product": ["kettle", "gift card", "spade", "gnome", "stamp", "sencha"],
    })  # fmt: skip
    tree = bough.Tree.from_frame(frame, ["department", "commodity", "product"], missing="parent")
    assert tree.path("kettle") == ["", "home", "home/kitchen", "kettle"]
    assert tree.path("gift card") == ["", "home", "gift card"]
    assert tree.path("gnome") == ["", "garden", "gnome"]  # no department, and so not that of home
    assert tree.path("stamp") == ["", "stamp"]
    assert tree.n_nodes == 13
    assert tree.levels == ("root", "department", "commodity", "product")


@pytest.mark.parametrize("make", MAKERS)
def test_what_a_gap_leads_to_the_same_place_is_one_node(make):
    columns = {"a": ["x", "x", None], "b": ["y", None, "x"], "c": ["z", "y", "y"], "p": [1, 2, 3]}
    tree = bough.Tree.from_frame(make(columns), list("abcp"), missing="parent")
    assert tree.path(1) == ["", "x", "x/y", "x/y/z", 1]
    assert tree.path(2) == [*tree.path(3)[:-1], 2] == ["", "x", "x/y", 2]


@pytest.mark.parametrize("library", LIBRARIES)
@given(tables(gaps=True))
def test_a_frame_with_gaps_gives_the_tree_of_its_rows_without_them(library, table):
    levels, actions = table
    frame = LIBRARIES[library]({**{f"level {i}": values for i, values in enumerate(levels)}, "product": actions})
    columns = [f"level {i}" for i in range(len(levels))] + ["product"]
    got = outcome(lambda: bough.Tree.from_frame(frame, columns, missing="parent"))
    assert got == outcome(lambda: obvious(levels, actions, "/"))


def test_integers_beside_nulls_stay_integers_in_pandas():
    columns = {"kind": [17, 17, None], "product": ["a", "b", "c"]}
    trees = [bough.Tree.from_frame(make(columns), ["kind", "product"], missing="parent") for make in MAKERS]
    assert [tree.path("a") for tree in trees] == [["", "17", "a"]] * 3
    halves = pandas.DataFrame({"kind": [17.5, 17.0, None], "product": ["a", "b", "c"]})
    assert bough.Tree.from_frame(halves, ["kind", "product"], missing="parent").path("b") == ["", "17.0", "b"]


def test_a_column_of_nulls_is_no_level():
    frame = polars.DataFrame({"kind": ["tea"], "origin": [None], "product": ["green"]})
    tree = bough.Tree.from_frame(frame, ["kind", "origin", "product"], missing="parent")
    assert (tree.path("green"), tree.levels) == (["", "tea", "green"], ("root", "kind", "product"))


def test_objects_that_begin_as_text_may_be_anything_later():
    text = [f"kind {i % 3}" for i in range(200)]
    products = list(range(200))
    mixed = pandas.DataFrame(
        {"kind": pandas.Series([*text, 5, 5, True], dtype=object), "product": [*products, -1, -2, -3]}
    )
    tree = bough.Tree.from_frame(mixed, ["kind", "product"])
    assert [tree.path(name)[1] for name in (0, -1, -2, -3)] == ["kind 0", "5", "5", "True"]
    for odd, words in ((None, r"1 in 'kind' \(first in row 200\)"), (["a"], "not hashable")):
        frame = pandas.DataFrame({"kind": pandas.Series([*text, odd], dtype=object), "product": [*products, -1]})
        with pytest.raises(ValueError, match=words):
            bough.Tree.from_frame(frame, ["kind", "product"])
