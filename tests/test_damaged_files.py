"""A file that is damaged, or was made to mislead, is a ValueError that names it, and takes no memory."""

import os
import tracemalloc
import zipfile

import numpy as np
import pytest

import bough
import file_parts

TREE = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso", "filter"]})
ACTIONS = ["green", "black", "espresso", "green"]
CONTEXTS = np.array([[1.0, 0.5], [0.2, -1.0], [0.3, 0.3], [1.0, 1.0]])
POSTERIORS = {
    "scalar": (bough.GaussianModel(TREE, 0.5, 2.0, 0.3), {"reward": [1.0, 2.0, 3.0, 1.5]}),
    "vector": (bough.GaussianModel(TREE, [0.5, 0.1], 2.0, 0.3), {"reward": [1.0, 2.0, 3.0, 1.5], "context": CONTEXTS}),
    "clicks": (bough.BernoulliModel(TREE, -1.0), {"reward": [1, 0, 2, 1], "trials": [3, 1, 5, 2]}),
    "counts": (bough.PoissonModel(TREE, 0.5), {"reward": [4, 0, 2, 1], "exposure": [1.5, 1.0, 2.0, 1.0]}),
    "contextual clicks": (bough.BernoulliModel(TREE, [0.0, 0.1]), {"reward": [1, 0, 1, 1], "context": CONTEXTS}),
}


def saved(tmp_path, kind="scalar"):
    model, rows = POSTERIORS[kind]
    posterior = bough.Posterior(model)
    posterior.update(ACTIONS, **rows)
    posterior.save(tmp_path / "posterior.bough")
    return tmp_path / "posterior.bough"


def refused(path, match=""):
    with pytest.raises(ValueError, match=rf"posterior\.bough.*{match}"):
        bough.Posterior.load(path)


def test_bytes_cut_from_the_middle_are_a_clear_error(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()
    for start in range(0, len(whole) - 60, 97):
        path.write_bytes(whole[:start] + whole[start + 50 :])
        refused(path)


@pytest.mark.parametrize("place", [8, 10])  # of the flags and the method, in an entry of a zip's directory
def test_a_flip_in_how_a_member_is_compressed_is_a_clear_error(tmp_path, place):
    path = saved(tmp_path)
    whole = bytearray(path.read_bytes())
    entry = whole.rindex(b"PK\x01\x02", 0, whole.index(b"evidence.npy", whole.index(b"PK\x01\x02")))
    for bit in range(8):
        changed = bytearray(whole)
        changed[entry + place] ^= 1 << bit
        path.write_bytes(changed)
        if place == 8 and bit not in (0, 5, 6):  # flags of no consequence: it is not encrypted, nor a patch
            assert bough.Posterior.load(path).n_observations == 4
        else:
            refused(path)


def test_members_that_hide_in_a_comment_are_missed(tmp_path):
    path = tmp_path / "posterior.bough"
    bough.Statistics.from_rows(ACTIONS, np.ones(4), CONTEXTS).save(path)
    whole = bytearray(path.read_bytes())
    entry = whole.rindex(b"PK\x01\x02", 0, whole.index(b"sum_yy.npy", whole.index(b"PK\x01\x02")))
    whole[entry + 33] ^= 0x80  # the length of its comment, by which the contexts' sums are part of it
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"posterior\.bough is not a bough file, or is damaged.*has a comment"):
        bough.Statistics.load(path)


def test_what_is_no_file_stays_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        bough.Posterior.load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError):
        bough.Posterior.load(tmp_path)


