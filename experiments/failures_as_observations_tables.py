"""Tables of the study failures_as_observations: columns, how they come from the rows, what they say; imports tables."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from experiments import tables

if TYPE_CHECKING:
    import pandas as pd

PREDICTED_SIGN = "+"
AT = 0.2
"""The failure rate of the contrast."""
CERTAIN = 1e-4
"""Differences below this share of the largest possible one are ties."""
HIDDEN = ("blank", "stale")
NAMES = {"tmaze:2:0.9": "T-maze", "flip:2": "flip", "repo_repair:2:2": "repo repair"}

# A slower machine searches less far for the best policy in its time: valid but wider intervals.
_WIDER: Any = {"factor": 3.0, "slack": 0.05, "unit": "largest"}
TABLES = (
    tables.Table(
        "worth_of_seeing",
        (
            tables.key("task", "task"),
            tables.key("failure", "failure"),
            tables.key("model", "model"),
            tables.interval("none", "no failures", **_WIDER),
            tables.interval("visible", "shown", **_WIDER),
            tables.interval("blank", "shown $-$ blank", **_WIDER),
            tables.interval("stale", "shown $-$ stale", **_WIDER),
            tables.exact("largest", "largest"),
        ),
        "What it is worth to show a model that a call failed, at failure rate 1/5: return without failures, return "
        "where they are shown, and how much more that is than where a fixed or the newest true result of the tool "
        "stands in their place. Half of the calls that time out have acted. Of the best reader of the context the "
        "return lies between that of the policy found and a bound; `history' is the best reader of all that was shown.",
    ),
    tables.Table(
        "failure_returns",
        (
            tables.key("task", "task"),
            tables.key("failure", "failure"),
            tables.key("shown", "shown as"),
            tables.key("model", "model"),
            tables.key("rate", "$p$"),
            tables.interval("J", "$J$", **_WIDER),
            tables.exact("contexts", "contexts"),
            tables.exact("largest", "largest"),
            tables.ignore("seconds", "s"),
        ),
        "Return against the failure rate $p$, for each way to show a failure and each model; `history' is the best "
        "reader of the whole history, for whom a hidden failure can only be worse than a shown one.",
    ),
    tables.Table(
        "failure_runs",
        (
            tables.key("task", "task"),
            tables.key("failure", "failure"),
            tables.key("shown", "shown as"),
            tables.key("model", "model"),
            tables.key("rate", "$p$"),
            # Of the best policy found, which is another one where the search had less time.
            tables.ignore("J", "$J$ exact", digits=5),
            tables.estimate("earned", "$J$ run", error="earned_se"),
            tables.ignore("z", "$z$"),
            tables.ignore("failed", "failed calls", digits=6),
            tables.exact("episodes", "runs"),
        ),
        "The same policies in the running harness, which appends a failed call to the history as it is, or puts a "
        "result in its place: means with standard errors beside the exact values; $z$ is their difference in "
        "standard errors. On tiger a wrong door costs 100 and is rare: runs that met few have too small an error.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The three tables in order; runs of several seeds are pooled."""
    frame = frame.assign(
        task=frame["task"].map(lambda name: NAMES.get(name, name)),
        rate=frame["rate"].map(lambda text: float(Fraction(text))),
    )
    keys = ["task", "failure", "shown", "model", "rate"]
    frame = frame.sort_values([*keys, "seed"])
    returns = frame.drop_duplicates(keys)
    found = {
        "worth_of_seeing": _worth(returns),
        "failure_returns": returns,
        "failure_runs": _pooled(frame[frame["episodes_run"] > 0], keys),
    }
    return {table.name: found[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def _worth(returns: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for keys, part in returns.groupby(["task", "failure", "model"]):
        shown = part[part["shown"] == "visible"].set_index("rate")
        seen = shown.loc[AT]
        row = dict(zip(("task", "failure", "model"), keys)) | {"largest": seen["largest"]}
        for name, one in (("none", shown.loc[0.0]), ("visible", seen)):
            row |= {f"{name}_{end}": one[f"J_{end}"] for end in ("lower", "upper")}
        for way in HIDDEN:
            hidden = part[(part["shown"] == way) & (part["rate"] == AT)].iloc[0]
            row |= {
                f"{way}_lower": seen["J_lower"] - hidden["J_upper"],
                f"{way}_upper": seen["J_upper"] - hidden["J_lower"],
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _pooled(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Means over all runs of all seeds, and their distance from the exact value in standard errors."""
    import pandas as pd

    rows = []
    for values, part in runs.groupby(keys):
        row = dict(zip(keys, values)) | {"J": part["J"].iloc[0], "earned": part["earned"].mean()}
        row["earned_se"] = float((part["earned_se"] ** 2).sum()) ** 0.5 / len(part)
        row |= {"failed": int(part["failed"].sum()), "episodes": int(part["episodes_run"].sum())}
        row["z"] = (row["earned"] - row["J"]) / row["earned_se"] if row["earned_se"] > 0 else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def signs(worth: pd.DataFrame, way: str) -> dict[str, int]:
    """How often showing is certainly better than hiding in this `way`, certainly worse, or neither."""
    margin = CERTAIN * worth["largest"]
    better, worse = worth[f"{way}_lower"] > margin, worth[f"{way}_upper"] < -margin
    return {"+": int(better.sum()), "-": int(worse.sum()), "0": int((~better & ~worse).sum())}


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The contrast with its sign for each model, the same for stale results, and the runs."""
    worth, runs = frames["worth_of_seeing"], frames["failure_runs"]
    told = []
    for way in HIDDEN:
        parts = []
        for model, part in worth.groupby("model"):
            found = signs(part, way)
            parts.append(f"{model} + {found['+']}, - {found['-']}, undecided or equal {found['0']}")
        told.append(f"{way}: {'; '.join(parts)}")
    far = runs["z"].abs()
    wrong = int((runs["earned_se"].eq(0) & (runs["earned"] - runs["J"]).abs().gt(1e-9)).sum())
    return (
        f"J with failures shown minus J with them hidden at rate 1/5 (predicted sign {PREDICTED_SIGN}), of "
        f"{len(worth) // max(1, worth['model'].nunique())} tasks and kinds of failure each. "
        f"{'. '.join(told)}. Runs: {int((far > 2).sum())} of {int(far.notna().sum())} means lie more than 2 standard "
        f"errors from the exact value (about {0.0455 * far.notna().sum():.1f} expected), the farthest "
        f"{far.max():.1f}; {wrong} of {int(far.isna().sum())} without variance differ."
    )
