"""Case: a spec computed, each quantity once and when first asked for; imports spec, harness, models, bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from harnesses.harness import Induced
from harnesses.kernel import MAX_STATES
from harnesses.lookahead import Lookahead
from harnesses.models import (
    bayes_scores,
    naive_scores,
    optimal_scores,
    policy,
    random_scores,
    rule_scores,
)
from harnesses.spec import Spec
from pomdp.bounds import solve
from pomdp.bounds.solver import Solution
from pomdp.bounds.stateless import Stateless, stateless
from pomdp.interval import Interval
from pomdp.model import POMDP


@dataclass(frozen=True)
class Effort:
    """How far each bound is pursued: a width, and seconds of search for each of V*(M), V*(M_0) and Vo.

    `max_states`: an induced POMDP of more raises TooManyStates.
    """

    gap: float = 1e-6
    seconds: float = 20.0
    certify: bool = True
    max_states: int = MAX_STATES


@dataclass(frozen=True, eq=False)
class Case:
    """One spec and all that can be asked of it; nothing is computed before it is asked for.

    Where a fixed model tries an action that the harness does not expose, M_0 has that action too, yielding `error`.
    """

    spec: Spec
    effort: Effort = field(default_factory=Effort)

    @cached_property
    def induced(self) -> Induced:
        """M_0 and M_H."""
        spec = self.spec
        also = spec.task.actions if spec.model.fixed else ()
        return spec.harness.induce(spec.task, spec.criterion, spec.sizes, also, self.effort.max_states)

    @cached_property
    def task(self) -> Solution:
        """V*(M)."""
        return self._solve(self.spec.task)

    @cached_property
    def inner(self) -> Solution:
        """V*(M_0)."""
        return self.task if self.induced.inner is self.spec.task else self._solve(self.induced.inner)

    @cached_property
    def best(self) -> Stateless:
        """Vo(M_H), with V*(M_0) as an upper end beside its own."""
        return stateless(
            self.induced.model,
            0,
            self.spec.criterion,
            gap=self.effort.gap,
            time_limit=self.effort.seconds,
            recall=self.inner.interval,
            behind=(self.induced.inner, self.induced.origin),
        )

    @cached_property
    def pi(self) -> np.ndarray:
        """`[C, A]` what the spec's model does in each context."""
        model, induced = self.spec.model, self.induced
        if model.kind == "optimal" and model.temperature == 0.0:
            return self._best_pi
        if model.kind == "random":
            scores = random_scores(induced)
        elif model.kind == "rules":
            scores = rule_scores(induced, model)
        elif model.kind == "naive":
            scores = naive_scores(induced, Lookahead.of(self.task))
        else:
            scores = bayes_scores(induced, Lookahead.of(self.inner))
            if model.kind == "optimal":
                scores = optimal_scores(induced, self._best_pi, scores)
        return policy(scores, model.temperature)

    @cached_property
    def returned(self) -> float:
        """J of the spec's model, exact but for rounding."""
        return self.induced.evaluate(self.pi)

    @cached_property
    def achieved(self) -> Interval:
        """J with the rounding it may have."""
        return self.induced.around(self.returned)

    def with_context(self, spec: Spec) -> Case:
        """The case of a spec that differs in the context map alone: V*(M) and V*(M_0) are not computed again."""
        other = Case(spec, self.effort)
        for name in ("task", "inner"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @property
    def _best_pi(self) -> np.ndarray:
        return self.best.policy.pi[: self.induced.num_contexts]

    def _solve(self, model: POMDP) -> Solution:
        effort = self.effort
        return solve(
            model, self.spec.criterion, gap=effort.gap, time_limit=effort.seconds, certify=effort.certify
        )
