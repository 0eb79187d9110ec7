"""Requests that no honest client sends: each gets its status, on both databases, and nothing breaks."""

import json
import socket

import pytest

from service_http import ask
from service_process import PATIENCE
from surface import CONTEXT, DATABASES, PATHS, done, surface


@pytest.fixture(scope="module", params=DATABASES)
def service(request, tmp_path_factory):
    with surface(tmp_path_factory.mktemp("odd"), request.param) as found:
        yield found
        said = [json.loads(line) for line in found.said().splitlines() if line.startswith("{")]
        assert not [line for line in said if line.get("event") == "error"]


def nested(depth):
    return b'{"context": {"age": 1, "device": ' + b"[" * depth + b"]" * depth + b"}}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 422, id="nothing"),
        pytest.param(b"null", 422, id="null"),
        pytest.param(b"[]", 422, id="an array"),
        pytest.param(b"{} {}", 422, id="two objects"),
        pytest.param(b"\xef\xbb\xbf{}", 422, id="a byte order mark"),
        pytest.param(b'{"among": ["\xff"]}', 422, id="not UTF-8"),
        pytest.param(b'{"among": ["\\ud800"]}', 422, id="half a surrogate pair"),
        pytest.param(b'{"among": ["\\ud800 tea"]}', 422, id="half a surrogate pair in a text"),
        pytest.param(b'{"among": ["\\u0000"]}', 422, id="NUL in a name"),
        pytest.param(b'{"among": [1180591620717411303424]}', 422, id="a name of 2^70"),
        pytest.param(b'{"among": [-9223372036854775809]}', 422, id="a name below -2^63"),
        pytest.param(b'{"among": ["' + b"x" * 100_000 + b'"]}', 422, id="a very long name"),
        pytest.param(b'{"among": []}', 422, id="among none"),
        pytest.param(b'{"among": ["tea/green", "tea/green"]}', 200, id="among one twice"),
        pytest.param(b'{"among": [true]}', 422, id="among true"),
        pytest.param(b'{"k": 6}', 422, id="more than there are"),
        pytest.param(b'{"k": 1, "k": 5}', 200, id="a field twice: the last one counts"),
        pytest.param(b'{"k": 1e2}', 422, id="an exponent where a whole number is"),
        pytest.param(b'{"k": 99999999999999999999999999}', 422, id="a huge number"),
        pytest.param(b'{"context": {"age": 1}}', 422, id="a context for a model without"),
        pytest.param(b'{"context": [1.0]}', 422, id="a vector for a model without"),
        pytest.param(b'{"decision_id": ""}', 422, id="an empty id"),
        pytest.param(b'{"decision_id": "a\\u0000"}', 422, id="NUL in an id"),
        pytest.param(b'{"decision_id": "a\\n"}', 422, id="a new line in an id"),
        pytest.param('{"decision_id": "ä"}'.encode(), 422, id="another letter in an id"),
        pytest.param(b'{"decision_id": "' + b"x" * 129 + b'"}', 422, id="a long id"),
        pytest.param(b'{"decision_id": "' + b"x" * 128 + b'"}', 200, id="an id of the greatest length"),
        pytest.param(b'{"Decision_id": "a"}', 422, id="a misspelt field"),
        pytest.param(nested(980), 422, id="deep"),
        pytest.param(nested(100_000), 422, id="very deep"),
        pytest.param(b" " * 1_048_570 + b"{}", 200, id="as large as may be"),
        pytest.param(b" " * 1_048_576 + b"{}", 413, id="too large"),
    ],
)
def test_odd_bodies(service, body, status):
    answer = service.ask("POST", "/v1/shop/decide", body)
    assert answer.status == status
    assert (answer.headers["content-type"] == "application/problem+json") == (status != 200)


