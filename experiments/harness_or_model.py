"""Study: is it the harness or the model? Imports pomdp, harnesses, the parts studied; plotting in `figure`.

The two harnesses of M1 §1.4.6 on a repository to repair, their gap split into its two causes, models crossed with
harnesses, and the value of single parts of a harness against the strength of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments import tables
from experiments.harness_parts import HORIZON, PARTS, Arm
from experiments.study import Outcome, StudyError, fingerprint
from harnesses.attribution import attribute, shapley
from harnesses.case import Case, Effort
from harnesses.models import StatelessModel
from harnesses.spec import parse_spec
from pomdp.interval import Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "How much of a run's loss is the harness's and how much the model's, does the better model depend on the "
    "harness, and which parts of a harness does a stronger model make redundant or harmful?"
)
METRIC = "return J of a fixed model in a harness, exact but for rounding"
CONTRAST = "J in H1 (last_messages(10), full test output) minus J in H2 (last_messages(3), exit code only)"
PREDICTED_SIGN = "+"
SEEDS = 0
BASELINE: Mapping[str, Any] | None = None

EXIT_CODE = "coarsen:run-tests>failed=fails-in-0|fails-in-1|error"
HARNESSES = {
    "H1": Arm("last_messages:10"),
    "window only": Arm("last_messages:3"),
    "output only": Arm("last_messages:10", tools=(EXIT_CODE,)),
    "H2": Arm("last_messages:3", tools=(EXIT_CODE,)),
}
MODELS = (
    "optimal", "bayes", "bayes:0.05", "bayes:0.2", "naive", "naive:0.05", "naive:0.2", "random",
)  # fmt: skip
READERS = ("bayes", "naive")
TOLERANCE = 1e-3
"""In units of reward, of which a repaired repository pays 1: values of a part no larger than this are nothing."""


@dataclass(frozen=True)
class Parameters:
    """Steps of the task, models of the factorial, temperatures of the sweep (0 first), seconds per bound."""

    horizon: int = HORIZON
    models: tuple[str, ...] = MODELS
    temperatures: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 2.0)
    seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse a sweep without its strong end."""
        if len(self.temperatures) < 2 or self.temperatures[0] != 0 or sorted(self.temperatures)[0] < 0:
            raise StudyError(
                f"temperatures are {self.temperatures}; begin with 0, the full strength, such as 0 0.1 0.5"
            )


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        horizon=6, temperatures=(0.0, *(round(0.01 * 1.5**k, 5) for k in range(14))), seconds=120.0
    ),
}

_WIDER: Any = {"factor": 3.0, "slack": 0.01, "unit": "scale", "digits": 4}
_SCALE = tables.exact("scale", "scale")
TABLES = (
    tables.Table(
        "harness_or_model",
        (
            tables.key("model", "model"),
            tables.key("harness", "harness"),
            tables.interval("J", "$J$", **_WIDER),
            tables.interval("total", r"$V^*-J$", **_WIDER),
            tables.interval("tools", "tools", **_WIDER),
            tables.interval("context", "context", **_WIDER),
            tables.interval("reader", "reader", **_WIDER),
            tables.interval("interaction", "interaction", **_WIDER),
            tables.exact("contexts", "contexts"),
            _SCALE,
            tables.ignore("seconds", "s"),
        ),
        "Models crossed with the harnesses of M1 §1.4.6 on repository repair. The loss $V^*-J$ is split into "
        "what tools, context and model lose; interaction is against the first model and H1.",
    ),
    tables.Table(
        "two_causes",
        (
            tables.key("model", "model"),
            tables.interval("gap", "$J(H_1)-J(H_2)$", **_WIDER),
            tables.interval("window", "window", **_WIDER),
            tables.interval("output", "output", **_WIDER),
            _SCALE,
        ),
        "The gap between both harnesses, shared out between the shorter window and the exit code by exact "
        "Shapley values.",
    ),
    tables.Table(
        "rank_reversals",
        (
            tables.key("model", "model"),
            tables.key("other", "other model"),
            tables.key("above_in", "above in"),
            tables.key("below_in", "below in"),
            tables.interval("lead", "lead", **_WIDER),
            tables.interval("deficit", "deficit", **_WIDER),
            _SCALE,
        ),
        "Rank reversals: the model is above the other in one harness and below it in another, both for certain and "
        "by more than 1/1000.",
    ),
    tables.Table(
        "part_values",
        (
            tables.key("part", "part"),
            tables.key("reader", "reader"),
            tables.key("temperature", "temperature"),
            tables.interval("value", "value of the part", **_WIDER),
            tables.interval("without", "$J$ without", **_WIDER),
            tables.interval("with_part", "$J$ with", **_WIDER),
            tables.exact("verdict", "verdict"),
            _SCALE,
        ),
        "Value of single parts of a harness, $J$ with it minus $J$ without, against the model's temperature; "
        "at temperature 0 the model is at full strength.",
    ),
)


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Every harness, largest context first, and every part of a harness."""
    common = {"horizon": parameters.horizon, "seconds_allowed": parameters.seconds}
    found: list[dict[str, Any]] = [
        {"table": "grid", "harness": name, "models": list(parameters.models), **common}
        for name in ("output only", "H1", "H2", "window only")
    ]
    temperatures = list(parameters.temperatures)
    found += [
        {"table": "parts", "part": name, "temperatures": temperatures, **common, "horizon": HORIZON}
        for name in PARTS
    ]
    return found


def case_of(arm: Arm, model: str, horizon: int, seconds: float) -> Case:
    """The case of one model in one harness."""
    return Case(parse_spec(arm.spec(horizon, model)), Effort(seconds=seconds))


def serving(
    case: Case, model: StatelessModel, shared: Sequence[str] = ("induced", "task", "inner", "best")
) -> Case:
    """The same harness with another model: what is `shared`, none of it the model's, is not computed again.

    Only where the harness exposes every action of the task, so that M_0 is the same for all models.
    """
    other = Case(replace(case.spec, model=model), case.effort)
    for name in shared:
        other.__dict__[name] = getattr(case, name)
    return other


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """All models in one harness, or the value of one part at every strength."""
    if cell["table"] == "parts":
        return _run_part(cell)
    import time

    first = case_of(HARNESSES[cell["harness"]], "optimal", cell["horizon"], cell["seconds_allowed"])
    rows = []
    for name in cell["models"]:
        began = time.perf_counter()
        case = serving(first, _model(name))
        found = attribute(case)
        parts = {
            "J": found.achieved,
            "total": found.total,
            "tools": found.tools_control_loop,
            "context": found.context,
            "reader": found.model,
        }
        rows.append(
            {
                "model": name,
                **_ends(parts),
                "contexts": case.induced.num_contexts,
                "scale": 1.0,
                "seconds": time.perf_counter() - began,
            }
        )
    return Outcome(tuple(rows), fingerprint([context.text for context in first.induced.contexts]))


def _run_part(cell: Mapping[str, Any]) -> Outcome:
    """J of both readers at every temperature, without the part and with it."""
    part = PARTS[cell["part"]]
    cases = [case_of(arm, "bayes", cell["horizon"], cell["seconds_allowed"]) for arm in part]
    rows = []
    for reader in READERS:
        for temperature in cell["temperatures"]:
            without, given = (_returned(case, StatelessModel(reader, temperature)) for case in cases)
            found = {"value": given - without, "without": without, "with_part": given}
            rows.append({"reader": reader, "temperature": temperature, **_ends(found), "scale": 1.0})
    return Outcome(tuple(rows))


def _returned(case: Case, model: StatelessModel) -> Interval:
    """J of another model in the case's harness; V*(M) and V*(M_0) are solved once."""
    return serving(case, model, ("induced", "task", "inner")).achieved


