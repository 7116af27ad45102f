"""Best actions: against a plain recursion over the exact filter."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.belief_graph import BeliefGraph
from harnesses.best_action import Best, BestActions, differ
from pomdp.belief import ExactBelief, exact_measures
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.testing import pomdps


def q(model: POMDP, measure: ExactBelief, discount: Fraction, steps: int) -> list[Fraction]:
    """Action values of a measure by recursion, homogeneous in it."""
    found = []
    for a in range(model.num_actions):
        row = model.exact.R.row(a)
        value = sum((p * row.get(s, Fraction(0)) for s, p in measure.items()), Fraction(0))
        if steps > 1:
            after = exact_measures(model, measure, a).values()
            value += discount * sum(max(q(model, m, discount, steps - 1)) for m in after)
        found.append(value)
    return found


@pytest.mark.parametrize(("name", "steps"), [("tiger", 3), ("flip:2", 4), ("tmaze:2", 3), ("repo_repair", 3)])
def test_what_pays_later_counts(name: str, steps: int) -> None:
    model = task(name).model
    graph = BeliefGraph(model)
    best = BestActions(graph, Criterion(Fraction(1), steps))
    for length, beliefs in ((0, {0}), (1, graph.successors([0]))):
        for i in beliefs:
            values = q(model, graph.belief(i), Fraction(1), steps - length)
            expected = frozenset(a for a, value in enumerate(values) if value == max(values))
            assert best.at(i, length) == Best(expected, certain=True)


def test_what_is_not_followed_may_be_good_or_bad() -> None:
    # Action 0 pays 1 at once and ends; action 1 walks on, past what is followed, towards nothing.
    states = 8
    walk = [{min(s + 1, states - 2): 1} if s < states - 1 else {s: 1} for s in range(states)]
    model = POMDP.build(
        states=states,
        actions=2,
        observations=states,
        T=[[{states - 1: 1}] * states, walk],
        Z=[[{s: 1} for s in range(states)]] * 2,
        R=[[1, *[0] * (states - 1)], [0] * states],
        start="0",
    )
    criterion = Criterion(Fraction(9, 10))
    assert BestActions(BeliefGraph(model), criterion, max_pairs=3).at(0, 0) == Best(frozenset([0, 1]), False)
    assert BestActions(BeliefGraph(model), criterion).at(0, 0) == Best(frozenset([0]), True)


@given(st.data())
def test_with_a_horizon_they_are_those_of_the_recursion(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    criterion = Criterion(data.draw(st.sampled_from([Fraction(1, 2), Fraction(1)])), 3)
    graph = BeliefGraph(model)
    best = BestActions(graph, criterion)
    for length, beliefs in ((1, graph.successors([0])), (0, {0})):
        for i in beliefs:
            values = q(model, graph.belief(i), criterion.discount, 3 - length)
            expected = {a for a, value in enumerate(values) if value == max(values)}
            assert best.at(i, length) == Best(frozenset(expected), certain=True)


@given(st.data())
def test_without_a_horizon_no_other_action_is_better(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=2, max_actions=2, max_observations=2, discount=Fraction(1, 5)))
    graph = BeliefGraph(model)
    best = BestActions(graph, Criterion.of(model), max_pairs=400)
    found = best.at(0, 0)
    assert found is not None
    steps = 5
    values = q(model, graph.belief(0), Fraction(1, 5), steps)
    # Twice what later rewards, at most 10 a step, can change.
    tail = 2 * Fraction(1, 5) ** steps / (1 - Fraction(1, 5)) * 10 + Fraction(1, 10**6)
    near = {a for a, value in enumerate(values) if value >= max(values) - tail}
    assert found.actions & near
    if found.certain:
        assert found.actions <= near
    if len(near) == 1:
        assert near <= found.actions


def test_two_growls_say_open_and_one_of_each_says_listen() -> None:
    model = task("tiger").model
    graph = BeliefGraph(model)
    best = BestActions(graph, Criterion.of(model))
    sure = graph.number({0: Fraction(289, 298), 1: Fraction(9, 298)})
    assert best.at(sure, 2) == Best(frozenset([model.action_index("open-right")]), True)
    assert best.at(0, 2) == Best(frozenset([model.action_index("listen")]), True)
    assert differ(best.at(sure, 2), best.at(0, 2)) is True


def test_beyond_the_limit_nothing_is_said() -> None:
    model = task("tiger").model
    graph = BeliefGraph(model)
    assert BestActions(graph, Criterion(Fraction(1), 8), max_pairs=3).at(0, 0) is None
    assert differ(None, Best(frozenset([0]), True)) is None
    assert differ(Best(frozenset([0, 1]), False), Best(frozenset([1]), True)) is None
    assert differ(Best(frozenset([0, 1]), True), Best(frozenset([1]), True)) is False
