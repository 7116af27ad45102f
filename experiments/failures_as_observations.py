"""Study: what it is worth that failures become observations; imports harnesses, and the running harness late.

Source: M1 §1.2.2 (every failure becomes an observation of the next step), Def 1.4.1 (timeouts).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.failures_as_observations_tables import TABLES, analyse, headline
from experiments.study import Outcome, StudyError
from harnesses.case import Case, Effort
from harnesses.constructors.base import Base
from harnesses.constructors.catalogue import Part, parse_part
from harnesses.constructors.hidden import hide, usual
from harnesses.harness import Harness
from harnesses.spec import parse_spec
from pomdp.interval import Interval
from pomdp.model import POMDP

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = "What does a model lose where its harness hides that a call failed, instead of showing it as an observation?"
METRIC = "return J of a model that reads the context, exact but for rounding"
CONTRAST = "J with failures shown minus J with failures shown as blank results, at failure rate 1/5"
PREDICTED_SIGN = "+"
SEEDS = 1
BASELINE = {"rate": "0"}

__all__ = ["TABLES", "analyse", "headline"]

# Task: horizon, with a step or two more than it needs, and what the model is shown. With the step number beside the
# last pairs no context recurs, so that the best model is a deterministic one, which branch and bound can prove.
TASKS = {
    "tmaze:2:0.9": (5, "counter:last:3"),
    "tiger": (5, "counter:last:2"),
    "flip:2": (5, "counter:last:2"),
    "repo_repair:2:2": (6, "counter:last:2"),
}
FAILURES = ("timeout", "malformed")
SHOWN = ("visible", "blank", "stale")
MODELS = ("bayes", "naive", "optimal")
HISTORY = "history"
"""The best reader of the whole history: V* of the task with its failures."""
EFFECT = "1/2"
"""Share of the calls that time out although they acted."""
HIDDEN_RANK = 95
OWN_ERROR = "import-error"
SAME = 1e-9


@dataclass(frozen=True)
class Parameters:
    """Failure rates, those at which the policies are also run, runs of each, tasks, seconds of search per value."""

    rates: tuple[str, ...] = ("0", "1/20", "1/5", "2/5")
    run_rates: tuple[str, ...] = ("1/5",)
    episodes: int = 100
    tasks: tuple[str, ...] = tuple(TASKS)
    seconds: float = 0.5

    def __post_init__(self) -> None:
        """Refuse unknown tasks, and grids without the rate of the contrast or its baseline."""
        unknown = [name for name in self.tasks if name not in TASKS]
        if unknown:
            raise StudyError(f"no task {unknown[0]!r} in this study; known: {', '.join(TASKS)}")
        if not {"0", "1/5"} <= set(self.rates) or not set(self.run_rates) <= set(self.rates):
            raise StudyError(f"rates are {self.rates}; they need 0, 1/5 and every rate that is run")
        if self.episodes < 2:
            raise StudyError(f"episodes is {self.episodes}; an error needs two, such as 100")


FULL_RATES = ("0", "1/50", "1/20", "1/10", "1/5", "3/10", "2/5", "1/2")
PRESETS = {
    "small": Parameters(),
    "full": Parameters(rates=FULL_RATES, run_rates=FULL_RATES[1:], episodes=2000, seconds=20.0),
}


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Per task, kind of failure, way of showing it and rate one cell, with all models."""
    return [
        {
            "task": name,
            "failure": failure,
            "shown": shown,
            "rate": rate,
            "episodes": parameters.episodes if rate in parameters.run_rates else 0,
            "seconds_allowed": parameters.seconds,
        }
        for name in reversed(parameters.tasks)
        for failure in FAILURES
        for shown in SHOWN
        for rate in reversed(parameters.rates)
    ]


