"""J as a rational against sums over all histories, its own equation and known values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors, Controller, OpenLoop, as_controller
from pomdp.testing import controllers, criteria, open_loops, pomdps, reactives
from pomdp.value import evaluate_exact


def ring(states: int) -> POMDP:
    """One action that moves on along a ring; reward 1 in state 0, the start."""
    rows = [{(s + 1) % states: 1} for s in range(states)]
    blind = [[{0: 1}] * states]
    return POMDP.build(
        states=states, actions=1, observations=1, T=[rows], Z=blind, R=[[1] + [0] * (states - 1)], start="0"
    )


def sum_over_histories(model: POMDP, controller: Controller, criterion: Criterion) -> Fraction:
    """J of a finite horizon by recursion over every action, state and observation, in rationals."""
    exact = model.exact
    act = [[Fraction(str(p)).limit_denominator(1000) for p in row] for row in controller.act]

    def value(k: int, s: int, steps: int) -> Fraction:
        total = Fraction(0)
        for a, weight in enumerate(act[k]):
            if not steps or not weight:
                continue
            total += weight * exact.R.row(a).get(s, 0)
            for reached, p in exact.T[a].row(s).items():
                for o, q in exact.Z[a].row(reached).items():
                    following = value(int(controller.successor[k, a, o]), reached, steps - 1)
                    total += weight * criterion.discount * p * q * following
        return total

    return sum(
        (p * value(controller.start, s, criterion.horizon) for s, p in exact.start.items()), Fraction(0)
    )


@given(st.data())
def test_exact_j_of_a_horizon_is_the_sum_over_all_histories(data):
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    policy = data.draw(data.draw(st.sampled_from([open_loops, controllers, reactives]))(model))
    criterion = data.draw(criteria(discounted=False, max_horizon=3))
    expected = sum_over_histories(model, as_controller(policy, model), criterion)
    found = evaluate_exact(model, policy, criterion)
    # Action probabilities such as 1/3 are floats, so that only certain actions are compared exactly.
    if np.isin(as_controller(policy, model).act, [0, 1]).all():
        assert found == expected
    assert math.isclose(found, expected, abs_tol=1e-12)


@given(st.data())
def test_discounted_j_solves_its_own_equation(data):
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    controller = data.draw(controllers(model, deterministic=True))
    criterion = data.draw(criteria(finite=False))
    a = int(controller.act[controller.start].argmax())
    expected = Fraction(0)
    for s, p in model.exact.start.items():
        expected += p * model.exact.R.row(a).get(s, 0)
        for reached, q in model.exact.T[a].row(s).items():
            for o, z in model.exact.Z[a].row(reached).items():
                node = int(controller.successor[controller.start, a, o])
                following = Controller(controller.act, controller.successor, node)
                rest = evaluate_exact(model.with_start({reached: 1}), following, criterion)
                expected += p * q * z * criterion.discount * rest
    assert evaluate_exact(model, controller, criterion) == expected


@given(st.data())
def test_a_discounted_open_loop_is_its_controller(data):
    model = data.draw(pomdps())
    plan = data.draw(open_loops(model))
    criterion = data.draw(criteria(finite=False))
    assert evaluate_exact(model, plan, criterion) == evaluate_exact(
        model, as_controller(plan, model), criterion
    )


def test_open_loops_of_tiger_have_their_known_values():
    hear = [[0.85, 0.15], [0.15, 0.85]]
    door = [[0.5, 0.5]] * 2
    model = POMDP.build(
        states=2,
        actions=3,
        observations=2,
        T=[np.eye(2), door, door],
        Z=[hear, door, door],
        R=[[-1, -1], [-100, 10], [10, -100]],
        discount=0.95,
    )
    assert evaluate_exact(model, OpenLoop((), (0,)), Criterion.of(model)) == -20
    assert evaluate_exact(model, OpenLoop((0,), ()), Criterion(Fraction(1), 1)) == -1
    assert evaluate_exact(model, OpenLoop((0, 0), (1,)), Criterion(Fraction(1), 3)) == -47


def test_exact_j_refuses_what_it_cannot_do(monkeypatch):
    with pytest.raises(ModelError, match="no finite memory"):
        evaluate_exact(ring(2), AlphaVectors([[0, 0]], [0]), Criterion(Fraction(9, 10)))
    monkeypatch.setattr("pomdp.exact_value.MAX_UNKNOWNS", 3)
    assert evaluate_exact(ring(3), OpenLoop((), (0,)), Criterion(Fraction(1, 2))) == Fraction(8, 7)
    with pytest.raises(ModelError, match="more than 3 product states"):
        evaluate_exact(ring(4), OpenLoop((), (0,)), Criterion(Fraction(9, 10)))
