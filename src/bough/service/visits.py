"""The visitors of the demo, who ask the service from within: what they do is logged and learned as any other."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np

from bough.service.demo import Visitors
from bough.service.problems import Problem
from bough.service.records import Name
from bough.service.schema import ActionChange, Decide, Reward
from bough.service.service import Service


async def visit(service: Service, name: str, seed: int = 0) -> None:
    """Have visitors come to the demo's shop as long as the service goes on."""
    while service.is_replaying:
        await asyncio.sleep(0.05)
    experiment = service.experiment(name)

    async def decide() -> tuple[str, Name]:
        made = await service.decide(experiment, Decide(propensity=False))
        assert made.action is not None
        return made.decision_id, made.action

    async def reward(decision: str, value: float) -> None:
        await service.reward(experiment, Reward(decision_id=decision, value=value))

    async def add(product: str, category: str) -> bool:
        try:
            await service.changer.change_action(
                experiment, ActionChange(op="add", name=product, under=category), "demo"
            )
        except Problem:
            return False
        return True

    visitors = Visitors(seed)
    while True:
        with contextlib.suppress(Problem):  # the disk is full, say: they come back
            await visitors.visit(decide, reward, np.random.default_rng(), add=add)
        await asyncio.sleep(1.0)
