"""The calculator against Python's own arithmetic on expressions built here, and against everything else."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.desk.calculator import DEEPEST, LONGEST, as_decimal, calculator, value_of
from harnesses.desk.tool_errors import Fix

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}

numbers = st.tuples(st.integers(0, 999), st.integers(0, 99)).map(
    lambda parts: (f"{parts[0]}.{parts[1]:02}", Fraction(100 * parts[0] + parts[1], 100))
)


def combine(inner: st.SearchStrategy) -> st.SearchStrategy:
    """Operations and signs over smaller expressions, each in parentheses, with their exact values."""
    binary = st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda t: (f"({t[0][0]} {t[1]} {t[2][0]})", _apply(t[1], t[0][1], t[2][1]))
    )
    return binary | inner.map(lambda e: (f"-{e[0]}", None if e[1] is None else -e[1]))


def _apply(sign: str, a: Fraction | None, b: Fraction | None) -> Fraction | None:
    if a is None or b is None or (sign == "/" and b == 0):
        return None
    found = OPERATIONS[sign](a, b)
    return found if abs(found) <= 10**15 and found.denominator <= 10**60 else None


@given(st.recursive(numbers, combine, max_leaves=6))
def test_agrees_with_exact_arithmetic(pair: tuple[str, Fraction | None]) -> None:
    text, expected = pair
    if len(text) > LONGEST:
        return
    if expected is None:
        with pytest.raises(Fix):
            value_of(text)
    else:
        assert value_of(text) == expected


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("300 * 0.5", "150"),
        ("0.1 + 0.2", "0.3"),
        ("2 - 3 * 4", "-10"),
        ("(2 - 3) * 4", "-4"),
        ("7 / 2", "3.5"),
        ("1 / 3", "0.333333333333"),
        ("2 / 3", "0.666666666667"),
        ("--5", "5"),
        (" 1200 ", "1200"),
        ("1000000000 * 1000000", "1000000000000000"),
        (".5 * 4", "2"),
        ("0 * 5", "0"),
        ("8 - 5 - 2", "1"),
        ("16 / 4 / 2", "2"),
        ("999999.99 + 0.01", "1000000"),
    ],
)
def test_known_values(text: str, answer: str) -> None:
    assert calculator(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "__import__('os').remove('x')",
        "().__class__",
        "2 ** 9",
        "9 // 2",
        "7 % 2",
        "1e9",
        "1_000",
        "0x10",
        "1j",
        "True",
        "a + 1",
        "(1, 2)",
        "1, 2",
        "[1]",
        "1 < 2",
        "1 if 1 else 2",
        "lambda: 1",
        "(x := 1)",
        "1; 2",
        "1\n+ 2",
        "1 +",
        "(1",
        "()",
        "1 / 0",
        "1 / (2 - 2)",
        "007",
        "1.",
        "1.2.3",
        "..",
        "...",
        "2(3)",
        "٣ + 1",  # a digit of another script
        "10000000000000000",
        "1000000000 * 10000000",
        "(" * 90 + "1" + ")" * 90,
        "-" * 150 + "1",
        "1+" * 90 + "1",
        "1" * (LONGEST + 1),
    ],
)
def test_everything_else_is_to_be_fixed(text: str) -> None:
    with pytest.raises(Fix):
        calculator(text)


@given(st.text(max_size=60) | st.text(alphabet="0123456789.+-*/() ", max_size=60))
def test_no_text_does_more_than_fail(text: str) -> None:
    try:
        answer = calculator(text)
    except Fix as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert Fraction(answer) is not None


def test_depth_is_bounded_at_the_limit() -> None:
    assert value_of("-" * (DEEPEST - 1) + "1") in (1, -1)
    with pytest.raises(Fix):
        value_of("-" * DEEPEST + "1")


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6))
def test_rounding_keeps_twelve_digits(value: Fraction) -> None:
    assert abs(Fraction(as_decimal(value)) - value) <= abs(value) * Fraction(1, 10**11)
