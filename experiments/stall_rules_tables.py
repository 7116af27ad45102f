"""Tables of the study of loop detectors: columns, how they come from the rows, what they say; imports tables."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from experiments import tables

if TYPE_CHECKING:
    import pandas as pd

PREDICTED_SIGN = "+"
FIRST = 3
CERTAIN = 1e-9
RULES = ("none", "terminate", "escalate", "total", "growth")
MEASURES = ("success", "premature", "stalled", "waste", "calls")
HEADINGS = {
    "success": "success",
    "premature": "premature",
    "stalled": "ended by it",
    "waste": "wasted",
    "calls": "calls",
}

_KEYS = (tables.key("task", "task"), tables.key("model", "model"), tables.key("stuck", "$g$"))
_RULE = (tables.key("rule", "rule"), tables.key("first", "first warning"))
_WHAT = (
    "$g$ is the chance that a working model gets stuck at a step. Terminate, total and growth end a run at the count "
    "after the first warning; escalate warns twice and ends it at the third count after. "
)
TABLES = (
    tables.Table(
        "stall_contrast",
        (
            *_KEYS,
            *(tables.exact(f"{rule}_premature", f"{rule}: premature") for rule in RULES[1:]),
            *(tables.exact(f"{rule}_waste", f"{rule}: wasted") for rule in RULES),
            *(tables.exact(f"{rule}_success", f"{rule}: success") for rule in RULES),
            tables.exact("best", "highest success"),
        ),
        "Loop detectors with the first warning at the third count, exact: the chance that a run is ended that would "
        "have succeeded after the same warnings, calls wasted on what is done, and the chance of success in the "
        "budget. " + _WHAT,
    ),
    tables.Table(
        "stall_tradeoff",
        (*_KEYS, *_RULE, *(tables.exact(name, HEADINGS[name]) for name in MEASURES)),
        "Every rule against the count of its first warning, exact. " + _WHAT,
    ),
    tables.Table(
        "stall_runs",
        (
            *_KEYS,
            tables.key("rule", "rule"),
            *(
                column
                for name in MEASURES
                for column in (
                    tables.exact(name, f"{HEADINGS[name]}, exact"),
                    tables.estimate(f"{name}_run", "run", error=f"{name}_se", digits=3),
                )
            ),
            tables.exact("apart", "constructor"),
            tables.ignore("z", "largest $|z|$"),
            tables.exact("runs", "runs", digits=6),
        ),
        "The same rules, first warning at the third count, in the running harness: means with standard errors beside "
        "the exact values. `constructor' is the largest difference of success, waste and calls from the formal "
        "constructor \\texttt{stall}, where it applies, in $10^{-9}$; $z$ the largest difference of a mean from its "
        "exact value in standard errors.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The three tables in order; runs of several seeds are pooled."""
    import pandas as pd

    frame = frame.assign(
        stuck=frame["stuck"].map(lambda text: float(Fraction(text))),
        rule=pd.Categorical(frame["rule"], RULES, ordered=True),
    )
    keys = ["task", "model", "stuck", "rule", "first"]
    frame = frame.sort_values([*keys, "seed"]).astype({"rule": str})
    every = frame.drop_duplicates(keys)
    found = {
        "stall_contrast": _contrast(every[every["first"] == FIRST]),
        "stall_tradeoff": every,
        "stall_runs": _pooled(frame[frame["runs"] > 0]),
    }
    return {table.name: found[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def _contrast(part: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for keys, cell in part.groupby(["task", "model", "stuck"]):
        by_rule = cell.set_index("rule")
        row = dict(zip(("task", "model", "stuck"), keys))
        for name in RULES:
            row |= {
                f"{name}_{measure}": by_rule.loc[name, measure]
                for measure in ("premature", "waste", "success")
            }
        most = max(row[f"{name}_success"] for name in RULES)
        row["best"] = ", ".join(name for name in RULES if row[f"{name}_success"] >= most - CERTAIN)
        rows.append(row)
    return pd.DataFrame(rows)


def _pooled(runs: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for _, part in runs.groupby(["task", "model", "stuck", "rule"], sort=False):
        row, far = part.iloc[0].to_dict(), []
        for name in MEASURES:
            row[f"{name}_run"] = part[f"{name}_run"].mean()
            row[f"{name}_se"] = float((part[f"{name}_se"] ** 2).sum()) ** 0.5 / len(part)
            if row[f"{name}_se"] > 0:
                far.append(abs(row[f"{name}_run"] - row[name]) / row[f"{name}_se"])
        apart = [abs(row[f"{name}_formal"] - row[name]) for name in ("success", "waste", "calls")]
        # What rounding leaves is no number that another machine would find again.
        row["apart"] = round(max(apart) * 1e9, 0) + 0.0 if apart[0] == apart[0] else float("nan")
        rows.append(row | {"z": max(far, default=0.0), "runs": int(part["runs"].sum())})
    return pd.DataFrame(rows)


def _signs(difference: pd.Series) -> str:
    plus, minus = int((difference > CERTAIN).sum()), int((difference < -CERTAIN).sum())
    return f"+ {plus}, - {minus}, 0 {len(difference) - plus - minus}"


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """The contrast with its price, the two other predictions, the best rules, and the runs."""
    cells, runs = frames["stall_contrast"], frames["stall_runs"]
    spared = cells["terminate_premature"] - cells["escalate_premature"]
    price = cells["escalate_waste"] - cells["terminate_waste"]
    between = cells[cells["task"] == "tests between"]
    circling = cells[cells["model"] == "circling"]
    saved = {
        name: (circling["none_waste"] - circling[f"{name}_waste"]).sum() / circling["none_waste"].sum()
        for name in RULES[1:]
    }
    firsts = [name for names in cells["best"] for name in names.split(", ")]
    best = {name: firsts.count(name) for name in RULES}
    far = count = 0
    for name in MEASURES:
        shown = runs[runs[f"{name}_se"] > 0]
        count += len(shown)
        far += int(((shown[f"{name}_run"] - shown[name]).abs() > 2 * shown[f"{name}_se"]).sum())
    return (
        f"Premature ends under terminate minus escalate (predicted sign {PREDICTED_SIGN}), of {len(cells)} cells: "
        f"{_signs(spared)}, {spared.mean():.3f} a run on average; wasted calls under escalate minus terminate "
        f"(predicted sign +): {_signs(price)}, {price.mean():.2f} a run. Tests between edits succeed under total in "
        f"{between['total_success'].max():.3f} of runs at most, under terminate in "
        f"{between['terminate_success'].min():.3f} or more. Of what a circling model wastes, "
        f"{', '.join(f'{name} saves {share:.0%}' for name, share in saved.items())}. Highest success: "
        f"{', '.join(f'{name} {times}' for name, times in best.items())} of {len(cells)}. {far} of {count} run means "
        f"lie more than 2 standard errors from their exact values, the farthest {runs['z'].max():.1f}; the rules of "
        f"one cell share their draws."
    )
