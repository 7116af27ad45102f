"""Study: how much of the context a tool's description should take. Imports pomdp, harnesses; plotting in `figure`.

A longer schema is misread less often but takes tokens from the history. Source: M1 §1.2.3, after the
agent-computer interface thesis of arXiv:2405.15793.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.study import Outcome, StudyError
from harnesses.attribution import attribute
from harnesses.case import Case, Effort
from harnesses.spec import Spec, parse_spec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "A richer tool schema lowers the rate of malformed calls and takes tokens from the context: how rich should "
    "it be, and what is lost to the loop, the context and the model?"
)
METRIC = "return J of a fixed model in the harness, exact but for rounding"
CONTRAST = "J at the best schema size minus J at the better of no schema and the largest schema"
PREDICTED_SIGN = "+"
SEEDS = 0
BASELINE = None

TOKENS = {
    # Sizes are this study's choice: calls and plain results are one line, an error repeats the schema's rule,
    # and what a listener hears is a recording's transcript.
    "library:tmaze:2:0.9": {"results": {"error": 60}, "default": 20},
    "library:tiger": {"results": {"error": 60, "tiger-left": 100, "tiger-right": 100}, "default": 20},
}
HORIZONS = {"library:tmaze:2:0.9": 5, "library:tiger": 4}
# p(x) = 1/50 + 2/5 * 2^(-x / half): what a schema of x tokens leaves of the malformed calls.
FLOOR, REMOVABLE = Fraction(1, 50), Fraction(2, 5)
FAMILIES = {"steep": 40, "flat": 160}
LEVEL = 1e-4
"""Differences of J below this are ties when the best schema is sought; the smaller schema wins."""


@dataclass(frozen=True)
class Parameters:
    """Malformed rates and schema sizes of the grid, tokens of the whole context, the model, seconds per bound."""

    rates: tuple[str, ...] = ("1/50", "1/5", "2/5")
    sizes: tuple[int, ...] = (0, 60, 120, 180, 240, 300)
    budget: int = 400
    model: str = "naive"
    seconds: float = 3.0

    def __post_init__(self) -> None:
        """Refuse a schema that leaves no context, and a grid without a middle."""
        if len(self.sizes) < 3 or list(self.sizes) != sorted(set(self.sizes)):
            raise StudyError(f"sizes are {self.sizes}; give three rising ones or more, such as 0 100 200")
        if not 0 <= self.sizes[0] <= self.sizes[-1] <= self.budget:
            raise StudyError(f"sizes are {self.sizes}; they lie between 0 and the budget of {self.budget}")


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        rates=("0", "1/50", "1/20", "1/10", "1/5", "2/5", "3/5"), sizes=tuple(range(0, 341, 20)), seconds=30.0
    ),
}

_WIDER: Any = {"factor": 3.0, "slack": 0.02, "unit": "largest", "digits": 4}
_LOSS = (
    tables.interval("J", "$J$", **_WIDER),
    tables.interval("loss", r"$V^*-J$", **_WIDER),
    tables.interval("loop", "loop", **_WIDER),
    tables.interval("context", "context", **_WIDER),
    tables.interval("model", "model", **_WIDER),
    tables.exact("contexts", "contexts"),
    tables.exact("largest", "largest"),
    tables.ignore("seconds", "s"),
)
_SPLIT = (
    "The loss $V^*(M)-J$ is split into what malformed calls cost ($V^*(M)-V^*(M_0)$), what no reader of the "
    "context can recover ($V^*(M_0)-V_o$) and what this model leaves."
)
TABLES = (
    tables.Table(
        "schema_family",
        (
            tables.key("task", "task"),
            tables.key("family", "family"),
            tables.key("size", "schema tokens"),
            tables.exact("rate", "$p$"),
            tables.exact("best", "best"),
            *_LOSS,
        ),
        "Return against the size of the tool schema where it lowers the malformed rate to "
        "$p(x) = 1/50 + 2/5 \\cdot 2^{-x/h}$, $h = 40$ (steep) or 160 (flat) tokens. " + _SPLIT,
    ),
    tables.Table(
        "schema_grid",
        (tables.key("task", "task"), tables.key("rate", "$p$"), tables.key("size", "schema tokens"), *_LOSS),
        "Return against the malformed rate $p$ and the tokens that the schema takes from the context. "
        + _SPLIT,
    ),
)


def rate(family: str, size: int) -> Fraction:
    """p(x) of a family, rounded to a thousandth so that it is a short fraction."""
    left = float(REMOVABLE) * 2.0 ** (-size / FAMILIES[family])
    return FLOOR + Fraction(round(1000 * left), 1000)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Every (task, rate, size), and every (task, family, size) with the family's rate; the dearer task first."""
    common = {"budget": parameters.budget, "reader": parameters.model, "seconds_allowed": parameters.seconds}
    found: list[dict[str, Any]] = []
    for task in TOKENS:
        for size in parameters.sizes:
            place = {"task": task, "size": size, **common}
            found += [
                {"part": "family", "family": family, "rate": str(rate(family, size)), **place}
                for family in FAMILIES
            ]
            found += [{"part": "grid", "rate": given, **place} for given in parameters.rates]
    return found


