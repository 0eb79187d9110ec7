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


def test_the_memory_of_the_page_is_bounded_while_one_browses(browser, demo):
    with Tab(browser, demo.address) as tab:
        tab.open(demo.said["dashboard"])
        departments = [name for name in tab.cells() if name and "/" not in name]
        heap = tab.page.context.new_cdp_session(tab.page)
        used, elements = [], []
        for name in departments + departments:
            tab.page.goto(f"{demo.address}/#experiment=demo&node={name}")
            tab.page.wait_for_function(
                "name => document.querySelector('#path [aria-current]').textContent === name", arg=name
            )
            heap.send("HeapProfiler.collectGarbage")
            used.append(heap.send("Runtime.getHeapUsage")["usedSize"])
            elements.append(tab.page.evaluate("document.querySelectorAll('*').length"))
        half = len(departments)
        assert max(elements[half:]) <= 1.1 * max(elements[:half])
        assert max(used[half:]) <= 1.25 * max(used[:half])
        assert max(used) < 30e6


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