@pytest.mark.parametrize(
    ("method", "path", "body", "detail", "remedy"),
    [
        ("POST", "/v1/shop/decide", {"decision_id": "a b"}, "decision_id has characters that it cannot have",
         "give 1 to 128 letters, digits and . _ : ~ - with a letter or digit first"),
        ("PUT", "/v1/shop", {"propensity": "allways"}, "propensity is 'allways'", "give 'always', 'asked' or 'later'"),
        ("POST", "/v1/shop/actions", {"op": "remove", "name": "x"}, "op is 'remove'",
         "give 'add', 'add_level', 'forget', 'move', 'restore' or 'retire'"),
        ("POST", "/v1/keys", {"scopes": ["reed"]}, "scopes[0] is 'reed'", "give 'admin', 'decide', 'read' or 'reward'"),
        ("POST", "/v1/shop/decide", b" ", "no body was sent", "send a JSON object, at least {}"),
        ("PUT", "/v1/shop", {"learning": "at_once", "default": 0}, "default is given, and learning is at_once",
         "give learning at_close and a window, or leave out default"),
        ("POST", "/v1/shop/decide", {"exclude": ["tea"]}, "'tea' is not an action but a category",
         "list its actions, such as 'tea/green'"),
        ("GET", "/v1/shop/top?order=worst", None, "order is 'worst'",
         "give 'mean', 'newest', 'retired' or 'uncertain'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words_with_what_would_be_right(service, method, path, body, detail, remedy):
    answer = service.ask(method, path, body)
    assert answer.status == 422
    assert detail in answer.body["detail"]
    assert answer.body["remedy"] == remedy


@pytest.mark.parametrize(
    ("context", "status"),
    [
        (CONTEXT, 200),
        (None, 422),
        ({}, 422),
        ([], 422),
        ([1.0, 2.0], 422),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 200),
        ({**CONTEXT, "more": 1}, 422),
        ({**CONTEXT, "\0": 1}, 422),
        ({"age": None, "device": None}, 422),
        ({"age": "33", "device": "phone"}, 422),
        ({"age": [33], "device": "phone"}, 422),
        ({"age": {}, "device": {}}, 422),
        ({"age": 1e308, "device": "phone"}, 422),
        ({"age": 10**400, "device": "phone"}, 422),
        ({"age": 2**70, "device": "phone"}, 422),
        ({"age": 33, "device": 2**70}, 200),
        ({"age": 33, "device": "\0"}, 200),
        ({"age": 33, "device": "\U0001f375"}, 200),
        ({"age": 33, "device": "x" * 100_000}, 200),
    ],
    ids=str,
)  # fmt: skip
def test_odd_contexts_are_refused_or_logged_and_learned_as_they_are(service, context, status):
    answer = service.ask("POST", "/v1/ads/decide", {"context": context, "k": 2, "propensity": True})
    assert answer.status == status
    if status == 200:
        id = answer.body["decision_id"]
        assert done(service, "POST", "/v1/ads/reward", {"decision_id": id, "value": 1})["status"] == "learned"
        assert done(service, "GET", f"/v1/ads/decisions/{id}")["context"] == context
        assert done(service, "GET", f"/v1/ads/decisions/{id}/explain")["action"] == answer.body["actions"][0]


@pytest.mark.parametrize("depth", [1, 2, 900, 970, 980, 985, 990, 1_000, 100_000])
def test_nothing_in_a_context_is_nested_or_what_was_read_once_might_be_too_deep_later(service, depth):
    answer = service.ask("POST", "/v1/ads/decide", nested(depth))
    assert (answer.status, answer.code) == (422, "invalid-body")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"value": 1e999}, 422),
        ({"value": 1.7e308}, 422),
        ({"value": -1.7e308}, 422),
        ({"value": 10**400}, 422),
        ({"value": "1"}, 422),
        ({"value": True}, 422),
        ({"value": None}, 422),
        ({"value": 1, "slot": 1}, 422),
        ({"value": 1, "slot": -1}, 422),
        ({"value": 1, "slot": 2**70}, 422),
        ({"value": 1, "trials": 2}, 422),
        ({"value": 1, "reward_id": "!close"}, 422),
        ({"value": 1, "reward_id": ""}, 422),
        ({"value": -0.0}, 200),
    ],
    ids=str,
)
def test_odd_rewards(service, fields, status):
    id = done(service, "POST", "/v1/shop/decide", {})["decision_id"]
    body = json.dumps({"decision_id": id, **fields}).replace("Infinity", "1e999").encode()
    assert service.ask("POST", "/v1/shop/reward", body).status == status


