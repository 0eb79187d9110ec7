"""Every builder, every odd shape, and names that stay the user's own."""

import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

import bough

FRAME = {
    "department": ["home", "home", "home", "food"],
    "commodity": ["kitchen", "kitchen", "garden", "tea"],
    "product": [17, 4, 99, 5],
}


def nested_of(tree: bough.Tree, node: int = 0) -> dict:
    return {tree.name(child): nested_of(tree, child) for child in tree.children(node).tolist()}


def check_arrays(tree: bough.Tree) -> None:
    """Breadth first, siblings side by side, and every derived array by its definition."""
    n = tree.n_nodes
    assert tree.parent[0] == -1
    assert (tree.parent[1:] < np.arange(1, n)).all()
    assert (np.diff(tree.depth) >= 0).all()
    for node in range(n):
        children = tree.children(node)
        assert children.tolist() == np.flatnonzero(tree.parent == node).tolist()
        assert tree.is_action(node) == (len(children) == 0)
        assert tree.depth[node] == (0 if node == 0 else tree.depth[tree.parent[node]] + 1)
        assert tree.node_height[node] == (0 if not len(children) else 1 + tree.node_height[children].max())
        assert tree.index(tree.name(node)) == node
    assert tree.leaves.tolist() == [i for i in range(n) if tree.is_action(i)]
    assert list(tree.actions) == [tree.name(i) for i in tree.leaves.tolist()]
    assert (tree.n_actions, tree.height) == (len(tree.leaves), tree.depth.max())


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_parents_in_any_order_give_the_same_tree(n, seed, named):
    rng = np.random.default_rng(seed)
    parents = np.array([-1] + [int(rng.integers(i)) for i in range(1, n)])
    order = rng.permutation(n)  # node i goes to place order[i]
    shuffled = np.full(n, -1)
    shuffled[order] = np.where(parents < 0, -1, order[parents])
    names = [f"node {i}" for i in range(n)] if named else None
    tree = bough.Tree.from_parents(shuffled, names)
    check_arrays(tree)
    for i in range(n):
        name = f"node {i}" if named else i
        above = shuffled[i]
        path = tree.path(name)
        assert path[-1] == name
        assert len(path) == 1 if above < 0 else path[-2] == (f"node {above}" if named else above)


def test_paths_name_actions_by_the_whole_path_and_put_one_root_above():
    tree = bough.Tree.from_paths(["home/kitchen/kettle", "home/kitchen/toaster", "home/garden/spade", "gift"])
    check_arrays(tree)
    assert tree.path("home/kitchen/kettle") == ["", "home", "home/kitchen", "home/kitchen/kettle"]
    assert set(tree.actions) == {"home/kitchen/kettle", "home/kitchen/toaster", "home/garden/spade", "gift"}
    assert bough.Tree.from_paths(["a > b", "a > c"], sep=" > ").path("a > c") == ["", "a", "a > c"]


def test_nested_mappings_name_actions_by_their_own_key():
    tree = bough.Tree.from_nested({"home": {"kitchen": ["kettle", "toaster"], "garden": ["spade"]}, "gift": None})
    check_arrays(tree)
    assert tree.path("kettle") == ["", "home", "home/kitchen", "kettle"]
    assert tree.path("gift") == ["", "gift"]
    assert nested_of(tree) == {
        "home": {"home/kitchen": {"kettle": {}, "toaster": {}}, "home/garden": {"spade": {}}},
        "gift": {},
    }


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_frames_of_every_library_name_actions_by_the_last_column(make):
    tree = bough.Tree.from_frame(make(FRAME), columns=["department", "commodity", "product"])
    check_arrays(tree)
    assert tree.path(4) == ["", "home", "home/kitchen", 4]
    assert tree.actions == [17, 4, 99, 5]
    assert all(type(name) is int for name in tree.actions)


def test_the_same_commodity_in_two_departments_is_two_nodes():
    frame = polars.DataFrame({"d": ["x", "y"], "c": ["misc", "misc"], "p": ["a", "b"]})
    tree = bough.Tree.from_frame(frame, ["d", "c", "p"])
    assert tree.path("a") == ["", "x", "x/misc", "a"]
    assert tree.path("b") == ["", "y", "y/misc", "b"]


