"""docs/howto/runbook.md: a backup made while the service runs is one that a service starts from."""

import re
import shutil
import subprocess
import sys
import threading

import psycopg
import pytest

import bough
import postgres
from places import ROOT
from served import Served

PAGE = (ROOT / "docs" / "howto" / "runbook.md").read_text()
[BACKUP] = re.findall(r"^```sh\n(mkdir backup\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
[VACUUM] = re.findall(r"`sqlite3 data/bough.sqlite \"(VACUUM INTO .*?)\"`", PAGE)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model."""
    monkeypatch.chdir(tmp_path)
    bough.GaussianModel(bough.Tree.from_nested({"home": ["kettle", "mug"], "garden": ["spade"]})).save("model.bough")
    return tmp_path


class Visitors:
    """Decisions and rewards, one after another, until the end; counts those that were acknowledged."""

    def __init__(self, service):
        self._service, self._over, self.n = service, threading.Event(), 0
        self._thread = threading.Thread(target=self._visit)

    def _visit(self):
        while not self._over.is_set():
            self._service.reward(self._service.decide(decision_id=f"d{self.n}")["decision_id"], 1.0)
            self.n += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def check_restored(folder, key, least, *place):
    """A service on the copy has all that was acknowledged before it was made, and goes on."""
    with Served(folder, *place) as service:
        assert service.key is None
        service.key = key
        observations = service.ask("GET", "/v1/shop").body["observations"]
        assert observations >= least
        for i in range(least):
            assert service.ask("GET", f"/v1/shop/decisions/d{i}").body["status"] == "rewarded"
        service.reward(service.decide(decision_id="after")["decision_id"], 2.0)
        service.wait(lambda: service.ask("GET", "/v1/shop").body["observations"] == observations + 1)


@pytest.mark.parametrize("way", ["as the page says", "by VACUUM INTO"])
def test_a_folder_is_copied_while_visitors_come(way, here):
    words = ["--data", "data", "--model", "model.bough", "--experiment", "shop", "--snapshot-seconds", "0.2"]
    with Served(here, *words) as service, Visitors(service) as visitors:
        service.wait(lambda: visitors.n >= 20 and any((here / "data" / "snapshots").glob("*.bough")))
        least = visitors.n
        if way == "as the page says":
            subprocess.run(BACKUP.replace("python3", sys.executable), shell=True, check=True, timeout=60)
        else:
            if shutil.which("sqlite3") is None:
                pytest.skip("there is no sqlite3 here")
            (here / "backup").mkdir()
            subprocess.run(["sqlite3", "data/bough.sqlite", VACUUM], check=True, timeout=60)
        service.wait(lambda: visitors.n >= least + 5)
        key = service.key
    check_restored(here, key, least, "--data", "backup")


def test_a_database_is_dumped_while_visitors_come_and_restored_into_another_server(here):
    server = postgres.server()
    address = server.new_database()
    words = ["--database", address, "--model", "model.bough", "--experiment", "shop"]
    with Served(here, *words) as service, Visitors(service) as visitors:
        service.wait(lambda: visitors.n >= 20)
        least = visitors.n
        subprocess.run(
            [server._bin / "pg_dump", "--format=custom", f"--file={here / 'bough.dump'}", address],
            check=True,
            timeout=60,
        )
        service.wait(lambda: visitors.n >= least + 5)
        key = service.key
    other = postgres.Server()
    try:
        restored = other.new_database()
        with psycopg.connect(address) as one, psycopg.connect(restored) as two:
            counted = [c.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()[0] for c in (one, two)]
        assert counted[0] > counted[1]  # so that the order of the log would break if it went by these numbers
        subprocess.run(
            [server._bin / "pg_restore", f"--dbname={restored}", "--no-owner", here / "bough.dump"],
            check=True,
            timeout=60,
        )
        check_restored(here, key, least, "--database", restored)
    finally:
        other.close()
