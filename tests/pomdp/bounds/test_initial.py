"""The bounds that a search starts from, against dense iteration and exact values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds.flat import flatten
from pomdp.bounds.initial import blind_values, fast_informed_bound
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import OpenLoop
from pomdp.testing import criteria, pomdps
from pomdp.value import evaluate_exact


def informed(model: POMDP, gamma: float) -> Callable[[np.ndarray], np.ndarray]:
    """The operator of the fast informed bound by its definition, on x `[S, A]`."""
    weight = np.array([T.toarray()[:, :, None] * Z.toarray() for T, Z in zip(model.T, model.Z, strict=True)])

    def apply(x: np.ndarray) -> np.ndarray:
        return model.R.T + gamma * np.einsum("asto,tb->saob", weight, x).max(axis=3).sum(axis=2)

    return apply


@settings(max_examples=20)
@given(st.data())
def test_the_informed_bound_is_the_fixed_point_of_its_operator(data):
    model = data.draw(pomdps())
    criterion = data.draw(criteria(finite=False))
    Q = fast_informed_bound(flatten(model, criterion))[0]
    operator, x = informed(model, criterion.gamma), np.zeros_like(Q)
    for _ in range(600):  # 0.95**600 is 4e-14
        x = operator(x)
    np.testing.assert_allclose(Q, x, rtol=0, atol=1e-8)
    assert (Q >= operator(Q) - 1e-12 * (1 + np.abs(Q).max())).all()


@given(st.data())
def test_the_informed_bound_of_a_horizon_is_its_recursion(data):
    model = data.draw(pomdps())
    criterion = data.draw(criteria(discounted=False))
    operator, x = informed(model, criterion.gamma), np.zeros((model.num_states, model.num_actions))
    for Q in fast_informed_bound(flatten(model, criterion))[::-1]:
        x = operator(x)
        np.testing.assert_allclose(Q, x, rtol=0, atol=1e-10)


@settings(max_examples=25)
@given(st.data())
def test_the_informed_bound_is_above_the_exact_values_of_the_corners(expectimax, data):
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    criterion = Criterion(data.draw(st.sampled_from((Fraction(9, 10), Fraction(1)))), 3)
    Q = fast_informed_bound(flatten(model, criterion))[0]
    for s in range(model.num_states):
        exact = expectimax(model.with_start({s: 1}), criterion.discount, 3)
        assert Q[s].max() >= float(exact) - 1e-9


@given(st.data())
def test_blind_values_are_those_of_repeating_one_action(data):
    model = data.draw(pomdps())
    criterion = data.draw(criteria())
    alpha = blind_values(flatten(model, criterion))
    assert alpha.shape == (criterion.horizon or 1, model.num_actions, model.num_states)
    for a in range(model.num_actions):
        exact = evaluate_exact(model, OpenLoop((), (a,)), criterion)
        value = float(alpha[0, a] @ model.start)
        assert value == pytest.approx(float(exact), abs=1e-9)


@given(st.data())
def test_blind_values_support_themselves(data):
    """alpha <= R + gamma T alpha, which makes each the value of a controller or less."""
    model = data.draw(pomdps())
    criterion = data.draw(criteria(finite=False))
    for a, alpha in enumerate(blind_values(flatten(model, criterion))[0]):
        slack = model.R[a] + criterion.gamma * (model.T[a] @ alpha) - alpha
        assert slack.min() >= -1e-12 * (1 + np.abs(alpha).max())


def test_tiger_starts_between_listening_for_ever_and_knowing_after_one_step(tiger):
    """Blind listening earns -1/(1 - gamma); the informed bound opens the right door at once in a corner."""
    flat = flatten(tiger(), Criterion(Fraction(19, 20)))
    assert blind_values(flat)[0, 0] == pytest.approx([-20.0, -20.0])
    Q = fast_informed_bound(flat)[0]
    assert Q[0].max() == pytest.approx(Q[1].max()) and Q[0].argmax() == 2 and Q[1].argmax() == 1
    assert Q[0].max() > 28.4027  # the exact value of a corner
