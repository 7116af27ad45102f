"""Study: plans of k steps kept by the harness against re-deciding every step; imports pomdp, harnesses, the tasks.

Source: M1 §1.6.5 (is re-deciding at every step strictly worse?). The figure stands in commitment_figure.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.commitment_tables import TABLES, analyse, headline
from experiments.commitment_tasks import task
from experiments.study import Outcome, StudyError
from harnesses.constructors.base import Base
from harnesses.constructors.commitment import commit
from harnesses.context import Sizes
from harnesses.context.counter import Counter
from harnesses.context.held import Held
from harnesses.context.window import Last
from harnesses.harness import induce
from pomdp.bounds import solve
from pomdp.bounds.solver import Solution
from pomdp.bounds.stateless import stateless
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP
from pomdp.value import evaluate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = "Should an agent re-decide at every step, or keep a plan for k steps, when the world changes at some rate?"
METRIC = "V_k - c E[decisions]: best return of plans of k steps, less a price c for each decision, certified for c = 0"
CONTRAST = "best k in the still task minus best k where the task changes at rate 1/10, at the low price"
PREDICTED_SIGN = "+"
SEEDS = 1
BASELINE = {"k": 1, "named": False}

__all__ = ["TABLES", "analyse", "headline"]

HORIZONS = {
    "follow": 6, "tiger": 6, "tmaze:4": 5, "flip:3": 5, "repo_repair:2:2": 4, "drift": 6,
    "random-1": 5, "random-2": 5, "random-3": 5,
}  # fmt: skip
# What a decision costs at the price 1: tiger counts in tens.
UNITS = {"tiger": 10}
# Results at which an engineer would have the plan looked at again.
NAMED = {
    "follow": ("see-right",),
    "tmaze:4": ("cue-left", "cue-right"),
    "flip:3": ("u0", "u1", "flag-0", "flag-1"),
    "repo_repair:2:2": ("fails-in-0", "fails-in-1", "cause-0", "cause-1"),
}
# Searched for a quarter of the time: where its bounds do not meet by then, they do not later.
SHORT = ("tmaze:4", "repo_repair:2:2", "tiger")
GAP = 1e-5
# Returns that differ by less are sums of the same rewards.
SAME = 1e-9


@dataclass(frozen=True)
class Parameters:
    """Rates of change, prices of a decision, windows of the short contexts, tasks, episodes run, seconds per bound."""

    tasks: tuple[str, ...] = ("follow", "tiger", "tmaze:4", "flip:3", "repo_repair:2:2", "drift", "random-2")
    rates: tuple[str, ...] = ("0", "1/100", "1/10", "1/2")
    prices: tuple[str, ...] = ("0", "1/50", "1/5")
    run_rates: tuple[str, ...] = ("1/10", "1/2")
    short_rates: tuple[str, ...] = ("0", "1/10")
    windows: tuple[int, ...] = (1, 2, 3)
    episodes: int = 100
    seconds: float = 4.0

    def __post_init__(self) -> None:
        """Refuse unknown tasks, and grids without the rates and prices that the contrast compares."""
        unknown = [name for name in self.tasks if name not in HORIZONS]
        if unknown:
            raise StudyError(f"no task {unknown[0]!r} in this study; known: {', '.join(HORIZONS)}")
        if not {"0", "1/10"} <= set(self.rates):
            raise StudyError(f"rates are {self.rates}; the contrast needs 0 and 1/10 among them")
        if len(self.prices) != 3 or self.prices[0] != "0":
            raise StudyError(f"prices are {self.prices}; give none, a low and a high one, such as 0 1/50 1/5")
        if self.episodes < 2:
            raise StudyError(f"episodes is {self.episodes}; an error needs two, such as 200")


FULL_RATES = ("0", "1/100", "1/50", "1/20", "1/10", "3/20", "1/5", "1/4", "3/10", "2/5", "1/2")
PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        tasks=tuple(HORIZONS), rates=FULL_RATES, run_rates=FULL_RATES[::2], short_rates=FULL_RATES[::2],
        windows=(1, 2, 3, 4), episodes=5000, seconds=30.0,
    ),
}  # fmt: skip


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Per task and rate each plan length, the dear ones first; those that are run; and those with short contexts."""
    found = []
    for name in parameters.tasks:
        for rate in dict.fromkeys((*parameters.rates, *parameters.run_rates)):
            for k, named in rules(name):
                common = {
                    "task": name,
                    "rate": rate,
                    "k": k,
                    "named": named,
                    "seconds_allowed": parameters.seconds,
                }
                if rate in parameters.rates:
                    found.append({"part": "value", "prices": list(parameters.prices), **common})
                if rate in parameters.run_rates and not named:
                    found.append({"part": "running", "episodes": parameters.episodes, **common})
        if name in SHORT:
            found += [
                {"part": "short", "task": name, "rate": rate, "k": k, "named": named, "window": window,
                 "seconds_allowed": parameters.seconds / 4}
                for rate in parameters.short_rates for window in parameters.windows for k, named in rules(name)
            ]  # fmt: skip
    return sorted(found, key=lambda cell: (cell["part"], -cell["k"]), reverse=False)


def rules(name: str) -> Iterator[tuple[int, bool]]:
    """(k, whether named results end a plan early): every k without, and the longest with where results are named."""
    horizon = HORIZONS[name]
    yield from ((k, False) for k in range(1, horizon + 1))
    if name in NAMED:
        yield horizon, True


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """The rows of one cell; only the running part draws, by `seed`."""
    if cell["part"] == "running":
        return _running(cell, seed or 0)
    if seed:
        return Outcome(())  # exact: another seed changes nothing
    return _values(cell) if cell["part"] == "value" else _short(cell)


