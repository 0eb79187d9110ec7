"""What each method sends, and what it returns."""

import inspect
import json

import msgspec
import pytest

from bough.client import Accepted, AnswerError, AsyncClient, Client, Decided, Node, Rewarded, ServiceError, Stated
from bough.service import schema
from scripted_server import DONE_HALF, NODE, Answer, problem

DECIDED = Decided("d1", "kettle", ["kettle"], 1)
STATED = {"decision_id": "d1"}
ACCEPTED = Accepted(seq=1, model_version=2)
KETTLE = Node(**NODE)

# what is called: the method and the path, the query or the body, what of the contract the body must be, and the answer
METHODS = {
    "decide": (
        lambda client: client.decide(decision_id="d1"),
        ("POST", "/v1/shop/decide", {"decision_id": "d1"}, schema.Decide, DECIDED),
    ),
    "decide with everything": (
        lambda client: client.decide(
            {"hour": 20},
            k=2,
            among=["kettle", 7],
            exclude=["spade"],
            defer=True,
            propensity=False,
            action="kettle",
            decision_id="d1",
            factors={"store": "north", "till": 7},
        ),
        (
            "POST",
            "/v1/shop/decide",
            {
                "decision_id": "d1",
                "context": {"hour": 20},
                "factors": {"store": "north", "till": 7},
                "k": 2,
                "among": ["kettle", 7],
                "exclude": ["spade"],
                "defer": True,
                "propensity": False,
                "action": "kettle",
            },
            schema.Decide,
            Decided("d1", "kettle", ["kettle", 7], 1),
        ),
    ),
    "reward": (
        lambda client: client.reward(DECIDED, 1),
        ("POST", "/v1/shop/reward", {"decision_id": "d1", "value": 1.0}, schema.Reward, Rewarded("d1", "learned")),
    ),
    "reward with everything": (
        lambda client: client.reward("d1", 2, reward_id="r1", trials=9, slot=3, factors={"till": 7}),
        (
            "POST",
            "/v1/shop/reward",
            {"decision_id": "d1", "value": 2.0, "reward_id": "r1", "trials": 9.0, "slot": 3, "factors": {"till": 7}},
            schema.Reward,
            Rewarded("d1", "learned"),
        ),
    ),
    "rewards": (
        lambda client: client.rewards([(DECIDED, 1), {"decision_id": "d2", "value": 0, "exposure": 2}]),
        (
            "POST",
            "/v1/shop/rewards",
            {
                "rewards": [
                    {"decision_id": "d1", "value": 1.0},
                    {"decision_id": "d2", "value": 0.0, "exposure": 2.0},
                ]
            },
            schema.Rewards,
            [Rewarded("d1", "learned"), Rewarded("d2", "learned")],
        ),
    ),
    "activate": (
        lambda client: client.activate(DECIDED),
        ("POST", "/v1/shop/activate", STATED, schema.DecisionId, Stated("d1", "activate")),
    ),
    "cancel": (
        lambda client: client.cancel("d1"),
        ("POST", "/v1/shop/cancel", STATED, schema.DecisionId, Stated("d1", "cancel")),
    ),
    "retract": (
        lambda client: client.retract("d1"),
        ("POST", "/v1/shop/retract", STATED, schema.DecisionId, Stated("d1", "retract")),
    ),
    "decision": (lambda client: client.decision("a:1"), ("GET", "/v1/shop/decisions/a%3A1", {}, None, dict)),
    "explain": (lambda client: client.explain(DECIDED), ("GET", "/v1/shop/decisions/d1/explain", {}, None, dict)),
    "top": (lambda client: client.top(3), ("GET", "/v1/shop/top", {"k": "3"}, None, [KETTLE])),
    "top of all": (lambda client: client.top(), ("GET", "/v1/shop/top", {}, None, [KETTLE])),
    "tree": (
        lambda client: client.tree("home/kitchen & co", levels=2, limit=40),
        ("GET", "/v1/shop/tree", {"node": "home/kitchen & co", "levels": "2", "limit": "40"}, None, dict),
    ),
    "search": (
        lambda client: client.search("kett", limit=5),
        ("GET", "/v1/shop/search", {"q": "kett", "limit": "5"}, None, [KETTLE]),
    ),
    "series": (lambda client: client.series(60), ("GET", "/v1/shop/series", {"minutes": "60"}, None, dict)),
    "evaluate": (
        lambda client: client.evaluate(since=1.0, estimators=["dr"]),
        ("POST", "/v1/shop/evaluate", {"since": 1.0, "estimators": ["dr"]}, schema.EvaluateBody, dict),
    ),
    "describe": (lambda client: client.describe(), ("GET", "/v1/shop", {}, None, dict)),
    "health": (lambda client: client.health(), ("GET", "/health", {}, None, dict)),
    "ready": (lambda client: client.ready(), ("GET", "/ready", {}, None, True)),
    "add": (
        lambda client: client.add(["juicer", 8], under="kitchen"),
        (
            "POST",
            "/v1/shop/actions",
            {"op": "add", "name": ["juicer", 8], "under": "kitchen"},
            schema.ActionChange,
            ACCEPTED,
        ),
    ),
    "retire": (
        lambda client: client.retire("kettle"),
        ("POST", "/v1/shop/actions", {"op": "retire", "name": "kettle"}, schema.ActionChange, ACCEPTED),
    ),
    "restore": (
        lambda client: client.restore("kettle"),
        ("POST", "/v1/shop/actions", {"op": "restore", "name": "kettle"}, schema.ActionChange, ACCEPTED),
    ),
    "forget": (
        lambda client: client.forget(7),
        ("POST", "/v1/shop/actions", {"op": "forget", "name": 7}, schema.ActionChange, ACCEPTED),
    ),
    "move": (
        lambda client: client.move("kettle", under=""),
        ("POST", "/v1/shop/actions", {"op": "move", "name": "kettle", "under": ""}, schema.ActionChange, ACCEPTED),
    ),
    "add_level": (
        lambda client: client.add_level("brand", ["Acme", 7]),
        (
            "POST",
            "/v1/shop/actions",
            {"op": "add_level", "name": ["Acme", 7], "factor": "brand"},
            schema.ActionChange,
            ACCEPTED,
        ),
    ),
    "add with brands": (
        lambda client: client.add(
            ["juicer", 8], under="kitchen", factors={"brand": {"juicer": "Acme", 8: ["Bolt", 7]}}
        ),
        (
            "POST",
            "/v1/shop/actions",
            {
                "op": "add",
                "name": ["juicer", 8],
                "under": "kitchen",
                "factors": {"brand": {"juicer": "Acme", "8": ["Bolt", 7]}},
            },
            schema.ActionChange,
            ACCEPTED,
        ),
    ),
    "put_tree with brands": (
        lambda client: client.put_tree(["a/b"], factors={"brand": {"a/b": "Acme"}}),
        ("PUT", "/v1/shop/tree", {"paths": ["a/b"], "factors": {"brand": {"a/b": "Acme"}}}, schema.TreeBody, ACCEPTED),
    ),
    "put_tree": (
        lambda client: client.put_tree(["a|b"], sep="|", renamed={"c": "b"}, gone="raise"),
        (
            "PUT",
            "/v1/shop/tree",
            {"paths": ["a|b"], "sep": "|", "renamed": {"c": "b"}, "gone": "raise"},
            schema.TreeBody,
            ACCEPTED,
        ),
    ),
    "configure": (
        lambda client: client.configure(mode="observe", window=60.0),
        ("PUT", "/v1/shop", {"mode": "observe", "window": 60.0}, schema.ExperimentConfig, dict),
    ),
    "refit": (
        lambda client: client.refit(),
        ("POST", "/v1/shop/refit", {}, schema.RefitBody, dict),
    ),
}
ELSEWHERE = {"export", "put_model", "batch", "close"}  # tested below, and in their own files


