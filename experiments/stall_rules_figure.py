"""The figure of the study stall_rules, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS = ("edits", "tests between", "waiting", "progress")
MODELS = ("deaf", "slow", "listening", "circling")
NARROW = ("slow", "listening")
RULES = ("terminate", "escalate", "total", "growth")
FIRST = 3


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """A column of panels per task and a row per model; the narrow figure is turned and has two models."""
    wide = width == style.WIDE
    models = MODELS if wide else NARROW
    every, runs = frames["stall_tradeoff"], frames["stall_runs"]
    at = every["stuck"].max()
    drawn = style.blank(width, 4.9 if wide else 5.2)
    shape = (len(models), len(TASKS)) if wide else (len(TASKS), len(models))
    panels = drawn.subplots(*shape, squeeze=False)
    for i, model in enumerate(models):
        most = every[(every["model"] == model) & (every["stuck"] == at)]["waste"].max()
        for j, task in enumerate(TASKS):
            axes = panels[i, j] if wide else panels[j, i]
            own = every[(every["task"] == task) & (every["model"] == model) & (every["stuck"] == at)]
            run = runs[(runs["task"] == task) & (runs["model"] == model) & (runs["stuck"] == at)]
            _panel(axes, own, run)
            axes.set_xlim(0.0, 1.03 * most)
            if (i == len(models) - 1) if wide else (j == len(TASKS) - 1):
                axes.set_xlabel("calls wasted", fontsize=7.5)
            if (i == 0) if wide else (j == 0):
                axes.set_title(task if wide else model, fontsize=7.5)
            if (j == 0) if wide else (i == 0):
                axes.set_ylabel(model if wide else task, fontsize=7.5)
    drawn.supylabel("share of runs ended that would have succeeded", fontsize=8)
    drawn.legend(
        handles=_handles(), loc="outside lower center", ncols=6 if wide else 3, fontsize=6.5,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
    return drawn


def _panel(axes: Axes, own: pd.DataFrame, run: pd.DataFrame) -> None:
    for place, name in enumerate(RULES):
        look, curve = style.look(place), own[own["rule"] == name].sort_values("first")
        axes.plot(
            curve["waste"], curve["premature"], color=look.colour, marker=look.marker, markersize=1.6,
            linewidth=0.8, clip_on=False,
        )  # fmt: skip
        at = curve[curve["first"] == FIRST]
        axes.plot(
            at["waste"], at["premature"], linestyle="", color=look.colour, marker=look.marker, markersize=4,
            markeredgecolor=style.BLACK, markeredgewidth=0.4, clip_on=False,
        )  # fmt: skip
        ran = run[run["rule"] == name]
        axes.errorbar(
            ran["waste_run"], ran["premature_run"], xerr=2 * ran["waste_se"], yerr=2 * ran["premature_se"],
            linestyle="", color=look.colour, elinewidth=0.6, alpha=0.7,
        )  # fmt: skip
    none = own[own["rule"] == "none"]["waste"]
    axes.plot(none, [0.0], linestyle="", marker="*", markersize=4.5, color=style.GREY, clip_on=False)
    axes.set_ylim(0.0, max(0.1, 1.05 * axes.get_ylim()[1]))
    axes.tick_params(labelsize=6)


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D

    found = [
        Line2D([], [], color=style.look(place).colour, marker=style.look(place).marker, markersize=3,
               linewidth=0.8, label=name)
        for place, name in enumerate(RULES)
    ]  # fmt: skip
    star = Line2D([], [], linestyle="", marker="*", markersize=4.5, color=style.GREY, label="no rule")
    run = Line2D([], [], color=style.GREY, linewidth=0.6, label="runs, 2 s.e.")
    return [*found, star, run]
