"""The figure of the study necessity, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "loop": "no loop: replies",
    "tools": "no tools: executed calls",
    "context": "no context map: window full",
    "limits": "no limits: runs to the cap",
    "permissions": "no permissions: forbidden",
    "errors": "no error handling: crashed",
}
BARS = ("loop", "tools", "context", "control", "limits", "permissions", "errors")
AT = 0.1
"""The error rate at which losses are drawn."""


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Six properties against the error rate, and below them what each removal costs at one error rate."""
    wide = width == style.WIDE
    rows, columns = (3, 3) if wide else (4, 2)
    drawn = style.blank(width, 4.6 if wide else 5.6)
    spaces = drawn.add_gridspec(rows, columns)
    properties, returns = frames["lost_property"], frames["lost_return"]
    tasks = sorted(set(properties["task"]))
    panels = [drawn.add_subplot(spaces[place // columns, place % columns]) for place in range(len(PANELS))]
    for axes, (removed, title) in zip(panels, PANELS.items()):
        _property(axes, properties[properties["removed"] == removed], tasks)
        axes.set_title(title, loc="left", fontsize=7.5)
        axes.tick_params(labelsize=6.5)
    for axes in panels[-columns:]:
        axes.set_xlabel("error rate of the model", fontsize=7)
    below = drawn.add_subplot(spaces[rows - 1, :])
    at = min(set(returns["error"]), key=lambda error: abs(error - AT))
    _losses(below, returns[returns["error"] == at], tasks)
    below.set_title(
        f"return lost, in largest rewards; error rate {at:g} (bars exact, points runs)",
        loc="left",
        fontsize=7.5,
    )
    drawn.legend(
        handles=_handles(tasks), loc="outside lower center", ncols=6 if wide else 3, fontsize=6.5,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip
    return drawn


def _property(axes: Axes, part: pd.DataFrame, tasks: list[str]) -> None:
    """Exact lines, dashed for the intact harness, and runs with two standard errors."""
    for place, task in enumerate(tasks):
        look, own = style.look(place), part[part["task"] == task].sort_values("error")
        for name, line in (("intact", "--"), ("without", "-")):
            axes.plot(own["error"], own[f"{name}_exact"], line, color=look.colour, linewidth=0.9)
            axes.errorbar(
                own["error"] + 0.004 * (place - 1.5), own[name], yerr=2 * own[f"{name}_se"], linestyle="",
                color=look.colour, marker=look.marker, markersize=2.5, elinewidth=0.6,
            )  # fmt: skip
    axes.set_xticks(sorted(set(part["error"])) if part["error"].nunique() < 4 else [0.0, 0.1, 0.2, 0.3])
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.04 * high), high)


def _losses(axes: Axes, part: pd.DataFrame, tasks: list[str]) -> None:
    """Exact losses as bars, runs on them."""
    thick = 0.8 / len(tasks)
    for place, task in enumerate(tasks):
        look, own = style.look(place), part[part["task"] == task].set_index("removed").loc[list(BARS)]
        spots = [k + (place - (len(tasks) - 1) / 2) * thick for k in range(len(BARS))]
        axes.bar(
            spots, own["lost_exact"] / own["largest"], 0.9 * thick, facecolor=look.colour, alpha=0.7,
            hatch=look.hatch, edgecolor="white", linewidth=0.3,
        )  # fmt: skip
        axes.errorbar(
            spots, own["lost"] / own["largest"], yerr=2 * own["lost_se"] / own["largest"], linestyle="",
            color=style.BLACK, marker=look.marker, markersize=2.2, elinewidth=0.6,
        )  # fmt: skip
    axes.axhline(0.0, color=style.GREY, linewidth=0.5)
    axes.axvline(3.5, color=style.GREY, linewidth=0.4, linestyle=":")
    axes.set_xticks(range(len(BARS)), [name if name in BARS[:4] else f"({name})" for name in BARS])
    axes.tick_params(labelsize=6)


def _handles(tasks: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    found = [
        Line2D([], [], color=style.look(place).colour, marker=style.look(place).marker, markersize=2.5,
               linewidth=0.9, label=task)
        for place, task in enumerate(tasks)
    ]  # fmt: skip
    lines: tuple[tuple[str, Any], ...] = (("without it", "-"), ("intact", "--"))
    for text, line in lines:
        found.append(Line2D([], [], color=style.GREY, linestyle=line, linewidth=0.9, label=text))
    return found
