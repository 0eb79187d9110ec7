"""Figures. The only module that imports matplotlib; it knows arrays and names, nothing of the rest of bough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from bough._arrays import Floats
from bough.policy_table import POLICIES

Curves = Mapping[str, tuple[Floats, Floats]]
"""For each policy the mean and the standard error, one entry a round or a cell."""

_OTHERS = ("#2a9d8f", "#e76f51", "#264653", "#b5838d", "#8ab17d")


def colour(policy: str, policies: Sequence[str]) -> str:
    """The same colour for the same policy everywhere."""
    if policy in POLICIES:
        return POLICIES[policy].colour
    others = [name for name in policies if name not in POLICIES]
    return _OTHERS[others.index(policy) % len(_OTHERS)]


def plot_regret(curves: Curves, ax: Any = None) -> Any:
    """Mean regret against rounds with bands of one standard error; returns the axes."""
    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    for name, (mean, error) in curves.items():
        rounds = np.arange(1, len(mean) + 1)
        shade = colour(name, list(curves))
        ax.plot(rounds, mean, color=shade, label=name)
        ax.fill_between(rounds, mean - error, mean + error, color=shade, alpha=0.2, linewidth=0)
    ax.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None), xlim=(0, len(mean)))
    _tidy(ax)
    ax.legend(frameon=False)
    return ax


def regret_panels(
    panels: Mapping[str, Curves], last: tuple[str, Sequence[float], Curves] | None = None, columns: int | None = None
) -> Any:
    """One panel of regret against rounds for each title, and a last one of final regret against a parameter.

    All in one row, with one legend, or in so many columns, each panel with a legend of its own.
    """
    n = len(panels) + (last is not None)
    shape = (1, n) if columns is None else (-(-n // columns), columns)
    figure, grid = plt.subplots(*shape, figsize=(3.3 * shape[1], 3.2 * shape[0]), layout="constrained", squeeze=False)
    axes = grid.ravel()
    for i, (ax, (title, curves)) in enumerate(zip(axes, panels.items(), strict=False)):
        plot_regret(curves, ax)
        ax.set_title(title, fontsize=10)
        if i % shape[1]:
            ax.set_ylabel("")
        if i and columns is None:
            ax.get_legend().remove()
        elif columns is not None:
            ax.legend(frameon=False, fontsize=8)
    for ax in axes[n:]:
        ax.set_visible(False)
    if last is not None:
        label, values, curves = last
        plot_against(curves, values, axes[n - 1])
        axes[n - 1].set(xlabel=label, ylabel="final regret", ylim=(0, None))
        axes[n - 1].set_title("after the last round", fontsize=10)
    return figure


def plot_against(curves: Curves, values: Sequence[float], ax: Any) -> None:
    """Points with error bars against a parameter, joined by lines."""
    for name, (mean, error) in curves.items():
        shade = colour(name, list(curves))
        ax.errorbar(values, mean, yerr=error, color=shade, marker="o", markersize=3.5, capsize=2, label=name)
    ax.set_xticks(list(values))
    _tidy(ax)


def ratio_figure(ratios: Curves, heights: Sequence[int], guide: tuple[str, Floats], title: str) -> Any:
    """How many times the regret of TS is that of each policy, against the height of the tree."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    plot_against(ratios, heights, ax)
    name, values = guide
    ax.plot(heights, values, color="0.6", linestyle="--", linewidth=1, label=name)
    ax.axhline(1.0, color="0.85", linewidth=1, zorder=0)
    ax.set(xlabel="height of the tree h", ylabel="regret of TS / regret of policy", title=title, ylim=(0, None))
    ax.title.set_fontsize(10)
    ax.legend(frameon=False)
    return figure


def draw_without_display() -> None:
    """Draw into files alone, also where there is no screen."""
    matplotlib.use("Agg")


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write the figure as PNG and SVG beside each other; the same figure gives the same bytes."""
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with matplotlib.rc_context({"svg.hashsalt": "bough"}):
        figure.savefig(written[0], dpi=160, metadata={"Software": None})
        figure.savefig(written[1], metadata={"Date": None})
    plt.close(figure)
    return written


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
