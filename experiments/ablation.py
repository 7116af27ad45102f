"""Study: what each part of a harness is worth, by switching it; imports the files ablation_*, plotting late.

The small preset is a worked example; `hpomdp ablate SPEC.toml --vary ...` runs the same study on any spec. Source:
M1 §1.4.5 (factorial), §1.4.6 (harness or model).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.ablation_arm import EXACT, measure
from experiments.ablation_contrasts import (
    NOT_APPLIED,
    Found,
    Measured,
    arm_verdict,
    differences,
    effects,
    evaluate,
)
from experiments.ablation_design import (
    FACTORIAL,
    Factor,
    Plan,
    arms_of,
    label,
    plan,
    read_document,
    setting,
    spec_of,
)
from experiments.statistics import clustered_mean
from experiments.study import Outcome, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTION = "Which part of a harness carries its return, alone and together with the others?"
METRIC = "expected return J of a fixed model, exact where the induced POMDP can be written down"
CONTRAST = (
    "J of each arm minus J of the baseline arm; in a factorial also main effects and two-way interactions"
)
PREDICTED_SIGN = "+ for more context; + for a loop detector under last:1, 0 where the model sees its past"
SEEDS = 0
BASELINE: Mapping[str, Any] = {"arm": {}}

EXAMPLE = {
    "task": "library:repo_repair",
    "horizon": 5,
    "model": {"kind": "naive", "temperature": "0"},
    "harness": {"tools": [], "control": [], "loop": [], "context": "last:1"},
}


@dataclass(frozen=True)
class Parameters:
    """`spec` in JSON or the path of a SPEC.toml; `vary` factors parted by spaces, each NAME=LEVEL,LEVEL.

    Arms of more than `max_states` states are sampled: `repeats` seeds of `episodes` episodes each. `gap` and
    `seconds` are the effort for V* and Vo where the model needs them.
    """

    spec: str = json.dumps(EXAMPLE)
    vary: str = "context=last:1,last:2,full control.stall=none,3-4 model.temperature=0,0.1"
    design: str = FACTORIAL
    repeats: int = 16
    episodes: int = 1000
    max_states: int = 50_000
    gap: float = 1e-6
    seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse counts that measure nothing."""
        for name in ("repeats", "episodes", "max_states"):
            if getattr(self, name) < 1:
                raise StudyError(f"{name} is {getattr(self, name)}; give a number from 1, such as 16")

    def plan(self) -> Plan:
        """The arms; ModelError before anything runs."""
        return plan(read_document(self.spec), self.vary.split(), self.design)


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        vary="context=last:1,last:2,last:3,full control.stall=none,3-4 model.temperature=0,0.1,0.5"
    ),
}
TABLES = (
    tables.Table(
        "arms",
        (
            tables.key("arm", "arm"),
            tables.exact("J", "$J$", digits=6),
            tables.derived("J_range", "95% of $J$"),
            tables.exact("difference", r"$\Delta J$", digits=5),
            tables.derived("range", r"95% of $\Delta J$"),
            tables.exact("steps", "steps", digits=4),
            tables.exact("tokens", "tokens", digits=4),
            tables.exact("contexts", "contexts"),
            tables.exact("applied", "applied"),
            tables.exact("method", "from"),
        ),
        "Arms of the ablation against its baseline. An exact $J$ has no error bar. `Tokens' is the mean size of the "
        "context at a step. An arm is not applied where nothing that the model saw, could do or did was changed.",
    ),
    tables.Table(
        "contrasts",
        (
            tables.key("contrast", "contrast"),
            tables.exact("kind", "kind"),
            tables.exact("effect", "effect", digits=5),
            tables.derived("range", "95%"),
            tables.exact("p_value", "$p$", digits=3),
            tables.exact("p_holm", "$p$ (Holm)", digits=3),
            tables.exact("detectable", "detectable", digits=3),
            tables.exact("applied", "applied"),
        ),
        "Contrasts of the ablation. `Detectable' is the smallest true effect that a test at 5% finds with "
        "probability 0.8. Exact effects have neither error nor $p$.",
    ),
)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """One cell per arm, each of which holds the whole question; the baseline is the first."""
    made = parameters.plan()
    common = {
        "design": made.design,
        "base": made.base,
        "own": made.own,
        "factors": [[f.name, list(f.levels), f.baseline] for f in made.factors],
        "task": spec_of(made.base).task.digest,
        "repeats": parameters.repeats,
        "episodes": parameters.episodes,
        "max_states": parameters.max_states,
        "gap": parameters.gap,
        "seconds": parameters.seconds,
    }
    return [{"arm": dict(changes), **common} for changes in made.arms]


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """J, cost and fingerprint of one arm."""
    row = measure(cell)
    return Outcome((row,), row["fingerprint"])


