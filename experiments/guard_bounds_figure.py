"""The figure of the study guard_bounds, from its stored tables alone. Imports style, reliability_figure, matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import reliability_figure, style
from harnesses.guard.region import Thresholds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL = 6.2
RULES = ("naive", "conformal", "PAC", "LTT", "LTT in sequence")


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """2 x 3 panels: reliability, violations, kappa; injection, reviewer, delay. One column: 3 x 2."""
    wide = width == style.WIDE
    drawn = style.blank(width, 3.9 if wide else 5.6)
    panels = drawn.subplots(*((2, 3) if wide else (3, 2))).flat
    for axes, (title, part) in zip(panels, PANELS.items(), strict=True):
        part(axes, frames)
        axes.set_title(title, loc="left", fontsize=7.5)
        axes.tick_params(labelsize=SMALL)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set_fontsize(7)
    return drawn


def _reliability(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    bins = frames["guard_bins"]
    cut = Thresholds(float(bins["tau_act"].iloc[0]), float(bins["tau_esc"].iloc[0]))
    for place, (guard, part) in enumerate(bins.groupby("guard")):
        part = part.sort_values("said")
        reliability_figure.curve(
            axes, part["said"], part["observed"], part["ends_lower"], part["ends_upper"],
            look=style.look(place), label=str(guard),
        )  # fmt: skip
    reliability_figure.frame(axes)
    reliability_figure.cuts(axes, cut)
    act, esc = float(cut.tau_act), float(cut.tau_esc)
    for x, name, side in (
        (esc / 2, "escalate", "center"),
        ((esc + act) / 2 - 0.06, "ask", "center"),
        (act - 0.015, "act$\\rightarrow$", "right"),
    ):
        axes.text(x, -0.03, name, fontsize=SMALL, style="italic", ha=side, va="top")
    axes.set_ylim(-0.14, 1.03)
    axes.set_xlabel("report $p$")
    legend(axes, "upper left")


def _violations(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    rules = frames["guard_rules"]
    for place, rule in enumerate(RULES):
        part = rules[rules["rule"] == rule].sort_values("items")
        if part.empty:
            continue
        look = style.look(place)
        error = [part["rate"] - part["ends_lower"], part["ends_upper"] - part["rate"]]
        axes.errorbar(part["items"], part["rate"], yerr=np.array(error), color=look.colour, marker=look.marker,
                      elinewidth=0.7, capsize=1.2, label=rule)  # fmt: skip
    delta = float(rules["delta"].iloc[0])
    axes.axhline(
        delta, color=style.BLACK, linewidth=0.8, linestyle="--", zorder=0, label=rf"$\delta = {delta:g}$"
    )
    sizes = sorted(set(rules["items"]))
    axes.set_xticks(sizes[:: -(-len(sizes) // 5)])
    axes.set_ylim(-0.015, 0.86)
    axes.set_xlabel("labelled items $n$")
    axes.set_ylabel("share of data sets")
    legend(axes, "upper left", ncols=2, columnspacing=0.9)


def _kappa(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_kappa"].sort_values("kappa")
    bound = float(part["bound"].iloc[0])
    for place, (column, text) in enumerate((("share", "share"), ("uar", "UAR"))):
        look = style.look(place)
        every = [place for place, kappa in enumerate(part["kappa"]) if kappa in (1, 2, 4, 8)]
        axes.plot(
            part["kappa"], part[column], color=look.colour, marker=look.marker, markevery=every, label=text
        )
    axes.axhline(bound, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.axvspan(4.0, part["kappa"].max(), color=style.GREY, alpha=0.15, linewidth=0, zorder=0)
    axes.set_yscale("log")
    axes.set_xlim(1, part["kappa"].max())
    axes.set_xticks([1, 2, 4, 6, 8, 10])
    axes.set_xlabel(r"doubts too small by $\kappa$")
    axes.set_ylabel("rate")
    last = float(part["kappa"].max())
    axes.text(0.98 * last, bound * 1.05, r"$1-\tau_{act}$", fontsize=SMALL, ha="right", va="bottom")
    axes.text(0.97, 0.03, "share above\nits bound", fontsize=SMALL, ha="right", va="bottom", style="italic",
              transform=axes.transAxes)  # fmt: skip
    legend(axes, "upper left", facecolor="none")


def _injection(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_injection"].sort_values("rise")
    promise = float(part["bound"].iloc[0])
    axes.plot(
        part["rise"], part["bound"], color=style.BLACK, linestyle="--", linewidth=0.8, label=r"$1-\tau+D$"
    )
    shown = (("blind", 0, "all raised"), ("aimed", 1, "bad raised"), ("blind_restored", 2, r"at $\tau+D$"))
    every = max(1, (len(part) - 1) // 4)
    for column, place, text in shown:
        look = style.look(place)
        axes.plot(
            part["rise"], part[column], color=look.colour, marker=look.marker, markevery=every, label=text
        )
    worst = part[part["rise"] > 0]
    axes.plot(worst["rise"], worst["worst"], color=style.look(1).colour, linestyle=":")
    end = float(part["rise"].max())
    axes.text(0.98 * end, 0.9, "bad raised,\nworst law", fontsize=SMALL, ha="right", va="top")
    axes.axvspan(promise, end, color=style.GREY, alpha=0.15, linewidth=0, zorder=0)
    axes.text(0.98 * end, 0.0046, "only never\nacting helps", fontsize=SMALL, ha="right", va="bottom",
              style="italic")  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlim(0, end)
    axes.set_ylim(0.0042, 1.4)
    axes.set_xticks([0, promise, 2 * promise], ["0", "1/32", "1/16"])
    axes.set_xlabel("rise of reports $D$")
    axes.set_ylabel("share")
    legend(axes, "lower left", bbox_to_anchor=(0.0, 0.53), facecolor="none")


def _reviewer(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_reviewer"].sort_values("e0")
    shown = (
        ("tau_act", 0, r"$\tau_{act}$", part["tau_act"]),
        ("tau_esc", 1, r"$\tau_{esc}$", part["tau_esc"]),
        ("cost", 2, "relative cost", part["cost"] / part["cost_escalate"]),
    )
    every = max(1, len(part) // 6)
    for _, place, text, values in shown:
        look = style.look(place)
        axes.plot(part["e0"], values, color=look.colour, marker=look.marker, markevery=every, label=text)
    collapse = part[part["collapsed"] == 1]["e0"].min()
    axes.axvline(collapse, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.text(collapse - 0.02, 0.33, f"collapse at\n$e_0 = {Fraction(collapse).limit_denominator(1000)}$",
              fontsize=SMALL, ha="right", va="bottom")  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("reviewer's error $e_0$")
    axes.set_ylabel("threshold, relative cost")
    legend(axes, "lower left")


def _alarms(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    alarms = frames["guard_alarms"]
    own = alarms[alarms["against"] == "report"]
    for place, (kappa, part) in enumerate(own.groupby("kappa")):
        part, look = part.sort_values("sends"), style.look(place)
        axes.fill_between(part["sends"], part["ends_lower"], part["ends_upper"], color=look.colour, alpha=0.3,
                          linewidth=0)  # fmt: skip
        axes.plot(part["sends"], part["rate"], color=look.colour, marker=look.marker, markevery=(4 + place, 6),
                  label=rf"$\kappa = {kappa:g}$")  # fmt: skip
    delta = float(own["delta"].iloc[0])
    axes.axhline(
        delta, color=style.BLACK, linewidth=0.8, linestyle="--", zorder=0, label=rf"$\delta = {delta:g}$"
    )
    axes.set_xscale("log")
    axes.set_xlim(own["sends"].min(), own["sends"].max())
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("labelled sends")
    axes.set_ylabel("streams alarmed")
    legend(axes, "upper left")


def legend(axes: Axes, place: Any, **others: Any) -> None:
    """A small legend on white, so that lines pass behind it; on shaded ground `facecolor` is none."""
    axes.legend(
        loc=place, fontsize=SMALL, handlelength=1.6, borderaxespad=0.15, labelspacing=0.25, borderpad=0.2,
        frameon=True, framealpha=1.0, edgecolor="none", **others,
    )  # fmt: skip


PANELS = {
    "a  reliability": _reliability,
    "b  broken promises": _violations,
    "c  overconfidence": _kappa,
    "d  injection": _injection,
    "e  fallible reviewer": _reviewer,
    "f  monitor": _alarms,
}
