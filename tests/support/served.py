"""A real service in a process of its own, as a user starts it: bough serve on a port that is free."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

PATIENCE = 120.0  # seconds until a process that does nothing is given up; kernels may have to be compiled


class Answer(NamedTuple):
    """An answer of the service."""

    status: int
    body: object


class Served:
    """`bough serve` with these words, begun, and ready for requests unless told otherwise."""

    def __init__(self, folder, *words, until="ready", env=None):
        self._errors = (folder / "service.log").open("ab+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bough", "serve", *map(str, words), "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env={**os.environ, **(env or {})},
        )
        said = ""
        for line in self.process.stdout:
            said += line
            if line == "}\n":
                break
        if not said:
            self.process.wait(timeout=PATIENCE)
            raise AssertionError(self.trouble())
        self.said = json.loads(said)
        self.address, self.key = self.said["address"], self.said["key"]
        if until is not None:
            self.wait(lambda: self.ask("GET", f"/{until}").status == 200)

    def log(self):
        """What it has written on its standard error, of all processes of the folder."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def trouble(self):
        """What of that is not about requests, for messages."""
        return "\n".join(line for line in self.log().splitlines() if '"request"' not in line)[-4_000:]

    def wait(self, fact):
        """Wait until something is so."""
        give_up = time.monotonic() + PATIENCE
        while not fact():
            assert self.process.poll() is None, (self.process.returncode, self.trouble())
            assert time.monotonic() < give_up, self.trouble()
            time.sleep(0.01)

    def ask(self, method, path, body=None, key=None):
        """The answer to a request; a body that is not bytes goes as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        token = key or self.key
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, _read(answer))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _read(error))

    def decide(self, experiment="shop", **body):
        """The body of the answer to a decision, which must be one."""
        answer = self.ask("POST", f"/v1/{experiment}/decide", body)
        assert answer.status == 200, answer
        return answer.body

    def reward(self, decision, value, experiment="shop", **more):
        """The body of the answer to a reward, which must have been taken."""
        answer = self.ask("POST", f"/v1/{experiment}/reward", {"decision_id": decision, "value": value, **more})
        assert answer.status == 200, answer
        return answer.body

    def stop(self, by=signal.SIGINT):
        """Stop it; its exit status."""
        self.process.send_signal(by)
        return self.ended()

    def ended(self):
        """Wait until it has ended; its exit status."""
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._errors.close()


def _read(answer):
    data = answer.read()
    return json.loads(data) if "json" in answer.headers.get("content-type", "") else data
