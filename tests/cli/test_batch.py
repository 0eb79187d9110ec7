"""bough batch: decisions for every row of a file, into another file."""

import json

import numpy as np
import polars
import pytest

import bough
from bough import cli
from bough.cli import batch as command
from bough.policies import thompson

TREE = bough.Tree.from_nested({"home": ["kettle", "toaster"], "garden": ["spade", "rake"]})
N = 50


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = polars.DataFrame({
        "who": [f"c{i}" for i in range(N)], "price": rng.normal(size=N), "other": ["x"] * N, "age": rng.normal(size=N),
    })  # fmt: skip
    frame.write_parquet("contexts.parquet", row_group_size=7)
    frame.write_csv("contexts.csv")
    model = bough.GaussianModel(TREE, mean=[0.0, 0.0], features=["age", "price"])
    agent = bough.HierTS(model, seed=0)
    agent.update(["kettle", "rake"], [1.0, -1.0], [[1.0, 0.0], [0.5, 1.0]])
    agent.save("agent.bough")
    bough.HierTS(bough.GaussianModel(TREE, mean=[0.0, 0.0]), seed=0).save("nameless.bough")
    bough.HierTS(bough.GaussianModel(TREE), seed=0).save("armed.bough")
    bough.Greedy(bough.GaussianModel(TREE), seed=0).save("greedy.bough")
    return frame


@pytest.fixture
def with_gpu(monkeypatch):
    """JAX's CPU in the place of a GPU."""
    monkeypatch.setattr(thompson, "scorer_of", lambda p, _, explore: bough.batch.Scorer(p, "cpu", explore=explore))


def read(path):
    return polars.read_parquet(path) if path.endswith("parquet") else polars.read_csv(path)


def test_a_decision_for_each_row_is_what_the_agent_decides(here, capsys):
    assert cli.main(["batch", "agent.bough", "contexts.parquet", "--out", "d.parquet"]) == 0
    assert capsys.readouterr().out == "decisions: d.parquet (50)\n"
    found = read("d.parquet")
    agent = bough.HierTS.load("agent.bough")
    assert found["row"].to_list() == list(range(N))
    assert found["action"].to_list() == agent.decide_many(here.select("price", "age"))
    assert cli.main(["batch", "agent.bough", "contexts.csv", "--out", "d.csv"]) == 0
    assert read("d.csv")["action"].to_list() == found["action"].to_list()
    by_place = ["--context", "age,price"]
    assert cli.main(["batch", "agent.bough", "contexts.parquet", "--out", "e.parquet", *by_place]) == 0
    assert read("e.parquet").equals(found)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_lists_go_by_position_and_may_have_ids_and_propensities(here, with_gpu, monkeypatch, device, ending, capsys):
    monkeypatch.setattr(command, "_CHUNK", {"cpu": 16, "gpu": 16})
    options = ["--k", "2", "--id", "who", "--propensities", "--samples", "20", "--device", device, "--json"]
    among = ["--among", "kettle,spade,rake"]
    words = ["batch", "agent.bough", f"contexts.{ending}", "--out", f"d.{ending}", *options, *among]
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["n"] == N
    found = read(f"d.{ending}")
    assert found.columns == ["who", "position", "action", "score", "propensity"]
    assert found["who"].to_list() == np.repeat(here["who"].to_list(), 2).tolist()
    assert found["position"].to_list() == [1, 2] * N
    assert set(found["action"]) == {"kettle", "spade", "rake"}
    assert found.filter(position=1)["score"].to_numpy().min() >= found["score"].to_numpy().min()
    assert 0.0 < found["propensity"].to_numpy().min() <= found["propensity"].to_numpy().max() <= 1.0


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_chunks_of_a_file_change_nothing_on_a_gpu_and_a_seed_repeats(here, with_gpu, monkeypatch, device):
    words = ["batch", "agent.bough", "contexts.parquet", "--device", device, "--seed", "7", "--out"]
    assert cli.main([*words, "a.parquet"]) == 0
    assert cli.main([*words, "b.parquet"]) == 0
    assert read("a.parquet").equals(read("b.parquet"))
    if device == "gpu":
        monkeypatch.setattr(command, "_CHUNK", {"gpu": 11})
        assert cli.main([*words, "c.parquet"]) == 0
        assert read("a.parquet")["action"].equals(read("c.parquet")["action"])


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_without_contexts_there_are_n_decisions(here, with_gpu, device):
    words = ["batch", "armed.bough", "--n", "40", "--out", "d.parquet", "--device", device, "--propensities"]
    assert cli.main(words) == 0
    found = read("d.parquet")
    assert len(found) == 40
    assert found["propensity"].n_unique() <= 4
    assert cli.main(["batch", "armed.bough", "--n", "0", "--out", "none.parquet", "--device", device]) == 0
    assert read("none.parquet").columns == ["row", "action", "score"]