def test_two_members_of_one_name_are_refused(tmp_path):
    path = saved(tmp_path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("evidence.npy", file_parts.npy(np.ones((3, 3))))
    refused(path, "two members are called evidence")


HEADERS = {
    "nothing": b"",
    "a list": [1, 2],
    "a number": 5,
    "nested too deeply": b"[" * 100_000 + b"]" * 100_000,
    "no text": b"\xff\xfe\x00",
    "a constant": b'{"kind": "posterior", "version": 1, "noise_variance": NaN}',
    "a number of many digits": b'{"kind": "posterior", "version": ' + b"9" * 5_000 + b"}",
    "no version": {"kind": "posterior"},
    "another type": np.zeros(5),
    "too long": b" " * 1_100_000 + b'{"kind": "posterior", "version": 1}',
}


@pytest.mark.parametrize("what", HEADERS)
def test_an_odd_header_is_a_clear_error(tmp_path, what):
    path = saved(tmp_path)
    content = HEADERS[what]
    path_header = content if isinstance(content, np.ndarray) else file_parts.npy_header(content)
    file_parts.change(path, header=path_header)
    refused(path, "is not a bough file")


@pytest.mark.parametrize("version", [True, 1.0, "1", [1], None, 0, -1, 2**70])
def test_a_version_is_a_whole_number(tmp_path, version):
    path = saved(tmp_path)
    file_parts.change(path, header=file_parts.npy_header({**file_parts.header(path), "version": version}))
    refused(path, "format version")


@pytest.mark.parametrize(
    "settings",
    [
        {"noise_variance": None},
        {"noise_variance": "1.0"},
        {"noise_variance": True},
        {"noise_variance": -1.0},
        {"noise_variance": 10**400},
        {"rewards": "gamma"},
        {"rewards": ["gaussian"]},
        {"rewards": "bernoulli"},
        {"scalar": 1},
        {"scalar": False},
        {"scalar": None},
        {"covariance": "width"},
        {"covariance": {"depth": 1}},
        {"covariance": "node"},
    ],
)
def test_a_header_without_sound_settings_is_refused(tmp_path, settings):
    path = saved(tmp_path)
    file_parts.change(path, settings)
    refused(path, "not a complete posterior file")


DESCRIPTIONS = {
    "no literal": "{'descr': '<f8', 'fortran_order': False, 'shape': (((((",
    "nested": "(" * 9_000,
    "an open string": "{'descr': '<f8",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (3, 3), }",
    "a structure": "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (3, 3), }",
    "complex numbers": "{'descr': '<c16', 'fortran_order': False, 'shape': (3, 3), }",
    "long floats": "{'descr': '<f16', 'fortran_order': False, 'shape': (3, 3), }",
    "times": "{'descr': '<m8', 'fortran_order': False, 'shape': (3, 3), }",
    "too many": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3), }",
    "more than there are": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -3), }",
    "no numbers": "{'descr': '<f8', 'fortran_order': False, 'shape': ('3', 3), }",
}


@pytest.mark.parametrize("what", DESCRIPTIONS)
def test_an_array_with_an_odd_description_is_a_clear_error(tmp_path, what):
    path = saved(tmp_path)
    numbers = file_parts.arrays(path)["evidence"]
    assert numbers.shape == (3, 3)
    file_parts.change(path, evidence=file_parts.npy_of(DESCRIPTIONS[what], numbers.tobytes()))
    refused(path, "not a complete posterior file")


@pytest.mark.parametrize("stored", [">f8", "F", (2, 0), (3, 0)])
def test_numbers_that_another_machine_stored_are_the_same(tmp_path, stored):
    path = saved(tmp_path)
    before = bough.Posterior.load(path)
    evidence = file_parts.arrays(path)["evidence"]
    if isinstance(stored, tuple):
        file_parts.change(path, evidence=file_parts.npy(evidence, stored))
    else:
        file_parts.change(path, evidence=np.asfortranarray(evidence) if stored == "F" else evidence.astype(stored))
    after = bough.Posterior.load(path)
    np.testing.assert_array_equal(after.mean, before.mean)
    assert after.log_evidence() == before.log_evidence()


def test_integers_of_another_width_are_the_same_if_they_fit(tmp_path):
    path = saved(tmp_path)
    before = bough.Posterior.load(path)
    found = file_parts.arrays(path)
    of = found["evidence_of"]
    file_parts.change(path, evidence_of=of.astype(">i8"), n_children=found["n_children"].astype(np.uint8))
    np.testing.assert_array_equal(bough.Posterior.load(path).mean, before.mean)
    file_parts.change(path, evidence_of=of.astype(np.int64) + 2**32)
    refused(path, "evidence_of")


