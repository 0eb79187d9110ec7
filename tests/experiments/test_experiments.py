"""Experiments are data, a finished cell is not run again, and verdicts follow the data, also where a claim fails."""

import csv
import json
import sys
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import get_args

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from bough import cli
from bough.experiments import branching, clicks, drift, explore, heights, registry, runner, synthetic
from bough.experiments.claims import by_gaps, judge
from bough.experiments.experiment import CellResult, Experiment, Outcome, Settings, Verdict
from bough.experiments.figures import draw
from bough.experiments.options import MissingDataError, Options
from bough.experiments.report import markdown, write_report
from bough.experiments.reproduction import make_plan
from bough.experiments.runner import run_experiment
from bough.experiments.synthetic import SyntheticCell
from bough.plotting import REPORT_SIZE, save_figure
from bough.policy_table import POLICIES

TINY = Settings(rounds=12, runs=6, seed=1)
SYNTHETIC = {name: registry.make(name) for name in ("branching", "height-constant", "height-increasing", "policies")}
RUNS = 400


def result(cell, final, mean=None, error=None) -> CellResult:
    nothing = {name: np.zeros(len(values)) for name, values in final.items()}
    return CellResult(cell, mean or {}, error or {}, final, nothing, nothing, n_actions=4, best=1.0)


def made_up(cell, finals: dict[str, float], spread: float = 5.0, seed: int = 0) -> CellResult:
    """A cell whose final regrets have these means."""
    rng = np.random.default_rng(seed)
    final = {name: mean + spread * rng.normal(size=RUNS) for name, mean in finals.items()}
    mean = {name: np.linspace(0, values.mean(), 500) for name, values in final.items()}
    error = {name: np.full(500, values.std() / np.sqrt(RUNS)) for name, values in final.items()}
    return result(cell, final, mean, error)


def widths(hier, flat=100.0, ts=110.0):
    return [
        made_up(SyntheticCell("increasing", b, 2), {"HierTS": hier(b), "FlatTS": flat, "TS": ts}, seed=b)
        for b in range(2, 11)
    ]


def depths(problem, ratio):
    return [
        made_up(SyntheticCell(problem, 2, h), {"HierTS": 100.0 / ratio(h), "FlatTS": 100.0, "TS": 100.0}, seed=h)
        for h in range(1, 8)
    ]


def test_hierts_below_both_is_judged_by_the_data():
    assert branching.below_both(widths(lambda b: 50.0)).verdict == "holds"
    assert branching.below_both(widths(lambda b: 50.0 if b > 4 else 99.9)).verdict == "holds in part"
    assert branching.below_both(widths(lambda b: 130.0)).verdict == "does not hold"
    partly = branching.below_both(widths(lambda b: 50.0 if b > 3 else 99.7))
    assert "within noise of FlatTS at b = 2 (" in partly.measured
    assert partly.holds == "for b = 4 to 10"
    mixed = branching.below_both(widths(lambda b: 50.0 if b < 7 else 220.0))
    assert (mixed.verdict, mixed.holds) == ("holds in part", "for b = 2 to 6")
    assert "significantly higher than TS at b = 7 (" in mixed.measured
    lost = branching.below_both(widths(lambda b: 50.0 if b < 5 else 220.0))
    assert (lost.verdict, lost.holds) == ("does not hold", "")


def test_the_gain_over_flat_is_judged_by_the_data():
    assert branching.apart_from_flat(widths(lambda b: 100.0 - 5 * b)).verdict == "holds"
    assert branching.apart_from_flat(widths(lambda b: 50.0 + 4 * b)).verdict == "does not hold"


