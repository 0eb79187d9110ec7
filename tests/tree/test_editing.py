"""Edited trees are those that the edited list of names and parents would give, and their names are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bough
from bough.tree import editing
from bough.tree.names import StoredNames

KINDS = {
    "text": lambda i: f"node {i}",
    "whole": lambda i: i - 3,
    "mixed": lambda i: i if i % 3 else f"node {i}",
    "odd": lambda i: ("node", i) if i % 2 else 1.5 * i,
}


def table(tree):
    """Names and their parents' names, in the order of the nodes."""
    return {tree.name(i): None if i == 0 else tree.name(int(tree.parent[i])) for i in range(tree.n_nodes)}


def path(parents, name):
    names = [name]
    while parents[names[-1]] is not None:
        names.append(parents[names[-1]])
    return names[::-1]


def edited_table(parents, add, move, remove):
    """The obvious version: a dict of parents, whose order is that of siblings."""
    inner = set(parents.values())
    parents = dict(parents)
    for name, above in move.items():
        if parents[name] != above:
            del parents[name]
            parents[name] = above
    gone = {name for name in parents if set(path({**parents, **add}, name)) & set(remove) and name not in add}
    parents = {name: above for name, above in parents.items() if name not in gone}
    parents.update(add)
    while True:
        empty = {name for name in parents if name in inner and name not in add} - set(parents.values())
        if not empty:
            return parents
        parents = {name: above for name, above in parents.items() if name not in empty}


def rebuilt(parents):
    position = {name: i for i, name in enumerate(parents)}
    return bough.Tree.from_parents(
        [-1 if above is None else position[above] for above in parents.values()], list(parents)
    )


def check_same(tree, wanted):
    """The same arrays and names, found one by one, all together, and nothing else."""
    assert tree.parent.tolist() == wanted.parent.tolist()
    assert tree.child_start.tolist() == wanted.child_start.tolist()
    assert {array.dtype for array in (tree.parent, tree.child_start)} == {np.dtype(np.int32)}
    assert not tree.parent.flags.writeable
    assert not tree.child_start.flags.writeable
    assert isinstance(tree.node_names, StoredNames)
    for column in ("inner", "actions"):
        one, other = getattr(tree.node_names, column), getattr(wanted.node_names, column)
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
        assert not one.flags.writeable
    names = [wanted.name(i) for i in range(wanted.n_nodes)]
    assert [tree.index(name) for name in names] == list(range(len(names)))
    assert tree.node_names.find_all(names).tolist() == list(range(len(names)))
    assert [tree.path(name) for name in names] == [wanted.path(name) for name in names]
    assert tree.node_names.duplicate() is None
    hashes, nodes = tree.node_names._index
    assert (np.diff(hashes) >= 0).all()
    assert sorted(nodes.tolist()) == list(range(len(names)))


@st.composite
def edits(draw):
    """A tree as a table, and what to add, move and remove, which may turn out to be refused."""
    called = KINDS[draw(st.sampled_from(list(KINDS)))]
    n = draw(st.integers(1, 25))
    parents = {called(0): None}
    for i in range(1, n):
        parents[called(i)] = called(draw(st.integers(0, i - 1)))
    tree = rebuilt(parents)
    old = st.sampled_from([called(i) for i in range(n)])
    remove = draw(st.lists(old, max_size=4, unique=True))
    fresh = st.integers(n, n + 4).map(KINDS[draw(st.sampled_from(list(KINDS)))])
    new = draw(st.lists(st.one_of(fresh, st.sampled_from(remove)) if remove else fresh, max_size=5, unique=True))
    above = st.one_of(old, st.sampled_from(new)) if new else old
    add = {name: draw(above) for name in new}
    move = {name: draw(above) for name in draw(st.lists(old, max_size=4, unique=True))}
    return tree, add, move, remove


@given(edits())
def test_an_edit_is_what_the_edited_table_gives(case):
    tree, add, move, remove = case
    before = table(tree)
    try:
        edit = editing.edit(tree, add, move, remove)
    except ValueError:
        # What is refused is judged one by one below; here, that nothing is changed and that there is a reason.
        assert table(tree) == before
        assert is_refused(before, add, move, remove)
        return
    assert not is_refused(before, add, move, remove)
    if not (add or move or remove):
        assert edit.tree is tree
        assert edit.number.tolist() == list(range(tree.n_nodes))
        return
    wanted = edited_table(before, add, move, remove)
    check_same(edit.tree, rebuilt(wanted))
    assert table(tree) == before
    assert edit.number.dtype == np.int32
    assert edit.number.tolist() == [
        -1 if name not in wanted or name in add else edit.tree.index(name) for name in before
    ]
    for name in before.keys() - wanted.keys():
        assert edit.tree.node_names.find(name) < 0


