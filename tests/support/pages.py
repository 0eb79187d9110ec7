"""The README and the pages of the docs as text: their links, headings, code blocks and commands."""

import re
import shlex
from pathlib import Path

from places import ROOT

DOCS = ROOT / "docs"
FILES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]
FENCE = re.compile(r"^(```+|~~~+)(.*?)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """What a page is called in messages."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """The text of a page without its code blocks; lines keep their numbers."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())


def links(page: Path) -> list[str]:
    """Where the links and images of a page lead."""
    text = prose(page)
    return re.findall(r"\]\(<?([^)\s>]+)>?\)", text) + re.findall(r'<img src="([^"]+)"', text)


def anchors(page: Path) -> set[str]:
    """The names of the headings of a page, as forges and Sphinx make them.

    >>> sorted(anchors(DOCS / "index.md"))
    ['bough']
    """
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*?)\s*$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = 0
        while (name := slug if not number else f"{slug}-{number}") in found:
            number += 1
        found.add(name)
    return found


def blocks(page: Path, *languages: str) -> list[str]:
    """The code blocks of a page in some languages."""
    return [code for _, language, code in FENCE.findall(page.read_text()) if language.strip() in languages]


def commands(page: Path) -> list[list[str]]:
    """The words of every `bough ...` in the shell blocks of a page, without what is done with its output."""
    found = []
    for language, prompt in (("sh", ""), ("console", "$ ")):
        for line in "\n".join(blocks(page, language)).replace("\\\n", " ").splitlines():
            if line.startswith(f"{prompt}bough "):
                words = shlex.split(line.removeprefix(prompt), comments=True)
                stops = [words.index(word) for word in words if word in ("|", ">", "<", "&&", "&")]
                found.append(words[1 : min(stops, default=len(words))])
    return found