def test_networkx_graphs_keep_their_names_directed_or_not():
    edges = [("tea", "green"), ("tea", "black"), (("odd", "name"), "tea")]
    for tree in (
        bough.Tree.from_networkx(networkx.DiGraph(edges)),
        bough.Tree.from_networkx(networkx.Graph(edges), root=("odd", "name")),
    ):
        check_arrays(tree)
        assert tree.path("green") == [("odd", "name"), "tea", "green"]


def test_a_linkage_is_a_tree_of_clusters():
    points = np.random.default_rng(0).normal(size=(20, 3))
    Z = linkage(points, "average")
    names = [f"item {i}" for i in range(20)]
    for tree, first in ((bough.Tree.from_linkage(Z), 0), (bough.Tree.from_linkage(Z, names), "item 0")):
        check_arrays(tree)
        assert tree.n_nodes == 39
        assert (np.diff(tree.child_start)[np.diff(tree.child_start) > 0] == 2).all()
        assert first in tree.actions
    assert bough.Tree.from_linkage(Z, names).name(0) == "cluster 38"


def test_balanced_trees_have_the_nodes_that_they_should():
    for branching, height in ((1, 4), (2, 3), (3, 2), (5, 0)):
        tree = bough.Tree.balanced(branching, height)
        check_arrays(tree)
        assert (tree.n_actions, tree.height) == (branching**height, height)
        assert isinstance(tree.actions[0], int)


def test_ten_million_actions_are_a_few_integers_a_node():
    tree = bough.Tree.balanced(branching=10, height=7)
    assert tree.n_actions == 10_000_000
    stored = tree.parent.nbytes + tree.child_start.nbytes + tree.depth.nbytes + tree.leaves.nbytes
    assert stored <= 16 * tree.n_nodes + 4


@pytest.mark.parametrize("names", [["only"], None])
def test_a_tree_may_be_a_single_action(names):
    tree = bough.Tree.from_parents([-1], names)
    check_arrays(tree)
    assert tree.star() is tree
    assert repr(tree) == "Tree(n_nodes=1, n_actions=1, height=0)"


def test_a_star_keeps_the_actions_and_their_order():
    tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    star = tree.star()
    check_arrays(star)
    assert star.height == 1
    assert star.actions == tree.actions
    assert bough.Tree.balanced(3, 1).star().n_nodes == 4


def test_names_are_found_whatever_integer_or_string_type_they_come_in():
    tree = bough.Tree.from_frame(pandas.DataFrame(FRAME), ["department", "product"])
    assert tree.index(np.int64(17)) == tree.index(17) == tree.index(17.0)
    assert tree.action_nodes(np.array([17, 5])).tolist() == [tree.index(17), tree.index(5)]
    assert tree.action_nodes((17, 5)).tolist() == [tree.index(17), tree.index(5)]
    words = bough.Tree.from_nested(["a", "b"])
    assert words.action_nodes(np.array(["b", "a"])).tolist() == [2, 1]
    assert words.index(np.str_("b")) == 2
    negative = bough.Tree.from_parents([-1, 0, 0], names=[-1, -2, 2**61 - 1])  # integers whose hashes coincide
    assert [negative.index(name) for name in (-1, -2, 2**61 - 1)] == [0, 1, 2]
    assert negative.action_nodes([-2, 2**61 - 1, -2]).tolist() == [1, 2, 1]


def test_names_whose_hashes_collide_are_still_told_apart():
    class Same:
        def __init__(self, label):
            self.label = label

        def __hash__(self):
            return 7

        def __eq__(self, other):
            return isinstance(other, Same) and self.label == other.label

    names = [Same(i) for i in range(6)]
    tree = bough.Tree.from_parents([-1, 0, 0, 1, 1, 2], names)
    assert [tree.index(Same(i)) for i in range(6)] == list(range(6))
    assert tree.action_nodes([Same(4), Same(3)]).tolist() == [4, 3]


