"""Decisions of the capped search against draws of everything, and errors planted in it, which must show."""

import pytest

import capped_cases
import planted_errors
from capped_cases import CASES, Case, star

DRAWS = 100_000
MANY = 1_000_000
LEAST = 1e-5  # of about a hundred p-values: a false alarm in a thousand runs
IN_DETAIL = [
    "a few touched",
    "concentrated",
    "families that mix leaves, groups and inner nodes",
    "the two best",
    "3,000 rounds, one path at a time",
]
TELLING = [
    "a few touched",
    "a deep tree, a few touched",
    "nearly the prior",
    "families that mix leaves, groups and inner nodes",
    "a champion that is known",
    "no champions",
]


def least_p(case, draws, spoil=None):
    posterior = case.make()
    found = capped_cases.capped_law(case, posterior, draws, seed=11, spoil=spoil)
    return min(capped_cases.p_values(found, capped_cases.drawn_law(case, posterior, draws, seed=12)))


def test_every_case(figures):
    for name, case in CASES.items():
        draws = MANY if name in IN_DETAIL else DRAWS
        p = least_p(case, draws)
        figures.at_least(f"decisions, {name}: least p-value of {draws:,} draws", p, LEAST)


def test_a_star_of_a_hundred_thousand(figures):
    """Which takes a while to draw whole: values in detail, and actions as far as they come up."""
    for name, case in {
        "nearly all untouched": Case(star(100_000, 50)),
        "half of them touched": Case(star(100_000, 70_000), k=2),
    }.items():
        p = least_p(case, 5_000)
        figures.at_least(f"decisions, a star of 10^5, {name}: least p-value of 5,000 draws", p, LEAST)


@pytest.mark.parametrize("error", [*planted_errors.IN_THE_SOURCE, *planted_errors.IN_WHAT_IS_KEPT])
def test_a_planted_error_shows(figures, tmp_path, error):
    if error in planted_errors.IN_THE_SOURCE:
        with planted_errors.planted(error, tmp_path):
            found = [least_p(CASES[name], DRAWS) for name in TELLING]
    else:
        spoil = planted_errors.IN_WHAT_IS_KEPT[error]
        found = [least_p(CASES[name], DRAWS, spoil) for name in TELLING]
    figures.at_most(f"decisions, planted: {error}: least p-value of {len(TELLING)} cases", min(found), LEAST)
