"""Rates and averages: exact ends against binomial sums in rationals, and what is undefined stays so."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from harnesses.guard.binomial import clopper_pearson, lower_end, upper_end
from harnesses.guard.rate import Average, Rate
from harnesses.guard.region import GuardError


def at_most(k: int, n: int, rate: Fraction) -> Fraction:
    """P(Bin(n, rate) <= k), exactly."""
    return sum((comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k + 1)), Fraction(0))


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_ends_are_where_the_exact_tail_has_the_probability_that_is_left(
    n: int, confidence: float
) -> None:
    """T8, against rational binomial sums a little inside and outside of each end."""
    left = 1 - Fraction(str(confidence))
    slack = Fraction(1, 10**9)
    for k in range(n + 1):
        upper = Fraction(float(upper_end(k, n, confidence)))
        if k < n:
            assert at_most(k, n, upper - slack) > left > at_most(k, n, upper + slack)
        else:
            assert upper == 1
        lower = Fraction(float(lower_end(k, n, confidence)))
        if k > 0:
            assert 1 - at_most(k - 1, n, lower - slack) < left < 1 - at_most(k - 1, n, lower + slack)
        else:
            assert lower == 0


def test_two_sided_ends_are_those_of_scipy() -> None:
    for k, n in ((0, 30), (2, 130), (10, 211), (5, 5)):
        found = stats.binomtest(k, n).proportion_ci(0.95, "exact")
        assert clopper_pearson(k, n) == pytest.approx((found.low, found.high), abs=1e-12)


def test_ends_of_arrays_are_the_ends_of_their_entries() -> None:
    k, n = np.array([[0, 3], [5, 2]]), np.array([5, 5])
    found = upper_end(k, n, 0.9)
    assert found.shape == (2, 2)
    assert found[1, 0] == 1.0 and found[0, 1] == upper_end(3, 5, 0.9)


def test_without_trials_nothing_is_known() -> None:
    assert (lower_end(0, 0), upper_end(0, 0)) == (0.0, 1.0)
    found = Rate.of(0, 0)
    assert (found.rate, found.se, found.lower, found.upper) == (None, None, None, None)
    assert (found.lower_at(0.95), found.upper_at(0.95)) == (0.0, 1.0)
    assert str(found) == "0/0, undefined"


def test_a_zero_is_printed_with_its_denominator_and_its_upper_end_never_as_a_percentage() -> None:
    assert str(Rate.of(0, 30)) == "0/30, at most 0.1157"
    assert str(Rate.of(30, 30)) == "30/30, at least 0.8843"
    assert Rate.of(0, 30).upper_at(0.95) == pytest.approx(0.0950, abs=5e-5)


def test_a_rate_has_the_fields_that_machines_read() -> None:
    found = Rate.of(2, 130).json()
    assert list(found) == ["numerator", "denominator", "rate", "se", "lower", "upper"]
    assert found["rate"] == 2 / 130 and found["se"] == pytest.approx((2 * 128 / 130**3) ** 0.5)
    assert str(Rate.of(2, 130)) == "2/130 = 0.0154 (se 0.0108) [0.0019, 0.0545]"


@pytest.mark.parametrize("values", [[], [3.0], [1.0, 2.0, 4.0], [2.0, 2.0]])
def test_an_average_is_that_of_scipy_and_undefined_without_enough_values(values: list[float]) -> None:
    found = Average.of(values)
    assert found.count == len(values)
    assert found.mean == (np.mean(values) if values else None)
    if len(values) < 2:
        assert (found.se, found.lower, found.upper) == (None, None, None)
    elif found.se:
        ends = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found.lower, found.upper) == pytest.approx(ends)
    assert str(found)


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (1, 0)])
def test_impossible_counts_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(GuardError, match="0 <= failures <= trials"):
        Rate.of(*counts)
    with pytest.raises(GuardError, match="confidence is 1"):
        upper_end(1, 2, 1)
