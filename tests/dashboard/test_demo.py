"""bough serve --demo: a page that moves, read without a key, and nothing more than that."""

import pytest

from browsing import Tab
from served import Served


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, with its key put aside."""
    with Served(tmp_path_factory.mktemp("demo"), "--data", "data", "--demo", "--quiet") as service:
        service.put_aside, service.key = service.key, None
        yield service


def test_the_demo_is_read_without_a_key_and_nothing_else_is(demo):
    assert demo.said["dashboard"] == f"{demo.address}/#experiment=demo"
    assert [one["name"] for one in demo.ask("GET", "/v1").body["experiments"]] == ["demo"]
    for path in (
        "",
        "/treemap",
        "/tree",
        "/top",
        "/series",
        "/prior",
        "/state",
        "/decisions",
        "/search?q=mug",
        "/model",
    ):
        assert demo.ask("GET", f"/v1/demo{path}").status == 200, path
    assert demo.ask("GET", "/v1/demo/export").status == 401
    assert demo.ask("POST", "/v1/demo/decide", {}).status == 401
    assert demo.ask("POST", "/v1/demo/evaluate", {}).status == 401
    assert demo.ask("GET", "/v1/keys").status == 401
    assert demo.ask("GET", "/metrics").status == 401
    assert demo.ask("PUT", "/v1/other", {}, key=demo.put_aside).status == 201
    assert demo.ask("GET", "/v1/other").status == 401
    assert [one["name"] for one in demo.ask("GET", "/v1").body["experiments"]] == ["demo"]
    assert demo.ask("GET", "/v1/demo", key="bough_no-such-key").status == 401


def test_the_demo_moves(browser, demo):
    with Tab(browser, demo.address) as tab:
        tab.open(demo.said["dashboard"])
        before = tab.text("#counts b >> nth=0")
        assert tab.page.locator(".cell").count() > 100
        tab.page.wait_for_function(
            "before => document.querySelector('#counts b').textContent !== before && "
            "document.querySelectorAll('#why-recent tr').length === 8",
            arg=before,
        )
