"""Whether a fresh table agrees with a committed one, by the kinds of its columns. Imports pandas only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.tables import Column, Table, rows_by_key

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """One disagreement: where it is and what both sides say."""

    study: str
    table: str
    row: str
    column: str
    message: str

    def __str__(self) -> str:
        return f"{self.study}/{self.table} [{self.row}] {self.column}: {self.message}"


def compare(
    study: str,
    table: Table,
    committed: pd.DataFrame,
    fresh: pd.DataFrame,
    skipped: Sequence[Mapping[str, Any]] = (),
) -> list[Difference]:
    """All differences between two tables with the declared columns.

    Committed rows that only skipped cells could have given are left out: those whose key columns agree with a
    skipped cell in every entry that both have.
    """
    old, new = rows_by_key(table, committed), rows_by_key(table, fresh)
    found: list[Difference] = []
    for name, row in old.items():
        place = _place(table, name)
        if name not in new:
            if not any(_gives(cell, table, row) for cell in skipped):
                found.append(Difference(study, table.name, place, "row", "is committed but was not computed"))
            continue
        for column in table.columns:
            message = compare_entry(column, row, new[name])
            if message:
                found.append(Difference(study, table.name, place, column.name, message))
    for name in new:
        if name not in old:
            found.append(
                Difference(study, table.name, _place(table, name), "row", "was computed but is not committed")
            )
    return found


def compare_entry(column: Column, committed: pd.Series, fresh: pd.Series) -> str:
    """Why two entries disagree; empty where they agree."""
    if column.kind in ("key", "ignore") or not column.compared:
        return ""
    if column.kind == "interval":
        return _compare_intervals(column, committed, fresh)
    old, new = committed[column.name], fresh[column.name]
    if _undefined(old) or _undefined(new):
        return "" if _undefined(old) and _undefined(new) else f"committed {old}, computed {new}"
    if isinstance(old, str) or isinstance(new, str):
        return "" if old == new else f"committed {old!r}, computed {new!r}"
    allowed = TOLERANCE * max(1.0, abs(float(old)))
    if column.kind == "estimate":
        errors = [float(row[column.error]) for row in (committed, fresh)]
        if not any(map(math.isnan, errors)):
            allowed = max(allowed, column.factor * math.hypot(*errors))
    if abs(float(old) - float(new)) <= allowed:
        return ""
    return f"committed {float(old)!r}, computed {float(new)!r}, allowed {allowed:.3g}"


def _compare_intervals(column: Column, committed: pd.Series, fresh: pd.Series) -> str:
    lower, upper = column.stored
    old = (float(committed[lower]), float(committed[upper]))
    new = (float(fresh[lower]), float(fresh[upper]))
    undefined = [any(map(math.isnan, ends)) for ends in (old, new)]
    if any(undefined):
        return "" if all(undefined) else f"committed {old}, computed {new}"
    if max(old[0], new[0]) > min(old[1], new[1]):
        return f"committed [{old[0]!r}, {old[1]!r}] and computed [{new[0]!r}, {new[1]!r}] do not meet"
    slack = column.slack * (float(committed[column.unit]) if column.unit else 1.0)
    widest = column.factor * (old[1] - old[0]) + slack
    if new[1] - new[0] > widest:
        return (
            f"width {new[1] - new[0]:.3g}, allowed {widest:.3g} for the committed width {old[1] - old[0]:.3g}"
        )
    return ""


def _gives(cell: Mapping[str, Any], table: Table, row: pd.Series) -> bool:
    shared = [name for name in table.keys if name in cell]
    return bool(shared) and all(row[name] == cell[name] for name in shared)


def _place(table: Table, name: tuple[object, ...]) -> str:
    return ", ".join(f"{key}={value}" for key, value in zip(table.keys, name, strict=True))


def _undefined(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
