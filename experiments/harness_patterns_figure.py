"""The figure of the study harness_patterns, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHOOSERS = ("code", "classifier", "checker", "model", "both")
NAMES = {
    "tool_use": "tool use",
    "evaluator": "evaluator",
    "evaluator_blind": "blind evaluator",
    "autonomous": "autonomous",
}
# Where a name stands beside its mark, in points.
PLACES = {
    "chain": (5, -3),
    "parallel": (5, -3),
    "tool_use": (-30, 1),
    "evaluator_blind": (6, -3),
    "evaluator": (6, 2),
    "routing": (6, -7),
    "autonomous": (-40, -3),
    "hybrid": (5, 2),
}
STANDARD_ERRORS = 2


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Three panels: two above and the published scores below; one below the other where it is narrow."""
    main, curve, arc = (frames[name] for name in ("harness_patterns", "chooser_error", "arc_agi"))
    wide = width == style.WIDE
    drawn = style.blank(width, 5.0 if wide else 7.4)
    # Labels of the lower panel are long; its own figure keeps them from squeezing the others.
    parts: Any = drawn.subfigures(2, 1, height_ratios=(1.45, 1.0) if wide else (2.4, 1.0))
    above, below = parts
    left, right = above.subplots(1, 2) if wide else above.subplots(2, 1)
    _costs(left, main)
    _errors(right, curve, main)
    _published(below.subplots(), arc, wide)
    return drawn


def _costs(axes: Axes, main: pd.DataFrame) -> None:
    for place, chooser in enumerate(CHOOSERS):
        part, look = main[main["chooses"] == chooser], style.look(place)
        if part.empty:
            continue
        axes.errorbar(
            part["tokens_run"], part["solved_run"],
            xerr=STANDARD_ERRORS * part["tokens_error"], yerr=STANDARD_ERRORS * part["solved_error"],
            linestyle="", marker="", color=look.colour, elinewidth=0.7,
        )  # fmt: skip
        axes.plot(
            part["tokens"], part["solved"], linestyle="", marker=look.marker, markersize=5, color=look.colour,
            markerfacecolor="white", label=chooser,
        )  # fmt: skip
    for name, x, y in zip(main["pattern"], main["tokens"], main["solved"], strict=True):
        axes.annotate(
            NAMES.get(name, name), (x, y), PLACES.get(name, (5, 2)), textcoords="offset points", fontsize=6
        )
    axes.set_xscale("log")
    axes.set_xlim(main["tokens"].min() / 1.25, main["tokens"].max() * 1.4)
    axes.set_ylim(top=1.0)
    ticks = [tick for tick in (500, 1000, 2000, 4000, 8000) if tick < main["tokens"].max() * 1.4]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("tokens a request")
    axes.set_title("share solved; bars: runs, two s.e.", loc="left", fontsize=8)
    axes.legend(
        title="next step by", fontsize=6, title_fontsize=6, loc="lower right", handletextpad=0.2, borderpad=0
    )


def _errors(axes: Axes, curve: pd.DataFrame, main: pd.DataFrame) -> None:
    chosen = dict(zip(main["pattern"], main["chooses"], strict=True))
    place = 0
    largest = max(float(Fraction(text)) for text in curve["error"])
    for name, part in curve.groupby("pattern", sort=False):
        part = part.assign(value=part["error"].map(lambda text: float(Fraction(text)))).sort_values("value")
        J = (part["J_lower"] + part["J_upper"]) / 2
        if chosen.get(str(name)) in ("model", "both"):
            look = style.look(place)
            place += 1
            axes.plot(
                part["value"], J, color=look.colour, marker=look.marker, label=NAMES.get(str(name), str(name))
            )
        elif name in ("chain", "routing", "evaluator"):
            axes.axhline(J.iloc[0], color=style.GREY, linewidth=0.7, linestyle="--")
            axes.text(
                largest,
                J.iloc[0] + 0.015,
                NAMES.get(str(name), str(name)),
                fontsize=6,
                ha="right",
                color=style.GREY,
            )
    axes.set_xlabel("chooser's error")
    axes.set_title("return $J$; dashed: the code chooses", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="lower left")


def _published(axes: Axes, arc: pd.DataFrame, wide: bool) -> None:
    rows = arc.iloc[::-1].reset_index(drop=True)
    places = range(len(rows))
    for place, row in rows.iterrows():
        axes.plot(
            [row["score_alone"], row["score_harness"]],
            [place, place],
            color=style.GREY,
            linewidth=0.8,
            zorder=1,
        )
        if row["marginal"] == row["marginal"]:  # a cost is known
            number = f"{row['marginal']:,.0f}"
            axes.annotate(
                f"\\${number}" if row["unit"] == "USD" else f"{number} x {row['baseline']}",
                (row["score_harness"], place),
                (5, -2),
                textcoords="offset points",
                fontsize=6,
            )
    for name, label, look in (
        ("score_alone", "alone", style.look(0)),
        ("score_harness", "in a harness", style.look(1)),
    ):
        axes.plot(rows[name], places, look.marker, color=look.colour, label=label, linestyle="")
    labels = [
        f"{m}, {b}" if wide else str(m).replace("coding ", "")
        for m, b in zip(rows["model"], rows["benchmark"], strict=True)
    ]
    axes.set_yticks(list(places), labels)
    axes.tick_params(axis="y", labelsize=6)
    axes.set_xlim(0, 125 if wide else 150)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("score, percent (M14 §1)")
    axes.set_title("published scores; price of each further task", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="lower left")
