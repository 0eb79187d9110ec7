"""A browser, started once for each file, and a service with a shop, started once for all of them."""

import pytest

import bough
import browsing
from served import Served

PATHS = [
    f"{department}/{category}/{product}"
    for department, categories in {
        "home": ["kitchen", "bath", "office"], "garden": ["tools", "plants"], "toys": ["games", "dolls", "kites"]
    }.items()
    for category in categories
    for product in ("red one", "blue one", "green one", "black one")
]  # fmt: skip


def pytest_collection_modifyitems(items):
    why = browsing.missing()
    if why is not None:
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, for one file: while it is open no other test of this process can run a loop of asyncio's."""
    with browsing.browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A service with an experiment called shop, in which things have happened."""
    folder = tmp_path_factory.mktemp("shop")
    tree = bough.Tree.from_paths(PATHS, levels=["department", "category", "product"])
    bough.GaussianModel(tree, 1.0, bough.by_depth([0.1, 0.4, 0.3, 0.2]), 0.25).save(folder / "model.bough")
    words = ["--data", "data", "--model", "model.bough", "--experiment", "shop", "--quiet", "--keeper-interval", "0.1"]
    with Served(folder, *words) as service:
        for i in range(60):
            among = {} if i % 3 == 0 else {"among": [PATHS[i * i % len(PATHS)]]}
            decision = service.decide(decision_id=f"d{i}", **among)
            service.reward(decision["decision_id"], len(decision["action"]) % 5 + i % 3 / 10)
        service.wait(lambda: service.ask("GET", "/v1/shop").body["observations"] == 60)
        service.wait(lambda: service.ask("GET", "/v1/shop/state").body["decisions"] == 60)
        service.link, service.folder = service.said["dashboard"], folder
        yield service


@pytest.fixture
def tab(browser, shop):
    """The dashboard of the shop, with its key."""
    with browsing.Tab(browser, shop.address) as opened:
        yield opened.open(shop.link)