def test_growth_with_height_is_judged_by_the_data():
    linear, root, none = (lambda h: float(h)), (lambda h: h**0.4), (lambda h: 1.0)
    assert heights.grows_linearly(depths("constant", linear)).verdict == "holds"
    assert heights.grows_linearly(depths("constant", root)).verdict == "holds in part"
    assert heights.grows_linearly(depths("constant", root)).holds == "grows, but more slowly than that"
    steps = heights.grows_linearly(depths("constant", lambda h: 1.0 if h < 4 else 4.0))
    assert (steps.verdict, steps.holds) == ("holds in part", "grows, but not by this law")
    assert heights.grows_linearly(depths("constant", lambda h: 2.0 ** (h / 2))).verdict == "holds in part"
    assert heights.grows_exponentially(depths("increasing", linear)).verdict == "holds in part"
    assert heights.grows_linearly(depths("constant", lambda h: 2.0 - 0.1 * h)).verdict == "does not hold"
    assert heights.grows_exponentially(depths("increasing", lambda h: 2.0 ** (h / 2))).verdict == "holds"
    assert heights.grows_exponentially(depths("increasing", lambda h: 2.0 ** (h / 6))).verdict == "holds in part"
    assert heights.grows_exponentially(depths("increasing", lambda h: none(h) * 0.98**h)).verdict == "does not hold"


def test_clicks_are_judged_by_the_data():
    def judged(hier):
        finals = {"HierTS": hier, "BetaTS": 100.0, "TS": 120.0, "FlatTS": 110.0, "BayesUCB": 60.0}
        return clicks.claims([made_up(clicks.ClicksCell(), finals)])[0]

    assert judged(50.0).verdict == "holds"
    assert judged(105.0).verdict == "holds in part"
    assert judged(105.0).holds == "HierTS below TS, HierTS below FlatTS, but HierTS above BetaTS"
    assert judged(115.0).verdict == "does not hold"
    assert "BetaTS - HierTS = 5" in judged(50.0).measured


def test_the_experiment_with_clicks_runs_and_reports(tmp_path):
    experiment = registry.make("clicks")
    assert experiment.usual(experiment.cells[0]) == (20_000, 50)
    results = run_experiment(experiment, TINY, tmp_path)
    assert set(results[0].mean) == {"HierTS", "FlatTS", "TS", "BetaTS", "BayesUCB"}
    assert 0.0 < results[0].best < 1.0
    draw(experiment, results)
    text = markdown({"clicks": Outcome(experiment, TINY, results)}, {})
    assert "| 1,000 actions, 5% clicks | 1000 |" in text
    assert "Regret is in clicks." in text


def test_too_little_data_decides_nothing():
    nothing = [
        made_up(SyntheticCell("constant", 2, h), {"HierTS": 0.0, "FlatTS": 1.0, "TS": 1.0}, spread=0.0)
        for h in (1, 2, 3)
    ]
    assert heights.grows_linearly(nothing).verdict == "undecided"
    wild = [
        made_up(SyntheticCell("constant", 2, h), {"HierTS": 100.0, "FlatTS": 100.0, "TS": 100.0 * h}, 4e3)
        for h in range(1, 8)
    ]
    assert heights.grows_linearly(wild).verdict == "undecided"


@pytest.mark.parametrize("runs", [2, 5, 9])
def test_a_handful_of_runs_decides_nothing_that_is_measured(runs):
    def few(results):
        return [replace(r, final={name: final[:runs] for name, final in r.final.items()}) for r in results]

    swept = few(widths(lambda b: 10.0))
    deep = few(depths("constant", lambda h: float(h)))
    judged = [*branching.claims(swept), heights.grows_linearly(deep), synthetic.baselines_are_close(swept)]
    judged += [synthetic.below_the_bound(swept, "lemma"), by_gaps([(swept[0], "TS", "HierTS")], "", "")]
    assert [claim.verdict for claim in judged] == 6 * ["undecided"]


def test_a_difference_is_significant_where_students_interval_says_so():
    cell = SyntheticCell("constant", 2, 1)
    gaps = np.linspace(-1.0, 1.0, 10)
    for shift, verdict in ((2.25, "undecided"), (2.27, "holds")):  # t with 9 degrees of freedom: 2.262
        better = 100.0 - gaps - shift * gaps.std(ddof=1) / 10**0.5
        found = by_gaps([(result(cell, {"TS": np.full(10, 100.0), "HierTS": better}), "TS", "HierTS")], "", "")
        assert found.verdict == verdict


