"""The figure of the study of lossy contexts: loss against tokens and against contexts; imports style, pandas frames.

One column of panels a task. Above, loss as a share of V_f against the tokens of the largest context; below, against
the number of contexts, with the frontier of the smallest sufficient map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Family -> (place among the looks, text of the legend); curves first, then single maps.
CURVES = {"last": (0, "last $k$ pairs"), "oldest_first": (1, "oldest result first")}
SINGLES = {
    "belief_grid": (2, "belief grid"),
    "pin": (3, "pin"),
    "retrieve": (4, "retrieve"),
    "summary": (5, "summary"),
    "scratchpad": (6, "scratchpad"),
}
TITLES = {"flip": "flip", "tmaze": "T-maze", "repo_repair": "repo repair", "tiger": "Tiger"}
TOP = 1.12
"""Losses beyond this share of V_f are drawn at the top edge: worse than a plan made without looking."""


def drawn(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """The figure from the study's stored tables at its printed width: 2 x 4 panels, or 4 x 2 in one column."""
    maps, edge = frames["lossy_context"], frames["frontier"]
    tasks = [
        name for start in TITLES for name in sorted(maps["task"].unique()) if name.split(":")[0] == start
    ]
    wide = width == style.WIDE
    page = style.blank(width, 3.5 if wide else 6.6)
    shape = (2, len(tasks)) if wide else (len(tasks), 2)
    panels = page.subplots(*shape, sharey=True, squeeze=False)
    for place, task in enumerate(tasks):
        above, below = (panels[0, place], panels[1, place]) if wide else (panels[place, 0], panels[place, 1])
        of_task = maps[maps["task"] == task]
        _against(above, of_task, "tokens")
        _against(below, of_task, "contexts")
        _frontier(below, edge[edge["task"] == task])
        below.set_xscale("log")
        name = TITLES[task.split(":")[0]]
        above.set_title(name, fontsize=8)
        if not wide:
            below.set_title(name, fontsize=8)
        if wide or place == len(tasks) - 1:
            below.set_xlabel("contexts", fontsize=7)
            above.set_xlabel("tokens, largest context", fontsize=7)
    page.supylabel("context loss as a share of $V_f$", fontsize=8)
    handles, labels = _legend(panels.flat[0], panels.flat[-1])
    page.legend(handles, labels, loc="outside lower center", ncols=4 if wide else 3, fontsize=6.5,
                columnspacing=1.2, handletextpad=0.5)  # fmt: skip
    return page


def _against(axes: Axes, maps: pd.DataFrame, column: str) -> None:
    """Curves of windows and budgets, single marks of remedies, each with its interval."""
    for family, (place, text) in {**CURVES, **SINGLES}.items():
        part = maps[maps["family"] == family].sort_values([column, "share_upper"], ascending=[True, False])
        if part.empty:
            continue
        shown = style.look(place)
        lower, upper = part["share_lower"].clip(upper=TOP), part["share_upper"].clip(upper=TOP)
        line: dict[str, Any] = {"linestyle": "-" if family in CURVES else ""}
        axes.vlines(part[column], lower, upper, color=shown.colour, linewidth=1.6, alpha=0.45)
        axes.plot(
            part[column], upper, color=shown.colour, marker=shown.marker, label=text, markersize=3.6,
            markeredgecolor=style.BLACK, markeredgewidth=0.3, linewidth=0.9,
            zorder=3 if family in CURVES else 4, clip_on=False, **line,
        )  # fmt: skip
    axes.axhline(0.0, color=style.GREY, linewidth=0.4, zorder=0)
    axes.axhline(1.0, color=style.GREY, linewidth=0.4, linestyle=":", zorder=0)
    axes.set_ylim(-0.04, TOP)
    axes.set_yticks([0.0, 0.5, 1.0])
    axes.tick_params(labelsize=6.5)


def _frontier(axes: Axes, edge: pd.DataFrame) -> None:
    edge = edge.sort_values("contexts")
    axes.step(
        edge["contexts"], edge["share_upper"].clip(upper=TOP), where="post", color=style.BLACK, linestyle="--",
        linewidth=0.9, label="smallest map, merged", zorder=2,
    )  # fmt: skip


def _legend(*panels: Axes) -> tuple[list[Any], list[str]]:
    found: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)
