"""Witnesses: what they claim is checked again from their histories alone."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.belief_graph import BeliefGraph
from harnesses.best_action import BestActions
from harnesses.context import ContextMap, Last, LastMessages, Null, Sizes, fold, parse_map
from harnesses.lossy import sufficient
from harnesses.witness import Witness
from pomdp.belief import exact_history
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.testing import pomdps

ONE = Fraction(1)


def check(model: POMDP, phi: ContextMap, criterion: Criterion, witness: Witness) -> None:
    """Same length, same context, other beliefs; best actions by the exact recursion."""
    graph = BeliefGraph(model)
    best = BestActions(graph, criterion)
    answers = []
    for history, belief in zip(witness.histories, witness.beliefs, strict=True):
        assert len(history) == witness.length
        assert fold(phi, [Sizes().event(*pair) for pair in history]) == witness.context
        pairs = [(model.action_index(a), model.observation_index(o)) for a, o in history]
        exact = exact_history(model, pairs)[0][-1]
        assert {model.states[s]: p for s, p in exact.items()} == belief
        answers.append(best.at(graph.number(exact), witness.length))
    assert witness.beliefs[0] != witness.beliefs[1]
    one, other = (frozenset() if a is None else a.actions for a in answers)
    assert witness.best_actions is not None
    assert [{model.action_index(a) for a in names} for names in witness.best_actions] == [one, other]
    assert witness.best_action_differs == (not one & other)
    apart = [i for i, (a, b) in enumerate(zip(*witness.histories, strict=True)) if a != b]
    assert list(witness.differing) == apart != []


@given(data=st.data())
def test_a_witness_is_what_it_says(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    phi = data.draw(st.sampled_from([Null(), Last(0), Last(1), LastMessages(1), LastMessages(2)]))
    criterion = Criterion(ONE, 4)
    found = sufficient(model, phi, criterion)
    for witness in (found.witness, found.decisive):
        if witness is not None:
            check(model, phi, criterion, witness)
    if found.decisive is not None:
        assert found.decisive.best_action_differs
        assert found.witness is not None and found.witness.length <= found.decisive.length


def test_the_witness_of_a_window_on_flip_names_the_flip_and_its_pin() -> None:
    flip = task("flip:3")
    found = sufficient(flip.model, Last(1), Criterion(ONE, 5), Sizes.of_task(flip))
    assert found.decisive is not None
    assert found.decisive.json() == {
        "context": "read=flag-0",
        "histories": [
            [["wait", "u0"], ["wait", "t2"], ["wait", "t3"], ["read", "flag-0"]],
            [["wait", "u0"], ["flip", "t2"], ["wait", "t3"], ["read", "flag-0"]],
        ],
        "beliefs": [{"stage-4-y0-plain": "1"}, {"stage-4-y1-flipped": "1"}],
        "best_actions": [["say-0"], ["say-1"]],
        "best_action_differs": True,
        "method": "exact recursion over the remaining steps",
        "differing": [1],
        "loss": "truncation",
        "rule": "last:1",
        "remedy": "retrieve flip/t2 when it matters, or let a pin or a scratchpad keep it",
        "remedy_map": "pin:flip/t2:last:1",
        "remedy_sufficient": True,
    }
    json.dumps(found.json(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "loss", "rule"),
    [
        ("last:1", "truncation", "last:1"),
        ("counter:last:1", "truncation", "last:1"),
        ("last_messages:2", "truncation", "last_messages:2"),
        ("null", "truncation", "null"),
        ("summary:count", "summarisation", "summary:count"),
        ("compose:results:last:3", "formatting", "compose:results"),
    ],
)
def test_the_three_losses_are_told_apart(name: str, loss: str, rule: str) -> None:
    """M1 §1.5.3 on the flip: gone with age, counted away, or present without the call that gives it meaning."""
    flip = task("flip:3")
    phi = parse_map(name).bind(flip.model, 5)
    found = sufficient(flip.model, phi, Criterion(ONE, 5))
    assert found.witness is not None
    assert (found.witness.loss, found.witness.rule) == (loss, rule)
    words = {"truncation": "retrieve", "summarisation": "summary", "formatting": "form"}
    assert words[loss] in found.witness.remedy.advice
    if loss == "formatting":
        assert found.witness.remedy.map is None


def test_a_pin_that_does_not_help_is_said_not_to() -> None:
    model = task("tiger").model
    found = sufficient(model, Last(1), Criterion(ONE, 5))
    assert found.witness is not None
    assert found.witness.remedy.map is not None
    again = parse_map(found.witness.remedy.map).bind(model, 5)
    assert found.witness.remedy.sufficient is sufficient(model, again, Criterion(ONE, 5)).sufficient


@pytest.mark.parametrize(
    ("name", "phi", "horizon"), [("repo_repair", Null(), 3), ("flip:2", Null(), 4), ("tmaze:3", Last(1), 4)]
)
def test_of_one_length_the_pair_whose_best_action_differs_comes_first(
    name: str, phi: ContextMap, horizon: int
) -> None:
    found = sufficient(task(name).model, phi, Criterion(ONE, horizon))
    assert found.witness is not None and found.decisive is not None
    assert found.witness.length <= found.decisive.length
    if found.witness.length == found.decisive.length:
        assert found.witness == found.decisive


def test_a_loss_is_that_of_the_message_in_which_the_histories_differ() -> None:
    # Every call is hidden by the form, but what differs is the result, and that is gone.
    model = task("tiger").model
    phi = parse_map("compose:results:oldest_first:20").bind(model, 4)
    found = sufficient(model, phi, Criterion(ONE, 4))
    assert found.witness is not None
    one, other = (history[found.witness.differing[0]] for history in found.witness.histories)
    assert one[0] == other[0]
    assert (found.witness.loss, found.witness.rule) == ("truncation", "oldest_first:20")
