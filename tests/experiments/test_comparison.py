"""A fresh table agrees with a committed one by the kind of each column, and by nothing weaker."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from experiments import tables
from experiments.comparison import compare

TABLE = tables.Table(
    "mixed",
    (
        tables.key("group", "group"),
        tables.key("task", "task"),
        tables.exact("value", "value"),
        tables.exact("word", "word"),
        tables.interval("V", "$V$", factor=2.0, slack=0.1),
        tables.estimate("J", "$J$", error="J_se", standard_errors=3.0),
        tables.interval("U", "$U$", factor=1.0, slack=0.5, unit="value"),
        tables.derived("c", "$c$"),
        tables.ignore("seconds", "time"),
    ),
    "",
)
ROW = {
    "group": "a", "task": "x", "value": 2.0, "word": "yes", "V_lower": 1.0, "V_upper": 2.0,
    "J": 5.0, "J_se": 0.3, "U_lower": 1.0, "U_upper": 2.0, "c_lower": 1.0,
    "c_upper": 2.0, "seconds": 1.0,
}  # fmt: skip


def differences(changes: dict[str, object], committed: dict[str, object] | None = None) -> list[str]:
    old = pd.DataFrame([{**ROW, **(committed or {})}])
    return [item.column for item in compare("s", TABLE, old, pd.DataFrame([{**ROW, **changes}]))]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"value": 2.0 + 1.9e-9}, []),
        ({"value": 2.0 + 2.1e-9}, ["value"]),
        ({"value": math.nan}, ["value"]),
        ({"word": "no"}, ["word"]),
        ({"seconds": 99.0}, []),
        # Intervals must meet, at most twice as wide plus 0.1.
        ({"V_lower": 2.0, "V_upper": 2.0}, []),
        ({"V_lower": 1.4, "V_upper": 1.6}, []),
        ({"V_lower": 2.001, "V_upper": 2.5}, ["V"]),
        ({"V_lower": 0.5, "V_upper": 0.999}, ["V"]),
        ({"V_lower": 0.0, "V_upper": 2.09}, []),
        ({"V_lower": 0.0, "V_upper": 2.11}, ["V"]),
        ({"V_lower": math.nan, "V_upper": math.nan}, ["V"]),
        # Three joint standard errors of 0.3 and 0.4 are 1.5.
        ({"J": 6.49, "J_se": 0.4}, []),
        ({"J": 6.51, "J_se": 0.4}, ["J"]),
        ({"J": 5.1, "J_se": math.nan}, ["J"]),
        # Half of the row's value 2.0 is the slack of U; c follows from others.
        ({"U_lower": 0.1}, []),
        ({"U_lower": -0.1}, ["U"]),
        ({"c_lower": 5.0, "c_upper": 6.0}, []),
        ({"task": "y"}, ["row", "row"]),
    ],
)
def test_each_kind_of_column_is_held_to_its_promise(changes: dict[str, object], expected: list[str]) -> None:
    assert differences(changes) == expected


def test_large_exact_values_are_compared_relatively() -> None:
    assert differences({"value": 1e6 + 9e-4}, {"value": 1e6}) == []
    assert differences({"value": 1e6 + 2e-3}, {"value": 1e6}) == ["value"]


def test_undefined_agrees_with_undefined_only() -> None:
    nothing = {"value": math.nan, "V_lower": math.nan, "V_upper": math.nan, "J": math.nan, "J_se": math.nan}
    assert differences(nothing, nothing) == []
    assert differences({}, nothing) == ["value", "V", "J"]


def test_rows_of_skipped_cells_are_left_out_and_no_other() -> None:
    old = pd.DataFrame([ROW, {**ROW, "group": "b"}, {**ROW, "group": "b", "task": "y"}])
    new = pd.DataFrame([ROW])
    assert len(compare("s", TABLE, old, new)) == 2
    assert [item.row for item in compare("s", TABLE, old, new, [{"group": "b", "task": "y", "gap": 1}])] == [
        "group=b, task=x"
    ]
    assert compare("s", TABLE, old, new, [{"group": "b"}]) == []
    # A skipped cell that shares no key column excuses nothing.
    assert len(compare("s", TABLE, old, new, [{"gap": 1}])) == 2


def test_a_difference_says_where_and_what() -> None:
    (found,) = compare("s", TABLE, pd.DataFrame([ROW]), pd.DataFrame([{**ROW, "value": 3.0}]))
    assert str(found) == "s/mixed [group=a, task=x] value: committed 2.0, computed 3.0, allowed 2e-09"
