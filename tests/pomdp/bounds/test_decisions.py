"""The two searches over deterministic decisions, without a policy to begin with, against all policies in rationals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import decisions, fixed_choice
from pomdp.bounds.context_chain import ContextChain
from pomdp.bounds.decisions import decide
from pomdp.bounds.fixed_choice import choose
from pomdp.bounds.recall_bound import RecallBound
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import Reactive
from pomdp.testing import criteria, pomdps
from pomdp.value import evaluate_exact

models = pomdps(
    min_states=2, max_states=3, min_actions=2, max_actions=2, min_observations=2, max_observations=2
)
ROUNDING = 1e-8
few = settings(max_examples=20)


def by_time(model: POMDP, criterion: Criterion) -> Fraction:
    """The best rules c -> a, another at each step, observation 0 being first: all tried on exact measures."""
    exact, A = model.exact, model.num_actions

    def best(left: int, measure: dict[tuple[int, int], Fraction]) -> Fraction:
        if left == 0 or not measure:
            return Fraction(0)
        contexts = sorted({c for c, _ in measure})
        values = []
        for actions in itertools.product(range(A), repeat=len(contexts)):
            rule = dict(zip(contexts, actions, strict=True))
            total, following = Fraction(0), dict[tuple[int, int], Fraction]()
            for (c, s), mass in measure.items():
                total += mass * exact.R.row(rule[c]).get(s, Fraction(0))
                for s2, p in exact.T[rule[c]].row(s).items():
                    for o, q in exact.Z[rule[c]].row(s2).items():
                        following[o, s2] = following.get((o, s2), Fraction(0)) + mass * p * q
            values.append(total + criterion.discount * best(left - 1, following))
        return max(values)

    return best(criterion.horizon or 0, {(0, s): p for s, p in exact.start.items()})


def by_context(model: POMDP, criterion: Criterion) -> dict[tuple[int, ...], Fraction]:
    """J of every policy with one action a context."""
    found = {}
    for choice in itertools.product(range(model.num_actions), repeat=model.num_observations):
        pi = np.eye(model.num_actions)[list(choice)]
        found[choice] = evaluate_exact(model, Reactive(pi, pi[0]), criterion)
    return found


def near(value: float, exact: Fraction, chain: ContextChain) -> bool:
    """Equal but for rounding."""
    return abs(value - float(exact)) <= ROUNDING * (1 + chain.scale)


def horizons() -> st.SearchStrategy[Criterion]:
    """One to three steps, discounted or not."""
    return criteria(max_horizon=3, discounted=False)


@settings(max_examples=30)
@given(models, horizons())
def test_decisions_by_time_are_the_best_of_all(model: POMDP, criterion: Criterion) -> None:
    """`stateless-upper`: nothing is known beforehand, so the bounds alone lead to the best."""
    chain = ContextChain.of(model, 0, criterion)
    if not chain.stages:
        return
    found = decide(chain, RecallBound(model, criterion), chain.state, known=-math.inf, gap=0.0, seconds=20.0)
    exact = by_time(model, criterion)
    assert near(found.best, exact, chain) and near(found.upper, exact, chain)
    if found.choice is not None:
        assert chain.timed and near(chain.evaluate(chain.policy(found.choice)), exact, chain)


@settings(max_examples=30)
@given(models, criteria(max_horizon=3), st.integers(0, 3))
def test_fixed_choices_are_the_best_of_all(model: POMDP, criterion: Criterion, number: int) -> None:
    """Whatever policy the search begins with."""
    chain = ContextChain.of(model, 0, criterion)
    if not chain.stages:
        return
    begin = np.array([number % 2, number // 2])[: chain.contexts]
    found = choose(chain, RecallBound(model, criterion), chain.state, known=begin, gap=0.0, seconds=20.0)
    exact = max(by_context(model, criterion).values())
    assert near(found.best, exact, chain) and near(found.upper, exact, chain)
    assert found.choice is not None and near(chain.evaluate(chain.policy(found.choice)), exact, chain)


@few
@given(models, criteria(max_horizon=3), st.sampled_from((-1, 0, 1, 2, 3, 5)))
def test_a_search_cut_off_anywhere_still_bounds(model: POMDP, criterion: Criterion, lines: int) -> None:
    chain = ContextChain.of(model, 0, criterion)
    if not chain.stages:
        return
    slack = ROUNDING * (1 + chain.scale)
    with pytest.MonkeyPatch.context() as patch:
        for module in (decisions, fixed_choice):
            patch.setattr(module, "MAX_LINES", lines)
        bound = RecallBound(model, criterion)
        begin = np.zeros(chain.contexts, dtype=np.int64)
        fixed = choose(chain, bound, chain.state, known=begin, gap=0.0, seconds=20.0)
        exact = by_context(model, criterion)
        assert fixed.upper >= max(exact.values()) - slack
        assert any(near(fixed.best, value, chain) for value in exact.values())
        if criterion.horizon is not None:
            timed = decide(chain, bound, chain.state, known=-math.inf, gap=0.0, seconds=20.0)
            assert timed.upper >= by_time(model, criterion) - slack


@few
@given(models, horizons(), st.sampled_from((0.01, 0.5, 3.0)))
def test_a_gap_is_what_the_upper_end_may_be_too_high(model: POMDP, criterion: Criterion, gap: float) -> None:
    chain = ContextChain.of(model, 0, criterion)
    if not chain.stages:
        return
    found = decide(chain, RecallBound(model, criterion), chain.state, known=-math.inf, gap=gap, seconds=20.0)
    exact = float(by_time(model, criterion))
    slack = ROUNDING * (1 + chain.scale)
    assert exact - slack <= found.upper <= found.best + gap + slack and found.best <= exact + slack


def test_of_two_lines_to_the_same_place_the_one_that_earned_more_is_followed() -> None:
    """The first action to be tried leads to the same and earns less."""
    model = POMDP.build(
        states=1, actions=3, observations=1, T=[[[1]]] * 3, Z=[[[1]]] * 3, R=[[-1], [2], [1]], start={0: 1}
    )
    criterion = Criterion(Fraction(1), 3)
    chain = ContextChain.of(model, 0, criterion)
    found = decide(chain, RecallBound(model, criterion), chain.state, known=-9.0, gap=0.0, seconds=20.0)
    assert (found.best, found.upper) == (pytest.approx(6.0), pytest.approx(6.0))


def test_contexts_that_meet_again_are_bounded_by_what_is_then_forgotten() -> None:
    """A cue is seen, then forgotten on a step where it pays to keep it: the first line's bound is already exact."""
    T = [[{1: Fraction(1, 2), 2: Fraction(1, 2)}, {3: 1}, {4: 1}, {5: 1}, {5: 1}, {5: 1}]] * 2
    model = POMDP.build(
        states=["start", "left", "right", "hall-left", "hall-right", "over"],
        actions=["l", "r"],
        observations=["-", "left", "right", "hall"],
        T=T,
        Z=[[{0: 1}, {1: 1}, {2: 1}, {3: 1}, {3: 1}, {0: 1}]] * 2,
        R=[[0, 0, 0, 1, -1, 0], [0, 0, 0, -1, 1, 0]],
        start="start",
    )
    criterion = Criterion(Fraction(1), 3)
    chain = ContextChain.of(model, 0, criterion)
    bound = RecallBound(model, criterion)
    assert bound.value(3, model.start) == pytest.approx(1.0)
    found = decide(chain, bound, chain.state, known=0.0, gap=1e-9, seconds=20.0)
    assert found.upper == pytest.approx(0.0, abs=1e-8)
