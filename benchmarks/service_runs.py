"""Services in processes of their own, and what they cost: processor time, memory, and the time until they are ready."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
START = """
import sys
from pathlib import Path
from bough.service.server import serve
from bough.service.settings import Settings
where, model, port, options = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), eval(sys.argv[4])
place = {"database": where} if where.startswith("postgresql") else {"data": Path(where)}
serve(
    Settings(port=port, rate=0.0, quiet=True, **options), **place, model=model, experiment="shop",
    say=lambda started: started.key and Path(sys.argv[5]).write_text(started.key),
)
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Running:
    """A server, and how to ask it."""

    def __init__(self, process: subprocess.Popen, port: int, token: str) -> None:
        self.process, self.port, self.token = process, port, token

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, path: str, body: bytes | None = None, method: str | None = None) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def figure(self, name: str) -> float:
        """One of the figures for Prometheus."""
        for line in self.ask("/metrics").decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def load(self, clients: int, seconds: float, *more: str) -> dict:
        """What `service_load.py` found."""
        given = [str(self.port), self.token, str(clients), str(seconds), *more]
        done = subprocess.run(
            [sys.executable, str(HERE / "service_load.py"), *given], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)


@contextmanager
def started(command: list[str], port: int, token: Path | None, errors: Path, path: str = "/ready"):
    """A server that answers, and its process ended afterwards."""
    with open(errors, "ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    try:
        until = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1):
                    break
            except urllib.error.HTTPError as error:
                if error.code in (404, 405, 422, 500):
                    break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not start: {errors.read_text()[-2000:]}")
            time.sleep(0.01)
        yield Running(process, port, token.read_text() if token else "none")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def served(where: str | Path, model: Path, folder: Path, **settings):
    """`bough serve` with its log at a place."""
    port, token = free_port(), folder / "token"
    command = [sys.executable, "-c", START, str(where), str(model), str(port), repr(settings), str(token)]
    return started(command, port, token, folder / "errors")


def peer(kind: str, where: Path, model: Path, folder: Path):
    """Bare ASGI, or FastAPI, with the same agent and the same log."""
    port = free_port()
    command = [sys.executable, str(HERE / "service_peers.py"), kind, str(where), str(model), str(port)]
    return started(command, port, None, folder / "errors", "/")


def sync_seconds(folder: Path, n: int = 200) -> float:
    """The median time of writing 4 kB and having the disk keep it."""
    times, path = [], folder / "sync"
    with open(path, "wb", buffering=0) as file:
        for _ in range(n):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    path.unlink()
    return sorted(times)[n // 2]
