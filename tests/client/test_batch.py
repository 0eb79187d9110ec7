"""Rewards in batches: each is taken, waits, or is in an error that is raised."""

import asyncio
import threading

import pytest

from bough.client import AsyncClient, Client, RewardsError, ServiceConnectionError, UnknownDecisionError
from bough.client.answers import Rewarded
from bough.client.buffer import Buffer
from scripted_server import DONE_DROPPED, DROPPED, WAIT, problem
from threads import in_threads

LATER = 600.0  # seconds that no test waits


@pytest.fixture(params=["sync", "async"])
def collect(request, server):
    """Give rewards to a batch of one kind of client."""

    def sync(rows, size, seconds, retries, then):
        with Client(server.url, experiment="shop", retries=retries, sleep=lambda _: None) as client:
            with client.batch(size=size, seconds=seconds) as batch:
                for row in rows:
                    batch.reward(*row)
                then()
            return batch.taken

    def asynchronous(*given):
        async def sleep(_):
            pass

        async def main(rows, size, seconds, retries, then):
            async with AsyncClient(server.url, experiment="shop", retries=retries, sleep=sleep) as client:
                async with client.batch(size=size, seconds=seconds) as batch:
                    for row in rows:
                        await batch.reward(*row)
                    await asyncio.to_thread(then)
                return batch.taken

        return asyncio.run(main(*given))

    chosen = sync if request.param == "sync" else asynchronous

    def collecting(rows, size=100, seconds=LATER, retries=2, then=lambda: None):
        return chosen(rows, size, seconds, retries, then)

    return collecting


def sent(server):
    return [[row["decision_id"] for row in request.body["rewards"]] for request in server.requests]


def test_rewards_are_sent_when_there_are_enough_and_the_rest_at_the_end(collect, server):
    seen = []
    rows = [(f"d{i}", 1.0) for i in range(5)]
    assert collect(rows, size=2, then=lambda: seen.extend(sent(server))) == 5
    assert seen == [["d0", "d1"], ["d2", "d3"]]
    assert sent(server) == [*seen, ["d4"]]


def test_a_reward_does_not_wait_longer_than_so_many_seconds(collect, server):
    def then():
        server.wait_for(lambda: server.requests)
        assert sent(server) == [["d1"]]

    assert collect([("d1", 1.0)], seconds=0.05, then=then) == 1


def test_no_rewards_are_no_request(collect, server):
    assert collect([], seconds=0.01) == 0
    assert server.requests == []


def test_a_batch_is_sent_again_and_taken_once(collect, server):
    server.script = [DONE_DROPPED, problem("overloaded", 503)]
    assert collect([("d1", 1.0), ("d2", 2.0)]) == 2
    assert sent(server) == [["d1", "d2"]] * 3
    assert server.service.rewards == {("d1", 0, ""): 1.0, ("d2", 0, ""): 2.0}


def test_a_reward_that_is_refused_is_raised_at_the_end_and_the_others_are_taken(collect, server):
    with pytest.raises(RewardsError, match="1 reward was not taken: that of decision 'unknown1'") as caught:
        collect([("d1", 1.0), ("unknown1", 2.0), ("d2", 3.0)])
    [(row, error)] = caught.value.failed
    assert row == {"decision_id": "unknown1", "value": 2.0}
    assert isinstance(error, UnknownDecisionError)
    assert (caught.value.status, caught.value.code) == (404, "unknown-decision")
    assert set(server.service.rewards) == {("d1", 0, ""), ("d2", 0, "")}


def test_rewards_that_cannot_be_sent_are_raised_with_what_is_wrong(collect, server):
    server.script = [DROPPED] * 3
    with pytest.raises(RewardsError, match="2 rewards were not taken: the first is that of decision 'd0'") as caught:
        collect([(f"d{i}", float(i)) for i in range(3)], size=2)
    assert [row["decision_id"] for row, _ in caught.value.failed] == ["d0", "d1"]
    assert all(isinstance(error, ServiceConnectionError) and error.tries == 3 for _, error in caught.value.failed)
    assert not server.service.rewards


