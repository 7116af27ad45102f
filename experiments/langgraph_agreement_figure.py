"""The figure of the study langgraph_agreement, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STANDARD_ERRORS = 2
TITLES = {
    "cost_per_case": "cost per case",
    "uar": "unsafe-action rate",
    "questions": "questions",
}
CONTEXTS = {"counter:last:0": "", "compose:results:last:2": "results of 2"}


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Two panels of returns above, the guard's three measures below; all stand in one column where it is narrow."""
    main, sets = frames["returns"], frames["guard_sets"]
    wide = width == style.WIDE
    drawn = style.blank(width, 4.6 if wide else 7.6)
    parts: Any = drawn.subfigures(2, 1, height_ratios=(1.35, 1.0) if wide else (1.1, 1.0))
    above, below = parts
    left, right = above.subplots(1, 2) if wide else above.subplots(2, 1)
    _returns(left, main[main["quantity"] == "V_f"], "value of feedback $V_f$")
    _returns(right, main[main["quantity"] == "loss"], "loss of a lossy context")
    names = [name for name in TITLES if (sets["measure"] == name).any()]
    axes: Any = (
        below.subplots(1, len(names), squeeze=False) if wide else below.subplots(len(names), 1, squeeze=False)
    )
    for one, name in zip(axes.ravel(), names, strict=True):
        _sets(one, sets[sets["measure"] == name], TITLES[name])
    axes.ravel()[0].legend(fontsize=6, loc="lower right", handletextpad=0.3, borderpad=0)
    return drawn


def _returns(axes: Axes, part: pd.DataFrame, title: str) -> None:
    """A row for each task and map: the formal interval as a bar, the exact difference, the run with two s.e."""
    rows = part.iloc[::-1].reset_index(drop=True)
    formal, ran = style.look(0), style.look(1)
    scale = rows["largest"]  # tasks pay in different units
    for place, row in rows.iterrows():
        ends = [row["formal_lower"] / scale[place], row["formal_upper"] / scale[place]]
        axes.plot(ends, [place, place], color=formal.colour, linewidth=4, alpha=0.3, solid_capstyle="butt")
    places = list(range(len(rows)))
    axes.plot(
        rows["exact"] / scale, places, linestyle="", marker=formal.marker, markersize=6, color=formal.colour,
        markerfacecolor="white", label="formal: exact, bar: certified",
    )  # fmt: skip
    axes.errorbar(
        rows["run"] / scale, places, xerr=STANDARD_ERRORS * rows["run_error"] / scale, linestyle="",
        marker=ran.marker, color=ran.colour, elinewidth=0.8, label="LangGraph, two s.e.",
    )  # fmt: skip
    axes.axvline(0, color=style.GREY, linewidth=0.5)
    labels = [
        f"{task} {CONTEXTS.get(context, context)}".strip()
        for task, context in zip(rows["task"], rows["context"], strict=True)
    ]
    axes.set_yticks(places, [label.replace("_", " ") for label in labels])
    axes.tick_params(axis="y", labelsize=6)
    axes.set_ylim(-0.6, len(rows) + 0.2)
    axes.set_xlabel("share of the largest difference")
    axes.set_title(title, loc="left", fontsize=8)
    axes.legend(fontsize=5.5, loc="upper right", handletextpad=0.3, borderpad=0)


def _sets(axes: Axes, part: pd.DataFrame, title: str) -> None:
    """Per decision set: the twin's prediction with its interval, and what the desk did, in order of the prediction."""
    rows = part.sort_values(["run", "set"]).reset_index(drop=True)
    formal, ran = style.look(0), style.look(1)
    places = list(range(len(rows)))
    axes.vlines(
        places,
        rows["lower"],
        rows["upper"],
        color=formal.colour,
        linewidth=2.5,
        alpha=0.35,
        label="predicted, 95 %",
    )
    axes.plot(places, rows["predicted"], linestyle="", marker="_", color=formal.colour)
    held = rows["covered"] == 1
    axes.plot(
        [p for p in places if held[p]], rows["run"][held], linestyle="", marker=ran.marker, color=ran.colour,
        label="LangGraph run",
    )  # fmt: skip
    axes.plot(
        [p for p in places if not held[p]], rows["run"][~held], linestyle="", marker="x", markersize=5,
        color=style.BLACK, label="run outside" if (~held).any() else None,
    )  # fmt: skip
    axes.set_xticks([])
    axes.set_xlabel(f"{len(rows)} decision sets, {int(held.sum())} held")
    axes.set_ylim(bottom=0)
    axes.set_title(title, loc="left", fontsize=8)
