"""Names by their last part, and what is said of a name that is not there."""

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bough
from bough.tree.name_columns import as_column, end_in

PATHS = bough.Tree.from_paths(["home/kitchen/kettle", "office/kitchen/kettle", "home/garden/spade", "kettle"])


def test_names_are_found_by_their_last_part_in_the_order_of_their_nodes():
    assert PATHS.find("kettle") == ["kettle", "home/kitchen/kettle", "office/kitchen/kettle"]
    assert PATHS.find("kitchen") == ["home/kitchen", "office/kitchen"]
    assert PATHS.find("garden") == ["home/garden"]
    assert PATHS.find("ettle") == PATHS.find("kettles") == PATHS.find("Kettle") == []


def test_the_end_of_a_path_is_found_as_well():
    assert PATHS.find("kitchen/kettle") == ["home/kitchen/kettle", "office/kitchen/kettle"]
    assert PATHS.find("home") == ["home"]


def test_what_is_found_is_a_name_of_the_tree():
    for part in ("kettle", "kitchen", "spade"):
        assert [PATHS.path(name)[-1] for name in PATHS.find(part)] == PATHS.find(part)


def test_another_separator_separates():
    tree = bough.Tree.from_paths(["home > kettle", "home/kettle > mug"], sep=" > ")
    assert tree.find("kettle") == ["home > kettle"]


def test_integers_are_found_as_they_are_written():
    frame = polars.DataFrame({"kind": ["tea", "tea"], "product": [17, 117]})
    tree = bough.Tree.from_frame(frame, ["kind", "product"])
    assert tree.find(17) == tree.find("17") == tree.find(np.int64(17)) == [17]
    assert tree.find("017") == tree.find(2**70) == tree.find("7") == []
    assert bough.Tree.balanced(2, 2).find("5") == [5]
    assert bough.Tree.balanced(2, 2).find(7) == []
    mixed = bough.Tree.from_nested({"home": [17, "a/17", ("a", "17"), 2.5]})
    assert mixed.find("17") == [17, "a/17"]
    assert mixed.find("2.5") == [2.5]


NAMES = st.text(st.sampled_from("ab/é😀\0"), max_size=4)


@given(st.lists(NAMES, min_size=1, max_size=20), NAMES, st.sampled_from(["/", "a", "//", "\0"]), st.booleans())
def test_endings_are_those_of_python(names, part, sep, mixed):
    column = as_column([*names, 5] if mixed else names)
    expected = [name == part or name.endswith(sep + part) for name in names]
    assert end_in(column, part, sep).tolist() == expected + [False] * mixed


def test_half_a_character_is_in_no_name():
    assert PATHS.find("\ud800") == []


@pytest.mark.parametrize(
    ("tree", "name", "hint"),
    [
        (PATHS, "spade", "did you mean 'home/garden/spade'?"),
        (PATHS, "kitchen", "did you mean 'home/kitchen' or 'office/kitchen'?"),
        (PATHS, "spaed", "an action of this tree is 'kettle'"),
        (
            bough.Tree.from_paths([f"shop {i}/mug" for i in range(1_200)]),
            "mug",
            "1,200 names end in it, such as 'shop 0/mug'; tree.find('mug') lists them",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_those_that_end_in_it(tree, name, hint):
    for look_up in (tree.index, tree.action_node, bough.HierTS(bough.GaussianModel(tree), 0).retire):
        with pytest.raises(KeyError) as caught:
            look_up(name)
        assert str(caught.value).endswith(f"{name!r}; {hint}")


# -- separators that names have in them --------------------------------------------------------------------

FRAMES = {
    "two categories": {"d": ["a/b", "a"], "c": ["c", "b/c"], "p": [1, 2]},
    "a category and one inside another": {"d": ["a/b", "a"], "c": ["c", "b"], "p": [1, 2]},
    "a category and an action": {"d": ["a", "x"], "c": ["b", "y"], "p": ["1", "a/b"]},
}


@pytest.mark.parametrize("what", FRAMES)
def test_names_that_a_separator_makes_the_same_are_told_by_another(what):
    frame = polars.DataFrame(FRAMES[what])
    with pytest.raises(ValueError, match=r"with sep='/' the parts .* give the same one; give another sep="):
        bough.Tree.from_frame(frame, list("dcp"))
    assert bough.Tree.from_frame(frame, list("dcp"), sep=" > ").n_actions == 2


def test_nested_names_that_a_separator_makes_the_same_are_told_by_another():
    nested = {"a": {"b/c": ["x"]}, "a/b": {"c": ["y"]}}
    with pytest.raises(ValueError, match=r"the parts \['a/b', 'c'\] and \['a', 'b/c'\] give the same one"):
        bough.Tree.from_nested(nested)
    assert bough.Tree.from_nested(nested, sep="|").find("c") == ["a/b|c"]


@pytest.mark.parametrize(
    "columns",
    [
        {"d": ["a", "b"], "c": ["x", "y"], "p": ["q/r", "q/r"]},  # one action in two places
        {"d": ["a", "a"], "c": ["b", "b"], "p": [1, 1]},  # a row twice
        {"d": ["a", "b"], "c": ["x", "x"], "p": ["a", "c"]},  # a category's name
        {"d": [""], "c": ["x"], "p": ["y"]},  # the root's name
    ],
)
def test_a_separator_is_not_blamed_for_what_another_would_not_help(columns):
    for sep in ("/", " > "):
        with pytest.raises(ValueError, match="is given to 2 nodes, and names are unique"):
            bough.Tree.from_frame(polars.DataFrame(columns), list("dcp"), sep=sep)


def test_names_that_repeat_or_are_unknown_are_found_in_long_lists_as_in_short_ones():
    names = [f"p{i}" for i in range(500)] + list(range(500)) + [("t", i) for i in range(10)] + ["a\x00"]
    tree = bough.Tree.from_nested({"odd": ["x"], "all": names})
    rng = np.random.default_rng(0)
    given = [names[i] for i in rng.integers(len(names), size=5_000)] + [True, False, "p", 10**30, ("t", 11), "all"]
    one_by_one = [tree.node_names.find(name) for name in given]
    assert tree.node_names.find_all(given).tolist() == one_by_one
    assert tree.node_names.find_all(given[-40:]).tolist() == one_by_one[-40:]