@pytest.mark.parametrize(
    "name", ["\0", "a\0b", "a" * 2_000, "\U0001f375", " ", "'; DROP TABLE decisions; --", 2**70, -1]
)
def test_actions_with_odd_names_are_decided_for_and_learned_from(service, name):
    done(service, "POST", "/v1/shop/actions", {"op": "add", "name": name, "under": "tea"})
    made = done(service, "POST", "/v1/shop/decide", {"among": [name]})
    assert made["action"] == name
    assert (
        done(service, "POST", "/v1/shop/reward", {"decision_id": made["decision_id"], "value": 1})["replayed"] is False
    )
    assert done(service, "GET", f"/v1/shop/decisions/{made['decision_id']}")["actions"] == [name]
    assert name in [node["name"] for node in done(service, "GET", "/v1/shop/top?k=100")["nodes"]]
    assert done(service, "GET", f"/v1/shop/decisions/{made['decision_id']}/explain")["nodes"]
    done(service, "POST", "/v1/shop/actions", {"op": "retire", "name": name})
    assert service.ask("POST", "/v1/shop/decide", {"among": [name]}).status == 422


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/sh%6fp", 200),
        ("/v1/shop/decisions/d%31", 200),
        ("/v1/shop/decisions/d1%00", 404),
        ("/v1/shop/decisions/%ff", 404),
        ("/v1/shop/decisions/d1%2Fexplain", 404),
        ("/v1/shop/decisions/" + "x" * 10_000, 404),
        ("/v1/shop%2Ftree", 404),
        ("/v1/../v1/shop", 404),
        ("//v1/shop", 404),
        ("/v1/shop/", 404),
        ("/v1/shop/tree?levels=1&levels=2", 422),
        ("/v1/shop/tree?levels", 422),
        ("/v1/shop/tree?levels=", 422),
        ("/v1/shop/tree?levels=0", 422),
        ("/v1/shop/tree?levels=one", 422),
        ("/v1/shop/tree?levels=%31", 200),
        ("/v1/shop/tree?node=%ff", 422),
        ("/v1/shop/tree?node=%00%00", 404),
        ("/v1/shop/tree?node=tea%2Fgreen", 200),
        ("/v1/shop/tree?node=9" + "9" * 5_000, 404),
        ("/v1/shop/tree?other=1", 422),
        ("/v1/shop/search?q=%00", 200),
        ("/v1/shop/search?q=" + "x" * 257, 422),
        ("/v1/shop/top?k=99999999999999999999999", 422),
        ("/v1/shop/export?since=nan", 422),
        ("/v1/shop/export?since=1e999", 422),
        ("/v1/shop/export?until=-1", 422),
        ("/v1/shop/export?" + "&".join(f"a{i}=1" for i in range(200)), 422),
        ("/v1/shop#fragment", 200),
    ],
    ids=lambda one: str(one)[:60],
)
def test_odd_addresses(service, path, status):
    assert service.ask("GET", path).status == status


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("HEAD", "/health", 200, None),
        ("HEAD", "/v1/shop/top", 200, None),
        ("HEAD", "/v1/shop/export", 200, None),
        ("HEAD", "/v1/shop/decide", 405, "POST"),
        ("OPTIONS", "/v1/shop/decide", 405, "POST"),
        ("PATCH", "/v1/shop", 405, "GET, HEAD, PUT"),
        ("TRACE", "/health", 405, "GET, HEAD"),
        ("PROPFIND", "/v1/shop/tree", 405, "GET, HEAD, PUT"),
    ],
)
def test_methods(service, method, path, status, allowed):
    answer = _raw(service, f"{method} {path} HTTP/1.1\r\nconnection: close\r\n{_key(service)}\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert _header(head, b"allow") == (allowed and allowed.encode())
    assert method != "HEAD" or body == b""


def _key(service):
    return f"host: test\r\nauthorization: Bearer {service.token}\r\n"


def _raw(service, head, body=b""):
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as one:
        one.sendall((head if isinstance(head, bytes) else head.encode()) + body)
        found = b""
        while piece := one.recv(1 << 16):
            found += piece
    return found


def _header(head, name):
    lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
    return next((value for key, _, value in lines if key.lower() == name), None)


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/json; charset=utf-8",
        "text/plain",
        "application/x-www-form-urlencoded",
        "nonsense",
    ],
)
def test_a_body_is_read_as_json_whatever_its_media_type_is_said_to_be(service, media):
    head = f"POST /v1/shop/decide HTTP/1.1\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: 7\r\n"
    assert _raw(service, f"{head}{_key(service)}\r\n", b'{"k":2}').startswith(b"HTTP/1.1 200")


