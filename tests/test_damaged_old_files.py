"""Damaged files of version 1, which kept messages: what no observations make is refused, or not believed."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import bough
import file_parts
from places import FIXTURES

FILES = FIXTURES / "version1"


def old_file(tmp_path, which):
    """A copy of a posterior's file of version 1."""
    return Path(shutil.copy(FILES / f"posterior-{which}.bough", tmp_path / "posterior.bough"))


def refused(path, match=""):
    with pytest.raises(ValueError, match=rf"posterior\.bough.*{match}"):
        bough.Posterior.load(path)


M, ETA, M_TOLD, ETA_TOLD, OLD_COUNT, OLD_SPREAD, OLD_EXPOSURE = range(7)


@pytest.mark.parametrize(
    ("which", "row", "column", "value"),
    [
        ("gaussian", 2, M, -1.0),
        ("gaussian", 2, M, 1.0),
        ("gaussian", 2, ETA, np.nan),
        ("gaussian", 2, ETA, 1e300),
        ("gaussian", 2, OLD_COUNT, -3.0),
        ("gaussian", 2, OLD_COUNT, 0.0),
        ("gaussian", 2, OLD_COUNT, 1e30),
        ("gaussian", 2, OLD_SPREAD, -0.1),
        ("gaussian", 1, OLD_COUNT, 1.0),
        ("gaussian", 0, OLD_SPREAD, 1.0),
        ("bernoulli", 2, M, -1.0),
        ("bernoulli", 2, OLD_COUNT, -1.0),
        ("bernoulli", 2, OLD_SPREAD, 100.0),
        ("bernoulli", 2, OLD_SPREAD, -1.0),
        ("bernoulli", 2, OLD_EXPOSURE, 0.0),
        ("bernoulli", 1, OLD_EXPOSURE, 1.0),
        ("poisson", 2, ETA, 1e200),
        ("poisson", 2, OLD_SPREAD, -1.0),
        ("poisson", 2, OLD_EXPOSURE, -1.0),
    ],
)
def test_an_old_state_that_no_observations_make_is_refused(tmp_path, which, row, column, value):
    path = old_file(tmp_path, which)
    state = file_parts.arrays(path)["state"]
    assert file_parts.arrays(path)["touched"][[0, 1, 2]].tolist() == [0, 1, 3]  # the root, tea, and green
    state[row, column] = value
    file_parts.change(path, state=state)
    refused(path, "not a complete posterior file")


@pytest.mark.parametrize("which", ["gaussian", "bernoulli", "poisson"])
def test_what_an_old_file_says_of_inner_nodes_is_not_believed(tmp_path, which):
    path = old_file(tmp_path, which)
    before = bough.Posterior.load(path)
    tree = before.model.tree
    state = file_parts.arrays(path)["state"]
    inner = np.isin(file_parts.arrays(path)["touched"], tree.leaves, invert=True)
    state[inner, :OLD_COUNT] = -5.0
    state[:, M_TOLD:OLD_COUNT] = 1e6
    file_parts.change(path, state=state)
    after = bough.Posterior.load(path)
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-12)
    np.testing.assert_allclose(after.covariance, before.covariance, rtol=1e-12)
    assert after.log_evidence() == pytest.approx(before.log_evidence(), rel=1e-12)
    assert after.best_actions(0).nodes[0] in tree.leaves


ODD_MESSAGES = [
    ("triangle", (2, 1, 0), 0.5),
    ("triangle", (2, 0, 0), 0.5),
    ("triangle", (2, 0, 0), -3.0),
    ("triangle", (2, 1, 1), 1e200),
    ("triangle", (0, 0, 1), 4.0),
    ("pull", (2, 0, 0), 40.0),
    ("pull", (0, 0, 0), np.inf),
    ("target", (2, 0), np.nan),
    ("target", (2, 0), 1.7e308),
    ("surprise", (0,), -1.0),
    ("count", (0,), 2.0),
    ("count", (2,), -1.0),
    ("count", (2,), 1e30),
]
IN_CONTEXTS = ["gaussian-vector", "gaussian-vector-singular", "bernoulli-vector", "poisson-vector"]


