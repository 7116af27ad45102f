"""Tables keep their numbers in full, and what they print is true."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import tables
from experiments.tables import (
    TableError,
    cell_text,
    check_frame,
    estimate_text,
    interval_text,
    read_tables,
    to_latex,
    to_text,
    write_table,
)

TABLE = tables.Table(
    "mixed",
    (
        tables.key("task", "task"),
        tables.exact("count", "$n$"),
        tables.interval("V_f", "$V_f$", factor=2.0, slack=0.0, digits=4),
        tables.estimate("J", "$J$", error="J_se"),
        tables.ignore("seconds", "time / s"),
    ),
    "A caption with $V_f$.",
)
FRAME = pd.DataFrame(
    {
        "task": ["tiger_95", "paint & 100%"],
        "count": [3, 4],
        "V_f_lower": [39.3713683, math.nan],
        "V_f_upper": [39.3713684, math.nan],
        "J": [0.1 + 0.2, math.nan],
        "J_se": [0.0123, math.nan],
        "seconds": [1.23456, 7.0],
    }
)
finite = st.floats(-1e12, 1e12, allow_subnormal=False)


def shown_ends(text: str) -> tuple[Fraction, Fraction]:
    words = re.findall(r"-?[0-9.]+(?:e-[0-9]+)?", text)
    return Fraction(words[0]), Fraction(words[-1])


@given(finite, finite, st.integers(2, 9))
def test_a_printed_interval_contains_the_stored_one_and_is_hardly_wider(
    a: float, b: float, digits: int
) -> None:
    lower, upper = sorted((a, b))
    low, high = shown_ends(interval_text(lower, upper, digits))
    assert low <= Fraction(lower) and Fraction(upper) <= high
    largest = max(abs(a), abs(b), 1e-300)
    place = math.floor(math.log10(largest)) + 1 - (digits if largest >= tables.TINY else min(digits, 3))
    assert (high - low) - (Fraction(upper) - Fraction(lower)) <= 2 * Fraction(10) ** min(0, place)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.0, 0.0), "0"),
        ((-20.0, -20.0), "-20"),
        ((2.5, 2.5), "2.5000"),
        ((0.3, 0.3), "[0.29999, 0.30000]"),
        ((-0.00001, 0.00002), "[-1.01e-5, 2.01e-5]"),
        ((0.0, 2.46758e-12), "[0, 2.47e-12]"),
        ((0.0, 0.5), "[0.00000, 0.50000]"),
        ((39.3713683, 39.3713684), "[39.371, 39.372]"),
        ((-1e-30, 12.0), "[-0.001, 12.000]"),
        ((123456.7, 123456.8), "[123456, 123457]"),
        ((math.nan, 1.0), "--"),
    ],
)
def test_intervals_print_like_this(ends: tuple[float, float], text: str) -> None:
    assert interval_text(*ends, digits=5) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.123456, 0.0123, "0.123 (0.012)"),
        (12.0, 0.0, "12 (0)"),
        (12.0, math.nan, "12 (--)"),
        (math.nan, 1.0, "--"),
    ],
)
def test_estimates_print_to_their_error(value: float, error: float, text: str) -> None:
    assert estimate_text(value, error, 4) == text


def test_undefined_is_never_zero() -> None:
    assert [cell_text(value, 3) for value in (None, math.nan, 0.0, 0)] == ["--", "--", "0", "0"]


def test_stored_numbers_are_read_back_in_full(tmp_path: Path) -> None:
    write_table(TABLE, FRAME, tmp_path)
    pd.testing.assert_frame_equal(read_tables((TABLE,), tmp_path)["mixed"], FRAME, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "mixed.csv"), FRAME, check_exact=True)


def test_latex_has_rules_caption_and_no_raw_special_characters(tmp_path: Path) -> None:
    write_table(TABLE, FRAME, tmp_path, note="run 0123, commit abc")
    text = (tmp_path / "mixed.tex").read_text()
    assert text.startswith("% run 0123, commit abc\n")
    for word in (
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"\caption{A caption with $V_f$.}",
        r"\label{tab:mixed}",
    ):
        assert word in text
    assert r"tiger\_95 & $3$ & $[39.37, 39.38]$ & $0.300 (0.012)$ & $1.23$ \\" in text
    assert r"paint \& 100\% & $4$ & -- & -- & $7$ \\" in text
    assert to_latex(TABLE, FRAME) == to_latex(TABLE, FRAME.copy())


def test_latex_shows_powers_of_ten() -> None:
    tiny = FRAME.assign(V_f_lower=0.0, V_f_upper=2.46758e-12, seconds=1e7)
    text = to_latex(TABLE, tiny)
    assert r"$[0, 2.47 \cdot 10^{-12}]$" in text and r"$1 \cdot 10^{7}$" in text


def test_text_columns_are_aligned() -> None:
    lines = to_text(TABLE, FRAME).splitlines()
    assert lines[0].split() == ["task", "n", "V_f", "J", "time", "/", "s"]
    assert lines[2].index("3 ") == lines[3].index("4 ") == lines[0].index("n ")


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (FRAME.drop(columns="J"), "missing columns"),
        (FRAME.assign(extra=1), "undeclared columns"),
        (pd.concat([FRAME, FRAME]), "twice"),
        (FRAME.assign(V_f_lower=50.0), "lies above"),
    ],
)
def test_a_frame_that_is_not_the_declared_table_is_refused(frame: pd.DataFrame, match: str) -> None:
    with pytest.raises(TableError, match=match):
        check_frame(TABLE, frame)


def test_a_folder_without_the_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="holds no table mixed"):
        read_tables((TABLE,), tmp_path)
