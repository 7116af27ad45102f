"""Tables of the study of lossy contexts: their columns, how they come from the rows, what they say; imports tables.

Every share is of the value of feedback V_f of the task, to six digits: at 1 the context is worth no more than a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from experiments import tables

if TYPE_CHECKING:
    import pandas as pd

WINDOW, STEPPED, BUDGET, GRID = "last", "counter:last", "oldest_first", "belief_grid"
# What these show are messages of the run; the others show something that the harness computed from them.
MESSAGES = (WINDOW, STEPPED, BUDGET, "pin", "retrieve", "scratchpad")
# Loss this small, as a share of V_f, is none.
TOLERANCE = 1e-3
PREDICTED_SIGN = "+"

# A slower machine searches less far in its time: valid but wider intervals.
_WIDER: Any = {"factor": 3.0, "slack": 0.1, "unit": "V_f"}
TABLES = (
    tables.Table(
        "lossy_context",
        (
            tables.key("task", "task"),
            tables.key("family", "family"),
            tables.key("map", "map"),
            tables.exact("size", "size"),
            tables.exact("contexts", "contexts"),
            tables.exact("tokens", "tokens"),
            tables.interval("Vo", "$V_o$", **_WIDER),
            tables.interval("loss", "loss", **_WIDER),
            tables.interval("share", "loss/$V_f$", factor=3.0, slack=0.1),
            tables.exact("bayes", "$J$ Bayes"),
            tables.exact("naive", "$J$ naive"),
            tables.exact("bits", "$I(b;c)$", digits=4),
            tables.exact("bits_history", "$I(b;h)$", digits=4),
            tables.exact("sufficient", "sufficient"),
            tables.exact("kind", "kind"),
            tables.ignore("failure", "failure"),
            tables.exact("V_f", "$V_f$"),
            tables.ignore("seconds", "s"),
        ),
        "Context maps: contexts, tokens of the largest, best stateless value $V_o$ (the return of the model that "
        "is optimal for the map), loss $V^*(M_0) - V_o$ and its share of the value of feedback; returns of the "
        "Bayes reader and of the naive reader; bits a step while all actions are equally likely; failure, the "
        "chance that a run of the best policy found never earns the task's largest reward.",
    ),
    tables.Table(
        "saturation",
        (
            tables.key("task", "task"),
            tables.key("family", "family"),
            tables.exact("size", "saturates at"),
            tables.exact("tokens", "tokens"),
            tables.interval("share", "loss/$V_f$", factor=3.0, slack=0.1),
            tables.exact("before", "one earlier"),
            tables.interval("share_before", "loss/$V_f$ one earlier", factor=3.0, slack=0.1),
            tables.exact("falls", "falls"),
            tables.exact("largest", "largest tried"),
            tables.exact("verdict", "reading"),
        ),
        "Where the curve saturates: the smallest window or budget from which on the loss is that of the largest "
        "one tried, and at how many sizes the curve falls: once is a cliff. From there on a larger one buys nothing; "
        "where the last one tried still helped and some loss is left, more would have to be tried.",
    ),
    tables.Table(
        "best_map",
        (
            tables.key("task", "task"),
            tables.key("among", "among"),
            tables.key("tokens", "tokens"),
            tables.exact("map", "map"),
            tables.exact("contexts", "contexts"),
            tables.interval("share", "loss/$V_f$", factor=3.0, slack=0.1),
        ),
        "Best map per budget: no map tried has both fewer tokens in its largest context and a smaller proven "
        "loss. `Messages' are maps that show messages of the run, `all' also what a harness computes from them.",
    ),
    tables.Table(
        "frontier",
        (
            tables.key("task", "task"),
            tables.key("contexts", "contexts"),
            tables.interval("share", "loss/$V_f$", factor=3.0, slack=0.1),
        ),
        "Loss against number of contexts: the smallest sufficient map, its contexts merged one pair at a time, each "
        "time the pair that costs least (greedy: other maps of as many contexts may lose less).",
    ),
    tables.Table(
        "grids",
        (
            tables.key("task", "task"),
            tables.key("size", "resolution"),
            tables.exact("contexts", "contexts"),
            tables.interval("Vo", "$V_o$", factor=3.0, slack=0.1),
        ),
        "Belief grids with the step number in the context, by resolution: a finer grid is not always better.",
    ),
)


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All maps, where curves saturate, the best map per budget, and the frontier."""
    edge = frame[frame["part"] == "frontier"]
    worth = edge.groupby("task")["V_f"].first()
    frame = frame.assign(V_f=frame["task"].map(worth).round(9))
    for end in ("lower", "upper"):
        frame[f"share_{end}"] = frame[f"loss_{end}"] / frame["V_f"]
    maps, edge = frame[frame["part"] == "map"], frame[frame["part"] == "frontier"]
    maps = maps.sort_values(["task", "family", "size", "map"])
    grids = frame[frame["part"] == "grid"].astype({"contexts": int}).sort_values(["task", "size"])
    parts = (maps, saturation(maps), best_map(maps), edge.sort_values(["task", "contexts"]), grids)
    return {
        table.name: part[table.stored].reset_index(drop=True)
        for table, part in zip(TABLES, parts, strict=True)
    }


