"""Study: what is lost without each of the four elements of a harness; imports harnesses, and the running harness late.

Predicted before the first run: each removal loses the property that the source names, in every task; and it lowers
the return. Source: M1 §1.1.3.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.necessity_formal import ARMS, INTACT, Formal, Setting
from experiments.necessity_tables import PREDICTED_SIGN, TABLES, analyse, headline
from experiments.study import Outcome, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "What does a harness lose without its loop, its tools, its context management or its control: the property that "
    "the source names, and how much return?"
)
METRIC = (
    "the property named in M1 §1.1.3, and the return J, of the same model in the harness with and without"
)
CONTRAST = "J in the intact harness minus J without each element, same model and same draws"
SEEDS = 1
BASELINE = None

__all__ = ["PREDICTED_SIGN", "TABLES", "analyse", "headline"]

TASKS = ("tmaze:2:0.9", "repo_repair:2:2", "ticket_routing", "tiger")
SAME = 1e-9


@dataclass(frozen=True)
class Parameters:
    """Error rates of the model, runs of each arm, tasks, horizon of the intact harness, pairs in the model's window.

    cap: where the experiment stops a run that no limit ends.
    """

    errors: tuple[str, ...] = ("0", "1/10", "1/5")
    episodes: int = 120
    tasks: tuple[str, ...] = TASKS
    horizon: int = 6
    pairs: int = 2
    cap: int = 12

    def __post_init__(self) -> None:
        """Refuse what would leave nothing to remove."""
        if not 1 <= self.pairs < self.horizon - 1 or self.cap <= self.horizon:
            raise StudyError(
                f"pairs {self.pairs}, horizon {self.horizon}, cap {self.cap}; they rise with room between them, such "
                "as 2 6 12"
            )
        if self.episodes < 2:
            raise StudyError(f"episodes is {self.episodes}; an error needs two, such as 100")
        if any(not 0 <= Fraction(error) < 1 for error in self.errors):
            raise StudyError(f"errors are {self.errors}; give rates from 0 up to below 1, such as 0 1/10")


PRESETS = {
    "small": Parameters(),
    "full": Parameters(errors=("0", "1/50", "1/20", "1/10", "1/5", "1/3"), episodes=2000),
}


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Per task and error rate one cell with all arms, so that every run is paired with the intact harness's."""
    return [
        {
            "task": task,
            "error": error,
            "horizon": parameters.horizon,
            "pairs": parameters.pairs,
            "cap": parameters.cap,
            "episodes": parameters.episodes,
        }
        for task in reversed(parameters.tasks)
        for error in parameters.errors
    ]


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """One row per arm: every measure exact and run, and the difference of the return from the intact harness's."""
    from experiments.necessity_running import MEASURED, run_arms

    began = time.perf_counter()
    formals = {arm: Formal.of(setting_of(cell, arm)) for arm in ARMS}
    exact = {arm: formal.exact() for arm, formal in formals.items()}
    runs = run_arms(formals, cell["episodes"], seed or 0)
    largest = float(np.abs(formals[INTACT].task.R).max())
    rows = []
    for arm in ARMS:
        row: dict[str, Any] = {"arm": arm, "largest": largest, "runs": cell["episodes"]}
        for name in MEASURED:
            row |= {f"{name}_exact": exact[arm][name] + 0.0, **_mean(name, runs[arm][name])}
        row["lost_exact"] = exact[INTACT]["return"] - exact[arm]["return"]
        row |= _mean("lost", runs[INTACT]["return"] - runs[arm]["return"])
        row["changed"] = float(runs[arm]["changed"].mean())
        rows.append(row | {"seconds": time.perf_counter() - began})
    return Outcome(tuple(rows))


def setting_of(cell: Mapping[str, Any], arm: str) -> Setting:
    """The arm of a cell."""
    return Setting(cell["task"], cell["horizon"], cell["pairs"], Fraction(cell["error"]), arm, cell["cap"])


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if float(np.ptp(values)) > SAME else 0.0
    return {name: float(values.mean()) + 0.0, f"{name}_se": spread / len(values) ** 0.5}


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Each property against the error rate, with and without its element; what each removal costs."""
    from experiments.necessity_figure import draw

    return draw(frames, width)