def case_of(cell: Mapping[str, Any], model: str) -> Case:
    """A model in a harness whose calls fail, and which shows or hides it."""
    horizon, context = TASKS[cell["task"]]
    given = {
        "task": f"library:{cell['task']}",
        "horizon": horizon,
        "discount": 1,
        "model": model,
        "context": context,
    }
    spec = parse_spec(given)
    spec = replace(spec, task=renamed(spec.task))
    words = (
        ["timeout", "*", cell["rate"], EFFECT]
        if cell["failure"] == "timeout"
        else ["malformed", cell["rate"]]
    )
    failing = parse_part(":".join(words))
    way = cell["shown"]
    parts: tuple[Part, ...] = (failing,)
    if way != "visible":
        parts += (Part(failing.part, "hide", f"hide:{way}", HIDDEN_RANK, partial(_hidden, way=way)),)
    lists = {"tools": (), "control": (), "loop": (), failing.part: parts}
    return Case(
        spec.with_harness(Harness(**lists, context=spec.harness.context)),
        Effort(gap=1e-5, seconds=cell["seconds_allowed"], certify=False),
    )


def renamed(task: POMDP) -> POMDP:
    """The task with another name for a result of its own that is called `error`, as that of repo_repair's tests."""
    return replace(task, observations=tuple(OWN_ERROR if o == "error" else o for o in task.observations))


def _hidden(model: POMDP, way: str) -> POMDP:
    # At rate 0 there is nothing to hide.
    return hide(model, way) if {"error", "timeout"} & set(model.observations) else model


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """J of every model, V*(M_0), and means of runs of the same policies where the cell asks for runs."""
    rows: list[dict[str, Any]] = []
    first = case_of(cell, MODELS[0])
    largest = float(np.ptp(first.spec.task.R)) * (first.spec.criterion.horizon or 0)
    for name in MODELS:
        began = time.perf_counter()
        case = case_of(cell, name)
        # What a harness makes of a task is the same for all models, as it exposes all actions of the task.
        case.__dict__.update(induced=first.induced, task=first.task, inner=first.inner)
        interval = case.achieved
        if name == "optimal":
            interval = Interval(interval.lower, max(interval.upper, case.best.interval.upper))
        row = {"model": name, **_ends("J", interval), "J": case.returned + 0.0}
        row |= {"contexts": case.induced.num_contexts, "largest": largest}
        if cell["episodes"]:
            row |= {"episodes_run": cell["episodes"], **_runs(cell, case, seed or 0)}
        rows.append(row | {"seconds": time.perf_counter() - began})
    rows.append({"model": HISTORY, **_ends("J", first.inner.interval), "largest": largest, "seconds": 0.0})
    return Outcome(tuple(rows), first.induced.model.digest)


def _ends(name: str, interval: Interval) -> dict[str, float]:
    # A rounded-up zero is -0.0, which prints and compares oddly.
    return {f"{name}_lower": interval.lower + 0.0, f"{name}_upper": interval.upper + 0.0}


def _runs(cell: Mapping[str, Any], case: Case, seed: int) -> dict[str, Any]:
    """The same policy in the running harness, whose dispatcher shows or hides what failed."""
    from experiments.failures_as_observations_running import Hiding, run_policy
    from experiments.served_task import tool_name
    from harnesses.runtime.tools import Dispatcher

    task, chance = case.spec.task, float(Fraction(cell["rate"]))
    dispatcher: Any = Dispatcher
    if cell["shown"] != "visible":
        base = Base(task)
        blanks = {tool_name(name): usual(base, a, ()) for a, name in enumerate(task.actions)}
        dispatcher = partial(Hiding, blanks=blanks, stale=cell["shown"] == "stale")
    timed = cell["failure"] == "timeout"
    earned, failed, _ = run_policy(
        case.induced, case.pi, dispatcher,
        timeout=chance if timed else 0.0, effect=float(Fraction(EFFECT)), malformed=0.0 if timed else chance,
        episodes=cell["episodes"],
        # One world for all models and both ways of hiding: their differences are paired.
        seed=(zlib.crc32(f"{cell['task']} {cell['failure']} {cell['rate']}".encode()) + seed) % 2**32,
    )  # fmt: skip
    spread = float(earned.std(ddof=1)) if float(np.ptp(earned)) > SAME else 0.0
    return {"earned": float(earned.mean()), "earned_se": spread / len(earned) ** 0.5, "failed": failed}


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """J against the failure rate, per task and model: failures shown, blank and stale; points are runs."""
    from experiments.failures_as_observations_figure import draw

    return draw(frames, width)
