"""The filter against sums over all paths of hidden states, in exact rationals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pomdp.belief import (
    BeliefError,
    exact_history,
    exact_measures,
    exact_predict,
    exact_step,
    exact_update,
    filter_history,
    filter_step,
    normalise,
    predict,
    successors,
    update,
)
from pomdp.model import POMDP, ModelError
from pomdp.testing import beliefs, exact_beliefs, histories, pomdps

# After open-left, hear-right is impossible; after listen from a certain left, nothing is.
DOORS = POMDP.build(
    states=["left", "right"],
    actions=["listen", "open-left"],
    observations=["hear-left", "hear-right"],
    T=[[[1, 0], [0, 1]], [[0.5, 0.5]] * 2],
    Z=[[[0.85, 0.15], [0.15, 0.85]], [[1, 0]] * 2],
    R=[[-1, -1], [-100, 10]],
    discount=0.95,
)


def path_sum(model: POMDP, start: dict[int, Fraction], history: list[tuple[int, int]]) -> list[Fraction]:
    """`[S]` joint probability of the observations and the last state: a sum over all hidden paths."""
    S, exact = model.num_states, model.exact
    mass = [Fraction(0)] * S
    for path in itertools.product(range(S), repeat=len(history) + 1):
        p = start.get(path[0], Fraction(0))
        for (a, o), s, following in zip(history, path, path[1:], strict=False):
            p *= exact.T[a].row(s).get(following, 0) * exact.Z[a].row(following).get(o, 0)
        mass[path[-1]] += p
    return mass


def dense(belief: dict[int, Fraction], model: POMDP) -> list[float]:
    return [float(belief.get(s, 0)) for s in range(model.num_states)]


@given(st.data())
def test_a_filtered_history_is_the_sum_over_all_hidden_paths(data):
    model = data.draw(pomdps(max_states=3))
    history = data.draw(histories(model, max_length=3))
    mass = path_sum(model, model.exact.start, history)
    found, likelihood = exact_history(model, history)
    assert likelihood == sum(mass) > 0
    assert found[-1] == {s: m / likelihood for s, m in enumerate(mass) if m}
    filtered = filter_history(model, history)
    assert filtered.beliefs.shape == (len(history) + 1, model.num_states)
    for exact, approximate in zip(found, filtered.beliefs, strict=True):
        np.testing.assert_allclose(approximate, dense(exact, model), atol=1e-14)
    assert math.isclose(filtered.log_likelihood, math.log(likelihood), abs_tol=1e-12)


@given(st.data())
def test_one_unnormalised_step_is_the_sum_over_hidden_states_possible_or_not(data):
    model = data.draw(pomdps())
    start = data.draw(exact_beliefs(model))
    a = data.draw(st.integers(0, model.num_actions - 1))
    o = data.draw(st.integers(0, model.num_observations - 1))
    mass = path_sum(model, start, [(a, o)])
    assert exact_step(model, start, a, o) == {s: m for s, m in enumerate(mass) if m}
    np.testing.assert_allclose(
        filter_step(model, dense(start, model), a, o), [float(m) for m in mass], atol=1e-15
    )
    if any(mass):
        expected = [float(m / sum(mass)) for m in mass]
        np.testing.assert_allclose(update(model, dense(start, model), a, o), expected, atol=1e-14)
        np.testing.assert_allclose(dense(exact_update(model, start, a, o), model), expected, atol=1e-15)
    else:
        for filtering in (
            lambda: update(model, dense(start, model), a, o),
            lambda: exact_update(model, start, a, o),
        ):
            with pytest.raises(BeliefError, match="has probability 0"):
                filtering()


@given(st.data())
def test_a_batch_is_its_lanes_each_with_its_own_action_and_observation(data):
    model = data.draw(pomdps(max_observations=2))
    B = data.draw(st.integers(0, 5))
    batch = np.array([data.draw(beliefs(model)) for _ in range(B)]).reshape(B, model.num_states)
    actions = np.array([data.draw(st.integers(0, model.num_actions - 1)) for _ in range(B)], dtype=int)
    seen = np.array([data.draw(st.integers(0, model.num_observations - 1)) for _ in range(B)], dtype=int)
    stepped = filter_step(model, batch, actions, seen)
    for lane, b, a, o in zip(stepped, batch, actions, seen, strict=True):
        np.testing.assert_allclose(lane, filter_step(model, b, a, o), atol=1e-15)
    predicted = predict(model, batch, actions)
    for lane, b, a in zip(predicted, batch, actions, strict=True):
        np.testing.assert_allclose(lane, predict(model, b, a), atol=1e-15)
    assume(B and np.all(stepped.sum(axis=1) > 0))
    for lane, b, a, o in zip(update(model, batch, actions, seen), batch, actions, seen, strict=True):
        np.testing.assert_allclose(lane, update(model, b, a, o), atol=1e-15)


@given(st.data())
def test_predictions_are_the_masses_of_the_unnormalised_steps(data):
    model = data.draw(pomdps())
    start = data.draw(exact_beliefs(model))
    a = data.draw(st.integers(0, model.num_actions - 1))
    masses = {o: sum(path_sum(model, start, [(a, o)])) for o in range(model.num_observations)}
    assert exact_predict(model, start, a) == {o: m for o, m in masses.items() if m}
    np.testing.assert_allclose(
        predict(model, dense(start, model), a), [float(m) for m in masses.values()], atol=1e-15
    )


@given(st.data())
def test_successors_are_all_possible_observations_with_their_beliefs(data):
    model = data.draw(pomdps())
    start = data.draw(exact_beliefs(model))
    a = data.draw(st.integers(0, model.num_actions - 1))
    measures = exact_measures(model, start, a)
    probability, observations, found = successors(model, dense(start, model), a)
    assert observations.tolist() == list(measures) == sorted(measures)
    np.testing.assert_allclose(probability, [float(sum(m.values())) for m in measures.values()], atol=1e-15)
    assert np.all(probability > 0)
    for belief, measure in zip(found, measures.values(), strict=True):
        np.testing.assert_allclose(belief, dense(normalise(measure), model), atol=1e-14)


def test_long_histories_do_not_underflow():
    filtered = filter_history(DOORS, [(0, 0), (0, 1)] * 2000)
    np.testing.assert_allclose(filtered.beliefs[-1], [0.5, 0.5], atol=1e-9)
    # A pair of opposite sounds has probability .85 * .15 whatever the door, for each of the two doors.
    assert math.isclose(filtered.log_likelihood, 2000 * math.log(0.85 * 0.15), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("filtering", "place"),
    [
        (lambda: update(DOORS, [0.75, 0.25], 1, 1), ""),
        (lambda: update(DOORS, [[0.5, 0.5], [0.75, 0.25]], [0, 1], 1), r" \(lane 1\)"),
        (lambda: exact_update(DOORS, {0: Fraction(3, 4), 1: Fraction(1, 4)}, 1, 1), ""),
        (lambda: filter_history(DOORS.with_start([0.75, 0.25]), [(1, 1)]), r" \(step 0\)"),
        (lambda: exact_history(DOORS.with_start([0.75, 0.25]), [(1, 1)]), ""),
    ],
)
def test_an_impossible_observation_names_belief_action_and_observation(filtering, place):
    triple = "'hear-right' has probability 0 after action 'open-left' at belief {left: 0.75, right: 0.25}"
    with pytest.raises(BeliefError, match=f"^observation {triple}{place}$"):
        filtering()
    assert issubclass(BeliefError, ModelError)


def test_a_wide_belief_is_named_by_its_likeliest_states():
    model = POMDP.build(
        states=9, actions=1, observations=2, T=[np.eye(9)], Z=[[[1, 0]] * 9], R=[[0] * 9], discount=0.5
    )
    with pytest.raises(BeliefError, match=r"{8: 0.2, 0: 0.1, 1: 0.1, 2: 0.1, and 5 more}$"):
        update(model, [0.1] * 8 + [0.2], 0, 1)


@pytest.mark.parametrize(
    ("filtering", "fragment"),
    [
        (lambda: update(DOORS, [0.5, 0.4], 0, 0), "sums to 0.9, not 1"),
        (lambda: update(DOORS, [1.5, -0.5], 0, 0), "entry -0.5"),
        (lambda: update(DOORS, [np.nan, 1], 0, 0), "entry nan"),
        (lambda: update(DOORS, [1.0], 0, 0), r"needs shape \[2\] or \[B, 2\], found \(1,\)"),
        (lambda: update(DOORS, [0.5, 0.5], 2, 0), "no action 2; the model has actions 0 to 1"),
        (lambda: update(DOORS, [0.5, 0.5], 0, -1), "no observation -1"),
        (lambda: update(DOORS, [0.5, 0.5], "listen", 0), "action 'listen' is not an index"),
        (lambda: update(DOORS, [0.5, 0.5], [0], 0), "actions have shape"),
        (lambda: update(DOORS, [[0.5, 0.5]], [0, 1], 0), "actions have shape"),
        (lambda: successors(DOORS, [[0.5, 0.5]], 0), "one belief"),
        (lambda: exact_step(DOORS, {2: Fraction(1)}, 0, 0), "names state 2"),
        (lambda: exact_step(DOORS, {0: Fraction(1)}, 0, 2), "no observation 2"),
        (lambda: exact_predict(DOORS, {0: Fraction(1)}, -1), "no action -1"),
        (lambda: normalise({}), "mass 0"),
    ],
)
def test_what_the_filter_cannot_use_is_refused(filtering, fragment):
    with pytest.raises(BeliefError, match=fragment):
        filtering()
