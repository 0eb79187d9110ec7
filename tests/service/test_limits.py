"""Limits: rates, sizes and times."""

import asyncio

import pytest

from bough.service.limits import ClientGoneError, RateLimits, body_limits, read_body
from bough.service.problems import Problem
from bough.service.records import KeyRow
from bough.service.routes import ROUTES
from bough.service.settings import Settings


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def key(id="k1", rate=None):
    return KeyRow(id, b"", ["read"], None, rate, 0.0)


def allowed(limits, of, n):
    """How many of n requests get through."""
    count = 0
    for _ in range(n):
        try:
            limits.take(of)
            count += 1
        except Problem as problem:
            if problem.code != "too-fast":
                raise
    return count


def test_a_key_may_use_its_burst_at_once_and_then_its_rate():
    clock = Clock()
    limits = RateLimits(rate=10.0, burst=2.0, clock=clock)
    assert allowed(limits, key(), 100) == 20
    clock.now += 0.55
    assert allowed(limits, key(), 100) == 5
    clock.now += 1_000.0
    assert allowed(limits, key(), 100) == 20


def test_in_the_long_run_the_rate_holds_exactly():
    clock = Clock()
    limits = RateLimits(rate=8.0, burst=0.125, clock=clock)
    count = 0
    for _ in range(3_200):
        count += allowed(limits, key(), 1)
        clock.now += 1 / 32
    assert count == 800


def test_keys_do_not_share_a_bucket_and_a_rate_of_ones_own_counts():
    limits = RateLimits(rate=10.0, burst=1.0, clock=Clock())
    assert allowed(limits, key("k1"), 50) == 10
    assert allowed(limits, key("k2"), 50) == 10
    assert allowed(limits, key("k3", rate=3.0), 50) == 3
    assert allowed(limits, key("k4", rate=0.25), 50) == 1


def test_a_refused_request_costs_nothing():
    clock = Clock()
    limits = RateLimits(rate=1.0, burst=1.0, clock=clock)
    assert allowed(limits, key(), 1_000) == 1
    clock.now += 1.0
    assert allowed(limits, key(), 1) == 1


@pytest.mark.parametrize(("rate", "header"), [(10.0, "1"), (0.5, "2"), (0.3, "4"), (0.01, "100")])
def test_retry_after_is_in_whole_seconds_and_long_enough(rate, header):
    clock = Clock()
    limits = RateLimits(rate=rate, burst=0.1, clock=clock)
    limits.take(key())
    with pytest.raises(Problem) as caught:
        limits.take(key())
    assert caught.value.headers == {"retry-after": header}
    clock.now += int(header)
    limits.take(key())


def test_a_rate_of_zero_is_no_limit():
    limits = RateLimits(rate=0.0, burst=1.0, clock=Clock())
    assert allowed(limits, key(), 1_000) == 1_000
    assert len(limits) == 0


def test_the_table_of_buckets_stays_small_and_keeps_those_in_use():
    clock = Clock()
    limits = RateLimits(rate=1.0, burst=1.0, most=10, clock=clock)
    for i in range(1_000):
        clock.now += 0.01
        allowed(limits, key(f"k{i}"), 1)
        allowed(limits, key("busy"), 1)
        assert len(limits) <= 10
    assert allowed(limits, key("k999"), 1) == 0


def test_every_route_with_a_body_has_a_limit_and_files_a_large_one():
    limits = body_limits(Settings(body_bytes=1_000, batch_bytes=2_000, file_bytes=3_000))
    assert set(limits) == {name for name, route in ROUTES.items() if route.body is not None}
    assert (limits["decide"], limits["rewards"], limits["put_tree"], limits["put_model"]) == (
        1_000,
        2_000,
        3_000,
        3_000,
    )


