"""Reports with their labels, counted by distinct report: what every measure of calibration starts from; imports region.

A tally forgets the order of the rows, so nothing computed from one can depend on it, not even in the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harnesses.guard.region import GuardError, cut


@dataclass(frozen=True, eq=False)
class Tally:
    """`report` float64 `[M]`, distinct and increasing, in [0, 1]; `count` and `allowed` int64 `[M]`, the items there.

    `Tally.of` checks what comes from outside; the constructor does not.
    """

    report: np.ndarray
    count: np.ndarray
    allowed: np.ndarray

    @classmethod
    def of(cls, p: Any, y: Any) -> Tally:
        """From reports `[N]` in [0, 1] and labels `[N]`, 1 or 0. Raises GuardError naming the row, the first is 1."""
        reports, labels = checked_reports(p), _labels(y)
        if reports.shape != labels.shape:
            raise GuardError(
                f"{reports.size} reports with {labels.size} labels; give one label, 0 or 1, per report"
            )
        if reports.size == 0:
            raise GuardError("no items; give at least one report with its label, such as p 0.97 with y 1")
        distinct, where = np.unique(reports, return_inverse=True)
        count = np.bincount(where, minlength=distinct.size)
        # Sums of zeros and ones in float64 are exact far beyond any number of rows.
        allowed = np.bincount(where, weights=labels, minlength=distinct.size).astype(np.int64)
        return cls(distinct, count.astype(np.int64), allowed)

    @cached_property
    def size(self) -> int:
        """The number of items."""
        return int(self.count.sum())

    @cached_property
    def total_allowed(self) -> int:
        """The number of allowed items."""
        return int(self.allowed.sum())

    @property
    def disallowed(self) -> np.ndarray:
        """Disallowed items `[M]` at each report."""
        return self.count - self.allowed

    def at_least(self, tau: Any) -> Tally:
        """The items whose report reaches `tau`, an exact number; perhaps none."""
        first = int(np.searchsorted(self.report, cut(tau)))
        return Tally(self.report[first:], self.count[first:], self.allowed[first:])


def checked_reports(p: Any) -> np.ndarray:
    """Reports as float64 `[N]`. Raises GuardError naming the first row, counted from 1, outside [0, 1]."""
    reports = _numbers(p, "reports", "0.97")
    bad = ~((reports >= 0) & (reports <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise GuardError(f"report {row + 1} is {reports[row]}; give a probability from 0 to 1, such as 0.97")
    return reports


def _labels(y: Any) -> np.ndarray:
    labels = _numbers(y, "labels", "1")
    bad = (labels != 0) & (labels != 1)
    if bad.any():
        row = int(np.argmax(bad))
        raise GuardError(
            f"label {row + 1} is {labels[row]}; give 1 for an allowed item, 0 for a disallowed one"
        )
    return labels


def _numbers(values: Any, name: str, example: str) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GuardError(f"{name} are not all numbers; give a list of numbers such as {example}") from error
    if found.ndim != 1:
        raise GuardError(f"{name} have shape {found.shape}; give a flat list, one number per item")
    return found
