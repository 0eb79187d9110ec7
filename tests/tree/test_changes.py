"""Two trees compared by name, and trees that keep what is gone as ghosts, beside the obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bough
from bough.tree import changes


def drawn_tree(draw, names):
    """A tree of some of the names, in any shape."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=12, unique=True))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, len(chosen))]
    return bough.Tree.from_parents(parents, chosen)


NAMES = {
    "text": [f"node {i}" for i in range(14)],
    "whole": [*range(-3, 11)],
    "mixed": ["a", "b", "c", 0, 1, 2, -1, -2, 2**61 - 1, 2**61 - 2, ("a", 1), 1.5, 2**70, "d"],  # hashes coincide
}


@st.composite
def two_trees(draw):
    names = NAMES[draw(st.sampled_from(list(NAMES)))]
    return drawn_tree(draw, names), drawn_tree(draw, names)


def naive_comparison(old, new, renamed):
    """Names of what is there, added, gone and moved, one by one."""
    place, gone, moved = {}, set(), set()
    for node in range(old.n_nodes):
        name = old.name(node)
        now = renamed.get(name, name) if old.is_action(node) else name
        found = new.node_names.find(now)
        place[name] = found if found >= 0 and old.is_action(node) == new.is_action(found) else -1
        if old.is_action(node) and place[name] < 0:
            gone.add(name)
        elif old.is_action(node):
            moved |= {name} if old.path(name)[-2:-1] != new.path(now)[-2:-1] else set()
    added = {new.name(i) for i in new.leaves.tolist()} - {new.name(place[n]) for n in old.actions if place[n] >= 0}
    return place, added, gone, moved


def check_comparison(old, new, renamed=None):
    got = changes.compare(old, new, renamed)
    place, added, gone, moved = naive_comparison(old, new, renamed or {})
    assert {array.dtype for array in got} == {np.dtype(np.int32)}
    assert got.place.tolist() == [place[old.name(i)] for i in range(old.n_nodes)]
    assert [new.name(i) for i in got.added] == [name for name in new.actions if name in added]
    assert [old.name(i) for i in got.gone] == [name for name in old.actions if name in gone]
    assert [old.name(i) for i in got.moved] == [name for name in old.actions if name in moved]


@given(two_trees())
def test_trees_are_compared_by_the_names_of_their_nodes(trees):
    check_comparison(*trees)


@given(two_trees(), st.data())
def test_renamed_actions_are_the_same_ones(trees, data):
    old, new = trees
    only_old = [name for name in old.actions if name not in new.actions]
    only_new = [name for name in new.actions if name not in old.actions]
    n = data.draw(st.integers(0, min(len(only_old), len(only_new))))
    renamed = dict(zip(data.draw(st.permutations(only_old))[:n], data.draw(st.permutations(only_new))[:n], strict=True))
    check_comparison(old, new, renamed)


def test_numbered_trees_are_compared_with_one_another_and_with_stored_integers():
    small, large = bough.Tree.balanced(2, 2), bough.Tree.balanced(3, 2)
    stored = small.edited(move={3: 2}, add={99: 1})
    for old, new in ((small, large), (large, small), (small, stored), (stored, large), (small, small)):
        check_comparison(old, new)


def test_a_tree_is_the_same_as_itself():
    tree = bough.Tree.from_nested({"tea": ["green", "black"], "other": ["coffee"]})
    got = changes.compare(tree, tree)
    assert got.place.tolist() == list(range(tree.n_nodes))
    assert not any(map(len, got[1:]))


def test_true_is_not_one():
    ones = bough.Tree.from_parents([-1, 0, 0], ["all", 1, 2])
    trues = bough.Tree.from_parents([-1, 0, 0], ["all", True, 2])
    got = changes.compare(ones, trues)
    assert got.place.tolist() == [0, -1, 2]
    assert changes.compare(trues, trues).place.tolist() == [0, 1, 2]


