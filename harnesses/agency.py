"""Axis 2 computed: what feedback adds to a drawn workflow against what agency costs; imports pomdp's bounds.

Question 1 of the tree, "is the sequence known at design time?", is answered yes where no closed loop beats the drawn
workflow by more than the cost of agency. Source: M1 §1.7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pomdp.bounds import feedback
from pomdp.bounds.workflow import branching, solve_workflow
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError
from pomdp.value import expected_steps

# `expected_steps` is verified to 1e-10 of the largest value.
STEPS_ERROR = Fraction(1, 10**9)


@dataclass(frozen=True)
class Agency:
    """V*, W and W_N (absent where no branch is drawn) of a task, and the cost of agency, all as intervals.

    The cost is `tolerance`, or `price` times `steps`, the expected steps of the closed-loop controller found,
    discounted as the rewards are. `nodes` counts the nodes of the drawn workflow found.
    """

    optimal: Interval
    open_loop: Interval
    branch_on: tuple[str, ...]
    workflow: Interval | None
    nodes: int
    price: float | None
    tolerance: float | None
    steps: float
    used_actions: int

    @property
    def value_of_feedback(self) -> Interval:
        """V_f = V* - W."""
        return (self.optimal - self.open_loop).at_least(0.0)

    @property
    def beyond(self) -> Interval:
        """V* - W_N: what feedback adds to the workflow as drawn; V_f where no branch is."""
        return (self.optimal - (self.workflow or self.open_loop)).at_least(0.0)

    @property
    def beyond_name(self) -> str:
        """What is compared with the cost."""
        return "V_f" if self.workflow is None else "V* - W_N"

    @property
    def cost(self) -> Interval:
        """The cost of agency."""
        if self.price is None:
            return Interval(self.tolerance or 0.0, self.tolerance or 0.0)
        exact = Fraction(self.price) * Fraction(self.steps)
        return Interval.of(exact * (1 - STEPS_ERROR), exact * (1 + STEPS_ERROR))

    @property
    def known(self) -> bool | None:
        """The answer to question 1; None where the two intervals meet and neither side is certain."""
        if self.beyond.upper <= self.cost.lower:
            return True
        return False if self.beyond.lower > self.cost.upper else None

    @property
    def deciding_gap(self) -> float | None:
        """A width of V* - W_N that decides if the value is where the middle of its interval is; None for no such."""
        distance = abs(self.beyond.middle - self.cost.middle)
        return distance if self.known is None and distance > 0 else None

    @property
    def deciding_price(self) -> Interval | None:
        """The price per step at which the two sides are equal; None where the cost is no price or nothing moves."""
        if self.price is None or self.steps <= 0:
            return None
        return self.beyond.scale(1 / Fraction(self.steps))

    def sentence(self) -> str:
        """The comparison and what it says, in one sentence."""
        cost = f"the cost of agency {self._cost_text()}"
        value = f"{self.beyond_name} in {self.beyond}"
        if self.known is None:
            return f"{value} and {cost} overlap, so these bounds do not decide: {self.what_decides()}."
        if self.known:
            drawn = "an open-loop plan" if self.workflow is None else "the workflow with the drawn branches"
            return f"{value} is at most {cost}: {drawn} gives up no more than agency would cost."
        return f"{value} exceeds {cost}: the next step has to be chosen from what is observed."

    def what_decides(self) -> str:
        """The width that would settle an undecided comparison."""
        if self.cost.upper == 0:
            return "no gap shows a difference to be exactly 0; state a cost of agency above 0"
        if self.deciding_gap is None:
            return (
                "the cost lies in the middle of the bounds; lower --gap, raise --time, or state another cost"
            )
        return (
            f"a gap of about {self.deciding_gap:.2g} would (now {self.beyond.width:.2g} wide); "
            "lower --gap or raise --time"
        )

    def json(self) -> dict[str, Any]:
        """The computed evidence."""
        return {
            "optimal": self.optimal.json(),
            "open_loop": self.open_loop.json(),
            "value_of_feedback": self.value_of_feedback.json(),
            "branch_on": list(self.branch_on),
            "workflow": self.workflow.json() if self.workflow else None,
            "beyond_workflow": self.beyond.json(),
            "workflow_nodes": self.nodes,
            "cost_of_agency": self.cost.json(),
            "price_per_step": self.price,
            "tolerance": self.tolerance,
            "expected_steps": self.steps,
            "deciding_gap": self.deciding_gap,
            "deciding_price": self.deciding_price.json() if self.deciding_price else None,
        }

    def _cost_text(self) -> str:
        if self.price is None:
            return f"{self.tolerance:.6g} (the stated tolerance)"
        return f"{self.cost.middle:.6g} ({self.price:.6g} a step times {self.steps:.6g} expected steps)"


def agency(
    model: POMDP,
    criterion: Criterion,
    *,
    branch_on: Sequence[str] = (),
    price: float | None = None,
    tolerance: float | None = None,
    gap: float = 1e-6,
    time_limit: float = 20.0,
) -> Agency:
    """Compute all of it: `time_limit` seconds for V* and W together, and again for W_N where branches are drawn.

    Raises ModelError for an unknown observation, and unless exactly one of `price` and `tolerance` is given.
    """
    if (price is None) == (tolerance is None):
        raise ModelError("the cost of agency is a price per step or a tolerance, one of them, such as 0.05")
    try:
        branching(model, branch_on)
    except ModelError as error:
        raise ModelError(f"branch_on: {error}") from None
    found = feedback(model, criterion, gap=gap, time_limit=time_limit)
    drawn, nodes = None, found.open.controller.num_nodes
    if branch_on:
        solved = solve_workflow(model, criterion, branch_on, gap=gap / 2, time_limit=time_limit)
        drawn = solved.interval.between(found.open_loop, found.optimal)
        nodes = solved.controller.num_nodes
    closed = found.closed.controller
    return Agency(
        optimal=found.optimal,
        open_loop=found.open_loop,
        branch_on=tuple(branch_on),
        workflow=drawn,
        nodes=nodes,
        price=price,
        tolerance=tolerance,
        steps=expected_steps(model, closed, criterion),
        used_actions=int((closed.act > 0).any(axis=0).sum()),
    )
