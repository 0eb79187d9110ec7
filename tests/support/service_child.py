"""A process that services are forked from, so that a start costs milliseconds and not the import of everything.

It reads one command per line and answers each by one line: `{"start": {...}}` by the number of a new process, which
serves, and `{"wait": number}` by how that process ended. It ends, and all services with it, when its input does.

Mutants are services with a fault that the tests must find. They live here, and nowhere in the package.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import bough
from bough.service import server
from bough.service.learner import Learner
from bough.service.log.base import LogBusyError
from bough.service.records import Position
from bough.service.service import Service
from bough.service.settings import Settings
from bough.service.writer import Writer, _append

_BEFORE_THE_COMMIT = 0.05  # seconds


def _acknowledge_before_commit() -> None:
    """Whoever waits is answered when the rows are appended, and the commit comes a moment later."""

    async def commit(self: Writer, batch: Any) -> None:
        while True:
            try:
                transaction = self._log.begin()
                break
            except LogBusyError:
                await asyncio.sleep(0.001)
        for future, result in _append(transaction, batch):
            if not future.done():
                (future.set_exception if isinstance(result, Exception) else future.set_result)(result)
        await asyncio.sleep(_BEFORE_THE_COMMIT)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._log.commit)
        self._watch.committed(len(batch), _BEFORE_THE_COMMIT)

    Writer._commit = commit  # type: ignore[method-assign]


def _learn_twice() -> None:
    """A service that goes on from a snapshot reads the log from its beginning all the same."""
    restore = Learner.restore

    def restore_and_forget_where(self: Learner, agent: Any, base: Any, header: Any) -> None:
        restore(self, agent, base, header)
        self.position = Position()
        self.n_learned = 0  # what it says of itself is right

    Learner.restore = restore_and_forget_where  # type: ignore[method-assign]


MUTANTS = {"acknowledge-before-commit": _acknowledge_before_commit, "learn-twice": _learn_twice}


def _serve(asked: dict[str, Any]) -> None:
    """Be a service, until killed or told to stop."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # with the process that it was forked from
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if asked.get("largest_file") is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["largest_file"], most))
    if asked.get("mutant") is not None:
        MUTANTS[asked["mutant"]]()
    if asked.get("seed") is not None:
        server.Service = partial(Service, seed=asked["seed"])  # type: ignore[misc]
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in asked["settings"].items()}
    server.serve(
        Settings(**settings),
        data=None if asked["data"] is None else Path(asked["data"]),
        database=asked["database"],
        model=None if asked["model"] is None else Path(asked["model"]),
        experiment=asked["experiment"],
        say=lambda started: print(f"key {started.key}", flush=True),
    )


def main() -> None:
    """Do what is asked for."""
    tree = bough.Tree.balanced(branching=2, height=2)
    for model in (bough.GaussianModel(tree), bough.BernoulliModel(tree)):
        bough.warm_up(bough.HierTS(model))
    print("{}", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    _serve(asked["start"])
                    status = 0
                except BaseException:
                    import traceback

                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            answer = pid
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
