"""Study: what feedback is worth, against the accuracy of observations and on models by other authors.

Imports pomdp, and plotting only inside `figure`. Source: M1 §1.7.3 (V_f, cost of agency).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.sources import PROJECT
from experiments.study import Outcome, Skipped, StudyError
from pomdp import cassandra
from pomdp.bounds import feedback
from pomdp.criterion import Criterion
from pomdp.interval import Interval, round_down, round_up
from pomdp.library import task as library_task
from pomdp.model import POMDP
from pomdp.value import expected_steps

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUESTION = (
    "How much is it worth to choose each step from what was observed, instead of planning all steps ahead?"
)
METRIC = "value of feedback V_f = V* - W, best closed loop minus best open loop, as a certified interval"
CONTRAST = "V_f with observations that tell everything minus V_f with observations that tell nothing"
PREDICTED_SIGN = "+"
SEEDS = 0
BASELINE = None

FILES = (
    "1d.pomdp", "4x3.95.pomdp", "RockSample_4_4.pomdp", "aloha.10.pomdp", "bridge-repair.POMDP",
    "cheng.D3-1.pomdp", "cit.pomdp", "ejs1.POMDP", "ejs3.POMDP", "ejs4.POMDP", "hallway.pomdp",
    "learning.c2.pomdp", "light_maze.POMDP", "marking.pomdp", "milos-aaai97.pomdp", "mini-hall2.pomdp",
    "network.pomdp", "paint.95.pomdp", "query.s2.pomdp", "saci-s12-a6-z5.95.pomdp", "shuttle.95.pomdp",
    "tag-avoid.pomdp", "term3.pomdp", "tiger.95.pomdp", "tiger.aaai.POMDP", "web-ad.pomdp",
)  # fmt: skip
LIBRARY = ("tiger", "tmaze:4:0.9", "ticket_routing", "repo_repair")
# Chance of a right observation when it says nothing, per task; repo_repair shows one of 7 observations.
CHANCE = {
    "tiger": Fraction(1, 2),
    "tmaze": Fraction(1, 2),
    "ticket_routing": Fraction(1, 12),
    "repo_repair": Fraction(1, 7),
}
MAX_BELIEFS = 2000


@dataclass(frozen=True)
class Parameters:
    """`points` accuracies per task; `files` of the benchmark folder; per model a relative gap and seconds.

    `gap` is a share of the largest difference two policies can have, (max R - min R) times the sum of
    discounts. `horizon` is for files whose discount is 1 or absent.
    """

    points: int = 17
    files: tuple[str, ...] = FILES
    horizon: int = 10
    gap: float = 1e-6
    seconds: float = 0.8

    def __post_init__(self) -> None:
        """Refuse a curve without both its ends."""
        if self.points < 2:
            raise StudyError(f"points is {self.points}; a curve needs both its ends, such as --points 17")


PRESETS = {"small": Parameters(), "full": Parameters(points=101, seconds=60.0)}

# A slower machine stops earlier, with valid but wider intervals.
_WIDER: Any = {"factor": 3.0, "slack": 0.02, "unit": "largest"}
_VALUES = (
    tables.interval("V_star", "$V^*$", **_WIDER),
    tables.interval("W", "$W$", **_WIDER),
    tables.interval("V_f", "$V_f$", **_WIDER),
    # These two belong to the controller found, one of several equally good ones.
    tables.ignore("steps", "E[steps]", digits=4),
    tables.derived("price", "$c^*$", digits=4),
    tables.exact("largest", "largest"),
)
TABLES = (
    tables.Table(
        "value_of_feedback",
        (
            tables.key("model", "model"),
            tables.exact("discount", r"$\gamma$"),
            tables.exact("horizon", "$n$"),
            *_VALUES,
            tables.ignore("seconds", "s"),
        ),
        "Value of feedback $V_f = V^* - W$ of tasks of this library and of models by other authors, at the "
        "discount of the file or, without one, over $n$ steps. A step may cost up to $c^*$ before the best "
        "fixed plan is the better choice. `Largest' bounds any difference of two policies.",
    ),
    tables.Table(
        "accuracy",
        (
            tables.key("task", "task"),
            tables.exact("informative", "informative"),
            tables.key("accuracy", "accuracy"),
            *_VALUES,
            tables.exact("proof", "from"),
            tables.ignore("seconds", "s"),
        ),
        "Value of feedback against the accuracy of observations; `informative' is 0 where an observation "
        "says nothing and 1 where it is never wrong.",
    ),
)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """The grid, slowest first, so that no process waits at the end: files, library tasks, accuracies."""
    common = {"gap": parameters.gap, "seconds_allowed": parameters.seconds}
    found: list[dict[str, Any]] = [
        {"part": "model", "model": name, "horizon_allowed": parameters.horizon, **common}
        for name in parameters.files
    ]
    found += [
        {"part": "model", "model": f"library:{name}", "horizon_allowed": None, **common} for name in LIBRARY
    ]
    for name, chance in CHANCE.items():
        for place in range(parameters.points):
            share = Fraction(place, parameters.points - 1)
            accuracy = chance + (1 - chance) * share
            found.append({"part": "accuracy", "task": name, "accuracy": str(accuracy), **common})
    return found


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """V*, W, V_f and the price of a step of one model."""
    if cell["part"] == "accuracy":
        accuracy = Fraction(cell["accuracy"])
        model, criterion = with_accuracy(cell["task"], accuracy)
        chance = CHANCE[cell["task"]]
        extra: dict[str, Any] = {"informative": float((accuracy - chance) / (1 - chance))}
    else:
        model, criterion = named(cell["model"], cell["horizon_allowed"])
        extra = {"discount": float(criterion.discount), "horizon": criterion.horizon}
    largest = spread(model, criterion)
    solved = feedback(model, criterion, gap=cell["gap"] * largest, time_limit=cell["seconds_allowed"])
    V_f, proof = solved.value_of_feedback.at_least(0.0), "solver"
    if silent(model, criterion):
        if not V_f.contains(0.0):
            raise ArithmeticError(f"V_f in {V_f}, but no observation says anything, so that V_f = 0")
        V_f, proof = Interval(0.0, 0.0, certified=True), "M1-E1.8"
    if not V_f.certified:
        raise ArithmeticError(f"V_f in {V_f} was not certified: {solved.open.ended}, {solved.closed.ended}")
    steps = expected_steps(model, solved.closed.controller, criterion)
    price = price_of_a_step(V_f, steps)
    row = {
        **_ends("V_star", solved.optimal),
        **_ends("W", solved.open_loop),
        **_ends("V_f", V_f),
        **_ends("price", price),
        "steps": steps,
        "largest": largest,
        "proof": proof,
        "seconds": solved.seconds,
        **extra,
    }
    return Outcome((row,))


def named(name: str, horizon: int | None) -> tuple[POMDP, Criterion]:
    """A library task with its own criterion; a file with its discount, or `horizon` steps without one."""
    if name.startswith("library:"):
        found = library_task(name.removeprefix("library:"))
        return found.model, found.criterion()
    folder = Path(os.environ.get("HPOMDP_BENCHMARKS", PROJECT.parent / "shared" / "benchmarks")) / "pomdp"
    path = folder / name
    if not path.is_file():
        raise Skipped("benchmark files are absent; name the folder that holds pomdp/ in HPOMDP_BENCHMARKS")
    model = cassandra.read(path)
    endless = model.exact.discount is not None and model.exact.discount < 1
    return model, Criterion.of(model, horizon=None if endless else horizon)


def with_accuracy(name: str, accuracy: Fraction) -> tuple[POMDP, Criterion]:
    """A library task whose observations are right with this probability, and the task's own criterion."""
    if name == "repo_repair":
        found = library_task("repo_repair")
        wrong = (1 - accuracy) / (found.model.num_observations - 1)
        # A true observation is replaced by a uniform one this often, so that it stays with `accuracy`.
        return garbled(found.model, wrong * found.model.num_observations), found.criterion()
    text = {"tiger": f"tiger:{accuracy}", "tmaze": f"tmaze:4:{accuracy}"}.get(name, f"{name}:{accuracy}")
    found = library_task(text)
    return found.model, found.criterion()