def sent(*pieces, then_stall=False, gone=False):
    """A `receive` that gives these pieces."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if messages and not then_stall and not gone:
        messages[-1]["more_body"] = False
    if gone:
        messages.append({"type": "http.disconnect"})
    left = iter(messages)

    async def receive():
        for message in left:
            return message
        return await asyncio.Event().wait()

    receive.left = left
    return receive


def read(receive, length=None, limit=100, seconds=5.0):
    return asyncio.run(read_body(receive, length, limit, seconds))


@pytest.mark.parametrize("pieces", [[b""], [b"abc"], [b"ab", b"c"], [b"", b"ab", b"", b"c"], [100 * b"a"]])
def test_a_body_is_read_in_whatever_pieces_it_comes(pieces):
    assert read(sent(*pieces)) == b"".join(pieces)


@pytest.mark.parametrize("pieces", [[b"abc"], [b"ab", b"", b"c"]])
def test_a_body_is_read_also_where_each_piece_is_waited_for(pieces):
    receive = sent(*pieces)

    async def later():
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(0.001, event.set)
        await event.wait()
        await asyncio.sleep(0)
        return await receive()

    assert read(later) == b"abc"


def test_a_receive_that_fails_after_a_wait_fails_the_read():
    async def failing():
        await asyncio.sleep(0.001)
        raise OSError("reset")

    with pytest.raises(OSError, match="reset"):
        read(failing)


def test_a_message_without_a_body_is_an_empty_one():
    async def receive():
        return {"type": "http.request"}

    assert read(receive) == b""


@pytest.mark.parametrize("length", [b"101", b"9" * 18, b"9" * 5_000])
def test_a_length_that_is_too_large_is_refused_before_anything_is_read(length):
    receive = sent(b"a")
    with pytest.raises(Problem) as caught:
        read(receive, length)
    assert (caught.value.status, caught.value.headers) == (413, {"connection": "close"})
    assert len(list(receive.left)) == 1


@pytest.mark.parametrize("pieces", [[101 * b"a"], [60 * b"a", 41 * b"a", b"never read"]])
@pytest.mark.parametrize("length", [None, b"3"])
def test_a_body_is_refused_as_soon_as_it_is_too_large_whatever_its_length_says(pieces, length):
    receive = sent(*pieces)
    with pytest.raises(Problem) as caught:
        read(receive, length)
    assert caught.value.code == "too-large"
    assert all(message["body"] == b"never read" for message in receive.left)


def test_a_body_of_exactly_the_limit_is_taken():
    assert read(sent(100 * b"a"), b"100") == 100 * b"a"


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"a", b"b"]])
def test_a_body_that_stalls_is_given_up(pieces):
    with pytest.raises(Problem) as caught:
        read(sent(*pieces, then_stall=True), seconds=0.02)
    assert (caught.value.status, caught.value.headers) == (408, {"connection": "close"})


def read_by_the_clock(piece, every, n):
    """Read n pieces, one every so many seconds of a clock that does not wait; ten seconds are allowed."""
    clock, left = Clock(), iter(range(n - 1, -1, -1))

    async def receive():
        clock.now += every
        for _ in range(3):
            await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": next(left) > 0}

    with asyncio.Runner() as runner:
        runner.get_loop().time = clock
        return runner.run(read_body(receive, None, 10**9, 10.0))


def test_a_trickle_does_not_buy_time():
    assert read_by_the_clock(b"a", every=1.0, n=9) == 9 * b"a"
    with pytest.raises(Problem) as caught:
        read_by_the_clock(b"a", every=1.0, n=12)
    assert caught.value.code == "too-slow"


def test_each_further_mebibyte_does():
    half = (1 << 19) * b"a"
    assert read_by_the_clock(half, every=4.0, n=12) == 12 * half
    with pytest.raises(Problem) as caught:
        read_by_the_clock(half, every=6.0, n=12)
    assert caught.value.code == "too-slow"


@pytest.mark.parametrize("pieces", [[], [b"a"]])
def test_a_client_that_is_gone_is_not_waited_for(pieces):
    with pytest.raises(ClientGoneError):
        read(sent(*pieces, gone=True))


def test_a_cancellation_from_elsewhere_is_not_taken_for_slowness():
    async def cancelled():
        task = asyncio.create_task(read_body(sent(then_stall=True), None, 100, 5.0))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


def test_a_request_that_was_given_up_can_still_be_answered():
    async def answered():
        with pytest.raises(Problem):
            await read_body(sent(then_stall=True), None, 100, 0.01)
        await asyncio.sleep(0.02)
        return asyncio.current_task().cancelling()

    assert asyncio.run(answered()) == 0
