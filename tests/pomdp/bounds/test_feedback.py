"""V_f = V* - W: nonnegative, 0 where nothing can be learnt, and known for Tiger."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import feedback
from pomdp.cassandra import read
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.testing import pomdps

SMALL = {"max_states": 3, "max_actions": 2, "max_observations": 2}


@settings(max_examples=10)
@given(st.data())
def test_the_three_intervals_hold_the_exact_values(expectimax, data):
    model = data.draw(pomdps(**SMALL))
    discount, steps = data.draw(st.sampled_from((Fraction(9, 10), Fraction(1)))), data.draw(st.integers(1, 3))
    found = feedback(model, Criterion(discount, steps), gap=1e-9, time_limit=10.0)
    best, blind = expectimax(model, discount, steps), expectimax(model.blinded(), discount, steps)
    assert found.optimal.contains(best) and found.open_loop.contains(blind)
    assert found.value_of_feedback.contains(best - blind)
    assert found.value_of_feedback.lower >= 0 and found.value_of_feedback.width < 1e-8
    assert found.value_of_feedback.certified
    assert check(found.closed.certificate, model).valid and check(found.open.certificate, model).valid


@settings(max_examples=6)
@given(st.data())
def test_where_observations_tell_nothing_feedback_is_worth_nothing(data):
    """The same distribution of observations in every state; it may depend on the action."""
    drawn = data.draw(pomdps(**SMALL, discount=Fraction(1, 2)))
    rows = [m.row(0) for m in drawn.exact.Z]
    model = POMDP.build(
        states=drawn.num_states,
        actions=drawn.num_actions,
        observations=drawn.num_observations,
        T=drawn.exact.T,
        Z=[[row] * drawn.num_states for row in rows],
        R=drawn.exact.R,
        start=drawn.exact.start,
    )
    criterion = Criterion(Fraction(1, 2), data.draw(st.sampled_from((None, 3))))
    found = feedback(model, criterion, gap=1e-6, time_limit=10.0)
    assert found.value_of_feedback.contains(0) and found.value_of_feedback.width < 3e-6


def test_tiger_for_ever(benchmarks):
    model = read(benchmarks / "tiger.95.pomdp")
    found = feedback(model, Criterion.of(model), gap=1e-6, time_limit=60.0)
    assert 19.37136 < found.optimal.lower <= found.optimal.upper < 19.37137
    assert found.open_loop.contains(-20) and found.open_loop.width < 1e-6
    assert found.value_of_feedback.lower == pytest.approx(39.371368, abs=1e-5)
    assert found.value_of_feedback.upper == pytest.approx(39.371368, abs=1e-5)


def test_tiger_over_three_steps(tiger):
    found = feedback(tiger(), Criterion(Fraction(1), 3), gap=1e-6)
    for interval, value in (
        (found.optimal, "2.72"),
        (found.open_loop, "-3"),
        (found.value_of_feedback, "5.72"),
    ):
        assert interval.contains(Fraction(value)) and interval.width < 1e-5


def test_half_of_the_time_is_for_each_search(benchmarks):
    model = read(benchmarks / "hallway.pomdp")
    found = feedback(model, Criterion.of(model), gap=0.0, time_limit=1.0, certify=False)
    assert found.closed.ended == "time" and not found.value_of_feedback.certified
    assert found.seconds == found.open.seconds + found.closed.seconds
    assert found.value_of_feedback.lower >= 0 and math.isfinite(found.value_of_feedback.upper)
