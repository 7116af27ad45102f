"""Tables of the study commitment: their columns, how they come from the rows, what they say; imports tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import tables

if TYPE_CHECKING:
    import pandas as pd

PREDICTED_SIGN = "+"
LEVEL = 1e-4
"""Differences of returns below this share of the largest possible one are ties; then the longer plan is the best."""
NAMED = "named"
PRICES = ("none", "low", "high")
STILL, CHANGED = 0.0, 0.1

# A slower machine searches less far in its time: valid but wider intervals.
_WIDER: Any = {"factor": 3.0, "slack": 0.02, "unit": "largest"}
TABLES = (
    tables.Table(
        "best_plan",
        (
            tables.key("task", "task"),
            tables.key("rate", r"$\rho$"),
            tables.interval("every", "$V_1$", **_WIDER),
            tables.interval("never", "$V_n = W$", **_WIDER),
            tables.exact("horizon", "$n$"),
            tables.exact("best_none", "$k^*$ free"),
            tables.exact("best_low", "$k^*$ low"),
            tables.exact("best_high", "$k^*$ high"),
            tables.interval("gain", "gain of $k^*$", **_WIDER),
            tables.interval("named", "gain of named", **_WIDER),
            tables.exact("largest", "largest"),
        ),
        r"Best length $k^*$ of the plans where the task changes with probability $\rho$ a step: decisions free, at the "
        "low and at the high price; of equally good lengths the longest. $V_1 = V^*$ decides at every step, $V_n = W$ "
        "never again. At the low price: what $k^*$ earns more than re-deciding at every step, and what plans that end "
        "early at the named results earn more than the better of every step and $k^*$.",
    ),
    tables.Table(
        "committed_values",
        (
            tables.key("task", "task"),
            tables.key("rate", r"$\rho$"),
            tables.key("level", "price"),
            tables.key("rule", "plan of"),
            tables.exact("price", "$c$"),
            tables.interval("J", "$V_k - c\\,E$[decisions]", **_WIDER),
            # Belongs to the controller found, one of several equally good ones.
            tables.ignore("decisions", "$E$[decisions]", digits=4),
            tables.exact("best", "best"),
            tables.exact("largest", "largest"),
            tables.ignore("seconds", "s"),
        ),
        "Best return of plans of $k$ steps less the price of their decisions, certified; `named' is a plan for the "
        "whole run that ends early at the named results.",
    ),
    tables.Table(
        "committed_runs",
        (
            tables.key("task", "task"),
            tables.key("rate", r"$\rho$"),
            tables.key("k", "$k$"),
            tables.exact("J", "$J$ exact"),
            tables.estimate("earned", "$J$ run", error="earned_se"),
            tables.exact("decisions", "$E$[decisions]"),
            tables.estimate("replies", "replies run", error="replies_se"),
            tables.ignore("z", "$z$"),
            tables.exact("episodes", "runs"),
            tables.ignore("seconds", "s"),
        ),
        "The same plans kept by the running harness: a reply makes $k$ calls, and the model is asked again after the "
        "last. Means with standard errors beside the exact values; $z$ is their difference in standard errors. On "
        "tiger a wrong door costs 100 and is rare: runs that met few have too small an error.",
    ),
    tables.Table(
        "short_contexts",
        (
            tables.key("task", "task"),
            tables.key("rate", r"$\rho$"),
            tables.key("window", "pairs shown"),
            tables.key("rule", "plan of"),
            tables.interval("Vo", "$V_o$", **_WIDER),
            tables.exact("best", "best"),
            tables.exact("contexts", "contexts"),
            tables.exact("largest", "largest"),
            tables.ignore("seconds", "s"),
        ),
        "Plans as memory: best return of a model that is shown the step number and the last pairs at each decision, "
        "and then follows its plan; decisions are free. `Named' as before.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The four tables in order; runs of several seeds are pooled."""
    import pandas as pd

    frame = frame.assign(task=frame["task"].map(_shown), rate=frame["rate"].map(_number))
    frame = frame.assign(rule=[NAMED if named else str(k) for k, named in zip(frame["k"], frame["named"])])
    parts = dict(iter(frame.groupby("part")))
    values = parts["value"].assign(level=parts["value"]["level"].astype(int).map(lambda i: PRICES[i]))
    values = _with_best(values, ["task", "rate", "level"], "J")
    values = values.assign(order=values["level"].map(PRICES.index)).sort_values(
        ["task", "rate", "order", "rule"]
    )
    short = parts.get("short", pd.DataFrame(columns=[*frame.columns, "window"]))
    short = _with_best(short.assign(window=short["window"].astype(int)), ["task", "rate", "window"], "Vo")
    found = {
        "best_plan": _best_plans(values),
        "committed_values": values,
        "committed_runs": _pooled(parts["running"]),
        "short_contexts": short.sort_values(["task", "rate", "window", "rule"]),
    }
    return {table.name: found[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def _shown(task: str) -> str:
    return {"tmaze:4": "T-maze", "flip:3": "flip", "repo_repair:2:2": "repo repair"}.get(task, task)


def _number(rate: str) -> float:
    from fractions import Fraction

    return float(Fraction(rate))


def _with_best(rows: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """`best` is 1 at the plan length that is best, the longest of equally good ones; never at `named`."""
    best = []
    for _, part in rows[rows["rule"] != NAMED].groupby(keys):
        middle = (part[f"{name}_lower"] + part[f"{name}_upper"]) / 2
        good = part[middle >= middle.max() - LEVEL * part["largest"].iloc[0]]
        best.append(good["k"].idxmax())
    return rows.assign(best=rows.index.isin(best).astype(int))


def _best_plans(values: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (task, rate), part in values.groupby(["task", "rate"]):
        of = {level: group.set_index("rule") for level, group in part.groupby("level")}
        best = {level: group[group["best"] == 1].iloc[0] for level, group in of.items()}
        free, low, horizon = of["none"], of["low"], int(part.loc[part["rule"] != NAMED, "k"].max())
        row = {"task": task, "rate": rate, "horizon": horizon, "largest": part["largest"].iloc[0]}
        row |= {f"best_{level}": int(best[level]["k"]) for level in PRICES}
        for name, one in (("every", free.loc["1"]), ("never", free.loc[str(horizon)])):
            row |= {f"{name}_{end}": one[f"J_{end}"] for end in ("lower", "upper")}
        row |= _difference("gain", best["low"], low.loc["1"])
        if NAMED in low.index:
            row |= _difference("named", low.loc[NAMED], best["low"])
        else:
            row |= {"named_lower": float("nan"), "named_upper": float("nan")}
        rows.append(row)
    return pd.DataFrame(rows)


def _difference(name: str, first: pd.Series, second: pd.Series) -> dict[str, float]:
    """First minus second, exactly 0 where they are the same plan."""
    if first["rule"] == second["rule"] if "rule" in first else first.name == second.name:
        return {f"{name}_lower": 0.0, f"{name}_upper": 0.0}
    return {
        f"{name}_lower": first["J_lower"] - second["J_upper"],
        f"{name}_upper": first["J_upper"] - second["J_lower"],
    }


def _pooled(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a plan: means over all runs of all seeds, and the distance from the exact value in standard errors."""
    import pandas as pd

    rows = []
    for keys, part in runs.groupby(["task", "rate", "k"]):
        row = dict(zip(("task", "rate", "k"), keys)) | {
            name: part[name].iloc[0] for name in ("J", "decisions")
        }
        for name in ("earned", "replies"):
            row[name] = part[name].mean()
            row[f"{name}_se"] = float((part[f"{name}_se"] ** 2).sum()) ** 0.5 / len(part)
        row |= {"episodes": int(part["episodes"].sum()), "seconds": part["seconds"].sum()}
        row["z"] = (row["earned"] - row["J"]) / row["earned_se"] if row["earned_se"] > 0 else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The contrast with the predicted sign, where plans lose nothing, the runs, and plans as memory."""
    best = frames["best_plan"].set_index(["task", "rate"])
    found = []
    for task in sorted({task for task, _ in best.index}):
        still, changed = (int(best.loc[(task, rate), "best_low"]) for rate in (STILL, CHANGED))
        found.append((task, still, changed))
    signs = {
        sign: sum((a > b) - (a < b) == value for _, a, b in found)
        for sign, value in (("+", 1), ("0", 0), ("-", -1))
    }
    told = ", ".join(f"{task} {a} to {b}" for task, a, b in found)
    runs = frames["committed_runs"]
    far = runs["z"].abs()
    wrong = int((runs["earned_se"].eq(0) & (runs["earned"] - runs["J"]).abs().gt(1e-9)).sum())
    return (
        f"From the still task to one that changes at rate 1/10 the best plan length falls in {signs['+']} of "
        f"{len(found)} tasks (predicted sign {PREDICTED_SIGN}), stays in {signs['0']} and rises in {signs['-']}: "
        f"{told}. Runs: {int((far > 2).sum())} of {int(far.notna().sum())} means lie more than 2 standard errors from "
        f"the exact value (about {0.0455 * far.notna().sum():.1f} expected), the farthest {far.max():.1f}; {wrong} of "
        f"{int(far.isna().sum())} without variance differ. {_memory(frames['short_contexts'])}"
    )


def _memory(short: pd.DataFrame) -> str:
    """In how many short contexts a plan beats re-deciding for certain."""
    longer, named, total = 0, 0, 0
    for _, part in short.groupby(["task", "rate", "window"]):
        rows = part.set_index("rule")
        total += 1
        margin = LEVEL * rows["largest"].iloc[0]
        again = rows.loc["1", "Vo_upper"] + margin
        longer += bool((rows.drop(index=[NAMED, "1"], errors="ignore")["Vo_lower"] > again).any())
        named += NAMED in rows.index and bool(rows.loc[NAMED, "Vo_lower"] > again)
    return (
        "With short contexts, where a plan is memory, some plan of k > 1 steps beats re-deciding for certain in "
        f"{longer} of {total} cases, and a plan kept until a named result in {named}."
    )
