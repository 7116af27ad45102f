"""Policies: what they accept, how they become controllers, and their files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.model import POMDP, ModelError
from pomdp.policy import (
    AlphaVectors,
    Controller,
    OpenLoop,
    Reactive,
    as_controller,
    check_fits,
    policy_from_json,
)
from pomdp.testing import alpha_vectors, controllers, open_loops, pomdps, reactives

TIGER = POMDP.build(
    states=["left", "right"],
    actions=["listen", "open-left", "open-right"],
    observations=["hear-left", "hear-right"],
    T=[[[1, 0], [0, 1]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2],
    Z=[[[0.85, 0.15], [0.15, 0.85]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2],
    R=[[-1, -1], [-100, 10], [10, -100]],
    discount=0.95,
)


def walk(controller: Controller, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Action probabilities after a history of (action, observation) pairs."""
    node = controller.start
    for action, observation in pairs:
        node = int(controller.successor[node, action, observation])
    return controller.act[node]


@st.composite
def model_and_pairs(draw: st.DrawFn) -> tuple[POMDP, list[tuple[int, int]]]:
    model = draw(pomdps())
    pair = st.tuples(st.integers(0, model.num_actions - 1), st.integers(0, model.num_observations - 1))
    return model, draw(st.lists(pair, max_size=6))


@given(st.data())
def test_an_open_loop_as_controller_plays_its_sequence_whatever_is_observed(data):
    model, pairs = data.draw(model_and_pairs())
    plan = data.draw(open_loops(model))
    controller = as_controller(plan, model)
    expected = plan.prefix + plan.cycle * (len(pairs) + 1)
    for t in range(len(pairs) + 1):
        assert walk(controller, pairs[:t]).tolist() == np.eye(model.num_actions)[expected[t]].tolist()
    assert plan.actions(len(pairs)) == expected[: len(pairs)]


@given(st.data())
def test_a_reactive_policy_as_controller_follows_the_last_observation(data):
    model, pairs = data.draw(model_and_pairs())
    policy = data.draw(reactives(model))
    expected = policy.pi[pairs[-1][1]] if pairs else policy.first
    assert walk(as_controller(policy, model), pairs).tolist() == expected.tolist()


def test_a_plan_that_ends_serves_its_own_length_and_no_more():
    plan = OpenLoop((0, 1), ())
    assert plan.actions(2) == (0, 1)
    assert [walk(as_controller(plan, TIGER, 2), [(0, 0)] * t).argmax() for t in range(2)] == [0, 1]
    for horizon in (3, None):
        with pytest.raises(ModelError, match=r"2 actions and an empty cycle.*cycle=\(1,\)"):
            as_controller(plan, TIGER, horizon)


def test_alpha_vectors_choose_the_largest_and_the_earliest_of_equals():
    policy = AlphaVectors([[0.0, 0.0], [1.0, -1.0], [1.0, -1.0]], [0, 2, 1])
    assert policy.choose(np.array([[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]])).tolist() == [0, 2, 0]
    assert int(policy.choose([1.0, 0.0])) == 2
    assert policy.value([0.75, 0.25]) == 0.5
    with pytest.raises(ModelError, match="no finite memory"):
        as_controller(policy, TIGER)


@pytest.mark.parametrize("kind", [open_loops, controllers, reactives, alpha_vectors])
@given(data=st.data())
def test_every_policy_is_read_back_from_its_file(kind, data):
    model = data.draw(pomdps(min_actions=2, min_observations=2))
    policy = data.draw(kind(model))
    text = policy.to_json(model)
    again = policy_from_json(text, model)
    assert type(again) is type(policy)
    assert again.to_json(model) == text
    if isinstance(policy, OpenLoop):
        assert again == policy
    if isinstance(policy, Reactive):
        assert np.array_equal(again.pi, policy.pi) and np.array_equal(again.first, policy.first)
    if isinstance(policy, AlphaVectors):
        assert np.array_equal(again.vectors, policy.vectors) and np.array_equal(again.actions, policy.actions)
    if isinstance(policy, Controller):
        taken = policy.act > 0
        assert np.array_equal(again.act, policy.act) and again.start == policy.start
        assert np.array_equal(again.successor[taken], policy.successor[taken])


def test_a_controller_file_written_by_hand_means_what_it_says():
    text = """{"kind": "controller", "start": 1, "nodes": [
        {"act": "open-left", "next": {"open-left": 1}},
        {"act": {"listen": 0.75, "open-right": 0.25},
         "next": {"listen": {"hear-right": 0, "hear-left": 1}, "open-right": 1}}]}"""
    controller = policy_from_json(text, TIGER)
    assert controller.start == 1
    assert controller.act.tolist() == [[0, 1, 0], [0.75, 0, 0.25]]
    assert controller.successor[0, 1].tolist() == [1, 1]
    assert controller.successor[1, 0].tolist() == [1, 0]
    assert controller.successor[1, 2].tolist() == [1, 1]