def test_close_baselines_are_judged_by_the_data():
    assert synthetic.baselines_are_close(widths(lambda b: 50.0)).verdict == "holds"
    assert synthetic.baselines_are_close(widths(lambda b: 50.0, flat=50.0)).verdict == "does not hold"


def test_the_bounds_are_judged_by_the_data():
    for constant in ("lemma", "telescoped"):
        assert synthetic.below_the_bound(widths(lambda b: 50.0), constant).verdict == "holds"
        assert synthetic.below_the_bound(widths(lambda b: 1e6), constant).verdict == "does not hold"
    large = [made_up(SyntheticCell("increasing", 2, 7), {"HierTS": 50.0, "FlatTS": 50.0, "TS": 50.0})]
    vacuous = synthetic.bound_says_something(large, "telescoped")
    assert (vacuous.verdict, vacuous.measured) == ("does not hold", "vacuous in 1 of 1 cells")


def test_each_constant_of_the_bound_has_a_verdict_where_its_premise_holds():
    both = [*depths("constant", lambda h: float(h)), *depths("increasing", lambda h: float(h))]
    bounds = [claim for claim in synthetic.claims(both) if "bound" in claim.claim]
    for constant in ("the c of Lemma 4", "c = 2", "the telescoped constant"):
        assert sum(constant in claim.claim for claim in bounds) == 2  # below it, and what it is worth
    assert [claim.measured.split(";")[0] for claim in bounds[:3]] == [
        "below in 14 of 14 cells",
        "below in 7 of 7 cells",
        "below in 14 of 14 cells",
    ]
    two = synthetic.c_is_two(both)
    assert (two.verdict, two.holds) == ("holds in part", "in Problem 1")
    assert "1 + 2^h, up to 129" in two.measured  # 1 + 2^7
    assert two.claim == "c = 2 in both problems"
    alone = synthetic.c_is_two(both[:7])
    assert (alone.verdict, alone.claim) == ("holds", "c = 2 in Problem 1, the one that was played")
    assert alone.measured.endswith("holds in 7 of 7 cells")
    assert synthetic.c_is_two(both[7:]).verdict == "does not hold"
    assert not any("with c = 2" in claim.claim for claim in synthetic.claims(both[7:]))


def test_a_claim_that_holds_in_part_says_what_holds_and_no_other_does():
    sweeps = {"height-constant": depths("constant", lambda h: 2.0 ** (h / 2)), "branching": widths(lambda b: 99.0)}
    outcomes = {name: Outcome(SYNTHETIC[name], TINY, results) for name, results in sweeps.items()}
    judged = judge(outcomes.values())
    assert {claim.verdict for claim in judged} >= {"holds", "holds in part"}
    for claim in judged:
        assert bool(claim.holds) == (claim.verdict == "holds in part")
    text = markdown(outcomes, {})
    assert "| **holds in part**: grows, but not by this law |" in text


def test_the_standard_error_of_a_ratio_accounts_for_pairing():
    rng = np.random.default_rng(0)
    common = rng.normal(100.0, 20.0, 4000)
    cell = SyntheticCell("constant", 2, 1)
    paired = result(cell, {"TS": 2 * common, "HierTS": common + rng.normal(0, 0.1, 4000)})
    value, error = paired.ratio("TS", "HierTS")
    assert value == pytest.approx(2.0, rel=1e-3)
    assert error < 1e-3 * value
    apart = result(cell, {"TS": 2 * common, "HierTS": rng.permutation(common)})
    expected = 2 * np.sqrt(2) * 0.2 / np.sqrt(4000)  # independent: both relative errors add up
    assert apart.ratio("TS", "HierTS")[1] == pytest.approx(expected, rel=0.1)


def test_the_experiments_are_those_of_the_paper():
    assert [cell.branching for cell in SYNTHETIC["branching"].cells] == list(range(2, 11))
    for name in ("height-constant", "height-increasing"):
        assert [cell.height for cell in SYNTHETIC[name].cells] == list(range(1, 8))
    assert {cell.name for cell in SYNTHETIC["policies"].cells} == {"increasing/b10-h2", "increasing/b4-h3"}
    for experiment in SYNTHETIC.values():
        assert {experiment.usual(cell) for cell in experiment.cells} == {(500, 100)}
    for experiment in SYNTHETIC.values():
        assert set(experiment.policies) <= set(POLICIES)


