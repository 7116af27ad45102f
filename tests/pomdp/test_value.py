"""J in float64 against dense linear solves, exact rationals and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pomdp.value
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Controller, OpenLoop, as_controller
from pomdp.testing import controllers, criteria, open_loops, pomdps, reactives
from pomdp.value import evaluate, evaluate_exact, expected_steps, value_vectors

ANY_POLICY = st.sampled_from([open_loops, controllers, reactives])
FOREVER = Criterion(Fraction(9, 10))


def dense_product(model: POMDP, controller: Controller) -> tuple[np.ndarray, np.ndarray]:
    """The product chain by its definition: transitions `[K S, K S]` and rewards `[K S]`."""
    K, S = controller.num_nodes, model.num_states
    P, r = np.zeros((K, S, K, S)), np.zeros((K, S))
    for k in range(K):
        for a, weight in enumerate(controller.act[k]):
            T, Z = model.T[a].toarray(), model.Z[a].toarray()
            r[k] += weight * model.R[a]
            for o in range(model.num_observations):
                P[k, :, controller.successor[k, a, o], :] += weight * T * Z[:, o]
    return P.reshape(K * S, K * S), r.ravel()


def ring(states: int, advance: float) -> POMDP:
    """One action that moves on along a ring with probability `advance`; reward 1 in state 0."""
    rows = [{s: 1 - Fraction(str(advance)), (s + 1) % states: Fraction(str(advance))} for s in range(states)]
    R = [[1] + [0] * (states - 1)]
    blind = [[{0: Fraction(1)}] * states]
    return POMDP.build(
        states=states, actions=1, observations=1, T=[rows], Z=blind, R=R, start="0", discount=0.999
    )


def ring_value(states: int, advance: float, gamma: float) -> float:
    """J of `ring` from state 0: a round trip discounts by the transform of its waiting times."""
    step = gamma * advance / (1 - gamma * (1 - advance))
    return 1 / (1 - gamma * (1 - advance) - gamma * advance * step ** (states - 1))


@given(st.data())
def test_discounted_value_vectors_solve_the_product_chain(data):
    model = data.draw(pomdps())
    controller = data.draw(controllers(model))
    criterion = data.draw(criteria(finite=False))
    P, r = dense_product(model, controller)
    expected = np.linalg.solve(np.eye(len(r)) - criterion.gamma * P, r)
    found = value_vectors(model, controller, criterion)
    assert found.shape == (controller.num_nodes, model.num_states)
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9)


@given(st.data())
def test_finite_horizon_value_vectors_are_that_many_backups(data):
    model = data.draw(pomdps())
    controller = data.draw(controllers(model))
    criterion = data.draw(criteria(discounted=False))
    P, r = dense_product(model, controller)
    expected = np.zeros_like(r)
    for _ in range(criterion.horizon):
        expected = r + criterion.gamma * P @ expected
    np.testing.assert_allclose(value_vectors(model, controller, criterion).ravel(), expected, atol=1e-11)


@given(st.data())
def test_float_and_exact_j_agree(data):
    model = data.draw(pomdps())
    policy = data.draw(data.draw(ANY_POLICY)(model))
    criterion = data.draw(criteria())
    assert math.isclose(
        evaluate(model, policy, criterion),
        evaluate_exact(model, policy, criterion),
        rel_tol=1e-11,
        abs_tol=1e-9,
    )


@given(st.data())
def test_j_is_the_start_entry_of_the_value_vectors(data):
    model = data.draw(pomdps())
    policy = data.draw(data.draw(ANY_POLICY)(model))
    criterion = data.draw(criteria())
    controller = as_controller(policy, model)
    expected = model.start @ value_vectors(model, controller, criterion)[controller.start]
    assert math.isclose(evaluate(model, policy, criterion), expected, abs_tol=1e-9)


def test_a_plan_that_ends_is_worth_its_own_length_and_is_refused_beyond():
    model = ring(3, 1.0)
    plan = OpenLoop((0, 0, 0, 0), ())
    assert evaluate(model, plan, Criterion(Fraction(1), 4)) == 2.0
    assert evaluate_exact(model, plan, Criterion(Fraction(1, 2), 4)) == 1 + Fraction(1, 8)
    for criterion in (Criterion(Fraction(1), 5), FOREVER):
        for evaluation in (evaluate, evaluate_exact, expected_steps):
            with pytest.raises(ModelError, match="empty cycle"):
                evaluation(model, plan, criterion)


@pytest.mark.parametrize("advance", [1.0, 0.9999, 0.5, 0.001])
@pytest.mark.parametrize("states", [7, 600])
def test_slowly_mixing_rings_reach_their_closed_form(states, advance):
    model = ring(states, advance)
    criterion = Criterion.of(model)
    expected = ring_value(states, advance, 0.999)
    controller = Controller(np.ones((2, 1)), np.array([[[1]], [[0]]]))
    assert math.isclose(evaluate(model, OpenLoop((), (0,)), criterion), expected, rel_tol=1e-9)
    assert math.isclose(evaluate(model, OpenLoop((0,), (0, 0)), criterion), expected, rel_tol=1e-9)
    assert math.isclose(evaluate(model, controller, criterion), expected, rel_tol=1e-9)


@given(st.data())
def test_a_cost_a_step_takes_that_many_steps_from_j(data):
    model = data.draw(pomdps(terminal=True))
    policy = data.draw(data.draw(ANY_POLICY)(model))
    criterion = data.draw(criteria())
    charged = replace(model, R=model.R - 0.25 * ~model.terminal)
    expected = (evaluate(model, policy, criterion) - evaluate(charged, policy, criterion)) / 0.25
    assert math.isclose(expected_steps(model, policy, criterion), expected, abs_tol=1e-8)


def test_expected_steps_of_a_geometric_end():
    rows = [[[Fraction(3, 4), Fraction(1, 4)], [0, 1]]]
    Z = [[[1], [1]]]
    model = POMDP.build(states=2, actions=1, observations=1, T=rows, Z=Z, R=[[5, 0]], start="0")
    plan = OpenLoop((), (0,))
    assert math.isclose(expected_steps(model, plan, FOREVER), 1 / (1 - 0.9 * 0.75), rel_tol=1e-12)
    assert expected_steps(model, plan, Criterion(Fraction(1), 3)) == 1 + 3 / 4 + 9 / 16
    assert expected_steps(model.with_start("1"), plan, FOREVER) == 0.0
    # A state that stays but pays is not terminal: every discounted step counts.
    paying = POMDP.build(states=2, actions=1, observations=1, T=rows, Z=Z, R=[[5, 1]], start="0")
    assert math.isclose(expected_steps(paying, plan, FOREVER), 10.0, rel_tol=1e-12)


def test_nodes_that_are_never_reached_change_nothing():
    model = ring(3, 0.5)
    small = Controller([[1.0]], [[[0]]])
    large = Controller(np.ones((4, 1)), [[[0]], [[1]], [[2]], [[1]]], 3)
    kept = pomdp.value._reachable(large)
    assert (kept.num_nodes, kept.start) == (2, 1)
    assert kept.successor.ravel().tolist() == [0, 0]
    assert math.isclose(evaluate(model, large, FOREVER), evaluate(model, small, FOREVER), rel_tol=1e-12)


def test_too_many_unknowns_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(pomdp.value, "MAX_UNKNOWNS", 2)
    with pytest.raises(ModelError, match="1 nodes times 3 states are 3 unknowns"):
        evaluate(ring(3, 1.0), Controller([[1.0]], [[[0]]]), FOREVER)
