"""Every link of the README and of the pages leads somewhere."""

import re

import pytest

from pages import FILES, PAGES, anchors, links, name_of


@pytest.mark.parametrize("page", [*FILES, *PAGES], ids=name_of)
def test_every_link_leads_somewhere(page):
    wrong = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            if not link.startswith("https://"):
                wrong.append(link)
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_a_link_to_nowhere_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[good](#a-page) [bad](#no-page) [worse](gone.md)\n\n```sh\n[code](x.md)\n```\n")
    assert links(page) == ["#a-page", "#no-page", "gone.md"]
    assert anchors(page) == {"a-page"}


def test_every_page_can_be_reached():
    """From the contents of the site, group by group; tables are parts of other pages."""
    reached = {
        (page.parent / f"{line.strip()}.md").resolve()
        for page in PAGES
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if re.fullmatch(r"[\w/-]+", line.strip())
    }
    assert {name_of(page) for page in PAGES if page.name != "index.md" and not page.name.endswith("-table.md")} <= {
        name_of(page) for page in reached
    }
