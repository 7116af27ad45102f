"""W, the best action sequence, against all sequences."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import solve, solve_open_loop
from pomdp.certificate import OPEN_LOOP
from pomdp.check import check
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import OpenLoop
from pomdp.testing import pomdps
from pomdp.value import evaluate_exact

SMALL = {"max_states": 3, "max_actions": 3, "max_observations": 2}


@settings(max_examples=20)
@given(st.data())
def test_the_interval_of_a_horizon_holds_the_best_of_all_sequences(plan_return, data):
    model = data.draw(pomdps(**SMALL))
    steps, discount = (
        data.draw(st.integers(1, 4)),
        data.draw(st.sampled_from((Fraction(0), Fraction(9, 10), Fraction(1)))),
    )
    found = solve_open_loop(model, Criterion(discount, steps), gap=1e-9, time_limit=5.0)
    best = max(plan_return(model, plan, discount) for plan in product(range(model.num_actions), repeat=steps))
    assert found.certified and found.interval.contains(best) and found.interval.width < 2e-9
    assert check(found.certificate, model).valid
    prefix, cycle = found.certificate.actions()
    assert len(prefix) == steps and cycle == ()
    assert plan_return(model, prefix, discount) >= found.certificate.lower


@settings(max_examples=10)
@given(pomdps(**SMALL, discount=Fraction(1, 2)))
def test_the_discounted_interval_meets_the_best_sequence_and_its_tail(plan_return, model):
    steps, discount = 6, Fraction(1, 2)
    found = solve_open_loop(model, Criterion.of(model), gap=1e-4, time_limit=5.0)
    best = max(plan_return(model, plan, discount) for plan in product(range(model.num_actions), repeat=steps))
    tail = discount**steps / (1 - discount)
    assert found.interval.lower <= best + tail * Fraction(model.R.max())
    assert found.interval.upper >= best + tail * Fraction(model.R.min())
    prefix, cycle = found.certificate.actions()
    earned = evaluate_exact(model, OpenLoop(prefix, cycle), Criterion.of(model))
    assert found.certificate.lower <= earned <= found.certificate.upper


@settings(max_examples=10)
@given(pomdps(**SMALL, discount=Fraction(9, 10)))
def test_looking_at_nothing_is_never_better(model):
    blind = solve_open_loop(model, Criterion.of(model), gap=1e-3, time_limit=5.0)
    seeing = solve(model, Criterion.of(model), gap=1e-3, time_limit=5.0)
    assert blind.interval.lower <= seeing.interval.upper


def test_a_rhythm_is_found():
    """A state that alternates by itself, and a reward for naming it: the best sequence alternates too."""
    move, same = [{1: 1}, {0: 1}], [{0: 1}, {0: 1}]
    model = POMDP.build(
        states=2,
        actions=2,
        observations=1,
        T=[move] * 2,
        Z=[same] * 2,
        R=[[1, 0], [0, 1]],
        start="0",
        discount="0.9",
    )
    found = solve_open_loop(model, Criterion.of(model), gap=1e-6, time_limit=10.0)
    assert found.interval.contains(10)
    prefix, cycle = found.certificate.actions()
    # Within the gap a late action may be any; the early ones may not.
    assert (prefix + cycle * 100)[:100] == (0, 1) * 50


def test_the_tiger_is_best_left_alone_by_whoever_does_not_listen(tiger):
    forever = solve_open_loop(tiger(), Criterion(Fraction(19, 20)), gap=1e-6)
    assert forever.interval.contains(-20) and forever.certificate.quantity == OPEN_LOOP
    staged = solve_open_loop(tiger(), Criterion(Fraction(1), 3), gap=1e-6)
    assert staged.interval.contains(-3)


@pytest.mark.parametrize("accuracy", ["0.5", "0.85", "1"])
def test_what_is_heard_does_not_matter(tiger, accuracy):
    found = solve_open_loop(tiger(accuracy), Criterion(Fraction(1), 3), gap=1e-9)
    assert found.interval.contains(-3)
