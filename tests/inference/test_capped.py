"""The capped search has the law of drawing everything, keeps up with what is learned, and can be saved.

Chosen actions by chi-squared and scores by Kolmogorov-Smirnov against draws of all actions, 10^5 decisions each, fixed
seeds, false-alarm rate 1e-4 a test. `make validate` has all cases, more draws, and more planted errors.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bough
import capped_cases
from bough.inference.kernels.lengths import LONGEST, length_of, long_enough, some_point, upper_tail
from bough.inference.kernels.untouched import height_of_rate, rate_above
from capped_cases import CASES, NOTHING, forced
from planted_errors import one_fewer, shorter

DRAWS = 100_000
FALSE_ALARM = 1e-4
HERE = [
    "nearly all touched",
    "a few touched",
    "families that mix leaves, groups and inner nodes",
    "variances over six orders",
    "no variance inside",
    "clicks",
    "drift",
    "TS",
    "explore 0.5",
    "the two best",
    "the five best",
    "touched and untouched ones excluded",
    "retired, added, moved, forgotten",
    "caps absurdly low",
    "references far too high",
    "3,000 rounds, one path at a time",
]


@pytest.mark.parametrize("name", HERE)
def test_decisions_have_the_law_of_drawing_everything(name):
    case = CASES[name]
    posterior = case.make()
    found = capped_cases.capped_law(case, posterior, DRAWS, seed=1)
    drawn = capped_cases.drawn_law(case, posterior, DRAWS, seed=2)
    assert min(capped_cases.p_values(found, drawn)) > FALSE_ALARM


@pytest.mark.parametrize(("name", "error"), [("a few touched", one_fewer), ("a champion that is known", shorter)])
def test_a_planted_error_is_caught(name, error):
    case = CASES[name]
    posterior = case.make()
    found = capped_cases.capped_law(case, posterior, DRAWS, seed=1, spoil=error)
    drawn = capped_cases.drawn_law(case, posterior, DRAWS, seed=2)
    assert min(capped_cases.p_values(found, drawn)) < FALSE_ALARM


# -- lengths ---------------------------------------------------------------------------------------


def test_lengths_are_never_too_short_and_hardly_too_long():
    from scipy.special import log_ndtr, ndtr

    x = np.linspace(-10.0, 8.9, 5_001)
    rates, tails = np.minimum(-log_ndtr(x), LONGEST), ndtr(-x)
    lengths, uppers = (np.array([of(one) for one in x]) for of in (long_enough, upper_tail))
    assert (lengths >= rates * (1 - 1e-14)).all()
    assert (lengths <= 1.003 * rates).all()
    assert (uppers >= tails * (1 - 1e-14)).all()
    assert (uppers <= 1.003 * tails).all()
    assert (np.diff(lengths) <= 0.0).all()
    assert (np.diff(uppers) <= 0.0).all()
    s = 10.0 ** np.linspace(-12, 1.6, 2_000)
    some = np.array([some_point(one) for one in s])
    assert (some >= -np.expm1(-s) * (1 - 1e-14)).all()
    assert (some <= -np.expm1(-s) * (1 + 1e-3)).all()
    assert (np.diff(some) >= -1e-5 * some[1:]).all()
    assert (some <= 1.0).all()
    p = np.concatenate([10.0 ** np.linspace(-12, -0.01, 2_000), [1.0]])
    with np.errstate(divide="ignore"):
        exact = np.minimum(-np.log1p(-p), LONGEST)
    found = np.array([length_of(one) for one in p])
    assert (found >= exact * (1 - 1e-14)).all()
    assert (found <= exact * (1 + 1e-3)).all()


def test_rates_of_untouched_subtrees_and_their_inverses_agree():
    capped = forced(CASES["a deep tree, a few touched"].make())
    lines = capped.lines()
    for kind in range(len(lines.kind)):
        for distance in np.linspace(-2.0, 8.0, 21):
            rate = rate_above(lines, kind, distance)
            assert height_of_rate(lines, kind, rate) == pytest.approx(distance, abs=1e-7)


# -- keeping up ------------------------------------------------------------------------------------

TREE = bough.Tree.from_nested({c: {f"{c}{d}": [f"{c}{d}{i}" for i in range(5)] for d in "xyz"} for c in "abc"})
ACTIONS = list(TREE.actions)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.sampled_from(ACTIONS), st.floats(-5, 5)),
        st.tuples(st.just("batch"), st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=30), st.floats(-5, 5)),
        st.tuples(st.just("retire"), st.sampled_from(ACTIONS[:-1])),
        st.tuples(st.just("restore"), st.sampled_from(ACTIONS)),
        st.tuples(st.just("forget"), st.sampled_from(ACTIONS)),
        st.tuples(st.just("discount"), st.floats(0.5, 1.0)),
        st.tuples(st.just("add"), st.sampled_from(["a/ax", "b", "c/cz"])),
        st.tuples(st.just("move"), st.sampled_from(ACTIONS), st.sampled_from(["a/ay", "b/bx", "c"])),
        st.tuples(st.just("decide")),
    ),
    max_size=25,
)


def change(agent, what, i):
    name, *given = what
    posterior = agent.posterior
    if name == "update":
        agent.update(*given)
    elif name == "batch":
        agent.update(given[0], np.full(len(given[0]), given[1]))
    elif name == "retire" and given[0] not in agent.retired:
        agent.retire(given[0])
    elif name == "restore" and given[0] in agent.retired:
        agent.restore(given[0])
    elif name == "forget":
        agent.forget(given[0])
    elif name == "discount":
        posterior.discount(given[0])
    elif name == "add":
        agent.add(f"new {i}", under=given[0])
    elif name == "move" and posterior._catalogue.parent(posterior._catalogue.index(given[0])) != 0:
        agent.move(given[0], under=given[1])


@given(CHANGES)
@settings(max_examples=60, deadline=None)
def test_rows_and_sums_that_were_kept_up_are_those_made_anew(changes):
    agent = bough.HierTS(bough.GaussianModel(TREE), seed=0)
    agent.update(ACTIONS[:20], np.linspace(-1, 1, 20))
    capped, rng = forced(agent.posterior), np.random.default_rng(0)
    for i, what in enumerate(changes):
        change(agent, what, i)
        engine = agent.posterior._engine
        if not capped.is_of(engine):  # another tree
            capped = forced(agent.posterior)
        engine.bring_up_to_date()
        if engine.news.of_everything:
            capped.remake()
        if what[0] == "decide":
            capped.best(rng, 1, NOTHING)
    capped.refresh()
    kept = capped.sums()
    capped.remake(recentre=False)
    for one, other in zip(kept, capped.sums(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    fresh = forced(agent.posterior)
    assert capped.counts_of_groups() == fresh.counts_of_groups()


def test_a_wide_family_is_kept_up_too():
    tree = bough.Tree.balanced(700, 1)
    posterior, rng = bough.Posterior(bough.GaussianModel(tree)), np.random.default_rng(0)
    posterior.update(tree.leaves[:20].tolist(), rng.normal(size=20))
    capped = forced(posterior)
    for _ in range(600):  # which makes room, and sums of sums
        posterior.update(int(rng.choice(tree.leaves)), float(rng.normal()))
        capped.refresh()
    kept = capped.sums()
    capped.remake(recentre=False)
    for one, other in zip(kept, capped.sums(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_decision_that_runs_out_of_random_numbers_goes_on():
    case = CASES["nearly the prior"]
    posterior = case.make()
    few, many = forced(posterior), forced(posterior)
    for seed in range(50):
        few.n_uniforms, many.n_uniforms = 2, 2**14
        one, two = few.best(Stream(seed), 2, NOTHING), many.best(Stream(seed), 2, NOTHING)
        assert one[0].tolist() == two[0].tolist()
        assert one[1].tolist() == two[1].tolist()


class Stream:
    """Random numbers that do not depend on how many are taken at a time."""

    def __init__(self, seed):
        self._numbers, self._at = np.random.default_rng(seed).random(2**16), 0

    def random(self, n):
        self._at += n
        return self._numbers[self._at - n : self._at]
