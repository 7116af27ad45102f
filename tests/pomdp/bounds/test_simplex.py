"""The interpolation of an upper bound against the linear program itself, solved by HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from pomdp.bounds.simplex import interpolate

MANY = 200
FLOATS = st.floats(0.0, 1.0, width=32)


@st.composite
def problems(draw):
    """A sparse belief, values at the corners and at random points: what `interpolate` takes.

    Points may have any support, coincide with corners or the belief, and be worth more than the corners.
    """
    S = draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    support = np.sort(random.choice(S, size=random.integers(1, S + 1), replace=False)).astype(np.int64)
    belief = random.dirichlet(np.ones(support.size))
    corner_values = random.normal(size=S) * draw(st.sampled_from([1e-6, 1.0, 1e6]))
    beliefs, values = [], []
    for _ in range(draw(st.integers(0, 12))):
        states = np.sort(random.choice(S, size=random.integers(1, S + 1), replace=False))
        point = random.dirichlet(np.ones(states.size))
        if draw(st.booleans()):
            states, point = support, belief  # the belief itself, perhaps twice
        beliefs.append((states.astype(np.int64), point))
        depth = draw(st.floats(-0.2, 1.0))
        values.append(point @ corner_values[states] - depth * (1 + abs(point @ corner_values[states])))
    return S, support, belief, corner_values, beliefs, np.array(values)


def call(problem, pivots: int):
    """The compiled function on a problem; also that its scratch is left as it was."""
    S, support, belief, corner_values, beliefs, values = problem
    b_ptr = np.concatenate([np.arange(S + 1), S + np.cumsum([0, *(x.size for x, _ in beliefs)])[1:]]).astype(
        np.int64
    )
    b_idx = np.concatenate([np.arange(S), *(x for x, _ in beliefs)]).astype(np.int64)
    b_val = np.concatenate([np.ones(S), *(p for _, p in beliefs)])
    V = np.concatenate([corner_values, values])
    candidates = np.arange(S, S + len(beliefs))
    position = np.full(S, -1)
    points, weights, value = interpolate(
        support, belief, 0, V, candidates, b_ptr, b_idx, b_val, position, pivots
    )
    assert (position == -1).all()
    return points, weights, value, V


def optimum(problem) -> float:
    """min w.V over w >= 0 that reproduce the belief."""
    S, support, belief, corner_values, beliefs, values = problem
    columns = np.zeros((S, S + len(beliefs)))
    columns[:, :S] = np.eye(S)
    for j, (states, point) in enumerate(beliefs):
        columns[states, S + j] = point
    target = np.zeros(S)
    target[support] = belief
    V = np.concatenate([corner_values, values])
    scale = np.abs(V).max() or 1.0
    found = linprog(V / scale, A_eq=columns, b_eq=target, method="highs")
    assert found.success
    return found.fun * scale


def size(problem) -> float:
    """What rounding errors are measured against."""
    return 1e-6 + max(np.abs(problem[3]).max(), np.abs(problem[5]).max(initial=0.0))


@given(problems(), st.integers(0, MANY))
def test_any_number_of_pivots_gives_a_value_between_the_optimum_and_the_corners(problem, pivots):
    value = call(problem, pivots)[2]
    _, support, belief, corner_values, *_ = problem
    assert value >= optimum(problem) - 1e-9 * size(problem)
    assert value <= belief @ corner_values[support] + 1e-9 * size(problem)


@given(problems())
def test_many_pivots_reach_the_optimum(problem):
    assert call(problem, MANY)[2] == pytest.approx(optimum(problem), rel=0, abs=1e-7 * size(problem))


@given(problems(), st.integers(0, MANY))
def test_the_weights_reproduce_the_belief_and_the_value(problem, pivots):
    S, support, belief, _, beliefs, _ = problem
    points, weights, value, V = call(problem, pivots)
    assert points.size == weights.size == support.size and (weights >= 0).all()
    assert value == pytest.approx(weights @ V[points], rel=1e-9, abs=1e-12 * size(problem))
    mixed = np.zeros(S)
    for j, w in zip(points, weights, strict=True):
        if j < S:
            mixed[j] += w
        else:
            mixed[beliefs[j - S][0]] += w * beliefs[j - S][1]
    target = np.zeros(S)
    target[support] = belief
    np.testing.assert_allclose(mixed, target, atol=1e-9)


@given(problems())
def test_without_pivots_all_weight_is_on_the_corners(problem):
    points, weights, *_ = call(problem, 0)
    np.testing.assert_array_equal(points, problem[1])
    np.testing.assert_array_equal(weights, problem[2])


def test_a_point_halfway_saves_what_its_share_allows():
    """tau = (1/4, 3/4), corners worth 1, (1/2, 1/2) worth 0: half of tau is the point."""
    point = np.array([0, 1]), np.array([0.5, 0.5])
    problem = (2, np.array([0, 1]), np.array([0.25, 0.75]), np.ones(2), [point], np.zeros(1))
    points, weights, value, _ = call(problem, MANY)
    assert value == pytest.approx(0.5)
    assert dict(zip(points.tolist(), weights.tolist(), strict=True)) == pytest.approx({1: 0.5, 2: 0.5})


def test_a_point_outside_the_support_is_of_no_use():
    point = np.array([0, 1]), np.array([0.5, 0.5])
    problem = (3, np.array([1, 2]), np.array([0.5, 0.5]), np.ones(3), [point], np.array([-100.0]))
    assert call(problem, MANY)[2] == 1.0
