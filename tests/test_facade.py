"""What `import bough` gives and costs, and that the README's example runs as it stands."""

import re
import subprocess
import sys

import pytest

import bough
from places import ROOT


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_public_names_are_these():
    assert sorted(bough.__all__) == [
        "BayesUCB",
        "BernoulliModel",
        "Best",
        "BestActions",
        "BetaTS",
        "Changes",
        "Comparison",
        "Conditional",
        "Decision",
        "Diagnostics",
        "DriftFit",
        "Estimate",
        "Evaluation",
        "ExplainedEffect",
        "ExplainedNode",
        "Explanation",
        "Factor",
        "Features",
        "FlatTS",
        "GaussianModel",
        "GibbsDraws",
        "Greedy",
        "HierTS",
        "Maximum",
        "MeanReward",
        "Observations",
        "PoissonModel",
        "Policy",
        "PolicyDiagnostics",
        "PolicyValue",
        "Posterior",
        "Prediction",
        "PriorFit",
        "Problem",
        "Propensity",
        "Replay",
        "Residuals",
        "SampleRatio",
        "Simulation",
        "Statistics",
        "StopDecision",
        "TS",
        "Tree",
        "UnknownNameError",
        "World",
        "batch",
        "by_depth",
        "by_height",
        "by_node",
        "data",
        "evaluate",
        "fit_drift",
        "fit_prior",
        "gibbs",
        "per_action",
        "prior_from_features",
        "problems",
        "replay",
        "sample_ratio",
        "simulate",
        "summarise",
        "theory",
        "warm_up",
        "write_dashboard",
    ]
    assert bough._HOME.keys() == set(bough.__all__)
    assert set(bough.__all__) <= set(dir(bough))


@pytest.mark.parametrize("name", bough.__all__)
def test_every_public_name_has_a_docstring(name):
    assert getattr(bough, name).__doc__


@pytest.mark.parametrize(
    "name",
    sorted(
        set(bough.__all__)
        - {"BestActions", "Conditional", "Estimate", "GibbsDraws", "MeanReward", "Problem", "Residuals"}
        - {"ExplainedNode", "problems", "theory"}
        - {"Diagnostics", "PolicyDiagnostics", "PolicyValue", "data"}
    ),
)
def test_every_public_name_has_an_example(name):
    assert ">>>" in getattr(bough, name).__doc__


def test_importing_bough_imports_neither_numba_nor_matplotlib():
    loaded = run(
        "import bough, sys; print([m for m in ('numba', 'matplotlib', 'pandas', 'sklearn') if m in sys.modules])"
    )
    assert loaded == "[]"


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'HeirTS'"):
        _ = bough.HeirTS


def test_the_example_of_the_readme_runs_as_it_stands():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    expected = [line.split("# ", 1)[1] for line in blocks[0].splitlines() if line.startswith("print(")]
    assert run(blocks[0]).splitlines() == expected


def test_the_changes_of_the_readme_go_on_from_its_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    [changes] = [block for block in blocks if "agent.adopt(" in block]
    [expected] = [line.split("# ", 1)[1] for line in changes.splitlines() if line.startswith("print(")]
    assert run(blocks[0] + changes).splitlines()[-1] == expected
    assert bough.HierTS.load("agent.bough").retired == ["home/garden/spade", "toys/kite"]


def test_the_version_is_in_the_changelog():
    assert f"## {bough.__version__}" in (ROOT / "CHANGELOG.md").read_text()