# -- memory ------------------------------------------------------------------------------------------


def peak(path):
    tracemalloc.start()
    try:
        outcome = bough.Posterior.load(path)
    except ValueError as error:
        outcome = str(error)
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most, outcome


def test_a_member_that_nobody_asks_for_is_not_decompressed(tmp_path):
    path = saved(tmp_path)
    file_parts.change(path, unknown=np.zeros(50_000_000, dtype=np.uint8))
    assert path.stat().st_size < 100_000
    most, outcome = peak(path)
    assert outcome.n_observations == 4
    assert most < 5_000_000


@pytest.mark.parametrize("name", ["evidence", "n_children", "covariances", "mean", "header", "actions_text"])
def test_a_member_of_the_wrong_size_is_not_decompressed(tmp_path, name):
    path = saved(tmp_path)
    dtype = {"header": np.uint8, "actions_text": np.uint8}.get(name, np.float64)
    shape = (1_000_000, 6) if name in ("evidence", "covariances") else (6_000_000,)
    file_parts.change(path, **{name: np.zeros(shape, dtype)})
    most, outcome = peak(path)
    assert "posterior.bough" in outcome
    assert most < 5_000_000


def test_a_member_that_claims_more_than_a_zip_can_hold_is_not_read(tmp_path):
    path = saved(tmp_path)
    description = "{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000,), }"
    content = file_parts.npy_of(description, bytes(100))
    file_parts.change(path, n_children=content)
    whole = bytearray(path.read_bytes())
    start = whole.rindex(b"PK\x01\x02", 0, whole.rindex(b"n_children.npy"))
    whole[start + 24 : start + 28] = (len(content) - 100 + 4_000_000_000).to_bytes(4, "little")
    path.write_bytes(whole)
    most, outcome = peak(path)
    assert "cannot hold" in outcome
    assert most < 5_000_000


def test_more_covariances_than_nodes_are_refused_unseen(tmp_path):
    path = saved(tmp_path, "vector")
    file_parts.change(path, covariances=np.zeros((200_000, 2, 2)))
    refused(path, "200000 classes")
    file_parts.change(path, {"covariance": "node"}, covariance_of_node=np.zeros(TREE.n_nodes, dtype=np.int32))
    refused(path, "200000 classes")


def test_a_tree_far_higher_than_its_covariances_is_refused_at_once(tmp_path):
    path = tmp_path / "posterior.bough"
    bough.Posterior(bough.GaussianModel(bough.Tree.balanced(2, 2))).save(path)
    path_down = np.ones(2_000_000, dtype=np.int32)
    path_down[-1] = 0
    file_parts.change(path, n_children=path_down)
    most, outcome = peak(path)
    assert "3 covariances" in outcome
    assert most < 20 * len(path_down)  # a few integers a node, and no object for each level


# -- what is in the arrays ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"actions_text": b"greenblackgreen   filter"},
        {"actions_text": b"greenblack\xff\xfe\xfdressofilter"},
        {"actions_text": b"coffeelackespressofilter", "actions_ends": [6, 10, 18, 24]},
        {"actions_ends": [5, 10, 18, 23]},
        {"actions_ends": [5, 10, 18, 25]},
        {"actions_ends": [10, 5, 18, 24]},
        {"actions_ends": [-5, 10, 18, 24]},
        {"actions_ends": [5.0, 10.0, 18.0, 24.0]},
        {"actions_integers": [1, 2, 2, 4]},
        {"actions_integers": [1, 2, 4]},
        {"inner_text": None, "inner_ends": None},
        {"actions_text": None, "actions_ends": None},
    ],
)
def test_names_that_a_tree_cannot_have_are_refused(tmp_path, changed):
    path = saved(tmp_path)
    assert bytes(file_parts.arrays(path)["actions_text"]) == b"greenblackespressofilter"
    text = {name: np.frombuffer(given, np.uint8) for name, given in changed.items() if isinstance(given, bytes)}
    if bytes(text.get("actions_text", b"")).startswith(b"greenblackgreen"):
        changed = {**changed, "actions_ends": [5, 10, 15, 24]}
    file_parts.change(path, **{**changed, **text})
    refused(path, "not a complete posterior file")


