"""bough serve: what it prints, what it refuses, and that a restart goes on from where it was."""

import dataclasses
import json
import shlex
import signal
import socket
import sqlite3

import pytest

import bough
from bough import cli
from bough._extras import install
from bough.cli import logs, parser, serve
from bough.service.log import open_log
from bough.service.settings import SETTINGS, Settings
from served import Served

PATHS = ["home/kettle", "home/toaster", "garden/spade", "garden/rake"]


def save_model(path, mean=0.0):
    bough.GaussianModel(bough.Tree.from_paths(PATHS), mean=mean).save(path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    save_model("model.bough")
    return tmp_path


SHOP = ["--data", "data", "--model", "model.bough", "--experiment", "shop"]


# -- a service as a user starts it -----------------------------------------------------------------


def test_a_restart_goes_on_from_where_it_was_and_the_key_is_shown_once(here):
    with Served(here, *SHOP) as first:
        key = first.key
        assert key.startswith("bough_")
        assert first.said["experiment"] == "shop"
        decided = first.decide(decision_id="d1")
        assert decided["action"] in PATHS
        first.reward("d1", 2.5)
        first.wait(lambda: first.ask("GET", "/v1/shop").body["observations"] == 1)
        before = first.ask("GET", "/v1/shop").body
        assert first.stop(signal.SIGINT) == 0
        assert "Traceback" not in first.log()
    assert key not in (here / "service.log").read_text()
    with Served(here, *SHOP) as second:
        assert second.key is None
        second.key = key
        assert second.decide(decision_id="d1") == {**decided, "replayed": True}
        assert second.reward("d1", 2.5)["replayed"]
        after = second.ask("GET", "/v1/shop").body
        assert {**after, "refit": None} == {**before, "refit": None}
        assert second.stop(signal.SIGTERM) == 0
        assert "Traceback" not in second.log()


def test_what_is_printed_for_a_person_has_the_key_and_a_command_to_try(here, capsys):
    from bough.service.server import Started

    given = parser.make_parser().parse_args(["serve", *SHOP])
    serve._say(given, Started("http://127.0.0.1:8000", "bough_abc", "shop"))
    shown = capsys.readouterr().out
    assert "serves http://127.0.0.1:8000" in shown
    assert "key: bough_abc\n" in shown
    assert "curl http://127.0.0.1:8000/v1/shop/decide -H 'Authorization: Bearer bough_abc' -d '{}'" in shown


def test_a_later_start_says_that_old_keys_go_on_and_how_a_new_one_is_made(here, capsys):
    from bough.service.server import Started

    given = parser.make_parser().parse_args(["serve", "--data", "the data"])
    serve._say(given, Started("http://127.0.0.1:8000", None, "shop"))
    command = "bough key create --data 'the data' --scopes read"
    assert f"It takes the keys that it had. For a new one: {command}\n" in capsys.readouterr().out
    assert callable(parser.make_parser().parse_args(shlex.split(command)[1:]).run)
    given = parser.make_parser().parse_args(["serve", "--database", "postgresql://a:secret@b/c"])
    serve._say(given, Started("http://127.0.0.1:8000", None, "shop"))
    assert "secret" not in capsys.readouterr().out


def test_when_it_is_ready_it_prints_one_line_and_with_json_none(here, capsys):
    for more, line in (([], "\nready: requests are answered now\n"), (["--json"], "")):
        given = parser.make_parser().parse_args(["serve", *SHOP, *more])
        serve._tell(given, "ready: requests are answered now")
        assert capsys.readouterr().out == line


def test_an_experiment_keeps_its_model_and_another_one_is_refused(here, capsys):
    with Served(here, *SHOP) as first:
        first.stop()
    save_model("other.bough", mean=1.0)
    words = ["serve", "--data", "data", "--experiment", "shop", "--port", "0"]
    assert cli.main([*words, "--model", "other.bough"]) == 2
    assert "the experiment 'shop' has another model; leave --model out, or put the new one" in said(capsys)
    with Served(here, "--data", "data") as again:
        again.key = again.key or first.key
        assert again.ask("GET", "/v1/shop").body["model_version"] == 1


def test_a_start_that_fails_uses_up_no_key(here, capsys):
    (here / "broken.bough").write_text("no model")
    words = ["serve", "--data", "data", "--experiment", "shop", "--port", "0"]
    assert cli.main([*words, "--model", "broken.bough"]) == 2
    assert "not a bough file" in said(capsys)
    with Served(here, *SHOP) as service:
        assert service.key is not None


# -- what is refused -------------------------------------------------------------------------------


def said(capsys):
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err.strip()


REFUSED = {
    "a model without a name": (["--data", "d", "--model", "model.bough"], "name it with --experiment NAME"),
    "a demo with a model": (["--data", "d", "--demo", "--model", "model.bough"], "leave out --model"),
    "no such model": (["--data", "d", "--model", "no.bough", "--experiment", "a"], "there is no such file"),
    "no such experiment": (["--data", "d", "--experiment", "a"], "give --model FILE to begin it"),
    "a name with a space": (["--data", "d", "--model", "model.bough", "--experiment", "a b"], "cannot be called 'a b'"),
    "a port too far": (["--data", "d", "--port", "65536"], "port is 65536; give a whole number from 0 to 65535"),
    "no such host": (["--data", "d", "--host", "no.such.host.invalid"], "cannot listen at no.such.host.invalid"),
    "a rate below nothing": (["--data", "d", "--rate", "-1"], "rate is -1.0; give a number of at least 0"),
    "an origin with a path": (["--data", "d", "--cors", "https://a.b/c"], "without a path"),
    "a file as a folder": (["--data", "model.bough"], "--data is model.bough, which is a file; give the folder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line(case, here, capsys):
    words, message = REFUSED[case]
    ports = [] if "--port" in words else ["--port", "0"]
    assert cli.main(["serve", *words, *ports]) == 2
    assert message in said(capsys)


@pytest.mark.parametrize("words", [[], ["--data", "d", "--database", "postgresql://x"]])
def test_it_is_told_one_place_and_no_more(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["serve", *words])
    assert "--data" in said(capsys)


def test_a_port_that_is_taken_is_named(here, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["serve", *SHOP, "--port", str(port)]) == 2
    assert f"cannot listen at 127.0.0.1, port {port} (Address already in use); give another --port" in said(capsys)
    assert not (here / "data").exists()


def test_a_folder_that_another_process_serves_is_refused(here, capsys):
    log = open_log(here / "data")
    try:
        assert cli.main(["serve", *SHOP, "--port", "0"]) == 2
    finally:
        log.close()
    assert "serves from the folder 'data'; stop it, or give another folder" in said(capsys)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["key", "list"]])
def test_a_log_of_a_newer_bough_is_refused(words, here, capsys):
    open_log(here / "data").close()
    with sqlite3.connect(here / "data" / "bough.sqlite") as database:
        database.execute("INSERT INTO schema_version SELECT 1000 + max(version) FROM schema_version")
    database.close()
    assert cli.main([*words, "--data", "data"]) == 2
    assert "newer" in said(capsys)


@pytest.mark.parametrize(
    ("place", "missing", "extra"),
    [(["--data", "d"], "uvicorn", "serve"), (["--database", "postgresql://x"], "psycopg", "postgres")],
)
def test_packages_that_are_missing_are_named_with_what_installs_them(place, missing, extra, monkeypatch, capsys):
    find_spec = logs.find_spec
    monkeypatch.setattr(logs, "find_spec", lambda name: None if name == missing else find_spec(name))
    assert cli.main(["serve", *place]) == 2
    assert said(capsys) == f"bough: {missing} is not installed; {install(extra)}"


# -- settings --------------------------------------------------------------------------------------


def test_every_setting_is_an_option_with_the_same_default():
    given = parser.make_parser().parse_args(["serve", "--data", "d"])
    assert serve.settings_of(given) == Settings()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_every_option_of_a_setting_is_taken_to_it(setting):
    value = {
        bool: True,
        str: "0.0.0.0",
        int: int(max(setting.least, 2_000)) if setting.type is int else 0,
        float: max(setting.least, 0.5) if setting.type is float else 0,
    }.get(setting.type, ("https://a.example", "https://b.example"))
    words = [setting.option] if value is True else [setting.option, str(value)]
    if isinstance(value, tuple):
        words = [word for one in value for word in (setting.option, one)]
    given = parser.make_parser().parse_args(["serve", "--data", "d", *words])
    assert serve.settings_of(given) == dataclasses.replace(Settings(), **{setting.name: value})


def test_help_needs_none_of_what_a_service_does():
    import subprocess
    import sys

    code = """
import sys
from bough import cli
try:
    cli.main(["serve", "--help"])
except SystemExit:
    print([name for name in ("msgspec", "uvicorn", "starlette", "psycopg", "numba") if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"


def test_json_is_one_document(here, capsys):
    from bough.service.server import Started

    given = parser.make_parser().parse_args(["serve", *SHOP, "--json"])
    serve._say(given, Started("http://127.0.0.1:8000", "bough_abc", "shop"))
    found = json.loads(capsys.readouterr().out)
    link = "http://127.0.0.1:8000/#key=bough_abc&experiment=shop"
    assert found == {"address": "http://127.0.0.1:8000", "key": "bough_abc", "experiment": "shop", "dashboard": link}


def test_it_stops_at_once_also_while_it_compiles_kernels(here):
    (here / "kernels").mkdir()
    env = {"NUMBA_CACHE_DIR": str(here / "kernels")}
    with Served(here, *SHOP, until="health", env=env) as service:
        service.wait(lambda: "warming up" in service.log())
        assert service.stop() == 0
        assert "replayed" not in service.log()
        assert "Traceback" not in service.log()
    with Served(here, "--data", "data") as again:
        assert again.key is None
