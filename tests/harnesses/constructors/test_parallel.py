"""Parallel: copies by the rules of the definition; one copy is the model; a majority of three by its closed form."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors.parallel import side_by_side
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

models = pomdps(max_states=2, min_actions=2, max_actions=2, min_observations=2, max_observations=2)


def last(states: tuple[str, ...]) -> int:
    """A rule that is symmetric because the states come sorted."""
    return len(states) - 1


def beside(oracle: Any, model: POMDP, k: int) -> Any:
    """k copies in a row, not sorted: the first start is shared, all else is drawn apart, and action 1 closes."""
    rules = oracle.rules(model)

    def step(state: Any, a: str) -> Any:
        if len(state) == 1 or a == "1":
            yield from (((t,), o, p) for t, o, p in rules.step(max(state), a))
            return
        for outcomes in product(*(list(rules.step(s, a)) for s in state)):
            p = Fraction(1)
            for _, _, q in outcomes:
                p *= q
            yield tuple(t for t, _, _ in outcomes), "&".join(sorted(o for _, o, _ in outcomes)), p

    def reward(state: Any, a: str) -> Fraction:
        if len(state) == 1 or a == "1":
            return rules.reward(max(state), a)
        return sum((rules.reward(s, a) for s in state), Fraction(0))

    return oracle.Rules({(s,) * k: p for s, p in rules.start.items()}, rules.actions, step, reward)


@given(models, st.integers(1, 3))
def test_copies_share_the_start_and_nothing_else(oracle: Any, model: POMDP, k: int) -> None:
    found = side_by_side(model, k, "1", last)
    assert oracle.process(found, 2) == oracle.process(beside(oracle, model, k), 2)


@given(models)
def test_one_copy_is_the_model(oracle: Any, model: POMDP) -> None:
    assert oracle.process(side_by_side(model, 1, "0", last), 3) == oracle.process(model, 3)


@pytest.mark.parametrize("p", [Fraction(3, 10), Fraction(1, 2), Fraction(4, 5)])
def test_a_majority_of_three_is_right_as_often_as_the_binomial_says(oracle: Any, p: Fraction) -> None:
    """Condorcet: p^2 (3 - 2p) for independent votes; none where the start decides all of them alike."""
    model = POMDP.build(
        states=["fresh", "right", "wrong", "end"],
        actions=["draft", "send"],
        observations=["drafted", "end"],
        T=[[{1: p, 2: 1 - p}, {1: 1}, {2: 1}, {3: 1}], [{3: 1}] * 4],
        Z=[[{0: 1}] * 3 + [{1: 1}], [{1: 1}] * 4],
        R=[[0, 0, 0, 0], [0, 1, 0, 0]],
        start={0: 1},
    )

    def majority(states: tuple[str, ...]) -> int:
        return [s == "right" for s in states].index(2 * states.count("right") > len(states))

    voted = side_by_side(model, 3, "send", majority)
    assert oracle.best(voted, Fraction(1), 2) == p**2 * (3 - 2 * p)
    decided = model.with_start({1: p, 2: 1 - p})
    assert oracle.best(side_by_side(decided, 3, "send", majority), Fraction(1), 2) == p


def test_no_copy_is_refused() -> None:
    model = POMDP.build(states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[0]])
    with pytest.raises(ModelError, match="side_by_side k"):
        side_by_side(model, 0, "0", last)