def measured(frame: pd.DataFrame) -> dict[str, Measured]:
    """The arms that finished, by label, in the order of the design."""
    return {
        label(row["arm"]): Measured(
            row["arm"], tuple(row["returns"]), row["method"] == EXACT, row["fingerprint"]
        )
        for row in frame.to_dict("records")
    }


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The arms beside the baseline, and the contrasts of the design."""
    import pandas as pd

    first = frame.iloc[0]
    arms = measured(frame)
    factors = [Factor(name, tuple(levels), base) for name, levels, base in first["factors"]]
    # A design is whole even where an arm failed: no mean is silently taken over fewer settings.
    seen = [dict(arm) for arm in frame["arm"] if arm]
    whole = arms_of(first["design"], factors) if factors else ({}, *seen)
    beside = {found.contrast.name: found for found in evaluate(differences(whole), arms)}
    rows = [
        _arm_row(row, arms, beside.get(label(row["arm"])), baseline_text(first))
        for row in frame.to_dict("records")
    ]
    found = evaluate(effects(first["design"], factors, whole), arms)
    columns = {table.name: table.stored for table in TABLES}
    return {
        "arms": pd.DataFrame(rows, columns=columns["arms"]),
        "contrasts": pd.DataFrame([_contrast_row(one) for one in found], columns=columns["contrasts"]),
    }


def baseline_text(first: Mapping[str, Any]) -> str:
    """What the baseline arm is called in print: the spec itself, or the levels that stand in for it."""
    settings = ", ".join(f"{name}={setting(first['base'], name)}" for name, _, _ in first["factors"])
    whose = "spec itself" if first["own"] else "first levels"
    return f"baseline, {whose}" + (f": {settings}" if settings else "")


def _arm_row(
    row: Mapping[str, Any], arms: Mapping[str, Measured], found: Found | None, baseline: str
) -> dict[str, Any]:
    returns, base = row["returns"], not row["arm"]
    mean = clustered_mean(returns, range(len(returns)))
    shown = found is not None and found.effect is not None
    return {
        "arm": baseline if base else label(row["arm"]),
        "J": mean.estimate,
        "J_range_lower": _number(mean.lower),
        "J_range_upper": _number(mean.upper),
        "difference": _number(found.effect) if shown and found else math.nan,
        "range_lower": _number(found.lower) if found else math.nan,
        "range_upper": _number(found.upper) if found else math.nan,
        "steps": row["steps"],
        "tokens": row["tokens"],
        "contexts": row["contexts"],
        "applied": "baseline" if base else arm_verdict(row["arm"], arms) if found else "no baseline",
        "method": row["method"],
    }


def _contrast_row(found: Found) -> dict[str, Any]:
    return {
        "contrast": found.contrast.name,
        "kind": found.contrast.kind,
        "effect": _number(found.effect),
        "range_lower": _number(found.lower),
        "range_upper": _number(found.upper),
        "p_value": _number(found.p_value),
        "p_holm": _number(found.p_holm),
        "detectable": _number(found.detectable),
        "applied": found.applied,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The baseline, the best arm, what was not applied, and what the sample could have seen."""
    arms, contrasts = frames["arms"], frames["contrasts"]
    best = arms.loc[arms["J"].idxmax()]
    said = [f"{len(arms)} arms; the best is {best['arm']} with J = {best['J']:.5g}."]
    idle = arms[arms["applied"].str.startswith(NOT_APPLIED)]
    if len(idle):
        said.append(f"{len(idle)} arms, or changes in them, were not applied and measure nothing.")
    applied = contrasts[contrasts["effect"].notna()]
    if len(applied):
        largest = applied.loc[applied["effect"].abs().idxmax()]
        said.append(
            f"The largest contrast is {largest['contrast']} ({largest['kind']}): {largest['effect']:+.5g}."
        )
    seen = contrasts["detectable"].dropna()
    if len(seen):
        said.append(f"Effects below {seen.max():.2g} could have gone unseen in some contrast.")
    return " ".join(said)


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Left: J of each arm, dashed the baseline's, hollow where nothing was applied; right: context tokens at a step."""
    from experiments import style

    arms = frames["arms"]
    drawn = style.blank(width, max(1.5, 0.55 + 0.155 * len(arms)))
    left, right = drawn.subplots(1, 2, sharey=True, width_ratios=[1.6, 1.0])
    _draw_returns(left, arms, 48 if width == style.WIDE else 40)
    look = style.look(1)
    places = list(range(len(arms)))
    right.barh(
        places,
        arms["tokens"],
        height=0.6,
        facecolor="white",
        edgecolor=look.colour,
        hatch=look.hatch,
        linewidth=0.6,
    )
    right.set_xlabel("tokens per step")
    right.tick_params(axis="y", length=0)
    return drawn


