"""A saved posterior comes back whole, and a bad file or a failed save costs nothing."""

import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import bough
from bough import _storage
from cases import cases


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
def test_a_saved_posterior_comes_back_whole_and_goes_on(tmp_path, case):
    posterior = case.posterior()
    posterior.save(tmp_path / "p.bough")
    back = bough.Posterior.load(tmp_path / "p.bough")
    assert_same(back, posterior)
    for one in (back, posterior):
        one.update(case.actions, case.rewards, case.contexts)
    assert_same(back, posterior)


def assert_same(one: bough.Posterior, other: bough.Posterior) -> None:
    """A file keeps the evidence, to the last digit, and messages made again from it differ by their rounding."""
    np.testing.assert_array_equal(one._engine.table[:, 0], other._engine.table[:, 0])
    np.testing.assert_array_equal(one.count, other.count)
    unit = np.sqrt(np.abs(other.covariance).reshape(len(other.mean), -1).max(axis=1))
    off = np.abs(one.mean - other.mean).reshape(len(unit), -1).max(axis=1)
    size = np.abs(other.mean).reshape(len(unit), -1).max(axis=1)
    assert (off <= 1e-9 * (size + unit)).all()
    off = np.abs(one.covariance - other.covariance).reshape(len(unit), -1).max(axis=1)
    assert (off <= 1e-9 * unit**2).all()
    assert one.log_evidence() == pytest.approx(other.log_evidence(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "tree",
    [
        bough.Tree.from_paths(["thé/vert", "thé/noir", "café"]),
        bough.Tree.from_nested({"tea": [3, 1], "coffee": [2]}),
        bough.Tree.from_parents([2, 2, -1]),
        bough.Tree.balanced(3, 2),
        bough.Tree.from_parents([-1], ["only"]),
    ],
)
@pytest.mark.parametrize("covariance", [2.0, "depth", "height"])
def test_trees_names_and_priors_come_back(tmp_path, tree, covariance):
    values = np.arange(1.0, tree.height + 2)
    rule = {"depth": bough.by_depth(values), "height": bough.by_height(values)}.get(covariance, covariance)
    posterior = bough.Posterior(bough.GaussianModel(tree, 0.5, rule, 0.3))
    posterior.save(tmp_path / "p")
    back = bough.Posterior.load(tmp_path / "p")
    assert back.model.tree.actions == tree.actions
    assert [back.model.tree.name(i) for i in range(tree.n_nodes)] == [tree.name(i) for i in range(tree.n_nodes)]
    np.testing.assert_array_equal(back.model.tree.parent, tree.parent)
    np.testing.assert_array_equal(back.model.marginal_covariance, posterior.model.marginal_covariance)
    assert (back.model.mean, back.model.noise_variance) == (0.5, 0.3)
    back.update(tree.actions[0], 1.0)
    assert back.n_observations == 1


def saved(tmp_path):
    path = tmp_path / "posterior.bough"
    posterior = bough.Posterior(bough.GaussianModel(bough.Tree.balanced(3, 2)))
    posterior.update([4, 5, 6], [1.0, 2.0, 3.0])
    posterior.save(path)
    return path


def test_a_posterior_that_was_settled_from_another_log_comes_back(tmp_path):
    tree = bough.Tree.from_nested({"tea": ["green", "black"], "coffee": ["espresso"]})
    posterior = bough.Posterior(bough.BernoulliModel(tree, mean=[0.0, 0.1]))
    posterior.update("green", 1, [1.0, 2.0])
    posterior.settle(bough.Observations(["black", "black"], [1, 0], context=[[1.0, 2.0], [0.5, 1.0]]))
    posterior.save(tmp_path / "posterior.bough")
    again = bough.Posterior.load(tmp_path / "posterior.bough")
    np.testing.assert_allclose(again.mean, posterior.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(again.covariance, posterior.covariance, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(again.count, posterior.count)
    assert again.log_evidence() == posterior.log_evidence()


@pytest.mark.parametrize("keep", [0, 1, 10, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_a_clear_error(tmp_path, keep):
    path = saved(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ValueError, match=r"posterior\.bough"):
        bough.Posterior.load(path)


def load_or_message(path):
    try:
        return bough.Posterior.load(path)  # a flip in what a zip ignores does no harm
    except ValueError as error:
        return str(error)


def test_flipped_bytes_are_a_clear_error(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()
    for place in range(30, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        outcome = load_or_message(path)
        assert isinstance(outcome, bough.Posterior) or "posterior.bough" in outcome


def test_foreign_files_are_a_clear_error(tmp_path):
    text, array, archive = tmp_path / "a.txt", tmp_path / "b.npy", tmp_path / "c.npz"
    text.write_text("hello")
    np.save(array, np.zeros(3))
    np.savez(archive, x=np.zeros(3))
    for path in (text, array, archive):
        with pytest.raises(ValueError, match="not a bough file"):
            bough.Posterior.load(path)
    _storage.write(tmp_path / "d", {"kind": "statistics", "version": 1}, {})
    with pytest.raises(ValueError, match="holds a 'statistics'; expected a posterior"):
        bough.Posterior.load(tmp_path / "d")
    _storage.write(tmp_path / "e", {"kind": "posterior", "version": 99}, {})
    with pytest.raises(ValueError, match="version 99"):
        bough.Posterior.load(tmp_path / "e")
    _storage.write(tmp_path / "f", {"kind": "posterior", "version": 1}, {})
    with pytest.raises(ValueError, match="not a complete posterior file"):
        bough.Posterior.load(tmp_path / "f")
    with pytest.raises(FileNotFoundError):
        bough.Posterior.load(tmp_path / "nowhere")


def test_a_file_says_what_it_holds(tmp_path):
    model = bough.GaussianModel(bough.Tree.from_nested(["left", "right"]))
    saved = {"model": model, "posterior": bough.Posterior(model), "agent": bough.HierTS(model, seed=0)}
    for kind, one in saved.items():
        one.save(tmp_path / kind)
        assert _storage.kind_of(tmp_path / kind) == kind
    (tmp_path / "notes.txt").write_text("nothing of bough's")
    with pytest.raises(ValueError, match=r"notes\.txt is not a bough file.*expected one that bough wrote"):
        _storage.kind_of(tmp_path / "notes.txt")


def test_a_pickle_inside_the_file_is_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    path = saved(tmp_path)
    bomb = tmp_path / "bomb.npy"
    np.save(bomb, np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["evidence.npy"] = bomb.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match=r"posterior\.bough"):
        bough.Posterior.load(path)
    assert not (tmp_path / "exploded").exists()


def test_a_save_that_fails_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full_disk(member, *_, **__):
        member.write(b"half a file")
        raise OSError("no space left on device")

    monkeypatch.setattr(_storage.np.lib.format, "write_array", full_disk)
    with pytest.raises(OSError, match="no space"):
        bough.Posterior(bough.GaussianModel(bough.Tree.balanced(2, 2))).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["posterior.bough"]


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path):
    path = saved(tmp_path)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    bough.Posterior.load(path).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_names_that_a_file_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    tree = bough.Tree.from_parents([-1, 0, 0], [("a", 1), "b", 3.5])
    with pytest.raises(ValueError, match="only strings and integers can be saved"):
        bough.Posterior(bough.GaussianModel(tree)).save(tmp_path / "p")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="nowhere"):
        saved(tmp_path / "nowhere")


def test_the_header_is_plain_json(tmp_path):
    with np.load(saved(tmp_path), allow_pickle=False) as archive:
        header = json.loads(archive["header"].tobytes())
    assert (header["kind"], header["version"]) == ("posterior", 2)