def garbled(model: POMDP, chance: Fraction) -> POMDP:
    """The model whose every observation is replaced, with this probability, by a uniformly random one."""
    size = model.num_observations

    def mixed(row: Mapping[int, Fraction]) -> dict[int, Fraction]:
        return {o: (1 - chance) * row.get(o, Fraction(0)) + chance / size for o in range(size)}

    return POMDP.build(
        states=model.states,
        actions=model.actions,
        observations=model.observations,
        T=model.exact.T,
        Z=[[mixed(row) for row in kernel.rows()] for kernel in model.exact.Z],
        R=model.exact.R,
        start=model.exact.start,
        discount=model.exact.discount,
        name=f"{model.name} garbled {chance}",
    )


def spread(model: POMDP, criterion: Criterion) -> float:
    """The largest difference two policies can have: (max R - min R) times the sum of all discounts."""
    return float(model.R.max() - model.R.min()) * criterion.scale


def silent(model: POMDP, criterion: Criterion) -> bool:
    """Whether no observation ever changes what is believed, in exact arithmetic: then V_f = 0 exactly.

    Holds where Z does not depend on the state (M1-E1.8), and where it depends only on what was known before.
    False also where more than MAX_BELIEFS beliefs are met.
    """
    beliefs = {tuple(sorted(model.exact.start.items()))}
    seen = set(beliefs)
    depth = 0
    while beliefs and (criterion.horizon is None or depth < criterion.horizon):
        reached = set()
        for belief in beliefs:
            for action in range(model.num_actions):
                posteriors = set(_posteriors(model, dict(belief), action))
                if len(posteriors) > 1:
                    return False
                reached |= posteriors
        beliefs = reached - seen
        seen |= beliefs
        depth += 1
        if len(seen) > MAX_BELIEFS:
            return False
    return True


