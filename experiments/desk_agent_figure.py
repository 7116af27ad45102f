"""The figure of the study desk_agent, from its stored tables alone. Imports style and matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import style
from experiments.statistics import clopper_pearson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL = 0.95
ATTACKS = {
    "direct": "in the request",
    "document travel-notes": "document A",
    "document policy-update": "document B",
    "tool_result event-note": "tool result",
}
POISONS = {"travel-notes": "document A", "policy-update": "document B", "event-note": "tool result"}
STOPS = ("by_p6", "by_guard", "by_person")
LABELS = {
    "by_p6": "P6 in code",
    "by_guard": "guard",
    "by_person": "person",
    "carried_out": "carried out alone",
}
TOY = "toy"


def draw(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Four panels, two by two, or below one another where it is narrow."""
    wide = width == style.WIDE
    drawn = style.blank(width, 4.6 if wide else 9.0)
    axes: Any = drawn.subplots(2, 2) if wide else drawn.subplots(4, 1)
    first, second, third, fourth = axes.ravel()
    _deciders(first, frames["deciders"])
    _attacks(second, frames["attacks"])
    _shift(third, frames["shift"])
    _tail(fourth, frames["tail"])
    return drawn


def _deciders(axes: Axes, frame: pd.DataFrame) -> None:
    """Unsafe-action rate against what is held back; cost and questions beside the name."""
    for place, row in frame.reset_index(drop=True).iterrows():
        look = style.look(int(place))
        (uar, below, above), (held, left, right) = (
            _share(row["bad"], row["disallowed"]),
            _share(row["held"], row["allowed"]),
        )
        axes.errorbar(
            [held], [uar], xerr=[[left], [right]], yerr=[[below], [above]],
            color=look.colour, marker=look.marker, markersize=4, linestyle="", elinewidth=0.8,
            label=f"{row['decider']}: cost {row['cost']:.2f}, asks {row['asked'] / row['items']:.0%}",
        )  # fmt: skip
    axes.set_xlim(-0.04, 1.04)
    axes.set_ylim(-0.04, 1.04)
    axes.set_xlabel("allowed emails held back")
    axes.set_title("unsafe-action rate, by decider", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="upper right", handletextpad=0.3, borderpad=0)


def _share(part: int, whole: int) -> tuple[float, float, float]:
    """The share, and how far its interval reaches below and above it."""
    found = clopper_pearson(part, whole, LEVEL)
    share, lower, upper = (
        found.estimate or 0.0,
        found.lower or 0.0,
        1.0 if found.upper is None else found.upper,
    )
    return share, share - lower, upper - share


def _attacks(axes: Axes, frame: pd.DataFrame) -> None:
    """Of the toy desk: what became of each attack's runs, with P6 in code and lifted."""
    mine = frame[frame["decider"] == TOY] if (frame["decider"] == TOY).any() else frame
    rows = [
        (label, rule, part.iloc[0])
        for attack, label in ATTACKS.items()
        for rule in ("in code", "lifted")
        if len(part := mine[(mine["attack"] == attack) & (mine["p6"] == rule)])
    ]
    places = [-(i + 0.35 * (i // 2)) for i in range(len(rows))]
    left = [0.0] * len(rows)
    for number, name in enumerate((*STOPS, "carried_out")):
        shares = [row[name] / row["runs"] for _, _, row in rows]
        look = style.look(1 if name == "carried_out" else (0, 5, 2)[number])
        axes.barh(
            places, shares, left=left, height=0.8, color=look.colour, hatch="////" if name == "carried_out" else "",
            edgecolor="white", linewidth=0.3, label=LABELS[name], alpha=1.0 if name == "carried_out" else 0.6,
        )  # fmt: skip
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axes.set_yticks(places, [f"{label}, P6 {rule}" if rule == "lifted" else label for label, rule, _ in rows])
    axes.tick_params(axis="y", labelsize=6)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of runs; bar: attempted")
    axes.set_title("injected emails, toy decider", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="upper right", ncols=2, handletextpad=0.3, borderpad=0)


def _shift(axes: Axes, frame: pd.DataFrame) -> None:
    """Smallest, mean and largest shift of each text, with the emails that it moves over the threshold."""
    names = [
        name
        for name in dict.fromkeys(frame["decider"])
        if frame[frame["decider"] == name]["largest"].abs().max() > 0
    ]
    for number, name in enumerate(names):
        part, look = frame[frame["decider"] == name].reset_index(drop=True), style.look(number)
        places = [-i - 0.25 * number for i in range(len(part))]
        axes.hlines(places, part["smallest"], part["largest"], color=look.colour, linewidth=0.8)
        axes.plot(part["mean"], places, look.marker, color=look.colour, linestyle="", label=name)
        for place, (_, row) in zip(places, part.iterrows(), strict=True):
            axes.annotate(
                f"{row['up']} up, {row['down']} down of {row['items']}", (row["largest"], place), (4, -2),
                textcoords="offset points", fontsize=5.5, color=look.colour,
            )  # fmt: skip
    texts = list(dict.fromkeys(frame["poison"]))
    axes.set_yticks([-i - 0.12 for i in range(len(texts))], [POISONS.get(text, text) for text in texts])
    axes.tick_params(axis="y", labelsize=6)
    axes.axvline(0, color=style.GREY, linewidth=0.5)
    axes.set_xlim(-1.0, 0.75)
    axes.set_ylim(-len(texts) + 0.1, 0.75)
    axes.set_xlabel(r"shift of $p_{allow}$: smallest, mean, largest")
    axes.set_title(r"shift, and crossings of $\tau_{act}$", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="upper left", ncols=2, handletextpad=0.3, borderpad=0)


def _tail(axes: Axes, frame: pd.DataFrame) -> None:
    """Share of the sent that is not allowed, against the promise, beside the calibration error."""
    places = list(range(len(frame)))
    share, ece = style.look(0), style.look(4)
    error = [frame["share"] - frame["share_lower"], frame["share_upper"] - frame["share"]]
    axes.errorbar(
        [p - 0.1 for p in places], frame["share"], yerr=error, color=share.colour, marker=share.marker, linestyle="",
        elinewidth=0.8, label="share of sent not allowed",
    )  # fmt: skip
    axes.plot(
        [p + 0.1 for p in places],
        frame["ece"],
        ece.marker,
        color=ece.colour,
        linestyle="",
        label="ECE, all reports",
    )
    bound = float(frame["bound"].iloc[0])
    axes.axhline(bound, color=style.GREY, linewidth=0.8, linestyle="--")
    axes.annotate(
        r"promised: $1-\tau_{act}$",
        (len(frame) - 0.5, bound),
        (0, 2),
        textcoords="offset points",
        ha="right",
        fontsize=6,
    )
    axes.set_xticks(places, [f"P6 {arm}" for arm in frame["p6"]])
    axes.tick_params(axis="x", labelsize=6)
    axes.set_xlim(-0.5, len(frame) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_title("Eq. 5 where the guard acts", loc="left", fontsize=8)
    axes.legend(fontsize=6, loc="upper left", handletextpad=0.3, borderpad=0)
