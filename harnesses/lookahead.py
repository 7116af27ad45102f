"""Q(b, a) one step ahead of the best controller that the solver found; imports pomdp's policies and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pomdp.bounds import solve
from pomdp.bounds.solver import Solution
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import Controller
from pomdp.product import ProductChain
from pomdp.value import value_vectors


@dataclass(frozen=True, eq=False)
class Lookahead:
    """Action values of `model`: `vectors[j]` `[K, S]` are what each node of a controller earns in j steps.

    Without a horizon there is one entry, of the whole run. The best node at a belief is a lower bound on V*, which a
    solved model's controller reaches where it was solved for: so Q is V*'s up to the solver's gap at beliefs that good
    play reaches, and a valid policy value elsewhere.
    """

    model: POMDP
    criterion: Criterion
    vectors: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, solution: Solution) -> Lookahead:
        """From what `solve` found for V*."""
        model, criterion, controller = solution.model, solution.criterion, solution.controller
        if criterion.horizon is None:
            return cls(model, criterion, (value_vectors(model, controller, criterion),))
        return cls(model, criterion, tuple(_by_steps(model, controller, criterion)))

    @classmethod
    def solved(cls, model: POMDP, criterion: Criterion, *, gap: float, time_limit: float) -> Lookahead:
        """Solve first, without a certificate: these values choose actions and bound nothing."""
        return cls.of(solve(model, criterion, gap=gap, time_limit=time_limit, certify=False))

    def q(self, measures: np.ndarray, steps: int | None) -> np.ndarray:
        """`[B, A]` values of each action at measures `[B, S]` with `steps` to go (None: for ever); homogeneous."""
        after = self.vectors[0] if steps is None else self.vectors[steps - 1]
        result = measures @ self.model.R.T
        for a in range(self.model.num_actions):
            reached = measures @ self.model.T[a]
            seen = self.model.Z[a].tocsc()
            for o in range(self.model.num_observations):
                rows = seen.indices[seen.indptr[o] : seen.indptr[o + 1]]
                if len(rows):
                    likely = seen.data[seen.indptr[o] : seen.indptr[o + 1]]
                    joint = reached[:, rows] * likely
                    result[:, a] += self.criterion.gamma * (joint @ after[:, rows].T).max(axis=1)
        return result


def _by_steps(model: POMDP, controller: Controller, criterion: Criterion) -> list[np.ndarray]:
    """`[K, S]` for 0, 1, ..., horizon - 1 steps to go."""
    chain = ProductChain(model, controller)
    immediate = chain.expected(model.R)
    values = [np.zeros(chain.shape)]
    for _ in range((criterion.horizon or 1) - 1):
        values.append(immediate + criterion.gamma * chain.apply(values[-1]))
    return values
