"""The router's two-action rule and its accuracy, M14 Eq. 3 and Eq. 6; imports region, costs, scores and rate.

An answer is valid when it names a step. What is not valid cannot be followed, and counts as wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from harnesses.guard.costs import Costs
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, Region, Thresholds, cut, probability, region
from harnesses.guard.scores import probabilities, rows_of


@dataclass(frozen=True)
class RouteAccuracy:
    """How a router does on N items: `accuracy` of its answers over all N, the `followed` share of N, and the
    accuracy `among_followed`, undefined where none is followed. `invalid` answers are wrong and not followed.
    """

    tau_route: Fraction
    accuracy: Rate
    followed: Rate
    among_followed: Rate
    invalid: int

    def json(self) -> dict[str, Any]:
        """The record, its threshold also as exact text."""
        return {
            "tau_route": float(self.tau_route),
            "tau_route_exact": str(self.tau_route),
            "accuracy": self.accuracy.json(),
            "followed": self.followed.json(),
            "accuracy_among_followed": self.among_followed.json(),
            "invalid": self.invalid,
        }

    def text(self) -> str:
        """For people, one figure a line."""
        return "\n".join(
            (
                f"right of all       {self.accuracy}",
                f"followed of all    {self.followed}, at p >= {self.tau_route}",
                f"right of followed  {self.among_followed}",
                f"invalid answers    {self.invalid}",
            )
        )


def route_threshold(wrong: Any, escalate: Any) -> Fraction:
    """tau_route from the costs of a wrong route and of a hand-over: Chow's 1 - escalate/wrong, at least 0.

    With wrong = 0 it is 0: following is never dearer. Source: M14 Eq. 3.
    """
    costs = Costs(wrong=wrong, escalate=escalate).exact()
    return Fraction(0) if costs.wrong == 0 else max(Fraction(0), 1 - costs.escalate / costs.wrong)


def route(p: Any, tau_route: Any) -> Region:
    """What a router does with its chosen step of probability p: follow it (ACT) or ESCALATE. Source: M14 Eq. 3."""
    return region(p, Thresholds(tau_route, tau_route))


def route_accuracy(
    chosen: Sequence[str | None],
    correct: Sequence[str],
    p: Any,
    tau_route: Any,
    steps: Collection[str] | None = None,
    level: float = 0.95,
) -> RouteAccuracy:
    """Accuracy of `chosen` steps `[N]` against `correct` ones `[N]`, followed where their probability p >= tau_route.

    None, blank text and, where `steps` are given, a name outside them are invalid answers: wrong, never followed,
    and their p is not read. Raises GuardError for lengths that differ, a correct step outside `steps`, or another
    p outside [0, 1]. Source: M14 Eq. 6. Differs from the source: there an invalid answer with a high p is followed.
    """
    tau, place = probability(tau_route, "tau_route"), rows_of("routes")
    sizes = len(chosen), len(correct), len(p)
    if len(set(sizes)) > 1:
        raise GuardError(
            f"{sizes[0]} chosen steps, {sizes[1]} correct ones, {sizes[2]} probabilities; give one each"
        )
    valid = np.array([_valid(step, steps) for step in chosen], dtype=bool)
    for row, step in enumerate(correct):
        if not _valid(step, steps):
            raise GuardError(
                f"{place(row)}: correct step {step!r} is none of the steps; name one, such as retrieve"
            )
    reports = probabilities([value if good else 0 for value, good in zip(p, valid)], "p", place)
    right = np.array([mine == theirs for mine, theirs in zip(chosen, correct)], dtype=bool)
    followed = valid & (reports >= cut(tau))
    size, count = sizes[0], int(followed.sum())
    return RouteAccuracy(
        tau_route=tau,
        accuracy=Rate.of(int(right.sum()), size, level),
        followed=Rate.of(count, size, level),
        among_followed=Rate.of(int((right & followed).sum()), count, level),
        invalid=size - int(valid.sum()),
    )


def _valid(step: Any, steps: Collection[str] | None) -> bool:
    """Whether an answer names a step."""
    if not isinstance(step, str) or not step.strip():
        return False
    return steps is None or step in steps