def is_refused(parents, add, move, remove):
    root = next(iter(parents))
    inner = set(parents.values())
    if root in move or root in remove or set(move) & set(remove):
        return True
    moved = {**parents, **move}
    gone = set()
    for name in parents:
        above = name
        while above is not None and above not in remove and (above not in move):
            above = parents[above]
        if above in remove:
            gone.add(name)
    if (set(add) & set(parents)) - gone:
        return True
    if any(above in gone and above not in add for above in [*add.values(), *move.values()]):
        return True
    if any(above in parents and above not in inner | set(add) | set(add.values()) for above in move.values()):
        return True
    moved.update(add)
    left = {name for name in moved if name in add or name not in gone}
    for name in left:
        above, steps = name, 0
        while above is not None and steps <= len(moved):
            above, steps = moved[above], steps + 1
        if above is not None:
            return True
    return not add and not {name for name in left if name not in inner}


@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_numbered_names_become_stored_integers(branching, height, data):
    tree = bough.Tree.balanced(branching, height)
    name = data.draw(st.integers(1, tree.n_nodes - 1))
    edit = editing.edit(tree, add={-7: 0}, remove=[name])
    check_same(edit.tree, rebuilt(edited_table(table(tree), {-7: 0}, {}, [name])))


def test_an_action_with_something_added_below_is_a_category():
    tree = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"]}).edited(add={"red": "kettle", "blue": "kettle"})
    assert tree.path("blue") == ["", "kitchen", "kettle", "blue"]
    assert tree.actions == ["toaster", "red", "blue"]
    assert bough.Tree.from_parents([-1], ["only"]).edited(add={1: "only"}).path(1) == ["only", 1]


def test_what_is_moved_out_of_a_removed_category_stays():
    tree = bough.Tree.from_nested({"home": {"garden": ["spade", "kite"]}, "gifts": ["card"]})
    edited = tree.edited(move={"spade": "gifts"}, remove=["home"])
    assert table(edited) == {"": None, "gifts": "", "card": "gifts", "spade": "gifts"}


def test_a_category_that_loses_its_last_action_goes_and_so_do_those_above_it():
    tree = bough.Tree.from_nested({"home": {"garden": {"tools": ["spade"]}}, "gifts": ["card"]})
    assert table(tree.edited(remove=["spade"])) == {"": None, "gifts": "", "card": "gifts"}
    kept = tree.edited(add={"rake": "home/garden"}, remove=["spade"])
    assert kept.path("rake") == ["", "home", "home/garden", "rake"]
    assert kept.n_nodes == 6


def test_a_removed_name_may_be_added_anew_and_is_another_node():
    tree = bough.Tree.from_nested({"garden": ["spade", "kite"], "gifts": ["card"]})
    edit = editing.edit(tree, add={"kite": "gifts", "garden": ""}, move={"spade": "garden"}, remove=["garden"])
    assert table(edit.tree) == {
        "": None,
        "gifts": "",
        "garden": "",
        "card": "gifts",
        "kite": "gifts",
        "spade": "garden",
    }
    gone = [tree.name(i) for i in np.flatnonzero(edit.number < 0)]
    assert gone == ["garden", "kite"]


def test_a_long_chain_is_edited():
    tree = bough.Tree.balanced(branching=1, height=3000)
    edit = editing.edit(tree, add={-1: 1500}, move={2000: 1000}, remove=[2500])
    assert edit.tree.path(-1)[-2:] == [1500, -1]
    assert (edit.tree.n_nodes, edit.tree.height, edit.tree.n_actions) == (1502, 1501, 1)


def test_names_whose_hashes_coincide_are_found_after_an_edit():
    tree = bough.Tree.from_parents([-1, 0, 0], names=[-2, "a", "b"])
    edited = tree.edited(add={-1: -2, 2**61 - 3: -2}, remove=["a"])
    assert [edited.name(edited.index(name)) for name in (-1, -2, 2**61 - 3, "b")] == [-1, -2, 2**61 - 3, "b"]


