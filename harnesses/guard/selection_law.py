"""SelectionLaw: by how much a rule that selects thresholds breaks its promise, exactly; imports region.

A selection reads a labelled sample and gives a threshold. On a law of reports with a few atoms its samples can be
counted, ties included, so that the probability of a bad threshold is a rational and no simulation is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from harnesses.guard.region import GuardError

ZERO = Fraction(0)
Select = Callable[[np.ndarray, np.ndarray], float | None]
Law = Mapping[Fraction, Fraction]
"""{report of a disallowed call: mass}, the largest report first; masses sum to 1."""


class Violation(NamedTuple):
    """A sample after which the UAR is above alpha: its probability, how often each report is in it, tau, the UAR."""

    chance: Fraction
    sample: tuple[int, ...]
    tau: Any
    uar: Fraction


class SelectionLaw:
    """What `select(p [n], y [n])` gives on every sample of disallowed reports; answers are kept.

    Beside the sample it gets one allowed item at each report, so that it never lacks a class. It must not depend on
    the order of items: each multiset is passed once, ascending.
    """

    def __init__(self, select: Select) -> None:
        self._select = select
        self._known: dict[tuple[tuple[Fraction, ...], tuple[int, ...]], Any] = {}

    def violations(self, law: Law, size: int, alpha: Fraction) -> list[Violation]:
        """The samples of `size` disallowed items after which P(p >= tau | y = 0) > alpha. Source: design T9."""
        found = []
        for sample, chance in samples(tuple(law.values()), size):
            tau = self.selected(tuple(law), sample)
            uar = ZERO if tau is None else sum((m for p, m in law.items() if p >= tau), ZERO)
            if uar > alpha:
                found.append(Violation(chance, sample, tau, uar))
        return found

    def selected(self, reports: tuple[Fraction, ...], sample: tuple[int, ...]) -> Any:
        """The threshold after a sample that holds each report so many times. Raises GuardError for no threshold."""
        key = reports, sample
        if key not in self._known:
            p = [float(x) for x, n in zip(reversed(reports), reversed(sample), strict=True) for _ in range(n)]
            items = np.array([*p, *map(float, reports)])
            labels = np.array([0] * len(p) + [1] * len(reports), dtype=np.int8)
            self._known[key] = threshold(self._select(items, labels))
        return self._known[key]


def samples(masses: tuple[Fraction, ...], size: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every way in which `size` draws fall on atoms of these masses, with its multinomial probability."""
    if len(masses) == 1:
        yield (size,), masses[0] ** size
        return
    for k in range(size + 1):
        first = math.comb(size, k) * masses[0] ** k
        for rest, chance in samples(masses[1:], size - k):
            yield (k, *rest), first * chance


def telling_sizes(alpha: Fraction, delta: Fraction) -> tuple[int, ...]:
    """Numbers of disallowed items at which T9 changes: the least that admit k = 0 and 1, one fewer than each, and 1.

    k reports may lie above the threshold where P(Bin(N, alpha) <= k) <= delta.
    """
    found = {1}
    for k in (0, 1):
        n = k + 1
        while tail(k, n, alpha) > delta:
            n += 1
        found |= {max(1, n - 1), n}
    return tuple(sorted(found))


def tail(k: int, n: int, alpha: Fraction) -> Fraction:
    """P(Bin(n, alpha) <= k), exact."""
    return sum((math.comb(n, i) * alpha**i * (1 - alpha) ** (n - i) for i in range(k + 1)), ZERO)


def threshold(value: Any) -> Any:
    """A selection's answer: None or a number, infinity included. Raises GuardError for anything else."""
    if value is None or isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise GuardError(
            f"the selection gives {value!r}; return a threshold such as 0.97, or None: never act"
        )
    if math.isnan(value):
        raise GuardError("the selection gives NaN; where no threshold will do return None: never act")
    return float(value)
