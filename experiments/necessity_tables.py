"""Tables of the study of the four elements: their columns, how they come from the rows, what they say; imports tables.

A property is a measure of a run; it is lost where removing the element changes it for the worse for certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from experiments import tables

if TYPE_CHECKING:
    import pandas as pd

PREDICTED_SIGN = "+"
INTACT = "intact"
ELEMENTS = ("loop", "tools", "context", "control")
PROPERTIES = {
    "loop": ("iteration: replies", "replies", -1),
    "tools": ("effect: executed calls", "executed", -1),
    "context": ("bounded context: overflow", "overflow", 1),
    "limits": ("termination: run to the cap", "cap", 1),
    "permissions": ("safe action: forbidden calls", "forbidden", 1),
    "errors": ("recovery: ended by one failure", "fatal", 1),
}
"""By what is removed: the property, its measure, and the direction in which it is lost."""
NAMES = {"tmaze:2:0.9": "T-maze", "repo_repair:2:2": "repo repair", "ticket_routing": "ticket routing"}
CERTAIN = 1e-9

_MEASURES = ("return", "executed", "forbidden", "replies", "overflow", "cap", "fatal")
_KEYS = (tables.key("task", "task"), tables.key("error", "error rate"))
TABLES = (
    tables.Table(
        "lost_property",
        (
            tables.key("removed", "removed"),
            *_KEYS,
            tables.exact("property", "property, a run"),
            tables.exact("intact_exact", "intact, exact"),
            tables.estimate("intact", "run", error="intact_se", digits=3),
            tables.exact("without_exact", "without, exact"),
            tables.estimate("without", "run", error="without_se", digits=3),
        ),
        "The property that M1 \\S 1.1.3 says is lost with each element, in the intact harness and without it: exact "
        "values of the formal harness, and means of runs of the minimal harness with standard errors. The last three "
        "are the parts of control.",
    ),
    tables.Table(
        "lost_return",
        (
            tables.key("removed", "removed"),
            *_KEYS,
            tables.exact("intact_exact", "$J$ intact"),
            tables.exact("without_exact", "$J$ without"),
            tables.exact("lost_exact", "lost"),
            tables.estimate("lost", "run", error="lost_se", digits=3),
            tables.exact("largest", "largest"),
            tables.exact("changed", "changed"),
        ),
        "Return lost with each element: $J$ in the intact harness minus $J$ without it, of the same model; runs are "
        "paired by their draws. `largest' is the largest reward or cost of one step, `changed' the share of runs that "
        "went differently: where it is 0 the removal was not applied, which is not the same as no effect.",
    ),
    tables.Table(
        "necessity_runs",
        (
            *_KEYS,
            tables.key("arm", "without"),
            *(
                column
                for name in _MEASURES
                for column in (
                    tables.exact(f"{name}_exact", f"{name}, exact"),
                    tables.estimate(name, "run", error=f"{name}_se", digits=3),
                )
            ),
            tables.ignore("z", "largest $|z|$"),
            tables.exact("runs", "runs", digits=6),
        ),
        "All measures of all arms a run: return, executed and forbidden calls, replies of the model, and the shares of "
        "runs that a full window, the experiment's cap or a single failing step ended; $z$ is the largest difference "
        "of a run mean from its exact value in standard errors, which say too little where a rare large loss, such as "
        "tiger's wrong door, was met by no run.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The three tables in order; runs of several seeds are pooled."""
    runs = _pooled(
        frame.assign(
            task=frame["task"].map(lambda name: NAMES.get(name, name)),
            error=frame["error"].map(lambda text: float(Fraction(text))),
        )
    )
    intact = runs[runs["arm"] == INTACT].set_index(["task", "error"])
    found = {
        "lost_property": _properties(runs, intact),
        "lost_return": _returns(runs, intact),
        "necessity_runs": runs,
    }
    return {table.name: found[table.name][table.stored].reset_index(drop=True) for table in TABLES}


def _pooled(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for keys, part in frame.groupby(["task", "error", "arm"], sort=True):
        row = part.iloc[0].to_dict() | dict(zip(("task", "error", "arm"), keys))
        far = []
        for name in (*_MEASURES, "lost"):
            row[name] = part[name].mean()
            row[f"{name}_se"] = float((part[f"{name}_se"] ** 2).sum()) ** 0.5 / len(part)
            if row[f"{name}_se"] > 0:
                far.append(abs(row[name] - row[f"{name}_exact"]) / row[f"{name}_se"])
        row |= {
            "z": max(far, default=0.0),
            "runs": int(part["runs"].sum()),
            "changed": part["changed"].mean(),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _properties(runs: pd.DataFrame, intact: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for removed, (text, measure, _) in PROPERTIES.items():
        for row in runs[runs["arm"] == removed].to_dict("records"):
            whole = intact.loc[(row["task"], row["error"])]
            made = {"removed": removed, "task": row["task"], "error": row["error"], "property": text}
            for name, source in (("intact", whole), ("without", row)):
                made |= {f"{name}{end}": source[f"{measure}{end}"] for end in ("_exact", "", "_se")}
            rows.append(made)
    return pd.DataFrame(rows)


def _returns(runs: pd.DataFrame, intact: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for removed in (*ELEMENTS, *list(PROPERTIES)[-3:]):
        for row in runs[runs["arm"] == removed].to_dict("records"):
            whole = intact.loc[(row["task"], row["error"])]
            ends = {"intact_exact": whole["return_exact"], "without_exact": row["return_exact"]}
            rows.append({**row, **ends, "removed": removed})
    return pd.DataFrame(rows)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """Where each property is lost, the sign of what each element is worth, and how the runs agree."""
    lost = []
    for removed, part in frames["lost_property"].groupby("removed", sort=False):
        text, _, sign = PROPERTIES[str(removed)]
        worse = sign * (part["without_exact"] - part["intact_exact"]) > CERTAIN
        lost.append(f"{text.partition(':')[0]} without {removed} in {int(worse.sum())} of {len(part)}")
    signs = []
    for removed, part in frames["lost_return"].groupby("removed", sort=False):
        plus, minus = int((part["lost_exact"] > CERTAIN).sum()), int((part["lost_exact"] < -CERTAIN).sum())
        signs.append(f"{removed} + {plus}, - {minus}, 0 {len(part) - plus - minus}")
    runs = frames["necessity_runs"]
    worst = runs.loc[runs["z"].idxmax()]
    far, count = 0, 0
    for name in _MEASURES:
        shown = runs[runs[f"{name}_se"] > 0]
        count += len(shown)
        far += int(((shown[name] - shown[f"{name}_exact"]).abs() > 2 * shown[f"{name}_se"]).sum())
    return (
        f"Lost, of the pairs of task and error rate: {'; '.join(lost)}. J intact minus J without (predicted sign "
        f"{PREDICTED_SIGN}): {'; '.join(signs)}. {far} of {count} run means lie more than 2 standard errors from "
        f"their exact values, the farthest {worst['z']:.1f} ({worst['task']} without {worst['arm']}; an error says too "
        "little where a rare large loss was met by no run); the arms of one task and rate share their draws."
    )
