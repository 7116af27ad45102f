"""Study: one model of one competence in eight harness patterns. Imports pomdp, harnesses; plotting in `_figure`.

Each pattern of M14 §9 is a LangGraph graph and a formal harness around the same request; the formal one is exact, the
graph is run. The tables of published scores recompute M14's worked example of §1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments import arc_agi, tables
from experiments.statistics import clopper_pearson
from experiments.study import Outcome, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = (
    "The same model in eight harnesses: what does each solve, what does it cost, and where is a step that the model "
    "chooses worth its price?"
)
METRIC = (
    "J: share solved minus share answered wrongly, minus 1/20 for a thousand tokens; exact but for rounding"
)
CONTRAST = "J of the hybrid (outer graph, inner free loop) minus J of the autonomous loop"
PREDICTED_SIGN = "+"
SEEDS = 5
BASELINE = None

CHOOSERS = {
    "chain": "code",
    "routing": "classifier",
    "parallel": "code",
    "tool_use": "model",
    "evaluator": "checker",
    "evaluator_blind": "checker",
    "orchestrator": "model",
    "autonomous": "model",
    "hybrid": "both",
}
"""Who chooses the next step (M14 §9). `evaluator_blind` checks without new information: right and wrong pass alike."""

BLIND_PASS = Fraction(3, 5)
FAMILY = 0.95
"""All intervals of the runs together hold with at least this probability; each gets its Bonferroni share."""

COUNTED = ("J", "solved", "calls", "tokens")
EXACT = ("solved", "wrong", "handed", "unfinished", "calls", "tokens")


@dataclass(frozen=True)
class Parameters:
    """Episodes of each graph for each seed, the chooser's error in them, and the errors of the exact curves."""

    episodes: int = 120
    error: str = "1/20"
    errors: tuple[str, ...] = ("0", "1/50", "1/20", "1/10", "1/5", "2/5")

    def __post_init__(self) -> None:
        """Refuse too few episodes and errors that are no probability."""
        if self.episodes < 2:
            raise StudyError(f"episodes is {self.episodes}; give 2 or more, such as 120")
        for error in (self.error, *self.errors):
            if not 0 <= Fraction(error) <= 1:
                raise StudyError(f"error {error} is not a probability; give one such as 1/20")


PRESETS = {
    "small": Parameters(),
    "full": Parameters(
        episodes=2000, errors=("0", "1/100", "1/50", "1/20", "1/10", "3/20", "1/5", "3/10", "2/5", "1/2")
    ),
}

_PAIR: dict[str, Any] = {"factor": 3.0, "digits": 4}
TABLES = (
    tables.Table(
        "harness_patterns",
        (
            tables.key("pattern", "pattern"),
            tables.exact("chooses", "chooses"),
            tables.interval("J", "$J$", **_PAIR),
            tables.estimate("J_run", "$J$ run", error="J_error"),
            tables.exact("solved", "solved", 4),
            tables.estimate("solved_run", "solved run", error="solved_error"),
            tables.exact("wrong", "wrong", 4),
            tables.exact("handed", "handed over", 4),
            tables.exact("unfinished", "unfinished", 4),
            tables.exact("calls", "calls", 4),
            tables.estimate("calls_run", "calls run", error="calls_error"),
            tables.exact("tokens", "tokens", 5),
            tables.estimate("tokens_run", "tokens run", error="tokens_error"),
            tables.exact("agree", "agree"),
            tables.exact("episodes", "episodes"),
        ),
        "Each harness pattern as a formal harness (exact) and as a LangGraph graph (run; standard errors in brackets), "
        "with one model of one competence; all meet the same requests, so that the runs err together. "
        "\\emph{agree}: of four intervals of the runs ($J$, solved, calls, tokens), "
        "how many hold the exact value; all intervals together hold with probability 0.95.",
    ),
    tables.Table(
        "pattern_cost",
        (
            tables.key("pattern", "pattern"),
            tables.exact("solved", "solved", 4),
            tables.exact("tokens", "tokens", 5),
            tables.exact("per_solved", "tokens per solved", 5),
            tables.exact("marginal", "tokens per further one", 5),
        ),
        "Score, harness and cost together: tokens a request, tokens for each solved request, and tokens for each "
        "further solved request against the chain (-- where no more are solved).",
    ),
    tables.Table(
        "chooser_error",
        (
            tables.key("pattern", "pattern"),
            tables.key("error", "error"),
            tables.interval("J", "$J$", **_PAIR),
        ),
        "Return against the probability that the model chooses another step than the sensible one. Patterns whose "
        "steps the code fixes do not depend on it.",
    ),
    tables.Table(
        "arc_agi",
        (
            tables.key("model", "model"),
            tables.key("benchmark", "benchmark"),
            tables.exact("baseline", "alone"),
            tables.exact("score_alone", "score"),
            tables.exact("cost_alone", "cost"),
            tables.exact("per_solved_alone", "per solved"),
            tables.exact("harness", "harness"),
            tables.exact("score_harness", "score in it"),
            tables.exact("cost_harness", "cost in it"),
            tables.exact("per_solved_harness", "per solved in it"),
            tables.exact("marginal", "per further one"),
            tables.exact("unit", "unit"),
        ),
        "Published scores (percent) of one model alone and in a harness, with the cost of a task, of a solved task and "
        "of each further solved task. Source: M14 §1; costs only where M14 prints them.",
    ),
)


