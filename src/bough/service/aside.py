"""Work that is left behind where the service stops before it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """What work returns, done in a thread of its own, which nobody waits for at the end of the process.

    `asyncio.to_thread` would have the process wait: a minute and more where kernels are being compiled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(result)  # type: ignore[arg-type]
            else:
                done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as problem:
            error = problem
        with suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, name="bough-aside", daemon=True).start()
    return await done
