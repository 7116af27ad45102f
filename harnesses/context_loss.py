"""What a context map costs on a task: sufficiency, recall, stateless optimum, loss, bits; imports case, lossy, bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harnesses.case import Case
from harnesses.context import ContextMap
from harnesses.context_bits import Bits, bits
from harnesses.fibres import Fibres, fibres
from harnesses.harness import induce
from harnesses.lossy import Sufficiency, judged, recovers
from harnesses.smallest import BlockMap, Point, value_contexts
from pomdp.bounds import solve
from pomdp.bounds.stateless import stateless_found
from pomdp.interval import Interval


@dataclass(frozen=True, eq=False)
class ContextLoss:
    """One context map of one case; nothing is computed before it is asked for. Source: formal core, section 3."""

    case: Case

    @cached_property
    def fibres(self) -> Fibres:
        """The map's contexts with the exact beliefs that share them."""
        case = self.case
        return fibres(case.induced.inner, case.induced.phi, case.spec.criterion.horizon, case.spec.sizes)

    @cached_property
    def sufficiency(self) -> Sufficiency:
        """Whether the belief is a function of context and time, with the shortest witness where it is not."""
        return judged(self.fibres, self.case.spec.criterion)

    @property
    def optimal(self) -> Interval:
        """V*(M_0)."""
        return self.case.inner.interval

    @cached_property
    def recall(self) -> Interval:
        """V*(phi): the best policy that remembers every context it was shown.

        That is V*(M_0) where each next context shows which observation came.
        """
        if recovers(self.fibres):
            return self.optimal
        effort = self.case.effort
        found = solve(
            self.case.induced.model,
            self.case.spec.criterion,
            gap=effort.gap,
            time_limit=effort.seconds,
            certify=effort.certify,
        ).interval
        # Remembering contexts is no more than remembering the history (`chain`).
        upper = min(found.upper, self.optimal.upper)
        return Interval(min(found.lower, upper), upper, found.certified and self.optimal.certified)

    @property
    def stateless(self) -> Interval:
        """Vo(phi): the best stateless, stationary, stochastic policy."""
        return self.case.best.interval

    @property
    def deterministic(self) -> Interval:
        """The best deterministic one of these; not an upper end of Vo."""
        return self.case.best.deterministic

    @property
    def loss(self) -> Interval:
        """V*(M_0) - Vo(phi) >= 0, the context loss."""
        return (self.optimal - self.stateless).at_least(0.0)

    @cached_property
    def bits(self) -> Bits:
        """I(b;c), I(b;h) and I(s;c) while all actions are equally likely."""
        case = self.case
        return bits(case.induced.inner, case.induced.phi, case.spec.criterion, case.spec.sizes)

    def json(self, typed: str) -> dict[str, Any]:
        """The form `hpomdp context` prints for the map as the user typed it."""
        verdict = self.sufficiency
        return {
            "map": typed,
            "contexts": self.case.induced.num_contexts,
            "sufficient": verdict.sufficient,
            "witness": None if verdict.witness is None else verdict.witness.json(),
            "decisive": None if verdict.decisive is None else verdict.decisive.json(),
            "determined": verdict.determined,
            "injective": verdict.injective,
            "recall": self.recall.json(),
            "stateless": self.stateless.json(),
            "stateless_deterministic": self.deterministic.json(),
            "loss": self.loss.json(),
            "bits": self.bits.json(),
        }


def few_contexts(case: Case, phi: BlockMap) -> Point:
    """Contexts of `phi` merged while the best stateless value found stays: an upper bound on the fewest."""
    return value_contexts(
        phi, lambda merged: stateless_value(case, merged), tolerance=max(case.effort.gap, 1e-9)
    )


def stateless_value(case: Case, phi: ContextMap) -> Interval:
    """Vo of another map on the case's M_0: its lower end by quick search, its upper end V*(M_0)."""
    spec, inner = case.spec, case.induced.inner
    induced = induce(spec.task, inner, phi, spec.criterion, spec.sizes)
    found = stateless_found(induced.model, 0, spec.criterion)
    return Interval(found, max(found, case.inner.interval.upper))
