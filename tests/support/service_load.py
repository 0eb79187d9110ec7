"""Clients that decide and reward all the time, a ledger of what they were told, and what the log must say of it."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bough.service.log.base import Log
from bough.service.records import CANCEL, CLOSE, ChangeRow, OutcomeRow, Position
from service_http import PATIENCE, Answer, Connection, GoneError

KINDS = ("plain", "deferred", "cancelled", "duplicated", "conflicting", "batch", "bare")
"""What a client does: reward; activate first; cancel; ask for all twice; ask with another body; many at once; no id."""
CATEGORY = 1  # that actions are added below
_BETWEEN_CHANGES = 200  # answers
_PIECE = 5_000


@dataclass
class Entry:
    """One decision as its client knows it; what is None was not acknowledged."""

    experiment: str
    kind: str
    id: str | None
    body: dict[str, Any]
    action: Any = None
    value: float = 0.0
    is_sent: bool = False
    """Whether its reward was sent, so that the log may have it."""
    reward: str | None = None
    """What became of the reward."""
    is_cancelled: bool = False


@dataclass
class Ledger:
    """What was asked for, and what was answered; `faults` are answers that could not be right."""

    entries: list[Entry] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    """Actions of which it was acknowledged that they are in the catalogue."""
    acknowledged: int = 0
    is_over: bool = False
    """Whether clients are to stop."""
    on_acknowledged: Callable[[int], None] = lambda n: None

    def fault(self, what: str) -> None:
        """Note an answer that could not be right."""
        self.faults.append(what)

    def note(self) -> None:
        """Count something that was acknowledged."""
        self.acknowledged += 1
        self.on_acknowledged(self.acknowledged)


class Client:
    """One client: it works off one decision after another until the service goes away."""

    def __init__(self, connection: Connection, ledger: Ledger, seed: str, experiments: tuple[str, ...]) -> None:
        self._connection, self._ledger, self._experiments = connection, ledger, experiments
        self._rng, self._name, self._count = random.Random(seed), seed, itertools.count()

    async def work(self) -> None:
        """Decide and reward, until the service is gone, or enough has been done."""
        try:
            while not self._ledger.is_over:
                await self._work_off([self._new() for _ in range(self._rng.choice((1, 1, 1, 5)))])
        except GoneError:
            return

    async def change(self) -> None:
        """Add actions now and then, until the service is gone, or enough has been done."""
        due = self._ledger.acknowledged
        try:
            while not self._ledger.is_over:
                if self._ledger.acknowledged < due:
                    await asyncio.sleep(0.005)
                    await self._connection.call("GET", "/health")  # by which a service that is gone is noticed
                    continue
                due = self._ledger.acknowledged + _BETWEEN_CHANGES
                name = f"{self._name}.{next(self._count)}"
                body = {"op": "add", "name": name, "under": CATEGORY}
                answer = await self.patiently(f"/v1/{self._experiments[0]}/actions", body)
                if answer.status == 200:
                    self._ledger.added.append(name)
                else:
                    self._ledger.fault(f"{answer.status} and not 200 for {body}: {answer.body}")
        except GoneError:
            return

    def _new(self) -> Entry:
        kind = self._rng.choice(KINDS)
        id = None if kind == "bare" else f"{self._name}.{next(self._count)}"
        body: dict[str, Any] = {} if id is None else {"decision_id": id}
        if kind == "deferred":
            body["defer"] = True
        entry = Entry(self._rng.choice(self._experiments), kind, id, body, value=round(self._rng.gauss(1, 2), 3))
        self._ledger.entries.append(entry)
        return entry

    async def _work_off(self, entries: list[Entry]) -> None:
        for entry in entries:
            await self.decide(entry)
        if len(entries) > 1 and len({entry.experiment for entry in entries}) == 1:
            await self._reward_together(entries)
            return
        for entry in entries:
            await self.reward(entry)

    async def decide(self, entry: Entry) -> None:
        """Ask for a decision; again where it was asked for before, so that it must be answered as it was."""
        answer = await self.patiently(f"/v1/{entry.experiment}/decide", entry.body)
        self._expect(answer, 200, entry)
        told, entry.id = answer.body["action"], answer.body["decision_id"]
        if entry.action is not None and (told != entry.action or not answer.body["replayed"]):
            self._ledger.fault(f"answered otherwise: {entry.id} was {entry.action} and is {answer.body}")
        entry.action = told
        self._ledger.note()
        if entry.kind == "duplicated" and not answer.body["replayed"]:
            await self.decide(entry)
        elif entry.kind == "conflicting":
            other = await self.patiently(f"/v1/{entry.experiment}/decide", {**entry.body, "k": 2})
            self._expect(other, 409, entry)

    async def reward(self, entry: Entry) -> None:
        """Say what came of it; again where it was said before."""
        if entry.kind == "cancelled":
            await self._cancel(entry)
            return
        if entry.kind == "deferred":
            await self._touch(entry, "activate")
        entry.is_sent = True
        answer = await self.patiently(f"/v1/{entry.experiment}/reward", _reward(entry))
        self._expect(answer, 200, entry)
        self._rewarded(entry, answer.body)
        if entry.kind == "duplicated" and not answer.body["replayed"]:
            await self.reward(entry)
        elif entry.kind == "conflicting":
            wrong = {**_reward(entry), "value": entry.value + 1}
            self._expect(await self.patiently(f"/v1/{entry.experiment}/reward", wrong), 409, entry)

    def _rewarded(self, entry: Entry, said: dict[str, Any]) -> None:
        if entry.reward is not None and (said["status"] != entry.reward or not said["replayed"]):
            self._ledger.fault(f"answered otherwise: the reward of {entry.id} was {entry.reward} and is {said}")
        entry.reward = said["status"]
        self._ledger.note()

    async def _reward_together(self, entries: list[Entry]) -> None:
        rewarded = [entry for entry in entries if entry.kind not in ("cancelled", "deferred")]
        for entry in entries:
            if entry not in rewarded:
                await self.reward(entry)
            else:
                entry.is_sent = True
        if rewarded:
            body = {"rewards": [_reward(entry) for entry in rewarded]}
            answer = await self.patiently(f"/v1/{entries[0].experiment}/rewards", body)
            self._expect(answer, 200, rewarded[0])
            for entry, said in zip(rewarded, answer.body["results"], strict=True):
                if said["status"] == "refused":
                    self._ledger.fault(f"refused: {said}")
                else:
                    self._rewarded(entry, {"replayed": False, **said})

    async def _touch(self, entry: Entry, what: str) -> None:
        answer = await self.patiently(f"/v1/{entry.experiment}/{what}", {"decision_id": entry.id})
        self._expect(answer, 200, entry)
        self._ledger.note()

    async def _cancel(self, entry: Entry) -> None:
        was_cancelled = entry.is_cancelled
        answer = await self.patiently(f"/v1/{entry.experiment}/cancel", {"decision_id": entry.id})
        if answer.status == 409 and entry.experiment == "clicks" and not was_cancelled:
            return  # its window closed before
        self._expect(answer, 200, entry)
        if was_cancelled and not answer.body["replayed"]:
            self._ledger.fault(f"cancelled again: {entry.id}")
        entry.is_cancelled = True
        self._ledger.note()

    async def patiently(self, path: str, body: Any) -> Answer:
        """Ask until there is another answer than 503: the database may be away for a while."""
        until = time.monotonic() + PATIENCE
        while True:
            answer = await self._connection.call("POST", path, body)
            if answer.status != 503 or time.monotonic() > until:
                return answer
            await asyncio.sleep(0.01)

    def _expect(self, answer: Answer, status: int, entry: Entry) -> None:
        if answer.status != status:
            self._ledger.fault(f"{answer.status} and not {status} for {entry}: {answer.body}")


def _reward(entry: Entry) -> dict[str, Any]:
    return {"decision_id": entry.id, "value": entry.value}


async def load(port: int, token: str, ledger: Ledger, seed: str, clients: int, experiments: tuple[str, ...]) -> None:
    """Many clients at once, and one who changes the catalogue, until the service is gone."""
    connections = [Connection(port, token) for _ in range(clients + 1)]
    crowd = [Client(connection, ledger, f"{seed}.{i}", experiments) for i, connection in enumerate(connections)]
    await asyncio.gather(crowd.pop().change(), *(client.work() for client in crowd))
    for connection in connections:
        await connection.close()


async def ask_again(port: int, token: str, ledger: Ledger, entries: list[Entry]) -> None:
    """Ask again for all that was asked for, as clients do that were not answered; all answers must be as before."""
    async with Connection(port, token) as connection:
        client = Client(connection, ledger, "again", ())
        for entry in entries:
            if entry.id is None:
                continue
            if entry.kind != "bare":  # which would be another decision
                await client.decide(entry)
            if entry.is_sent or entry.kind == "cancelled":
                await client.reward(entry)


class Checker:
    """What the log says of what was acknowledged; it reads the log once, however often it is asked."""

    def __init__(self, ledger: Ledger, experiments: dict[int, str]) -> None:
        self._ledger, self.names = ledger, experiments
        self._actions: dict[str, Any] = {}
        self._outcomes: dict[str, list[OutcomeRow]] = {}
        self._added: set[str] = set()
        self._read = {id: (Position(), Position()) for id in experiments}
        self._checked = 0
        self.learnable: Counter[str] = Counter()
        """Records per experiment that are to be learned from, and, under its name with a !, those that take back."""

    def check(self, log: Log) -> list[str]:
        """Everything that is not as it must be, in words; nothing if all is well."""
        for id, name in self.names.items():
            self._read_on(log, id, name)
        wrong = list(self._ledger.faults)
        for entry in self._ledger.entries:
            wrong += self._of_entry(entry)
        wrong += [f"lost: that {name} was added" for name in self._ledger.added if name not in self._added]
        sent = {entry.id for entry in self._ledger.entries}
        n_bare = sum(entry.id is None for entry in self._ledger.entries)
        unknown = [id for id in self._actions if id not in sent]
        if len(unknown) > n_bare:
            wrong.append(f"made up: {len(unknown)} decisions that nobody asked for, such as {unknown[0]}")
        return wrong

    def _read_on(self, log: Log, id: int, name: str) -> None:
        decided, recorded = self._read[id]
        while found := log.decisions_after(id, decided, _PIECE):
            decided = found[-1][0]
            for _, row in found:
                self._actions[row.id] = row.actions[0]
        for record in log.records(id, recorded, log.end()):
            recorded = record.position
            if isinstance(record, ChangeRow) and record.kind == "action":
                self._added.update(record.body["names"])
            elif isinstance(record, OutcomeRow):
                self._outcomes.setdefault(record.decision, []).append(record)
                self.learnable[name] += record.learn
        self._read[id] = decided, recorded

    def last(self, id: int) -> int:
        """The number of the last record of an experiment."""
        return self._read[id][1].seq

    def _of_entry(self, entry: Entry) -> list[str]:
        if entry.id is None:
            return []
        rows = self._outcomes.get(entry.id, [])
        rewards = [row for row in rows if row.kind in ("reward", "late")]
        wrong = []
        if entry.action is not None and entry.id not in self._actions:
            wrong.append(f"lost: the decision {entry.id}, acknowledged as {entry.action}")
        elif entry.action is not None and self._actions[entry.id] != entry.action:
            wrong.append(f"changed: the decision {entry.id}, acknowledged as {entry.action}")
        if entry.reward is not None and not rewards:
            wrong.append(f"lost: the reward of {entry.id}, acknowledged as {entry.reward}")
        if len(rewards) > 1 or any(row.value != entry.value for row in rewards) or (rewards and not entry.is_sent):
            wrong.append(f"rewarded otherwise: {entry.id} sent {entry.value} and has {rewards}")
        if entry.is_cancelled and sum(row.id == CANCEL for row in rows) != 1:
            wrong.append(f"lost: that {entry.id} was cancelled")
        if sum(row.learn for row in rows) > 1 or sum(row.id == CLOSE for row in rows) > 1:
            wrong.append(f"logged twice: {rows}")
        return wrong
