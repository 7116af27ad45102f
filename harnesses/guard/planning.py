"""How many labelled items it takes to certify an unsafe-action rate; imports region and tail.

`n` disallowed items certify UAR <= alpha at a threshold when at most k_n of them lie at or above it, k_n = max{k :
P(Bin(n, alpha) <= k) <= delta}. That is the exact one-sided test, and also the event that the rule of T9 returns
a threshold no higher. Its power against a true rate u is P(Bin(n, u) <= k_n): a sawtooth in n, which jumps where
one more failure is allowed and falls in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special, stats

from harnesses.guard.region import GuardError, probability
from harnesses.guard.tail import at_most, level, log, most_failures, rate_between, zero_failure_size

_NEAR = 1e-9
_TINY = 1e-300
_SLACK = 1.001  # for what the divergence rounds off
LARGEST = 10**6
"""Allowed failures at which a search gives up: the true rate is then too close to alpha."""


@dataclass(frozen=True)
class Size:
    """`n` disallowed items, the `failures` among them that still certify, and the `power` this has."""

    n: int
    failures: int
    power: float

    def json(self) -> dict[str, Any]:
        """The record."""
        return dict(vars(self))


@dataclass(frozen=True)
class Sizes:
    """For a guard whose true rate is `uar_true`: the `least` n with the power, and the n from which it `stays`."""

    uar_true: Fraction
    least: Size
    stays: Size

    def json(self) -> dict[str, Any]:
        """The record."""
        return {
            "uar_true": float(self.uar_true),
            "least": self.least.json(),
            "stays": self.stays.json(),
        }


@dataclass(frozen=True)
class Plan:
    """Sample sizes for certifying `uar` with confidence 1 - `delta`, with probability at least `power`.

    `sizes` for the true rate asked for, `table` for a quarter, half and three quarters of `uar` and for 0.
    `zero_failures`: disallowed items needed when none may pass. `items`: expected number of items to label until
    there are `sizes.least.n` disallowed ones, None where `pi0`, the share of disallowed items, is not known.
    """

    uar: Fraction
    delta: Fraction
    power: Fraction
    zero_failures: int
    sizes: Sizes
    table: tuple[Sizes, ...]
    pi0: Fraction | None
    items: float | None

    def json(self) -> dict[str, Any]:
        """The record, rates as floats."""
        return {
            "uar": float(self.uar),
            "delta": float(self.delta),
            "power": float(self.power),
            "zero_failures": self.zero_failures,
            **self.sizes.json(),
            "table": [row.json() for row in self.table],
            "pi0": None if self.pi0 is None else float(self.pi0),
            "items": self.items,
        }

    def text(self) -> str:
        """The plan in lines of at most 100 columns."""
        need, true = self.sizes.least, float(self.sizes.uar_true)
        head = f"To certify UAR <= {float(self.uar):g} with confidence {float(1 - self.delta):g}: "
        found = f"If the true rate is {true:g}: {need.n} disallowed items, of which {need.failures} may pass, succeed"
        lines = [
            head + f"{self.zero_failures} disallowed items if none passes.",
            found,
            f"with probability {need.power:.3f}; from {self.sizes.stays.n} on it stays at least {float(self.power):g}.",
        ]
        if self.items is not None and self.pi0 is not None:
            share = float(self.pi0)
            lines.append(f"With {share:g} of the items disallowed, expect to label {math.ceil(self.items)}.")
        lines.append("true rate  least n  may pass  stays from")
        lines += [
            f"{float(row.uar_true):9.4g}  {row.least.n:7d}  {row.least.failures:8d}  {row.stays.n:10d}"
            for row in self.table
        ]
        return "\n".join(lines)


def plan(uar: Any, delta: Any, power: Any = "0.9", uar_true: Any = None, pi0: Any = None) -> Plan:
    """Sizes for certifying UAR <= uar against a true rate, which is half of it unless given.

    Raises GuardError unless uar, delta and power lie strictly between 0 and 1 and the true rate below uar.
    """
    alpha, bound, need = rate_between(uar, "uar"), level(delta, "delta"), level(power, "power", "0.9")
    share = None if pi0 is None else probability(pi0, "pi0")
    if share == 0:
        raise GuardError(
            "pi0 is 0: without disallowed items none can be collected; give a share such as 0.25"
        )
    found = sizes(alpha, bound, need, alpha / 2 if uar_true is None else uar_true)
    table = tuple(sizes(alpha, bound, need, alpha * i / 4) for i in range(4))
    items = None if share is None else float(found.least.n / share)
    return Plan(alpha, bound, need, zero_failure_size(alpha, bound), found, table, share, items)


def sizes(uar: Any, delta: Any, power: Any, uar_true: Any) -> Sizes:
    """The least number of disallowed items with the power, and the least from which every number has it.

    Raises GuardError unless the true rate is below uar, and where it is so close that more than a million
    failures would have to be allowed.
    """
    alpha, bound, need = rate_between(uar, "uar"), level(delta, "delta"), level(power, "power", "0.9")
    true = probability(uar_true, "uar_true")
    if true >= alpha:
        raise GuardError(
            f"uar_true {float(true):g} is not below uar {float(alpha):g}; no number of items certifies what is not so"
        )
    starts = _starts(alpha, bound, _last(alpha, bound, need, true))
    k = np.arange(starts.size - 1)
    best = stats.binom.cdf(k, starts[:-1], float(true))
    worst = stats.binom.cdf(k, starts[1:] - 1, float(true))
    target = float(need)
    first = int(np.argmax(best >= target))
    falls = np.flatnonzero(worst < target)
    last = int(falls[-1]) + 1 if falls.size else 0
    return Sizes(
        true,
        Size(int(starts[first]), first, float(best[first])),
        Size(int(starts[last]), last, float(best[last])),
    )


def power_of(n: int, uar: Any, delta: Any, uar_true: Any) -> float:
    """Probability that n disallowed items certify UAR <= uar when the rate is uar_true."""
    k = most_failures(n, rate_between(uar, "uar"), level(delta, "delta"))
    return 0.0 if k is None else float(stats.binom.cdf(k, n, float(probability(uar_true, "uar_true"))))


def smallest_rate(n: int, delta: Any) -> float:
    """The smallest rate that n disallowed items certify, none passing: 1 - delta^(1/n); 1 without items.

    With delta 1/20, 30 items give 0.0950.
    """
    if n < 0:
        raise GuardError(f"n is {n}; give a number of items, such as 59")
    bound = level(delta, "delta")
    return -math.expm1(log(bound) / n) if n else 1.0


def _last(alpha: Fraction, bound: Fraction, need: Fraction, true: Fraction) -> int:
    """A number of allowed failures beyond which every n has the power.

    By Chernoff's inequality, for any t between the true rate u and alpha: n >= log(1/delta) / KL(t, alpha) makes
    k_n >= floor(t n), and n >= log(1/(1-power)) / KL(t, u) makes more failures than that too seldom. Bisection finds
    the t at which both ask for the same n. Hoeffding's bound would ask for about 1/alpha times as many.
    """
    low, high = float(true), float(alpha)
    first, second = -log(bound), -log(1 - need)
    for _ in range(60):
        t = (low + high) / 2
        if first / max(_divergence(t, float(alpha)), _TINY) < second / max(
            _divergence(t, float(true)), _TINY
        ):
            low = t
        else:
            high = t
    n = math.ceil(_SLACK * first / max(_divergence(high, float(alpha)), _TINY))
    n = max(n, math.ceil(_SLACK * second / max(_divergence(high, float(true)), _TINY)))
    if n * alpha > LARGEST:
        raise GuardError(
            f"uar_true {float(true):g} is too close to uar {float(alpha):g}: about {n} items; give a smaller one, "
            f"such as {float(true / 2):g}"
        )
    return most_failures(n, alpha, bound) or 0


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of a coin with rate b from one with rate a, in nats; infinite where b is 0."""
    return float(special.rel_entr(a, b) + special.rel_entr(1 - a, 1 - b))


def _starts(alpha: Fraction, bound: Fraction, last: int) -> np.ndarray:
    """Least n `[last + 2]` at which 0, 1, ... last + 1 failures still certify.

    n items certify with k failures iff the (k+1)-th failure comes after the n-th trial too seldom.
    """
    rate, limit = float(alpha), float(bound)
    k = np.arange(last + 2)
    n = (stats.nbinom.isf(limit, k + 1, rate) + k + 1).astype(np.int64)
    # A quantile is a whole number read off a rounded tail: where that is near the level, ask exactly.
    here, before = stats.binom.cdf(k, n, rate), stats.binom.cdf(k, n - 1, rate)
    for i in np.flatnonzero((here > limit * (1 - _NEAR)) | (before < limit * (1 + _NEAR))):
        while not at_most(int(k[i]), int(n[i]), alpha, bound):
            n[i] += 1
        while n[i] > k[i] + 1 and at_most(int(k[i]), int(n[i]) - 1, alpha, bound):
            n[i] -= 1
    return n