@pytest.mark.parametrize("what", METHODS)
def test_a_method_sends_this_and_returns_that(ask, server, what):
    work, (method, path, sent, contract, answer) = METHODS[what]
    found = ask(work)
    [request] = server.requests
    assert (request.method, request.path) == (method, path)
    assert (request.query if method == "GET" else request.body) == sent
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["user-agent"].startswith("bough/")
    assert found == answer if answer is not dict else isinstance(found, dict)
    if contract is not None:
        msgspec.json.decode(request.content, type=contract)
        assert request.headers["content-type"] == "application/json"


def public(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def test_every_method_is_in_the_table():
    assert public(Client) == {what.split()[0] for what in METHODS} | ELSEWHERE


def test_both_clients_have_the_same_methods_with_the_same_arguments_and_words():
    assert public(AsyncClient) - {"aclose"} == public(Client) - {"close"}
    for name in public(Client) - {"close", "batch", "rewards"}:
        one, other = getattr(Client, name), getattr(AsyncClient, name)
        assert str(inspect.signature(one)) == str(inspect.signature(other))
        assert one.__doc__ == other.__doc__
        assert one.__doc__ is not None
        assert not inspect.iscoroutinefunction(one)
        assert inspect.iscoroutinefunction(other)


def test_the_fields_are_those_of_the_service():
    for ours, theirs in ((Decided, schema.Decided), (Rewarded, schema.Rewarded), (Stated, schema.Stated)):
        assert set(inspect.signature(ours).parameters) == set(theirs.__struct_fields__)
    assert set(inspect.signature(Accepted).parameters) == set(schema.Accepted.__struct_fields__)
    nodes = {*schema.BestNode.__struct_fields__, *schema.FoundNode.__struct_fields__}
    assert set(inspect.signature(Node).parameters) == nodes


def test_a_model_is_sent_as_the_bytes_of_its_file(ask, server, tmp_path):
    path, content = tmp_path / "model.bough", bytes(range(256))
    path.write_bytes(content)
    for model in (path, str(path), content):
        assert ask(lambda client, model=model: client.put_model(model)) == ACCEPTED
    assert {(request.method, request.path) for request in server.requests} == {("PUT", "/v1/shop/model")}
    assert {request.content for request in server.requests} == {content}
    assert server.requests[0].headers["content-type"] == "application/octet-stream"


def test_an_export_is_a_file_also_where_the_first_try_breaks(ask, server, tmp_path):
    server.script = [DONE_HALF]
    path = tmp_path / "events.ndjson"
    assert ask(lambda client: client.export(path, since=1.0)) == path
    assert len(path.read_bytes().splitlines()) == 1000
    assert [request.query for request in server.requests] == [{"format": "ndjson", "since": "1.0"}] * 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("move", [DONE_HALF, problem("wrong-scope", 403)])
def test_an_export_that_fails_leaves_the_old_file(ask, server, tmp_path, move):
    path = tmp_path / "events.parquet"
    path.write_bytes(b"old")
    server.script = [move]
    with pytest.raises(ServiceError):
        ask(lambda client: client.export(path), retries=0)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"
    assert server.requests[0].query == {"format": "parquet"}


def test_a_service_that_is_not_ready_is_not_an_error(ask, server):
    server.script = [problem("starting", 503)]
    assert ask(lambda client: client.ready(), experiment=None) is False


def test_more_rewards_than_one_request_takes_go_in_several(ask, server):
    rows = [(f"d{i}", float(i)) for i in range(2_500)]
    rows[1_200] = ("unknown", 0.0)
    found = ask(lambda client: client.rewards(rows))
    assert [len(request.body["rewards"]) for request in server.requests] == [1_000, 1_000, 500]
    assert [one.decision_id if isinstance(one, Rewarded) else one.value for one in found] == [row[0] for row in rows]
    assert isinstance(found[1_200], KeyError)


def test_no_rewards_are_no_request(ask, server):
    assert ask(lambda client: client.rewards([])) == []
    assert server.requests == []


def test_a_result_may_also_be_the_problem_itself(ask, server):
    server.script = [Answer(200, {"results": [problem("same-id", 409).body]})]
    [found] = ask(lambda client: client.rewards([("d1", 1.0)]))
    assert (found.status, found.code) == (409, "same-id")


def test_a_key_and_an_experiment_come_from_the_environment(ask, server, monkeypatch):
    monkeypatch.setenv("BOUGH_URL", server.url)
    monkeypatch.setenv("BOUGH_KEY", "other")
    monkeypatch.setenv("BOUGH_EXPERIMENT", "news")
    ask.url = None
    ask(lambda client: client.decide(), experiment=None, key=None)
    [request] = server.requests
    assert request.path == "/v1/news/decide"
    assert request.headers["authorization"] == "Bearer other"


def test_without_a_key_none_is_sent_and_a_service_may_lie_below_a_path(ask, server):
    ask.url = f"{server.url}/bandits/"
    ask(lambda client: client.decide(), key=None)
    [request] = server.requests
    assert request.path == "/bandits/v1/shop/decide"
    assert "authorization" not in request.headers


def test_the_key_is_not_shown():
    with Client("http://127.0.0.1", experiment="shop", key="hush") as client:
        assert "hush" not in f"{client!r} {client._settings!r}"


STRANGE = {
    "no JSON": b"OK",
    "a list": [],
    "no id": {"action": "kettle", "model_version": 1},
    "no action": {"decision_id": "d1", "model_version": 1},
    "no actions": {"decision_id": "d1", "model_version": 1, "actions": []},
    "nothing": {},
}


@pytest.mark.parametrize("what", STRANGE)
def test_an_answer_of_another_shape_is_an_error_that_shows_it(ask, server, what):
    server.script = [Answer(200, STRANGE[what])]
    with pytest.raises(AnswerError, match=r"^r1: the answer to POST /v1/shop/decide is not the service's") as caught:
        ask(lambda client: client.decide())
    assert caught.value.response.status_code == 200
    shown = STRANGE[what] if isinstance(STRANGE[what], bytes) else json.dumps(STRANGE[what]).encode()
    assert repr(shown.decode()) in str(caught.value)


@pytest.mark.parametrize("body", [{}, {"results": []}, {"results": [5]}, {"results": [{}]}])
def test_results_that_are_not_one_per_reward_are_an_error(ask, server, body):
    server.script = [Answer(200, body)]
    with pytest.raises(AnswerError):
        ask(lambda client: client.rewards([("d1", 1.0)]))
