"""Exact (Clopper-Pearson) ends for a proportion, theorem T8; imports numpy and scipy only.

With k of n failures, the upper end is the largest rate under which k or fewer failures have probability at least
1 - confidence, and the lower end mirrors it: each holds with at least its confidence whatever the rate.
Source: C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from harnesses.guard.region import GuardError


def upper_end(failures: Any, trials: Any, confidence: float = 0.95) -> Any:
    """One-sided upper end `[...]` for counts `[...]`; 1 where there are no trials, for nothing is known."""
    k, n = _counts(failures, trials, confidence)
    inner = k < n
    # Where all failed the end is 1; the quantile is not defined there.
    found = special.betainccinv(np.where(inner, k, 0) + 1, np.where(inner, n - k, 1), 1 - confidence)
    return _like(np.where(inner, found, 1.0))


def lower_end(failures: Any, trials: Any, confidence: float = 0.95) -> Any:
    """One-sided lower end `[...]`; 0 where there are no trials."""
    k, n = _counts(failures, trials, confidence)
    inner = k > 0
    found = special.betaincinv(np.where(inner, k, 1), np.where(inner, n - k, 0) + 1, 1 - confidence)
    return _like(np.where(inner, found, 0.0))


def clopper_pearson(failures: Any, trials: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Both ends of the two-sided interval, each with half of 1 - level."""
    confidence = 1 - (1 - level) / 2
    return lower_end(failures, trials, confidence), upper_end(failures, trials, confidence)


def _counts(failures: Any, trials: Any, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Both counts as arrays. Raises GuardError unless 0 <= failures <= trials and 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise GuardError(f"confidence is {confidence}; give one strictly between 0 and 1, such as 0.95")
    k, n = np.asarray(failures), np.asarray(trials)
    if not np.all((k >= 0) & (k <= n)):
        raise GuardError(f"{failures} failures in {trials} trials; counts need 0 <= failures <= trials")
    return k, n


def _like(values: np.ndarray) -> Any:
    """A float where both counts were numbers."""
    return float(values) if values.ndim == 0 else values
