"""The dashboard of an agent as one file: no service, no network, the numbers of the library."""

import gzip
import json
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import bough
from bough import cli
from bough.dashboard import page
from bough.service.agent_page import page_data
from bough.service.prior_view import prior
from bough.service.records import ChangeRow
from bough.service.traffic import Traffic
from browsing import Tab

PATHS = [f"{a}/{b}/{c}" for a in ("tea", "coffee") for b in ("hot", "cold") for c in ("small", "large")]


def taught(tree=None, n=40):
    tree = bough.Tree.from_paths(PATHS) if tree is None else tree
    agent = bough.HierTS(bough.GaussianModel(tree, 1.0), seed=0)
    rng = np.random.default_rng(0)
    agent.update(rng.choice(np.array(tree.actions, dtype=object), n), rng.normal(1.0, 1.0, n))
    return agent


def embedded(path):
    """The data in a page."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
    return json.loads(text)


def test_the_file_shows_what_the_agent_knows_and_asks_nobody(browser, tmp_path):
    agent = taught()
    agent.retire("tea/hot/small")
    agent.dashboard(tmp_path / "page.html", title="teas & <b>coffees</b>")
    mean = dict(zip(agent.posterior.model.tree.node_names.names(np.arange(15)), agent.posterior.mean, strict=True))
    with Tab(browser) as tab:
        tab.open(f"file://{tmp_path / 'page.html'}")
        assert tab.text("#experiment-name") == "teas & <b>coffees</b>"
        cells = tab.cells()
        assert set(cells) == set(mean)
        for name, value in mean.items():
            assert float(cells[name]["mean"]) == pytest.approx(value, rel=1e-5)
        assert sum(int(cells[name]["decisions"]) for name in PATHS) == 40
        assert "retired" in tab.cell("tea/hot/small").get_attribute("class")
        assert tab.page.locator("#best-table tbody tr").count() == 7
        tab.cell("tea").click()
        tab.page.wait_for_selector('#path [aria-current] >> text="tea"')
        tab.page.keyboard.press("Escape")
        tab.page.fill("#search-text", "COLD/large")
        tab.page.wait_for_selector("#search-results li")
        assert tab.page.locator("#search-results li").count() == 2
        assert tab.page.is_visible("#why-answer h3")
        assert tab.page.is_hidden("#time")
        assert tab.page.is_hidden("#health")
        assert tab.page.is_hidden("#left-out")
        assert all(url.startswith(("file:", "data:")) for url in tab.requests)


def test_the_file_of_a_large_tree_says_what_it_leaves_out(browser, tmp_path):
    tree = bough.Tree.balanced(branching=40, height=3)
    agent = taught(tree, 500)
    agent.dashboard(tmp_path / "page.html")
    data = embedded(tmp_path / "page.html")
    shown, all_nodes = len(data["tree"]["nodes"]["name"]), tree.n_nodes
    assert shown <= 20_000 < all_nodes
    assert sum(data["tree"]["nodes"]["more"]) <= all_nodes - shown
    assert (tmp_path / "page.html").stat().st_size < 3e6
    with Tab(browser) as tab:
        tab.open(f"file://{tmp_path / 'page.html'}")
        said = tab.text("#left-out")
        assert f"{shown:,} of {all_nodes:,} nodes" in said
        assert f"{all_nodes - shown:,} are left out" in said
        assert tab.page.locator(".cell").count() < 2_000


def test_names_cannot_leave_the_data_they_are_in(browser, tmp_path):
    odd = ["</script><script>document.title='owned'</script>", "<!--", "\u2028", "ünï"]
    taught(bough.Tree.from_nested(odd)).dashboard(tmp_path / "page.html", title="</title><b>")
    with Tab(browser) as tab:
        tab.open(f"file://{tmp_path / 'page.html'}")
        assert set(odd) <= set(tab.cells())
        assert tab.page.title() == "</title><b> · bough"


def test_the_policy_of_the_file_names_its_scripts_by_their_hashes(tmp_path):
    taught().dashboard(tmp_path / "page.html")
    [policy] = re.findall(
        r'http-equiv="Content-Security-Policy" content="([^"]+)"', (tmp_path / "page.html").read_text()
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 4


@pytest.mark.parametrize("policy", [bough.TS, bough.FlatTS, bough.BayesUCB, bough.Greedy])
def test_every_agent_with_a_posterior_has_a_page(tmp_path, policy):
    agent = policy(bough.BernoulliModel(bough.Tree.from_paths(PATHS)), seed=0)
    agent.update(PATHS[:4], [1.0, 0.0, 1.0, 0.0])
    agent.dashboard(tmp_path / "page.html")
    assert embedded(tmp_path / "page.html")["experiment"]["observations"] == 4


NOISY = bough.GaussianModel(
    bough.Tree.from_paths(PATHS), 1.0, noise=bough.per_action(median=0.5, spread=1.0, floor=0.001)
)


def facts_of(browser, data, path):
    """What the page says of the prior below its table, by its terms."""
    path.write_text(page.self_contained(msgspec.to_builtins(data)), encoding="utf-8")
    with Tab(browser) as tab:
        tab.open(f"file://{path}")
        said = tab.text("#prior-facts").splitlines()
    return dict(zip(said[::2], said[1::2], strict=True))


def test_the_prior_says_in_words_how_noise_differs_from_action_to_action(browser, tmp_path):
    data = page_data(bough.HierTS(NOISY, seed=0), "teas", 0.0)
    said = facts_of(browser, data, tmp_path / "page.html")
    what = "variance of a reward around its action's mean"
    assert said[what] == "its own for each action: two thirds of the actions between 0.185 and 1.36"
    names = ("its median, above the floor", "spread of its logarithm", "its floor")
    assert [said[name] for name in names] == ["0.5", "1", "0.001"]
    estimates = {"noise": [0.5, 0.45, 0.55], "noise spread": [1.0, 0.9, 1.1], "noise floor": [1e-3, 1e-9, 1e3]}
    body, traffic = {"version": 2, "refit": True, "estimates": estimates}, Traffic()
    traffic.history.note_change(ChangeRow(1, 9.0, "model", "me", body, seq=2))
    said = facts_of(browser, {**data, "prior": prior(bough.HierTS(NOISY), traffic)}, tmp_path / "refit.html")
    assert [said[name] for name in names] == [
        "0.5 (95% interval 0.45 to 0.55)", "1 (95% interval 0.9 to 1.1)", "0.001 (hardly known)"
    ]  # fmt: skip
    alike = replace(NOISY, noise=bough.per_action(median=0.5, spread=0.0, floor=0.001))
    said = facts_of(browser, page_data(bough.HierTS(alike), "teas", 0.0), tmp_path / "alike.html")
    assert said[what] == "0.501 for every action"
    one = page_data(bough.HierTS(bough.GaussianModel(NOISY.tree, noise_variance=0.25)), "teas", 0.0)
    said = facts_of(browser, one, tmp_path / "one.html")
    assert said[what] == "0.25"
    assert not said.keys() & set(names)


def test_an_agent_with_contexts_says_that_its_numbers_are_of_the_average_context(tmp_path):
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(PATHS), [0.0, 1.0]), seed=0)
    agent.update("tea/hot/small", 1.0, [1.0, 0.5])
    agent.dashboard(tmp_path / "page.html")
    assert "average context" in embedded(tmp_path / "page.html")["left_out"]


def test_an_agent_that_has_seen_nothing_has_a_page(browser, tmp_path):
    bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(PATHS)), seed=0).dashboard(tmp_path / "page.html")
    with Tab(browser) as tab:
        tab.open(f"file://{tmp_path / 'page.html'}")
        assert "No rewards yet" in tab.text("#map .message")


def test_the_command_writes_the_same_page(tmp_path, capsys):
    agent = taught()
    agent.save(tmp_path / "teas.bough")
    words = ["dashboard", str(tmp_path / "teas.bough"), "--out", str(tmp_path / "page.html")]
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == (tmp_path / "page.html").stat().st_size
    found, agents_own = embedded(tmp_path / "page.html"), tmp_path / "own.html"
    agent.dashboard(agents_own, title="teas")
    own = embedded(agents_own)
    assert {**found, "at": 0} == {**own, "at": 0}
    bough.BetaTS(bough.BernoulliModel(agent.posterior.model.tree)).save(tmp_path / "beta.bough")
    assert cli.main(["dashboard", str(tmp_path / "beta.bough"), "--out", str(tmp_path / "no.html")]) == 2
    assert "holds a BetaTS, which has no posterior to show" in capsys.readouterr().err
    assert not (tmp_path / "no.html").exists()


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="no-such-folder"):
        taught().dashboard(tmp_path / "no-such-folder" / "page.html")
    with pytest.raises(ValueError, match="title is 7; give a text"):
        taught().dashboard(tmp_path / "page.html", title=7)
    with pytest.raises(ValueError, match="agent is a Tree, which has no posterior to show"):
        bough.write_dashboard(bough.Tree.from_paths(PATHS), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


# -- what the page is made of ----------------------------------------------------------------------


def test_all_of_the_page_is_less_than_60_kb_compressed():
    vendored = [one.data for name, one in page.served_files().items() if "/vendor/" in name and "LICENSE" not in name]
    assert sum(len(gzip.compress(data)) for data in vendored) < 30_000
    assert len(gzip.compress(page.self_contained({"title": ""}).encode())) < 60_000


def test_vendored_files_have_their_versions_in_their_names_and_their_licences_beside_them():
    vendored = [name for name in page.served_files() if "/vendor/" in name and "LICENSE" not in name]
    assert len(vendored) == 3
    for name in vendored:
        [stem] = re.findall(r"/([\w-]+-\d+\.\d+\.\d+)\.", name)
        assert f"/page/vendor/{stem}.LICENSE.txt" in page.served_files()


def test_modules_put_data_on_the_page_as_text_only():
    for name, one in page.served_files().items():
        if name.endswith(".js") and "/vendor/" not in name:
            text = one.data.decode()
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?:", text
            )
            assert found == [], name
            assert len(text.splitlines()) < 300, name


def test_two_modules_that_define_one_name_are_refused(monkeypatch):
    found = dict(page.served_files())
    first = found["/page/numbers.js"]
    found["/page/numbers.js"] = first._replace(data=first.data + b"\nexport function byId() {}\n")
    monkeypatch.setattr(page, "served_files", lambda: found)
    with pytest.raises(ValueError, match="both define byId"):
        page.in_one_module("main.js")
