"""A real browser for the tests of the dashboard: Debian's chromium, driven by playwright, which downloads nothing."""

import shutil
from contextlib import contextmanager
from importlib.util import find_spec

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 30_000  # milliseconds, after which something that should have happened has not


def missing():
    """What is missing for tests in a browser, and what installs it; None where nothing is."""
    if find_spec("playwright") is None:
        return "playwright is not installed; pip install playwright"
    if CHROMIUM is None:
        return "there is no chromium; apt-get install chromium"
    return None


@contextmanager
def browser():
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield opened
        finally:
            opened.close()


class Tab:
    """A page of the browser that notes all that must not happen: errors, and requests to another host."""

    def __init__(self, browser, address="", *, width=1400, height=900, dark=False, expected=()):
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"] if address.startswith("http") else [],
        )
        self.page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.host, self.errors, self.requests, self._expected = address, [], [], expected
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message):
        if message.type in ("error", "warning") and not any(text in message.text for text in self._expected):
            self.errors.append(message.text)

    def open(self, address, state="ready"):
        """Open an address, and wait until the page is in a state."""
        self.page.goto(address)
        self.page.wait_for_selector(f"body[data-state={state}]")
        return self

    def refreshed(self):
        """Wait until what is shown was asked for again from the start."""
        for _ in range(2):  # one may be under way
            with self.page.expect_response(lambda answer: "/state" in answer.url):
                pass

    def cells(self):
        """What every cell of the treemap says, by the name of its node."""
        found = self.page.eval_on_selector_all(
            ".cell[data-node]", "cells => cells.map(one => [one.dataset.node, {...one.dataset}])"
        )
        return dict(found)

    def cell(self, node):
        """The cell of a node."""
        return self.page.locator(f'.cell[data-node="{node}"]')

    def text(self, selector):
        """The text of an element."""
        return self.page.inner_text(selector)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._context.close()
        if kind is None:
            assert self.errors == []
            elsewhere = [url for url in self.requests if not url.startswith((self.host, "data:", "file:", "blob:"))]
            assert elsewhere == []
