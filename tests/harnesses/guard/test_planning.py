"""Sample sizes against brute force over all numbers of items and all outcomes."""

from __future__ import annotations

import json
from fractions import Fraction as F
from math import comb

import numpy as np
import pytest
from scipy import stats

from harnesses.guard.binomial import upper_end
from harnesses.guard.planning import plan, power_of, sizes, smallest_rate
from harnesses.guard.region import GuardError
from harnesses.guard.selection import pac_threshold


def pmf(n: int, rate: F) -> list[F]:
    return [comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(n + 1)]


def certifying(n: int, alpha: F, delta: F) -> list[int]:
    """The outcomes that certify, by the exact test of each."""
    chance = pmf(n, alpha)
    return [k for k in range(n + 1) if sum(chance[: k + 1]) <= delta]


def brute_power(n: int, alpha: F, delta: F, true: F) -> F:
    chance = pmf(n, true)
    return sum((chance[k] for k in certifying(n, alpha, delta)), F(0))


CASES = [
    (F(1, 4), F(1, 10), F(9, 10), F(1, 8)),
    (F(1, 4), F(1, 20), F(4, 5), F(1, 16)),
    (F(1, 5), F(1, 20), F(9, 10), F(0)),
    (F(1, 2), F(1, 4), F(1, 2), F(1, 4)),
    (F(1, 3), F(1, 2), F(7, 10), F(1, 4)),
    (F(3, 10), F(343, 1000), F(4, 5), F(0)),  # .7^3: three items certify, where a rounded quantile says four
]


@pytest.mark.parametrize(("alpha", "delta", "power", "true"), CASES)
def test_sizes_agree_with_all_outcomes_of_all_numbers_of_items(alpha: F, delta: F, power: F, true: F) -> None:
    """T9: the least n with the power, and the n from which it stays, up to where it can fall no more."""
    found = sizes(alpha, delta, power, true)
    last = found.stays.n + 40
    powers = [brute_power(n, alpha, delta, true) for n in range(last + 1)]
    enough = [n for n, value in enumerate(powers) if value >= power]
    assert found.least.n == enough[0]
    assert found.stays.n == max((n for n, value in enumerate(powers) if value < power), default=-1) + 1
    for size in (found.least, found.stays):
        assert size.power == pytest.approx(float(powers[size.n]), rel=1e-12)
        assert size.failures == max(certifying(size.n, alpha, delta))
        assert power_of(size.n, alpha, delta, true) == size.power


def test_the_power_is_a_sawtooth() -> None:
    """More items may have less power: both sizes are needed."""
    found = sizes("0.05", "0.05", "0.9", "0.025")
    assert (found.least.n, found.stays.n) == (506, 554)
    powers = [power_of(n, "0.05", "0.05", "0.025") for n in range(450, 3000)]
    assert min(powers[: 554 - 450]) < 0.9 <= min(powers[554 - 450 :])
    assert [n for n, value in enumerate(powers, 450) if value >= 0.9][0] == 506


@pytest.mark.parametrize(("alpha", "n"), [("0.05", 59), ("1/32", 95), ("0.02", 149), ("0.01", 299)])
def test_t9_a_perfect_guard_needs_the_zero_failure_size(alpha: str, n: int) -> None:
    """T9: sizes of the design at delta .05."""
    found = plan(alpha, "0.05", "0.9", 0)
    assert found.zero_failures == n == found.sizes.least.n == found.sizes.stays.n
    assert found.sizes.least.power == 1 and found.sizes.least.failures == 0


@pytest.mark.parametrize("n", [1, 30, 95, 1000])
def test_the_smallest_rate_is_the_end_of_no_failures(n: int) -> None:
    """T8: 0/30 certifies no less than .0950."""
    assert smallest_rate(n, "0.05") == pytest.approx(upper_end(0, n, 0.95), rel=1e-12)
    assert smallest_rate(30, "0.05") == pytest.approx(0.0950, abs=5e-5)
    assert smallest_rate(0, "0.05") == 1.0


@pytest.mark.parametrize("n", [59, 100, 181])
def test_t9_the_planned_event_is_that_the_rule_goes_no_higher(n: int) -> None:
    """T9: a threshold is certified by its count iff the chosen one lies at or below it."""
    rng = np.random.default_rng(n)
    for _ in range(40):
        p = rng.random(n).round(2) * 0.99
        tau = float(np.quantile(p, 0.97))
        chosen = pac_threshold(p, [0] * n, "0.05", "0.05")
        assert chosen.k is not None and chosen.tau_act is not None
        assert (np.count_nonzero(p >= tau) <= chosen.k) == (chosen.tau_act <= tau)


def test_simulated_guards_are_certified_as_often_as_planned() -> None:
    found = sizes("0.05", "0.05", "0.9", "0.0125").least
    bad = np.random.default_rng(1).binomial(found.n, 0.0125, 20_000)
    rate = float(np.mean(upper_end(bad, found.n, 0.95) <= 0.05))
    assert abs(rate - found.power) < 4 * np.sqrt(0.09 / 20_000)


def test_a_plan_tells_its_table_and_the_items_to_label() -> None:
    found = plan("0.05", "0.05", "0.9", pi0="0.2375")
    assert [row.uar_true for row in found.table] == [0, F(1, 80), F(1, 40), F(3, 80)]
    assert found.sizes == found.table[2]
    assert found.items == pytest.approx(506 / 0.2375)
    # the mean of a negative binomial: items until 506 are disallowed
    assert found.items == pytest.approx(stats.nbinom.mean(506, 0.2375) + 506)
    told = json.loads(json.dumps(found.json(), allow_nan=False))
    assert told["zero_failures"] == 59 and told["least"]["n"] == 506 and len(told["table"]) == 4
    text = found.text()
    assert "506 disallowed items" in text and "expect to label 2131" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_rate_near_the_limit_has_a_size_or_a_reason() -> None:
    assert sizes("0.01", "0.05", "0.9", "0.0075").stays.n == 12_663
    with pytest.raises(GuardError, match="too close to uar"):
        sizes("0.3", "0.05", "0.9", "0.2999999")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("0.05", "0.05", "0.9", "0.05"), "uar_true 0.05 is not below uar"),
        (("0", "0.05"), "uar is 0"),
        (("0.05", "1"), "delta is 1"),
        (("0.05", "0.05", "1"), "power is 1"),
        (("0.05", "0.05", "0.9", "-1"), "uar_true is -1"),
        (("0.05", "0.05", "0.9", None, "0"), "pi0 is 0"),
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(arguments: tuple, words: str) -> None:
    with pytest.raises(GuardError, match=words) as caught:
        plan(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("alpha", ["1/1000", "1/10000", "1/100000"])
def test_a_small_rate_is_planned_for_as_a_large_one_is(alpha: str) -> None:
    """Counts of rare failures are nearly Poisson: the failures that may pass hardly depend on the rate."""
    found = plan(alpha, "0.05").sizes.least
    assert found.failures == plan("1/100", "0.05").sizes.least.failures
    assert power_of(found.n, alpha, "0.05", F(alpha) / 2) == pytest.approx(found.power)
    assert found.power >= 0.9
