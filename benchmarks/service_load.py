"""Clients of a service, as lean as can be, since they share the cores with it: decide + reward, over and over.

    python service_load.py PORT TOKEN CLIENTS SECONDS [decide|both] [RATE]

prints one line of JSON: pairs per second, and the times of each kind of request in milliseconds. With a rate, in pairs
per second, clients wait between pairs.
"""

import asyncio
import json
import sys
import time

import uvloop

BODY = b"{}"


class Client(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, token, until, times, rewards, every, done):
        self.until, self.times, self.rewards, self.every, self.done = until, times, rewards, every, done
        self.next = time.perf_counter()
        self.pairs, self.buffer = 0, b""
        self.head = {
            what: f"POST /v1/shop/{what} HTTP/1.1\r\nHost: bough\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: ".encode()
            for what in ("decide", "reward")
        }

    def connection_made(self, transport):
        self.transport = transport
        self.ask("decide", BODY)

    def connection_lost(self, error):
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the service hung up"))

    def ask(self, what: str, body: bytes) -> None:
        self.what, self.at = what, time.perf_counter()
        self.transport.write(self.head[what] + b"%d\r\n\r\n" % len(body) + body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        at = head.find(b"content-length: ") + 16
        size = int(head[at : head.find(b"\r", at) if head.find(b"\r", at) > 0 else None])
        if len(self.buffer) < end + 4 + size:
            return
        body, status, self.buffer = self.buffer[end + 4 : end + 4 + size], self.buffer[9:12], b""
        now = time.perf_counter()
        self.times[self.what].append(now - self.at)
        if status != b"200":
            raise SystemExit(f"{status.decode()}: {body.decode()}")
        if self.what == "decide" and self.rewards:
            at = body.index(b'"decision_id":"') + 15
            id = body[at : body.index(b'"', at)]
            self.ask("reward", b'{"decision_id":"' + id + b'","value":1.0}')
            return
        self.pairs += 1
        if now > self.until:
            self.done.set_result(self.pairs)
            self.transport.close()
            return
        self.next = max(self.next + self.every, now - self.every)
        if self.next > now:
            asyncio.get_running_loop().call_later(self.next - now, self.ask, "decide", BODY)
        else:
            self.ask("decide", BODY)


async def load(port: int, token: str, clients: int, seconds: float, rewards: bool, rate: float | None) -> dict:
    loop = asyncio.get_running_loop()
    began, times, futures = time.perf_counter(), {"decide": [], "reward": []}, []
    every = 0.0 if rate is None else clients / rate
    for _ in range(clients):
        done = loop.create_future()
        futures.append(done)
        await loop.create_connection(
            lambda done=done: Client(token, began + seconds, times, rewards, every, done), "127.0.0.1", port
        )
    pairs = sum(await asyncio.gather(*futures))
    spent = time.perf_counter() - began
    found = {"pairs": pairs, "per_second": pairs / spent}
    for what, values in times.items():
        if values:
            values.sort()
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                found[f"{what}_{name}"] = 1e3 * values[min(len(values) - 1, int(share * len(values)))]
    return found


if __name__ == "__main__":
    given = sys.argv[1:]
    port, token, clients, seconds = int(given[0]), given[1], int(given[2]), float(given[3])
    rate = float(given[5]) if len(given) > 5 else None
    print(json.dumps(uvloop.run(load(port, token, clients, seconds, "decide" not in given, rate))))
