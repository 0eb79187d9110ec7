"""What must not be seen: tokens, contexts and bodies in the log of the service; and answers by pages of others."""

import http.client
import io
import json
import secrets
from contextlib import closing

import pytest

from bough.service.access import Events
from bough.service.files import model_bytes
from bough.service.log.sqlite import SqliteLog
from bough.service.records import ChangeRow, OutcomeRow
from bough.service.service import Service
from bough.service.settings import Settings
from service_http import ask
from service_process import ServiceProcess
from surface import CONTEXT, DATABASES, done, plain_model, surface


@pytest.fixture(scope="module", params=DATABASES)
def session(request, tmp_path_factory):
    """A session in which a marker is wherever a client can put something, and all that the service said meanwhile."""
    marker = f"marker{secrets.token_hex(8)}"
    with surface(tmp_path_factory.mktemp("private"), request.param, quiet=False, keeper_interval=0.02) as service:
        said = _session(service, marker)
        service.stop()
        yield marker, said, service.said()


def _session(service, marker):
    """Have the service do and refuse all kinds of things; the answers."""
    context = {**CONTEXT, "device": marker}
    answers = [
        service.ask("POST", "/v1/ads/decide", {"context": context, "decision_id": "private", "propensity": True}),
        service.ask("POST", "/v1/ads/reward", {"decision_id": "private", "value": 1}),
        service.ask("POST", "/v1/ads/retract", {"decision_id": "private"}),
        service.ask("POST", "/v1/ads/decide", {"context": {**context, marker: marker}}),
        service.ask("POST", "/v1/ads/decide", {"context": {"age": marker, "device": marker}}),
        service.ask("POST", "/v1/ads/decide", {marker: marker}),
        service.ask("POST", "/v1/ads/decide", marker.encode()),
        service.ask("POST", "/v1/ads/decide", {"among": [marker], "context": context}),
        service.ask("POST", "/v1/shop/decide", {"context": context}),
        service.ask("POST", "/v1/shop/reward", {"decision_id": marker, "value": 1}),
        service.ask("POST", "/v1/shop/rewards", {"rewards": [{"decision_id": marker, "value": 1}] * 3}),
        service.ask("PUT", "/v1/ads/model", marker.encode()),
        service.ask("PUT", "/v1/ads/tree", {"paths": [marker], "renamed": {marker: marker}}),
        service.ask("GET", f"/v1/ads/decisions/{marker}"),
        service.ask("GET", "/v1/ads/decisions/private"),
        service.ask("GET", "/v1/ads/decisions/private/explain"),
        service.ask("GET", "/v1/ads/export"),
        service.ask("GET", f"/v1/ads/search?q={marker}"),
        service.ask("GET", f"/{marker}"),
        service.ask("POST", "/v1/ads/evaluate", {"estimators": [marker]}),
        service.ask("POST", "/v1/ads/refit", {}),
    ]
    for token in (f"bough_{marker}", marker, f"{marker} {marker}"):
        answers.append(ask(service.port, token, "GET", "/v1"))
        assert answers[-1].status == 401
        assert marker not in json.dumps([answers[-1].body, answers[-1].headers])
    made = done(service, "POST", "/v1/keys", {"scopes": ["read"]})
    answers += [ask(service.port, made["token"], "POST", "/v1/ads/decide", context), service.ask("GET", "/v1/keys")]
    assert made["token"] not in json.dumps([answer.body for answer in answers[-2:]])
    return [*answers, made["token"], service.token]


def test_the_session_was_one_of_answers_and_refusals(session):
    statuses = {answer.status for answer in session[1][:-2]}
    assert {200, 202, 401, 403, 404, 422} <= statuses
    assert max(statuses) < 500


def test_no_context_body_or_token_is_in_the_log(session):
    marker, answers, said = session
    lines = [line for line in said.splitlines() if not line.startswith("key ")]
    assert len(lines) > 25
    for secret in (marker, *answers[-2:]):
        assert not [line for line in lines if secret in line]


def test_every_line_of_the_log_is_json(session):
    for line in session[2].splitlines():
        assert line.startswith("key ") or {"at"} < set(json.loads(line))


def test_a_model_that_contexts_no_longer_go_with_has_them_in_no_line_either(tmp_path):
    marker = f"marker{secrets.token_hex(8)}"
    with surface(tmp_path, "sqlite", quiet=False, keeper_interval=0.02) as service:
        body = {"context": {**CONTEXT, "device": marker}, "decision_id": "before"}
        done(service, "POST", "/v1/ads/decide", body)
        service.ask("PUT", "/v1/ads/model", model_bytes(plain_model()))
        service.ask("POST", "/v1/ads/reward", {"decision_id": "before", "value": 1})
        service.stop()
        assert marker not in service.said()


def test_why_something_could_not_be_learned_is_not_in_the_log_where_it_may_name_a_context(tmp_path):
    stream = io.BytesIO()
    with closing(SqliteLog(tmp_path)) as log:
        service = Service(log, Settings(), Events(stream))
        row = OutcomeRow(1, "d1", 0, "", 0.0, "reward", 1.0, None, None, "tea", {"age": "marker"}, 0.0, True, 0, 7)
        change = ChangeRow(1, 0.0, "action", "key", {}, 0, 8)
        service.heard([row], [(row.position, "the context's 'age' is 'marker'")])
        service.heard([change], [(change.position, "there is no action 'mate'")])
    [about_row, about_change] = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (about_row["seq"], about_row["event"]) == (7, "quarantined")
    assert "marker" not in json.dumps(about_row)
    assert about_change["why"] == "there is no action 'mate'"
    assert service.refusals[row.position] == "the context's 'age' is 'marker'"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with ServiceProcess(tmp_path_factory.mktemp("plain"), model=plain_model()) as found:
        yield found


@pytest.mark.parametrize("path", ["/health", "/v1/shop", "/nowhere", "/openapi.json", "/v1/shop/export"])
def test_no_answer_is_kept_by_caches_or_taken_for_something_else(plain, path):
    headers = plain.ask("GET", path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def origins(service, origin):
    """The headers of an answer, and of the question whether one may ask, for a page from somewhere else."""
    found = []
    for method, more in (("GET", {}), ("OPTIONS", {"access-control-request-method": "POST"})):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request(method, "/health", headers={"origin": origin, **more})
        answer = connection.getresponse()
        answer.read()
        found.append({name.lower(): value for name, value in answer.getheaders()})
        connection.close()
    return found


def test_pages_of_others_may_not_call_the_service_unless_that_is_asked_for(plain):
    for headers in origins(plain, "https://shop.example"):
        assert not [name for name in headers if name.startswith("access-control-")]


def test_pages_of_the_origins_that_were_given_may_call_the_service_and_no_others(tmp_path):
    with ServiceProcess(tmp_path, model=plain_model(), cors=("https://shop.example",)) as service:
        answer, asked = origins(service, "https://shop.example")
        assert answer["access-control-allow-origin"] == "https://shop.example"
        assert "x-request-id" in answer["access-control-expose-headers"].lower()
        assert asked["access-control-allow-origin"] == "https://shop.example"
        assert "authorization" in asked["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in answer
        answer, asked = origins(service, "https://other.example")
        assert "access-control-allow-origin" not in answer
        assert "access-control-allow-origin" not in asked
