"""A request is sent again where that can help, with the same id, and does nothing twice."""

import asyncio
import json
import re
import socket
import threading
from dataclasses import replace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough import client as errors
from bough.client import AsyncClient, Client, calls, changing
from bough.client.limits import LONG_TIMEOUT
from bough.client.retrying import Failure, Patience, Send, Wait, exchange
from scripted_server import DONE_DROPPED, DONE_HALF, DONE_SILENT, DROPPED, GARBAGE, Answer, problem
from threads import in_threads

PASSING = {
    "dropped before": (DROPPED, False),
    "dropped after": (DONE_DROPPED, True),
    "half an answer": (DONE_HALF, True),
    "no HTTP": (GARBAGE, False),
    "not replayed": (problem("not-replayed", 503), False),
    "starting": (problem("starting", 503, {"retry-after": "5"}), False),
    "not written": (problem("not-written", 503, {"retry-after": "1"}), False),
    "overloaded": (problem("overloaded", 503, {"retry-after": "2"}), False),
    "too fast": (problem("too-fast", 429, {"retry-after": "3"}), False),
    "too slow": (problem("too-slow", 408), False),
    "a proxy's 502": (Answer(502, b"<html>Bad Gateway</html>"), False),
    "a proxy's 504": (Answer(504, b""), False),
    "a broken gzip": (Answer(200, b"no gzip", {"content-encoding": "gzip"}), False),
    "500 that says when": (problem("internal", 500, {"retry-after": "1"}), False),
}


@pytest.mark.parametrize("what", PASSING)
def test_a_decision_is_sent_again_with_its_id_and_made_once(ask, server, what):
    move, was_done = PASSING[what]
    server.script = [move, move]
    decided = ask(lambda client: client.decide())
    assert [request.path for request in server.requests] == ["/v1/shop/decide"] * 3
    assert {request.content for request in server.requests} == {server.requests[0].content}
    assert list(server.service.decisions) == [decided.decision_id]
    assert decided.action == "kettle"
    assert decided.replayed == was_done
    assert len(ask.waits) == 2


def test_a_decision_without_an_answer_in_time_is_asked_for_again(ask, server):
    server.script = [DONE_SILENT]
    decided = ask(lambda client: client.decide(), timeout=0.2, retries=20)
    assert decided.replayed
    assert len(server.requests) >= 2  # on a busy machine the next answer may be late as well
    assert all(request.body == {"decision_id": decided.decision_id} for request in server.requests)


@pytest.mark.parametrize("move", [DONE_DROPPED, DONE_HALF, problem("not-written", 503)])
def test_a_reward_is_given_once_however_often_it_is_sent(ask, server, move):
    server.script = [move, move]
    assert ask(lambda client: client.reward("d1", 0.5)).status == "learned"
    assert len(server.requests) == 3
    assert server.service.rewards == {("d1", 0, ""): 0.5}


def test_rewards_of_a_batch_are_given_once_however_often_they_are_sent(ask, server):
    server.script = [DONE_DROPPED]
    results = ask(lambda client: client.rewards([("d1", 1.0), ("d2", 0.0)]))
    assert [one.replayed for one in results] == [True, True]
    assert len(server.requests) == 2


def test_every_decision_has_an_id_of_its_own():
    made = {json.loads(calls.decide().content)["decision_id"] for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in made)


LASTING = {
    "500": (problem("internal", 500), errors.InternalError),
    "no model": (problem("no-model", 503), errors.UnavailableError),
    "422": (problem("invalid-value", 422), errors.InvalidValueError),
    "409": (problem("same-id", 409), errors.SameIdError),
    "404": (problem("unknown-experiment", 404), errors.UnknownExperimentError),
    "401": (problem("no-key", 401), errors.NoKeyError),
    "another service": (Answer(200, b"<html>Welcome</html>"), errors.AnswerError),
    "redirect": (Answer(307, b"", {"location": "https://elsewhere"}), errors.ServiceError),
    "an hour": (problem("too-fast", 429, {"retry-after": "3600"}), errors.TooManyRequestsError),
}


@pytest.mark.parametrize("what", LASTING)
def test_what_does_not_pass_is_sent_once(ask, server, what):
    move, expected = LASTING[what]
    server.script = [move]
    with pytest.raises(expected) as caught:
        ask(lambda client: client.decide())
    assert (len(server.requests), caught.value.tries, ask.waits) == (1, 1, [])


