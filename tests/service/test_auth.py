"""Keys: what they open, and what they do not."""

import base64

import pytest

from bough.service.auth import SCOPES, Keyring, make_key, token_hash
from bough.service.problems import Problem


def bearer(token):
    return b"Bearer " + token.encode()


def refused(ring, header, scope="read", experiment="shop"):
    with pytest.raises(Problem) as caught:
        ring.check(header, scope, experiment)
    return caught.value


def test_a_token_has_256_random_bits_and_only_its_hash_is_kept():
    token, row = make_key(["read"], at=1.0)
    other, other_row = make_key(["read"], at=1.0)
    assert len(base64.urlsafe_b64decode(token.removeprefix("bough_") + "=")) == 32
    assert token != other
    assert row.id != other_row.id
    assert token not in repr(row)
    assert len(token_hash(token)) == 32


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("held", SCOPES)
def test_a_key_reaches_its_own_scopes_and_an_admins_all(scope, held):
    token, row = make_key([held], at=0.0)
    ring = Keyring([row])
    if held in (scope, "admin"):
        assert ring.check(bearer(token), scope, "shop") is row
    else:
        problem = refused(ring, bearer(token), scope)
        assert problem.status == 403
        assert scope in problem.detail


def test_a_key_with_several_scopes_has_each_of_them():
    token, row = make_key(["reward", "decide"], at=0.0)
    ring = Keyring([row])
    assert ring.check(bearer(token), "decide", "shop") is row
    assert ring.check(bearer(token), "reward", "shop") is row
    assert refused(ring, bearer(token), "read").code == "wrong-scope"


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_a_key_for_one_experiment_reaches_only_that_one(scope):
    token, row = make_key(["admin"], at=0.0, experiment="shop")
    ring = Keyring([row])
    assert ring.check(bearer(token), scope, "shop") is row
    assert refused(ring, bearer(token), scope, "news").status == 403
    assert refused(ring, bearer(token), scope, None).status == 403


@pytest.mark.parametrize(
    "header",
    [None, b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"Bearer no", b"Bearer \xff\x00", b"Bearer " + 999 * b"a"],
)
def test_what_holds_no_key_is_401_with_a_challenge(header):
    problem = refused(Keyring([make_key(["read"], at=0.0)[1]]), header)
    assert problem.status == 401
    assert problem.headers["www-authenticate"].startswith("Bearer")


def test_a_message_never_repeats_a_token():
    token, row = make_key(["read"], at=0.0)
    ring = Keyring([row])
    for problem in (refused(Keyring(), bearer(token)), refused(ring, bearer(token), "admin")):
        assert token not in str(problem.to_dict()) + str(problem.headers)


def test_the_scheme_is_read_in_any_case():
    token, row = make_key(["read"], at=0.0)
    ring = Keyring([row])
    assert ring.check(b"bearer  " + token.encode() + b" ", "read", "shop") is row


def test_a_key_is_one_only_as_a_whole():
    token, row = make_key(["read"], at=0.0)
    ring = Keyring([row])
    for wrong in (token[:-1], token + "a", token.upper(), row.hash.hex()):
        assert refused(ring, bearer(wrong)).status == 401


def test_a_revoked_key_is_refused_from_the_reload_on_also_where_it_was_in_use():
    token, row = make_key(["read"], at=0.0)
    kept, kept_row = make_key(["read"], at=0.0)
    ring = Keyring([row, kept_row])
    assert ring.check(bearer(token), "read", "shop") is row
    row.revoked = 5.0
    ring.reload([row, kept_row])
    assert refused(ring, bearer(token)).status == 401
    assert ring.check(bearer(kept), "read", "shop") is kept_row
    ring.reload([])
    assert refused(ring, bearer(kept)).status == 401


def test_what_is_remembered_grows_with_the_keys_and_not_with_the_requests():
    token, row = make_key(["read"], at=0.0)
    ring = Keyring([row])
    for spaces in range(1, 50):
        ring.check(b"Bearer" + spaces * b" " + token.encode(), "read", "shop")
        refused(ring, b"Bearer bough_%d" % spaces)
    assert len(ring._held.by_header) == 1


@pytest.mark.parametrize("scopes", [[], ["write"], ["read", "all"]])
def test_a_key_needs_scopes_that_there_are(scopes):
    with pytest.raises(ValueError, match="give one or more of decide, reward, read, admin"):
        make_key(scopes, at=0.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_must_let_something_through(rate):
    with pytest.raises(ValueError, match="requests per second"):
        make_key(["read"], at=0.0, rate=rate)
