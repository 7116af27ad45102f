"""Binomial tails against Fractions: every decision, and above all the ties."""

from __future__ import annotations

from fractions import Fraction as F
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard import tail
from harnesses.guard.region import GuardError
from harnesses.guard.tail import at_most, level, most_failures, rate_between, zero_failure_size

RATES = st.fractions(F(1, 50), F(49, 50), max_denominator=60)


def exact_tail(k: int, n: int, rate: F) -> F:
    return sum((comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(k + 1)), F(0))


@given(RATES, st.integers(0, 40), st.data())
def test_at_most_decides_ties_and_their_neighbours(rate: F, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    found = exact_tail(k, n, rate)
    assert at_most(k, n, rate, found)
    assert not at_most(k, n, rate, found - F(1, 10**30))
    assert at_most(k, n, rate, found + F(1, 10**30))


@given(RATES, st.integers(0, 40), st.fractions(F(1, 100), F(99, 100), max_denominator=100))
def test_most_failures_is_the_largest_count_allowed(rate: F, n: int, bound: F) -> None:
    admissible = [k for k in range(n + 1) if exact_tail(k, n, rate) <= bound]
    assert most_failures(n, rate, bound) == max(admissible, default=None)


def test_a_tie_counts_as_allowed() -> None:
    assert most_failures(2, F(1, 2), F(1, 4)) == 0
    assert most_failures(2, F(1, 2), F(1, 4) - F(1, 10**40)) is None


@pytest.mark.parametrize("failures", [0, 1])
def test_a_tie_of_many_trials_is_decided_exactly(failures: int) -> None:
    n, rate = 20_000, F(1, 320)
    found = (1 - rate) ** n + (n * rate * (1 - rate) ** (n - 1) if failures else 0)
    assert at_most(failures, n, rate, found)
    assert not at_most(failures, n, rate, found * (1 - F(1, 10**40)))


@pytest.mark.parametrize(("rate", "n"), [("0.05", 59), ("1/32", 95), ("0.02", 149), ("0.01", 299)])
def test_zero_failure_sizes_at_one_twentieth(rate: str, n: int) -> None:
    """T9: the sizes of the design, and that one item less is not enough."""
    assert zero_failure_size(rate, "0.05") == n
    assert (1 - F(rate)) ** n <= F(1, 20) < (1 - F(rate)) ** (n - 1)


def test_extreme_levels_are_decided() -> None:
    assert zero_failure_size("0.5", "1e-299") == 994  # 299 log(10) / log(2) = 993.3
    assert zero_failure_size("0.000001", "0.05") == 2_995_731
    assert most_failures(10, F(1, 2), F(1, 10**300)) is None


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, float("nan"), "x", None, "1e-301"])
def test_a_level_outside_the_open_interval_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(GuardError, match="^delta") as caught:
        level(value, "delta")
    assert "\n" not in str(caught.value)


def test_a_rate_below_a_millionth_is_refused() -> None:
    assert rate_between("0.000001", "alpha") == F(1, 10**6)
    with pytest.raises(GuardError, match="at least 1e-06"):
        rate_between(1e-7, "alpha")


@pytest.mark.parametrize("trials", [1, 2, 5, 30])
def test_error_bounds_decide_as_the_integers_do_or_leave_it_to_them(trials: int) -> None:
    for rate in (F(1, 2), F(1, 3), F(1, 20)):
        for k in range(trials):
            exact = exact_tail(k, trials, rate)
            for bound in (exact, exact * (1 - F(1, 10**20)), exact * (1 + F(1, 10**20))):
                found = tail._with_error_bounds(k, trials, rate, bound)
                assert found is None if bound == exact else found is (exact <= bound)
                assert at_most(k, trials, rate, bound) is (exact <= bound)
