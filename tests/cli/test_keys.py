"""bough key: keys made, listed and revoked, also while the service runs."""

import json

import pytest

import bough
from bough import cli
from served import Served


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    bough.GaussianModel(bough.Tree.from_nested(["left", "right"])).save("model.bough")
    return tmp_path


def document(capsys, *words):
    assert cli.main([*words, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def said(capsys):
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err.strip()


def test_a_service_that_runs_takes_new_keys_and_refuses_revoked_ones(here, capsys):
    data = ["--data", "data"]
    with Served(here, *data, "--model", "model.bough", "--experiment", "shop") as service:
        made = document(capsys, "key", "create", *data, "--scopes", "read, decide", "--experiment", "shop")
        assert made["scopes"] == ["decide", "read"]
        service.wait(lambda: service.ask("GET", "/v1/shop", key=made["key"]).status == 200)
        assert service.ask("POST", "/v1/shop/decide", {}, key=made["key"]).status == 200
        refused = service.ask("POST", "/v1/shop/reward", {"decision_id": "a", "value": 1}, key=made["key"])
        assert refused.status == 403
        assert service.ask("GET", "/v1", key=made["key"]).status == 403
        document(capsys, "key", "revoke", made["id"], *data)
        service.wait(lambda: service.ask("GET", "/v1/shop", key=made["key"]).status == 401)
        assert service.ask("GET", "/v1/shop").status == 200


def test_a_key_is_shown_once_and_only_its_hash_is_kept(here, capsys):
    assert cli.main(["key", "create", "--data", "data", "--rate", "5"]) == 0
    token, about = capsys.readouterr().out.splitlines()
    assert token.startswith("bough_")
    assert "decide, reward, for all experiments, at most 5 requests per second" in about
    [listed] = document(capsys, "key", "list", "--data", "data")["keys"]
    assert about.startswith(listed["id"])
    assert listed["rate"] == 5.0
    assert listed["revoked"] is None
    assert token not in json.dumps(listed)
    for path in (here / "data").iterdir():
        assert path.is_dir() or token.encode() not in path.read_bytes()


def test_a_key_made_before_the_first_start_is_the_first(here, capsys):
    made = document(capsys, "key", "create", "--data", "data", "--scopes", "admin")
    with Served(here, "--data", "data") as service:
        assert service.key is None
        assert service.ask("GET", "/v1", key=made["key"]).body == {"experiments": []}


def test_the_list_says_which_keys_were_revoked(here, capsys):
    assert cli.main(["key", "create", "--data", "data"]) == 0
    capsys.readouterr()
    made = document(capsys, "key", "create", "--data", "data")
    document(capsys, "key", "revoke", made["id"], "--data", "data")
    assert cli.main(["key", "list", "--data", "data"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "scopes", "experiment", "rate", "created", "revoked"]
    assert len(first.split()) == 4
    assert second.startswith(made["id"])
    assert len(second.split()) == 5


REFUSED = {
    "create": {
        "no such scope": (["--scopes", "decide,fly"], "give one or more of decide, reward, read, admin"),
        "no scope": (["--scopes", ","], "--scopes is ','; give scopes with commas between them"),
        "no such experiment": (["--experiment", "shop"], "there is no experiment 'shop'; those that there are: none"),
        "no rate": (["--rate", "0"], "rate is 0.0; give the requests per second"),
    },
    "revoke": {"no such key": (["k1"], "there is no key 'k1' that is valid; see bough key list")},
}


@pytest.mark.parametrize(("command", "case"), [(command, case) for command in REFUSED for case in REFUSED[command]])
def test_it_is_refused_in_one_line(command, case, here, capsys):
    (here / "data").mkdir()
    words, message = REFUSED[command][case]
    assert cli.main(["key", command, *words, "--data", "data"]) == 2
    assert message in said(capsys)
    assert document(capsys, "key", "list", "--data", "data") == {"keys": []}


@pytest.mark.parametrize(
    "words", [["key", "list"], ["key", "revoke", "k1"], ["prune", "--before", "2020-01-01", "--yes"]]
)
def test_no_folder_is_made_by_mistake(words, here, capsys):
    assert cli.main([*words, "--data", "dta"]) == 2
    assert said(capsys) == "bough: --data is dta, and there is no such folder; give that of a service"
    assert not (here / "dta").exists()
