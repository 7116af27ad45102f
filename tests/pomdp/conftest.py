"""Oracles and a model that several tests of bounds share, as fixtures: exact, and apart from the solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from pomdp.model import POMDP

Rational = int | str | Fraction
Measure = dict[int, Fraction]


def exact_expectimax(model: POMDP, discount: Fraction, steps: int) -> Fraction:
    """The best expected return of `steps` steps, by recursion over unnormalised beliefs."""
    exact, seen = model.exact, {}
    T = [[m.row(s) for s in range(model.num_states)] for m in exact.T]
    Z = [[m.row(s) for s in range(model.num_states)] for m in exact.Z]
    R = [exact.R.row(a) for a in range(model.num_actions)]

    def value(measure: Measure, left: int) -> Fraction:
        if left == 0 or not measure:
            return Fraction(0)
        mass = sum(measure.values())
        key = left, tuple(sorted((s, p / mass) for s, p in measure.items()))
        if key not in seen:
            seen[key] = max(action_value(dict(key[1]), a, left) for a in range(model.num_actions))
        return mass * seen[key]

    def action_value(measure: Measure, a: int, left: int) -> Fraction:
        total = sum((p * R[a].get(s, 0) for s, p in measure.items()), Fraction(0))
        children: dict[int, Measure] = {}
        for s, p in measure.items():
            for following, q in T[a][s].items():
                for o, z in Z[a][following].items():
                    child = children.setdefault(o, {})
                    child[following] = child.get(following, Fraction(0)) + p * q * z
        return total + discount * sum((value(child, left - 1) for child in children.values()), Fraction(0))

    return value(dict(exact.start), steps)


def exact_return(model: POMDP, plan: Iterable[int], discount: Fraction) -> Fraction:
    """The expected return of one action sequence, forward."""
    measure, total, weight = dict(model.exact.start), Fraction(0), Fraction(1)
    for a in plan:
        rewards = model.exact.R.row(a)
        total += weight * sum((p * rewards.get(s, 0) for s, p in measure.items()), Fraction(0))
        moved: Measure = {}
        for s, p in measure.items():
            for following, q in model.exact.T[a].row(s).items():
                moved[following] = moved.get(following, Fraction(0)) + p * q
        measure, weight = moved, weight * discount
    return total


def make_tiger(accuracy: Rational = "0.85", discount: Rational | None = "0.95") -> POMDP:
    """Two doors; listening costs 1 and hears the right door with the given accuracy."""
    hit = Fraction(accuracy)
    half, stay = [[Fraction(1, 2)] * 2] * 2, [[1, 0], [0, 1]]
    return POMDP.build(
        states=("left", "right"),
        actions=("listen", "open-left", "open-right"),
        observations=("hear-left", "hear-right"),
        T=[stay, half, half],
        Z=[[[hit, 1 - hit], [1 - hit, hit]], half, half],
        R=[[-1, -1], [-100, 10], [10, -100]],
        discount=discount,
        name="tiger",
    )


@pytest.fixture(scope="session")
def expectimax() -> Callable[[POMDP, Fraction, int], Fraction]:
    """`exact_expectimax(model, discount, steps)`."""
    return exact_expectimax


@pytest.fixture(scope="session")
def plan_return() -> Callable[[POMDP, Iterable[int], Fraction], Fraction]:
    """`exact_return(model, plan, discount)`."""
    return exact_return


@pytest.fixture(scope="session")
def tiger() -> Callable[..., POMDP]:
    """`make_tiger(accuracy, discount)`."""
    return make_tiger
