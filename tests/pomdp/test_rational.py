"""Exact numbers: what a person typed is what is meant, and sparse matrices hold just that."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.rational import MAX_DIGITS, MAX_EXPONENT, RationalMatrix, read_rational

ENTRIES = st.dictionaries(st.integers(0, 4), st.fractions(max_denominator=50), max_size=5)
MATRICES = st.lists(ENTRIES, max_size=4)


@pytest.mark.parametrize(
    ("given_value", "meant"),
    [
        (0.85, Fraction(17, 20)),
        ("0.85", Fraction(17, 20)),
        ("17/20", Fraction(17, 20)),
        (" -1e-3 ", Fraction(-1, 1000)),
        ("+.5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(-3), Fraction(-3)),
        (7, Fraction(7)),
        (Fraction(1, 3), Fraction(1, 3)),
        (f"1e{MAX_EXPONENT}", Fraction(10**MAX_EXPONENT)),
        (f"1e-{MAX_EXPONENT}", Fraction(1, 10**MAX_EXPONENT)),
    ],
)
def test_numbers_are_read_as_they_are_meant(given_value, meant):
    assert read_rational(given_value) == meant


@pytest.mark.parametrize(
    "wrong",
    [
        "", "x", "1,5", "0x10", "nan", "inf", "--1", "1/0", "1/-2", "1.5/2", "1 2", "1_000", "1e", "e5",
        f"1e{MAX_EXPONENT + 1}", "1e99999999999", "9" * (MAX_DIGITS + 1), f"1/{'9' * (MAX_DIGITS + 1)}",
        math.nan, math.inf, Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999999"),
        True, None, [], b"1", 1j,
    ],
    ids=lambda value: str(value)[:12],
)  # fmt: skip
def test_what_is_no_number_is_refused_shortly(wrong):
    with pytest.raises(ValueError, match=r"0\.85|finite") as caught:
        read_rational(wrong)
    assert len(str(caught.value)) < 150


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_its_shortest_decimal(value):
    read = read_rational(value)
    assert read == Fraction(Decimal(repr(value))) and float(read) == value


@given(MATRICES)
def test_a_matrix_holds_exactly_its_rows(rows):
    matrix = RationalMatrix.from_rows(rows, 5)
    kept = [{j: v for j, v in row.items() if v} for row in rows]
    assert list(matrix.rows()) == kept == [matrix.row(i) for i in range(len(rows))]
    assert matrix.row_sums() == [sum(row.values(), Fraction(0)) for row in rows]
    dense = np.array([[float(row.get(j, 0)) for j in range(5)] for row in rows]).reshape(len(rows), 5)
    np.testing.assert_array_equal(matrix.to_csr().toarray(), dense)


@given(MATRICES)
def test_rows_sum_to_one_is_said_of_those_that_do(rows):
    sums = [sum(row.values(), Fraction(0)) for row in rows]
    assert RationalMatrix.from_rows(rows, 5).rows_sum_to_one() == all(total == 1 for total in sums)
    whole = [row | {5: 1 - total} for row, total in zip(rows, sums, strict=True)]
    assert RationalMatrix.from_rows(whole, 6).rows_sum_to_one()


@given(MATRICES.filter(len), st.data())
def test_taken_rows_are_those_asked_for(rows, data):
    which = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    taken = RationalMatrix.from_rows(rows, 5).take(np.array(which, dtype=np.int64))
    assert taken.text() == RationalMatrix.from_rows([rows[i] for i in which], 5).text()


@given(MATRICES)
def test_the_form_is_canonical(rows):
    matrix = RationalMatrix.from_rows(rows, 5)
    for i, row in enumerate(matrix.rows()):
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        assert list(matrix.indices[span]) == sorted(row)
        assert math.gcd(matrix.denominators[i], *matrix.numerators[span]) == 1 and matrix.denominators[i] > 0
    again = RationalMatrix.from_rows(
        [dict(reversed(row.items())) | {4: row.get(4, Fraction(0))} for row in rows], 5
    )
    assert again.text() == matrix.text()


@given(MATRICES, MATRICES)
def test_the_text_tells_matrices_apart(one, other):
    same = [{j: v for j, v in row.items() if v} for row in one] == [
        {j: v for j, v in row.items() if v} for row in other
    ]
    assert (RationalMatrix.from_rows(one, 5).text() == RationalMatrix.from_rows(other, 5).text()) == same


def test_a_quotient_is_rounded_once():
    """Integers beyond 2**53 are not turned into floats before the division."""
    value = Fraction(2**60 + 1, 2**61 + 3)
    assert RationalMatrix.from_rows([{0: value}], 1).to_csr().toarray()[0, 0] == float(value)