def committed(cell: Mapping[str, Any], charge: Any = 0) -> POMDP:
    """The task of a cell under its plans."""
    model, named = _task_and_named(cell)
    return commit(model, cell["k"], charge, named)


def _task_and_named(cell: Mapping[str, Any]) -> tuple[POMDP, tuple[str, ...]]:
    """The task with the results that are ever read, none if the plan is as long as the run; those that end a plan."""
    model = task(cell["task"], Fraction(cell["rate"]))
    if cell["named"]:
        return model, NAMED[cell["task"]]
    return (model.blinded() if cell["k"] == HORIZONS[cell["task"]] else model), ()


def _values(cell: Mapping[str, Any]) -> Outcome:
    """V_k less the price of the decisions, for each price, and how often the best plans decide."""
    always, rows = _decisions_whatever_is_done(cell), []
    for level, price in enumerate(cell["prices"]):
        began = time.perf_counter()
        charge = Fraction(price) * UNITS.get(cell["task"], 1)
        if always is None:
            solved = _solved(cell, charge, certify=not charge)
            interval, due = solved.interval, decisions(cell, solved)
        else:
            paid = Interval.of(charge * always, charge * always, certified=True)
            interval, due = _solved(cell, Fraction(0), certify=True).interval - paid, float(always)
        rows.append(
            {
                "price": float(charge),
                "level": level,
                **_ends("J", interval),
                "decisions": due,
                "largest": _largest(cell),
                "seconds": time.perf_counter() - began,
            }
        )
    return Outcome(tuple(rows), committed(cell).digest)


def _decisions_whatever_is_done(cell: Mapping[str, Any]) -> int | None:
    """ceil(n / k) in a task without an end, else None."""
    if cell["named"] or Base(task(cell["task"], Fraction(cell["rate"]))).over:
        return None
    return -(-HORIZONS[cell["task"]] // cell["k"])


def decisions(cell: Mapping[str, Any], solved: Solution) -> float:
    """How often the controller found decides, on average: what a charge of 1 takes from it."""
    free, charged = (evaluate(committed(cell, c), solved.controller, solved.criterion) for c in (0, 1))
    return free - charged


def _solved(cell: Mapping[str, Any], charge: Fraction, certify: bool = False) -> Solution:
    """The best plans; making a certificate takes most of the time, so that only the values without a price have one."""
    seconds = cell["seconds_allowed"]
    return _solve(cell["task"], cell["rate"], cell["k"], cell["named"], charge, seconds, certify)


@lru_cache(maxsize=8)
def _solve(
    name: str, rate: str, k: int, named: bool, charge: Fraction, seconds: float, certify: bool
) -> Solution:
    cell = {"task": name, "rate": rate, "k": k, "named": named}
    criterion = Criterion(Fraction(1), HORIZONS[name])
    return solve(
        committed(cell, charge), criterion, gap=GAP * _largest(cell), time_limit=seconds, certify=certify
    )


def _largest(cell: Mapping[str, Any]) -> float:
    """The largest difference that two policies can have."""
    R = task(cell["task"], Fraction(cell["rate"])).R
    return float(R.max() - R.min()) * HORIZONS[cell["task"]]


def _running(cell: Mapping[str, Any], seed: int) -> Outcome:
    """The plans of the controller found, kept by the running harness: return and replies beside their exact values."""
    from experiments.commitment_running import run_plans

    began, solved = time.perf_counter(), _solved(cell, Fraction(0))
    model, name = task(cell["task"], Fraction(cell["rate"])), cell["task"]
    # One world for the plans of a task and rate: their differences are paired.
    world = (zlib.crc32(f"{name} {cell['rate']}".encode()) + seed) % 2**32
    earned, replies = run_plans(
        model, solved.model, solved.controller, cell["k"], HORIZONS[name], cell["episodes"], world
    )
    row = {
        "episodes": cell["episodes"],
        "J": evaluate(solved.model, solved.controller, solved.criterion) + 0.0,
        "decisions": decisions(cell, solved),
        **_estimate("earned", earned),
        **_estimate("replies", replies),
        "seconds": time.perf_counter() - began,
    }
    return Outcome((row,), f"{replies.tolist()}")


def _short(cell: Mapping[str, Any]) -> Outcome:
    """The best plans that a model makes from the last `window` pairs and the step number."""
    began, criterion = time.perf_counter(), Criterion(Fraction(1), HORIZONS[cell["task"]])
    model, named = _task_and_named(cell)
    phi = Held(cell["k"], Counter(Last(cell["window"])), named)
    induced = induce(model, model, phi, criterion, Sizes())
    found = stateless(
        induced.model, 0, criterion, gap=GAP * _largest(cell), time_limit=cell["seconds_allowed"],
        recall=_solved(cell, Fraction(0)).interval,  # plans made from the whole history
        behind=(induced.inner, induced.origin),
    )  # fmt: skip
    row = {
        **_ends("Vo", found.interval),
        "contexts": induced.num_contexts,
        "largest": _largest(cell),
        "seconds": time.perf_counter() - began,
    }
    return Outcome((row,), induced.model.digest)


def _estimate(name: str, values: Any) -> dict[str, float]:
    """Mean and standard error; of equal values an error would be rounding noise, and is 0."""
    spread = float(values.std(ddof=1)) if float(np.ptp(values)) > SAME else 0.0
    return {name: float(values.mean()), f"{name}_se": spread / len(values) ** 0.5}


def _ends(name: str, interval: Interval) -> dict[str, float]:
    # A rounded-up zero is -0.0, which prints and compares oddly.
    return {f"{name}_lower": interval.lower + 0.0, f"{name}_upper": interval.upper + 0.0}


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Return against the rate for each k, with the runs; the best k against the rate; short contexts."""
    from experiments.commitment_figure import draw

    return draw(frames, width)
