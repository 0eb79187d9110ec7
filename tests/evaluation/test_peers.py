"""The same numbers as obp's estimators and vw-estimators' intervals; tests/fixtures/offpolicy.py made these."""

import json

import numpy as np
import polars
import pytest

import bough
from places import ROOT

FOLDER = ROOT / "tests" / "fixtures"
PEERS = json.loads((FOLDER / "offpolicy_peers.json").read_text())
GIVEN = {name: np.array(values) for name, values in PEERS["given"].items()}
LOG = polars.read_csv(FOLDER / "offpolicy.csv")
TREE = bough.Tree.from_nested({"low": [0, 1, 2], "high": [3, 4, 5]})
ALL = ("ips", "snips", "dm", "dr")


def assert_same_values(report, expected):
    assert {one.estimator for one in report.values} == set(expected)
    for one in report.values:
        assert one.value == pytest.approx(expected[one.estimator], rel=1e-10), one.estimator


def test_ips_snips_dm_and_dr_are_those_of_obp():
    report = bough.evaluate({"new": GIVEN["plain"][0]}, LOG, TREE, model=GIVEN["means"][0], estimators=ALL)
    assert_same_values(report, PEERS["plain"])


def test_positions_are_those_of_obp():
    report = bough.evaluate(
        {"new": GIVEN["plain"]}, LOG, TREE, position="position", model=GIVEN["means"], estimators=ALL
    )
    assert_same_values(report, PEERS["position"])


def softmax(scores):
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def test_contexts_are_those_of_obp():
    report = bough.evaluate(
        {"new": lambda contexts: softmax(contexts @ GIVEN["target_weights"])},
        LOG,
        TREE,
        context=["x0", "x1", "x2"],
        model=lambda contexts: np.tanh(contexts @ GIVEN["mean_weights"]),
        estimators=ALL,
    )
    assert_same_values(report, PEERS["context"])


@pytest.mark.parametrize("part", ["intervals", "short"])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("interval", ["cressie-read", "normal"])
def test_intervals_are_those_of_vw_estimators(part, level, interval):
    log = LOG if part == "intervals" else LOG.head(60)
    report = bough.evaluate(
        {"new": GIVEN["plain"][0]}, log, TREE, estimators=["ips"], interval=interval, level=level, reward_range=(0, 1)
    )
    [one] = report.values
    # theirs has a tolerance of 1e-9 within the root
    assert [one.low, one.high] == pytest.approx(PEERS[part][str(level)][interval], rel=1e-8)
