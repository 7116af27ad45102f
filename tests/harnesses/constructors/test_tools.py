"""Tools: the laws of select, merge, coarsen, garble, scratchpad, mixture and of actions that are not exposed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import (
    coarsen,
    difference,
    garble,
    merge,
    mixture,
    scratchpad,
    select,
    step_limit,
    with_unexposed,
)
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import distributions, pomdps

ONE, HALF = Fraction(1), Fraction(1, 2)
models = pomdps(max_states=2, min_actions=2, max_actions=2, min_observations=2, max_observations=2)


@given(pomdps())
def test_selecting_everything_and_mapping_nothing_are_identities(model: POMDP) -> None:
    same = {o: {o: 1} for o in model.observations}
    for found in (
        select(model, model.actions),
        select(model, "*"),
        garble(model, {"*": same}),
        coarsen(model, {}),
        merge(model, {a: [a] for a in model.actions}),
        mixture([(model, 3)]),
    ):
        assert difference(model, found) is None
        assert found.actions == model.actions and found.observations == model.observations
        assert set(found.states) <= set(model.states)


@given(models)
def test_a_selected_action_is_the_action(oracle: Any, model: POMDP) -> None:
    found = oracle.process(select(model, "1"), 3)
    expected = oracle.process(model, 3)
    assert {h: p for h, (p, _) in found.items()} == {
        h: p for h, (p, _) in expected.items() if all(a == "1" for a, _ in h)
    }


@given(st.data())
def test_a_merged_call_draws_a_base_action_blindly(oracle: Any, data: st.DataObject) -> None:
    model = data.draw(models)
    weights = data.draw(distributions(2, density="dense"))
    found = merge(model, {"any": {model.actions[a]: p for a, p in weights.items()}})
    rules = oracle.rules(model)
    expected = oracle.Rules(
        rules.start,
        ("any",),
        lambda s, _: [(t, o, w * p) for a, w in weights.items() for t, o, p in rules.step(s, str(a))],
        lambda s, _: sum(w * rules.reward(s, str(a)) for a, w in weights.items()),
    )
    assert oracle.process(found, 3) == oracle.process(expected, 3)


@given(st.data())
def test_observations_are_drawn_anew_by_action_and_observation(oracle: Any, data: st.DataObject) -> None:
    model = data.draw(models)
    rows = {o: data.draw(distributions(3)) for o in model.observations}
    found = garble(model, {"0": {o: {f"new-{k}": p for k, p in row.items()} for o, row in rows.items()}})
    rules = oracle.rules(model)

    def step(s: Any, a: str) -> Any:
        for t, o, p in rules.step(s, a):
            for k, q in rows[o].items() if a == "0" else ():
                yield t, f"new-{k}", p * q
            if a == "1":
                yield t, o, p

    expected = oracle.Rules(rules.start, rules.actions, step, rules.reward)
    assert oracle.process(found, 3) == oracle.process(expected, 3)


@given(models)
def test_coarsening_is_the_garbling_that_is_certain(model: POMDP) -> None:
    found = coarsen(model, {"0": {"*": "seen"}})
    assert difference(found, garble(model, {"0": {o: {"seen": 1} for o in model.observations}})) is None
    assert found.observations == ("seen", *model.observations)
    assert coarsen(model, {"*": {"0": "x", "*": "y"}}).observations == ("x", "y")


def test_the_first_pattern_that_matches_an_observation_counts() -> None:
    model = coarsen(task("tiger").model, {"listen": {"*": "roar"}, "*": {"tiger-left": "x", "tiger-*": "y"}})
    shown = [{model.observations[o] for s in range(2) for o in Z.row(s)} for Z in model.exact.Z]
    assert shown == [{"roar"}, {"x", "y"}, {"x", "y"}]


@given(models)
def test_a_note_is_shown_until_the_next_and_changes_nothing_else(oracle: Any, model: POMDP) -> None:
    over = oracle.absorbing(model)
    found = scratchpad(model, ["k"])
    rules = oracle.rules(model)

    def step(state: Any, call: str) -> Any:
        (s, note), (a, _, key) = state, call.partition("+write-")
        now = key or note
        for t, o, p in rules.step(s, a):
            yield ((t, None), o, p) if t in over or not now else ((t, now), f"{o}+note-{now}", p)

    calls = tuple(a + w for w in ("", "+write-k") for a in model.actions)
    start = {(s, None): p for s, p in rules.start.items()}
    expected = oracle.Rules(
        start, calls, step, lambda state, call: rules.reward(state[0], call.partition("+")[0])
    )
    assert oracle.process(found, 2) == oracle.process(expected, 2)
    assert oracle.best(found, ONE, 2) == oracle.best(model, ONE, 2)


@given(models, models)
def test_a_mixture_draws_its_task_once_and_never_says_which(oracle: Any, one: POMDP, other: POMDP) -> None:
    discount = other.exact.discount
    found = oracle.process(mixture([(one.with_discount(discount), 1), (other, 2)]), 3)
    parts = oracle.process(one, 3), oracle.process(other, 3)
    for history, (p, rewards) in found.items():
        first, second = (part.get(history, (0, [(a, Fraction(0)) for a in "01"])) for part in parts)
        assert p == Fraction(1, 3) * first[0] + Fraction(2, 3) * second[0]
        assert [r for _, r in rewards] == [
            Fraction(1, 3) * x + Fraction(2, 3) * y
            for (_, x), (_, y) in zip(first[1], second[1], strict=True)
        ]
    assert set(found) == set(parts[0]) | set(parts[1])


def test_a_mixture_is_of_like_models() -> None:
    tiger = task("tiger").model
    with pytest.raises(ModelError, match="differ in actions"):
        mixture([(tiger, 1), (select(tiger, "listen"), 1)])
    with pytest.raises(ModelError, match="differ in discount"):
        mixture([(tiger, 1), (tiger.with_discount(None), 1)])
    with pytest.raises(ModelError, match="weight 0 is not positive"):
        mixture([(tiger, 0)])
    assert mixture([(tiger, 1), (tiger, 1)]).states[0] == "tiger-left/task-0"


@given(models)
def test_an_action_that_is_not_exposed_shows_error_and_does_nothing(oracle: Any, model: POMDP) -> None:
    found = with_unexposed(model, ["0", "send", "send"])
    assert found.actions == ("0", "1", "send")
    rules = oracle.rules(model)
    expected = oracle.Rules(
        rules.start,
        found.actions,
        lambda s, a: [(s, "error", ONE)] if a == "send" else rules.step(s, a),
        lambda s, a: Fraction(0) if a == "send" else rules.reward(s, a),
    )
    assert oracle.process(found, 3) == oracle.process(expected, 3)


def test_a_limit_counts_calls_that_are_not_exposed() -> None:
    model = step_limit(with_unexposed(task("tiger").model, ["send"]), 1)
    assert {model.observations[o] for o in model.exact.Z[3].row(model.state_index("stop/error"))} == {"error"}
    stop = model.exact.T[3].row(0)
    assert [model.states[s] for s in stop] == ["stop/error"]


def test_names_and_patterns_that_match_nothing_are_refused() -> None:
    tiger = task("tiger").model
    with pytest.raises(ModelError, match="no action matches 'fly'; known: listen, open-left, open-right"):
        select(tiger, "fly")
    with pytest.raises(ModelError, match="no observation of coarsen matches 'x'"):
        coarsen(tiger, {"listen": {"x": "y"}})
    with pytest.raises(ModelError, match=r"garble\[listen\]\[\*\] sums to 1/2, not 1"):
        garble(tiger, {"listen": {"*": {"x": "1/2"}}})
    with pytest.raises(ModelError, match=r"merge\[open\] is empty"):
        merge(tiger, {"open": []})
    with pytest.raises(ModelError, match="distinct names"):
        scratchpad(tiger, ["a", "a"])


def test_an_action_pattern_matches_what_is_written_beside_the_action() -> None:
    model = scratchpad(task("tiger").model, ["a"])
    assert select(model, "listen").actions == ("listen", "listen+write-a")
    assert select(model, "open-*").actions == (
        "open-left",
        "open-right",
        "open-left+write-a",
        "open-right+write-a",
    )