def test_it_gives_up_after_so_many_retries(ask, server):
    server.script = [problem("overloaded", 503)] * 9
    with pytest.raises(errors.UnavailableError, match=r"^r3: a detail \(3 tries\)$") as caught:
        ask(lambda client: client.decide(), retries=2)
    assert (len(server.requests), caught.value.tries) == (3, 3)


def test_without_retries_it_is_sent_once(ask, server):
    server.script = [DROPPED]
    with pytest.raises(errors.ServiceConnectionError):
        ask(lambda client: client.decide(), retries=0)
    assert len(server.requests) == 1


# -- how long it waits -----------------------------------------------------------------------------


def test_delays_double_up_to_a_limit_and_are_random_from_nothing_on(ask, server):
    server.script = [DROPPED] * 8
    ask(lambda client: client.decide(), retries=8, deadline=None)
    assert ask.waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    ask.waits.clear()
    server.script = [DROPPED] * 3
    ask(lambda client: client.decide(), jitter=0.0)
    assert ask.waits == [0.0, 0.0, 0.0]


def test_it_waits_at_least_as_long_as_the_service_asks(ask, server):
    server.script = [problem("too-fast", 429, {"retry-after": "2"}), problem("overloaded", 503, {"retry-after": "5"})]
    ask(lambda client: client.decide(), jitter=0.5)
    assert ask.waits == [2.05, 5.1]


def test_a_wait_of_sixty_seconds_is_obeyed_and_a_longer_one_is_not_waited_for(ask, server):
    server.script = [problem("too-fast", 429, {"retry-after": "60"})]
    ask(lambda client: client.decide(), deadline=600.0)
    assert ask.waits == [60.1]
    server.script = [problem("too-fast", 429, {"retry-after": "61"})]
    with pytest.raises(errors.TooManyRequestsError) as caught:
        ask(lambda client: client.decide(), deadline=600.0)
    assert caught.value.retry_after == 61.0
    assert ask.waits == [60.1]


def test_a_service_that_starts_is_asked_again_as_long_as_there_is_time_however_few_the_retries(ask, server):
    server.script = [problem("starting", 503, {"retry-after": "5"})] * 9
    assert ask(lambda client: client.decide(), retries=1, jitter=0.0, deadline=600.0).action
    assert ask.waits == [5.0] * 9
    server.script = [problem("starting", 503, {"retry-after": "5"})] * 2
    with pytest.raises(errors.UnavailableError):
        ask(lambda client: client.decide(), retries=0)
    assert len(server.requests) == 11


def test_nothing_is_waited_for_that_comes_after_the_deadline(ask, server):
    server.script = [problem("too-fast", 429, {"retry-after": "40"})]
    with pytest.raises(errors.TooManyRequestsError):
        ask(lambda client: client.decide(), deadline=30.0)
    assert ask.waits == []


# -- what must not be done twice -------------------------------------------------------------------

UNSAFE = {"add": lambda client: client.add("juicer", under="kitchen"), "refit": lambda client: client.refit()}


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize(
    "move", [DROPPED, DONE_DROPPED, DONE_HALF, Answer(502, b""), Answer(503, b""), problem("not-written", 503)]
)
def test_a_change_that_may_have_been_made_is_not_sent_again(ask, server, what, move):
    server.script = [move]
    with pytest.raises(errors.ServiceError):
        ask(UNSAFE[what])
    assert len(server.requests) == 1


@pytest.mark.parametrize("what", UNSAFE)
@pytest.mark.parametrize(
    ("code", "status"), [("too-fast", 429), ("overloaded", 503), ("not-replayed", 503), ("starting", 503)]
)
def test_a_change_that_was_surely_not_made_is_sent_again(ask, server, what, code, status):
    server.script = [problem(code, status)]
    ask(UNSAFE[what])
    assert len(server.requests) == 2


# -- the way there ---------------------------------------------------------------------------------


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize("work", [lambda client: client.decide(), lambda client: client.refit()])
def test_where_nobody_listens_it_is_tried_again_and_the_error_is_a_connection_error(ask, work):
    ask.url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=r"see whether the service runs there \(3 tries\)") as caught:
        ask(work, retries=2)
    assert isinstance(caught.value, errors.ServiceConnectionError)
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert len(ask.waits) == 2


def test_no_answer_in_time_is_a_timeout_error(ask, server):
    server.script = [DONE_SILENT] * 2
    with pytest.raises(TimeoutError, match=r"decide was not answered within 0.1 s \(ReadTimeout\) \(2 tries\)"):
        ask(lambda client: client.decide(), timeout=0.1, retries=1)


