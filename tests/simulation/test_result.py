"""What simulations come to: printed, compared, as frames, drawn and kept."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import ttest_1samp

import bough
import file_parts
from bough.plotting import colour
from bough.policy_table import POLICIES as POLICY_TABLE

matplotlib.use("Agg")

POLICIES = {"HierTS": bough.HierTS, "FlatTS": bough.FlatTS, "TS": bough.TS}
RUN = bough.simulate(bough.problems.constant(3, 2), POLICIES, rounds=30, runs=8, seed=0)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def test_a_simulation_says_what_it_is():
    assert repr(RUN) == "Simulation(policies=['HierTS', 'FlatTS', 'TS'], runs=8, rounds=30)"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", None])
def test_frames_per_run_have_every_regret(backend):
    frame = RUN.to_frame(backend, per_run=True)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert frame.shape == (3 * 8 * 30, 4)
    assert names == ["policy", "run", "round", "regret"]


def test_a_row_of_a_frame_per_run_is_one_round_of_one_run():
    frame = RUN.to_frame("polars", per_run=True).filter(policy="TS", run=5, round=17)
    assert frame["regret"].to_list() == [RUN.regret["TS"][5, 16]]


def test_a_comparison_is_the_paired_difference_with_students_interval():
    found = RUN.compare("HierTS", "TS", interval=0.9)
    gaps = RUN.regret["HierTS"][:, -1] - RUN.regret["TS"][:, -1]
    expected = ttest_1samp(gaps, 0.0).confidence_interval(0.9)
    assert found.difference == pytest.approx(gaps.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.runs, found.rounds, found.interval) == (8, 30, 0.9)
    assert str(found).startswith("HierTS - TS: ")
    assert "90% interval" in str(found)


def test_a_comparison_the_other_way_round_has_the_other_sign():
    one, other = RUN.compare("HierTS", "TS"), RUN.compare("TS", "HierTS")
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.is_clear == other.is_clear == (one.low > 0.0 or one.high < 0.0)


@pytest.mark.parametrize(
    ("middle", "low", "high", "said"),
    [
        (33.4, -0.27, 67.1, "33.4 of regret after 30 rounds (99% interval -0.3 to 67.1, paired over 8 runs): not sig"),
        (33.4, 0.04, 66.8, "33.40 of regret after 30 rounds (99% interval 0.04 to 66.80, paired over 8 runs): b has"),
        (-82.0, -139.0, -26.2, "-82 of regret after 30 rounds (99% interval -139 to -26, paired over 8 runs): a has"),
        (0.0, -5.0, 5.0, "0 of regret after 30 rounds (99% interval -5 to 5, paired over 8 runs): not significant"),
    ],
)
def test_a_comparison_says_on_which_side_of_zero_its_interval_is_and_who_has_less_regret(middle, low, high, said):
    assert str(bough.Comparison("a", "b", middle, low, high, 0.99, 8, 30)).startswith(f"a - b: {said}")


def test_a_policy_is_as_good_as_itself():
    same = RUN.compare("TS", "TS")
    assert (same.difference, same.low, same.high, same.is_clear) == (0.0, 0.0, 0.0, False)
    assert "0.00 to 0.00" in str(same)


def test_a_summary_has_commas_in_large_numbers():
    run = bough.simulate(bough.problems.constant(2, 1), {"TS": bough.TS}, rounds=1_000, runs=2, seed=0)
    assert "after 1,000 rounds" in run.summary()


def test_what_is_wrong_is_named():
    with pytest.raises(KeyError, match="no policy 'UCB' was simulated"):
        RUN.compare("HierTS", "UCB")
    for by_policy in (RUN.regret, RUN.tried, RUN.seconds):
        with pytest.raises(KeyError, match="no policy 'UCB' was simulated; there are"):
            by_policy["UCB"]
    with pytest.raises(ValueError, match="interval is 95"):
        RUN.compare("HierTS", "TS", interval=95)
    with pytest.raises(ValueError, match="per_run is 'yes'"):
        RUN.to_frame(per_run="yes")


# -- figures -------------------------------------------------------------------------------------------


def test_curves_are_labelled_where_they_end_and_bands_are_of_95_percent():
    axes = RUN.plot()
    assert axes.get_legend() is None
    assert {text.get_text() for text in axes.texts} == set(POLICIES)
    band = axes.collections[0].get_paths()[0].vertices
    half = RUN.standard_error("HierTS")[-1] * 2.3646  # Student's, 7 degrees of freedom
    at_the_end = band[band[:, 0] == 30, 1]
    assert at_the_end.max() == pytest.approx(RUN.mean("HierTS")[-1] + half, rel=1e-4)


def ending_near(*names, apart=1e-3):
    regret = np.cumsum(np.ones((4, 50)), axis=1)
    same = {name: regret + apart * i for i, name in enumerate(names)}
    tried, seconds = ({name: np.ones(4) for name in names} for _ in range(2))
    return bough.Simulation(same, tried, seconds, 9, 1.0)


def distances_of_labels(axes):
    """In heights of a line of text."""
    axes.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    return np.diff([box.y0 + box.height / 2 for box in boxes]) / (11.0 * axes.figure.dpi / 72.0)


def test_labels_of_curves_that_end_together_are_apart():
    assert distances_of_labels(ending_near("a", "b", "c", "d").plot()).min() > 0.9


def test_labels_follow_their_curves_when_limits_change():
    axes = ending_near("a", "b", "c", "d", apart=20.0).plot()
    assert distances_of_labels(axes).min() > 2.0
    axes.set_ylim(0.0, 20_000.0)
    distances = distances_of_labels(axes)
    assert 0.9 < distances.min() <= distances.max() < 1.2
    middle = np.mean([text.get_window_extent().y0 + text.get_window_extent().height / 2 for text in axes.texts])
    assert middle == pytest.approx(axes.transData.transform((50, 80))[1], abs=2.0)


def test_what_is_drawn_later_is_seen():
    axes = RUN.plot()
    axes.plot([1, 30], [0.0, 5_000.0])
    assert axes.get_ylim()[1] > 5_000.0
    assert axes.get_ylim()[0] == 0.0


def test_policies_have_a_legend_in_axes_of_the_users_own_and_where_names_are_long():
    _, own = plt.subplots()
    for axes in (RUN.plot(own), ending_near("a", "a policy with a long name").plot()):
        assert not axes.texts
        assert len(axes.get_legend().get_texts()) == len(axes.lines)


def test_a_policy_of_ones_own_has_a_colour_unlike_all_of_boughs():
    to_rgb = matplotlib.colors.to_rgb
    names = [*POLICY_TABLE, "mine", "yours"]
    shades = np.array([to_rgb(colour(name, names)) for name in names])
    for own in shades[-2:]:
        assert np.sort(np.linalg.norm(shades - own, axis=1))[1] > 0.3


# -- files ---------------------------------------------------------------------------------------------


def test_a_file_has_all_of_a_simulation(tmp_path):
    RUN.save(tmp_path / "run.bough")
    loaded = bough.Simulation.load(tmp_path / "run.bough")
    assert list(loaded.regret) == list(RUN.regret)
    for what in ("regret", "tried", "seconds"):
        for name in POLICIES:
            np.testing.assert_array_equal(getattr(loaded, what)[name], getattr(RUN, what)[name])
    assert (loaded.n_actions, loaded.best) == (RUN.n_actions, RUN.best)
    assert loaded.summary() == RUN.summary()
    assert loaded.compare("HierTS", "TS") == RUN.compare("HierTS", "TS")


DAMAGED = {
    "no policies": (dict(settings={"policies": []}), "policies"),
    "numbers": (dict(settings={"policies": [1, 2, 3]}), "policies"),
    "twice": (dict(settings={"policies": ["a", "a", "b"]}), "the same name"),
    "fewer policies": (dict(settings={"policies": ["a", "b"]}), "regret"),
    "no best": (dict(settings={"best": None}), "best"),
    "odd best": (dict(settings={"best": "good"}), "best"),
    "no actions": (dict(settings={"n_actions": 0}), "n_actions"),
    "one run": (dict(regret=np.zeros((3, 1, 30))), "1 runs of 30 rounds"),
    "other runs": (dict(tried=np.zeros((3, 7), dtype=np.int64)), "tried"),
    "too many actions": (dict(settings={"n_actions": 10**400}), "n_actions"),
    "negative": (dict(seconds=-np.ones((3, 8))), "seconds are not what they can be"),
    "not finite": (dict(regret=np.full((3, 8, 30), np.nan)), "not finite"),
    "huge": (dict(regret=np.full((3, 8, 30), 1e200)), "too large"),
    "missing": (dict(tried=None), "tried is missing"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused(what, tmp_path):
    changed, text = DAMAGED[what]
    path = tmp_path / "run.bough"
    RUN.save(path)
    file_parts.change(path, **changed)
    with pytest.raises(ValueError, match=text) as caught:
        bough.Simulation.load(path)
    assert str(path) in str(caught.value)


def test_another_kind_of_file_is_refused(tmp_path):
    bough.GaussianModel(bough.Tree.balanced(2, 1)).save(tmp_path / "model.bough")
    with pytest.raises(ValueError, match="holds a 'model'; expected a simulation file"):
        bough.Simulation.load(tmp_path / "model.bough")


# -- progress ------------------------------------------------------------------------------------------


def test_progress_shows_a_bar(capsys):
    bough.simulate(bough.problems.constant(2, 2), {"TS": bough.TS}, rounds=3, runs=5, seed=0, progress=True)
    assert "5/5" in capsys.readouterr().err


def test_no_progress_is_silent(capsys):
    bough.simulate(bough.problems.constant(2, 2), {"TS": bough.TS}, rounds=3, runs=5, seed=0, progress=False)
    assert capsys.readouterr().err == ""


def test_odd_progress_is_refused():
    with pytest.raises(ValueError, match="progress is 'bar'; give True for a bar, or a function of the number of runs"):
        bough.simulate(bough.problems.constant(2, 2), {"TS": bough.TS}, rounds=3, runs=5, seed=0, progress="bar")
