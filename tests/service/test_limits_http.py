"""What a service refuses over HTTP, and what it bears: keys, sizes, times, rates, a full disk, much that waits."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import bough
from bough.service.access import Events
from bough.service.app import App
from bough.service.auth import SCOPES, make_key
from bough.service.changes import first_model
from bough.service.files import model_bytes
from bough.service.log import open_log
from bough.service.problems import KINDS
from bough.service.records import Position
from bough.service.routes import ROUTES, Route
from bough.service.service import Service
from bough.service.settings import Settings
from log_rows import a_decision
from service_http import PATIENCE, Answer, ask
from service_process import ServiceProcess

MODEL = bough.GaussianModel(bough.Tree.from_paths(["home/kettle", "home/spade", "food/tea", "food/cake"]))
BODY, BATCH, FILE = 2_000, 4_000, 100_000  # the largest bodies, in bytes
BODY_SECONDS = 0.3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with small limits, and an experiment beside another."""
    folder = tmp_path_factory.mktemp("limits")
    limits = dict(body_bytes=BODY, batch_bytes=BATCH, file_bytes=FILE, body_seconds=BODY_SECONDS)
    with ServiceProcess(folder, model=MODEL, **limits) as process:
        assert process.ask("PUT", "/v1/other", {}).status == 201
        assert process.ask("POST", "/v1/shop/decide", {"decision_id": "d1"}).status == 200
        yield process


