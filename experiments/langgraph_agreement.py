"""Study: three quantities of the formal side beside the same policies run in LangGraph. Imports pomdp, harnesses.

The value of feedback and the loss of a lossy context are differences of returns: their formal side is an interval or an
exact value, their running side the paired difference of the same episodes in a LangGraph agent. The guard's cost,
unsafe-action rate and questions are predicted by the desk's formal twin before the desk runs.
Source: M1 §1.7.3 (V_f), M14 §8 (the guard's measures).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.study import Outcome, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from experiments.langgraph_agreement_running import Arm

QUESTION = (
    "Does an agent that runs in LangGraph earn, lose and ask what was computed of it: the value of feedback, the loss "
    "of a lossy context, and what its guard lets through?"
)
METRIC = "paired differences of returns of the running agent, against exact ones; shares and cost of the guarded desk"
CONTRAST = "V_f of the running agent: return with the whole history minus return without any observation"
PREDICTED_SIGN = "+"
SEEDS = 20
BASELINE = None

CLOSED, OPEN = "full", "counter:last:0"
"""The whole history; the number of the step and nothing else, so that the policy is a fixed plan."""

HORIZONS = {"tiger": 5, "flip:3": 4, "tmaze:4": 5, "repo_repair": 4, "ticket_routing": 3}
ARMS: Mapping[str, tuple[str, ...]] = {
    "tiger": (CLOSED, OPEN, "last:1", "last:2", "compose:results:last:2"),
    "flip:3": (CLOSED, OPEN, "last:1"),
    "tmaze:4": (CLOSED, OPEN, "last:2"),
    "repo_repair": (CLOSED, OPEN, "last:1", "compose:results:last:2"),
    "ticket_routing": (CLOSED, OPEN, "last:1"),
}
"""Context maps of each task, the closed loop first."""

MEASURES = ("cost_per_case", "uar", "questions")
"""Of the guarded desk."""

FAMILY = 0.95
"""All intervals of the paired differences together hold with at least this probability; each gets its share."""
OTHERS, PAIRS = 1_000_000, 2_000
"""Episodes of the tabular simulator, none of them run, from which the spread of a paired difference is taken: that of a
few runs says too little where an outcome is rare."""
PREDICTED = 0.95
"""Level of each prediction of the desk's twin."""


@dataclass(frozen=True)
class Parameters:
    """Episodes of each arm for each seed, emails of each calibration split; width and seconds of certified bounds."""

    episodes: int = 5
    calibration: int = 1000
    gap: float = 1e-6
    seconds: float = 4.0

    def __post_init__(self) -> None:
        """Refuse a study without episodes."""
        if self.episodes < 1 or self.calibration < 1:
            raise StudyError(
                f"episodes {self.episodes}, calibration {self.calibration}; give 1 or more, such as 5 and 1000"
            )


PRESETS = {"small": Parameters(), "full": Parameters(episodes=200, calibration=3000, seconds=60.0)}

_WIDER: Any = {"factor": 3.0, "slack": 0.02, "unit": "largest", "digits": 5}
TABLES = (
    tables.Table(
        "returns",
        (
            tables.key("task", "task"),
            tables.key("quantity", "quantity"),
            tables.key("context", "context"),
            tables.interval("formal", "formal", **_WIDER),
            tables.exact("exact", "exact", 6),
            tables.estimate("run", "run", error="run_error"),
            tables.exact("episodes", "episodes"),
            tables.exact("steps", "steps"),
            tables.exact("differences", "differences"),
            tables.exact("agree", "agree"),
            tables.ignore("largest", "largest"),
        ),
        "Value of feedback ($V_f$) and loss of a lossy context: certified interval, exact difference of the two "
        "policies that ran, and paired difference of their runs in LangGraph (standard error in brackets, with the "
        "spread of other episodes of the simulator). "
        "\\emph{differences}: of all steps of the runs, how many are not those of the tabular simulator. "
        "\\emph{agree}: whether the run's interval holds the exact value; all together hold with probability 0.95.",
    ),
    tables.Table(
        "guard",
        (
            tables.key("measure", "measure"),
            tables.exact("seeds", "sets"),
            tables.exact("items", "emails"),
            tables.exact("predicted", "predicted", 6),
            tables.exact("run", "run", 6),
            tables.exact("covered", "covered"),
        ),
        "The guarded desk: what its formal twin predicts from the calibration split, and what the LangGraph agent did "
        "on the test split, over decision sets of different seeds (means). \\emph{covered}: in how many sets the "
        "prediction's 95 percent interval held what came.",
    ),
    tables.Table(
        "guard_sets",
        (
            tables.key("measure", "measure"),
            tables.key("set", "set"),
            tables.exact("predicted", "predicted", 6),
            tables.exact("lower", "lower", 6),
            tables.exact("upper", "upper", 6),
            tables.exact("run", "run", 6),
            tables.exact("covered", "covered"),
        ),
        "Prediction and run of the guarded desk for each decision set.",
    ),
)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """The guarded desk, then every task with all its arms."""
    common = {"episodes": parameters.episodes, "gap": parameters.gap, "seconds_allowed": parameters.seconds}
    desk = {"part": "guard", "task": "desk", "calibration": parameters.calibration}
    return [desk, *({"part": "returns", "task": t, **common} for t in ARMS)]


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """Returns of every arm's episodes with one seed, with the first seed also the formal side; or one decision set."""
    assert seed is not None  # SEEDS is not 0
    if cell["part"] == "guard":
        from experiments.langgraph_agreement_running import guarded

        return Outcome(tuple(guarded(seed, cell["calibration"])))
    task, count = cell["task"], cell["episodes"]
    numbers = range(seed * count, (seed + 1) * count)
    rows: list[dict[str, Any]] = []
    others = range(OTHERS, OTHERS + PAIRS)
    closed = _arm(task, CLOSED).simulated(others) if seed == 0 else None
    for name in ARMS[task]:
        ran = _arm(task, name).run(numbers)
        rows += [{"kind": "run", "context": name, "number": n, "J_run": J} for n, J in ran.returns.items()]
        rows.append({"kind": "count", "context": name, "steps": ran.steps, "differences": ran.differences})
        if seed == 0:
            made = _arm(task, name)
            formal = made.formal(cell["gap"], cell["seconds_allowed"])
            rows.append(
                {
                    "kind": "formal", "context": name, "J": made.J, "largest": made.largest,
                    "spread": float((closed - made.simulated(others)).std(ddof=1)),
                    "formal_lower": None if formal is None else formal.lower,
                    "formal_upper": None if formal is None else formal.upper,
                }
            )  # fmt: skip
    return Outcome(tuple(rows))


