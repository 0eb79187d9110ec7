"""Problems: their shape, and that each code is explained."""

import re
from pathlib import Path

import pytest

from bough.service.problems import KINDS, Problem, refused
from bough.service.routes import ROUTES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "service-problems.md"


def test_the_page_explains_each_code_in_order_and_no_other_with_its_status():
    sections = re.findall(r"^## (\S+)\n\n(\d+)\. ", PAGE.read_text(), re.MULTILINE)
    assert sections == [(code, str(kind.status)) for code, kind in KINDS.items()]


def test_every_code_is_a_problem_of_some_route():
    assert {code for route in ROUTES.values() for code in route.codes} == set(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_a_problem_has_the_shape_of_rfc_9457(code):
    problem = Problem(code, "what is wrong", value=[1, 2], remedy="what to do")
    assert problem.to_dict() == {
        "type": f"urn:bough:problem:{code}",
        "title": KINDS[code].title,
        "status": KINDS[code].status,
        "detail": "what is wrong",
        "value": [1, 2],
        "remedy": "what to do",
    }


def test_what_is_not_known_is_left_out():
    assert set(Problem("internal", "failed").to_dict()) == {"type", "title", "status", "detail"}


@pytest.mark.parametrize("value", [0, 0.0, False, "", []])
def test_a_value_that_is_empty_is_still_a_value(value):
    assert Problem("invalid-value", "no", value=value).to_dict()["value"] == value


@pytest.mark.parametrize(("seconds", "header"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.01, "2"), (60.0, "60")])
def test_retry_after_is_a_header_in_whole_seconds_and_never_too_early(seconds, header):
    assert Problem("overloaded", "no", retry_after=seconds).headers == {"retry-after": header}


def test_problems_do_not_share_their_headers():
    given = {"allow": "GET"}
    Problem("wrong-method", "no", headers=given, retry_after=1.0)
    assert given == {"allow": "GET"}


@pytest.mark.parametrize(
    ("error", "detail", "remedy"),
    [
        (ValueError("k is 9; give at most 3"), "k is 9; give at most 3", "give at most 3"),
        (KeyError("there is no 'tea'; add it"), "there is no 'tea'; add it", "add it"),
        (ValueError("no remedy"), "no remedy", None),
        (KeyError("no 'tee'; did you mean 'tea'?"), "no 'tee'; did you mean 'tea'?", "give 'tea', if that is meant"),
        (
            KeyError("no 'x'; an action of this tree is 'tea'"),
            "no 'x'; an action of this tree is 'tea'",
            "give the name of an action, such as 'tea'",
        ),
        (
            ValueError("no levels; give factors={'store': ...}"),
            'no levels; give "factors": {"store": ...}',
            'give "factors": {"store": ...}',
        ),
        (ValueError(), "", None),
    ],
)
def test_what_the_library_refuses_becomes_a_problem_with_its_words(error, detail, remedy):
    problem = refused(error)
    assert (problem.code, problem.detail, problem.remedy) == ("invalid-value", detail, remedy)
