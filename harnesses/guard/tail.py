"""Which count of failures a binomial tail allows, decided exactly; imports region, flint, scipy.

A floating-point tail errs by a few units in its last place, which matters where it meets the level: of two items
none fails at rate 1/2 with probability exactly 1/4. Near a tie the comparison is made with error bounds at 256 bits,
and where these do not decide, which a true tie alone is likely to need, in integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
from scipy import special

from harnesses.guard.region import GuardError
from pomdp.rational import read_rational

# The library's tails are right to about 1e-10, and the rate's rounding moves them by n times 1e-16.
_NEAR = 1e-8
_FLOAT_FROM = 1e-290
_BITS = 256
_LEAST = Fraction(1, 10**300)
_LEAST_RATE = Fraction(1, 10**6)


def rate_between(value: Any, where: str) -> Fraction:
    """A rate to be certified, from a millionth up and below 1: less takes millions of items to tell from 0."""
    return level(value, where, least=_LEAST_RATE)


def level(value: Any, where: str, example: str = "0.05", least: Fraction = _LEAST) -> Fraction:
    """An error probability strictly between 0 and 1, exactly. Raises GuardError for anything else."""
    try:
        found = read_rational(value)
    except ValueError as error:
        raise GuardError(f"{where}: {error}") from error
    if not 0 < found < 1:
        raise GuardError(f"{where} is {value}; give a number strictly between 0 and 1, such as {example}")
    if found < least:
        raise GuardError(f"{where} is {value}; give at least {float(least):g}, such as {example}")
    return found


def tail(failures: int, trials: int, rate: Fraction) -> float:
    """P(Bin(trials, rate) <= failures) as a float."""
    if failures >= trials:
        return 1.0
    return float(special.betaincc(failures + 1, trials - failures, float(rate)))


def log(value: Fraction) -> float:
    """Natural logarithm of a positive rational, however small."""
    return math.log(value.numerator) - math.log(value.denominator)


def at_most(failures: int, trials: int, rate: Fraction, bound: Fraction) -> bool:
    """Whether P(Bin(trials, rate) <= failures) <= bound, exactly; rate strictly between 0 and 1."""
    if failures < 0:
        return bound >= 0
    if failures >= trials:
        return bound >= 1
    found, limit = tail(failures, trials, rate), float(bound)
    if limit > _FLOAT_FROM and abs(found - limit) > _NEAR * limit:
        return found < limit
    decided = _with_error_bounds(failures, trials, rate, bound)
    return _at_most(failures, trials, rate, bound) if decided is None else decided


def most_failures(trials: int, rate: Fraction, bound: Fraction) -> int | None:
    """The largest k with P(Bin(trials, rate) <= k) <= bound; None where even k = 0 is too likely.

    For bound < 1 it is below `trials`, because all trials fail at most always.
    """
    if trials == 0:
        return None
    low, high = -1, trials  # at_most holds at low and not at high
    while high - low > 1:
        k = (low + high) // 2
        low, high = (k, high) if at_most(k, trials, rate, bound) else (low, k)
    return None if low < 0 else low


def zero_failure_size(rate: Any, bound: Any) -> int:
    """The least number of trials of which none may fail: least n with (1 - rate)^n <= bound.

    At bound 1/20: 59 trials for rate 1/20, 95 for 1/32, 149 for 1/50, 299 for 1/100. Raises GuardError for a
    rate or bound that `rate_between` and `level` refuse.
    """
    rate, bound = rate_between(rate, "rate"), level(bound, "delta")
    n = max(1, math.ceil(log(bound) / math.log1p(-float(rate))))
    while not at_most(0, n, rate, bound):
        n += 1
    while n > 1 and at_most(0, n - 1, rate, bound):
        n -= 1
    return n


def _with_error_bounds(failures: int, trials: int, rate: Fraction, bound: Fraction) -> bool | None:
    """The comparison in balls that hold the true values; None where they overlap."""
    with flint.ctx.workprec(_BITS):
        chance = flint.arb(flint.fmpq(rate.numerator, rate.denominator))
        term = (1 - chance) ** flint.arb(trials)
        total, odds = term, chance / (1 - chance)
        for i in range(failures):
            term = term * (trials - i) * odds / (i + 1)
            total = total + term
        limit = flint.arb(flint.fmpq(bound.numerator, bound.denominator))
        return True if total < limit else False if total > limit else None


def _at_most(failures: int, trials: int, rate: Fraction, bound: Fraction) -> bool:
    """The comparison in integers: with rate a/d the tail is b^(n-k) S / d^n, b = d - a."""
    a, d = rate.numerator, rate.denominator
    b = d - a
    total, term = 0, 1
    for i in range(failures + 1):
        total = total * b + term
        term = term * (trials - i) * a // (i + 1)
    return total * b ** (trials - failures) * bound.denominator <= bound.numerator * d**trials