def _posteriors(
    model: POMDP, belief: Mapping[int, Fraction], action: int
) -> Iterator[tuple[tuple[int, Fraction], ...]]:
    """The exact belief after each possible observation."""
    predicted: dict[int, Fraction] = {}
    for state, weight in belief.items():
        for target, p in model.exact.T[action].row(state).items():
            predicted[target] = predicted.get(target, Fraction(0)) + weight * p
    joint: dict[int, dict[int, Fraction]] = {}
    for target, weight in predicted.items():
        for observation, p in model.exact.Z[action].row(target).items():
            if p and weight:
                joint.setdefault(observation, {})[target] = weight * p
    for part in joint.values():
        total = sum(part.values())
        yield tuple(sorted((state, weight / total) for state, weight in part.items()))


def price_of_a_step(V_f: Interval, steps: float) -> Interval:
    """c* = V_f / E[steps]: below this charge a step the closed loop is the better choice. Source: M1 §1.7.3.

    This is the price for the controller that the solver found; one that reacts to the price does at least as
    well, so that the lower end holds for the best agent too. V_f >= 0; `steps` is good to 1e-9 of its value,
    which the ends allow for.
    """
    exact, error = Fraction(steps), Fraction(1, 10**9)
    low, high = Fraction(V_f.lower) / exact, Fraction(V_f.upper) / exact
    return Interval(round_down(low / (1 + error)), round_up(high / (1 - error)), V_f.certified)


