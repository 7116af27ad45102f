"""Venn-Abers prediction: two calibrated probabilities per report, one of which is right; imports tally.

The report joins the calibration items once as disallowed and once as allowed; isotonic regression of either set gives
its probability, p0 <= p1. Whatever the distribution, the one that belongs to the true label is calibrated exactly, as
long as the new item is exchangeable with the calibration items.
Source: V. Vovk, I. Petej, V. Fedorova, Large-scale probabilistic predictors with and without guarantees of validity,
NeurIPS 2015 (its inductive form; the pass below is this project's, in whole numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harnesses.guard.tally import Tally, checked_reports


@dataclass(frozen=True, eq=False)
class VennAbers:
    """`lower_at` and `upper_at` float64 `[M]`: p0 and p1 at each distinct calibration report `report` `[M]`.

    All a prediction needs is in these: no regression is fitted again per item. Unlike the other calibrators this
    one takes labels of one kind, since n allowed items and no other still leave a doubt of 1 / (n + 1).
    """

    report: np.ndarray
    lower_at: np.ndarray
    upper_at: np.ndarray

    @classmethod
    def fit(cls, p: Any, y: Any) -> VennAbers:
        """From calibration reports `[N]` and labels `[N]`: a sort and one pass over distinct reports for each label."""
        tally = Tally.of(p, y)
        upper = _with_one_allowed(tally.count.tolist(), tally.allowed.tolist())
        # Labels exchanged and the order turned round: p0 becomes 1 - p1.
        turned = _with_one_allowed(tally.count[::-1].tolist(), tally.disallowed[::-1].tolist())
        lower = [(run - rise, run) for rise, run in reversed(turned)]
        return cls(tally.report, _quotients(lower), _quotients(upper))

    def interval(self, p: Any) -> tuple[np.ndarray, np.ndarray]:
        """p0 and p1 float64 `[N]` of reports `[N]` in [0, 1]: 0 below, and 1 above, all calibration reports."""
        reports = checked_reports(p)
        below = np.searchsorted(self.report, reports, side="right")
        reached = np.searchsorted(self.report, reports, side="left")
        return np.append(0.0, self.lower_at)[below], np.append(self.upper_at, 1.0)[reached]

    def lower(self, p: Any) -> np.ndarray:
        """p0 `[N]`: the conservative guard cuts these, and acts only where the lower probability reaches tau_act."""
        return self.interval(p)[0]

    def predict(self, p: Any) -> np.ndarray:
        """One probability `[N]`, p1 / (1 - p0 + p1): the one whose log loss is least in the worse of both cases."""
        low, high = self.interval(p)
        return high / (1 - low + high)


@dataclass(frozen=True, eq=False)
class LowerVennAbers:
    """Venn-Abers with the lower probability as its prediction, for the conservative rule."""

    both: VennAbers

    @classmethod
    def fit(cls, p: Any, y: Any) -> LowerVennAbers:
        """As VennAbers."""
        return cls(VennAbers.fit(p, y))

    def predict(self, p: Any) -> np.ndarray:
        """p0 float64 `[N]` of reports `[N]` in [0, 1]."""
        return self.both.lower(p)


def _with_one_allowed(count: list[int], allowed: list[int]) -> list[tuple[int, int]]:
    """(rise, run) per distinct report: the isotonic value there once one allowed item more is reported so.

    Isotonic values are slopes of the greatest convex minorant of the corners (items, allowed items) counted from the
    left. One allowed item more at step i moves the corners before it by (-1, -1) against the others, and its value
    is the slope of the line that touches both parts from below, at `left` and at corner `right`. From step to step
    that slope does not fall. A corner that changes sides therefore touches if it lies below the line, as the line's
    own right end does, and else the line stays; the right end only moves on, along the minorant of those after it.
    """
    corners = [(0, 0)]
    for n, k in zip(count, allowed):
        corners.append((corners[-1][0] + n, corners[-1][1] + k))
    after = _successors(corners)
    found, left, right = [], (-1, -1), 1
    for step in range(1, len(corners)):
        x, y = corners[step - 1]
        moved = (x - 1, y - 1)
        if _turn(left, corners[right], moved) < 0:
            left = moved
        right = max(right, step)
        while after[right] and _turn(left, corners[right], corners[after[right]]) <= 0:
            right = after[right]
        end = corners[right]
        found.append((end[1] - left[1], end[0] - left[0]))
    return found


def _successors(corners: list[tuple[int, int]]) -> list[int]:
    """The next corner on the convex minorant of each corner and all after it; 0 for the last one."""
    after = [0] * len(corners)
    for start in range(len(corners) - 2, -1, -1):
        end = start + 1
        while after[end] and _turn(corners[start], corners[end], corners[after[end]]) <= 0:
            end = after[end]
        after[start] = end
    return after


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    """Above 0 where c lies above the line from a through b, exactly."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _quotients(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([rise / run for rise, run in pairs])