@pytest.fixture
def small():
    return Experiment(
        "policies", "two small cells", "nowhere", (SyntheticCell("constant", 2, 1), SyntheticCell("increasing", 2, 2))
    )


def test_a_finished_cell_is_not_run_again_with_the_same_settings(tmp_path, small, monkeypatch):
    first = run_experiment(small, TINY, tmp_path)
    kept = []
    monkeypatch.setattr(runner, "simulate", None)  # running anything would fail
    again = run_experiment(small, TINY, tmp_path, started=lambda cell, had: kept.append(had))
    assert kept == [True, True]
    for one, other in zip(first, again, strict=True):
        for name in small.policies:
            np.testing.assert_array_equal(one.final[name], other.final[name])
            np.testing.assert_array_equal(one.mean[name], other.mean[name])


@pytest.mark.parametrize("changed", [{"seed": 2}, {"runs": 7}, {"rounds": 13}])
def test_other_settings_run_again(tmp_path, small, changed):
    run_experiment(small, TINY, tmp_path)
    kept = []
    settings = Settings(**{"rounds": 12, "runs": 6, "seed": 1, **changed})
    run_experiment(small, settings, tmp_path, started=lambda cell, had: kept.append(had))
    assert kept == [False, False]


def test_an_interrupted_sweep_keeps_its_finished_cells(tmp_path, small, monkeypatch):
    simulate, calls = runner.simulate, []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return simulate(*args, **kwargs)

    monkeypatch.setattr(runner, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(small, TINY, tmp_path)
    kept = []
    run_experiment(small, TINY, tmp_path, started=lambda cell, had: kept.append(had))
    assert kept == [True, False]


def test_a_damaged_result_is_named_and_left_alone(tmp_path, small):
    run_experiment(small, TINY, tmp_path)
    path = tmp_path / "cells" / "policies-b2-h1-n12-r6-s1.bough"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"policies-b2-h1-n12-r6-s1\.bough is damaged; delete it and run again"):
        run_experiment(small, TINY, tmp_path)
    assert len(path.read_bytes()) == 100


