"""Maps from reports to calibrated reports, fitted on labelled items; imports tally, reliability and venn_abers.

Each is a frozen record of its parameters with `fit` and `predict`. None turns the order of reports round except
histogram binning. The three parametric ones minimise log loss against Platt's targets, (N1 + 1) / (N1 + 2) for the N1
allowed items and 1 / (N0 + 2) for the N0 others: hard labels have no best fit where reports separate them.
Source: J. Platt, Probabilistic outputs for support vector machines, 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from scipy import optimize, special

from harnesses.guard.region import GuardError
from harnesses.guard.reliability import mass_index
from harnesses.guard.tally import Tally, checked_reports
from harnesses.guard.venn_abers import LowerVennAbers, VennAbers

EDGE = 1e-9
"""Temperature, Platt and beta read reports below EDGE as EDGE and above 1 - EDGE as 1 - EDGE; 0 and 1 have no logit."""

NEWTON_STEPS = 200
"""Most steps of one fit; a handful suffices unless reports near 0 and 1 are wrong."""


class Fitted(Protocol):
    """A calibrator with its parameters."""

    def predict(self, p: Any) -> np.ndarray:
        """Calibrated reports float64 `[N]` in [0, 1] of reports `[N]`. Raises GuardError for one outside [0, 1]."""
        ...


class Calibrator(Protocol):
    """What fits one."""

    def fit(self, p: Any, y: Any) -> Fitted:
        """From reports `[N]` in [0, 1] and labels `[N]`, 1 or 0. Raises GuardError where they are no such things."""
        ...


@dataclass(frozen=True)
class Temperature:
    """sigmoid(slope * logit p): `slope` >= 0 is 1 / temperature, and 1 changes nothing.

    Source: C. Guo, G. Pleiss, Y. Sun, K. Weinberger, On calibration of modern neural networks, ICML 2017.
    """

    slope: float

    @classmethod
    def fit(cls, p: Any, y: Any) -> Temperature:
        """Raises GuardError for labels of one kind."""
        tally = _both_kinds(p, y)
        (slope,) = _least_loss(tally, [_logit(tally.report)], slopes=1)
        return cls(slope)

    def predict(self, p: Any) -> np.ndarray:
        """Float64 `[N]` in [0, 1]."""
        return special.expit(self.slope * _logit(checked_reports(p)))


@dataclass(frozen=True)
class Platt:
    """sigmoid(slope * logit p + intercept), slope >= 0; slope 1 and intercept 0 change nothing.

    Differs from the source: it is fitted to the logit of a report, not to a margin.
    """

    slope: float
    intercept: float

    @classmethod
    def fit(cls, p: Any, y: Any) -> Platt:
        """Raises GuardError for labels of one kind."""
        tally = _both_kinds(p, y)
        x = _logit(tally.report)
        return cls(*_least_loss(tally, [x, np.ones_like(x)], slopes=1))

    def predict(self, p: Any) -> np.ndarray:
        """Float64 `[N]` in [0, 1]."""
        return special.expit(self.slope * _logit(checked_reports(p)) + self.intercept)


@dataclass(frozen=True)
class Beta:
    """sigmoid(a log p - b log(1 - p) + c), a and b >= 0; (1, 1, 0) changes nothing.

    Source: M. Kull, T. Silva Filho, P. Flach, Beta calibration, AISTATS 2017. Differs from the source: Platt's targets.
    """

    a: float
    b: float
    c: float

    @classmethod
    def fit(cls, p: Any, y: Any) -> Beta:
        """Raises GuardError for labels of one kind."""
        tally = _both_kinds(p, y)
        low, high = _logs(tally.report)
        return cls(*_least_loss(tally, [low, -high, np.ones_like(low)], slopes=2))

    def predict(self, p: Any) -> np.ndarray:
        """Float64 `[N]` in [0, 1]."""
        low, high = _logs(checked_reports(p))
        return special.expit(self.a * low - self.b * high + self.c)


@dataclass(frozen=True)
class Histogram:
    """A step function: from `starts[k]` on, increasing, a report becomes `values[k]`; below all, `values[0]`.

    Each value is the share of allowed items in a bin of equal mass (see reliability.equal_mass). May turn the
    order of reports round. Source: B. Zadrozny and C. Elkan, Obtaining calibrated probability estimates from
    decision trees and naive Bayesian classifiers, ICML 2001.
    """

    starts: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def fit(cls, p: Any, y: Any, bins: int = 15) -> Histogram:
        """Raises GuardError for labels of one kind."""
        tally = _both_kinds(p, y)
        index = mass_index(tally, bins)
        first = np.flatnonzero(np.diff(index, prepend=-1))
        share = np.bincount(index, tally.allowed) / np.bincount(index, tally.count)
        return cls(tuple(tally.report[first].tolist()), tuple(share.tolist()))

    def predict(self, p: Any) -> np.ndarray:
        """Float64 `[N]` in [0, 1]."""
        return _step(p, self.starts, self.values)


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing step function: from `starts[k]` on a report becomes `values[k]`; below all, `values[0]`.

    The nondecreasing function of least squared error. A report between two calibration reports takes the value of
    the lower one, never an interpolated one: what lies above it has not been seen there.
    Source: B. Zadrozny and C. Elkan, Transforming classifier scores into accurate multiclass probability
    estimates, KDD 2002.
    """

    starts: tuple[float, ...]
    values: tuple[float, ...]

    @classmethod
    def fit(cls, p: Any, y: Any) -> Isotonic:
        """Raises GuardError for labels of one kind."""
        tally = _both_kinds(p, y)
        blocks = optimize.isotonic_regression(tally.allowed / tally.count, weights=tally.count).blocks
        # Shares from counts: the regression's own running means carry rounding, perhaps beyond 1.
        share = np.add.reduceat(tally.allowed, blocks[:-1]) / np.add.reduceat(tally.count, blocks[:-1])
        return cls(tuple(tally.report[blocks[:-1]].tolist()), tuple(share.tolist()))

    def predict(self, p: Any) -> np.ndarray:
        """Float64 `[N]` in [0, 1]."""
        return _step(p, self.starts, self.values)


