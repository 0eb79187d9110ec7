"""Figures. The only module that imports matplotlib; it knows arrays and names, nothing of the rest of bough."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

try:
    import matplotlib
    import matplotlib.pyplot as plt
except ModuleNotFoundError as error:
    from bough._extras import install

    raise ModuleNotFoundError(f"figures need matplotlib; {install('plot')}", name=error.name) from error

from bough._arrays import Floats
from bough.policy_table import POLICIES

Curves = Mapping[str, tuple[Floats, Floats]]
"""For each policy the mean and the standard error, one entry a round or a cell."""

_OTHERS = ("#2f9fe0", "#8c5a2b", "#e377c2", "#1a1a1a", "#a8b400")  # unlike those of the built-in policies
_KNOWN = POLICIES["HierTS"].colour  # what a posterior or a fit knows
_BESIDE = "0.55"  # what is there to compare it with
_LONGEST_LABEL = 40  # characters
_LONGEST_AT_END = 16  # characters of a name that stands where its curve ends
_LABEL_GAP = 11.0  # points between labels at the ends of curves
_DODGE = 0.12  # between error bars, as a share of the distance between values
_REGRET = "regret (lower is better)"

REPORT_SIZE = (10.0, 3.8)
"""Inches: every figure of a report, whatever is in it."""
_REPORT_POINTS = 9.0
_REPORT_CHARACTERS = 140  # that the titles of all panels have room for
_REPORT_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # which comes with matplotlib
    **dict.fromkeys(
        ("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"),
        _REPORT_POINTS,
    ),
}


def colour(policy: str, policies: Sequence[str]) -> str:
    """The same colour for the same policy everywhere."""
    if policy in POLICIES:
        return POLICIES[policy].colour
    others = [name for name in policies if name not in POLICIES]
    return _OTHERS[others.index(policy) % len(_OTHERS)]


def plot_regret(curves: Curves, runs: int, ax: Any = None) -> Any:
    """Mean regret against rounds with 95% bands as wide as is given; returns the axes.

    Each policy's name stands where its curve ends. Where there may be no room for that, beside long names and in axes
    of the caller's own, there is a legend.
    """
    has_room = ax is None and max(map(len, curves)) <= _LONGEST_AT_END
    ax = _draw_regret(curves, ax)
    ax.set_xlabel(f"round (mean of {runs:,} runs with 95% bands)")
    if has_room:
        _name_ends(ax, curves)
    else:
        ax.legend(frameon=False)
    return ax


def _name_ends(ax: Any, curves: Curves) -> None:
    """Write each policy's name where its curve ends, and keep the names apart when limits change."""
    rounds = len(next(iter(curves.values()))[0])
    ends = [(rounds, float(mean[-1])) for mean, _ in curves.values()]
    beside: Any = {"textcoords": "offset points", "va": "center"}
    labels = [
        ax.annotate(name, end, (6, 0), color=colour(name, list(curves)), **beside)
        for name, end in zip(curves, ends, strict=True)
    ]

    def place(ax: Any) -> None:
        heights = [float(y) * 72.0 / ax.figure.dpi for _, y in ax.transData.transform(ends)]
        for label, height, place in zip(labels, heights, _apart(heights, _LABEL_GAP), strict=True):
            label.set_position((6, place - height))

    ax.get_ylim()  # what was drawn last moves the limits when they are asked for
    place(ax)
    ax.callbacks.connect("ylim_changed", place)


def plot_values(values: Sequence[Any], is_usable: Sequence[bool], logged: float, ax: Any = None) -> Any:
    """Estimates of policies with their intervals, one line each, below the name of the policy; returns the axes.

    Each has `policy`, `estimator`, `value`, `low` and `high`. Those that are not usable are hollow.
    """
    policies = list(dict.fromkeys(one.policy for one in values))
    estimators = list(dict.fromkeys(one.estimator for one in values))
    height = len(estimators) + 1  # of a policy, with a line for its name
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.0 + 0.25 * height * len(policies)), layout="constrained")
    ax.axvline(logged, color=_BESIDE, linestyle="--", linewidth=1)
    places = [policies.index(one.policy) * height + estimators.index(one.estimator) for one in values]
    for one, usable, place in zip(values, is_usable, places, strict=True):
        shade = colour(one.policy, policies)
        ax.hlines(place, one.low, one.high, color=shade, linewidth=2, alpha=0.5 if usable else 0.2)
        ax.plot(one.value, place, "o", color=shade, markersize=5, markerfacecolor=shade if usable else "white")
    ax.set_yticks(places, [one.estimator for one in values], fontsize=9)
    for i, policy in enumerate(policies):
        where: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        shade = colour(policy, policies)
        ax.annotate(_shortened(policy), (0, i * height - 0.8), (4, 0), color=shade, fontsize=9, **where)
    ax.set(ylim=(height * len(policies) - 1.4, -1.4), xlabel="reward per decision")
    _leave_room(ax, [logged, *(end for one in values for end in (one.value, one.low, one.high))])
    where = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    ax.annotate("the log", (logged, 1), (0, 3), color=_BESIDE, fontsize=9, ha="center", **where)
    ax.tick_params(axis="y", length=0)
    _tidy(ax)
    return ax