def _model(text: str) -> StatelessModel:
    kind, _, warmth = text.partition(":")
    return StatelessModel(kind, float(warmth or 0))


def _ends(parts: Mapping[str, Interval]) -> dict[str, float]:
    # A rounded-up zero is -0.0, which prints and compares oddly.
    return {
        f"{name}_{end}": 0.0 + getattr(interval, end)
        for name, interval in parts.items()
        for end in ("lower", "upper")
    }


def shares(returns: Mapping[str, Interval]) -> dict[str, Interval]:
    """The gap J(H1) - J(H2) and the Shapley share of each cause, from J in the four harnesses.

    A share is linear in the four returns, so its interval is that of the midpoints widened by the mean of all radii.
    """
    # Seen from H2, a cause that is taken away is a player switched on.
    names = {frozenset(): "H2", frozenset({"window", "output"}): "H1"}
    names |= {frozenset({"window"}): "output only", frozenset({"output"}): "window only"}
    ends = {name: (Fraction(i.lower), Fraction(i.upper)) for name, i in returns.items()}
    found = shapley(lambda taken: (ends[names[taken]][0] + ends[names[taken]][1]) / 2, ("window", "output"))
    radius = sum((high - low for low, high in ends.values()), Fraction(0)) / 4
    return {"gap": returns["H1"] - returns["H2"]} | {
        str(cause): Interval.of(share - radius, share + radius) for cause, share in found.items()
    }


def verdict(values: Sequence[tuple[float, Interval]]) -> str:
    """What strength does to a part, from its value at each temperature, 0 among them.

    harmful: certainly below -TOLERANCE at temperature 0; redundant: within TOLERANCE there, though certainly above
    it at some higher temperature; useful: certainly above it at 0; else idle. `harmful, helps weaker`: harmful at 0
    and certainly above TOLERANCE at some higher temperature.
    """
    strong = next(value for temperature, value in values if temperature == 0)
    helps = any(value.lower > TOLERANCE for temperature, value in values if temperature > 0)
    if strong.upper < -TOLERANCE:
        return "harmful, helps weaker" if helps else "harmful"
    if strong.lower > TOLERANCE:
        return "useful"
    return "redundant" if helps else "idle"


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The four tables; gaps, interactions, reversals and verdicts follow from the returns in them."""
    from experiments.harness_or_model_tables import tabulate

    return tabulate(frame)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """What came out, with the predicted sign beside it."""
    causes, parts = frames["two_causes"], frames["part_values"]
    certain = int((causes["gap_lower"] > 0).sum())
    reversals = frames["rank_reversals"]
    verdicts = parts[parts["temperature"] == 0]
    flagged = [
        f"{name} for {', '.join(f'{p} ({r})' for p, r in zip(part['part'], part['reader'], strict=True))}"
        for name, part in verdicts.groupby("verdict")
        if name != "useful"
    ]
    return (
        f"H1 returns more than H2 for certain for {certain} of {len(causes)} models (predicted sign "
        f"{PREDICTED_SIGN}), and {len(reversals)} rank reversals are certain. At full strength a part is "
        f"{'; '.join(flagged)}."
    )


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Loss by part in every harness, the lines of the factorial, and the value of parts against strength."""
    from experiments.harness_or_model_figure import draw

    return draw(frames, width)