def rates_of(name: str) -> Any:
    """The competence of a row: one for all, but for the check that brings nothing new."""
    from harnesses.desk.patterns.request import Competence

    return Competence(passes=BLIND_PASS, slips=BLIND_PASS) if name == "evaluator_blind" else Competence()


def pattern_of(name: str) -> str:
    """The pattern of a row."""
    return name.removesuffix("_blind")


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Every pattern; the dearest first."""
    common = {"episodes": parameters.episodes, "error": parameters.error, "errors": list(parameters.errors)}
    return [{"pattern": name, **common} for name in reversed(CHOOSERS)]


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """Sums over the episodes of one seed; with the first seed also the exact values."""
    from harnesses.desk.patterns.formal import PRICE, twin
    from harnesses.desk.patterns.runs import run_episodes

    name, error, rates = cell["pattern"], Fraction(cell["error"]), rates_of(cell["pattern"])
    assert seed is not None  # SEEDS is not 0
    episodes = run_episodes(pattern_of(name), seed, range(cell["episodes"]), rates, error=error)
    drawn = {
        "J": [episode.worth(PRICE) for episode in episodes],
        "solved": [float(episode.outcome == "solved") for episode in episodes],
        "calls": [float(episode.calls) for episode in episodes],
        "tokens": [float(episode.tokens) for episode in episodes],
    }
    sums: dict[str, Any] = {"part": "run"}
    for key, values in drawn.items():
        sums |= {f"{key}_sum": math.fsum(values), f"{key}_squares": math.fsum(v * v for v in values)}
    rows = [sums]
    if seed == 0:  # exact values are the same for every seed
        formal = twin(pattern_of(name), rates)
        found = formal.measures(error)
        ends = {"J_lower": found.J.lower, "J_upper": found.J.upper}
        rows.append({"part": "exact", **ends, **{key: getattr(found, key) for key in EXACT}})
        for text in cell["errors"]:
            J = formal.returned(Fraction(text))
            rows.append({"part": "curve", "curve_error": text, "J_lower": J.lower, "J_upper": J.upper})
    return Outcome(tuple(rows))


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The four tables, patterns in the order of M14."""
    import pandas as pd

    order = {name: place for place, name in enumerate(CHOOSERS)}
    runs = frame[frame["part"] != "curve"]
    level = 1.0 - (1.0 - FAMILY) / (len(COUNTED) * runs["pattern"].nunique())
    found = []
    for name, part in sorted(runs.groupby("pattern"), key=lambda pair: order[pair[0]]):
        found.append({"pattern": name, "chooses": CHOOSERS[str(name)], **pooled(part, level)})
    main = pd.DataFrame(found)
    curve = frame[frame["part"] == "curve"].drop(columns="error").rename(columns={"curve_error": "error"})
    curve = curve.assign(
        place=curve["pattern"].map(order), value=curve["error"].map(lambda text: float(Fraction(text)))
    ).sort_values(["place", "value"])
    made = {
        "harness_patterns": main,
        "pattern_cost": costs(main),
        "chooser_error": curve,
        "arc_agi": published(),
    }
    return {table.name: made[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def pooled(part: pd.DataFrame, level: float) -> dict[str, Any]:
    """Of one pattern: the exact values, means of the runs over all seeds with standard errors, and agreement.

    `agree` counts the measures whose exact value lies in the run's interval at `level`: Clopper-Pearson for the share
    solved, Student's t for the others. A measure that never varied must be equal.
    """
    from scipy import stats

    exact, part = part[part["part"] == "exact"].iloc[0], part[part["part"] == "run"]
    n = int(part["episodes"].sum())
    row: dict[str, Any] = {key: float(exact[key]) for key in ("J_lower", "J_upper", *EXACT)}
    row |= {"episodes": n, "agree": 0}
    for key in COUNTED:
        total, squares = math.fsum(part[f"{key}_sum"]), math.fsum(part[f"{key}_squares"])
        mean = total / n
        spread = max(0.0, squares / n - mean * mean)
        error = math.sqrt(spread / (n - 1)) if spread > 1e-9 * max(1.0, mean * mean) else 0.0
        row |= {f"{key}_run": mean, f"{key}_error": error}
        lower, upper = (row["J_lower"], row["J_upper"]) if key == "J" else (row[key], row[key])
        half = float(stats.t.isf((1.0 - level) / 2.0, n - 1)) * error + 1e-7 * max(1.0, abs(mean))
        low, high = mean - half, mean + half
        if key == "solved":
            share = clopper_pearson(round(total), n, level)
            low, high = share.lower or 0.0, 1.0 if share.upper is None else share.upper
        row["agree"] += int(low <= upper and lower <= high)
    return row


def costs(main: pd.DataFrame) -> pd.DataFrame:
    """Tokens for each solved request, and for each further one against the chain."""
    chain = main[main["pattern"] == "chain"].iloc[0] if (main["pattern"] == "chain").any() else None
    found = main[["pattern", "solved", "tokens"]].copy()
    found["per_solved"] = [
        arc_agi.cost_per_solved(tokens, 100.0 * solved)
        for tokens, solved in zip(found["tokens"], found["solved"], strict=True)
    ]
    found["marginal"] = [
        None
        if chain is None
        else arc_agi.marginal_cost(chain["tokens"], 100.0 * chain["solved"], tokens, 100.0 * solved)
        for tokens, solved in zip(found["tokens"], found["solved"], strict=True)
    ]
    return found.astype({"per_solved": float, "marginal": float})


def published() -> pd.DataFrame:
    """M14's table with the cost of a solved task and of a further one."""
    import pandas as pd

    rows = []
    for entry in arc_agi.ENTRIES:
        pair = (entry.cost_alone, entry.score_alone, entry.cost_harness, entry.score_harness)
        rows.append(
            {
                "per_solved_alone": arc_agi.cost_per_solved(*pair[:2]),
                "per_solved_harness": arc_agi.cost_per_solved(*pair[2:]),
                "marginal": arc_agi.marginal_cost(*pair),
                **{name: getattr(entry, name) for name in TABLES[3].stored if hasattr(entry, name)},
            }
        )
    numbers = ["cost_alone", "cost_harness", "per_solved_alone", "per_solved_harness", "marginal"]
    return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The contrast with its predicted sign, what came first, how well graphs and formal harnesses agree, and M14's."""
    main = frames["harness_patterns"].set_index("pattern")
    J = (main["J_lower"] + main["J_upper"]) / 2
    low = main.loc["hybrid", "J_lower"] - main.loc["autonomous", "J_upper"]
    curve = frames["chooser_error"].assign(
        value=lambda f: f["error"].map(lambda text: float(Fraction(text))), J=lambda f: f["J_lower"]
    )
    best = [
        f"{part.loc[part['J'].idxmax(), 'pattern']} at {error:g}" for error, part in curve.groupby("value")
    ]
    row = frames["arc_agi"].set_index("model").loc["Gemini 3 Pro"]
    return (
        f"{CONTRAST}: {low:+.3f} (predicted sign {PREDICTED_SIGN}); J is highest for {J.idxmax()} ({J.max():.3f}) and "
        f"lowest for {J.idxmin()} ({J.min():.3f}). Of {len(COUNTED) * len(main)} intervals of the running graphs "
        f"{int(main['agree'].sum())} hold the exact value. Best pattern by the chooser's error: {', '.join(best)}. "
        f"M14's Gemini row: {row['per_solved_alone']:.2f} {row['unit']} per solved task alone, "
        f"{row['per_solved_harness']:.2f} in the harness, {row['marginal']:.0f} for each further one."
    )


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Share solved against tokens, exact and run; J against the chooser's error; published scores, two by two."""
    from experiments.harness_patterns_figure import draw

    return draw(frames, width)
