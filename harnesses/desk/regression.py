"""Regression: multinomial logistic regression with a quadratic penalty on sparse features; imports numpy and scipy.

Small enough to need no library of learning: one convex loss, minimised by L-BFGS. The fit is the same on every run; on
another machine it may differ in the last digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special


@dataclass(frozen=True, eq=False)
class Logistic:
    """P(class k | x) is softmax of x W + b: `weights` float64 `[F, K]`, `intercepts` `[K]`, `classes` K names."""

    classes: tuple[Any, ...]
    weights: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def fit(cls, x: Any, y: Sequence[Any], strength: float, tolerance: float = 1e-5) -> Logistic:
        """Minimise the sum of log losses + |W|^2 / (2 strength) over x `[N, F]`, sparse, and y `[N]`.

        Intercepts are free. Stops where no derivative of the mean loss exceeds `tolerance`. Raises ValueError where
        all y are alike.
        """
        classes = tuple(sorted(set(y)))
        if len(classes) < 2:
            raise ValueError(f"all labels are {classes}; a regression needs two kinds or more")
        size, features = x.shape
        hot = np.equal.outer(np.array(y, dtype=object), np.array(classes, dtype=object)).astype(np.float64)
        # Two classes need one score: with one each, only their difference matters.
        width = 1 if len(classes) == 2 else len(classes)
        transposed = x.T.tocsr()

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            table = flat.reshape(features + 1, width)
            scores = _scores(x @ table[:-1] + table[-1])
            logs = special.log_softmax(scores, axis=1)
            error = (np.exp(logs) - hot)[:, -width:]
            slope = np.vstack([transposed @ error + table[:-1] / strength, error.sum(axis=0)])
            value = -float((hot * logs).sum()) + float((table[:-1] ** 2).sum()) / (2 * strength)
            return value / size, slope.ravel() / size

        found = optimize.minimize(
            loss,
            np.zeros((features + 1) * width),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 1000, "gtol": tolerance, "ftol": 1e-12},
        )
        table = found.x.reshape(features + 1, width)
        return cls(classes, table[:-1], table[-1])

    def predict(self, x: Any) -> np.ndarray:
        """Probabilities float64 `[N, K]` of x `[N, F]`; rows sum to 1."""
        return special.softmax(_scores(x @ self.weights + self.intercepts), axis=1)


def _scores(scores: np.ndarray) -> np.ndarray:
    """One score for each class: with a single column, the first class has 0."""
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