CALIBRATORS: dict[str, Calibrator] = {
    "temperature": Temperature,
    "platt": Platt,
    "beta": Beta,
    "histogram": Histogram,
    "isotonic": Isotonic,
    "venn_abers": VennAbers,
    "venn_abers_lower": LowerVennAbers,
}


def calibrator(name: str) -> Calibrator:
    """The calibrator of that name. Raises GuardError listing the names."""
    if name not in CALIBRATORS:
        raise GuardError(f"no calibrator is called {name!r}; there are {', '.join(CALIBRATORS)}")
    return CALIBRATORS[name]


def _both_kinds(p: Any, y: Any) -> Tally:
    tally = Tally.of(p, y)
    if not 0 < tally.total_allowed < tally.size:
        kind = "allowed" if tally.total_allowed else "disallowed"
        raise GuardError(
            f"all {tally.size} labels say {kind}; a calibrator needs both kinds, such as y 1 and y 0"
        )
    return tally


def _least_loss(tally: Tally, columns: Sequence[np.ndarray], slopes: int) -> list[float]:
    """Coefficients of least log loss against Platt's targets, the first `slopes` of them at least 0.

    The loss is convex: if its free minimum is admissible that is the answer, and else some slopes are 0 there, so
    the best of the admissible minima with slopes held at 0 is. With all of them held there always is one.
    """
    matrix, size = np.stack(columns, axis=1), len(columns)
    fits = []
    for keep in product([True, False], repeat=slopes):
        free = np.array([*keep, *[True] * (size - slopes)])
        found = np.zeros(size)
        found[free], loss = _newton(tally, matrix[:, free], np.arange(size)[free] < slopes)
        if found[:slopes].min() >= 0:
            fits.append((loss, found.tolist()))
            if all(keep):
                break
    return min(fits)[1]


def _newton(tally: Tally, matrix: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimiser `[K]` and minimum of the loss without constraints, from slopes 1 and intercept 0.

    Newton's method, its steps halved until each keeps a part of its promise; where the data leave a direction
    open the least-squares step ignores it.
    """
    one, size = tally.total_allowed, tally.size
    hits = tally.allowed * ((one + 1) / (one + 2)) + tally.disallowed / (size - one + 2)

    def loss_at(w: np.ndarray) -> float:
        z = matrix @ w
        return float(tally.count @ np.logaddexp(0, z) - hits @ z) / size

    w = slope.astype(np.float64)
    for _ in range(NEWTON_STEPS if w.size else 0):
        q = special.expit(matrix @ w)
        gradient = matrix.T @ (tally.count * q - hits) / size
        curvature = (matrix * (tally.count * q * (1 - q) / size)[:, None]).T @ matrix
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        promise, loss = float(gradient @ step), loss_at(w)
        # This near, one whole step is exact to rounding, and the loss no longer tells better from worse.
        if promise <= 1e-12:
            w = w - step
            break
        while promise > 1e-300 and loss_at(w - step) > loss - 1e-4 * promise:
            step, promise = step / 2, promise / 2
        w = w - step
    return w, loss_at(w)


def _logs(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log p and log(1 - p), clipped at EDGE."""
    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.log(inside), np.log1p(-inside)


def _logit(p: np.ndarray) -> np.ndarray:
    low, high = _logs(p)
    return low - high


def _step(p: Any, starts: tuple[float, ...], values: tuple[float, ...]) -> np.ndarray:
    place = np.searchsorted(np.array(starts), checked_reports(p), side="right") - 1
    return np.array(values)[np.maximum(place, 0)]