@lru_cache(maxsize=32)
def _arm(task: str, name: str) -> Arm:
    """An arm, built once a process for all its seeds."""
    from experiments.langgraph_agreement_running import arm

    return arm(task, name)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Differences against the closed loop; the guard's measures over all sets and set by set."""
    import pandas as pd

    returns, desk = frame[frame["part"] == "returns"], frame[frame["part"] == "guard"]
    found = [row for task in ARMS for row in differences(returns[returns["task"] == task], task)]
    level = 1.0 - (1.0 - FAMILY) / max(1, len(found))
    main = pd.DataFrame([{**row, "agree": int(agrees(row, level))} for row in found])
    sets = desk.assign(set=desk["seed"].astype(int)).sort_values(["set"]).reset_index(drop=True)
    pooled = []
    for measure in MEASURES:
        part = sets[sets["measure"] == measure]
        if not part.empty:
            pooled.append(
                {
                    "measure": measure, "seeds": len(part), "items": int(part["items"].sum()),
                    "predicted": float(part["predicted"].mean()), "run": float(part["ran"].mean()),
                    "covered": int(part["covered"].sum()),
                }
            )  # fmt: skip
    sets = sets.assign(covered=sets["covered"].astype(int), run=sets["ran"])
    made = {"returns": main, "guard": pd.DataFrame(pooled), "guard_sets": sets}
    return {table.name: made[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def differences(part: pd.DataFrame, task: str) -> list[dict[str, Any]]:
    """Of one task: closed loop minus each other arm, episode by episode."""
    if part.empty:
        return []
    runs = part[part["kind"] == "run"].pivot(index="number", columns="context", values="J_run")
    formal = part[part["kind"] == "formal"].set_index("context")
    counts = part[part["kind"] == "count"].groupby("context")[["steps", "differences"]].sum()
    rows = []
    for name in ARMS[task][1:]:
        apart = (runs[CLOSED] - runs[name]).to_numpy(float)
        n = len(apart)
        error = float(formal.loc[name, "spread"]) / math.sqrt(n)
        both = counts.loc[[CLOSED, name]].sum()
        rows.append(
            {
                "task": task,
                "quantity": "V_f" if name == OPEN else "loss",
                "context": name,
                "formal_lower": float(formal.loc[name, "formal_lower"]),
                "formal_upper": float(formal.loc[name, "formal_upper"]),
                "exact": float(formal.loc[CLOSED, "J"] - formal.loc[name, "J"]),
                "run": math.fsum(apart) / n,
                "run_error": error,
                "episodes": n,
                "steps": int(both["steps"]),
                "differences": int(both["differences"]),
                "largest": float(formal.loc[name, "largest"]),
            }
        )
    return rows


def agrees(row: Mapping[str, Any], level: float) -> bool:
    """Whether the normal interval of the paired difference holds the exact one; equal where nothing ever varies."""
    from scipy import stats

    half = float(stats.norm.isf((1.0 - level) / 2.0)) * row["run_error"]
    return abs(row["run"] - row["exact"]) <= half + 1e-9 * max(1.0, abs(row["exact"]))


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The contrast by task with its predicted sign, how far run and formal agree, and the predictions that held."""
    main, guard = frames["returns"], frames["guard"]
    fed = main[main["quantity"] == "V_f"]
    told = ", ".join(f"{row.task} {row.run:+.3f} (exact {row.exact:+.3f})" for row in fed.itertuples())
    held = ", ".join(f"{row.measure} {row.covered} of {row.seeds}" for row in guard.itertuples())
    return (
        f"V_f of the running agent (predicted sign {PREDICTED_SIGN}): {told}. Of {len(main)} intervals of paired "
        f"differences {int(main['agree'].sum())} hold the exact value; {int(main['differences'].sum())} of "
        f"{int(main['steps'].sum())} steps differ from the simulator's. The twin's {PREDICTED:.0%} predictions of the "
        f"guarded desk held: {held}."
    )


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Value of feedback, context loss and the guard, formal against running, one panel each."""
    from experiments.langgraph_agreement_figure import draw

    return draw(frames, width)
