"""Limits: a budget ends a run after exactly n calls, the loop detector at the n-th identical one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import call_budget, malformed, stall, step_limit
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

models = pomdps(max_states=2, min_actions=2, max_actions=2, max_observations=2)


def limited(oracle: Any, model: POMDP, ended: Any, shown: Any = lambda calls, o: o) -> Any:
    """The rules of a control that reads all calls made so far: `ended(calls)` before a call, else it executes."""
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def step(state: Any, a: str) -> Any:
        s, calls = state
        if s == "stop" or (s not in over and ended((*calls, a))):
            yield ("stop", ()), "stopped", Fraction(1)
            return
        for t, o, p in rules.step(s, a):
            yield (t, (*calls, a)), o if s in over else shown((*calls, a), o), p

    def reward(state: Any, a: str) -> Fraction:
        s, calls = state
        stopped = s == "stop" or (s not in over and ended((*calls, a)))
        return Fraction(0) if stopped else rules.reward(s, a)

    return oracle.Rules({(s, ()): p for s, p in rules.start.items()}, rules.actions, step, reward)


@given(models, st.integers(1, 3))
def test_a_step_limit_ends_a_run_exactly_at_n(oracle: Any, model: POMDP, n: int) -> None:
    """The n-th call executes as ever; the next shows `stopped`, earns 0, and so does every further one."""
    expected = limited(oracle, model, lambda calls: len(calls) > n)
    assert oracle.process(step_limit(model, n), n + 2) == oracle.process(expected, n + 2)


@given(models, st.integers(1, 2))
def test_a_call_budget_counts_the_calls_it_is_told_to(oracle: Any, model: POMDP, n: int) -> None:
    expected = limited(oracle, model, lambda calls: calls[:-1].count("1") >= n)
    assert oracle.process(call_budget(model, n, "1"), 4) == oracle.process(expected, 4)


@given(models)
def test_without_a_choice_of_calls_both_budgets_are_one(oracle: Any, model: POMDP) -> None:
    assert oracle.process(call_budget(model, 2), 4) == oracle.process(step_limit(model, 2), 4)


def run_length(calls: tuple[str, ...]) -> int:
    """How many of the last calls are identical."""
    return next((k for k in range(1, len(calls)) if calls[-1 - k] != calls[-1]), len(calls))


@given(models, st.sampled_from([(1, 2), (2, 3), (1, 3)]))
def test_a_stall_is_warned_of_and_ended_by_identical_calls_in_a_row(
    oracle: Any, model: POMDP, limits: tuple[int, int]
) -> None:
    warn, stop = limits
    expected = limited(
        oracle,
        model,
        lambda calls: run_length(calls) >= stop,
        lambda calls, o: f"{o}+warning" if run_length(calls) == warn else o,
    )
    assert oracle.process(stall(model, warn, stop), 4) == oracle.process(expected, 4)


@given(models)
def test_a_stall_in_total_counts_every_call_of_an_action(oracle: Any, model: POMDP) -> None:
    expected = limited(
        oracle,
        model,
        lambda calls: calls.count(calls[-1]) >= 3,
        lambda calls, o: f"{o}+warning" if calls.count(calls[-1]) == 2 else o,
    )
    assert oracle.process(stall(model, 2, 3, "total"), 4) == oracle.process(expected, 4)


def follow(model: POMDP, calls: list[str]) -> list[str]:
    """The observations of calls in a model in which each is certain."""
    (s,), seen = model.exact.start, []
    for call in calls:
        a = model.action_index(call)
        (s,) = model.exact.T[a].row(s)
        (o,) = model.exact.Z[a].row(s)
        seen.append(model.observations[o])
    return seen


def test_stall_3_4_warns_at_the_third_and_ends_at_the_fourth_identical_call() -> None:
    """A different call in between starts the count anew."""
    model = stall(task("tiger").model.with_start("tiger-left"), 3, 4)
    quiet = POMDP.build(
        states=["s"],
        actions=["look", "wait"],
        observations=["o"],
        T=[[[1]]] * 2,
        Z=[[[1]]] * 2,
        R=[[1], [2]],
        discount=None,
    )
    found = stall(quiet, 3, 4)
    assert follow(found, ["look"] * 5) == ["o", "o", "o+warning", "stopped", "stopped"]
    assert follow(found, ["look", "look", "wait", "look", "look", "look"]) == ["o"] * 5 + ["o+warning"]
    total = stall(quiet, 3, 4, "total")
    assert follow(total, ["look", "wait"] * 4) == ["o"] * 4 + ["o+warning"] * 2 + ["stopped"] * 2
    assert "tiger-left/listen-3" in model.states


def test_a_reply_that_does_not_parse_counts_against_a_step_limit_outside_it_alone() -> None:
    tiger = task("tiger").model.with_start("tiger-left")
    outside = step_limit(malformed(tiger, 1, 1), 2)
    assert follow(outside, ["listen"] * 3) == ["error", "error", "stopped"]
    inside = malformed(call_budget(tiger, 2), 1, 1)
    assert follow(inside, ["listen"] * 3) == ["error"] * 3


def test_nested_limits_keep_their_own_stop() -> None:
    model = step_limit(call_budget(task("tiger").model, 2, "listen"), 3)
    assert {name.partition("/")[0] for name in model.states} == {
        "tiger-left",
        "tiger-right",
        "stop",
        "stop-2",
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: step_limit(m, 0), "step_limit n is 0; give a whole number of at least 1"),
        (lambda m: call_budget(m, "5/2"), "call_budget n is 5/2"),
        (lambda m: stall(m, 4, 3), "warns at call 4 and stops at 3; give warn < stop"),
        (lambda m: stall(m, 3, 4, "often"), "neither consecutive nor total"),
    ],
)
def test_wrong_arguments_are_named(wrong: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        wrong(task("tiger").model)
