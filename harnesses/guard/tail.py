"""Which count of failures a binomial tail allows, decided exactly; imports region, pomdp.rational and scipy.

A floating-point tail errs by a few units in its last place, which matters where it meets the level: of two items
none fails at rate 1/2 with probability exactly 1/4. Near a tie the comparison is made in integers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from scipy import stats

from harnesses.guard.region import GuardError
from pomdp.rational import read_rational

# The library's tails are right to about 1e-13 and the rate's rounding moves them by n/1e16.
_NEAR = 1e-9
_FLOAT_FROM = 1e-290


def level(value: Any, where: str, example: str = "0.05") -> Fraction:
    """A rate or error probability strictly between 0 and 1, exactly. Raises GuardError for anything else."""
    try:
        found = read_rational(value)
    except ValueError as error:
        raise GuardError(f"{where}: {error}") from error
    if not 0 < found < 1:
        raise GuardError(f"{where} is {value}; give a number strictly between 0 and 1, such as {example}")
    return found


def tail(failures: int, trials: int, rate: Fraction) -> float:
    """P(Bin(trials, rate) <= failures) as a float."""
    return float(stats.binom.cdf(failures, trials, float(rate)))


def at_most(failures: int, trials: int, rate: Fraction, bound: Fraction) -> bool:
    """Whether P(Bin(trials, rate) <= failures) <= bound, exactly; rate strictly between 0 and 1."""
    if failures < 0:
        return bound >= 0
    if failures >= trials:
        return bound >= 1
    found, limit = tail(failures, trials, rate), float(bound)
    if limit > _FLOAT_FROM and abs(found - limit) > _NEAR * limit:
        return found < limit
    return _at_most(failures, trials, rate, bound)


def most_failures(trials: int, rate: Fraction, bound: Fraction) -> int | None:
    """The largest k with P(Bin(trials, rate) <= k) <= bound; None where even k = 0 is too likely.

    For bound < 1 it is below `trials`, because all trials fail at most always.
    """
    if trials == 0:
        return None
    k = int(stats.binom.ppf(float(bound), trials, float(rate)))
    while at_most(k + 1, trials, rate, bound):
        k += 1
    while k >= 0 and not at_most(k, trials, rate, bound):
        k -= 1
    return None if k < 0 else k


def zero_failure_size(rate: Any, bound: Any) -> int:
    """The least number of trials of which none may fail: least n with (1 - rate)^n <= bound.

    At bound 1/20: 59 trials for rate 1/20, 95 for 1/32, 149 for 1/50, 299 for 1/100. Raises GuardError for a
    rate or bound that is not strictly between 0 and 1.
    """
    rate, bound = level(rate, "rate"), level(bound, "delta")
    n = max(1, int(stats.nbinom.ppf(float(1 - bound), 1, float(rate))) + 1)
    while not at_most(0, n, rate, bound):
        n += 1
    while n > 1 and at_most(0, n - 1, rate, bound):
        n -= 1
    return n


def _at_most(failures: int, trials: int, rate: Fraction, bound: Fraction) -> bool:
    """The comparison in integers: with rate a/d the tail is b^(n-k) S / d^n, b = d - a."""
    a, d = rate.numerator, rate.denominator
    b = d - a
    total, term = 0, 1
    for i in range(failures + 1):
        total = total * b + term
        term = term * (trials - i) * a // (i + 1)
    return total * b ** (trials - failures) * bound.denominator <= bound.numerator * d**trials