def test_show_is_readable_and_truncated(capsys):
    bough.Tree.from_paths([f"shelf/{i}/{j}" for i in range(9) for j in range(2)]).show(max_depth=2, max_children=3)
    assert capsys.readouterr().out == (
        "''\n"
        "└── shelf\n"
        "    ├── shelf/0 (2 nodes below)\n"
        "    ├── shelf/1 (2 nodes below)\n"
        "    ├── shelf/2 (2 nodes below)\n"
        "    └── ... 6 more\n"
    )


def test_action_names_read_like_a_list():
    actions = bough.Tree.from_nested(["a", "b", "c", "d", "e", "f"]).actions
    assert actions.index("c") == 2
    assert actions[-1] == "f"
    assert actions[1:3].tolist() == ["b", "c"]
    assert "z" not in actions
    assert actions != ["a"]
    assert np.asarray(actions).tolist() == list("abcdef")
    assert repr(actions) == "ActionNames(['a', 'b', 'c', 'd', 'e', ... 1 more])"


def frame(**columns):
    return polars.DataFrame(columns)


BAD = {
    "no node": (lambda: bough.Tree.from_parents([]), "no nodes"),
    "cycle": (lambda: bough.Tree.from_parents([-1, 2, 1]), "cycle: going up from node 1"),
    "no root": (lambda: bough.Tree.from_parents([1, 0]), "cycle"),
    "two roots": (lambda: bough.Tree.from_parents([-1, -1], ["a", "b"]), "2 roots, 'a' and 'b'"),
    "parent out of range": (lambda: bough.Tree.from_parents([-1, 9]), "node 1 is 9"),
    "parents not integers": (lambda: bough.Tree.from_parents([-1, 0.5]), "list of integers"),
    "too few names": (lambda: bough.Tree.from_parents([-1, 0], ["a"]), "1 names for 2 nodes"),
    "duplicate names": (lambda: bough.Tree.from_parents([-1, 0, 0], ["a", "b", "b"]), "'b' is given to 2 nodes"),
    "unhashable name": (lambda: bough.Tree.from_parents([-1, 0], ["a", [1]]), "not hashable"),
    "missing name": (lambda: bough.Tree.from_parents([-1, 0], ["a", None]), "None cannot be a node's name"),
    "duplicate path": (lambda: bough.Tree.from_paths(["a/b", "a/b"]), "'a/b' is given twice"),
    "path inside a path": (lambda: bough.Tree.from_paths(["a", "a/b"]), "'a' is both"),
    "empty component": (lambda: bough.Tree.from_paths(["a//b"]), "'a//b' has an empty component"),
    "no paths": (lambda: bough.Tree.from_paths([]), "no paths"),
    "one string": (lambda: bough.Tree.from_paths("a/b"), "single string 'a/b'"),
    "path not a string": (lambda: bough.Tree.from_paths([3]), "path 3 is of type int"),
    "empty separator": (lambda: bough.Tree.from_paths(["a"], sep=""), "sep is ''"),
    "empty category": (lambda: bough.Tree.from_nested({"a": {"b": []}}), "'a/b' is empty"),
    "nothing nested": (lambda: bough.Tree.from_nested({}), "top level is empty"),
    "a value where a category goes": (lambda: bough.Tree.from_nested({"a": 3}), "category 'a' holds 3"),
    "action in two categories": (lambda: bough.Tree.from_nested({"a": ["x"], "b": ["x"]}), "'x' is given to 2"),
    "unknown column": (lambda: bough.Tree.from_frame(frame(a=[1]), ["b"]), "no column 'b'"),
    "no columns": (lambda: bough.Tree.from_frame(frame(a=[1]), []), "columns is empty"),
    "null": (lambda: bough.Tree.from_frame(frame(a=["x", None], b=[1, 2]), ["a", "b"]), "1 in 'a' (first in row 1)"),
    "levels in another order": (
        lambda: bough.Tree.from_frame(frame(sku=[1, 2, 3], kind=["x", "x", "y"]), ["sku", "kind"]),
        "names are unique over all nodes of a tree; give the columns coarsest first, which seems to be kind, sku",
    ),
    "repeated row": (lambda: bough.Tree.from_frame(frame(a=["x", "x"], b=[1, 1]), ["a", "b"]), "1 is given to 2"),
    "no rows": (lambda: bough.Tree.from_frame(frame(a=[]), ["a"]), "no rows"),
    "not a frame": (lambda: bough.Tree.from_frame([1, 2], ["a"]), "frame is a list"),
    "two parents": (lambda: bough.Tree.from_networkx(networkx.DiGraph([(0, 2), (1, 2)])), "2 has two parents, 0 and 1"),
    "undirected": (lambda: bough.Tree.from_networkx(networkx.Graph([(0, 1)])), "say which node is the root"),
    "undirected cycle": (lambda: bough.Tree.from_networkx(networkx.cycle_graph(3), root=0), "3 nodes and 3 edges"),
    "unconnected": (
        lambda: bough.Tree.from_networkx(networkx.Graph([(0, 1), (2, 3), (3, 4), (2, 4)]), root=0),
        "roots",
    ),
    "unknown root": (lambda: bough.Tree.from_networkx(networkx.Graph([(0, 1)]), root=7), "root 7 is not"),
    "root with a parent": (lambda: bough.Tree.from_networkx(networkx.DiGraph([(0, 1)]), root=1), "root 1 has a parent"),
    "not a graph": (lambda: bough.Tree.from_networkx([1]), "graph is a list"),
    "linkage of a wrong shape": (lambda: bough.Tree.from_linkage(np.zeros((3, 3))), "shape (3, 3)"),
    "linkage of the future": (lambda: bough.Tree.from_linkage([[0, 5, 1.0, 2]]), "do not exist yet"),
    "linkage joined twice": (lambda: bough.Tree.from_linkage([[0, 1, 1.0, 2], [0, 2, 1.0, 2]]), "cluster 0 twice"),
    "linkage names": (lambda: bough.Tree.from_linkage([[0, 1, 1.0, 2]], ["a"]), "1 names for a linkage of 2"),
    "branching": (lambda: bough.Tree.balanced(0, 3), "branching is 0"),
    "height": (lambda: bough.Tree.balanced(2, 1.5), "height is 1.5"),
    "too large": (lambda: bough.Tree.balanced(10, 12), "at most"),
    "unknown name": (lambda: bough.Tree.from_nested(["kettle"]).index("kettel"), "did you mean 'kettle'?"),
    "unknown number": (lambda: bough.Tree.balanced(2, 2).index(7), "unknown name 7; names are the numbers 0 to 6"),
    "not an action": (lambda: bough.Tree.from_paths(["a/b"]).action_node("a"), "'a' is not an action"),
    "one of many unknown": (lambda: bough.Tree.balanced(2, 2).action_nodes([3, 99]), "unknown action 99"),
    "node out of range": (lambda: bough.Tree.balanced(2, 2).name(7), "7 is not a node number"),
    "node not a number": (lambda: bough.Tree.balanced(2, 2).children("a"), "'a' is not a node number"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_tree_is_refused_by_a_text_that_names_what_is_wrong(what):
    build, text = BAD[what]
    with pytest.raises((ValueError, KeyError)) as caught:
        build()
    assert text in str(caught.value)


def test_a_name_of_the_other_type_is_said_to_be_one():
    whole = bough.Tree.from_parents([-1, 0, 0], names=["all", 100001, 100002])
    text = bough.Tree.from_nested(["100001", "100002"])
    numbered = bough.Tree.balanced(2, 2)
    is_whole = "in the tree it is an integer and here it is text; cast one of them"
    is_text = "in the tree it is text and here it is an integer; cast one of them"
    for tree, name, words in ((whole, "100001", is_whole), (text, 100001, is_text), (numbered, "3", is_whole)):
        for find in (tree.index, tree.action_node, lambda name, tree=tree: tree.action_nodes([name])):
            with pytest.raises(KeyError) as caught:
                find(name)
            assert str(caught.value).endswith(f"{name!r}; {words}")
    with pytest.raises(KeyError, match=r"unknown action '100003'; did you mean 10000\d\?"):
        whole.action_node("100003")
    with pytest.raises(KeyError, match="unknown name '²'"):  # a digit to Python, but no integer
        numbered.index("²")
