"""The tables of the study harness_or_model, from the returns in its rows. Imports harnesses' attribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments import harness_or_model as study
from harnesses.attribution import rank_reversals
from pomdp.interval import Interval


def tabulate(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Factorial, causes, reversals and parts, in the order of TABLES."""
    grid, parts = (frame[frame["table"] == name] for name in ("grid", "parts"))
    models = list(grid["models"].iloc[0])
    names = [name for name in study.HARNESSES if name in set(grid["harness"])]
    returns = {
        (row["model"], row["harness"]): Interval(row["J_lower"], row["J_upper"]) for _, row in grid.iterrows()
    }
    order = {(model, name): i for i, (model, name) in enumerate((m, h) for m in models for h in names)}
    grid = grid.assign(order=[order[pair] for pair in zip(grid["model"], grid["harness"], strict=True)])
    grid = grid.sort_values("order")
    contrasts = [
        _interaction(returns, model, name, models[0], names[0])
        for model, name in zip(grid["model"], grid["harness"], strict=True)
    ]
    grid = grid.assign(
        interaction_lower=[i.lower for i in contrasts], interaction_upper=[i.upper for i in contrasts]
    )
    frames = (grid, _causes(returns, models), _reversals(returns, models, names), _parts(parts))
    return {
        table.name: found[table.stored].reset_index(drop=True)
        for table, found in zip(study.TABLES, frames, strict=True)
    }


def _interaction(
    returns: Mapping[tuple[str, str], Interval], model: str, name: str, first: str, base: str
) -> Interval:
    """How much more the step from the first harness to this one gives this model than the first model."""
    if model == first or name == base:
        return Interval(0.0, 0.0)
    gain, reference = (returns[m, name] - returns[m, base] for m in (model, first))
    return gain - reference


def _causes(returns: Mapping[tuple[str, str], Interval], models: list[str]) -> pd.DataFrame:
    rows = []
    for model in models:
        found = study.shares({name: returns[model, name] for name in study.HARNESSES})
        rows.append({"model": model, **_ends(found), "scale": 1.0})
    return pd.DataFrame(rows)


def _reversals(
    returns: Mapping[tuple[str, str], Interval], models: list[str], names: list[str]
) -> pd.DataFrame:
    """Every certain reversal, by the smaller of lead and deficit, largest first."""
    rows: list[dict[str, Any]] = []
    for m, other, h, k in rank_reversals([[returns[model, name] for name in names] for model in models]):
        pair = models[m], models[other]
        lead = returns[pair[0], names[h]] - returns[pair[1], names[h]]
        deficit = returns[pair[1], names[k]] - returns[pair[0], names[k]]
        if min(lead.lower, deficit.lower) <= study.TOLERANCE:
            continue
        rows.append(
            {
                "model": pair[0],
                "other": pair[1],
                "above_in": names[h],
                "below_in": names[k],
                **_ends({"lead": lead, "deficit": deficit}),
                "scale": 1.0,
                # Rounded, so that equal sizes keep one order on every machine.
                "order": -round(min(lead.lower, deficit.lower), 6),
            }
        )
    table = study.TABLES[2]
    found = pd.DataFrame(rows, columns=[*table.stored, "order"])
    return found.sort_values(["order", *table.keys])


def _parts(parts: pd.DataFrame) -> pd.DataFrame:
    place = {name: i for i, name in enumerate(study.PARTS)}
    parts = parts.assign(order=parts["part"].map(place)).sort_values(["order", "reader", "temperature"])
    verdicts: dict[tuple[str, str], str] = {}
    for (name, reader), group in parts.groupby(["part", "reader"]):
        verdicts[str(name), str(reader)] = study.verdict(
            [
                (row["temperature"], Interval(row["value_lower"], row["value_upper"]))
                for _, row in group.iterrows()
            ]
        )
    keys = zip(parts["part"], parts["reader"], strict=True)
    return parts.assign(verdict=[verdicts[key] for key in keys])


def _ends(parts: Mapping[str, Interval]) -> dict[str, float]:
    return {f"{n}_{end}": 0.0 + getattr(i, end) for n, i in parts.items() for end in ("lower", "upper")}