def test_what_failed_in_the_background_is_raised_by_the_end(collect, server):
    server.script = [DROPPED]
    with pytest.raises(RewardsError) as caught:
        collect([("d1", 1.0)], seconds=0.05, retries=0, then=lambda: server.wait_for(lambda: server.requests))
    assert [row["decision_id"] for row, _ in caught.value.failed] == ["d1"]


def test_an_error_within_the_statement_does_not_lose_rewards(collect, server):
    def then():
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        collect([("d1", 1.0)], then=then)
    assert sent(server) == [["d1"]]
    server.script = [DROPPED]
    with pytest.raises(RewardsError) as caught:
        collect([("d2", 1.0)], retries=0, then=then)
    assert isinstance(caught.value.__context__, LookupError)


def test_an_interrupt_stays_an_interrupt_and_says_what_was_not_taken(server):
    server.script = [DROPPED]

    def work():
        with Client(server.url, experiment="shop", retries=0) as client, client.batch(seconds=LATER) as batch:
            batch.reward("d1", 1.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert "1 reward was not taken: that of decision 'd1'" in caught.value.__notes__[0]


def test_a_cancelled_task_stays_cancelled_and_its_rewards_are_sent(server):
    async def main():
        async with AsyncClient(server.url, experiment="shop") as client, client.batch(seconds=LATER) as batch:
            await batch.reward("d1", 1.0)
            started.set()
            await asyncio.Event().wait()

    async def cancelling():
        task = asyncio.create_task(main())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = asyncio.Event()
    asyncio.run(cancelling())
    assert sent(server) == [["d1"]]


def test_a_bad_reward_is_refused_at_once_and_the_batch_goes_on(server):
    with Client(server.url, experiment="shop") as client, client.batch(seconds=LATER) as batch:
        with pytest.raises(ValueError, match="the reward is nan"):
            batch.reward("d1", float("nan"))
        batch.reward("d2", 1.0)
        assert len(batch) == 1
        batch.flush()
        assert (len(batch), batch.taken) == (0, 1)
    assert sent(server) == [["d2"]]


def test_a_batch_is_open_within_its_statement_only(server):
    with Client(server.url, experiment="shop") as client:
        batch = client.batch()
        with pytest.raises(ValueError, match="the batch is not open"):
            batch.reward("d1", 1.0)
        with batch:
            pass
        with pytest.raises(ValueError, match="the batch is closed"):
            batch.reward("d1", 1.0)
        with pytest.raises(ValueError, match="the batch has been used"):
            batch.__enter__()


def test_a_closed_client_loses_no_reward():
    client = Client("http://127.0.0.1:9", experiment="shop")
    batch = client.batch(seconds=LATER)

    def work():
        with batch:
            batch.reward("d1", 1.0)
            client.close()

    with pytest.raises(RuntimeError, match="closed"):
        work()
    assert len(batch) == 1


def test_many_threads_use_one_batch(server):
    before = set(threading.enumerate())

    def work(which):
        for i in range(100):
            batch.reward(f"d{which}-{i}", 1.0)

    with Client(server.url, experiment="shop", timeout=20.0) as client:
        with client.batch(size=7, seconds=0.01) as batch:
            in_threads(*[lambda which=which: work(which) for which in range(6)])
        assert batch.taken == 600
    assert len(server.service.rewards) == 600
    assert max(map(len, sent(server))) <= 7
    server.wait_for(lambda: not server.open)
    left = set(threading.enumerate()) - before
    for thread in left:  # the server ends the thread of a connection a moment after the connection itself
        thread.join(WAIT)
    assert not any(thread.is_alive() for thread in left)


def test_rewards_whose_request_was_broken_off_wait_again_in_their_order():
    buffer = Buffer(size=2)
    for name in "abc":
        buffer.add({"decision_id": name})
    taken = buffer.take()
    buffer.put_back(taken)
    assert [row["decision_id"] for row in buffer.take()] == ["a", "b"]
    buffer.settle(taken, [Rewarded("a", "learned"), UnknownDecisionError("no")])
    with pytest.raises(RewardsError):
        buffer.raise_failed()
    buffer.raise_failed()  # once
    assert (buffer.taken, len(buffer)) == (1, 1)
