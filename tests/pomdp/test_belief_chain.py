"""J of greedy policies against recursion without merging, and a controller that does the same."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pomdp import belief_chain
from pomdp.belief import exact_measures, normalise
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors, Controller
from pomdp.testing import alpha_vectors, criteria, pomdps
from pomdp.value import evaluate, expected_steps


def tiger(accuracy: float = 0.85) -> POMDP:
    heard = [[accuracy, 1 - accuracy], [1 - accuracy, accuracy]]
    return POMDP.build(
        states=["left", "right"],
        actions=["listen", "open-left", "open-right"],
        observations=["hear-left", "hear-right"],
        T=[[[1, 0], [0, 1]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2],
        Z=[heard, [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2],
        R=[[-1, -1], [-100, 10], [10, -100]],
        start=[0.5, 0.5],
        discount=0.95,
    )


# Opens a door at more than .9: after two more sounds from one side than from the other.
CAUTIOUS = AlphaVectors([[0, 0], [1, -9], [-9, 1]], [0, 2, 1])


def count_controller() -> Controller:
    """The same policy by counting: nodes -1, 0, 1 listen, the outer two open and start again."""
    act = [[0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]]
    listening = [[k + 1, k - 1] for k in range(5)]
    listening[0] = listening[4] = [2, 2]
    return Controller(act, [[row, [2, 2], [2, 2]] for row in listening], 2)


def unmerged(model: POMDP, policy: AlphaVectors, criterion: Criterion) -> Fraction:
    """J by recursion over all histories with exact beliefs; `assume` leaves out ties between actions."""
    vectors = [[Fraction(v) for v in row] for row in policy.vectors.tolist()]

    def greedy(belief: dict[int, Fraction]) -> int:
        scores = [sum(p * row[s] for s, p in belief.items()) for row in vectors]
        best = max(scores)
        chosen = {
            int(a)
            for a, score in zip(policy.actions, scores, strict=True)
            if best - score < Fraction(1, 10**6)
        }
        assume(len(chosen) == 1)
        return chosen.pop()

    def value(belief: dict[int, Fraction], steps: int) -> Fraction:
        if not steps:
            return Fraction(0)
        a = greedy(belief)
        total = sum((p * model.exact.R.row(a).get(s, 0) for s, p in belief.items()), Fraction(0))
        for measure in exact_measures(model, belief, a).values():
            total += criterion.discount * sum(measure.values()) * value(normalise(measure), steps - 1)
        return total

    return value(dict(model.exact.start), criterion.horizon)


@given(st.data())
def test_a_horizon_is_the_sum_over_all_histories(data):
    model = data.draw(pomdps(max_states=3, max_observations=2))
    policy = data.draw(alpha_vectors(model))
    criterion = data.draw(criteria(discounted=False, max_horizon=4))
    expected = unmerged(model, policy, criterion)
    assert math.isclose(evaluate(model, policy, criterion), expected, abs_tol=1e-11)


@pytest.mark.parametrize(
    "criterion", [Criterion(Fraction(19, 20)), Criterion(Fraction(1), 30)], ids=Criterion.text
)
def test_beliefs_that_recur_make_the_same_as_counting(criterion):
    model = tiger()
    assert math.isclose(
        evaluate(model, CAUTIOUS, criterion), evaluate(model, count_controller(), criterion), rel_tol=1e-11
    )
    steps = [expected_steps(model, policy, criterion) for policy in (CAUTIOUS, count_controller())]
    assert math.isclose(*steps, rel_tol=1e-11)


def test_merging_keeps_a_long_horizon_short(monkeypatch):
    monkeypatch.setattr(belief_chain, "MAX_BELIEFS", 300)
    # Unmerged, 50 steps of listening and opening would be more than 2**30 histories.
    assert math.isfinite(evaluate(tiger(), CAUTIOUS, Criterion(Fraction(1), 50)))


def test_a_discount_that_leaves_nothing_ends_the_enumeration():
    drifting = POMDP.build(
        states=2,
        actions=1,
        observations=2,
        T=[[[0.9, 0.1], [0.2, 0.8]]],
        Z=[[[0.7, 0.3], [0.4, 0.6]]],
        R=[[1, 0]],
        start=[1, 0],
    )
    only = AlphaVectors([[0, 0]], [0])
    # Beliefs never recur here, but at 1/50 ten steps are all that counts.
    found = evaluate(drifting, only, Criterion(Fraction(1, 50)))
    expected = evaluate(drifting, Controller([[1.0]], [[[0, 0]]]), Criterion(Fraction(1, 50)))
    assert math.isclose(found, expected, rel_tol=1e-12)
    with pytest.raises(ModelError, match="too many for an exact J; estimate it by Monte Carlo"):
        evaluate(drifting, only, Criterion(Fraction(99, 100)))


@pytest.mark.parametrize(
    "criterion", [Criterion(Fraction(1), 12), Criterion(Fraction(19, 20))], ids=Criterion.text
)
@pytest.mark.parametrize("limit", ["MAX_BELIEFS", "MAX_ENTRIES"])
def test_more_beliefs_than_the_limit_are_refused(monkeypatch, limit, criterion):
    monkeypatch.setattr(belief_chain, limit, 5)
    with pytest.raises(ModelError, match="or more within"):
        evaluate(tiger(0.6), AlphaVectors(np.zeros((1, 2)), [0]), criterion)