def test_a_body_that_no_route_wants_is_passed_over(service):
    head = f"GET /v1/shop HTTP/1.1\r\ncontent-length: 70000\r\n{_key(service)}\r\n"
    after = f"GET /health HTTP/1.1\r\nconnection: close\r\n{_key(service)}\r\n".encode()
    assert _raw(service, head, b"x" * 70_000 + after).count(b"HTTP/1.1 200 OK") == 2


def test_a_client_that_asks_first_is_told_to_go_on_or_that_its_body_is_too_large(service):
    head = "POST /v1/shop/decide HTTP/1.1\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: {}\r\n"
    small = _raw(service, head.format(2) + _key(service) + "\r\n", b"{}")
    assert small.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert _raw(service, head.format(10**9) + _key(service) + "\r\n").startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(b"abc-123", True), (b"x" * 128, True), (b"x" * 129, False), (b"\xff\xfe", False), (b"a\tb", False), (b"", False),
     (b"a b", False)],
)  # fmt: skip
def test_a_request_goes_by_the_id_that_it_brings_or_by_one_of_its_own(service, sent, kept):
    answer = _raw(service, b"GET /health HTTP/1.1\r\nconnection: close\r\nx-request-id: " + sent + b"\r\n\r\n")
    found = _header(answer.partition(b"\r\n\r\n")[0], b"x-request-id")
    assert (found == sent) == kept
    assert found.isalnum() or kept


@pytest.mark.parametrize("size", [1, 5])
def test_an_id_that_a_server_made_cannot_be_used_for_another_request(service, size):
    made = done(service, "POST", "/v1/shop/decide", {"k": size})
    answer = service.ask("POST", "/v1/shop/decide", {"k": size, "decision_id": made["decision_id"]})
    assert (answer.status, answer.code) == (409, "same-id")


def test_the_whole_catalogue_can_be_asked_for(service):
    paths = [*PATHS, "water"]
    done(service, "PUT", "/v1/shop/tree", {"paths": paths})
    assert sorted(done(service, "POST", "/v1/shop/decide", {"k": 6})["actions"]) == sorted(paths)


def test_a_wrong_key_is_never_shown(service):
    token = "bough_thisisnotakeyandnobodyshallseeit"
    for path in ("/v1/shop", "/v1/keys", f"/v1/{token[:60]}"):
        answer = ask(service.port, token, "GET", path)
        assert answer.status == 401
        assert token[6:] not in json.dumps(answer.body) + json.dumps(answer.headers)