def spec_of(cell: Mapping[str, Any]) -> Spec:
    """The spec of one cell: malformed calls with their rate, and a context that the schema has shortened."""
    chance = Fraction(cell["rate"])
    return parse_spec(
        {
            "task": cell["task"],
            "horizon": HORIZONS[cell["task"]],
            "model": cell["reader"],
            "loop": [f"malformed:{chance}"] if chance else [],
            "context": f"oldest_first:{cell['budget'] - cell['size']}",
            "tokens": TOKENS[cell["task"]],
        }
    )


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """J of one cell and the parts of its loss."""
    import time

    began = time.perf_counter()
    case = Case(spec_of(cell), Effort(seconds=cell["seconds_allowed"]))
    found = attribute(case)
    task, criterion = case.spec.task, case.spec.criterion
    parts = {
        "J": found.achieved,
        "loss": found.total,
        "loop": found.tools_control_loop,
        "context": found.context,
        "model": found.model,
    }
    ends = {
        f"{name}_{end}": 0.0 + getattr(interval, end)
        for name, interval in parts.items()
        for end in ("lower", "upper")
    }
    row = {
        **ends,
        "contexts": case.induced.num_contexts,
        "largest": float(task.R.max() - task.R.min()) * criterion.scale,
        "seconds": time.perf_counter() - began,
    }
    return Outcome((row,))


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Both tables in order; `best` is 1 at the schema size of each task and family with the highest J."""
    import pandas as pd

    frame = frame.assign(task=frame["task"].str.removeprefix("library:"))
    family, grid = (frame[frame["part"] == part] for part in ("family", "grid"))
    parts = []
    for _, part in family.sort_values(["task", "family", "size"]).groupby(["task", "family"]):
        returns = (part["J_lower"] + part["J_upper"]) / 2
        best = (returns >= returns.max() - LEVEL * part["largest"]).idxmax()
        parts.append(part.assign(best=(part.index == best).astype(int)))
    found = pd.concat(parts)
    found = found.assign(rate=found["rate"].map(lambda text: float(Fraction(text))))
    order = grid["rate"].map(lambda text: float(Fraction(text)))
    grid = grid.assign(order=order).sort_values(["task", "order", "size"])
    return {
        table.name: part[table.stored].reset_index(drop=True)
        for table, part in zip(TABLES, (found, grid), strict=True)
    }


def contrast(part: pd.DataFrame) -> tuple[int, float]:
    """Best size of one task and family, and the lower end of J there minus the better of both ends' J."""
    part = part.sort_values("size")
    best = part[part["best"] == 1].iloc[0]
    ends = max(part["J_upper"].iloc[0], part["J_upper"].iloc[-1])
    return int(best["size"]), float(best["J_lower"] - ends)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """Where the best schema lies in each task and family, with the predicted sign beside it."""
    found = [
        (f"{task}, {family}", *contrast(part))
        for (task, family), part in frames["schema_family"].groupby(["task", "family"])
    ]
    inside = sum(gain > 0 for _, _, gain in found)
    sizes = "; ".join(f"{name}: {size} tokens ({gain:+.3f})" for name, size, gain in found)
    return (
        f"A schema between none and the largest is best for certain in {inside} of {len(found)} cases "
        f"(predicted sign {PREDICTED_SIGN}). Best size, and J there minus J at the better end: {sizes}."
    )


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """J against schema size at fixed malformed rates and along both families; the loss along one, in parts."""
    from experiments.tool_schema_figure import draw

    return draw(frames, width)
