"""Rates and averages that are reported with their denominators; imports binomial.

What the data do not define is None, never 0: the share of nothing is no share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from harnesses.guard.binomial import clopper_pearson, lower_end, upper_end


@dataclass(frozen=True)
class Rate:
    """`numerator` of `denominator`, with standard error and two-sided Clopper-Pearson ends at `level`.

    The standard error is that of a binomial share, 0 where all agree: the ends, not the error, then say how
    little is known. Without a denominator the rate, its error and its ends are None.
    """

    numerator: int
    denominator: int
    rate: float | None
    se: float | None
    lower: float | None
    upper: float | None
    level: float

    @classmethod
    def of(cls, numerator: int, denominator: int, level: float = 0.95) -> Rate:
        """From counts. Raises GuardError unless 0 <= numerator <= denominator."""
        k, n = int(numerator), int(denominator)
        lower, upper = clopper_pearson(k, n, level)
        if n == 0:
            return cls(k, n, None, None, None, None, level)
        share = k / n
        return cls(k, n, share, math.sqrt(share * (1 - share) / n), lower, upper, level)

    def upper_at(self, confidence: float) -> float:
        """One-sided upper end; 1 without a denominator."""
        return upper_end(self.numerator, self.denominator, confidence)

    def lower_at(self, confidence: float) -> float:
        """One-sided lower end; 0 without a denominator."""
        return lower_end(self.numerator, self.denominator, confidence)

    def json(self) -> dict[str, Any]:
        """The record without its level, which its report states once."""
        return {name: value for name, value in vars(self).items() if name != "level"}

    def __str__(self) -> str:
        counts = f"{self.numerator}/{self.denominator}"
        if self.rate is None:
            return f"{counts}, undefined"
        if self.numerator == 0:
            return f"{counts}, at most {self.upper:.4f}"
        if self.numerator == self.denominator:
            return f"{counts}, at least {self.lower:.4f}"
        return f"{counts} = {self.rate:.4f} (se {self.se:.4f}) [{self.lower:.4f}, {self.upper:.4f}]"


@dataclass(frozen=True)
class Average:
    """The mean of `count` values, its standard error, and the t interval at `level`.

    Undefined without values; the error and the interval also with one value.
    """

    count: int
    mean: float | None
    se: float | None
    lower: float | None
    upper: float | None
    level: float

    @classmethod
    def of(cls, values: Any, level: float = 0.95) -> Average:
        """From finite values `[N]`."""
        x = np.asarray(values, dtype=np.float64)
        if x.size == 0:
            return cls(0, None, None, None, None, level)
        mean = float(x.mean())
        if x.size == 1:
            return cls(1, mean, None, None, None, level)
        se = float(x.std(ddof=1)) / math.sqrt(x.size)
        half = float(stats.t.isf((1 - level) / 2, x.size - 1)) * se
        return cls(x.size, mean, se, mean - half, mean + half, level)

    def json(self) -> dict[str, Any]:
        """The record without its level."""
        return {name: value for name, value in vars(self).items() if name != "level"}

    def __str__(self) -> str:
        if self.mean is None:
            return "undefined, no items"
        if self.se is None:
            return f"{self.mean:.5g} (one item)"
        return f"{self.mean:.5g} (se {self.se:.2g}) [{self.lower:.5g}, {self.upper:.5g}]"
