"""Reliability tables, bins of reports with what was observed in them, and the binned errors; imports tally and rate.

Two binnings: equal width (bins may be empty and are kept) and equal mass (fewer bins where many reports are equal).
Either way equal reports share a bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, cut
from harnesses.guard.tally import Tally


@dataclass(frozen=True)
class Bin:
    """Reports from `lower` to `upper`: `allowed` of its items were allowed, `mean_report` is what was said of them.

    `se` is the standard error of `overconfidence`, None with fewer than two items. An empty bin has a count of 0
    and None for all else.
    """

    lower: float
    upper: float
    mean_report: float | None
    allowed: Rate
    se: float | None

    @property
    def count(self) -> int:
        """The number of items."""
        return self.allowed.denominator

    @property
    def overconfidence(self) -> float | None:
        """Mean of p - y in the bin, in [-1, 1]: above 0 where more was promised than observed."""
        if self.mean_report is None or self.allowed.rate is None:
            return None
        return self.mean_report - self.allowed.rate

    def json(self) -> dict[str, Any]:
        """The row, its rate of allowed items with Clopper-Pearson ends."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "count": self.count,
            "mean_report": self.mean_report,
            "allowed": self.allowed.json(),
            "overconfidence": self.overconfidence,
            "overconfidence_se": self.se,
        }

    def __str__(self) -> str:
        said = "  none " if self.mean_report is None else f"{self.mean_report:.5f}"
        return f"[{self.lower:.5f}, {self.upper:.5f}] said {said} allowed {self.allowed}"


def equal_width(tally: Tally, bins: int = 15, level: float = 0.95) -> tuple[Bin, ...]:
    """`bins` rows: row k holds the reports in [k/bins, (k+1)/bins), the last one also 1; rows may be empty.

    Reports meet the edges exactly, each float read by its shortest decimal: 0.29 is in row 29 of 100.
    """
    size = bin_number(bins)
    starts = np.array([cut(Fraction(k, size)) for k in range(1, size)])
    index = np.searchsorted(starts, tally.report, side="right")
    edges = [k / size for k in range(size + 1)]
    return _rows(tally, index, edges[:-1], edges[1:], level)


def equal_mass(tally: Tally, bins: int = 15, level: float = 0.95) -> tuple[Bin, ...]:
    """At most `bins` rows of about as many items each, none empty; a row's edges are its least and greatest report.

    Ties: a report with `below` of N items strictly below it falls in bin floor(bins below / N). All items with an
    equal report thus share the bin of the first of them, and a bin that this leaves empty does not appear.
    """
    index = mass_index(tally, bins)
    first = np.flatnonzero(np.diff(index, prepend=-1))
    last = np.append(first[1:], index.size)[: first.size] - 1
    return _rows(tally, index, tally.report[first].tolist(), tally.report[last].tolist(), level)


def mass_index(tally: Tally, bins: int) -> np.ndarray:
    """Bin int64 `[M]` of each distinct report under equal mass, numbered without gaps."""
    size = bin_number(bins)
    if tally.size == 0:
        return np.zeros(0, dtype=np.int64)
    below = np.cumsum(tally.count) - tally.count
    bins_with_gaps = size * below // tally.size
    return np.cumsum(np.diff(bins_with_gaps, prepend=0) > 0)


def ece(rows: tuple[Bin, ...]) -> float | None:
    """Expected calibration error: mean over the items of their bin's |mean report - rate|; None without items.

    Source: M. Pakdaman Naeini, G. Cooper, M. Hauskrecht, Obtaining well calibrated probabilities using Bayesian
    binning, AAAI 2015. It is biased upwards: a calibrated guard has a positive one in every sample.
    """
    items = sum(row.count for row in rows)
    gaps = (row.count * abs(row.overconfidence) for row in rows if row.overconfidence is not None)
    return math.fsum(gaps) / items if items else None


def debiased_squared(rows: tuple[Bin, ...]) -> float | None:
    """Squared calibration error, mean over the items of (mean report - rate)^2, less the noise in it; may be below 0.

    From each bin's square the squared standard error of its gap is taken off, which makes it unbiased for bins
    fixed in advance, given their counts. Bins of one item, whose noise cannot be told, are left out with their
    weight; None where no bin has two items. Source: A. Kumar, P. Liang, T. Ma, Verified uncertainty calibration,
    NeurIPS 2019. Differs from the source: reports may vary within a bin, so the noise is that of p - y and not of
    y alone; the two agree where each bin holds one report.
    """
    told = [(row.count, row.overconfidence, row.se) for row in rows if row.se is not None]
    items = sum(count for count, _, _ in told)
    if not items:
        return None
    return math.fsum(n * (gap * gap - se * se) for n, gap, se in told if gap is not None) / items


def bin_number(bins: Any) -> int:
    """The number of bins. Raises GuardError unless it is a positive integer."""
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise GuardError(f"bins is {bins}; give a whole number of at least 1, such as 15")
    return int(bins)


def _rows(
    tally: Tally, index: np.ndarray, lower: list[float], upper: list[float], level: float
) -> tuple[Bin, ...]:
    """Rows for the bin `index` `[M]` of each distinct report."""
    size, report = len(lower), tally.report
    count = np.bincount(index, tally.count, size)
    allowed = np.bincount(index, tally.allowed, size)
    mean = _ratio(np.bincount(index, tally.count * report, size), count)
    gap = (mean - _ratio(allowed, count))[index]
    squares = tally.allowed * (report - 1 - gap) ** 2 + tally.disallowed * (report - gap) ** 2
    variance = _ratio(np.bincount(index, squares, size), count - 1)
    se = np.sqrt(_ratio(variance, count))
    return tuple(
        Bin(
            lower[k],
            upper[k],
            float(mean[k]) if count[k] else None,
            Rate.of(int(allowed[k]), int(count[k]), level),
            float(se[k]) if count[k] > 1 else None,
        )
        for k in range(size)
    )


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the denominator is not positive: those are never read."""
    return np.divide(top, bottom, out=np.zeros(np.shape(bottom)), where=bottom > 0)
