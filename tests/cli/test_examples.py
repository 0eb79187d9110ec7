"""The examples in the command's help run as they stand, in a folder that has the files they name."""

import io
import json
import re
import shlex
import shutil
import subprocess
import sys

import polars
import pytest

import bough
import postgres
from bough import cli
from bough.cli import layout, parser
from bough.service.exports import write_events
from bough.service.log import open_log
from bough.service.records import KeyRow
from served import Served

NAMES = {"home": ["kettle", "toaster", "mug", "lamp"], "garden": ["spade", "rake", "hoe", "pot"]}
SHELVES = {sku: department for department, names in NAMES.items() for sku in names}
BRANDS = ["Acme", "Bolt", None] * len(SHELVES)
PRODUCTS = polars.DataFrame(
    {"department": list(SHELVES.values()), "sku": list(SHELVES), "brand": BRANDS[: len(SHELVES)]}
)
PATHS = [f"{department}/{sku}" for sku, department in SHELVES.items()]
LOG = polars.DataFrame({
    "sku": [*SHELVES] * 3,
    "item": PATHS * 3,
    "sales": [float(7 * i % 11) for i in range(24)],
    "clicks": [i % 3 for i in range(24)],
    "views": [5] * 24,
})  # fmt: skip
CONTEXTS = polars.DataFrame({"customer": ["ann", "bob", "cyd"], "age": [3.0, 1.0, 2.0], "price": [2.0, 0.5, 1.0]})
COMMANDS = layout.commands_of(parser.make_parser())
EXAMPLES = [
    example
    for command in ("simulate", "bound", "fit", "learn", "show", "decide", "batch", "adopt")
    for example in COMMANDS[command].examples
]
OF_A_LOG = [
    example
    for command in ("key create", "key list", "key revoke", "export", "rebuild", "prune")
    for example in COMMANDS[command].examples
]
SHORT = {"simulate": ["--runs", "2", "--rounds", "5", "--jobs", "1"]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the log, the table, the paths, a model and in-stock.txt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    LOG.write_parquet("log.parquet")
    LOG.write_csv("logs/1.csv")
    LOG.write_csv("log.csv")
    PRODUCTS.write_csv("products.csv")
    CONTEXTS.write_parquet("contexts.parquet")
    CONTEXTS.write_csv("contexts.csv")
    (tmp_path / "paths.txt").write_text("\n".join(PATHS))
    (tmp_path / "in-stock.txt").write_text("spade\nrake\n")
    bough.GaussianModel(bough.Tree.from_frame(PRODUCTS, ["department", "sku"])).save("model.bough")
    return tmp_path


def save_agent(features, in_stores):
    model = bough.GaussianModel.load("model.bough")
    if in_stores:
        store = bough.Factor(levels=["north", "south"], at_decision=True)
        model = bough.GaussianModel(model.tree, factors={"store": store})
    if features is not None:
        model = bough.GaussianModel(model.tree, mean=[0.0] * len(features), features=features)
    bough.HierTS(model, seed=0).save("agent.bough")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example, here, monkeypatch, capsys):
    features = ["age", "price"] if "--context" in example or "contexts." in example else None
    save_agent(features, "store=" in example)
    if "adopt" in example and "paths.txt" in example:
        (here / "paths.txt").write_text("kettle-2\ntoaster\nhome/saw\n")
    source, _, command = example.rpartition(" | ")
    if source:
        piped = {"zcat": LOG.write_csv(), "printf": "sku,sales\nkettle,3.5\n"}
        data = piped.get(source.split()[0], "\n".join(PATHS))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
    words = shlex.split(command)[1:]
    assert cli.main([*words, *SHORT.get(words[0], [])]) == 0
    shown = capsys.readouterr().out
    if "--json" in words:
        assert json.loads(shown)
    else:
        assert shown.strip()
    for option in ("--out", "--plot"):
        if option in words:
            assert (here / words[words.index(option) + 1]).stat().st_size > 0


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of a service that has been in use: an experiment, decisions, rewards, and a key."""
    folder = tmp_path_factory.mktemp("service")
    bough.GaussianModel(bough.Tree.from_frame(PRODUCTS, ["department", "sku"])).save(folder / "model.bough")
    with Served(folder, "--data", "data", "--model", "model.bough", "--experiment", "shop") as service:
        for i in range(5):
            service.decide(decision_id=f"d{i}", propensity=True)
            service.reward(f"d{i}", float(i))
        service.stop()
    log = open_log(folder / "data")
    with log.transaction() as transaction:
        transaction.add_key(KeyRow("k0123456789ab", b"", ["read"], None, None, 0.0))
    write_events(folder / "events.parquet", log, log.experiments()[0].id)
    log.close()
    return folder


@pytest.mark.parametrize("example", OF_A_LOG)
def test_the_example_on_the_log_of_a_service_runs(example, here, data, capsys):
    shutil.copytree(data / "data", here / "data")
    shutil.copy(data / "events.parquet", here)
    words = shlex.split(example)[1:]
    assert cli.main(words) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out) if "--json" in words else shown.out.strip()
    for word in words:
        if word.endswith((".parquet", ".csv", ".bough")):
            assert (here / word).stat().st_size > 0


@pytest.mark.parametrize("example", COMMANDS["serve"].examples)
def test_the_example_of_a_service_starts_answers_and_stops(example, here):
    words = shlex.split(example)[2:]
    if "--database" in words:
        place = words.index("--database") + 1
        assert words[place].startswith("postgresql://")
        words[place] = postgres.server().new_database()
        words += ["--model", "model.bough"]  # which the first process begins with
    with Served(here, *words) as service:
        assert service.ask("GET", "/health").body["status"] == "ok"
        assert service.decide(service.said["experiment"])["action"]
        assert service.stop() == 0


def test_a_command_line_goes_from_a_fit_to_a_night_of_changes(here, capsys):
    tree = ["--tree", "products.csv", "--levels", "department,sku"]
    to_agent = ["--agent", "agent.bough", "--seed", "0"]
    assert cli.main(["fit", "log.parquet", *tree, "--action", "sku", "--reward", "sales", *to_agent, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    learned = found["estimates"]["mean"]["value"]
    assert found["agent"] == "agent.bough"
    assert bough.HierTS.load("agent.bough").posterior.n_observations == len(LOG)
    assert bough.GaussianModel.load("model.bough").mean == pytest.approx(learned)
    assert cli.main(["decide", "model.bough"]) == 2
    assert re.search(
        "model.bough holds a model, and no agent; bough fit ... --agent FILE writes one", capsys.readouterr().err
    )
    with (here / "products.csv").open("a") as table:
        print("garden,hose,Acme", file=table)
    assert cli.main(["adopt", "agent.bough", *tree, "--out", "agent.bough"]) == 0
    assert capsys.readouterr().out.startswith("added 1: 'hose'")
    assert cli.main(["decide", "agent.bough", "--k", "9", "--json"]) == 0
    decided = json.loads(capsys.readouterr().out)
    assert sorted(decided["actions"]) == sorted([*SHELVES, "hose"])
    assert decided["propensities"] == pytest.approx([1.0] * 9)


def test_the_package_runs_as_the_command():
    shown = subprocess.run([sys.executable, "-m", "bough", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"bough {bough.__version__}\n"
