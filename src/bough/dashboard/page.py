"""The files of the dashboard as they are served, and the same page as one self-contained file.

The page is written without a build step: one HTML file, one style sheet, small ES modules and two vendored libraries.
Nothing of it may load anything from elsewhere, run text as code, or have styles in its markup: the policies below say
so to the browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript", "txt": "text/plain"}
_BASE = "default-src 'none'; base-uri 'none'; form-action 'none'"
SERVED_POLICY = (
    f"{_BASE}; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page where a service serves it."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_DEFINED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


class File(NamedTuple):
    """A file of the page, as it is sent."""

    media: str
    data: bytes


@cache
def served_files() -> dict[str, File]:
    """All files of the page by their addresses; that of the page itself is "/".

    >>> sorted(served_files())[:3], served_files()["/page/main.js"].media
    (['/', '/page/best.js', '/page/colours.js'], 'text/javascript; charset=utf-8')
    """
    found = {}
    for folder in ("", "vendor/"):
        for one in (files("bough.dashboard") / folder).iterdir():
            ending = one.name.rpartition(".")[2]
            if ending in _MEDIA:
                address = "/" if one.name == "page.html" else f"/page/{folder}{one.name}"
                found[address] = File(f"{_MEDIA[ending]}; charset=utf-8", one.read_bytes())
    return found


def self_contained(data: dict[str, Any]) -> str:
    """The whole page as one file, with these data in it: what `file_source.js` reads.

    >>> page = self_contained({"title": "</script><b>"})
    >>> "<b>" in page, "http-equiv" in page, "src=" in page
    (False, True, False)
    """
    page = _text("/")
    styles = "\n".join(_text(f"/{one}") for one in re.findall(r'<link rel="stylesheet" href="([^"]+)">', page))
    scripts = [_text(f"/{one}") for one in re.findall(r'<script defer src="([^"]+)">', page)]
    scripts.append(in_one_module("main.js"))
    policy = f"{_BASE}; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(styles)}; img-src data:"
    page = re.sub(r'<link rel="stylesheet"[^\n]*\n', "", page)
    page = re.sub(r"<script [^\n]*</script>\n", "", page)
    head = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    page = page.replace('<meta charset="utf-8">', head, 1)
    page = page.replace("</head>", f"<style>{styles}</style>\n</head>", 1)
    kinds = ["", "", ' type="module"']
    texts = [f"<script{kind}>{script}</script>" for kind, script in zip(kinds, scripts, strict=True)]
    json_text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    embedded = f'<script type="application/json" id="data">{json_text}</script>'
    return page.replace("</body>", "\n".join([embedded, *texts, "</body>"]), 1)


def in_one_module(first: str) -> str:
    """A module and all that it imports, as one module; a `ValueError` where two of them define the same name.

    Modules here import by name from files beside them, and from nowhere else.
    """
    order: list[str] = []
    _put_in_order(first, order)
    defined: dict[str, str] = {}
    parts = []
    for name in order:
        text = _IMPORT.sub("", _text(f"/page/{name}"))
        for one in _DEFINED.findall(text):
            if one in defined:
                raise ValueError(f"{defined[one]} and {name} both define {one}; one file has room for one of them")
            defined[one] = name
        parts.append(re.sub(r"^export ", "", text, flags=re.MULTILINE))
    text = "\n".join(parts)
    if "</script" in text or "<!--" in text:
        raise ValueError("a module has what ends a script in HTML; write it in two parts")
    return text


def _put_in_order(name: str, order: list[str]) -> None:
    for needed in _IMPORT.findall(_text(f"/page/{name}")):
        if needed not in order:
            _put_in_order(needed, order)
    if name not in order:
        order.append(name)


def _text(address: str) -> str:
    return served_files()[address].data.decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