LISTEN = {"act": "listen", "next": {"listen": 0}}


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        ("[", "the policy is not JSON"),
        ("[" * 100_000, "the policy is not JSON"),
        ("1" * 5000, "the policy is not JSON"),
        ([], "must be an object"),
        ({}, 'needs a "kind"'),
        ({"kind": ["open_loop"]}, 'needs a "kind"'),
        ('{"kind": "open_loop", "kind": "open_loop"}', "'kind' is given twice"),
        ({"kind": "open_loop", "prefix": []}, "lacks 'cycle'"),
        ({"kind": "open_loop", "prefix": [], "cycle": [], "note": 1}, "unknown entry 'note'"),
        ({"kind": "open_loop", "prefix": [], "cycle": []}, "at least one action"),
        (
            {"kind": "open_loop", "prefix": ["listen", "lisen"], "cycle": []},
            r"prefix\[1\]: 'lisen' is no action",
        ),
        ({"kind": "open_loop", "prefix": "listen", "cycle": []}, "prefix must be a list"),
        ({"kind": "controller", "start": 0, "nodes": []}, "nodes is empty"),
        ({"kind": "controller", "start": 1, "nodes": [LISTEN]}, "start is 1, not a node from 0 to 0"),
        ({"kind": "controller", "start": True, "nodes": [LISTEN]}, "start is True"),
        (
            {"kind": "controller", "start": 0, "nodes": [{**LISTEN, "next": {}}]},
            r'nodes\[0\].next lacks "listen"',
        ),
        (
            {"kind": "controller", "start": 0, "nodes": [{**LISTEN, "next": {"listen": 7}}]},
            r"next.listen is 7",
        ),
        (
            {"kind": "controller", "start": 0, "nodes": [{**LISTEN, "next": {"listen": {"hear-left": 0}}}]},
            "next.listen lacks 'hear-right'",
        ),
        (
            {"kind": "reactive", "first": "listen", "rules": {"hear-left": "listen"}},
            "rules lacks 'hear-right'",
        ),
        (
            {
                "kind": "reactive",
                "first": {"listen": 0.5},
                "rules": {"hear-left": "listen", "hear-right": "listen"},
            },
            r"first sums to 0.5, not 1; a right one is \[1.0, 0.0, 0.0\]",
        ),
        (
            {
                "kind": "reactive",
                "first": "listen",
                "rules": {"hear-left": {"listen": "x"}, "hear-right": "listen"},
            },
            "rules.hear-left.listen is 'x', not a number",
        ),
        (
            '{"kind": "alpha_vectors", "vectors": [{"action": "listen", "values": [NaN, 1]}]}',
            "NaN is not a number",
        ),
        ('{"kind": "alpha_vectors", "vectors": [{"action": "listen", "values": [1e999, 1]}]}', "too large"),
        (
            {"kind": "alpha_vectors", "vectors": [{"action": "listen", "values": [1]}]},
            "has 1 numbers, the model has 2",
        ),
        ({"kind": "alpha_vectors", "vectors": []}, "non-empty"),
    ],
)
def test_a_wrong_file_is_refused_by_the_name_of_its_entry(data, fragment):
    text = data if isinstance(data, str) else json.dumps(data)
    with pytest.raises(ModelError, match=fragment) as caught:
        policy_from_json(text, TIGER)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("build", "fragment"),
    [
        (lambda: OpenLoop((), ()), "at least one action"),
        (lambda: OpenLoop((0, -1), ()), r"prefix\[1\] is -1"),
        (lambda: OpenLoop((), (0.5,)), r"cycle\[0\] is 0.5"),
        (lambda: Controller([[0.5, 0.4]], np.zeros((1, 2, 1), int)), r"act\[0\] sums to 0.9"),
        (
            lambda: Controller([[1.5, -0.5]], np.zeros((1, 2, 1), int)),
            r"act\[0\] has the negative probability -0.5 at 1",
        ),
        (lambda: Controller([[np.nan, 1]], np.zeros((1, 2, 1), int)), "must be finite"),
        (lambda: Controller([[1, 0]], np.zeros((1, 1, 1), int)), r"successor has shape \(1, 1, 1\)"),
        (lambda: Controller([[1, 0]], np.zeros((1, 2, 1))), "array of integers"),
        (
            lambda: Controller([[1, 0]], np.ones((1, 2, 1), int)),
            r"successor\[0, 0, 0\] is 1, not a node from 0 to 0",
        ),
        (lambda: Controller([[1, 0]], np.zeros((1, 2, 1), int), 1), "start is 1"),
        (lambda: Reactive([[1, 0]], [1]), "first has 1 actions, pi has 2"),
        (lambda: Reactive([[0, 0]], [1, 0]), r"pi\[0\] sums to 0"),
        (lambda: AlphaVectors([[1, 2]], [0, 1]), "1 alpha vectors but 2 actions"),
        (lambda: AlphaVectors([[1, np.inf]], [0]), "must be finite"),
        (lambda: AlphaVectors([[1, 2]], [-1]), "action -1 is negative"),
    ],
)
def test_a_malformed_policy_cannot_be_made(build, fragment):
    with pytest.raises(ModelError, match=fragment):
        build()


@pytest.mark.parametrize(
    ("policy", "fragment"),
    [
        (OpenLoop((3,), ()), "uses action 3; the model has actions 0 to 2"),
        (AlphaVectors([[0, 0]], [3]), "uses action 3"),
        (AlphaVectors([[0, 0, 0]], [0]), "for 3 states, the model has 2"),
        (Controller([[1, 0]], np.zeros((1, 2, 2), int)), "for 2 actions, the model has 3"),
        (Controller([[1, 0, 0]], np.zeros((1, 3, 1), int)), "for 1 observations, the model has 2"),
        (Reactive([[1, 0, 0]], [1, 0, 0]), "for 1 observations, the model has 2"),
        ("listen", "str is not one of OpenLoop"),
    ],
)
def test_a_policy_for_another_model_is_refused(policy, fragment):
    with pytest.raises(ModelError, match=fragment):
        check_fits(policy, TIGER)


def test_arrays_of_a_policy_cannot_change_afterwards():
    act = np.array([[1.0, 0.0]])
    controller = Controller(act, np.zeros((1, 2, 1), dtype=np.int64))
    act[0] = [0.0, 1.0]
    assert controller.act.tolist() == [[1.0, 0.0]]
    for array in (controller.act, controller.successor):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
