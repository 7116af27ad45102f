"""The figure of the study failures_as_observations, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS = (("bayes", "Bayes"), ("naive", "naive"), ("optimal", "best"))
SHOWN: tuple[tuple[str, Any], ...] = (("visible", "-"), ("blank", "--"), ("stale", ":"))
TEXTS = {"visible": "shown", "blank": "hidden: blank result", "stale": "hidden: stale result"}


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Of calls that time out: a row of panels for each model and a column for each task; the narrow one turned."""
    returns, runs = frames["failure_returns"], frames["failure_runs"]
    wide = width == style.WIDE
    tasks = sorted(set(returns["task"]))
    drawn = style.blank(width, 4.4 if wide else 5.6)
    rows, columns = (MODELS, tasks) if wide else (tasks, MODELS)
    axes = drawn.subplots(len(rows), len(columns), sharex=True, squeeze=False)
    for i, task in enumerate(tasks):
        for j, (model, text) in enumerate(MODELS):
            panel = axes[j, i] if wide else axes[i, j]
            _curves(panel, _of(returns, task, model), _of(runs, task, model))
            panel.set_title(f"{task}, {text}", loc="left", fontsize=7)
            panel.tick_params(labelsize=6)
    for panel in axes[-1]:
        panel.set_xlabel("failure rate $p$", fontsize=7)
    drawn.supylabel("return $J$, calls that time out", fontsize=8)
    drawn.legend(handles=_handles(), loc="outside lower center", ncols=3 if wide else 2, fontsize=6.5)
    return drawn


def _of(rows: pd.DataFrame, task: str, model: str) -> pd.DataFrame:
    return rows[(rows["task"] == task) & (rows["model"] == model) & (rows["failure"] == "timeout")]


def _curves(axes: Axes, returns: pd.DataFrame, runs: pd.DataFrame) -> None:
    for place, (shown, line) in enumerate(SHOWN):
        look = style.look(place)
        part = returns[returns["shown"] == shown].sort_values("rate")
        axes.plot(part["rate"], part["J_lower"], line, color=look.colour, linewidth=1.0)
        axes.fill_between(
            part["rate"], part["J_lower"], part["J_upper"], facecolor=look.colour, alpha=0.18, linewidth=0
        )
        run = runs[runs["shown"] == shown]
        # Points of one rate are set beside each other, or their bars would hide one another.
        axes.errorbar(
            run["rate"] + 0.012 * (place - 1), run["earned"], yerr=2 * run["earned_se"], linestyle="",
            color=look.colour, marker=look.marker, markersize=2.5, elinewidth=0.6,
        )  # fmt: skip


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], linestyle=line, color=style.look(place).colour, marker=style.look(place).marker,
               markersize=2.5, linewidth=1.0, label=TEXTS[shown])
        for place, (shown, line) in enumerate(SHOWN)
    ]  # fmt: skip