def test_one_connection_serves_many_requests(server):
    with Client(server.url, experiment="shop") as client:
        for _ in range(30):
            client.reward(client.decide(), 1.0)
        server.script = [problem("overloaded", 503)]
        client.decide()
    assert server.accepted == 1


@pytest.mark.parametrize("move", [DROPPED, DONE_DROPPED, DONE_HALF, GARBAGE, DONE_SILENT, problem("overloaded", 503)])
def test_failed_tries_leave_no_connection_open(server, move):
    timeout = 0.2 if move == DONE_SILENT else 10.0
    with Client(server.url, experiment="shop", timeout=timeout, retries=20, sleep=lambda _: None) as client:
        server.script = [move] * 3
        client.decide()
        pool = client._http._transport._pool
        assert len(pool.connections) == 1
        assert all(connection.is_idle() for connection in pool.connections)
    server.released.set()
    server.wait_for(lambda: not server.open)


def test_a_closed_client_leaves_no_connection_open(server):
    async def main():
        async with AsyncClient(server.url, experiment="shop") as client:
            await asyncio.gather(*[client.decide() for _ in range(5)])

    asyncio.run(main())
    server.wait_for(lambda: not server.open)
    with Client(server.url, experiment="shop") as client:
        client.decide()
    server.wait_for(lambda: not server.open)
    assert len(server.requests) == 6


def test_a_client_of_httpx_that_was_given_is_left_open(server):
    with httpx.Client() as http:
        with Client(server.url, experiment="shop", http=http) as client:
            client.decide()
        assert not http.is_closed
        assert client.decide().action == "kettle"


def test_many_threads_use_one_client(server):
    found, lock = [], threading.Lock()

    def work():
        for _ in range(20):
            decided = client.decide()
            client.reward(decided, 1.0)
            with lock:
                found.append(decided.decision_id)

    with Client(server.url, experiment="shop", timeout=20.0) as client:
        in_threads(*[work] * 8)
    assert len(set(found)) == 160
    assert set(found) == set(server.service.decisions) == {decision for decision, _, _ in server.service.rewards}


# -- the rule itself, without a server -------------------------------------------------------------

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1/shop/decide")


def response(status, retry_after=None):
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    body = {"type": "urn:bough:problem:overloaded", "detail": "busy"}
    return httpx.Response(status, json=body, headers=headers, request=REQUEST)


failures = st.builds(Failure, st.just(errors.ServiceConnectionError("broken")), st.booleans())
responses = st.builds(
    response, st.sampled_from([200, 404, 408, 429, 500, 502, 503, 504]), st.none() | st.integers(0, 90)
)


@given(
    outcomes=st.lists(st.tuples(failures | responses, st.floats(0.0, 5.0)), min_size=12, max_size=12),
    retries=st.integers(0, 10),
    deadline=st.floats(0.1, 100.0),
    jitter=st.floats(0.0, 1.0),
    is_safe=st.booleans(),
)
def test_whatever_happens_tries_and_time_are_within_limits(outcomes, retries, deadline, jitter, is_safe):
    now, sent, timeouts = 0.0, [], []
    patience = Patience(2.0, retries, deadline, lambda: jitter, lambda: now)
    call = replace(calls.decide(), is_repeatable=is_safe)
    steps, found = exchange(call, patience), None
    may_be_done = False
    try:
        while True:
            step = steps.send(found)
            if isinstance(step, Wait):
                assert now + step.seconds < deadline
                now, found = now + step.seconds, None
                continue
            assert isinstance(step, Send)
            assert is_safe or not may_be_done
            assert step.timeout <= max(2.0, deadline)
            found, took = outcomes[len(sent)]
            sent.append(step.call.content)
            timeouts.append(step.timeout)
            now += min(took, step.timeout)
            may_be_done |= found.may_have_arrived if isinstance(found, Failure) else False
    except (StopIteration, errors.ServiceError):
        pass
    assert 1 <= len(sent) <= retries + 1
    assert set(sent) == {call.content}
    assert now <= deadline + (0.01 if len(sent) > 1 else 0.0)


def test_what_takes_long_is_given_the_time_for_it():
    patience = Patience(2.0, 4, 30.0, lambda: 1.0, lambda: 0.0)
    assert next(exchange(changing.refit(), patience)).timeout == LONG_TIMEOUT
    assert next(exchange(calls.decide(), patience)).timeout == 2.0
