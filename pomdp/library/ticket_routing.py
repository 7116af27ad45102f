"""Ticket routing: classify into 12 categories, then route to 4 teams; imports pomdp.library, criterion."""

from __future__ import annotations

from fractions import Fraction

from pomdp.criterion import Criterion
from pomdp.library.definition import ClosedForm, Task, lasts, sure, tabulate, uniform
from pomdp.library.family import Family, Parameter

CATEGORIES, TEAMS = 12, 4
SOURCE = "M1 E1.4: twelve categories, four teams, the category determines the team"
TOKENS = (
    "This project's choice: a classification call carries the ticket (200 tokens), a routing call one name "
    "(20); a category is one line (20), the acknowledgement as well."
)


def _make(name: str, accuracy: Fraction, cost: Fraction) -> Task:
    """Category k belongs to team k mod 4; classifying costs `cost` and errs evenly; routing right pays 1.

    Routing ends the run. Errors of repeated classifications are independent.
    """
    team = {f"ticket-{k}": k % TEAMS for k in range(CATEGORIES)}
    labels = [f"category-{k}" for k in range(CATEGORIES)]
    routes = [f"route-{t}" for t in range(TEAMS)]

    def observe(action: str, state: str) -> dict[str, Fraction]:
        if action != "classify" or state == "end":
            return sure("-")
        right = state.replace("ticket", "category")
        return {label: accuracy if label == right else (1 - accuracy) / (CATEGORIES - 1) for label in labels}

    def reward(state: str, action: str) -> Fraction:
        if state == "end":
            return Fraction(0)
        return -cost if action == "classify" else Fraction(int(action == routes[team[state]]))

    model = tabulate(
        states=[*team, "end"],
        actions=["classify", *routes],
        observations=[*labels, "-"],
        step=lambda state, action: sure(state if action == "classify" else "end"),
        observe=observe,
        reward=reward,
        start=uniform(list(team)),
        discount=None,
        name=name,
    )
    return Task(
        model=model,
        horizon=2,
        source=SOURCE,
        call_tokens=(200, *(20 for _ in routes)),
        result_tokens=(20,) * (CATEGORIES + 1),
        token_note=TOKENS,
        closed_optimal=_optimal(accuracy, cost),
        # Classifying blind only delays and costs: route at once.
        closed_open_loop=lambda criterion: Fraction(1, TEAMS),
    )


def _optimal(accuracy: Fraction, cost: Fraction) -> ClosedForm:
    """Known where there is time for one classification at most, and where one says all or nothing."""
    wrong = (1 - accuracy) / (CATEGORIES - 1)
    same_team = CATEGORIES // TEAMS

    def optimal(criterion: Criterion) -> Fraction | None:
        blind = Fraction(1, TEAMS)
        if not lasts(criterion, 2) or accuracy == Fraction(1, CATEGORIES):
            return blind
        if lasts(criterion, 3) and accuracy != 1:
            return None
        # Either the team named by the classification, or one of the others.
        named, other = accuracy + (same_team - 1) * wrong, same_team * wrong
        return max(blind, criterion.discount * max(named, other) - cost)

    return optimal


TICKET_ROUTING = Family(
    name="ticket_routing",
    summary="classify a ticket with accuracy q at cost c, or route it to one of four teams",
    parameters=(
        Parameter("q", Fraction(0), Fraction(1), "0.9", default=Fraction(9, 10)),
        Parameter("c", Fraction(0), Fraction(1), "0.05", default=Fraction(1, 20)),
    ),
    make=_make,
)
