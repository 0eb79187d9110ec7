"""The table of routes, and how requests find theirs."""

import pytest
from msgspec import Struct

from bough.service import schema
from bough.service.problems import KINDS, Problem
from bough.service.router import find, read_query
from bough.service.routes import ROUTES


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_route_is_found_by_its_own_path(route):
    filled = {"experiment": "shop", "id": "d-7"}
    path = route.path.format(**filled).encode()
    found, parameters = find(route.method, path)
    assert found is route
    assert parameters == {name: filled[name] for name in route.parameters}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_every_route_is_described_by_what_there_is(route):
    assert route.name.isidentifier()
    assert set(route.problems) <= set(KINDS)
    assert route.answers
    assert all(200 <= status < 300 for status in route.answers)
    assert route.body in (None, bytes) or issubclass(route.body, Struct)
    assert route.summary


def test_no_two_routes_have_the_same_method_and_path():
    assert len({(route.method, route.path) for route in ROUTES.values()}) == len(ROUTES)


def test_a_route_names_all_the_problems_that_follow_from_what_it_takes():
    assert {"no-key", "wrong-scope", "too-fast", "unknown-experiment", "too-large", "too-slow"} <= set(
        ROUTES["reward"].codes
    )
    assert not {"no-key", "wrong-scope", "too-fast", "unknown-experiment", "too-large"} & set(ROUTES["health"].codes)


@pytest.mark.parametrize(
    "path",
    [b"", b"/", b"//", b"/v1/", b"/v1//tree", b"/v1/shop/decisions/", b"/v2/shop/tree", b"/v1/shop/tree/",
     b"v1/shop/tree", b"/health/", b"/v1/shop/unheard-of", b"/v1/shop/choices/d7", b"/v1/shop/choices/d7/explain",
     b"/v1/a/b/c/d/e", b"/v1\x00"],
)  # fmt: skip
def test_what_is_nowhere_is_404(path):
    with pytest.raises(Problem) as caught:
        find("GET", path)
    assert caught.value.code == "unknown-route"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", b"/v1/shop/decide", "POST"),
        ("POST", b"/v1/shop/tree", "GET, HEAD, PUT"),
        ("PUT", b"/health", "GET, HEAD"),
        ("PUT", b"/v1/keys", "GET, HEAD, POST"),
        ("GET", b"/v1/keys/k1", "DELETE"),
        ("BREW", b"/v1/shop", "GET, HEAD, PUT"),
    ],
)
def test_a_wrong_method_is_405_and_is_told_which_are_right(method, path, allowed):
    with pytest.raises(Problem) as caught:
        find(method, path)
    assert (caught.value.status, caught.value.headers) == (405, {"allow": allowed})


def test_head_is_answered_where_get_is():
    assert find("HEAD", b"/health")[0].name == "health"
    assert find("HEAD", b"/v1/shop/tree")[0].name == "tree"


def test_parameters_are_decoded():
    assert find("GET", b"/v1/%73hop/decisions/a%3Ab%7e%2E")[1] == {"experiment": "shop", "id": "a:b~."}


def test_the_keys_are_no_experiment():
    assert find("GET", b"/v1/keys")[0].name == "keys"
    assert find("DELETE", b"/v1/keys/k1") == (ROUTES["revoke_key"], {"id": "k1"})


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", b"/v1/sh%00op/decide", "unknown-experiment"),
        ("POST", b"/v1/sh%ffop/decide", "unknown-experiment"),
        ("POST", b"/v1/sh\xffop/decide", "unknown-experiment"),
        ("POST", b"/v1/sh%2Fop/decide", "unknown-experiment"),
        ("POST", b"/v1/" + 65 * b"s" + b"/decide", "unknown-experiment"),
        ("POST", b"/v1/shop%0A/decide", "unknown-experiment"),
        ("GET", b"/v1/shop/decisions/%00", "unknown-decision"),
        ("GET", "/v1/shop/decisions/é".encode(), "unknown-decision"),
        ("GET", b"/v1/shop/decisions/d%0A", "unknown-decision"),
        ("GET", b"/v1/shop/decisions/" + 129 * b"d" + b"/explain", "unknown-decision"),
        ("DELETE", b"/v1/keys/%00", "unknown-key"),
        ("PUT", b"/v1/sh%00op", "invalid-value"),
    ],
)
def test_what_no_database_could_hold_never_gets_that_far(method, path, code):
    with pytest.raises(Problem) as caught:
        find(method, path)
    assert caught.value.code == code


def test_the_longest_names_are_taken():
    assert find("GET", b"/v1/" + 64 * b"s")[1] == {"experiment": 64 * "s"}
    assert find("GET", b"/v1/shop/decisions/" + 128 * b"d")[1]["id"] == 128 * "d"


def test_a_query_is_read_with_its_types():
    assert read_query(schema.TreeQuery, b"") == schema.TreeQuery()
    assert read_query(schema.TreeQuery, b"node=a%20b%2Fc&levels=3&limit=7") == schema.TreeQuery(
        node="a b/c", levels=3, limit=7
    )
    assert read_query(schema.TreeQuery, b"node=null").node == "null"
    assert read_query(schema.ExportQuery, b"format=parquet&since=1.5").since == 1.5


@pytest.mark.parametrize(
    ("of", "query"),
    [
        (schema.TreeQuery, b"levels=0"),
        (schema.TreeQuery, b"levels="),
        (schema.TreeQuery, b"levels=null"),
        (schema.TreeQuery, b"levels=two"),
        (schema.TreeQuery, b"level=2"),
        (schema.TreeQuery, b"levels=2&levels=2"),
        (schema.TreeQuery, b"node=%ff"),
        (schema.TreeQuery, b"node=\xff"),
        (schema.TopQuery, b"k=99999999999999999999999"),
        (schema.SearchQuery, b""),
        (schema.SearchQuery, b"q="),
        (schema.ExportQuery, b"since=nan"),
        (schema.ExportQuery, b"since=1e999"),
        (schema.ExportQuery, b"format=xml"),
        (schema.ExportQuery, b"&".join(b"a%d=1" % i for i in range(200))),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(of, query):
    with pytest.raises(Problem) as caught:
        read_query(of, query)
    assert caught.value.code == "invalid-value"
    assert caught.value.remedy
