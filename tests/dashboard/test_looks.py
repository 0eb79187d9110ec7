"""The dashboard for everybody: dark and light, narrow and wide, by a screen reader, and with odd names."""

import json
from pathlib import Path

import pytest

import bough
from browsing import Tab
from served import Served

AXE = Path(__file__).parent / "axe" / "axe-core-4.14.0.min.js"
ODD = {
    "script": "<script>document.title='owned'</script>",
    "image": "<img src=x onerror=\"document.title='owned'\">",
    "quotes": 'it\'s "quoted" & <b>bold</b>',
    "right to left": "שלום עולם",
    "override": "abc\u202egpj.exe",
    "long": "x" * 10_000,
    "formula": "=1+1",
    "emoji": "🧦 socks",
    "newline": "two\nlines",
}


def serious(tab):
    """What axe-core finds that is serious or worse."""
    tab.page.evaluate(AXE.read_text())  # through the debugger, which no policy of the page hinders
    found = tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]], one["nodes"][0].get("failureSummary"))
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_nothing_serious(browser, shop, dark, width):
    with Tab(browser, shop.address, dark=dark, width=width) as tab:
        tab.open(f"{shop.link}&decision=d3")
        tab.page.wait_for_selector("#why-answer h3")
        tab.page.wait_for_selector("#chart-gain canvas")
        assert serious(tab) == []


def test_dark_follows_the_system_and_the_button(browser, shop):
    ground = "getComputedStyle(document.body).backgroundColor"
    with Tab(browser, shop.address, dark=True) as tab:
        tab.open(shop.link)
        dark, cell = tab.page.evaluate(ground), tab.cell("home").evaluate("one => one.style.backgroundColor")
        assert sum(json.loads(dark.replace("rgb(", "[").replace(")", "]"))) < 150
        tab.page.click("#theme >> text=Light")
        assert tab.page.evaluate(ground) != dark
        assert tab.cell("home").evaluate("one => one.style.backgroundColor") != cell
        tab.page.reload()
        tab.page.wait_for_selector("body[data-state=ready]")
        assert tab.page.evaluate(ground) != dark


@pytest.mark.parametrize("width", [400, 800, 3840])
def test_nothing_is_wider_than_the_window(browser, shop, width):
    with Tab(browser, shop.address, width=width, height=800) as tab:
        tab.open(f"{shop.link}&decision=d3")
        tab.page.wait_for_selector("#why-answer h3")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        box = tab.page.locator("#treemap").bounding_box()
        assert box["width"] > 0.6 * min(width, 1000) - 60
        assert box["height"] >= 320


@pytest.mark.parametrize("width", [400, 1280])
def test_facts_have_room_beside_their_terms(browser, shop, width):
    with Tab(browser, shop.address, width=width) as tab:
        tab.open(shop.link)
        tab.page.wait_for_selector("#prior-facts dd")
        room = tab.page.eval_on_selector_all("#prior-facts dd", "all => all.map(one => one.offsetWidth)")
        assert min(room) > 0.4 * tab.page.locator("#prior-facts").bounding_box()["width"]


@pytest.fixture(scope="module")
def odd_names(tmp_path_factory):
    """A service whose actions have odd names."""
    folder = tmp_path_factory.mktemp("odd")
    tree = bough.Tree.from_nested({f"in {what}": [name, f"{name} again"] for what, name in ODD.items()})
    bough.GaussianModel(tree).save(folder / "model.bough")
    with Served(folder, "--data", "data", "--model", "model.bough", "--experiment", "odd", "--quiet") as service:
        for i, name in enumerate(ODD.values()):
            made = service.decide("odd", decision_id=f"d{i}", among=[name])
            service.reward(made["decision_id"], 1.0 + i, "odd")
        service.wait(lambda: service.ask("GET", "/v1/odd/state").body["decisions"] == len(ODD))
        service.link = service.said["dashboard"]
        yield service


def test_odd_names_are_shown_as_text_everywhere(browser, odd_names):
    with Tab(browser, odd_names.address) as tab:
        tab.open(odd_names.link)
        cells = tab.cells()
        for name in ODD.values():
            assert name in cells
        assert tab.page.locator("#treemap script, #treemap img, #treemap b, #best-table script").count() == 0
        for i in range(len(ODD)):
            tab.page.goto(f"{odd_names.address}/#experiment=odd&decision=d{i}")
            tab.page.wait_for_selector(f"#why-answer >> text=d{i}")
        for what, name in ODD.items():
            tab.page.fill("#search-text", name[:60].split("\n")[0])
            tab.page.wait_for_selector("#search-results li[aria-selected=true]")
            tab.page.keyboard.press("Enter")
            tab.page.wait_for_selector(f'#path [aria-current] >> text="in {what}"')
        tab.page.wait_for_selector("#best[data-state=ready]")
        assert "owned" not in tab.page.title()
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 1400
        assert serious(tab) == []


def test_a_name_of_10000_characters_is_opened_and_copied_whole_and_formulas_are_text(browser, odd_names):
    with Tab(browser, odd_names.address) as tab:
        tab.open(f"{odd_names.link}&node=in%20formula")
        tab.page.click("#map-copy")
        tab.page.wait_for_selector("#map-copy >> text=Copied")
        assert "\n'=1+1," in tab.page.evaluate("navigator.clipboard.readText()").replace("\r", "")
        long = ODD["long"]
        tab.page.goto(f"{odd_names.address}/#experiment=odd&node={long}")
        tab.page.wait_for_function(
            f"() => document.querySelector('#path [aria-current]')?.textContent.startsWith('{'x' * 50}')"
        )
        assert tab.cells().keys() == {long}