# Columns of the evidence of rewards, of clicks and counts, and in contexts of length 2.
COUNT, MEAN, SPREAD = range(3)
TOTAL, SQUARES, EXPOSURE, SITE, INFORMATION, CAVITY, WIDTH = range(1, 8)
RESIDUAL, R00, R01, Z0, R11, Z1 = range(2, 8)


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        ("scalar", COUNT, -3.0),
        ("scalar", COUNT, 0.0),
        ("scalar", COUNT, np.nan),
        ("scalar", COUNT, 1e30),
        ("scalar", COUNT, 1e200),
        ("scalar", MEAN, np.inf),
        ("scalar", MEAN, 1e200),
        ("scalar", SPREAD, -0.1),
        ("scalar", SPREAD, np.nan),
        ("scalar", SPREAD, 1.7e308),
        ("clicks", COUNT, -1.0),
        ("clicks", COUNT, 0.0),
        ("clicks", COUNT, 4.0),  # of 5 trials
        ("clicks", TOTAL, -1.0),
        ("clicks", TOTAL, 100.0),
        ("clicks", SQUARES, -1.0),
        ("clicks", SQUARES, 1e-3),
        ("clicks", EXPOSURE, 0.0),
        ("clicks", EXPOSURE, 1.0),
        ("clicks", SITE, -1.0),
        ("clicks", SITE, 1e200),
        ("clicks", INFORMATION, -1e200),
        ("clicks", CAVITY, np.inf),
        ("clicks", CAVITY, 1e200),
        ("clicks", WIDTH, -0.5),
        ("clicks", WIDTH, np.nan),
        ("counts", COUNT, 1e30),
        ("counts", TOTAL, -1.0),
        ("counts", TOTAL, 1e200),
        ("counts", SQUARES, 1.0),  # of 5 counts in 2 rows
        ("counts", EXPOSURE, -1.0),
        ("counts", EXPOSURE, 1e200),
        ("counts", SITE, -1.0),
        ("counts", INFORMATION, 1e200),
        ("counts", INFORMATION, np.nan),
        ("vector", COUNT, -1.0),
        ("vector", COUNT, 0.0),
        ("vector", COUNT, 1e30),
        ("vector", TOTAL, 1e9),
        ("vector", TOTAL, np.nan),
        ("vector", RESIDUAL, -0.1),
        ("vector", RESIDUAL, 1.7e308),
        ("vector", R00, -1.0),
        ("vector", R11, -1e-3),
        ("vector", R00, 1e200),
        ("vector", R01, 1e200),
        ("vector", R01, np.inf),
        ("vector", Z0, 1e200),
        ("vector", Z1, np.nan),
        ("contextual clicks", COUNT, 0.0),
        ("contextual clicks", TOTAL, -1.0),
        ("contextual clicks", RESIDUAL, -1.0),
        ("contextual clicks", R00, -1.0),
        ("contextual clicks", R11, 1e200),
        ("contextual clicks", Z0, 1e200),
    ],
)
def test_evidence_that_no_observations_make_is_refused(tmp_path, kind, column, value):
    path = saved(tmp_path, kind)
    evidence = file_parts.arrays(path)["evidence"]
    assert file_parts.arrays(path)["evidence_of"][0] == TREE.index("green")
    evidence[0, column] = value
    file_parts.change(path, evidence=evidence)
    refused(path, "not a complete posterior file")