def test_names_may_be_swapped_and_passed_on():
    old = bough.Tree.from_nested({"tea": ["a", "b"], "other": ["c"]})
    swapped = changes.compare(old, old, {"a": "b", "b": "a"})
    assert [swapped.place[old.index(name)] for name in "ab"] == [old.index("b"), old.index("a")]
    new = bough.Tree.from_nested({"tea": ["b", "d"], "other": ["c"]})
    passed = changes.compare(old, new, {"a": "b", "b": "d"})
    assert [passed.place[old.index(name)] for name in "ab"] == [new.index("b"), new.index("d")]
    assert not any(map(len, passed[1:]))


OLD = bough.Tree.from_nested({"tea": ["green", "black"], "other": ["coffee", "milk"]})
NEW = bough.Tree.from_nested({"tea": ["green", "milk"], "other": ["espresso", "juice"]})

BAD_RENAMES = {
    "unknown old name": ({"cofee": "espresso"}, "not an action of the old tree: unknown action 'cofee'; did you mean"),
    "an old category": ({"tea": "espresso"}, "not an action of the old tree: 'tea' is not an action"),
    "unknown new name": ({"coffee": "expresso"}, "not an action of the new tree: unknown action 'expresso'; did you"),
    "a new category": ({"coffee": "other"}, "not an action of the new tree: 'other' is not an action"),
    "still there": ({"milk": "juice"}, "but the new tree still has 'milk' as well"),
    "two to one": ({"coffee": "juice", "black": "juice"}, "gives 'coffee' and 'black' the same name 'juice'"),
    "another's": ({"coffee": "green"}, "gives 'coffee' the name 'green', which is another action's in the old tree"),
    "a list": (["coffee"], "renamed is ['coffee']; give a mapping"),
}


@pytest.mark.parametrize("what", BAD_RENAMES)
def test_what_cannot_be_renamed_is_said(what):
    renamed, text = BAD_RENAMES[what]
    with pytest.raises((ValueError, KeyError)) as caught:
        changes.compare(OLD, NEW, renamed)
    assert text in str(caught.value)


@given(two_trees())
def test_ghosts_hang_below_what_was_above_them(trees):
    old, new = trees
    ghosts = np.array([i for i in old.leaves.tolist() if new.node_names.find(old.name(i)) < 0], dtype=np.int32)
    if new.n_nodes == 1 and len(ghosts):
        with pytest.raises(ValueError, match="is the single action"):
            changes.with_ghosts(new, old, ghosts)
        return
    got = changes.with_ghosts(new, old, ghosts)
    assert [got.tree.name(i) for i in got.ghosts] == [old.name(i) for i in ghosts]
    # What was there has its parent and its order, and what was an action is one.
    names = [new.name(i) for i in range(new.n_nodes)]
    assert [got.tree.index(name) for name in names] == got.number.tolist()
    assert [got.tree.path(name) for name in names] == [new.path(name) for name in names]
    assert set(got.tree.actions) == {*new.actions, *(old.name(i) for i in ghosts)}
    for name in (old.name(i) for i in ghosts):
        above = [one for one in old.path(name)[1:-1] if one not in new.actions]
        start = max((i for i, one in enumerate(above) if new.node_names.find(one) >= 0), default=-1)
        if start >= 0:
            wanted = [*new.path(above[start]), *above[start + 1 :], name]
        else:
            root = old.path(name)[0]
            known = new.node_names.find(root) >= 0 and root not in new.actions and len(old.path(name)) > 1
            wanted = [*(new.path(root) if known else [new.name(0)]), *above, name]
        assert got.tree.path(name) == wanted


def test_without_ghosts_the_tree_is_the_new_one():
    got = changes.with_ghosts(NEW, OLD, np.array([], dtype=np.int32))
    assert got.tree is NEW
    assert got.number.tolist() == list(range(NEW.n_nodes))
    assert not len(got.ghosts)


def test_a_ghost_cannot_have_the_name_of_a_category():
    new = bough.Tree.from_nested({"tea": {"green": ["sencha"]}, "black": None})
    new = new.edited(add={"milk": "", "oat": "milk"})
    with pytest.raises(ValueError, match=r"'milk' cannot stay .* it is a category of the new tree"):
        changes.with_ghosts(new, OLD, OLD.action_nodes(["milk"]))
    with pytest.raises(ValueError, match=r"'black' cannot stay .* it is an action of the new tree"):
        changes.with_ghosts(new, OLD, OLD.action_nodes(["black"]))