def check_shape(answer: Answer) -> None:
    """An error is a problem of RFC 9457, whatever it is about."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.body.keys() <= {"type", "title", "status", "detail", "value", "remedy"}
    assert answer.code in KINDS
    kind = KINDS[answer.code]
    assert (answer.status, answer.body["status"], answer.body["title"]) == (kind.status, kind.status, kind.title)
    assert answer.body["detail"]
    assert answer.body["remedy"]
    assert answer.headers["x-request-id"]


# -- keys ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(service: ServiceProcess) -> dict[str, str]:
    """Tokens by what they are allowed: one scope each, for all experiments, for one, and for another one."""
    found = {"none": "", "made up": "bough_" + "x" * 43}
    for scope in SCOPES:
        for experiment in (None, "shop", "other"):
            body = {"scopes": [scope], **({} if experiment is None else {"experiment": experiment})}
            found[f"{scope} of {experiment or 'all'}"] = service.ask("POST", "/v1/keys", body).body["token"]
    made = service.ask("POST", "/v1/keys", {"scopes": list(SCOPES)}).body
    assert service.ask("DELETE", f"/v1/keys/{made['id']}").status == 204
    found["revoked"] = made["token"]
    return found


def expected(route: Route, key: str) -> int | None:
    """The status of a request that the key is not enough for; None where it is."""
    if route.scope is None:
        return None
    if key in ("none", "made up", "revoked"):
        return 401
    scope, _, experiment = key.partition(" of ")
    reaches = experiment == "all" or ("experiment" in route.parameters and experiment == "shop")
    return None if scope in (route.scope, "admin") and reaches else 403


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.name)
def test_a_key_reaches_what_its_scope_and_its_experiment_allow(
    service: ServiceProcess, keys: dict[str, str], route: Route
) -> None:
    """Bodies are nonsense, so that nothing happens where the key is enough: keys are looked at first."""
    path = route.path.replace("{experiment}", "shop").replace("{id}", "d1")
    body = None if route.body is None else b"nonsense"
    for name, token in keys.items():
        answer = ask(service.port, token, route.method, path, body)
        wanted = expected(route, name)
        if wanted is None:
            assert answer.status not in (401, 403, 500), (name, answer)
        else:
            assert answer.status == wanted, (name, answer)
            assert answer.code == ("no-key" if wanted == 401 else "wrong-scope")
            assert ("www-authenticate" in answer.headers) == (wanted == 401)
        if answer.status >= 400:
            check_shape(answer)


# -- sizes and times -----------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [route for route in ROUTES.values() if route.body], ids=lambda route: route.name)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_413(service: ServiceProcess, route: Route, chunked: bool) -> None:
    """Also where nobody said how large it would be; one that is just small enough is read."""
    limit = {"rewards": BATCH, "put_tree": FILE, "put_model": FILE}.get(route.name, BODY)
    path = route.path.replace("{experiment}", "shop")
    for size, is_read in ((limit, True), (limit + 1, False)):
        with closing(socket.create_connection(("127.0.0.1", service.port), PATIENCE)) as one:
            head = f"{route.method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.token}\r\n"
            if chunked:
                head += "transfer-encoding: chunked\r\n\r\n"
                sent = head.encode() + b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"
            else:
                sent = f"{head}content-length: {size}\r\n\r\n".encode() + b"x" * size
            one.sendall(sent)
            status = int(one.makefile("rb").readline().split()[1])
        assert status == (422 if is_read else 413)


def test_a_body_that_does_not_come_is_408(service: ServiceProcess) -> None:
    with closing(socket.create_connection(("127.0.0.1", service.port), PATIENCE)) as one:
        head = f"POST /v1/shop/decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.token}\r\n"
        one.sendall(f"{head}content-length: 20\r\n\r\n{{".encode())
        said = one.makefile("rb").read().decode()  # up to the end: the connection is closed
    head, _, body = said.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 408 ")
    headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
    check_shape(Answer(408, json.loads(body), headers))


def test_a_key_that_asks_too_often_is_429_and_is_told_when_to_come_back(service: ServiceProcess) -> None:
    token = service.ask("POST", "/v1/keys", {"scopes": ["read"], "rate": 1.0}).body["token"]
    refused = None
    while refused is None:
        answer = ask(service.port, token, "GET", "/v1/shop")
        assert answer.status in (200, 429)
        refused = answer if answer.status == 429 else None
    assert int(refused.headers["retry-after"]) >= 1
    check_shape(refused)
    assert service.ask("GET", "/v1/shop").status == 200
    service.until(lambda: ask(service.port, token, "GET", "/v1/shop").status == 200)


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/v1/shop/decide", b"{", "invalid-body"),
        ("POST", "/v1/shop/decide", {"k": 9}, "invalid-value"),
        ("POST", "/v1/shop/decide", {"among": ["tea"]}, "unknown-action"),
        ("POST", "/v1/shop/decide", {"decision_id": "d1", "k": 2}, "same-id"),
        ("POST", "/v1/shop/decide", {"decision_id": "a\0b"}, "invalid-body"),
        ("POST", "/v1/shop/decide", {"decision_id": "käse"}, "invalid-body"),
        ("POST", "/v1/shop/decide", {"decision_id": ""}, "invalid-body"),
        ("POST", "/v1/shop/reward", {"decision_id": "d1", "value": 1e300}, "invalid-value"),
        ("POST", "/v1/shop/reward", {"decision_id": "never", "value": 1.0}, "unknown-decision"),
        ("POST", "/v1/shop/retract", {"decision_id": "d1"}, "wrong-state"),
        ("POST", "/v1/other/decide", {}, "no-model"),
        ("POST", "/v1/nowhere/decide", {}, "unknown-experiment"),
        ("GET", "/v1/shop/decisions/never", None, "unknown-decision"),
        ("GET", "/v1/shop/tree?node=nowhere", None, "unknown-node"),
        ("GET", "/nowhere", None, "unknown-route"),
        ("DELETE", "/v1/shop", None, "wrong-method"),
        ("DELETE", "/v1/keys/never", None, "unknown-key"),
        ("PUT", "/v1/shop", {"half_life": 5.0}, "conflict"),
    ],
)
def test_errors_have_one_shape(service: ServiceProcess, method: str, path: str, body: Any, code: str) -> None:
    answer = service.ask(method, path, body)
    assert answer.code == code
    check_shape(answer)


def test_one_bad_id_does_not_fail_the_rewards_beside_it(service: ServiceProcess) -> None:
    ids = [service.ask("POST", "/v1/shop/decide", {}).body["decision_id"] for _ in range(3)]
    rewards = [{"decision_id": id, "value": 1.0} for id in (ids[0], "never", ids[1])]
    answer = service.ask("POST", "/v1/shop/rewards", {"rewards": [*rewards, {"decision_id": ids[2], "value": 1e305}]})
    assert [one["status"] for one in answer.body["results"]] == ["learned", "refused", "learned", "refused"]
    assert answer.body["refused"] == 2


# -- what it bears -------------------------------------------------------------------------------------


def test_all_but_what_needs_no_log_is_503_while_it_is_replayed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "data")
    first_model(log, "shop", model_bytes(MODEL), 0.0)
    token, row = make_key(SCOPES, at=0.0)
    with log.transaction() as transaction:
        transaction.add_key(row)
    service = Service(log, Settings(), Events(quiet=True))

    async def answers() -> dict[str, httpx.Response]:
        transport = httpx.ASGITransport(App(service))
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            return {
                path: await (client.get(path) if body is None else client.post(path, json=body))
                for path, body in {
                    "/health": None,
                    "/openapi.json": None,
                    "/ready": None,
                    "/v1": None,
                    "/v1/shop": None,
                    "/v1/shop/top": None,
                    "/v1/shop/decide": {},
                    "/v1/shop/reward": {"decision_id": "d1", "value": 1.0},
                }.items()
            }

    found = asyncio.run(answers())
    log.close()
    assert {path for path, answer in found.items() if answer.status_code == 200} == {"/health", "/openapi.json"}
    for answer in found.values():
        if answer.status_code != 200:
            check_shape(Answer(answer.status_code, answer.json(), dict(answer.headers)))
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1


def test_a_full_disk_is_503_and_the_service_goes_on_by_itself_when_there_is_room(tmp_path: Path) -> None:
    """No file may grow beyond a size, which is then raised: what was acknowledged is there, and nothing else."""
    with ServiceProcess(tmp_path, model=MODEL, largest_file=600_000, snapshot_seconds=3_600.0) as process:
        acknowledged, n_refused = [], 0
        while n_refused < 20:  # one after the other: what waits in the log beside the database may make room at first
            body = {"decision_id": f"d{len(acknowledged)}", "exclude": ["home/spade"]}
            answer = process.ask("POST", "/v1/shop/decide", body)
            n_refused = 0 if answer.status == 200 else n_refused + 1
            if answer.status == 200:
                acknowledged.append(body["decision_id"])
        assert len(acknowledged) > 10
        assert answer.code == "not-written"
        check_shape(answer)
        assert not process.is_ready()
        assert process.ask("GET", "/v1/shop/decisions/d0").status == 200
        rewards = {"rewards": [{"decision_id": id, "value": 1.0} for id in acknowledged]}
        assert process.ask("POST", "/v1/shop/rewards", rewards).code == "not-written", "a batch is to be sent again"
        assert process.pid is not None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        process.until(lambda: process.ask("POST", "/v1/shop/decide", body).status == 200)
        process.until(process.is_ready)
        answer = process.ask("POST", "/v1/shop/rewards", rewards)
        assert {one["status"] for one in answer.body["results"]} == {"learned"}
        with closing(open_log(process.data, exclusive=False)) as log:
            found = [row.id for _, row in log.decisions_after(1, Position(), 1_000_000)]
        assert found == [*acknowledged, body["decision_id"]]


def test_a_hundred_thousand_open_decisions_are_borne_and_closed(tmp_path: Path) -> None:
    n = 100_000
    config = {"learning": "at_close", "window": 60.0, "default": 0.0}
    with ServiceProcess(tmp_path, model=MODEL) as process:
        assert process.ask("PUT", "/v1/shop", config).status == 200
        process.stop()
        with closing(open_log(process.data)) as log, log.transaction() as transaction:
            own = dict(actions=["food/tea"], closes=160.0, learning="at_close", open=True)
            transaction.add_decisions([a_decision(f"d{i}", **own) for i in range(n)])
        process.start()
        unready = []

        def is_closed() -> bool:
            unready.extend(() if process.is_ready() else (1,))
            assert process.ask("POST", "/v1/shop/decide", {}).status == 200
            return bool(process.ask("GET", "/v1/shop").body["learned"] == n)

        process.until(is_closed)
        assert unready == []
        with closing(open_log(process.data, exclusive=False)) as log:
            assert log.due(1, 1_000.0, 1) == []