def saturation(maps: pd.DataFrame) -> pd.DataFrame:
    """Per task and family of sizes, the smallest size from which on the proven loss is that of the largest."""
    import pandas as pd

    rows = []
    for (task, family), part in maps.groupby(["task", "family"]):
        if family not in (WINDOW, STEPPED, BUDGET):
            continue
        part = part.sort_values("size").reset_index(drop=True)
        upper = part["share_upper"]
        differs = (upper - upper.iloc[-1]).abs() > TOLERANCE
        place = int(differs[differs].index.max()) + 1 if differs.any() else 0
        here, end = part.loc[place], part.iloc[-1]
        before = part.loc[max(0, place - 1)]
        falling = place == len(part) - 1 and here["share_upper"] > TOLERANCE
        rows.append(
            {
                "task": task, "family": family, "size": int(here["size"]), "tokens": int(here["tokens"]),
                "before": int(before["size"]), "largest": int(end["size"]),
                **{f"share_{e}": here[f"share_{e}"] for e in ("lower", "upper")},
                **{f"share_before_{e}": before[f"share_{e}"] for e in ("lower", "upper")},
                "falls": int((upper.diff() < -TOLERANCE).sum()),
                "verdict": "still falling" if falling else "saturated",
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def best_map(maps: pd.DataFrame) -> pd.DataFrame:
    """The maps that no other one beats in both tokens and proven loss, fewest contexts first among equals."""
    import pandas as pd

    rows = []
    for task, every in maps.groupby("task"):
        for among, part in (("messages", every[every["family"].isin(MESSAGES)]), ("all", every)):
            least = float("inf")
            part = part.assign(rounded=part["share_upper"].round(6))
            for _, row in part.sort_values(["tokens", "rounded", "contexts", "map"]).iterrows():
                if row["share_upper"] < least - TOLERANCE:
                    least = row["share_upper"]
                    name = row["map"] + (" with scratchpad" if row["family"] == "scratchpad" else "")
                    rows.append({**row.to_dict(), "task": task, "among": among, "map": name})
    return pd.DataFrame(rows)


def headline(frames: Mapping[str, pd.DataFrame]) -> str:
    """What came out, with the predicted sign beside it, and how little bits say of loss."""
    maps, ends = frames["lossy_context"], frames["saturation"]
    windows = maps[maps["family"] == WINDOW].sort_values("size")
    falls = [
        task
        for task, part in windows.groupby("task")
        if part["loss_lower"].iloc[0] > part["loss_upper"].iloc[-1]
    ]
    stops = ends[ends["family"] == WINDOW]
    where = ", ".join(f"{row.task} {row.size}" for row in stops.itertuples())
    text = (
        f"The loss falls from the shortest window to the longest for certain in {len(falls)} of "
        f"{windows['task'].nunique()} tasks (predicted sign {PREDICTED_SIGN}); it saturates at windows {where}."
    )
    kept = maps.assign(kept=maps["bits"] / maps["bits_history"])
    losing = kept[kept["share_lower"] > TOLERANCE].nlargest(1, "kept")
    whole = kept[kept["share_upper"] <= TOLERANCE].nsmallest(1, "kept")
    if len(losing) and len(whole):
        one, other = losing.iloc[0], whole.iloc[0]
        text += (
            f" Bits do not order maps by loss: {one['map']} on {one['task']} keeps {one['kept']:.1%} of the bits on "
            f"the belief and loses {one['share_lower']:.0%} of V_f or more, {other['map']} on {other['task']} keeps "
            f"{other['kept']:.1%} and loses nothing."
        )
    worse = finer_is_worse(frames["grids"])
    return text + (f" A finer belief grid can be worse: {worse}." if worse else "")


def finer_is_worse(grids: pd.DataFrame) -> str:
    """Where a belief grid reaches less for certain than a coarser one, by the widest margin, or nothing."""
    most, text = 0.0, ""
    for task, part in grids.groupby("task"):
        for fine in part.itertuples():
            for coarse in part[part["size"] < fine.size].itertuples():
                if coarse.Vo_lower - fine.Vo_upper > most + 1e-6:
                    most = coarse.Vo_lower - fine.Vo_upper
                    text = (
                        f"on {task} resolution {int(fine.size)} reaches {fine.Vo_upper:.3g} and {int(coarse.size)} "
                        f"reaches {coarse.Vo_lower:.3g}"
                    )
    return text
