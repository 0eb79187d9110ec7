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
    """Level by level, each node where it first appears."""
    parents, names, at = [-1], [""], [0] * len(actions)
    for values in levels:
        known = {}
        for row, value in enumerate(values):
            key = (at[row], value)
            if key not in known:
                known[key] = len(names)
                parents.append(at[row])
                names.append(f"{names[at[row]]}{sep}{value}" if at[row] else str(value))
            at[row] = known[key]
    return bough.Tree.from_parents(parents + at, names + actions)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 30))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    levels = [draw(st.lists(VALUES[kind], min_size=n, max_size=n)) for kind in kinds]
    order = draw(st.permutations(range(100, 100 + n)))
    return levels, draw(st.sampled_from([order, [f"product {i}" for i in order], [i + 0.5 for i in order]]))


@pytest.mark.parametrize("library", LIBRARIES)
@given(tables())
@example(([[f"{i}" for i in range(30)]] * 3, list(range(100, 130))))  # more keys than a table of them is worth
def test_a_frame_gives_the_tree_of_its_rows(library, table):
    levels, actions = table
    frame = LIBRARIES[library]({**{f"level {i}": values for i, values in enumerate(levels)}, "product": actions})
    columns = [f"level {i}" for i in range(len(levels))] + ["product"]

    def outcome(build):
        try:
            tree = build()
        except ValueError as error:  # components that read the same are the same name
            return str(error)
        return tree.parent.tolist(), tree.node_names.inner.tolist(), tree.node_names.actions.tolist()

    got = outcome(lambda: bough.Tree.from_frame(frame, columns, sep="/"))
    assert got == outcome(lambda: obvious(levels, actions, "/"))


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
@pytest.mark.parametrize("column", ["kind", "product"])
@pytest.mark.parametrize("values", [["a", "b", None, "c"], [1.0, 2.0, float("nan"), 3.0], [1, 2, None, 3]])
def test_the_first_row_without_a_value_is_named(make, column, values):
    other = {"kind": "product", "product": "kind"}[column]
    with pytest.raises(ValueError, match=f"column '{column}' is null in row 2"):
        bough.Tree.from_frame(make({column: values, other: ["w", "x", "y", "z"]}), ["kind", "product"])


def test_objects_that_begin_as_text_may_be_anything_later():
    text = [f"kind {i % 3}" for i in range(200)]
    products = list(range(200))
    mixed = pandas.DataFrame(
        {"kind": pandas.Series([*text, 5, 5, True], dtype=object), "product": [*products, -1, -2, -3]}
    )
    tree = bough.Tree.from_frame(mixed, ["kind", "product"])
    assert [tree.path(name)[1] for name in (0, -1, -2, -3)] == ["kind 0", "5", "5", "True"]
    for odd, words in ((None, "is null in row 200"), (["a"], "not hashable")):
        frame = pandas.DataFrame({"kind": pandas.Series([*text, odd], dtype=object), "product": [*products, -1]})
        with pytest.raises(ValueError, match=words):
            bough.Tree.from_frame(frame, ["kind", "product"])