def _ends(name: str, interval: Interval) -> dict[str, float]:
    # A rounded-up zero is -0.0, which prints and compares oddly.
    return {f"{name}_lower": interval.lower + 0.0, f"{name}_upper": interval.upper + 0.0}


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of files and library tasks by falling V_f, and those of the accuracies in order."""
    models, curve = (frame[frame["part"] == part] for part in ("model", "accuracy"))
    order = (models["V_f_lower"] + models["V_f_upper"]) / models["largest"]
    models = models.assign(order=order).sort_values(["order", "model"], ascending=[False, True])
    curve = curve.sort_values(["task", "informative"])
    return {
        table.name: part[table.stored].reset_index(drop=True)
        for table, part in zip(TABLES, (models, curve), strict=True)
    }


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """What came out, with the predicted sign beside it."""
    curve, models = frames["accuracy"], frames["value_of_feedback"]
    ends = {name: part.sort_values("informative") for name, part in curve.groupby("task")}
    rises = [name for name, part in ends.items() if part["V_f_lower"].iloc[-1] > part["V_f_upper"].iloc[0]]
    zeros = [name for name, part in ends.items() if part["V_f_upper"].iloc[0] == 0.0]
    files = models[~models["model"].str.startswith("library:")]
    positive = int((files["V_f_lower"] > 0).sum())
    none = int((files["V_f_upper"] <= 1e-5 * files["largest"]).sum())
    others = "No model by other authors was at hand."
    if len(files):
        others = (
            f"Of {len(files)} models by other authors {positive} have V_f > 0 for certain, and in {none} it is "
            "at most 1e-5 of the largest difference two policies can have."
        )
    return (
        "V_f rises from observations that tell nothing to such that tell everything in "
        f"{len(rises)} of {len(ends)} tasks (predicted sign {PREDICTED_SIGN}) and is exactly 0 at the first "
        f"end in {len(zeros)}. {others}"
    )


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Left: V_f against accuracy, as a share of V_f at perfect accuracy. Right: V_f of each model, sorted."""
    from experiments import style

    models = frames["value_of_feedback"]
    models = models[~models["model"].str.startswith("library:")]
    wide = width == style.WIDE
    drawn = style.blank(width, 3.7 if wide else 6.2)
    if wide:
        left, right = drawn.subplots(1, 2, width_ratios=[1.0, 1.0])
    else:
        left, right = drawn.subplots(2, 1, height_ratios=[1.0, 1.6])
    _draw_curves(left, frames["accuracy"])
    _draw_models(right, models)
    return drawn


def _draw_curves(axes: Axes, curve: pd.DataFrame) -> None:
    import numpy as np

    from experiments import style

    for place, (name, part) in enumerate(curve.groupby("task")):
        part = part.sort_values("informative")
        shown = style.look(place)
        whole = float(part["V_f_upper"].iloc[-1])
        x, lower, upper = (
            part[column].to_numpy() / unit
            for column, unit in (("informative", 1), ("V_f_lower", whole), ("V_f_upper", whole))
        )
        # V_f between two accuracies lies between its values there: the lower one is a garbling.
        axes.fill_between(
            x, lower, np.append(upper[1:], upper[-1]), step="post",
            facecolor=shown.colour, alpha=0.35, linewidth=0,
        )  # fmt: skip
        axes.plot(
            x,
            (lower + upper) / 2,
            color=shown.colour,
            marker=shown.marker,
            markevery=max(1, len(x) // 10),
            label=f"{name} ({whole:.3g})",
        )
    axes.set_xlabel("information in an observation (0 none, 1 all)")
    axes.set_ylabel("$V_f$ as a share of $V_f$ at 1")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.03, 1.03)
    axes.legend(title="task ($V_f$ at 1)", title_fontsize=7, loc="upper left")


def _draw_models(axes: Axes, models: pd.DataFrame) -> None:
    from experiments import style

    if models.empty:
        axes.text(0.5, 0.5, "no benchmark files", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    shown = style.look(0)
    smallest = 1e-4
    axes.set_xscale("symlog", linthresh=smallest, linscale=0.4)
    places = range(len(models) - 1, -1, -1)
    lower, upper = models["V_f_lower"] / models["largest"], models["V_f_upper"] / models["largest"]
    axes.hlines(list(places), lower, upper, color=shown.colour, linewidth=2.0)
    axes.plot(lower, list(places), linestyle="", marker="|", color=shown.colour, markersize=4)
    axes.plot(upper, list(places), linestyle="", marker="|", color=shown.colour, markersize=4)
    names = [name.rsplit(".", 1)[0] for name in models["model"]]
    axes.set_yticks(list(places), names)
    axes.tick_params(axis="y", length=0, labelsize=6)
    axes.set_ylim(-0.7, len(models) - 0.3)
    axes.set_xlim(-0.3 * smallest, 1.0)
    axes.set_xticks([0.0, *(10.0**power for power in range(-4, 1))])
    axes.set_xlabel("$V_f$ / largest possible difference")
