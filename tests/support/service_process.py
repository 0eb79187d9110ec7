"""Services in processes of their own, to be killed: started on a free port, waited for, and started again."""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import bough
from service_http import PATIENCE, Answer, ask

_QUICK = {"quiet": True, "keeper_interval": 0.02, "snapshot_seconds": 0.05}
"""A keeper that never rests, so that every kill comes while it does something."""


class _Nursery:
    """The process that services are forked from."""

    def __init__(self) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        package = str(Path(bough.__file__).parents[1])
        paths = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("service_child.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, "PYTHONPATH": paths},
        )
        atexit.register(self.close)
        self._answer()

    def ask(self, **what: Any) -> int:
        """Have something done; the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        answer: int = self._answer()
        return answer

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that services are forked from has ended; what it said is above"
        return json.loads(line)

    def close(self) -> None:
        """End it, and all services."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


_nursery: _Nursery | None = None


def _nursery_of_all() -> _Nursery:
    global _nursery
    if _nursery is None:
        _nursery = _Nursery()
    return _nursery


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class ServiceProcess:
    """A service that can be killed and started again, on one port and with one log."""

    def __init__(
        self,
        folder: Path,
        *,
        database: str | None = None,
        model: bough.model.Model | None = None,
        experiment: str | None = "shop",
        mutant: str | None = None,
        largest_file: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> None:
        """Without `database` the log is in the folder; the model is that of the experiment, the first time.

        `largest_file` is the size in bytes beyond which no file grows, and `seed` that of the decisions.
        """
        self.folder = folder
        self.port, self.output = free_port(), folder / f"output-{time.monotonic_ns()}.txt"
        self.data, self.database = None if database else folder / "data", database
        path = None
        if model is not None:
            path = folder / "model.bough"
            model.save(path)
        self._asked = {
            "data": None if self.data is None else str(self.data),
            "database": database,
            "model": None if path is None else str(path),
            "experiment": experiment,
            "mutant": mutant,
            "largest_file": largest_file,
            "seed": seed,
            "output": str(self.output),
            "settings": {**_QUICK, **settings, "port": self.port},
        }
        self.pid: int | None = None
        self.token = ""

    def start(self, wait: bool = True) -> None:
        """Start it, and wait until it is ready."""
        self.pid = _nursery_of_all().ask(start=self._asked)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it is ready."""
        self.until(self.is_ready)
        if not self.token:
            self.token = re.findall(r"^key (\S+)$", self.said(), re.MULTILINE)[0]

    def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something is so, unless the service dies."""
        until = time.monotonic() + PATIENCE
        while not fact():
            assert self._is_alive(), f"the service has died:\n{self.said()}"
            assert time.monotonic() < until, f"it has not come to be so:\n{self.said()}"
            time.sleep(0.005)

    def is_ready(self) -> bool:
        """Whether it says that it is ready."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _is_alive(self) -> bool:
        assert self.pid is not None
        return "(zombie)" not in Path(f"/proc/{self.pid}/status").read_text()

    def strike(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it as a crash does (kill -9), without waiting."""
        assert self.pid is not None
        os.kill(self.pid, how)

    def reap(self) -> int:
        """Wait until it is gone; its exit status."""
        assert self.pid is not None
        status = _nursery_of_all().ask(wait=self.pid)
        self.pid = None
        return status

    def kill(self) -> None:
        """End it as a crash does, and wait until it is gone."""
        self.strike()
        self.reap()

    def stop(self) -> int:
        """Tell it to stop, as an operator does; its exit status."""
        self.strike(signal.SIGTERM)
        return self.reap()

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """One request with the first key."""
        return ask(self.port, self.token, method, path, body)

    def said(self) -> str:
        """What it has printed."""
        return self.output.read_text() if self.output.exists() else ""

    def close(self) -> None:
        """Have it be gone, whatever it does."""
        if self.pid is not None:
            self.kill()

    def __enter__(self) -> ServiceProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
