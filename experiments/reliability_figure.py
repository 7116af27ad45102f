"""What a guard says against what is so: a reliability diagram with the three regions cut; imports style, matplotlib.

`draw_reliability` is the figure of one set of scores; its parts draw on any axes, also from stored tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import style
from harnesses.guard.region import REGIONS, Thresholds
from harnesses.guard.reliability import equal_mass, equal_width
from harnesses.guard.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS, POINTS = 32, 10
ALLOWED, DISALLOWED = 5, 1
"""Looks of the two labels."""


def draw_reliability(p: Any, y: Any, thresholds: Thresholds, width: float = style.WIDE) -> Figure:
    """Above, items by report, allowed and not; below, the share allowed against the report, with 95 % ends.

    `p` `[N]` reports, `y` `[N]` labels, 1 = allowed; the thresholds cut both panels. Raises GuardError for reports
    and labels that are none, StyleError for a width that figures do not have. Call it inside `style.styled`.
    """
    tally = Tally.of(p, y)
    wide = width == style.WIDE
    drawn = style.blank(width, 3.9 if wide else 3.6)
    above, below = drawn.subplots(2, 1, sharex=True, height_ratios=[1.0, 1.25])
    histogram(above, tally)
    rows = equal_mass(tally, POINTS)
    told = [row.allowed for row in rows]
    curve(
        below,
        [row.mean_report for row in rows],
        [rate.rate for rate in told],
        [rate.lower for rate in told],
        [rate.upper for rate in told],
        look=style.look(0),
        label=f"{len(rows)} bins of about {tally.size / len(rows):.0f} items",
    )
    frame(below)
    for axes in (above, below):
        cuts(axes, thresholds)
    names(above, thresholds)
    below.set_xlabel("reported probability that the call is allowed")
    below.legend(loc="upper left", fontsize=7, frameon=True, framealpha=1.0, edgecolor="none")
    return drawn


def histogram(axes: Axes, tally: Tally, bars: int = BARS) -> None:
    """Items by report in bars of equal width, the disallowed below the allowed."""
    rows = equal_width(tally, bars)
    left = np.array([row.lower for row in rows])
    good = np.array([row.allowed.numerator for row in rows])
    bad = np.array([row.count for row in rows]) - good
    common: dict[str, Any] = {"width": 1 / bars, "align": "edge", "edgecolor": "white", "linewidth": 0.3}
    for height, base, place, text in (
        (bad, 0 * bad, DISALLOWED, "not allowed"),
        (good, bad, ALLOWED, "allowed"),
    ):
        look = style.look(place)
        axes.bar(
            left, height, bottom=base, facecolor=look.colour, hatch=look.hatch if place == DISALLOWED else "",
            label=f"{text} ({height.sum()})", **common,
        )  # fmt: skip
    axes.set_ylabel("items")
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, 1.18 * max(1, int((good + bad).max())))
    axes.legend(loc="center left", fontsize=7, frameon=True, framealpha=1.0, edgecolor="none")


def curve(
    axes: Axes,
    said: Sequence[float | None],
    observed: Sequence[float | None],
    lower: Sequence[float | None],
    upper: Sequence[float | None],
    *,
    look: style.Look,
    label: str,
) -> None:
    """Share allowed against the mean report of each bin, with its ends."""
    x, middle, low, high = (np.asarray(values, dtype=float) for values in (said, observed, lower, upper))
    axes.errorbar(
        x, middle, yerr=[middle - low, high - middle], color=look.colour, marker=look.marker, linewidth=0.9,
        elinewidth=0.7, capsize=1.5, capthick=0.7, label=label, zorder=3,
    )  # fmt: skip


def frame(axes: Axes) -> None:
    """Limits, label and the diagonal on which a calibrated guard lies."""
    axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.6, linestyle=":", zorder=1)
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, 1.03)
    axes.set_ylabel("share allowed")


def cuts(axes: Axes, thresholds: Thresholds) -> None:
    """Dashed lines at the thresholds, the acting region shaded."""
    for tau in {thresholds.tau_esc, thresholds.tau_act} - {None}:
        axes.axvline(float(tau), color=style.BLACK, linewidth=0.7, linestyle="--", zorder=2)
    if thresholds.tau_act is not None:
        axes.axvspan(float(thresholds.tau_act), 1.0, color=style.GREY, alpha=0.15, linewidth=0, zorder=0)


def names(axes: Axes, thresholds: Thresholds, size: float = 7.0) -> None:
    """Names of the regions above the axes, each over its own; that of a narrow last region is set to its left end."""
    act = 1.0 if thresholds.tau_act is None else float(thresholds.tau_act)
    esc = float(thresholds.tau_esc)
    ends = {"act": (act, 1.0), "ask": (esc, act), "escalate": (0.0, esc)}
    for kind in REGIONS:
        low, high = ends[kind.value]
        if high <= low:
            continue
        tight = kind.value == "act" and high - low < 0.1
        axes.text(
            high if tight else (low + high) / 2, 1.02, kind.value, fontsize=size, style="italic",
            ha="right" if tight else "center", va="bottom", transform=axes.get_xaxis_transform(),
        )  # fmt: skip
