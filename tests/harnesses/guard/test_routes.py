"""Routes: Eq. 3 and Eq. 6 of the source against loops, and Chow's threshold against the cheaper of two actions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.guard.costs import Costs
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, Region
from harnesses.guard.routes import route, route_accuracy, route_threshold
from harnesses.guard.thresholds import thresholds

STEPS = ("retrieve", "calculate", "escalate")
ANSWERS = st.sampled_from([*STEPS, "nonsense", "", None])
EIGHTHS = st.integers(0, 8).map(lambda k: Fraction(k, 8))


@given(st.lists(st.tuples(ANSWERS, st.sampled_from(STEPS), EIGHTHS), max_size=10), EIGHTHS)
def test_accuracy_and_followed_are_those_of_a_loop_over_the_items(items, tau):
    columns = [list(column) for column in zip(*items)] or [[], [], []]
    found = route_accuracy(*columns, tau, STEPS)
    followed = [(mine, right) for mine, right, p in items if mine in STEPS and p >= tau]
    hits = sum(mine == right for mine, right, _ in items)
    assert found.accuracy == Rate.of(hits, len(items))
    assert found.followed == Rate.of(len(followed), len(items))
    assert found.among_followed == Rate.of(sum(mine == right for mine, right in followed), len(followed))
    assert found.invalid == sum(mine not in STEPS for mine, _, _ in items)
    assert (found.json()["accuracy_among_followed"]["rate"] is None) == (not followed)


def test_an_answer_that_names_no_step_is_wrong_and_its_probability_is_not_read():
    found = route_accuracy(
        ["retrieve", None, "fly"], ["retrieve"] * 3, [0.9, None, float("nan")], "3/4", STEPS
    )
    assert (found.accuracy, found.followed, found.invalid) == (Rate.of(1, 3), Rate.of(1, 3), 2)
    anything = route_accuracy(["retrieve", None, "fly"], ["retrieve"] * 3, [0.9, None, 0.8], "3/4")
    assert (anything.accuracy, anything.followed, anything.invalid) == (Rate.of(1, 3), Rate.of(2, 3), 1)
    assert "0/0, undefined" in route_accuracy(["retrieve"], ["retrieve"], [0.5], "3/4").text()


@given(wrong=st.integers(0, 12), escalate=st.integers(0, 12), p=EIGHTHS)
def test_following_at_the_threshold_is_the_cheaper_action_and_a_tie_is_followed(wrong, escalate, p):
    tau = route_threshold(wrong, escalate)
    assert route(p, tau) is (Region.ACT if wrong * (1 - p) <= escalate else Region.ESCALATE)
    never_asking = thresholds(Costs(wrong=wrong, ask=wrong + escalate + 1, miss=0, escalate=escalate))
    assert never_asking.tau_act == never_asking.tau_esc == tau


def test_the_router_of_the_source():
    """M14 Eq. 3 and its first question: 0.8 is followed when a wrong route costs 4, and not when it costs 10."""
    assert route_threshold(4, 1) == Fraction(3, 4)
    assert route("0.8", route_threshold(4, 1)) is Region.ACT
    assert route("0.8", route_threshold(10, 1)) is Region.ESCALATE


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((["a"], ["a", "b"], [0.5]), "1 chosen steps, 2 correct ones, 1 prob"),
        ((["a", "a"], ["a", "fly"], [0.5, 0.5]), "row 2: correct step 'fly'"),
        ((["a", "a"], ["a", "a"], [0.5, 1.5]), "row 2: p is 1.5"),
        ((["a", "a"], ["a", None], [0.5, 0.5]), "row 2: correct step None"),
    ],
)
def test_items_that_make_no_routes_are_refused(arguments, told):
    with pytest.raises(GuardError, match=told):
        route_accuracy(*arguments, "3/4", ("a", "b"))
