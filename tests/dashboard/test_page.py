"""The dashboard in a real browser: what it shows is what the service says, and everything can be reached."""

import re

import pytest

import bough
from browsing import Tab


def treemap(shop, node=None, levels=3):
    query = "" if node is None else f"&node={node}"
    return shop.ask("GET", f"/v1/shop/treemap?levels={levels}&limit=40&nodes=1550{query}").body


# -- that it loads ---------------------------------------------------------------------------------


def test_it_loads_without_an_error_or_a_request_to_another_host_and_takes_the_key_out_of_the_address(tab, shop):
    assert tab.text("h1") == "bough"
    assert tab.text("#pill") == "healthy"
    assert shop.key not in tab.page.url
    assert tab.page.url.endswith("#experiment=shop")
    assert tab.page.evaluate("sessionStorage.getItem('bough-key')") == shop.key
    assert tab.page.evaluate("localStorage.length + document.cookie.length") == 0
    assert not any(shop.key in url for url in tab.requests)


def test_the_policy_allows_no_inline_script_and_nothing_from_elsewhere(tab, shop):
    with tab.page.expect_response(lambda answer: answer.url == f"{shop.address}/") as found:
        tab.page.goto(f"{shop.address}/#experiment=shop")
        tab.page.reload()
    policy = found.value.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    tab.page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
    }""")
    assert tab.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in tab.errors)
    tab.errors.clear()


def test_without_a_key_it_asks_for_one_and_says_what_it_is_for(browser, shop):
    with Tab(browser, shop.address, expected=["401"]) as tab:
        tab.open(f"{shop.address}/", state="failed")
        assert tab.page.is_visible("#key-form")
        assert "No key was sent" in tab.text("#banner")
        assert "bough key create --data DIR --scopes read" in tab.text("#key-form")
        tab.page.fill("#key-text", shop.key)
        tab.page.press("#key-text", "Enter")
        tab.page.wait_for_selector("body[data-state=ready]")
        assert not tab.page.is_visible("#key-form")
        assert tab.cells()


def test_an_experiment_without_decisions_says_so(browser, shop):
    shop.ask("PUT", "/v1/empty", {})
    model = shop.ask("GET", "/v1/shop/model").body
    assert shop.ask("PUT", "/v1/empty/model", model).status == 200
    with Tab(browser, shop.address) as tab:
        tab.open(f"{shop.address}/#key={shop.key}&experiment=empty")
        assert "No decisions yet" in tab.text("#map .message")
        assert "No decisions yet" in tab.text("#why .message")
        assert tab.page.get_attribute("#why", "data-state") == "empty"
        assert tab.page.get_attribute("#time", "data-state") == "empty"
        assert tab.page.input_value("#experiment-select") == "empty"
        tab.page.select_option("#experiment-select", "shop")
        tab.page.wait_for_selector("#why[data-state=ready]")


def test_what_could_not_be_loaded_looks_stale_or_failed_and_comes_back(browser, shop):
    with Tab(browser, shop.address, expected=["ERR_FAILED"]) as tab:
        tab.open(shop.link)
        tab.page.route("**/v1/**", lambda route: route.abort())
        tab.page.wait_for_selector("body[data-state=stale]")
        assert tab.text("#pill") == "stale"
        assert tab.cells()  # what was known is still there
        tab.page.unroute("**/v1/**")
        tab.page.wait_for_selector("body[data-state=ready]")
        assert tab.page.is_hidden("#banner")
        assert tab.text("#pill") == "healthy"
        tab.page.route("**/v1/**", lambda route: route.abort())
        tab.page.route("**/v1", lambda route: route.abort())
        tab.page.reload()
        tab.page.wait_for_selector("body[data-state=failed]")
        assert "The service does not answer" in tab.text("#banner")
        states = tab.page.eval_on_selector_all(".panel[data-state]", "all => all.map(one => one.dataset.state)")
        assert set(states) == {"failed"}


def test_while_the_service_starts_it_says_with_what_calmly_and_loads_by_itself(browser, shop):
    detail = "code is being compiled, which takes about a minute on a new machine; try again in a few seconds"
    problem = {
        "type": "urn:bough:problem:starting",
        "title": "The service is starting",
        "status": 503,
        "detail": detail,
    }
    with Tab(browser, shop.address, expected=["503"]) as tab:
        for address in ("**/v1/**", "**/v1"):
            tab.page.route(
                address, lambda route: route.fulfill(status=503, json=problem, content_type="application/problem+json")
            )
        tab.open(shop.link, state="starting")
        assert tab.text("#pill") == "starting"
        assert tab.page.get_attribute("#pill", "class") == "pill"
        assert "The service is starting: code is being compiled, which takes about a minute" in tab.text("#banner")
        assert tab.page.locator(".panel[data-state=failed]").count() == 0
        assert "could not" not in tab.text("body")
        for address in ("**/v1/**", "**/v1"):
            tab.page.unroute(address)
        tab.page.wait_for_selector("body[data-state=ready]")
        assert tab.text("#pill") == "healthy"
        assert tab.page.is_hidden("#banner")


# -- the map ---------------------------------------------------------------------------------------


def test_cells_and_their_numbers_are_those_of_the_service(tab, shop):
    nodes, cells = treemap(shop)["nodes"], tab.cells()
    assert set(cells) == set(nodes["name"])
    for name, mean, deviation, decisions in zip(
        nodes["name"], nodes["mean"], nodes["deviation"], nodes["decisions"], strict=True
    ):
        found = cells[name]
        assert float(found["mean"]) == mean
        assert float(found["deviation"]) == deviation
        assert int(found["decisions"]) == decisions


def test_areas_follow_the_square_root_of_decisions(tab):
    found = tab.page.eval_on_selector_all(
        ".cell:not(.header)", "cells => cells.map(one => [+one.dataset.decisions, one.offsetWidth * one.offsetHeight])"
    )
    tried = [(decisions**0.5, area) for decisions, area in found if decisions >= 2]
    assert len(tried) > 5
    per_root = [area / root for root, area in tried]
    assert max(per_root) < 2.0 * min(per_root)  # rows for headers and whole pixels take their parts


def test_one_scale_of_colours_is_for_the_whole_map_whatever_is_open_or_was_opened_first(browser, tab, shop):
    names = ["home/kitchen", "home/bath", "home/kitchen/red one"]
    colour = "one => one.style.backgroundColor"
    colours, legend = [tab.cell(name).evaluate(colour) for name in names], tab.text("#legend")
    assert all(len(re.sub(r"[^0-9]", "", text).lstrip("0")) <= 3 for text in re.findall(r"[\d.]+", legend))
    tab.cell("home").click()
    tab.page.wait_for_selector('#path [aria-current] >> text="home"')
    assert [tab.cell(name).evaluate(colour) for name in names] == colours
    assert tab.text("#legend") == legend
    with Tab(browser, shop.address) as other:
        other.open(f"{shop.address}/#key={shop.key}&experiment=shop&node=home")
        assert [other.cell(name).evaluate(colour) for name in names] == colours


def test_intervals_of_clicks_in_cells_are_those_of_the_service_and_never_below_nothing(browser, shop):
    shop.ask("PUT", "/v1/clicks", {})
    tree = bough.Tree.from_paths(["home/kettle", "home/mug", "garden/spade"])
    model = shop.folder / "clicks.bough"
    bough.BernoulliModel(tree, mean=-3.0).save(model)
    assert shop.ask("PUT", "/v1/clicks/model", model.read_bytes()).status == 200
    with Tab(browser, shop.address) as tab:
        tab.open(f"{shop.address}/#key={shop.key}&experiment=clicks")
        shown = tab.text("#treemap")
        assert "±" not in shown
        intervals = re.findall(r"(\S+) \((\S+) to (\S+)\)", shown)
        assert intervals
        assert all(0.0 < float(low) < float(mean) < float(high) for mean, low, high in intervals)


def test_a_click_opens_and_the_path_escape_and_the_browser_go_back(tab, shop):
    tab.cell("home").click()
    tab.page.wait_for_url("**node=home*")
    tab.page.wait_for_selector('#path [aria-current] >> text="home"')
    assert set(tab.cells()) == set(treemap(shop, "home")["nodes"]["name"])
    tab.cell("home/kitchen").click()
    tab.page.wait_for_selector('#path [aria-current] >> text="kitchen"')
    tab.page.click('#path button >> text="home"')
    tab.page.wait_for_selector('#path [aria-current] >> text="home"')
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector('#path [aria-current] >> text="all actions"')
    tab.page.go_back()
    tab.page.wait_for_selector('#path [aria-current] >> text="home"')


def test_a_deep_link_opens_where_it_was_copied(browser, shop):
    with Tab(browser, shop.address) as tab:
        tab.open(f"{shop.address}/#key={shop.key}&experiment=shop&node=garden%2Ftools&list=uncertain&decision=d7")
        assert tab.text("#path [aria-current]") == "tools"
        assert tab.text("#best-title") == "Most uncertain actions"
        assert tab.page.is_visible("#why-answer h3")
        tab.page.reload()  # without the key in the address: the tab has it
        tab.page.wait_for_selector("body[data-state=ready]")
        assert tab.text("#path [aria-current]") == "tools"


def test_hovering_says_the_path_the_mean_with_its_interval_and_what_was_observed(tab, shop):
    nodes = treemap(shop)["nodes"]
    place = nodes["name"].index("home/kitchen")
    tab.cell("home/kitchen").hover()
    said = tab.text("#details")
    assert "home › kitchen" in said
    for column in ("mean", "low", "high", "observed_mean"):
        assert f"{nodes[column][place]:.2f}".replace("-", "−") in said
    assert re.search(rf"decisions\s+{nodes['decisions'][place]}\b", said)


def test_the_keyboard_alone_goes_from_everything_to_everything(tab):
    page = tab.page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search-text"
    page.keyboard.type("toys/kites")
    page.wait_for_selector("#search-results li[aria-selected=true]")
    page.keyboard.press("Enter")
    page.wait_for_selector('#path [aria-current] >> text="toys"')
    page.wait_for_function("() => document.activeElement.dataset.node === 'toys/kites'")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.node").startswith("toys/kites/")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.node") == "toys/kites"
    assert page.is_visible("#details")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.node") == "toys"
    page.keyboard.press("Escape")
    page.wait_for_selector('#path [aria-current] >> text="all actions"')
    page.wait_for_function("() => document.activeElement.dataset.node === 'toys'")
    page.keyboard.press("Enter")
    page.wait_for_selector('#path [aria-current] >> text="toys"')
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('section, header')?.id"))
    assert {"map", "best", "why", "time", "prior"} <= reached


def test_search_finds_names_in_any_case_and_opens_what_is_chosen(tab):
    tab.page.fill("#search-text", "BLUE ONE")
    tab.page.wait_for_selector("#search-results li")
    found = tab.page.eval_on_selector_all("#search-results .name", "all => all.map(one => one.textContent)")
    assert len(found) == 8
    assert all("blue one" in text for text in found)
    tab.page.click("#search-results li >> nth=0")
    tab.page.wait_for_selector("#search-results", state="hidden")
    chosen = tab.page.wait_for_function("() => document.activeElement.dataset.node").json_value()
    assert chosen.replace("/", " › ") == found[0]
    tab.page.fill("#search-text", "xyzzy")
    tab.page.wait_for_selector("text=Nothing has that in its name.")


# -- the lists, explanations, time, the prior ------------------------------------------------------


@pytest.mark.parametrize("order", ["mean", "uncertain"])
def test_the_lists_have_the_numbers_of_the_service(tab, shop, order):
    tab.page.click(f'#best-orders [data-key="{order}"]')
    tab.page.wait_for_selector(f'#best-orders [data-key="{order}"][aria-pressed=true]')
    wanted = shop.ask("GET", f"/v1/shop/top?k=12&order={order}").body["nodes"]
    rows = tab.page.eval_on_selector_all(
        "#best-table tbody tr", "rows => rows.map(one => [one.dataset.action, +one.dataset.mean, one.innerText])"
    )
    assert [(name, mean) for name, mean, _ in rows] == [(node["name"], node["mean"]) for node in wanted]
    for node, (_, _, text) in zip(wanted, rows, strict=True):
        assert re.search(rf"\b{node['mean']:.2f}".replace("-", "−"), text)


def test_a_decision_just_made_is_explained_with_its_score_and_propensity(tab, shop):
    made = shop.decide(propensity=True)
    id = made["decision_id"]
    shop.reward(id, 1.25)
    button = tab.page.locator(f'#why-recent [data-key="{id}"] button')
    button.wait_for()
    tab.page.wait_for_selector(f'#why-recent [data-key="{id}"] >> text=reward 1.25')
    button.click()
    tab.page.wait_for_selector(f"#why-answer >> text={id}")
    wanted = shop.ask("GET", f"/v1/shop/decisions/{id}/explain").body
    assert wanted["action"] == made["action"]
    said = tab.text("#why-answer")
    assert wanted["sentence"][1:] in said
    assert f"{wanted['drawn']:.2f}".replace("-", "−") in said
    assert re.search(r"propensity\s+[\d.]+%", said)
    titles = tab.page.eval_on_selector_all("#why-answer h3", "all => all.map(one => one.textContent)")
    assert [re.search(r"ranked (\d+) of (\d+)", title).groups() for title in titles] == [
        (str(node["rank"]), str(node["of"])) for node in wanted["nodes"][1:]
    ]
    for table, node in zip(tab.page.locator("#why-answer table").all(), wanted["nodes"][1:], strict=True):
        ranks = table.locator("tbody tr").evaluate_all("rows => rows.map(one => +one.dataset.rank)")
        assert ranks == sorted(ranks)
        assert sorted(ranks) == sorted([node["rank"], *(one["rank"] for one in node["beside"])])


def test_an_id_that_there_is_not_is_said_so(browser, shop):
    with Tab(browser, shop.address, expected=["404"]) as tab:
        tab.open(shop.link)
        tab.page.fill("#why-id", "no-such-decision")
        tab.page.click("#why-form button")
        tab.page.wait_for_selector("#why[data-state=failed] >> text=there is no decision 'no-such-decision'")


def test_a_reward_changes_the_numbers_within_a_refresh_and_nothing_else_moves(tab, shop):
    before = tab.cells()
    tab.cell("home").focus()
    made = shop.decide()
    shop.reward(made["decision_id"], 9.0)
    tab.page.wait_for_function(
        "([node, mean]) => document.querySelector(`.cell[data-node='${node}']`).dataset.mean !== mean",
        arg=[made["action"], before[made["action"]]["mean"]],
    )
    assert set(tab.cells()) == set(before)
    assert tab.page.evaluate("document.activeElement.dataset.node") == "home"


def test_a_new_action_and_a_retired_one_appear(tab, shop):
    assert (
        shop.ask("POST", "/v1/shop/actions", {"op": "add", "name": "home/bath/new one", "under": "home/bath"}).status
        == 200
    )
    assert shop.ask("POST", "/v1/shop/actions", {"op": "retire", "name": "toys/dolls/red one"}).status == 200
    tab.page.wait_for_selector('.cell.new[data-node="home/bath/new one"]')
    tab.page.wait_for_selector('.cell.retired[data-node="toys/dolls/red one"]')
    tab.page.click('#best-orders [data-key="newest"]')
    tab.page.wait_for_selector('#best-table tr[data-action="home/bath/new one"]')
    tab.page.click('#best-orders [data-key="retired"]')
    tab.page.wait_for_selector('#best-table tr[data-action="toys/dolls/red one"]')
    tab.page.reload()
    tab.page.wait_for_selector("body[data-state=ready]")
    assert "1 action added" in tab.text("#changes")
    assert "1 action retired" in tab.text("#changes")
    wanted = len(shop.ask("GET", "/v1/shop/series?minutes=60").body["changes"])
    tab.page.wait_for_selector(f'#chart-reward [data-changes="{wanted}"]')


def test_charts_have_their_latest_values_and_the_prior_its_levels(tab, shop):
    tab.page.wait_for_selector("#chart-gain canvas")
    series = shop.ask("GET", "/v1/shop/series?minutes=60").body
    assert any(value is not None for value in series["exploration"])
    assert any(value is not None and value >= 0 for value in series["gain_left"])
    for chart in ("reward", "exploration", "gain"):
        assert re.search(r"\d", tab.text(f"#chart-{chart} .latest"))
        assert "the latest value is" in tab.page.get_attribute(f"#chart-{chart} [role=img]", "aria-label")
    levels = shop.ask("GET", "/v1/shop/prior").body["levels"]
    rows = tab.page.eval_on_selector_all("#prior-table tbody tr", "rows => rows.map(one => one.innerText.split('\\t'))")
    assert [row[0] for row in rows] == [level["level"] for level in levels]
    assert [float(row[1]) for row in rows] == pytest.approx([level["variance"] for level in levels], rel=5e-3)
    assert "last refit" in tab.text("#prior-facts")


def test_decisions_of_the_running_minute_are_said_and_ticks_differ(tab, shop):
    shop.decide()
    tab.page.wait_for_function("() => /last full minute/.test(document.querySelector('#chart-traffic').textContent)")
    ticks = """async (all) => {
        const { tickTexts } = await import(new URL("page/numbers.js", document.baseURI));
        return all.map((values) => tickTexts(values));
    }"""
    found = tab.page.evaluate(ticks, [[0, 0.25, 0.5], [0.02, 0.025, 0.03], [0, 1000, 2000], [-1, -0.5, 0], [3]])
    assert found == [
        ["0.00", "0.25", "0.50"], ["0.020", "0.025", "0.030"], ["0", "1,000", "2,000"], ["−1.0", "−0.5", "0.0"], ["3"],
    ]  # fmt: skip


def test_a_draw_far_above_the_mean_is_said_to_be_exploration_and_columns_have_heads(browser, shop):
    wanted = shop.ask("GET", "/v1/shop/decisions/d3/explain").body
    mean, high = wanted["nodes"][-1]["mean"], wanted["nodes"][-1]["high"]
    for drawn, is_far in ((mean, False), (high + 1.0, True)):
        with Tab(browser, shop.address) as tab:
            answer = {**wanted, "drawn": drawn}
            tab.page.route("**/decisions/d3/explain", lambda route, _, answer=answer: route.fulfill(json=answer))
            tab.open(f"{shop.link}&decision=d3")
            tab.page.wait_for_selector("#why-answer h3")
            assert ("so this was exploration" in tab.text("#why-answer .facts")) == is_far
            heads = tab.page.locator("#why-answer thead")
            assert heads.first.inner_text().split() == ["name", "95%", "interval", "mean", "decisions"]
            assert [one.is_visible() for one in heads.all()] == [True] + [False] * (heads.count() - 1)


def test_health_says_the_mode_the_lag_and_what_failed(tab):
    said = tab.text("#health-facts")
    for text in (
        "learn: decides and learns",
        "none: all that is logged is learned",
        "empty",
        "snapshot",
        "0%",
        "version 1",
    ):
        assert text in said


@pytest.mark.parametrize(
    ("button", "head"),
    [("map", "node,path,mean,low,high"), ("best", "action,mean,low,high"), ("time", "start,decisions,rewards"),
     ("prior", "level,variance,low,high"), ("why", "level,name,chosen,rank")],
)  # fmt: skip
def test_any_table_is_copied_as_csv(tab, button, head):
    tab.page.wait_for_selector(f"#{button}[data-state=ready]")
    tab.page.click(f"#{button}-copy")
    tab.page.wait_for_selector(f"#{button}-copy >> text=Copied")
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(head)
    if button == "map":
        assert len(copied.splitlines()) == 1 + len(tab.cells())
