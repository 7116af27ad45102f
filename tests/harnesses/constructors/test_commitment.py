"""Commitment: plans of k steps against their definition by enumeration, and the values at both ends."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.constructors import difference
from harnesses.constructors.commitment import commit, planned
from harnesses.context import Sizes
from harnesses.context.counter import Counter
from harnesses.context.held import Held
from harnesses.context.window import Full
from harnesses.harness import induce
from pomdp.bounds import solve, solve_open_loop
from pomdp.bounds.stateless import stateless
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

ZERO = Fraction(0)
STEPS = 3
models = pomdps(max_states=2, min_actions=2, max_actions=2, max_observations=2)
charges = st.sampled_from([ZERO, Fraction(1, 2), Fraction(3)])


def best_plans(
    oracle: Any, model: POMDP, k: int, charge: Fraction, named: tuple[str, ...], steps: int
) -> Fraction:
    """The best return of plans of k steps, undiscounted: every plan at every decision, by recursion over measures."""
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def decide(measure: dict[Any, Fraction], left: int) -> Fraction:
        if left == 0 or not measure:
            return ZERO
        paid = charge * sum((m for s, m in measure.items() if s not in over), ZERO)
        plans = product(rules.actions, repeat=min(k, left))
        return max(follow({(): measure}, plan, left) for plan in plans) - paid

    def follow(measures: dict[Any, dict[Any, Fraction]], plan: tuple[str, ...], left: int) -> Fraction:
        """What a plan earns from measures by what was seen since it was made, and what comes after it."""
        if not plan:
            return sum((decide(measure, left) for measure in measures.values()), ZERO)
        total = ZERO
        reached: dict[Any, dict[Any, Fraction]] = {}
        ended: dict[Any, dict[Any, Fraction]] = {}
        for seen, measure in measures.items():
            for s, m in measure.items():
                total += m * rules.reward(s, plan[0])
                for t, o, p in rules.step(s, plan[0]):
                    part = (ended if o in named else reached).setdefault((*seen, o), {})
                    part[t] = part.get(t, ZERO) + m * p
        total += sum((decide(measure, left - 1) for measure in ended.values()), ZERO)
        return total + (follow(reached, plan[1:], left - 1) if reached else ZERO)

    return decide(dict(rules.start), steps)


@settings(max_examples=40)
@given(models, st.integers(1, STEPS), charges, st.booleans())
def test_the_best_value_is_that_of_the_best_plans(
    oracle: Any, model: POMDP, k: int, charge: Fraction, named: bool
) -> None:
    triggers = model.observations[-1:] if named else ()
    made = commit(model, k, charge, triggers)
    expected = best_plans(oracle, model, k, charge, triggers, STEPS)
    assert oracle.best(made, Fraction(1), STEPS) == expected
    assert solve(made, Criterion(Fraction(1), STEPS), gap=1e-6).interval.contains(expected)


@given(models)
def test_a_plan_of_one_step_is_the_task_itself(model: POMDP) -> None:
    assert difference(model, commit(model, 1)) is None
    assert difference(model, commit(model, 4, 0, "*")) is None


@pytest.mark.parametrize("name", ["tiger", "tmaze:2:0.9", "flip:2", "drift"])
def test_between_optimal_and_open_loop(name: str) -> None:
    """V_1 = V*, V_n = W, and V_k <= V_j where j divides k (a longer plan is two shorter ones made at once)."""
    model, criterion = task(name).model, Criterion(Fraction(1), 4)
    found = {k: solve(commit(model, k), criterion, gap=1e-6).interval for k in (1, 2, 3, 4)}
    assert found[1].meets(solve(model, criterion, gap=1e-6).interval)
    assert found[4].meets(solve_open_loop(model, criterion, gap=1e-6).interval)
    assert found[2].lower <= found[1].upper and found[4].lower <= found[2].upper
    assert found[3].lower <= found[1].upper


@pytest.mark.parametrize(
    ("name", "k", "named"), [("tiger", 2, ()), ("tmaze:2", 2, ()), ("tmaze:2", 4, ("cue-left",))]
)
def test_a_held_context_of_the_whole_history_reaches_the_same(
    name: str, k: int, named: tuple[str, ...]
) -> None:
    """A context that is kept while a plan is followed leaves the model exactly the plans: Vo = V_k."""
    model, criterion = task(name).model, Criterion(Fraction(1), 4)
    phi = Held(k, Counter(Full(4)), named)
    induced = induce(model, model, phi, criterion, Sizes())
    found = stateless(induced.model, 0, criterion, gap=1e-6, time_limit=20.0).interval
    expected = solve(commit(model, k, 0, named), criterion, gap=1e-6).interval
    assert found.width < 1e-4 and abs(found.middle - expected.middle) < 1e-4


def shown(model: POMDP) -> Iterator[str]:
    """The names of all observations that can occur."""
    for kernel in model.exact.Z:
        for row in kernel.rows():
            yield from (model.observations[o] for o in row)


def test_what_is_shown_within_and_after_a_plan() -> None:
    maze = task("tmaze:2").model
    made = commit(maze, 2)
    assert planned(maze) in made.observations and "cue-left&T" in set(shown(made))
    assert "cue-left" not in set(shown(made))
    assert "cue-left" in set(shown(commit(maze, 2, 0, "cue-*")))
    again = commit(made, 2)
    assert planned(made) != planned(maze) and planned(made) in again.observations


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0,), "commit k is 0"),
        ((2, -1), "commit charge is -1"),
        ((2, 0, "nothing"), "no observation matches"),
    ],
)
def test_impossible_arguments_are_refused(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        commit(task("tiger").model, *given)
