"""Structured logs: what is in a line, what never is, and when lines are written."""

import asyncio
import io
import json
import os
import subprocess
import sys
import threading

import pytest

from bough.service.access import Events, LineWriter


@pytest.fixture
def stream():
    return io.BytesIO()


@pytest.fixture
def lines(stream):
    writer = LineWriter(stream)
    yield writer
    writer.close()


@pytest.fixture
def events(stream):
    made = Events(stream)
    yield made
    made.close()


def read(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_of_json(stream):
    events = Events(stream, now=lambda: 1_700_000_000.0625)
    events.request("a-1", "POST", "decide", "shop", 200, 0.0012345, 85, "k1")
    events.request("a-2", "GET", "", None, 404, 0.0, 10)
    events.close()
    first = {"at": "2023-11-14T22:13:20.062Z", "request": "a-1", "method": "POST", "route": "decide", "status": 200}
    assert read(stream) == [
        {**first, "ms": 1.234, "bytes": 85, "experiment": "shop", "key": "k1"},
        {**first, "request": "a-2", "method": "GET", "route": "", "status": 404, "ms": 0.0, "bytes": 10},
    ]


def test_the_time_in_a_line_follows_the_clock(stream):
    times = iter([5.875, 6.0, 7.5, 6.25])
    events = Events(stream, now=times.__next__)
    for _ in range(4):
        events.request("a", "GET", "health", None, 200, 0.0, 0)
    events.close()
    assert [line["at"][17:] for line in read(stream)] == ["05.875Z", "06.000Z", "07.500Z", "06.250Z"]


def test_whatever_the_fields_hold_it_stays_one_line(stream, events):
    events.request("a\n1", 'G"ET', "health", "sh\x00op", 200, 0.0, 0)
    assert len(stream.getvalue().splitlines()) == 1
    assert read(stream)[0]["method"] == 'G"ET'


def test_a_quiet_log_says_nothing_of_requests_and_all_of_events(stream):
    events = Events(stream, quiet=True)
    events.request("a", "GET", "health", None, 200, 0.0, 0)
    events.say("started", port=8000)
    events.close()
    assert [line["event"] for line in read(stream)] == ["started"]


def test_lines_wait_for_each_other_in_a_loop_and_are_written_soon(stream, lines, monkeypatch):
    monkeypatch.setattr("bough.service.access._DELAY", 0.01)

    async def writing():
        for i in range(100):
            lines.write(b"%d" % i)
        at_once = stream.getvalue()
        while not stream.getvalue():
            await asyncio.sleep(0.005)
        lines.write(b"later")
        while not stream.getvalue().endswith(b"later\n"):
            await asyncio.sleep(0.005)
        return at_once

    assert asyncio.run(writing()) == b""
    assert stream.getvalue() == b"\n".join(b"%d" % i for i in range(100)) + b"\nlater\n"


def test_what_waits_has_a_limit(stream, lines):
    async def writing():
        for _ in range(1_000):
            lines.write(1_000 * b"a")

    asyncio.run(writing())
    assert len(stream.getvalue()) > 900_000


def test_without_a_loop_a_line_is_written_at_once(stream, lines):
    lines.write(b"one")
    assert stream.getvalue() == b"one\n"


def test_threads_lose_no_line(stream, lines):
    def write(name):
        for i in range(500):
            lines.write(b"%d %d" % (name, i))

    async def writing():
        threads = [threading.Thread(target=write, args=[name]) for name in range(4)]
        for thread in threads:
            thread.start()
        for i in range(500):
            lines.write(b"9 %d" % i)
            await asyncio.sleep(0)
        for thread in threads:
            await asyncio.to_thread(thread.join)

    asyncio.run(writing())
    lines.flush()
    assert sorted(stream.getvalue().split(b"\n")[:-1]) == sorted(
        b"%d %d" % (a, b) for a in (*range(4), 9) for b in range(500)
    )


def test_what_waits_at_exit_is_written():
    script = """
import asyncio, os
from bough.service.access import Events
async def main():
    Events().request("last", "GET", "health", None, 200, 0.0, 0)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=os.environ)
    assert json.loads(done.stderr)["request"] == "last"


def test_a_stream_that_is_gone_stops_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb", buffering=0) as stream:
        lines = LineWriter(stream)
        lines.write(b"nobody reads this")
        lines.close()
    closed = LineWriter(stream)
    closed.write(b"nor this")
    closed.close()


PRIVATE = "age" + " 37"


def failed_in_a_chain():
    try:
        try:
            raise KeyError(PRIVATE)
        except KeyError as error:
            raise ValueError(PRIVATE) from error
    except ValueError as error:
        return error


def test_an_error_of_the_service_has_its_traceback_in_one_line(stream, events):
    events.failed("no snapshot", failed_in_a_chain())
    (line,) = read(stream)
    assert (line["event"], line["message"], line["error"]) == ("error", "no snapshot", "ValueError")
    assert line["traceback"].count(PRIVATE) == 2
    assert "failed_in_a_chain" in line["traceback"]


def test_an_error_of_a_request_says_where_and_not_what(stream, events):
    events.failed("a request failed", failed_in_a_chain(), request_id="a-7")
    (line,) = read(stream)
    assert line["request"] == "a-7"
    assert PRIVATE not in str(line)
    assert line["traceback"].count("failed_in_a_chain") == 2
    assert line["traceback"].index("KeyError\n") < line["traceback"].index("ValueError\n")


def test_an_event_may_hold_anything(stream, events):
    events.say("odd", what=object, path=1 + 2j, text="a\nb")
    assert read(stream)[0]["text"] == "a\nb"
