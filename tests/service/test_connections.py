"""Connections: slow clients, silent ones and those that take nothing neither hurt others nor stay."""

import json
import re
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import bough
from service_process import PATIENCE, ServiceProcess

HEAD = b"GET /health HTTP/1.1\r\nhost: test\r\n"


def service(folder, **settings):
    tree = bough.Tree.from_paths(["tea/green", "tea/black", "coffee"])
    return ServiceProcess(folder, model=bough.GaussianModel(tree), **settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A service that loses its patience soon."""
    with service(tmp_path_factory.mktemp("quick"), head_seconds=0.2, answer_seconds=1.0, body_seconds=30.0) as found:
        yield found


def connected(to):
    found = socket.create_connection(("127.0.0.1", to.port))
    found.settimeout(PATIENCE)
    return found


def all_of(connection):
    """What comes until the other side closes."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionResetError:  # it had more to read when it closed
        pass
    return found


def is_healthy(connection):
    """Whether what comes is the answer to a question for the service's health."""
    found = b""
    while not found.endswith(b"}"):
        found += connection.recv(1 << 16)
    return found.startswith(b"HTTP/1.1 200 OK")


def problem_of(answer):
    """The status and the body of a problem."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    problem = json.loads(body)
    assert int(head.split()[1]) == problem["status"]
    assert problem["detail"]
    assert problem["remedy"]
    return problem["status"]


def test_clients_that_say_nothing_keep_nobody_out(tmp_path):
    with service(tmp_path, most_connections=20, head_seconds=PATIENCE) as found, ExitStack() as open_ones:
        for _ in range(60):
            open_ones.enter_context(connected(found))
            slow = open_ones.enter_context(connected(found))
            slow.sendall(b"GET /hea")
        for _ in range(3):
            assert found.ask("GET", "/health").status == 200


def test_where_all_connections_are_at_work_one_more_is_refused_in_the_shape_of_all_problems(tmp_path):
    with service(tmp_path, most_connections=5) as found, ExitStack() as open_ones:
        for _ in range(5):
            one = open_ones.enter_context(connected(found))
            one.sendall(
                b"POST /v1/shop/decide HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 2\r\n"
                b"authorization: Bearer " + found.token.encode() + b"\r\n\r\n"
            )
            assert one.recv(100).startswith(b"HTTP/1.1 100")  # now it waits for the body
        answer = found.ask("GET", "/health")
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "overloaded", "1")
        assert answer.headers["content-type"] == "application/problem+json"
        one.sendall(b"{}")
        assert one.recv(100).startswith(b"HTTP/1.1 200")


def test_a_connection_on_which_nothing_is_asked_is_closed_without_a_word(quick):
    with connected(quick) as one:
        assert all_of(one) == b""


def test_empty_lines_are_not_a_request_that_goes_on(quick):
    with connected(quick) as one:
        one.sendall(HEAD + b"\r\n")
        assert is_healthy(one)
        one.sendall(b"\r\n\r\n")
        assert all_of(one) == b""


def test_a_head_that_takes_too_long_is_refused(quick):
    with connected(quick) as one:
        one.sendall(HEAD)
        assert problem_of(all_of(one)) == 408


def test_the_head_of_a_second_request_has_a_time_of_its_own(quick):
    with connected(quick) as one:
        one.sendall(HEAD + b"\r\n")
        assert is_healthy(one)
        one.sendall(HEAD)
        assert problem_of(all_of(one)) == 408


def test_a_body_that_is_not_wanted_does_not_keep_a_connection_open(quick):
    with connected(quick) as one:
        one.sendall(HEAD + b"content-length: 1000000\r\n\r\n1")
        assert is_healthy(one)
        one.sendall(b"2")
        assert all_of(one) == b""


def test_a_head_that_is_too_long_is_refused_before_it_fills_the_memory(quick):
    with connected(quick) as one, pytest.raises(OSError, match=r"Broken pipe|reset"):
        one.sendall(HEAD + (b"x: " + b"y" * 10_000 + b"\r\n") * 10_000)
    with connected(quick) as one:
        one.sendall(HEAD + b"x: " + b"y" * 66_000)
        assert problem_of(all_of(one)) == 431


@pytest.mark.parametrize(
    "said",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"hello\r\n",
     HEAD + b"content-length: -1\r\n\r\n", HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
     HEAD + b"x: a\x00b\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n",
     b"CONNECT test:80 HTTP/1.1\r\nhost: test\r\n\r\n"],
)  # fmt: skip
def test_what_is_not_a_request_is_refused_in_the_shape_of_all_problems(quick, said):
    with connected(quick) as one:
        one.sendall(said)
        assert problem_of(all_of(one)) == 400


def test_pipelined_requests_are_answered_in_order(quick):
    with connected(quick) as one:
        more = b" HTTP/1.1\r\nhost: test\r\n"
        paths = (b"/health", b"/nowhere", b"/health")
        one.sendall(b"\r\n".join(b"GET " + path + more for path in paths) + b"connection: close\r\n\r\n")
        statuses = re.findall(rb"HTTP/1.1 (\d+)", all_of(one))
    assert statuses == [b"200", b"404", b"200"]


def is_open(service, connection):
    """Whether the service still has its end of a connection open, as the system sees it."""
    ends = [f"0100007F:{port:04X}" for port in (service.port, connection.getsockname()[1])]
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()]
    return [*ends, "01"] in rows


def asked_for_much(connection, times):
    for _ in range(times):
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n")


def test_a_client_that_takes_nothing_of_its_answers_is_cut_off(quick):
    with connected(quick) as one:
        asked_for_much(one, 100)
        assert is_open(quick, one)
        until = time.monotonic() + PATIENCE
        while is_open(quick, one):
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_client_that_takes_its_answers_slowly_gets_them_all(quick):
    with connected(quick) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        asked_for_much(one, 30)
        found, until = b"", time.monotonic() + 5 * PATIENCE
        while found.count(b"HTTP/1.1 200") < 30 or not found.endswith(b"}"):
            assert time.monotonic() < until
            piece = one.recv(1 << 16)
            assert piece
            found += piece
            time.sleep(0.02)  # a slow client, who takes longer in all than one may take nothing


def test_a_body_that_comes_in_pieces_is_read_as_one(quick):
    with connected(quick) as one:
        one.sendall(
            b"POST /v1/shop/decide HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\nconnection: close\r\n"
            b"authorization: Bearer " + quick.token.encode() + b"\r\n\r\n"
        )
        for piece in (b"1\r\n{\r\n", b'3\r\n"k"\r\n', b"3\r\n:2}\r\n", b"0\r\n\r\n"):
            one.sendall(piece)
        head, _, body = all_of(one).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert len(json.loads(body)["actions"]) == 2
