"""The figure of the study harness_or_model, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import NullLocator

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROSSED = ("bayes", "bayes:0.05", "bayes:0.2", "naive", "random")
SHORT = {"window only": "window", "output only": "output"}


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Above: J of the models in the harnesses, and the gap by cause. Below: values of parts, for each reader."""
    wide = width == style.WIDE
    drawn = style.blank(width, 4.6 if wide else 7.6)
    axes = drawn.subplots(2, 2).ravel() if wide else drawn.subplots(4, 1)
    _factorial(axes[0], frames["harness_or_model"])
    _causes(axes[1], frames["two_causes"])
    parts = frames["part_values"]
    for panel, reader in zip(axes[2:], sorted(set(parts["reader"])), strict=True):
        _parts(panel, parts[parts["reader"] == reader])
        panel.set_title(f"value of a part, {reader} reader", loc="left", fontsize=8)
    handles, labels = axes[2].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncol=4 if wide else 2, fontsize=6.5)
    return drawn


def _factorial(axes: Axes, grid: pd.DataFrame) -> None:
    names = list(dict.fromkeys(grid["harness"]))
    for place, model in enumerate(m for m in CROSSED if m in set(grid["model"])):
        part = grid[grid["model"] == model].set_index("harness").loc[names]
        look = style.look(place)
        axes.plot(range(len(names)), _middle(part, "J"), color=look.colour, marker=look.marker, label=model)
    axes.set_xticks(range(len(names)), [SHORT.get(name, name) for name in names])
    axes.set_xlim(-0.2, len(names) + 0.6)
    axes.legend(fontsize=6, loc="center right", handlelength=1.6)
    axes.set_title("return $J$", loc="left", fontsize=8)


def _causes(axes: Axes, causes: pd.DataFrame) -> None:
    places, height = np.arange(len(causes)), 0.38
    for place, name in enumerate(("window", "output")):
        look = style.look(place)
        axes.barh(
            places + (place - 0.5) * height, _middle(causes, name), height, facecolor=look.colour, alpha=0.75,
            hatch=look.hatch, edgecolor="white", linewidth=0.3, label=name,
        )  # fmt: skip
    axes.plot(_middle(causes, "gap"), places, linestyle="", marker="|", color=style.BLACK, label="gap")
    axes.axvline(0.0, color=style.GREY, linewidth=0.5)
    axes.set_yticks(places, list(causes["model"]))
    axes.tick_params(axis="y", length=0, labelsize=6.5)
    axes.invert_yaxis()
    axes.set_xlim(right=1.4 * float(causes["gap_upper"].max()))
    axes.legend(fontsize=6, loc="lower right")
    axes.set_title("$J(H_1) - J(H_2)$ by cause", loc="left", fontsize=8)


def _parts(axes: Axes, parts: pd.DataFrame) -> None:
    names = list(dict.fromkeys(parts["part"]))
    axes.axhline(0.0, color=style.GREY, linewidth=0.5)
    for place, name in enumerate(names):
        part = parts[parts["part"] == name].sort_values("temperature")
        # Beyond the colours that style has, a series is black, dashed and has its own marker.
        look = style.look(place % len(style.LOOKS))
        again = place >= len(style.LOOKS)
        axes.plot(
            part["temperature"], _middle(part, "value"), color=style.BLACK if again else look.colour,
            marker="*" if again else look.marker, linestyle="--" if again else "-", label=name,
        )  # fmt: skip
    least = min(t for t in parts["temperature"] if t > 0)
    axes.set_xscale("symlog", linthresh=least, linscale=0.6)
    shown = [t for t in (0.0, 0.02, 0.1, 0.5, 2.0) if t <= max(parts["temperature"])]
    axes.set_xticks(shown, [f"{t:g}" for t in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(max(parts["temperature"]) * 1.15, -0.12 * least)
    axes.set_yscale("symlog", linthresh=0.05, linscale=0.8)
    ticks = (-0.2, -0.05, 0.0, 0.05, 0.2, 1.0)
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("temperature (stronger to the right)")


def _middle(part: pd.DataFrame, name: str) -> np.ndarray:
    return ((part[f"{name}_lower"] + part[f"{name}_upper"]) / 2).to_numpy()
