"""Keys: how they are made, and whether one reaches what is asked for.

A key is a token of 256 random bits, and the log keeps its SHA-256. Passwords need a slow hash with salt because people
choose them, so that lists of likely ones can be tried; of 2^256 tokens none is likelier than another, and a fast hash
without salt gives as little away.

Tokens are found in a dictionary by their hashes. How long that takes depends on bits of a hash, which nobody can choose
without trying tokens at random, and so it tells nothing about how much of a token was right.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple, get_args

from bough.service.problems import Problem
from bough.service.records import KeyRow
from bough.service.schema import Scope

SCOPES: tuple[Scope, ...] = get_args(Scope)
PUBLIC = KeyRow("public", b"", ["read"], None, 200.0, 0.0)
"""The key of those who have none, where an experiment can be read without one."""
_LONGEST = 256
"""Headers longer than this hold no key, and are not hashed."""


def token_hash(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode()).digest()


def make_key(
    scopes: Sequence[Scope], *, at: float, experiment: str | None = None, rate: float | None = None
) -> tuple[str, KeyRow]:
    """A new token, and the row that is kept of it.

    >>> token, row = make_key(["decide", "reward"], at=0.0, experiment="shop")
    >>> token.startswith("bough_"), row.hash == token_hash(token), row.scopes
    (True, True, ['decide', 'reward'])
    """
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise ValueError(f"scopes are {list(scopes)}; give one or more of {', '.join(SCOPES)}")
    if rate is not None and not 0 < rate < float("inf"):
        raise ValueError(f"rate is {rate}; give the requests per second that the key may make, more than 0")
    token = f"bough_{secrets.token_urlsafe(32)}"
    ordered: list[str] = [scope for scope in SCOPES if scope in scopes]
    return token, KeyRow(f"k{secrets.token_hex(6)}", token_hash(token), ordered, experiment, rate, at)


class _Pass(NamedTuple):
    """A key as requests are checked against it."""

    scopes: frozenset[str]
    experiment: str | None
    row: KeyRow


class _Held(NamedTuple):
    """The keys of one moment; what was found in them goes with them when they are replaced."""

    by_hash: dict[bytes, _Pass]
    by_header: dict[bytes, _Pass]
    """The headers of keys that were found before: at most one per key."""


class Keyring:
    """The keys that are valid now.

    >>> token, row = make_key(["read"], at=0.0)
    >>> ring = Keyring([row])
    >>> ring.check(b"Bearer " + token.encode(), "read", "shop").id == row.id
    True
    >>> ring.check(None, "read", "shop")
    Traceback (most recent call last):
    bough.service.problems.Problem: no key was sent
    """

    def __init__(self, rows: Iterable[KeyRow] = ()) -> None:
        self.reload(rows)

    def reload(self, rows: Iterable[KeyRow]) -> None:
        """Replace all keys; those that are not among the rows, or are revoked there, are refused from now on."""
        passes = {
            row.hash: _Pass(frozenset(SCOPES if "admin" in row.scopes else row.scopes), row.experiment, row)
            for row in rows
            if row.revoked is None
        }
        self._held = _Held(passes, {})

    def __len__(self) -> int:
        return len(self._held.by_hash)

    def check(self, header: bytes | None, scope: Scope, experiment: str | None) -> KeyRow:
        """The key in an Authorization header; a problem where there is none, or where it does not reach this far.

        `experiment` is None for what concerns the whole service: a key for one experiment does not reach that.
        """
        held = self._held
        found = held.by_header.get(header) if header is not None else None
        if found is None:
            found = _look_up(held, header)
        if scope in found.scopes and (found.experiment is None or found.experiment == experiment):
            return found.row
        raise _wrong_scope(found, scope, experiment)


def _look_up(held: _Held, header: bytes | None) -> _Pass:
    """A key by the hash of its token."""
    if header is None:
        raise _no_key("no key was sent")
    scheme, _, rest = header.partition(b" ")
    token = rest.strip()
    if scheme.lower() != b"bearer" or not token or len(header) > _LONGEST:
        raise _no_key("the header Authorization does not hold a key")
    digest = sha256(token).digest()
    found = held.by_hash.get(digest)
    if found is None or not hmac.compare_digest(found.row.hash, digest):
        raise _no_key("the key is not known, or was revoked", ', error="invalid_token"')
    if header == b"Bearer " + token:
        held.by_header[header] = found
    return found


def _no_key(detail: str, more: str = "") -> Problem:
    return Problem(
        "no-key",
        detail,
        remedy="send Authorization: Bearer KEY; bough key create makes one",
        headers={"www-authenticate": f'Bearer realm="bough"{more}'},
    )


def _wrong_scope(found: _Pass, scope: str, experiment: str | None) -> Problem:
    row = found.row
    if scope not in found.scopes:
        detail = f"the key {row.id} may {', '.join(row.scopes)}, and this needs {scope}"
    elif experiment is None:
        detail = f"the key {row.id} is for the experiment {row.experiment!r} only, and this concerns the whole service"
    else:
        detail = f"the key {row.id} is for the experiment {row.experiment!r} only, and this is {experiment!r}"
    return Problem("wrong-scope", detail, remedy="use another key; bough key create makes one")