def _draw_returns(axes: Axes, arms: pd.DataFrame, longest: int) -> None:
    from experiments import style

    look = style.look(0)
    base = arms[arms["applied"] == "baseline"]
    if len(base):
        axes.axvline(float(base["J"].iloc[0]), color=style.GREY, linewidth=0.6, linestyle="--", zorder=0)
    for place, row in enumerate(arms.to_dict("records")):
        if not math.isnan(row["J_range_lower"]):
            axes.hlines(place, row["J_range_lower"], row["J_range_upper"], color=look.colour, linewidth=1.2)
        idle = row["applied"].startswith(NOT_APPLIED)
        axes.plot(
            row["J"], place, marker=look.marker, color=look.colour, markersize=4, linestyle="",
            markerfacecolor="white" if idle else look.colour,
        )  # fmt: skip
    names = [
        "baseline" if applied == "baseline" else _short(arm, longest)
        for arm, applied in zip(arms["arm"], arms["applied"], strict=True)
    ]
    axes.set_yticks(range(len(arms)), names)
    axes.tick_params(axis="y", length=0, labelsize=6 if longest > 40 else 4.5)
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.set_xlabel("$J$ (hollow: not applied)")


def _short(arm: str, longest: int) -> str:
    """An arm's name for a narrow margin: without the names of the parts, cut where it is too long."""
    text = re.sub(r"\b(tools|control|loop|model)\.", "", arm)
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


def equals(frame: pd.DataFrame) -> list[str]:
    """One line per set of arms, none of them the baseline's equal, in which the model's runs are all the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in frame.to_dict("records"):
        groups.setdefault((row["method"], row["fingerprint"]), []).append(label(row["arm"]))
    return [
        f"the same runs: {'; '.join(names)}"
        for names in groups.values()
        if len(names) > 1 and label({}) not in names
    ]


def details(frame: pd.DataFrame) -> Sequence[dict[str, Any]]:
    """Every row of every arm as it was recorded, for the command's JSON."""
    keep = ("arm", "method", "returns", "steps", "tokens", "contexts", "contexts_met", "states", "truncation",
            "fingerprint", "reachable")  # fmt: skip
    rows = json.loads(frame[list(keep)].to_json(orient="records", double_precision=15))
    return [{**row, "changes": row["arm"], "arm": label(row["arm"])} for row in rows]
