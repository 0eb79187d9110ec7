"""The Open Bandit Dataset's sample, where it is: real logs, read through the adapter.

It comes with obp (`pip install --no-deps --ignore-requires-python --target FOLDER obp==0.5.7`), and is found where obp
can be imported, or by BOUGH_OPEN_BANDIT=FOLDER/obp/dataset/obd.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas
import pytest

import bough


def folder():
    if "BOUGH_OPEN_BANDIT" in os.environ:
        return Path(os.environ["BOUGH_OPEN_BANDIT"])
    found = find_spec("obp")
    return None if found is None or found.origin is None else Path(found.origin).parent / "dataset" / "obd"


DATA = folder()
needs_data = pytest.mark.skipif(
    DATA is None or not DATA.exists(), reason="the Open Bandit Dataset is not here; set BOUGH_OPEN_BANDIT to its folder"
)


def feedback(policy, campaign):
    """What obp's `obtain_batch_bandit_feedback` gives, without obp's own dependencies."""
    data = pandas.read_csv(DATA / policy / campaign / f"{campaign}.csv", index_col=0).sort_values("timestamp")
    return {
        "n_rounds": len(data),
        "n_actions": int(data["item_id"].max()) + 1,
        "action": data["item_id"].to_numpy(),
        "position": data["position"].to_numpy() - 1,
        "reward": data["click"].to_numpy(),
        "pscore": data["propensity_score"].to_numpy(),
        "context": None,
    }


def items(campaign):
    table = pandas.read_csv(DATA / "bts" / campaign / "item_context.csv", index_col=0)
    return bough.Tree.from_frame(table, ["item_feature_3", "item_feature_2", "item_id"])


def uniform(tree):
    return np.full(tree.n_actions, 1 / tree.n_actions)


@needs_data
def test_the_log_of_the_womens_campaign_is_unusable_and_the_report_says_why():
    tree, log = items("women"), bough.data.from_obp(feedback("bts", "women"))
    report = bough.evaluate({"uniform": uniform(tree)}, log, tree, position="position")
    found = report.diagnostics["uniform"]
    assert report.n_rows == 10_000
    assert found.largest_weight == pytest.approx(21_739, rel=1e-3)
    assert found.effective_rows < 10
    assert not found.is_usable
    text = report.summary()
    assert "UNUSABLE, uniform: the 10,000 rows say as much as" in text
    assert "one row has the weight 21,739" in text


@needs_data
@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_random_logs_are_sound(campaign):
    tree, log = items(campaign), bough.data.from_obp(feedback("random", campaign))
    report = bough.evaluate({"uniform": uniform(tree)}, log, tree, position="position")
    assert report.diagnostics["uniform"].mean_weight == pytest.approx(1.0, abs=1e-6)
    assert report.diagnostics["uniform"].is_usable
    assert bough.sample_ratio(log, tree, position="position").fits


def test_feedback_goes_to_obp_and_back():
    rng = np.random.default_rng(0)
    given = {
        "action": rng.integers(4, size=50),
        "reward": rng.random(50),
        "pscore": rng.uniform(0.1, 1.0, 50),
        "position": rng.integers(3, size=50),
        "context": rng.normal(size=(50, 2)),
    }
    tree = bough.Tree.from_nested([0, 1, 2, 3])
    back = bough.data.to_obp(bough.data.from_obp(given), tree, context=["x0", "x1"], position="position")
    for name, values in given.items():
        np.testing.assert_array_equal(back[name], values)
    assert (back["n_rounds"], back["n_actions"]) == (50, 4)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"action": None}, "no 'action'"),
        ({"pscore": None}, "no 'pscore'"),
        ({"reward": [1.0]}, "different lengths"),
        ({"reward": [1.0, np.nan]}, "must be finite"),
        ({"action": [0.5, 1.0]}, "give a list of integers"),
        ({"context": [1.0, 2.0]}, r"give \(n, d\)"),
    ],
)
def test_feedback_that_is_none_is_refused(change, text):
    given = {"action": [0, 1], "reward": [1.0, 0.0], "pscore": [0.5, 0.5]}
    with pytest.raises(ValueError, match=text):
        bough.data.from_obp(given | change)
