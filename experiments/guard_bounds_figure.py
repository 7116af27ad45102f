"""The figure of the study guard_bounds, from its stored tables alone. Imports style, reliability_figure, matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

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
    inside = axes.get_xaxis_transform()
    for x, name in ((float(cut.tau_esc) / 2, "escalate"), (0.68, "ask"), (0.985, "act")):
        side = "right" if name == "act" else "center"
        axes.text(x if side == "center" else 0.96, 0.03 if name != "act" else 0.14, name, fontsize=SMALL,
                  style="italic", ha=side, va="bottom", transform=inside)  # fmt: skip
    axes.set_xlabel("report $p$")
    axes.legend(loc="upper left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2)


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
    axes.axhline(delta, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.text(rules["items"].min(), delta + 0.008, rf"$\delta = {delta:g}$", fontsize=SMALL, va="bottom")
    axes.set_ylim(-0.015, 0.86)
    axes.set_xlabel("labelled items $n$")
    axes.set_ylabel("data sets that break it")
    axes.legend(loc="upper right", fontsize=SMALL, ncols=2, handlelength=1.6, columnspacing=0.9,
                borderaxespad=0.1)  # fmt: skip


def _kappa(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_kappa"].sort_values("kappa")
    bound = float(part["bound"].iloc[0])
    named = part[part["kappa"].isin([1, 2, 4, 8])]
    for place, (column, text) in enumerate((("share", "share"), ("uar", "UAR"))):
        look = style.look(place)
        axes.plot(part["kappa"], part[column], color=look.colour, label=text)
        axes.plot(named["kappa"], named[column], color=look.colour, marker=look.marker, linestyle="")
    axes.axhline(bound, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.axvspan(4.0, part["kappa"].max(), color=style.GREY, alpha=0.15, linewidth=0, zorder=0)
    axes.set_yscale("log")
    axes.set_xlim(1, part["kappa"].max())
    axes.set_xticks([1, 2, 4, 6, 8, 10])
    axes.set_xlabel(r"doubts too small by $\kappa$")
    axes.set_ylabel("rate")
    axes.text(1.2, bound * 1.06, r"$1-\tau_{act}$", fontsize=SMALL, va="bottom")
    axes.text(0.97, 0.03, "share above\nits bound", fontsize=SMALL, ha="right", va="bottom", style="italic",
              transform=axes.transAxes)  # fmt: skip
    axes.legend(loc="upper left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2)


def _injection(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_injection"].sort_values("rise")
    promise = float(part["bound"].iloc[0])
    axes.plot(
        part["rise"], part["bound"], color=style.BLACK, linestyle="--", linewidth=0.8, label=r"$1-\tau+D$"
    )
    shown = (
        ("blind", 0, r"all raised"),
        ("aimed", 1, "bad ones raised"),
        ("blind_restored", 2, r"at $\tau+D$"),
    )
    for column, place, text in shown:
        look = style.look(place)
        axes.plot(part["rise"], part[column], color=look.colour, marker=look.marker, markevery=8, label=text)
    axes.axvspan(promise, part["rise"].max(), color=style.GREY, alpha=0.15, linewidth=0, zorder=0)
    axes.text(0.97, 0.03, "only never\nacting helps", fontsize=SMALL, ha="right", va="bottom", style="italic",
              transform=axes.transAxes)  # fmt: skip
    axes.set_xlim(0, part["rise"].max())
    axes.set_ylim(0, 0.105)
    axes.set_xticks([0, promise, 2 * promise], ["0", "1/32", "1/16"])
    axes.set_xlabel("rise of reports $D$")
    axes.set_ylabel("share")
    axes.legend(loc="upper left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2, labelspacing=0.25)


def _reviewer(axes: Axes, frames: Mapping[str, pd.DataFrame]) -> None:
    part = frames["guard_reviewer"].sort_values("e0")
    shown = (
        ("tau_act", 0, r"$\tau_{act}$", part["tau_act"]),
        ("tau_esc", 1, r"$\tau_{esc}$", part["tau_esc"]),
        ("cost", 2, "cost / escalate all", part["cost"] / part["cost_escalate"]),
    )
    every = max(1, len(part) // 6)
    for _, place, text, values in shown:
        look = style.look(place)
        axes.plot(part["e0"], values, color=look.colour, marker=look.marker, markevery=every, label=text)
    collapse = part[part["collapsed"] == 1]["e0"].min()
    axes.axvline(collapse, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.text(collapse - 0.02, 0.05, "collapse\n$e_0 = 19/24$", fontsize=SMALL, ha="right", va="bottom")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("reviewer's error $e_0$")
    axes.set_ylabel("threshold, relative cost")
    axes.legend(loc="lower left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2, labelspacing=0.25)


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
    axes.axhline(delta, color=style.BLACK, linewidth=0.7, linestyle="--", zorder=0)
    axes.text(own["sends"].min(), delta + 0.015, rf"$\delta = {delta:g}$", fontsize=SMALL, va="bottom")
    axes.set_xscale("log")
    axes.set_xlim(own["sends"].min(), own["sends"].max())
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("labelled sends")
    axes.set_ylabel("streams alarmed")
    axes.legend(loc="upper left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2, labelspacing=0.25)


PANELS = {
    "a  reliability": _reliability,
    "b  violations": _violations,
    "c  overconfidence": _kappa,
    "d  injection": _injection,
    "e  fallible reviewer": _reviewer,
    "f  monitor": _alarms,
}
