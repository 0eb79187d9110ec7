"""The site as it is built: every link leads somewhere, nothing comes from elsewhere, nothing scrolls sideways."""

import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import browsing
from pages import DOCS

pytest.importorskip("sphinx", reason="the site is built by sphinx; pip install '.[docs]' in a clone")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
SEARCHES = {
    "cold start": {"start/faq", "reference/glossary"},
    "propensity": {"howto/logging-decisions", "reference/glossary"},
    "decay": {"start/faq", "reference/glossary"},
    "REST": {"reference/http"},
}
"""What new users look for, and some pages that they should find."""
CUT = "blocks => blocks.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText.slice(0, 80))"
"""The blocks of code that do not show all of their lines."""


class Page(HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and "stylesheet" in given.get("rel", ""):
            self.loaded.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    built = subprocess.run(words, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4_000:]
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """Every page of the site by its path, but for the pages of source code."""
    found = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    return {name: page for name, page in found.items() if not name.startswith(("_modules/", "_static/"))}


def test_every_link_of_the_site_leads_somewhere(site, pages):
    ids, wrong = {name: page.ids for name, page in pages.items()}, []
    for name, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = unquote(urlsplit(urljoin(f"/{name}", link)).path).lstrip("/") or name
            known = ids.get(target)
            if not (site / target).is_file() or (parts.fragment and known and unquote(parts.fragment) not in known):
                wrong.append((name, link))
    assert wrong == []


def test_the_site_loads_nothing_from_elsewhere(pages):
    assert [(name, link) for name, page in pages.items() for link in page.loaded if urlsplit(link).scheme] == []


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served for a browser."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium."""
    why = browsing.missing()
    if why is not None:
        pytest.skip(why)
    with browsing.browser() as opened:
        yield opened


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_scrolls_sideways_or_complains(browser, address, pages, dark):
    with browsing.Tab(browser, address, width=1280, dark=dark) as tab:
        for name in pages:
            tab.page.set_viewport_size({"width": 1280, "height": 900})
            tab.page.goto(f"{address}/{name}")
            tab.page.evaluate("window.MathJax?.startup?.promise.then(() => null)")
            assert tab.page.locator("mjx-merror").count() == 0, name
            for width in (1280, 400):
                tab.page.set_viewport_size({"width": width, "height": 900})
                wide = tab.page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, (name, width, wide)
                cut = tab.page.locator("pre").evaluate_all(CUT)
                assert width == 400 or not cut, (name, cut)


@pytest.mark.parametrize("words", SEARCHES)
def test_the_search_finds_what_new_users_look_for(browser, address, words):
    with browsing.Tab(browser, address) as tab:
        tab.page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
        tab.page.wait_for_function(
            "document.querySelector('#search-results p.search-summary')?.textContent.includes('found')"
        )
        found = tab.page.eval_on_selector_all(
            "#search-results li a", "links => links.map(one => one.getAttribute('href'))"
        )
        places = {link.partition(".html")[0].removeprefix("./") for link in found}
        assert SEARCHES[words] <= places


def test_a_copy_button_leaves_the_prompts_out(browser, address):
    with browsing.Tab(browser, address) as tab:
        tab.page.goto(f"{address}/start/tutorial.html")
        block = tab.page.locator("div.highlight").nth(1)
        block.hover()
        block.locator("button.copybtn").click()
        copied = tab.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("tree.path(")
        assert ">>>" not in copied
        assert "['', 'tea', 'green']" not in copied


def test_options_keep_their_hyphens(site):
    text = (site / "reference" / "cli.html").read_text()
    assert "\N{EN DASH}json" not in text
    assert "--json as one JSON document" in text


def test_types_are_named_in_the_words_of_readers(site):
    for page in sorted((site / "reference" / "api").glob("*.html")):
        text = page.read_text()
        assert "ForwardRef" not in text, page.name
        assert "<em>Floats" not in text, page.name
    policies = (site / "reference" / "api" / "policies.html").read_text()
    assert "vector, dict, Series or frame of one row" in policies
    assert 'href="posterior.html#bough.Posterior"' in policies