def _leave_room(ax: Any, values: Sequence[float]) -> None:
    """Show all that is known of these, and a little more."""
    shown = [value for value in values if np.isfinite(value)]
    room = 0.06 * (max(shown) - min(shown)) or 0.5
    ax.set_xlim(min(shown) - room, max(shown) + room)


def _draw_regret(curves: Curves, ax: Any, policies: Sequence[str] | None = None) -> Any:
    """Draw the curves; `policies` has the names of those that other panels show as well."""
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    for name, (mean, error) in curves.items():
        rounds = np.arange(1, len(mean) + 1)
        shade = colour(name, list(curves) if policies is None else policies)
        ax.plot(rounds, mean, color=shade, label=name)
        # No margin below zero. Limits are not set, so that whatever is drawn later is seen as well.
        band = ax.fill_between(rounds, np.maximum(mean - error, 0.0), mean + error, color=shade, alpha=0.2, linewidth=0)
        band.sticky_edges.y.append(0.0)
    ax.update_datalim([(0.0, 0.0)])
    ax.set(xlabel="round", ylabel=f"cumulative {_REGRET}", xlim=(0, len(mean)))
    _tidy(ax)
    return ax


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """The same places, moved upward where two would be nearer than the gap, and then back to their middle."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda i: places[i])
    for below, above in pairwise(order):
        moved[above] = max(moved[above], moved[below] + gap)
    shift = (sum(moved) - sum(places)) / len(places)
    return [place - shift if max(moved) - min(moved) > max(places) - min(places) else place for place in moved]


def plot_intervals(
    labels: Sequence[str], mean: Floats, low: Floats, high: Floats, ax: Any = None, beside: Sequence[Floats] = ()
) -> Any:
    """A point with its interval on a line of its own for each label, the first on top; returns the axes.

    `beside` has, for each line, values to compare it with.
    """
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 1.0 + 0.24 * max(len(labels), 4)), layout="constrained")
    rows = np.arange(len(labels))
    for row, others in zip(rows, beside, strict=False):
        ax.plot(others, np.full(len(others), row), "|", color=_BESIDE, markersize=10, zorder=1)
    ax.hlines(rows, low, high, color=_KNOWN, linewidth=2, alpha=0.5)
    ax.plot(mean, rows, "o", color=_KNOWN, markersize=4)
    ax.set_yticks(rows, [_shortened(label) for label in labels])
    ax.set(xlabel="mean reward", ylim=(len(labels) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    _tidy(ax)
    return ax


def plot_variances(
    labels: Sequence[str], value: Floats, low: Floats, high: Floats, share: Sequence[float | None], axes: Any = None
) -> Any:
    """Variances with their intervals on a log axis, and beside them what share of a reward's variance each is."""
    if axes is None:
        size = (7.2, 0.9 + 0.3 * max(len(labels), 3))
        _, axes = plt.subplots(1, 2, figsize=size, layout="constrained", sharey=True)
    variances, shares = axes
    rows = np.arange(len(labels))
    ends = np.concatenate([value, low, high])
    ends = ends[np.isfinite(ends) & (ends > 0.0)]
    least, most = (0.5 * ends.min(), 2.0 * ends.max()) if len(ends) else (0.1, 10.0)
    # An end at zero, or one that is not known, is beyond the axis.
    variances.hlines(
        rows, np.maximum(low, least / 10.0), np.minimum(high, most * 10.0), color=_KNOWN, linewidth=2, alpha=0.5
    )
    variances.plot(np.where(value > 0.0, value, np.nan), rows, "o", color=_KNOWN, markersize=4)
    variances.set(xscale="log", xlim=(least, most), xlabel="variance, with its 95% interval")
    widths = [0.0 if one is None else one for one in share]
    shares.barh(rows, widths, color=_KNOWN, height=0.6)
    for row, width in zip(rows, widths, strict=True):
        shares.annotate(f"{width:.0%}", (width, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    shares.set(xlim=(0.0, 1.1), xlabel="share of the variance")
    variances.set_yticks(rows, [_shortened(label) for label in labels])
    for ax in (variances, shares):
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        _tidy(ax)
    return axes


def regret_panels(panels: Mapping[str, Curves], last: tuple[str, Sequence[float], Curves] | None = None) -> Any:
    """One panel of regret against rounds for each title, and a last one of final regret against a parameter.

    All in one row, of the size and the font that every figure of a report has, with one legend below.
    """
    policies = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    with matplotlib.rc_context(_REPORT_STYLE):
        figure, axes = _report_panels(len(panels) + (last is not None))
        for i, (ax, (title, curves)) in enumerate(zip(axes, panels.items(), strict=False)):
            _draw_regret(curves, ax, policies)
            ax.set_title(_wrapped(title, len(axes)))
            if i:
                ax.set_ylabel("")
        if last is not None:
            label, values, curves = last
            plot_against(curves, values, axes[-1])
            axes[-1].set(xlabel=label, ylabel=f"final {_REGRET}", ylim=(0, None), title="after the last round")
        _legend_below(figure, axes)
    return figure


def _wrapped(title: str, panels: int) -> str:
    """A title in as many lines as it takes beside so many panels."""
    width = _REPORT_CHARACTERS // panels
    return "\n".join(line for part in title.splitlines() for line in textwrap.wrap(part, width))


def plot_against(curves: Curves, values: Sequence[float], ax: Any) -> None:
    """Points with error bars against a parameter, joined by lines; bars stand side by side, not on each other."""
    apart = _DODGE * min(np.diff(sorted(values)), default=1.0)
    for i, (name, (mean, error)) in enumerate(curves.items()):
        shade = colour(name, list(curves))
        places = np.asarray(values) + apart * (i - (len(curves) - 1) / 2)
        ax.errorbar(places, mean, yerr=error, color=shade, marker="o", markersize=3.5, capsize=2, label=name)
    ax.set_xticks(list(values))
    _tidy(ax)


def ratio_figure(ratios: Curves, heights: Sequence[int], guide: tuple[str, Floats], final: Curves, title: str) -> Any:
    """How many times the regret of TS is that of each policy, against the height of the tree, and the final regrets."""
    with matplotlib.rc_context(_REPORT_STYLE):
        figure, (ax, regrets) = _report_panels(2)
        plot_against(ratios, heights, ax)
        name, values = guide
        ax.plot(heights, values, color="0.6", linestyle="--", linewidth=1, label=name)
        ax.axhline(1.0, color="0.85", linewidth=1, zorder=0)
        ax.set(ylabel="regret of TS / regret of the policy\n(higher is better)", ylim=(0, None), title=title)
        plot_against(final, heights, regrets)
        regrets.set(ylabel=f"final {_REGRET}", ylim=(0, None), title="after the last round")
        for one in (ax, regrets):
            one.set_xlabel("height of the tree h")
        _legend_below(figure, (ax, regrets))
    return figure


def lines_by_horizon(panels: Mapping[str, Mapping[str, tuple[Floats, Floats]]], most: float = 3.0) -> Any:
    """A panel of ratios against rounds per action for each title, darker from line to line."""
    with matplotlib.rc_context(_REPORT_STYLE):
        figure, axes = _report_panels(len(panels))
        for ax, (title, lines) in zip(axes, panels.items(), strict=True):
            shades = matplotlib.colormaps["viridis_r"](np.linspace(0.1, 1.0, len(lines)))
            for (name, (horizon, ratio)), shade in zip(lines.items(), shades, strict=True):
                ax.plot(horizon, ratio, color=shade, marker="o", markersize=3.5, label=name)
            ax.set(xscale="log", xlabel="rounds per action", ylim=(0.0, most), title=_wrapped(title, len(panels)))
            _tidy(ax)
        axes[0].set_ylabel("regret / that of Thompson sampling\n(lower is better)")
        _legend_below(figure, axes)
    return figure


def _report_panels(n: int) -> tuple[Any, Sequence[Any]]:
    figure, grid = plt.subplots(1, n, figsize=REPORT_SIZE, layout="constrained", squeeze=False)
    for ax in grid[0]:
        ax.tick_params(labelsize=_REPORT_POINTS)  # ticks are made when they are drawn, in whatever style is then set
    return figure, list(grid[0])


def _legend_below(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all panels, outside of them, where it hides nothing."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)


def add_caption(figure: Any, runs: str) -> None:
    """Say above the legend of a report's figure over how many runs it is, and what bands and error bars are."""
    has_errors = any(ax.collections for ax in figure.axes)
    text = f"{runs} runs; bands and error bars are one standard error to either side" if has_errors else f"{runs} runs"
    with matplotlib.rc_context(_REPORT_STYLE):
        figure.legends[0].set_title(text, prop={"size": _REPORT_POINTS})


def draw_without_display() -> None:
    """Draw into files alone, also where there is no screen."""
    matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write the figure as PNG and SVG beside each other; the same figure gives the same bytes."""
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with matplotlib.rc_context({"svg.hashsalt": "bough", **_REPORT_STYLE}):
        figure.savefig(written[0], dpi=160, metadata={"Software": None})
        figure.savefig(written[1], metadata={"Date": None})
    plt.close(figure)
    return written


def _shortened(label: str) -> str:
    """A name as a tick can show it: the end of a long one says more than its beginning."""
    return (label if len(label) <= _LONGEST_LABEL else f"…{label[1 - _LONGEST_LABEL :]}").replace("$", r"\$")


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