def test_the_index_is_not_saved_with_an_edited_tree():
    import pickle

    tree = bough.Tree.from_nested(["a", "b"]).edited(add={"c": ""})
    assert "_index" not in tree.node_names.__getstate__()
    assert pickle.loads(pickle.dumps(tree)).index("c") == tree.index("c")


TREE = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": {"tools": ["spade"], "toys": ["kite"]}})

BAD = {
    "unknown parent": (dict(add={"rake": "kitchne"}), "unknown name 'kitchne'; did you mean 'kitchen'?"),
    "unknown moved": (dict(move={"spaed": "kitchen"}), "unknown name 'spaed'; did you mean 'spade'?"),
    "unknown target": (dict(move={"spade": "kitchne"}), "unknown name 'kitchne'; did you mean 'kitchen'?"),
    "unknown removed": (dict(remove=["kitte"]), "unknown name 'kitte'; did you mean 'kite'?"),
    "added name is moved": (dict(add={"rake": "kitchen"}, move={"rake": "garden"}), "unknown name 'rake'"),
    "parent of another type": (dict(add={"rake": 3}), "unknown name 3"),
    "unhashable parent": (dict(add={"rake": ["kitchen"]}), "unknown name ['kitchen']"),
    "added twice": (dict(add={"kite": "kitchen"}), "the tree has 'kite' already"),
    "emptied and added": (dict(add={"garden/toys": ""}, remove=["kite"]), "the tree has 'garden/toys' already"),
    "removed twice": (dict(remove=["kite", "kite"]), "the name 'kite' is given twice"),
    "moved and removed": (dict(move={"kite": "kitchen"}, remove=["kite"]), "'kite' is both moved and removed"),
    "root moved": (dict(move={"": "kitchen"}), "the root '' cannot be moved"),
    "root removed": (dict(remove=[""]), "the root '' cannot be removed"),
    "below itself": (dict(move={"garden": "garden"}), "'garden' cannot go below 'garden'"),
    "below its child": (dict(move={"garden": "garden/tools"}), "'garden' cannot go below 'garden/tools'"),
    "two below each other": (dict(move={"garden": "kitchen", "kitchen": "garden"}), "cannot go below"),
    "a cycle of added names": (dict(add={"a": "b", "b": "a"}), "'a' cannot go below 'b'"),
    "below what is added below it": (dict(add={"a": "garden"}, move={"garden": "a"}), "cannot go below"),
    "moved below an action": (
        dict(move={"kite": "kettle"}),
        "'kite' cannot be moved below 'kettle', which is an action",
    ),
    "moved below a removed one": (dict(move={"kite": "kitchen"}, remove=["kitchen"]), "'kitchen', which is removed"),
    "added below a removed one": (
        dict(add={"a": "garden/tools"}, remove=["garden"]),
        "'garden/tools', which is removed",
    ),
    "all removed": (dict(remove=["kitchen", "garden"]), "nothing would be left"),
    "all actions removed": (dict(remove=["kettle", "toaster", "spade", "kite"]), "nothing would be left"),
    "missing name": (dict(add={None: "kitchen"}), "None cannot be a node's name"),
    "add a list": (dict(add=["rake"]), "add is ['rake']; give a mapping"),
    "move a name": (dict(move="kite"), "move is 'kite'; give a mapping"),
    "remove a name": (dict(remove="kite"), "remove is 'kite'; give a list"),
    "remove a mapping": (dict(remove={"kite": "kitchen"}), "give a list"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_edit_is_refused_by_a_text_that_names_what_is_wrong(what):
    given, text = BAD[what]
    before = table(TREE)
    with pytest.raises((ValueError, KeyError)) as caught:
        TREE.edited(**given)
    assert text in str(caught.value)
    assert table(TREE) == before


def test_unknown_names_are_key_errors():
    with pytest.raises(KeyError):
        TREE.edited(remove=["kites"])


def test_true_and_one_cannot_both_be_names():
    tree = bough.Tree.from_parents([-1, 0, 0], names=["all", 1, 2])
    with pytest.raises(ValueError, match="given to 2 nodes"):
        tree.edited(add={True: "all"})
    with pytest.raises(KeyError, match="unknown name True"):
        tree.edited(remove=[True])