def test_tables_settings_figures_and_report_are_written(tmp_path):
    results, outcomes = {}, {}
    for name, experiment in SYNTHETIC.items():
        results[name] = run_experiment(experiment, Settings(rounds=5, runs=3), tmp_path)
        outcomes[name] = Outcome(experiment, Settings(5, 3), results[name])
        runner.write_csv(experiment, results[name], tmp_path / f"{name}.csv")
        runner.write_settings(experiment, Settings(5, 3), tmp_path / f"{name}.json")
        pictures = save_figure(draw(experiment, results[name]), tmp_path / name)
        assert [picture.suffix for picture in pictures] == [".png", ".svg"]
        with open(tmp_path / f"{name}.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["experiment", "cell", "policy", "round", "mean", "se", "runs"]
        assert len(rows) == 5 * len(experiment.cells) * len(experiment.policies)
        settings = json.loads((tmp_path / f"{name}.json").read_text())
        assert {(c["runs"], c["rounds"], c["seed"]) for c in settings["cells"]} == {(3, 5, 0)}
        assert {"bough", "numpy", "numba", "python"} <= settings["versions"].keys()
    write_report(outcomes, {"classes": "no features here"}, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.count("![") == len(SYNTHETIC)
    assert "no features here" in text
    assert "`bough reproduce catalogue`" in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(SYNTHETIC)
    assert page.count("<table>") == 2 + 2 * len(SYNTHETIC)
    for claim in judge(outcomes.values()):
        assert claim.verdict in get_args(Verdict)
        assert claim.measured in text


def test_the_report_cites_the_paper_and_says_when_and_by_which_command_it_was_written(tmp_path):
    outcomes = {"branching": Outcome(SYNTHETIC["branching"], Settings(), widths(lambda b: 50.0))}
    text = markdown(outcomes, {}, "bough reproduce branching --seed 7")
    assert 'Mohammad Ghavamzadeh, "Deep Hierarchy in Bandits"' in text
    assert f"Written on {date.today().isoformat()} by `bough reproduce branching --seed 7`" in text
    assert "lower is better" in text


def test_what_the_paper_says_stands_beside_what_was_found():
    outcomes = {
        "branching": Outcome(SYNTHETIC["branching"], Settings(), widths(lambda b: 50.0, ts=110.0)),
        "height-constant": Outcome(SYNTHETIC["height-constant"], Settings(), depths("constant", lambda h: h**0.5)),
        "height-increasing": Outcome(SYNTHETIC["height-increasing"], Settings(), depths("increasing", float)),
    }
    rows = {one[0]: one for name in outcomes for one in outcomes[name].experiment.paper(outcomes[name])}
    assert rows["Problem 2, varying b: size"][2:] == ("500 rounds, 100 runs", f"500 rounds, {RUNS} runs")
    assert "TS / HierTS from 2.2" in rows["regret at height 2"].here
    first, second = (rows[f"Problem {n}: how many times TS / HierTS is at h = 7 what it is at h = 1"] for n in (1, 2))
    assert first.paper.startswith("7 by the O(h)")
    assert first.here.startswith("2.6")  # the square root of 7
    assert second.paper.startswith("8 by the O(2^(h/2))")
    text = markdown(outcomes, {})
    for row in rows.values():
        assert " | ".join(row) in text
    clicked = made_up(clicks.ClicksCell(), dict.fromkeys(registry.make("clicks").policies, 100.0))
    alone = {"clicks": Outcome(registry.make("clicks"), Settings(), [clicked])}
    assert "beside these" not in markdown(alone, {})  # the paper says nothing of it


def shown_texts(figure):
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def test_every_figure_has_one_size_and_one_font_and_says_which_way_regret_is_better(tmp_path):
    figures = []
    for name in ("branching", "height-constant", "height-increasing", "policies", "clicks", "drift"):
        experiment = registry.make(name)
        results = [made_up(cell, dict.fromkeys(experiment.policies_in(cell), 90.0)) for cell in experiment.cells]
        figures.append(draw(experiment, results))
    for figure in figures:
        assert tuple(figure.get_size_inches()) == REPORT_SIZE
        figure.canvas.draw()
        texts = shown_texts(figure)
        assert {text.get_fontsize() for text in texts} == {9.0}
        assert {text.get_fontname() for text in texts} == {"DejaVu Sans"}
        labels = [ax.get_ylabel() for ax in figure.axes if "regret" in ax.get_ylabel()]
        assert labels
        assert all("is better" in label for label in labels)
        assert len(figure.legends) == 1
        assert "runs; bands and error bars are one standard error" in figure.legends[0].get_title().get_text()
        pictures = save_figure(figure, tmp_path / "figure")
        assert plt.imread(pictures[0]).shape[:2] == (608, 1600)  # 160 dots per inch


def test_error_bars_of_equal_regrets_stand_side_by_side():
    figure = draw(SYNTHETIC["branching"], widths(lambda b: 100.0))
    bars = [container.lines[0].get_xdata() for container in figure.axes[-1].containers]
    for one, other in pairwise(bars):
        np.testing.assert_allclose(other - one, 0.12)


def test_a_report_of_some_experiments_says_which_were_not_run():
    outcome = Outcome(SYNTHETIC["branching"], Settings(), widths(lambda b: 50.0))
    assert "`bough reproduce height-constant`" in markdown({"branching": outcome}, {})


# -- the registry ------------------------------------------------------------------------------------


def test_every_experiment_of_the_registry_is_made_under_its_name_or_says_how_to_get_its_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there are no features
    absent = {}
    for name in registry.EXPERIMENTS:
        try:
            assert registry.make(name).name == name
        except MissingDataError as error:
            absent[name] = str(error)
    assert absent.pop("classes").endswith("make them with bough data cifar100")
    assert absent.keys() <= {"catalogue"}
    with pytest.raises(ValueError, match="unknown experiment 'branchin'; there are branching, height-constant"):
        registry.make("branchin")


def test_claims_of_pooled_cells_stand_once_behind_the_last_experiment_that_has_a_part_in_them():
    sweeps = {"branching": widths(lambda b: 50.0), "height-increasing": depths("increasing", lambda h: float(h))}
    click = made_up(clicks.ClicksCell(), dict.fromkeys(("HierTS", "BetaTS", "TS", "FlatTS", "BayesUCB"), 100.0))
    outcomes = [Outcome(SYNTHETIC[name], TINY, results) for name, results in sweeps.items()]
    judged = judge([*outcomes, Outcome(registry.make("clicks"), TINY, [click])])
    assert [claim.claim.split(":")[0] for claim in judged] == [
        "HierTS has lower regret than both baselines for every b",
        "The gain over FlatTS grows with the branching factor",
        "Problem 2",
        "TS and FlatTS are close to each other",
        "c = 2 in Problem 2, the one that was played",
        "HierTS's regret is below the bound of Theorem 1 with the c of Lemma 4",
        "HierTS's regret is below the bound of Theorem 1 with the telescoped constant",
        "The bound with the c of Lemma 4 is below the regret of uniform play",
        "The bound with the telescoped constant is below the regret of uniform play",
        "Clicks",
        "Clicks",
    ]
    assert "of 15 cells" in judged[3].measured  # 9 widths and 7 depths, of which b = 2, h = 2 is in both


def made_up_experiment(_) -> Experiment:
    return Experiment(
        "greed",
        "Greed on a bush",
        "nowhere in the paper",
        (SyntheticCell("constant", 3, 1),),
        ("TS", "Greedy"),
        rounds=10,
        runs=4,
        claims=lambda results: [by_gaps([(results[0], "Greedy", "TS")], "Greed does not pay", "nowhere")],
    )


def unavailable_experiment(_) -> Experiment:
    raise MissingDataError("its data are on the moon; fetch them with a rocket")


def test_one_line_in_the_registry_runs_draws_judges_and_reports_an_experiment(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "greed", sys.modules[__name__])
    monkeypatch.setitem(registry.EXPERIMENTS, "greed", "greed:made_up_experiment")
    assert cli.main(["reproduce", "greed", "--out", str(tmp_path)]) == 0
    assert "Greed does not pay (Greedy - TS = " in capsys.readouterr().out
    assert (tmp_path / "greed.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "greed.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 10
    report = (tmp_path / "report.md").read_text()
    assert "| Greed does not pay | nowhere | Greedy - TS = " in report
    section = report[report.index("## greed: Greed on a bush") :]
    assert "Nowhere in the paper. 4 runs of 10 rounds per cell; seed 0." in section
    assert "| cell | actions | TS | Greedy |\n" in section  # without HierTS there is nothing to divide by
    assert "| constant/b3-h1 | 3 |" in section


def test_an_experiment_without_data_stands_in_the_report_unless_it_was_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "greed", sys.modules[__name__])
    moon = {"greed": "greed:made_up_experiment", "moon": "greed:unavailable_experiment"}
    monkeypatch.setattr(registry, "EXPERIMENTS", moon)
    assert cli.main(["reproduce", "--out", str(tmp_path)]) == 0
    assert "not run       moon: its data are on the moon; fetch them with a rocket" in capsys.readouterr().out
    assert "## moon\n\nits data are on the moon" in (tmp_path / "report.md").read_text()
    assert cli.main(["reproduce", "moon", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "bough: moon: its data are on the moon; fetch them with a rocket\n"


def test_a_misnamed_experiment_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "greed", sys.modules[__name__])
    monkeypatch.setitem(registry.EXPERIMENTS, "avarice", "greed:made_up_experiment")
    with pytest.raises(ValueError, match="made an experiment called 'greed'; 'avarice' is right"):
        registry.make("avarice")


# -- the world moves ---------------------------------------------------------------------------------


def drifts(never, fading, drifting, world="actions"):
    """A cell of drift whose final regrets are these, whichever half-lives."""
    half_lives = {"half_life 1000": fading, "half_life 2000": fading, "drift 3000": drifting, "drift 10000": drifting}
    return made_up(drift.DriftCell(world), {"HierTS": never, **half_lives, "TS": never})


def test_forgetting_is_judged_by_the_data():
    def judged(moving, still):
        return [claim.verdict for claim in drift.claims([drifts(*still, world="stationary"), drifts(*moving)])]

    assert judged(moving=(150.0, 130.0, 100.0), still=(30.0, 60.0, 70.0)) == ["holds", "holds", "holds"]
    assert judged(moving=(100.0, 130.0, 150.0), still=(70.0, 60.0, 30.0)) == ["does not hold"] * 3


def test_worlds_that_move_are_played_when_asked_for(tmp_path, capsys):
    assert "drift" not in [experiment.name for experiment in make_plan((), Options()).wanted]
    assert cli.main(["reproduce", "drift", "--runs", "3", "--rounds", "30", "--out", str(tmp_path)]) == 0
    assert "Where something moves: drift below half_life" in capsys.readouterr().out
    assert (tmp_path / "drift.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "drift.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 4 * 6 * 30
    report = (tmp_path / "report.md").read_text()
    assert "| actions drift | 64 |" in report
    assert "a half-life of 1,000 rounds" in report


def test_factors_are_judged_by_the_data():
    def judged(less, thompson, greedy, more):
        regrets = dict(
            zip(map(explore.label, explore.FACTORS), (greedy, less, less, less, thompson, more), strict=True)
        )
        return [claim.verdict for claim in explore.claims([made_up(cell, regrets) for cell in explore.CELLS])]

    assert judged(less=50.0, thompson=100.0, greedy=300.0, more=150.0) == ["holds", "holds", "holds"]
    assert judged(less=150.0, thompson=100.0, greedy=50.0, more=70.0) == ["does not hold"] * 3


def test_how_much_to_explore_is_played_when_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(explore, "find_spec", lambda _name: None)  # as where the grocery is not installed
    assert "explore" not in [experiment.name for experiment in make_plan((), Options()).wanted]
    assert cli.main(["reproduce", "explore", "--runs", "3", "--rounds", "80", "--out", str(tmp_path)]) == 0
    assert "Long runs: Thompson sampling below Greedy" in capsys.readouterr().out
    assert (tmp_path / "explore.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "explore.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3 * 6 * 80
    rows = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| Problem 1")]
    assert [row.split(" | ")[1:3] for row in rows] == [["0.25", "16"], ["1", "64"]]
    assert all("| 1.00 |" in row and "**" in row for row in rows)


def test_what_was_played_on_request_stays_in_the_report(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "greed", sys.modules[__name__])
    monkeypatch.setattr(registry, "EXPERIMENTS", {"greed": "greed:made_up_experiment"})
    monkeypatch.setattr(registry, "ON_REQUEST", ("greed",))
    assert cli.main(["reproduce", "--out", str(tmp_path)]) == 0
    assert "Not run this time: `bough reproduce greed`" in (tmp_path / "report.md").read_text()
    assert cli.main(["reproduce", "greed", "--out", str(tmp_path)]) == 0
    assert cli.main(["reproduce", "--out", str(tmp_path)]) == 0
    assert "## greed: Greed on a bush" in (tmp_path / "report.md").read_text()


def test_noise_per_action_is_played_and_judged(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bough.experiments.noise.find_spec", lambda _: None)  # without the grocery, which takes a while
    assert "noise" not in [experiment.name for experiment in make_plan((), Options()).wanted]
    assert cli.main(["reproduce", "noise", "--runs", "2", "--rounds", "30", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert "Noise that differs: per action below one variance" in capsys.readouterr().out
    report = (tmp_path / "report.md").read_text()
    assert "| median 1, spread 2 | 1000 |" in report
    assert "are not installed" in report