@pytest.mark.parametrize("which", IN_CONTEXTS)
@pytest.mark.parametrize(("name", "place", "value"), ODD_MESSAGES)
def test_triangles_that_no_rows_make_are_refused(tmp_path, which, name, place, value):
    path = old_file(tmp_path, which)
    array = file_parts.arrays(path)[name]
    array[place] = value
    file_parts.change(path, **{name: array})
    refused(path, "not a complete posterior file")


@pytest.mark.parametrize("which", IN_CONTEXTS)
def test_inner_messages_that_know_less_than_the_actions_are_refused(tmp_path, which):
    path = old_file(tmp_path, which)
    found = file_parts.arrays(path)
    for slot in (0, 1, 4, 5):  # such as nothing observed there leaves
        changed = {name: found[name].copy() for name in ("triangle", "pull", "target")}
        changed["triangle"][slot], changed["pull"][slot], changed["target"][slot] = np.eye(3), 0.0, 0.0
        file_parts.change(path, **changed)
        refused(path, "its messages are not those of its actions")


@pytest.mark.parametrize("which", IN_CONTEXTS)
def test_a_surprise_below_that_of_the_evidence_is_refused(tmp_path, which):
    path = old_file(tmp_path, which)
    file_parts.change(path, surprise=np.array([1e-3]))
    refused(path, "the evidence alone has")


@pytest.mark.parametrize(("name", "place", "value"), [one for one in ODD_MESSAGES if one[0] != "count"])
def test_messages_that_a_new_file_keeps_are_checked_as_well(tmp_path, name, place, value):
    path = old_file(tmp_path, "gaussian-vector-singular")
    bough.Posterior.load(path).save(path)
    array = file_parts.arrays(path)[name]
    array[place] = value
    file_parts.change(path, **{name: array})
    refused(path, "not a complete posterior file")


def test_messages_do_not_go_with_evidence_that_says_it_all(tmp_path):
    path = old_file(tmp_path, "gaussian-vector-singular")
    bough.Posterior.load(path).save(path)
    file_parts.change(path, {"partial": False})
    refused(path, "messages beside evidence")
    file_parts.change(path, {"partial": True})
    nodes = file_parts.arrays(path)["touched"]
    for changed in (nodes[:-1], np.append(nodes[:-1], 10), np.append(nodes[:-1], nodes[0]), nodes - 1):
        file_parts.change(path, touched=changed.astype(np.int32))
        refused(path, "touched")


@pytest.mark.parametrize("which", ["gaussian", "gaussian-vector"])
def test_old_slots_that_do_not_fit_the_tree_are_refused(tmp_path, which):
    path = old_file(tmp_path, which)
    found = file_parts.arrays(path)
    nodes, parent = found["touched"], found["touched_parent"]
    assert nodes.tolist() == [0, 1, 3, 4, 2, 6, 8, 9]
    by_slot = [name for name in ("state", "triangle", "pull", "target", "count") if name in found]
    for n in (5, 6):  # which end at an inner node
        cut = {name: found[name][:n] for name in ("touched", "touched_parent", *by_slot)}
        file_parts.change(path, **cut)
        refused(path, "the touched nodes do not fit the tree")
    file_parts.change(path, **found)
    for place, value in ((7, 8), (7, 11), (7, -1), (0, 1), (3, 8), (1, 2)):
        changed = nodes.copy()
        changed[place] = value
        file_parts.change(path, touched=changed)
        refused(path, "the touched nodes do not fit the tree")
    file_parts.change(path, touched=nodes)
    for place, value in ((0, 0), (7, -1), (7, 4), (7, 7), (1, 2)):
        changed = parent.copy()
        changed[place] = value
        file_parts.change(path, touched_parent=changed)
        refused(path, "the touched nodes do not fit the tree")