REFUSED = {
    "no contexts": (["agent.bough"], "the agent takes contexts of length 2; give a file"),
    "contexts that are not taken": (["armed.bough", "contexts.csv"], "takes no contexts; leave out the file"),
    "no n": (["armed.bough"], "--n is missing"),
    "n with contexts": (["agent.bough", "contexts.csv", "--n", "3"], "--n goes with an agent that takes no contexts"),
    "k": (["agent.bough", "contexts.csv", "--k", "0"], "--k is 0"),
    "too large a k": (["agent.bough", "contexts.csv", "--k", "9"], "k is 9; give at most 4"),
    "a missing file": (
        ["agent.bough", "nothing.parquet"],
        "there is no file 'nothing.parquet'; give one that is there",
    ),
    "another file": (["agent.bough", "agent.bough"], "ends in .parquet or .csv"),
    "not Parquet": (["agent.bough", "fake.parquet"], "fake.parquet cannot be read"),
    "a missing column": (["agent.bough", "contexts.parquet", "--context", "age,prize"], "lacks the column 'prize'"),
    "a missing id": (["agent.bough", "contexts.parquet", "--id", "name"], "lacks the column 'name'"),
    "no numbers": (["agent.bough", "contexts.parquet", "--context", "age,other"], "'other' is not of numbers"),
    "no names": (["nameless.bough", "contexts.parquet"], "name the 2 columns by --context"),
    "an unknown action": (["agent.bough", "contexts.parquet", "--among", "tea"], "tea"),
    "a gap": (["agent.bough", "gap.csv"], "gap.csv, from row 0: the context's 'price' in row 1 is nan"),
    "jobs": (["agent.bough", "contexts.csv", "--jobs", "0"], "jobs is 0"),
    "a policy without a GPU": (["greedy.bough", "--n", "3", "--device", "gpu"], "a Greedy decides on the CPU"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_one_line_and_nothing_is_written(here, tmp_path, name, capsys):
    words, says = REFUSED[name]
    (tmp_path / "fake.parquet").write_text("no such thing")
    (tmp_path / "gap.csv").write_text("age,price\n1,2\n1,\n")
    assert cli.main(["batch", *words, "--out", "d.parquet"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("d.*"))


def test_other_names_of_the_file_and_missing_extras_are_refused(here, monkeypatch, capsys):
    assert cli.main(["batch", "armed.bough", "--n", "3", "--out", "d.json"]) == 2
    assert "give a file that ends in .parquet or .csv" in capsys.readouterr().err
    from bough.batch import devices

    def missing(name):
        raise ModuleNotFoundError("No module named 'jax'", name="jax")

    monkeypatch.setattr(devices, "import_module", missing)
    assert cli.main(["batch", "armed.bough", "--n", "3", "--out", "d.csv", "--device", "gpu"]) == 2
    assert "pip install '.[gpu]'" in capsys.readouterr().err
