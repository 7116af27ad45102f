"""The figure of the study commitment, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style
from experiments.commitment_tables import NAMED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = ("follow", "tiger", "repo repair")
TASKS = ("follow", "random-2", "tiger", "T-maze", "repo repair", "flip", "drift")  # one look each
PRICES = (("low", "low price"), ("high", "high price"))
MEMORY = ("T-maze", 0.0)


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Above, return against rate for each k, lines exact and points run; below, best k, and plans as memory."""
    wide = width == style.WIDE
    drawn = style.blank(width, 4.4 if wide else 7.6)
    axes = drawn.subplots(2, 3) if wide else drawn.subplots(3, 2)
    values, runs = frames["committed_values"], frames["committed_runs"]
    free = values[(values["level"] == "none") & (values["rule"] != NAMED)]
    shown = [task for task in CURVES if task in set(free["task"])]
    for panel, task in zip(axes.flat, shown, strict=False):
        _curves(panel, free[free["task"] == task], runs[runs["task"] == task])
        panel.set_title(f"{task}: return", loc="left", fontsize=8)
        _rates(panel)
    for panel, (level, text) in zip(axes.flat[3:], PRICES, strict=False):
        _best(panel, frames["best_plan"], f"best_{level}")
        panel.set_title(f"best $k$, {text}", loc="left", fontsize=8)
        _rates(panel)
    _memory(axes.flat[5], frames["short_contexts"])
    _legends(drawn, axes.flat[0], axes.flat[3])
    return drawn


def _rates(axes: Axes) -> None:
    axes.set_xscale("symlog", linthresh=0.01, linscale=0.5)
    axes.set_xticks([0.0, 0.01, 0.1, 0.5], ["0", ".01", ".1", ".5"])
    axes.minorticks_off()
    axes.set_xlim(-0.002, 0.65)
    axes.set_xlabel(r"rate of change $\rho$", fontsize=7)


def _curves(axes: Axes, values: pd.DataFrame, runs: pd.DataFrame) -> None:
    for place, k in enumerate(sorted(set(values["rule"]), key=int)):
        look, part = style.look(place), values[values["rule"] == k].sort_values("rate")
        middle = (part["J_lower"] + part["J_upper"]) / 2
        axes.plot(part["rate"], middle, color=look.colour, linewidth=0.9, label=f"$k = {k}$")
        run = runs[runs["k"] == int(k)]
        # Points of one rate are set beside each other, or their bars would hide one another.
        axes.errorbar(
            run["rate"] * (1 + 0.07 * (place - 2.5)), run["earned"], yerr=2 * run["earned_se"], linestyle="",
            color=look.colour, marker=look.marker, markersize=2.5, elinewidth=0.6,
        )  # fmt: skip


def _best(axes: Axes, best: pd.DataFrame, column: str) -> None:
    tasks = [task for task in TASKS if task in set(best["task"])]
    for place, task in enumerate(tasks):
        look, part = style.look(place), best[best["task"] == task].sort_values("rate")
        # Lines of several tasks on one k are set beside each other.
        shifted = part[column] + 0.09 * (place - (len(tasks) - 1) / 2)
        axes.plot(
            part["rate"],
            shifted,
            color=look.colour,
            marker=look.marker,
            linewidth=0.8,
            markersize=2.8,
            label=task,
        )
    axes.set_yticks(range(1, int(best["horizon"].max()) + 1))
    axes.set_ylim(0.5, best["horizon"].max() + 0.5)


def _memory(axes: Axes, short: pd.DataFrame) -> None:
    task, rate = MEMORY
    part = short[(short["task"] == task) & (short["rate"] == rate)]
    rules = [*sorted({rule for rule in part["rule"] if rule != NAMED}, key=int), NAMED]
    windows = sorted(set(part["window"]))[:4]
    for place, window in enumerate(windows):
        look, rows = style.look(place), part[part["window"] == window].set_index("rule")
        rules = [rule for rule in rules if rule in rows.index]
        at = [i + 0.8 * (place - (len(windows) - 1) / 2) / max(1, len(windows)) for i in range(len(rules))]
        middle = [(rows.loc[rule, "Vo_lower"] + rows.loc[rule, "Vo_upper"]) / 2 for rule in rules]
        axes.bar(
            at, middle, 0.8 / max(1, len(windows)), facecolor=look.colour, hatch=look.hatch, edgecolor="white",
            linewidth=0.3, label=f"{window}",
        )  # fmt: skip
    axes.set_xticks(range(len(rules)), rules)
    axes.set_title(f"{task}: return, short context", loc="left", fontsize=8)
    axes.set_xlabel("plan of $k$ steps", fontsize=7)
    axes.legend(title="pairs shown", title_fontsize=6.5, fontsize=6.5, loc="upper left", handlelength=1.2)


def _legends(drawn: Figure, curves: Axes, best: Axes) -> None:
    from matplotlib.lines import Line2D

    common: Any = {"fontsize": 6.5, "columnspacing": 1.0, "handletextpad": 0.4}
    lines, texts = curves.get_legend_handles_labels()
    looks = [style.look(place) for place in range(len(lines))]
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markersize=2.5, linewidth=0.9) for look in looks
    ]
    drawn.legend(handles, texts, loc="outside upper center", ncols=6, **common)
    narrow = drawn.get_figwidth() != style.WIDE
    drawn.legend(
        *best.get_legend_handles_labels(), loc="outside lower center", ncols=4 if narrow else 7, **common
    )
