"""Intervals of evaluation: how often they hold the truth, where they should and where they do not.

`python validation/validate_evaluation.py FILE` writes the table of docs/explanation/estimators.md.
"""

import sys
from pathlib import Path

import numpy as np
from layout import compact

import bough
from worlds import World, softmax, world

LEVEL = 0.95
LOGS = 400
ESTIMATORS = {
    "cressie-read": ("snips", "dr"),
    "normal": ("ips", "snips", "dr", "mips-1", "dm"),
    "anytime": ("ips",),
}
# A share of 400 that is 0.95 in truth is outside these once in 10,000 times.
LOW, HIGH = 0.905, 0.985


def mild(seed: int) -> World:
    return world(seed % 20, mild=0.5)


def heavy(seed: int) -> World:
    return world(seed % 20, mild=2.5)


def half_never_shown(seed: int) -> World:
    """Of each category, every second action was never logged."""
    one = world(seed % 20, mild=0.5)
    shown = one.logger * (np.arange(len(one.logger)) % 2)
    return one._replace(logger=shown / shown.sum())


def knowing_target(seed: int) -> World:
    """A target that prefers what is better, and knew it from elsewhere."""
    one = world(seed % 20, mild=0.5)
    return one._replace(target=softmax(8.0 * one.means))


def shuffled(seed: int) -> World:
    """Rewards that have nothing to do with the tree, and a target that prefers what is better."""
    one = knowing_target(seed)
    order = np.random.default_rng(seed % 20).permutation(len(one.means))
    return one._replace(means=one.means[order], target=one.target[order])


def rare(seed: int) -> World:
    """One click in a hundred."""
    one = world(seed % 20, mild=0.5)
    return one._replace(means=0.03 * one.means)


# name: what it is, rows, and whether intervals should hold there
WORLDS = {
    "mild weights, 3,000 rows": (mild, 3_000, True),
    "one click in a hundred, 3,000 rows": (rare, 3_000, False),
    "mild weights, 100 rows": (mild, 100, False),
    "heavy weights, 1,000 rows": (heavy, 1_000, False),
    "half never logged, 3,000 rows": (half_never_shown, 3_000, False),
    "a target that knows more than the log": (knowing_target, 3_000, False),
    "the same, and a tree that says nothing": (shuffled, 3_000, False),
}


def coverage(make, n: int) -> tuple[dict[tuple[str, str], tuple[float, float]], float]:
    """The share of logs whose interval held the truth, and the mean width, by interval and estimator.

    And the share of logs that the diagnostics complained of.
    """
    held, widths, complained = {}, {}, []
    for seed in range(LOGS):
        one = make(seed)
        log = one.log(np.random.default_rng(10_000 + seed), n)
        for interval, names in ESTIMATORS.items():
            try:
                report = bough.evaluate(
                    {"t": one.target}, log, one.tree, estimators=names, interval=interval, reward_range=(0, 1)
                )
            except ValueError as error:
                if "no prior can be learned" not in str(error):  # no click at all
                    raise
                continue
            if interval == "cressie-read":
                complained.append(bool(report.diagnostics.problems))
            for each in report.values:
                key = interval, each.estimator
                held.setdefault(key, []).append(each.low <= one.value <= each.high)
                widths.setdefault(key, []).append(each.high - each.low)
    found = {key: (float(np.mean(held[key])), float(np.mean(widths[key]))) for key in held}
    return found, float(np.mean(complained))


def test_intervals_hold_the_truth_where_they_should(figures):
    for what, (make, n, should_hold) in WORLDS.items():
        for (interval, name), (share, width) in coverage(make, n)[0].items():
            label = f"evaluation, {what}: {LEVEL:.0%} intervals, {interval} {name}, share that held"
            holds = should_hold and not name.startswith("mips")  # it takes a category's actions to be alike
            if holds and interval == "normal":
                figures.share(label, share, LOW, HIGH)
            elif holds:
                figures.at_least(label, share, LOW)
            else:
                figures.note(label, f"{share:.3f} (width {width:.3g})")


def main(path: Path) -> None:
    """The table of the docs: share that held, and in brackets the mean width."""
    keys = [(interval, name) for interval, names in ESTIMATORS.items() for name in names]
    names = (name if interval == "normal" else f"{name}, {interval}" for interval, name in keys)
    rows = [("world", *names, "logs complained of")]
    for what, (make, n, _) in WORLDS.items():
        found, complained = coverage(make, n)
        cells = (f"{found[key][0]:.2f} ({found[key][1]:.2g})" for key in keys)
        rows.append((what, *cells, f"{complained:.0%}"))
    made_by = "<!-- Made by `python validation/validate_evaluation.py docs/results/evaluation-table.md`. -->"
    path.write_text(f"{made_by}\n\n{compact(rows)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