@pytest.mark.parametrize("kind", POSTERIORS)
@pytest.mark.parametrize(
    "nodes",
    [[1, 4, 5], [0, 4, 5], [3, 4, 4], [3, 4, 7], [3, 4, 2**31 - 1], [-1, 4, 5], [3, 4], [3, 4, 5, 6]],
)
def test_evidence_of_nodes_that_are_no_actions_or_twice_is_refused(tmp_path, kind, nodes):
    path = saved(tmp_path, kind)
    assert file_parts.arrays(path)["evidence_of"].tolist() == [3, 4, 5]
    file_parts.change(path, evidence_of=np.array(nodes, dtype=np.int32))
    refused(path, "evidence")


@pytest.mark.parametrize("kind", POSTERIORS)
def test_evidence_of_another_width_is_refused(tmp_path, kind):
    path = saved(tmp_path, kind)
    evidence = file_parts.arrays(path)["evidence"]
    for changed in (evidence[:, :-1], np.column_stack([evidence, evidence[:, :1]]), evidence.ravel(), evidence[:0]):
        file_parts.change(path, evidence=changed)
        refused(path, "evidence: it has shape")


@pytest.mark.parametrize("partial", [1, 0, "true", [True], {}, 0.5])
def test_partial_is_true_or_false(tmp_path, partial):
    path = saved(tmp_path)
    file_parts.change(path, {"partial": partial})
    refused(path, "partial")


def test_a_file_that_does_not_say_whether_it_is_partial_is_refused(tmp_path):
    path = saved(tmp_path)
    file_parts.change(path, {"partial": None})
    refused(path, "partial")


@pytest.mark.parametrize("value", [np.nan, np.inf, [0.0, 0.0]])
def test_an_odd_log_probability_is_refused(tmp_path, value):
    path = saved(tmp_path, "contextual clicks")
    file_parts.change(path, log_probability=np.atleast_1d(value))
    refused(path, "log_probability")


@pytest.mark.parametrize("kind", ["clicks", "counts"])
def test_sites_that_are_not_settled_are_settled_when_loaded(tmp_path, kind):
    path = saved(tmp_path, kind)
    before = bough.Posterior.load(path)
    evidence = file_parts.arrays(path)["evidence"]
    evidence[:, [SITE, INFORMATION, CAVITY]], evidence[:, WIDTH] = 0.0, -1.0
    file_parts.change(path, evidence=evidence)
    after = bough.Posterior.load(path)
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-7)
    np.testing.assert_allclose(after.covariance, before.covariance, rtol=1e-7)
    assert after.log_evidence() == pytest.approx(before.log_evidence(), rel=1e-9)


def test_statistics_are_checked_as_well(tmp_path):
    path = tmp_path / "posterior.bough"
    changes = [
        {"count": np.array([1.0, -1.0, 1.0])},
        {"sum_y": np.array([1.0, np.nan, 1.0])},
        {"sum_xy": np.zeros((3, 3))},
        {"sum_xx": None},
        {"actions_text": np.frombuffer(b"greenblackgreen   ", np.uint8), "actions_ends": np.array([5, 10, 15])},
    ]
    for changed in changes:
        bough.Statistics.from_rows(ACTIONS, np.ones(4), CONTEXTS).save(path)
        file_parts.change(path, **changed)
        with pytest.raises(ValueError, match=r"posterior\.bough is not a complete statistics file"):
            bough.Statistics.load(path)
    for skipped in ([], {"blank": -1}, {"blank": "many"}, {"blank": 0.5}, None):
        bough.Statistics.from_rows(ACTIONS, np.ones(4), CONTEXTS).save(path)
        file_parts.change(path, header=file_parts.npy_header({"kind": "statistics", "version": 1, "skipped": skipped}))
        with pytest.raises(ValueError, match=r"posterior\.bough is not a complete statistics file"):
            bough.Statistics.load(path)


def test_a_file_is_closed_when_it_is_refused(tmp_path):
    path = saved(tmp_path)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    file_parts.change(path, {"rewards": "gamma"})
    for _ in range(5):
        refused(path)
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)
