"""The commands on PostgreSQL: two processes on one log, keys and pruning beside them, and what is refused."""

import json
from datetime import UTC, datetime

import psycopg
import pytest

import bough
import postgres
from bough import cli
from served import Served


@pytest.fixture(scope="module")
def server():
    return postgres.server()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    bough.GaussianModel(bough.Tree.from_nested({"home": ["kettle", "mug"], "garden": ["spade"]})).save("model.bough")
    return tmp_path


def said(capsys):
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err.strip()


def test_two_processes_share_decisions_keys_and_what_was_learned(server, here, capsys):
    place = ["--database", server.new_database()]
    (here / "two").mkdir()
    with (
        Served(here, *place, "--model", "model.bough", "--experiment", "shop") as first,
        Served(here / "two", *place, "--experiment", "shop") as second,
    ):
        assert second.key is None
        second.key = first.key
        decided = first.decide(decision_id="d1")
        assert second.decide(decision_id="d1") == {**decided, "replayed": True}
        second.reward("d1", 1.5)
        for service in (first, second):
            service.wait(lambda service=service: service.ask("GET", "/v1/shop").body["observations"] == 1)
        assert cli.main(["key", "create", *place, "--scopes", "read", "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        for service in (first, second):
            service.wait(lambda service=service: service.ask("GET", "/v1/shop", key=made["key"]).status == 200)
        assert cli.main(["key", "revoke", made["id"], *place]) == 0
        for service in (first, second):
            service.wait(lambda service=service: service.ask("GET", "/v1/shop", key=made["key"]).status == 401)
        capsys.readouterr()
        assert cli.main(["prune", *place, "--before", datetime.now(UTC).isoformat(), "--yes", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["deleted"] == {"shop": 1}
        assert second.ask("GET", "/v1/shop/decisions/d1").status == 404
        for service in (first, second):
            assert service.stop() == 0
    with Served(here, *place) as third:
        third.key = first.key
        assert third.ask("GET", "/v1/shop").body["observations"] == 1


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["key", "list"]])
def test_a_database_that_is_away_is_said_in_one_line(words, here, capsys):
    assert cli.main([*words, "--database", "postgresql://bough@127.0.0.1:1/bough?connect_timeout=2"]) == 2
    assert "127.0.0.1" in said(capsys)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["key", "list"]])
def test_an_address_that_is_none_is_said_in_one_line(words, here, capsys):
    assert cli.main([*words, "--database", "mysql://somewhere"]) == 2
    assert said(capsys)


def test_the_password_of_an_address_is_not_shown(here, capsys):
    address = "postgresql://bough:topsecret@127.0.0.1:1/bough?connect_timeout=2"
    assert cli.main(["key", "list", "--database", address]) == 2
    assert "topsecret" not in said(capsys)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["key", "list"]])
def test_a_database_of_a_newer_bough_is_refused(words, server, here, capsys):
    address = server.new_database()
    assert cli.main(["key", "create", "--database", address]) == 0
    capsys.readouterr()
    with psycopg.connect(address, options="-c search_path=bough,public") as connection:
        connection.execute("INSERT INTO schema_version SELECT 1000 + max(version) FROM schema_version")
    assert cli.main([*words, "--database", address]) == 2
    assert "newer" in said(capsys)
