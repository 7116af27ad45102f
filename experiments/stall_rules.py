"""Study: what loop detectors save and what they spoil, exact and running; imports its own parts.

Predicted before the first run: escalating has fewer premature ends than terminating and wastes more calls; counting in
total ends tasks that repeat one call between others, which counting in a row does not; only counting in total and
looking for growth stop a model that alternates between two calls. Source: M1 §1.2.5, E1.7.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.stall_rules_exact import formal, forward, premature
from experiments.stall_rules_tables import PREDICTED_SIGN, TABLES, analyse, headline
from experiments.stall_rules_tasks import MODELS, RULES, WORKFLOWS, rule
from experiments.study import Outcome, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "Which loop detector wastes the fewest calls of a model that is stuck at the price of the fewest runs ended that "
    "would have succeeded?"
)
METRIC = "premature ends a run, and calls wasted a run on what is done already"
CONTRAST = "premature ends under terminate minus those under escalate, first warning at the third call"
SEEDS = 1
BASELINE = None

__all__ = ["PREDICTED_SIGN", "TABLES", "analyse", "headline"]

FIRST = 3
"""The first warning of the contrast, as in E1.7; these rules are also run."""
SAME = 1e-9


@dataclass(frozen=True)
class Parameters:
    """Counts of the first warning, chances of getting stuck per step of work, and what is also run, so many times.

    budget: replies of a run at most.
    """

    firsts: tuple[int, ...] = (2, 3, 4, 5, 6, 8)
    stuck: tuple[str, ...] = ("1/20", "1/5")
    run_stuck: tuple[str, ...] = ("1/5",)
    run_models: tuple[str, ...] = ("slow", "listening", "circling")
    episodes: int = 75
    budget: int = 20

    def __post_init__(self) -> None:
        """Refuse grids without the contrast, unknown models and budgets that no task fits."""
        if FIRST not in self.firsts or min(self.firsts) < 2:
            raise StudyError(f"firsts are {self.firsts}; they start at 2 or above and include {FIRST}")
        if not set(self.run_models) <= set(MODELS) or not set(self.run_stuck) <= set(self.stuck):
            raise StudyError(
                f"run_models {self.run_models} or run_stuck {self.run_stuck} are not among {', '.join(MODELS)} and "
                f"{', '.join(self.stuck)}"
            )
        longest = max(len(flow.stages) for flow in WORKFLOWS.values())
        if self.episodes < 2 or self.budget < longest:
            raise StudyError(
                f"episodes {self.episodes}, budget {self.budget}; give 2 or more, and {longest} or more"
            )


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        firsts=tuple(range(2, 11)), stuck=("1/50", "1/20", "1/10", "1/5"), run_stuck=("1/20", "1/5"),
        run_models=tuple(MODELS), episodes=2000,
    ),
}  # fmt: skip


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Per task, model and chance of getting stuck one cell with all rules; those that are run first."""
    found = [
        {
            "task": task,
            "model": model,
            "stuck": stuck,
            "firsts": list(parameters.firsts),
            "budget": parameters.budget,
            "episodes": parameters.episodes
            if model in parameters.run_models and stuck in parameters.run_stuck
            else 0,
        }
        for task in WORKFLOWS
        for model in MODELS
        for stuck in parameters.stuck
    ]
    return sorted(found, key=lambda cell: -cell["episodes"])


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """One row per rule and first warning, exact; the rules with the first warning of the contrast also run."""
    began = time.perf_counter()
    flow, model, stuck = WORKFLOWS[cell["task"]], MODELS[cell["model"]], float(Fraction(cell["stuck"]))
    budget, runs = cell["budget"], {}
    if cell["episodes"]:
        from experiments.stall_rules_running import run_rules

        rules = {name: rule(name, FIRST) for name in RULES[1:]}
        runs = run_rules(flow, model, stuck, rules, budget, cell["episodes"], seed_of(cell, seed or 0))
    rows: list[dict[str, Any]] = []
    for name in RULES:
        for first in cell["firsts"] if name != "none" else [FIRST]:
            detector = rule(name, first)
            row: dict[str, Any] = {
                "rule": name,
                "first": first,
                **forward(flow, model, stuck, detector, budget),
            }
            row["premature"] = premature(flow, model, stuck, detector, budget) + 0.0 if detector else 0.0
            if first == FIRST:
                for counts in ("success", "waste", "calls"):
                    row[f"{counts}_formal"] = formal(flow, model, stuck, detector, budget, counts)
                for measure, values in runs.get(name, {}).items():
                    row |= _mean(measure, values)
            rows.append(row | {"runs": cell["episodes"] if first == FIRST and name in runs else 0})
    return Outcome(tuple(row | {"seconds": time.perf_counter() - began} for row in rows))


def seed_of(cell: Mapping[str, Any], seed: int) -> int:
    """One world for all rules of a cell."""
    return (zlib.crc32(f"stall {cell['task']} {cell['model']} {cell['stuck']}".encode()) + seed) % 2**32


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if float(np.ptp(values)) > SAME else 0.0
    return {f"{name}_run": float(values.mean()), f"{name}_se": spread / len(values) ** 0.5}


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Premature ends against wasted calls, a curve per rule over its first warning, per task and model."""
    from experiments.stall_rules_figure import draw

    return draw(frames, width)
