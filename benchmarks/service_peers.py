"""What the service is measured beside: the same agent and the same durable log behind bare ASGI, and behind FastAPI.

    python service_peers.py KIND FOLDER MODEL PORT

Neither has keys, limits, figures or a log of requests, and bare ASGI has no routes either.
"""

import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import uvicorn

from bough.service.changes import first_model
from bough.service.experiment import Experiment
from bough.service.files import start_of
from bough.service.log.sqlite import SqliteLog
from bough.service.records import ChangeRow, Key
from bough.service.schema import Decide, ExperimentConfig, Reward
from bough.service.writer import Writer


class Learning:
    """Learns from what was committed, as the tail does."""

    def __init__(self, log, experiment):
        self.log, self.experiment = log, experiment

    def committed(self, *_):
        found = self.log.read_after(self.experiment.position, 256)
        self.experiment.learn([row for row in found if not isinstance(row, ChangeRow)])


def made(folder: Path, model: Path):
    log = SqliteLog(folder)
    first_model(log, "shop", model.read_bytes(), time.time())
    experiment = Experiment(1, "shop", ExperimentConfig())
    experiment.apply(
        ChangeRow(1, 0.0, "model", "bench", {"version": 1}, seq=log.end().seq), start_of(model.read_bytes())
    )
    return experiment, Writer(log, Learning(log, experiment), 10_000)


def bare(experiment, writer_of):
    decode_decide, decode_reward = msgspec.json.Decoder(Decide).decode, msgspec.json.Decoder(Reward).decode
    encode = msgspec.json.Encoder().encode
    writer = None

    async def app(scope, receive, send):
        nonlocal writer
        if scope["type"] == "lifespan":
            await receive()
            writer = writer_of()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = (await receive())["body"]
        if scope["path"].endswith("decide"):
            asked = decode_decide(body)
            answer = await writer.decide(experiment, asked, experiment.decide(asked, time.time()))
        else:
            asked = decode_reward(body)
            judge = partial(experiment.reward, asked, now=time.time())
            answer = await writer.touch(Key(1, asked.decision_id), judge)
        payload = encode(answer)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(payload))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    return app


def fastapi(experiment, writer_of):
    from contextlib import asynccontextmanager

    from fastapi import FastAPI
    from pydantic import BaseModel

    class DecideBody(BaseModel):
        decision_id: str | None = None
        context: list[float] | None = None
        k: int | None = None

    class RewardBody(BaseModel):
        decision_id: str
        value: float

    class Decided(BaseModel):
        decision_id: str
        model_version: int
        replayed: bool
        action: int | str

    class Rewarded(BaseModel):
        decision_id: str
        status: str
        replayed: bool

    state = {}

    @asynccontextmanager
    async def life(_):
        state["writer"] = writer_of()
        yield

    app = FastAPI(lifespan=life)

    @app.post("/v1/shop/decide")
    async def decide(body: DecideBody) -> Decided:
        asked = Decide(decision_id=body.decision_id, context=body.context, k=body.k)
        made = await state["writer"].decide(experiment, asked, experiment.decide(asked, time.time()))
        return Decided(
            decision_id=made.decision_id, model_version=made.model_version, replayed=made.replayed, action=made.action
        )

    @app.post("/v1/shop/reward")
    async def reward(body: RewardBody) -> Rewarded:
        asked = Reward(decision_id=body.decision_id, value=body.value)
        judge = partial(experiment.reward, asked, now=time.time())
        found = await state["writer"].touch(Key(1, asked.decision_id), judge)
        return Rewarded(decision_id=found.decision_id, status=found.status, replayed=found.replayed)

    return app


def main():
    kind, folder, model, port = sys.argv[1:]
    parts = {}

    def writer_of():
        parts["experiment"], writer = made(Path(folder), Path(model))
        return writer

    class Late:  # the experiment is made when the loop runs, since the writer needs one
        def __getattr__(self, name):
            return getattr(parts["experiment"], name)

    app = {"bare": bare, "fastapi": fastapi}[kind](Late(), writer_of)
    uvicorn.run(
        app, port=int(port), loop="uvloop", http="httptools", access_log=False, log_level="warning",
        proxy_headers=False, server_header=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
