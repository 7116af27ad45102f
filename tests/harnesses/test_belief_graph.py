"""Belief graph: its beliefs and moves are those of the Bayes filter in rationals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.belief_graph import BeliefGraph, TooManyError
from pomdp.belief import exact_measures, normalise
from pomdp.library import task
from pomdp.testing import pomdps


@given(st.data())
def test_moves_are_the_exact_filter(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3))
    graph = BeliefGraph(model)
    edge = {0: dict(model.exact.start)}
    for _ in range(3):
        following = {}
        for i, belief in edge.items():
            assert graph.belief(i) == belief
            for a in range(model.num_actions):
                reward = sum(p * model.exact.R.row(a).get(s, 0) for s, p in belief.items())
                assert graph.reward(i, a) == reward
                expected = exact_measures(model, belief, a)
                moves = graph.moves(i, a)
                assert [m.observation for m in moves] == list(expected)
                for move in moves:
                    measure = expected[move.observation]
                    assert move.probability == sum(measure.values())
                    following[move.belief] = normalise(measure)
        edge = following


def test_each_belief_has_one_number_however_it_is_reached() -> None:
    model = task("tiger").model
    graph = BeliefGraph(model)
    beliefs = [tuple(graph.belief(i).items()) for i in graph.within(6)]
    assert len(set(beliefs)) == len(beliefs) == 13
    assert graph.number(dict(model.exact.start)) == 0
    assert [graph.number(graph.belief(i)) for i in range(len(graph))] == list(range(len(graph)))


def test_beliefs_of_any_length_are_found_where_they_are_finitely_many() -> None:
    assert len(BeliefGraph(task("flip:3").model).within(None)) == 14


def test_too_many_beliefs_are_refused_in_one_line() -> None:
    with pytest.raises(
        TooManyError, match="more than 20 beliefs of tiger.* give a shorter horizon"
    ) as refusal:
        BeliefGraph(task("tiger").model, max_beliefs=20).within(None)
    assert "\n" not in str(refusal.value)
