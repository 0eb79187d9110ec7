"""What the service says is wrong becomes an exception, the same as the library's where there is one."""

import pickle

import pytest

from bough import client as public
from bough.client.errors import ERRORS, RewardsError, ServiceError, problem_error, retry_after
from bough.service.problems import KINDS, Problem
from scripted_server import Answer, problem

# what each problem is, beside a ServiceError
PYTHONS = {
    "invalid-body": ("InvalidValueError", ValueError),
    "invalid-value": ("InvalidValueError", ValueError),
    "unknown-action": ("UnknownActionError", KeyError),
    "no-key": ("NoKeyError", PermissionError),
    "wrong-scope": ("WrongScopeError", PermissionError),
    "unknown-route": ("RouteError", ServiceError),
    "unknown-experiment": ("UnknownExperimentError", KeyError),
    "unknown-decision": ("UnknownDecisionError", KeyError),
    "unknown-node": ("UnknownNodeError", KeyError),
    "unknown-key": ("NotFoundError", KeyError),
    "wrong-method": ("RouteError", ServiceError),
    "too-slow": ("ServiceTimeoutError", TimeoutError),
    "same-id": ("SameIdError", ValueError),
    "wrong-state": ("WrongStateError", ValueError),
    "conflict": ("ConflictError", ValueError),
    "too-large": ("TooLargeError", ValueError),
    "too-fast": ("TooManyRequestsError", ServiceError),
    "internal": ("InternalError", ServiceError),
    "no-model": ("UnavailableError", ServiceError),
    "not-installed": ("UnavailableError", ServiceError),
    "starting": ("UnavailableError", ServiceError),
    "not-replayed": ("UnavailableError", ServiceError),
    "not-written": ("UnavailableError", ServiceError),
    "overloaded": ("UnavailableError", ServiceError),
}


@pytest.mark.parametrize("code", KINDS)
def test_a_problem_is_this_exception(ask, server, code):
    said = Problem(code, "'blakc' will not do", value="blakc", remedy="give 'black'")
    server.script = [Answer(said.status, said.to_dict(), {"content-type": "application/problem+json"})]
    name, python = PYTHONS[code]
    with pytest.raises(ServiceError) as caught:
        ask(lambda client: client.decide(), retries=0)
    error = caught.value
    assert type(error) is getattr(public, name)
    assert isinstance(error, python)
    assert str(error) == "r1: 'blakc' will not do; give 'black'"
    assert (error.status, error.code, error.value, error.remedy) == (said.status, code, "blakc", "give 'black'")
    assert error.request_id == "r1"
    assert error.response.json()["title"] == KINDS[code].title


def test_all_conflicts_are_conflict_errors_and_what_is_not_there_a_not_found_error():
    for code, kind in ERRORS.items():
        if code in ("same-id", "wrong-state", "conflict", 409):
            assert issubclass(kind, public.ConflictError)
        if code in ("unknown-experiment", "unknown-decision", "unknown-node", 404):
            assert issubclass(kind, public.NotFoundError)


@pytest.mark.parametrize("status", sorted({kind.status for kind in KINDS.values()}))
def test_a_code_that_the_client_does_not_know_is_known_by_its_status(status):
    found = type(problem_error({"type": "urn:bough:problem:new", "status": status, "detail": "new"}))
    assert any(issubclass(ERRORS[code], found) for code, kind in KINDS.items() if kind.status == status)


def test_every_exception_is_public_and_has_a_docstring():
    for kind in {*ERRORS.values(), RewardsError, ServiceError}:
        assert getattr(public, kind.__name__) is kind
        assert kind.__doc__


@pytest.mark.parametrize("name", public.__all__)
def test_every_public_name_has_a_docstring_and_the_answers_and_clients_an_example(name):
    thing = getattr(public, name)
    assert thing.__doc__
    if not issubclass(thing, ServiceError):
        assert ">>>" in thing.__doc__ or "::\n" in thing.__doc__
        for each in vars(thing):
            assert each.startswith("_") or not callable(getattr(thing, each)) or getattr(thing, each).__doc__


@pytest.mark.parametrize("kind", sorted({*ERRORS.values(), RewardsError, ServiceError}, key=lambda kind: kind.__name__))
def test_an_exception_survives_the_way_to_another_process(kind):
    error = kind("it is so", status=409, code="same-id", remedy="do otherwise", request_id="r7", retry_after=2.0)
    error.tries = 3
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error) == "r7: it is so; do otherwise (3 tries)"
    assert vars(back) == vars(error)


def test_a_remedy_that_the_detail_has_already_is_not_said_twice():
    error = problem_error({"detail": "k is 9; give at most 3", "remedy": "give at most 3"})
    assert str(error) == "k is 9; give at most 3"


def test_what_is_not_the_services_own_answer_is_shown(ask, server):
    server.script = [Answer(403, b"<h1>Blocked by the firewall</h1>")]
    with pytest.raises(PermissionError, match="the service answered 403: '<h1>Blocked by the firewall</h1>'"):
        ask(lambda client: client.decide())


def test_a_redirect_names_the_address_that_it_points_to(ask, server):
    server.script = [Answer(301, b"", {"location": "https://shop.example"})]
    with pytest.raises(ServiceError, match=r"answered 301; give the address that it points to, https://shop.example"):
        ask(lambda client: client.decide())


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b'{"error": "x"}', b'{"detail": 5, "type": 7, "status": "x", "remedy": []}', b"\xff"]
)
def test_an_odd_body_of_an_error_is_an_error_all_the_same(ask, server, body):
    server.script = [Answer(409, body)]
    with pytest.raises(ValueError, match=r"r1: .*409") as caught:
        ask(lambda client: client.decide())
    assert caught.value.status == 409


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0.5", 0.5),
        ("-2", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header, seconds):
    assert retry_after(header) == seconds


def test_retry_after_of_a_later_date_is_the_time_until_then():
    assert retry_after("Fri, 31 Dec 9999 23:59:59 GMT") > 1e9


def test_the_scope_of_a_key_is_named(ask, server):
    server.script = [problem("wrong-scope", 403, remedy="use a key with the scope admin")]
    with pytest.raises(PermissionError, match="use a key with the scope admin"):
        ask(lambda client: client.refit())
