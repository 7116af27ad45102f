"""The figure of the study tool_schema, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 4
PARTS = (("loop", "malformed calls"), ("context", "context"), ("model", "model"))


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """A row of two panels for each task; the narrow figure has one panel below the other, for the first task."""
    family, grid = frames["schema_family"], frames["schema_grid"]
    tasks = sorted(set(family["task"]), reverse=True)
    wide = width == style.WIDE
    drawn = style.blank(width, 4.1 if wide else 4.4)
    shown = tasks if wide else tasks[:1]
    axes = drawn.subplots(len(shown) if wide else 2, 2 if wide else 1, squeeze=False)
    for row, task in enumerate(shown):
        left, right = axes[row] if wide else axes[:, 0]
        _returns(left, grid[grid["task"] == task], family[family["task"] == task])
        flat = family[(family["task"] == task) & (family["family"] == "flat")]
        _losses(right, flat)
        left.set_title(f"{task}: return $J$", loc="left", fontsize=8)
        right.set_title(f"{task}: loss, flat family", loc="left", fontsize=8)
    for panel in axes[-1] if wide else axes[:, 0]:
        panel.set_xlabel("schema tokens $x$")
    left, right = axes[0] if wide else axes[:, 0]
    drawn.legend(
        *left.get_legend_handles_labels(), loc="outside lower left", ncol=2, fontsize=6.5, handlelength=2.4
    )
    if wide:
        drawn.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncol=1, fontsize=6.5)
    else:
        right.legend(loc="upper center", fontsize=6.5)
    return drawn


def _returns(axes: Axes, grid: pd.DataFrame, family: pd.DataFrame) -> None:
    rates = sorted(set(grid["rate"]), key=Fraction)
    chosen = rates[:: -(-len(rates) // MOST_LINES)]
    for place, rate in enumerate(chosen):
        part, look = grid[grid["rate"] == rate].sort_values("size"), style.look(place)
        axes.plot(
            part["size"], _middle(part, "J"), color=look.colour, marker=look.marker,
            linewidth=0.8, label=f"fixed rate $p = {float(Fraction(rate)):g}$",
        )  # fmt: skip
    for name, dashes in (("steep", "--"), ("flat", ":")):
        part = family[family["family"] == name].sort_values("size")
        axes.plot(part["size"], _middle(part, "J"), dashes, color=style.BLACK, label=f"$p(x)$ {name}")
        best = part[part["best"] == 1]
        axes.plot(
            best["size"], _middle(best, "J"), linestyle="", marker="*", markersize=7,
            color=style.BLACK, label="best schema" if name == "flat" else "_",
        )  # fmt: skip


def _losses(axes: Axes, part: pd.DataFrame) -> None:
    part = part.sort_values("size")
    places, base = np.arange(len(part)), np.zeros(len(part))
    for place, (column, text) in enumerate(PARTS):
        look, height = style.look(place), np.maximum(_middle(part, column), 0.0)
        axes.bar(
            places, height, 0.75, bottom=base, facecolor=look.colour, alpha=0.75,
            hatch=look.hatch, edgecolor="white", linewidth=0.3, label=text,
        )  # fmt: skip
        base = base + height
    step = -(-len(part) // 7)
    axes.set_xticks(places[::step], [str(size) for size in part["size"]][::step])


def _middle(part: pd.DataFrame, name: str) -> np.ndarray:
    return ((part[f"{name}_lower"] + part[f"{name}_upper"]) / 2).to_numpy()
